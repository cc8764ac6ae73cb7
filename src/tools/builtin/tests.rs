//! Tests of the built-in tools through the registry.
