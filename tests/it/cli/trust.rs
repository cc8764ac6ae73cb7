//! A project's own configuration counts only once the person has accepted it, and never for
//! everything.

use std::fs;

use crate::support::shell::Shell;

#[test]
fn a_projects_configuration_counts_only_when_accepted() {
    let mut shell = Shell::new();
    let folder = shell.go("project");
    fs::create_dir(folder.join(".super-agent")).unwrap();
    let config = folder.join(".super-agent/config.toml");
    fs::write(&config, "max_cycles = 1\n").unwrap();
    let name = folder.display().to_string();

    let ran = shell.session("scripted/never-passes", &["--max-cycles", "2"], 1);
    ran.says(&["note: the configuration of", &name, "is left aside", "super-agent trust"]);
    let ran = shell.session("quick", &[], 0);
    ran.says(&["is left aside", "cycle 1 of 5"]);
    shell.run(&["doctor"], 2).shows(&["left aside until you accept it"]);

    shell.run(&["trust"], 0).shows(&["counts from now on", ".super-agent/config.toml"]);
    let ran = shell.session("quick", &[], 0);
    ran.says(&["cycle 1 of 1"]);
    assert!(!ran.stderr.contains("left aside"), "{}", ran.stderr);

    fs::write(&config, "max_cycles = 3\n").unwrap();
    shell.session("quick", &[], 0).says(&["it changed since you were asked", "cycle 1 of 5"]);
    shell.run(&["trust"], 0);
    shell.session("quick", &[], 0).says(&["cycle 1 of 3"]);
    shell.run(&["trust", "--revoke"], 0);
    shell.session("quick", &[], 0).says(&["cycle 1 of 5"]);
    shell.go("elsewhere");
    shell.run(&["trust"], 2).says(&["belongs to no project"]);
}

#[test]
fn even_an_accepted_project_sends_no_key_elsewhere() {
    let mut shell = Shell::new();
    let folder = shell.go("project");
    fs::create_dir(folder.join(".super-agent")).unwrap();
    let config = folder.join(".super-agent/config.toml");
    for (text, key) in [
        ("[providers.openai]\nbase_url = \"http://127.0.0.1:1\"\n", "providers"),
        ("permission_mode = \"bypassPermissions\"\n", "permission_mode"),
        ("[sandbox]\nlevel = \"none\"\n", "sandbox"),
    ] {
        fs::write(&config, text).unwrap();
        shell.run(&["trust"], 0);
        let ignored = format!("`{key}` is ignored: a project can't set it");
        shell.run(&["sessions"], 0).says(&[&ignored, ".super-agent/config.toml:1"]);
    }
    fs::write(&config, "").unwrap();
    let profile = "default:\n  provider: openai\n  model: m\n  endpoint: http://127.0.0.1:1\n  permission_mode: plan\n";
    fs::write(folder.join("workers.yaml"), profile).unwrap();
    shell.run(&["trust"], 0);
    let ignored = ["`default.endpoint` is ignored", "`default.permission_mode` is ignored", "workers.yaml"];
    shell.run(&["sessions"], 0).says(&ignored);
}
