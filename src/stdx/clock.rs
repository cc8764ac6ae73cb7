//! Time, passed in so that tests decide what it is.

use std::fmt;
use std::sync::Arc;
use std::sync::atomic::{AtomicI64, Ordering};

use jiff::{Timestamp, Unit};

/// Where the current time comes from.
pub trait Clock: Send + Sync + fmt::Debug {
    /// Now, in UTC, cut to whole milliseconds as every record of ours is.
    fn now(&self) -> Timestamp;
}

/// The machine's clock.
#[derive(Debug, Default, Clone, Copy)]
pub struct SystemClock;

impl Clock for SystemClock {
    fn now(&self) -> Timestamp {
        let now = Timestamp::now();
        Timestamp::from_millisecond(now.as_millisecond()).unwrap_or(now)
    }
}

/// A clock that starts at a given instant and moves a fixed step at every look.
#[derive(Debug)]
pub struct SteppingClock {
    next_ms: AtomicI64,
    step_ms: i64,
}

impl SteppingClock {
    /// Starts at `start` (milliseconds since the epoch) and adds `step_ms` at every look.
    pub fn new(start: i64, step_ms: i64) -> Arc<Self> {
        Arc::new(Self { next_ms: AtomicI64::new(start), step_ms })
    }
}

impl Clock for SteppingClock {
    fn now(&self) -> Timestamp {
        let ms = self.next_ms.fetch_add(self.step_ms, Ordering::Relaxed);
        Timestamp::from_millisecond(ms).unwrap_or(Timestamp::UNIX_EPOCH)
    }
}

/// `2026-11-21T12:04:07.113Z`: RFC 3339, UTC, milliseconds (A4).
pub fn rfc3339(at: Timestamp) -> String {
    format!("{:.3}", at.round(Unit::Millisecond).unwrap_or(at))
}

/// `2026-11-21 12:04 UTC`, as the Worker's prompt states the time (A9).
pub fn minute(at: Timestamp) -> String {
    at.strftime("%Y-%m-%d %H:%M UTC").to_string()
}

/// Serde form of a timestamp: RFC 3339 with milliseconds.
pub mod serde_rfc3339 {
    use jiff::Timestamp;
    use serde::{Deserialize, Deserializer, Serializer};

    /// Writes RFC 3339 with milliseconds.
    pub fn serialize<S: Serializer>(at: &Timestamp, serializer: S) -> Result<S::Ok, S::Error> {
        serializer.collect_str(&format_args!("{at:.3}"))
    }

    /// Reads any RFC 3339 instant.
    pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Timestamp, D::Error> {
        Timestamp::deserialize(deserializer)
    }

    /// The same for a value that may be absent.
    pub mod option {
        use super::{Deserialize, Deserializer, Serializer, Timestamp};

        /// Writes RFC 3339 with milliseconds, or null.
        pub fn serialize<S: Serializer>(at: &Option<Timestamp>, serializer: S) -> Result<S::Ok, S::Error> {
            match at {
                Some(at) => super::serialize(at, serializer),
                None => serializer.serialize_none(),
            }
        }

        /// Reads any RFC 3339 instant, or null.
        pub fn deserialize<'de, D: Deserializer<'de>>(deserializer: D) -> Result<Option<Timestamp>, D::Error> {
            Option::<Timestamp>::deserialize(deserializer)
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn milliseconds_are_always_written() {
        let at = Timestamp::from_millisecond(1_795_262_647_000).unwrap();
        assert_eq!(rfc3339(at), "2026-11-21T12:04:07.000Z");
        assert_eq!(minute(at), "2026-11-21 12:04 UTC");
    }
}
