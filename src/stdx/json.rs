//! JSON in one fixed form, for comparing and hashing.

use serde_json::Value;

/// The same text for equal values, whatever the order of their keys.
pub fn canonical(value: &Value) -> String {
    let mut out = String::new();
    write_canonical(value, &mut out);
    out
}

fn write_canonical(value: &Value, out: &mut String) {
    match value {
        Value::Object(map) => {
            let mut keys: Vec<_> = map.keys().collect();
            keys.sort();
            out.push('{');
            for (i, key) in keys.into_iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                out.push_str(&Value::String(key.clone()).to_string());
                out.push(':');
                write_canonical(&map[key], out);
            }
            out.push('}');
        }
        Value::Array(items) => {
            out.push('[');
            for (i, item) in items.iter().enumerate() {
                if i > 0 {
                    out.push(',');
                }
                write_canonical(item, out);
            }
            out.push(']');
        }
        other => out.push_str(&other.to_string()),
    }
}

/// The outermost JSON object in `text`, code fences and words around it left out (A20).
pub fn outermost_object(text: &str) -> Option<&str> {
    let start = text.find('{')?;
    let end = text.rfind('}')?;
    (start < end).then(|| &text[start..=end])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn key_order_does_not_matter() {
        let a: Value = serde_json::from_str(r#"{"b":[1,{"y":1,"x":2}],"a":null}"#).unwrap();
        assert_eq!(canonical(&a), r#"{"a":null,"b":[1,{"x":2,"y":1}]}"#);
    }

    #[test]
    fn an_object_is_found_between_words_and_fences() {
        assert_eq!(outermost_object("Here:\n```json\n{\"a\":{}}\n``` done"), Some("{\"a\":{}}"));
        assert_eq!(outermost_object("} {"), None);
    }
}
