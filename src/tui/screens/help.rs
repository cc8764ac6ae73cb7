//! The keys of a screen, read from the table of keys, the person's changes included.

use ratatui::Frame;
use ratatui::crossterm::event::MouseEventKind;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effects, Handled, Hint, Input, View, hints};
use crate::tui::screens::look;
use crate::tui::screens::reader::Reader;
use crate::tui::theme::Slot;
use crate::tui::widgets::text::{pad, width};

/// The keys of a screen.
pub struct Help {
    on: Layer,
    reader: Reader,
}

impl Help {
    /// The keys of a screen.
    pub fn new(on: Layer) -> Self {
        Self { on, reader: Reader::default() }
    }

    fn lines(&self, cx: &Cx<'_>) -> Vec<Line<'static>> {
        let mut layers = vec![self.on];
        layers.extend(self.on.behind());
        let mut lines = Vec::new();
        for layer in layers {
            let bindings: Vec<_> = cx.keymap.of(layer).collect();
            if bindings.is_empty() {
                continue;
            }
            if !lines.is_empty() {
                lines.push(Line::default());
            }
            lines.push(look::heading(title(layer), cx.theme));
            let labels: Vec<String> = bindings.iter().map(|binding| binding.keys_label()).collect();
            let widest = labels.iter().map(|label| width(label)).max().unwrap_or(0).min(22);
            for (binding, label) in bindings.iter().zip(&labels) {
                let label = if label.is_empty() { "(palette)" } else { label };
                lines.push(Line::from(vec![
                    Span::styled(format!("  {}  ", pad(label, widest.max(9))), cx.theme[Slot::Key]),
                    Span::styled(binding.desc.clone(), cx.theme[Slot::KeyText]),
                ]));
            }
        }
        lines.push(Line::default());
        let words = format!("Every key can be changed under [keys.{}] in config.toml.", self.on.name());
        lines.push(Line::styled(words, cx.theme[Slot::TextDim]));
        lines
    }
}

fn title(layer: Layer) -> &'static str {
    match layer {
        Layer::Global => "Everywhere",
        Layer::Move => "Moving",
        Layer::Matches => "While a search has matches",
        Layer::Session => "Session",
        Layer::Detail => "Details",
        Layer::Sessions => "Sessions",
        Layer::Launch => "New session",
        Layer::Rewind => "Rewind",
        Layer::Archive => "Cycles",
        Layer::Message => "Message",
        Layer::Contract => "Contract and limits",
        Layer::Apply => "Apply",
        Layer::Request => "Question or permission",
        Layer::Confirm => "Yes or no",
        Layer::Palette => "Actions",
        Layer::Help => "Help",
        Layer::Themes => "Themes",
        Layer::Log => "Log",
    }
}

impl View for Help {
    fn layer(&self) -> Layer {
        Layer::Help
    }

    fn is_overlay(&self) -> bool {
        true
    }

    fn shown(&mut self, cx: &Cx<'_>, _out: &mut Effects) {
        self.reader.indent = 13;
        self.reader.set(self.lines(cx));
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(Action::Back | Action::Help | Action::Quit) => out.close(),
            Input::Action(action) if self.reader.act(action) => {}
            Input::Mouse(event) if event.kind == MouseEventKind::ScrollUp => self.reader.scroll.by(-3),
            Input::Mouse(event) if event.kind == MouseEventKind::ScrollDown => self.reader.scroll.by(3),
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let width = area.width.saturating_sub(4).min(90);
        let rows = self.reader.height(width.saturating_sub(4)).saturating_add(2);
        let size = (width, rows.min(area.height.saturating_sub(2)).max(5));
        let inner = look::overlay(frame, area, size, &format!("Keys · {}", title(self.on)), cx.theme);
        self.reader.draw(frame, inner, cx.theme);
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        hints(&[Action::Down, Action::PageDown, Action::Back])
    }
}

#[cfg(test)]
mod tests;
