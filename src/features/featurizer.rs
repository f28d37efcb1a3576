//! From texts, or from features that someone else made, to points.
//!
//! A [`Featurizer`] is fitted once, on the training data. It holds the vocabulary of words and of the pairs of words that
//! the ranker reads, the synonyms that are added to texts and, where the encoder reads tokens, the word pieces. Ready-made
//! features need no vocabulary: their rows are scaled to length 1. Texts beside them are for a transformer alone.

use std::borrow::Cow;

use super::unseen::{UnseenScratch, UnseenWords};
use super::vocabulary::{TermRows, TermScratch, Vocabulary};
use super::{Expansion, Pairs, PointSet, Vectorizer, WordParts, WordPieces};
use crate::config::{Config, DataCounts, Recipe};
use crate::data::{Dataset, Synonyms, TextEmbeddings, Texts};
use crate::error::{Error, Result};
use crate::matrix::CsrMatrix;

/// Most parts of words that a model keeps.
const MAX_PARTS: usize = 1 << 16;

/// Turns data into points.
#[derive(Clone, Debug)]
pub(crate) struct Featurizer {
    expansion: Option<Expansion>,
    vocabulary: Option<Vocabulary>,
    pieces: Option<WordPieces>,
    parts: Option<WordParts>,
    n_features: usize,
    /// Values of the embedding that is given with every text.
    embedding_dim: usize,
}

/// Buffers of one thread.
#[derive(Default)]
pub(crate) struct FeatureScratch {
    terms: TermScratch,
    words: Vec<(u32, f32)>,
    pairs: Vec<(u32, f32)>,
    unseen: UnseenScratch,
}

impl Featurizer {
    /// Learns the vocabulary of a data set, and its points; `pieces` are those of a transformer.
    ///
    /// # Errors
    /// [`Error::CannotTrain`] if a transformer is to read data without texts; errors of [`Vectorizer::fit`].
    pub(crate) fn fit(
        data: &Dataset,
        config: &Config,
        pieces: Option<WordPieces>,
    ) -> Result<(Self, PointSet)> {
        let expansion = data.synonyms().cloned().map(Expansion::new);
        let takes_given = pieces.is_some() && Recipe::of(config).given_features;
        let given = data
            .features()
            .filter(|_| takes_given || data.texts().is_none());
        let (vocabulary, rows) = match (given, data.texts()) {
            (None, Some(texts)) => {
                let texts = expanded(expansion.as_ref(), texts);
                let (vocabulary, rows) = Vocabulary::fit_transform(&texts, config)?;
                (Some(vocabulary), rows)
            }
            (Some(features), _) => {
                let words = features.with_unit_rows();
                (None, TermRows { words, pairs: None })
            }
            (None, None) => unreachable!("a data set has texts or features"),
        };
        let tokens = match (&pieces, data.texts()) {
            (None, _) => None,
            (Some(pieces), Some(texts)) => Some(pieces.rows(texts)?),
            (Some(_), None) => {
                let problem = "a transformer reads texts, the data has none";
                return Err(Error::CannotTrain(problem.into()));
            }
        };
        let featurizer = Featurizer {
            n_features: rows.words.n_cols(),
            expansion,
            parts: parts_of(data)?,
            embedding_dim: data.embeddings().map_or(0, TextEmbeddings::dim),
            vocabulary,
            pieces,
        };
        let points = PointSet {
            unseen: data
                .texts()
                .and_then(|texts| featurizer.unseen(texts, &rows.words)),
            embedded: data.embeddings().map(|all| all.matrix().clone()),
            tokens,
            pairs: rows.pairs,
            ..PointSet::of_features(rows.words)
        };
        Ok((featurizer, points))
    }

    /// The featurizer that a model file holds.
    pub(crate) fn from_parts(
        expansion: Option<Expansion>,
        vocabulary: Option<Vocabulary>,
        pieces: Option<WordPieces>,
        parts: Option<WordParts>,
        counts: DataCounts,
    ) -> Self {
        Featurizer {
            expansion,
            vocabulary,
            pieces,
            parts,
            n_features: counts.n_features,
            embedding_dim: counts.embedding_dim,
        }
    }

    /// The points of a data set.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if the data lacks what the featurizer was fitted on.
    pub(crate) fn points(&self, data: &Dataset) -> Result<PointSet> {
        let texts = || {
            let problem = "the model was trained on texts, the data has none";
            let texts = data.texts();
            texts.ok_or_else(|| Error::CannotPredict(problem.into()))
        };
        let points = match (&self.vocabulary, data.features()) {
            (Some(_), _) => self.words_of_texts(texts()?)?,
            (None, Some(features)) => PointSet {
                tokens: match &self.pieces {
                    Some(pieces) => Some(pieces.rows(texts()?)?),
                    None => None,
                },
                ..self.rows_of_features(features)?
            },
            (None, None) => return Err(self.needs_features()),
        };
        self.with_embeddings(points, data.embeddings())
    }

    /// Points with the embeddings that were given for their texts, if the model was trained with such.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if they are not what it was trained with.
    pub(crate) fn with_embeddings(
        &self,
        points: PointSet,
        embeddings: Option<&TextEmbeddings>,
    ) -> Result<PointSet> {
        let expected = self.embedding_dim;
        let problem = match embeddings {
            None if expected == 0 => return Ok(points),
            Some(all) if all.dim() == expected && all.len() == points.len() => {
                return Ok(PointSet {
                    embedded: Some(all.matrix().clone()),
                    ..points
                });
            }
            None => format!(
                "the model was trained with embeddings of texts of {expected} values: give them with the texts"
            ),
            Some(_) if expected == 0 => {
                "embeddings of texts were given, the model was trained without".into()
            }
            Some(all) if all.dim() != expected => {
                let found = all.dim();
                format!(
                    "the embeddings of texts have {found} values, the model was trained with {expected}"
                )
            }
            Some(all) => format!(
                "{} embeddings were given for {} texts",
                all.len(),
                points.len()
            ),
        };
        Err(Error::CannotPredict(problem))
    }

    /// The points of texts.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if the featurizer was fitted on features, or on embeddings besides.
    pub(crate) fn points_of_texts(&self, texts: &Texts) -> Result<PointSet> {
        self.with_embeddings(self.words_of_texts(texts)?, None)
    }

    /// The points of texts, without embeddings.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if the featurizer was fitted on features.
    pub(crate) fn words_of_texts(&self, texts: &Texts) -> Result<PointSet> {
        let vocabulary = self
            .vocabulary
            .as_ref()
            .ok_or_else(|| self.needs_features())?;
        let rows = vocabulary.transform(&expanded(self.expansion.as_ref(), texts));
        let pieces = self.pieces.as_ref();
        Ok(PointSet {
            tokens: pieces.map(|pieces| pieces.rows(texts)).transpose()?,
            unseen: self.unseen(texts, &rows.words),
            pairs: rows.pairs,
            ..PointSet::of_features(rows.words)
        })
    }

    /// The points of ready-made features.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if the featurizer was fitted on texts, on fewer columns, or on embeddings besides.
    pub(crate) fn points_of_features(&self, features: &CsrMatrix) -> Result<PointSet> {
        if self.vocabulary.is_some() {
            return Err(Error::CannotPredict(
                "the model was trained on texts, not on features: give it texts".into(),
            ));
        }
        if self.pieces.is_some() {
            return Err(self.needs_features());
        }
        self.with_embeddings(self.rows_of_features(features)?, None)
    }

    fn rows_of_features(&self, features: &CsrMatrix) -> Result<PointSet> {
        let (found, expected) = (features.n_cols(), self.n_features);
        if found > expected {
            return Err(Error::CannotPredict(format!(
                "the data has {found} feature columns, the model was trained on {expected}"
            )));
        }
        let features = features.with_n_cols(expected)?;
        Ok(PointSet::of_features(features.with_unit_rows()))
    }

    /// The point of one text.
    ///
    /// # Errors
    /// As [`Featurizer::points_of_texts`].
    pub(crate) fn point(&self, text: &str, scratch: &mut FeatureScratch) -> Result<PointSet> {
        let vocabulary = self
            .vocabulary
            .as_ref()
            .ok_or_else(|| self.needs_features())?;
        let FeatureScratch {
            terms,
            words,
            pairs,
            unseen,
        } = scratch;
        let matrix = |row: &[(u32, f32)], n_columns| {
            let (columns, values) = row.iter().copied().unzip();
            CsrMatrix::new(vec![0, row.len()], columns, values, n_columns)
        };
        let expansion = self.expansion.as_ref();
        let expanded = expansion.map_or(text.into(), |expansion| expansion.expand(text));
        vocabulary.transform_one(&expanded, terms, words, pairs);
        let features = matrix(words, self.n_features)?;
        let pairs = match vocabulary.pairs() {
            Some(known) => Some(matrix(pairs, known.len())?),
            None => None,
        };
        let unseen = match &self.parts {
            Some(parts) => {
                let mut row = Vec::new();
                let known = (features.indices(), features.values());
                UnseenWords::new(vocabulary.words(), parts).row(&expanded, known, unseen, &mut row);
                Some(matrix(&row, parts.len())?)
            }
            None => None,
        };
        let pieces = self.pieces.as_ref();
        let ids = pieces.map(|pieces| pieces.ids(text)).transpose()?;
        let point = PointSet {
            unseen,
            tokens: ids.map(|ids| [ids].into_iter().collect()),
            pairs,
            ..PointSet::of_features(features)
        };
        self.with_embeddings(point, None)
    }

    /// The parts of words of texts that are not in the vocabulary, whose rows are given; none if it has no parts.
    fn unseen(&self, texts: &Texts, known: &CsrMatrix) -> Option<CsrMatrix> {
        let (vocabulary, parts) = self.vocabulary.as_ref().zip(self.parts.as_ref())?;
        let texts = expanded(self.expansion.as_ref(), texts);
        Some(UnseenWords::new(vocabulary.words(), parts).rows(&texts, known))
    }

    /// The parts of words that are not in the vocabulary, if outside vectors gave any.
    pub(crate) fn parts(&self) -> Option<&WordParts> {
        self.parts.as_ref()
    }

    /// Number of these parts.
    pub(crate) fn n_parts(&self) -> usize {
        self.parts().map_or(0, WordParts::len)
    }

    /// The synonyms that it adds to texts, if there are any.
    pub(crate) fn synonyms(&self) -> Option<&Synonyms> {
        self.expansion.as_ref().map(Expansion::synonyms)
    }

    /// Values of the embedding that is given with every text; 0 if none is.
    pub(crate) fn embedding_dim(&self) -> usize {
        self.embedding_dim
    }

    fn needs_features(&self) -> Error {
        let problem = match self.pieces {
            None => "the model was trained on sparse features, not on texts: give it such features",
            Some(_) => {
                "the model was trained on texts with sparse features: give it data that has both"
            }
        };
        Error::CannotPredict(problem.into())
    }

    /// Number of feature columns.
    pub(crate) fn n_features(&self) -> usize {
        self.n_features
    }

    /// Words and their weights; none if it was fitted on features.
    pub(crate) fn words(&self) -> Option<&Vectorizer> {
        self.vocabulary.as_ref().map(Vocabulary::words)
    }

    /// Pairs of words and their weights, if the ranker reads them.
    pub(crate) fn pairs(&self) -> Option<&Pairs> {
        self.vocabulary.as_ref()?.pairs()
    }

    /// Number of pairs.
    pub(crate) fn n_pairs(&self) -> usize {
        self.pairs().map_or(0, Pairs::len)
    }

    /// The words of a column, or of one of the pairs, which come after the columns.
    pub(crate) fn name(&self, column: u32) -> String {
        match &self.vocabulary {
            Some(vocabulary) => vocabulary.name(column as usize),
            None => format!("feature {column}"),
        }
    }

    /// The tokeniser of a transformer, if there is one.
    pub(crate) fn pieces(&self) -> Option<&WordPieces> {
        self.pieces.as_ref()
    }
}

/// The texts with the words that synonyms add; a transformer reads them as they are.
fn expanded<'t>(expansion: Option<&Expansion>, texts: &'t Texts) -> Cow<'t, Texts> {
    match expansion {
        Some(expansion) => Cow::Owned(expansion.expand_all(texts)),
        None => Cow::Borrowed(texts),
    }
}

/// The parts of words that outside vectors know: the first of them, as a model keeps them all.
fn parts_of(data: &Dataset) -> Result<Option<WordParts>> {
    let Some(vectors) = data.word_vectors() else {
        return Ok(None);
    };
    if data.embeddings().is_some() {
        let problem = "it has vectors of words and embeddings of texts: give one of them";
        return Err(Error::CannotTrain(problem.into()));
    }
    if data.texts().is_none() {
        let problem = "vectors of words are for texts, the data has none";
        return Err(Error::CannotTrain(problem.into()));
    }
    WordParts::new(vectors.entries().iter().take(MAX_PARTS).collect()).map(Some)
}
