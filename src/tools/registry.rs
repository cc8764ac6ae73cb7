//! Which tools there are, which of them a run may use, and how a call is carried out: arguments
//! read and checked, panics caught, output bounded. Does not ask anyone for permission.

use std::panic::AssertUnwindSafe;
use std::sync::Arc;

use futures_util::FutureExt;
use serde_json::Value;

use super::{Need, Tool, ToolCx, ToolOutcome, bound, builtin, schema};
use crate::llm::chat::ToolSpec;

/// All tools, in the order the model sees them.
#[derive(Clone, Default)]
pub struct Registry {
    tools: Vec<Arc<dyn Tool>>,
}

/// Which tools a run may use. Names may be aliases, in any case (B1).
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Selection {
    /// Only these; absent: all.
    pub allow: Option<Vec<String>>,
    /// Not these, even when allowed (A10).
    pub block: Vec<String>,
    /// Only tools that read, and those that only change the agent's own state.
    pub read_only: bool,
}

impl Registry {
    /// The tools that need nothing but a [`ToolCx`].
    pub fn builtin() -> Self {
        Self { tools: builtin::all() }
    }

    /// Adds a tool at the end.
    ///
    /// # Errors
    /// When its name or an alias is taken.
    pub fn add(&mut self, tool: Arc<dyn Tool>) -> Result<(), String> {
        let descriptor = tool.descriptor();
        let names = std::iter::once(descriptor.spec.name.as_str()).chain(descriptor.aliases.iter().copied());
        for name in names {
            if let Some(other) = self.find(name) {
                return Err(format!("tool name `{name}` is taken by `{}`", other.descriptor().spec.name));
            }
        }
        self.tools.push(tool);
        Ok(())
    }

    /// The tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        find(&self.tools, name)
    }

    /// The name that a name or alias stands for.
    pub fn canonical_name(&self, name: &str) -> Option<&str> {
        self.find(name).map(|tool| tool.descriptor().spec.name.as_str())
    }

    /// All canonical names.
    pub fn names(&self) -> Vec<&str> {
        names(&self.tools)
    }

    /// The tools that a run may use.
    ///
    /// # Errors
    /// When a list names a tool that doesn't exist; the message lists those that do.
    pub fn select(&self, selection: &Selection) -> Result<Toolset, String> {
        let allow = selection.allow.as_deref().map(|list| self.resolve("allowed", list)).transpose()?;
        let block = self.resolve("blocked", &selection.block)?;
        let (allowed, refused): (Vec<_>, Vec<_>) = self.tools.iter().cloned().partition(|tool| {
            let descriptor = tool.descriptor();
            let name = descriptor.spec.name.as_str();
            let harmless = matches!(descriptor.need, Need::Read | Need::Control);
            allow.as_ref().is_none_or(|allow| allow.contains(&name))
                && !block.contains(&name)
                && (harmless || !selection.read_only)
        });
        let specs = allowed.iter().map(|tool| tool.descriptor().spec.clone()).collect();
        Ok(Toolset { specs, tools: allowed, refused })
    }

    fn resolve(&self, list: &str, names: &[String]) -> Result<Vec<&str>, String> {
        let resolve = |name: &String| {
            self.canonical_name(name.trim()).ok_or_else(|| {
                format!("unknown tool `{name}` among the {list} tools; there are {}", self.names().join(", "))
            })
        };
        names.iter().map(resolve).collect()
    }
}

/// The tools of one run.
#[derive(Clone)]
pub struct Toolset {
    specs: Arc<[ToolSpec]>,
    tools: Vec<Arc<dyn Tool>>,
    refused: Vec<Arc<dyn Tool>>,
}

impl Toolset {
    /// What the model is told; the same list in the same order for the whole run.
    pub fn specs(&self) -> Arc<[ToolSpec]> {
        Arc::clone(&self.specs)
    }

    /// The allowed tool of this name or alias.
    pub fn find(&self, name: &str) -> Option<&Arc<dyn Tool>> {
        find(&self.tools, name)
    }

    /// Canonical names of the allowed tools.
    pub fn names(&self) -> Vec<&str> {
        names(&self.tools)
    }

    /// The name that a name or alias stands for, allowed or not.
    pub fn canonical_name(&self, name: &str) -> Option<&str> {
        let tool = self.find(name).or_else(|| find(&self.refused, name));
        tool.map(|tool| tool.descriptor().spec.name.as_str())
    }

    /// One line that says what a call is about to do, for any name and any arguments.
    pub fn title(&self, name: &str, arguments: &str) -> String {
        match (self.find(name), schema::parse(arguments)) {
            (Some(tool), Ok(arguments)) => tool.title(&arguments),
            (Some(tool), Err(_)) => tool.descriptor().spec.name.clone(),
            (None, _) => name.to_owned(),
        }
    }

    /// Carries out one call as the model wrote it. Whatever goes wrong is an outcome (B77).
    ///
    /// # Cancellation
    /// Returns soon after `cx.cancel` fires. When dropped, what it started is killed.
    pub async fn run(&self, cx: &ToolCx, name: &str, arguments: &str) -> ToolOutcome {
        let Some(tool) = self.find(name) else { return self.not_found(name) };
        let spec = &tool.descriptor().spec;
        let arguments = match read_arguments(spec, arguments) {
            Ok(arguments) => arguments,
            Err(why) => return ToolOutcome::failed(why),
        };
        let title = tool.title(&arguments);
        if cx.cancel.is_cancelled() {
            return ToolOutcome::stopped(title);
        }
        let call = AssertUnwindSafe(tool.call(cx, arguments)).catch_unwind();
        let mut outcome = match call.await {
            Ok(outcome) => outcome,
            Err(panic) => ToolOutcome {
                title,
                ..ToolOutcome::failed(format!(
                    "{} broke on these arguments (a bug in it: {}); try it another way",
                    spec.name,
                    panic_text(&*panic)
                ))
            },
        };
        bound::apply(cx, &mut outcome);
        outcome
    }

    fn not_found(&self, name: &str) -> ToolOutcome {
        let allowed = match self.names() {
            names if names.is_empty() => "no tool is allowed here".to_owned(),
            names => format!("allowed here: {}", names.join(", ")),
        };
        if let Some(tool) = find(&self.refused, name) {
            return ToolOutcome::refused(format!("{} is not allowed here; {allowed}", tool.descriptor().spec.name));
        }
        match nearest(name, &self.names()) {
            Some(near) => ToolOutcome::failed(format!("there is no tool `{name}`; did you mean {near}? {allowed}")),
            None => ToolOutcome::failed(format!("there is no tool `{name}`; {allowed}")),
        }
    }
}

fn read_arguments(spec: &ToolSpec, text: &str) -> Result<Value, String> {
    let mut arguments = schema::parse(text).map_err(|why| format!("{why}; {}", schema::signature(spec)))?;
    schema::check(spec, &mut arguments)?;
    Ok(arguments)
}

fn find<'a>(tools: &'a [Arc<dyn Tool>], name: &str) -> Option<&'a Arc<dyn Tool>> {
    let name = name.trim();
    tools.iter().find(|tool| {
        let descriptor = tool.descriptor();
        descriptor.spec.name.eq_ignore_ascii_case(name)
            || descriptor.aliases.iter().any(|alias| alias.eq_ignore_ascii_case(name))
    })
}

fn names(tools: &[Arc<dyn Tool>]) -> Vec<&str> {
    tools.iter().map(|tool| tool.descriptor().spec.name.as_str()).collect()
}

/// The name most like `wanted`, when one is.
fn nearest<'a>(wanted: &str, names: &[&'a str]) -> Option<&'a str> {
    let wanted = wanted.to_ascii_lowercase();
    let likeness = |name: &str| similar::TextDiff::from_chars(wanted.as_str(), name).ratio();
    let (name, likeness) = names.iter().map(|name| (*name, likeness(name))).max_by(|a, b| a.1.total_cmp(&b.1))?;
    (likeness >= 0.5).then_some(name)
}

fn panic_text(panic: &(dyn std::any::Any + Send)) -> &str {
    let text = panic.downcast_ref::<String>().map(String::as_str);
    text.or_else(|| panic.downcast_ref::<&str>().copied()).unwrap_or("no message")
}
