//! Durations as `90s`, `5m`, `1h30m`; a bare number is seconds.

use std::fmt;
use std::time::Duration;

use serde::de::{self, Visitor};
use serde::{Deserializer, Serializer};

/// Longest duration taken: a hundred years. Far beyond any use, and still safe to add to a time.
const LONGEST: Duration = Duration::from_secs(100 * 366 * 86_400);

/// Writes a duration so that [`deserialize`] reads the same one: `90s`, or `250ms`.
pub fn serialize<S: Serializer>(duration: &Duration, serializer: S) -> Result<S::Ok, S::Error> {
    serializer.collect_str(&Written(*duration))
}

/// Reads `90s`, `5m`, `1h30m`, `500ms` or seconds.
pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Duration, D::Error> {
    deserializer.deserialize_any(Words)
}

/// A duration as people read it: `45s`, `5m`, `1h30m`, `250ms`.
pub fn words(duration: Duration) -> String {
    let seconds = duration.as_secs();
    if seconds == 0 || duration.subsec_millis() != 0 {
        return Written(duration).to_string();
    }
    let parts = [(seconds / 3600, "h"), (seconds / 60 % 60, "m"), (seconds % 60, "s")];
    parts.iter().filter(|(n, _)| *n > 0).map(|(n, unit)| format!("{n}{unit}")).collect()
}

/// Reads `90s`, `5m`, `1h30m`, `500ms` or a bare number of seconds.
///
/// # Errors
/// Says what is wrong and shows the forms.
pub fn parse(words: &str) -> Result<Duration, String> {
    let bad = || format!("`{words}` is not a duration; write it as `90s`, `5m` or `1h30m`");
    let trimmed = words.trim();
    if let Ok(seconds) = trimmed.parse::<u64>() {
        return within(Duration::from_secs(seconds)).ok_or_else(bad);
    }
    let mut total = Duration::ZERO;
    let mut rest = trimmed;
    if rest.is_empty() {
        return Err(bad());
    }
    while !rest.is_empty() {
        let digits = rest.find(|c: char| !c.is_ascii_digit()).ok_or_else(bad)?;
        let n: u64 = rest[..digits].parse().map_err(|_| bad())?;
        rest = &rest[digits..];
        let unit_len = rest.find(|c: char| c.is_ascii_digit()).unwrap_or(rest.len());
        let ms = match rest[..unit_len].trim() {
            "ms" => 1,
            "s" => 1_000,
            "m" | "min" => 60_000,
            "h" => 3_600_000,
            "d" => 86_400_000,
            _ => return Err(bad()),
        };
        let part = Duration::from_millis(n.checked_mul(ms).ok_or_else(bad)?);
        total = total.checked_add(part).and_then(within).ok_or_else(bad)?;
        rest = &rest[unit_len..];
    }
    Ok(total)
}

fn within(duration: Duration) -> Option<Duration> {
    (duration <= LONGEST).then_some(duration)
}

struct Written(Duration);

impl fmt::Display for Written {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.0.subsec_millis() {
            0 => write!(f, "{}s", self.0.as_secs()),
            _ => write!(f, "{}ms", self.0.as_millis()),
        }
    }
}

struct Words;

impl Visitor<'_> for Words {
    type Value = Duration;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a duration like `90s`, `5m` or `1h30m`")
    }

    fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Duration, E> {
        self.visit_str(&seconds.to_string())
    }

    fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Duration, E> {
        self.visit_str(&seconds.to_string())
    }

    fn visit_str<E: de::Error>(self, words: &str) -> Result<Duration, E> {
        parse(words).map_err(E::custom)
    }
}

/// The same for a value that may be absent.
pub mod option {
    use std::fmt;

    use serde::de::{self, Visitor};

    use super::{Deserializer, Duration, Serializer, Words};

    /// Writes a duration, or nothing.
    pub fn serialize<S: Serializer>(duration: &Option<Duration>, serializer: S) -> Result<S::Ok, S::Error> {
        match duration {
            Some(duration) => super::serialize(duration, serializer),
            None => serializer.serialize_none(),
        }
    }

    /// Reads a duration, or nothing.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Duration>, D::Error> {
        deserializer.deserialize_any(Maybe)
    }

    struct Maybe;

    impl Visitor<'_> for Maybe {
        type Value = Option<Duration>;

        fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
            Words.expecting(f)
        }

        fn visit_u64<E: de::Error>(self, seconds: u64) -> Result<Self::Value, E> {
            Words.visit_u64(seconds).map(Some)
        }

        fn visit_i64<E: de::Error>(self, seconds: i64) -> Result<Self::Value, E> {
            Words.visit_i64(seconds).map(Some)
        }

        fn visit_str<E: de::Error>(self, words: &str) -> Result<Self::Value, E> {
            Words.visit_str(words).map(Some)
        }

        fn visit_unit<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }

        fn visit_none<E: de::Error>(self) -> Result<Self::Value, E> {
            Ok(None)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn durations_are_read_as_people_write_them() {
        assert_eq!(parse("90s"), Ok(Duration::from_secs(90)));
        assert_eq!(parse("1h30m"), Ok(Duration::from_secs(5400)));
        assert_eq!(parse("250ms"), Ok(Duration::from_millis(250)));
        assert_eq!(parse("45"), Ok(Duration::from_secs(45)));
        let bad =
            ["", "s", "5 parsecs", "-3s", "99999999999999999999s", "9999999999999999999h", "18446744073709551615"];
        for bad in bad {
            assert!(parse(bad).is_err(), "{bad}");
        }
    }

    #[test]
    fn durations_are_written_as_they_are_read() {
        for (duration, expected) in [(0, "0s"), (250, "250ms"), (45_000, "45s"), (300_000, "5m"), (5_400_000, "1h30m")]
        {
            let duration = Duration::from_millis(duration);
            assert_eq!(words(duration), expected);
            assert_eq!(parse(&words(duration)), Ok(duration));
            assert_eq!(parse(&Written(duration).to_string()), Ok(duration));
        }
    }
}
