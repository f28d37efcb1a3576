//! Index quality: recall of true labels in the shortlist, by beam b and shortlist size K.
//!
//! Other indexes are measured for comparison, over the same encoder and the same cluster scores: all edges of a row equal,
//! the weights of a row shuffled, the partition of stage 1, and no index at all (one against all: the K labels of the
//! highest σ). An index that has learned where labels are is above the first three and near the last.

use rayon::prelude::*;
use serde::{Deserialize, Serialize};

use crate::candidates::Member;
use crate::data::Dataset;
use crate::error::Result;
use crate::features::PointSet;
use crate::ids::{ClusterId, LabelId, LabelRow};
use crate::index::{Adjacency, ShortlistOptions, Shortlister};
use crate::matrix::{CsrMatrix, Matrix};
use crate::predict::{CHUNK, Predictor};
use crate::random::Random;

/// The shortlist sizes K that are measured.
pub(crate) const SHORTLIST_SIZES: [usize; 6] = [50, 100, 200, 500, 1000, 2000];
/// The beams b that are measured.
pub(crate) const BEAM_SIZES: [usize; 5] = [1, 2, 5, 10, 20];

/// Recall in percent at each of `SHORTLIST_SIZES`.
pub(crate) type RecallBySize = [f64; SHORTLIST_SIZES.len()];

/// The recall of one index.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct IndexRecall {
    /// The name of the index.
    pub index: String,
    /// Recall in percent by beam, in the order of [`ShortlistRecall::BEAMS`], and by size.
    pub by_beam: Vec<[f64; SHORTLIST_SIZES.len()]>,
}

/// The recall of the first member's shortlist, and of the indexes it is compared with.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub struct ShortlistRecall {
    /// Points with a true label.
    pub n_points: usize,
    /// The index of the model first, then others.
    pub indices: Vec<IndexRecall>,
    /// Recall in percent without an index, in the order of [`ShortlistRecall::SIZES`].
    pub one_against_all: [f64; SHORTLIST_SIZES.len()],
}

impl ShortlistRecall {
    /// The shortlist sizes K that are measured.
    pub const SIZES: [usize; 6] = SHORTLIST_SIZES;
    /// The beams b that are measured.
    pub const BEAMS: [usize; 5] = BEAM_SIZES;
}

impl Predictor {
    /// Measures how many true labels are inside the shortlist of its first member, before any label is scored.
    ///
    /// # Errors
    /// If the data is not what the model was trained on; [`crate::Error::InvalidMatrix`] if the index has a weight that
    /// is not finite.
    pub fn evaluate_shortlist(&self, test: &Dataset) -> Result<ShortlistRecall> {
        shortlist_recall(self, &self.points(test)?, test.labels())
    }
}

/// Measures shortlists; row `i` of `truth` belongs to point `i`.
///
/// # Errors
/// [`crate::Error::InvalidModel`] if the index has a weight that is not finite.
///
/// # Panics
/// If there are fewer points than rows of `truth`.
pub(crate) fn shortlist_recall(
    predictor: &Predictor,
    points: &PointSet,
    truth: &CsrMatrix,
) -> Result<ShortlistRecall> {
    let member = &predictor.members()[0];
    let rivals = Rival::all(member)?;
    let rows: Vec<u32> = (0..truth.n_rows() as u32)
        .filter(|&row| !truth.row(row as usize).0.is_empty())
        .collect();
    let chunks = rows.par_chunks(CHUNK).map(|rows| {
        let mut embeddings = Matrix::default();
        let points = points.points();
        member.encoder.encode(points, rows, &mut embeddings);
        let truth = rows.iter().map(|&row| {
            let labels = truth.row(row as usize).0;
            let numbering = &member.model.numbering;
            let known =
                labels.partition_point(|&label| (label as usize) < numbering.labels().len());
            let row_of = |&label: &u32| numbering.row(LabelId(label));
            TrueLabels {
                rows: labels[..known].iter().map(row_of).collect(),
                n_labels: labels.len(),
            }
        });
        let chunk = Chunk {
            member,
            embeddings,
            truth: truth.collect(),
        };
        let mut sums: Vec<RecallBySize> = rivals.iter().flat_map(|r| chunk.search(r)).collect();
        sums.push(chunk.rank_all());
        sums
    });
    let mut chunks: Vec<Vec<RecallBySize>> = chunks.collect();
    chunks.push(vec![
        RecallBySize::default();
        rivals.len() * BEAM_SIZES.len() + 1
    ]);
    let n_points = rows.len();
    let mean = |at: usize| {
        std::array::from_fn(|size| {
            let sum: f64 = chunks.iter().map(|sums| sums[at][size]).sum();
            100.0 * sum / n_points.max(1) as f64
        })
    };
    let indices = rivals.iter().enumerate().map(|(idx, rival)| {
        let first = idx * BEAM_SIZES.len();
        IndexRecall {
            index: rival.name.to_owned(),
            by_beam: (first..first + BEAM_SIZES.len()).map(mean).collect(),
        }
    });
    Ok(ShortlistRecall {
        n_points,
        indices: indices.collect(),
        one_against_all: mean(rivals.len() * BEAM_SIZES.len()),
    })
}

/// An index that is measured.
struct Rival {
    name: &'static str,
    adjacency: Adjacency,
}

impl Rival {
    fn all(member: &Member) -> Result<Vec<Rival>> {
        let adjacency = &member.model.adjacency;
        let mut rivals = vec![Rival {
            name: "the index",
            adjacency: adjacency.clone(),
        }];
        if let (Some(weights), Some(beta)) = (adjacency.weights(), adjacency.beta()) {
            let edges = adjacency.edges();
            let mut shuffled = weights.to_vec();
            for cluster_idx in 0..edges.n_clusters() {
                let row = &mut shuffled[edges.range(ClusterId(cluster_idx as u32))];
                Random::new(0, "shuffled edges", cluster_idx as u64).shuffle(row);
            }
            let others = [
                ("equal weights", vec![0.0; edges.len()]),
                ("shuffled weights", shuffled),
            ];
            for (name, weights) in others {
                let adjacency = Adjacency::learned(edges.clone(), weights, beta)?;
                rivals.push(Rival { name, adjacency });
            }
            let partition = member.stage1.edges.clone().map(|edges| Rival {
                name: "partition of stage 1",
                adjacency: Adjacency::fixed(edges),
            });
            rivals.extend(partition);
        }
        Ok(rivals)
    }
}

/// Some points with their true labels.
struct Chunk<'a> {
    member: &'a Member,
    embeddings: Matrix,
    truth: Vec<TrueLabels>,
}

/// The true labels of a point; those that the model does not know cannot be found.
struct TrueLabels {
    rows: Vec<LabelRow>,
    n_labels: usize,
}

impl Chunk<'_> {
    /// Sums of the shares of true labels in the shortlists, by beam.
    fn search(&self, rival: &Rival) -> Vec<RecallBySize> {
        let clusters = &self.member.model.clusters;
        let mut probabilities = vec![0.0; clusters.n_clusters()];
        let mut searcher = Shortlister::new(self.member.model.classifiers.n_labels());
        let mut sums = vec![RecallBySize::default(); BEAM_SIZES.len()];
        for (point, truth) in self.truth.iter().enumerate() {
            clusters.probabilities(self.embeddings.row(point), &mut probabilities);
            for (sums, beam_size) in sums.iter_mut().zip(BEAM_SIZES) {
                let options = ShortlistOptions {
                    beam_size,
                    shortlist_size: SHORTLIST_SIZES[SHORTLIST_SIZES.len() - 1],
                    score_floor: 0.0,
                    keeps_positives: false,
                };
                searcher.search(clusters, &rival.adjacency, &probabilities, &options);
                searcher.sort();
                let paths = searcher.paths.iter().enumerate();
                let found = paths.filter(|(_, path)| truth.rows.contains(&path.row));
                add_shares(sums, found.map(|(place, _)| place), truth.n_labels);
            }
        }
        sums
    }

    /// The same for the ranking of all labels by w·φ + b, ties to the lower row.
    fn rank_all(&self) -> RecallBySize {
        let classifiers = &self.member.model.classifiers;
        let margin = |row: LabelRow, point: usize| {
            let product = classifiers
                .weights
                .dot(row.idx(), self.embeddings.row(point));
            product + classifiers.bias[row.idx()]
        };
        let truth = self.truth.iter().enumerate();
        let margins_of = |(point, truth): (usize, &TrueLabels)| -> Vec<f32> {
            truth.rows.iter().map(|&row| margin(row, point)).collect()
        };
        let margins: Vec<Vec<f32>> = truth.map(margins_of).collect();
        let mut places: Vec<Vec<usize>> =
            self.truth.iter().map(|t| vec![0; t.rows.len()]).collect();
        for row in (0..classifiers.n_labels() as u32).map(LabelRow) {
            for (point, places) in places.iter_mut().enumerate() {
                let found = margin(row, point);
                let of_truth = self.truth[point].rows.iter().zip(&margins[point]);
                for (place, (&true_row, &true_margin)) in places.iter_mut().zip(of_truth) {
                    let is_before = found > true_margin || found == true_margin && row < true_row;
                    *place += usize::from(is_before);
                }
            }
        }
        let mut sums = RecallBySize::default();
        for (places, truth) in places.iter().zip(&self.truth) {
            add_shares(&mut sums, places.iter().copied(), truth.n_labels);
        }
        sums
    }
}

/// Adds the share of true labels whose place is within each size.
fn add_shares(sums: &mut RecallBySize, places: impl Iterator<Item = usize>, n_true: usize) {
    for place in places {
        for (sum, size) in sums.iter_mut().zip(SHORTLIST_SIZES) {
            if place < size {
                *sum += 1.0 / n_true as f64;
            }
        }
    }
}
