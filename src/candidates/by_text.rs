//! Labels that are known by their texts alone: no training text has them, or so few have that no classifier was trained.
//!
//! They have none of the columns of other candidates, so they are scored beside them, once the known labels are:
//! by their words in the text, and by their words in the names of the labels that the known part of the model finds best
//! (*kin*). Boosted trees over these figures are fitted on held-out points, with known labels in the place of unknown
//! ones: of such a label nothing is looked at but its text, and it is not among the kin.
//!
//! Known labels keep their scores, whatever is added here.

use super::boosting::{BoostedTrees, Features};
use super::point::Point;
use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};
use crate::neighbours::{FormMatch, Forms, Names, NeighbourScratch};

/// Known labels whose names are looked at.
pub(crate) const N_KIN: usize = 20;
/// Forms that are nearest to a text, and to the names of its kin.
pub(crate) const N_NEAREST_FORMS: usize = 100;

/// Steps towards the factor of odds: while scores are small, each all but reaches it.
const FITTING_STEPS: usize = 20;
/// Bounds of the factor.
const ODDS: [f32; 2] = [1e-6, 1e6];

/// Labels known by their texts, and the trees that score them.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct LabelsByText {
    pub(crate) trees: BoostedTrees,
    /// Labels are counted from those that have classifiers.
    pub(crate) forms: Forms,
    /// Those of the training's vocabulary.
    pub(crate) unused: Unused,
}

/// The first labels that are known by their texts alone: the training was given them, and none of its texts has them.
/// A vocabulary has many that nobody uses, so they are right less often than the known labels that the trees learn from.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Unused {
    n_labels: usize,
    /// Factor of their odds; finite and above 0.
    odds: f32,
}

impl Unused {
    /// The first labels with a factor.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if the factor is not finite and above 0.
    pub(crate) fn new(n_labels: usize, odds: f32) -> Result<Self> {
        if odds.is_finite() && 0.0 < odds {
            return Ok(Unused { n_labels, odds });
        }
        let problem = format!("the odds of unused labels have the factor {odds}, not one above 0");
        Err(Error::InvalidModel(problem))
    }

    /// Number of labels.
    pub(crate) fn n_labels(&self) -> usize {
        self.n_labels
    }

    /// Factor of their odds.
    pub(crate) fn odds(&self) -> f32 {
        self.odds
    }

    /// The labels with the factor by which the sum of these scores, which are without one, becomes `n_right`.
    pub(crate) fn fit(n_labels: usize, scores: &[f32], n_right: f64) -> Result<Self> {
        let mut fitted = Unused {
            n_labels,
            odds: 1.0,
        };
        for _ in 0..FITTING_STEPS {
            let scores = scores
                .iter()
                .map(|&score| f64::from(fitted.score(0, score)));
            let factor = n_right / scores.sum::<f64>();
            fitted.odds = (f64::from(fitted.odds) * factor) as f32;
            fitted.odds = fitted.odds.clamp(ODDS[0], ODDS[1]);
        }
        Unused::new(n_labels, fitted.odds)
    }

    /// The score of a label.
    fn score(&self, label: u32, score: f32) -> f32 {
        if self.n_labels <= label as usize {
            return score;
        }
        let odds = self.odds * score;
        odds / (1.0 - score + odds)
    }
}

/// A point whose known labels have final scores.
#[derive(Clone, Copy)]
pub(crate) struct RankedPoint<'a> {
    pub(crate) point: &'a Point<'a>,
    /// The best known labels, best first.
    pub(crate) best: &'a [Scored],
    /// Names of the known labels.
    pub(crate) names: &'a Names,
}

/// The labels that are scored.
#[derive(Clone, Copy)]
pub(crate) struct ByText<'a> {
    /// The first of them.
    pub(crate) first: LabelId,
    /// Those that a query lists: all are scored.
    pub(crate) listed: &'a [LabelId],
    /// Training points of each.
    pub(crate) n_points: &'a [u32],
}

/// How little is known of a label besides its text.
#[derive(Clone, Copy, Debug, Default)]
pub(crate) struct Evidence {
    /// Votes of similar training points, and the cosine of the nearest.
    pub(crate) votes: [f32; 2],
    /// Training points.
    pub(crate) n_points: f32,
}

/// The labels found for one point, with their figures.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextCandidates {
    /// Labels, as the forms count them.
    pub(crate) labels: Vec<u32>,
    figures: Vec<Figures>,
    kin: Vec<(u32, f32)>,
    kin_columns: (Vec<u32>, Vec<f32>),
    scratch: NeighbourScratch,
}

#[derive(Clone, Copy, Debug)]
struct Figures {
    text: FormMatch,
    kin: FormMatch,
    n_forms: f32,
    evidence: Evidence,
}

/// Buffers of the scores.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextScratch {
    found: TextCandidates,
    features: Features,
    leaves: Vec<u32>,
    scores: Vec<f32>,
}

impl LabelsByText {
    /// Adds scored labels.
    pub(crate) fn add(
        &self,
        point: RankedPoint<'_>,
        ByText {
            first,
            listed,
            n_points,
        }: ByText<'_>,
        scratch: &mut TextScratch,
        scored: &mut Vec<Scored>,
    ) {
        if self.forms.n_labels() == 0 {
            return;
        }
        let TextScratch {
            found,
            features,
            leaves,
            scores,
        } = scratch;
        let n_labels = self.forms.n_labels() as u32;
        let listed = listed
            .iter()
            .filter_map(|label| label.0.checked_sub(first.0));
        let listed = listed.filter(|&label| label < n_labels);
        let votes = |label: u32| {
            let vote = point.point.vote(LabelId(first.0 + label));
            Evidence {
                votes: vote.map_or([0.0; 2], |vote| [vote.score, vote.nearest]),
                n_points: n_points[label as usize] as f32,
            }
        };
        let voted = point.point.votes.iter().map(|vote| vote.label);
        let voted = voted.filter_map(|label| label.0.checked_sub(first.0));
        let added = listed.chain(voted);
        found.find(&self.forms, point, N_NEAREST_FORMS, |_| false, added);
        found.describe(&self.forms, point.point, votes);
        let mut columns = TextColumns::default();
        found.fill(point, |_| false, &mut columns);
        columns.features(features);
        self.trees.score(features, leaves, scores);
        let labels = found.labels.iter().zip(scores.iter());
        scored.extend(labels.map(|(&label, &score)| Scored {
            label: LabelId(first.0 + label),
            score: self.unused.score(label, score),
        }));
    }
}

impl TextCandidates {
    /// Replaces the labels by those whose forms are nearest to a point and to its kin, and by added ones.
    pub(crate) fn find(
        &mut self,
        forms: &Forms,
        point: RankedPoint<'_>,
        n_nearest: usize,
        is_hidden: impl Fn(LabelId) -> bool,
        added: impl Iterator<Item = u32>,
    ) {
        self.find_kin(point, is_hidden);
        self.labels.clear();
        let (labels, scratch) = (&mut self.labels, &mut self.scratch);
        forms.nearest(point.point.words, n_nearest, scratch, labels);
        let kin = (&self.kin_columns.0[..], &self.kin_columns.1[..]);
        forms.nearest(kin, n_nearest, scratch, labels);
        labels.extend(added);
        labels.sort_unstable();
        labels.dedup();
    }

    /// The words of the kin: each name weighs as much as its label scores.
    fn find_kin(&mut self, point: RankedPoint<'_>, is_hidden: impl Fn(LabelId) -> bool) {
        self.kin.clear();
        for scored in point.best.iter().filter(|best| !is_hidden(best.label)) {
            let (words, weights) = point.names.words().row(scored.label.idx());
            let weighted = words.iter().zip(weights);
            self.kin
                .extend(weighted.map(|(&word, weight)| (word, scored.score * weight)));
        }
        // Stable, so that sums have one order.
        self.kin.sort_by_key(|entry| entry.0);
        let (words, weights) = &mut self.kin_columns;
        words.clear();
        weights.clear();
        for of_word in self.kin.chunk_by(|a, b| a.0 == b.0) {
            words.push(of_word[0].0);
            weights.push(of_word.iter().map(|entry| entry.1).sum());
        }
        let length = weights
            .iter()
            .map(|weight| weight * weight)
            .sum::<f32>()
            .sqrt();
        if 0.0 < length {
            weights.iter_mut().for_each(|weight| *weight /= length);
        }
    }

    /// Fills the figures of the labels.
    pub(crate) fn describe(
        &mut self,
        forms: &Forms,
        point: &Point<'_>,
        evidence: impl Fn(u32) -> Evidence,
    ) {
        let kin = (&self.kin_columns.0[..], &self.kin_columns.1[..]);
        self.figures.clear();
        self.figures
            .extend(self.labels.iter().map(|&label| Figures {
                text: forms.matched(label as usize, point.words),
                kin: forms.matched(label as usize, kin),
                n_forms: forms.n_forms(label as usize) as f32,
                evidence: evidence(label),
            }));
    }

    /// Adds a row per label to the columns.
    pub(crate) fn fill(
        &self,
        point: RankedPoint<'_>,
        is_hidden: impl Fn(LabelId) -> bool,
        columns: &mut TextColumns,
    ) {
        let known = |label: LabelId| !is_hidden(label);
        let best = point.best.iter().find(|best| known(best.label));
        let votes = point.point.votes.iter().filter(|vote| known(vote.label));
        let nearest = votes.map(|vote| vote.nearest).fold(0.0, f32::max);
        let mut names = point.point.names.iter();
        let name = names.find(|name| known(name.label));
        let of_point = [
            point.point.words.0.len() as f32,
            nearest,
            best.map_or(0.0, |best| best.score),
            name.map_or(0.0, |name| name.cosine),
            name.map_or(0.0, |name| name.contained),
        ];
        let all = &self.figures;
        let cosine = Against::new(all.iter().map(|of| of.text.cosine));
        let kin = Against::new(all.iter().map(|of| of.kin.cosine));
        let contained = Against::new(all.iter().map(|of| of.text.contained));
        for of in all {
            let figures = [
                of.text.cosine,
                of.text.contained,
                of.text.covered,
                of.text.n_words,
                of.kin.cosine,
                of.kin.contained,
                cosine.share(of.text.cosine),
                cosine.rank(of.text.cosine),
                kin.share(of.kin.cosine),
                kin.rank(of.kin.cosine),
                contained.rank(of.text.contained),
                of.n_forms,
                // The second of the two columns that break ties.
                of.kin.contained,
                of.evidence.votes[0],
                of.evidence.votes[1],
                of.evidence.n_points,
            ];
            columns.push(figures.into_iter().chain(of_point));
        }
    }
}

/// The values of all candidates, to be compared with.
struct Against {
    /// Descending.
    sorted: Vec<f32>,
}

impl Against {
    fn new(values: impl Iterator<Item = f32>) -> Self {
        let mut sorted: Vec<f32> = values.collect();
        sorted.sort_unstable_by(|a, b| b.total_cmp(a));
        Against { sorted }
    }

    /// The value as a share of the best.
    fn share(&self, value: f32) -> f32 {
        match self.sorted.first() {
            Some(&best) if 0.0 < best => value / best,
            _ => 0.0,
        }
    }

    /// The number of candidates that have more.
    fn rank(&self, value: f32) -> f32 {
        self.sorted.partition_point(|&other| value < other) as f32
    }
}

/// The figures of candidates, column by column.
#[derive(Clone, Debug, Default)]
pub(crate) struct TextColumns(Vec<Vec<f32>>);

impl TextColumns {
    fn push(&mut self, row: impl Iterator<Item = f32>) {
        for (at, value) in row.enumerate() {
            if self.0.len() == at {
                self.0.push(Vec::new());
            }
            self.0[at].push(value);
        }
    }

    /// As features of boosted trees.
    pub(crate) fn features(&self, features: &mut Features) {
        features.set(&self.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_scores_of_unused_labels_add_up_to_those_that_are_right() {
        let scores: Vec<f32> = (0..1000).map(|place| 0.9 / (1.0 + place as f32)).collect();
        for n_right in [0.5, 3.0, 200.0] {
            let unused = Unused::fit(7, &scores, n_right).unwrap();
            let fitted = scores.iter().map(|&score| unused.score(6, score));
            let fitted: Vec<f32> = fitted.collect();
            let sum: f64 = fitted.iter().map(|&score| f64::from(score)).sum();
            assert!((sum / n_right - 1.0).abs() < 0.01, "{sum} for {n_right}");
            assert!(fitted.is_sorted_by(|a, b| a > b));
            assert_eq!(unused.score(7, 0.4), 0.4);
        }
    }

    #[test]
    fn odds_are_finite_and_above_0() {
        for odds in [0.0, -1.0, f32::NAN, f32::INFINITY] {
            assert!(Unused::new(1, odds).is_err(), "{odds}");
        }
        let nothing = Unused::fit(1, &[0.0, 0.0], 0.5).unwrap();
        assert!(nothing.odds().is_finite());
    }
}
