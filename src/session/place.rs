//! Where a session works (cli.md): a scratch folder, the folder itself, or a git worktree. Asks
//! git; never touches the person's checkout.

use std::collections::BTreeMap;
use std::ffi::OsStr;
use std::path::{Path, PathBuf};
use std::time::Duration;

use super::home::Home;
use crate::events::command::Where;
use crate::events::data::{Place, PlaceKind};
use crate::events::problem::Problem;
use crate::sandbox::exec::{self, SimpleOutput};

/// How long one git command of ours may take.
const GIT_TIMEOUT: Duration = Duration::from_secs(120);

/// Asks git, with the person's environment less what would send it elsewhere.
#[derive(Clone, Debug)]
pub struct Git {
    environment: Vec<(String, String)>,
}

impl Git {
    /// Git in this environment.
    pub fn new(environment: &BTreeMap<String, String>) -> Self {
        let keep = |name: &str| {
            !name.starts_with("GIT_") || name.starts_with("GIT_AUTHOR") || name.starts_with("GIT_COMMITTER")
        };
        let mut environment: Vec<_> =
            environment.iter().filter(|(k, _)| keep(k)).map(|(k, v)| (k.clone(), v.clone())).collect();
        environment.push(("GIT_TERMINAL_PROMPT".to_owned(), "0".to_owned()));
        Self { environment }
    }

    /// Runs git in `dir`.
    ///
    /// # Errors
    /// Git is not there, or took too long.
    pub async fn run(&self, dir: &Path, arguments: &[&str]) -> Result<SimpleOutput, Problem> {
        let arguments: Vec<&OsStr> = arguments.iter().map(OsStr::new).collect();
        exec::simple("git", &arguments, dir, &self.environment, GIT_TIMEOUT).await.map_err(|e| {
            Problem::usage(format!("git can't be run: {e}")).hint("install git, or work with --scratch or --in-place")
        })
    }

    /// Runs git in `dir` and returns what it printed.
    ///
    /// # Errors
    /// It failed; says what git said.
    pub async fn text(&self, dir: &Path, arguments: &[&str]) -> Result<String, Problem> {
        let output = self.run(dir, arguments).await?;
        if output.ok() {
            return Ok(output.text());
        }
        let said = String::from_utf8_lossy(&output.stderr);
        Err(Problem::usage(format!("`git {}` failed: {}", arguments.join(" "), said.trim())))
    }
}

/// What git says of a folder.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Repository {
    /// Its top folder.
    pub root: PathBuf,
    /// The branch that is checked out; none when detached.
    pub branch: Option<String>,
    /// The commit that is checked out; none before the first.
    pub head: Option<String>,
    /// Files that differ from it or are not known to it.
    pub uncommitted: Vec<String>,
}

/// The repository that `dir` is in, if any. Without git there is none.
pub async fn repository(git: &Git, dir: &Path) -> Option<Repository> {
    let root = git.text(dir, &["rev-parse", "--show-toplevel"]).await.ok()?;
    let root = PathBuf::from(root);
    let branch = git.text(dir, &["symbolic-ref", "--short", "-q", "HEAD"]).await.ok();
    let head = git.text(dir, &["rev-parse", "--verify", "-q", "HEAD"]).await.ok();
    let status = git.run(&root, &["status", "--porcelain", "-z", "--untracked-files=normal"]).await.ok()?;
    let uncommitted = uncommitted(&String::from_utf8_lossy(&status.stdout));
    Some(Repository { root, branch, head, uncommitted })
}

/// The paths in what `git status --porcelain -z` prints: `XY PATH`, and after a renamed or copied
/// one its old path as an entry of its own.
fn uncommitted(status: &str) -> Vec<String> {
    let mut paths = Vec::new();
    let mut entries = status.split('\0');
    while let Some(entry) = entries.next() {
        let Some((state, path)) = entry.split_at_checked(3).filter(|(_, path)| !path.is_empty()) else { continue };
        paths.push(path.to_owned());
        if state.contains(['R', 'C']) {
            entries.next();
        }
    }
    paths
}

/// What `auto` means here (cli.md).
///
/// # Errors
/// The person must choose; says between what.
pub fn automatic(repository: Option<&Repository>) -> Result<Where, String> {
    match repository {
        None => Ok(Where::Scratch),
        Some(r) if r.head.is_none() => Ok(Where::Scratch),
        Some(r) if r.uncommitted.is_empty() => Ok(Where::Worktree),
        Some(r) => Err(format!(
            "{} has uncommitted changes ({}); choose --in-place to work on them, --worktree to start from the last commit \
             without them, or --scratch",
            r.root.display(),
            listed(&r.uncommitted)
        )),
    }
}

/// Some paths of many, and how many more there are.
fn listed(paths: &[String]) -> String {
    const SHOWN: usize = 5;
    let shown: Vec<_> = paths.iter().take(SHOWN).map(|p| format!("`{p}`")).collect();
    let more = paths.len().saturating_sub(SHOWN);
    let more = if more > 0 { format!(" and {more} more") } else { String::new() };
    format!("{}{more}", shown.join(", "))
}

/// The place of a new session, and what a person should know of it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Prepared {
    /// Where it works.
    pub place: Place,
    /// What is not there although it might be expected.
    pub note: Option<String>,
}

/// Makes the place of a new session.
///
/// # Errors
/// It can't be made, or the person must choose; says what to do.
pub async fn prepare(git: &Git, wanted: Where, dir: &Path, home: &Home, name: &str) -> Result<Prepared, Problem> {
    let plain = |kind, dir| Prepared {
        place: Place { kind, dir, repository: None, branch: None, base_branch: None, base_commit: None },
        note: None,
    };
    let repository = match wanted {
        Where::Auto | Where::Worktree => repository(git, dir).await,
        Where::Scratch | Where::InPlace => None,
    };
    let wanted = match wanted {
        Where::Auto => automatic(repository.as_ref()).map_err(Problem::usage)?,
        chosen => chosen,
    };
    match wanted {
        Where::Auto | Where::Scratch => {
            std::fs::create_dir_all(home.files())?;
            Ok(plain(PlaceKind::Scratch, home.files().canonicalize()?))
        }
        Where::InPlace => {
            let dir = dir.canonicalize().map_err(|e| {
                Problem::usage(format!("the folder {} can't be used: {e}", dir.display())).hint("name an existing one")
            })?;
            Ok(plain(PlaceKind::InPlace, dir))
        }
        Where::Worktree => {
            let Some(repository) = repository else {
                // Without git this says so.
                git.run(dir, &["--version"]).await?;
                return Err(Problem::usage(format!("{} is not in a git repository", dir.display()))
                    .hint("use --scratch or --in-place, or run `git init` and commit first"));
            };
            worktree(git, &repository, home, name).await
        }
    }
}

async fn worktree(git: &Git, repository: &Repository, home: &Home, name: &str) -> Result<Prepared, Problem> {
    let Some(head) = repository.head.clone() else {
        return Err(Problem::usage(format!("{} has no commit to start a worktree from", repository.root.display()))
            .hint("commit first, or use --scratch or --in-place"));
    };
    let branch = new_branch(git, &repository.root, name, &head).await?;
    let dir = home.path().join("worktree");
    let path = dir.to_string_lossy().into_owned();
    if let Err(problem) = git.text(&repository.root, &["worktree", "add", "-q", &path, &branch]).await {
        // It was made a moment ago and has nothing of its own.
        let _ = git.run(&repository.root, &["branch", "-D", &branch]).await;
        return Err(problem);
    }
    let place = Place {
        kind: PlaceKind::Worktree,
        dir: dir.canonicalize()?,
        repository: Some(repository.root.clone()),
        branch: Some(branch),
        base_branch: repository.branch.clone(),
        base_commit: Some(head),
    };
    let lacking = &repository.uncommitted;
    let note = (!lacking.is_empty()).then(|| {
        format!("the worktree starts from the last commit and lacks what is not committed: {}", listed(lacking))
    });
    Ok(Prepared { place, note })
}

/// Makes a branch of this name, or of the next that is free.
async fn new_branch(git: &Git, root: &Path, name: &str, head: &str) -> Result<String, Problem> {
    let slug = slug(name);
    for n in 1..1000 {
        let branch = if n == 1 { format!("super-agent/{slug}") } else { format!("super-agent/{slug}-{n}") };
        if is_branch(git, root, &branch).await? {
            continue;
        }
        match git.text(root, &["branch", "-q", &branch, head]).await {
            Ok(_) => return Ok(branch),
            // Another launch took it in between.
            Err(_) if is_branch(git, root, &branch).await? => {}
            Err(problem) => return Err(problem),
        }
    }
    Err(Problem::usage(format!("all branches super-agent/{slug}-… are taken")).hint("choose another --name"))
}

async fn is_branch(git: &Git, root: &Path, branch: &str) -> Result<bool, Problem> {
    let reference = format!("refs/heads/{branch}");
    Ok(git.run(root, &["rev-parse", "--verify", "-q", &reference]).await?.ok())
}

/// A name as a branch may be called: letters, digits and dashes.
pub fn slug(name: &str) -> String {
    let mut out = String::new();
    for c in name.chars().take(60) {
        if c.is_alphanumeric() {
            out.extend(c.to_lowercase());
        } else if !out.ends_with('-') && !out.is_empty() {
            out.push('-');
        }
    }
    let out = out.trim_matches('-');
    if out.is_empty() { "session".to_owned() } else { out.to_owned() }
}

/// Removes a session's worktree and its branch when nothing on it would be lost. Returns the branch
/// when it stays, because it has commits that are nowhere else.
///
/// # Errors
/// Git failed.
pub async fn remove_worktree(git: &Git, place: &Place) -> Result<Option<String>, Problem> {
    let (Some(repository), Some(branch)) = (&place.repository, &place.branch) else { return Ok(None) };
    if !repository.exists() {
        return Ok(None);
    }
    let dir = place.dir.to_string_lossy().into_owned();
    git.run(repository, &["worktree", "remove", "--force", &dir]).await?;
    // `-d` refuses a branch with commits that are nowhere else; it is left then.
    git.run(repository, &["branch", "-d", branch]).await?;
    let stays = is_branch(git, repository, branch).await?;
    Ok(stays.then(|| branch.clone()))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_become_branch_names() {
        assert_eq!(slug("Fix the parser: quotes!"), "fix-the-parser-quotes");
        assert_eq!(slug("漢字 und Ümlaut"), "漢字-und-ümlaut");
        assert_eq!(slug("..."), "session");
    }

    #[test]
    fn auto_never_works_on_uncommitted_changes_unasked() {
        let repository = |uncommitted: &[&str]| Repository {
            root: "/r".into(),
            branch: Some("main".into()),
            head: Some("abc".into()),
            uncommitted: uncommitted.iter().map(|f| (*f).to_owned()).collect(),
        };
        assert_eq!(automatic(None), Ok(Where::Scratch));
        assert_eq!(automatic(Some(&repository(&[]))), Ok(Where::Worktree));
        assert!(automatic(Some(&repository(&["a"]))).unwrap_err().contains("uncommitted changes (`a`)"));
    }

    #[test]
    fn renamed_files_are_listed_once_by_their_new_name() {
        let status = "R  neu.txt\0ää\0 M a b\0?? x/\0";
        assert_eq!(uncommitted(status), ["neu.txt", "a b", "x/"]);
        assert_eq!(uncommitted(""), Vec::<String>::new());
        let many: Vec<String> = (1..8).map(|n| n.to_string()).collect();
        assert_eq!(listed(&many), "`1`, `2`, `3`, `4`, `5` and 2 more");
    }
}
