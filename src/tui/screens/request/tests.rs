//! Tests of this screen.
