//! The texts that models are given: built in, and overridable by files of the same name (E15).
//! Owns reading, overriding and filling them. Does not decide when one is sent, and does not look
//! for folders: they are passed in.

mod catalogue;
mod parse;
mod render;

use std::fs;
use std::io::ErrorKind;
use std::path::Path;

pub use catalogue::PromptName;
pub use parse::{Header, PromptFile, Section, SectionText, parse};
pub use render::{Template, Undeclared};

/// What can be wrong with a prompt, or with the use of one.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum PromptError {
    /// A file is not in the `.prompt` format.
    #[error("{path}:{line}: {what}")]
    Malformed {
        /// The file.
        path: String,
        /// The line, from 1.
        line: usize,
        /// What is wrong and what to write instead.
        what: String,
    },
    /// A prompt is filled without one of its variables.
    #[error("prompt `{prompt}` was given no value for `%{variable}%`; pass one, empty if there is none")]
    MissingValue {
        /// Where the prompt lies.
        prompt: &'static str,
        /// The variable.
        variable: &'static str,
    },
    /// A prompt is asked for a section it does not have.
    #[error("prompt `{prompt}` has no section `${section}$`")]
    NoSuchSection {
        /// Where the prompt lies.
        prompt: &'static str,
        /// The section.
        section: &'static str,
    },
}

impl PromptError {
    pub(crate) fn at(path: &str, line: usize, what: impl Into<String>) -> Self {
        Self::Malformed { path: path.to_owned(), line, what: what.into() }
    }
}

/// Every prompt as it is in force.
#[derive(Clone, Debug)]
pub struct Library {
    /// In the order of [`PromptName::ALL`].
    prompts: Vec<Prompt>,
}

#[derive(Clone, Debug)]
struct Prompt {
    header: Header,
    sections: Vec<(Section, Template)>,
}

impl Library {
    /// Takes the built-in prompts and puts those of the user's folder, then those of the project's
    /// folder in their place. A file that can't be used is named in the warnings, with what is
    /// wrong; the text it was to override stays in force.
    pub fn load(user: Option<&Path>, project: Option<&Path>) -> (Self, Vec<String>) {
        let mut warnings = Vec::new();
        let prompts = PromptName::ALL.map(|name| {
            let (prompt, more) = built_in(name);
            warnings.extend(more);
            prompt
        });
        let mut library = Self { prompts: prompts.into() };
        for folder in [user, project].into_iter().flatten() {
            library.override_from(folder, &mut warnings);
        }
        (library, warnings)
    }

    /// One section of a prompt with its variables replaced by `values`. Values of other names are
    /// not used.
    ///
    /// # Errors
    /// A declared variable has no value, or the prompt has no such section.
    pub fn render(&self, name: PromptName, section: Section, values: &[(&str, &str)]) -> Result<String, PromptError> {
        let value = |variable: &str| values.iter().find(|(name, _)| *name == variable).map(|(_, value)| *value);
        if let Some(variable) = name.variables().iter().find(|variable| value(variable).is_none()) {
            return Err(PromptError::MissingValue { prompt: name.path(), variable });
        }
        let sections = &self.prompt(name).sections;
        let Some((_, template)) = sections.iter().find(|(has, _)| *has == section) else {
            return Err(PromptError::NoSuchSection { prompt: name.path(), section: section.word() });
        };
        Ok(template.fill(|variable| value(variable).unwrap_or_default()))
    }

    /// What the prompt's file says about the run that uses it: defaults under the run's own
    /// configuration (B84).
    pub fn header(&self, name: PromptName) -> &Header {
        &self.prompt(name).header
    }

    fn prompt(&self, name: PromptName) -> &Prompt {
        // `PromptName::ALL` lists the variants in the order of their declaration (a test holds it).
        &self.prompts[name as usize]
    }

    fn override_from(&mut self, folder: &Path, warnings: &mut Vec<String>) {
        for area in ["session", "core"] {
            let files = match fs::read_dir(folder.join(area)) {
                Ok(files) => files,
                Err(error) if matches!(error.kind(), ErrorKind::NotFound | ErrorKind::NotADirectory) => continue,
                Err(error) => {
                    warnings.push(format!("prompts in {}: {error}; not used", folder.join(area).display()));
                    continue;
                }
            };
            let mut names: Vec<String> =
                files.flatten().filter_map(|file| file.file_name().into_string().ok()).collect();
            names.retain(|name| name.ends_with(".prompt"));
            names.sort();
            for file in names {
                self.override_with(folder, &format!("{area}/{file}"), warnings);
            }
        }
    }

    fn override_with(&mut self, folder: &Path, relative: &str, warnings: &mut Vec<String>) {
        let path = folder.join(relative);
        let shown = path.display().to_string();
        let Some(name) = PromptName::ALL.into_iter().find(|name| name.path() == relative) else {
            let known: Vec<&str> = PromptName::ALL.into_iter().map(PromptName::path).collect();
            warnings.push(format!("{shown}: no prompt of this name; not used (there are {})", known.join(", ")));
            return;
        };
        let source = match fs::read_to_string(&path) {
            Ok(source) => source,
            Err(error) => {
                warnings.push(format!("{shown}: {error}; the prompt before it stays in force"));
                return;
            }
        };
        match compile(name, &shown, &source) {
            Ok((prompt, more)) => {
                warnings.extend(more);
                self.prompts[name as usize] = prompt;
            }
            Err(error) => warnings.push(format!("{error}; the prompt before it stays in force")),
        }
    }
}

/// A prompt as built in. Its format is held by a test, so a fault can only be ours; it is told as a
/// warning like any other file's, and the text is taken as it is.
fn built_in(name: PromptName) -> (Prompt, Vec<String>) {
    let entry = name.entry();
    compile(name, entry.path, entry.source).unwrap_or_else(|error| {
        let (text, _) = Template::new(entry.source, entry.variables);
        let sections = entry.sections.iter().map(|section| (*section, text.clone())).collect();
        (Prompt { header: Header::default(), sections }, vec![error.to_string()])
    })
}

/// A prompt from its file's text, and what is odd about it though it can be used.
fn compile(name: PromptName, path: &str, source: &str) -> Result<(Prompt, Vec<String>), PromptError> {
    let file = parse(path, source)?;
    let mut warnings = Vec::new();
    let mut sections = Vec::new();
    for part in file.sections {
        let (template, undeclared) = Template::new(&part.text, name.variables());
        warnings.extend(undeclared.into_iter().map(|found| {
            let line = part.line + found.line;
            let known = variables_in_words(name);
            format!("{path}:{line}: `%{}%` is no variable of this prompt and stays as it is; {known}", found.word)
        }));
        sections.push((part.section, template));
    }
    for section in name.sections() {
        if !sections.iter().any(|(has, _)| has == section) {
            return Err(PromptError::at(path, 1, format!("section `${}$` is missing", section.word())));
        }
    }
    for variable in name.variables() {
        if !sections.iter().any(|(_, template)| template.uses(variable)) {
            warnings.push(format!("{path}: leaves out `%{variable}%`, so the model does not see it"));
        }
    }
    Ok((Prompt { header: file.header, sections }, warnings))
}

fn variables_in_words(name: PromptName) -> String {
    match name.variables() {
        [] => "it has none".to_owned(),
        variables => format!("it has %{}%", variables.join("%, %")),
    }
}

#[cfg(test)]
mod tests;
