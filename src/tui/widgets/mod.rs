//! Reusable parts of screens: text that fits, lists, editors, forms, dialogs. Know nothing of
//! sessions, cycles or keys of this program; styles and data are passed in.

pub mod dialog;
pub mod diff;
pub mod editor;
pub mod form;
pub mod format;
pub mod fuzzy;
pub mod list;
pub mod markdown;
pub mod scroll;
pub mod text;
pub mod wrap;
