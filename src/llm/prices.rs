//! What models cost and how much they take in: a table of well-known models, prices of the
//! configuration before it (B33, B95), and estimates for answers that do not say. Prices change;
//! the table says what was known when it was written, and an unknown model has no price at all.

use std::collections::BTreeMap;

use super::chat::{ChatMessage, Content, Part, Request, Usage};
use crate::config::Price;

/// The window assumed for a model that is not in the table (B95).
pub const FALLBACK_CONTEXT_WINDOW: u64 = 128_000;

struct Known {
    model: &'static str,
    input: f64,
    output: f64,
    cached_input: f64,
    cache_write: f64,
    context: u64,
}

const fn known(
    model: &'static str,
    input: f64,
    output: f64,
    cached_input: f64,
    cache_write: f64,
    context: u64,
) -> Known {
    Known { model, input, output, cached_input, cache_write, context }
}

/// US dollars per million tokens: sent, received, read from cache, written to cache; the window.
/// Names without a date; dots are written as dashes.
const TABLE: &[Known] = &[
    known("claude-3-haiku", 0.25, 1.25, 0.03, 0.30, 200_000),
    known("claude-3-opus", 15.0, 75.0, 1.5, 18.75, 200_000),
    known("claude-3-5-haiku", 0.8, 4.0, 0.08, 1.0, 200_000),
    known("claude-3-5-sonnet", 3.0, 15.0, 0.3, 3.75, 200_000),
    known("claude-3-7-sonnet", 3.0, 15.0, 0.3, 3.75, 200_000),
    known("claude-sonnet-4", 3.0, 15.0, 0.3, 3.75, 200_000),
    known("claude-sonnet-4-5", 3.0, 15.0, 0.3, 3.75, 200_000),
    known("claude-haiku-4-5", 1.0, 5.0, 0.1, 1.25, 200_000),
    known("claude-opus-4", 15.0, 75.0, 1.5, 18.75, 200_000),
    known("claude-opus-4-1", 15.0, 75.0, 1.5, 18.75, 200_000),
    known("claude-opus-4-5", 5.0, 25.0, 0.5, 6.25, 200_000),
    known("gpt-4-turbo", 10.0, 30.0, 10.0, 10.0, 128_000),
    known("gpt-4o", 2.5, 10.0, 1.25, 2.5, 128_000),
    known("gpt-4o-mini", 0.15, 0.6, 0.075, 0.15, 128_000),
    known("gpt-4-1", 2.0, 8.0, 0.5, 2.0, 1_047_576),
    known("gpt-4-1-mini", 0.4, 1.6, 0.1, 0.4, 1_047_576),
    known("gpt-4-1-nano", 0.1, 0.4, 0.025, 0.1, 1_047_576),
    known("gpt-5", 1.25, 10.0, 0.125, 1.25, 400_000),
    known("gpt-5-mini", 0.25, 2.0, 0.025, 0.25, 400_000),
    known("gpt-5-nano", 0.05, 0.4, 0.005, 0.05, 400_000),
    known("gpt-5-codex", 1.25, 10.0, 0.125, 1.25, 400_000),
    known("gpt-5-1", 1.25, 10.0, 0.125, 1.25, 400_000),
    known("o1", 15.0, 60.0, 7.5, 15.0, 200_000),
    known("o3", 2.0, 8.0, 0.5, 2.0, 200_000),
    known("o3-mini", 1.1, 4.4, 0.55, 1.1, 200_000),
    known("o4-mini", 1.1, 4.4, 0.275, 1.1, 200_000),
    known("gemini-2-5-pro", 1.25, 10.0, 0.31, 1.25, 1_048_576),
    known("gemini-2-5-flash", 0.3, 2.5, 0.075, 0.3, 1_048_576),
    known("gemini-2-5-flash-lite", 0.1, 0.4, 0.025, 0.1, 1_048_576),
];

/// Prices by model reference: those of the configuration, then the table.
#[derive(Clone, Debug, Default)]
pub struct Prices {
    own: BTreeMap<String, Price>,
}

impl Prices {
    /// The table with `own` prices (`PROVIDER/MODEL`) before it.
    pub fn new(own: BTreeMap<String, Price>) -> Self {
        Self { own }
    }

    /// The price of `PROVIDER/MODEL`, when it is known. What runs on this machine and what is
    /// scripted costs nothing.
    pub fn of(&self, model_ref: &str) -> Option<Price> {
        if let Some(price) = self.own.get(model_ref) {
            return Some(*price);
        }
        let (provider, model) = model_ref.split_once('/')?;
        if matches!(provider, "ollama" | "scripted") || (provider == "openrouter" && model.ends_with(":free")) {
            return Some(Price { input: 0.0, output: 0.0, cached_input: None, cache_write: None });
        }
        find(model).map(|entry| Price {
            input: entry.input,
            output: entry.output,
            cached_input: Some(entry.cached_input),
            cache_write: Some(entry.cache_write),
        })
    }

    /// What `usage` cost in US dollars; `None` when the price is not known.
    pub fn cost(&self, model_ref: &str, usage: &Usage) -> Option<f64> {
        let price = self.of(model_ref)?;
        let cached = usage.cached_tokens.min(usage.prompt_tokens);
        let written = usage.cache_write_tokens.min(usage.prompt_tokens - cached);
        let plain = usage.prompt_tokens - cached - written;
        let micro_dollars = plain as f64 * price.input
            + cached as f64 * price.cached_input.unwrap_or(price.input)
            + written as f64 * price.cache_write.unwrap_or(price.input)
            + usage.completion_tokens as f64 * price.output;
        Some(micro_dollars / 1e6)
    }
}

/// How many tokens `PROVIDER/MODEL` takes in; [`FALLBACK_CONTEXT_WINDOW`] when it is not known.
pub fn context_window(model_ref: &str) -> u64 {
    let model = model_ref.split_once('/').map_or(model_ref, |(_, model)| model);
    find(model).map_or(FALLBACK_CONTEXT_WINDOW, |entry| entry.context)
}

/// The entry of a model: the vendor before `/` left out, dots as dashes, a date or `latest` at
/// its end ignored. Any other ending is another model, whose price is not known.
fn find(model: &str) -> Option<&'static Known> {
    let name = model.rsplit('/').next().unwrap_or(model).replace('.', "-");
    TABLE.iter().find(|entry| name.strip_prefix(entry.model).is_some_and(is_version_stamp))
}

fn is_version_stamp(rest: &str) -> bool {
    let Some(stamp) = rest.strip_prefix(['-', '@']) else { return rest.is_empty() };
    let digits = stamp.bytes().filter(u8::is_ascii_digit).count();
    let only_digits = stamp.bytes().all(|b| b.is_ascii_digit() || b == b'-');
    stamp == "latest" || (only_digits && (digits == 8 || (digits == 4 && stamp.len() == 4)))
}

/// Tokens of a text, at four characters each (B95).
pub fn estimate_tokens(text: &str) -> u64 {
    (text.chars().count() as u64).div_ceil(4)
}

/// Tokens of a message: its text, its calls, and a thousand for each image.
pub fn estimate_message_tokens(message: &ChatMessage) -> u64 {
    let content = match &message.content {
        None => 0,
        Some(Content::Text(text)) => estimate_tokens(text),
        Some(Content::Parts(parts)) => parts.iter().map(estimate_part_tokens).sum(),
    };
    let calls: u64 = message
        .tool_calls
        .iter()
        .map(|call| estimate_tokens(&call.function.name) + estimate_tokens(&call.function.arguments))
        .sum();
    content + calls
}

fn estimate_part_tokens(part: &Part) -> u64 {
    match part {
        Part::Text { text } => estimate_tokens(text),
        Part::ImageUrl { .. } => 1_000,
    }
}

/// Tokens of a whole request, tool schemas included.
pub fn estimate_request_tokens(request: &Request) -> u64 {
    let messages: u64 = request.messages.iter().map(|message| estimate_message_tokens(message)).sum();
    let tools: u64 = request
        .tools
        .iter()
        .map(|tool| estimate_tokens(&tool.description) + estimate_tokens(&tool.parameters.to_string()))
        .sum();
    messages + tools
}

#[cfg(test)]
mod tests {
    use super::*;

    #[track_caller]
    fn check_input_price(model_ref: &str, expected: Option<f64>) {
        assert_eq!(Prices::default().of(model_ref).map(|price| price.input), expected, "{model_ref}");
    }

    #[test]
    fn a_model_is_found_by_its_name_with_or_without_date_and_vendor() {
        check_input_price("anthropic/claude-sonnet-4-20250514", Some(3.0));
        check_input_price("anthropic/claude-opus-4-1-20250805", Some(15.0));
        check_input_price("anthropic/claude-opus-4-5", Some(5.0));
        check_input_price("openrouter/anthropic/claude-3.5-haiku", Some(0.8));
        check_input_price("openai/gpt-4o-2024-08-06", Some(2.5));
        check_input_price("openai/gpt-4o-mini", Some(0.15));
        check_input_price("openrouter/some/model:free", Some(0.0));
        check_input_price("ollama/qwen3:8b", Some(0.0));
        check_input_price("openai/gpt-5-pro", None);
        check_input_price("openai/gpt-4o-audio-preview", None);
        check_input_price("gpt-4o", None);
    }

    #[test]
    fn cached_tokens_are_counted_at_their_own_price() {
        let usage = Usage {
            prompt_tokens: 1_000_000,
            completion_tokens: 100_000,
            cached_tokens: 800_000,
            cache_write_tokens: 100_000,
            reasoning_tokens: 0,
        };
        let cost = Prices::default().cost("anthropic/claude-sonnet-4-5", &usage).unwrap();
        assert!((cost - (0.3 + 0.24 + 0.375 + 1.5)).abs() < 1e-9, "{cost}");
    }

    #[test]
    fn a_price_of_the_configuration_goes_first() {
        let own = Price { input: 7.0, output: 0.0, cached_input: None, cache_write: None };
        let prices = Prices::new(BTreeMap::from([("openai/gpt-4o".to_owned(), own)]));
        assert_eq!(prices.of("openai/gpt-4o"), Some(own));
        let usage = Usage { prompt_tokens: 1_000_000, cached_tokens: 500_000, ..Usage::default() };
        assert_eq!(prices.cost("openai/gpt-4o", &usage), Some(7.0));
        assert_eq!(prices.cost("mine/unknown", &usage), None);
    }

    #[test]
    fn windows_fall_back_for_unknown_models() {
        assert_eq!(context_window("anthropic/claude-sonnet-4-20250514"), 200_000);
        assert_eq!(context_window("mine/unknown"), FALLBACK_CONTEXT_WINDOW);
        assert_eq!(estimate_tokens("12345"), 2);
    }
}
