//! Features of the boosted trees: the columns of the candidates, and each against the others of the same point.

use crate::candidates::{Candidates, Column};

/// Number of features.
pub(crate) const N_FEATURES: usize = 24;

/// The features of p and of the votes against the most votes.
const P: usize = 0;
const VOTE_SHARE: usize = 12;
/// Log-odds for a p of 1, and for the most votes: enough to order candidates, too little to matter otherwise.
const NUDGE: f32 = 0.02;

/// The features of the candidates of one point: one column per feature, one row per candidate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Features {
    n_candidates: usize,
    /// Column after column.
    values: Vec<f32>,
    order: Vec<u32>,
}

impl Features {
    /// Replaces the features by those of other candidates.
    pub(crate) fn fill(&mut self, candidates: &Candidates) {
        let p = candidates.column(Column::P);
        let logits = candidates.column(Column::Logit);
        let margins = candidates.column(Column::Margin);
        let votes = candidates.column(Column::Votes);
        let names = candidates.column(Column::NameMatch);
        let paths = candidates.column(Column::PathScore);
        self.n_candidates = candidates.len();
        self.values.clear();
        self.own(p);
        self.own(logits);
        self.own(margins);
        self.own(votes);
        self.own(candidates.column(Column::Nearest));
        self.own(candidates.column(Column::Frequency));
        self.own(names);
        self.own(candidates.column(Column::Contained));
        let relevance = logits.iter().map(|logit| 1.0 + (-logit).exp());
        self.values
            .extend(p.iter().zip(relevance).map(|(p, by)| p * by)); // ŷ = p/σ
        self.against_best(p, |own, best| own / best);
        self.against_best(logits, |own, best| own - best);
        self.against_best(margins, |own, best| own - best);
        self.against_best(votes, |own, best| own / best);
        self.against_best(names, |own, best| own / best);
        self.rank(p);
        self.rank(margins);
        self.rank(votes);
        self.same(candidates.about().n_words as f32);
        self.same(candidates.about().nearest);
        self.same(p.iter().copied().fold(0.0, f32::max));
        self.own(candidates.column(Column::ClusterMargin));
        self.own(paths);
        self.against_best(paths, |own, best| own - best);
        self.rank(paths);
        for value in &mut self.values {
            // A share of nothing, or an overflow.
            if !value.is_finite() {
                *value = 0.0;
            }
        }
        debug_assert_eq!(self.values.len(), N_FEATURES * candidates.len());
    }

    /// Replaces the features by the first ones of other rows; the others are 0.
    pub(in crate::candidates) fn set(&mut self, columns: &[Vec<f32>]) {
        self.n_candidates = columns.first().map_or(0, Vec::len);
        self.values.clear();
        for column in columns {
            self.own(column);
        }
        self.values.resize(N_FEATURES * self.n_candidates, 0.0);
    }

    /// How much the log-odds of each candidate begin above the same start for all: the trees cannot tell apart the
    /// candidates of one leaf, nor any where nothing could be learned, and then p and votes decide.
    pub(super) fn nudges(&self) -> impl Iterator<Item = f32> {
        let both = self.column(P).iter().zip(self.column(VOTE_SHARE));
        both.map(|(p, votes)| NUDGE * (p + votes))
    }

    /// One feature of all candidates.
    #[inline]
    pub(crate) fn column(&self, feature: usize) -> &[f32] {
        &self.values[feature * self.n_candidates..][..self.n_candidates]
    }

    fn own(&mut self, values: &[f32]) {
        self.values.extend_from_slice(values);
    }

    /// A value of the point.
    fn same(&mut self, value: f32) {
        let n_values = self.values.len() + self.n_candidates;
        self.values.resize(n_values, value);
    }

    /// A value against the best of all candidates.
    fn against_best(&mut self, values: &[f32], against: impl Fn(f32, f32) -> f32) {
        let best = values.iter().copied().fold(f32::NEG_INFINITY, f32::max);
        self.values
            .extend(values.iter().map(|&own| against(own, best)));
    }

    /// The number of candidates that have more.
    fn rank(&mut self, values: &[f32]) {
        self.order.clear();
        self.order.extend(0..values.len() as u32);
        let value = |at: &u32| values[*at as usize];
        self.order
            .sort_unstable_by(|a, b| value(b).total_cmp(&value(a)));
        let start = self.values.len();
        self.values.resize(start + values.len(), 0.0);
        let ranks = &mut self.values[start..];
        let mut rank = 0;
        for (place, at) in self.order.iter().enumerate() {
            if place > 0 && value(at) < value(&self.order[place - 1]) {
                rank = place;
            }
            ranks[*at as usize] = rank as f32;
        }
    }
}
