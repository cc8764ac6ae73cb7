//! What the standard library lacks. Knows nothing of this program's domain.

pub mod atomic_file;
pub mod bounded;
pub mod clock;
pub mod json;
pub mod random;
pub mod text;
