//! The word that was probably meant.

/// The one of `candidates` that `word` most likely stands for, if any is near enough.
pub fn nearest<'a>(word: &str, candidates: impl IntoIterator<Item = &'a str>) -> Option<&'a str> {
    let fold = |text: &str| text.to_lowercase().replace('-', "_");
    let word = fold(word);
    let limit = (word.chars().count() / 3).max(1);
    candidates
        .into_iter()
        .map(|candidate| (distance(&word, &fold(candidate)), candidate))
        .filter(|(distance, candidate)| *distance <= limit || shares_words(&word, &fold(candidate)))
        .min_by_key(|(distance, _)| *distance)
        .map(|(_, candidate)| candidate)
}

/// `max_turn_count` for `max_turns`, `timeout` for `check_timeout`: one is a piece of the other.
fn shares_words(word: &str, candidate: &str) -> bool {
    let (short, long) = if word.len() < candidate.len() { (word, candidate) } else { (candidate, word) };
    short.len() >= 4 && long.contains(short)
}

/// Insertions, deletions, replacements and swaps of neighbours that turn `a` into `b`.
fn distance(a: &str, b: &str) -> usize {
    let (a, b): (Vec<char>, Vec<char>) = (a.chars().collect(), b.chars().collect());
    let mut before = vec![0; b.len() + 1];
    let mut last: Vec<usize> = (0..=b.len()).collect();
    for i in 1..=a.len() {
        let mut row = vec![i; b.len() + 1];
        for j in 1..=b.len() {
            let replaced = last[j - 1] + usize::from(a[i - 1] != b[j - 1]);
            row[j] = replaced.min(last[j] + 1).min(row[j - 1] + 1);
            if i > 1 && j > 1 && a[i - 1] == b[j - 2] && a[i - 2] == b[j - 1] {
                row[j] = row[j].min(before[j - 2] + 1);
            }
        }
        before = std::mem::replace(&mut last, row);
    }
    last[b.len()]
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_slip_finds_the_word_that_was_meant() {
        let words = ["model", "checker_model", "max_cycles", "max_turns", "check_timeout", "usd"];
        let check = |word: &str, expected: Option<&str>| assert_eq!(nearest(word, words), expected, "{word}");
        check("modle", Some("model"));
        check("max-cycle", Some("max_cycles"));
        check("MAX_TURN", Some("max_turns"));
        check("timeout", Some("check_timeout"));
        check("xyz", None);
        check("", None);
    }
}
