//! The model: φ, the search index and the label classifiers.
//!
//! There is one `Model`; the stages differ in its adjacency. It does not know that it can be trained. Labels are
//! numbered in cluster order inside the model, so that shortlisted rows of W_L are neighbours in memory;
//! [`Numbering`] leads back to the labels of the data set.

mod grow;
mod numbering;
mod stage1;

pub(crate) use grow::{NewLabel, grown};
pub(crate) use numbering::Numbering;
pub(crate) use stage1::{Stage1, Stage1Model};

use crate::classifiers::{CoarseScratch, LabelClassifiers};
use crate::ids::{LabelId, Scored};
use crate::index::{Adjacency, ClusterClassifiers, Selection, ShortlistOptions, Shortlister};
use crate::kernels::Kernels;
use crate::matrix::top_k;

/// Search index and label classifiers: from an embedding to ranked labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Model {
    /// W_C.
    pub clusters: ClusterClassifiers,
    /// A.
    pub adjacency: Adjacency,
    /// W_L.
    pub classifiers: LabelClassifiers,
    /// From rows of W_L to labels of the data set.
    pub numbering: Numbering,
}

/// Labels scored in the first round in addition to the `k` wanted; the number doubles in each further round.
const FIRST_BLOCK: usize = 32;
/// The same, if ŷ is the only bound of a label.
const FIRST_BLIND_BLOCK: usize = 256;
/// Prefetch distance, in rows: they are scattered in memory.
const AHEAD: usize = 3;
/// Upper bound of the relative error of a computed σ below the true one.
const SIGMOID_ERROR: f32 = 1e-5;

/// Buffers of [`Model::rank`]; one per thread.
#[derive(Clone, Debug)]
pub(crate) struct RankScratch {
    searcher: Shortlister,
    /// Rows of the shortlisted labels, and an upper bound of each p.
    rows: Vec<u32>,
    bounds: Vec<f32>,
    coarse: CoarseScratch,
    /// Upper bound and position of every shortlisted label, packed; greater is better.
    queue: Vec<u64>,
    best: Vec<Scored>,
    /// Rows of W_L read by the last call.
    pub n_rows_scored: usize,
}

impl RankScratch {
    /// Buffers for a model.
    pub(crate) fn new(model: &Model) -> Self {
        RankScratch {
            searcher: Shortlister::new(model.classifiers.n_labels()),
            rows: Vec::new(),
            bounds: Vec::new(),
            coarse: CoarseScratch::default(),
            queue: Vec::new(),
            best: Vec::new(),
            n_rows_scored: 0,
        }
    }

    /// The clusters that the last call searched, best first.
    pub(crate) fn searched(&self) -> &[Selection] {
        &self.searcher.selected
    }

    /// Labels in the shortlist of the last call.
    pub(crate) fn n_shortlisted(&self) -> usize {
        self.searcher.paths.len()
    }
}

impl Model {
    /// Finds the shortlist of a point. probabilities of its clusters: C
    pub(crate) fn search(
        &self,
        probabilities: &[f32],
        options: &ShortlistOptions,
        scratch: &mut RankScratch,
    ) {
        let (clusters, adjacency) = (&self.clusters, &self.adjacency);
        scratch
            .searcher
            .search(clusters, adjacency, probabilities, options);
    }

    /// The `k` best labels of the shortlist by p = σ(w·φ + b)·ŷ, best first, ties to the lower label.
    ///
    /// p ≤ ŷ, and the coarse rows of W_L give a closer bound. The shortlist is walked by descending bound and left
    /// as soon as no later label can enter the best `k`: the answer is that of scoring all of it. Where a product
    /// that is taken is not finite the answers are those labels alone, with the score NaN.
    /// Labels that are not wanted leave the shortlist. embedding: d
    pub(crate) fn rank<'s>(
        &self,
        embedding: &[f32],
        k: usize,
        is_wanted: impl Fn(LabelId) -> bool,
        scratch: &'s mut RankScratch,
    ) -> &'s [Scored] {
        let paths = &mut scratch.searcher.paths;
        paths.retain(|path| is_wanted(self.numbering.label(path.row)));
        self.bound(embedding, scratch);
        let RankScratch {
            searcher,
            bounds,
            queue,
            best,
            n_rows_scored,
            ..
        } = scratch;
        queue.clear();
        let keys = bounds.iter().zip(0u32..);
        queue.extend(keys.map(|(bound, at)| u64::from(bound.to_bits()) << 32 | u64::from(at)));
        best.clear();
        *n_rows_scored = 0;
        let mut n_nan = 0;
        let mut rest = queue.as_mut_slice();
        let mut block_size = match self.classifiers.bounds() {
            Some(_) => k.saturating_add(FIRST_BLOCK),
            None => k.max(FIRST_BLIND_BLOCK),
        };
        while !rest.is_empty() {
            if rest.len() > block_size {
                rest.select_nth_unstable_by(block_size, |a, b| b.cmp(a));
            }
            let (block, later) = rest.split_at_mut(block_size.min(rest.len()));
            // In the order of the rows: neighbours in memory follow each other.
            block.sort_unstable_by_key(|&key| searcher.paths[key as u32 as usize].row);
            let path_of = |key: &u64| searcher.paths[*key as u32 as usize];
            for (at, key) in block.iter().enumerate() {
                if let Some(next) = block.get(at + AHEAD) {
                    self.classifiers.weights.prefetch(path_of(next).row.idx());
                }
                let path = path_of(key);
                let score = self.classifiers.score(path.row, embedding) * path.score;
                n_nan += usize::from(score.is_nan());
                let label = self.numbering.label(path.row);
                best.push(Scored { label, score });
            }
            *n_rows_scored += block.len();
            rest = later;
            if best.len() >= k && n_nan == 0 {
                top_k(best, k);
                if let Some(worst) = best.last() {
                    rest = at_least(worst.score, rest);
                }
            }
            block_size = block_size.saturating_mul(2);
        }
        if n_nan == 0 {
            top_k(best, k);
        } else {
            best.retain(|scored| scored.score.is_nan());
        }
        best
    }

    /// w·φ + b of a label's classifier, also of one that the index does not find.
    #[inline]
    pub(crate) fn logit(&self, label: LabelId, embedding: &[f32]) -> f32 {
        let row = self.numbering.row(label).idx();
        self.classifiers.weights.dot(row, embedding) + self.classifiers.bias[row]
    }

    /// Computes an upper bound of p for each shortlisted label.
    fn bound(&self, embedding: &[f32], scratch: &mut RankScratch) {
        let RankScratch {
            searcher,
            rows,
            bounds,
            coarse: buffers,
            ..
        } = scratch;
        let paths = &searcher.paths;
        let Some(upper) = self.classifiers.bounds() else {
            bounds.clear();
            bounds.extend(paths.iter().map(|path| path.score));
            return;
        };
        rows.clear();
        rows.extend(paths.iter().map(|path| path.row.0));
        upper.upper(embedding, rows, buffers, bounds);
        for (bound, &row) in bounds.iter_mut().zip(&*rows) {
            *bound = -(*bound + self.classifiers.bias[row as usize]);
        }
        Kernels::detect().exp_sum(bounds, 0.0);
        for (bound, path) in bounds.iter_mut().zip(paths) {
            *bound = path.score * ((1.0 + SIGMOID_ERROR) / (1.0 + *bound)).min(1.0);
        }
    }
}

/// The keys of at least this score, moved to the front.
fn at_least(score: f32, keys: &mut [u64]) -> &mut [u64] {
    let mut n_kept = 0;
    for at in 0..keys.len() {
        if score_of(keys[at]) >= score {
            keys.swap(n_kept, at);
            n_kept += 1;
        }
    }
    &mut keys[..n_kept]
}

fn score_of(key: u64) -> f32 {
    f32::from_bits((key >> 32) as u32)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::config::Precision;
    use crate::ids::{LabelId, LabelRow};
    use crate::index::Edges;
    use crate::matrix::Matrix;
    use crate::random::Random;
    use proptest::prelude::*;

    fn random_model(seed: u64, n_labels: usize, dim: usize) -> Model {
        let mut random = Random::new(seed, "model", 0);
        let n_clusters = 1 + random.below(9);
        let mut table = |n: usize| (0..n * dim).map(|_| random.normal()).collect::<Vec<_>>();
        let (clusters, labels) = (table(n_clusters), table(n_labels));
        let mut lists = vec![Vec::new(); n_clusters];
        for label in 0..n_labels as u32 {
            lists[random.below(n_clusters)].push(LabelRow(label));
        }
        let edges = Edges::from_lists(lists, n_labels).unwrap();
        let weights = (0..n_labels).map(|_| 5.0 * random.f32()).collect();
        let mut order: Vec<LabelId> = (0..n_labels as u32).map(LabelId).collect();
        random.shuffle(&mut order);
        Model {
            clusters: ClusterClassifiers {
                weights: Matrix::from_vec(clusters, n_clusters, dim),
                bias: vec![0.0; n_clusters],
                alpha: 3.0,
            },
            adjacency: Adjacency::learned(edges, weights, 20.0).unwrap(),
            classifiers: LabelClassifiers {
                weights: Matrix::from_vec(labels, n_labels, dim).into(),
                bias: vec![-1.0; n_labels],
                coarse: None,
            },
            numbering: Numbering::new(order).unwrap(),
        }
    }

    proptest! {
        #![proptest_config(ProptestConfig::with_cases(40))]
        #[test]
        fn leaving_the_shortlist_early_changes_nothing(
            seed in 0u64..10_000, k in prop_oneof![0usize..30, 200usize..700], n_labels in 1usize..1500,
            is_coarse: bool, denies: bool,
        ) {
            let mut model = random_model(seed, n_labels, 5);
            if is_coarse {
                let precision = if seed % 2 == 0 { Precision::Full } else { Precision::Eight };
                model.classifiers = model.classifiers.into_inference(precision);
            }
            let mut random = Random::new(seed, "embedding", 0);
            let embedding: Vec<f32> = (0..5).map(|_| random.normal()).collect();
            let options = ShortlistOptions { beam_size: 6, shortlist_size: 1000, score_floor: 0.0, keeps_positives: false };
            let mut scratch = RankScratch::new(&model);
            let is_wanted = |label: &LabelId| !denies || label.0 % 3 != 1;
            let mut probabilities = vec![0.0; model.clusters.n_clusters()];
            model.clusters.probabilities(&embedding, &mut probabilities);
            model.search(&probabilities, &options, &mut scratch);
            let ranked = model.rank(&embedding, k, |label| is_wanted(&label), &mut scratch).to_vec();

            let mut searcher = Shortlister::new(n_labels);
            searcher.search(&model.clusters, &model.adjacency, &probabilities, &options);
            let score = |path: &crate::index::Path| Scored {
                label: model.numbering.label(path.row),
                score: model.classifiers.score(path.row, &embedding) * path.score,
            };
            let mut all: Vec<Scored> = searcher.paths.iter().map(score).collect();
            all.retain(|scored| is_wanted(&scored.label));
            top_k(&mut all, k);
            prop_assert_eq!(ranked, all);
        }
    }
}
