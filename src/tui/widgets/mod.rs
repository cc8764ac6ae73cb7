//! Reusable parts of screens: text that fits, lists, editors, forms, dialogs. Know nothing of
//! sessions, cycles or keys of this program; styles and data are passed in.

pub mod dialog;
pub mod diff;
pub mod editor;
pub mod form;
pub mod fuzzy;
pub mod list;
pub mod markdown;
#[cfg(test)]
pub mod odd;
pub mod scroll;
pub mod wrap;
