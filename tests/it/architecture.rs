//! Holds the table of `ARCHITECTURE.md`: which room may name which, and what only one room may name.

use std::collections::{BTreeMap, BTreeSet};

use proc_macro2::{TokenStream, TokenTree};

use crate::source::{colons, each_level, is_test_file, is_word, lex, module_of, read, root, rust_files};

/// Stands for the whole crate: a glob or a rename of `crate` would hide every edge.
const WHOLE_CRATE: &str = "*";

#[derive(Debug, PartialEq)]
struct Room {
    may_name: Allowed,
    to_come: bool,
}

#[derive(Debug, PartialEq)]
enum Allowed {
    Everything,
    Rooms(BTreeSet<String>),
}

impl Allowed {
    fn has(&self, room: &str) -> bool {
        match self {
            Self::Everything => true,
            Self::Rooms(rooms) => rooms.contains(room),
        }
    }
}

/// The block of lines `room: rooms` in `ARCHITECTURE.md`.
fn table() -> BTreeMap<String, Room> {
    let page = read("ARCHITECTURE.md");
    let block = page.split("```").find(|block| block.trim_start().starts_with("ids:"));
    let block = block.expect("ARCHITECTURE.md has a fenced block that begins with `ids:`");
    let mut rooms = BTreeMap::new();
    for line in block.lines().filter(|line| !line.trim().is_empty()) {
        let (name, may_name) = line.split_once(':').unwrap_or_else(|| panic!("no colon in the table's line `{line}`"));
        let to_come = name.ends_with(" (to come)");
        let name = name.trim_end_matches(" (to come)").trim().to_owned();
        let may_name = match may_name.trim() {
            "everything" => Allowed::Everything,
            list => Allowed::Rooms(list.split_whitespace().map(str::to_owned).collect()),
        };
        assert_eq!(rooms.insert(name, Room { may_name, to_come }), None, "twice in the table: `{line}`");
    }
    rooms
}

/// The rooms that a text names, other than the one it lies in.
fn rooms_named(tokens: TokenStream, module: &[String]) -> BTreeSet<String> {
    let mut found = BTreeSet::new();
    each_level(tokens, module, &mut |level, module| {
        for i in 0..level.len() {
            named_at(level, i, module, &mut found);
        }
    });
    if let Some(own) = module.first() {
        found.remove(own);
    }
    found
}

/// Adds what the path that starts at `level[i]` names, if one does.
fn named_at(level: &[TokenTree], i: usize, module: &[String], found: &mut BTreeSet<String>) {
    let TokenTree::Ident(word) = &level[i] else { return };
    let mut above = match word.to_string().as_str() {
        "crate" | "super_agent" => Vec::new(),
        "super" => module[..module.len().saturating_sub(1)].to_vec(),
        _ => return,
    };
    if !colons(level, i + 1) {
        let hides_the_crate =
            word == "crate" && (is_word(level.get(i + 1), "as") || i > 0 && is_word(level.get(i - 1), "extern"));
        if hides_the_crate {
            found.insert(WHOLE_CRATE.to_owned());
        }
        return;
    }
    let mut at = i + 3;
    while is_word(level.get(at), "super") && colons(level, at + 1) {
        above.pop();
        at += 3;
    }
    if let Some(room) = above.first() {
        found.insert(room.clone());
        return;
    }
    match level.get(at) {
        Some(TokenTree::Ident(name)) => drop(found.insert(name.to_string())),
        Some(TokenTree::Group(group)) => found.extend(heads(group.stream())),
        Some(TokenTree::Punct(_)) => drop(found.insert(WHOLE_CRATE.to_owned())),
        Some(TokenTree::Literal(_)) | None => {}
    }
}

/// The first name of each part of `{x::y, z}`.
fn heads(tokens: TokenStream) -> Vec<String> {
    let tokens: Vec<TokenTree> = tokens.into_iter().collect();
    let parts = tokens.split(|token| matches!(token, TokenTree::Punct(p) if p.as_char() == ','));
    parts
        .filter_map(|part| part.first())
        .map(|first| match first {
            TokenTree::Ident(name) if name != "self" => name.to_string(),
            _ => WHOLE_CRATE.to_owned(),
        })
        .collect()
}

/// Every violation of the table in one file, as `file: room -> room`.
fn violations(path: &str, text: &str, table: &BTreeMap<String, Room>) -> Vec<String> {
    let module = module_of(path);
    let Some(own) = module.first() else { return Vec::new() };
    let Some(room) = table.get(own) else { return vec![format!("{path}: `{own}` is not in the table")] };
    let named = rooms_named(lex(path, text), &module);
    named
        .into_iter()
        .filter(|other| !room.may_name.has(other))
        .map(|other| format!("{path}: {own} -> {other}"))
        .collect()
}

fn source_files() -> impl Iterator<Item = (String, String)> {
    rust_files("src").into_iter().filter(|path| !is_test_file(path)).map(|path| {
        let text = read(&path);
        (path, text)
    })
}

#[test]
fn each_room_names_only_rooms_that_the_table_allows() {
    let table = table();
    let found: Vec<String> = source_files().flat_map(|(path, text)| violations(&path, &text, &table)).collect();
    assert!(found.is_empty(), "not allowed by the table in ARCHITECTURE.md:\n{}", found.join("\n"));
}

#[test]
fn every_spelling_of_a_violation_is_seen() {
    let table = table();
    let check = |path: &str, text: &str, expected: &str| {
        assert_eq!(violations(path, text, &table), [format!("{path}: {expected}")], "{text}");
    };
    check("src/trace/tree.rs", "use crate::tui::App;", "trace -> tui");
    check("src/trace/tree.rs", "use crate::{ids::TraceId, events::{data::Goal}, tui::{self, App}};", "trace -> tui");
    check("src/trace/tree.rs", "fn f() { super::super::tui::run() }", "trace -> tui");
    check("src/trace/mod.rs", "fn f() { super::tui::run() }", "trace -> tui");
    check("src/trace/tree.rs", "async fn f() { select! { _ = g() => crate::tui::run(), } }", "trace -> tui");
    check("src/trace/tree.rs", "impl From<crate::tui::App> for X {}", "trace -> tui");
    check("src/trace/tree.rs", "mod inner { fn f() { super::super::super::tui::run() } }", "trace -> tui");
    check("src/trace/tree.rs", "macro_rules! m { () => { $crate::tui::run() } }", "trace -> tui");
    check("src/trace/tree.rs", "use crate::*;", "trace -> *");
    check("src/trace/tree.rs", "use crate as root;", "trace -> *");
    check("src/trace/tree.rs", "use crate::{self as root};", "trace -> *");
    check("src/main.rs", "fn main() { super_agent::tui::run() }", "main -> tui");
    assert_eq!(violations("src/odd.rs", "", &table), ["src/odd.rs: `odd` is not in the table"]);
}

#[test]
fn comments_strings_tests_and_allowed_names_are_no_violation() {
    let text = r#"
        //! See crate::tui.
        use crate::{events::data::Goal, ids::TraceId, trace::goal};
        use super::tree::Tree;
        use self::super::goal;
        pub(crate) fn f() -> &'static str { "crate::tui" /* crate::tui */ }
        pub(in crate::trace) fn g() {}
        #[cfg(test)]
        mod tests { use crate::tui::App; }
    "#;
    assert_eq!(violations("src/trace/tree.rs", text, &table()), Vec::<String>::new());
}

#[test]
fn the_table_and_the_folders_of_src_agree() {
    let table = table();
    let found: BTreeSet<String> =
        rust_files("src").iter().filter_map(|path| module_of(path).first().cloned()).collect();
    let expected: BTreeSet<String> =
        table.iter().filter(|(_, room)| !room.to_come).map(|(name, _)| name.clone()).collect();
    assert_eq!(found, expected, "rooms of src/ (left) and of ARCHITECTURE.md without those to come (right)");
    for (name, room) in &table {
        let Allowed::Rooms(others) = &room.may_name else { continue };
        for other in others {
            assert!(table.contains_key(other), "`{name}` may name `{other}`, which is not in the table");
        }
    }
}

#[test]
fn the_table_has_no_cycle() {
    let mut left = table();
    left.retain(|_, room| room.may_name != Allowed::Everything);
    left.remove("main");
    while !left.is_empty() {
        let names: BTreeSet<String> = left.keys().cloned().collect();
        let before = left.len();
        left.retain(|_, room| names.iter().any(|name| room.may_name.has(name)));
        assert!(left.len() < before, "these rooms reach each other: {names:?}");
    }
}

#[test]
fn the_library_re_exports_nothing() {
    let mut found = Vec::new();
    each_level(lex("src/lib.rs", &read("src/lib.rs")), &[], &mut |level, _| {
        found.extend((1..level.len()).filter(|&i| is_word(level.get(i), "use") && is_word(level.get(i - 1), "pub")));
    });
    assert!(found.is_empty(), "src/lib.rs re-exports something; that hides an edge from the table");
}

/// Files outside `room` whose tokens `names` finds something in.
fn outside(room: &str, names: impl Fn(&[TokenTree], usize) -> bool) -> Vec<String> {
    let mut found = Vec::new();
    for (path, text) in source_files() {
        if module_of(&path).first().is_some_and(|own| own == room) {
            continue;
        }
        let mut hit = false;
        each_level(lex(&path, &text), &[], &mut |level, _| hit |= (0..level.len()).any(|i| names(level, i)));
        if hit {
            found.push(path);
        }
    }
    found
}

/// `Command::new`, or an import of `Command` out of a `process` module under whatever name.
fn starts_a_process(level: &[TokenTree], i: usize) -> bool {
    let next_is = |word| colons(level, i + 1) && is_word(level.get(i + 3), word);
    if is_word(level.get(i), "Command") {
        return next_is("new");
    }
    let from_group = match level.get(i + 3) {
        Some(TokenTree::Group(group)) if colons(level, i + 1) => {
            group.stream().into_iter().any(|token| is_word(Some(&token), "Command"))
        }
        _ => false,
    };
    is_word(level.get(i), "process") && (next_is("Command") || from_group)
}

#[test]
fn processes_are_started_only_in_the_sandbox() {
    assert_eq!(outside("sandbox", starts_a_process), Vec::<String>::new(), "go through `sandbox` instead");
    let sees = |text: &str| {
        let mut hit = false;
        each_level(lex("", text), &[], &mut |level, _| hit |= (0..level.len()).any(|i| starts_a_process(level, i)));
        hit
    };
    assert!(sees("fn f() { Command::new(\"git\"); }"));
    assert!(sees("use std::process::Command as Program;"));
    assert!(sees("use tokio::process::{Child, Command};"));
    assert!(!sees("use crate::events::command::Command; use std::process::ExitCode;"));
}

#[test]
fn each_foreign_vocabulary_has_one_room() {
    for (room, crates) in [("tui", ["ratatui", "crossterm", "tui_textarea"].as_slice()), ("server", &["axum"])] {
        let found = outside(room, |level, i| crates.iter().any(|name| is_word(level.get(i), name)));
        assert_eq!(found, Vec::<String>::new(), "only `{room}` may name {crates:?}");
    }
}

#[test]
fn the_page_describes_every_room_that_exists_with_its_invariant() {
    let page = read("ARCHITECTURE.md");
    let sections: BTreeMap<&str, &str> = page
        .split("\n### `")
        .skip(1)
        .filter_map(|section| section.split_once('`'))
        .map(|(name, text)| (name, text.split("\n## ").next().unwrap_or(text)))
        .collect();
    for (name, room) in table() {
        if room.to_come || name == "main" {
            continue;
        }
        let text = sections.get(name.as_str()).unwrap_or_else(|| panic!("ARCHITECTURE.md has no section for `{name}`"));
        assert!(text.contains("**Invariant:**"), "the section of `{name}` names no invariant");
    }
    assert!(root().join("src/main.rs").exists());
}
