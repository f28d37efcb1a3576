//! Tests that run the `elias` binary, one module per theme.

mod answers;
mod browser;
mod careful;
mod command;
mod conventions;
mod convert;
mod disk;
mod documents;
mod evaluate;
mod hostile;
mod insight;
mod labels;
mod memory;
mod merge;
mod model;
mod newcomer;
mod ranks;
mod resume;
mod serve;
mod shell;
mod tables;
mod update;
mod vectors;
