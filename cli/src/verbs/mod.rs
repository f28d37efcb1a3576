//! The verbs of the command, one file each.

pub(crate) mod bench;
pub(crate) mod card;
pub(crate) mod completions;
pub(crate) mod config;
pub(crate) mod convert;
pub(crate) mod demo;
pub(crate) mod embed;
pub(crate) mod evaluate;
pub(crate) mod explain;
pub(crate) mod inspect;
pub(crate) mod labels;
pub(crate) mod learn;
pub(crate) mod man;
pub(crate) mod merge;
pub(crate) mod predict;
pub(crate) mod prune;
pub(crate) mod report;
#[cfg(feature = "serve")]
pub(crate) mod serve;
pub(crate) mod train;
pub(crate) mod update;
