//! `elias bench predict`: latency, throughput, and memory traffic per query.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use elias::data::Part;
use elias::internals::{median, points, predict_points, query_work};
use elias::{Query, QueryTimes};

use super::{read, write_figures};
use crate::measuring::time_queries;
use crate::models;
use crate::rules::RuleArgs;
use crate::ui::console::Console;

/// Passes over the data; the median is reported.
const N_ROUNDS: usize = 3;

/// Measure prediction: latency of single queries and throughput of batches
///
/// Latency: one text at a time on one thread. Throughput: all texts in batches on all threads, median of three passes.
/// Both include tokenising and encoding; `queries_per_s_from_features` starts from precomputed features. Also reports
/// the rows scored and the bytes read per query. With rules for labels, passes with and without them alternate, and
/// `time_ratio_of_rules` is the median of their ratios.
#[derive(Args)]
pub(super) struct BenchPredict {
    /// The model
    model: PathBuf,
    /// Test data [default: the bundled set]
    data: Option<PathBuf>,
    /// Labels per text
    #[arg(short = 'k', long, value_name = "N", default_value_t = Query::default().k)]
    top_k: usize,
    /// Part of the model to measure: stage1, stage2, networks, ranker, calibrated or ensemble
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    #[command(flatten)]
    rules: RuleArgs,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BenchPredict {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load(&self.model)?;
        let query = Query {
            k: self.top_k,
            level: models::parse_level(&predictor, self.stage.as_deref())?,
            ..Query::default()
        };
        let data = read(self.data.as_deref(), Part::Test, console)?;
        let times = time_queries(&predictor, &data, query.clone())?;
        let ms = |of: fn(&QueryTimes) -> f64| times.as_ref().map_or(f64::NAN, of);
        let points = points(&predictor, &data)?;
        let ruled = Query {
            rules: self.rules.resolve(&predictor)?,
            ..query.clone()
        };
        let seconds = |query: &Query| -> anyhow::Result<f64> {
            let started = Instant::now();
            std::hint::black_box(predictor.predict_batch(&data, query)?);
            Ok(started.elapsed().as_secs_f64())
        };
        let (mut rates, mut from_features, mut ratios) = (Vec::new(), Vec::new(), Vec::new());
        for _ in 0..N_ROUNDS {
            let plain = seconds(&query)?;
            rates.push(data.n_points() as f64 / plain);
            if ruled != query {
                ratios.push(seconds(&ruled)? / plain);
            }
            let started = Instant::now();
            std::hint::black_box(predict_points(&predictor, &points, &query)?);
            from_features.push(data.n_points() as f64 / started.elapsed().as_secs_f64());
        }
        let work = query_work(&predictor, &points, self.top_k)?;
        let mut figures = vec![
            ("ms_per_query_p50", ms(|times| times.p50)),
            ("ms_per_query_p99", ms(|times| times.p99)),
            ("queries_per_s", median(&rates)),
            ("queries_per_s_from_features", median(&from_features)),
            ("rows_scored_per_query", work.rows_scored),
            ("bytes_read_per_query", work.bytes_read),
            ("n_queries", ms(|times| times.n_queries as f64)),
            ("top_k", self.top_k as f64),
            ("n_threads", rayon::current_num_threads() as f64),
        ];
        if !ratios.is_empty() {
            figures.push(("time_ratio_of_rules", median(&ratios)));
        }
        write_figures(&figures, self.json)
    }
}
