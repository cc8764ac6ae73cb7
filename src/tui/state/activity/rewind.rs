//! What a rewind takes off the main path, and what it brings back.

use std::collections::{HashMap, HashSet};

use super::{Activity, NoticeKind, Row, RowKind, TraceInfo, TraceRef};
use crate::events::event::RewindRecord;
use crate::ids::Seq;

impl Activity {
    /// Marks every row from the rewound trace's first on: its messages by whether they lie on the
    /// way to the cut, everything else by the message it followed.
    pub(super) fn rewind(&mut self, trace: Option<TraceRef>, record: &RewindRecord) {
        let Some(trace) = trace else { return };
        let others = record.others.iter().filter_map(|o| Some((*self.by_trace.get(&o.trace_id)?, o.head)));
        let paths: HashMap<TraceRef, HashSet<Seq>> = std::iter::once((trace, record.cut))
            .chain(others)
            .map(|(trace, head)| (trace, path_to(&self.traces[usize::from(trace.0)], head)))
            .collect();
        let undone: HashSet<u32> = record.superseded.iter().map(|s| s.cycle).filter(|c| *c > record.cycle).collect();
        let restored: HashSet<TraceRef> = record
            .restored
            .iter()
            .flat_map(|s| s.worker_trace_id.iter().chain(&s.checker_trace_id))
            .filter_map(|id| self.by_trace.get(id).copied())
            .collect();
        let path_of = |row: &Row| row.trace.and_then(|trace| paths.get(&trace));
        let Some(first) = self.rows.iter().position(|row| path_of(row).is_some()) else { return };
        let mut off = false;
        for row in &mut self.rows[first..] {
            if matches!(&row.kind, RowKind::Notice(notice) if notice.kind == NoticeKind::Rewind) {
                continue;
            }
            if let Some(path) = path_of(row) {
                if let Some(sequence) = row.sequence {
                    off = !path.contains(&sequence);
                }
            } else if row.trace.is_some_and(|t| restored.contains(&t)) {
                off = false;
            } else if starts_undone(row, &undone) {
                off = true;
            }
            row.off_path = off;
        }
    }
}

/// Whether a row begins a cycle that the rewind undoes.
fn starts_undone(row: &Row, undone: &HashSet<u32>) -> bool {
    row.cycle.is_some_and(|cycle| undone.contains(&cycle))
}

/// The messages from the root to `cut`; what a summary stands for is still on the way.
fn path_to(trace: &TraceInfo, cut: Seq) -> HashSet<Seq> {
    let mut path = HashSet::new();
    let mut at = Some(cut);
    while let Some(sequence) = at.filter(|sequence| path.insert(*sequence)) {
        for (_, from, to) in trace.compacted.iter().filter(|(summary, ..)| *summary == sequence) {
            path.extend(trace.parents.range(*from..=*to).map(|(sequence, _)| *sequence));
        }
        at = trace.parents.get(&sequence).copied().flatten();
    }
    path
}
