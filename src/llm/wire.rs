//! Small tools for both protocols: JSON written straight into a request's bytes, and text that is
//! read from a stream without a copy where that is possible, in whatever shape it comes.

use std::borrow::Cow;
use std::fmt;

use serde::de::{Deserialize, Deserializer, IgnoredAny, MapAccess, SeqAccess, Visitor};
use serde_json::Value;

/// Writes `text` as a JSON string.
pub fn write_str(out: &mut Vec<u8>, text: &str) {
    write_json(out, text);
}

/// Writes `value` as JSON.
pub fn write_json<T: serde::Serialize + ?Sized>(out: &mut Vec<u8>, value: &T) {
    serde_json::to_writer(out, value).expect("memory takes every byte, and the keys of what is written are strings");
}

/// Writes `"key":` with a comma before it unless it is the first of its object.
pub fn write_key(out: &mut Vec<u8>, key: &str) {
    write_separator(out);
    write_str(out, key);
    out.push(b':');
}

/// Writes a comma unless an object or a list has just begun.
pub fn write_separator(out: &mut Vec<u8>) {
    if !matches!(out.last(), Some(b'{' | b'[') | None) {
        out.push(b',');
    }
}

/// The arguments of a call as a JSON object. A model's slip is wrapped, so that no server chokes
/// on it: some parse what they are sent.
pub fn arguments_object(arguments: &str) -> Cow<'_, str> {
    let trimmed = arguments.trim();
    if trimmed.is_empty() {
        return Cow::Borrowed("{}");
    }
    if trimmed.starts_with('{') && serde_json::from_str::<IgnoredAny>(trimmed).is_ok() {
        return Cow::Borrowed(trimmed);
    }
    Cow::Owned(serde_json::json!({ "arguments_as_written": arguments }).to_string())
}

/// Media type and base64 content of a `data:` URL.
pub fn data_url(url: &str) -> Option<(&str, &str)> {
    let (media_type, data) = url.strip_prefix("data:")?.split_once(',')?;
    Some((media_type.strip_suffix(";base64")?, data))
}

/// A piece of text. Providers send strings, nulls, lists of text parts and, for arguments, whole
/// objects; all of it is text here, objects as JSON.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Text<'a>(pub Cow<'a, str>);

impl Text<'_> {
    /// The text, when there is any.
    pub fn some(piece: &Option<Self>) -> Option<&str> {
        piece.as_ref().map(|text| text.0.as_ref()).filter(|text| !text.is_empty())
    }
}

impl<'de: 'a, 'a> Deserialize<'de> for Text<'a> {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_any(TextVisitor)
    }
}

struct TextVisitor;

impl<'de> Visitor<'de> for TextVisitor {
    type Value = Text<'de>;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("text")
    }

    fn visit_borrowed_str<E>(self, text: &'de str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Borrowed(text)))
    }

    fn visit_str<E>(self, text: &str) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(text.to_owned())))
    }

    fn visit_unit<E>(self) -> Result<Self::Value, E> {
        Ok(Text::default())
    }

    fn visit_bool<E>(self, value: bool) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_u64<E>(self, value: u64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_i64<E>(self, value: i64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_f64<E>(self, value: f64) -> Result<Self::Value, E> {
        Ok(Text(Cow::Owned(value.to_string())))
    }

    fn visit_seq<A: SeqAccess<'de>>(self, mut parts: A) -> Result<Self::Value, A::Error> {
        let mut joined = String::new();
        while let Some(part) = parts.next_element::<Value>()? {
            let text = part.as_str().or_else(|| part.get("text").and_then(Value::as_str));
            joined.push_str(text.unwrap_or(""));
        }
        Ok(Text(Cow::Owned(joined)))
    }

    fn visit_map<A: MapAccess<'de>>(self, map: A) -> Result<Self::Value, A::Error> {
        let object = Value::deserialize(serde::de::value::MapAccessDeserializer::new(map))?;
        Ok(Text(Cow::Owned(object.to_string())))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[derive(Debug, PartialEq, serde::Deserialize)]
    struct Holder<'a> {
        #[serde(borrow)]
        text: Option<Text<'a>>,
    }

    #[test]
    fn text_comes_in_any_shape_and_is_not_copied_without_need() {
        let read = |json: &'static str| serde_json::from_str::<Holder<'_>>(json).unwrap().text;
        assert!(matches!(read(r#"{"text":"plain"}"#), Some(Text(Cow::Borrowed("plain")))));
        assert_eq!(Text::some(&read(r#"{"text":"a\nb"}"#)), Some("a\nb"));
        assert_eq!(read(r#"{"text":null}"#), None);
        assert_eq!(Text::some(&read(r#"{"text":[{"type":"text","text":"a"},"b"]}"#)), Some("ab"));
        assert_eq!(Text::some(&read(r#"{"text":{"a":1}}"#)), Some(r#"{"a":1}"#));
        assert_eq!(Text::some(&read(r#"{"text":""}"#)), None);
    }

    #[test]
    fn arguments_are_always_an_object() {
        assert_eq!(arguments_object(r#" {"a": 1} "#), r#"{"a": 1}"#);
        assert_eq!(arguments_object(""), "{}");
        assert_eq!(arguments_object(r#"{"a": "#), r#"{"arguments_as_written":"{\"a\": "}"#);
        assert_eq!(arguments_object("[1]"), r#"{"arguments_as_written":"[1]"}"#);
    }

    #[test]
    fn a_data_url_is_taken_apart() {
        assert_eq!(data_url("data:image/png;base64,aGk="), Some(("image/png", "aGk=")));
        assert_eq!(data_url("https://example.com/a.png"), None);
    }
}
