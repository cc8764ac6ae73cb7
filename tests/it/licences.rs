//! What the program depends on: licences that allow it to be given away, no unwanted crate, nothing
//! from outside crates.io. `deny.toml` says the same to `cargo deny`.

use std::collections::BTreeSet;
use std::process::Command;

use crate::source::{read, root};

/// Crates that must not come in, with what is used instead.
const BANNED: [(&str, &str); 5] = [
    ("openssl-sys", "rustls"),
    ("native-tls", "rustls"),
    ("aws-lc-sys", "rustls with ring"),
    ("serde_yaml", "serde-saphyr"),
    ("chrono", "jiff"),
];

const CRATES_IO: &str = "registry+https://github.com/rust-lang/crates.io-index";

/// The licences of `deny.toml`.
fn allowed() -> BTreeSet<String> {
    let deny: toml::Table = read("deny.toml").parse().unwrap();
    let list = deny["licenses"]["allow"].as_array().unwrap();
    list.iter().map(|licence| licence.as_str().unwrap().to_owned()).collect()
}

/// Whether an SPDX expression can be met with the allowed licences. `/` is the old way to write OR.
fn permits(expression: &str, allowed: &BTreeSet<String>) -> bool {
    let spaced = expression.replace('/', " OR ").replace('(', " ( ").replace(')', " ) ");
    let words: Vec<&str> = spaced.split_whitespace().collect();
    let mut rest = words.as_slice();
    either(&mut rest, allowed) && rest.is_empty()
}

fn either(words: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = both(words, allowed);
    while let ["OR", rest @ ..] = *words {
        *words = rest;
        // Both sides are read whatever the first one says.
        met |= both(words, allowed);
    }
    met
}

fn both(words: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    let mut met = one(words, allowed);
    while let ["AND", rest @ ..] = *words {
        *words = rest;
        met &= one(words, allowed);
    }
    met
}

fn one(words: &mut &[&str], allowed: &BTreeSet<String>) -> bool {
    match *words {
        ["(", rest @ ..] => {
            *words = rest;
            let met = either(words, allowed);
            match *words {
                [")", rest @ ..] => {
                    *words = rest;
                    met
                }
                _ => false,
            }
        }
        [licence, "WITH", exception, rest @ ..] => {
            *words = rest;
            allowed.contains(&format!("{licence} WITH {exception}"))
        }
        [licence, rest @ ..] => {
            *words = rest;
            allowed.contains(*licence)
        }
        [] => false,
    }
}

#[test]
fn licence_expressions_are_understood() {
    let allowed = allowed();
    for (expression, expected) in [
        ("MIT", true),
        ("MIT OR Apache-2.0", true),
        ("MIT/Apache-2.0", true),
        ("GPL-3.0-only OR MIT", true),
        ("(MIT OR Apache-2.0) AND Unicode-3.0", true),
        ("Apache-2.0 WITH LLVM-exception OR Apache-2.0 OR MIT", true),
        ("Apache-2.0 AND ISC", true),
        ("GPL-3.0-only", false),
        ("MIT AND GPL-3.0-only", false),
        ("GPL-3.0-only WITH Classpath-exception-2.0", false),
        ("(MIT", false),
        ("", false),
    ] {
        assert_eq!(permits(expression, &allowed), expected, "{expression}");
    }
}

/// Name with version, and licence, of every package that is built on this system. (The lock file
/// names more: those of other systems, and optional ones that nobody asks for.)
fn packages() -> BTreeSet<(String, String)> {
    let cargo = std::env::var("CARGO").unwrap_or_else(|_| "cargo".to_owned());
    let output = Command::new(cargo)
        .args(["tree", "--offline", "--locked", "--edges=normal,build,dev", "--prefix=none", "--format={p}|{l}"])
        .current_dir(root())
        .output()
        .unwrap();
    assert!(output.status.success(), "cargo tree: {}", String::from_utf8_lossy(&output.stderr));
    let text = String::from_utf8(output.stdout).unwrap();
    let lines = text.lines().map(|line| line.trim_end_matches(" (*)")).filter(|line| !line.is_empty());
    lines.map(|line| line.split_once('|').unwrap_or((line, ""))).map(|(p, l)| (p.to_owned(), l.to_owned())).collect()
}

#[test]
fn every_dependency_has_a_licence_that_is_allowed() {
    let allowed = allowed();
    let packages = packages();
    assert!(packages.len() > 50, "only {} packages seen", packages.len());
    let refused: Vec<String> = packages
        .iter()
        .filter(|(_, licence)| !permits(licence, &allowed))
        .map(|(package, licence)| format!("{package}: {licence}"))
        .collect();
    assert!(refused.is_empty(), "licences that deny.toml does not allow:\n{}", refused.join("\n"));
}

#[test]
fn the_lock_file_holds_nothing_banned_and_nothing_from_elsewhere() {
    let lock: toml::Table = read("Cargo.lock").parse().unwrap();
    for package in lock["package"].as_array().unwrap() {
        let name = package["name"].as_str().unwrap();
        if let Some((_, instead)) = BANNED.iter().find(|(banned, _)| *banned == name) {
            panic!("`{name}` is in Cargo.lock; use {instead}, and find who asks for it with `cargo tree -i {name}`");
        }
        match package.get("source").and_then(toml::Value::as_str) {
            Some(source) => assert_eq!(source, CRATES_IO, "`{name}` does not come from crates.io"),
            None => assert_eq!(name, "super-agent", "`{name}` comes from a folder, not from crates.io"),
        }
    }
}

#[test]
fn deny_toml_bans_the_same_crates() {
    let deny: toml::Table = read("deny.toml").parse().unwrap();
    let listed = deny["bans"]["deny"].as_array().unwrap().iter();
    let listed: BTreeSet<&str> = listed.map(|entry| entry["crate"].as_str().unwrap()).collect();
    assert_eq!(listed, BANNED.iter().map(|(name, _)| *name).collect::<BTreeSet<_>>());
}
