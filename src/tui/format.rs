//! Numbers as a person reads them at a glance: tokens, money, time, bytes. Text only, no style.

use jiff::Timestamp;

/// `950`, `48.2k`, `1.3M`.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..99_950 => format!("{:.1}k", n as f64 / 1e3),
        99_950..999_500 => format!("{:.0}k", n as f64 / 1e3),
        999_500..99_950_000 => format!("{:.1}M", n as f64 / 1e6),
        _ => format!("{:.0}M", n as f64 / 1e6),
    }
}

/// `$0.31`, `$0.0042`, `$12.40`.
pub fn money(usd: f64) -> String {
    if usd == 0.0 || usd >= 0.01 { format!("${usd:.2}") } else { format!("${usd:.4}") }
}

/// How long a call took: `3ms`, `4.1s`, `2m 05s`.
pub fn took(ms: u64) -> String {
    match ms {
        0..1_000 => format!("{ms}ms"),
        1_000..60_000 => format!("{:.1}s", ms as f64 / 1e3),
        60_000..3_600_000 => format!("{}m {:02}s", ms / 60_000, ms / 1_000 % 60),
        _ => format!("{}h {:02}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// A running clock: `03:12`, `1:02:10`.
pub fn elapsed(ms: u64) -> String {
    let (hours, minutes, seconds) = (ms / 3_600_000, ms / 60_000 % 60, ms / 1_000 % 60);
    if hours > 0 { format!("{hours}:{minutes:02}:{seconds:02}") } else { format!("{minutes:02}:{seconds:02}") }
}

/// How long ago: `now`, `5m`, `3h`, `2d`.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    let seconds = (now.as_second() - then.as_second()).max(0);
    match seconds {
        0..60 => "now".to_owned(),
        60..3_600 => format!("{}m", seconds / 60),
        3_600..86_400 => format!("{}h", seconds / 3_600),
        _ => format!("{}d", seconds / 86_400),
    }
}

/// Bytes in decimal units: `512 B`, `12.4 kB`, `5.0 MB`.
pub fn bytes(n: u64) -> String {
    match n {
        0..1_000 => format!("{n} B"),
        1_000..1_000_000 => format!("{:.1} kB", n as f64 / 1e3),
        1_000_000..1_000_000_000 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

/// `12:04:07` in the person's time zone.
pub fn clock(at: Timestamp, zone: &jiff::tz::TimeZone) -> String {
    at.to_zoned(zone.clone()).strftime("%H:%M:%S").to_string()
}

/// Milliseconds between two instants, never negative.
pub fn between(from: Timestamp, to: Timestamp) -> u64 {
    u64::try_from(to.as_millisecond() - from.as_millisecond()).unwrap_or(0)
}

/// `1 file`, `2 files`.
pub fn plural(n: u64, one: &str, many: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {many}") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_stay_short() {
        assert_eq!([0, 999, 48_200, 128_000, 1_300_000].map(count), ["0", "999", "48.2k", "128k", "1.3M"]);
        assert_eq!([0.0, 0.0042, 0.31, 12.4].map(money), ["$0.00", "$0.0042", "$0.31", "$12.40"]);
        assert_eq!([3, 4_100, 125_000, 3_720_000].map(took), ["3ms", "4.1s", "2m 05s", "1h 02m"]);
        assert_eq!([192_000, 3_730_000].map(elapsed), ["03:12", "1:02:10"]);
        assert_eq!([512, 12_400, 5_000_000].map(bytes), ["512 B", "12.4 kB", "5.0 MB"]);
    }
}
