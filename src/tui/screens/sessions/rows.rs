//! A session as one line of the table; which columns there are depends on the width.

use ratatui::text::{Line, Span};

use crate::events::query::SessionSummary;
use crate::stdx::text::sanitize_line;
use crate::tui::screen::Cx;
use crate::tui::screens::look;
use crate::tui::theme::{Slot, Theme};
use crate::tui::widgets::format;
use crate::tui::widgets::text::{cut, cut_start, pad, pad_start};

/// Cells of each column; 0 leaves it out.
pub(super) struct Columns {
    status: usize,
    name: usize,
    cycle: usize,
    verdicts: usize,
    tokens: usize,
    cost: usize,
    age: usize,
    dir: usize,
}

impl Columns {
    pub fn new(width: u16) -> Self {
        let width = usize::from(width);
        let mut columns =
            Self { status: 19, name: 0, cycle: 6, verdicts: 8, tokens: 8, cost: 9, age: 5, dir: width / 4 };
        if width < 100 {
            columns.dir = 0;
        }
        if width < 76 {
            columns.cost = 0;
            columns.tokens = 0;
        }
        if width < 56 {
            columns.cycle = 0;
            columns.status = 2;
        }
        if width < 36 {
            columns.verdicts = 0;
        }
        if width < 24 {
            columns.age = 0;
        }
        let used = columns.status
            + columns.cycle
            + columns.verdicts
            + columns.tokens
            + columns.cost
            + columns.age
            + columns.dir;
        columns.name = width.saturating_sub(used);
        columns
    }

    /// The titles.
    pub fn head(&self) -> String {
        let left = |text: &str, cells: usize| if cells == 0 { String::new() } else { pad(text, cells) };
        let right = |text: &str, cells: usize| if cells == 0 { String::new() } else { pad_start(text, cells) };
        [
            left(if self.status > 2 { "STATUS" } else { "" }, self.status),
            left("NAME", self.name),
            right("CYCLE", self.cycle),
            left("  CHECK", self.verdicts),
            right("TOKENS", self.tokens),
            right("COST", self.cost),
            right("AGE", self.age),
            left("  FOLDER", self.dir),
        ]
        .concat()
    }

    /// One session.
    pub fn row(&self, session: &SessionSummary, cx: &Cx<'_>) -> Line<'static> {
        let theme = cx.theme;
        let (glyph, word, style) = look::status(theme, session);
        let status = if self.status > 2 { format!("{glyph} {word}") } else { glyph.to_owned() };
        let mut spans = vec![Span::styled(pad(&status, self.status), style)];
        spans.extend(self.name(session, theme));
        let dim = theme[Slot::TextDim];
        let mut number = |text: String, cells: usize| {
            if cells > 0 {
                spans.push(Span::styled(pad_start(&text, cells), dim));
            }
        };
        number(format!("{}/{}", session.cycle, session.max_cycles), self.cycle);
        if self.verdicts > 0 {
            spans.push(Span::raw("  "));
            spans.extend(strip(session, self.verdicts - 2, theme));
        }
        let mut number = |text: String, cells: usize| {
            if cells > 0 {
                spans.push(Span::styled(pad_start(&text, cells), dim));
            }
        };
        number(format::tokens(session.totals.tokens()), self.tokens);
        number(cost(session), self.cost);
        number(format::age(cx.now, session.active_at), self.age);
        if self.dir > 2 {
            let dir = sanitize_line(&session.dir.display().to_string());
            spans.push(Span::styled(format!("  {}", cut_start(&dir, self.dir - 2)), dim));
        }
        Line::from(spans)
    }

    fn name(&self, session: &SessionSummary, theme: &Theme) -> Vec<Span<'static>> {
        let mut badge = String::new();
        if session.scripted {
            badge.push_str(" scripted");
        }
        if session.elsewhere {
            badge.push_str(" other process");
        }
        let room = self.name.saturating_sub(1);
        if badge.len() + 8 > room {
            badge.clear();
        }
        let name = sanitize_line(&session.name);
        let name = cut(&name, room.saturating_sub(badge.len())).into_owned();
        let fill = self.name.saturating_sub(crate::tui::widgets::text::width(&name) + badge.len());
        vec![
            Span::styled(name, theme[Slot::TextStrong]),
            Span::styled(badge, theme[Slot::Scripted]),
            Span::raw(" ".repeat(fill)),
        ]
    }
}

/// The newest verdicts, one glyph each; what does not fit is left out at the front.
fn strip(session: &SessionSummary, cells: usize, theme: &Theme) -> Vec<Span<'static>> {
    let skipped = session.verdicts.len().saturating_sub(cells);
    let mut spans: Vec<Span<'static>> = session.verdicts[skipped..]
        .iter()
        .map(|verdict| {
            let (glyph, _, style) = look::verdict(theme, *verdict);
            Span::styled(glyph, style)
        })
        .collect();
    spans.push(Span::raw(" ".repeat(cells - (session.verdicts.len() - skipped))));
    spans
}

/// Money, with a mark when some calls have no known price.
fn cost(session: &SessionSummary) -> String {
    let mark = if session.totals.unpriced_calls > 0 { "+" } else { "" };
    format!("{}{mark}", format::money(session.totals.cost_usd))
}

/// What is searched of a session.
pub(super) fn searched(session: &SessionSummary) -> String {
    let status = session.outcome.map_or(session.status.word(), look::outcome_words);
    let text = format!("{} {} {} {} {status}", session.name, session.objective, session.dir.display(), session.id);
    sanitize_line(&text)
}

/// Two lines below the table about the session under the cursor.
pub(super) fn more(session: &SessionSummary, theme: &Theme) -> Vec<Line<'static>> {
    let first = match &session.broken {
        Some(why) => Line::styled(sanitize_line(why), theme[Slot::Error]),
        None => Line::styled(sanitize_line(&session.objective), theme[Slot::Text]),
    };
    let place = format!("{}  {}", session.id, session.dir.display());
    vec![Line::default(), first, Line::styled(sanitize_line(&place), theme[Slot::TextDim])]
}
