//! Numbers as a person reads them at a glance: tokens, money, durations, ages, sizes.

use jiff::Timestamp;

/// `812`, `48.2k`, `1.3M`.
pub fn tokens(n: u64) -> String {
    match n {
        0..=999 => n.to_string(),
        1_000..=999_949 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// `$0.31`; below a cent `$0.004`, so that something is never shown as nothing.
pub fn money(usd: f64) -> String {
    if usd > 0.0 && usd < 0.01 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// Running time: `03:12`, `1:02:03`.
pub fn clock(ms: u64) -> String {
    let s = ms / 1000;
    match s / 3600 {
        0 => format!("{:02}:{:02}", s / 60, s % 60),
        h => format!("{h}:{:02}:{:02}", s / 60 % 60, s % 60),
    }
}

/// How long a step took: `3ms`, `4.1s`, `2m05s`, `1h02m`.
pub fn duration(ms: u64) -> String {
    match ms {
        0..=999 => format!("{ms}ms"),
        1_000..=59_949 => format!("{:.1}s", ms as f64 / 1e3),
        59_950..=3_599_999 => format!("{}m{:02}s", ms / 60_000, ms / 1000 % 60),
        _ => format!("{}h{:02}m", ms / 3_600_000, ms / 60_000 % 60),
    }
}

/// How long ago: `now`, `45s`, `3m`, `5h`, `2d`, `7w`.
pub fn age(now: Timestamp, then: Timestamp) -> String {
    let s = now.as_second().saturating_sub(then.as_second()).max(0);
    match s {
        0..=4 => "now".to_owned(),
        5..=59 => format!("{s}s"),
        60..=3_599 => format!("{}m", s / 60),
        3_600..=86_399 => format!("{}h", s / 3_600),
        86_400..=1_209_599 => format!("{}d", s / 86_400),
        _ => format!("{}w", s / 604_800),
    }
}

/// `512 B`, `3.4 kB`, `12.0 MB`.
pub fn bytes(n: u64) -> String {
    match n {
        0..=999 => format!("{n} B"),
        1_000..=999_949 => format!("{:.1} kB", n as f64 / 1e3),
        999_950..=999_949_999 => format!("{:.1} MB", n as f64 / 1e6),
        _ => format!("{:.1} GB", n as f64 / 1e9),
    }
}

/// `1 file`, `3 files`.
pub fn count(n: usize, one: &str) -> String {
    if n == 1 { format!("1 {one}") } else { format!("{n} {one}s") }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn figures_are_short_and_never_round_to_the_next_unit_wrongly() {
        assert_eq!(
            [0, 999, 1_000, 48_200, 999_949, 999_950, 1_300_000].map(tokens),
            ["0", "999", "1.0k", "48.2k", "999.9k", "1.0M", "1.3M"]
        );
        assert_eq!([0.0, 0.004, 0.31, 12.0].map(money), ["$0.00", "$0.0040", "$0.31", "$12.00"]);
        assert_eq!([0, 192_000, 3_723_000].map(clock), ["00:00", "03:12", "1:02:03"]);
        assert_eq!([3, 4_100, 59_990, 125_000, 3_720_000].map(duration), ["3ms", "4.1s", "0m59s", "2m05s", "1h02m"]);
        let at = |s| Timestamp::from_second(s).unwrap();
        assert_eq!(
            [100, 145, 280, 18_100, 172_900, 4_233_700].map(|s| age(at(s), at(100))),
            ["now", "45s", "3m", "5h", "2d", "7w"]
        );
        assert_eq!(age(at(0), at(100)), "now");
        assert_eq!([5, 3_400, 12_000_000].map(bytes), ["5 B", "3.4 kB", "12.0 MB"]);
        assert_eq!([1, 3].map(|n| count(n, "file")), ["1 file", "3 files"]);
    }
}
