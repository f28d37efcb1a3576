//! Directories of tokens: a matrix with a row per token in a safetensors file, and the tokens in `tokenizer.json`.
//!
//! Of the tokeniser only the list of its tokens is read, and how it marks those that begin a word: `▁` and `Ġ` before them
//! (SentencePiece and GPT-2), or a prefix before the others (WordPiece). Words are cut by the longest tokens, which is what
//! WordPiece does and close to what the others do.

use std::collections::HashSet;
use std::path::{Path, PathBuf};

use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};
use serde_json::Value;

use super::{MAX_DIM, MAX_VALUES, Place, WordVectors, is_of_words};
use crate::data::Texts;
use crate::data::formats::f16_to_f32;
use crate::data::missing;
use crate::error::{Error, Result, shortened};

const TOKENIZER: &str = "tokenizer.json";
const WEIGHTS: &str = "model.safetensors";
/// Most bytes of `tokenizer.json`.
const MAX_TOKENIZER: u64 = 256 << 20;
/// Most bytes of the vectors: those that may be kept, and a header.
const MAX_WEIGHTS: u64 = 4 * MAX_VALUES as u64 + (1 << 20);

/// Reads a directory; tokens that cannot be a part of a word are left out.
pub(super) fn read(directory: &Path) -> Result<WordVectors> {
    let tokens = read_tokens(&directory.join(TOKENIZER))?;
    let path = weights_of(directory)?;
    let bad = |problem: String| Error::BadFile {
        path: path.clone(),
        problem,
    };
    let bytes = read_bounded(&path, MAX_WEIGHTS)?;
    let tensors = SafeTensors::deserialize(&bytes).map_err(|error| {
        bad(format!(
            "it is not safetensors: {}",
            shortened(&error.to_string())
        ))
    })?;
    let matrices = tensors.tensors();
    let mut matrices = matrices.iter().filter(|(_, t)| t.shape().len() == 2);
    let (Some((name, matrix)), None) = (matrices.next(), matrices.next()) else {
        let problem = "expected one matrix, with a row per token".to_owned();
        return Err(bad(format!("it has {} tensors: {problem}", tensors.len())));
    };
    let (n_rows, dim) = (matrix.shape()[0], matrix.shape()[1]);
    if !(1..=MAX_DIM).contains(&dim) || MAX_VALUES / dim < n_rows {
        let problem = format!(
            "tensor {name} is [{n_rows}, {dim}], expected at most {MAX_DIM} columns and {MAX_VALUES} values"
        );
        return Err(bad(problem));
    }
    let last = tokens.iter().map(|token| token.row).max().unwrap_or(0);
    if n_rows <= last {
        let problem = format!("tensor {name} has {n_rows} rows, {TOKENIZER} has the token {last}");
        return Err(bad(problem));
    }
    let (mut entries, mut values) = (Texts::default(), Vec::new());
    let mut known = HashSet::new();
    for Token { row, place, text } in tokens {
        let entry = format!("{}{text}", place.sign());
        if is_of_words(&text) && known.insert(entry.clone()) {
            let start = values.len();
            if !push_row(matrix, row, dim, &mut values) {
                let problem = format!(
                    "tensor {name} is {:?}, supported are F32, F16 and BF16",
                    matrix.dtype()
                );
                return Err(bad(problem));
            }
            if values[start..].iter().any(|value| !value.is_finite()) {
                return Err(bad(format!(
                    "tensor {name}: row {row} has a value that is no number"
                )));
            }
            entries.push(&entry);
        }
    }
    WordVectors::new(&path, entries, values, dim)
}

/// The safetensors file of a directory: the only one, or `model.safetensors`.
fn weights_of(directory: &Path) -> Result<PathBuf> {
    let usual = directory.join(WEIGHTS);
    if usual.is_file() {
        return Ok(usual);
    }
    let listed = std::fs::read_dir(directory).map_err(|error| missing(directory, error))?;
    let paths = listed.filter_map(|entry| Some(entry.ok()?.path()));
    let mut weights = paths.filter(|path| path.extension().is_some_and(|e| e == "safetensors"));
    match (weights.next(), weights.next()) {
        (Some(path), None) => Ok(path),
        _ => Err(Error::BadFile {
            path: directory.into(),
            problem: format!("it has no {WEIGHTS}: expected vectors of tokens beside {TOKENIZER}"),
        }),
    }
}

fn read_bounded(path: &Path, most: u64) -> Result<Vec<u8>> {
    let n_bytes = std::fs::metadata(path)
        .map_err(|error| missing(path, error))?
        .len();
    if most < n_bytes {
        let problem = format!("it has {n_bytes} bytes, expected at most {most}");
        return Err(Error::BadFile {
            path: path.into(),
            problem,
        });
    }
    std::fs::read(path).map_err(|error| Error::io(path, "read", error))
}

/// A token of a tokeniser.
struct Token {
    row: usize,
    place: Place,
    text: String,
}

fn read_tokens(path: &Path) -> Result<Vec<Token>> {
    let bad = |problem: String| Error::BadFile {
        path: path.into(),
        problem,
    };
    let bytes = read_bounded(path, MAX_TOKENIZER)?;
    let json: Value = serde_json::from_slice(&bytes)
        .map_err(|error| bad(format!("is not JSON: {}", shortened(&error.to_string()))))?;
    let model = &json["model"];
    let named: Vec<(&str, usize)> = match &model["vocab"] {
        Value::Object(rows) => {
            let rows = rows.iter();
            rows.filter_map(|(text, row)| Some((&text[..], row.as_u64()? as usize)))
                .collect()
        }
        Value::Array(scored) => {
            let texts = scored.iter().enumerate();
            texts
                .filter_map(|(row, pair)| Some((pair[0].as_str()?, row)))
                .collect()
        }
        _ => {
            return Err(bad(
                "has no model.vocab, expected a tokeniser as Hugging Face writes it".into(),
            ));
        }
    };
    let marks = Marks::of(model, &named);
    let mut tokens: Vec<Token> = named
        .into_iter()
        .filter_map(|(text, row)| {
            let (place, text) = marks.read(text)?;
            Some(Token { row, place, text })
        })
        .collect();
    tokens.sort_by_key(|token| token.row);
    Ok(tokens)
}

/// The marks of tokens by their place in a word.
enum Marks<'a> {
    /// A sign before tokens that begin a word, after a blank.
    Start(char),
    /// A prefix of the others.
    Inside(&'a str),
    /// None: every token is a word.
    Words,
}

impl<'a> Marks<'a> {
    fn of(model: &'a Value, tokens: &[(&str, usize)]) -> Self {
        let prefix = model["continuing_subword_prefix"].as_str();
        if let Some(prefix) = prefix.filter(|prefix| !prefix.is_empty()) {
            return Marks::Inside(prefix);
        }
        let has = |sign: char| tokens.iter().any(|(text, _)| text.starts_with(sign));
        match ['▁', 'Ġ'].into_iter().find(|&sign| has(sign)) {
            Some(sign) => Marks::Start(sign),
            None => Marks::Words,
        }
    }

    fn read(&self, token: &str) -> Option<(Place, String)> {
        match *self {
            Marks::Words => Some((Place::Word, token.into())),
            Marks::Inside(prefix) => Some(match token.strip_prefix(prefix) {
                Some(text) => (Place::Inside, text.into()),
                None => (Place::Start, token.into()),
            }),
            Marks::Start(sign) => {
                let (place, text) = match token.strip_prefix(sign) {
                    Some(text) => (Place::Start, text),
                    None => (Place::Inside, token),
                };
                let text = if sign == 'Ġ' {
                    from_bytes_as_letters(text)?
                } else {
                    text.into()
                };
                Some((place, text))
            }
        }
    }
}

/// The text of a token of GPT-2, which writes every byte as a letter; `None` if it is not UTF-8.
fn from_bytes_as_letters(token: &str) -> Option<String> {
    let is_itself = |byte: u8| matches!(byte, b'!'..=b'~' | 0xa1..=0xac | 0xae..=0xff);
    let others: Vec<u8> = (0..=255).filter(|&byte| !is_itself(byte)).collect();
    let byte_of = |letter: char| match u32::from(letter) {
        code @ 0..=255 => Some(code as u8).filter(|&byte| is_itself(byte)),
        code => others.get(code as usize - 256).copied(),
    };
    let bytes: Vec<u8> = token.chars().map(byte_of).collect::<Option<_>>()?;
    String::from_utf8(bytes).ok()
}

/// Adds a row of a matrix to the values; false if its type is not supported.
fn push_row(matrix: &TensorView<'_>, row: usize, dim: usize, values: &mut Vec<f32>) -> bool {
    let of = |n_bytes: usize| {
        matrix.data()[row * dim * n_bytes..][..dim * n_bytes].chunks_exact(n_bytes)
    };
    match matrix.dtype() {
        Dtype::F32 => values.extend(of(4).map(|b| f32::from_le_bytes([b[0], b[1], b[2], b[3]]))),
        Dtype::F16 => values.extend(of(2).map(|b| f16_to_f32(u16::from_le_bytes([b[0], b[1]])))),
        Dtype::BF16 => values.extend(of(2).map(|b| f32::from_le_bytes([0, 0, b[0], b[1]]))),
        _ => return false,
    }
    true
}
