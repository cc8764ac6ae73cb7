//! What single parts cost: `cargo bench --bench inside`. The program as a whole is measured by
//! `cargo bench --bench measure`.

use std::hint::black_box;
use std::sync::Arc;

use criterion::{BatchSize, Criterion, Throughput};
use super_agent::events::event::Event;
use super_agent::events::log;
use super_agent::events::recorder::Recorder;
use super_agent::stdx::clock::SteppingClock;

/// Events in one measured journal.
const EVENTS: u64 = 1000;

fn note(n: u64) -> Event {
    Event::Note { text: format!("{n}: {}", "what happened, in a sentence of ordinary length ".repeat(4)) }
}

/// Fills a new journal; the recorder is returned so that closing it is not measured.
fn record(folder: &tempfile::TempDir) -> Arc<Recorder> {
    std::fs::create_dir_all(folder.path().join("state")).expect("a temporary folder can be written");
    let clock = SteppingClock::new(0, 1);
    let recorder = Recorder::open("k7m2x9qa".into(), folder.path(), clock).expect("a new journal opens");
    for n in 0..EVENTS {
        recorder.record(Some(1), None, note(n)).expect("a temporary folder can be written");
    }
    recorder
}

fn temporary() -> tempfile::TempDir {
    tempfile::tempdir().expect("a temporary folder can be made")
}

fn journal(criterion: &mut Criterion) {
    let mut group = criterion.benchmark_group("journal");
    group.throughput(Throughput::Elements(EVENTS));
    group.bench_function("append 1000 events", |bencher| {
        bencher.iter_batched_ref(temporary, |folder| record(folder), BatchSize::PerIteration);
    });
    let folder = temporary();
    drop(record(&folder));
    let path = folder.path().join("state/events.jsonl");
    group.bench_function("read 1000 events", |bencher| {
        bencher.iter(|| black_box(log::read(&path, 0)).expect("the journal was just written").events.len());
    });
    group.finish();
}

fn main() {
    let mut criterion = Criterion::default().configure_from_args();
    journal(&mut criterion);
    criterion.final_summary();
}
