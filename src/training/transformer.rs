//! A pretrained transformer before training: its files, its tokeniser, and texts that are embedded once.

use crate::config::Config;
use crate::data::Pretrained;
use crate::encoder::{Encoder, EncoderOrigin, TransformerEncoder};
use crate::error::{Error, Result};
use crate::events::{Observer, POINTS_PER_EVENT, Phase, Steps};
use crate::features::{PointSet, WordPieces};
use crate::matrix::Matrix;

/// A pretrained transformer made ready.
pub(super) struct PreparedTransformer {
    /// The start of an encoder.
    pub(super) transformer: TransformerEncoder,
    pub(super) pieces: WordPieces,
    /// Hash of its files.
    pub(super) sha256: String,
}

impl PreparedTransformer {
    /// Values of the points' embeddings, if they are computed once.
    pub(super) fn n_embedded(&self, n_points: usize) -> usize {
        let is_frozen = self.transformer.is_frozen();
        usize::from(is_frozen) * n_points * self.transformer.shape().hidden
    }
}

/// Reads the transformer that the configuration names; the size of its embeddings goes into the configuration.
pub(super) fn prepare(config: &mut Config) -> Result<PreparedTransformer> {
    let Some(directory) = &config.encoder.pretrained else {
        return Err(Error::Config {
            key: "encoder.pretrained".into(),
            found: "nothing".into(),
            expected: "the directory of a transformer, for encoder.kind = \"transformer\"".into(),
        });
    };
    let files = Pretrained::read(directory.as_ref())?;
    let encoder = TransformerEncoder::from_pretrained(&files, config)?;
    let pieces = WordPieces::new(&files.tokenizer, config.encoder.max_len)
        .map_err(|error| files.bad_tokenizer(error.to_string()))?;
    let (n_ids, n_words) = (pieces.n_ids(), encoder.shape().n_words);
    if n_words < n_ids {
        let problem = format!("it gives ids up to {n_ids}, the model has {n_words} words");
        return Err(files.bad_tokenizer(problem));
    }
    config.encoder.dim = encoder.dim();
    Ok(PreparedTransformer {
        transformer: encoder,
        pieces,
        sha256: files.sha256(),
    })
}

/// The points as seen by an encoder that is not trained; none if it is.
pub(super) fn embed_once(
    origin: &EncoderOrigin,
    points: &PointSet,
    observer: &dyn Observer,
) -> Result<Option<Matrix>> {
    let encoder = match origin {
        EncoderOrigin::Bag => return Ok(None),
        // What is known of labels has no embeddings: the mean says nothing.
        EncoderOrigin::Texts(standard) if points.embedded.is_none() => {
            let (mean, n_rows) = (standard.mean(), points.len());
            let values = mean.iter().cycle().take(n_rows * mean.len());
            return Ok(Some(Matrix::from_vec(
                values.copied().collect(),
                n_rows,
                mean.len(),
            )));
        }
        EncoderOrigin::Texts(_) => return Ok(None),
        EncoderOrigin::Vectors(outside) => return Ok(Some(outside.embed(points))),
        EncoderOrigin::Pretrained(encoder) => encoder,
    };
    if !encoder.is_frozen() {
        return Ok(None);
    }
    let n_points = points.len();
    let mut progress = Steps::start(Phase::Embeddings, n_points, observer)?;
    let rows: Vec<u32> = (0..n_points as u32).collect();
    let mut embedded = Vec::new();
    let mut n_cols = 0;
    for rows in rows.chunks(POINTS_PER_EVENT) {
        let some = encoder
            .embed_once(points.points(), rows)
            .unwrap_or_default();
        embedded.extend_from_slice(some.values());
        n_cols = some.n_cols();
        progress.advance(rows.len())?;
    }
    Ok(Some(Matrix::from_vec(embedded, n_points, n_cols)))
}
