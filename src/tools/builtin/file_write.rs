//! `write_file`: makes a file or replaces it as a whole. Changes of a part are `edit_file`'s.

use std::fs;
use std::io;

use async_trait::async_trait;
use schemars::JsonSchema;
use serde::Deserialize;
use serde_json::Value;

use super::replace::{change, is_read_only, replace, summary};
use super::{blocking, describe, word};
use crate::tools::paths::{self, Access, Inside};
use crate::tools::{Descriptor, Need, Tool, ToolCx, ToolOutcome, schema};

/// Larger files are replaced without a look at what they held.
const MOST_COMPARED: u64 = 4 * 1024 * 1024;

#[derive(Debug, Deserialize, JsonSchema)]
#[serde(deny_unknown_fields)]
struct Arguments {
    path: String,
    content: String,
}

/// The `write_file` tool.
pub(super) struct WriteFile {
    descriptor: Descriptor,
}

impl WriteFile {
    pub(super) fn new() -> Self {
        let description =
            "Create a file or replace all of it; missing folders are made. Use edit_file to change a part.";
        Self { descriptor: describe::<Arguments>("write_file", description, &["write"], Need::Write) }
    }
}

#[async_trait]
impl Tool for WriteFile {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        format!("write {}", word(arguments, "path"))
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let arguments: Arguments = match schema::read(arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let inside = match paths::resolve(&cx.cwd, &arguments.path, Access::Write) {
            Ok(inside) => inside,
            Err(declined) => return declined.into(),
        };
        if arguments.path.ends_with('/') || inside.shown == "." {
            return ToolOutcome::failed(format!("`{}` names a folder; give the file's name too", arguments.path));
        }
        blocking(move || write(&inside, arguments.content.as_bytes())).await
    }
}

fn write(inside: &Inside, content: &[u8]) -> ToolOutcome {
    let Inside { path, shown } = inside;
    let old = match fs::metadata(path) {
        Ok(metadata) if metadata.is_dir() => {
            return ToolOutcome::failed(format!("`{shown}` is a folder; give the name of a file in it"));
        }
        Ok(metadata) if !metadata.is_file() => {
            return ToolOutcome::failed(format!("`{shown}` is no ordinary file and is left as it is"));
        }
        Ok(metadata) if is_read_only(&metadata) => {
            return ToolOutcome::failed(format!("`{shown}` is read-only; whoever made it so does not want it changed"));
        }
        Ok(metadata) if metadata.len() <= MOST_COMPARED => fs::read(path).map(Some),
        Ok(_) => Ok(Some(Vec::new())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(None),
        Err(error) => Err(error),
    };
    let result = old.and_then(|old| {
        if let Some(folder) = path.parent() {
            fs::create_dir_all(folder)?;
        }
        replace(path, content)?;
        Ok(change(shown, old.as_deref(), content))
    });
    match result {
        Ok(change) => {
            let line = format!("{shown} ({})", summary(&change));
            ToolOutcome { files: vec![change], ..ToolOutcome::ran(format!("write {line}"), format!("wrote {line}")) }
        }
        Err(error) => ToolOutcome::failed(format!("`{shown}` can't be written: {error}")),
    }
}
