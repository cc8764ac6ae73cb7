//! Fuzzy search in short lists: sessions, actions, file names. Ranks what it is given; does not
//! read or store anything.

use nucleo_matcher::pattern::{CaseMatching, Normalization, Pattern};
use nucleo_matcher::{Config, Matcher, Utf32Str};
use ratatui::style::Style;
use ratatui::text::Span;

/// One item that matches.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hit {
    /// Its place in the list that was searched.
    pub index: usize,
    /// How well it matches; higher is better.
    pub score: u32,
    /// Which characters of it match, ascending.
    pub positions: Vec<u32>,
}

/// A search with its scratch memory.
#[derive(Debug)]
pub struct Fuzzy {
    pattern: Pattern,
    matcher: Matcher,
}

impl Fuzzy {
    /// Searches for each word of `query`; small letters match capitals as well.
    pub fn new(query: &str) -> Self {
        Self {
            pattern: Pattern::parse(query, CaseMatching::Smart, Normalization::Smart),
            matcher: Matcher::new(Config::DEFAULT),
        }
    }

    /// What matches, best first; equals keep their order. An empty query matches everything.
    pub fn rank<'a>(&mut self, items: impl IntoIterator<Item = &'a str>) -> Vec<Hit> {
        let mut buffer = Vec::new();
        let mut hits: Vec<Hit> = items
            .into_iter()
            .enumerate()
            .filter_map(|(index, item)| {
                let mut positions = Vec::new();
                let score =
                    self.pattern.indices(Utf32Str::new(item, &mut buffer), &mut self.matcher, &mut positions)?;
                positions.sort_unstable();
                positions.dedup();
                Some(Hit { index, score, positions })
            })
            .collect();
        hits.sort_by_key(|hit| std::cmp::Reverse(hit.score));
        hits
    }
}

/// `text` with the matched characters in `hit` style. Positions count graphemes, as the matcher does.
pub fn highlight(text: &str, positions: &[u32], normal: Style, hit: Style) -> Vec<Span<'static>> {
    use unicode_segmentation::UnicodeSegmentation;
    let mut out: Vec<Span<'static>> = Vec::new();
    for (i, grapheme) in text.graphemes(true).enumerate() {
        let matched = u32::try_from(i).is_ok_and(|i| positions.binary_search(&i).is_ok());
        let style = if matched { hit } else { normal };
        match out.last_mut() {
            Some(last) if last.style == style => last.content.to_mut().push_str(grapheme),
            _ => out.push(Span::styled(grapheme.to_owned(), style)),
        }
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn letters_in_order_match_and_the_closest_comes_first() {
        let items = ["fix the parser", "profile", "fp", "unrelated"];
        let hits = Fuzzy::new("fp").rank(items);
        assert_eq!(hits.iter().map(|h| items[h.index]).collect::<Vec<_>>(), ["fp", "fix the parser"]);
        assert_eq!(hits[0].positions, [0, 1]);
        assert_eq!(Fuzzy::new("").rank(items).len(), 4);
        assert_eq!(Fuzzy::new("zz").rank(items), []);
        assert_eq!(Fuzzy::new("引用").rank(["処理", "引用符"])[0].index, 1);
    }

    #[test]
    fn matched_characters_are_marked() {
        let (normal, hit) = (Style::new(), Style::new().bold());
        let spans = highlight("abcd", &[1, 2], normal, hit);
        assert_eq!(spans, vec![Span::styled("a", normal), Span::styled("bc", hit), Span::styled("d", normal)]);
    }
}
