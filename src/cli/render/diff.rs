//! Differences of files, and what `rewind` and `apply` would do.

use super::figures;
use super::paint::{Paint, Tone};
use crate::events::query::{ApplyPreview, FileDiff, RewindPreview};
use crate::stdx::text::{sanitize, sanitize_line};

/// Files with their hunks, as `diff -u` shows them. `total` tells of files left out.
pub fn diff(files: &[FileDiff], total: usize, paint: Paint) -> String {
    let mut out = String::new();
    for file in files {
        let (mark, lines, tone) = figures::change(&file.change);
        let heading = format!("{mark} {}{lines}", sanitize_line(&file.change.path));
        line(&mut out, &paint.tone(tone, heading));
        if let Some(note) = &file.note {
            line(&mut out, &paint.tone(Tone::Faint, format!("  {}", sanitize_line(note))));
        }
        for text in sanitize(&file.unified).lines() {
            let tone = match text.as_bytes().first() {
                Some(b'+') => Some(Tone::Good),
                Some(b'-') => Some(Tone::Bad),
                Some(b'@') => Some(Tone::Faint),
                _ => None,
            };
            match tone {
                Some(tone) => line(&mut out, &paint.tone(tone, text)),
                None => line(&mut out, text),
            }
        }
    }
    if total > files.len() {
        line(&mut out, &format!("… and {} more files", total - files.len()));
    }
    out
}

/// What `apply` would do.
pub fn apply_preview(preview: &ApplyPreview, paint: Paint) -> String {
    let (mark, word, tone) = figures::verdict(preview.verdict);
    let mut out = String::new();
    line(
        &mut out,
        &format!(
            "cycle {} ({}) into {}",
            preview.cycle,
            paint.tone(tone, format!("{mark} {word}")),
            sanitize_line(&preview.target)
        ),
    );
    out.push_str(&diff(&preview.files, preview.files_total, paint));
    if preview.files_total == 0 {
        line(&mut out, "nothing differs");
    }
    list(&mut out, "changed there since, so never overwritten:", &preview.conflicts);
    if let Some(why) = &preview.refused {
        line(&mut out, &paint.tone(Tone::Bad, format!("can't be applied: {}", sanitize(why))));
    }
    out
}

/// What `rewind` would do.
pub fn rewind_preview(preview: &RewindPreview, paint: Paint) -> String {
    let mut out = String::new();
    let heading = format!("back to message {} of cycle {}", preview.cut, preview.cycle);
    line(&mut out, &paint.tone(Tone::Strong, heading));
    if preview.cut != preview.to {
        line(&mut out, &format!("  (message {} was asked for; its step begins there)", preview.to));
    }
    if preview.to_other_branch {
        line(&mut out, "  this goes to another branch, and so undoes an earlier rewind");
    }
    let heads = |heads: &[crate::events::data::MessageHead]| -> Vec<String> {
        heads.iter().map(|head| format!("{} {}: {}", head.sequence, head.role, head.description)).collect()
    };
    let numbers = |cycles: &[u32]| -> Vec<String> { cycles.iter().map(|cycle| format!("cycle {cycle}")).collect() };
    list(&mut out, "messages that leave:", &heads(&preview.leaving));
    list(&mut out, "messages that come back:", &heads(&preview.returning));
    list(&mut out, "goals dropped:", &preview.goals_dropped);
    list(&mut out, "goals open again:", &preview.goals_reset);
    list(&mut out, "undone:", &numbers(&preview.cycles_undone));
    list(&mut out, "brought back:", &numbers(&preview.cycles_restored));
    if preview.files_total > 0 {
        line(&mut out, "files:");
        out.push_str(&diff(&preview.files, preview.files_total, paint));
    }
    list(&mut out, "changed by you since, so kept:", &preview.changed_by_person);
    list(&mut out, "can't be taken back:", &preview.not_rewound);
    if let Some(why) = &preview.refused {
        line(&mut out, &paint.tone(Tone::Bad, format!("can't be done now: {}", sanitize(why))));
    }
    out
}

fn list(out: &mut String, heading: &str, items: &[String]) {
    if items.is_empty() {
        return;
    }
    line(out, heading);
    for item in items {
        line(out, &format!("  {}", sanitize_line(item)));
    }
}

fn line(out: &mut String, text: &str) {
    out.push_str(text);
    out.push('\n');
}

#[cfg(test)]
mod tests {
    use pretty_assertions::assert_eq;

    use super::*;
    use crate::events::data::{ChangeKind, FileChange, MessageHead, Plan, Verdict};
    use crate::ids::TraceId;

    fn file() -> FileDiff {
        FileDiff {
            change: FileChange { path: "a.txt".into(), kind: ChangeKind::Modified, added: Some(1), removed: Some(1) },
            unified: "@@ -1 +1 @@\n-old\n+new \u{1b}[2J\n".into(),
            note: None,
        }
    }

    #[test]
    fn a_difference_shows_its_lines_without_control_characters() {
        let expected = "~ a.txt (+1 −1)\n@@ -1 +1 @@\n-old\n+new \n… and 2 more files\n";
        assert_eq!(diff(&[file()], 3, Paint::plain()), expected);
    }

    #[test]
    fn an_application_names_conflicts_and_refusal() {
        let preview = ApplyPreview {
            cycle: 2,
            verdict: Some(Verdict::NeedsImprovement),
            target: "branch main".into(),
            files: vec![file()],
            files_total: 1,
            conflicts: vec!["b.txt".into()],
            refused: Some("the cycle is not verified; add `--force`".into()),
        };
        let expected = "\
cycle 2 (◐ needs_improvement) into branch main
~ a.txt (+1 −1)
@@ -1 +1 @@
-old
+new 
changed there since, so never overwritten:
  b.txt
can't be applied: the cycle is not verified; add `--force`
";
        assert_eq!(apply_preview(&preview, Paint::plain()), expected);
    }

    #[test]
    fn a_rewind_shows_everything_it_would_change() {
        let head = MessageHead {
            sequence: 7,
            parent_sequence: Some(6),
            role: "assistant".into(),
            goal_id: None,
            description: "writes a.txt".into(),
        };
        let preview = RewindPreview {
            trace: TraceId::new("t"),
            cycle: 1,
            to: 5,
            cut: 4,
            to_other_branch: false,
            leaving: vec![head],
            returning: Vec::new(),
            plan: Plan::default(),
            goals_dropped: vec!["polish".into()],
            goals_reset: Vec::new(),
            cycles_undone: vec![2],
            cycles_restored: Vec::new(),
            files: vec![file()],
            files_total: 1,
            changed_by_person: vec!["notes.md".into()],
            not_rewound: vec!["network calls".into()],
            refused: None,
        };
        let expected = "\
back to message 4 of cycle 1
  (message 5 was asked for; its step begins there)
messages that leave:
  7 assistant: writes a.txt
goals dropped:
  polish
undone:
  cycle 2
files:
~ a.txt (+1 −1)
@@ -1 +1 @@
-old
+new 
changed by you since, so kept:
  notes.md
can't be taken back:
  network calls
";
        assert_eq!(rewind_preview(&preview, Paint::plain()), expected);
    }
}
