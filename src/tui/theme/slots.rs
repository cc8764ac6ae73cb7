//! What has a look of its own, by meaning: slots for styles, glyphs for marks. What they look like
//! is a theme's.

use crate::tui::action::named;

named! {
    /// Something that has a look of its own.
    Slot {
        /// The ground everything stands on.
        Background = "background.normal",
        /// The ground of the row under the cursor.
        Selected = "background.selected",
        /// The row under the cursor of a pane without focus.
        SelectedDim = "background.selected_dim",
        /// The ground of dialogs.
        Dialog = "background.dialog",
        /// Text.
        Text = "text.normal",
        /// What matters less.
        TextDim = "text.dim",
        /// What matters more.
        TextStrong = "text.strong",
        /// Headings.
        TextHeading = "text.heading",
        /// Emphasis.
        TextEmphasis = "text.emphasis",
        /// Links and paths.
        TextLink = "text.link",
        /// Code inside text.
        TextCode = "text.code",
        /// A quotation.
        TextQuote = "text.quote",
        /// Frames.
        Border = "border.normal",
        /// The frame of what has the keys.
        BorderFocus = "border.focus",
        /// A pane's title.
        Title = "title.normal",
        /// The title of what has the keys.
        TitleFocus = "title.focus",
        /// The program's name.
        TitleProgram = "title.program",
        /// A running session.
        StatusRunning = "status.running",
        /// A completed one.
        StatusCompleted = "status.completed",
        /// A failed one.
        StatusFailed = "status.failed",
        /// A stopped one.
        StatusStopped = "status.stopped",
        /// One that ended by an error.
        StatusError = "status.error",
        /// One that waits for a person.
        StatusWaiting = "status.waiting",
        /// `passed`.
        VerdictPassed = "verdict.passed",
        /// `needs_improvement`.
        VerdictNeedsImprovement = "verdict.needs_improvement",
        /// `failed`.
        VerdictFailed = "verdict.failed",
        /// Could not be verified.
        VerdictUnverified = "verdict.unverified",
        /// An item without evidence.
        VerdictClaim = "verdict.claim",
        /// A goal not begun.
        GoalPending = "goal.pending",
        /// A goal in work.
        GoalActive = "goal.active",
        /// A goal done.
        GoalDone = "goal.done",
        /// A goal given up.
        GoalAbandoned = "goal.abandoned",
        /// The Worker.
        RoleWorker = "role.worker",
        /// The Checker.
        RoleChecker = "role.checker",
        /// The person.
        RoleUser = "role.user",
        /// A sub-agent.
        RoleSub = "role.sub",
        /// A tool's name.
        Tool = "tool.name",
        /// A call that runs.
        ToolRunning = "tool.running",
        /// A call that ended well.
        ToolOk = "tool.ok",
        /// A call that failed.
        ToolFailed = "tool.failed",
        /// The model's reasoning.
        Thinking = "text.thinking",
        /// A line added.
        DiffAdd = "diff.add",
        /// A line removed.
        DiffRemove = "diff.remove",
        /// A hunk's head.
        DiffHunk = "diff.hunk",
        /// A line that stays.
        DiffContext = "diff.context",
        /// A keyword.
        CodeKeyword = "code.keyword",
        /// A string.
        CodeString = "code.string",
        /// A number.
        CodeNumber = "code.number",
        /// A comment.
        CodeComment = "code.comment",
        /// Worth knowing.
        Info = "message.info",
        /// Worth attention.
        Warning = "message.warning",
        /// Something failed.
        Error = "message.error",
        /// A key.
        Key = "key.label",
        /// What a key does.
        KeyText = "key.text",
        /// The used part of a bar.
        BarFull = "bar.full",
        /// The free part of a bar.
        BarEmpty = "bar.empty",
        /// A match.
        Match = "match.normal",
        /// The match under the cursor.
        MatchCurrent = "match.current",
        /// What is typed.
        Input = "input.normal",
        /// What could be typed.
        Placeholder = "input.placeholder",
        /// What is typed wrongly.
        InputError = "input.error",
        /// The mark of a scripted model.
        Scripted = "badge.scripted",
    }
}

/// A character that marks something; colour is never the only signal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Glyph {
    /// Done, passed, ok.
    Done,
    /// In work.
    Active,
    /// Not begun.
    Pending,
    /// Partly.
    Partly,
    /// Failed.
    Failed,
    /// Given up, put aside.
    Abandoned,
    /// Unknown.
    Unknown,
    /// Stopped.
    Stopped,
    /// Waits for a person.
    Waiting,
    /// A tool.
    Tool,
    /// Text of the model.
    Text,
    /// Reasoning of the model.
    Thinking,
    /// A person.
    Person,
    /// A sub-agent.
    Sub,
    /// Folded.
    Folded,
    /// Unfolded.
    Unfolded,
    /// Points from a claim to its evidence.
    Evidence,
    /// Points to what is to be done.
    Advice,
    /// More below.
    Below,
    /// The cursor in a list.
    Cursor,
    /// Used part of a bar.
    BarFull,
    /// Free part of a bar.
    BarEmpty,
    /// Rewound.
    Rewound,
    /// A warning.
    Warning,
    /// Tried again.
    Retry,
    /// Between parts of a line.
    Dot,
    /// Minus, for lines removed.
    Minus,
    /// A track's thumb.
    Thumb,
}

impl Glyph {
    /// The character, and the one for terminals without Unicode.
    pub fn pair(self) -> (&'static str, &'static str) {
        match self {
            Self::Done => ("✓", "+"),
            Self::Active => ("▶", ">"),
            Self::Pending => ("○", "o"),
            Self::Partly => ("◐", "~"),
            Self::Failed => ("✗", "x"),
            Self::Abandoned => ("⊘", "-"),
            Self::Unknown => ("?", "?"),
            Self::Stopped => ("■", "#"),
            Self::Waiting => ("◆", "!"),
            Self::Tool => ("⚙", "*"),
            Self::Text => ("✎", "\""),
            Self::Thinking => ("∴", "."),
            Self::Person => ("☞", "@"),
            Self::Sub => ("⑂", "&"),
            Self::Folded => ("▸", "+"),
            Self::Unfolded => ("▾", "-"),
            Self::Evidence => ("←", "<-"),
            Self::Advice => ("→", "->"),
            Self::Below => ("↓", "v"),
            Self::Cursor => ("▌", ">"),
            Self::BarFull => ("▰", "#"),
            Self::BarEmpty => ("▱", "-"),
            Self::Rewound => ("↶", "<"),
            Self::Warning => ("⚠", "!"),
            Self::Retry => ("↻", "%"),
            Self::Dot => ("·", "|"),
            Self::Minus => ("−", "-"),
            Self::Thumb => ("█", "#"),
        }
    }
}
