//! Documents that are made from the code are current. `UPDATE_DOCS=1 cargo test --test it docs`
//! writes them anew.

use std::collections::BTreeSet;
use std::fmt::Write;

use schemars::generate::SchemaSettings;
use serde_json::{Map, Value};
use super_agent::events::event::Envelope;

use crate::source::{read, root};

/// Where the generated part of `docs/events.md` begins.
const GENERATED: &str = "<!-- From here on this page is generated: UPDATE_DOCS=1 cargo test --test it docs -->\n";

/// Compares a document with what the code says now, or writes it when `UPDATE_DOCS` is set.
#[track_caller]
fn check_current(path: &str, expected: &str) {
    if std::env::var_os("UPDATE_DOCS").is_some_and(|value| !value.is_empty() && value != "0") {
        std::fs::write(root().join(path), expected).unwrap();
        return;
    }
    let current = std::fs::read_to_string(root().join(path)).unwrap_or_default();
    assert!(
        current.replace("\r\n", "\n") == expected,
        "{path} is not what the code says; run `UPDATE_DOCS=1 cargo test --test it docs` and look at the difference"
    );
}

/// The schema of what is written, for those who read it.
fn schema() -> Value {
    let generator = SchemaSettings::draft2020_12().for_serialize().into_generator();
    let mut schema = serde_json::to_value(generator.into_root_schema_for::<Envelope>()).unwrap();
    schema["title"] = "super-agent event".into();
    schema
}

#[test]
fn the_schema_of_events_is_current() {
    let mut text = serde_json::to_string_pretty(&schema()).unwrap();
    text.push('\n');
    check_current("docs/events.schema.json", &text);
}

#[test]
fn the_page_about_events_is_current() {
    let page = read("docs/events.md");
    let (prose, _) = page.split_once(GENERATED).expect("docs/events.md says where its generated part begins");
    check_current("docs/events.md", &format!("{prose}{GENERATED}{}", tables(&schema())));
}

#[test]
fn the_page_about_events_names_each_required_type() {
    let tables = tables(&schema());
    // The twelve types and five trace types that other programs were promised.
    for name in [
        "session_start",
        "cycle_start",
        "worker_start",
        "worker_tool_call",
        "worker_tool_result",
        "worker_complete",
        "checker_start",
        "checker_stream",
        "checker_complete",
        "cycle_end",
        "session_complete",
        "session_error",
        "goal_added",
        "goal_updated",
        "sub_trace_started",
        "sub_trace_completed",
        "rewind",
    ] {
        assert_eq!(tables.matches(&format!("\n| `{name}` | ")).count(), 1, "{name}");
    }
}

fn tables(schema: &Value) -> String {
    let definitions = schema["$defs"].as_object().unwrap();
    let variants = schema["oneOf"].as_array().unwrap();
    let mut out = "\n## Types\n\n| type | when | payload |\n| --- | --- | --- |\n".to_owned();
    let mut payloads = BTreeSet::new();
    for variant in variants {
        let name = variant["properties"]["type"]["const"].as_str().unwrap();
        let mut fields = fields(variant);
        if let Some(payload) = reference(variant) {
            payloads.insert(payload.to_owned());
            fields.extend(self::fields(&definitions[payload]));
        }
        fields.retain(|field| !field.starts_with("`type`"));
        writeln!(out, "| `{name}` | {} | {} |", words(variant), fields.join("<br>")).unwrap();
    }
    out.push_str("\n## What payloads are made of\n\n| name | what | fields or values |\n| --- | --- | --- |\n");
    for (name, definition) in definitions.iter().filter(|(name, _)| !payloads.contains(*name)) {
        let parts = [fields(definition), values(definition)].concat();
        writeln!(out, "| `{name}` | {} | {} |", words(definition), parts.join("<br>")).unwrap();
    }
    out
}

/// The fields of an object in words, as cells of a table: `` `name` (type): what ``.
fn fields(schema: &Value) -> Vec<String> {
    let none = Map::new();
    let required: BTreeSet<&str> =
        schema["required"].as_array().into_iter().flatten().filter_map(Value::as_str).collect();
    let properties = schema["properties"].as_object().unwrap_or(&none);
    properties
        .iter()
        .map(|(name, field)| {
            let optional = if required.contains(name.as_str()) { "" } else { ", may be absent" };
            format!("`{name}` ({}{optional}): {}", kind(field), words(field))
        })
        .collect()
}

/// The values of an enumeration, or the forms of a choice.
fn values(schema: &Value) -> Vec<String> {
    let forms = ["oneOf", "anyOf"].iter().filter_map(|key| schema[key].as_array()).flatten();
    let forms = forms.map(|form| match form["const"].as_str() {
        Some(value) => format!("`{value}`: {}", words(form)),
        None => {
            let parts: Vec<String> = fields(form).into_iter().chain(plain_values(form)).collect();
            format!("{}: {}", parts.join(", ").trim_end_matches(": "), words(form))
        }
    });
    forms.chain(plain_values(schema)).collect()
}

fn plain_values(schema: &Value) -> Vec<String> {
    schema["enum"].as_array().into_iter().flatten().map(|value| format!("`{value}`").replace('"', "")).collect()
}

/// What kind of value it is, in a word or two.
fn kind(schema: &Value) -> String {
    if let Some(name) = reference(schema) {
        return format!("`{name}`");
    }
    if let Some(value) = schema["const"].as_str() {
        return format!("`{value}`");
    }
    if let Some(forms) = schema["anyOf"].as_array() {
        return forms.iter().map(kind).collect::<Vec<_>>().join(" or ");
    }
    match &schema["type"] {
        Value::String(name) if name == "array" => format!("list of {}", kind(&schema["items"])),
        Value::String(name) => name.clone(),
        Value::Array(names) => names.iter().filter_map(Value::as_str).collect::<Vec<_>>().join(" or "),
        _ => "any value".to_owned(),
    }
}

fn reference(schema: &Value) -> Option<&str> {
    schema["$ref"].as_str()?.rsplit('/').next()
}

/// A description as one cell: no line ends, no bars, no full stop, no links into the code and no
/// pointers in brackets to where it was required.
fn words(schema: &Value) -> String {
    let text = schema["description"].as_str().unwrap_or_default().replace('\n', " ").replace('|', "\\|");
    let pointer = regex::Regex::new(r" \([^()]*(\b[A-E][0-9]{1,3}\b|\.md)[^()]*\)").unwrap();
    let text = pointer.replace_all(&text, "");
    text.trim_end_matches('.').replace("[`", "`").replace("`]", "`")
}
