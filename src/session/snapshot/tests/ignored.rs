//! What git ignores is neither saved nor removed.

use super::{Scene, paths};
use crate::config::{IgnoredFiles, SnapshotsConfig};
use crate::session::snapshot::{SnapshotStore, WalkOptions};

#[test]
fn ignored_files_are_neither_saved_nor_removed() {
    let scene = Scene::new();
    scene.write(".gitignore", "target/\n*.log\n");
    scene.write("src/a", "1");
    scene.write("target/x", "built");
    scene.write("src/b.log", "log");
    let store = scene.store();
    let first = store.take().unwrap().id;
    let manifest = store.load(&first).unwrap();
    assert_eq!(manifest.iter().map(|e| &*e.path).collect::<Vec<_>>(), [".gitignore", "src/a"]);
    scene.write("target/y", "built");
    scene.write("src/a", "2");
    scene.write("other/c.log", "log");
    scene.write("other/d", "1");
    store.restore(&first, &[]).unwrap();
    assert_eq!(scene.read("src/a"), Some("1".into()));
    assert_eq!((scene.read("target/y"), scene.read("other/c.log")), (Some("built".into()), Some("log".into())));
    assert_eq!(scene.read("other/d"), None);
}

#[test]
fn what_the_restored_rules_ignore_is_not_removed() {
    let scene = Scene::new();
    scene.write(".gitignore", "target/\n");
    scene.write("target/x", "built");
    let store = scene.store();
    let first = store.take().unwrap().id;
    scene.write(".gitignore", "");
    scene.write("new", "1");
    let taken = store.take().unwrap();
    assert_eq!(paths(&taken), [".gitignore", "new", "target/x"]);
    store.restore(&first, &[]).unwrap();
    assert_eq!((scene.read("target/x"), scene.read("new")), (Some("built".into()), None));
}

#[test]
fn a_file_that_became_ignored_is_saved_before_it_is_written_over() {
    let scene = Scene::new();
    scene.write("settings", "1");
    let store = scene.store();
    let first = store.take().unwrap().id;
    scene.write(".gitignore", "settings\n");
    scene.write("settings", "2");
    let restored = store.restore(&first, &[]).unwrap();
    assert_eq!(scene.read("settings"), Some("1".into()));
    assert_eq!(store.read(&restored.before, "settings", 10).unwrap(), b"2");
}

#[test]
fn tracked_files_are_saved_although_ignored() {
    let scene = Scene::new();
    scene.write(".gitignore", "build/\n");
    scene.write("build/kept", "1");
    scene.write("build/other", "1");
    let tracked = vec!["build/kept".into(), "not-there".into(), "../outside".into()];
    let store = scene.store_with(WalkOptions { tracked, ..WalkOptions::default() });
    let first = store.take().unwrap().id;
    scene.remove("build");
    assert_eq!(paths(&store.take().unwrap()), ["build/kept"]);
    store.restore(&first, &[]).unwrap();
    assert_eq!((scene.read("build/kept"), scene.read("build/other")), (Some("1".into()), None));
}

#[test]
fn rules_from_above_count_only_beneath_git() {
    let scene = Scene::new();
    std::fs::create_dir(scene.base.path().join(".git")).unwrap();
    std::fs::write(scene.base.path().join(".gitignore"), "secret\n").unwrap();
    scene.write("secret", "1");
    let captured = |beneath_git| {
        let store = scene.store_with(WalkOptions { beneath_git, ..WalkOptions::default() });
        let taken = store.take().unwrap();
        store.load(&taken.id).unwrap().get("secret").is_some()
    };
    assert_eq!((captured(false), captured(true)), (true, false));
}

#[test]
fn ignored_files_are_saved_when_asked_for() {
    let scene = Scene::new();
    scene.write(".gitignore", "*.log\n");
    scene.write("a.log", "1");
    let config = SnapshotsConfig { ignored: IgnoredFiles::Changed, ..SnapshotsConfig::default() };
    let store = SnapshotStore::open(&scene.dir(), &scene.root, &config, WalkOptions::default()).unwrap();
    let first = store.take().unwrap().id;
    scene.write("a.log", "2");
    store.restore(&first, &[]).unwrap();
    assert_eq!(scene.read("a.log"), Some("1".into()));
}

#[test]
fn excluded_folders_and_the_store_itself_are_never_looked_at() {
    let scene = Scene::new();
    scene.write("a", "1");
    scene.write("private/x", "1");
    let inside = scene.root.join("sessions/s1/snapshots");
    let options = WalkOptions { exclude: vec!["private".into()], ..WalkOptions::default() };
    let store = SnapshotStore::open(&inside, &scene.root, &SnapshotsConfig::default(), options).unwrap();
    let first = store.take().unwrap();
    assert_eq!(store.take().unwrap().id, first.id, "the store's own files would change it");
    scene.write("private/y", "1");
    scene.write("b", "1");
    store.restore(&first.id, &[]).unwrap();
    assert_eq!((scene.read("private/y"), scene.read("b")), (Some("1".into()), None));
}
