//! The deliverable as a person gets it on standard output: summary, text, files, how to use it.

use std::path::Path;

use serde_json::Value;

use crate::events::data::Deliverable;
use crate::stdx::text::{sanitize, sanitize_line};

/// The text of a normalised `__output.json`. File names become absolute below `dir`.
pub fn deliverable(output: &Value, dir: &Path) -> String {
    let Ok(deliverable) = serde_json::from_value::<Deliverable>(output.clone()) else {
        // An older or hand-made file: better its JSON than nothing.
        return format!("{}\n", sanitize(&serde_json::to_string_pretty(output).unwrap_or_default()));
    };
    let mut parts = vec![sanitize_line(&deliverable.summary)];
    if !deliverable.text_content.trim().is_empty() {
        parts.push(sanitize(deliverable.text_content.trim_end()));
    }
    if !deliverable.files.is_empty() {
        let files = deliverable.files.iter().map(|file| sanitize_line(&dir.join(file).to_string_lossy()));
        parts.push(files.collect::<Vec<_>>().join("\n"));
    }
    if let Some(instruction) = deliverable.instruction_to_user.as_deref().filter(|text| !text.trim().is_empty()) {
        parts.push(sanitize(instruction.trim_end()));
    }
    parts.retain(|part| !part.is_empty());
    format!("{}\n", parts.join("\n\n"))
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_deliverable_is_summary_text_files_and_instruction() {
        let output = json!({
            "summary": "a page \u{1b}[31mwas built",
            "text_content": "It has a title.\nAnd a paragraph.\n",
            "files": ["index.html", "/abs/style.css"],
            "instruction_to_user": "Open index.html.",
            "extra": 1,
        });
        let expected = "a page was built\n\nIt has a title.\nAnd a paragraph.\n\n/here/index.html\n/abs/style.css\n\nOpen index.html.\n";
        assert_eq!(deliverable(&output, Path::new("/here")), expected);
        assert_eq!(deliverable(&json!({"summary": "done"}), Path::new("/here")), "done\n");
        assert_eq!(deliverable(&json!({"odd": 1}), Path::new("/here")), "{\n  \"odd\": 1\n}\n");
    }
}
