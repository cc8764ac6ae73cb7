//! take ∘ change ∘ restore = identity, for any trees.

use std::fs;
use std::os::unix::fs::{PermissionsExt, symlink};
use std::path::Path;

use proptest::prelude::*;

use super::{Scene, picture};
use crate::session::snapshot::CheckCopy;
use crate::session::snapshot::CopyOptions;

#[derive(Clone, Debug)]
enum Change {
    Write(String, u8),
    Mode(String, u32),
    Link(String, String),
    Folder(String),
    Remove(String),
    Rename(String, String),
}

fn path() -> impl Strategy<Value = String> {
    let part = prop::sample::select(vec!["a", "b", "a-b", "a.txt", "ü 名", ".hidden", "B"]);
    prop::collection::vec(part, 1..4).prop_map(|parts| parts.join("/"))
}

fn change() -> impl Strategy<Value = Change> {
    prop_oneof![
        6 => (path(), 0_u8..6).prop_map(|(p, n)| Change::Write(p, n)),
        1 => (path(), prop::sample::select(vec![0o644, 0o755, 0o600, 0o444])).prop_map(|(p, m)| Change::Mode(p, m)),
        1 => (path(), path()).prop_map(|(p, t)| Change::Link(p, t)),
        2 => path().prop_map(Change::Folder),
        3 => path().prop_map(Change::Remove),
        2 => (path(), path()).prop_map(|(a, b)| Change::Rename(a, b)),
    ]
}

/// Does what is possible of it; what stands in the way of a new file is removed first.
fn apply(root: &Path, change: &Change) {
    let clear = |path: &str| {
        let mut part = root.to_owned();
        for name in path.split('/') {
            part.push(name);
            if part.is_symlink() || part.is_file() {
                fs::remove_file(&part).unwrap();
            }
        }
        let _ = fs::remove_dir_all(&part);
        fs::create_dir_all(part.parent().unwrap()).unwrap();
        part
    };
    let plain = |path: &str| fs::symlink_metadata(root.join(path)).is_ok_and(|m| !m.is_symlink());
    match change {
        Change::Write(path, n) => fs::write(clear(path), format!("content {n}").repeat(usize::from(*n))).unwrap(),
        Change::Mode(path, mode) if plain(path) && root.join(path).is_file() => {
            fs::set_permissions(root.join(path), fs::Permissions::from_mode(*mode)).unwrap();
        }
        Change::Link(path, target) => symlink(target, clear(path)).unwrap(),
        Change::Folder(path) => fs::create_dir(clear(path)).unwrap(),
        Change::Remove(path) if plain(path) => {
            let path = root.join(path);
            if path.is_dir() { fs::remove_dir_all(path).unwrap() } else { fs::remove_file(path).unwrap() }
        }
        // One that is impossible (into itself, onto a full folder) changes nothing.
        Change::Rename(from, to) => _ = fs::rename(root.join(from), root.join(to)),
        Change::Mode(..) | Change::Remove(_) => {}
    }
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 64, failure_persistence: None, ..ProptestConfig::default() })]

    #[test]
    fn any_tree_comes_back_as_it_was(
        before in prop::collection::vec(change(), 0..25),
        after in prop::collection::vec(change(), 0..25),
    ) {
        let scene = Scene::new();
        let store = scene.store();
        before.iter().for_each(|c| apply(&scene.root, c));
        let (first, first_picture) = (store.take().unwrap().id, scene.picture());
        let copy = scene.base.path().join("copy");
        let options = CopyOptions { clean: false, cap: 1 << 20 };
        let prepared = CheckCopy::prepare(&store, &first, &copy, options, &|_, _| {}).unwrap();
        prop_assert_eq!(&picture(&prepared.root), &first_picture);

        after.iter().for_each(|c| apply(&scene.root, c));
        let (second, second_picture) = (store.take().unwrap().id, scene.picture());
        prop_assert_eq!(first == second, first_picture == second_picture);

        // What the Checker does to its copy is put back on the way to the next snapshot.
        after.iter().rev().for_each(|c| apply(&prepared.root, c));
        let prepared = CheckCopy::prepare(&store, &second, &copy, options, &|_, _| {}).unwrap();
        prop_assert_eq!(&picture(&prepared.root), &second_picture);

        let restored = store.restore(&first, &[]).unwrap();
        prop_assert_eq!(&scene.picture(), &first_picture);
        prop_assert_eq!((&restored.before, &restored.after), (&second, &first));
        prop_assert_eq!((restored.kept, restored.failed), (vec![], vec![]));

        // Another process knows only what is on disk.
        let undone = scene.store().restore(&second, &[]).unwrap();
        prop_assert_eq!(&scene.picture(), &second_picture);
        prop_assert_eq!(undone.after, second);
    }

    #[test]
    fn recording_named_files_is_as_good_as_reading_everything(
        before in prop::collection::vec(change(), 0..25),
        after in prop::collection::vec(change(), 0..8),
    ) {
        let scene = Scene::new();
        before.iter().for_each(|c| apply(&scene.root, c));
        let store = scene.store();
        store.take().unwrap();
        after.iter().for_each(|c| apply(&scene.root, c));
        let named: Vec<String> = after.iter().flat_map(|c| match c {
            Change::Write(p, _) | Change::Mode(p, _) | Change::Link(p, _) | Change::Folder(p) | Change::Remove(p) => {
                vec![p.clone()]
            }
            Change::Rename(a, b) => vec![a.clone(), b.clone()],
        }).collect();
        let recorded = store.record_files(&named).unwrap();
        let taken = store.take().unwrap();
        prop_assert_eq!(taken.changed, vec![]);
        prop_assert_eq!(recorded.id, taken.id);
    }
}
