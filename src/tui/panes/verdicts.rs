//! The verdicts, newest cycle first: what was decided, why, what to do, and for each verified item
//! the tool call that stands behind it. An item with none is marked as a claim.

use ratatui::text::{Line, Span};

use super::{Entry, PaneCx, Target, both_ends, paragraph, verdict_look};
use crate::events::data::{CheckerResult, Evidence, VerdictBy};
use crate::stdx::text::sanitize_line;
use crate::tui::state::cycle::Cycle;
use crate::tui::state::head::Who;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::{format, text};

/// Most lines of a reason or a piece of feedback; `Enter` shows all of it.
const MOST_LINES: usize = 12;

/// The verdicts of `cycles` as lines of `width` cells.
pub fn entries(pane: &PaneCx<'_>, cycles: &[Cycle], width: usize) -> Vec<Entry> {
    let theme = pane.cx.theme;
    let mut out = Vec::new();
    if cycles.is_empty() {
        let words = "no verdict yet: when the worker hands in, the harness looks at the gates and the checker tests what it claims";
        let lines = paragraph(Vec::new(), words, theme[Slot::TextDim], width, 4);
        return vec![Entry { lines, target: None }];
    }
    for (n, cycle) in cycles.iter().rev().enumerate() {
        if n > 0 {
            out.push(Entry::line("", None));
        }
        cycle_entries(pane, cycle, width, &mut out);
    }
    out
}

fn cycle_entries(pane: &PaneCx<'_>, cycle: &Cycle, width: usize, out: &mut Vec<Entry>) {
    let theme = pane.cx.theme;
    let target = || Some(Target::Verdict(cycle.number));
    out.push(Entry::line(head(pane, cycle, width), target()));
    if cycle.contract_changed {
        let words = "the contract was changed by you before this cycle";
        out.push(Entry::line(Span::styled(format!("  {words}"), theme[Slot::Warning]), target()));
    }
    if let Some(result) = &cycle.checker {
        if !result.reason.trim().is_empty() {
            let lines = paragraph(vec![Span::raw("  ")], &result.reason, theme[Slot::Text], width, MOST_LINES);
            out.push(Entry { lines, target: target() });
        }
        for (n, item) in items(result).iter().enumerate() {
            let lines = item_lines(pane, item, width);
            out.push(Entry { lines, target: Some(Target::Evidence(cycle.number, n)) });
        }
        if !result.feedback.trim().is_empty() && result.feedback != result.reason {
            let mark = vec![Span::styled(format!("  {} ", theme.glyph(Glyph::Advice)), theme[Slot::Warning])];
            let lines = paragraph(mark, &result.feedback, theme[Slot::Text], width, MOST_LINES);
            out.push(Entry { lines, target: target() });
        }
    }
    gate_entries(pane, cycle, width, out);
}

/// `cycle 1  ◐ needs_improvement            2 checks`.
fn head(pane: &PaneCx<'_>, cycle: &Cycle, width: usize) -> Line<'static> {
    let theme = pane.cx.theme;
    let mut left = vec![Span::styled(format!("cycle {}  ", cycle.number), theme[Slot::TextStrong])];
    let verdict = cycle.verdict.or_else(|| cycle.checker.as_ref().map(|c| c.verdict));
    match verdict {
        Some(verdict) => {
            let (glyph, word, style) = verdict_look(verdict, theme);
            left.push(Span::styled(format!("{glyph} {word}"), style));
        }
        None => {
            let is_newest = pane.state.cycles.last().is_some_and(|c| c.number == cycle.number);
            let words = match pane.state.head.who {
                _ if !is_newest || !pane.state.head.is_running() => {
                    left.push(Span::styled(
                        format!("{} no verdict", theme.glyph(Glyph::Pending)),
                        theme[Slot::TextDim],
                    ));
                    return Line::from(left);
                }
                Who::Checker => "the checker is at work",
                Who::Gates => "looking at the gates",
                Who::Worker | Who::Person | Who::Nobody => "the worker is at work",
            };
            left.push(Span::styled(format!("{} {words}", theme.glyph(Glyph::Active)), theme[Slot::StatusRunning]));
        }
    }
    let right = cycle.checker.as_ref().map(|result| match result.by {
        VerdictBy::Gates => "by the gates".to_owned(),
        VerdictBy::Harness => "overruled by the harness".to_owned(),
        VerdictBy::Checker => {
            let checks: usize = items(result).iter().map(|i| i.calls.len()).sum();
            format::count(checks, "check")
        }
    });
    both_ends(left, vec![Span::styled(right.unwrap_or_default(), theme[Slot::TextDim])], width)
}

/// What was verified; results from before evidence was kept have only the words.
fn items(result: &CheckerResult) -> Vec<Evidence> {
    if !result.evidence.is_empty() {
        return result.evidence.clone();
    }
    result.verified.iter().map(|text| Evidence { text: text.clone(), calls: Vec::new() }).collect()
}

/// `✗ cargo test fails: 1 of 14     ← bash  cargo test (exit 101)`.
fn item_lines(pane: &PaneCx<'_>, item: &Evidence, width: usize) -> Vec<Line<'static>> {
    let theme = pane.cx.theme;
    let failed = item.calls.iter().any(|c| !c.ok || c.exit_code.is_some_and(|code| code != 0));
    let (glyph, style) = match (item.calls.is_empty(), failed) {
        (true, _) => (Glyph::Unknown, theme[Slot::VerdictClaim]),
        (false, true) => (Glyph::Failed, theme[Slot::ToolFailed]),
        (false, false) => (Glyph::Done, theme[Slot::ToolOk]),
    };
    let mark = vec![Span::styled(format!("  {} ", theme.glyph(glyph)), style)];
    let evidence = item.calls.first().map_or_else(
        || "only a claim".to_owned(),
        |call| {
            let exit =
                call.exit_code.filter(|code| *code != 0).map(|code| format!(" (exit {code})")).unwrap_or_default();
            let more = if item.calls.len() > 1 { format!(" +{}", item.calls.len() - 1) } else { String::new() };
            let arguments = sanitize_line(&call.arguments);
            format!("{} {}  {}{exit}{more}", theme.glyph(Glyph::Evidence), sanitize_line(&call.tool), arguments)
        },
    );
    let words = sanitize_line(&item.text);
    let evidence_style = if item.calls.is_empty() { theme[Slot::VerdictClaim] } else { theme[Slot::TextDim] };
    // Side by side where both fit, else the evidence below.
    if text::width(&words) + text::width(&evidence) + 7 <= width {
        let column = (width / 2).max(text::width(&words) + 6).min(width - text::width(&evidence));
        let mut spans = mark;
        spans.push(Span::styled(text::pad(&words, column - 4), theme[Slot::Text]));
        spans.push(Span::styled(evidence, evidence_style));
        return vec![Line::from(spans)];
    }
    let mut lines = paragraph(mark, &item.text, theme[Slot::Text], width, 4);
    lines.push(Line::styled(format!("    {}", text::cut(&evidence, width.saturating_sub(4))), evidence_style));
    lines
}

fn gate_entries(pane: &PaneCx<'_>, cycle: &Cycle, width: usize, out: &mut Vec<Entry>) {
    let theme = pane.cx.theme;
    let target = || Some(Target::Verdict(cycle.number));
    for gate in cycle.gates.iter().filter(|g| !g.ok) {
        let mark = vec![
            Span::styled(format!("  {} ", theme.glyph(Glyph::Failed)), theme[Slot::ToolFailed]),
            Span::styled(format!("gate {}  ", sanitize_line(&gate.name)), theme[Slot::TextStrong]),
        ];
        out.push(Entry { lines: paragraph(mark, &gate.detail, theme[Slot::Text], width, 3), target: target() });
    }
    let holding = cycle.gates.iter().filter(|g| g.ok).count();
    if holding > 0 {
        let names: Vec<_> = cycle.gates.iter().filter(|g| g.ok).map(|g| sanitize_line(&g.name)).collect();
        let verb = if holding == 1 { "holds" } else { "hold" };
        let words = format!("{} {verb}: {}", format::count(holding, "gate"), names.join(", "));
        let spans = vec![
            Span::styled(format!("  {} ", theme.glyph(Glyph::Done)), theme[Slot::ToolOk]),
            Span::styled(text::cut(&words, width.saturating_sub(4)).into_owned(), theme[Slot::TextDim]),
        ];
        out.push(Entry::line(Line::from(spans), target()));
    }
}
