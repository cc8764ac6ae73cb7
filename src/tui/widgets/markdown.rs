//! Markdown as styled rows of a given width: what a model writes, made readable. Bounded in what
//! it reads and makes. Does not follow links or load images.

mod table;

use pulldown_cmark::{CodeBlockKind, Event, HeadingLevel, Options, Parser, Tag, TagEnd};
use ratatui::style::{Modifier, Style};
use ratatui::text::{Line, Span};

use self::table::Table;
use super::text::width;
use super::wrap::wrap_line;
use crate::stdx::bounded::prefix;
use crate::stdx::text::sanitize;

/// Most bytes that are read.
const MOST_BYTES: usize = 512 * 1024;
/// Most rows that are made.
const MOST_ROWS: usize = 20_000;

/// How Markdown looks.
#[derive(Clone, Copy, Debug, Default)]
pub struct MarkdownLook {
    /// Running text.
    pub text: Style,
    /// Headings.
    pub heading: Style,
    /// Code, within a line or as a block.
    pub code: Style,
    /// Link targets, quotes, rules, list marks.
    pub dim: Style,
    /// Link texts.
    pub link: Style,
    /// Whether only ASCII is drawn around the text.
    pub ascii: bool,
}

/// Makes rows of at most `width` cells.
pub fn render(markdown: &str, width: usize, look: &MarkdownLook) -> Vec<Line<'static>> {
    let whole = markdown.len();
    let text = sanitize(prefix(markdown, MOST_BYTES));
    let mut writer = Writer::new(width.max(1), look);
    let options = Options::ENABLE_TABLES | Options::ENABLE_STRIKETHROUGH | Options::ENABLE_TASKLISTS;
    for event in Parser::new_ext(&text, options) {
        writer.event(event);
        if writer.out.len() >= MOST_ROWS {
            break;
        }
    }
    writer.finish();
    let cut = whole > MOST_BYTES || writer.out.len() > MOST_ROWS;
    writer.out.truncate(MOST_ROWS);
    if cut {
        writer.out.push(Line::styled("… the rest is not shown here", look.dim));
    }
    writer.out
}

struct Writer<'a> {
    look: &'a MarkdownLook,
    width: usize,
    out: Vec<Line<'static>>,
    /// The line being put together.
    spans: Vec<Span<'static>>,
    /// Styles of what is open, innermost last.
    styles: Vec<Style>,
    /// The next number of each open list; none for bullets.
    lists: Vec<Option<u64>>,
    /// How many quotes are open.
    quotes: usize,
    /// A mark to put before the next line of text.
    mark: Option<String>,
    /// Cells the mark of the current item takes, for what follows it.
    marks: Vec<usize>,
    /// A code block's text.
    code: Option<String>,
    /// Link targets that are open.
    links: Vec<String>,
    table: Option<Table>,
}

impl<'a> Writer<'a> {
    fn new(width: usize, look: &'a MarkdownLook) -> Self {
        Self {
            look,
            width,
            out: Vec::new(),
            spans: Vec::new(),
            styles: vec![look.text],
            lists: Vec::new(),
            quotes: 0,
            mark: None,
            marks: Vec::new(),
            code: None,
            links: Vec::new(),
            table: None,
        }
    }

    fn style(&self) -> Style {
        self.styles.last().copied().unwrap_or(self.look.text)
    }

    fn event(&mut self, event: Event<'_>) {
        match event {
            Event::Start(tag) => self.start(tag),
            Event::End(tag) => self.end(tag),
            Event::Text(text) => self.text(&text, self.style()),
            Event::Code(code) => self.text(&code, self.style().patch(self.look.code)),
            Event::InlineMath(text) | Event::DisplayMath(text) | Event::InlineHtml(text) => {
                self.text(&text, self.style());
            }
            Event::Html(text) => {
                for line in text.lines() {
                    self.text(line, self.look.dim);
                    self.flush();
                }
            }
            Event::FootnoteReference(name) => self.text(&format!("[{name}]"), self.look.dim),
            Event::SoftBreak => self.text(" ", self.style()),
            Event::HardBreak => self.flush(),
            Event::Rule => {
                self.block();
                let line = if self.look.ascii { "-" } else { "─" };
                self.out.push(Line::styled(line.repeat(self.width.min(40)), self.look.dim));
            }
            Event::TaskListMarker(done) => self.text(if done { "[x] " } else { "[ ] " }, self.style()),
        }
    }

    fn start(&mut self, tag: Tag<'_>) {
        match tag {
            Tag::Paragraph | Tag::HtmlBlock | Tag::FootnoteDefinition(_) => self.block(),
            Tag::Heading { level, .. } => {
                self.block();
                let mut style = self.look.heading.add_modifier(Modifier::BOLD);
                if level == HeadingLevel::H1 {
                    style = style.add_modifier(Modifier::UNDERLINED);
                }
                self.styles.push(style);
            }
            Tag::BlockQuote(_) => {
                self.block();
                self.quotes += 1;
            }
            Tag::CodeBlock(kind) => {
                self.block();
                if let CodeBlockKind::Fenced(language) = kind
                    && !language.is_empty()
                {
                    self.text(&language, self.look.dim);
                    self.flush();
                }
                self.code = Some(String::new());
            }
            Tag::List(first) => {
                if self.lists.is_empty() {
                    self.block();
                } else {
                    self.flush();
                }
                self.lists.push(first);
            }
            Tag::Item => self.item(),
            Tag::Emphasis => self.push(Modifier::ITALIC),
            Tag::Strong => self.push(Modifier::BOLD),
            Tag::Strikethrough => self.push(Modifier::CROSSED_OUT),
            Tag::Link { dest_url, .. } | Tag::Image { dest_url, .. } => {
                self.links.push(dest_url.to_string());
                self.styles.push(self.style().patch(self.look.link));
            }
            Tag::Table(_) => {
                self.block();
                self.table = Some(Table::default());
            }
            Tag::TableHead | Tag::TableRow => {
                if let Some(table) = &mut self.table {
                    table.row();
                }
            }
            Tag::TableCell
            | Tag::DefinitionList
            | Tag::DefinitionListTitle
            | Tag::DefinitionListDefinition
            | Tag::Superscript
            | Tag::Subscript
            | Tag::MetadataBlock(_) => {}
        }
    }

    fn end(&mut self, tag: TagEnd) {
        match tag {
            TagEnd::Paragraph | TagEnd::HtmlBlock | TagEnd::FootnoteDefinition => self.flush(),
            TagEnd::Heading(_) => {
                self.flush();
                self.styles.pop();
            }
            TagEnd::BlockQuote(_) => {
                self.flush();
                self.quotes = self.quotes.saturating_sub(1);
            }
            TagEnd::CodeBlock => self.code_block(),
            TagEnd::List(_) => {
                self.flush();
                self.lists.pop();
            }
            TagEnd::Item => {
                self.flush();
                self.marks.pop();
                self.mark = None;
            }
            TagEnd::Emphasis | TagEnd::Strong | TagEnd::Strikethrough => {
                self.styles.pop();
            }
            TagEnd::Link | TagEnd::Image => self.link(),
            TagEnd::TableCell => {
                let cell: String = self.spans.drain(..).map(|span| span.content.into_owned()).collect();
                if let Some(table) = &mut self.table {
                    table.cell(cell);
                }
            }
            TagEnd::Table => {
                if let Some(table) = self.table.take() {
                    self.out.extend(table.lines(self.width, self.look));
                }
            }
            TagEnd::TableHead
            | TagEnd::TableRow
            | TagEnd::DefinitionList
            | TagEnd::DefinitionListTitle
            | TagEnd::DefinitionListDefinition
            | TagEnd::Superscript
            | TagEnd::Subscript
            | TagEnd::MetadataBlock(_) => {}
        }
    }

    fn push(&mut self, modifier: Modifier) {
        self.styles.push(self.style().add_modifier(modifier));
    }

    fn item(&mut self) {
        self.flush();
        let mark = match self.lists.last_mut() {
            Some(Some(number)) => {
                let mark = format!("{number}. ");
                *number = number.saturating_add(1);
                mark
            }
            Some(None) | None => if self.look.ascii { "- " } else { "• " }.to_owned(),
        };
        self.marks.push(width(&mark));
        self.mark = Some(mark);
    }

    /// Shows where a link leads, unless its text says so.
    fn link(&mut self) {
        self.styles.pop();
        let Some(target) = self.links.pop() else { return };
        let said = self.spans.iter().any(|span| span.content.contains(&target));
        if !target.is_empty() && !said {
            self.text(&format!(" ({target})"), self.look.dim);
        }
    }

    fn text(&mut self, text: &str, style: Style) {
        if let Some(code) = &mut self.code {
            code.push_str(text);
            return;
        }
        let mut lines = text.split('\n');
        if let Some(first) = lines.next() {
            self.spans.push(Span::styled(first.to_owned(), style));
        }
        for line in lines {
            self.flush();
            self.spans.push(Span::styled(line.to_owned(), style));
        }
    }

    /// Ends what stands and leaves an empty row before the next block, but not within a list.
    fn block(&mut self) {
        self.flush();
        if !self.out.is_empty() && self.marks.is_empty() && self.out.last().is_some_and(|line| line.width() > 0) {
            self.out.push(Line::default());
        }
    }

    fn code_block(&mut self) {
        let Some(code) = self.code.take() else { return };
        let (prefix, indent) = self.prefix();
        let bar = if self.look.ascii { "| " } else { "▏ " };
        for line in code.trim_end_matches('\n').split('\n').take(MOST_ROWS) {
            let mut spans = prefix.clone();
            spans.push(Span::styled(bar, self.look.dim));
            spans.push(Span::styled(line.to_owned(), self.look.code));
            self.out.extend(wrap_line(&Line::from(spans), self.width, indent + 2));
        }
    }

    /// What stands before a line: quote bars, then the indent of the list it is in.
    fn prefix(&self) -> (Vec<Span<'static>>, usize) {
        let quote = if self.look.ascii { "> " } else { "▎ " }.repeat(self.quotes.min(8));
        let indent = " ".repeat(self.marks.iter().sum::<usize>().min(self.width / 2));
        let cells = width(&quote) + indent.len();
        let mut spans = Vec::new();
        for (text, style) in [(quote, self.look.dim), (indent, self.look.text)] {
            if !text.is_empty() {
                spans.push(Span::styled(text, style));
            }
        }
        (spans, cells)
    }

    /// Breaks the line put together so far into rows.
    fn flush(&mut self) {
        if self.table.is_some() || (self.spans.is_empty() && self.mark.is_none()) {
            return;
        }
        let mark = self.mark.take();
        let own = if mark.is_some() { self.marks.pop() } else { None };
        let (mut spans, mut indent) = self.prefix();
        if let Some(cells) = own {
            self.marks.push(cells);
            indent += cells;
        }
        if let Some(mark) = mark {
            spans.push(Span::styled(mark, self.look.dim));
        }
        spans.append(&mut self.spans);
        self.out.extend(wrap_line(&Line::from(spans), self.width, indent));
    }

    fn finish(&mut self) {
        self.flush();
        self.code_block();
        while self.out.last().is_some_and(|line| line.width() == 0) {
            self.out.pop();
        }
    }
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;
    use unicode_segmentation::UnicodeSegmentation;

    use super::*;
    use crate::tui::widgets::text::tests::odd_text;

    #[track_caller]
    fn check(markdown: &str, width: usize, expected: &[&str]) {
        let look = MarkdownLook { ascii: true, ..MarkdownLook::default() };
        let rows: Vec<String> =
            render(markdown, width, &look).iter().map(|l| l.to_string().trim_end().to_owned()).collect();
        assert_eq!(rows, expected);
    }

    #[test]
    fn common_markdown_is_laid_out() {
        check("# Title\n\nSome *text* here.\nMore.", 40, &["Title", "", "Some text here. More."]);
        check("- one two three\n- b\n  - c\n\nend", 11, &["- one two", "  three", "- b", "  - c", "", "end"]);
        check("1. a\n2. b", 20, &["1. a", "2. b"]);
        check("- [x] done\n- [ ] open", 20, &["- [x] done", "- [ ] open"]);
        check("```rust\nfn x() {}\n\n    y\n```\n", 20, &["rust", "| fn x() {}", "|", "|     y"]);
        check("> quoted text", 9, &["> quoted", "  text"]);
        check("see [docs](https://e.org) and <https://f.org>", 60, &["see docs (https://e.org) and https://f.org"]);
        check("| a | bb |\n|---|---|\n| 1 | 漢字 |", 40, &["a | bb", "--+-----", "1 | 漢字"]);
        check("a\n\n---\n\nb", 5, &["a", "", "-----", "", "b"]);
        check("", 5, &[]);
    }

    #[test]
    fn emphasis_is_a_style() {
        let rows = render("a **b**", 20, &MarkdownLook::default());
        assert_eq!(rows[0].spans[1], Span::styled("b", Style::new().add_modifier(Modifier::BOLD)));
    }

    proptest! {
        #[test]
        fn rows_never_exceed_their_width(pieces in prop::collection::vec((odd_text(), 0usize..9), 0..12), max in 1usize..40) {
            let marks = ["# ", "- ", "> ", "1. ", "```\n", "| a | b |\n|---|---|\n| ", "**", "\n\n", "[x]("];
            let text: String = pieces.iter().map(|(text, mark)| format!("{}{text}\n", marks[*mark])).collect();
            for row in render(&text, max, &MarkdownLook::default()) {
                let shown = row.to_string();
                // One wide character can't be split.
                let one = shown.graphemes(true).filter(|g| width(g) > 0).count() <= 1;
                prop_assert!(width(&shown) <= max.max(2) || one, "{shown:?} in {max}");
            }
        }
    }
}
