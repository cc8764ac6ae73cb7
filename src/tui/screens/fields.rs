//! What is typed into forms, read: numbers, money, durations, commands, JSON. Shared by the launch
//! form and the contract. Each reader says what is wrong and how to write it instead.

use serde_json::{Map, Value};

use crate::config::duration;
use crate::events::data::Budget;
use crate::tui::widgets::form::{Field, Form};

/// Ids of the budget's fields.
pub const TOKENS: &str = "tokens";
/// Money.
pub const MONEY: &str = "money";
/// Time.
pub const TIME: &str = "time";
/// Cycles.
pub const CYCLES: &str = "cycles";

/// The fields of cycles and budget.
pub fn limits(default_cycles: u32) -> Vec<Field> {
    vec![
        Field::line(
            CYCLES,
            "Max cycles",
            &default_cycles.to_string(),
            "how often Worker and Checker may go round; at least 1",
        ),
        Field::line(TOKENS, "Token budget", "no limit", "tokens sent and received, such as `200k` or `1.5M`"),
        Field::line(MONEY, "Money budget", "no limit", "US dollars, such as `2.50`; counts calls whose price is known"),
        Field::line(TIME, "Time budget", "no limit", "running time, such as `90s`, `5m` or `1h30m`"),
    ]
}

/// Reads a form's fields and collects what is wrong with them.
pub struct FieldReader<'a> {
    form: &'a Form,
    /// Field and what is wrong with it.
    pub errors: Vec<(&'static str, String)>,
}

impl<'a> FieldReader<'a> {
    /// Reads from a form.
    pub fn new(form: &'a Form) -> Self {
        Self { form, errors: Vec::new() }
    }

    /// Whatever `read` makes of a field's text; none when it is blank or wrong.
    pub fn read<T>(&mut self, id: &'static str, read: impl FnOnce(&str) -> Result<T, String>) -> Option<T> {
        let text = self.form.text(id);
        let text = text.trim();
        if text.is_empty() {
            return None;
        }
        match read(text) {
            Ok(value) => Some(value),
            Err(why) => {
                self.errors.push((id, why));
                None
            }
        }
    }

    /// Lines with something on them.
    pub fn lines(&self, id: &str) -> Vec<String> {
        self.form.text(id).lines().map(str::trim).filter(|line| !line.is_empty()).map(str::to_owned).collect()
    }

    /// The three limits.
    pub fn budget(&mut self) -> Budget {
        Budget { tokens: self.read(TOKENS, tokens), usd: self.read(MONEY, money), time_ms: self.read(TIME, time) }
    }
}

/// A whole number, at least 1.
pub fn cycles(text: &str) -> Result<u32, String> {
    match text.parse::<u32>() {
        Ok(n) if n >= 1 => Ok(n),
        Ok(_) | Err(_) => Err(format!("`{text}` is not a number of cycles; at least 1")),
    }
}

/// `200000`, `200k`, `1.5M`.
pub fn tokens(text: &str) -> Result<u64, String> {
    let bad = || format!("`{text}` is not a number of tokens; write it as `200000`, `200k` or `1.5M`");
    let plain = text.replace(['_', ' '], "");
    let (digits, factor) = match plain.strip_suffix(['k', 'K']) {
        Some(digits) => (digits, 1e3),
        None => match plain.strip_suffix(['m', 'M']) {
            Some(digits) => (digits, 1e6),
            None => (plain.as_str(), 1.0),
        },
    };
    let number: f64 = digits.parse().map_err(|_| bad())?;
    let tokens = number * factor;
    if (1.0..=1e15).contains(&tokens) { Ok(tokens as u64) } else { Err(bad()) }
}

/// `2.50`, `$3`.
pub fn money(text: &str) -> Result<f64, String> {
    let bad = || format!("`{text}` is not an amount of money; write US dollars as `2.50`");
    let amount: f64 = text.trim_start_matches('$').trim().parse().map_err(|_| bad())?;
    if amount > 0.0 && amount.is_finite() { Ok(amount) } else { Err(bad()) }
}

/// `90s`, `5m`, `1h30m`; in milliseconds.
pub fn time(text: &str) -> Result<u64, String> {
    let length = duration::parse(text)?;
    if length.is_zero() {
        return Err(format!("`{text}` leaves no time at all; write it as `90s`, `5m` or `1h30m`"));
    }
    u64::try_from(length.as_millis()).map_err(|_| format!("`{text}` is longer than can be counted"))
}

/// A JSON object.
pub fn inputs(text: &str) -> Result<Map<String, Value>, String> {
    match serde_json::from_str::<Value>(text) {
        Ok(Value::Object(map)) => Ok(map),
        Ok(_) => Err("not a JSON object; write it as `{\"name\": \"value\"}`".to_owned()),
        Err(error) => Err(format!("not JSON: {error}; write it as `{{\"name\": \"value\"}}`")),
    }
}

/// What the result must be: text, or an object in JSON or, when it begins with one of the two
/// known keys, in YAML (A28).
pub fn expected(text: &str) -> Result<Value, String> {
    if text.starts_with('{') || text.starts_with('[') {
        return serde_json::from_str(text).map_err(|error| format!("begins like JSON but is none: {error}"));
    }
    let first = text.lines().next().unwrap_or("");
    let key = first.split(':').next().map(str::trim_end);
    if first.contains(':') && matches!(key, Some("files" | "requirements")) {
        return serde_saphyr::from_str(text).map_err(|error| {
            let error = error.to_string();
            format!("begins like YAML but is none: {}", error.lines().next().unwrap_or(""))
        });
    }
    Ok(Value::String(text.to_owned()))
}

/// The same as it is put into a field to be edited.
pub fn expected_text(value: Option<&Value>) -> String {
    match value {
        None | Some(Value::Null) => String::new(),
        Some(Value::String(text)) => text.clone(),
        Some(other) => serde_json::to_string_pretty(other).unwrap_or_default(),
    }
}

/// Milliseconds as they are typed.
pub fn time_text(ms: u64) -> String {
    let s = ms / 1000;
    match (s % 3600, s % 60) {
        (0, _) if s > 0 => format!("{}h", s / 3600),
        (_, 0) if s > 0 => format!("{}m", s / 60),
        _ => format!("{s}s"),
    }
}

#[cfg(test)]
mod tests {
    use serde_json::json;

    use super::*;

    #[test]
    fn numbers_are_read_as_people_write_them() {
        assert_eq!(
            ["200000", "200k", "1.5M", "1_000"].map(tokens),
            [Ok(200_000), Ok(200_000), Ok(1_500_000), Ok(1_000)]
        );
        assert_eq!(
            tokens("many").unwrap_err(),
            "`many` is not a number of tokens; write it as `200000`, `200k` or `1.5M`"
        );
        assert_eq!((money("2.50"), money("$3")), (Ok(2.5), Ok(3.0)));
        assert!(["0", "-1", "free", "inf", "NaN"].iter().all(|text| money(text).is_err()));
        assert_eq!((cycles("3"), time("1h30m")), (Ok(3), Ok(5_400_000)));
        assert!(cycles("0").is_err() && time("0s").is_err() && tokens("0").is_err() && tokens("-5").is_err());
        assert_eq!([5_400_000, 7_200_000, 90_000, 45_000].map(time_text), ["90m", "2h", "90s", "45s"]);
    }

    #[test]
    fn an_expected_outcome_is_text_unless_it_is_plainly_an_object() {
        assert_eq!(expected("Note: keep it short"), Ok(json!("Note: keep it short")));
        assert_eq!(expected("{\"files\": [\"a\"]}"), Ok(json!({"files": ["a"]})));
        assert_eq!(expected("files:\n  - a\nrequirements:\n  - b"), Ok(json!({"files": ["a"], "requirements": ["b"]})));
        assert!(expected("{\"files\":").unwrap_err().starts_with("begins like JSON but is none: "));
        assert!(expected("files: [a").unwrap_err().starts_with("begins like YAML but is none: "));
        assert_eq!(expected_text(Some(&json!({"a": 1}))), "{\n  \"a\": 1\n}");
    }

    #[test]
    fn inputs_are_an_object() {
        assert_eq!(inputs("{\"a\": 1}").map(|map| map.len()), Ok(1));
        assert!(inputs("[1]").is_err() && inputs("{a").is_err());
    }
}
