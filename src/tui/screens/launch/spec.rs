//! From the fields of the launch form to what is launched, and what the choices mean here. Pure.

use std::path::Path;

use super::PLACES;
use crate::config::{Config, PermissionSetting, PlaceSetting};
use crate::events::command::{LaunchSpec, Where};
use crate::events::data::{Contract, PermissionMode};
use crate::events::event::PerRole;
use crate::events::query::LaunchDefaults;
use crate::stdx::text::sanitize_line;
use crate::tui::screens::fields::{self, CYCLES, FieldReader};
use crate::tui::widgets::form::{Field, Form, Value};

pub(super) const OBJECTIVE: &str = "objective";
pub(super) const PLACE: &str = "place";
const EXPECTED: &str = "expected";
const INPUTS: &str = "inputs";
const CHECKS: &str = "checks";
const PROTECTED: &str = "protected";
const WORKER: &str = "worker";
const CHECKER: &str = "checker";
const MODE: &str = "mode";

const MODES: [PermissionMode; 4] =
    [PermissionMode::BypassPermissions, PermissionMode::AcceptEdits, PermissionMode::Ask, PermissionMode::Plan];

/// What a profile field offers before the person's own are known.
const STANDARD: &str = "standard";

/// The fields, empty.
pub(super) fn fields() -> Vec<Field> {
    let mut list = vec![
        Field::text(
            OBJECTIVE,
            "Objective",
            "what is to be done",
            "say clearly what is to be reached, in which form, and what must be known for it; `@` completes file names",
            8,
        )
        .at_least(3),
        Field::text(
            EXPECTED,
            "Expected outcome",
            "what the result must be",
            "text, or an object such as {\"files\": [\"index.html\"], \"requirements\": [\"has a title\"]}",
            5,
        ),
        Field::text(
            CHECKS,
            "Acceptance",
            "commands that must succeed, such as `cargo test`",
            "one command a line; they are run on a copy of what was handed in, and a failing one prevents a pass",
            4,
        ),
        Field::choice(
            PLACE,
            "Where",
            ["auto", "scratch folder", "this folder", "worktree"].map(str::to_owned).into(),
            0,
            "",
        ),
        Field::choice(WORKER, "Worker", vec![STANDARD.to_owned()], 0, "a profile of workers.yaml"),
        Field::choice(
            CHECKER,
            "Checker",
            vec![STANDARD.to_owned()],
            0,
            "a profile of workers.yaml; another model than the Worker's sees more",
        ),
    ];
    list.extend(fields::limits(5));
    list.extend([
        Field::text(INPUTS, "Inputs", "{}", "values for the task as a JSON object, such as {\"language\": \"en\"}", 4),
        Field::text(PROTECTED, "Protected", "files that must stay as they are", "one path a line, such as `tests/`", 3),
        Field::choice(
            MODE,
            "Permissions",
            ["no questions", "ask before commands", "ask before changes", "read only"].map(str::to_owned).into(),
            0,
            "the boundary around the working folder holds in any case",
        ),
    ]);
    list
}

/// Shows the person's profiles and the cycles they allow.
pub(super) fn offer(form: &mut Form, defaults: &LaunchDefaults) {
    for id in [WORKER, CHECKER] {
        if let Some(Field { value: Value::Choice(options), .. }) = form.field_mut(id) {
            let chosen = options.options.get(options.index).cloned();
            options.options = std::iter::once(STANDARD.to_owned())
                .chain(defaults.profiles.iter().map(|name| sanitize_line(name)))
                .collect();
            let kept = chosen.and_then(|chosen| options.options.iter().position(|option| *option == chosen));
            options.index = kept.unwrap_or(0);
        }
    }
    if let Some(Field { value: Value::Text(editor, _), .. }) = form.field_mut(CYCLES) {
        editor.set_placeholder(defaults.max_cycles.to_string());
    }
}

/// Where the person wants to work.
pub(super) fn place(form: &Form) -> Where {
    PLACES.get(form.chosen(PLACE)).copied().unwrap_or_default()
}

/// What a choice of place means in this folder.
pub(super) fn place_hint(place: Where, defaults: Option<&LaunchDefaults>) -> String {
    let Some(defaults) = defaults else { return String::new() };
    match place {
        Where::Auto => match &defaults.auto_place {
            Ok(place) => format!("here that is {}", words(*place, defaults)),
            Err(why) => format!("here you must choose: {}", sanitize_line(why)),
        },
        Where::Scratch | Where::InPlace | Where::Worktree => words(place, defaults),
    }
}

fn words(place: Where, defaults: &LaunchDefaults) -> String {
    match place {
        Where::Auto => String::new(),
        Where::Scratch => "an empty folder of the session's own".to_owned(),
        Where::InPlace => "this folder itself; files are changed where they are, and a rewind restores them".to_owned(),
        Where::Worktree if defaults.repository.is_none() => {
            "a git worktree; but this folder is in no repository".to_owned()
        }
        Where::Worktree if defaults.uncommitted.is_empty() => {
            "a git worktree on a branch of its own; nothing here changes until you apply".to_owned()
        }
        Where::Worktree => {
            let shown: Vec<String> = defaults.uncommitted.iter().take(4).map(|path| sanitize_line(path)).collect();
            let more = defaults.uncommitted.len().saturating_sub(shown.len());
            let more = if more > 0 { format!(" and {more} more") } else { String::new() };
            format!("a git worktree; it lacks what is not committed: {}{more}", shown.join(", "))
        }
    }
}

/// What is to be launched, or what is wrong with which field.
pub(super) fn read(
    form: &Form,
    dir: &Path,
    defaults: Option<&LaunchDefaults>,
) -> Result<LaunchSpec, Vec<(&'static str, String)>> {
    let mut reader = FieldReader::new(form);
    let objective = form.text(OBJECTIVE).trim().to_owned();
    if objective.is_empty() {
        reader.errors.push((OBJECTIVE, "say what is to be done; nothing else is required".to_owned()));
    }
    let place = place(form);
    if let (Where::Auto, Some(Err(why))) = (place, defaults.map(|defaults| &defaults.auto_place)) {
        reader.errors.push((PLACE, format!("choose one: {why}")));
    }
    if place == Where::Worktree && defaults.is_some_and(|defaults| defaults.repository.is_none()) {
        reader.errors.push((PLACE, "this folder is in no git repository; choose another place".to_owned()));
    }
    let contract = Contract {
        objective,
        expected_output: reader.read(EXPECTED, fields::expected),
        inputs: reader.read(INPUTS, fields::inputs).unwrap_or_default(),
        checks: reader.lines(CHECKS),
        protected: reader.lines(PROTECTED),
    };
    let profile = |id: &str| match form.field(id).map(|field| &field.value) {
        Some(Value::Choice(options)) if options.index > 0 => options.options.get(options.index).cloned(),
        Some(Value::Choice(_) | Value::Text(..)) | None => None,
    };
    let spec = LaunchSpec {
        contract,
        dir: dir.to_path_buf(),
        place: Some(place),
        profiles: PerRole { worker: profile(WORKER), checker: profile(CHECKER) },
        max_cycles: reader.read(CYCLES, fields::cycles),
        budget: reader.budget(),
        permission_mode: MODES.get(form.chosen(MODE)).copied(),
        ..LaunchSpec::default()
    };
    if reader.errors.is_empty() { Ok(spec) } else { Err(reader.errors) }
}

/// Everything that was typed and chosen, to be kept; empty when nothing was typed.
pub(super) fn keep(form: &Form) -> String {
    let mut kept = serde_json::Map::new();
    let mut typed = false;
    for field in &form.fields {
        let text = match &field.value {
            Value::Text(editor, _) => {
                typed |= !editor.is_blank();
                editor.text()
            }
            Value::Choice(options) => options.options.get(options.index).cloned().unwrap_or_default(),
        };
        kept.insert(field.id.to_owned(), text.into());
    }
    if typed { serde_json::Value::Object(kept).to_string() } else { String::new() }
}

/// Puts back what was kept.
pub(super) fn bring_back(form: &mut Form, kept: &str) {
    let Ok(kept) = serde_json::from_str::<serde_json::Map<String, serde_json::Value>>(kept) else { return };
    for field in &mut form.fields {
        let Some(text) = kept.get(field.id).and_then(serde_json::Value::as_str) else { continue };
        match &mut field.value {
            Value::Text(editor, _) if !text.is_empty() => editor.set_text(text),
            Value::Text(..) => {}
            Value::Choice(options) => {
                // A profile may not be known again yet; whether there is one shows when they are.
                let index = options.options.iter().position(|option| option == text).unwrap_or_else(|| {
                    options.options.push(text.to_owned());
                    options.options.len() - 1
                });
                options.index = index;
            }
        }
    }
}

/// Puts the person's own defaults into the choices.
pub(super) fn preset(form: &mut Form, config: &Config) {
    let place = match config.place {
        PlaceSetting::Auto => Where::Auto,
        PlaceSetting::Scratch => Where::Scratch,
        PlaceSetting::InPlace => Where::InPlace,
        PlaceSetting::Worktree => Where::Worktree,
    };
    let mode = match config.permission_mode {
        PermissionSetting::BypassPermissions => PermissionMode::BypassPermissions,
        PermissionSetting::AcceptEdits => PermissionMode::AcceptEdits,
        PermissionSetting::Ask => PermissionMode::Ask,
        PermissionSetting::Plan => PermissionMode::Plan,
    };
    let indices = [(PLACE, PLACES.iter().position(|p| *p == place)), (MODE, MODES.iter().position(|m| *m == mode))];
    for (id, index) in indices {
        if let Some(Field { value: Value::Choice(options), .. }) = form.field_mut(id) {
            options.index = index.unwrap_or(0);
        }
    }
}
