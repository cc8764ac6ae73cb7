//! What the system knows of a process, read from `/proc`.

use std::collections::HashMap;
use std::ffi::OsString;
use std::fs;
use std::time::Duration;

/// Clock ticks a second; 100 on every Linux there is.
const TICKS: u64 = 100;

/// Processor, memory, system: one line for the report.
pub fn machine() -> String {
    let cpu = fs::read_to_string("/proc/cpuinfo").unwrap_or_default();
    let model = cpu.lines().find_map(|line| line.strip_prefix("model name")).unwrap_or("unknown processor");
    let model = model.trim_start_matches([' ', '\t', ':']);
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let memory = fs::read_to_string("/proc/meminfo").unwrap_or_default();
    let memory = memory.lines().find_map(|line| kilobytes(line, "MemTotal:")).unwrap_or_default();
    let kernel = fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{model}, {cores} cores, {} GB memory, Linux {}", memory.div_ceil(1 << 20), kernel.trim())
}

/// The number of a line such as `Pss:   123 kB`.
fn kilobytes(line: &str, key: &str) -> Option<u64> {
    line.strip_prefix(key)?.trim().trim_end_matches("kB").trim().parse().ok()
}

/// The memory that is this process's own share, in bytes.
pub fn pss(pid: u32) -> Option<u64> {
    let text = fs::read_to_string(format!("/proc/{pid}/smaps_rollup")).ok()?;
    text.lines().find_map(|line| kilobytes(line, "Pss:")).map(|kilobytes| kilobytes * 1024)
}

/// Processor time of a running process, without its children.
pub fn processor_time(pid: u32) -> Option<Duration> {
    times(&format!("/proc/{pid}/stat")).map(|times| ticks(times[0] + times[1]))
}

/// Processor time of all children of this process that have ended, and of theirs.
pub fn processor_time_of_children() -> Option<Duration> {
    times("/proc/self/stat").map(|times| ticks(times[2] + times[3]))
}

/// User, system, and the same of waited-for children, in ticks.
fn times(path: &str) -> Option<[u64; 4]> {
    let text = fs::read_to_string(path).ok()?;
    // The name in brackets may hold anything; the fields count from behind it.
    let (_, rest) = text.rsplit_once(')')?;
    let mut fields = rest.split_whitespace().skip(11).map(str::parse);
    let mut next = || fields.next()?.ok();
    Some([next()?, next()?, next()?, next()?])
}

fn ticks(count: u64) -> Duration {
    Duration::from_millis(count * 1000 / TICKS)
}

/// How often each thread of a process has gone to sleep by itself: each wake-up ends in one.
pub fn sleeps(pid: u32) -> Option<HashMap<OsString, u64>> {
    let threads = fs::read_dir(format!("/proc/{pid}/task")).ok()?;
    let count = |thread: fs::DirEntry| {
        let status = fs::read_to_string(thread.path().join("status")).ok()?;
        let line = status.lines().find_map(|line| line.strip_prefix("voluntary_ctxt_switches:"))?;
        Some((thread.file_name(), line.trim().parse().ok()?))
    };
    Some(threads.flatten().filter_map(count).collect())
}

/// The wake-ups between two looks. A thread that ended in between was woken for it.
pub fn wake_ups(before: &HashMap<OsString, u64>, after: &HashMap<OsString, u64>) -> u64 {
    let ended = before.keys().filter(|thread| !after.contains_key(*thread)).count() as u64;
    let woken = after.iter().map(|(thread, count)| count - before.get(thread).unwrap_or(&0));
    ended + woken.sum::<u64>()
}
