//! From the theme's slots to the looks of widgets, and the few shapes that screens share: panels,
//! notices, status marks. Holds no state.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::style::Style;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Widget};

use crate::events::data::{Outcome, SessionStatus, Verdict};
use crate::events::problem::Problem;
use crate::events::query::SessionSummary;
use crate::stdx::text::sanitize_line;
use crate::tui::theme::{Glyph, Slot, Theme};
use crate::tui::widgets::dialog::{DialogLook, centred, framed};
use crate::tui::widgets::diff::DiffLook;
use crate::tui::widgets::editor::EditorLook;
use crate::tui::widgets::form::FormLook;
use crate::tui::widgets::list::ListLook;
use crate::tui::widgets::text::cut;
use crate::tui::widgets::wrap::wrap_line;

/// What is asked for and comes later.
#[derive(Clone, Debug, Default, PartialEq)]
pub enum Load<T> {
    /// Not there yet.
    #[default]
    Waiting,
    /// There.
    Ready(T),
    /// Not to be had.
    Failed(Problem),
}

impl<T> Load<T> {
    /// What came, if it came.
    pub fn ready(&self) -> Option<&T> {
        match self {
            Self::Ready(value) => Some(value),
            Self::Waiting | Self::Failed(_) => None,
        }
    }
}

/// How editors look.
pub fn editor(theme: &Theme) -> EditorLook {
    EditorLook {
        text: theme[Slot::Input],
        placeholder: theme[Slot::Placeholder],
        label: theme[Slot::Info],
        selection: theme[Slot::Selected],
        popup: theme[Slot::Dialog].patch(theme[Slot::Text]),
        popup_selected: theme[Slot::Selected].patch(theme[Slot::TextStrong]),
    }
}

/// How forms look.
pub fn form(theme: &Theme) -> FormLook {
    FormLook {
        label: theme[Slot::TextDim],
        focused: theme[Slot::TitleFocus],
        dim: theme[Slot::TextDim],
        chosen: theme[Slot::TextStrong],
        error: theme[Slot::InputError],
        editor: editor(theme),
        ascii: theme.is_ascii(),
    }
}

/// How lists look; `focused` when the list has the keys.
pub fn list(theme: &Theme, focused: bool) -> ListLook {
    ListLook {
        selected: theme[if focused { Slot::Selected } else { Slot::SelectedDim }],
        bar: theme[Slot::Border],
        ascii: theme.is_ascii(),
        mark: true,
    }
}

/// How dialogs look.
pub fn dialog(theme: &Theme) -> DialogLook {
    DialogLook {
        text: theme[Slot::Dialog].patch(theme[Slot::Text]),
        border: theme[Slot::BorderFocus],
        title: theme[Slot::TitleFocus],
        choice: theme[Slot::TextDim],
        selected: theme[Slot::Selected].patch(theme[Slot::TextStrong]),
        ascii: theme.is_ascii(),
    }
}

/// How diffs look.
pub fn diff(theme: &Theme) -> DiffLook {
    DiffLook {
        added: theme[Slot::DiffAdd],
        removed: theme[Slot::DiffRemove],
        same: theme[Slot::DiffContext],
        hunk: theme[Slot::DiffHunk],
        dim: theme[Slot::TextDim],
    }
}

/// Glyph, word and style of a session's status. Waiting for a person comes before running: it is
/// what someone must act on.
pub fn status(theme: &Theme, summary: &SessionSummary) -> (&'static str, String, Style) {
    if summary.broken.is_some() {
        return (theme.glyph(Glyph::Warning), "broken".to_owned(), theme[Slot::StatusError]);
    }
    if summary.waiting {
        return (theme.glyph(Glyph::Waiting), "waiting for you".to_owned(), theme[Slot::StatusWaiting]);
    }
    let (glyph, slot) = match summary.status {
        SessionStatus::Running => (Glyph::Active, Slot::StatusRunning),
        SessionStatus::Completed => (Glyph::Done, Slot::StatusCompleted),
        SessionStatus::Failed => (Glyph::Failed, Slot::StatusFailed),
        SessionStatus::Stopped => (Glyph::Stopped, Slot::StatusStopped),
        SessionStatus::Error => (Glyph::Warning, Slot::StatusError),
    };
    let word = match (summary.status, summary.outcome) {
        (SessionStatus::Running, _) | (_, None) => summary.status.word(),
        (_, Some(outcome)) => outcome_words(outcome),
    };
    (theme.glyph(glyph), word.to_owned(), theme[slot])
}

/// An outcome as a person says it.
pub fn outcome_words(outcome: Outcome) -> &'static str {
    match outcome {
        Outcome::Passed => "passed",
        Outcome::NotPassed => "not passed",
        Outcome::ProviderError => "provider error",
        Outcome::Budget => "budget used up",
        Outcome::Unverified => "unverified",
        Outcome::NeedsHuman => "needs you",
        Outcome::InternalError => "internal error",
        Outcome::Stopped => "stopped",
        Outcome::Accepted => "accepted by you",
        Outcome::Interrupted => "interrupted",
    }
}

/// Glyph, word and style of a verdict; none is a cycle that could not be verified.
pub fn verdict(theme: &Theme, verdict: Option<Verdict>) -> (&'static str, &'static str, Style) {
    let (glyph, word, slot) = match verdict {
        Some(Verdict::Passed) => (Glyph::Done, "passed", Slot::VerdictPassed),
        Some(Verdict::NeedsImprovement) => (Glyph::Partly, "needs improvement", Slot::VerdictNeedsImprovement),
        Some(Verdict::Failed) => (Glyph::Failed, "failed", Slot::VerdictFailed),
        None => (Glyph::Unknown, "unverified", Slot::VerdictUnverified),
    };
    (theme.glyph(glyph), word, theme[slot])
}

/// A framed part of a screen; returns what is inside. Too small an area has no frame.
pub fn panel(frame: &mut Frame<'_>, area: Rect, title: &str, focused: bool, theme: &Theme) -> Rect {
    if area.width < 4 || area.height < 3 {
        return area;
    }
    let (border, name) = if focused { (Slot::BorderFocus, Slot::TitleFocus) } else { (Slot::Border, Slot::Title) };
    let title = title.replace('·', theme.glyph(Glyph::Dot));
    let title = cut(&title, usize::from(area.width.saturating_sub(4))).into_owned();
    let block = Block::bordered()
        .border_set(theme.borders())
        .border_style(theme[border])
        .title(Line::styled(format!(" {title} "), theme[name]));
    let inner = block.inner(area);
    frame.render_widget(block, area);
    inner
}

/// A box over the screen of at most this size; returns what is inside.
pub fn overlay(frame: &mut Frame<'_>, area: Rect, (width, height): (u16, u16), title: &str, theme: &Theme) -> Rect {
    let place = centred(area, width, height);
    framed(frame.buffer_mut(), place, title, &dialog(theme))
}

/// Fills an area with the ground of the screen.
pub fn ground(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    Clear.render(area, frame.buffer_mut());
    frame.buffer_mut().set_style(area, theme[Slot::Background].patch(theme[Slot::Text]));
}

/// Lines wrapped into an area, as many as fit.
pub fn text(frame: &mut Frame<'_>, area: Rect, lines: &[Line<'static>]) {
    let rows = lines.iter().flat_map(|line| wrap_line(line, usize::from(area.width), 0));
    for (i, row) in rows.take(usize::from(area.height)).enumerate() {
        let y = area.y + u16::try_from(i).unwrap_or(u16::MAX);
        row.render(Rect { y, height: 1, ..area }, frame.buffer_mut());
    }
}

/// What is said in place of content that is not there yet, is empty, or can't be read.
pub fn notice(frame: &mut Frame<'_>, area: Rect, message: &str, theme: &Theme) {
    text(frame, inset(area), &[Line::styled(message.to_owned(), theme[Slot::TextDim])]);
}

/// A failure as it is shown in place: what and why, then the way out.
pub fn problem_lines(problem: &Problem, theme: &Theme) -> Vec<Line<'static>> {
    let mark = Span::styled(format!("{} ", theme.glyph(Glyph::Failed)), theme[Slot::Error]);
    let mut lines = vec![Line::from(vec![mark, Span::styled(sanitize_line(&problem.what), theme[Slot::Error])])];
    if let Some(hint) = &problem.hint {
        let arrow = Span::styled(format!("{} ", theme.glyph(Glyph::Advice)), theme[Slot::TextDim]);
        lines.push(Line::from(vec![arrow, Span::styled(sanitize_line(hint), theme[Slot::Text])]));
    }
    lines
}

/// A failure in place of content.
pub fn problem(frame: &mut Frame<'_>, area: Rect, problem: &Problem, theme: &Theme) {
    text(frame, inset(area), &problem_lines(problem, theme));
}

/// A heading within a pane.
pub fn heading(title: &str, theme: &Theme) -> Line<'static> {
    Line::styled(title.to_owned(), theme[Slot::TextHeading])
}

/// One cell of air on each side where there is room.
pub fn inset(area: Rect) -> Rect {
    if area.width < 20 { area } else { Rect { x: area.x + 1, width: area.width - 2, ..area } }
}

/// The first `height` rows of an area, and the rest.
pub fn split_top(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    (Rect { height, ..area }, Rect { y: area.y + height, height: area.height - height, ..area })
}

/// All but the last `height` rows of an area, and those.
pub fn split_bottom(area: Rect, height: u16) -> (Rect, Rect) {
    let height = height.min(area.height);
    split_top(area, area.height - height)
}

/// Two columns, the left of this width.
pub fn split_left(area: Rect, width: u16) -> (Rect, Rect) {
    let width = width.min(area.width);
    (Rect { width, ..area }, Rect { x: area.x + width, width: area.width - width, ..area })
}
