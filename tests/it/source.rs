//! The project's files as the structure tests see them: found, read, lexed.

use std::fs;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenStream, TokenTree};

/// The project's folder.
pub fn root() -> &'static Path {
    Path::new(env!("CARGO_MANIFEST_DIR"))
}

/// Reads a file of the project as text.
#[track_caller]
pub fn read(relative: &str) -> String {
    fs::read_to_string(root().join(relative)).unwrap_or_else(|error| panic!("{relative}: {error}"))
}

/// All files below `folder`, as sorted paths relative to the project with `/` between the parts.
/// Empty when there is no such folder.
pub fn files_below(folder: &str) -> Vec<String> {
    let mut found = Vec::new();
    let mut waiting = vec![PathBuf::from(folder)];
    while let Some(folder) = waiting.pop() {
        let Ok(entries) = fs::read_dir(root().join(&folder)) else { continue };
        for entry in entries {
            let entry = entry.unwrap();
            let path = folder.join(entry.file_name());
            if entry.file_type().unwrap().is_dir() {
                waiting.push(path);
            } else {
                found.push(path.to_str().unwrap().replace('\\', "/"));
            }
        }
    }
    found.sort();
    found
}

/// All Rust files below `folder`.
pub fn rust_files(folder: &str) -> Vec<String> {
    let mut files = files_below(folder);
    files.retain(|path| path.ends_with(".rs"));
    files
}

/// Whether a file of `src/` holds nothing but tests.
pub fn is_test_file(path: &str) -> bool {
    path.starts_with("src/") && (path.ends_with("/tests.rs") || path.contains("/tests/"))
}

/// The tokens of a Rust text: comments are gone, documentation and strings are literals.
#[track_caller]
pub fn lex(name: &str, text: &str) -> TokenStream {
    text.parse().unwrap_or_else(|error| panic!("{name}: not Rust: {error}"))
}

/// Module path of a file of `src/`: `src/agent/machine.rs` is `agent`, `machine`.
pub fn module_of(path: &str) -> Vec<String> {
    let inner = path.strip_prefix("src/").unwrap_or(path);
    let inner = inner.strip_suffix(".rs").unwrap_or(inner);
    let mut parts: Vec<String> = inner.split('/').map(str::to_owned).collect();
    if parts.last().is_some_and(|last| last == "mod") || parts == ["lib"] {
        parts.pop();
    }
    parts
}

/// Calls `visit` with the tokens of each level (file, block, bracket, macro body), leaving out
/// `mod tests { … }`. The second argument is the module that the level belongs to.
pub fn each_level(tokens: TokenStream, module: &[String], visit: &mut impl FnMut(&[TokenTree], &[String])) {
    let level: Vec<TokenTree> = tokens.into_iter().collect();
    visit(&level, module);
    for (i, token) in level.iter().enumerate() {
        let TokenTree::Group(group) = token else { continue };
        match inline_module(&level[..i], group.delimiter()) {
            Some(name) if name == "tests" => {}
            Some(name) => {
                let inner: Vec<String> = module.iter().cloned().chain([name]).collect();
                each_level(group.stream(), &inner, visit);
            }
            None => each_level(group.stream(), module, visit),
        }
    }
}

/// The name of the inline module whose braces come after `before`.
fn inline_module(before: &[TokenTree], delimiter: Delimiter) -> Option<String> {
    match before {
        [.., TokenTree::Ident(word), TokenTree::Ident(name)] if delimiter == Delimiter::Brace && word == "mod" => {
            Some(name.to_string())
        }
        _ => None,
    }
}

/// Whether `tokens[at]` and the next are `::`.
pub fn colons(tokens: &[TokenTree], at: usize) -> bool {
    let is_colon = |token: Option<&TokenTree>| matches!(token, Some(TokenTree::Punct(p)) if p.as_char() == ':');
    is_colon(tokens.get(at)) && is_colon(tokens.get(at + 1))
}

/// Whether `token` is this word.
pub fn is_word(token: Option<&TokenTree>, word: &str) -> bool {
    matches!(token, Some(TokenTree::Ident(ident)) if ident == word)
}
