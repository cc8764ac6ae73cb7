//! The settings that differ from what is built in, each with where it came from. A value that
//! could hold a secret (a header) is not shown.

use serde_json::Value;

use super::{Item, Loaded, Source, Status};
use crate::config::positions::dotted;

/// One item for each setting that has a source.
pub(super) fn items(loaded: &Loaded) -> Vec<Item> {
    // The whole configuration as data, so that values are shown as they count.
    let config = serde_json::to_value(&loaded.config).unwrap_or_default();
    loaded.sources.iter().map(|(key, source)| item(&config, key, source)).collect()
}

fn item(config: &Value, key: &str, source: &Source) -> Item {
    let value = if key.contains(".headers.") {
        "(not shown)".to_owned()
    } else {
        find(config, "", key).map_or_else(String::new, shown)
    };
    Item::plain(Status::Info, key, format!("{value}  ({source})"))
}

/// The value of a dotted key.
fn find<'a>(table: &'a Value, above: &str, key: &str) -> Option<&'a Value> {
    table.as_object()?.iter().find_map(|(name, value)| {
        let path = dotted(above, name);
        if path == key {
            return Some(value);
        }
        key.starts_with(&format!("{path}.")).then(|| find(value, &path, key)).flatten()
    })
}

/// An address without the name and password that can stand before its host.
pub(super) fn without_password(url: &str) -> String {
    let Some((scheme, rest)) = url.split_once("://") else { return url.to_owned() };
    let (host, path) = rest.split_at(rest.find('/').unwrap_or(rest.len()));
    match host.rsplit_once('@') {
        Some((_, host)) => format!("{scheme}://{host}{path}"),
        None => url.to_owned(),
    }
}

fn shown(value: &Value) -> String {
    match value {
        Value::String(text) => without_password(text),
        other => other.to_string(),
    }
}
