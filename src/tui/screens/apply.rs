//! Bringing a deliverable home: where it goes, what changes there, what stands in the way.

use ratatui::Frame;
use ratatui::crossterm::event::MouseEventKind;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::command::Command;
use crate::events::problem::Problem;
use crate::events::query::{ApplyPreview, Query, Reply};
use crate::ids::SessionId;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, Screen, View, hints};
use crate::tui::screens::confirm::Confirm;
use crate::tui::screens::filediffs;
use crate::tui::screens::look::{self, Load};
use crate::tui::screens::reader::Reader;
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::format::count;

/// What applying would do.
pub struct Apply {
    session: SessionId,
    /// Which cycle; the newest with a deliverable when none is named.
    cycle: Option<u32>,
    preview: Load<Box<ApplyPreview>>,
    reader: Reader,
    stale: bool,
    sending: bool,
}

impl Apply {
    /// The deliverable of a cycle, or of the newest one that has one.
    pub fn new(session: SessionId, cycle: Option<u32>) -> Self {
        Self { session, cycle, preview: Load::Waiting, reader: Reader::default(), stale: true, sending: false }
    }

    fn command(&self, force: bool) -> Command {
        Command::Apply { session: self.session.clone(), cycle: self.cycle, to: None, force }
    }

    fn confirm(&mut self, out: &mut Effects) {
        if self.sending {
            return;
        }
        match &self.preview {
            Load::Waiting => out.say("wait until it is known what this would do"),
            Load::Failed(problem) => out.problem(problem),
            Load::Ready(preview) => match &preview.refused {
                Some(why) => {
                    let confirm = Confirm::apply_anyway(why, self.command(true));
                    out.open(Screen::Confirm(Box::new(confirm)));
                }
                None => {
                    self.sending = true;
                    out.command(self.command(false));
                }
            },
        }
    }

    fn lines(preview: &ApplyPreview, cx: &Cx<'_>, width: usize) -> Vec<Line<'static>> {
        let theme = cx.theme;
        let (glyph, word, style) = look::verdict(theme, preview.verdict);
        let label = |text: &'static str| Span::styled(text, theme[Slot::TextDim]);
        let mut lines = vec![
            Line::from(vec![
                label("from  "),
                Span::styled(format!("cycle {}  ", preview.cycle), theme[Slot::TextStrong]),
                Span::styled(format!("{glyph} {word}"), style),
            ]),
            Line::from(vec![label("to    "), Span::styled(sanitize_line(&preview.target), theme[Slot::TextLink])]),
        ];
        if let Some(why) = &preview.refused {
            let mark = theme.glyph(Glyph::Warning);
            lines.push(Line::styled(format!("{mark} {}", sanitize_line(why)), theme[Slot::Warning]));
        }
        if !preview.conflicts.is_empty() {
            lines.push(Line::default());
            lines.push(look::heading("Changed there since; never overwritten", theme));
            let mark = theme.glyph(Glyph::Failed);
            let conflicts = preview.conflicts.iter();
            lines.extend(
                conflicts.map(|path| Line::styled(format!("{mark} {}", sanitize_line(path)), theme[Slot::Error])),
            );
        }
        lines.push(Line::default());
        if preview.files_total == 0 {
            lines.push(Line::styled("no file differs; there is nothing to bring home", theme[Slot::TextDim]));
        } else {
            lines.push(look::heading(&count(preview.files_total, "file"), theme));
            lines.extend(filediffs::lines(&preview.files, preview.files_total, theme, width));
        }
        lines
    }
}

impl View for Apply {
    fn layer(&self) -> Layer {
        Layer::Apply
    }

    fn session(&self) -> Option<&SessionId> {
        Some(&self.session)
    }

    fn shown(&mut self, _cx: &Cx<'_>, out: &mut Effects) {
        out.ask(Query::ApplyPreview { session: self.session.clone(), cycle: self.cycle, to: None });
    }

    fn update(&mut self, input: Input, _cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(Action::Confirm) => self.confirm(out),
            Input::Action(Action::Copy) => {
                if let Load::Ready(preview) = &self.preview {
                    out.push(Effect::Copy(preview.target.clone()));
                }
            }
            Input::Action(Action::Back) => out.close(),
            Input::Action(action) => {
                if !self.reader.act(action) {
                    return Handled::No;
                }
            }
            Input::Mouse(event) => match event.kind {
                MouseEventKind::ScrollUp => self.reader.scroll.by(-3),
                MouseEventKind::ScrollDown => self.reader.scroll.by(3),
                _ => return Handled::No,
            },
            Input::Reply { query: Query::ApplyPreview { .. }, result } => {
                self.stale = true;
                self.preview = match result {
                    Ok(Reply::Apply(preview)) => Load::Ready(preview),
                    Ok(_) => return Handled::No,
                    Err(problem) => Load::Failed(problem),
                };
            }
            Input::Done { command: Command::Apply { .. }, result } => return self.done(result, out),
            Input::Key(_)
            | Input::Paste(_)
            | Input::Reply { .. }
            | Input::Done { .. }
            | Input::Edited(_)
            | Input::Tick => {
                return Handled::No;
            }
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        look::ground(frame, area, cx.theme);
        let title = if self.sending { "Apply · bringing it home …" } else { "Apply" };
        let inner = look::inset(look::panel(frame, area, title, true, cx.theme));
        match &self.preview {
            Load::Waiting => look::notice(frame, inner, "comparing the deliverable with where it goes …", cx.theme),
            Load::Failed(problem) => look::problem(frame, inner, problem, cx.theme),
            Load::Ready(preview) => {
                if self.stale {
                    self.reader.set(Self::lines(preview, cx, usize::from(inner.width)));
                    self.stale = false;
                }
                self.reader.draw(frame, inner, cx.theme);
            }
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        let mut list = Vec::new();
        if let Load::Ready(preview) = &self.preview {
            let word = if preview.refused.is_some() { "apply anyway (asks)" } else { "apply" };
            list.push(Hint { action: Action::Confirm, word: Some(word) });
        }
        list.extend(hints(&[Action::Down, Action::Copy, Action::Back]));
        list
    }
}

impl Apply {
    fn done(&mut self, result: Result<crate::events::command::Ack, Problem>, out: &mut Effects) -> Handled {
        self.sending = false;
        match result {
            Ok(crate::events::command::Ack::Done) => {
                out.say("applied");
                out.close();
                Handled::Yes
            }
            // What it says is shown by whoever shows toasts.
            Ok(_) => {
                out.close();
                Handled::No
            }
            Err(problem) => {
                self.preview = Load::Failed(problem);
                Handled::Yes
            }
        }
    }
}

#[cfg(test)]
mod tests;
