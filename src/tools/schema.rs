//! Argument schemas: derived from argument structs, without what only costs tokens; and the check
//! of a model's arguments against them, with errors that name the field (B77).
//! Does not know any tool.

use schemars::JsonSchema;
use schemars::generate::SchemaSettings;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value};

use crate::llm::chat::ToolSpec;

/// The schema of an argument struct, as small as it can be said.
pub fn of<T: JsonSchema>() -> Value {
    let settings = SchemaSettings::draft2020_12().with(|settings| {
        settings.inline_subschemas = true;
        settings.meta_schema = None;
    });
    let mut schema = settings.into_generator().into_root_schema_for::<T>().to_value();
    tidy(&mut schema);
    if let Value::Object(root) = &mut schema {
        // The tool's own description says it already.
        root.remove("description");
        root.entry("properties").or_insert_with(|| Value::Object(Map::new()));
    }
    schema
}

fn tidy(schema: &mut Value) {
    let Value::Object(map) = schema else { return };
    for noise in ["$schema", "title", "format", "default", "minimum", "additionalProperties"] {
        map.remove(noise);
    }
    if let Some(Value::Array(types)) = map.get_mut("type") {
        types.retain(|kind| kind != "null");
        if let [only] = types.as_slice() {
            let only = only.clone();
            map.insert("type".to_owned(), only);
        }
    }
    if let Some(Value::Object(properties)) = map.get_mut("properties") {
        properties.values_mut().for_each(tidy);
    }
    if let Some(items) = map.get_mut("items") {
        tidy(items);
    }
    tidy_choices(map);
}

/// Takes `null` out of a choice and the choice away when one is left.
fn tidy_choices(map: &mut Map<String, Value>) {
    let Some(Value::Array(mut choices)) = map.remove("anyOf") else { return };
    choices.retain(|choice| choice.get("type").is_none_or(|kind| kind != "null"));
    for choice in &mut choices {
        tidy(choice);
        if let Value::Object(choice) = choice {
            choice.remove("description");
        }
    }
    match <[Value; 1]>::try_from(choices) {
        Ok([Value::Object(only)]) => only.into_iter().for_each(|(key, value)| {
            map.entry(key).or_insert(value);
        }),
        Ok([_]) => {}
        // An option of a choice is a choice within a choice: one level is enough.
        Err(choices) => {
            map.insert("anyOf".to_owned(), Value::Array(choices));
        }
    }
}

/// The arguments of a call from the text that the model wrote; nothing at all means none.
///
/// # Errors
/// Says where the text stops being JSON.
pub fn parse(text: &str) -> Result<Value, String> {
    let text = text.trim();
    if text.is_empty() {
        return Ok(Value::Object(Map::new()));
    }
    let value: Value =
        serde_json::from_str(text).map_err(|error| format!("the arguments are not valid JSON: {error}"))?;
    match value {
        Value::Object(_) => Ok(value),
        Value::Null => Ok(Value::Object(Map::new())),
        // Some models wrap the object in a string.
        Value::String(inner) => match serde_json::from_str(&inner) {
            Ok(inner @ Value::Object(_)) => Ok(inner),
            _ => Err("the arguments are a string; they must be a JSON object".to_owned()),
        },
        other => Err(format!("the arguments are {}; they must be a JSON object", kind_of(&other))),
    }
}

/// Checks arguments against a tool's schema. Mends what has one obvious meaning: a number or
/// boolean in quotes, `null` for something optional.
///
/// # Errors
/// Names the field, what was expected and what the tool takes.
pub fn check(spec: &ToolSpec, arguments: &mut Value) -> Result<(), String> {
    let Value::Object(given) = arguments else {
        return Err(format!("the arguments must be a JSON object; {}", signature(spec)));
    };
    let none = Map::new();
    let properties = spec.parameters.get("properties").and_then(Value::as_object).unwrap_or(&none);
    let required = required(spec);
    given.retain(|name, value| !value.is_null() || required.contains(&name.as_str()));
    for (name, value) in given.iter_mut() {
        let Some(schema) = properties.get(name) else {
            return Err(format!("unknown field `{name}`; {}", signature(spec)));
        };
        mend(schema, value);
        if !fits(schema, value) {
            let found = crate::stdx::bounded::preview(&value.to_string(), 60);
            return Err(format!("`{name}` must be {}, got {found}; {}", expected(schema), signature(spec)));
        }
    }
    match required.iter().find(|name| !given.contains_key(**name)) {
        Some(missing) => Err(format!("missing field `{missing}`; {}", signature(spec))),
        None => Ok(()),
    }
}

/// Checked arguments as the tool's struct.
///
/// # Errors
/// What serde says, for shapes that the schema can't tell apart.
pub fn read<T: DeserializeOwned>(arguments: Value) -> Result<T, String> {
    serde_json::from_value(arguments).map_err(|error| format!("the arguments don't fit: {error}"))
}

/// What a tool takes, in one line: `read_file takes {path: string, start?: integer}`.
pub fn signature(spec: &ToolSpec) -> String {
    let required = required(spec);
    let fields: Vec<String> = spec
        .parameters
        .get("properties")
        .and_then(Value::as_object)
        .into_iter()
        .flatten()
        .map(|(name, schema)| {
            let mark = if required.contains(&name.as_str()) { "" } else { "?" };
            format!("{name}{mark}: {}", type_of(schema))
        })
        .collect();
    format!("{} takes {{{}}}", spec.name, fields.join(", "))
}

fn required(spec: &ToolSpec) -> Vec<&str> {
    let names = spec.parameters.get("required").and_then(Value::as_array);
    names.into_iter().flatten().filter_map(Value::as_str).collect()
}

fn mend(schema: &Value, value: &mut Value) {
    let Value::String(text) = value else { return };
    let mended = match schema.get("type").and_then(Value::as_str) {
        Some("integer") => text.trim().parse::<i64>().ok().map(Value::from),
        Some("boolean") => text.trim().to_ascii_lowercase().parse::<bool>().ok().map(Value::from),
        _ => None,
    };
    if let Some(mended) = mended {
        *value = mended;
    }
}

fn fits(schema: &Value, value: &Value) -> bool {
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().any(|choice| fits(choice, value));
    }
    match schema.get("type") {
        Some(Value::String(kind)) => is_a(kind, schema, value),
        Some(Value::Array(kinds)) => kinds.iter().filter_map(Value::as_str).any(|kind| is_a(kind, schema, value)),
        _ => true,
    }
}

fn is_a(kind: &str, schema: &Value, value: &Value) -> bool {
    match kind {
        "string" => match (value, schema.get("enum").and_then(Value::as_array)) {
            (Value::String(_), Some(words)) => words.contains(value),
            (value, _) => value.is_string(),
        },
        // Every integer argument of ours counts something, so none is negative.
        "integer" => value.as_u64().is_some(),
        "number" => value.is_number(),
        "boolean" => value.is_boolean(),
        "array" => value.as_array().is_some_and(|items| match schema.get("items") {
            Some(item) => items.iter().all(|value| fits(item, value)),
            None => true,
        }),
        "object" => value.is_object(),
        "null" => value.is_null(),
        _ => true,
    }
}

fn type_of(schema: &Value) -> String {
    if let Some(choices) = schema.get("anyOf").and_then(Value::as_array) {
        return choices.iter().map(type_of).collect::<Vec<_>>().join(" | ");
    }
    if let Some(words) = schema.get("enum").and_then(Value::as_array) {
        return words.iter().map(Value::to_string).collect::<Vec<_>>().join(" | ");
    }
    match schema.get("type") {
        Some(Value::String(kind)) if kind == "array" => {
            format!("[{}]", schema.get("items").map(type_of).unwrap_or_default())
        }
        Some(Value::String(kind)) => kind.clone(),
        _ => "any".to_owned(),
    }
}

fn expected(schema: &Value) -> String {
    match type_of(schema).as_str() {
        "integer" => "an integer of 0 or more".to_owned(),
        other => other.to_owned(),
    }
}

fn kind_of(value: &Value) -> &'static str {
    match value {
        Value::Null => "null",
        Value::Bool(_) => "a boolean",
        Value::Number(_) => "a number",
        Value::String(_) => "a string",
        Value::Array(_) => "an array",
        Value::Object(_) => "an object",
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;
    use crate::tools::OneOrMany;

    #[derive(Debug, PartialEq, serde::Deserialize, JsonSchema)]
    #[serde(deny_unknown_fields)]
    #[allow(dead_code)]
    /// Not wanted.
    struct Sample {
        /// Where.
        path: String,
        start: Option<usize>,
        all: Option<bool>,
        many: Option<OneOrMany>,
        /// A field whose name is a keyword of schemas.
        format: Option<String>,
    }

    fn spec() -> ToolSpec {
        ToolSpec { name: "sample".to_owned(), description: String::new(), parameters: of::<Sample>() }
    }

    #[test]
    fn a_schema_holds_names_types_and_descriptions_only() {
        let expected = json!({
            "type": "object",
            "properties": {
                "path": {"type": "string", "description": "Where."},
                "start": {"type": "integer"},
                "all": {"type": "boolean"},
                "many": {"anyOf": [{"type": "string"}, {"type": "array", "items": {"type": "string"}}]},
                "format": {"type": "string", "description": "A field whose name is a keyword of schemas."},
            },
            "required": ["path"],
        });
        assert_eq!(of::<Sample>(), expected);
    }

    #[track_caller]
    fn check_error(text: &str, expected: &str) {
        let error = parse(text).and_then(|mut value| check(&spec(), &mut value)).unwrap_err();
        assert!(error.contains(expected), "{error}");
    }

    #[test]
    fn wrong_arguments_name_the_field_and_what_is_taken() {
        check_error(r#"{"path": "#, "line 1 column");
        check_error("[1]", "are an array");
        check_error("{}", "missing field `path`; sample takes {path: string, start?: integer, all?: boolean");
        check_error(r#"{"path":null}"#, "`path` must be string, got null");
        check_error(r#"{"path":"a","file":"b"}"#, "unknown field `file`");
        check_error(r#"{"path":"a","start":"x"}"#, r#"`start` must be an integer of 0 or more, got "x""#);
        check_error(r#"{"path":"a","start":-1}"#, "`start` must be");
        check_error(r#"{"path":"a","many":[1]}"#, "`many` must be string | [string], got [1]");
    }

    #[test]
    fn what_has_one_obvious_meaning_is_mended() {
        let mut value = parse(r#""{\"path\":\"a\",\"start\":\"12\",\"all\":\"True\",\"many\":null}""#).unwrap();
        check(&spec(), &mut value).unwrap();
        assert_eq!(value, json!({"path": "a", "start": 12, "all": true}));
        assert_eq!(read::<Sample>(value).unwrap().start, Some(12));
        assert_eq!(parse("  ").unwrap(), json!({}));
    }
}
