//! Every action of the screen below and of the program, found by typing, with its key.

use ratatui::Frame;
use ratatui::crossterm::event::KeyEvent;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::action::{Action, Layer};
use crate::tui::keymap::Keymap;
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look;
use crate::tui::theme::Slot;
use crate::tui::widgets::editor::{Edited, Editor, Kind};
use crate::tui::widgets::fuzzy::{Fuzzy, Hit, highlight};
use crate::tui::widgets::list::{List, Step};
use crate::tui::widgets::text::{cut, pad_start, width};

/// The list of actions.
pub struct Palette {
    on: Layer,
    items: Vec<Item>,
    hits: Vec<Hit>,
    list: List,
    editor: Editor,
}

/// An action as it is listed.
struct Item {
    action: Action,
    desc: String,
    keys: String,
}

impl Palette {
    /// The actions of a screen.
    pub fn new(on: Layer) -> Self {
        let editor = Editor::new(Kind::Single, "type what you want to do");
        Self { on, items: Vec::new(), hits: Vec::new(), list: List::default(), editor }
    }

    fn narrow(&mut self) {
        let texts = self.items.iter().map(|item| item.desc.as_str());
        self.hits = Fuzzy::new(self.editor.text().trim()).rank(texts);
        self.list.set_len(self.hits.len());
        self.list.step(Step::First);
    }

    fn act(&mut self, action: Action, out: &mut Effects) -> Handled {
        match action {
            Action::Up => self.list.step(Step::By(-1)),
            Action::Down => self.list.step(Step::By(1)),
            Action::PageUp => self.list.step(Step::Page(-1)),
            Action::PageDown => self.list.step(Step::Page(1)),
            Action::Open => {
                let chosen = self.list.selected().and_then(|row| self.items.get(self.hits.get(row)?.index));
                if let Some(item) = chosen {
                    out.close();
                    out.push(Effect::Act(item.action));
                }
            }
            Action::Back => out.close(),
            _ => return Handled::No,
        }
        Handled::Yes
    }
}

/// The actions worth listing: those of the screen, then what holds everywhere. Moving the cursor is
/// none of them.
fn items(on: Layer, keymap: &Keymap) -> Vec<Item> {
    [on, Layer::Global]
        .into_iter()
        .flat_map(|layer| keymap.of(layer))
        .filter(|binding| binding.action != Action::Palette)
        .map(|binding| Item { action: binding.action, desc: binding.desc.clone(), keys: binding.keys_label() })
        .collect()
}

impl View for Palette {
    fn layer(&self) -> Layer {
        Layer::Palette
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn takes_text(&self) -> bool {
        true
    }

    fn shown(&mut self, cx: &Cx<'_>, _out: &mut Effects) {
        self.items = items(self.on, cx.keymap);
        self.narrow();
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(action) => self.act(action, out),
            Input::Key(key) => self.typed(key),
            Input::Paste(text) => {
                self.editor.paste(&text);
                self.narrow();
                Handled::Yes
            }
            Input::Mouse(_) | Input::Reply { .. } | Input::Done { .. } | Input::Edited(_) | Input::Tick => Handled::No,
        }
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let theme = cx.theme;
        let rows = u16::try_from(self.items.len()).unwrap_or(u16::MAX).saturating_add(4);
        let size = (area.width.saturating_sub(4).min(80), rows.min(area.height.saturating_sub(2)).max(5));
        let inner = look::overlay(frame, area, size, "Actions", theme);
        let (line, rest) = look::split_top(inner, 1);
        let at = self.editor.draw(frame.buffer_mut(), line, area, &look::editor(theme));
        if let Some(at) = at {
            frame.set_cursor_position(at);
        }
        let (_, rest) = look::split_top(rest, u16::from(rest.height > 3));
        if self.hits.is_empty() {
            return look::text(frame, rest, &[Line::styled("no action is called like that", theme[Slot::TextDim])]);
        }
        let (hits, items) = (&self.hits, &self.items);
        self.list.draw(frame.buffer_mut(), rest, 1, &look::list(theme, true), |row, _, room| {
            let Some((hit, item)) = hits.get(row).and_then(|hit| Some((hit, items.get(hit.index)?))) else {
                return Vec::new();
            };
            let keys = cut(&item.keys, room / 3).into_owned();
            let left = room.saturating_sub(width(&keys) + 1);
            let desc = cut(&item.desc, left);
            let mut spans = highlight(&desc, &hit.positions, theme[Slot::Text], theme[Slot::Match]);
            spans.push(Span::styled(pad_start(&keys, room.saturating_sub(width(&desc))), theme[Slot::Key]));
            vec![Line::from(spans)]
        });
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Open, Action::Down, Action::Back])
    }
}

impl Palette {
    fn typed(&mut self, key: KeyEvent) -> Handled {
        match self.editor.key(key) {
            Edited::Changed => self.narrow(),
            Edited::Moved => {}
            Edited::Ignored => return Handled::No,
        }
        Handled::Yes
    }
}

#[cfg(test)]
mod tests;
