//! Damaged, doctored and torn stores: a clear error, and nothing outside is ever touched.

use std::fs;
use std::time::{Duration, SystemTime};

use blake3::Hash;

use super::Scene;
use crate::ids::SnapshotId;
use crate::session::snapshot::SnapshotError;

/// Writes a snapshot by hand, with every hash right.
fn doctored(scene: &Scene, lines: &str) -> SnapshotId {
    let store = |bytes: &[u8]| -> Hash {
        let hash = blake3::hash(bytes);
        let hex = hash.to_hex();
        let folder = scene.dir().join("objects").join(&hex[..2]);
        fs::create_dir_all(&folder).unwrap();
        fs::write(folder.join(&hex[2..]), zstd::bulk::compress(bytes, 1).unwrap()).unwrap();
        hash
    };
    let manifest = format!(r#"{{"format":1,"files":["{}"]}}"#, store(lines.as_bytes()).to_hex());
    let id = SnapshotId::new(&blake3::hash(manifest.as_bytes()).to_hex()[..16]);
    fs::write(scene.dir().join("manifests").join(id.as_str()), manifest).unwrap();
    store(b"evil");
    id
}

fn evil(path: &str) -> String {
    format!(r#"{{"path":"{path}","hash":"{}","size":4,"mode":"644"}}"#, blake3::hash(b"evil").to_hex()) + "\n"
}

#[test]
fn a_doctored_snapshot_never_leads_out() {
    let scene = Scene::new();
    scene.write("a", "1");
    scene.write(".git/HEAD", "ref\n");
    let store = scene.store();
    store.take().unwrap();
    let before = super::picture(scene.base.path());
    let absolute = scene.base.path().join("evil");
    for path in ["../evil", "d/../../evil", absolute.to_str().unwrap(), ".git/hooks/post-commit", "a//b", "./b"] {
        let id = doctored(&scene, &evil(path));
        let error = store.restore(&id, &[]).unwrap_err();
        assert!(matches!(error, SnapshotError::DamagedManifest { .. }), "{path}: {error}");
    }
    let outside = |p: &(&String, &String)| !p.0.starts_with("snapshots");
    let after = super::picture(scene.base.path());
    assert!(after.iter().filter(outside).eq(before.iter().filter(outside)));
    // A sound one, made by the same hand, is taken: it was the paths that were refused.
    store.restore(&doctored(&scene, &evil("b")), &[]).unwrap();
    assert_eq!(scene.read("b"), Some("evil".into()));
    let id = doctored(&scene, &(evil("b") + &evil("a")));
    assert!(store.load(&id).unwrap_err().to_string().contains("`a` is listed twice or out of order"));
}

#[test]
fn a_damaged_content_is_named_with_its_file() {
    let scene = Scene::new();
    scene.write("src/a", "precious");
    let store = scene.store();
    let first = store.take().unwrap().id;
    scene.write("src/a", "changed");
    scene.write("b", "2");
    let hex = blake3::hash(b"precious").to_hex();
    let object = scene.dir().join("objects").join(&hex[..2]).join(&hex[2..]);
    let other = zstd::bulk::compress(b"other", 1).unwrap();
    for (content, why) in [
        (Some(b"no frame at all".to_vec()), ""),
        (Some(other), "its content does not match its name"),
        (None, "it is missing"),
    ] {
        match content {
            Some(content) => fs::write(&object, content).unwrap(),
            None => fs::remove_file(&object).unwrap(),
        }
        let error = store.read(&first, "src/a", 100).unwrap_err().to_string();
        assert!(error.starts_with(&format!("the stored content of `src/a` is damaged ({why}")), "{error}");
        let restored = store.restore(&first, &[]).unwrap();
        assert_eq!((restored.failed.len(), scene.read("b")), (1, None), "the rest is restored");
        assert_eq!(scene.read("src/a"), Some("changed".into()), "what was there stays");
        scene.write("b", "2");
    }
    assert_eq!(scene.picture().len(), 3, "no temporary file is left");
}

#[test]
fn an_unknown_or_damaged_snapshot_is_an_error_that_says_so() {
    let scene = Scene::new();
    scene.write("a", "1");
    let first = scene.store().take().unwrap().id;
    for name in ["0123456789abcdef", "../newest", "", "0123456789ABCDEG"] {
        let error = scene.store().load(&SnapshotId::new(name)).unwrap_err();
        assert!(matches!(error, SnapshotError::Unknown { .. }), "{error}");
    }
    let path = scene.dir().join("manifests").join(first.as_str());
    let text = fs::read_to_string(&path).unwrap();
    fs::write(&path, text.replace("\"format\"", " \"format\"")).unwrap();
    let error = scene.store().load(&first).unwrap_err().to_string();
    let expected = "is damaged (its content does not match its name); it can't be used, other snapshots can";
    assert!(error.ends_with(expected), "{error}");
    assert_eq!(scene.store().take().unwrap().id, first, "taking it again mends it");
    assert!(scene.store().load(&first).is_ok());
}

#[test]
fn a_torn_object_of_a_power_cut_is_written_anew() {
    let scene = Scene::new();
    scene.write("a", "precious");
    let hex = blake3::hash(b"precious").to_hex();
    let folder = scene.dir().join("objects").join(&hex[..2]);
    fs::create_dir_all(&folder).unwrap();
    fs::write(folder.join(&hex[2..]), "").unwrap();
    let store = scene.store();
    let first = store.take().unwrap().id;
    store.sync().unwrap();
    assert_eq!(store.read(&first, "a", 100).unwrap(), b"precious");
}

#[test]
fn temporary_files_of_a_dead_process_are_removed_and_young_ones_left() {
    let scene = Scene::new();
    scene.store();
    let temporary = scene.dir().join("temporary");
    for (name, age) in [("1-1", 120), ("2-2", 0)] {
        fs::write(temporary.join(name), "half").unwrap();
        let file = fs::File::options().write(true).open(temporary.join(name)).unwrap();
        file.set_modified(SystemTime::now() - Duration::from_secs(age)).unwrap();
    }
    scene.store();
    assert_eq!(super::picture(&temporary).into_keys().collect::<Vec<_>>(), ["2-2"]);
}
