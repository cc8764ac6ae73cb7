//! What the detail view shows, as rows that are laid out only when they are visible.

use std::ops::Range;

use ratatui::Frame;
use ratatui::layout::Rect;
use ratatui::text::{Line, Span};

use crate::events::query::Reply;
use crate::stdx::text::sanitize;
use crate::tui::panes::activity::highlight;
use crate::tui::panes::code;
use crate::tui::panes::deliverable::markdown_look;
use crate::tui::panes::viewport::{Laid, Rows};
use crate::tui::screen::Cx;
use crate::tui::theme::{Slot, Theme};
use crate::tui::widgets::diff::{self, DiffLine, DiffLook};
use crate::tui::widgets::{format, markdown, text, wrap};

/// Longest row; longer lines become several, so that no single one costs much.
const ROW_BYTES: usize = 4 * 1024;

/// How a text is shown.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Look {
    /// As it is.
    Plain,
    /// Markdown, rendered.
    Markdown,
    /// A unified diff.
    Diff,
    /// Code of a file with this ending.
    Code(String),
}

impl Look {
    /// The look that fits a path.
    pub fn of_path(path: &str) -> Self {
        match code::extension(path) {
            "md" | "markdown" => Self::Markdown,
            "diff" | "patch" => Self::Diff,
            extension if code::is_code(extension) => Self::Code(extension.to_owned()),
            _ => Self::Plain,
        }
    }

    /// A file ending, for the person's editor.
    pub fn suffix(&self) -> &'static str {
        match self {
            Self::Plain => ".txt",
            Self::Markdown => ".md",
            Self::Diff => ".diff",
            Self::Code(extension) => match extension.as_str() {
                "rs" => ".rs",
                "py" => ".py",
                "js" => ".js",
                "ts" => ".ts",
                "json" => ".json",
                "html" => ".html",
                "toml" => ".toml",
                "sh" => ".sh",
                _ => ".txt",
            },
        }
    }
}

/// A text, ready to be laid out.
pub enum Content {
    Raw { text: String, rows: Vec<Range<usize>>, extension: Option<String> },
    Markdown { text: String, width: usize, theme: String, lines: Vec<Line<'static>> },
    Diff(Vec<DiffLine>),
}

impl Content {
    pub fn new(text: &str, look: &Look) -> Self {
        match look {
            Look::Plain => Self::raw(text, None),
            Look::Code(extension) => Self::raw(text, Some(extension.clone())),
            Look::Diff => Self::Diff(diff::parse(text)),
            Look::Markdown => {
                Self::Markdown { text: text.to_owned(), width: 0, theme: String::new(), lines: Vec::new() }
            }
        }
    }

    fn raw(text: &str, extension: Option<String>) -> Self {
        let text = sanitize(text);
        let mut rows = Vec::new();
        let mut start = 0;
        for line in text.split('\n') {
            let end = start + line.len();
            let mut at = start;
            while end - at > ROW_BYTES {
                let mut cut = at + ROW_BYTES;
                while !text.is_char_boundary(cut) {
                    cut -= 1;
                }
                rows.push(at..cut);
                at = cut;
            }
            rows.push(at..end);
            start = end + 1;
        }
        if text.ends_with('\n') || text.is_empty() {
            rows.pop();
        }
        Self::Raw { text, rows, extension }
    }

    /// Prepares what depends on the width.
    pub fn fit(&mut self, to: usize, look: &Theme) {
        if let Self::Markdown { text, width, theme, lines } = self
            && (*width != to || *theme != look.name)
        {
            *lines = markdown::render(text, to, &markdown_look(look));
            *width = to;
            theme.clone_from(&look.name);
        }
    }

    /// The rows that hold `query` (in lower case).
    pub fn find(&self, query: &str) -> Vec<usize> {
        let has = |text: &str| text.to_lowercase().contains(query);
        match self {
            Self::Raw { text, rows, .. } => (0..rows.len()).filter(|row| has(&text[rows[*row].clone()])).collect(),
            Self::Markdown { lines, .. } => (0..lines.len()).filter(|row| has(&lines[*row].to_string())).collect(),
            Self::Diff(lines) => (0..lines.len()).filter(|row| has(&lines[*row].text)).collect(),
        }
    }
}

/// The rows of a content as they are shown now.
pub struct ContentRows<'a> {
    pub content: &'a Content,
    pub theme: &'a Theme,
    pub wrap: bool,
    pub column: usize,
    pub query: &'a str,
}

impl Rows for ContentRows<'_> {
    fn len(&self) -> usize {
        match self.content {
            Content::Raw { rows, .. } => rows.len(),
            Content::Markdown { lines, .. } => lines.len(),
            Content::Diff(lines) => lines.len(),
        }
    }

    fn lay(&self, row: usize, width: usize, _follow: bool) -> Laid {
        let theme = self.theme;
        let (line, indent) = match self.content {
            Content::Raw { text, rows, extension } => {
                let words = &text[rows[row].clone()];
                let line = match extension {
                    Some(extension) => code::line(words, extension, theme),
                    None => Line::styled(words.to_owned(), theme[Slot::Text]),
                };
                (line, 0)
            }
            Content::Markdown { lines, .. } => (lines[row].clone(), 0),
            Content::Diff(lines) => {
                let look = DiffLook {
                    added: theme[Slot::DiffAdd],
                    removed: theme[Slot::DiffRemove],
                    same: theme[Slot::DiffContext],
                    hunk: theme[Slot::DiffHunk],
                    dim: theme[Slot::TextDim],
                };
                (lines[row].styled(&look, width), if width >= 50 { 11 } else { 1 })
            }
        };
        let mut lines = if self.wrap {
            wrap::wrap_line(&line, width, indent)
        } else {
            vec![wrap::cut_line(from_column(line, self.column), width)]
        };
        if lines.is_empty() {
            lines.push(Line::default());
        }
        if !self.query.is_empty() {
            lines.iter_mut().for_each(|line| highlight(line, self.query, theme[Slot::Match]));
        }
        Laid::plain(lines)
    }
}

/// A line without its first `column` cells.
fn from_column(mut line: Line<'static>, column: usize) -> Line<'static> {
    let mut left = column;
    for span in &mut line.spans {
        if left == 0 {
            break;
        }
        let (head, cells) = text::prefix(&span.content, left);
        let at = head.len();
        left -= cells.min(left);
        // A wide character at the edge goes as a whole.
        let is_rest = at < span.content.len();
        span.content = span.content[at..].to_owned().into();
        if is_rest {
            break;
        }
    }
    line
}

/// A reply as one text.
pub fn text_of(reply: Reply) -> String {
    match reply {
        Reply::Text(reply) => match reply.note {
            Some(note) => format!("{}\n\n[{note}; {} in all]", reply.text, format::bytes(reply.bytes)),
            None => reply.text,
        },
        Reply::Call(call) => {
            let note = call.output.note.map(|note| format!("; {note}")).unwrap_or_default();
            let size = format::bytes(call.output.bytes);
            format!("{} {}\n\n── output, {size}{note} ──\n\n{}", call.tool, call.arguments, call.output.text)
        }
        Reply::Diff(files) if files.is_empty() => "nothing differs".to_owned(),
        Reply::Diff(files) => {
            let parts: Vec<String> = files
                .into_iter()
                .map(|file| match file.note {
                    Some(note) => format!("{}: {note}\n{}", file.change.path, file.unified),
                    None => file.unified,
                })
                .collect();
            parts.join("\n")
        }
        Reply::Names(names) => names.join("\n"),
        // None of these answers a query of the detail view.
        Reply::Sessions(_)
        | Reply::Session(_)
        | Reply::Found(_)
        | Reply::Events(_)
        | Reply::Timeline(_)
        | Reply::Rewind(_)
        | Reply::Apply(_)
        | Reply::Launch(_) => String::new(),
    }
}

/// Takes the last row off for the search line.
pub fn split_line(area: Rect, wanted: bool) -> (Rect, Option<Rect>) {
    if !wanted || area.height < 2 {
        return (area, None);
    }
    let line = Rect { y: area.bottom() - 1, height: 1, ..area };
    (Rect { height: area.height - 1, ..area }, Some(line))
}

/// Draws `/query  3 of 12`, with the cursor while it is typed.
pub fn draw_search_line(frame: &mut Frame<'_>, area: Rect, query: &str, count: &str, typing: bool, cx: &Cx<'_>) {
    let theme = cx.theme;
    let room = usize::from(area.width).saturating_sub(text::width(count) + 3);
    let (shown, _) = text::suffix(query, room);
    let shown = shown.to_owned();
    let x = area.x + 1 + u16::try_from(text::width(&shown)).unwrap_or(0);
    let line = Line::from(vec![
        Span::styled("/", theme[Slot::Key]),
        Span::styled(shown, theme[Slot::Input]),
        Span::styled(count.to_owned(), theme[Slot::TextDim]),
    ]);
    frame.buffer_mut().set_line(area.x, area.y, &line, area.width);
    if typing && x < area.right() {
        frame.set_cursor_position((x, area.y));
    }
}
