//! Working in a git repository, and bringing results home.

use std::fs;
use std::path::PathBuf;

use pretty_assertions::assert_eq;

use crate::support::shell::{Shell, finish, wait_until};

/// A shell in a repository with one commit, on branch `main`.
fn repository() -> (Shell, PathBuf) {
    let mut shell = Shell::new();
    let folder = shell.go("repository");
    shell.git(&["init", "-q", "-b", "main"]);
    shell.git(&["config", "user.name", "Per Son"]);
    shell.git(&["config", "user.email", "person@here"]);
    commit(&shell, "README.md", "hello\n");
    (shell, folder)
}

fn commit(shell: &Shell, file: &str, text: &str) {
    fs::write(shell.folder().join(file), text).unwrap();
    shell.git(&["add", "-A"]);
    shell.git(&["commit", "-q", "-m", file]);
}

/// Everything of a repository that a person would see change.
fn picture(shell: &Shell) -> [String; 4] {
    let mut files: Vec<_> = fs::read_dir(shell.folder()).unwrap().flatten().map(|e| e.file_name()).collect();
    files.sort();
    [
        shell.git(&["status", "--porcelain"]),
        shell.git(&["log", "--format=%H %s", "HEAD"]),
        shell.git(&["branch", "--list", "--format=%(refname:short)"]),
        format!("{files:?}"),
    ]
}

#[test]
fn a_repository_is_untouched_until_its_result_is_applied() {
    let (shell, folder) = repository();
    let before = picture(&shell);
    shell.session("scripted/rehearsal", &["--name", "My page!"], 0).shows(&["index.html"]);
    let mut expected = before.clone();
    expected[2].push_str("super-agent/my-page\n");
    assert_eq!(picture(&shell), expected);

    let preview = shell.run(&["apply", "last", "--dry-run"], 0);
    preview.shows(&["into branch `main`", "+ index.html (+13 −0)", "+    <title>Hello World</title>"]);
    assert_eq!(picture(&shell), expected, "a dry run changes nothing");

    shell.run(&["apply", "last"], 0).shows(&["<title>Hello World</title>", "merged `super-agent/my-page` into `main`"]);
    assert!(fs::read_to_string(folder.join("index.html")).unwrap().contains("<title>Hello World</title>"));
    assert_eq!(shell.git(&["status", "--porcelain"]), "");
    let log = shell.git(&["log", "--topo-order", "--format=%s|%an"]);
    assert_eq!(log, "Merge branch 'super-agent/my-page'|Per Son\nMy page!|Per Son\nREADME.md|Per Son\n");
    shell.run(&["apply", "last"], 0).shows(&["is merged into `main`", "already"]);

    let home = shell.home();
    shell.run(&["rm", "My page!"], 0).shows(&["deleted"]);
    assert!(!home.exists());
    assert_eq!(shell.git(&["branch", "--list", "--format=%(refname:short)"]), "main\n");
    assert_eq!(shell.git(&["worktree", "list", "--porcelain"]).matches("worktree ").count(), 1);
}

#[test]
fn a_result_that_was_not_passed_needs_force() {
    let (shell, folder) = repository();
    shell.session("scripted/never-passes", &["--max-cycles", "1"], 1);
    let before = picture(&shell);
    let refused = shell.run(&["apply", "last"], 2);
    refused.shows(&["+ log.txt"]).says(&["cycle 1 was not passed (its verdict is needs_improvement)", "--force"]);
    shell.run(&["apply", "last", "--dry-run"], 0).shows(&["can't be applied", "--force"]);
    assert_eq!(picture(&shell), before);
    shell.run(&["apply", "last", "--force"], 0);
    assert_eq!(fs::read_to_string(folder.join("log.txt")).unwrap(), "line 1\n");
}

#[test]
fn a_merge_waits_for_the_right_branch_and_spoils_none_of_the_persons_own() {
    let (shell, folder) = repository();
    shell.session("quick", &["--name", "q"], 0);
    shell.git(&["switch", "-q", "-c", "other"]);
    shell.run(&["apply", "last"], 2).says(&["is on `other`, not on `main`", "git switch main"]);

    // A merge of the person's own that is not finished.
    commit(&shell, "README.md", "theirs\n");
    shell.git(&["switch", "-q", "main"]);
    commit(&shell, "README.md", "ours\n");
    let merge = shell.git(&["rev-parse", "other"]);
    fs::write(folder.join(".git/MERGE_HEAD"), &merge).unwrap();
    shell.run(&["apply", "last"], 2).says(&["a merge is under way", "git merge --abort"]);
    assert_eq!(fs::read_to_string(folder.join(".git/MERGE_HEAD")).unwrap(), merge);
    fs::remove_file(folder.join(".git/MERGE_HEAD")).unwrap();

    // Something else has taken the file's place: the merge is taken back whole.
    commit(&shell, "result.txt", "mine\n");
    let before = picture(&shell);
    shell.run(&["apply", "last"], 2).says(&["`super-agent/q` does not merge into `main`", "nothing was changed"]);
    assert_eq!(picture(&shell), before);
    assert!(!folder.join(".git/MERGE_HEAD").exists());

    // The result is committed on the branch now, and is not thrown away with the session.
    shell.run(&["rm", "q"], 0).shows(&["branch `super-agent/q` stays"]);
    assert_eq!(shell.git(&["show", "super-agent/q:result.txt"]), "new\n");
}

#[test]
fn launches_at_once_get_branches_of_their_own() {
    let (shell, _) = repository();
    let model = shell.model("quick");
    let launch = || shell.program(&["run", "--model", &model, "--name", "same", "x"]).spawn().unwrap();
    for run in [launch(), launch(), launch()] {
        let ran = finish(run);
        assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    }
    let branches = shell.git(&["branch", "--list", "super-agent/*", "--format=%(refname:short)"]);
    assert_eq!(branches, "super-agent/same\nsuper-agent/same-2\nsuper-agent/same-3\n");
}

#[test]
fn a_file_the_person_is_working_on_stops_the_merge() {
    let (shell, folder) = repository();
    shell.session("quick", &[], 0);
    fs::write(folder.join("result.txt"), "not committed").unwrap();
    shell.run(&["apply", "last"], 2).says(&["does not merge", "result.txt"]);
    assert_eq!(fs::read_to_string(folder.join("result.txt")).unwrap(), "not committed");
    assert_eq!(shell.git(&["log", "--format=%s"]), "README.md\n");
}

#[test]
fn with_uncommitted_changes_the_person_chooses() {
    let (shell, folder) = repository();
    fs::write(folder.join("ää ö.txt"), "draft").unwrap();
    shell.git(&["mv", "README.md", "ünter.md"]);
    let asked = shell.session("quick", &[], 2);
    asked.says(&["uncommitted changes (`ünter.md`, `ää ö.txt`)", "--in-place", "--worktree", "--scratch"]);
    assert_eq!(shell.homes(), Vec::<PathBuf>::new(), "nothing is left of it");

    let status = shell.git(&["status", "--porcelain"]);
    shell.session("quick", &["--worktree"], 0).says(&["note: the worktree", "lacks", "`ää ö.txt`"]);
    assert_eq!(shell.git(&["status", "--porcelain"]), status);

    shell.session("quick", &["--in-place"], 0);
    assert_eq!(fs::read_to_string(folder.join("result.txt")).unwrap(), "new\n");
    assert!(!folder.join("__output.json").exists());
    shell.run(&["apply", "last"], 2).says(&["worked in", "its files are there already"]);
}

#[test]
fn in_place_an_output_from_before_comes_back_and_the_folder_is_nobody_elses() {
    let mut shell = Shell::new();
    let folder = shell.go("place");
    fs::write(folder.join("__output.json"), "mine").unwrap();
    shell.session("quick", &["--in-place"], 0).says(&["an `__output.json` that was in the folder is put aside"]);
    assert_eq!(fs::read_to_string(folder.join("__output.json")).unwrap(), "mine");

    let model = shell.model("endless");
    let first = shell.program(&["run", "--model", &model, "--in-place", "--name", "first", "x"]).spawn().unwrap();
    wait_until("the command", || folder.join("began").exists().then_some(()));
    assert!(!folder.join("__output.json").exists());
    shell.session("quick", &["--in-place"], 2).says(&["another session works in", "--scratch"]);
    assert_eq!(shell.homes().len(), 2, "nothing is left of the second");
    shell.run(&["stop", "first"], 0).shows(&["stopping"]);
    assert_eq!(finish(first).code, Some(143), "as by SIGTERM");
    assert_eq!(fs::read_to_string(folder.join("__output.json")).unwrap(), "mine");
    fs::remove_file(folder.join("result.txt")).unwrap();
    shell.session("quick", &["--in-place"], 0);
}

#[test]
fn a_killed_session_gives_the_persons_output_back_when_it_is_deleted() {
    let mut shell = Shell::new();
    let folder = shell.go("place");
    fs::write(folder.join("__output.json"), "mine").unwrap();
    let model = shell.model("endless");
    let mut run = shell.program(&["run", "--model", &model, "--in-place", "x"]).spawn().unwrap();
    wait_until("the command", || folder.join("began").exists().then_some(()));
    run.kill().unwrap();
    finish(run);
    assert!(!folder.join("__output.json").exists());
    shell.run(&["rm", "last"], 0);
    assert_eq!(fs::read_to_string(folder.join("__output.json")).unwrap(), "mine");
}

#[test]
fn a_scratch_result_never_overwrites_what_changed() {
    let shell = Shell::new();
    shell.session("quick", &[], 0);
    let target = shell.path("target");
    let to = target.display().to_string();
    shell.run(&["apply", "last", "--to", &to], 0).shows(&["1 files brought"]);
    assert_eq!(fs::read_to_string(target.join("result.txt")).unwrap(), "new\n");
    shell.run(&["apply", "last", "--to", &to], 0);

    fs::write(target.join("result.txt"), "mine").unwrap();
    let refused = shell.run(&["apply", "last", "--to", &to], 2);
    refused.says(&["`result.txt`", "nothing was written"]).shows(&["never overwritten"]);
    assert_eq!(fs::read_to_string(target.join("result.txt")).unwrap(), "mine");

    fs::remove_file(target.join("result.txt")).unwrap();
    fs::create_dir(target.join("result.txt")).unwrap();
    shell.run(&["apply", "last", "--to", &to], 2).says(&["`result.txt`"]);

    fs::remove_dir(target.join("result.txt")).unwrap();
    std::os::unix::fs::symlink(shell.path("elsewhere"), target.join("result.txt")).unwrap();
    shell.run(&["apply", "last", "--to", &to], 2).says(&["`result.txt`"]);
    assert!(!shell.path("elsewhere").exists(), "nothing is written through a link");
}

#[test]
fn without_commits_there_is_no_worktree() {
    let mut shell = Shell::new();
    shell.go("fresh");
    shell.git(&["init", "-q"]);
    shell.session("quick", &["--worktree"], 2).says(&["has no commit", "--in-place"]);
    shell.session("quick", &[], 0).says(&["scratch folder"]);
    shell.go("plain");
    shell.session("quick", &["--worktree"], 2).says(&["is not in a git repository", "git init"]);
}

#[test]
fn without_git_sessions_work_in_scratch_folders() {
    let (mut shell, _) = repository();
    shell.set("PATH", shell.path("nothing").display().to_string());
    shell.session("quick", &[], 0).says(&["scratch folder"]);
    shell.session("quick", &["--worktree"], 2).says(&["git can't be run", "install git"]);
    shell.run(&["doctor"], 2).shows(&["git  not found"]);
}
