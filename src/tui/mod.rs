//! The terminal interface.

pub mod widgets;
