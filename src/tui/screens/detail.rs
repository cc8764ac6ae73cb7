//! One thing in full: a goal, a call, a message, a verdict, a file. Scrolls, searches, wraps,
//! copies, hands to the person's editor. Lays out only the lines that are visible.

pub mod content;

use ratatui::Frame;
use ratatui::crossterm::event::{KeyCode, KeyEvent, MouseEventKind};
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};
use ratatui::widgets::{Block, Widget};

pub use self::content::Look;
use self::content::text_of;
use self::content::{Content, ContentRows};
use crate::events::problem::Problem;
use crate::events::query::Query;
use crate::ids::SessionId;
use crate::stdx::text::sanitize_line;
use crate::tui::action::{Action, Layer};
use crate::tui::panes::viewport::{self, Rows, Viewport};
use crate::tui::screen::{Cx, Effect, Effects, Handled, Hint, Input, View, hints};
use crate::tui::theme::{Glyph, Slot};
use crate::tui::widgets::text;

/// What is shown in full.
#[derive(Clone, Debug, PartialEq)]
pub struct Source {
    /// What to call it.
    pub title: String,
    /// Its parts, switched through with a key; at least one.
    pub parts: Vec<Part>,
}

/// A part of it.
#[derive(Clone, Debug, PartialEq)]
pub struct Part {
    /// What to call it.
    pub name: String,
    /// How it is shown.
    pub look: Look,
    /// What it is.
    pub body: Body,
}

/// What a part is.
#[derive(Clone, Debug, PartialEq)]
pub enum Body {
    /// A text that is there already.
    Text(String),
    /// What a query answers.
    Ask(Query),
}

impl Source {
    /// A single text.
    pub fn text(title: impl Into<String>, look: Look, text: impl Into<String>) -> Self {
        let part = Part { name: "text".to_owned(), look, body: Body::Text(text.into()) };
        Self { title: title.into(), parts: vec![part] }
    }
}

enum Loaded {
    Asked,
    Failed(Problem),
    Here { raw: String, content: Content },
}

/// The detail view.
pub struct Detail {
    source: Source,
    session: Option<SessionId>,
    part: usize,
    loaded: Vec<Loaded>,
    viewport: Viewport,
    wrap: bool,
    /// First column shown when lines are not wrapped.
    column: usize,
    search: String,
    typing: bool,
    matches: Vec<usize>,
}

impl Detail {
    /// Opens it.
    pub fn new(session: Option<SessionId>, source: Source) -> Self {
        let loaded = source.parts.iter().map(|part| load(&part.body, part)).collect();
        Self {
            source,
            session,
            part: 0,
            loaded,
            viewport: Viewport::at_start(),
            wrap: true,
            column: 0,
            search: String::new(),
            typing: false,
            matches: Vec::new(),
        }
    }

    fn ask(&self, out: &mut Effects) {
        if let (Some(Loaded::Asked), Some(Part { body: Body::Ask(query), .. })) =
            (self.loaded.get(self.part), self.source.parts.get(self.part))
        {
            out.ask(query.clone());
        }
    }

    fn with_rows(&mut self, cx: &Cx<'_>, act: impl FnOnce(&mut Viewport, &ContentRows<'_>)) {
        if let Some(Loaded::Here { content, .. }) = self.loaded.get(self.part) {
            let rows =
                ContentRows { content, theme: cx.theme, wrap: self.wrap, column: self.column, query: &self.search };
            act(&mut self.viewport, &rows);
        }
    }

    fn act(&mut self, action: Action, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match action {
            Action::Up => self.with_rows(cx, |viewport, rows| viewport.scroll(rows, -1)),
            Action::Down => self.with_rows(cx, |viewport, rows| viewport.scroll(rows, 1)),
            Action::PageUp => self.with_rows(cx, |viewport, rows| viewport.page(rows, -1)),
            Action::PageDown => self.with_rows(cx, |viewport, rows| viewport.page(rows, 1)),
            Action::Top => self.viewport.start(),
            Action::Bottom => self.viewport.end(),
            Action::Left => self.column = self.column.saturating_sub(8),
            Action::Right if !self.wrap => self.column += 8,
            Action::Right => {}
            Action::Wrap => {
                self.wrap = !self.wrap;
                self.column = 0;
            }
            Action::Switch if self.source.parts.len() > 1 => {
                self.part = (self.part + 1) % self.source.parts.len();
                self.viewport = Viewport::at_start();
                self.find();
                self.ask(out);
            }
            Action::Search => {
                self.typing = true;
                self.search.clear();
                self.matches.clear();
            }
            Action::NextMatch => self.next_match(true, out),
            Action::PreviousMatch => self.next_match(false, out),
            Action::Copy => match self.loaded.get(self.part) {
                Some(Loaded::Here { raw, .. }) => out.push(Effect::Copy(raw.clone())),
                Some(Loaded::Asked | Loaded::Failed(_)) | None => out.warn("there is nothing to copy yet"),
            },
            Action::Editor => match (self.loaded.get(self.part), self.source.parts.get(self.part)) {
                (Some(Loaded::Here { raw, .. }), Some(part)) => {
                    out.push(Effect::Edit { text: raw.clone(), suffix: part.look.suffix() });
                }
                _ => out.warn("there is nothing to open yet"),
            },
            Action::Back if self.typing || !self.search.is_empty() => {
                self.typing = false;
                self.search.clear();
                self.matches.clear();
            }
            _ => return Handled::No,
        }
        Handled::Yes
    }

    fn type_key(&mut self, key: KeyEvent, out: &mut Effects) {
        match key.code {
            KeyCode::Enter => {
                self.typing = false;
                if self.matches.is_empty() && !self.search.is_empty() {
                    out.warn(format!("`{}` is not there", self.search));
                }
            }
            KeyCode::Backspace => {
                self.search.pop();
                self.find();
            }
            KeyCode::Char(c) => {
                self.search.extend(c.to_lowercase());
                self.find();
                self.next_match_from_here();
            }
            _ => {}
        }
    }

    fn find(&mut self) {
        self.matches = match self.loaded.get(self.part) {
            Some(Loaded::Here { content, .. }) if !self.search.is_empty() => content.find(&self.search),
            Some(Loaded::Here { .. } | Loaded::Asked | Loaded::Failed(_)) | None => Vec::new(),
        };
    }

    fn next_match_from_here(&mut self) {
        let here = self.viewport.cursor();
        if let Some(row) = self.matches.iter().copied().find(|row| *row >= here).or(self.matches.first().copied()) {
            self.viewport.go_to(row);
        }
    }

    fn next_match(&mut self, forward: bool, out: &mut Effects) {
        let here = self.viewport.cursor();
        let next = if forward {
            self.matches.iter().find(|row| **row > here).or(self.matches.first())
        } else {
            self.matches.iter().rev().find(|row| **row < here).or(self.matches.last())
        };
        match next {
            Some(&row) => self.viewport.go_to(row),
            None => out.say("search first, then go through what was found"),
        }
    }
}

fn load(body: &Body, part: &Part) -> Loaded {
    match body {
        Body::Text(text) => Loaded::Here { raw: text.clone(), content: Content::new(text, &part.look) },
        Body::Ask(_) => Loaded::Asked,
    }
}

impl View for Detail {
    fn layer(&self) -> Layer {
        Layer::Detail
    }

    fn takes_text(&self) -> bool {
        self.typing
    }

    fn session(&self) -> Option<&SessionId> {
        self.session.as_ref()
    }

    fn shown(&mut self, _cx: &Cx<'_>, out: &mut Effects) {
        self.ask(out);
    }

    fn update(&mut self, input: Input, cx: &Cx<'_>, out: &mut Effects) -> Handled {
        match input {
            Input::Action(action) => return self.act(action, cx, out),
            Input::Key(key) if self.typing => self.type_key(key, out),
            Input::Paste(text) if self.typing => {
                self.search.push_str(&sanitize_line(&text).to_lowercase());
                self.find();
            }
            Input::Mouse(mouse) => match mouse.kind {
                MouseEventKind::ScrollUp => self.with_rows(cx, |viewport, rows| viewport.scroll(rows, -3)),
                MouseEventKind::ScrollDown => self.with_rows(cx, |viewport, rows| viewport.scroll(rows, 3)),
                _ => return Handled::No,
            },
            Input::Reply { query, result } => {
                let place = self.source.parts.iter().position(|p| p.body == Body::Ask(query.clone()));
                let Some(place) = place else { return Handled::No };
                self.loaded[place] = match result {
                    Ok(reply) => {
                        let raw = text_of(reply);
                        let content = Content::new(&raw, &self.source.parts[place].look);
                        Loaded::Here { raw, content }
                    }
                    Err(problem) => Loaded::Failed(problem),
                };
                self.find();
            }
            // What was saved in the editor is the person's own copy.
            Input::Edited(Ok(_)) => {}
            Input::Edited(Err(problem)) => out.problem(&problem),
            Input::Key(_) | Input::Paste(_) | Input::Done { .. } | Input::Tick => return Handled::No,
        }
        Handled::Yes
    }

    fn draw(&mut self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let theme = cx.theme;
        let mut title = vec![Span::raw(" ")];
        let room = usize::from(area.width).saturating_sub(6);
        title.push(Span::styled(
            text::cut(&sanitize_line(&self.source.title), room).into_owned(),
            theme[Slot::TitleFocus],
        ));
        title.push(Span::raw(" "));
        let mut block = Block::bordered()
            .border_set(theme.borders())
            .border_style(theme[Slot::BorderFocus])
            .title(Line::from(title));
        if self.source.parts.len() > 1 {
            block = block.title_bottom(self.part_names(cx));
        }
        let inner = block.inner(area);
        block.render(area, frame.buffer_mut());
        let (body, line) = content::split_line(inner, self.typing || !self.search.is_empty());
        match self.loaded.get_mut(self.part) {
            Some(Loaded::Here { content, .. }) => {
                content.fit(usize::from(body.width.saturating_sub(2)), theme);
                let rows = ContentRows { content, theme, wrap: self.wrap, column: self.column, query: &self.search };
                let is_current = |row| self.matches.binary_search(&row).is_ok();
                let selected = is_current(self.viewport.cursor()).then_some(theme[Slot::Selected]);
                let look = viewport::Look {
                    selected,
                    cursor: theme.glyph(Glyph::Cursor),
                    cursor_style: theme[Slot::BorderFocus],
                    thumb: theme.glyph(Glyph::Thumb),
                    thumb_style: theme[Slot::BorderFocus],
                };
                if rows.len() == 0 {
                    let words = Span::styled(" it is empty", theme[Slot::TextDim]);
                    frame.buffer_mut().set_span(body.x, body.y, &words, body.width);
                }
                self.viewport.draw(frame.buffer_mut(), viewport::onto_frame(body), &rows, &look);
            }
            Some(Loaded::Failed(problem)) => {
                let mark = vec![Span::styled(format!(" {} ", theme.glyph(Glyph::Failed)), theme[Slot::Error])];
                let words = problem.to_string();
                let lines = crate::tui::panes::paragraph(mark, &words, theme[Slot::Text], usize::from(body.width), 20);
                for (y, line) in (body.y..body.bottom()).zip(&lines) {
                    frame.buffer_mut().set_line(body.x, y, line, body.width);
                }
            }
            Some(Loaded::Asked) | None => {
                let words = Span::styled(" reading …", theme[Slot::TextDim]);
                frame.buffer_mut().set_span(body.x, body.y, &words, body.width);
            }
        }
        if let Some(line) = line {
            self.draw_search(frame, line, cx);
        }
    }

    fn hints(&self, _cx: &Cx<'_>) -> Vec<Hint> {
        if self.typing {
            return vec![Hint { action: Action::Back, word: Some("end search") }];
        }
        let mut all = vec![Hint::from(Action::Back)];
        if !self.matches.is_empty() {
            all.extend(hints(&[Action::NextMatch, Action::PreviousMatch]));
        }
        if self.source.parts.len() > 1 {
            all.push(Action::Switch.into());
        }
        all.extend(hints(&[Action::Search, Action::Wrap, Action::Copy, Action::Editor]));
        all
    }
}

impl Detail {
    fn part_names(&self, cx: &Cx<'_>) -> Line<'static> {
        let mut spans = vec![Span::raw(" ")];
        for (n, part) in self.source.parts.iter().enumerate() {
            let slot = if n == self.part { Slot::TitleFocus } else { Slot::TextDim };
            let name = sanitize_line(&part.name);
            let name = if n == self.part { format!("[{name}]") } else { name };
            spans.push(Span::styled(format!("{name} "), cx.theme[slot]));
        }
        Line::from(spans)
    }

    fn draw_search(&self, frame: &mut Frame<'_>, area: Rect, cx: &Cx<'_>) {
        let count = match (self.search.is_empty(), self.matches.len()) {
            (true, _) => String::new(),
            (false, 0) => "  nothing found".to_owned(),
            (false, n) => {
                let here = self.matches.partition_point(|row| *row < self.viewport.cursor()) + 1;
                format!("  {} of {n}", here.min(n))
            }
        };
        content::draw_search_line(frame, area, &self.search, &count, self.typing, cx);
    }
}
