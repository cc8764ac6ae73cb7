//! What integration tests share.

pub mod desk;
pub mod provider_server;
pub mod screen;
pub mod shell;
