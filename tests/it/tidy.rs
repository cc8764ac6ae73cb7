//! Small rules that keep the project easy to find one's way in (see also `architecture`).

use std::collections::BTreeMap;
use std::path::{Path, PathBuf};

use proc_macro2::{Delimiter, TokenTree};

use crate::source::{each_level, files_below, is_test_file, is_word, lex, module_of, read, root, rust_files};

/// Every Rust file of the project.
fn all_rust_files() -> Vec<String> {
    ["src", "tests", "benches", "examples"].into_iter().flat_map(rust_files).collect()
}

/// Every file of the project itself: no build output, no sessions, no repository data.
fn project_files() -> Vec<String> {
    let mut found = Vec::new();
    for entry in std::fs::read_dir(root()).unwrap() {
        let entry = entry.unwrap();
        let name = entry.file_name().into_string().unwrap();
        match entry.file_type().unwrap().is_dir() {
            true if matches!(name.as_str(), ".git" | "target" | "workspace") => {}
            true => found.extend(files_below(&name)),
            // In a worktree `.git` is a file that names a folder of this machine.
            false if name == ".git" => {}
            false => found.push(name),
        }
    }
    found.sort();
    found
}

/// A room's `tests.rs` needs no word of its own: it makes claims about the file it belongs to.
#[test]
fn every_file_opens_by_saying_what_it_is() {
    let silent: Vec<String> =
        all_rust_files().into_iter().filter(|path| !is_test_file(path) && !read(path).starts_with("//! ")).collect();
    assert_eq!(silent, Vec::<String>::new(), "open these files with `//! ` and what they own");
}

#[test]
fn no_snapshot_waits_to_be_looked_at() {
    let stray: Vec<String> = project_files()
        .into_iter()
        .filter(|path| path.ends_with(".snap.new") || path.ends_with(".pending-snap"))
        .collect();
    assert_eq!(stray, Vec::<String>::new(), "look at these and accept or remove them");
}

/// The string literals of all sources outside tests.
fn literals() -> Vec<String> {
    let mut found = Vec::new();
    for path in rust_files("src").into_iter().filter(|path| !is_test_file(path)) {
        each_level(lex(&path, &read(&path)), &[], &mut |level, _| {
            found.extend(level.iter().filter_map(|token| match token {
                TokenTree::Literal(literal) => Some(literal.to_string().trim_matches('"').to_owned()),
                _ => None,
            }));
        });
    }
    found
}

/// How many literals name this file: its path, or the end of it that its registration spells.
fn times_named(file: &str, literals: &[String]) -> usize {
    let names_it = |literal: &&String| {
        let named = literal.trim_start_matches("../");
        file == named || !named.is_empty() && named.contains('.') && file.ends_with(&format!("/{named}"))
    };
    literals.iter().filter(names_it).count()
}

#[test]
fn every_prompt_and_theme_is_registered_once_and_parses() {
    let literals = literals();
    let files: Vec<String> = ["prompts", "themes"].into_iter().flat_map(files_below).collect();
    assert!(files.iter().any(|file| file.starts_with("prompts/")));
    for file in &files {
        assert_eq!(times_named(file, &literals), 1, "`{file}` must be embedded by exactly one line of src/");
        let text = read(file);
        match file.rsplit_once('.') {
            Some((_, "prompt")) => drop(super_agent::prompts::parse(file, &text).unwrap()),
            Some((_, "toml")) => drop(text.parse::<toml::Table>().unwrap_or_else(|error| panic!("{file}: {error}"))),
            _ => panic!("`{file}` is neither a `.prompt` nor a `.toml`"),
        }
    }
}

/// Folders of this machine that must not appear in the project.
fn machine_paths() -> Vec<String> {
    let ours = [std::env::var("HOME").ok(), std::env::var("CARGO_TARGET_DIR").ok(), root().to_str().map(str::to_owned)];
    let ordinary = ["home", "Users", "root", "tmp", "usr", "var", "opt", "srv", "mnt", "private", "build", "src"];
    let mut found = Vec::new();
    for path in ours.into_iter().flatten() {
        for folder in Path::new(&path).ancestors() {
            let parts: Vec<&str> = folder.iter().filter_map(|part| part.to_str()).collect();
            // `/home` alone says nothing about this machine; `/home/somebody` does.
            let telling = match parts.as_slice() {
                [_, only] => !ordinary.contains(only),
                [_, first, ..] => folder == Path::new(&path) || !ordinary.contains(first),
                _ => false,
            };
            if telling {
                found.push(format!("{}/", folder.display()));
            }
        }
    }
    found.sort();
    found.dedup();
    found
}

#[test]
fn no_text_names_a_folder_of_the_machine_it_was_made_on() {
    let paths = machine_paths();
    let mut found = Vec::new();
    for file in project_files() {
        let Ok(text) = std::fs::read_to_string(root().join(&file)) else { continue };
        for (i, line) in text.lines().enumerate() {
            if let Some(path) = paths.iter().find(|path| starts_a_path(line, path)) {
                found.push(format!("{file}:{}: {path}", i + 1));
            }
        }
    }
    assert!(found.is_empty(), "these lines name folders of this machine:\n{}", found.join("\n"));
}

/// Whether `path` stands in `line` as the beginning of a path, not in the middle of another.
fn starts_a_path(line: &str, path: &str) -> bool {
    line.match_indices(path).any(|(at, _)| {
        let before = line[..at].chars().next_back();
        !before.is_some_and(|c| c.is_alphanumeric() || matches!(c, '.' | '_' | '-' | '~' | '}' | '>'))
    })
}

#[test]
fn a_path_in_the_middle_of_another_is_not_this_machine_s() {
    assert!(starts_a_path("see /there/x", "/there/"));
    assert!(starts_a_path("\"/there/x\"", "/there/"));
    assert!(!starts_a_path("src/there/x", "/there/"));
    assert!(!starts_a_path("<root>/there/x", "/there/"));
}

/// Lines of each function of a file, by name.
fn function_lengths(path: &str) -> Vec<(usize, String)> {
    let mut found = Vec::new();
    each_level(lex(path, &read(path)), &module_of(path), &mut |level, _| {
        for (i, token) in level.iter().enumerate() {
            if !is_word(Some(token), "fn") {
                continue;
            }
            let Some(TokenTree::Ident(name)) = level.get(i + 1) else { continue };
            let body = level[i..].iter().find_map(|token| match token {
                TokenTree::Group(group) if group.delimiter() == Delimiter::Brace => Some(Some(group)),
                TokenTree::Punct(end) if end.as_char() == ';' => Some(None),
                _ => None,
            });
            if let Some(Some(body)) = body {
                let lines = body.span_close().end().line + 1 - token.span().start().line;
                found.push((lines, format!("{path} {name}")));
            }
        }
    });
    found
}

fn longest(what: &str, mut lengths: Vec<(usize, String)>) -> String {
    lengths.sort_by(|a, b| b.cmp(a));
    let lines = lengths.into_iter().take(10).map(|(lines, name)| format!("{lines:>6}  {name}\n"));
    format!("longest {what}:\n{}", lines.collect::<String>())
}

/// A smell that is shown, not a cap: run with `--nocapture` to see it.
#[test]
fn the_longest_files_and_functions_are_shown() {
    let sources: Vec<String> = rust_files("src").into_iter().filter(|path| !is_test_file(path)).collect();
    let files: Vec<(usize, String)> = sources.iter().map(|path| (read(path).lines().count(), path.clone())).collect();
    let functions: Vec<(usize, String)> = sources.iter().flat_map(|path| function_lengths(path)).collect();
    let by_name: BTreeMap<&str, usize> = functions.iter().map(|(lines, name)| (name.as_str(), *lines)).collect();
    assert_eq!(by_name.get("src/main.rs main"), Some(&3), "the measure is off");
    println!("{}{}", longest("files", files), longest("functions", functions));
}

#[test]
fn every_document_links_to_files_that_exist() {
    let mut broken = Vec::new();
    for file in project_files().into_iter().filter(|file| file.ends_with(".md")) {
        let folder = Path::new(&file).parent().map(PathBuf::from).unwrap_or_default();
        for target in links(&read(&file)) {
            if !root().join(&folder).join(&target).exists() {
                broken.push(format!("{file}: {target}"));
            }
        }
    }
    assert_eq!(broken, Vec::<String>::new(), "links that lead nowhere");
}

/// Targets of `[text](target)` that are files, without the part after `#`.
fn links(text: &str) -> Vec<String> {
    let after = text.split("](").skip(1).filter_map(|rest| rest.split(')').next());
    let files = after.filter(|target| !target.contains("://") && !target.starts_with('#'));
    files.filter_map(|target| target.split('#').next()).map(str::to_owned).collect()
}
