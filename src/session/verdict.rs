//! Reading the Checker's verdict out of its final message (A18, A20). Pure.

use serde::Deserialize;

use crate::agent::structured;
use crate::events::data::Verdict;

/// The Checker's answer as the model writes it (A18).
#[derive(Clone, Debug, PartialEq, Eq, Deserialize)]
pub struct Answer {
    /// The verdict.
    pub verdict: Verdict,
    /// Brief explanation.
    #[serde(default)]
    pub reason: String,
    /// What to fix; empty when passed.
    #[serde(default)]
    pub feedback: String,
    /// What was really verified.
    #[serde(default)]
    pub verified: Vec<String>,
}

/// The verdict in `text`. A missing feedback on anything but a pass is the reason (A20).
///
/// # Errors
/// Says what is wrong, to be sent back.
pub fn parse(text: &str) -> Result<Answer, String> {
    let mut answer: Answer = structured::parse(text)?;
    match answer.verdict {
        Verdict::Passed => answer.feedback.clear(),
        Verdict::NeedsImprovement | Verdict::Failed => {
            if answer.feedback.trim().is_empty() {
                if answer.reason.trim().is_empty() {
                    return Err("`reason` and `feedback` are both empty; say what is wrong and what to fix".to_owned());
                }
                answer.feedback.clone_from(&answer.reason);
            }
        }
    }
    Ok(answer)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn verdicts_are_read_strictly_and_wrapping_is_forgiven() {
        let answer = parse("```json\n{\"verdict\":\"failed\",\"reason\":\"no file\"}\n```").unwrap();
        assert_eq!((answer.verdict, answer.feedback.as_str()), (Verdict::Failed, "no file"));
        assert_eq!(parse("{\"verdict\":\"passed\",\"feedback\":\"x\",\"verified\":[\"a [1]\"]}").unwrap().feedback, "");
        for (text, why) in [
            ("passed", "no JSON object"),
            ("{\"verdict\":\"PASS\"}", "unknown variant"),
            ("{\"reason\":\"x\"}", "missing field `verdict`"),
            ("{\"verdict\":\"failed\"}", "both empty"),
        ] {
            assert!(parse(text).unwrap_err().contains(why), "{text}");
        }
    }
}
