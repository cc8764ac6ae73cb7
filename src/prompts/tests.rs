//! Claims about the prompt library as a whole: built-in texts, overriding, filling.

use std::fs;

use pretty_assertions::assert_eq;
use proptest::prelude::*;

use super::*;

fn library() -> Library {
    let (library, warnings) = Library::load(None, None);
    assert_eq!(warnings, Vec::<String>::new());
    library
}

/// Writes one prompt file into an override folder and loads the library with it.
fn with_override(relative: &str, text: &str) -> (Library, Vec<String>) {
    let dir = tempfile::tempdir().unwrap();
    let path = dir.path().join(relative);
    fs::create_dir_all(path.parent().unwrap()).unwrap();
    fs::write(&path, text).unwrap();
    let (library, warnings) = Library::load(Some(dir.path()), None);
    let prefix = format!("{}/", dir.path().display());
    (library, warnings.into_iter().map(|warning| warning.replace(&prefix, "")).collect())
}

#[test]
fn every_built_in_prompt_has_its_sections_and_uses_its_variables() {
    let library = library();
    for (i, name) in PromptName::ALL.into_iter().enumerate() {
        assert_eq!(name as usize, i, "{name:?} is out of place in PromptName::ALL");
        let values: Vec<(&str, &str)> = name.variables().iter().map(|variable| (*variable, "VALUE")).collect();
        for section in name.sections() {
            let text = library.render(name, *section, &values).unwrap();
            assert!(!text.contains('%'), "{name:?} leaves a placeholder: {text}");
        }
    }
}

#[test]
fn system_prompt_and_protocol_leave_room_for_the_tools_in_the_first_request() {
    let library = library();
    let bytes = |name| library.render(name, Section::System, &[]).unwrap().len();
    assert!(bytes(PromptName::WorkerSystem) + bytes(PromptName::OutputProtocol) <= 2560);
}

#[test]
fn worker_user_prompt_has_the_required_order() {
    let values = [
        ("input", "{\n  \"k\": 1\n}"),
        ("profile_user", "Write it in verse."),
        ("expected", "index.html"),
        ("objective", "Build a page."),
        ("cwd", "/home/me/files"),
        ("time", "2026-01-26 09:30 UTC"),
    ];
    let text = library().render(PromptName::WorkerUser, Section::User, &values).unwrap();
    let parts = [
        "2026-01-26 09:30 UTC",
        "/home/me/files",
        "Important: use the time above",
        "strictly inside the working directory",
        "Task objective:\nBuild a page.",
        "Expected outcome:\nindex.html",
        "Write it in verse.",
        "Input:\n{\n  \"k\": 1\n}",
    ];
    let places: Vec<_> =
        parts.iter().map(|part| text.find(part).unwrap_or_else(|| panic!("no `{part}` in {text}"))).collect();
    assert!(places.is_sorted(), "{text}");
}

#[test]
fn an_empty_part_leaves_neither_heading_nor_blank_lines() {
    let values =
        [("time", "t"), ("cwd", "c"), ("objective", "Do it."), ("expected", ""), ("profile_user", ""), ("input", "{}")];
    let text = library().render(PromptName::WorkerUser, Section::User, &values).unwrap();
    assert!(text.ends_with("Task objective:\nDo it.\n\nInput:\n{}"), "{text}");
}

#[test]
fn a_value_is_never_looked_at_again() {
    let text = library().render(PromptName::DoomLoop, Section::Tool, &[("tool", "%count%"), ("count", "3")]).unwrap();
    assert!(text.contains("`%count%`") && text.contains(" 3 times"), "{text}");
}

#[test]
fn a_variable_without_a_value_and_a_missing_section_are_errors() {
    let error = library().render(PromptName::DoomLoop, Section::Tool, &[("tool", "bash_command")]).unwrap_err();
    assert_eq!(
        error.to_string(),
        "prompt `core/doom_loop.prompt` was given no value for `%count%`; pass one, empty if there is none"
    );
    let error = library().render(PromptName::LastTurn, Section::System, &[]).unwrap_err();
    assert_eq!(error.to_string(), "prompt `session/last_turn.prompt` has no section `$system$`");
}

#[test]
fn a_project_overrides_the_user_who_overrides_what_is_built_in() {
    let [user, project] = [tempfile::tempdir().unwrap(), tempfile::tempdir().unwrap()];
    for (dir, file, text) in [
        (&user, "last_turn", "$user$\nuser's\n"),
        (&user, "not_specified", "---\ntemperature: 0.3\n---\n$user$\nuser's too\n"),
        (&project, "last_turn", "$user$\nproject's\n"),
    ] {
        fs::create_dir_all(dir.path().join("session")).unwrap();
        fs::write(dir.path().join(format!("session/{file}.prompt")), text).unwrap();
    }
    let (library, warnings) = Library::load(Some(user.path()), Some(project.path()));
    assert_eq!(warnings, Vec::<String>::new());
    assert_eq!(library.render(PromptName::LastTurn, Section::User, &[]).unwrap(), "project's");
    assert_eq!(library.render(PromptName::NotSpecified, Section::User, &[]).unwrap(), "user's too");
    assert_eq!(library.header(PromptName::NotSpecified).temperature, Some(0.3));
    assert_eq!(library.header(PromptName::LastTurn), &Header::default());
}

#[test]
fn folders_that_do_not_exist_override_nothing() {
    let dir = tempfile::tempdir().unwrap();
    let (_, warnings) = Library::load(Some(&dir.path().join("none")), Some(dir.path()));
    assert_eq!(warnings, Vec::<String>::new());
}

#[test]
fn a_faulty_override_is_named_and_the_built_in_text_stays() {
    let (faulty, warnings) = with_override("session/last_turn.prompt", "$user$\n\n$user$\nx");
    assert_eq!(
        warnings,
        ["session/last_turn.prompt:1: section `$user$` is empty; the prompt before it stays in force"]
    );
    let text = |library: &Library| library.render(PromptName::LastTurn, Section::User, &[]).unwrap();
    assert_eq!(text(&faulty), text(&library()));

    let (_, warnings) = with_override("session/last_turn.prompt", "$system$\nx");
    assert_eq!(
        warnings,
        ["session/last_turn.prompt:1: section `$user$` is missing; the prompt before it stays in force"]
    );
    let (_, warnings) = with_override("core/last_turn.prompt", "$user$\nx");
    assert!(warnings[0].starts_with("core/last_turn.prompt: no prompt of this name; not used (there are "));
}

#[test]
fn a_word_that_is_no_variable_stays_text_and_is_reported_with_its_line() {
    let text = "---\nmodel: a/b\n---\n\n$tool$\n\n100% of %tool%\n\nsee %PATH% %count%\n";
    let (library, warnings) = with_override("core/truncated_call.prompt", text);
    let variables = "is no variable of this prompt and stays as it is; it has %tool%";
    assert_eq!(
        warnings,
        [
            format!("core/truncated_call.prompt:9: `%PATH%` {variables}"),
            format!("core/truncated_call.prompt:9: `%count%` {variables}")
        ]
    );
    let text = library.render(PromptName::TruncatedCall, Section::Tool, &[("tool", "T")]).unwrap();
    assert_eq!(text, "100% of T\n\nsee %PATH% %count%");
}

#[test]
fn an_override_that_leaves_a_variable_out_is_reported() {
    let (_, warnings) = with_override("session/ask_again.prompt", "$user$\nAgain.");
    assert_eq!(warnings, ["session/ask_again.prompt: leaves out `%problem%`, so the model does not see it"]);
}

#[track_caller]
fn check_fault(source: &str, expected: &str) {
    assert_eq!(parse("f.prompt", source).unwrap_err().to_string(), expected);
}

#[test]
fn faults_name_file_and_line() {
    check_fault("", "f.prompt:1: no section; begin with a line `$system$`");
    check_fault("\nhello\n$user$\nx", "f.prompt:2: text before the first section; begin with a line `$system$`");
    check_fault("---\nmodel: x\n$user$\nx", "f.prompt:1: the header is not closed; end it with a line `---`");
    check_fault("$usr$\nx", "f.prompt:1: `$usr$` is not a section; known are `$system$`, `$user$`, `$tool$`");
    check_fault("$user$\nx\n$user$\ny", "f.prompt:3: section `$user$` is there twice; keep one of them");
    check_fault("$user$\nx\n$system$\n \n", "f.prompt:3: section `$system$` is empty");
    let fault = parse("f.prompt", "---\nmodel: a/b\ntemprature: 1\n---\n$user$\nx").unwrap_err();
    assert!(fault.to_string().starts_with("f.prompt:3: in the header: "), "{fault}");
    assert!(fault.to_string().contains("temprature"), "{fault}");
}

#[test]
fn line_ends_of_other_systems_and_a_byte_order_mark_are_accepted() {
    let file = parse("f.prompt", "\u{feff}---\r\nmodel: a/b\r\n---\r\n$user$\r\none\r\n\r\ntwo\r\n").unwrap();
    assert_eq!(file.header.model.as_deref(), Some("a/b"));
    assert_eq!(file.sections, [SectionText { section: Section::User, line: 5, text: "one\n\ntwo".to_owned() }]);
}

/// Text of lines that are neither section markers nor blank at the ends.
fn body() -> impl Strategy<Value = String> {
    proptest::collection::vec("[a-z% \\t]{0,12}", 0..6).prop_map(|lines| format!("x{}y", lines.join("\n")))
}

proptest! {
    #[test]
    fn what_is_written_is_parsed_back(system in body(), user in body()) {
        let file = parse("f.prompt", &format!("$system$\n\n{system}\n\n$user$\n{user}\n")).unwrap();
        let texts: Vec<&str> = file.sections.iter().map(|part| part.text.as_str()).collect();
        prop_assert_eq!(texts, vec![system.as_str(), user.as_str()]);
    }

    #[test]
    fn parsing_never_panics(source in "([$%a-z\\-: \\n]|\\PC){0,80}") {
        let _ = parse("f.prompt", &source);
    }

    #[test]
    fn text_without_variables_is_rendered_as_it_is(text in "([%a-z_ \\t]|\n|\\PC){0,60}") {
        let (template, _) = Template::new(&text, &[]);
        prop_assert_eq!(template.fill(|_| unreachable!()), text);
    }

    #[test]
    fn filling_is_replacing_each_placeholder_once(before in "[a-z ]{0,8}", value in "\\PC{1,12}", after in "[a-z ]{0,8}") {
        let (template, undeclared) = Template::new(&format!("{before}%name%{after}%name%"), &["name"]);
        prop_assert!(undeclared.is_empty());
        prop_assert_eq!(template.fill(|_| &value), format!("{before}{value}{after}{value}"));
    }
}
