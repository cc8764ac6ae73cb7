//! Running what is not ours: commands of tools and programs like git, with a chosen folder and
//! environment, bounded output, and an end that nothing outlives. The only room that starts
//! processes. Does not decide what may run.

mod capture;
pub mod environment;
pub mod exec;
mod processes;

#[cfg(test)]
mod tests;
