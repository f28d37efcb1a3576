//! The encoder that training starts from.

use super::{BagEncoder, TrainableEncoder, TransformerEncoder};
use crate::config::Plan;

/// The origin of an encoder.
#[derive(Clone, Debug, Default)]
pub(crate) enum EncoderOrigin {
    /// A bag of words with random embeddings.
    #[default]
    Bag,
    /// A pretrained transformer.
    Pretrained(Box<TransformerEncoder>),
}

impl EncoderOrigin {
    /// A new encoder, not yet trained on the data; the same at each call.
    pub(crate) fn encoder(&self, plan: &Plan) -> Box<dyn TrainableEncoder> {
        match self {
            EncoderOrigin::Bag => {
                let config = plan.config();
                let n_words = plan.counts().n_features;
                let seed = config.train.seed;
                Box::new(BagEncoder::new(n_words, &config.encoder, seed))
            }
            EncoderOrigin::Pretrained(encoder) => encoder.clone(),
        }
    }
}
