//! The exact k nearest points by cosine over the listed words.

use super::Neighbours;
use crate::error::{Error, Result};

/// A training point near a text.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Neighbour {
    /// The training point.
    pub(crate) point: u32,
    /// The cosine of their words.
    pub(crate) cosine: f32,
}

/// Buffers of the search; one per thread.
#[derive(Clone, Debug, Default)]
pub(crate) struct NeighbourScratch {
    /// The cosine with each point so far; all zero between calls.
    cosines: Vec<f32>,
    /// The points met so far.
    met: Vec<u32>,
    pub(super) found: Vec<Neighbour>,
    pub(super) labels: Vec<(u32, f32)>,
}

impl Neighbours {
    /// The `k` points nearest to a row of words, best first, ties to the lower point. Words whose weights are not
    /// positive do not count.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if a posting names a point that is not there.
    pub(crate) fn nearest<'s>(
        &self,
        (words, values): (&[u32], &[f32]),
        k: usize,
        scratch: &'s mut NeighbourScratch,
    ) -> Result<&'s [Neighbour]> {
        let NeighbourScratch {
            cosines,
            met,
            found,
            ..
        } = scratch;
        cosines.resize(self.labels.n_rows(), 0.0);
        met.clear();
        let mut is_damaged = false;
        for (&word, &value) in words.iter().zip(values) {
            let Some(&[start, end]) = self.starts.get(word as usize..word as usize + 2) else {
                continue;
            };
            let postings = start as usize..end as usize;
            let weights = &self.weights.values()[postings.clone()];
            for (&point, &weight) in self.points.values()[postings].iter().zip(weights) {
                let Some(cosine) = cosines.get_mut(point as usize) else {
                    is_damaged = true;
                    continue;
                };
                let product = value * weight;
                if 0.0 < product {
                    if *cosine == 0.0 {
                        met.push(point);
                    }
                    *cosine += product;
                }
            }
        }
        best(k, cosines, met, found);
        met.iter().for_each(|&point| cosines[point as usize] = 0.0);
        if is_damaged {
            let problem = "the model's neighbours name a point that is not there: it is damaged";
            return Err(Error::CannotPredict(problem.into()));
        }
        Ok(found)
    }
}

/// Writes the `k` best of the points met to `found`.
fn best(k: usize, cosines: &[f32], met: &[u32], found: &mut Vec<Neighbour>) {
    found.clear();
    if k == 0 {
        return;
    }
    let better =
        |a: &Neighbour, b: &Neighbour| b.cosine.total_cmp(&a.cosine).then(a.point.cmp(&b.point));
    // Twice k are collected before the worse half is dropped; then only better ones are let in.
    let mut least = 0.0;
    for &point in met {
        let cosine = cosines[point as usize];
        if cosine < least {
            continue;
        }
        found.push(Neighbour { point, cosine });
        if 2 * k <= found.len() {
            found.select_nth_unstable_by(k - 1, better);
            found.truncate(k);
            least = found[k - 1].cosine;
        }
    }
    found.sort_unstable_by(better);
    found.truncate(k);
}
