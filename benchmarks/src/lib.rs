//! What the programs that drive `elias serve` share.

pub mod service;
