//! The files of a pretrained transformer: a directory as Hugging Face lays it out.
//!
//! Files are read here and parsed elsewhere: the tokeniser in `features`, configuration and weights in `encoder`.

use std::fs;
use std::path::{Path, PathBuf};

use sha2::{Digest, Sha256};

use crate::error::{Error, Result};

/// `config.json`.
const CONFIG: &str = "config.json";
/// The weights.
const WEIGHTS: &str = "model.safetensors";
/// The tokeniser with all of its rules.
const TOKENIZER: &str = "tokenizer.json";
/// The word pieces alone, one per line.
const VOCABULARY: &str = "vocab.txt";

/// The contents of a directory of a pretrained transformer.
#[derive(Clone, Debug)]
pub(crate) struct Pretrained {
    directory: PathBuf,
    /// `config.json`.
    pub config: String,
    /// `model.safetensors`.
    pub weights: Vec<u8>,
    /// The source of the tokeniser.
    pub tokenizer: TokenizerSource,
}

/// The rules by which texts become word pieces.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum TokenizerSource {
    /// `tokenizer.json`.
    Json(String),
    /// `vocab.txt`: word pieces of BERT, and whether texts are lowercased.
    Vocabulary(String, bool),
    /// Neither exists: the transformer can only be given token ids.
    Missing,
}

impl Pretrained {
    /// Reads a directory.
    ///
    /// # Errors
    /// [`Error::BadFile`] if it is not one of a transformer with safetensors weights; [`Error::Io`].
    pub(crate) fn read(directory: &Path) -> Result<Self> {
        let bad = |problem: &str| Error::BadFile {
            path: directory.into(),
            problem: problem.into(),
        };
        if !directory.is_dir() {
            return Err(bad(
                "there is no such directory: expected that of a transformer, with config.json, model.safetensors and tokenizer.json or vocab.txt",
            ));
        }
        if !directory.join(CONFIG).is_file() {
            return Err(bad(
                "it has no config.json, expected the directory of a transformer",
            ));
        }
        if !directory.join(WEIGHTS).is_file() {
            let remedy = if directory.join("pytorch_model.bin").is_file() {
                "; pytorch_model.bin is not read: save the model again with safe_serialization=True"
            } else {
                ""
            };
            return Err(bad(&format!("it has no model.safetensors{remedy}")));
        }
        let path = directory.join(WEIGHTS);
        let weights = fs::read(&path).map_err(|error| Error::io(&path, "read", error))?;
        Ok(Pretrained {
            directory: directory.into(),
            config: read_text(&directory.join(CONFIG))?,
            weights,
            tokenizer: read_tokenizer(directory)?,
        })
    }

    /// SHA-256 over everything read, in hexadecimal digits.
    pub(crate) fn sha256(&self) -> String {
        let mut hash = Sha256::new();
        hash.update(&self.config);
        hash.update(&self.weights);
        match &self.tokenizer {
            TokenizerSource::Json(text) => hash.update(text),
            TokenizerSource::Vocabulary(text, lowercase) => {
                hash.update(text);
                hash.update([u8::from(*lowercase)]);
            }
            TokenizerSource::Missing => {}
        }
        let digits = hash.finalize();
        digits.iter().map(|byte| format!("{byte:02x}")).collect()
    }

    /// An error about `config.json`.
    #[cfg(feature = "transformer")]
    pub(crate) fn bad_config(&self, problem: String) -> Error {
        self.bad(CONFIG, problem)
    }

    /// An error about `model.safetensors`.
    #[cfg(feature = "transformer")]
    pub(crate) fn bad_weights(&self, problem: String) -> Error {
        self.bad(WEIGHTS, problem)
    }

    /// An error about the tokeniser.
    pub(crate) fn bad_tokenizer(&self, problem: String) -> Error {
        let file = match self.tokenizer {
            TokenizerSource::Json(_) => TOKENIZER,
            TokenizerSource::Vocabulary(..) => VOCABULARY,
            TokenizerSource::Missing => "",
        };
        self.bad(file, problem)
    }

    fn bad(&self, file: &str, problem: String) -> Error {
        let path = self.directory.join(file);
        Error::BadFile { path, problem }
    }
}

fn read_tokenizer(directory: &Path) -> Result<TokenizerSource> {
    let json = directory.join(TOKENIZER);
    if json.is_file() {
        return read_text(&json).map(TokenizerSource::Json);
    }
    let vocabulary = directory.join(VOCABULARY);
    if !vocabulary.is_file() {
        return Ok(TokenizerSource::Missing);
    }
    let path = directory.join("tokenizer_config.json");
    let settings: serde_json::Value = if path.is_file() {
        serde_json::from_str(&read_text(&path)?).unwrap_or_default()
    } else {
        serde_json::Value::default()
    };
    // BERT's own default is to lowercase.
    let lowercase = settings["do_lower_case"].as_bool().unwrap_or(true);
    Ok(TokenizerSource::Vocabulary(
        read_text(&vocabulary)?,
        lowercase,
    ))
}

fn read_text(path: &Path) -> Result<String> {
    let bytes = fs::read(path).map_err(|error| Error::io(path, "read", error))?;
    String::from_utf8(bytes).map_err(|_| Error::BadFile {
        path: path.into(),
        problem: "it is not UTF-8".into(),
    })
}
