//! The built-in prompts: where each lies, which sections it must have and which variables it may
//! use. A new prompt is a file under `prompts/`, a variant of [`PromptName`] and its entry in
//! `PromptName::entry`.

use super::Section;

/// A built-in prompt.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum PromptName {
    /// Who the Worker is and how it works, unless its profile says otherwise (A7).
    WorkerSystem,
    /// How the Worker hands in its result; appended to every Worker's system prompt (A7, A8).
    OutputProtocol,
    /// The Worker's task (A9). `time` is `YYYY-MM-DD HH:MM UTC`; `expected` and `profile_user` may
    /// be empty.
    WorkerUser,
    /// Who the Checker is, its protocol, and the form of its answer (A12, A13, A17–A19).
    CheckerSystem,
    /// The case put to the Checker (A14–A16). `expected` is the expected outcome or the text of
    /// [`PromptName::NotSpecified`]; `boundary` is a token that the Worker can't know.
    Judge,
    /// Stands in [`PromptName::Judge`] where there is no expected outcome (A15).
    NotSpecified,
    /// The Checker's answer could not be used; `problem` says why (A20).
    AskAgain,
    /// A pass without evidence is sent back; `reason` says what it lacks (A20).
    UnsupportedPass,
    /// The Checker has no tools left and must give its verdict (A20).
    LastTurn,
    /// The plan, brought to mind again (B52). `focus` is empty when no goal is in focus.
    PlanReminder,
    /// Stands in for the result of a call that was interrupted (B44).
    InterruptedTool,
    /// Stands in for the result of a call made once too often (B31).
    DoomLoop,
    /// Stands in for the result of a call that the length limit cut off.
    TruncatedCall,
    /// The model answered nothing and is asked again.
    EmptyAnswer,
    /// The model's text was cut off by the length limit and it is asked to go on.
    CutAnswer,
    /// Stands in for the result of a call made after the last round of tools (A20).
    NoMoreTools,
}

/// What is known of a built-in prompt.
pub(super) struct Entry {
    /// Where it lies below `prompts/`.
    pub path: &'static str,
    /// Its text as built in.
    pub source: &'static str,
    /// Sections it must have.
    pub sections: &'static [Section],
    /// Variables it may use.
    pub variables: &'static [&'static str],
}

macro_rules! entry {
    ($path:literal, $sections:expr, $variables:expr) => {
        Entry {
            path: $path,
            source: include_str!(concat!("../../prompts/", $path)),
            sections: $sections,
            variables: $variables,
        }
    };
}

impl PromptName {
    /// Every built-in prompt.
    pub const ALL: [Self; 16] = [
        Self::WorkerSystem,
        Self::OutputProtocol,
        Self::WorkerUser,
        Self::CheckerSystem,
        Self::Judge,
        Self::NotSpecified,
        Self::AskAgain,
        Self::UnsupportedPass,
        Self::LastTurn,
        Self::PlanReminder,
        Self::InterruptedTool,
        Self::DoomLoop,
        Self::TruncatedCall,
        Self::EmptyAnswer,
        Self::CutAnswer,
        Self::NoMoreTools,
    ];

    pub(super) fn entry(self) -> Entry {
        use Section::{System, Tool, User};
        match self {
            Self::WorkerSystem => entry!("session/worker_system.prompt", &[System], &[]),
            Self::OutputProtocol => entry!("session/output_protocol.prompt", &[System], &[]),
            Self::WorkerUser => entry!(
                "session/worker_user.prompt",
                &[User],
                &["time", "cwd", "objective", "expected", "profile_user", "input"]
            ),
            Self::CheckerSystem => entry!("session/checker_system.prompt", &[System], &[]),
            Self::Judge => entry!(
                "session/judge.prompt",
                &[User],
                &["objective", "expected", "boundary", "summary", "output", "error", "gates", "facts"]
            ),
            Self::NotSpecified => entry!("session/not_specified.prompt", &[User], &[]),
            Self::AskAgain => entry!("session/ask_again.prompt", &[User], &["problem"]),
            Self::UnsupportedPass => entry!("session/unsupported_pass.prompt", &[User], &["reason"]),
            Self::LastTurn => entry!("session/last_turn.prompt", &[User], &[]),
            Self::PlanReminder => entry!("core/plan_reminder.prompt", &[System], &["plan", "focus"]),
            Self::InterruptedTool => entry!("core/interrupted_tool.prompt", &[Tool], &["tool"]),
            Self::DoomLoop => entry!("core/doom_loop.prompt", &[Tool], &["tool", "count"]),
            Self::TruncatedCall => entry!("core/truncated_call.prompt", &[Tool], &["tool"]),
            Self::EmptyAnswer => entry!("core/empty_answer.prompt", &[User], &[]),
            Self::CutAnswer => entry!("core/cut_answer.prompt", &[User], &[]),
            Self::NoMoreTools => entry!("core/no_more_tools.prompt", &[Tool], &[]),
        }
    }

    /// Where it lies below `prompts/`, and below a folder that overrides it.
    pub fn path(self) -> &'static str {
        self.entry().path
    }

    /// The file's stem, recorded as a run's `prompt_name`.
    pub fn stem(self) -> &'static str {
        let path = self.path();
        let file = path.rsplit_once('/').map_or(path, |(_, file)| file);
        file.strip_suffix(".prompt").unwrap_or(file)
    }

    /// Sections it must have.
    pub fn sections(self) -> &'static [Section] {
        self.entry().sections
    }

    /// Variables that must be given a value, empty or not.
    pub fn variables(self) -> &'static [&'static str] {
        self.entry().variables
    }
}
