//! What a person can set, with defaults. Strings, numbers and durations; no colours, keys or
//! provider types: their users turn the strings into them. Where the values come from is in
//! `layers`; which files of a project may count is in `project` and `trust`.

pub mod check;
pub mod duration;
pub mod environment;
pub mod error;
pub mod layers;
pub mod nearest;
pub mod paths;
pub mod positions;
pub mod profiles;
pub mod project;
pub mod roots;
pub mod trust;

use std::collections::BTreeMap;
use std::fmt;
use std::path::PathBuf;
use std::time::Duration;

use serde::de::value::SeqAccessDeserializer;
use serde::de::{self, SeqAccess, Visitor};
use serde::{Deserialize, Deserializer, Serialize};

/// Everything of `config.toml` (cli.md), defaults filled in.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Config {
    /// `PROVIDER/MODEL`; absent: chosen by what is there.
    pub model: Option<String>,
    /// The Checker's model; absent: the Worker's.
    pub checker_model: Option<String>,
    /// A cheaper model for naming and tagging; absent: none is called (B107).
    pub utility_model: Option<String>,
    /// Root of the session folders.
    pub workspace: Option<PathBuf>,
    /// Cycles a session may take.
    pub max_cycles: MaxCycles,
    /// What tools may do unasked.
    pub permission_mode: PermissionSetting,
    /// Where sessions work.
    #[serde(rename = "where")]
    pub place: PlaceSetting,
    /// The Worker.
    pub worker: WorkerConfig,
    /// The Checker.
    pub checker: CheckerConfig,
    /// Limits of a session, and of each role below it.
    pub budget: BudgetConfig,
    /// Connections to providers.
    pub http: HttpConfig,
    /// Limits of tools.
    pub tools: ToolsConfig,
    /// Containment of tools.
    pub sandbox: SandboxConfig,
    /// Recording of working files.
    pub snapshots: SnapshotsConfig,
    /// Shortening of long histories.
    pub compaction: CompactionConfig,
    /// Own providers, and changes to the known ones, by name.
    pub providers: BTreeMap<String, ProviderConfig>,
    /// Prices by `PROVIDER/MODEL`.
    pub prices: BTreeMap<String, Price>,
    /// Key bindings: screen → action → key or keys.
    pub keys: BTreeMap<String, BTreeMap<String, OneOrMany>>,
    /// The interface.
    pub ui: UiConfig,
    /// Secrets that tools may use by name (B76).
    pub secrets: BTreeMap<String, SecretConfig>,
}

/// Cycles a session may take, at least 1 (A3).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(try_from = "u32", into = "u32")]
pub struct MaxCycles(pub u32);

impl Default for MaxCycles {
    fn default() -> Self {
        Self(5)
    }
}

impl TryFrom<u32> for MaxCycles {
    type Error = String;

    fn try_from(n: u32) -> Result<Self, String> {
        if n == 0 { Err("must be at least 1".to_owned()) } else { Ok(Self(n)) }
    }
}

impl From<MaxCycles> for u32 {
    fn from(n: MaxCycles) -> Self {
        n.0
    }
}

/// What tools may do unasked (A10).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub enum PermissionSetting {
    /// No questions.
    #[default]
    #[serde(rename = "bypassPermissions")]
    BypassPermissions,
    /// Edits go ahead; commands are asked for.
    #[serde(rename = "acceptEdits")]
    AcceptEdits,
    /// Everything that changes something is asked for.
    #[serde(rename = "ask")]
    Ask,
    /// Reading only.
    #[serde(rename = "plan")]
    Plan,
}

/// Where sessions work.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum PlaceSetting {
    /// By what the folder is.
    #[default]
    Auto,
    /// `files/` in the session's home.
    Scratch,
    /// The folder itself.
    InPlace,
    /// A git worktree.
    Worktree,
}

/// The Worker.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct WorkerConfig {
    /// Turns of one run.
    pub max_turns: u32,
    /// Whether a cycle starts a fresh conversation or goes on with the one before.
    pub continuity: Continuity,
}

impl Default for WorkerConfig {
    fn default() -> Self {
        Self { max_turns: 50, continuity: Continuity::Fresh }
    }
}

/// How the next cycle's Worker starts.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Continuity {
    /// A fresh conversation.
    #[default]
    Fresh,
    /// The conversation of the cycle before.
    Continue,
}

/// The Checker.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CheckerConfig {
    /// Turns of one run.
    pub max_turns: u32,
    /// What happens when a gate fails.
    pub on_failing_gates: OnFailingGates,
    /// How long one acceptance command may take.
    #[serde(with = "duration")]
    pub check_timeout: Duration,
    /// Leave ignored folders (`target/`, `node_modules/`) out of the copy.
    pub clean: bool,
    /// Whether the Checker's commands may use the network.
    pub network: bool,
}

impl Default for CheckerConfig {
    fn default() -> Self {
        Self {
            max_turns: 10,
            on_failing_gates: OnFailingGates::Verdict,
            check_timeout: Duration::from_secs(600),
            clean: false,
            network: false,
        }
    }
}

/// What happens when a gate fails.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "kebab-case")]
pub enum OnFailingGates {
    /// The gates give the verdict, at no model cost.
    #[default]
    Verdict,
    /// The Checker's model is asked as well.
    AskModel,
}

/// Limits.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct BudgetConfig {
    /// Tokens, sent and received.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
    /// Time of running.
    #[serde(with = "duration::option")]
    pub time: Option<Duration>,
    /// The Worker's own.
    pub worker: Limits,
    /// The Checker's own.
    pub checker: Limits,
}

/// Limits of one role.
#[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Limits {
    /// Tokens, sent and received.
    pub tokens: Option<u64>,
    /// US dollars.
    pub usd: Option<f64>,
    /// Time of running.
    #[serde(with = "duration::option")]
    pub time: Option<Duration>,
}

/// Connections to providers.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct HttpConfig {
    /// Until the connection stands.
    #[serde(with = "duration")]
    pub connect_timeout: Duration,
    /// From the request to the first byte of the answer.
    #[serde(with = "duration")]
    pub first_byte_timeout: Duration,
    /// Between two pieces of the answer.
    #[serde(with = "duration")]
    pub idle_timeout: Duration,
    /// Tries of one call in all (B106).
    pub attempts: u32,
}

impl Default for HttpConfig {
    fn default() -> Self {
        Self {
            connect_timeout: Duration::from_secs(10),
            first_byte_timeout: Duration::from_secs(300),
            idle_timeout: Duration::from_secs(120),
            attempts: 4,
        }
    }
}

/// Limits of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ToolsConfig {
    /// How long a command may take when the model does not say.
    #[serde(with = "duration")]
    pub command_timeout: Duration,
    /// Longest result the model gets, in characters (B78).
    pub output_chars: usize,
}

impl Default for ToolsConfig {
    fn default() -> Self {
        Self { command_timeout: Duration::from_secs(120), output_chars: 30_000 }
    }
}

/// Containment of tools.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SandboxConfig {
    /// `auto`, `strict`, `files` or `none`.
    pub level: SandboxLevel,
    /// Folders that may be read besides.
    pub read: Vec<PathBuf>,
    /// Folders that may be written besides.
    pub write: Vec<PathBuf>,
    /// Whether the Worker's commands may use the network.
    pub network: bool,
}

impl Default for SandboxConfig {
    fn default() -> Self {
        Self { level: SandboxLevel::Auto, read: Vec::new(), write: Vec::new(), network: true }
    }
}

/// How much containment is asked for.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum SandboxLevel {
    /// The best there is.
    #[default]
    Auto,
    /// Files, processes and network, or not at all.
    Strict,
    /// Files.
    Files,
    /// None.
    None,
}

/// Recording of working files.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct SnapshotsConfig {
    /// Larger files are named but not stored, in MB (10⁶ bytes).
    pub max_file_mb: u64,
    /// Most of one session's store, in MB (10⁶ bytes).
    pub max_total_mb: u64,
    /// What is done with files that git ignores.
    pub ignored: IgnoredFiles,
}

impl Default for SnapshotsConfig {
    fn default() -> Self {
        Self { max_file_mb: 50, max_total_mb: 5000, ignored: IgnoredFiles::Skip }
    }
}

/// What is done with files that git ignores.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum IgnoredFiles {
    /// Neither saved nor deleted on restore.
    #[default]
    Skip,
    /// Saved when they change.
    Changed,
}

/// Shortening of long histories, as parts of the model's window (B94, B95).
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct CompactionConfig {
    /// When finished goals begin to be left out.
    pub level1_at: f64,
    /// When a summary replaces what came before.
    pub level2_at: f64,
}

impl Default for CompactionConfig {
    fn default() -> Self {
        Self { level1_at: 0.5, level2_at: 0.8 }
    }
}

/// A provider: protocol, address and key variable (B105). Absent fields come from the built-in
/// provider of the same name.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct ProviderConfig {
    /// How it is spoken to.
    pub protocol: Option<Protocol>,
    /// Address up to and without `/chat/completions` or `/v1/messages`.
    pub base_url: Option<String>,
    /// The variable that holds the key; empty: no key is needed.
    pub api_key_env: Option<String>,
    /// Headers sent besides.
    pub headers: BTreeMap<String, String>,
    /// The model used when none is named.
    pub default_model: Option<String>,
}

/// How a provider is spoken to.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Protocol {
    /// OpenAI Chat Completions.
    Openai,
    /// Anthropic Messages.
    Anthropic,
    /// Gemini `streamGenerateContent`.
    Gemini,
}

/// Prices in US dollars per million tokens.
#[derive(Clone, Copy, Debug, Default, PartialEq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct Price {
    /// Tokens sent.
    pub input: f64,
    /// Tokens received.
    pub output: f64,
    /// Tokens read from the provider's cache; absent: as `input`.
    pub cached_input: Option<f64>,
    /// Tokens written to the provider's cache; absent: as `input`.
    pub cache_write: Option<f64>,
}

/// One text or several.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
#[serde(untagged)]
pub enum OneOrMany {
    /// One.
    One(String),
    /// Several.
    Many(Vec<String>),
}

// Written out, because a derived untagged enum can't say what it expected.
impl<'de> Deserialize<'de> for OneOrMany {
    fn deserialize<D: Deserializer<'de>>(deserializer: D) -> Result<Self, D::Error> {
        struct Texts;

        impl<'de> Visitor<'de> for Texts {
            type Value = OneOrMany;

            fn expecting(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
                f.write_str("a text or a list of texts")
            }

            fn visit_str<E: de::Error>(self, text: &str) -> Result<OneOrMany, E> {
                Ok(OneOrMany::One(text.to_owned()))
            }

            fn visit_seq<A: SeqAccess<'de>>(self, items: A) -> Result<OneOrMany, A::Error> {
                Vec::deserialize(SeqAccessDeserializer::new(items)).map(OneOrMany::Many)
            }
        }

        deserializer.deserialize_any(Texts)
    }
}

/// The interface.
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(default, deny_unknown_fields)]
pub struct UiConfig {
    /// Name of a theme.
    pub theme: String,
    /// Whether the mouse scrolls and selects.
    pub mouse: bool,
    /// Whether waiting for a person rings.
    pub notify: Notify,
    /// Which characters mark a status.
    pub glyphs: Glyphs,
}

impl Default for UiConfig {
    fn default() -> Self {
        Self { theme: "dark".to_owned(), mouse: true, notify: Notify::Bell, glyphs: Glyphs::Unicode }
    }
}

/// How a person is called.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Notify {
    /// Not at all.
    Off,
    /// The terminal's bell.
    #[default]
    Bell,
    /// A desktop notification through the terminal (OSC 9).
    Desktop,
}

/// Which characters mark a status.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
#[serde(rename_all = "snake_case")]
pub enum Glyphs {
    /// `✓ ▶ ○ ◐ ✗`.
    #[default]
    Unicode,
    /// `+ > o ~ x`.
    Ascii,
}

/// A secret that tools may use by name (B76).
#[derive(Clone, Debug, PartialEq, Eq, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct SecretConfig {
    /// The variable that holds it.
    pub env: String,
    /// Hosts it may be sent to.
    #[serde(default)]
    pub domains: Vec<String>,
}
