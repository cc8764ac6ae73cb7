//! Drawing the stack of screens with footer and toasts. Screens draw themselves.

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Clear, Paragraph, Widget};

use super::{Toast, Ui};
use crate::tui::action::Action;
use crate::tui::screen::{Cx, Hint, Level, View};
use crate::tui::theme::{Glyph, Slot, Theme};
use crate::tui::widgets::{text, wrap};

/// Smallest terminal in which anything useful fits.
const LEAST: (u16, u16) = (40, 10);

/// Hints that come before the screen's own words.
const LEAST_HINTS: usize = 4;

/// Widest toast.
const TOAST_WIDTH: usize = 64;

impl Ui {
    /// Draws a frame.
    pub fn draw(&mut self, frame: &mut Frame<'_>) {
        self.dirty = false;
        let area = frame.area();
        frame.buffer_mut().set_style(area, self.shared.theme[Slot::Background]);
        if area.width < LEAST.0 || area.height < LEAST.1 {
            draw_too_small(frame, area, &self.shared.theme);
            return;
        }
        let [body, footer] = split_footer(area);
        let first = self.open.iter().rposition(|o| !o.screen.view().is_overlay()).unwrap_or(0);
        for place in first..self.open.len() {
            let cx = self.shared.cx();
            self.open[place].screen.view_mut().draw(frame, body, &cx);
        }
        let top = self.open[self.top()].screen.view();
        let cx = self.shared.cx();
        draw_footer(frame, footer, top, &cx);
        draw_toasts(frame, body, &self.toasts, &self.shared.theme);
        self.tick_at =
            self.open[first..].iter().filter_map(|o| o.screen.view().tick(&cx)).min().map(|after| cx.now + after);
    }
}

fn split_footer(area: Rect) -> [Rect; 2] {
    let footer = Rect { y: area.bottom() - 1, height: 1, ..area };
    [Rect { height: area.height - 1, ..area }, footer]
}

fn draw_too_small(frame: &mut Frame<'_>, area: Rect, theme: &Theme) {
    let (width, height) = LEAST;
    let words =
        format!("This needs at least {width}×{height} characters; the terminal has {}×{}.", area.width, area.height);
    let lines: Vec<Line> = wrap::wrap(&words, usize::from(area.width), 10).into_iter().map(Line::raw).collect();
    Paragraph::new(lines).style(theme[Slot::Text]).render(area, frame.buffer_mut());
}

/// The footer: the screen's own words at the left, then as many hints as fit; help is always last.
fn draw_footer(frame: &mut Frame<'_>, area: Rect, view: &dyn View, cx: &Cx<'_>) {
    let theme = cx.theme;
    let status = view.status(cx).unwrap_or_default();
    let room = usize::from(area.width);
    let mut spans = vec![Span::raw(" ")];
    let status_width = status.width();
    let hints = hint_spans(view, cx);
    let help = cx
        .keymap
        .binding(view.layer(), Action::Help)
        .map(|b| hint(b.keys_label().split(' ').next().unwrap_or("?"), &b.short, theme));
    let help_width = help.as_ref().map_or(0, |(_, width)| width + 2);
    let shows_help = !view.takes_text();
    let mut used = 1;
    // The status goes first unless it would leave no room for the most important hints.
    let least = hints.iter().take(LEAST_HINTS).map(|(_, width)| width + 2).sum::<usize>() + help_width;
    if status_width > 0 && 1 + status_width + 2 + least <= room {
        spans.extend(status.spans);
        spans.push(Span::raw("   "));
        used += status_width + 3;
    }
    let reserved = if shows_help { help_width } else { 0 };
    for (parts, width) in hints {
        if used + width + reserved > room {
            break;
        }
        spans.extend(parts);
        spans.push(Span::raw("  "));
        used += width + 2;
    }
    if let (true, Some((parts, _))) = (shows_help, help) {
        spans.extend(parts);
    }
    frame.buffer_mut().set_line(area.x, area.y, &Line::from(spans), area.width);
}

fn hint_spans(view: &dyn View, cx: &Cx<'_>) -> Vec<(Vec<Span<'static>>, usize)> {
    let layer = view.layer();
    let spans = |Hint { action, word }: Hint| {
        let binding = cx.keymap.binding(layer, action)?;
        let key = binding.keys.first()?.to_string();
        Some(hint(&key, word.unwrap_or(&binding.short), cx.theme))
    };
    view.hints(cx).into_iter().filter(|h| h.action != Action::Help).filter_map(spans).collect()
}

fn hint(key: &str, word: &str, theme: &Theme) -> (Vec<Span<'static>>, usize) {
    let width = text::width(key) + 1 + text::width(word);
    (
        vec![Span::styled(key.to_owned(), theme[Slot::Key]), Span::styled(format!(" {word}"), theme[Slot::KeyText])],
        width,
    )
}

fn draw_toasts(frame: &mut Frame<'_>, area: Rect, toasts: &[Toast], theme: &Theme) {
    let mut bottom = area.bottom();
    for toast in toasts.iter().rev() {
        let width = TOAST_WIDTH.min(usize::from(area.width).saturating_sub(6));
        let (slot, glyph) = match toast.level {
            Level::Info => (Slot::Info, Glyph::Done),
            Level::Warning => (Slot::Warning, Glyph::Warning),
            Level::Error => (Slot::Error, Glyph::Failed),
        };
        let safe = crate::stdx::text::sanitize(&toast.text);
        let mut lines: Vec<Line> = Vec::new();
        for (n, piece) in wrap::wrap(&safe, width, 5).into_iter().enumerate() {
            let mark = if n == 0 { theme.glyph(glyph) } else { " " };
            lines.push(Line::from(vec![Span::styled(format!("{mark} "), theme[slot]), Span::raw(piece)]));
        }
        let widest = lines.iter().map(Line::width).max().unwrap_or(0) as u16;
        let height = lines.len() as u16 + 2;
        if bottom < area.y + height {
            return;
        }
        let place = Rect {
            x: area.right().saturating_sub(widest + 5),
            y: bottom - height,
            width: (widest + 4).min(area.width),
            height,
        };
        bottom = place.y;
        Clear.render(place, frame.buffer_mut());
        frame.buffer_mut().set_style(place, theme[Slot::Dialog]);
        let block = Block::bordered()
            .border_set(theme.borders())
            .border_style(theme[slot])
            .padding(ratatui::widgets::Padding::horizontal(1));
        Paragraph::new(lines).block(block).render(place, frame.buffer_mut());
    }
}
