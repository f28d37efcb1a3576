//! How accurate a model is, and how fast.

use std::time::Instant;

use elias::bench::{median, percentile};
use elias::insight::Reliability;
use elias::metrics::{
    DecilesBuilder, FilterPairs, InversePropensities, MetricsBuilder, MetricsOptions, Propensity,
    inverse_propensities, label_counts,
};
use elias::{Dataset, Level, Predictor, Query, Scored};

use crate::ui::console::Console;
use crate::ui::figures::{DECILE_K, Figures, Timing};
use crate::ui::progress::{Progress, Unit};

/// Answers per point: as many as the longest cut-off of the metrics.
const N_ANSWERS: usize = 100;
/// Answers per single query: the default of `elias predict`.
const N_QUERY_ANSWERS: usize = 10;
/// Maximum number of single queries that are timed.
pub(crate) const N_QUERIES: usize = 2000;
/// Single queries to warm up, which are not timed.
const N_WARM_UP: usize = 100;
/// Points per batch.
const BATCH: usize = 8192;
/// Best answers per point whose probabilities are compared with the truth.
pub(crate) const N_RELIABLE: usize = 5;
/// Bins of the reliability curve.
const N_BINS: usize = 10;

/// What to measure of a model.
#[derive(Default)]
pub(crate) struct Measurement {
    pub(crate) scoring: Scoring,
    /// The part of the model that answers.
    pub(crate) level: Level,
    /// Single queries to time; 0 times none.
    pub(crate) n_queries: usize,
}

/// How rankings are scored.
#[derive(Clone, Default)]
pub(crate) struct Scoring {
    pub(crate) propensity: Propensity,
    pub(crate) filter: FilterPairs,
    pub(crate) by_decile: bool,
}

/// How often each label occurs in training.
pub(crate) struct Frequencies {
    /// Training points of each label.
    pub(crate) counts: Vec<usize>,
    /// All training points.
    pub(crate) n_points: usize,
}

impl Frequencies {
    /// The frequencies of a training set.
    pub(crate) fn of_data(train: &Dataset) -> Self {
        Frequencies {
            counts: label_counts(train.labels()),
            n_points: train.n_points(),
        }
    }

    /// The frequencies a model was trained with, for `n_labels` labels; those it does not know occur 0 times.
    pub(crate) fn of_model(predictor: &Predictor, n_labels: usize) -> Self {
        let counts = predictor.label_counts().iter();
        let mut counts: Vec<usize> = counts.map(|&count| count as usize).collect();
        counts.resize(n_labels, 0);
        Frequencies {
            counts,
            n_points: predictor.plan().counts().n_points,
        }
    }

    /// The weights of PSP@k.
    pub(crate) fn inverse_propensities(&self, propensity: Propensity) -> InversePropensities {
        inverse_propensities(&self.counts, self.n_points, propensity)
    }
}

/// Scores rankings one by one.
pub(crate) struct Scorer {
    metrics: MetricsBuilder,
    deciles: Option<DecilesBuilder>,
}

impl Scorer {
    /// Without frequencies there is no PSP@k and no recall by decile.
    pub(crate) fn new(scoring: Scoring, frequencies: Option<&Frequencies>) -> Self {
        let deciles = frequencies
            .filter(|_| scoring.by_decile)
            .map(|known| DecilesBuilder::new(&known.counts, DECILE_K, scoring.filter.clone()));
        let weights = frequencies.map(|known| known.inverse_propensities(scoring.propensity));
        let metrics = MetricsBuilder::new(MetricsOptions {
            inverse_propensities: weights,
            filter: scoring.filter,
            ..MetricsOptions::default()
        });
        Scorer { metrics, deciles }
    }

    /// Adds the next point.
    pub(crate) fn push(&mut self, truth: &[u32], ranking: &[Scored]) {
        self.metrics.push(truth, ranking);
        if let Some(deciles) = &mut self.deciles {
            deciles.push(truth, ranking);
        }
    }

    /// The metrics of all points.
    pub(crate) fn finish(self, n_labels: usize) -> Figures {
        Figures {
            metrics: self.metrics.finish(),
            deciles: self.deciles.map(DecilesBuilder::finish),
            n_labels,
            reliability: None,
            timing: None,
        }
    }
}

impl Measurement {
    /// Predicts the test set in batches, then some of its texts one at a time.
    pub(crate) fn run(
        self,
        predictor: &Predictor,
        test: &Dataset,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let frequencies = Frequencies::of_model(predictor, test.n_labels());
        let mut scorer = Scorer::new(self.scoring, Some(&frequencies));
        let level = self.level;
        let at_level = |k| Query { k, level };
        let is_calibrated = level == Level::Ensemble;
        let (mut probabilities, mut relevant) = (Vec::new(), Vec::new());
        let progress = Progress::start(console, "predicting", Unit::Items);
        let n_points = test.n_points();
        let mut seconds = 0.0;
        for first in (0..n_points).step_by(BATCH) {
            let points: Vec<usize> = (first..n_points.min(first + BATCH)).collect();
            let batch = test.select(&points);
            let started = Instant::now();
            let rankings = predictor.rank(&batch, at_level(N_ANSWERS))?;
            seconds += started.elapsed().as_secs_f64();
            for (point_idx, ranking) in points.iter().zip(&rankings) {
                let (truth, _) = test.labels().row(*point_idx);
                scorer.push(truth, ranking);
                for answer in ranking.iter().take(N_RELIABLE).filter(|_| is_calibrated) {
                    if let Some(probability) = predictor.probability(answer.score) {
                        probabilities.push(probability);
                        relevant.push(truth.binary_search(&answer.label.0).is_ok());
                    }
                }
            }
            progress.set((first + points.len()) as u64, n_points as u64);
        }
        drop(progress);
        let times = if self.n_queries > 0 {
            query_times(predictor, test, at_level(N_QUERY_ANSWERS), self.n_queries)?
        } else {
            Vec::new()
        };
        let ms_per_query = (!times.is_empty()).then(|| [median(&times), percentile(&times, 0.99)]);
        Ok(Figures {
            reliability: (!probabilities.is_empty())
                .then(|| Reliability::new(&probabilities, &relevant, N_BINS)),
            timing: Some(Timing {
                ms_per_point: 1e3 * seconds / n_points.max(1) as f64,
                ms_per_query,
            }),
            ..scorer.finish(test.n_labels())
        })
    }
}

/// Milliseconds per single query on one thread, for texts spread evenly over the data, after a warm-up.
pub(crate) fn query_times(
    predictor: &Predictor,
    test: &Dataset,
    query: Query,
    n_queries: usize,
) -> anyhow::Result<Vec<f64>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    let stride = test.n_points().div_ceil(n_queries).max(1);
    let points: Vec<usize> = (0..test.n_points()).step_by(stride).collect();
    pool.install(|| {
        let texts = test.texts().filter(|_| predictor.takes_texts());
        let time = |point_idx: usize| -> anyhow::Result<f64> {
            let started;
            match texts {
                Some(texts) => {
                    started = Instant::now();
                    std::hint::black_box(predictor.predict(texts.get(point_idx), query)?);
                }
                None => {
                    let point = test.select(&[point_idx]);
                    started = Instant::now();
                    std::hint::black_box(predictor.rank(&point, query)?);
                }
            }
            Ok(1e3 * started.elapsed().as_secs_f64())
        };
        for &point_idx in points.iter().take(N_WARM_UP) {
            time(point_idx)?;
        }
        points.iter().map(|&point_idx| time(point_idx)).collect()
    })
}
