//! What the neighbours of a text say about its labels.

use super::{N_NEIGHBOURS, NeighbourScratch, Neighbours};
use crate::error::Result;
use crate::ids::LabelId;

/// What the neighbours say about a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vote {
    /// The label.
    pub(crate) label: LabelId,
    /// Sum of the squared cosines of the neighbours that have it.
    pub(crate) score: f32,
    /// Cosine of the nearest of them.
    pub(crate) nearest: f32,
}

impl Neighbours {
    /// The votes of a text's nearest points, best first, ties to the lower label.
    ///
    /// # Errors
    /// As [`Neighbours::nearest`].
    pub(crate) fn votes(
        &self,
        bow: (&[u32], &[f32]),
        scratch: &mut NeighbourScratch,
        votes: &mut Vec<Vote>,
    ) -> Result<()> {
        self.nearest(bow, N_NEIGHBOURS, scratch)?;
        let NeighbourScratch { found, labels, .. } = scratch;
        labels.clear();
        for neighbour in found.iter() {
            let of_point = self.labels.row(neighbour.point as usize).0;
            labels.extend(of_point.iter().map(|&label| (label, neighbour.cosine)));
        }
        // Stable, so that the cosines of a label still descend: the sum has one order.
        labels.sort_by_key(|&(label, _)| label);
        votes.clear();
        votes.extend(labels.chunk_by(|a, b| a.0 == b.0).map(|of_label| Vote {
            label: LabelId(of_label[0].0),
            score: of_label.iter().map(|(_, cosine)| cosine * cosine).sum(),
            nearest: of_label[0].1,
        }));
        votes.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
        Ok(())
    }
}
