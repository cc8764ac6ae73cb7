//! The deliverable of one cycle: `__output.json` with its text rendered, files with what changed,
//! the instruction, and where the files are. A missing or malformed one is shown as such.

use ratatui::text::{Line, Span};

use super::{Entry, PaneCx, Target, change_spans, paragraph};
use crate::events::data::{ChangeKind, Deliverable};
use crate::stdx::text::sanitize_line;
use crate::tui::state::cycle::{Cycle, HandedIn};
use crate::tui::theme::{Glyph, Slot, Theme};
use crate::tui::widgets::markdown::{self, MarkdownLook};
use crate::tui::widgets::text;

/// Most files listed; `Enter` on the head shows all.
const MOST_FILES: usize = 200;

/// How Markdown looks in this theme.
pub fn markdown_look(theme: &Theme) -> MarkdownLook {
    MarkdownLook {
        text: theme[Slot::Text],
        heading: theme[Slot::TextHeading],
        code: theme[Slot::TextCode],
        dim: theme[Slot::TextDim],
        link: theme[Slot::TextLink],
        ascii: theme.is_ascii(),
    }
}

/// The deliverable of `cycle` as lines of `width` cells.
pub fn entries(pane: &PaneCx<'_>, cycle: Option<&Cycle>, width: usize) -> Vec<Entry> {
    let theme = pane.cx.theme;
    let Some(cycle) = cycle else {
        let words = "nothing handed in yet: what the worker delivers, and where it lies, shows here";
        return vec![Entry { lines: paragraph(Vec::new(), words, theme[Slot::TextDim], width, 4), target: None }];
    };
    let mut out = Vec::new();
    match cycle.handed_in() {
        HandedIn::NotYet => {
            out.push(Entry::line(head(theme, cycle, "not handed in yet", Slot::TextDim), None));
        }
        HandedIn::Nothing(why) => {
            let target = Some(Target::Output(cycle.number));
            out.push(Entry::line(head(theme, cycle, "missing or malformed", Slot::Error), target.clone()));
            let mark = vec![Span::styled(format!("{} ", theme.glyph(Glyph::Failed)), theme[Slot::Error])];
            out.push(Entry { lines: paragraph(mark, &why, theme[Slot::Text], width, 8), target });
        }
        HandedIn::Output(output) => output_entries(theme, cycle, &output, width, &mut out),
    }
    file_entries(theme, cycle, width, &mut out);
    if let HandedIn::Output(output) = cycle.handed_in()
        && let Some(run) = output.instruction_to_user.as_deref().filter(|run| !run.trim().is_empty())
    {
        let lines = paragraph(vec![label(theme, "run")], run, theme[Slot::TextCode], width, 20);
        out.push(Entry { lines, target: Some(Target::Output(cycle.number)) });
    }
    if let Some(place) = &pane.state.head.place {
        let dir = sanitize_line(&place.dir.display().to_string());
        let dir = text::cut_start(&dir, width.saturating_sub(7)).into_owned();
        out.push(Entry::line(Line::from(vec![label(theme, "in"), Span::styled(dir, theme[Slot::TextDim])]), None));
    }
    out
}

fn head(theme: &Theme, cycle: &Cycle, word: &'static str, slot: Slot) -> Line<'static> {
    let dot = theme.glyph(Glyph::Dot);
    let name = format!("cycle {} {dot} __output.json {dot} ", cycle.number);
    Line::from(vec![Span::styled(name, theme[Slot::TextDim]), Span::styled(word, theme[slot])])
}

fn label(theme: &Theme, word: &str) -> Span<'static> {
    Span::styled(format!("{word:<7}"), theme[Slot::TextDim])
}

fn output_entries(theme: &Theme, cycle: &Cycle, output: &Deliverable, width: usize, out: &mut Vec<Entry>) {
    let target = || Some(Target::Output(cycle.number));
    out.push(Entry::line(head(theme, cycle, "ok", Slot::ToolOk), target()));
    let lines = paragraph(Vec::new(), &output.summary, theme[Slot::TextStrong], width, 6);
    out.push(Entry { lines, target: target() });
    if !output.text_content.trim().is_empty() {
        out.push(Entry::line("", target()));
        for line in markdown::render(&output.text_content, width, &markdown_look(theme)) {
            out.push(Entry::line(line, target()));
        }
        out.push(Entry::line("", target()));
    }
    for (key, value) in &output.other {
        let words = value.as_str().map_or_else(|| value.to_string(), str::to_owned);
        let mark = vec![Span::styled(format!("{}  ", sanitize_line(key)), theme[Slot::TextDim])];
        out.push(Entry { lines: paragraph(mark, &words, theme[Slot::Text], width, 3), target: target() });
    }
}

fn file_entries(theme: &Theme, cycle: &Cycle, width: usize, out: &mut Vec<Entry>) {
    let files = cycle.files();
    for (n, file) in files.iter().take(MOST_FILES).enumerate() {
        let mut change = Vec::new();
        match &file.change {
            _ if !file.exists => change.push(Span::styled("claimed, but not there", theme[Slot::Error])),
            Some(diff) => change.extend(change_spans(diff, theme)),
            None => {}
        }
        if !file.claimed && file.change.as_ref().is_some_and(|c| c.kind != ChangeKind::Unchanged) {
            change.push(Span::styled("  not mentioned", theme[Slot::Warning]));
        }
        let used: usize = change.iter().map(|s| text::width(&s.content)).sum();
        let name = text::cut_start(&sanitize_line(&file.path), width.saturating_sub(used + 9)).into_owned();
        let mut spans =
            vec![label(theme, if n == 0 { "files" } else { "" }), Span::styled(name, theme[Slot::TextLink])];
        spans.push(Span::raw("  "));
        spans.extend(change);
        out.push(Entry::line(Line::from(spans), Some(Target::File(cycle.number, file.path.clone()))));
    }
    if files.len() > MOST_FILES {
        let words = format!("       and {} more", files.len() - MOST_FILES);
        out.push(Entry::line(Span::styled(words, theme[Slot::TextDim]), Some(Target::Output(cycle.number))));
    }
}
