//! (room)

pub mod snapshot;
