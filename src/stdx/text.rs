//! Making foreign text safe to show: no escape sequence and no control character of a model, a
//! tool or a file ever reaches a terminal (E19).

/// Drops escape sequences (CSI, OSC, DCS and the like) and control characters, expands tabs to
/// four spaces, turns CR LF and lone CR into LF. Newlines stay.
pub fn sanitize(text: &str) -> String {
    let mut out = String::with_capacity(text.len());
    let mut chars = text.chars().peekable();
    while let Some(c) = chars.next() {
        match c {
            '\u{1b}' => skip_escape(&mut chars),
            '\u{9b}' => skip_csi(&mut chars),
            '\u{90}' | '\u{98}' | '\u{9d}'..='\u{9f}' => skip_string(&mut chars),
            '\r' => {
                if chars.peek() != Some(&'\n') {
                    out.push('\n');
                }
            }
            '\n' => out.push('\n'),
            '\t' => out.push_str("    "),
            c if c.is_control() || is_bidi_control(c) => {}
            c => out.push(c),
        }
    }
    out
}

/// As [`sanitize`], on one line: newlines become spaces.
pub fn sanitize_line(text: &str) -> String {
    sanitize(text).replace('\n', " ")
}

/// Marks that reorder the text around them; they can make a command look like another one.
fn is_bidi_control(c: char) -> bool {
    matches!(c, '\u{202a}'..='\u{202e}' | '\u{2066}'..='\u{2069}' | '\u{200e}' | '\u{200f}' | '\u{feff}')
}

type Chars<'a> = std::iter::Peekable<std::str::Chars<'a>>;

fn skip_escape(chars: &mut Chars<'_>) {
    match chars.next() {
        Some('[') => skip_csi(chars),
        Some(']' | 'P' | 'X' | '^' | '_') => skip_string(chars),
        // Intermediate bytes (ECMA-48 5.4), then one final byte.
        Some(' '..='/') => {
            while chars.next_if(|c| matches!(c, ' '..='/')).is_some() {}
            chars.next_if(|c| matches!(c, '0'..='~'));
        }
        _ => {}
    }
}

fn skip_csi(chars: &mut Chars<'_>) {
    while chars.next_if(|c| matches!(c, ' '..='?')).is_some() {}
    chars.next_if(|c| matches!(c, '@'..='~'));
}

/// A control string ends with BEL or ST. An unfinished one is cut at the line's end, so that a
/// stray introducer can't swallow the rest of an output.
fn skip_string(chars: &mut Chars<'_>) {
    while let Some(&c) = chars.peek() {
        if c == '\n' {
            return;
        }
        chars.next();
        match c {
            '\u{7}' | '\u{9c}' => return,
            '\u{1b}' => {
                chars.next_if_eq(&'\\');
                return;
            }
            _ => {}
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(input: &str, expected: &str) {
        assert_eq!(sanitize(input), expected);
    }

    #[test]
    fn no_control_sequence_survives() {
        check("\u{1b}[31mred\u{1b}[0m", "red");
        check("\u{1b}]0;title\u{7}text", "text");
        check("\u{1b}]52;c;aGk=\u{1b}\\text", "text");
        check("a\u{9b}2Jb", "ab");
        check("a\u{1b}(0b", "ab");
        check("bell\u{7} back\u{8}", "bell back");
        check("one\r\ntwo\rthree", "one\ntwo\nthree");
        check("a\tb", "a    b");
        check("rm \u{202e}txt", "rm txt");
        check("\u{1b}]unfinished\nnext", "\nnext");
        check("漢字 👩‍👩‍👧", "漢字 👩‍👩‍👧");
    }
}
