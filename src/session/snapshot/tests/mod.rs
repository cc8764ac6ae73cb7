//! Claims about snapshots, on real folders.

mod copying;
mod damage;
mod git;
mod ignored;
mod property;
mod recording;
mod restoring;

use std::collections::BTreeMap;
use std::fs;
use std::os::unix::fs::{MetadataExt, PermissionsExt, symlink};
use std::path::{Path, PathBuf};

use super::{SnapshotStore, Taken, WalkOptions};
use crate::config::SnapshotsConfig;
use crate::events::data::{ChangeKind, FileChange};

/// A working directory and a place for snapshots of it, gone with the test.
struct Scene {
    base: tempfile::TempDir,
    root: PathBuf,
}

impl Scene {
    fn new() -> Self {
        let base = tempfile::tempdir().unwrap();
        let root = fs::canonicalize(base.path()).unwrap().join("work");
        fs::create_dir(&root).unwrap();
        Self { base, root }
    }

    fn dir(&self) -> PathBuf {
        self.base.path().join("snapshots")
    }

    fn store(&self) -> SnapshotStore {
        self.store_with(WalkOptions::default())
    }

    fn store_with(&self, options: WalkOptions) -> SnapshotStore {
        SnapshotStore::open(&self.dir(), &self.root, &SnapshotsConfig::default(), options).unwrap()
    }

    fn write(&self, path: &str, content: &str) {
        let path = self.root.join(path);
        fs::create_dir_all(path.parent().unwrap()).unwrap();
        fs::write(path, content).unwrap();
    }

    fn read(&self, path: &str) -> Option<String> {
        fs::read_to_string(self.root.join(path)).ok()
    }

    fn remove(&self, path: &str) {
        let path = self.root.join(path);
        if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
    }

    fn picture(&self) -> BTreeMap<String, String> {
        picture(&self.root)
    }
}

/// Everything below a folder: what it is, its mode and its content.
fn picture(root: &Path) -> BTreeMap<String, String> {
    fn add(root: &Path, folder: &Path, into: &mut BTreeMap<String, String>) {
        for child in fs::read_dir(folder).unwrap() {
            let path = child.unwrap().path();
            let metadata = fs::symlink_metadata(&path).unwrap();
            let what = if metadata.is_symlink() {
                format!("link to {}", fs::read_link(&path).unwrap().display())
            } else if metadata.is_dir() {
                add(root, &path, into);
                "folder".to_owned()
            } else if metadata.is_file() {
                let content = String::from_utf8_lossy(&fs::read(&path).unwrap()).into_owned();
                format!("{:o} {content}", metadata.mode() & 0o7777)
            } else {
                "special".to_owned()
            };
            into.insert(path.strip_prefix(root).unwrap().to_string_lossy().into_owned(), what);
        }
    }
    let mut found = BTreeMap::new();
    add(root, root, &mut found);
    found
}

fn change(path: &str, kind: ChangeKind, added: u64, removed: u64) -> FileChange {
    FileChange { path: path.to_owned(), kind, added: Some(added), removed: Some(removed) }
}

fn paths(taken: &Taken) -> Vec<&str> {
    taken.changed.iter().map(|c| c.path.as_str()).collect()
}

#[test]
fn an_unchanged_tree_has_the_same_name_and_writes_nothing() {
    let scene = Scene::new();
    scene.write("src/main.rs", "fn main() {}\n");
    symlink("src", scene.root.join("link")).unwrap();
    fs::create_dir(scene.root.join("empty")).unwrap();
    // Old enough not to be racy, so that the second look has nothing to note either.
    std::thread::sleep(std::time::Duration::from_millis(30));
    let store = scene.store();
    let first = store.take().unwrap();
    let written = || {
        let modified = |path: String| (fs::metadata(scene.dir().join(&path)).unwrap().modified().unwrap(), path);
        picture(&scene.dir()).into_keys().map(modified).collect::<Vec<_>>()
    };
    let before = written();
    assert_eq!(store.take().unwrap(), first);
    assert_eq!(scene.store().take().unwrap(), first, "also by another process");
    assert_eq!(written(), before);
    assert_eq!((first.id.as_str().len(), first.changed_total), (16, 0));
    let touched = fs::File::open(scene.root.join("src/main.rs")).unwrap();
    touched.set_modified(std::time::SystemTime::UNIX_EPOCH).unwrap();
    assert_eq!(store.take().unwrap(), first, "times are no content");
}

#[test]
fn a_snapshot_says_what_changed_since_the_one_before() {
    let scene = Scene::new();
    scene.write("a.txt", "one\ntwo\n");
    scene.write("gone.txt", "x\n");
    scene.write("run.sh", "#!/bin/sh\n");
    let store = scene.store();
    store.take().unwrap();
    scene.write("a.txt", "one\nzwei\ndrei\n");
    scene.write("new/ü.txt", "1\n2\n");
    scene.write("binary", "\0\u{1}");
    scene.remove("gone.txt");
    fs::set_permissions(scene.root.join("run.sh"), fs::Permissions::from_mode(0o755)).unwrap();
    let taken = store.take().unwrap();
    let binary = FileChange { path: "binary".into(), kind: ChangeKind::Added, added: None, removed: None };
    let expected = vec![
        change("a.txt", ChangeKind::Modified, 2, 1),
        binary,
        change("gone.txt", ChangeKind::Deleted, 0, 1),
        change("new/ü.txt", ChangeKind::Added, 2, 0),
        change("run.sh", ChangeKind::Modified, 0, 0),
    ];
    assert_eq!((taken.changed, taken.changed_total), (expected, 5));
}

#[test]
fn a_change_right_after_a_snapshot_is_seen() {
    let scene = Scene::new();
    let store = scene.store();
    scene.write("a", "0000");
    let mut last = store.take().unwrap().id;
    let modified = fs::metadata(scene.root.join("a")).unwrap().modified().unwrap();
    for round in 1..200 {
        // In place, of the same size, with the same time of modification.
        let path = scene.root.join("a");
        fs::write(&path, format!("{round:04}")).unwrap();
        fs::File::options().write(true).open(&path).unwrap().set_modified(modified).unwrap();
        let taken = store.take().unwrap();
        assert_ne!(taken.id, last, "round {round}");
        last = taken.id;
    }
}

#[test]
fn what_can_not_be_captured_is_named() {
    use std::os::unix::ffi::OsStrExt;
    let scene = Scene::new();
    nix::unistd::mkfifo(&scene.root.join("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    fs::write(scene.root.join(std::ffi::OsStr::from_bytes(b"not-utf8-\xff")), "x").unwrap();
    fs::write(scene.root.join("large"), vec![7; 2_000_001]).unwrap();
    fs::write(scene.root.join("setuid"), "x").unwrap();
    fs::set_permissions(scene.root.join("setuid"), fs::Permissions::from_mode(0o4755)).unwrap();
    let config = SnapshotsConfig { max_file_mb: 1, ..SnapshotsConfig::default() };
    let store = SnapshotStore::open(&scene.dir(), &scene.root, &config, WalkOptions::default()).unwrap();
    let taken = store.take().unwrap();
    let expected = [
        "not-utf8-\u{fffd}: its name is not UTF-8",
        "pipe: a pipe, socket or device",
        "large: 3 MB, more than `snapshots.max_file_mb` = 1",
    ];
    assert_eq!(taken.not_captured, expected);
    let error = store.read(&taken.id, "large", 10).unwrap_err().to_string();
    let expected =
        "the content of `large` was not stored in this snapshot: 3 MB, more than `snapshots.max_file_mb` = 1";
    assert_eq!(error, expected);
    scene.remove("setuid");
    store.restore(&taken.id, &[]).unwrap();
    assert_eq!(scene.picture()["setuid"], "755 x", "setuid is dropped");
}

#[test]
fn a_full_store_names_what_it_left_out_and_takes_it_up_when_there_is_room() {
    let scene = Scene::new();
    let noise = |seed: u64| -> Vec<u8> {
        let mut hash = blake3::Hasher::new().update(&seed.to_le_bytes()).finalize_xof();
        let mut bytes = vec![0; 700_000];
        hash.fill(&mut bytes);
        bytes
    };
    fs::write(scene.root.join("a"), noise(1)).unwrap();
    let open = |max_total_mb| {
        let config = SnapshotsConfig { max_total_mb, ..SnapshotsConfig::default() };
        SnapshotStore::open(&scene.dir(), &scene.root, &config, WalkOptions::default()).unwrap()
    };
    let store = open(1);
    assert_eq!(store.take().unwrap().not_captured, [""; 0]);
    fs::write(scene.root.join("b"), noise(2)).unwrap();
    let full = store.take().unwrap();
    assert_eq!(full.not_captured, ["b: no room: `snapshots.max_total_mb` = 1"]);
    let roomy = open(5);
    let taken = roomy.take().unwrap();
    assert_eq!((taken.not_captured, taken.changed), (vec![], vec![]));
    assert_eq!(roomy.read(&taken.id, "b", u64::MAX).unwrap(), noise(2));
}

#[test]
fn home_and_the_root_of_the_file_system_are_refused() {
    let scene = Scene::new();
    let check = |root: &Path, home: &Path, why: &str| {
        let options = WalkOptions { home: Some(home.to_owned()), ..WalkOptions::default() };
        let error = SnapshotStore::open(&scene.dir(), root, &SnapshotsConfig::default(), options).unwrap_err();
        assert!(error.to_string().contains(why), "{error}");
    };
    check(Path::new("/"), Path::new("/nowhere"), "it is the root of the file system; choose");
    check(&scene.root, &scene.root, "it is your home folder");
    check(&scene.root, &scene.root.join("me"), "it holds your home folder");
    assert!(!scene.dir().exists());
}

#[test]
fn files_differ_as_text() {
    let scene = Scene::new();
    scene.write("a.txt", "one\ntwo\nthree\n");
    scene.write("b", "\0");
    let store = scene.store();
    let first = store.take().unwrap().id;
    scene.write("a.txt", "one\n2\nthree\n");
    scene.write("b", "\0\0");
    let second = store.take().unwrap().id;
    let hunk = "--- a/a.txt\n+++ b/a.txt\n@@ -1,3 +1,3 @@\n one\n-two\n+2\n three\n";
    let diff = store.unified(&first, &second, "a.txt").unwrap();
    assert_eq!((diff.unified.as_str(), diff.note, diff.added, diff.removed), (hunk, None, Some(1), Some(1)));
    assert_eq!(store.unified(&first, None, "a.txt").unwrap().unified, hunk);
    let binary = store.unified(&first, &second, "b").unwrap();
    assert_eq!(binary.note.as_deref(), Some("a binary file of 1 bytes → a binary file of 2 bytes"));
    scene.write("new", "1\n");
    let new = store.unified(&second, None, "new").unwrap();
    assert_eq!(new.unified, "--- /dev/null\n+++ b/new\n@@ -0,0 +1 @@\n+1\n");
    assert_eq!(store.diff(&second, None).unwrap(), [change("new", ChangeKind::Added, 1, 0)]);
    assert_eq!(store.changed_since(&second).unwrap(), ["new"]);
    assert_eq!(store.newest(), Some(second.clone()), "looking is not taking");
    assert!(store.unified(&first, &second, "nowhere").is_err());
    assert_eq!(store.read(&first, "a.txt", 5).unwrap(), b"one\nt");
}
