//! Where the panes go: two columns where there is room, one pane at a time where there is none.

use ratatui::layout::Rect;

use crate::tui::action::Action;

/// A pane.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Pane {
    /// The goals.
    Plan,
    /// What happens.
    Activity,
    /// The verdicts.
    Verdicts,
    /// What was handed in.
    Deliverable,
}

impl Pane {
    /// All of them, in the order of their keys.
    pub const ALL: [Self; 4] = [Self::Plan, Self::Activity, Self::Verdicts, Self::Deliverable];

    /// Its name.
    pub fn title(self) -> &'static str {
        match self {
            Self::Plan => "Plan",
            Self::Activity => "Activity",
            Self::Verdicts => "Verdicts",
            Self::Deliverable => "Deliverable",
        }
    }

    /// The action that goes to it.
    pub fn action(self) -> Action {
        match self {
            Self::Plan => Action::PanePlan,
            Self::Activity => Action::PaneActivity,
            Self::Verdicts => Action::PaneVerdicts,
            Self::Deliverable => Action::PaneDeliverable,
        }
    }

    /// The one `step` further on.
    pub fn step(self, step: usize) -> Self {
        Self::ALL[(self as usize + step) % 4]
    }
}

/// Where everything goes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Layout {
    /// The panes that are shown.
    pub panes: Vec<(Pane, Rect)>,
    /// The tab bar, and the panes on it.
    pub tabs: Option<(Rect, Vec<Pane>)>,
}

/// Lays out the panes. `goals` is how many lines the plan would like.
pub fn layout(area: Rect, screen: Rect, focus: Pane, zoomed: bool, goals: u16) -> Layout {
    if zoomed {
        return Layout { panes: vec![(focus, area)], tabs: None };
    }
    if screen.width < 80 || screen.height < 20 {
        let tabs = Rect { height: 1, ..area };
        let rest = Rect { y: area.y + 1, height: area.height.saturating_sub(1), ..area };
        return Layout { panes: vec![(focus, rest)], tabs: Some((tabs, Pane::ALL.to_vec())) };
    }
    let left_width = (u32::from(area.width) * 12 / 25) as u16;
    let left = Rect { width: left_width, ..area };
    let right = Rect { x: area.x + left_width, width: area.width - left_width, ..area };
    let plan_height = (goals + 2).clamp(5, (area.height * 2 / 5).max(5)).min(area.height / 2);
    let [plan, activity] = split(left, plan_height);
    let mut panes = vec![(Pane::Plan, plan), (Pane::Activity, activity)];
    if screen.width >= 120 && screen.height >= 36 {
        let [verdicts, deliverable] = split(right, right.height / 2);
        panes.extend([(Pane::Verdicts, verdicts), (Pane::Deliverable, deliverable)]);
        return Layout { panes, tabs: None };
    }
    let shown = if focus == Pane::Deliverable { Pane::Deliverable } else { Pane::Verdicts };
    panes.push((shown, right));
    Layout { panes, tabs: None }
}

fn split(area: Rect, first: u16) -> [Rect; 2] {
    let first = first.min(area.height);
    let below = Rect { y: area.y + first, height: area.height - first, ..area };
    [Rect { height: first, ..area }, below]
}
