//! From the stage-1 model to the edges of stage 2 (paper, eqs. 9–10).
//!
//! M holds ŝ_c of every training point's best b clusters; A' = MᵀY counts how often a label's points met a
//! cluster. Every cluster keeps its κ heaviest labels, ties to the lower label. Their weights start from random
//! numbers in (0, 1), as in the paper, or from ln A', whose softmax is the share of the label among those of the
//! cluster's points. A label that no cluster kept gets its stage-1 edge back: no label is ever out of reach.
//!
//! The model of a few epochs later knows better which clusters a point belongs to, so A can start again from its counts
//! in every epoch ([`EdgeStart::Recounts`]): edges that have become useless go, and labels get those they lacked.

use rayon::prelude::*;

use crate::config::EdgeStart;
use crate::error::Result;
use crate::ids::{ClusterId, LabelId, LabelRow, Scored};
use crate::index::{Adjacency, Edges};
use crate::matrix::{CsrMatrix, top_k};
use crate::random::Random;

/// The best clusters of every training point with their scores: M, row by row.
pub(crate) type Matches = Vec<Vec<(ClusterId, f32)>>;

/// How edges are chosen and weighted.
#[derive(Clone, Copy, Debug)]
pub(crate) struct EdgeOptions {
    /// κ.
    pub(crate) kappa: usize,
    /// β.
    pub(crate) beta: f32,
    pub(crate) start: EdgeStart,
    pub(crate) seed: u64,
}

/// The edges that stage 2 starts from.
pub(crate) struct InitialAdjacency {
    pub(crate) adjacency: Adjacency,
    /// Labels that no cluster kept and that got their stage-1 edge back.
    pub(crate) n_repaired: usize,
}

/// The count of a label that a cluster's points did not meet, and the least one that a weight starts from.
const UNMET: f32 = 1e-3;

/// An edge of a cluster, with its entry of A'.
#[derive(Clone, Copy)]
struct CountedLabel {
    row: LabelRow,
    count: f32,
}

/// The edges of stage 2.
pub(crate) fn initial_adjacency(
    stage1: &Edges,
    matches: &Matches,
    labels: &CsrMatrix,
    rows: &[u32],
    options: EdgeOptions,
) -> Result<InitialAdjacency> {
    let EdgeOptions {
        kappa,
        beta,
        start,
        seed,
    } = options;
    let n_labels = labels.n_cols();
    let mut points_of_cluster = vec![Vec::new(); stage1.n_clusters()];
    for (&row, clusters) in rows.iter().zip(matches) {
        for &(cluster, score) in clusters {
            points_of_cluster[cluster.idx()].push((row, score));
        }
    }
    let mut lists: Vec<Vec<CountedLabel>> = points_of_cluster
        .par_iter()
        .map_init(
            || vec![0f32; n_labels],
            |weights, points| heaviest_labels(points, labels, kappa, weights),
        )
        .collect();

    let mut is_reached = vec![false; n_labels];
    lists
        .iter()
        .flatten()
        .for_each(|counted| is_reached[counted.row.idx()] = true);
    let mut n_repaired = 0;
    for (cluster_idx, list) in lists.iter_mut().enumerate() {
        for &label in &stage1.rows()[stage1.range(ClusterId(cluster_idx as u32))] {
            if !is_reached[label.idx()] {
                list.push(CountedLabel {
                    row: label,
                    count: UNMET,
                });
                n_repaired += 1;
            }
        }
    }
    lists
        .par_iter_mut()
        .for_each(|list| list.sort_unstable_by_key(|counted| counted.row));
    let counts = lists.iter().flatten().map(|counted| counted.count);
    let mut random = Random::new(seed, "edge weights", 0);
    let weights = match start {
        EdgeStart::Recounts | EdgeStart::Counts => {
            counts.map(|count| count.max(UNMET).ln()).collect()
        }
        EdgeStart::Random => counts.map(|_| random.f32()).collect(),
    };
    let rows_of = |list: &Vec<CountedLabel>| list.iter().map(|counted| counted.row).collect();
    let edges = Edges::from_lists(lists.iter().map(rows_of).collect(), n_labels)?;
    Ok(InitialAdjacency {
        adjacency: Adjacency::learned(edges, weights, beta)?,
        n_repaired,
    })
}

/// The κ labels with the greatest sums of scores over a cluster's points. weights: L zeros, left as zeros
fn heaviest_labels(
    points: &[(u32, f32)],
    labels: &CsrMatrix,
    kappa: usize,
    weights: &mut [f32],
) -> Vec<CountedLabel> {
    let mut met = Vec::new();
    for &(row, score) in points {
        for &label in labels.row(row as usize).0 {
            if weights[label as usize] == 0.0 {
                met.push(label);
            }
            weights[label as usize] += score.max(f32::MIN_POSITIVE);
        }
    }
    let mut scored: Vec<Scored> = met
        .iter()
        .map(|&label| Scored {
            label: LabelId(label),
            score: weights[label as usize],
        })
        .collect();
    met.iter().for_each(|&label| weights[label as usize] = 0.0);
    top_k(&mut scored, kappa);
    // Columns of the renumbered Y are rows of W_L.
    scored
        .iter()
        .map(|scored| CountedLabel {
            row: LabelRow(scored.label.0),
            count: scored.score,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::CsrBuilder;

    #[test]
    fn clusters_keep_their_heaviest_labels_and_lost_labels_come_back() {
        let mut builder = CsrBuilder::default();
        for row in [&[0u32, 1][..], &[1], &[2, 3]] {
            builder.push_row(row.iter().map(|&label| (label, 1.0)));
        }
        let labels = builder.finish(4).unwrap();
        let ids = |ids: &[u32]| ids.iter().map(|&id| LabelRow(id)).collect::<Vec<_>>();
        let stage1 = Edges::from_lists(vec![ids(&[0, 1]), ids(&[2, 3])], 4).unwrap();
        let matches = vec![
            vec![(ClusterId(0), 1.0), (ClusterId(1), 0.1)],
            vec![(ClusterId(0), 0.5)],
            vec![(ClusterId(0), 0.2), (ClusterId(1), 0.9)],
        ];
        let options = EdgeOptions {
            kappa: 1,
            beta: 2.0,
            start: EdgeStart::Counts,
            seed: 7,
        };
        let InitialAdjacency {
            adjacency,
            n_repaired,
        } = initial_adjacency(&stage1, &matches, &labels, &[0, 1, 2], options).unwrap();
        // Cluster 0 met label 1 with weight 1.5; cluster 1 met labels 2 and 3 alike, and the lower stays.
        assert_eq!(adjacency.edges().rows(), ids(&[0, 1, 2, 3]));
        assert_eq!(adjacency.edges().indptr(), [0, 2, 4]);
        assert_eq!(n_repaired, 2);
        assert!(adjacency.edges().unreachable().is_empty());
        let near = |a: f32, b: f32| (a - b).abs() < 1e-5;
        let expected = [UNMET, 1.5, 0.9, UNMET].map(f32::ln);
        assert!(
            std::iter::zip(adjacency.weights().unwrap(), expected).all(|(&a, b)| near(a, b)),
            "{:?}",
            adjacency.weights()
        );
    }
}
