//! Where encoders come from: what a training begins with.

use super::{BagEncoder, TrainableEncoder, TransformerEncoder};
use crate::config::Plan;

/// What an encoder is before it has seen the data.
#[derive(Clone, Debug, Default)]
pub(crate) enum EncoderOrigin {
    /// A bag of words with random embeddings.
    #[default]
    Bag,
    /// A transformer that others have trained.
    Pretrained(Box<TransformerEncoder>),
}

impl EncoderOrigin {
    /// An encoder that has learnt nothing of the data yet; the same at each call.
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
