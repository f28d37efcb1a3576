//! The encoder that training starts from.

use std::sync::Arc;

use super::{BagEncoder, Outside, Standard, TrainableEncoder, TransformerEncoder};
use crate::config::Plan;

/// The origin of an encoder.
#[derive(Clone, Debug, Default)]
pub(crate) enum EncoderOrigin {
    /// A bag of words with random embeddings.
    #[default]
    Bag,
    /// A bag of words that begins with vectors from outside.
    Vectors(Arc<Outside>),
    /// A bag of words beside embeddings of texts from outside.
    Texts(Arc<Standard>),
    /// A pretrained transformer.
    Pretrained(Box<TransformerEncoder>),
}

impl EncoderOrigin {
    /// A new encoder, not yet trained on the data; the same at each call.
    pub(crate) fn encoder(&self, plan: &Plan) -> Box<dyn TrainableEncoder> {
        let bag = || {
            let config = plan.config();
            let n_words = plan.counts().n_features;
            BagEncoder::new(n_words, &config.encoder, config.train.seed)
        };
        match self {
            EncoderOrigin::Bag => Box::new(bag()),
            EncoderOrigin::Vectors(outside) => {
                let seed = plan.config().train.seed;
                Box::new(bag().with_outside(Arc::clone(outside), seed))
            }
            EncoderOrigin::Texts(standard) => {
                let seed = plan.config().train.seed;
                Box::new(bag().with_embeddings(Arc::clone(standard), seed))
            }
            EncoderOrigin::Pretrained(encoder) => encoder.clone(),
        }
    }
}
