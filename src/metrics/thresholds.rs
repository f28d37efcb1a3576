//! Sets of answers instead of rankings: the answers of at least a threshold, over all points and label by label.
//!
//! With TP the right answers of at least the threshold, precision is TP over all such answers, recall TP over all true
//! pairs, and F1 = 2·TP / (answers + true pairs). *Micro* counts over all labels at once; *macro* is the mean of F1 over
//! the labels that are true of a point. A label that is never answered has no precision and an F1 of 0.
//! Only values from 0 to 1 have thresholds: rankings with any other value are not measured here.

use std::collections::HashMap;
use std::io;

use serde::{Deserialize, Serialize};

use super::ranking::{Comparer, FilterPairs};
use crate::data::LabelSet;
use crate::ids::{LabelId, Scored};

/// Steps of the search for the best threshold: 0.05, 0.10, …, 0.95.
const N_STEPS: usize = 20;

/// The quality of all answers of at least a threshold, in percent.
#[derive(Clone, Copy, Debug, PartialEq, Serialize, Deserialize)]
pub struct AtThreshold {
    /// The least probability of an answer, or its least score where there are no probabilities.
    pub threshold: f32,
    /// Right answers among the answers; 0 without any.
    pub precision: f64,
    /// Right answers among the true pairs.
    pub recall: f64,
    /// F1 of all answers.
    pub micro_f1: f64,
    /// Mean F1 of the labels that are true of a point.
    pub macro_f1: f64,
}

/// Precision and recall of one label, in percent.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct LabelFigures {
    /// The name of the label.
    pub label: String,
    /// Points of which it is true.
    pub support: u32,
    /// Right answers among those in the first five places; `None` if there are none.
    #[serde(rename = "p@5")]
    pub precision_at_5: Option<f64>,
    /// Share of its points where it is in the first five places; `None` without support.
    #[serde(rename = "r@5")]
    pub recall_at_5: Option<f64>,
    /// Right answers among those of at least the threshold.
    pub precision: Option<f64>,
    /// Share of its points where it is answered with at least the threshold.
    pub recall: Option<f64>,
    /// F1 at the threshold.
    pub f1: Option<f64>,
}

/// Counts of answers.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
struct Answered {
    n_answers: u32,
    n_hits: u32,
}

impl Answered {
    fn add(&mut self, is_hit: bool) {
        self.n_answers += 1;
        self.n_hits += u32::from(is_hit);
    }

    fn precision(self) -> Option<f64> {
        percent(self.n_hits, self.n_answers.into())
    }

    fn recall(self, n_true: u32) -> Option<f64> {
        percent(self.n_hits, n_true.into())
    }

    fn f1(self, n_true: u32) -> Option<f64> {
        percent(
            2 * self.n_hits,
            u64::from(self.n_answers) + u64::from(n_true),
        )
    }
}

fn percent(part: u32, whole: u64) -> Option<f64> {
    (whole > 0).then(|| 100.0 * f64::from(part) / whole as f64)
}

/// The counts of one label.
#[derive(Clone, Debug, PartialEq)]
struct LabelCounts {
    n_true: u32,
    among_first: Answered,
    /// One per threshold.
    at: Box<[Answered]>,
}

/// The counts of every label that is true of a point, or is answered.
#[derive(Clone, Debug, PartialEq)]
pub struct CountsByLabel {
    thresholds: Vec<f32>,
    /// The threshold of the figures by label; `None` where values have no thresholds.
    chosen: Option<usize>,
    /// By ascending label.
    labels: Vec<(LabelId, LabelCounts)>,
}

impl CountsByLabel {
    /// Places of a ranking that count without a threshold.
    pub const N_FIRST: usize = 5;

    /// The threshold of the figures by label; `None` where values are not between 0 and 1.
    pub fn threshold(&self) -> Option<f32> {
        self.chosen.map(|idx| self.thresholds[idx])
    }

    /// The figures of every label that is true of a point or is answered.
    pub fn figures(&self, labels: &LabelSet) -> Vec<LabelFigures> {
        self.figures_named(|label| labels.name(label).to_owned())
    }

    /// Writes the figures as CSV with a header; what is not known is empty.
    ///
    /// # Errors
    /// If they cannot be written.
    pub fn write_csv(&self, labels: &LabelSet, out: impl io::Write) -> io::Result<()> {
        let mut out = csv::Writer::from_writer(out);
        for figures in self.figures(labels) {
            out.serialize(figures)?;
        }
        out.flush()
    }

    /// The figures over all labels at 0.05, 0.10, …, 0.95.
    pub(crate) fn curve(&self) -> Vec<AtThreshold> {
        (0..N_STEPS - 1).map(|idx| self.at(idx)).collect()
    }

    /// Precision and recall of every label at the threshold of the figures.
    pub(crate) fn at_threshold(&self) -> Vec<(LabelId, Option<f64>, Option<f64>)> {
        let labels = self.labels.iter();
        let figures = labels.map(|(label, counts)| {
            let at = self.chosen.map(|idx| counts.at[idx]);
            let precision = at.and_then(Answered::precision);
            (
                *label,
                precision,
                at.and_then(|at| at.recall(counts.n_true)),
            )
        });
        figures.collect()
    }

    fn figures_named(&self, name: impl Fn(LabelId) -> String) -> Vec<LabelFigures> {
        let labels = self.labels.iter();
        let figures = labels.map(|(label, counts)| {
            let n_true = counts.n_true;
            let at = self.chosen.map(|idx| counts.at[idx]);
            LabelFigures {
                label: name(*label),
                support: n_true,
                precision_at_5: counts.among_first.precision(),
                recall_at_5: counts.among_first.recall(n_true),
                precision: at.and_then(Answered::precision),
                recall: at.and_then(|at| at.recall(n_true)),
                f1: at.and_then(|at| at.f1(n_true)),
            }
        });
        figures.collect()
    }

    /// The figures over all labels at a threshold, by its position.
    fn at(&self, idx: usize) -> AtThreshold {
        let (mut n_answers, mut n_hits, mut n_true) = (0u64, 0u64, 0u64);
        let (mut sum_of_f1, mut n_labels) = (0.0, 0usize);
        for (_, counts) in &self.labels {
            let at = counts.at[idx];
            n_answers += u64::from(at.n_answers);
            n_hits += u64::from(at.n_hits);
            n_true += u64::from(counts.n_true);
            if counts.n_true > 0 {
                sum_of_f1 += at.f1(counts.n_true).unwrap_or(0.0);
                n_labels += 1;
            }
        }
        let share = |part: u64, whole: u64| 100.0 * part as f64 / whole.max(1) as f64;
        AtThreshold {
            threshold: self.thresholds[idx],
            precision: share(n_hits, n_answers),
            recall: share(n_hits, n_true),
            micro_f1: share(2 * n_hits, n_answers + n_true),
            macro_f1: sum_of_f1 / n_labels.max(1) as f64,
        }
    }
}

/// The figures at thresholds.
pub(crate) struct ThresholdFigures {
    /// At the threshold of the highest micro F1, the lowest of equals.
    pub(crate) best: Option<AtThreshold>,
    /// At the threshold that was asked for.
    pub(crate) asked: Option<AtThreshold>,
    /// Label by label, at the threshold that was asked for, else at the best.
    pub(crate) by_label: CountsByLabel,
}

/// Counts answers at all thresholds, point by point.
#[derive(Debug)]
pub(crate) struct ThresholdsBuilder {
    /// The threshold that was asked for, if any, comes last.
    thresholds: Vec<f32>,
    asked: Option<f32>,
    has_thresholds: bool,
    comparer: Comparer,
    labels: HashMap<LabelId, LabelCounts>,
}

impl ThresholdsBuilder {
    /// A builder that also counts at the threshold that is asked for.
    pub(crate) fn new(asked: Option<f32>, filter: FilterPairs) -> Self {
        let steps = (1..N_STEPS).map(|step| step as f32 / N_STEPS as f32);
        ThresholdsBuilder {
            thresholds: steps.chain(asked).collect(),
            asked,
            has_thresholds: true,
            comparer: Comparer::new(filter, usize::MAX),
            labels: HashMap::new(),
        }
    }

    /// Adds the next point: its true labels, its ranked labels in any order, and the value of each score.
    pub(crate) fn push(
        &mut self,
        truth_row: &[u32],
        ranked: &[Scored],
        value: impl Fn(f32) -> f32,
    ) {
        let compared = self.comparer.compare(truth_row, ranked);
        if compared.truth.is_empty() {
            return;
        }
        let n_thresholds = self.thresholds.len();
        let empty = || LabelCounts {
            n_true: 0,
            among_first: Answered::default(),
            at: vec![Answered::default(); n_thresholds].into(),
        };
        for &label in compared.truth {
            self.labels.entry(label).or_insert_with(empty).n_true += 1;
        }
        let lowest = self.thresholds.iter().copied().fold(1.0, f32::min);
        for (place, answer) in compared.ranking.iter().enumerate() {
            let value = value(answer.score);
            self.has_thresholds &= (0.0..=1.0).contains(&value);
            let is_first = place < CountsByLabel::N_FIRST;
            if !is_first && value < lowest {
                continue;
            }
            let is_hit = compared.truth.binary_search(&answer.label).is_ok();
            let counts = self.labels.entry(answer.label).or_insert_with(empty);
            if is_first {
                counts.among_first.add(is_hit);
            }
            for (&threshold, at) in self.thresholds.iter().zip(&mut counts.at) {
                if value >= threshold {
                    at.add(is_hit);
                }
            }
        }
    }

    /// The figures of all points pushed.
    pub(crate) fn finish(self) -> ThresholdFigures {
        let mut labels: Vec<_> = self.labels.into_iter().collect();
        labels.sort_unstable_by_key(|(label, _)| *label);
        let mut by_label = CountsByLabel {
            thresholds: self.thresholds,
            chosen: None,
            labels,
        };
        let is_measured = self.has_thresholds && !by_label.labels.is_empty();
        if !is_measured {
            return ThresholdFigures {
                best: None,
                asked: None,
                by_label,
            };
        }
        let steps = 0..N_STEPS - 1;
        let micro_f1 = |&idx: &usize| by_label.at(idx).micro_f1;
        // `max_by` returns the last of equals: the lowest threshold.
        let best = steps
            .rev()
            .max_by(|a, b| micro_f1(a).total_cmp(&micro_f1(b)))
            .expect("there are steps");
        let asked = self.asked.map(|_| N_STEPS - 1);
        by_label.chosen = Some(asked.unwrap_or(best));
        ThresholdFigures {
            best: Some(by_label.at(best)),
            asked: asked.map(|idx| by_label.at(idx)),
            by_label,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn scored(answers: &[(u32, f32)]) -> Vec<Scored> {
        let answers = answers.iter();
        let scored = answers.map(|&(label, score)| Scored {
            label: LabelId(label),
            score,
        });
        scored.collect()
    }

    #[test]
    fn figures_at_a_threshold_follow_their_definitions() {
        let mut builder = ThresholdsBuilder::new(Some(0.42), FilterPairs::default());
        builder.push(&[0, 1], &scored(&[(0, 0.9), (2, 0.43)]), |score| score);
        builder.push(&[1], &scored(&[(1, 0.3), (2, 0.44)]), |score| score);
        builder.push(&[], &scored(&[(7, 0.99)]), |score| score);
        let found = builder.finish();
        // 0.42: answers 0, 2, 2, of which 0 is right; three true pairs. F1 of label 0 is 1, of label 1 it is 0.
        let asked = found.asked.unwrap();
        let close = |a: f64, b: f64| (a - b).abs() < 1e-9;
        assert!(close(asked.precision, 100.0 / 3.0) && close(asked.recall, 100.0 / 3.0));
        assert!(close(asked.micro_f1, 100.0 / 3.0) && close(asked.macro_f1, 50.0));
        // From 0.45 to 0.9 only label 0 of the first point is answered; up to 0.3 all four, of which two are right.
        let best = found.best.unwrap();
        assert!(best.threshold == 0.05 && close(best.micro_f1, 400.0 / 7.0));

        let figures = found.by_label.figures_named(|label| label.0.to_string());
        assert_eq!(found.by_label.threshold(), Some(0.42));
        let names: Vec<_> = figures.iter().map(|f| f.label.as_str()).collect();
        assert_eq!(names, ["0", "1", "2"], "label 7 belongs to a skipped point");
        let [_, second, third] = &figures[..] else {
            panic!("three labels");
        };
        assert_eq!((second.support, third.support), (2, 0));
        assert_eq!(second.recall_at_5, Some(50.0));
        assert_eq!(
            (second.precision, second.recall, second.f1),
            (None, Some(0.0), Some(0.0))
        );
        assert_eq!(
            (third.precision, third.recall, third.f1),
            (Some(0.0), None, Some(0.0))
        );
    }

    #[test]
    fn values_outside_of_0_to_1_have_no_thresholds() {
        for bad in [1.5, -0.1, f32::NAN] {
            let mut builder = ThresholdsBuilder::new(Some(0.5), FilterPairs::default());
            builder.push(&[0], &scored(&[(0, bad)]), |score| score);
            let found = builder.finish();
            assert_eq!((found.best, found.asked), (None, None), "{bad}");
            let figures = found.by_label.figures_named(|label| label.0.to_string());
            assert_eq!((figures[0].recall_at_5, figures[0].f1), (Some(100.0), None));
        }
    }

    #[test]
    fn no_points_have_no_figures() {
        let found = ThresholdsBuilder::new(None, FilterPairs::default()).finish();
        assert_eq!((found.best, found.by_label.threshold()), (None, None));
    }
}
