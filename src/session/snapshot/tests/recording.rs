//! Snapshots of named files, and what is kept of all of them.

use std::fs;

use super::{Scene, change, paths, picture};
use crate::events::data::ChangeKind;
use crate::ids::SnapshotId;

#[test]
fn only_named_files_are_read_again() {
    let scene = Scene::new();
    scene.write("a", "1\n");
    scene.write("b", "1\n");
    let store = scene.store();
    store.take().unwrap();
    scene.write("a", "2\n");
    scene.write("b", "2\n");
    let recorded = store.record_files(&["a".into()]).unwrap();
    assert_eq!(recorded.changed, [change("a", ChangeKind::Modified, 1, 1)]);
    assert_eq!(paths(&store.take().unwrap()), ["b"]);
}

#[test]
fn the_first_recording_reads_everything() {
    let scene = Scene::new();
    scene.write("a", "1");
    scene.write("b", "1");
    let store = scene.store();
    let recorded = store.record_files(&["a".into()]).unwrap();
    assert_eq!(recorded, store.take().unwrap());
    assert_eq!(store.load(&recorded.id).unwrap().len(), 2);
}

#[test]
fn an_ignored_file_is_not_recorded_by_name_either() {
    let scene = Scene::new();
    scene.write(".gitignore", "out/\n");
    let store = scene.store();
    let first = store.take().unwrap();
    scene.write("out/x", "1");
    assert_eq!(store.record_files(&["out/x".into()]).unwrap().id, first.id);
}

#[test]
fn a_path_that_leads_out_is_refused() {
    let scene = Scene::new();
    let store = scene.store();
    for path in ["../x", "/etc/passwd", "a//b", "a/./b", "", "a/.."] {
        let error = store.record_files(&[path.to_owned()]).unwrap_err().to_string();
        assert!(error.starts_with(&format!("`{path}` is refused: ")), "{error}");
    }
}

#[test]
fn snapshots_that_differ_in_one_file_share_their_lists() {
    let scene = Scene::new();
    for n in 0..3_000 {
        scene.write(&format!("folder-{}/file-{n}", n % 50), "same");
    }
    let store = scene.store();
    store.take().unwrap();
    let size = || picture(&scene.dir().join("objects")).len();
    let before = size();
    scene.write("folder-7/file-7", "other");
    store.record_files(&["folder-7/file-7".into()]).unwrap();
    // One content and one chunk of the list, each perhaps with a new folder around it.
    assert!(size() - before <= 4, "{}", size() - before);
}

#[test]
fn sweeping_keeps_what_is_named_and_the_newest() {
    let scene = Scene::new();
    let store = scene.store();
    let mut ids = Vec::new();
    for n in 0..4 {
        scene.write("a", &format!("content {n}"));
        scene.write("same", "same");
        ids.push(store.take().unwrap().id);
    }
    assert!(store.gc(&[ids[1].clone()]).unwrap() > 0);
    assert_eq!(store.gc(&[ids[1].clone()]).unwrap(), 0, "nothing is left to remove");
    let reopened = scene.store();
    for (n, id) in ids.iter().enumerate() {
        let read = reopened.read(id, "a", 100).ok();
        let expected = [1, 3].contains(&n).then(|| format!("content {n}").into_bytes());
        assert_eq!(read, expected);
    }
    assert!(store.gc(&[SnapshotId::new("0123456789abcdef")]).is_err());
    assert!(store.read(&ids[1], "same", 100).is_ok(), "with an unknown name nothing is removed");
}

#[test]
fn the_newest_snapshot_outlives_its_process_and_its_index() {
    let scene = Scene::new();
    scene.write("a", "1\n");
    let store = scene.store();
    store.take().unwrap();
    scene.write("a", "2\n");
    let second = store.record_files(&["a".into()]).unwrap().id;
    drop(store);
    assert_eq!(scene.store().newest(), Some(second.clone()));
    for lost in ["index", "newest"] {
        fs::write(scene.dir().join(lost), "torn").unwrap();
        let store = scene.store();
        assert_eq!(store.newest().as_ref(), Some(&second), "{lost}");
        assert_eq!(store.take().unwrap().id, second, "{lost}");
    }
}
