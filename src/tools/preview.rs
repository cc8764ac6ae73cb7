//! Arguments in short, for events (4 KB a field at most). Not for anything that is run or stored.

use serde_json::{Map, Value};

use crate::stdx::bounded;

/// `arguments` within about `max_bytes` of JSON: long texts are cut, long lists end early.
pub fn preview_arguments(arguments: &Value, max_bytes: usize) -> Value {
    let whole = arguments.to_string().len();
    if whole <= max_bytes {
        return arguments.clone();
    }
    let mut longest = max_bytes / 2;
    while longest >= 16 {
        let short = shorten(arguments, longest);
        if short.to_string().len() <= max_bytes {
            return short;
        }
        longest /= 2;
    }
    let mut only = Map::new();
    only.insert("…".to_owned(), Value::String(format!("{whole} bytes of arguments")));
    Value::Object(only)
}

fn shorten(value: &Value, longest: usize) -> Value {
    match value {
        Value::String(text) => Value::String(bounded::preview(text, longest)),
        Value::Array(items) => {
            let shown = items.iter().take(longest / 8).map(|item| shorten(item, longest));
            let mut short: Vec<Value> = shown.collect();
            if short.len() < items.len() {
                short.push(Value::String(format!("… {} more", items.len() - short.len())));
            }
            Value::Array(short)
        }
        Value::Object(map) => {
            Value::Object(map.iter().map(|(key, value)| (key.clone(), shorten(value, longest))).collect())
        }
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn long_texts_are_cut_and_short_fields_stay() {
        let arguments = json!({"path": "src/a.rs", "content": "漢".repeat(10_000)});
        let short = preview_arguments(&arguments, 1000);
        assert!(short.to_string().len() <= 1000);
        assert_eq!(short["path"], "src/a.rs");
        assert!(short["content"].as_str().unwrap().ends_with('…'));
        assert_eq!(preview_arguments(&json!({"a": 1}), 1000), json!({"a": 1}));
    }

    #[test]
    fn what_can_not_be_cut_is_counted() {
        let many: Map<String, Value> = (0..1000).map(|n| (format!("key{n}"), json!(n))).collect();
        let short = preview_arguments(&Value::Object(many), 200);
        assert!(short.to_string().len() <= 200, "{short}");
        let list = json!({"add": vec!["x".repeat(100); 500]});
        assert!(preview_arguments(&list, 400).to_string().len() <= 400);
    }
}
