//! `elias bench predict`: latency, throughput, and what a query reads.

use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use elias::classifiers::LabelWeights;
use elias::data::Part;
use elias::encoder::PointSet;
use elias::index::{ShortlistOptions, Shortlister};
use elias::matrix::Matrix;
use elias::model::RankScratch;
use elias::predict::Predictor;

use super::{read, write_figures};
use crate::measuring::{N_QUERIES, query_times};
use crate::models;
use crate::sgemm::{median, percentile};
use crate::ui::console::Console;

/// Rounds of the whole data; the median counts.
const N_ROUNDS: usize = 3;

/// Latency of single queries, throughput of batches, and what a query reads
///
/// Latency: one text at a time on one thread. Throughput: all texts in batches on all threads, the median of three
/// rounds. Tokenising and encoding are included in both; `queries_per_s_from_features` starts from ready features, as
/// libraries do that take nothing else.
#[derive(Args)]
pub(super) struct BenchPredict {
    /// The model
    model: PathBuf,
    /// Test data; the bundled set unless given
    data: Option<PathBuf>,
    /// Labels a text
    #[arg(short = 'k', long, value_name = "N", default_value_t = 10)]
    top_k: usize,
    /// Measure a part of the model: stage1, stage2, ranker, calibrated or ensemble
    #[arg(long, value_name = "NAME")]
    stage: Option<String>,
    /// Print JSON
    #[arg(long)]
    json: bool,
}

impl BenchPredict {
    pub(super) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let predictor = models::load_stage(&self.model, self.stage.as_deref())?;
        let data = read(self.data.as_deref(), Part::Test, console)?;
        let times = query_times(&predictor, &data, (N_QUERIES, self.top_k))?;
        let points = predictor.points(&data)?;
        let (mut rates, mut from_features) = (Vec::new(), Vec::new());
        for _ in 0..N_ROUNDS {
            let started = Instant::now();
            std::hint::black_box(predictor.predict_dataset(&data, self.top_k)?);
            rates.push(data.n_points() as f64 / started.elapsed().as_secs_f64());
            let started = Instant::now();
            std::hint::black_box(predictor.predict_points(points.points(), self.top_k)?);
            from_features.push(data.n_points() as f64 / started.elapsed().as_secs_f64());
        }
        let work = work(&predictor, &points, self.top_k);
        write_figures(
            &[
                ("ms_per_query_p50", median(&times)),
                ("ms_per_query_p99", percentile(&times, 0.99)),
                ("queries_per_s", median(&rates)),
                ("queries_per_s_from_features", median(&from_features)),
                ("rows_scored_per_query", work.rows_scored),
                ("bytes_read_per_query", work.bytes_read),
                ("n_queries", times.len() as f64),
                ("top_k", self.top_k as f64),
                ("n_threads", rayon::current_num_threads() as f64),
            ],
            self.json,
        )
    }
}

/// What a query takes, on average.
struct Work {
    rows_scored: f64,
    bytes_read: f64,
}

/// Rows of W_L that were scored, and bytes of all parameters that a query reads: words, residual block, clusters,
/// edges of the searched clusters, scored labels.
fn work(predictor: &Predictor, points: &PointSet, top_k: usize) -> Work {
    let features = &points.features;
    let plan = predictor.plan();
    let options = ShortlistOptions {
        beam_size: plan.beam_size(),
        shortlist_size: plan.shortlist_size(),
        score_floor: 0.0,
    };
    let member = &predictor.members()[0];
    let model = &member.model;
    let mut scratch = RankScratch::new(model);
    let mut searcher = Shortlister::new(model.classifiers.n_labels());
    let mut probabilities = vec![0.0; model.clusters.n_clusters()];
    let dim = plan.config().encoder.dim;
    let residual = if plan.config().encoder.residual {
        dim * dim
    } else {
        0
    };
    let stride = features.n_rows().div_ceil(N_QUERIES).max(1);
    let (mut n_rows, mut n_bytes, mut n_queries) = (0, 0, 0);
    for point_idx in (0..features.n_rows()).step_by(stride) {
        let mut embedding = Matrix::default();
        member
            .encoder
            .encode(points.points(), &[point_idx as u32], &mut embedding);
        model.rank(embedding.row(0), &options, top_k, &mut scratch);
        model
            .clusters
            .probabilities_of_one(embedding.row(0), &mut probabilities);
        searcher.search(&model.clusters, &model.adjacency, &probabilities, &options);
        let n_edges: usize = searcher
            .selected
            .iter()
            .map(|selection| model.adjacency.edges().range(selection.cluster).len())
            .sum();
        let n_words = features.row(point_idx).0.len();
        n_queries += 1;
        n_rows += scratch.n_rows_scored;
        let n_clusters = model.clusters.n_clusters();
        let coarse = match model.classifiers.coarse {
            // A byte a value, scale, error and bias.
            Some(_) => searcher.paths.len() * (dim + 12),
            None => 0,
        };
        let value = match model.classifiers.weights {
            LabelWeights::Full(_) => 4,
            LabelWeights::Half(_) => 2,
        };
        // An edge is a label and a score.
        n_bytes += 4 * (n_words * dim + residual + n_clusters * (dim + 1)) + 8 * n_edges;
        n_bytes += coarse + scratch.n_rows_scored * (value * dim + 4);
    }
    let mean = |sum: usize| sum as f64 / f64::from(n_queries.max(1));
    Work {
        rows_scored: mean(n_rows),
        bytes_read: mean(n_bytes),
    }
}
