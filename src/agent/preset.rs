//! Kinds of agents (B14): which tools they have, how long they may go on, how they sample.

use serde::{Deserialize, Serialize};

/// What a kind of agent may do.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct AgentPreset {
    /// Tools allowed; absent: all.
    pub allowed_tools: Option<Vec<String>>,
    /// Tools denied.
    pub denied_tools: Option<Vec<String>>,
    /// Turns of one run; absent: 30.
    pub max_iterations: Option<u32>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Skills put into the system prompt; absent: all.
    pub skills: Option<Vec<String>>,
    /// What it is for.
    pub description: Option<String>,
}

/// Turns when neither the run nor the preset says (B16).
pub const DEFAULT_TURNS: u32 = 200;

fn names(of: &[&str]) -> Option<Vec<String>> {
    Some(of.iter().map(|n| (*n).to_owned()).collect())
}

/// The built-in preset of this name.
pub fn builtin(name: &str) -> Option<AgentPreset> {
    let preset = match name {
        "default" | "general" => AgentPreset {
            max_iterations: Some(30),
            skills: names(&["planning", "research", "browser"]),
            description: Some("default agent, all tools".to_owned()),
            ..AgentPreset::default()
        },
        "explore" => AgentPreset {
            allowed_tools: names(&["read_file", "glob_files", "grep_content", "list_files", "goal"]),
            denied_tools: names(&["write_file", "edit_file", "bash_command"]),
            max_iterations: Some(15),
            skills: names(&["planning"]),
            description: Some("read-only exploration, for code analysis".to_owned()),
            ..AgentPreset::default()
        },
        "worker" => AgentPreset {
            max_iterations: Some(50),
            description: Some("does the task of a session".to_owned()),
            ..AgentPreset::default()
        },
        "checker" => AgentPreset {
            allowed_tools: names(&["read_file", "glob_files", "grep_content", "list_files", "bash_command"]),
            max_iterations: Some(10),
            skills: names(&[]),
            description: Some("verifies what the Worker handed in, on a copy of its files".to_owned()),
            ..AgentPreset::default()
        },
        _ => return None,
    };
    Some(preset)
}
