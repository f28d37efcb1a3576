//! The ranker of a trained member, and the neighbours of a text (paper, Section 3.5).

use std::collections::BTreeMap;
use std::ops::ControlFlow;

use rayon::prelude::*;

use super::split::LabelledPoints;
use crate::candidates::{Knowledge, Member, ScoreKind, Walk, WalkScratch};
use crate::communicator::Communicator;
use crate::config::{Plan, RankerNegatives, Recipe, paper_n_clusters};
use crate::error::Result;
use crate::events::{Observer, Phase, Steps};
use crate::ids::{ClusterId, LabelId};
use crate::matrix::{CsrMatrix, Matrix};
use crate::neighbours::Neighbours;
use crate::predict::CHUNK;
use crate::ranker::{CandidateLists, ClusterTree, Negatives, Ranker, RankerOptions, RankerProblem};

/// Whether the ranker of a member needs to know what its network makes of the training points.
pub(super) fn ranker_sees_points(member: &Member, recipe: &Recipe) -> bool {
    let has_clusters = member.stage1.edges.is_some();
    let needs_candidates = recipe.ranker_negatives == RankerNegatives::Candidates || !has_clusters;
    recipe.ranker_embedding || needs_candidates
}

/// A ranker to be fitted, each process its part; process 0 gets it. Unless [`ranker_sees_points`], the network is not used,
/// and the member may have the process's own rows of W_L alone.
pub(super) struct RankerFit<'a> {
    pub(super) member: &'a Member,
    pub(super) points: &'a LabelledPoints<'a>,
    pub(super) plan: &'a Plan,
    pub(super) observer: &'a dyn Observer,
    pub(super) communicator: &'a dyn Communicator,
}

impl RankerFit<'_> {
    /// Trains it from the start.
    pub(super) fn train(&self) -> Result<Option<Ranker>> {
        let clusters = self.member.cluster_of().map(joined);
        self.fit(clusters, |problem, options, seed, progress| {
            Ranker::train(problem, options, seed, progress)
        })
    }

    /// Fits an earlier one to more points, and perhaps to more labels, which are in the clusters of their neighbours.
    /// `shares` has the factor of each label's losses.
    pub(super) fn after(&self, earlier: &Ranker, shares: &[f32]) -> Result<Option<Ranker>> {
        let known = earlier.clusters().map(ClusterTree::cluster_of);
        let clusters = known
            .zip(self.member.cluster_of())
            .map(|(known, siblings)| with_siblings(known, &siblings));
        self.fit(clusters, |problem, options, seed, progress| {
            earlier.after(problem, shares, options, seed, progress)
        })
    }

    /// Fits it; labels have these clusters where negatives come from clusters.
    fn fit(
        &self,
        clusters: Option<Vec<ClusterId>>,
        train: impl FnOnce(
            &RankerProblem<'_>,
            &RankerOptions,
            u64,
            &mut dyn FnMut(usize) -> ControlFlow<()>,
        ) -> Result<Option<Ranker>>,
    ) -> Result<Option<Ranker>> {
        let (plan, recipe, points) = (self.plan, self.plan.recipe(), self.points);
        let observer = &self.communicator.observer(self.observer);
        let cluster_of = match recipe.ranker_negatives {
            RankerNegatives::Clusters => clusters,
            RankerNegatives::Candidates => None,
        };
        let look = if ranker_sees_points(self.member, recipe) {
            see_points(self.member, points, plan, observer, self.communicator)?
        } else {
            PointsSeen::default()
        };
        let problem = RankerProblem {
            bow: &points.points.terms(),
            dense: recipe.ranker_embedding.then_some(&look.embeddings),
            labels: &points.labels,
            targets: points.targets.as_ref(),
            point_weights: &points.weights,
            negatives: match &cluster_of {
                Some(cluster_of) => Negatives::Clusters(cluster_of),
                None => Negatives::Candidates(&look.candidates),
            },
            prior: None,
            communicator: self.communicator,
        };
        let clusters = cluster_of.iter().flatten();
        let n_clusters = clusters.map(|cluster| cluster.idx() + 1).max();
        let above = n_clusters.into_iter().flat_map(ClusterTree::level_sizes);
        let levels = std::iter::once(points.labels.n_cols()).chain(above);
        let own = levels.map(|n| self.communicator.own(n).len());
        let mut progress = Steps::start(Phase::Ranker, own.sum(), observer)?;
        let seed = plan.config().train.seed;
        let options = RankerOptions::new(plan.config(), recipe);
        train(
            &problem,
            &options,
            seed,
            &mut |n_trained| match progress.advance(n_trained) {
                Ok(()) => ControlFlow::Continue(()),
                Err(_) => ControlFlow::Break(()),
            },
        )
    }
}

/// Clusters of more labels than known ones: each is where a known label of its cluster of stage 1 is.
fn with_siblings(known: &[ClusterId], siblings: &[ClusterId]) -> Vec<ClusterId> {
    let of_known: BTreeMap<ClusterId, ClusterId> = siblings
        .iter()
        .copied()
        .zip(known.iter().copied())
        .collect();
    let new = siblings[known.len()..].iter();
    let new = new.map(|cluster| of_known.get(cluster).copied().unwrap_or(ClusterId(0)));
    known.iter().copied().chain(new).collect()
}

/// Clusters of 50 to 100 labels, as linear trees have them: neighbours, which are siblings, are joined.
fn joined(mut cluster_of: Vec<ClusterId>) -> Vec<ClusterId> {
    let n_wanted = paper_n_clusters(cluster_of.len());
    let n_clusters = cluster_of.iter().map(|cluster| cluster.idx() + 1).max();
    let n_joined = n_clusters.unwrap_or(0).div_ceil(n_wanted) as u32;
    cluster_of
        .iter_mut()
        .for_each(|cluster| cluster.0 /= n_joined.max(1));
    cluster_of
}

/// Points as a network sees them.
#[derive(Default)]
struct PointsSeen {
    candidates: CandidateLists,
    /// N×d, if the ranker reads embeddings.
    embeddings: Matrix,
}

/// Candidates and embeddings of the training points, of which each process sees a part.
fn see_points(
    member: &Member,
    train: &LabelledPoints<'_>,
    plan: &Plan,
    observer: &dyn Observer,
    communicator: &dyn Communicator,
) -> Result<PointsSeen> {
    let n_points = train.points.len();
    let walk = Walk::to_columns(member, ScoreKind::P, Knowledge::default(), plan);
    let dim = if plan.recipe().ranker_embedding {
        member.encoder.dim()
    } else {
        0
    };
    let blocks = communicator.own_blocks(n_points, CHUNK);
    let n_own = blocks.clone().map(|block| block.len()).sum();
    let mut embeddings = vec![0.0; n_own * dim];
    let mut candidates = CandidateLists::with_capacity(n_own, walk.search.n_candidates);
    let mut progress = Steps::start(Phase::Candidates, n_own, observer)?;
    let mut unseen = &mut embeddings[..];
    for block in blocks {
        let rows: Vec<u32> = block.map(|row| row as u32).collect();
        let (seen, later) = unseen.split_at_mut(rows.len() * dim);
        unseen = later;
        let outs = chunks_of(seen, rows.len(), dim);
        let lists: Vec<Vec<Vec<LabelId>>> = rows
            .par_chunks(CHUNK)
            .zip(outs.into_par_iter())
            .map_init(
                || WalkScratch::new(&member.model),
                |scratch, (rows, out)| {
                    let points = (train.points.points(), rows);
                    let mut outs = out.chunks_mut(dim.max(1));
                    walk.map_columns(ScoreKind::P, points, scratch, |encoded, candidates| {
                        if let Some(out) = outs.next() {
                            out.copy_from_slice(encoded.embedding);
                        }
                        candidates.labels().to_vec()
                    })
                },
            )
            .collect::<Result<_>>()?;
        for (&row, list) in rows.iter().zip(lists.iter().flatten()) {
            // A point without labels does not count against any label; rejected ones are candidates whatever their rank is.
            let is_labelled = !train.labels.row(row as usize).0.is_empty();
            let targets = train
                .targets
                .as_ref()
                .map_or(&[][..], |all| all.row(row as usize).0);
            let targets = targets.iter().map(|&label| LabelId(label));
            candidates.push(targets.chain(list.iter().copied()).filter(|_| is_labelled));
        }
        progress.advance(rows.len())?;
    }
    Ok(PointsSeen {
        candidates: candidates.gather(communicator),
        embeddings: Matrix::from_vec(communicator.gather_many(embeddings), n_points, dim),
    })
}

/// The texts by their words, for the final scorer and for explanations.
pub(super) fn find_neighbours(
    points: &LabelledPoints<'_>,
    plan: &Plan,
    observer: &dyn Observer,
) -> Result<Option<Neighbours>> {
    if !plan.recipe().neighbours {
        return Ok(None);
    }
    Steps::start(Phase::Neighbours, 0, observer)?;
    let (features, labels) = (&points.points.features, &points.labels);
    let neighbours = Neighbours::new(features, labels, points.n_texts);
    Ok(Some(neighbours.narrowed(plan.config().train.precision)))
}

/// The texts of which labels were rejected, by their words; they lower those labels for texts like them.
pub(super) fn find_rejected(
    points: &LabelledPoints<'_>,
    rejected: Option<&CsrMatrix>,
) -> Option<Neighbours> {
    let rejected = rejected?;
    let rows: Vec<usize> = (0..rejected.n_rows())
        .filter(|&row| !rejected.row(row).0.is_empty())
        .collect();
    let features = points.points.features.select_rows(&rows);
    let rejected = rejected.select_rows(&rows);
    (!rows.is_empty()).then(|| Neighbours::new(&features, &rejected, rows.len()))
}

/// The embeddings of each chunk of points, to be written; empty ones if there is nothing to write.
fn chunks_of(embeddings: &mut [f32], n_points: usize, dim: usize) -> Vec<&mut [f32]> {
    let mut rest = embeddings;
    let mut chunks = Vec::new();
    for first in (0..n_points).step_by(CHUNK) {
        let n_values = CHUNK.min(n_points - first) * dim;
        let (chunk, later) = rest.split_at_mut(n_values);
        chunks.push(chunk);
        rest = later;
    }
    chunks
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn siblings_are_joined_into_clusters_of_at_most_a_hundred_labels() {
        // 800 labels in 32 clusters of 25 become 8 of 100; the paper's 8 stay as they are.
        for (n_clusters, n_joined) in [(32, 4), (8, 1), (4, 1)] {
            let cluster_of: Vec<ClusterId> = (0..800)
                .map(|label| ClusterId(label % n_clusters))
                .collect();
            let expected: Vec<ClusterId> = (0..800)
                .map(|label| ClusterId(label % n_clusters / n_joined))
                .collect();
            assert_eq!(joined(cluster_of), expected);
        }
        assert_eq!(joined(Vec::new()), []);
    }
}
