//! Settings in a file.

use std::fs;
use std::path::Path;

use super::missing::missing;
use crate::config::Config;
use crate::error::Result;

impl Config {
    /// This configuration with the settings of a TOML file on top.
    ///
    /// # Errors
    /// [`Error::NotFound`](crate::Error::NotFound) or [`Error::Io`](crate::Error::Io) if the file cannot be read, else
    /// as [`Config::with_toml`].
    pub fn with_file(&self, path: impl AsRef<Path>) -> Result<Self> {
        let path = path.as_ref();
        let text = fs::read_to_string(path).map_err(|error| missing(path, error))?;
        self.with_toml(&text)
    }
}
