//! Which labels are trained together: up to sixteen of a cluster where the solver can, else each alone.
//!
//! Blocks follow from the problem alone, so that they are the same on any number of threads and processes.

use std::ops::Range;

use super::{Negatives, RankerOptions, RankerProblem};
use crate::config::RankerLoss;
use crate::kernels::LANES;

/// All labels, block after block.
pub(super) struct Blocks {
    labels: Vec<u32>,
    /// Where each block ends.
    ends: Vec<usize>,
    /// Whether the labels of a block share their points.
    pub(super) are_in_lockstep: bool,
}

impl Blocks {
    /// The blocks of a problem.
    pub(super) fn new(problem: &RankerProblem<'_>, options: &RankerOptions) -> Self {
        let n_labels = problem.labels.n_cols() as u32;
        match problem.negatives {
            Negatives::Clusters(cluster_of)
                if options.loss == RankerLoss::SquaredHinge && problem.dense.is_none() =>
            {
                let mut labels: Vec<u32> = (0..n_labels).collect();
                let cluster = |label: &u32| cluster_of[*label as usize];
                labels.sort_by_key(cluster);
                let mut ends = Vec::new();
                let mut n_labels = 0;
                for of_cluster in labels.chunk_by(|a, b| cluster(a) == cluster(b)) {
                    for block in of_cluster.chunks(LANES) {
                        n_labels += block.len();
                        ends.push(n_labels);
                    }
                }
                Blocks {
                    labels,
                    ends,
                    are_in_lockstep: true,
                }
            }
            _ => Blocks {
                labels: (0..n_labels).collect(),
                ends: (1..=n_labels as usize).collect(),
                are_in_lockstep: false,
            },
        }
    }

    pub(super) fn len(&self) -> usize {
        self.ends.len()
    }

    /// The labels of one block.
    pub(super) fn get(&self, block: usize) -> &[u32] {
        let start = if block == 0 { 0 } else { self.ends[block - 1] };
        &self.labels[start..self.ends[block]]
    }

    /// Most labels of a block.
    pub(super) fn most_labels(&self) -> usize {
        if self.are_in_lockstep { LANES } else { 1 }
    }

    /// A range of labels that has those of some blocks.
    pub(super) fn range(&self, blocks: Range<usize>) -> Range<usize> {
        if self.are_in_lockstep {
            0..self.labels.len()
        } else {
            blocks
        }
    }

    /// The place of every label among all of all blocks.
    pub(super) fn places(&self) -> Vec<usize> {
        let mut places = vec![0; self.labels.len()];
        for (place, &label) in self.labels.iter().enumerate() {
            places[label as usize] = place;
        }
        places
    }
}
