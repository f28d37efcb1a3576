//! Dropout inside the transformer.
//!
//! Which values are dropped depends on the seed, the step, the site in the network, the text's place in the batch and
//! the row. It is drawn again in the backward pass instead of being stored, and does not depend on threads.

use crate::encoder::StepSeed;
use crate::random::Random;

/// A place in the network at which values are dropped.
#[derive(Clone, Copy, Debug)]
pub(super) enum Site {
    /// The sum of the embeddings, after its norm.
    Embedding,
    /// Attention weights of a layer.
    Weights(usize),
    /// The output of a layer's attention.
    Attention(usize),
    /// The output of a layer's feed-forward block.
    Output(usize),
}

/// A row of a text.
#[derive(Clone, Copy, Debug)]
pub(super) struct RowKey {
    /// The text's place in the batch.
    pub(super) place: usize,
    /// The position of the token, or the head.
    pub(super) row: usize,
}

/// The dropout of one step.
#[derive(Clone, Copy, Debug)]
pub(super) struct Dropout {
    /// Share of values dropped; 0 drops none.
    pub(super) share: f32,
    pub(super) seed: StepSeed,
}

impl Dropout {
    /// No dropout.
    pub(super) const NONE: Dropout = Dropout {
        share: 0.0,
        seed: StepSeed { seed: 0, step: 0 },
    };

    /// Whether anything is dropped.
    pub(super) fn is_on(&self) -> bool {
        self.share > 0.0
    }

    /// Drops values of a row.
    pub(super) fn apply(&self, site: Site, key: RowKey, values: &mut [f32]) {
        if !self.is_on() {
            return;
        }
        let (purpose, layer) = match site {
            Site::Embedding => ("transformer embedding", 0),
            Site::Weights(layer) => ("transformer weights", layer),
            Site::Attention(layer) => ("transformer attention", layer),
            Site::Output(layer) => ("transformer output", layer),
        };
        let RowKey { place, row } = key;
        let index = self.seed.step << 36 | (layer as u64) << 30 | (place as u64) << 12 | row as u64;
        let mut random = Random::new(self.seed.seed, purpose, index);
        let scale = 1.0 / (1.0 - self.share);
        let threshold = (self.share * 65536.0) as u64;
        // Four draws of 16 bits from each random number.
        for values in values.chunks_mut(4) {
            let mut bits = random.u64();
            for value in values {
                *value *= if bits & 0xFFFF < threshold {
                    0.0
                } else {
                    scale
                };
                bits >>= 16;
            }
        }
    }
}
