//! Keeping long text within a limit: head and tail stay, the middle is named and left out.

/// Cuts `text` to about `limit` characters: the first two thirds and the last third, with
/// `note(left_out)` on a line of its own between them. Returns `None` when it fits as it is.
pub fn head_and_tail(text: &str, limit: usize, note: impl Fn(usize) -> String) -> Option<String> {
    if text.len() <= limit {
        return None; // never more characters than bytes
    }
    let total = text.chars().count();
    if total <= limit {
        return None;
    }
    let head_chars = limit * 2 / 3;
    let tail_chars = limit - head_chars;
    let head_end = text.char_indices().nth(head_chars).map_or(text.len(), |(i, _)| i);
    let tail_start = text.char_indices().rev().nth(tail_chars.saturating_sub(1)).map_or(0, |(i, _)| i);
    let left_out = total - head_chars - tail_chars;
    Some(format!("{}\n{}\n{}", &text[..head_end], note(left_out), &text[tail_start..]))
}

/// The longest prefix of `text` of at most `max` bytes that ends at a character.
pub fn prefix(text: &str, max: usize) -> &str {
    if text.len() <= max {
        return text;
    }
    let mut end = max;
    while !text.is_char_boundary(end) {
        end -= 1;
    }
    &text[..end]
}

/// `text` within `max` bytes, with `…` at its end when it was cut.
pub fn preview(text: &str, max: usize) -> String {
    if text.len() <= max {
        return text.to_owned();
    }
    format!("{}…", prefix(text, max.saturating_sub(3)))
}

/// The first line with something on it, shortened to `max` characters.
pub fn first_line(text: &str, max: usize) -> String {
    let line = text.lines().map(str::trim).find(|l| !l.is_empty()).unwrap_or("");
    if line.chars().count() <= max {
        return line.to_owned();
    }
    let cut: String = line.chars().take(max.saturating_sub(1)).collect();
    format!("{}…", cut.trim_end())
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn both_ends_of_a_long_text_stay() {
        let text = "é".repeat(100);
        let cut = head_and_tail(&text, 30, |n| format!("[{n} left out]")).unwrap();
        assert_eq!(cut, format!("{}\n[70 left out]\n{}", "é".repeat(20), "é".repeat(10)));
        assert_eq!(head_and_tail("short", 30, |_| String::new()), None);
        assert_eq!(head_and_tail(&"é".repeat(30), 30, |_| String::new()), None);
    }

    #[test]
    fn a_prefix_never_splits_a_character() {
        assert_eq!(prefix("aé", 2), "a");
        assert_eq!(first_line("\n  one two  \nthree", 5), "one…");
    }
}
