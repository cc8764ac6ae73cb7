//! `glob_files`: finds files by name, the one changed last first.

use std::cmp::Reverse;
use std::fs;
use std::path::PathBuf;
use std::time::SystemTime;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::walk::{Pattern, Scope};
use super::{blocking, describe, word};
use crate::tools::bound::MARGIN;
use crate::tools::paths::{self, Access, Inside};
use crate::tools::{Descriptor, Need, Tool, ToolCx, ToolOutcome, schema};

/// More names than this help nobody.
const MOST_FILES: usize = 200;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    /// Like `**/*.rs`; without `/` at any depth
    pattern: String,
    path: Option<String>,
}

/// The `glob_files` tool.
pub(super) struct GlobFiles {
    descriptor: Descriptor,
}

impl GlobFiles {
    pub(super) fn new() -> Self {
        let description = "Find files by glob pattern, newest first; ignored files are left out.";
        Self { descriptor: describe::<Arguments>("glob_files", description, &["glob"], Need::Read) }
    }
}

#[async_trait]
impl Tool for GlobFiles {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        match word(arguments, "path") {
            "" => format!("find {}", word(arguments, "pattern")),
            path => format!("find {} in {path}", word(arguments, "pattern")),
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
        // Some models write whole paths.
        let folder = format!("{}/", inside.path.display());
        let text = arguments.pattern.strip_prefix(&folder).unwrap_or(&arguments.pattern);
        if text.starts_with('/') || text.split('/').any(|part| part == "..") {
            return ToolOutcome::refused(format!(
                "pattern `{}` leads out of the working directory `{}`; patterns are relative to `path`",
                arguments.pattern,
                cx.cwd.display()
            ));
        }
        let pattern = match Pattern::new(text) {
            Ok(pattern) => pattern,
            Err(why) => return ToolOutcome::failed(why),
        };
        let (scope, limit) = (Scope::of(cx), cx.output_chars.saturating_sub(MARGIN));
        let outcome = blocking(move || find(&scope, &inside, &pattern, limit)).await;
        if cx.cancel.is_cancelled() { ToolOutcome::stopped(title) } else { ToolOutcome { title, ..outcome } }
    }
}

fn find(scope: &Scope, inside: &Inside, pattern: &Pattern, limit: usize) -> ToolOutcome {
    if !inside.path.is_dir() {
        return ToolOutcome::failed(format!("there is no folder `{}`", inside.shown));
    }
    let changed = |path: &PathBuf| fs::symlink_metadata(path).and_then(|metadata| metadata.modified());
    let mut found: Vec<(SystemTime, PathBuf)> = scope
        .files(&inside.path)
        .into_iter()
        .filter(|path| pattern.fits(&inside.path, path))
        .map(|path| (changed(&path).unwrap_or(SystemTime::UNIX_EPOCH), path))
        .collect();
    found.sort_by_cached_key(|(at, path)| (Reverse(*at), path.clone()));
    if found.is_empty() {
        return ToolOutcome::ran(String::new(), "no file matches");
    }
    let mut text = String::new();
    let mut shown = 0;
    for (_, path) in found.iter().take(MOST_FILES) {
        let row = scope.shown(path);
        // Bytes are more than characters: a little early is early enough.
        if text.len() + row.len() >= limit {
            break;
        }
        text.push_str(&row);
        text.push('\n');
        shown += 1;
    }
    if shown < found.len() {
        text.push_str(&format!("[{} older ones left out; narrow the pattern or the path]\n", found.len() - shown));
    }
    ToolOutcome::ran(String::new(), text)
}
