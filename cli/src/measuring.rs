//! Evaluations with a progress bar, and the time of single queries.

use elias::{Dataset, Evaluation, Measurements, Predictor, Query, QueryTimes};

use crate::ui::console::Console;
use crate::ui::progress::{Progress, Unit};

/// Maximum number of single queries that are timed.
const N_QUERIES: usize = 2000;

/// Compares the answers of a model with the true labels.
pub(crate) fn evaluate(
    predictor: &Predictor,
    test: &Dataset,
    evaluation: Evaluation<'_>,
    console: &Console,
) -> elias::Result<Measurements> {
    let progress = Progress::start(console, "predicting", Unit::Items);
    let evaluation = Evaluation {
        on_progress: Some(&|done, total| progress.set(done, total)),
        ..evaluation
    };
    predictor.evaluate(test, &evaluation)
}

/// The time of single queries, one text at a time on one thread.
pub(crate) fn time_queries(
    predictor: &Predictor,
    test: &Dataset,
    query: Query,
) -> anyhow::Result<Option<QueryTimes>> {
    let pool = rayon::ThreadPoolBuilder::new().num_threads(1).build()?;
    Ok(pool.install(|| predictor.time_queries(test, query, N_QUERIES))?)
}
