//! What a rewind would do, in lines: what leaves and what comes back, what files become, what
//! stays as it is.

use ratatui::style::Style;
use ratatui::text::{Line, Span};

use crate::events::data::MessageHead;
use crate::events::query::RewindPreview;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::Cx;
use crate::tui::screens::{filediffs, look};
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::format::count;

/// Most messages named one by one.
const MOST_NAMED: usize = 200;

/// What the person has chosen so far.
pub(super) struct Choice {
    pub restore_files: bool,
    pub overwrite_changed: bool,
    pub instruction: String,
    pub runs_on: bool,
}

/// The lines.
pub(super) fn lines(preview: &RewindPreview, choice: &Choice, cx: &Cx<'_>, width: usize) -> Vec<Line<'static>> {
    let mut page = Page { cx, lines: Vec::new() };
    page.summary(preview, choice);
    page.names("Goals dropped", &preview.goals_dropped, Slot::GoalAbandoned);
    page.names("Goals to do again", &preview.goals_reset, Slot::GoalPending);
    page.files(preview, choice, width);
    page.names("Not rewound", &preview.not_rewound, Slot::Warning);
    // Last, because they are many and the rest is short.
    page.messages("Messages that leave the main path", &preview.leaving);
    page.messages("Messages that come back", &preview.returning);
    page.lines
}

struct Page<'a> {
    cx: &'a Cx<'a>,
    lines: Vec<Line<'static>>,
}

impl Page<'_> {
    fn style(&self, slot: Slot) -> Style {
        self.cx.theme[slot]
    }

    fn line(&mut self, text: String, slot: Slot) {
        let style = self.style(slot);
        self.lines.push(Line::styled(text, style));
    }

    fn heading(&mut self, text: &str) {
        if !self.lines.is_empty() {
            self.lines.push(Line::default());
        }
        self.lines.push(look::heading(text, self.cx.theme));
    }

    fn summary(&mut self, preview: &RewindPreview, choice: &Choice) {
        if let Some(why) = &preview.refused {
            let glyph = self.cx.theme.glyph(Glyph::Warning);
            self.line(format!("{glyph} can't be done now: {}", sanitize_line(why)), Slot::Error);
        }
        let mut text = format!("Cycle {} goes on after message {}.", preview.cycle, preview.cut);
        if preview.to_other_branch {
            text.push_str(" This is another branch: an earlier rewind is undone.");
        }
        self.line(text, Slot::TextStrong);
        let list = |cycles: &[u32]| cycles.iter().map(u32::to_string).collect::<Vec<_>>().join(", ");
        if !preview.cycles_undone.is_empty() {
            self.line(format!("Cycles undone: {}", list(&preview.cycles_undone)), Slot::Text);
        }
        if !preview.cycles_restored.is_empty() {
            self.line(format!("Cycles brought back: {}", list(&preview.cycles_restored)), Slot::Text);
        }
        let instruction = crate::stdx::bounded::first_line(&choice.instruction, 60);
        let then = match (instruction.is_empty(), choice.runs_on) {
            (false, _) => format!("Then the Worker is told: {}", sanitize_line(&instruction)),
            (true, true) => "Then it runs on at once.".to_owned(),
            (true, false) => {
                let key = self.cx.key(Layer::Session, Action::Message);
                format!("Then it is left stopped; {key} in the session continues it.")
            }
        };
        self.line(then, Slot::Text);
    }

    fn messages(&mut self, title: &str, messages: &[MessageHead]) {
        // The system prompt is no message that a person would miss; the timeline has none either.
        let messages: Vec<_> = messages.iter().filter(|message| message.role != "system").collect();
        if messages.is_empty() {
            return;
        }
        self.heading(&format!("{title} ({})", messages.len()));
        for message in messages.iter().take(MOST_NAMED) {
            let number = Span::styled(format!("{:>4} ", message.sequence), self.style(Slot::TextDim));
            let text = Span::styled(sanitize_line(&message.description), self.style(Slot::Text));
            self.lines.push(Line::from(vec![number, text]));
        }
        if messages.len() > MOST_NAMED {
            self.line(format!("   … and {} more", messages.len() - MOST_NAMED), Slot::TextDim);
        }
    }

    fn names(&mut self, title: &str, names: &[String], slot: Slot) {
        if names.is_empty() {
            return;
        }
        self.heading(&format!("{title} ({})", names.len()));
        for name in names {
            self.line(format!("  {}", sanitize_line(name)), slot);
        }
    }

    fn files(&mut self, preview: &RewindPreview, choice: &Choice, width: usize) {
        let key = self.cx.key(Layer::Rewind, Action::RestoreFiles);
        let total = preview.files_total;
        if !choice.restore_files {
            self.heading("Files stay as they are");
            self.line(
                format!("  {} would be restored; {key} does that", count(preview.files_total, "file")),
                Slot::TextDim,
            );
            return;
        }
        if total == 0 && preview.changed_by_person.is_empty() {
            self.heading("No file changes");
            return;
        }
        self.heading(&format!("Files restored ({total}); {key} leaves them"));
        if !preview.changed_by_person.is_empty() {
            let key = self.cx.key(Layer::Rewind, Action::OverwriteChanged);
            let (words, slot) = if choice.overwrite_changed {
                (format!("changed by you and overwritten; {key} keeps them"), Slot::Warning)
            } else {
                (format!("changed by you and kept; {key} overwrites them"), Slot::Text)
            };
            for path in &preview.changed_by_person {
                self.line(format!("  {}  {words}", sanitize_line(path)), slot);
            }
        }
        let theme = self.cx.theme;
        self.lines.extend(filediffs::lines(&preview.files, preview.files_total, theme, width));
    }
}
