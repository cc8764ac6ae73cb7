//! Colours for code, line by line: comments, strings, numbers and the keywords that most languages
//! share. Enough to read by; not a parser.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::tui::theme::{Slot, Theme};

const KEYWORDS: &[&str] = &[
    "abstract",
    "and",
    "as",
    "async",
    "await",
    "break",
    "case",
    "catch",
    "class",
    "const",
    "continue",
    "def",
    "default",
    "delete",
    "do",
    "elif",
    "else",
    "end",
    "enum",
    "except",
    "export",
    "extends",
    "false",
    "final",
    "finally",
    "fn",
    "for",
    "from",
    "func",
    "function",
    "if",
    "impl",
    "implements",
    "import",
    "in",
    "interface",
    "is",
    "let",
    "local",
    "loop",
    "match",
    "mod",
    "mut",
    "new",
    "nil",
    "none",
    "not",
    "null",
    "or",
    "package",
    "pass",
    "private",
    "protected",
    "pub",
    "public",
    "raise",
    "return",
    "self",
    "static",
    "struct",
    "super",
    "switch",
    "then",
    "this",
    "throw",
    "trait",
    "true",
    "try",
    "type",
    "typeof",
    "undefined",
    "unsafe",
    "use",
    "var",
    "void",
    "where",
    "while",
    "with",
    "yield",
    "None",
    "True",
    "False",
    "Self",
];

/// How a language marks a comment to the end of the line.
fn comment_mark(extension: &str) -> Option<&'static str> {
    match extension {
        "rs" | "c" | "h" | "cc" | "cpp" | "hpp" | "java" | "js" | "jsx" | "ts" | "tsx" | "go" | "swift" | "kt"
        | "cs" | "php" | "scss" | "dart" | "zig" => Some("//"),
        "py" | "rb" | "sh" | "bash" | "zsh" | "toml" | "yaml" | "yml" | "pl" | "r" | "jl" | "ini" | "conf" | "nix"
        | "Dockerfile" | "Makefile" => Some("#"),
        "lua" | "sql" | "hs" | "elm" => Some("--"),
        _ => None,
    }
}

/// Whether files of this ending are code at all.
pub fn is_code(extension: &str) -> bool {
    comment_mark(extension).is_some() || matches!(extension, "json" | "css" | "html" | "xml" | "vue" | "svelte")
}

/// The ending of a path, or its whole name when it has none.
pub fn extension(path: &str) -> &str {
    let name = path.rsplit('/').next().unwrap_or(path);
    name.rsplit_once('.').map_or(name, |(_, extension)| extension)
}

/// A line of code (safe to show) with its colours.
pub fn line(text: &str, extension: &str, theme: &Theme) -> Line<'static> {
    let mark = comment_mark(extension);
    let mut spans = Vec::new();
    let mut rest = text;
    while let Some(c) = rest.chars().next() {
        let (length, style) = token(rest, c, mark, theme);
        let (head, tail) = rest.split_at(length);
        spans.push(Span::styled(head.to_owned(), style));
        rest = tail;
    }
    Line::from(spans)
}

/// Length and look of what `rest` begins with.
fn token(rest: &str, first: char, mark: Option<&str>, theme: &Theme) -> (usize, Style) {
    let while_in = |wanted: &dyn Fn(char) -> bool| rest.find(|c| !wanted(c)).unwrap_or(rest.len());
    if mark.is_some_and(|mark| rest.starts_with(mark)) {
        return (rest.len(), theme[Slot::CodeComment]);
    }
    match first {
        '"' | '\'' | '`' => match string_length(rest, first) {
            Some(length) => (length, theme[Slot::CodeString]),
            None => (1, theme[Slot::Text]),
        },
        c if c.is_ascii_digit() => {
            (while_in(&|c| c.is_ascii_alphanumeric() || c == '.' || c == '_'), theme[Slot::CodeNumber])
        }
        c if c.is_alphabetic() || c == '_' => {
            let length = while_in(&|c| c.is_alphanumeric() || c == '_');
            let slot = if KEYWORDS.contains(&&rest[..length]) { Slot::CodeKeyword } else { Slot::Text };
            (length, theme[slot])
        }
        _ => {
            let plain = |c: char| !c.is_alphanumeric() && !matches!(c, '"' | '\'' | '`' | '_' | '#' | '/' | '-');
            (while_in(&plain).max(first.len_utf8()), theme[Slot::Text])
        }
    }
}

/// Length of a string with its quotes; none when it does not end on this line, as a lifetime or an
/// apostrophe does not.
fn string_length(rest: &str, quote: char) -> Option<usize> {
    let mut escaped = false;
    for (at, c) in rest.char_indices().skip(1) {
        match c {
            _ if escaped => escaped = false,
            '\\' => escaped = true,
            c if c == quote => return Some(at + 1),
            _ => {}
        }
    }
    None
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Glyphs;
    use crate::tui::theme::{Colors, Themes};

    #[test]
    fn every_character_stays() {
        let themes = Themes::new(&[], Glyphs::Unicode, Colors::True).unwrap();
        let theme = themes.get("dark").unwrap();
        for text in ["let x = \"a\\\"b\"; // é 漢", "it's", "", "a 'b", "0x1f + 1.5", "#!/bin/sh", "—–-->"] {
            assert_eq!(line(text, "rs", theme).to_string(), text);
        }
        let shown = line("let x = \"s\" // c", "rs", theme);
        let style_of = |word: &str| shown.spans.iter().find(|s| s.content.contains(word)).map(|s| s.style);
        assert_eq!(style_of("let"), Some(theme[Slot::CodeKeyword]));
        assert_eq!(style_of("\"s\""), Some(theme[Slot::CodeString]));
        assert_eq!(style_of("// c"), Some(theme[Slot::CodeComment]));
    }
}
