//! Bringing results home, and taking sessions away: apply, export, remove.

use std::fs::File;
use std::path::{Path, PathBuf};

use super::Supervisor;
use super::read::{internal, unified};
use crate::events::command::Ack;
use crate::events::data::{ChangeKind, FileChange, Place, PlaceKind, Verdict};
use crate::events::problem::Problem;
use crate::events::query::{ApplyPreview, FileDiff};
use crate::ids::{SessionId, SnapshotId};
use crate::session::archive;
use crate::session::models::{CycleRecord, SessionRecord};
use crate::session::place;
use crate::session::snapshot::{CheckCopy, Node, SnapshotStore};
use crate::stdx::atomic_file;

/// Most files whose difference a preview shows.
const SHOWN: usize = 200;

/// A result on its way home.
struct Delivery {
    cycle: u32,
    verdict: Option<Verdict>,
    snapshot: SnapshotId,
    first: SnapshotId,
    changes: Vec<FileChange>,
    target: PathBuf,
}

impl Supervisor {
    fn delivery(
        &self,
        id: &SessionId,
        cycle: Option<u32>,
        to: Option<PathBuf>,
    ) -> Result<(SessionRecord, Delivery), Problem> {
        let (_, record) = self.record(id)?;
        let store = self.snapshots(id)?;
        let chosen = choose(&record, cycle)?;
        let snapshot = chosen.detail.snapshot.clone().or_else(|| record.last_snapshot.clone());
        let (Some(snapshot), Some(first)) = (snapshot, record.first_snapshot.clone()) else {
            return Err(
                Problem::usage("nothing was recorded of this session's files yet").hint("let its Worker work first")
            );
        };
        let changes = store.diff(&first, &snapshot).map_err(internal)?;
        let changes = changes.into_iter().filter(|c| c.path != archive::OUTPUT).collect();
        let target = to.unwrap_or_else(|| match (&record.place.kind, &record.place.repository) {
            (PlaceKind::Worktree, Some(repository)) => repository.clone(),
            _ => record.launched_from.clone(),
        });
        let delivery =
            Delivery { cycle: chosen.detail.number, verdict: chosen.verdict(), snapshot, first, changes, target };
        Ok((record, delivery))
    }

    pub(super) fn apply_preview(
        &self,
        id: &SessionId,
        cycle: Option<u32>,
        to: Option<PathBuf>,
    ) -> Result<ApplyPreview, Problem> {
        let merges = to.is_none();
        let (record, delivery) = self.delivery(id, cycle, to)?;
        let store = self.snapshots(id)?;
        let shown = delivery.changes.iter().take(SHOWN).cloned();
        let files: Result<Vec<FileDiff>, Problem> =
            shown.map(|c| unified(&store, &delivery.first, Some(&delivery.snapshot), c)).collect();
        let merges = merges && record.place.kind == PlaceKind::Worktree;
        let target = match (&record.place.base_branch, merges) {
            (Some(branch), true) => format!("branch `{branch}` of {}", delivery.target.display()),
            _ => delivery.target.display().to_string(),
        };
        let conflicts = if merges { Vec::new() } else { conflicts(&store, &delivery)? };
        Ok(ApplyPreview {
            cycle: delivery.cycle,
            verdict: delivery.verdict,
            target,
            files_total: delivery.changes.len(),
            files: files?,
            conflicts,
            refused: pointless(&record, &delivery).or_else(|| unproven(&delivery)),
        })
    }

    pub(super) async fn apply(
        &self,
        id: &SessionId,
        cycle: Option<u32>,
        to: Option<PathBuf>,
        force: bool,
    ) -> Result<Ack, Problem> {
        let merges = to.is_none();
        self.refuse_running(id)?;
        let (record, delivery) = self.delivery(id, cycle, to)?;
        let merges = merges && record.place.kind == PlaceKind::Worktree;
        if let Some(why) = pointless(&record, &delivery) {
            return Err(Problem::usage(why).hint("there is nothing to bring home"));
        }
        if let Some(why) = unproven(&delivery).filter(|_| !force) {
            return Err(Problem::usage(why)
                .hint("look at the difference with --dry-run, then use --force if you want it all the same"));
        }
        if merges { self.merge(&record, &delivery).await } else { self.copy_home(id, delivery).await }
    }

    /// What runs, here or elsewhere, still changes.
    fn refuse_running(&self, id: &SessionId) -> Result<(), Problem> {
        if self.here(id).is_none() && self.home(id)?.holder().is_none() {
            return Ok(());
        }
        Err(Problem::usage(format!("session `{id}` is running"))
            .hint(format!("wait for it, or stop it first with `super-agent stop {id}`")))
    }

    async fn copy_home(&self, id: &SessionId, delivery: Delivery) -> Result<Ack, Problem> {
        let store = self.snapshots(id)?;
        let written = tokio::task::spawn_blocking(move || {
            let conflicts = conflicts(&store, &delivery)?;
            if !conflicts.is_empty() {
                let names: Vec<_> = conflicts.iter().take(10).map(|c| format!("`{c}`")).collect();
                return Err(Problem::usage(format!(
                    "these files in {} are different from what the session started with: {}",
                    delivery.target.display(),
                    names.join(", ")
                ))
                .hint("move them away, or choose another folder with --to; nothing was written"));
            }
            write_home(&store, &delivery)
        });
        let (count, target) = written.await.map_err(|e| Problem::internal(e.to_string()))??;
        Ok(Ack::Said { text: format!("{count} files brought to {}", target.display()) })
    }

    /// Commits what the Worker left on its branch and merges that into the branch it came from.
    async fn merge(&self, record: &SessionRecord, delivery: &Delivery) -> Result<Ack, Problem> {
        let place = &record.place;
        let (Some(repository), Some(branch), Some(base)) = (&place.repository, &place.branch, &place.base_branch)
        else {
            return Err(Problem::usage("the worktree did not start from a branch, so there is none to merge into")
                .hint("use --to DIR to copy the files instead"));
        };
        let git = &self.git;
        self.ready_to_merge(place, repository, branch, base).await?;
        let newest = record.last_snapshot.as_ref() == Some(&delivery.snapshot);
        if !newest {
            return Err(Problem::usage("only the newest cycle of a worktree can be merged")
                .hint("use --to DIR to copy an earlier cycle's files"));
        }
        git.text(&place.dir, &["add", "-A"]).await?;
        if !git.run(&place.dir, &["diff", "--cached", "--quiet"]).await?.ok() {
            let message = format!("{}\n\nCycle {} of super-agent session {}.", record.name, delivery.cycle, record.id);
            let commit = ["commit", "-q", "--no-verify", "-m", &message];
            git.text(&place.dir, &self.with_identity(&place.dir, &commit).await).await?;
        }
        if git.run(repository, &["merge-base", "--is-ancestor", branch, "HEAD"]).await?.ok() {
            return Ok(Ack::Said {
                text: format!("`{branch}` is merged into `{base}` of {} already", repository.display()),
            });
        }
        let merge = ["merge", "--no-ff", "--no-edit", "-q", branch.as_str()];
        let merged = git.run(repository, &self.with_identity(repository, &merge).await).await?;
        if !merged.ok() {
            let said =
                format!("{}{}", String::from_utf8_lossy(&merged.stdout), String::from_utf8_lossy(&merged.stderr));
            // There was no merge before this one, so none of the person's own is thrown away.
            git.run(repository, &["merge", "--abort"]).await?;
            return Err(Problem::usage(format!("`{branch}` does not merge into `{base}`: {}", said.trim()))
                .hint("nothing was changed; commit or stash what is in the way, or merge the branch by hand"));
        }
        Ok(Ack::Said { text: format!("merged `{branch}` into `{base}` of {}", repository.display()) })
    }

    /// Whether a merge can begin: both sides stand where the session left them, and no merge is
    /// under way.
    async fn ready_to_merge(&self, place: &Place, repository: &Path, branch: &str, base: &str) -> Result<(), Problem> {
        if !place.dir.is_dir() {
            return Err(Problem::usage(format!("the worktree {} is gone", place.dir.display()))
                .hint("use --to DIR to copy the recorded files instead"));
        }
        for (dir, wanted) in [(repository, base), (place.dir.as_path(), branch)] {
            let head = self.git.run(dir, &["symbolic-ref", "--short", "-q", "HEAD"]).await?;
            let head = if head.ok() { format!("`{}`", head.text()) } else { "no branch".to_owned() };
            if head != format!("`{wanted}`") {
                return Err(Problem::usage(format!("{} is on {head}, not on `{wanted}`", dir.display()))
                    .hint(format!("`git switch {wanted}` there, then apply again")));
            }
        }
        if self.git.run(repository, &["rev-parse", "--verify", "-q", "MERGE_HEAD"]).await?.ok() {
            return Err(Problem::usage(format!("a merge is under way in {}", repository.display()))
                .hint("finish it, or `git merge --abort` it, then apply again"));
        }
        Ok(())
    }

    /// Git refuses to commit without a name; a person who never set one still gets their result.
    async fn with_identity<'a>(&self, dir: &Path, arguments: &[&'a str]) -> Vec<&'a str> {
        let known = self.git.run(dir, &["config", "user.email"]).await.is_ok_and(|o| o.ok())
            || self.git.run(dir, &["var", "GIT_COMMITTER_IDENT"]).await.is_ok_and(|o| o.ok());
        let mut all = if known {
            Vec::new()
        } else {
            vec!["-c", "user.name=super-agent", "-c", "user.email=super-agent@localhost"]
        };
        all.extend(arguments);
        all
    }

    pub(super) async fn remove(&self, id: &SessionId) -> Result<Ack, Problem> {
        if self.here(id).is_some() {
            return Err(Problem::usage(format!("session `{id}` is running"))
                .hint(format!("stop it first with `super-agent stop {id}`")));
        }
        let home = self.home(id)?;
        let _lock = self.lock_home(&home, id)?;
        let mut kept = None;
        if let Ok(record) = home.load() {
            if record.place.kind == PlaceKind::InPlace {
                // An interrupted session may still hold the person's own.
                archive::put_back(&record.place.dir, &home)?;
            }
            kept = place::remove_worktree(&self.git, &record.place).await?;
        }
        for dir in [
            self.surroundings.cache.join("check").join(id.as_str()),
            self.surroundings.cache.join("tmp").join(id.as_str()),
        ] {
            let _ = CheckCopy::remove(&dir);
        }
        std::fs::remove_dir_all(home.path()).map_err(|e| {
            Problem::internal(format!("{} can't be deleted: {e}", home.path().display())).hint("delete it by hand")
        })?;
        Ok(match kept {
            None => Ack::Done,
            Some(branch) => {
                Ack::Said { text: format!("branch `{branch}` stays: it has commits that are nowhere else") }
            }
        })
    }

    pub(super) async fn export(&self, id: &SessionId, file: Option<PathBuf>) -> Result<Ack, Problem> {
        // A file that grows while it is packed would spoil the archive.
        self.refuse_running(id)?;
        let home = self.home(id)?;
        let path = file.unwrap_or_else(|| PathBuf::from(format!("session-{id}.tar.gz")));
        let (from, to) = (home.path().to_owned(), path.clone());
        let done = tokio::task::spawn_blocking(move || export(&from, &to)).await;
        done.map_err(|e| Problem::internal(e.to_string()))?.map_err(|e| {
            Problem::internal(format!("{} can't be written: {e}", path.display())).hint("choose another file with -o")
        })?;
        Ok(Ack::Wrote { path })
    }
}

fn choose(record: &SessionRecord, cycle: Option<u32>) -> Result<&CycleRecord, Problem> {
    let handed_in = |c: &&CycleRecord| c.detail.worker.is_some();
    match cycle {
        Some(number) => record.cycles.iter().filter(handed_in).find(|c| c.detail.number == number).ok_or_else(|| {
            Problem::usage(format!("cycle {number} handed nothing in")).hint("`super-agent show` lists the cycles")
        }),
        None => record
            .cycles
            .iter()
            .rev()
            .find(handed_in)
            .ok_or_else(|| Problem::usage("no cycle handed anything in yet").hint("let its Worker finish first")),
    }
}

/// Why there is nothing to bring home.
fn pointless(record: &SessionRecord, delivery: &Delivery) -> Option<String> {
    if record.place.kind == PlaceKind::InPlace && delivery.target == record.place.dir {
        return Some(format!(
            "the session worked in {} itself; its files are there already",
            record.place.dir.display()
        ));
    }
    delivery.changes.is_empty().then(|| "the session changed no files".to_owned())
}

/// Why the result needs a person's own word.
fn unproven(delivery: &Delivery) -> Option<String> {
    let cycle = delivery.cycle;
    match delivery.verdict {
        Some(Verdict::Passed) => None,
        Some(verdict) => {
            Some(format!("cycle {cycle} was not passed (its verdict is {}); it needs --force", verdict.word()))
        }
        None => Some(format!("cycle {cycle} is not verified; it needs --force")),
    }
}

/// Paths at the target where something stands that is neither as the session found it nor as it
/// leaves it.
fn conflicts(store: &SnapshotStore, delivery: &Delivery) -> Result<Vec<String>, Problem> {
    let (first, last) =
        (store.load(&delivery.first).map_err(internal)?, store.load(&delivery.snapshot).map_err(internal)?);
    let is_known = |path: &str, there: &Path| {
        [(&first, &delivery.first), (&last, &delivery.snapshot)].into_iter().any(|(manifest, id)| {
            match manifest.get(path) {
                Some(Node::File { .. }) => {
                    there.is_file()
                        && !there.is_symlink()
                        && store.read(id, path, u64::MAX).ok() == std::fs::read(there).ok()
                }
                Some(Node::Link { target }) => std::fs::read_link(there).is_ok_and(|t| t == Path::new(&**target)),
                Some(Node::Folder) => there.is_dir() && !there.is_symlink(),
                None => false,
            }
        })
    };
    let clashes = |path: &str| {
        let there = delivery.target.join(path);
        // A link or file where a folder belongs would lead elsewhere.
        let parents = Path::new(path).ancestors().skip(1).map(|p| delivery.target.join(p));
        let is_astray = parents
            .take_while(|p| *p != delivery.target)
            .any(|p| std::fs::symlink_metadata(&p).is_ok_and(|meta| !meta.is_dir()));
        is_astray || std::fs::symlink_metadata(&there).is_ok() && !is_known(path, &there)
    };
    Ok(delivery.changes.iter().map(|change| &change.path).filter(|path| clashes(path)).cloned().collect())
}

fn write_home(store: &SnapshotStore, delivery: &Delivery) -> Result<(usize, PathBuf), Problem> {
    let manifest = store.load(&delivery.snapshot).map_err(internal)?;
    let mut count = 0;
    for change in &delivery.changes {
        let path = delivery.target.join(&change.path);
        match (change.kind, manifest.get(&change.path)) {
            (ChangeKind::Deleted, _) => {
                if path.is_file() || path.is_symlink() {
                    std::fs::remove_file(&path)?;
                    count += 1;
                }
            }
            (ChangeKind::Added | ChangeKind::Modified, Some(Node::File { mode, .. })) => {
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                let content = store.read(&delivery.snapshot, &change.path, u64::MAX).map_err(internal)?;
                atomic_file::write(&path, &content)?;
                set_mode(&path, *mode)?;
                count += 1;
            }
            (ChangeKind::Added | ChangeKind::Modified, Some(Node::Link { target })) => {
                if let Some(parent) = path.parent() {
                    std::fs::create_dir_all(parent)?;
                }
                if path.is_symlink() || path.is_file() {
                    std::fs::remove_file(&path)?;
                }
                std::os::unix::fs::symlink(&**target, &path)?;
                count += 1;
            }
            (ChangeKind::Added | ChangeKind::Modified, Some(Node::Folder)) => std::fs::create_dir_all(&path)?,
            (ChangeKind::Added | ChangeKind::Modified, None) | (ChangeKind::Unchanged, _) => {}
        }
    }
    Ok((count, delivery.target.clone()))
}

fn set_mode(path: &Path, mode: u32) -> std::io::Result<()> {
    use std::os::unix::fs::PermissionsExt;
    std::fs::set_permissions(path, std::fs::Permissions::from_mode(mode & 0o777))
}

/// Everything of a session's home but its lock and, of a worktree, its files (which the snapshots
/// hold).
fn export(home: &Path, to: &Path) -> std::io::Result<()> {
    let temporary = atomic_file::temporary_beside(to);
    let result = (|| {
        let encoder = flate2::write::GzEncoder::new(File::create_new(&temporary)?, flate2::Compression::default());
        let mut archive = tar::Builder::new(encoder);
        archive.follow_symlinks(false);
        let name = home.file_name().map(PathBuf::from).unwrap_or_default();
        for entry in std::fs::read_dir(home)?.flatten() {
            let file = entry.file_name();
            if file == "worktree" {
                continue;
            }
            if file == "state" {
                for part in std::fs::read_dir(entry.path())?.flatten().filter(|p| p.file_name() != "lock") {
                    add(&mut archive, &part.path(), &name.join("state").join(part.file_name()))?;
                }
                continue;
            }
            add(&mut archive, &entry.path(), &name.join(file))?;
        }
        archive.into_inner()?.finish()?.sync_all()?;
        std::fs::rename(&temporary, to)
    })();
    if result.is_err() {
        let _ = std::fs::remove_file(&temporary);
    }
    result
}

fn add<W: std::io::Write>(archive: &mut tar::Builder<W>, path: &Path, name: &Path) -> std::io::Result<()> {
    if path.is_dir() && !path.is_symlink() {
        archive.append_dir_all(name, path)
    } else {
        archive.append_path_with_name(path, name)
    }
}
