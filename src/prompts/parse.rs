//! Reads the `.prompt` format (B84): an optional YAML header between `---` lines, then sections,
//! each begun by a line such as `$system$`. Knows nothing of placeholders; `render` does.

use serde::Deserialize;

use super::PromptError;

/// A section of a prompt: the role that its text is sent with.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Section {
    /// Standing instructions.
    System,
    /// What the person, or the harness on their behalf, says.
    User,
    /// What stands in for a tool's result.
    Tool,
}

impl Section {
    /// Every section there is.
    pub const ALL: [Self; 3] = [Self::System, Self::User, Self::Tool];

    /// The word between the dollar signs.
    pub fn word(self) -> &'static str {
        match self {
            Self::System => "system",
            Self::User => "user",
            Self::Tool => "tool",
        }
    }
}

/// The YAML header: defaults for the run that uses the prompt.
#[derive(Clone, Debug, Default, PartialEq, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Header {
    /// `PROVIDER/MODEL`.
    pub model: Option<String>,
    /// Sampling temperature.
    pub temperature: Option<f64>,
    /// Most tokens to receive in one answer.
    pub max_output_tokens: Option<u32>,
}

/// A `.prompt` file taken apart.
#[derive(Clone, Debug, PartialEq)]
pub struct PromptFile {
    /// Its header; all empty when it has none.
    pub header: Header,
    /// Its sections in the order of the file, none twice and none empty.
    pub sections: Vec<SectionText>,
}

/// One section's text.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct SectionText {
    /// Which.
    pub section: Section,
    /// The line of the file on which the text begins, from 1.
    pub line: usize,
    /// The text without blank lines at its beginning and end.
    pub text: String,
}

/// Takes a `.prompt` file apart. `path` only names it in errors.
///
/// # Errors
/// The header is not closed or not valid, there is text before the first section, or a section is
/// unknown, empty or there twice. Each names file and line.
pub fn parse(path: &str, source: &str) -> Result<PromptFile, PromptError> {
    let source = source.strip_prefix('\u{feff}').unwrap_or(source);
    let lines: Vec<&str> = source.lines().collect();
    let (header, body) = header(path, &lines)?;
    let sections = sections(path, &lines, body)?;
    Ok(PromptFile { header, sections })
}

/// The header, and the index of the first line after it.
fn header(path: &str, lines: &[&str]) -> Result<(Header, usize), PromptError> {
    if lines.first().is_none_or(|line| line.trim_end() != "---") {
        return Ok((Header::default(), 0));
    }
    let Some(length) = lines[1..].iter().position(|line| line.trim_end() == "---") else {
        return Err(PromptError::at(path, 1, "the header is not closed; end it with a line `---`"));
    };
    let yaml = lines[1..=length].join("\n");
    let after = length + 2;
    if yaml.trim().is_empty() {
        return Ok((Header::default(), after));
    }
    let header = serde_saphyr::from_str(&yaml).map_err(|error| {
        // The YAML begins on the file's second line.
        let line = error.location().map_or(1, |at| usize::try_from(at.line()).unwrap_or(0)) + 1;
        let offset = serde_saphyr::render_options! {
            snippets: serde_saphyr::SnippetMode::Off,
            line_offset: 1,
        };
        PromptError::at(path, line, format!("in the header: {}", error.render_with_options(offset)))
    })?;
    Ok((header, after))
}

fn sections(path: &str, lines: &[&str], first: usize) -> Result<Vec<SectionText>, PromptError> {
    let mut sections: Vec<SectionText> = Vec::new();
    let mut open: Option<(Section, usize)> = None;
    for (i, line) in lines.iter().enumerate().skip(first) {
        let Some(word) = marker(line) else {
            if open.is_none() && !line.trim().is_empty() {
                return Err(PromptError::at(
                    path,
                    i + 1,
                    "text before the first section; begin with a line `$system$`",
                ));
            }
            continue;
        };
        let section = known(path, i + 1, word)?;
        if let Some((before, start)) = open.replace((section, i)) {
            sections.push(close(path, lines, before, start, i)?);
        }
        if sections.iter().any(|earlier| earlier.section == section) {
            return Err(PromptError::at(path, i + 1, format!("section `${word}$` is there twice; keep one of them")));
        }
    }
    match open {
        Some((section, start)) => sections.push(close(path, lines, section, start, lines.len())?),
        None => return Err(PromptError::at(path, lines.len().max(1), "no section; begin with a line `$system$`")),
    }
    Ok(sections)
}

/// The word of a section line, if it is one.
fn marker(line: &str) -> Option<&str> {
    let word = line.trim_end().strip_prefix('$')?.strip_suffix('$')?;
    (!word.is_empty() && word.bytes().all(|b| b.is_ascii_lowercase() || b == b'_')).then_some(word)
}

fn known(path: &str, line: usize, word: &str) -> Result<Section, PromptError> {
    Section::ALL.into_iter().find(|section| section.word() == word).ok_or_else(|| {
        let all = Section::ALL.map(|section| format!("`${}$`", section.word())).join(", ");
        PromptError::at(path, line, format!("`${word}$` is not a section; known are {all}"))
    })
}

/// The text of the section whose marker is on line `start` and that ends before line `end`.
fn close(path: &str, lines: &[&str], section: Section, start: usize, end: usize) -> Result<SectionText, PromptError> {
    let is_text = |line: &&str| !line.trim().is_empty();
    let body = &lines[start + 1..end];
    let (Some(first), Some(last)) = (body.iter().position(is_text), body.iter().rposition(is_text)) else {
        return Err(PromptError::at(path, start + 1, format!("section `${}$` is empty", section.word())));
    };
    Ok(SectionText { section, line: start + 2 + first, text: body[first..=last].join("\n") })
}
