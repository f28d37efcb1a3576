//! Random clusters that are searched besides beam and parents, as the released code does.
//!
//! Every point of a batch has b + P columns, with P the most targets of a point: its beam, the parents of its targets, and
//! where these are fewer, random clusters. Of more than b + 5 columns, b + 5 are drawn by their scores, so that a parent may
//! be left out. A random cluster that is there already is not searched twice.

use crate::encoder::StepSeed;
use crate::ids::ClusterId;
use crate::index::Selection;
use crate::random::Random;

/// Columns beside the beam that are always searched.
const FREE: usize = 5;

/// The random clusters of a step.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Filling {
    pub(crate) seed: StepSeed,
    pub(crate) n_clusters: usize,
    /// P.
    pub(crate) most_positives: usize,
}

impl Filling {
    fn random(&self, purpose: &str, point: usize) -> Random {
        let StepSeed { seed, step } = self.seed;
        Random::new(seed, purpose, step << 16 | point as u64)
    }

    /// Random clusters of a point, P of them: one for each column that may be left.
    pub(super) fn clusters(&self, point: usize) -> impl Iterator<Item = ClusterId> + use<> {
        let (n_clusters, mut random) = (self.n_clusters, self.random("searched clusters", point));
        (0..self.most_positives).map(move |_| ClusterId(random.below(n_clusters) as u32))
    }

    /// Drops random clusters beyond b + P columns, then draws b + 5 of the columns, without replacement and by their scores.
    pub(super) fn thin(&self, point: usize, selected: &mut Vec<Selection>, beam_size: usize) {
        selected.truncate(beam_size.min(self.n_clusters) + self.most_positives);
        let n_drawn = beam_size + FREE;
        if selected.len() <= n_drawn {
            return;
        }
        // The largest of ln(u)/s are such a draw (Efraimidis and Spirakis).
        let mut random = self.random("drawn clusters", point);
        let mut keys: Vec<(f32, usize)> = selected
            .iter()
            .enumerate()
            .map(|(at, selection)| {
                let log = (1.0 - random.f64()).ln() as f32;
                (log / selection.score.max(f32::MIN_POSITIVE), at)
            })
            .collect();
        keys.sort_unstable_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        let mut drawn: Vec<usize> = keys[..n_drawn].iter().map(|&(_, at)| at).collect();
        drawn.sort_unstable();
        *selected = drawn.into_iter().map(|at| selected[at]).collect();
    }
}
