//! What a restore does beyond bringing files back: what it leaves alone and what it refuses.

use std::fs;
use std::os::unix::fs::symlink;

use super::{Scene, change};
use crate::config::SnapshotsConfig;
use crate::events::data::ChangeKind;
use crate::session::snapshot::beneath::TEMPORARY;
use crate::session::snapshot::{SnapshotStore, WalkOptions};

#[test]
fn a_restore_can_be_undone_and_says_what_it_did() {
    let scene = Scene::new();
    scene.write("a", "1\n");
    scene.write("d/gone", "1\n");
    let store = scene.store();
    let first = store.take().unwrap().id;
    scene.write("a", "2\n");
    scene.write("new", "1\n");
    scene.remove("d");
    let picture = scene.picture();
    let restored = store.restore(&first, &[]).unwrap();
    let expected = [
        change("a", ChangeKind::Modified, 1, 1),
        change("d/gone", ChangeKind::Added, 1, 0),
        change("new", ChangeKind::Deleted, 0, 1),
    ];
    assert_eq!((restored.changed.as_slice(), &restored.after), (&expected[..], &first));
    store.restore(&restored.before, &[]).unwrap();
    assert_eq!(scene.picture(), picture);
}

#[test]
fn files_come_back_also_below_a_folder_that_is_left_out() {
    let scene = Scene::new();
    scene.write("a", "1\n");
    let around = scene.root.parent().unwrap().to_owned();
    let store = scene.store_with(WalkOptions { exclude: vec![around], ..WalkOptions::default() });
    let first = store.take().unwrap().id;
    scene.write("a", "2\n");
    scene.write("b", "1\n");
    store.restore(&first, &[]).unwrap();
    assert_eq!((scene.read("a"), scene.read("b")), (Some("1\n".into()), None));
}

#[test]
fn kept_paths_are_left_alone() {
    let scene = Scene::new();
    for path in ["a", "mine", "folder/x", "folder/y", "gone"] {
        scene.write(path, "1");
    }
    let store = scene.store();
    let first = store.take().unwrap().id;
    for path in ["a", "mine", "folder/x", "folder/new"] {
        scene.write(path, "2");
    }
    scene.remove("gone");
    let keep = ["mine".into(), "folder".into(), "gone".into(), "never-there".into()];
    let restored = store.restore(&first, &keep).unwrap();
    assert_eq!(restored.kept, ["folder/new", "folder/x", "gone", "mine"]);
    assert_eq!((scene.read("a"), scene.read("mine")), (Some("1".into()), Some("2".into())));
    assert_eq!((scene.read("gone"), scene.read("folder/new")), (None, Some("2".into())));
    assert_ne!(restored.after, first);
}

#[test]
fn a_removed_working_directory_comes_back() {
    let scene = Scene::new();
    scene.write("a/b", "1");
    let store = scene.store();
    let first = store.take().unwrap().id;
    fs::remove_dir_all(&scene.root).unwrap();
    assert!(store.take().is_err());
    store.restore(&first, &[]).unwrap();
    assert_eq!(scene.read("a/b"), Some("1".into()));
}

#[test]
fn what_is_not_stored_is_never_lost() {
    let scene = Scene::new();
    let config = SnapshotsConfig { max_file_mb: 1, ..SnapshotsConfig::default() };
    let store = SnapshotStore::open(&scene.dir(), &scene.root, &config, WalkOptions::default()).unwrap();
    scene.write("grown", "small");
    let first = store.take().unwrap().id;
    let large = "x".repeat(1_500_000);
    scene.write("grown", &large);
    scene.write("new", &large);
    let restored = store.restore(&first, &[]).unwrap();
    let why = "what is there now is not stored and would be lost";
    let expected = [format!("grown: left as it is: {why}"), format!("new: left as it is: {why}")];
    assert_eq!(restored.failed, expected);
    assert_eq!((scene.read("grown"), scene.read("new")), (Some(large.clone()), Some(large)));
}

#[test]
fn a_link_in_the_way_never_leads_out() {
    let scene = Scene::new();
    scene.write("d/x", "inside");
    scene.write("e/x", "inside");
    let store = scene.store();
    let first = store.take().unwrap().id;
    let outside = scene.base.path().join("outside");
    fs::create_dir(&outside).unwrap();
    fs::write(outside.join("x"), "outside").unwrap();
    // One that the walk sees, and one that it passes by.
    for folder in ["d", "e"] {
        scene.remove(folder);
        symlink(&outside, scene.root.join(folder)).unwrap();
    }
    scene.write(".gitignore", "e\n");
    let restored = store.restore(&first, &[]).unwrap();
    assert_eq!(fs::read_to_string(outside.join("x")).unwrap(), "outside");
    assert_eq!(fs::read_dir(&outside).unwrap().count(), 1);
    assert!(scene.root.join("d").symlink_metadata().unwrap().is_dir());
    assert_eq!(restored.failed.len(), 1);
    assert!(restored.failed[0].contains("`e` on the way to it is not a folder"), "{:?}", restored.failed);
}

#[test]
fn an_interrupted_restore_leaves_nothing_behind() {
    let scene = Scene::new();
    scene.write("d/a", "1");
    let store = scene.store();
    let first = store.take().unwrap();
    scene.write(&format!("d/{TEMPORARY}1-1"), "half a fi");
    assert_eq!(store.take().unwrap(), first, "it is not the person's");
    store.restore(&first.id, &[]).unwrap();
    assert_eq!(scene.picture().into_keys().collect::<Vec<_>>(), ["d", "d/a"]);
}

#[test]
fn a_snapshot_goes_into_a_new_or_empty_folder_only() {
    let scene = Scene::new();
    scene.write("a/b", "1");
    symlink("a", scene.root.join("l")).unwrap();
    let store = scene.store();
    let first = store.take().unwrap().id;
    let into = scene.base.path().join("into");
    let done = std::sync::Mutex::new(Vec::new());
    let made = store.materialise(&first, &into, &|n, of| done.lock().unwrap().push((n, of))).unwrap();
    assert_eq!((made.written, made.missing), (2, vec![]));
    assert_eq!(super::picture(&into), scene.picture());
    assert_eq!(done.into_inner().unwrap().iter().max(), Some(&(2, 2)));
    let error = store.materialise(&first, &into, &|_, _| {}).unwrap_err().to_string();
    assert!(error.ends_with("into is not empty; name a new or an empty folder"), "{error}");
}
