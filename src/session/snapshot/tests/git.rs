//! What happens to git's own data. The folders here look like git's; nothing runs git.

use std::fs;

use super::{Scene, paths};
use crate::events::data::ChangeKind;

fn repository(scene: &Scene) {
    scene.write(".git/HEAD", "ref: refs/heads/main\n");
    scene.write(".git/config", "[core]\n");
    scene.write(".git/index", "index 1");
    scene.write(".git/logs/HEAD", "log 1\n");
    scene.write(".git/refs/heads/main", "1111\n");
    scene.write(".git/objects/11/11", "object");
    scene.write(".git/hooks/post-commit", "#!/bin/sh\n");
    scene.write("a", "1");
}

fn commit(scene: &Scene) {
    scene.write(".git/index", "index 2");
    scene.write(".git/logs/HEAD", "log 1\nlog 2\n");
    scene.write(".git/refs/heads/main", "2222\n");
    scene.write(".git/refs/heads/agent", "2222\n");
    scene.write(".git/objects/22/22", "object");
    scene.write(".git/packed-refs", "# packed\n");
    scene.write("a", "2");
}

#[test]
fn a_restore_undoes_commits_and_touches_nothing_else_of_git() {
    let scene = Scene::new();
    repository(&scene);
    let store = scene.store();
    let first = store.take().unwrap().id;
    let before = scene.picture();
    commit(&scene);
    let committed = store.take().unwrap();
    assert_eq!(paths(&committed), ["a"], "git's data is no working file");
    assert_eq!(store.changed_since(&first).unwrap(), [".git", "a"]);
    let restored = store.restore(&first, &[]).unwrap();
    let written = ["index", "logs/HEAD", "refs/heads/main", "refs/heads/agent", "packed-refs"];
    assert_eq!(restored.git, written.map(|path| format!(".git/{path}")));
    let mut expected = before;
    expected.insert(".git/objects/22".into(), "folder".into());
    expected.insert(".git/objects/22/22".into(), "644 object".into());
    assert_eq!(scene.picture(), expected);
    store.restore(&committed.id, &[]).unwrap();
    assert_eq!(scene.read(".git/refs/heads/agent"), Some("2222\n".into()));
}

#[test]
fn git_is_left_alone_while_it_is_at_work_or_when_kept() {
    let scene = Scene::new();
    repository(&scene);
    let store = scene.store();
    let first = store.take().unwrap().id;
    commit(&scene);
    scene.write(".git/index.lock", "");
    let why = ".git: `index.lock` is there; where its branches are was not saved";
    assert_eq!(store.take().unwrap().not_captured, [why]);
    let restored = store.restore(&first, &[]).unwrap();
    assert_eq!((restored.git.len(), scene.read(".git/index")), (0, Some("index 2".into())));
    scene.remove(".git/index.lock");
    store.restore(&first, &[".git".into()]).unwrap();
    assert_eq!(scene.read(".git/index"), Some("index 2".into()));
    let restored = store.restore(&first, &[]).unwrap();
    assert_eq!((scene.read(".git/index"), restored.failed), (Some("index 1".into()), vec![]));
}

#[test]
fn the_git_file_of_a_worktree_is_left_alone() {
    let scene = Scene::new();
    scene.write(".git", "gitdir: /elsewhere\n");
    scene.write("a", "1");
    let store = scene.store();
    let first = store.take().unwrap().id;
    assert_eq!(store.load(&first).unwrap().len(), 1);
    scene.write(".git", "gitdir: /elsewhere/else\n");
    scene.write("a", "2");
    store.restore(&first, &[]).unwrap();
    assert_eq!(scene.read(".git"), Some("gitdir: /elsewhere/else\n".into()));
}

#[test]
fn a_nested_repository_is_saved_with_all_its_files() {
    let scene = Scene::new();
    scene.write("nested/.git/HEAD", "ref: refs/heads/main\n");
    scene.write("nested/.git/objects/11/11", "object");
    fs::create_dir_all(scene.root.join("nested/.git/refs/tags")).unwrap();
    scene.write("nested/src/x", "1");
    let store = scene.store();
    let first = store.take().unwrap().id;
    let before = scene.picture();
    scene.remove("nested");
    assert!(store.take().unwrap().changed.iter().all(|c| c.kind == ChangeKind::Deleted));
    store.restore(&first, &[]).unwrap();
    assert_eq!(scene.picture(), before);
}
