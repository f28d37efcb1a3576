//! The texts of a batch in shards: tokens of all texts concatenated, without padding.
//!
//! Texts are assigned longest first, each to the shard with the fewest tokens, so that shards take equally long.
//! The number of shards depends on the tokens of the batch alone: results are the same on any number of threads.

use super::shape::Shape;

/// Approximate tokens per shard: enough for matrix products to be fast.
const SHARD_TOKENS: usize = 512;
/// Batches with more tokens have at least two shards.
const ONE_SHARD_TOKENS: usize = 96;

/// Texts that one thread processes, and its buffers.
#[derive(Clone, Debug, Default)]
pub(super) struct Shard {
    /// The texts' places in the batch.
    pub(super) places: Vec<usize>,
    /// First token of each text, and the end of the last text.
    pub(super) starts: Vec<usize>,
    pub(super) tokens: Vec<u32>,
    /// x_0 … x_L, or the last two of them. T×h each
    pub(super) states: Vec<Vec<f32>>,
    pub(super) embedding: NormTape,
    pub(super) tapes: Vec<Tape>,
    pub(super) deltas: Deltas,
    pub(super) sums: GradientSums,
}

/// Values of a layer's forward pass that its backward pass needs. T tokens, h hidden, A heads
#[derive(Clone, Debug, Default)]
pub(super) struct Tape {
    /// Queries, keys and values, T×3h.
    pub(super) qkv: Vec<f32>,
    /// Attention weights before dropout, A×n×n per text.
    pub(super) weights: Vec<f32>,
    /// Attention weights of one head after dropout.
    pub(super) dropped: Vec<f32>,
    /// T×h
    pub(super) context: Vec<f32>,
    pub(super) attention: NormTape,
    /// The output of the attention block, T×h.
    pub(super) middle: Vec<f32>,
    /// GELU's derivative, T×inner.
    pub(super) slope: Vec<f32>,
    /// GELU's value, T×inner.
    pub(super) inner: Vec<f32>,
    pub(super) output: NormTape,
}

/// Values of a layer norm that its backward pass needs.
#[derive(Clone, Debug, Default)]
pub(super) struct NormTape {
    /// x̂, T×h.
    pub(super) normed: Vec<f32>,
    /// 1/√(variance + ε), T.
    pub(super) inverse: Vec<f32>,
}

/// Derivatives of the loss with respect to a layer's values; each layer overwrites those of the layer above.
#[derive(Clone, Debug, Default)]
pub(super) struct Deltas {
    /// With respect to the layer's output, then its input, T×h.
    pub(super) state: Vec<f32>,
    pub(super) qkv: Vec<f32>,
    pub(super) context: Vec<f32>,
    pub(super) attention: Vec<f32>,
    pub(super) inner: Vec<f32>,
    pub(super) outer: Vec<f32>,
    /// With respect to one head's attention weights.
    pub(super) weights: Vec<f32>,
}

/// A shard's share of the gradients of biases and norms of a layer.
#[derive(Clone, Debug, Default)]
pub(super) struct GradientSums {
    pub(super) qkv: Vec<f32>,
    pub(super) attention: Vec<f32>,
    pub(super) attention_gamma: Vec<f32>,
    pub(super) attention_beta: Vec<f32>,
    pub(super) inner: Vec<f32>,
    pub(super) outer: Vec<f32>,
    pub(super) output_gamma: Vec<f32>,
    pub(super) output_beta: Vec<f32>,
}

impl Shard {
    /// Number of tokens, T.
    pub(super) fn n_tokens(&self) -> usize {
        self.tokens.len()
    }

    /// Each text's place in the batch and the range of its tokens.
    pub(super) fn texts(&self) -> impl Iterator<Item = (usize, std::ops::Range<usize>)> {
        let ranges = self.starts.windows(2).map(|ends| ends[0]..ends[1]);
        self.places.iter().copied().zip(ranges)
    }

    /// Resizes states and tapes for the tokens.
    pub(super) fn resize(&mut self, shape: &Shape, n_states: usize, n_tapes: usize) {
        let n = self.n_tokens();
        let n_pairs: usize = self
            .starts
            .windows(2)
            .map(|ends| (ends[1] - ends[0]).pow(2))
            .sum();
        let n_weights = shape.n_heads * n_pairs;
        let (h, inner) = (shape.hidden, shape.inner);
        self.states
            .resize_with(n_states.max(self.states.len()), Vec::new);
        self.states[..n_states]
            .iter_mut()
            .for_each(|state| state.resize(n * h, 0.0));
        self.embedding.resize(n, h);
        self.tapes
            .resize_with(n_tapes.max(self.tapes.len()), Tape::default);
        for tape in &mut self.tapes[..n_tapes] {
            tape.qkv.resize(3 * n * h, 0.0);
            tape.weights.resize(n_weights, 0.0);
            tape.context.resize(n * h, 0.0);
            tape.attention.resize(n, h);
            tape.middle.resize(n * h, 0.0);
            tape.slope.resize(n * inner, 0.0);
            tape.inner.resize(n * inner, 0.0);
            tape.output.resize(n, h);
        }
    }

    /// Resizes the deltas for a backward pass.
    pub(super) fn resize_deltas(&mut self, shape: &Shape) {
        let (n, h) = (self.n_tokens(), shape.hidden);
        let deltas = &mut self.deltas;
        deltas.state.resize(n * h, 0.0);
        deltas.qkv.resize(3 * n * h, 0.0);
        deltas.context.resize(n * h, 0.0);
        deltas.attention.resize(n * h, 0.0);
        deltas.inner.resize(n * shape.inner, 0.0);
        deltas.outer.resize(n * h, 0.0);
    }
}

impl NormTape {
    fn resize(&mut self, n_tokens: usize, hidden: usize) {
        self.normed.resize(n_tokens * hidden, 0.0);
        self.inverse.resize(n_tokens, 0.0);
    }
}

impl GradientSums {
    /// Resets all sums to zero.
    pub(super) fn clear(&mut self, shape: &Shape) {
        let (h, inner) = (shape.hidden, shape.inner);
        for (sums, n_values) in [
            (&mut self.qkv, 3 * h),
            (&mut self.attention, h),
            (&mut self.attention_gamma, h),
            (&mut self.attention_beta, h),
            (&mut self.inner, inner),
            (&mut self.outer, h),
            (&mut self.output_gamma, h),
            (&mut self.output_beta, h),
        ] {
            sums.clear();
            sums.resize(n_values, 0.0);
        }
    }
}

/// Assigns texts to shards, which keep their buffers; returns the number of shards in use.
pub(super) fn pack<'a>(
    texts: impl ExactSizeIterator<Item = &'a [u32]> + Clone,
    shards: &mut Vec<Shard>,
) -> usize {
    let n_tokens: usize = texts.clone().map(<[u32]>::len).sum();
    let n_shards = match n_tokens {
        0..=ONE_SHARD_TOKENS => 1,
        _ => n_tokens.div_ceil(SHARD_TOKENS).next_multiple_of(2),
    }
    .min(texts.len().max(1));
    shards.resize_with(n_shards.max(shards.len()), Shard::default);
    let used = &mut shards[..n_shards];
    for shard in &mut *used {
        shard.places.clear();
        shard.tokens.clear();
        shard.starts.clear();
        shard.starts.push(0);
    }
    let mut longest_first: Vec<(usize, &[u32])> = texts.enumerate().collect();
    longest_first.sort_by_key(|(place, text)| (std::cmp::Reverse(text.len()), *place));
    for (place, text) in longest_first {
        let emptiest = used.iter_mut().min_by_key(|shard| shard.tokens.len());
        let shard = emptiest.expect("there is at least one shard");
        shard.places.push(place);
        shard.tokens.extend_from_slice(text);
        shard.starts.push(shard.tokens.len());
    }
    n_shards
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_text_is_in_one_shard_and_shards_are_alike() {
        let texts: Vec<Vec<u32>> = (0..90).map(|n| vec![n; 1 + n as usize % 40]).collect();
        let mut shards = Vec::new();
        let n_shards = pack(texts.iter().map(Vec::as_slice), &mut shards);
        assert_eq!(n_shards, 4);
        let mut seen = vec![false; texts.len()];
        for shard in &shards {
            for (place, range) in shard.texts() {
                assert_eq!(shard.tokens[range], texts[place]);
                assert!(!std::mem::replace(&mut seen[place], true));
            }
        }
        assert!(seen.iter().all(|&seen| seen));
        let sizes: Vec<usize> = shards.iter().map(Shard::n_tokens).collect();
        assert!(
            sizes.iter().max().unwrap() - sizes.iter().min().unwrap() <= 2,
            "{sizes:?}"
        );
    }

    #[test]
    fn a_smaller_batch_uses_fewer_of_the_same_shards() {
        let mut shards = Vec::new();
        let long = vec![7; 300];
        assert_eq!(pack([&long[..]; 3].into_iter(), &mut shards), 2);
        assert_eq!(pack([&long[..4]].into_iter(), &mut shards), 1);
        assert_eq!((shards.len(), shards[0].n_tokens()), (2, 4));
        assert_eq!(pack([].into_iter(), &mut shards), 1);
        assert_eq!(shards[0].n_tokens(), 0);
    }
}
