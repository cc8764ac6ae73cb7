//! The contract of a session: objective, expected outcome and acceptance commands (A28,
//! architecture.md "Contract"). Pure.

use serde_json::Value;

use crate::events::data::Contract;
use crate::stdx::json;

/// BLAKE3 of the canonical contract, in hexadecimal.
pub fn hash(contract: &Contract) -> String {
    let value = serde_json::to_value(contract).unwrap_or(Value::Null);
    blake3::hash(json::canonical(&value).as_bytes()).to_hex().to_string()
}

/// The files that the expected outcome names (A28).
pub fn expected_files(contract: &Contract) -> Vec<String> {
    let files = contract.expected_output.as_ref().and_then(|e| e.get("files")).and_then(Value::as_array);
    files.into_iter().flatten().filter_map(Value::as_str).map(str::to_owned).collect()
}

/// The expected outcome as text: a string as it is, anything else as pretty JSON; empty when not
/// given.
pub fn expected_text(contract: &Contract) -> String {
    match &contract.expected_output {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => serde_json::to_string_pretty(other).unwrap_or_else(|_| other.to_string()),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn a_change_of_the_contract_changes_its_hash_and_key_order_does_not() {
        let contract = |expected: Value| Contract { expected_output: Some(expected), ..Contract::default() };
        assert_eq!(hash(&contract(json!({"a": 1, "b": 2}))), hash(&contract(json!({"b": 2, "a": 1}))));
        assert_ne!(hash(&contract(json!({"a": 1}))), hash(&contract(json!({"a": 2}))));
    }

    #[test]
    fn expected_outcomes_may_be_text_or_anything() {
        let contract = |expected: Value| Contract { expected_output: Some(expected), ..Contract::default() };
        let object = contract(json!({"files": ["index.html", 3], "requirements": ["a title"]}));
        assert_eq!(expected_files(&object), ["index.html"]);
        assert_eq!(expected_text(&contract(json!("a page"))), "a page");
        assert!(expected_text(&object).contains("\"requirements\": ["));
        assert_eq!(expected_text(&Contract::default()), "");
    }
}
