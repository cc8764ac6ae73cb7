//! Numbers as people read them: tokens, money, times, marks.

use jiff::Timestamp;

use super::paint::Tone;
use crate::events::data::{Budget, ChangeKind, FileChange, Outcome, Totals, Verdict};

/// `950`, `12.3k`, `4.0M`.
pub fn count(n: u64) -> String {
    match n {
        0..1_000 => n.to_string(),
        1_000..999_950 => format!("{:.1}k", n as f64 / 1e3),
        _ => format!("{:.1}M", n as f64 / 1e6),
    }
}

/// `$0.0042`, `$1.25`.
pub fn money(usd: f64) -> String {
    if usd > 0.0 && usd < 0.1 { format!("${usd:.4}") } else { format!("${usd:.2}") }
}

/// `0.4 s`, `45 s`, `1 m 20 s`, `2 h 05 m`.
pub fn time(ms: u64) -> String {
    let s = ms / 1000;
    match s {
        0..10 => format!("{}.{} s", s, ms % 1000 / 100),
        10..60 => format!("{s} s"),
        60..3600 => format!("{} m {:02} s", s / 60, s % 60),
        _ => format!("{} h {:02} m", s / 3600, s / 60 % 60),
    }
}

/// `just now`, `5 min ago`, `3 h ago`, `2 days ago`.
pub fn ago(at: Timestamp, now: Timestamp) -> String {
    let minutes = (now.as_second() - at.as_second()).max(0) / 60;
    match minutes {
        0 => "just now".to_owned(),
        1..60 => format!("{minutes} min ago"),
        60..1440 => format!("{} h ago", minutes / 60),
        1440..2880 => "1 day ago".to_owned(),
        _ => format!("{} days ago", minutes / 1440),
    }
}

/// What money is known of an account.
pub fn cost(totals: &Totals) -> String {
    match (totals.calls, totals.unpriced_calls) {
        (0, _) => money(totals.cost_usd),
        (calls, unpriced) if unpriced >= calls => "price unknown".to_owned(),
        (_, 0) => money(totals.cost_usd),
        (_, unpriced) => format!("{} and {unpriced} calls of unknown price", money(totals.cost_usd)),
    }
}

/// An account in a line.
pub fn totals(totals: &Totals) -> String {
    format!(
        "{} model calls · {} tool calls · {} tokens · {} · {}",
        totals.calls,
        totals.tool_calls,
        count(totals.tokens()),
        cost(totals),
        time(totals.duration_ms)
    )
}

/// Limits in words.
pub fn budget(budget: &Budget) -> String {
    let parts = [
        budget.tokens.map(|tokens| format!("{} tokens", count(tokens))),
        budget.usd.map(money),
        budget.time_ms.map(time),
    ];
    let parts: Vec<String> = parts.into_iter().flatten().collect();
    if parts.is_empty() { "none".to_owned() } else { parts.join(" · ") }
}

/// Mark, word and tone of a verdict; none is `unverified`.
pub fn verdict(verdict: Option<Verdict>) -> (&'static str, &'static str, Tone) {
    match verdict {
        Some(Verdict::Passed) => ("✓", "passed", Tone::Good),
        Some(Verdict::NeedsImprovement) => ("◐", "needs_improvement", Tone::Warning),
        Some(Verdict::Failed) => ("✗", "failed", Tone::Bad),
        None => ("?", "unverified", Tone::Warning),
    }
}

/// Mark and tone of an ending.
pub fn outcome(outcome: Outcome) -> (&'static str, Tone) {
    match outcome {
        Outcome::Passed | Outcome::Accepted => ("✓", Tone::Good),
        Outcome::NotPassed | Outcome::ProviderError | Outcome::InternalError => ("✗", Tone::Bad),
        Outcome::Budget | Outcome::Unverified | Outcome::NeedsHuman | Outcome::Stopped | Outcome::Interrupted => {
            ("■", Tone::Warning)
        }
    }
}

/// Mark, words and tone of a changed file: `+ a.html (12 lines added)`.
pub fn change(change: &FileChange) -> (&'static str, String, Tone) {
    let (mark, tone) = match change.kind {
        ChangeKind::Added => ("+", Tone::Good),
        ChangeKind::Modified => ("~", Tone::Warning),
        ChangeKind::Deleted => ("-", Tone::Bad),
        ChangeKind::Unchanged => ("=", Tone::Faint),
    };
    let lines = match (change.added, change.removed) {
        (Some(added), Some(removed)) => format!(" (+{added} −{removed})"),
        (Some(added), None) => format!(" (+{added})"),
        (None, Some(removed)) => format!(" (−{removed})"),
        (None, None) => String::new(),
    };
    (mark, lines, tone)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_are_short_and_exact_enough() {
        assert_eq!(
            [0, 999, 1000, 12_345, 999_949, 999_950].map(count),
            ["0", "999", "1.0k", "12.3k", "999.9k", "1.0M"]
        );
        assert_eq!([0.0, 0.00421, 0.5, 12.0].map(money), ["$0.00", "$0.0042", "$0.50", "$12.00"]);
        assert_eq!(
            [40, 9_999, 45_000, 80_000, 7_500_000].map(time),
            ["0.0 s", "9.9 s", "45 s", "1 m 20 s", "2 h 05 m"]
        );
        let at = |minutes: i64| Timestamp::from_second(minutes * 60).unwrap();
        let words = [0, 5, 125, 1500, 5000].map(|minutes| ago(at(0), at(minutes)));
        assert_eq!(words, ["just now", "5 min ago", "2 h ago", "1 day ago", "3 days ago"]);
    }

    #[test]
    fn limits_are_named_or_there_are_none() {
        let limits = Budget { tokens: Some(200_000), usd: Some(2.5), time_ms: Some(300_000) };
        assert_eq!(budget(&limits), "200.0k tokens · $2.50 · 5 m 00 s");
        assert_eq!(budget(&Budget::default()), "none");
    }

    #[test]
    fn an_unknown_price_is_said() {
        let check = |calls, unpriced_calls, expected: &str| {
            assert_eq!(cost(&Totals { calls, unpriced_calls, cost_usd: 0.5, ..Totals::default() }), expected);
        };
        check(2, 0, "$0.50");
        check(2, 1, "$0.50 and 1 calls of unknown price");
        check(2, 2, "price unknown");
    }
}
