//! `goal`: changes the agent's plan, through the port the runner implements (B46).

use async_trait::async_trait;
use serde_json::Value;

use super::{describe, word};
use crate::tools::{Descriptor, GoalChange, Need, Tool, ToolCx, ToolOutcome, schema};

/// The `goal` tool.
pub(super) struct GoalTool {
    descriptor: Descriptor,
}

impl GoalTool {
    pub(super) fn new() -> Self {
        let description = "Keep your plan. For work of several steps: add goals first, focus on one, and when it is \
            reached complete it with done before the next; abandon what proves wrong. One call may combine them. \
            Returns the plan with the numbers to use.";
        Self { descriptor: describe::<GoalChange>("goal", description, &[], Need::Control) }
    }
}

#[async_trait]
impl Tool for GoalTool {
    fn descriptor(&self) -> &Descriptor {
        &self.descriptor
    }

    fn title(&self, arguments: &Value) -> String {
        let adds = match arguments.get("add") {
            Some(Value::Array(many)) => match many.as_slice() {
                [Value::String(only)] => only.clone(),
                many => format!("{} goals", many.len()),
            },
            Some(Value::String(one)) => one.clone(),
            _ => String::new(),
        };
        let parts = [
            ("done", word(arguments, "done")),
            ("abandon", word(arguments, "abandon")),
            ("add", adds.as_str()),
            ("focus", word(arguments, "focus")),
        ];
        let said: Vec<String> =
            parts.iter().filter(|(_, text)| !text.is_empty()).map(|(verb, text)| format!("{verb} {text}")).collect();
        crate::stdx::bounded::first_line(&format!("goal: {}", said.join("; ")), 120)
    }

    async fn call(&self, cx: &ToolCx, arguments: Value) -> ToolOutcome {
        let title = self.title(&arguments);
        let change: GoalChange = match schema::read(arguments) {
            Ok(change) => change,
            Err(why) => return ToolOutcome::failed(why),
        };
        if let Err(why) = sensible(&change) {
            return ToolOutcome::failed(why);
        }
        match cx.goals.apply(change) {
            Ok(plan) => ToolOutcome::ran(title, plan),
            Err(why) => ToolOutcome::failed(why),
        }
    }
}

/// What is wrong with a change whatever the plan is.
fn sensible(change: &GoalChange) -> Result<(), String> {
    let GoalChange { add, reason: _, under, after, focus, done, abandon } = change;
    if add.is_none() && (under.is_some() || after.is_some()) {
        return Err("`under` and `after` say where `add` goes; give `add` too".to_owned());
    }
    if under.is_some() && after.is_some() {
        return Err("`under` and `after` exclude each other; give one of them".to_owned());
    }
    if done.is_some() && abandon.is_some() {
        return Err("`done` and `abandon` exclude each other; give one of them".to_owned());
    }
    if add.is_none() && focus.is_none() && done.is_none() && abandon.is_none() {
        return Err("nothing to change; give `add`, `focus`, `done` or `abandon`".to_owned());
    }
    Ok(())
}
