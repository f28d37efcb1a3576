//! Word pieces: from texts to the token ids a transformer reads, by the `tokenizers` crate.

use rayon::prelude::*;
use tokenizers::models::wordpiece::WordPiece;
use tokenizers::normalizers::BertNormalizer;
use tokenizers::pre_tokenizers::bert::BertPreTokenizer;
use tokenizers::processors::bert::BertProcessing;
use tokenizers::{Tokenizer, TruncationParams};

use super::TokenRows;
use crate::data::{Texts, TokenizerSource};
use crate::error::{Error, Result};

/// Texts per task.
const CHUNK: usize = 64;

/// A tokeniser that truncates texts to a number of tokens.
#[derive(Clone, Debug)]
pub(crate) struct WordPieces {
    tokenizer: Tokenizer,
}

impl WordPieces {
    /// The tokeniser of a file, for at most `max_len` tokens, special tokens included.
    ///
    /// # Errors
    /// [`Error::InvalidVocabulary`] if the file is not a valid tokeniser.
    pub(crate) fn new(file: &TokenizerSource, max_len: usize) -> Result<Self> {
        let tokenizer = match file {
            TokenizerSource::Json(text) => Tokenizer::from_bytes(text).map_err(invalid)?,
            TokenizerSource::Vocabulary(text, lowercase) => bert_tokenizer(text, *lowercase)?,
            TokenizerSource::Missing => {
                let problem = "found neither tokenizer.json nor vocab.txt";
                return Err(Error::InvalidVocabulary(problem.into()));
            }
        };
        WordPieces::truncated(tokenizer, max_len)
    }

    /// The tokeniser from the output of [`WordPieces::to_json`].
    ///
    /// # Errors
    /// As [`WordPieces::new`].
    pub(crate) fn from_json(text: &str) -> Result<Self> {
        let tokenizer = Tokenizer::from_bytes(text).map_err(invalid)?;
        Ok(WordPieces { tokenizer })
    }

    /// The tokeniser as `tokenizer.json`.
    pub(crate) fn to_json(&self) -> String {
        self.tokenizer
            .to_string(false)
            .expect("a tokeniser that was read can be written")
    }

    fn truncated(mut tokenizer: Tokenizer, max_len: usize) -> Result<Self> {
        let truncation = TruncationParams {
            max_length: max_len,
            ..TruncationParams::default()
        };
        tokenizer
            .with_truncation(Some(truncation))
            .map_err(invalid)?;
        tokenizer.with_padding(None);
        Ok(WordPieces { tokenizer })
    }

    /// One more than the highest id.
    pub(crate) fn n_ids(&self) -> usize {
        let vocabulary = self.tokenizer.get_vocab(true);
        vocabulary.values().max().map_or(0, |&id| id as usize + 1)
    }

    /// Token ids of one text.
    ///
    /// # Errors
    /// [`Error::InvalidVocabulary`] if the tokeniser fails, for example without a token for unknown words.
    pub(crate) fn ids(&self, text: &str) -> Result<Vec<u32>> {
        let encoding = self.tokenizer.encode_fast(text, true).map_err(invalid)?;
        Ok(encoding.get_ids().to_vec())
    }

    /// Token ids of every text, on the caller's thread pool.
    ///
    /// # Errors
    /// As [`WordPieces::ids`].
    pub(crate) fn rows(&self, texts: &Texts) -> Result<TokenRows> {
        let all: Vec<usize> = (0..texts.len()).collect();
        let chunks = all.par_chunks(CHUNK).map(|chunk| {
            let rows = chunk.iter().map(|&text| self.ids(texts.get(text)));
            rows.collect::<Result<TokenRows>>()
        });
        let chunks: Vec<TokenRows> = chunks.collect::<Result<_>>()?;
        let rows = |chunk: &TokenRows| (0..chunk.n_rows()).collect::<Vec<_>>();
        let mut joined = TokenRows::default();
        for chunk in &chunks {
            rows(chunk)
                .iter()
                .for_each(|&row| joined.push(chunk.row(row)));
        }
        Ok(joined)
    }
}

/// BERT's tokeniser over a list of word pieces.
fn bert_tokenizer(text: &str, lowercase: bool) -> Result<Tokenizer> {
    let model = WordPiece::builder()
        .vocab(WordPiece::read_bytes(text.as_bytes()).map_err(invalid)?)
        .unk_token("[UNK]".into())
        .build()
        .map_err(invalid)?;
    let mut tokenizer = Tokenizer::new(model);
    let id_of = |tokenizer: &Tokenizer, token: &str| {
        let id = tokenizer.token_to_id(token);
        id.ok_or_else(|| Error::InvalidVocabulary(format!("vocab.txt has no line {token}")))
    };
    let separator = ("[SEP]".to_owned(), id_of(&tokenizer, "[SEP]")?);
    let class = ("[CLS]".to_owned(), id_of(&tokenizer, "[CLS]")?);
    let normalizer = BertNormalizer::new(true, true, None, lowercase);
    tokenizer
        .with_normalizer(Some(normalizer))
        .map_err(invalid)?;
    tokenizer.with_pre_tokenizer(Some(BertPreTokenizer));
    tokenizer.with_post_processor(Some(BertProcessing::new(separator, class)));
    Ok(tokenizer)
}

fn invalid(error: impl std::fmt::Display) -> Error {
    Error::InvalidVocabulary(format!("the tokeniser: {error}"))
}

#[cfg(test)]
mod tests {
    use super::*;

    const PIECES: &str = "[PAD]\n[UNK]\n[CLS]\n[SEP]\nred\napple\n##s\n";

    #[test]
    fn a_vocabulary_makes_berts_tokeniser() {
        let file = TokenizerSource::Vocabulary(PIECES.into(), true);
        let pieces = WordPieces::new(&file, 5).unwrap();
        assert_eq!(pieces.n_ids(), 7);
        assert_eq!(pieces.ids("Red apples").unwrap(), [2, 4, 5, 6, 3]);
        assert_eq!(pieces.ids("apples red red red").unwrap(), [2, 5, 6, 4, 3]);
        assert_eq!(pieces.ids("").unwrap(), [2, 3]);
        assert_eq!(pieces.ids("pear").unwrap(), [2, 1, 3]);
        let cased = TokenizerSource::Vocabulary(PIECES.into(), false);
        assert_eq!(
            WordPieces::new(&cased, 5).unwrap().ids("Red").unwrap(),
            [2, 1, 3]
        );
    }

    #[test]
    fn a_tokeniser_survives_its_own_json_and_tokenises_many_texts_alike() {
        let file = TokenizerSource::Vocabulary(PIECES.into(), true);
        let pieces = WordPieces::new(&file, 4).unwrap();
        let again = WordPieces::from_json(&pieces.to_json()).unwrap();
        assert_eq!(again.to_json(), pieces.to_json());
        let texts: Texts = ["red", "", "apples and apples"]
            .into_iter()
            .cycle()
            .take(150)
            .collect();
        let rows = again.rows(&texts).unwrap();
        assert_eq!(rows.n_rows(), 150);
        for row in 0..150 {
            assert_eq!(rows.row(row), pieces.ids(texts.get(row)).unwrap());
        }
        assert_eq!(rows.select_rows(&[2, 1]).row(0), rows.row(149));
    }

    #[test]
    fn files_without_a_valid_tokeniser_are_errors() {
        for file in [
            TokenizerSource::Json("{}".into()),
            TokenizerSource::Vocabulary("red\n".into(), true),
            TokenizerSource::Missing,
        ] {
            assert!(WordPieces::new(&file, 8).is_err(), "{file:?}");
        }
    }
}
