//! The quality of a model's answers, or of anyone's rankings, against the true labels.
//!
//! [`Predictor::evaluate`] answers the points of a data set in batches and compares the 100 best labels of each with
//! its true labels; [`Evaluation::measure`] does the same for rankings that are given. Results are
//! [`Measurements`], whose serialised keys are stable: scripts rely on their names and order, and unknown values are
//! null.

use std::time::Instant;

use serde::ser::{Serialize, SerializeMap, Serializer};

use crate::config::PropensityModel;
use crate::data::Dataset;
use crate::error::{Error, Result};
use crate::ids::Scored;
use crate::matrix::CsrMatrix;
use crate::metrics::{
    AtThreshold, CountsByLabel, CutOffs, Decile, DecileOf, DecilesBuilder, FilterPairs,
    LabelFrequencies, Metrics, MetricsBuilder, MetricsOptions, Propensity, Reliability,
    ThresholdFigures, ThresholdsBuilder,
};
use crate::predict::{Level, Predictor, Query};

/// Answers per point, at least: as many as the longest default cut-off of the metrics.
const N_ANSWERS: usize = 100;
/// Points per batch.
const BATCH: usize = 8192;
/// Bins of the reliability curve.
const N_BINS: usize = 10;
/// Single queries to warm up, which are not timed.
const N_WARM_UP: usize = 100;

/// How to evaluate.
#[derive(Clone, Default)]
pub struct Evaluation<'a> {
    /// The part of the model that answers.
    pub level: Level,
    /// The numbers of answers at which P, nDCG, PSP, R and F1 are measured.
    pub cut_offs: CutOffs,
    /// The number of answers that each point was asked for; where it is `None`, the longest ranking counts.
    ///
    /// A cut-off above it is not measured, unless every label is an answer. A model is asked for enough.
    pub n_asked: Option<usize>,
    /// The constants of PSP@k.
    pub propensity: Propensity,
    /// A threshold at which F1 is wanted besides the best, from 0 to 1.
    pub threshold: Option<f32>,
    /// Whether figures by label are wanted.
    pub by_label: bool,
    /// Pairs of a point and a label that do not count; a model is measured with those of the data if there are none.
    pub filter: FilterPairs,
    /// Recall by label frequency, in tenths of this kind, if it is wanted.
    pub by_decile: Option<DecileOf>,
    /// Called with the points done and all points.
    pub on_progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// Measured quality and speed.
#[derive(Clone, Debug, PartialEq)]
pub struct Measurements {
    /// P@k, nDCG@k, PSP@k, R@k, F1@k and others of rankings.
    pub metrics: Metrics,
    /// All answers at the threshold of the highest micro F1; `None` where scores are not between 0 and 1.
    pub at_best_threshold: Option<AtThreshold>,
    /// All answers at the threshold that was asked for.
    pub at_threshold: Option<AtThreshold>,
    /// Counts by label; `None` if they were not asked for.
    pub by_label: Option<CountsByLabel>,
    /// Recall by label frequency, the most frequent tenth of the labels first; `None` if it was not asked for, or
    /// if there are fewer than 100 answers per point.
    pub deciles: Option<Vec<Decile>>,
    /// Labels of the data.
    pub n_labels: usize,
    /// Texts that the model was trained on; `None` if that is not known.
    pub n_seen: Option<usize>,
    /// Match of the probabilities of the best answers with the truth; `None` without probabilities.
    pub reliability: Option<Reliability>,
    /// Milliseconds per point, in batches on all threads; `None` for rankings that were given.
    pub ms_per_point: Option<f64>,
    /// Time of single queries, if it was measured; see [`Predictor::time_queries`].
    pub query_times: Option<QueryTimes>,
}

/// Milliseconds per single query.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct QueryTimes {
    /// Median.
    pub p50: f64,
    /// 99th percentile.
    pub p99: f64,
    /// Queries timed.
    pub n_queries: usize,
}

impl Measurements {
    /// Cut-off of recall by label frequency.
    pub const DECILE_K: usize = 100;
    /// Best answers per point whose probabilities are compared with the truth.
    pub const N_RELIABLE: usize = 5;
}

impl Evaluation<'_> {
    /// Whether its values make sense.
    ///
    /// # Errors
    /// [`Error::Query`] if the threshold is not between 0 and 1.
    pub fn check(&self) -> Result<()> {
        match self.threshold {
            Some(threshold) if !(0.0..=1.0).contains(&threshold) => Err(Error::Query {
                name: "threshold",
                found: threshold.to_string(),
                expected: "a number from 0 to 1",
            }),
            _ => Ok(()),
        }
    }

    /// Compares rankings with the true labels; row `i` of `truth` belongs to the `i`-th ranking.
    ///
    /// Without the labels' frequencies there is no PSP@k and no recall by decile.
    pub fn measure<R: AsRef<[Scored]>>(
        &self,
        truth: &CsrMatrix,
        rankings: impl IntoIterator<Item = R>,
        frequencies: Option<&LabelFrequencies>,
    ) -> Measurements {
        let mut scorer = Scorer::new(self, frequencies);
        for (point_idx, ranking) in rankings.into_iter().enumerate().take(truth.n_rows()) {
            scorer.push(truth.row(point_idx).0, ranking.as_ref(), |score| score);
            self.report_progress(point_idx + 1, truth.n_rows());
        }
        scorer.finish(truth.n_cols())
    }

    fn report_progress(&self, n_done: usize, n_points: usize) {
        if let Some(on_progress) = self.on_progress {
            on_progress(n_done as u64, n_points as u64);
        }
    }
}

impl Predictor {
    /// Compares its answers with the true labels of a data set, which was read with the labels of this model.
    ///
    /// # Examples
    /// ```
    /// # use elias::{Config, Dataset, Evaluation, Trainer};
    /// # let data = Dataset::from_texts((0..40).map(|n| (format!("word{n}"), [format!("label{n}")])));
    /// # let config = Config::from_toml("stage1.epochs = 1\nstage2.epochs = 1")?;
    /// let predictor = Trainer::new(config).train(&data)?;
    /// let measured = predictor.evaluate(&data, &Evaluation::default())?;
    /// assert!(measured.metrics.precision(1) <= Some(100.0));
    /// # Ok::<(), elias::Error>(())
    /// ```
    ///
    /// # Errors
    /// As [`Predictor::predict_batch`].
    pub fn evaluate(&self, test: &Dataset, evaluation: &Evaluation<'_>) -> Result<Measurements> {
        let n_asked = N_ANSWERS.max(evaluation.cut_offs.deepest());
        let query = Query {
            k: n_asked.min(self.labels().len()),
            level: evaluation.level,
            ..Query::default()
        };
        self.check_query(&query)?;
        evaluation.check()?;
        let mut evaluation = Evaluation {
            n_asked: Some(n_asked),
            ..evaluation.clone()
        };
        if evaluation.filter.is_empty() {
            evaluation.filter = test.filter().iter().copied().collect();
        }
        let evaluation = &evaluation;
        let frequencies = self.frequencies(test.n_labels());
        let mut scorer = Scorer::new(evaluation, Some(&frequencies));
        let is_top = evaluation.level == Level::Ensemble;
        let (mut probabilities, mut relevant) = (Vec::new(), Vec::new());
        let n_points = test.n_points();
        let mut seconds = 0.0;
        for first in (0..n_points).step_by(BATCH) {
            let points: Vec<usize> = (first..n_points.min(first + BATCH)).collect();
            let batch = test.select(&points);
            let started = Instant::now();
            let rankings = self.rank(&batch, &query)?;
            seconds += started.elapsed().as_secs_f64();
            for (&point_idx, ranking) in points.iter().zip(&rankings) {
                let truth = test.labels().row(point_idx).0;
                scorer.push(truth, ranking, |score| {
                    let probability = self.probability(score).filter(|_| is_top);
                    probability.unwrap_or(score)
                });
                let is_kept =
                    |answer: &&Scored| !evaluation.filter.contains(point_idx, answer.label);
                let best = ranking
                    .iter()
                    .filter(is_kept)
                    .take(Measurements::N_RELIABLE);
                for answer in best.filter(|_| is_top) {
                    if let Some(probability) = self.probability(answer.score) {
                        probabilities.push(probability);
                        relevant.push(truth.binary_search(&answer.label.0).is_ok());
                    }
                }
            }
            evaluation.report_progress(first + points.len(), n_points);
        }
        let has_probabilities = !probabilities.is_empty();
        Ok(Measurements {
            reliability: has_probabilities
                .then(|| Reliability::new(&probabilities, &relevant, N_BINS)),
            n_seen: self.n_seen(test),
            ms_per_point: Some(1e3 * seconds / n_points.max(1) as f64),
            ..scorer.finish(test.n_labels())
        })
    }

    /// The constants of PSP@k that belong to the data set it was trained for.
    pub fn propensity(&self) -> Propensity {
        match self.plan().config().data.propensity {
            PropensityModel::Default => Propensity::default(),
            PropensityModel::Amazon => Propensity::AMAZON,
            PropensityModel::Wikipedia => Propensity::WIKIPEDIA,
        }
    }

    /// Times up to `n_queries` queries, one after the other, for points spread evenly over the data, after a warm-up.
    ///
    /// A transformer works on the caller's thread pool; for the time on one thread, call this on such a pool.
    ///
    /// # Errors
    /// As [`Predictor::predict`].
    pub fn time_queries(
        &self,
        test: &Dataset,
        query: impl Into<Query>,
        n_queries: usize,
    ) -> Result<Option<QueryTimes>> {
        let query = query.into();
        let stride = test.n_points().div_ceil(n_queries.max(1)).max(1);
        let points: Vec<usize> = (0..test.n_points()).step_by(stride).collect();
        let is_of_texts = self.takes_texts() && test.embeddings().is_none();
        let texts = test.texts().filter(|_| is_of_texts);
        let time = |point_idx: usize| -> Result<f64> {
            let started;
            match texts {
                Some(texts) => {
                    started = Instant::now();
                    std::hint::black_box(self.predict(texts.get(point_idx), &query)?);
                }
                None => {
                    let point = test.select(&[point_idx]);
                    started = Instant::now();
                    std::hint::black_box(self.predict_batch(&point, &query)?);
                }
            }
            Ok(1e3 * started.elapsed().as_secs_f64())
        };
        for &point_idx in points.iter().take(N_WARM_UP) {
            time(point_idx)?;
        }
        let times = points.iter().map(|&point_idx| time(point_idx));
        let mut times = times.collect::<Result<Vec<f64>>>()?;
        times.sort_by(f64::total_cmp);
        let at = |share: f64| times.get((share * (times.len() - 1) as f64).round() as usize);
        Ok((!times.is_empty()).then(|| QueryTimes {
            p50: at(0.5).copied().unwrap_or(f64::NAN),
            p99: at(0.99).copied().unwrap_or(f64::NAN),
            n_queries: times.len(),
        }))
    }

    /// The frequencies it was trained with, for `n_labels` labels; those it does not know occur 0 times.
    pub(crate) fn frequencies(&self, n_labels: usize) -> LabelFrequencies {
        let counts = self.label_counts().iter().map(|&count| count as usize);
        let unknown = n_labels.saturating_sub(self.label_counts().len());
        LabelFrequencies {
            counts: counts.chain(std::iter::repeat_n(0, unknown)).collect(),
            // All that were read, as for predictions, though those without labels train nothing.
            n_points: self
                .training_data()
                .n_points
                .max(self.plan().counts().n_points),
        }
    }
}

/// Scores rankings one by one.
struct Scorer {
    metrics: MetricsBuilder,
    deciles: Option<DecilesBuilder>,
    thresholds: ThresholdsBuilder,
    by_label: bool,
    /// The length of the longest ranking, or the number of answers that were asked for.
    depth: usize,
}

impl Scorer {
    fn new(evaluation: &Evaluation<'_>, frequencies: Option<&LabelFrequencies>) -> Self {
        let filter = &evaluation.filter;
        let deciles = frequencies.zip(evaluation.by_decile).map(|(known, of)| {
            DecilesBuilder::new(&known.counts, of, Measurements::DECILE_K, filter.clone())
        });
        let metrics = MetricsBuilder::new(MetricsOptions {
            cut_offs: evaluation.cut_offs.clone(),
            inverse_propensities: frequencies
                .map(|known| known.inverse_propensities(evaluation.propensity)),
            filter: filter.clone(),
        });
        Scorer {
            metrics,
            deciles,
            thresholds: ThresholdsBuilder::new(evaluation.threshold, filter.clone()),
            by_label: evaluation.by_label,
            depth: evaluation.n_asked.unwrap_or(0),
        }
    }

    /// Adds the next point; `value` is the probability of a score, or the score itself.
    fn push(&mut self, truth: &[u32], ranking: &[Scored], value: impl Fn(f32) -> f32) {
        self.depth = self.depth.max(ranking.len());
        self.metrics.push(truth, ranking);
        self.thresholds.push(truth, ranking, value);
        if let Some(deciles) = &mut self.deciles {
            deciles.push(truth, ranking);
        }
    }

    fn finish(self, n_labels: usize) -> Measurements {
        // Nothing follows a ranking of all labels.
        let depth = if self.depth >= n_labels {
            usize::MAX
        } else {
            self.depth
        };
        let deciles = self.deciles.filter(|_| depth >= Measurements::DECILE_K);
        let ThresholdFigures {
            best,
            asked,
            by_label,
        } = self.thresholds.finish();
        Measurements {
            metrics: self.metrics.finish(depth),
            at_best_threshold: best,
            at_threshold: asked,
            by_label: self.by_label.then_some(by_label),
            deciles: deciles.map(DecilesBuilder::finish),
            n_labels,
            n_seen: None,
            reliability: None,
            ms_per_point: None,
            query_times: None,
        }
    }
}

impl Serialize for Measurements {
    fn serialize<S: Serializer>(&self, serializer: S) -> Result<S::Ok, S::Error> {
        let metrics = &self.metrics;
        let mut map = serializer.serialize_map(None)?;
        let cut_offs = metrics.cut_offs();
        for (family, ks, value) in [
            ("p", cut_offs.ranked(), Metrics::precision as fn(&_, _) -> _),
            ("ndcg", cut_offs.ranked(), Metrics::ndcg),
            ("psp", cut_offs.ranked(), Metrics::psp),
            ("r", cut_offs.recall(), Metrics::recall),
            ("f1", cut_offs.ranked(), Metrics::f1),
            ("point_f1", cut_offs.ranked(), Metrics::point_f1),
        ] {
            for &k in ks {
                map.serialize_entry(&format!("{family}@{k}"), &value(metrics, k))?;
            }
        }
        map.serialize_entry("r_precision", &metrics.r_precision())?;
        map.serialize_entry("average_recall", &metrics.average_recall())?;
        map.serialize_entry("at_best_threshold", &self.at_best_threshold)?;
        if let Some(at_threshold) = &self.at_threshold {
            map.serialize_entry("at_threshold", at_threshold)?;
        }
        map.serialize_entry("n_points", &metrics.n_points())?;
        map.serialize_entry("n_skipped", &metrics.n_skipped())?;
        map.serialize_entry("n_labels", &self.n_labels)?;
        map.serialize_entry("n_seen", &self.n_seen)?;
        map.serialize_entry("ms_per_point", &self.ms_per_point)?;
        let query = self.query_times;
        map.serialize_entry("ms_per_query_p50", &query.map(|times| times.p50))?;
        map.serialize_entry("ms_per_query_p99", &query.map(|times| times.p99))?;
        if let Some(reliability) = &self.reliability {
            let name = format!("ece@{}", Measurements::N_RELIABLE);
            map.serialize_entry(&name, &reliability.expected_calibration_error())?;
            map.serialize_entry("reliability", &reliability.bins)?;
        }
        if let Some(deciles) = &self.deciles {
            map.serialize_entry("by_decile", deciles)?;
        }
        map.end()
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LabelId;

    #[test]
    fn measurements_have_the_same_keys_in_the_same_order_whatever_is_known() {
        let truth = CsrMatrix::new(vec![0, 2, 2], vec![0, 3], vec![1.0; 2], 4).unwrap();
        let ranking = [(3, 0.9), (1, 0.5)].map(|(label, score)| Scored {
            label: LabelId(label),
            score,
        });
        let evaluation = Evaluation {
            by_decile: Some(DecileOf::Labels),
            ..Evaluation::default()
        };
        let measured = evaluation.measure(&truth, [&ranking, &ranking], None);
        assert_eq!(measured.metrics.precision(1), Some(100.0));
        assert_eq!(measured.metrics.recall(1), Some(50.0));
        // Two answers of four labels: what looks further is not measured.
        assert_eq!(
            (
                measured.metrics.precision(3),
                measured.metrics.average_recall()
            ),
            (None, None)
        );
        assert_eq!(
            (measured.metrics.n_points(), measured.metrics.n_skipped()),
            (1, 1)
        );
        assert_eq!((measured.metrics.psp(1), &measured.deciles), (None, &None));
        let json = serde_json::to_string(&measured).unwrap();
        let beginning = r#"{"p@1":100.0,"p@3":null,"#;
        assert!(json.starts_with(beginning), "{json}");
        let end = r#""n_labels":4,"n_seen":null,"ms_per_point":null,"ms_per_query_p50":null,"ms_per_query_p99":null}"#;
        assert!(json.ends_with(end), "{json}");
        assert!(json.contains(r#""psp@1":null"#), "{json}");

        let frequencies = LabelFrequencies::of(&truth);
        let known = evaluation.measure(&truth, [ranking], Some(&frequencies));
        assert!(known.metrics.psp(1).is_some() && known.deciles.is_none());
        let asked = Evaluation {
            n_asked: Some(100),
            ..evaluation
        };
        let known = asked.measure(&truth, [ranking], Some(&frequencies));
        assert!(known.metrics.recall(100).is_some() && known.deciles.is_some());
    }
}
