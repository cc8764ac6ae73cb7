//! The screens, one file each: what a person sees and what the keys do there.

pub mod apply;
pub mod archive;
pub mod confirm;
pub mod contract;
pub mod detail;
pub mod fields;
pub mod filediffs;
pub mod help;
pub mod launch;
pub mod log;
pub mod look;
pub mod message;
pub mod palette;
pub mod reader;
pub mod request;
pub mod rewind;
#[cfg(test)]
pub mod rig;
pub mod session;
pub mod sessions;
pub mod themes;
