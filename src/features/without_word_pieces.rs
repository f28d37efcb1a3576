//! The place of word pieces in a build without transformers: there are none.

use super::TokenRows;
use crate::config::no_transformers;
use crate::data::{Texts, TokenizerSource};
use crate::error::Result;

/// A tokeniser, of which there is none.
#[derive(Clone, Debug)]
pub(crate) enum WordPieces {}

impl WordPieces {
    /// Refuses.
    ///
    /// # Errors
    /// Always [`crate::Error::Config`].
    pub(crate) fn new(_file: &TokenizerSource, _max_len: usize) -> Result<Self> {
        Err(no_transformers())
    }

    /// Refuses.
    ///
    /// # Errors
    /// Always [`crate::Error::Config`].
    pub(crate) fn from_json(_text: &str) -> Result<Self> {
        Err(no_transformers())
    }

    pub(crate) fn to_json(&self) -> String {
        match *self {}
    }

    pub(crate) fn n_ids(&self) -> usize {
        match *self {}
    }

    pub(crate) fn ids(&self, _text: &str) -> Result<Vec<u32>> {
        match *self {}
    }

    pub(crate) fn rows(&self, _texts: &Texts) -> Result<TokenRows> {
        match *self {}
    }
}
