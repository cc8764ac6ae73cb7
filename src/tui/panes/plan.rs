//! The plan: goals with their display numbers, the focus marked, abandoned ones hidden or shown.

use ratatui::text::{Line, Span};

use super::{Entry, PaneCx, Target};
use crate::events::data::{GoalStatus, GoalType, Plan};
use crate::stdx::text::sanitize_line;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::text;

/// The goals as lines of `width` cells.
pub fn entries(pane: &PaneCx<'_>, plan: Option<&Plan>, abandoned: bool, width: usize) -> Vec<Entry> {
    let theme = pane.cx.theme;
    let numbered = plan.map(Plan::numbered).unwrap_or_default();
    let hidden = numbered.iter().filter(|n| n.number.is_none()).count();
    if numbered.is_empty() {
        let words = if pane.state.head.is_running() {
            "no plan yet: the worker makes one when it needs it"
        } else {
            "no plan was made"
        };
        return super::paragraph(Vec::new(), words, theme[Slot::TextDim], width, 4)
            .into_iter()
            .map(|line| Entry::line(line, None))
            .collect();
    }
    let number_width =
        numbered.iter().filter_map(|n| n.number.as_ref()).map(|n| n.len()).max().unwrap_or(1).clamp(3, 9);
    let mut out = Vec::new();
    for goal in numbered.iter().filter(|n| abandoned || n.number.is_some()) {
        let (glyph, style, text_style) = match goal.goal.status {
            _ if goal.number.is_none() => (Glyph::Abandoned, theme[Slot::GoalAbandoned], theme[Slot::GoalAbandoned]),
            GoalStatus::Pending => (Glyph::Pending, theme[Slot::GoalPending], theme[Slot::GoalPending]),
            GoalStatus::InProgress => (Glyph::Active, theme[Slot::GoalActive], theme[Slot::Text]),
            GoalStatus::Completed => (Glyph::Done, theme[Slot::GoalDone], theme[Slot::Text]),
            GoalStatus::Abandoned => (Glyph::Abandoned, theme[Slot::GoalAbandoned], theme[Slot::GoalAbandoned]),
        };
        let focused = plan.and_then(|p| p.current_id.as_ref()) == Some(&goal.goal.id);
        let text_style = if focused { theme[Slot::GoalActive] } else { text_style };
        let number = text::pad(goal.number.as_deref().unwrap_or(""), number_width + 1);
        let mut words = sanitize_line(&goal.goal.description);
        if goal.goal.kind == GoalType::AgentCall {
            words = format!("{} {words}", theme.glyph(Glyph::Sub));
        }
        let mut spans =
            vec![Span::styled(format!("{} ", theme.glyph(glyph)), style), Span::styled(number, theme[Slot::TextDim])];
        let used: usize = spans.iter().map(|s| text::width(&s.content)).sum();
        let mark = if focused { " (focus)" } else { "" };
        let room = width.saturating_sub(used + text::width(mark));
        spans.push(Span::styled(text::cut(&words, room).into_owned(), text_style));
        spans.push(Span::styled(mark, theme[Slot::TextDim]));
        out.push(Entry::line(Line::from(spans), Some(Target::Goal(goal.goal.id.clone()))));
    }
    if hidden > 0 && !abandoned {
        let words = format!("{hidden} abandoned");
        out.push(Entry::line(Span::styled(words, theme[Slot::TextDim]), None));
    }
    out
}
