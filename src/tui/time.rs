//! Instants as the panes show them. Durations and ages are `widgets::format`'s.

use jiff::Timestamp;
use jiff::tz::TimeZone;

/// `12:04:07` in the person's time zone.
pub fn of_day(at: Timestamp, zone: &TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// Milliseconds between two instants, never negative.
pub fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond().saturating_sub(from.as_millisecond())).unwrap_or(0)
}
