//! Tests that run the `elias` binary, one module per theme.

mod command;
mod convert;
mod disk;
mod evaluate;
mod model;
mod resume;
mod shell;
