//! Fills the placeholders of a prompt's text: `%name%` for each variable that the prompt declares.
//! Values are put in as they are and never looked at again, so text from a model or a file can't
//! smuggle a placeholder in.
//!
//! A paragraph (lines between blank lines) whose placeholders are all empty is left out with its
//! heading, so an optional part needs no condition.

/// A section's text, split where values go.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Template {
    paragraphs: Vec<Paragraph>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
struct Paragraph {
    /// The blank lines before it, verbatim.
    gap: String,
    pieces: Vec<Piece>,
}

#[derive(Clone, Debug, PartialEq, Eq)]
enum Piece {
    Text(String),
    Variable(&'static str),
}

/// Something that looks like a placeholder but names no variable of the prompt.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Undeclared {
    /// The word between the percent signs.
    pub word: String,
    /// The line of the text, from 0.
    pub line: usize,
}

impl Template {
    /// Splits `text` at the placeholders of `variables`. What only looks like a placeholder stays
    /// text and is reported.
    pub fn new(text: &str, variables: &[&'static str]) -> (Self, Vec<Undeclared>) {
        let mut undeclared = Vec::new();
        let mut paragraphs = Vec::new();
        let mut line = 0;
        for (gap, body) in split_paragraphs(text) {
            line += newlines(gap);
            let pieces = split_pieces(body, variables, line, &mut undeclared);
            line += newlines(body);
            paragraphs.push(Paragraph { gap: gap.to_owned(), pieces });
        }
        (Self { paragraphs }, undeclared)
    }

    /// Whether the text has a placeholder for this variable.
    pub fn uses(&self, variable: &str) -> bool {
        let mut pieces = self.paragraphs.iter().flat_map(|paragraph| &paragraph.pieces);
        pieces.any(|piece| matches!(piece, Piece::Variable(name) if *name == variable))
    }

    /// The text with every placeholder replaced by what `value` knows of it.
    pub fn fill<'a>(&self, value: impl Fn(&str) -> &'a str) -> String {
        let mut out = String::new();
        let kept = self.paragraphs.iter().filter(|paragraph| !paragraph.is_left_out(&value));
        for (i, paragraph) in kept.enumerate() {
            if i > 0 {
                out.push_str(&paragraph.gap);
            }
            for piece in &paragraph.pieces {
                out.push_str(match piece {
                    Piece::Text(text) => text,
                    Piece::Variable(name) => value(name),
                });
            }
        }
        out
    }
}

impl Paragraph {
    fn is_left_out<'a>(&self, value: &impl Fn(&str) -> &'a str) -> bool {
        let mut values = self.pieces.iter().filter_map(|piece| match piece {
            Piece::Text(_) => None,
            Piece::Variable(name) => Some(value(name)),
        });
        match values.next() {
            None => false,
            Some(first) => first.is_empty() && values.all(str::is_empty),
        }
    }
}

/// Paragraphs with the blank lines before each: `("", "one")`, `("\n\n", "two")`, …
fn split_paragraphs(text: &str) -> Vec<(&str, &str)> {
    let mut out = Vec::new();
    let mut gap_start = 0;
    let mut body_start = 0;
    let mut at = 0;
    while at < text.len() {
        match blank_lines(&text[at..]) {
            0 => at += text[at..].find('\n').map_or(text.len() - at, |end| end.max(1)),
            gap => {
                out.push((&text[gap_start..body_start], &text[body_start..at]));
                gap_start = at;
                at += gap;
                body_start = at;
            }
        }
    }
    out.push((&text[gap_start..body_start], &text[body_start..]));
    out
}

/// How many bytes at the start of `text` are a line's end and blank lines after it; 0 when there
/// is no blank line.
fn blank_lines(text: &str) -> usize {
    let mut length = 0;
    let mut ends = 0;
    for (i, c) in text.char_indices() {
        match c {
            '\n' => {
                ends += 1;
                length = i + 1;
            }
            ' ' | '\t' if ends > 0 => {}
            _ => break,
        }
    }
    if ends > 1 { length } else { 0 }
}

fn split_pieces(
    body: &str,
    variables: &[&'static str],
    first_line: usize,
    undeclared: &mut Vec<Undeclared>,
) -> Vec<Piece> {
    let mut pieces = Vec::new();
    let mut text_start = 0;
    let mut at = 0;
    while let Some(found) = body[at..].find('%') {
        let percent = at + found;
        let Some(word) = placeholder(&body[percent..]) else {
            at = percent + 1;
            continue;
        };
        match variables.iter().find(|variable| **variable == word) {
            Some(variable) => {
                if text_start < percent {
                    pieces.push(Piece::Text(body[text_start..percent].to_owned()));
                }
                pieces.push(Piece::Variable(variable));
                at = percent + word.len() + 2;
                text_start = at;
            }
            None => {
                let line = first_line + newlines(&body[..percent]);
                undeclared.push(Undeclared { word: word.to_owned(), line });
                // The second percent sign may begin a placeholder itself.
                at = percent + word.len() + 1;
            }
        }
    }
    if text_start < body.len() {
        pieces.push(Piece::Text(body[text_start..].to_owned()));
    }
    pieces
}

/// The word of `%word%` at the start of `text`.
fn placeholder(text: &str) -> Option<&str> {
    let rest = text.strip_prefix('%')?;
    let word = &rest[..rest.find('%')?];
    let starts_well = word.starts_with(|c: char| c.is_ascii_alphabetic() || c == '_');
    (starts_well && word.bytes().all(|b| b.is_ascii_alphanumeric() || b == b'_')).then_some(word)
}

fn newlines(text: &str) -> usize {
    text.bytes().filter(|b| *b == b'\n').count()
}
