//! How good a model is, and how fast.

use std::time::Instant;

use elias::insight::Reliability;
use elias::metrics::{
    DecilesBuilder, FilterPairs, MetricsBuilder, MetricsOptions, Propensity, inverse_propensities,
};
use elias::{Dataset, Level, Predictor, Query};

use crate::ui::console::Console;
use crate::ui::figures::{DECILE_K, Figures, Timing};
use crate::ui::progress::{Progress, Unit};
use elias::bench::{median, percentile};

/// Answers per point: as many as the longest cut-off of the metrics.
const N_ANSWERS: usize = 100;
/// Answers per query when single queries are timed: what `elias predict` gives by default.
const N_QUERY_ANSWERS: usize = 10;
/// Single queries timed at most.
pub(crate) const N_QUERIES: usize = 2000;
/// Single queries before the clock starts.
const N_WARM_UP: usize = 100;
/// Points per batch.
const BATCH: usize = 8192;
/// Best answers per point whose probabilities are compared with the truth.
pub(crate) const N_RELIABLE: usize = 5;
/// Bins of the reliability curve.
const N_BINS: usize = 10;

/// What to measure of a model.
#[derive(Default)]
pub(crate) struct Measuring {
    pub(crate) propensity: Propensity,
    pub(crate) filter: FilterPairs,
    pub(crate) by_decile: bool,
    /// The part of the model that answers.
    pub(crate) level: Level,
    /// Single queries to time; 0 times none.
    pub(crate) n_queries: usize,
}

impl Measuring {
    /// Predicts the test set in batches and then some of its texts one at a time.
    pub(crate) fn measure(
        self,
        predictor: &Predictor,
        test: &Dataset,
        console: &Console,
    ) -> anyhow::Result<Figures> {
        let mut counts: Vec<usize> = predictor
            .label_counts()
            .iter()
            .map(|&count| count as usize)
            .collect();
        // Labels that training never saw.
        counts.resize(test.n_labels(), 0);
        let n_train_points = predictor.plan().counts().n_points;
        let weights = inverse_propensities(&counts, n_train_points, self.propensity);
        let mut deciles = self
            .by_decile
            .then(|| DecilesBuilder::new(&counts, DECILE_K, self.filter.clone()));
        let mut metrics = MetricsBuilder::new(MetricsOptions {
            inverse_propensities: Some(weights),
            filter: self.filter,
            ..MetricsOptions::default()
        });

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
                metrics.push(truth, ranking);
                for answer in ranking.iter().take(N_RELIABLE).filter(|_| is_calibrated) {
                    if let Some(probability) = predictor.probability(answer.score) {
                        probabilities.push(probability);
                        relevant.push(truth.binary_search(&answer.label.0).is_ok());
                    }
                }
                if let Some(deciles) = &mut deciles {
                    deciles.push(truth, ranking);
                }
            }
            progress.set((first + points.len()) as u64, n_points as u64);
        }
        drop(progress);
        let ms_per_query = match self.n_queries {
            0 => None,
            n_queries => {
                let times = query_times(predictor, test, at_level(N_QUERY_ANSWERS), n_queries)?;
                (!times.is_empty()).then(|| [median(&times), percentile(&times, 0.99)])
            }
        };
        Ok(Figures {
            metrics: metrics.finish(),
            deciles: deciles.map(DecilesBuilder::finish),
            n_labels: test.n_labels(),
            reliability: (!probabilities.is_empty())
                .then(|| Reliability::new(&probabilities, &relevant, N_BINS)),
            timing: Some(Timing {
                ms_per_point: 1e3 * seconds / n_points.max(1) as f64,
                ms_per_query,
            }),
        })
    }
}

/// Milliseconds of single queries on one thread, evenly spread over the data, after some to warm up.
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
