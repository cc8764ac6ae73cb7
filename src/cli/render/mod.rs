//! What headless commands print: progress, deliverable, tables, differences, JSON lines. Turns
//! plain data into text; asks nobody and decides nothing. Foreign text is made safe here.

pub mod deliverable;
pub mod diff;
pub mod figures;
pub mod jsonl;
pub mod paint;
pub mod problem;
pub mod progress;
pub mod tables;
