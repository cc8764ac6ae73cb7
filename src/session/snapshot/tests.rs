//! Claims about snapshots, on real folders.
