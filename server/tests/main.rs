//! The service over loopback, with models of a few texts; one module per theme.

mod annif;
mod client;
mod deploy;
mod endpoints;
mod fuzz;
mod hostile;
mod learning;
mod limits;
mod private;
mod running;
mod swapping;
mod tiny;
