//! The tools that come with the program, one file each. A new one is a file here and a line in
//! `all`.

mod bash;
mod file_edit;
mod file_read;
mod file_write;
mod glob;
mod goal;
mod grep;
mod list;
mod replace;
mod walk;

#[cfg(test)]
mod tests;

use std::sync::Arc;

use serde_json::Value;

use super::{Descriptor, Need, Tool, schema};
use crate::llm::chat::ToolSpec;

/// Every built-in tool, in the order the model sees them.
pub(super) fn all() -> Vec<Arc<dyn Tool>> {
    vec![
        Arc::new(file_read::ReadFile::new()),
        Arc::new(file_write::WriteFile::new()),
        Arc::new(file_edit::EditFile::new()),
        Arc::new(list::ListFiles::new()),
        Arc::new(glob::GlobFiles::new()),
        Arc::new(grep::GrepContent::new()),
        Arc::new(bash::BashCommand::new()),
        Arc::new(goal::GoalTool::new()),
    ]
}

fn describe<Arguments: schemars::JsonSchema>(
    name: &str,
    description: &str,
    aliases: &'static [&'static str],
    need: Need,
) -> Descriptor {
    let spec =
        ToolSpec { name: name.to_owned(), description: description.to_owned(), parameters: schema::of::<Arguments>() };
    Descriptor { spec, aliases, need }
}

/// A text argument for a title, on one line and short; empty when it isn't there.
fn word<'a>(arguments: &'a Value, name: &str) -> &'a str {
    let text = arguments.get(name).and_then(Value::as_str).unwrap_or("");
    crate::stdx::bounded::prefix(text.lines().next().unwrap_or(""), 120)
}

/// Runs what reads disks and burns processor time beside the async threads. A panic stays one.
async fn blocking<T: Send + 'static>(work: impl FnOnce() -> T + Send + 'static) -> T {
    match tokio::task::spawn_blocking(work).await {
        Ok(done) => done,
        Err(error) => match error.try_into_panic() {
            Ok(panic) => std::panic::resume_unwind(panic),
            // A blocking task that has started can't be cancelled; one that has not goes down with
            // the runtime, and this future with it.
            Err(_) => std::future::pending().await,
        },
    }
}
