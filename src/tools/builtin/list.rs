//! `list_files`: what is in a folder, as a tree with sizes.

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::walk::Scope;
use super::{blocking, describe, word};
use crate::tools::bound::{MARGIN, size};
use crate::tools::paths::{self, Access, Inside};
use crate::tools::{Descriptor, Need, Tool, ToolCx, ToolOutcome, schema};

const DEFAULT_DEPTH: usize = 2;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: Option<String>,
    /// Levels, default 2
    depth: Option<usize>,
}

/// The `list_files` tool.
pub(super) struct ListFiles {
    descriptor: Descriptor,
}

impl ListFiles {
    pub(super) fn new() -> Self {
        let description = "Show a folder as a tree; ignored files are left out.";
        Self { descriptor: describe::<Arguments>("list_files", description, &["list", "ls"], Need::Read) }
    }
}

#[async_trait]
impl Tool for ListFiles {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        match word(arguments, "path") {
            "" => "list .".to_owned(),
            path => format!("list {path}"),
        }
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let title = self.title(&arguments);
        let arguments: Arguments = match schema::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let inside = match paths::resolve(&cx.cwd, arguments.path.as_deref().unwrap_or("."), Access::Read) {
            Ok(inside) => inside,
            Err(declined) => return declined.into(),
        };
        let depth = arguments.depth.unwrap_or(DEFAULT_DEPTH).max(1);
        let (scope, limit) = (Scope::of(cx), cx.output_chars.saturating_sub(MARGIN));
        let outcome = blocking(move || list(&scope, &inside, depth, limit)).await;
        if cx.cancel.is_cancelled() { ToolOutcome::stopped(title) } else { ToolOutcome { title, ..outcome } }
    }
}

fn list(scope: &Scope, inside: &Inside, depth: usize, limit: usize) -> ToolOutcome {
    let Inside { path, shown } = inside;
    if path.is_file() {
        return ToolOutcome::failed(format!("`{shown}` is a file; read_file shows it"));
    }
    if !path.is_dir() {
        return ToolOutcome::failed(format!("there is no folder `{shown}`"));
    }
    let base = path.components().count();
    let (mut tree, mut left_out) = (Tree { text: String::new(), chars: 0, limit }, 0);
    for entry in scope.walk(path, Some(depth)) {
        let level = entry.path().components().count().saturating_sub(base + 1);
        let name = entry.file_name().to_string_lossy();
        let row = match entry.metadata() {
            Ok(metadata) if metadata.is_dir() => format!("{name}/"),
            Ok(metadata) if metadata.is_symlink() => match std::fs::read_link(entry.path()) {
                Ok(target) => format!("{name} -> {}", target.display()),
                Err(_) => format!("{name} (link)"),
            },
            Ok(metadata) => format!("{name} ({})", size(metadata.len())),
            Err(_) => name.into_owned(),
        };
        if left_out > 0 || !tree.push(level, &row) {
            left_out += 1;
        }
    }
    if tree.text.is_empty() {
        return ToolOutcome::ran(String::new(), format!("`{shown}` is empty, ignored files apart"));
    }
    if left_out > 0 {
        tree.text.push_str(&format!("[{left_out} more left out; list a folder of it, or less depth]\n"));
    }
    ToolOutcome::ran(String::new(), tree.text)
}

struct Tree {
    text: String,
    chars: usize,
    limit: usize,
}

impl Tree {
    /// Adds a line; whether it fits.
    fn push(&mut self, level: usize, row: &str) -> bool {
        // Names may hold line ends; a row is one line.
        let row = format!("{}{}\n", "  ".repeat(level), row.replace('\n', "\\n"));
        self.chars += row.chars().count();
        if self.chars > self.limit {
            return false;
        }
        self.text.push_str(&row);
        true
    }
}
