//! The lines above the panes: which session, where it stands, who works, what it costs; and below
//! it what is wrong or waits, with the next step.

use ratatui::text::{Line, Span};

use crate::events::data::{Outcome, SessionStatus};
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::panes::paragraph;
use crate::tui::screen::Cx;
use crate::tui::state::SessionState;
use crate::tui::state::head::{Head, Who};
use crate::tui::state::request::{Wanted, subject};
use crate::tui::theme::{Glyph, Slot, Theme};
use crate::tui::time;
use crate::tui::widgets::{format, text};

/// Most lines of trouble above the panes.
const BANNER_LINES: usize = 3;

/// The mark, the words and the look of where a session stands.
pub fn standing(head: &Head, theme: &Theme) -> (&'static str, String, Slot) {
    let running = |who: &str| (theme.glyph(Glyph::Active), format!("{who} running"), Slot::StatusRunning);
    match head.status {
        None => (theme.glyph(Glyph::Pending), "opening".to_owned(), Slot::TextDim),
        Some(SessionStatus::Running) => match head.who {
            Who::Worker => running("worker"),
            Who::Checker => running("checker"),
            Who::Gates => running("gates"),
            Who::Nobody => (theme.glyph(Glyph::Active), "running".to_owned(), Slot::StatusRunning),
            Who::Person => (theme.glyph(Glyph::Waiting), "waiting for you".to_owned(), Slot::StatusWaiting),
        },
        Some(SessionStatus::Completed) => (theme.glyph(Glyph::Done), head.status_words(), Slot::StatusCompleted),
        Some(SessionStatus::Failed) => (theme.glyph(Glyph::Failed), head.status_words(), Slot::StatusFailed),
        Some(SessionStatus::Stopped) => (theme.glyph(Glyph::Stopped), head.status_words(), Slot::StatusStopped),
        Some(SessionStatus::Error) => (theme.glyph(Glyph::Failed), head.status_words(), Slot::StatusError),
    }
}

/// ` super-agent  fix-parser · cycle 2/5 · ▶ worker running        sonnet-4 · 48.2k tok · $0.31 · 03:12`.
pub fn line(state: &SessionState, at_cycle: Option<u32>, width: usize, cx: &Cx<'_>) -> Line<'static> {
    let (theme, head) = (cx.theme, &state.head);
    let dot = format!(" {} ", theme.glyph(Glyph::Dot));
    let (glyph, words, slot) = standing(head, theme);
    let cycle = match at_cycle {
        Some(number) => format!("cycle {number} as it stood then"),
        None => format!("cycle {}/{}", head.cycle, head.max_cycles),
    };
    let mut middle = vec![Span::styled(dot.clone(), theme[Slot::TextDim]), Span::styled(cycle, theme[Slot::Text])];
    if at_cycle.is_none() {
        middle.push(Span::styled(dot.clone(), theme[Slot::TextDim]));
        middle.push(Span::styled(format!("{glyph} {words}"), theme[slot]));
    }
    if head.scripted {
        middle.push(Span::raw(" "));
        middle.push(Span::styled(" scripted ", theme[Slot::Scripted]));
    }
    let middle_width: usize = middle.iter().map(|s| text::width(&s.content)).sum();
    let name = sanitize_line(&head.name);
    let name_width = text::width(&name);
    let brand = "super-agent  ";
    // What says least gives way first: the program's name, then parts of the right side.
    let mut facts = facts(head, cx);
    let mut brand_width = text::width(brand);
    let least_name = name_width.min(16);
    loop {
        let right: usize = facts.iter().map(|f| text::width(f) + 3).sum();
        if 1 + brand_width + least_name + middle_width + right <= width {
            break;
        }
        if brand_width > 0 {
            brand_width = 0;
        } else if facts.is_empty() {
            break;
        } else {
            facts.remove(0);
        }
    }
    let right = facts.join(&dot);
    let right_width = text::width(&right);
    let room = width.saturating_sub(1 + brand_width + middle_width + right_width + 2).max(4);
    let mut spans = vec![Span::raw(" ")];
    if brand_width > 0 {
        spans.push(Span::styled(brand, theme[Slot::TitleProgram]));
    }
    spans.push(Span::styled(text::cut(&name, room).into_owned(), theme[Slot::TextStrong]));
    spans.extend(middle);
    let used: usize = spans.iter().map(|s| text::width(&s.content)).sum();
    let gap = width.saturating_sub(used + right_width + 1);
    if gap > 0 {
        spans.push(Span::raw(" ".repeat(gap)));
        spans.push(Span::styled(right, theme[Slot::TextDim]));
    }
    Line::from(spans)
}

/// Model, tokens, cost, time; what may be left out first comes first.
fn facts(head: &Head, cx: &Cx<'_>) -> Vec<String> {
    let totals = head.totals();
    let model = match head.who {
        Who::Checker => &head.models.checker,
        Who::Worker | Who::Gates | Who::Person | Who::Nobody => &head.models.worker,
    };
    let model = sanitize_line(model);
    let model = model.rsplit('/').next().unwrap_or("");
    let mut facts = Vec::new();
    if !model.is_empty() {
        facts.push(text::cut(model, 28).into_owned());
    }
    facts.push(format!("{} tok", format::tokens(totals.tokens())));
    if totals.cost_usd > 0.0 || totals.unpriced_calls == 0 {
        let more = if totals.unpriced_calls > 0 { "+" } else { "" };
        facts.push(format!("{}{more}", format::money(totals.cost_usd)));
    }
    facts.push(format::clock(head.elapsed_ms(cx.now)));
    facts
}

/// `tokens ▰▰▰▱▱▱▱▱▱▱ 48k/200k`, or who used how many where there is no budget.
pub fn budget_bar(head: &Head, cx: &Cx<'_>) -> Line<'static> {
    let theme = cx.theme;
    let used = head.totals().tokens();
    let Some(limit) = head.budget.tokens.filter(|limit| *limit > 0) else {
        let (worker, checker) = (head.used.worker.tokens(), head.used.checker.tokens());
        let words = format!(
            "worker {} {} checker {}",
            format::tokens(worker),
            theme.glyph(Glyph::Dot),
            format::tokens(checker)
        );
        return Line::styled(words, theme[Slot::TextDim]);
    };
    let full = (used.saturating_mul(10) / limit).min(10) as usize;
    Line::from(vec![
        Span::styled("tokens ", theme[Slot::TextDim]),
        Span::styled(theme.glyph(Glyph::BarFull).repeat(full), theme[Slot::BarFull]),
        Span::styled(theme.glyph(Glyph::BarEmpty).repeat(10 - full), theme[Slot::BarEmpty]),
        Span::styled(format!(" {}/{}", round(used), round(limit)), theme[Slot::TextDim]),
    ])
}

/// `48.2k`, and `200k` rather than `200.0k`.
fn round(tokens: u64) -> String {
    format::tokens(tokens).replace(".0", "")
}

/// What is wrong or waits, with the next step; empty when all is well.
pub fn banner(state: &SessionState, width: usize, cx: &Cx<'_>) -> Vec<Line<'static>> {
    let (theme, head) = (cx.theme, &state.head);
    let key = |action| cx.key(Layer::Session, action);
    if let Some(request) = state.requests.open().first() {
        let words = match &request.wanted {
            Wanted::Permission { role, tool, arguments } => {
                format!("the {} wants to use {tool}: {}", role.word(), subject(arguments))
            }
            Wanted::Answer { question, .. } => question.clone(),
        };
        let mark = mark(theme, Glyph::Waiting, Slot::StatusWaiting);
        return paragraph(mark, &format!("{words}  [{} answers]", key(Action::Requests)), theme[Slot::Text], width, 2);
    }
    if let Some(retry) = &head.retry {
        let seconds = time::between(cx.now, retry.until).div_ceil(1_000);
        let when = if seconds > 0 { format!("trying again in {seconds}s") } else { "trying again".to_owned() };
        let words = format!("{}; {when} ({} of {})", retry.cause, retry.attempt, retry.attempts);
        return paragraph(mark(theme, Glyph::Retry, Slot::Warning), &words, theme[Slot::Text], width, 2);
    }
    if let Some(trouble) = &head.trouble {
        let (glyph, slot) = match head.status {
            Some(SessionStatus::Stopped) => (Glyph::Stopped, Slot::StatusStopped),
            _ => (Glyph::Failed, Slot::Error),
        };
        let stage = if trouble.stage.is_empty() { String::new() } else { format!("{}: ", trouble.stage) };
        let mut lines =
            paragraph(mark(theme, glyph, slot), &format!("{stage}{}", trouble.cause), theme[Slot::Text], width, 2);
        let remedy = format!("{}  [{} continues]", trouble.remedy, key(Action::Message));
        lines.extend(paragraph(mark(theme, Glyph::Advice, slot), &remedy, theme[Slot::Text], width, BANNER_LINES - 1));
        return lines;
    }
    if head.outcome == Some(Outcome::Interrupted) {
        let words =
            format!("its process ended without a word; nothing written is lost  [{} continues]", key(Action::Message));
        return paragraph(mark(theme, Glyph::Stopped, Slot::StatusStopped), &words, theme[Slot::Text], width, 2);
    }
    if let Some((budget, percent)) = head.budget_warnings.last().filter(|_| head.is_running()) {
        let words = format!("{percent} % of the {budget} budget is used  [{} raises it]", key(Action::Contract));
        return paragraph(mark(theme, Glyph::Warning, Slot::Warning), &words, theme[Slot::Text], width, 1);
    }
    Vec::new()
}

fn mark(theme: &Theme, glyph: Glyph, slot: Slot) -> Vec<Span<'static>> {
    vec![Span::styled(format!(" {} ", theme.glyph(glyph)), theme[slot])]
}
