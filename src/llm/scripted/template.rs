//! Quotes earlier tool results in what a scripted model says: `{{result 1}}`, `{{result last}}`.
//! Anything else between braces stays as it is; pages and programs are full of them.

use serde_json::Value;

/// `text` with every quotation filled in from `results`, the tool results of this run in order.
///
/// # Errors
/// Says which result is missing.
pub fn fill(text: &str, results: &[String]) -> Result<String, String> {
    let mut out = String::with_capacity(text.len());
    let mut rest = text;
    while let Some(start) = rest.find("{{result ") {
        let inner = &rest[start + "{{result ".len()..];
        let Some(end) = inner.find("}}") else { break };
        let which = inner[..end].trim();
        let Some(index) = index_of(which, results.len()) else {
            // Not a quotation after all.
            out.push_str(&rest[..start + 2]);
            rest = &rest[start + 2..];
            continue;
        };
        let result = results.get(index).ok_or_else(|| {
            format!("it quotes `{{{{result {which}}}}}`, but there are {} tool results so far", results.len())
        })?;
        out.push_str(&rest[..start]);
        out.push_str(result);
        rest = &inner[end + 2..];
    }
    out.push_str(rest);
    Ok(out)
}

/// As [`fill`], for every string in `value`.
///
/// # Errors
/// Says which result is missing.
pub fn fill_value(value: &Value, results: &[String]) -> Result<Value, String> {
    Ok(match value {
        Value::String(text) => Value::String(fill(text, results)?),
        Value::Array(items) => {
            Value::Array(items.iter().map(|item| fill_value(item, results)).collect::<Result<_, _>>()?)
        }
        Value::Object(map) => Value::Object(
            map.iter()
                .map(|(key, item)| Ok((key.clone(), fill_value(item, results)?)))
                .collect::<Result<_, String>>()?,
        ),
        Value::Null | Value::Bool(_) | Value::Number(_) => value.clone(),
    })
}

/// Index of `last` or of a number from 1; an index past the end when there is none such.
fn index_of(which: &str, len: usize) -> Option<usize> {
    if which == "last" {
        return Some(len.checked_sub(1).unwrap_or(usize::MAX));
    }
    let n: usize = which.parse().ok()?;
    Some(n.checked_sub(1).unwrap_or(usize::MAX))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check(text: &str, expected: &str) {
        let results = ["one".to_owned(), "two {{result 1}}".to_owned()];
        assert_eq!(fill(text, &results).as_deref(), Ok(expected));
    }

    #[test]
    fn results_are_quoted_and_other_braces_stay() {
        check("a {{result 1}} b", "a one b");
        check("{{result last}}", "two {{result 1}}");
        check("{{ name }} {{result}} {{result x}} {{result 1", "{{ name }} {{result}} {{result x}} {{result 1");
        check("{{result x}}{{result 1}}", "{{result x}}one");
    }

    #[test]
    fn a_result_that_is_not_there_is_named() {
        let error = fill("{{result 3}}", &["one".to_owned()]).unwrap_err();
        assert_eq!(error, "it quotes `{{result 3}}`, but there are 1 tool results so far");
        assert!(fill("{{result last}}", &[]).is_err());
        assert!(fill("{{result 0}}", &["one".to_owned()]).is_err());
    }

    #[test]
    fn strings_inside_arguments_are_filled_too() {
        let value = serde_json::json!({"a": ["{{result 1}}", 2], "b": {"c": "{{result 1}}"}});
        let filled = fill_value(&value, &["x".to_owned()]).unwrap();
        assert_eq!(filled, serde_json::json!({"a": ["x", 2], "b": {"c": "x"}}));
    }
}
