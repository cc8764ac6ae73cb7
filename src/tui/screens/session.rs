//! The session screen: four panes over one fold, and the keys that step into the session. The same
//! screen shows a cycle of the archive as it stood then.

mod draw;
mod header;
mod keys;
mod layout;
mod open;

use std::collections::HashSet;
use std::ops::Range;
use std::time::Duration;

use jiff::Timestamp;
use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::Line;

use self::layout::Pane;
use crate::events::query::Query;
use crate::ids::SessionId;
use crate::tui::action::{Action, Layer};
use crate::tui::panes::activity::ActivityRows;
use crate::tui::panes::viewport::Viewport;
use crate::tui::panes::{Entry, PaneCx, Target, deliverable, plan, verdicts};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View};
use crate::tui::state::SessionState;
use crate::tui::state::activity::TraceRef;
use crate::tui::state::cycle::Cycle;

/// The spinner's step.
const SPIN: Duration = Duration::from_millis(100);

/// The clock's step.
const CLOCK: Duration = Duration::from_secs(1);

/// The session screen.
pub struct Session {
    session: SessionId,
    /// The cycle of the archive that is shown; none: everything, as it is now.
    at_cycle: Option<u32>,
    focus: Pane,
    zoomed: bool,
    /// One for each pane, in the order of [`Pane::ALL`].
    viewports: [Viewport; 4],
    /// Entries of the plan, the verdicts and the deliverable, made anew when something changed.
    plan: Cached,
    verdicts: Cached,
    deliverable: Cached,
    abandoned: bool,
    branches: bool,
    folded: HashSet<TraceRef>,
    /// The cycle whose deliverable is shown; none: the newest one with something in it.
    shown_cycle: Option<u32>,
    search: String,
    typing: bool,
    escaped: Option<Timestamp>,
    requests_opened: Vec<String>,
    /// Where the panes were drawn, for the mouse.
    areas: Vec<(Pane, Rect)>,
    tabs: Vec<(Pane, Rect)>,
    shown_panes: usize,
}

/// Entries with what they were made from.
#[derive(Default)]
struct Cached {
    key: (u64, usize, u64, String),
    entries: Vec<Entry>,
}

impl Session {
    /// Opens a session as it is now.
    pub fn new(session: SessionId) -> Self {
        Self::open(session, None)
    }

    /// Opens a cycle of it as it stood at its end.
    pub fn at_cycle(session: SessionId, cycle: u32) -> Self {
        Self::open(session, Some(cycle))
    }

    fn open(session: SessionId, at_cycle: Option<u32>) -> Self {
        Self {
            session,
            at_cycle,
            focus: Pane::Activity,
            zoomed: false,
            viewports: [Viewport::at_start(), Viewport::following(), Viewport::at_start(), Viewport::at_start()],
            plan: Cached::default(),
            verdicts: Cached::default(),
            deliverable: Cached::default(),
            abandoned: false,
            branches: false,
            folded: HashSet::new(),
            shown_cycle: at_cycle,
            search: String::new(),
            typing: false,
            escaped: None,
            requests_opened: Vec::new(),
            areas: Vec::new(),
            tabs: Vec::new(),
            shown_panes: 0,
        }
    }

    /// The session it shows.
    pub fn id(&self) -> &SessionId {
        &self.session
    }

    /// What waits for the person and was not shown to them yet.
    pub fn request_to_open(&self, cx: &Cx<'_>) -> Option<String> {
        let state = cx.session(&self.session).filter(|_| self.at_cycle.is_none())?;
        state.requests.open().iter().map(|r| &r.id).find(|id| !self.requests_opened.contains(id)).cloned()
    }

    /// It was shown; closing its dialog does not bring it back by itself.
    pub fn request_opened(&mut self, id: &str) {
        self.requests_opened.push(id.to_owned());
    }

    /// The rows of the activity that are shown.
    fn range(&self, state: &SessionState) -> Range<usize> {
        let view = self.at_cycle.and_then(|number| state.view_at_cycle(number));
        view.map_or(0..state.activity.len(), |view| view.rows.start.0 as usize..view.rows.end.0 as usize)
    }

    /// The cycle whose deliverable is shown.
    fn deliverable_cycle<'a>(&self, state: &'a SessionState) -> Option<&'a Cycle> {
        let chosen = self.shown_cycle.and_then(|number| state.cycles.get(number));
        chosen.or_else(|| state.cycles.newest_output()).or_else(|| state.cycles.last())
    }

    /// Does something with a pane's viewport and its rows.
    fn with_rows<R>(
        &mut self,
        state: &SessionState,
        cx: &Cx<'_>,
        pane: Pane,
        act: impl FnOnce(&mut Viewport, &dyn RowsDyn) -> R,
    ) -> R {
        let range = self.range(state);
        let pane_cx = PaneCx { cx, state };
        let viewport = &mut self.viewports[pane as usize];
        match pane {
            Pane::Activity => {
                let rows = ActivityRows {
                    pane: &pane_cx,
                    range,
                    folded: &self.folded,
                    branches: self.branches,
                    query: &self.search,
                };
                act(viewport, &rows)
            }
            Pane::Plan => act(viewport, &Slice(&self.plan.entries)),
            Pane::Verdicts => act(viewport, &Slice(&self.verdicts.entries)),
            Pane::Deliverable => act(viewport, &Slice(&self.deliverable.entries)),
        }
    }

    /// Makes the entries of a pane anew when what they show changed.
    fn refresh(&mut self, state: &SessionState, cx: &Cx<'_>, pane: Pane, width: usize) {
        let flags = u64::from(self.abandoned) | u64::from(self.at_cycle.unwrap_or_default()) << 1;
        let shown = u64::from(self.shown_cycle.unwrap_or_default()) << 32;
        let key = (state.last_event_id(), width, flags | shown, cx.theme.name.clone());
        let cached = match pane {
            Pane::Plan => &self.plan,
            Pane::Verdicts => &self.verdicts,
            Pane::Deliverable => &self.deliverable,
            // Laid out row by row.
            Pane::Activity => return,
        };
        if cached.key == key {
            return;
        }
        let pane_cx = PaneCx { cx, state };
        let view = self.at_cycle.and_then(|number| state.view_at_cycle(number));
        let entries = match pane {
            Pane::Plan => {
                let goals = view.as_ref().map_or_else(|| state.plans.current(), |view| view.plan);
                plan::entries(&pane_cx, goals, self.abandoned, width)
            }
            Pane::Verdicts => {
                let cycles = view.as_ref().map_or_else(|| state.cycles.all(), |view| view.verdicts);
                verdicts::entries(&pane_cx, cycles, width)
            }
            Pane::Deliverable => deliverable::entries(&pane_cx, self.deliverable_cycle(state), width),
            Pane::Activity => return,
        };
        let cached = match pane {
            Pane::Plan => &mut self.plan,
            Pane::Verdicts => &mut self.verdicts,
            Pane::Deliverable | Pane::Activity => &mut self.deliverable,
        };
        *cached = Cached { key, entries };
    }

    /// What stands behind the cursor of the focused pane.
    fn target(&self, state: &SessionState) -> Option<Target> {
        let cursor = self.viewports[self.focus as usize].cursor();
        let entries = match self.focus {
            Pane::Activity => {
                let range = self.range(state);
                let row = crate::tui::panes::activity::row_id(range.start + cursor);
                return (!range.is_empty()).then_some(Target::Row(row));
            }
            Pane::Plan => &self.plan.entries,
            Pane::Verdicts => &self.verdicts.entries,
            Pane::Deliverable => &self.deliverable.entries,
        };
        entries.get(cursor)?.target.clone()
    }
}

/// [`viewport::Rows`](crate::tui::panes::viewport::Rows) of either kind of pane.
trait RowsDyn: crate::tui::panes::viewport::Rows {}

impl<T: crate::tui::panes::viewport::Rows> RowsDyn for T {}

struct Slice<'a>(&'a [Entry]);

impl crate::tui::panes::viewport::Rows for Slice<'_> {
    fn len(&self) -> usize {
        self.0.len()
    }

    fn lay(&self, row: usize, width: usize, follow: bool) -> crate::tui::panes::viewport::Laid {
        self.0.lay(row, width, follow)
    }
}

impl View for Session {
    fn layer(&self) -> Layer {
        Layer::Session
    }

    fn mode(&self) -> Option<Layer> {
        (!self.search.is_empty() && !self.typing).then_some(Layer::Matches)
    }

    fn takes_text(&self) -> bool {
        self.typing
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn shown(&mut self, _cx: &Cx<'_>, out: &mut Effects) {
        // Only the owner's files say whether its process is still there.
        out.ask(Query::Session(self.session.clone()));
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        self.input(input, cx, out)
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        self.draw_all(frame, area, cx);
    }

    fn hints(&self, cx: &Cx<'_>) -> Vec<Hint> {
        self.next_steps(cx)
    }

    fn status(&self, cx: &Cx<'_>) -> Option<Line<'static>> {
        let state = cx.session(&self.session)?;
        Some(header::budget_bar(&state.head, cx))
    }

    fn tick(&self, cx: &Cx<'_>) -> Option<Duration> {
        let state = cx.session(&self.session)?;
        if !state.head.is_running() || self.at_cycle.is_some() {
            return None;
        }
        Some(if state.activity.is_moving() { SPIN } else { CLOCK })
    }
}

/// A hint with another word than the table's.
fn hint(action: Action, word: &'static str) -> Hint {
    Hint { action, word: Some(word) }
}

#[cfg(test)]
mod tests;
