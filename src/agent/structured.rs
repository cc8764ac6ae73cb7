//! Reading a JSON answer out of a model's text (C16, U3): code fences and words around it left
//! out, checked against a type, and an error that a model can act on.

use serde::de::DeserializeOwned;
use serde_json::Value;

use crate::stdx::json;

/// The outermost JSON object of `text` as a `T`.
///
/// # Errors
/// Says what is wrong, to be sent back to the model: no object, broken JSON with its place, or a
/// field that is missing or of the wrong type.
pub fn parse<T: DeserializeOwned>(text: &str) -> Result<T, String> {
    let value: Value = match serde_json::from_str(text.trim()) {
        Ok(value @ Value::Object(_)) => value,
        _ => {
            let object = json::outermost_object(text).ok_or("there is no JSON object in the answer")?;
            serde_json::from_str(object).map_err(|e| format!("the JSON object is broken: {e}"))?
        }
    };
    serde_json::from_value(value).map_err(|e| format!("the JSON object does not fit: {e}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Answer {
        n: u32,
    }

    #[track_caller]
    fn check(text: &str, expected: Result<u32, &str>) {
        let got = parse::<Answer>(text).map(|a| a.n);
        match (got, expected) {
            (Ok(n), Ok(m)) => assert_eq!(n, m),
            (Err(e), Err(part)) => assert!(e.contains(part), "{e}"),
            (got, expected) => panic!("{got:?} instead of {expected:?}"),
        }
    }

    #[test]
    fn an_answer_is_found_in_what_models_write_around_it() {
        check("{\"n\":1}", Ok(1));
        check("```json\n{\"n\": 2, \"extra\": {}}\n```", Ok(2));
        check("Sure! {\"n\":3} Anything else?", Ok(3));
        check("no", Err("no JSON object"));
        check("{\"n\":", Err("no JSON object"));
        check("{\"n\": }", Err("broken"));
        check("{\"m\":1}", Err("missing field `n`"));
        check("[{\"n\":1}]", Ok(1));
    }
}
