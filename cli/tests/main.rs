//! Tests that run the `elias` binary, one module per theme.

mod command;
mod convert;
mod evaluate;
mod model;
mod resume;
mod shell;
