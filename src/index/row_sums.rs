//! The softmax of a row of A and its gradient, range by range of labels.
//!
//! The sums of a row are taken over its edges into each range of labels, and then over the ranges in their order: they
//! have the same bits wherever the edges into a range are held.

use std::ops::Range;

use crate::communicator::Ranges;
use crate::ids::LabelRow;
use crate::kernels::Kernels;

/// The two numbers of a row's softmax, e^(a − highest) / sum.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Norm {
    pub(crate) highest: f32,
    pub(crate) sum: f32,
}

/// Positions of a row's edges into each of these ranges of labels. labels: the row's edges, all into these ranges
pub(crate) fn segments(
    labels: &[LabelRow],
    n_labels: usize,
    ranges: Range<usize>,
) -> impl Iterator<Item = Range<usize>> {
    let mut start = 0;
    ranges.map(move |range| {
        let end_label = Ranges::of(n_labels).get(range).end;
        let n = labels[start..].partition_point(|label| label.idx() < end_label);
        start += n;
        start - n..start
    })
}

/// The highest weight of a row; −∞ if it has none.
pub(crate) fn highest(weights: &[f32]) -> f32 {
    weights.iter().copied().fold(f32::NEG_INFINITY, f32::max)
}

/// e^(a − highest) of a row's weights, and their sum over each segment.
pub(crate) fn exponentials(
    weights: &[f32],
    highest: f32,
    segments: impl Iterator<Item = Range<usize>>,
    out: &mut [f32],
) -> impl Iterator<Item = f32> {
    out.copy_from_slice(weights);
    segments.map(move |segment| {
        if segment.is_empty() {
            return 0.0;
        }
        Kernels::detect().exp_sum(&mut out[segment], highest)
    })
}

/// From e^(a − highest) and their sum over the row to ŝ = min(1, β·softmax); returns the best of the whole row.
pub(crate) fn edge_scores(beta: f32, sum: f32, scores: &mut [f32]) -> f32 {
    if sum == 0.0 {
        return 0.0;
    }
    let scale = beta / sum;
    scores
        .iter_mut()
        .for_each(|score| *score = (*score * scale).min(1.0));
    // The highest weight has e^0 = 1.
    scale.min(1.0)
}

/// Sum of g = ∂L/∂log ŝ over each segment of a row; saturated edges (ŝ = 1) pass nothing on, and their g becomes 0.
pub(crate) fn passed_gradients(
    scores: &[f32],
    gradient: &mut [f32],
    segments: impl Iterator<Item = Range<usize>>,
) -> impl Iterator<Item = f32> {
    for (g, &score) in gradient.iter_mut().zip(scores) {
        if 1.0 <= score {
            *g = 0.0;
        }
    }
    segments.map(move |segment| gradient[segment].iter().fold(0.0, |sum, g| sum + g))
}

/// Gradient of the weights of one row, in place.
///
/// On entry `gradient` holds what each edge passes on of g = ∂L/∂log ŝ, and `total` is its sum over the row. Where an
/// edge is not saturated log ŝ = log β + log softmax(a), so ∂L/∂a_ℓ = g_ℓ − softmax_ℓ·Σ g over unsaturated edges.
pub(crate) fn edge_gradient(
    weights: &[f32],
    norm: Norm,
    total: f32,
    gradient: &mut [f32],
    softmax: &mut Vec<f32>,
) {
    softmax.clear();
    softmax.extend_from_slice(weights);
    Kernels::detect().exp_sum(softmax, norm.highest);
    let scale = total / norm.sum;
    for (g, s) in gradient.iter_mut().zip(softmax.iter()) {
        *g -= scale * s;
    }
}
