//! What integration tests share.

pub mod provider_server;
pub mod screen;
