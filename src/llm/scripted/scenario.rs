//! The scenario file: what a scripted model says and calls, by role, cycle and turn. Reads and
//! checks it; does not play it.

use std::collections::BTreeMap;
use std::fmt;

use serde::de::{Deserialize, Deserializer, Error as _, MapAccess, Visitor};
use serde_json::Value;

use crate::llm::chat::Usage;

const REHEARSAL: &str = include_str!("rehearsal.yaml");
const NEVER_PASSES: &str = include_str!("never-passes.yaml");

/// The scenarios that are part of the program, by name.
pub const EMBEDDED: &[(&str, &str)] = &[("rehearsal", REHEARSAL), ("never-passes", NEVER_PASSES)];

/// A whole scenario.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Scenario {
    /// Its name, for people.
    pub name: String,
    /// What it shows, in a sentence.
    pub description: String,
    /// The objective it is made for.
    pub objective: String,
    /// The expected outcome it is made for: text or any JSON.
    pub expected_output: Option<Value>,
    /// How fast it speaks where a turn does not say so itself.
    pub pace: Pace,
    /// By role (`worker`, `checker`, …): one script per cycle, the last one for all later cycles.
    pub roles: BTreeMap<String, Vec<CycleScript>>,
}

/// How fast an answer is spoken.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Pace {
    /// Wait before the first piece, in milliseconds.
    pub delay_ms: Option<u64>,
    /// Wait between two pieces, in milliseconds.
    pub chunk_ms: Option<u64>,
    /// Least characters of a piece; a piece ends at the end of a word.
    pub chunk: Option<usize>,
}

impl Pace {
    /// What is set here, and the rest from `fallback`.
    pub fn or(self, fallback: Self) -> Self {
        Self {
            delay_ms: self.delay_ms.or(fallback.delay_ms),
            chunk_ms: self.chunk_ms.or(fallback.chunk_ms),
            chunk: self.chunk.or(fallback.chunk),
        }
    }
}

/// What a role says in one cycle.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct CycleScript {
    /// Its answers in order.
    pub turns: Vec<Turn>,
}

/// One answer.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Turn {
    /// What it says. `{{result 2}}` and `{{result last}}` quote tool results of this run.
    pub text: String,
    /// Its reasoning.
    pub thinking: String,
    /// The tools it calls.
    pub tool_calls: Vec<ScriptedCall>,
    /// What it cost; absent: estimated.
    pub usage: Option<Usage>,
    /// Wait before the first piece, in milliseconds.
    pub delay_ms: Option<u64>,
    /// Wait between two pieces, in milliseconds.
    pub chunk_ms: Option<u64>,
    /// Least characters of a piece.
    pub chunk: Option<usize>,
    /// A failure raised after the text was spoken.
    pub error: Option<ScriptedError>,
    /// What must hold of the newest message received.
    pub expect: Option<Expect>,
}

impl Turn {
    /// How fast it is spoken.
    pub fn pace(&self, fallback: Pace) -> Pace {
        Pace { delay_ms: self.delay_ms, chunk_ms: self.chunk_ms, chunk: self.chunk }.or(fallback)
    }
}

/// One tool call of an answer.
#[derive(Clone, Debug, Default, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedCall {
    /// The tool's name.
    pub tool: String,
    /// Its arguments: an object, or a string that is sent as it is (also when it is not JSON).
    #[serde(default)]
    pub arguments: Value,
    /// The call's id; absent: `call_TURN_INDEX`.
    #[serde(default)]
    pub id: Option<String>,
}

/// A failure of the provider.
#[derive(Clone, Debug, PartialEq, serde::Deserialize)]
#[serde(deny_unknown_fields)]
pub struct ScriptedError {
    /// What kind.
    pub kind: ScriptedErrorKind,
    /// What it says; absent: a sentence about the kind.
    #[serde(default)]
    pub message: Option<String>,
    /// The wait it asks for, in seconds; only with `rate_limit` and `overloaded`.
    #[serde(default)]
    pub after_s: Option<f64>,
    /// How many calls fail before the turn is played; absent: all of them.
    #[serde(default)]
    pub times: Option<u32>,
}

/// The kinds of failure a scenario can raise.
#[derive(Clone, Copy, Debug, PartialEq, Eq, serde::Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum ScriptedErrorKind {
    /// The key is wrong.
    Authentication,
    /// The quota is used up.
    Quota,
    /// Too many requests.
    RateLimit,
    /// The provider is overloaded.
    Overloaded,
    /// The request is wrong.
    BadRequest,
    /// The history is too long.
    ContextTooLong,
    /// There is no such model.
    UnknownModel,
    /// The connection failed.
    Network,
    /// The answer made no sense.
    Malformed,
}

/// What must hold of the newest message received, so that a rehearsal notices when it plays
/// against the wrong thing.
#[derive(Clone, Debug, Default, PartialEq, Eq, serde::Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Expect {
    /// Texts that must be in one of the last messages (those after the last answer).
    pub contains: Vec<String>,
    /// Texts that must not.
    pub not_contains: Vec<String>,
}

impl Scenario {
    /// Reads a scenario. `origin` names the file in errors.
    ///
    /// # Errors
    /// What is wrong, on which line of `origin`.
    pub fn parse(yaml: &str, origin: &str) -> Result<Self, String> {
        let scenario: Self = serde_saphyr::from_str(yaml).map_err(|error| format!("{origin}: {error}"))?;
        scenario.check().map_err(|error| format!("{origin}: {error}"))?;
        Ok(scenario)
    }

    /// An embedded scenario by name.
    pub fn embedded(name: &str) -> Option<Result<Self, String>> {
        let (_, yaml) = EMBEDDED.iter().find(|(known, _)| *known == name)?;
        Some(Self::parse(yaml, &format!("scripted/{name}")))
    }

    /// What `role` says in `cycle`: the script of that cycle, or the last one there is.
    pub fn script(&self, role: &str, cycle: u32) -> Option<&CycleScript> {
        let scripts = self.roles.get(role)?;
        let index = (cycle.max(1) as usize - 1).min(scripts.len().checked_sub(1)?);
        scripts.get(index)
    }

    fn check(&self) -> Result<(), String> {
        if self.roles.is_empty() {
            return Err("it has no role; add `worker:` with a list of cycles, each with `turns:`".to_owned());
        }
        for (role, scripts) in &self.roles {
            if scripts.is_empty() {
                return Err(format!("role `{role}` has no cycle; give it at least one with `turns:`"));
            }
            for (cycle, script) in scripts.iter().enumerate() {
                for (turn, played) in script.turns.iter().enumerate() {
                    check_turn(played)
                        .map_err(|why| format!("role `{role}`, cycle {}, turn {}: {why}", cycle + 1, turn + 1))?;
                }
            }
        }
        Ok(())
    }
}

fn check_turn(turn: &Turn) -> Result<(), String> {
    for call in &turn.tool_calls {
        if call.tool.is_empty() {
            return Err("`tool` is empty; name the tool to call".to_owned());
        }
        if !matches!(call.arguments, Value::Object(_) | Value::String(_) | Value::Null) {
            return Err(format!("the arguments of `{}` are neither an object nor a string", call.tool));
        }
    }
    let after = turn.error.as_ref().and_then(|error| error.after_s);
    if after.is_some_and(|seconds| !(0.0..=86_400.0).contains(&seconds)) {
        return Err("`after_s` is not between 0 and 86400 seconds".to_owned());
    }
    Ok(())
}

impl<'de> Deserialize<'de> for Scenario {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        deserializer.deserialize_map(ScenarioVisitor)
    }
}

/// Written by hand: any key besides the known ones is a role, which a derive could only do
/// through a buffer that loses the line of an error.
struct ScenarioVisitor;

impl<'de> Visitor<'de> for ScenarioVisitor {
    type Value = Scenario;

    fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("a scenario: name, description, objective, expected_output, pace and roles")
    }

    fn visit_map<A: MapAccess<'de>>(self, mut map: A) -> Result<Scenario, A::Error> {
        let mut scenario = Scenario::default();
        while let Some(Key(key)) = map.next_key()? {
            match key.as_str() {
                "name" => scenario.name = map.next_value()?,
                "description" => scenario.description = map.next_value()?,
                "objective" => scenario.objective = map.next_value()?,
                "expected_output" => scenario.expected_output = map.next_value()?,
                "pace" => scenario.pace = map.next_value()?,
                _role => {
                    let scripts = map.next_value()?;
                    scenario.roles.insert(key, scripts);
                }
            }
        }
        Ok(scenario)
    }
}

/// A key of a scenario: a known one or a role. Refused while it is read, so that the error keeps
/// its line.
struct Key(String);

impl<'de> Deserialize<'de> for Key {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        let key = String::deserialize(deserializer)?;
        if is_role(&key) {
            return Ok(Self(key));
        }
        Err(D::Error::custom(format_args!(
            "unknown key `{key}`; known are name, description, objective, expected_output, pace and roles \
             (lower-case words such as `worker`, `checker`)"
        )))
    }
}

/// The known keys are words of this form too.
fn is_role(key: &str) -> bool {
    !key.is_empty() && key.bytes().all(|b| b.is_ascii_lowercase() || b.is_ascii_digit() || b == b'_' || b == b'-')
}
