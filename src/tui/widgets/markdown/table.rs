//! A Markdown table: columns as wide as their widest cell, narrowed evenly when the row does not fit.

use ratatui::style::Modifier;
use ratatui::text::{Line, Span};

use super::MarkdownLook;
use crate::tui::widgets::text::{pad, width};
use crate::tui::widgets::wrap::cut_line;

/// The narrowest a column is made.
const LEAST: usize = 3;

/// A table being read.
#[derive(Debug, Default)]
pub(super) struct Table {
    rows: Vec<Vec<String>>,
}

impl Table {
    /// Begins a row; the first one is the head.
    pub fn row(&mut self) {
        self.rows.push(Vec::new());
    }

    /// Ends a cell.
    pub fn cell(&mut self, text: String) {
        if let Some(row) = self.rows.last_mut() {
            row.push(text);
        }
    }

    /// The rows, none wider than `max`.
    pub fn lines(self, max: usize, look: &MarkdownLook) -> Vec<Line<'static>> {
        let columns = self.rows.iter().map(Vec::len).max().unwrap_or(0);
        let mut cells = vec![1; columns];
        for row in &self.rows {
            for (i, cell) in row.iter().enumerate() {
                cells[i] = cells[i].max(width(cell));
            }
        }
        let room = max.saturating_sub(columns.saturating_sub(1) * 3);
        while cells.iter().sum::<usize>() > room {
            let Some(widest) = cells.iter_mut().max().filter(|cells| **cells > LEAST) else { break };
            *widest -= 1;
        }
        let (bar, cross, line) = if look.ascii { (" | ", "-+-", "-") } else { (" │ ", "─┼─", "─") };
        let mut out = Vec::with_capacity(self.rows.len() + 1);
        for (i, row) in self.rows.iter().enumerate() {
            let style = if i == 0 { look.text.add_modifier(Modifier::BOLD) } else { look.text };
            let mut spans = Vec::new();
            for (column, cells) in cells.iter().enumerate() {
                if column > 0 {
                    spans.push(Span::styled(bar, look.dim));
                }
                spans.push(Span::styled(pad(row.get(column).map_or("", String::as_str), *cells), style));
            }
            out.push(cut_line(Line::from(spans), max));
            if i == 0 {
                let rule: Vec<String> = cells.iter().map(|cells| line.repeat(*cells)).collect();
                out.push(cut_line(Line::styled(rule.join(cross), look.dim), max));
            }
        }
        out
    }
}
