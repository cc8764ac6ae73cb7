//! What a person can do, by name. The names are those of `keys.toml` and of `[keys.SCREEN]` in the
//! person's configuration. Does not know which key does what; `keymap` does.

/// Declares an enum whose values have a name in configuration files.
macro_rules! named {
    ($(#[$doc:meta])* $type:ident { $($(#[$vdoc:meta])* $variant:ident = $name:literal,)* }) => {
        $(#[$doc])*
        #[derive(Clone, Copy, Debug, PartialEq, Eq, Hash, PartialOrd, Ord)]
        pub enum $type { $($(#[$vdoc])* $variant,)* }

        impl $type {
            /// All of them, in the order a person reads them.
            pub const ALL: &'static [Self] = &[$(Self::$variant,)*];

            /// The name in configuration files.
            pub fn name(self) -> &'static str {
                match self { $(Self::$variant => $name,)* }
            }

            /// The one with this name.
            pub fn named(name: &str) -> Option<Self> {
                match name { $($name => Some(Self::$variant),)* _ => None }
            }
        }
    };
}
pub(crate) use named;

named! {
    /// A named action.
    Action {
        // Everywhere.
        /// Shows the keys of the screen.
        Help = "help",
        /// Lists every action.
        Palette = "palette",
        /// Shows the themes.
        Themes = "themes",
        /// Shows the program's log.
        Log = "log",
        /// Leaves.
        Quit = "quit",
        /// Stops what runs; twice leaves.
        Interrupt = "interrupt",
        /// Puts the program into the background.
        Suspend = "suspend",
        /// Gives the mouse to the terminal or takes it back.
        Mouse = "mouse",
        /// Draws everything anew.
        Redraw = "redraw",
        // Moving.
        /// One up.
        Up = "up",
        /// One down.
        Down = "down",
        /// One left.
        Left = "left",
        /// One right.
        Right = "right",
        /// One page up.
        PageUp = "page_up",
        /// One page down.
        PageDown = "page_down",
        /// To the beginning.
        Top = "top",
        /// To the end.
        Bottom = "bottom",
        /// One step back; never destroys anything.
        Back = "back",
        // Used by several screens.
        /// Opens what is under the cursor.
        Open = "open",
        /// Switches what is under the cursor.
        Toggle = "toggle",
        /// Marks what is under the cursor.
        Mark = "mark",
        /// Does what the screen is for.
        Confirm = "confirm",
        /// Says no.
        Cancel = "cancel",
        /// Hands in what was typed.
        Submit = "submit",
        /// Hands in what was typed, for the next cycle.
        SubmitLater = "submit_later",
        /// Begins a new line.
        Newline = "newline",
        /// Opens the text in the person's editor.
        Editor = "editor",
        /// To the next field.
        NextField = "next_field",
        /// To the field before.
        PreviousField = "previous_field",
        /// Searches.
        Search = "search",
        /// To the next match.
        NextMatch = "next_match",
        /// To the match before.
        PreviousMatch = "previous_match",
        /// Narrows a list.
        Filter = "filter",
        /// Copies.
        Copy = "copy",
        /// Deletes, after asking.
        Delete = "delete",
        /// Writes everything into one archive.
        Export = "export",
        /// Shows or hides abandoned branches.
        Branches = "branches",
        /// Reads again.
        Refresh = "refresh",
        // Sessions.
        /// Opens the launch form.
        Launch = "launch",
        /// Stops the session.
        Stop = "stop",
        /// Opens the rewind timeline.
        Rewind = "rewind",
        /// Writes to the Worker, or continues the session.
        Message = "message",
        /// Shows the cycles.
        Archive = "archive",
        /// Brings the deliverable home.
        Apply = "apply",
        /// Changes contract and limits.
        Contract = "contract",
        /// Ends the session as accepted.
        Accept = "accept",
        /// Shows what waits for the person.
        Requests = "requests",
        /// To the list of sessions.
        Sessions = "sessions",
        /// To the next pane.
        NextPane = "next_pane",
        /// To the pane before.
        PreviousPane = "previous_pane",
        /// To the plan.
        PanePlan = "plan",
        /// To the activity.
        PaneActivity = "activity",
        /// To the verdicts.
        PaneVerdicts = "verdicts",
        /// To the deliverable.
        PaneDeliverable = "deliverable",
        /// Gives the pane the whole screen.
        Zoom = "zoom",
        /// Follows what happens.
        Follow = "follow",
        /// Shows or hides abandoned goals.
        Abandoned = "abandoned",
        /// Shows the cycle before.
        PreviousCycle = "previous_cycle",
        /// Shows the next cycle.
        NextCycle = "next_cycle",
        // Detail.
        /// Wraps long lines or not.
        Wrap = "wrap",
        /// Changes what is shown: text or difference.
        Switch = "switch",
        // Rewind.
        /// Whether files go back too.
        RestoreFiles = "restore_files",
        /// Whether files that the person changed go back too.
        OverwriteChanged = "overwrite_changed",
        /// Types a new instruction.
        Instruction = "instruction",
        // Requests.
        /// Allows it once.
        AllowOnce = "allow_once",
        /// Allows it for the session.
        AllowSession = "allow_session",
        /// Refuses it with a reason.
        Refuse = "refuse",
    }
}

named! {
    /// A screen's part of the key map.
    Layer {
        /// Everywhere.
        Global = "global",
        /// Everywhere where nothing is typed.
        Move = "move",
        /// While a search has matches.
        Matches = "matches",
        /// The session screen.
        Session = "session",
        /// The detail view.
        Detail = "detail",
        /// The list of sessions.
        Sessions = "sessions",
        /// The launch form.
        Launch = "launch",
        /// The rewind timeline.
        Rewind = "rewind",
        /// The cycles of a session.
        Archive = "archive",
        /// Writing to the Worker.
        Message = "message",
        /// Contract and limits.
        Contract = "contract",
        /// Bringing a deliverable home.
        Apply = "apply",
        /// A question or a permission request.
        Request = "request",
        /// A yes or no.
        Confirm = "confirm",
        /// The list of actions.
        Palette = "palette",
        /// The keys.
        Help = "help",
        /// The themes.
        Themes = "themes",
        /// The program's log.
        Log = "log",
    }
}

impl Layer {
    /// What is looked up behind this layer, in order.
    pub fn behind(self) -> &'static [Self] {
        match self {
            Self::Global => &[],
            Self::Launch | Self::Message | Self::Contract | Self::Palette | Self::Move | Self::Matches => {
                &[Self::Global]
            }
            Self::Session
            | Self::Detail
            | Self::Sessions
            | Self::Rewind
            | Self::Archive
            | Self::Apply
            | Self::Request
            | Self::Confirm
            | Self::Help
            | Self::Themes
            | Self::Log => &[Self::Move, Self::Global],
        }
    }

    /// Whether it is laid over a screen's own keys for a while.
    pub fn is_mode(self) -> bool {
        self == Self::Matches
    }
}
