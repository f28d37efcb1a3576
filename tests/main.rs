//! All integration tests, one module per theme, in one binary.
mod ranker;
