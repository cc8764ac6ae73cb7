//! The Checker's throw-away copy.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::PathBuf;

use super::{Scene, picture};
use crate::ids::SnapshotId;
use crate::session::snapshot::{CheckCopy, CopyOptions, SnapshotStore};

const WARM: CopyOptions = CopyOptions { clean: false, cap: 1_000_000 };
const CLEAN: CopyOptions = CopyOptions { clean: true, cap: 1_000_000 };

fn target(scene: &Scene) -> PathBuf {
    scene.base.path().join("copy")
}

fn prepare(scene: &Scene, store: &SnapshotStore, id: &SnapshotId, options: CopyOptions) -> CheckCopy {
    CheckCopy::prepare(store, id, &target(scene), options, &|_, _| {}).unwrap()
}

/// A project with build folders that git ignores.
fn project() -> Scene {
    let scene = Scene::new();
    scene.write(".gitignore", "target/\n.env\nhuge/\n");
    scene.write("src/a", "1");
    scene.write("target/debug/x", "built");
    symlink("x", scene.root.join("target/debug/link")).unwrap();
    scene.write(".env", "KEY=1");
    scene.write("huge/x", &"x".repeat(1_500_000));
    scene
}

#[test]
fn ignored_folders_come_along_once_as_a_build_cache() {
    let scene = project();
    let old = std::time::SystemTime::UNIX_EPOCH;
    fs::File::open(scene.root.join("target/debug/x")).unwrap().set_modified(old).unwrap();
    let store = scene.store();
    let first = store.take().unwrap().id;
    let copy = prepare(&scene, &store, &first, WARM);
    assert_eq!(copy.caches, [".env", "target"]);
    assert_eq!(copy.left_out, ["huge: 2 MB, more than is left of the cap"]);
    let found = picture(&copy.root);
    assert_eq!(found["target/debug/x"], "644 built");
    assert_eq!(found["target/debug/link"], "link to x");
    let modified = |path: &str| fs::metadata(copy.root.join(path)).unwrap().modified().unwrap();
    assert_eq!(modified("target/debug/x"), old, "never newer than the sources");
    // The original's later builds are not copied again, the Checker's own are kept.
    scene.write("target/debug/x", "built again");
    fs::write(copy.root.join("target/mine"), "by the Checker").unwrap();
    let copy = prepare(&scene, &store, &first, WARM);
    let found = picture(&copy.root);
    assert_eq!((&*found["target/debug/x"], &*found["target/mine"]), ("644 built", "644 by the Checker"));
    assert_eq!(store.take().unwrap().id, first, "nothing of it reaches the working files");
}

#[test]
fn a_clean_copy_holds_the_snapshot_and_nothing_else() {
    let scene = project();
    let store = scene.store();
    let first = store.take().unwrap().id;
    prepare(&scene, &store, &first, WARM);
    let copy = prepare(&scene, &store, &first, CLEAN);
    assert_eq!(picture(&copy.root).into_keys().collect::<Vec<_>>(), [".gitignore", "src", "src/a"]);
    assert_eq!(copy.caches, [""; 0]);
}

#[test]
fn what_the_checker_did_is_put_back_even_when_it_was_hidden() {
    let scene = project();
    let store = scene.store();
    let first = store.take().unwrap().id;
    let copy = prepare(&scene, &store, &first, CLEAN);
    let expected = picture(&copy.root);
    let at = |path: &str| copy.root.join(path);
    fs::write(at(".gitignore"), "*\n").unwrap();
    fs::write(at("src/a"), "doctored").unwrap();
    fs::create_dir_all(at("src/deep/er")).unwrap();
    fs::write(at("src/deep/.gitignore"), "*\n").unwrap();
    fs::write(at("src/deep/er/planted"), "x").unwrap();
    fs::create_dir_all(at(".git/info")).unwrap();
    fs::write(at(".git/info/exclude"), "also-planted\n").unwrap();
    fs::write(at("also-planted"), "x").unwrap();
    nix::unistd::mkfifo(&at("pipe"), nix::sys::stat::Mode::S_IRWXU).unwrap();
    let copy = prepare(&scene, &store, &first, WARM);
    assert_eq!(picture(&copy.root), expected);
}

#[test]
fn files_that_were_put_back_are_newer_than_what_was_built_of_them() {
    let scene = project();
    let store = scene.store();
    let first = store.take().unwrap().id;
    let copy = prepare(&scene, &store, &first, WARM);
    fs::write(copy.root.join("src/a"), "doctored").unwrap();
    fs::write(copy.root.join("target/built-of-a"), "x").unwrap();
    prepare(&scene, &store, &first, WARM);
    let modified = |path: &str| fs::metadata(copy.root.join(path)).unwrap().modified().unwrap();
    assert!(modified("src/a") >= modified("target/built-of-a"));
}

#[test]
fn an_unchanged_file_is_not_written_again() {
    let scene = project();
    scene.write("src/b", "1");
    let store = scene.store();
    let first = store.take().unwrap().id;
    let copy = prepare(&scene, &store, &first, WARM);
    let inode = |path: &str| {
        use std::os::unix::fs::MetadataExt;
        fs::metadata(copy.root.join(path)).unwrap().ino()
    };
    let before = (inode("src/a"), inode("src/b"));
    scene.write("src/a", "2");
    let second = store.take().unwrap().id;
    let next = prepare(&scene, &scene.store(), &second, WARM);
    assert_eq!(next.snapshot, second);
    assert_eq!(fs::read_to_string(next.root.join("src/a")).unwrap(), "2");
    assert_eq!((inode("src/a") == before.0, inode("src/b") == before.1), (false, true));
}

#[test]
fn a_copy_that_can_not_be_trusted_is_made_anew() {
    let scene = project();
    let store = scene.store();
    let first = store.take().unwrap().id;
    for damage in ["index", "copy.json", "files"] {
        let copy = prepare(&scene, &store, &first, WARM);
        let expected = picture(&copy.root);
        fs::write(copy.root.join("target/mine"), "x").unwrap();
        let path = target(&scene).join(damage);
        if path.is_dir() {
            fs::remove_dir_all(path).unwrap()
        } else {
            fs::remove_file(path).unwrap()
        }
        assert_eq!(picture(&prepare(&scene, &store, &first, WARM).root), expected, "without {damage}");
    }
}

#[test]
fn a_copy_goes_away_with_locked_folders_and_all() {
    let scene = project();
    let store = scene.store();
    let first = store.take().unwrap().id;
    let copy = prepare(&scene, &store, &first, WARM);
    fs::set_permissions(copy.root.join("src"), fs::Permissions::from_mode(0o500)).unwrap();
    CheckCopy::remove(&target(&scene)).unwrap();
    CheckCopy::remove(&target(&scene)).unwrap();
    assert!(!target(&scene).exists());
}

#[test]
fn a_large_file_comes_from_the_original_while_it_is_unchanged() {
    let scene = Scene::new();
    let config = crate::config::SnapshotsConfig { max_file_mb: 1, ..Default::default() };
    let store = SnapshotStore::open(&scene.dir(), &scene.root, &config, Default::default()).unwrap();
    scene.write("large", &"x".repeat(1_500_000));
    let first = store.take().unwrap().id;
    let copy = prepare(&scene, &store, &first, WARM);
    assert_eq!((copy.missing.len(), picture(&copy.root)), (0, scene.picture()));
    scene.write("large", &"y".repeat(1_500_000));
    let copy = prepare(&scene, &store, &first, CLEAN);
    let why = "large: its 1500000 bytes were not stored, and the file has changed or is gone";
    assert_eq!((copy.missing, picture(&copy.root).len()), (vec![why.to_owned()], 0));
}

#[test]
fn a_copy_inside_the_original_is_refused() {
    let scene = project();
    let store = scene.store();
    let first = store.take().unwrap().id;
    let inside = scene.root.join("copy");
    assert!(CheckCopy::prepare(&store, &first, &inside, WARM, &|_, _| {}).is_err());
}
