//! M: the best clusters of every training point, from which the edges of stage 2 are chosen.

use std::ops::Range;

use rayon::prelude::*;

use super::adjacency::Matches;
use super::stage::Stage;
use crate::encoder::TrainableEncoder;
use crate::error::Result;
use crate::index::{ShortlistOptions, Shortlister};
use crate::matrix::Matrix;
use crate::model::Model;

/// Points per task.
const CHUNK: usize = 64;

impl Stage<'_> {
    /// Points that this process matches.
    pub(super) fn n_matched(&self) -> usize {
        self.blocks().map(|block| block.len()).sum()
    }

    fn blocks(&self) -> impl Iterator<Item = Range<usize>> + use<> {
        self.data.communicator.own_blocks(self.rows.len(), CHUNK)
    }

    /// The best clusters of every training point, without dropout and without parents. `advance` gets the number of
    /// points that were matched since the last call.
    pub(super) fn matches(
        &self,
        model: &Model,
        encoder: &dyn TrainableEncoder,
        advance: &mut dyn FnMut(usize) -> Result<()>,
    ) -> Result<Matches> {
        let options = ShortlistOptions {
            shortlist_size: 0,
            ..self.shortlist_options(f32::INFINITY)
        };
        let n_clusters = model.clusters.n_clusters();
        // No path is followed, so it needs no room for labels.
        let searcher = || Shortlister::new(0);
        let matches_of = |searcher: &mut Shortlister, rows: &[u32]| -> Matches {
            let mut embeddings = Matrix::default();
            let encoder = encoder.as_encoder();
            encoder.encode(self.data.points, rows, &mut embeddings);
            let mut probabilities = vec![0.0; rows.len() * n_clusters];
            let clusters = &model.clusters;
            clusters.probabilities(embeddings.values(), &mut probabilities);
            let best = probabilities.chunks_exact(n_clusters).map(|probabilities| {
                searcher.search(clusters, &model.adjacency, probabilities, &options);
                let selected = searcher.selected.iter();
                selected.map(|s| (s.cluster, s.score)).collect()
            });
            best.collect()
        };
        let mut matches = Vec::with_capacity(self.n_matched());
        for block in self.blocks() {
            let rows = &self.rows[block];
            let chunks = rows.par_chunks(CHUNK).map_init(searcher, matches_of);
            matches.par_extend(chunks.flatten_iter());
            advance(rows.len())?;
        }
        Ok(self.data.communicator.gather_lists(matches))
    }
}
