//! What the harness decides by itself when the Worker ends (architecture.md, "Gates first"): gates
//! that cap the verdict, and facts that are only told.

use std::collections::BTreeSet;
use std::path::{Component, Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::events::data::{
    Artifact, ChangeKind, CheckerResult, Deliverable, FileChange, Gate, Verdict, VerdictBy, WorkerResult,
};
use crate::ids::SnapshotId;

/// What the gates look at, gathered by the harness.
#[derive(Clone, Debug)]
pub struct Findings<'a> {
    /// What was handed in, or what is wrong with it.
    pub deliverable: &'a Result<Deliverable, String>,
    /// The claimed files as found.
    pub artifacts: &'a [Artifact],
    /// The files that the expected outcome names, and whether they are there.
    pub expected: &'a [(String, bool)],
    /// Files that differ from the start of the session.
    pub since_start: &'a [FileChange],
    /// Files that differ from the start of the cycle.
    pub in_cycle: &'a [FileChange],
    /// Paths that must stay as they are.
    pub protected: &'a [String],
    /// In a later cycle, what the one before handed in.
    pub previous: Option<&'a serde_json::Value>,
}

/// The gates that need no command.
pub fn look(findings: &Findings<'_>) -> Vec<Gate> {
    let mut gates = vec![output_gate(findings)];
    if findings.deliverable.is_ok() && !findings.artifacts.is_empty() {
        gates.push(claimed_gate(findings));
    }
    if !findings.expected.is_empty() {
        gates.push(expected_gate(findings));
    }
    if !findings.protected.is_empty() {
        gates.push(protected_gate(findings));
    }
    if let Some(previous) = findings.previous {
        gates.push(change_gate(findings, previous));
    }
    gates
}

fn gate(name: &str, problems: &[String], fine: String) -> Gate {
    let ok = problems.is_empty();
    Gate { name: name.to_owned(), ok, detail: if ok { fine } else { problems.join("; ") } }
}

fn output_gate(findings: &Findings<'_>) -> Gate {
    let problem: Vec<String> = findings.deliverable.as_ref().err().cloned().into_iter().collect();
    gate("output", &problem, "`__output.json` is valid".to_owned())
}

fn claimed_gate(findings: &Findings<'_>) -> Gate {
    let problems: Vec<String> = findings
        .artifacts
        .iter()
        .filter_map(|a| {
            if !a.exists {
                return Some(format!("`{}` is claimed but is not in the working directory", a.path));
            }
            let unchanged = a.change.as_ref().is_some_and(|c| c.kind == ChangeKind::Unchanged);
            unchanged.then(|| format!("`{}` is claimed but is as it was when the session started", a.path))
        })
        .collect();
    gate(
        "claimed_files",
        &problems,
        format!("all {} claimed files are there and differ from the start", findings.artifacts.len()),
    )
}

fn expected_gate(findings: &Findings<'_>) -> Gate {
    let missing = findings.expected.iter().filter(|(_, there)| !there);
    let problems: Vec<String> = missing.map(|(path, _)| format!("expected file `{path}` is missing")).collect();
    gate("expected_files", &problems, format!("all {} expected files are there", findings.expected.len()))
}

fn protected_gate(findings: &Findings<'_>) -> Gate {
    let touched = findings.since_start.iter().filter(|c| c.kind != ChangeKind::Unchanged);
    let problems: Vec<String> = touched
        .filter(|c| findings.protected.iter().any(|p| is_below(&c.path, p)))
        .map(|c| format!("protected file `{}` was changed; restore it", c.path))
        .collect();
    gate("protected", &problems, "protected files are unchanged".to_owned())
}

fn change_gate(findings: &Findings<'_>, previous: &serde_json::Value) -> Gate {
    let text = |v: &serde_json::Value| v.get("text_content").and_then(|t| t.as_str()).unwrap_or_default().to_owned();
    let now = findings.deliverable.as_ref().map(|d| d.text_content.clone()).unwrap_or_default();
    let same = findings.in_cycle.is_empty() && now == text(previous);
    let problems: Vec<String> =
        same.then(|| "nothing changed since the cycle before, neither files nor text".to_owned()).into_iter().collect();
    gate("change", &problems, "something changed since the cycle before".to_owned())
}

fn is_below(path: &str, protected: &str) -> bool {
    let protected = protected.trim_start_matches("./").trim_end_matches('/');
    path == protected || path.strip_prefix(protected).is_some_and(|rest| rest.starts_with('/'))
}

/// What is told and shown but caps nothing.
pub fn facts(findings: &Findings<'_>) -> Vec<String> {
    let claimed: BTreeSet<&str> = findings.artifacts.iter().map(|a| a.path.as_str()).collect();
    let mentioned = |path: &str| claimed.iter().any(|c| is_below(path, c));
    let unmentioned: Vec<&str> = findings.in_cycle.iter().map(|c| c.path.as_str()).filter(|p| !mentioned(p)).collect();
    let changed: BTreeSet<&str> = findings.in_cycle.iter().map(|c| c.path.as_str()).collect();
    let mut facts = Vec::new();
    if !unmentioned.is_empty() {
        facts.push(format!("changed in this cycle without being mentioned: {}", list(&unmentioned)));
    }
    let idle: Vec<&str> = claimed.iter().copied().filter(|c| !changed.iter().any(|path| is_below(path, c))).collect();
    if findings.previous.is_some() && !idle.is_empty() {
        facts.push(format!("claimed but unchanged in this cycle: {}", list(&idle)));
    }
    facts
}

fn list(paths: &[&str]) -> String {
    const SHOWN: usize = 20;
    let shown: Vec<String> = paths.iter().take(SHOWN).map(|p| format!("`{p}`")).collect();
    let rest = paths.len().saturating_sub(SHOWN);
    if rest == 0 { shown.join(", ") } else { format!("{} and {rest} more", shown.join(", ")) }
}

/// The verdict that failing gates give by themselves (architecture.md): `failed` when there is no
/// valid `__output.json`, else `needs_improvement`. None when all hold.
pub fn verdict(gates: &[Gate], snapshot: Option<SnapshotId>) -> Option<CheckerResult> {
    let failing: Vec<&Gate> = gates.iter().filter(|g| !g.ok).collect();
    if failing.is_empty() {
        return None;
    }
    let no_output = failing.iter().any(|g| g.name == "output");
    let verdict = if no_output { Verdict::Failed } else { Verdict::NeedsImprovement };
    let feedback: Vec<String> = failing.iter().map(|g| format!("- {}", g.detail)).collect();
    let names: Vec<&str> = failing.iter().map(|g| g.name.as_str()).collect();
    Some(CheckerResult {
        verdict: Some(verdict),
        reason: format!("the harness's own checks failed: {}", names.join(", ")),
        feedback: feedback.join("\n"),
        verified: gates.iter().filter(|g| g.ok).map(|g| g.detail.clone()).collect(),
        evidence: Vec::new(),
        by: VerdictBy::Gates,
        snapshot,
    })
}

/// The gates as lines for the Checker and for `checker_stream`.
pub fn report(gates: &[Gate]) -> String {
    let line = |g: &Gate| format!("- {} {}: {}", if g.ok { "ok" } else { "FAILED" }, g.name, g.detail);
    gates.iter().map(line).collect::<Vec<_>>().join("\n")
}

/// The claimed files as they are (A22). `changes`: what differs from the start of the session.
pub fn artifacts(cwd: &Path, claimed: &[String], changes: &[FileChange]) -> Vec<Artifact> {
    claimed.iter().map(|path| artifact(cwd, path, changes)).collect()
}

fn artifact(cwd: &Path, claimed: &str, changes: &[FileChange]) -> Artifact {
    let missing = |path: String| Artifact { path, exists: false, size: 0, sha256: String::new(), change: None };
    let Some(relative) = relative(cwd, claimed) else { return missing(claimed.to_owned()) };
    let full = cwd.join(&relative);
    let path = relative.to_string_lossy().replace('\\', "/");
    let inside = full.canonicalize().ok().filter(|p| p.starts_with(cwd));
    let Some((full, meta)) = inside.and_then(|p| p.metadata().ok().map(|m| (p, m))) else { return missing(path) };
    let change = changes.iter().find(|c| c.path == path).cloned().or_else(|| {
        let below = changes.iter().any(|c| is_below(&c.path, &path));
        (!below).then(|| FileChange { path: path.clone(), kind: ChangeKind::Unchanged, added: None, removed: None })
    });
    let (size, sha256) = if meta.is_file() { (meta.len(), sha256(&full)) } else { (0, String::new()) };
    Artifact { path, exists: true, size, sha256, change }
}

/// A claimed path as one below `cwd`, or nothing when it points elsewhere.
fn relative(cwd: &Path, claimed: &str) -> Option<PathBuf> {
    let path = Path::new(claimed.trim());
    let path = if path.is_absolute() { path.strip_prefix(cwd).ok()? } else { path };
    let mut out = PathBuf::new();
    for part in path.components() {
        match part {
            Component::Normal(name) => out.push(name),
            Component::CurDir => {}
            Component::ParentDir => {
                if !out.pop() {
                    return None;
                }
            }
            Component::RootDir | Component::Prefix(_) => return None,
        }
    }
    (!out.as_os_str().is_empty()).then_some(out)
}

fn sha256(path: &Path) -> String {
    let Ok(mut file) = std::fs::File::open(path) else { return String::new() };
    let mut hasher = Sha256::new();
    let mut block = vec![0; 64 * 1024];
    loop {
        match std::io::Read::read(&mut file, &mut block) {
            Ok(0) => break,
            Ok(n) => hasher.update(&block[..n]),
            Err(_) => return String::new(),
        }
    }
    hasher.finalize().iter().map(|b| format!("{b:02x}")).collect()
}

/// Whether each expected file is in the working directory.
pub fn expected(cwd: &Path, files: &[String]) -> Vec<(String, bool)> {
    let there =
        |f: &String| relative(cwd, f).and_then(|r| cwd.join(r).canonicalize().ok()).is_some_and(|p| p.starts_with(cwd));
    files.iter().map(|f| (f.clone(), there(f))).collect()
}

/// What the previous cycle handed in, for comparison.
pub fn previous_output(previous: Option<&WorkerResult>) -> Option<&serde_json::Value> {
    previous.map(|w| &w.output)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn change(path: &str, kind: ChangeKind) -> FileChange {
        FileChange { path: path.into(), kind, added: None, removed: None }
    }

    fn handed_in() -> Result<Deliverable, String> {
        Ok(Deliverable { summary: "s".into(), text_content: "t".into(), ..Deliverable::default() })
    }

    #[test]
    fn claimed_files_are_found_measured_and_kept_inside() {
        let dir = tempfile::tempdir().unwrap();
        let cwd = dir.path().canonicalize().unwrap();
        std::fs::create_dir(cwd.join("d")).unwrap();
        std::fs::write(cwd.join("d/a.txt"), "abc").unwrap();
        std::fs::write(cwd.join("old"), "x").unwrap();
        let claimed = ["./d/a.txt", "old", "d/", "../x", "/etc/passwd", "none"].map(str::to_owned);
        let changes = [change("d/a.txt", ChangeKind::Added)];
        let found = artifacts(&cwd, &claimed, &changes);
        assert_eq!(found[0].sha256, "ba7816bf8f01cfea414140de5dae2223b00361a396177a9cb410ff61f20015ad");
        assert_eq!((found[0].path.as_str(), found[0].size), ("d/a.txt", 3));
        let exists: Vec<bool> = found.iter().map(|a| a.exists).collect();
        assert_eq!(exists, [true, true, true, false, false, false]);
        let deliverable = handed_in();
        let findings = Findings {
            deliverable: &deliverable,
            artifacts: &found,
            expected: &[("index.html".into(), false)],
            since_start: &[change("tests/a.rs", ChangeKind::Modified)],
            in_cycle: &[],
            protected: &["tests".into()],
            previous: Some(&serde_json::json!({"text_content": "t"})),
        };
        let failing: Vec<String> = look(&findings).into_iter().filter(|g| !g.ok).map(|g| g.name).collect();
        assert_eq!(failing, ["claimed_files", "expected_files", "protected", "change"]);
        let result = verdict(&look(&findings), None).unwrap();
        assert_eq!(result.verdict, Some(Verdict::NeedsImprovement));
        assert!(result.feedback.contains("`old` is claimed but is as it was"), "{}", result.feedback);
    }

    #[test]
    fn no_valid_output_is_a_failure_and_nothing_wrong_is_no_verdict() {
        let findings = |deliverable| Findings {
            deliverable,
            artifacts: &[],
            expected: &[],
            since_start: &[],
            in_cycle: &[],
            protected: &[],
            previous: None,
        };
        let bad = Err("no file".to_owned());
        assert_eq!(verdict(&look(&findings(&bad)), None).unwrap().verdict, Some(Verdict::Failed));
        assert_eq!(verdict(&look(&findings(&handed_in())), None), None);
    }
}
