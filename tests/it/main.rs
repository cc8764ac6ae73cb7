//! Integration tests: one binary, one module per subject.

mod llm;
mod support;
