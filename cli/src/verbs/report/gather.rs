//! From a model and its data to everything a report shows.

use std::path::Path;

use elias::checkpoint::{self, DataSummary};
use elias::data::{Dataset, Texts};
use elias::encoder::PointSet;
use elias::ids::{ClusterId, LabelId, Scored};
use elias::index::Cut;
use elias::insight::{
    self, IndexHealth, LabelMap, MapOptions, assigning_score, clusters_of_points, measure_stage,
};
use elias::metrics::{MetricsOptions, Propensity, evaluate, inverse_propensities};
use elias::predict::{Predictor, Stage};

use super::cache::Cache;
use super::data::{PruneRow, Pruning, ReportData, TestFigures, Times, TrainFigures};
use crate::models;
use crate::ui::console::Console;
use crate::ui::progress::{Progress, Unit};
use crate::ui::table::shorten;

/// Answers a point.
const N_ANSWERS: usize = 100;
/// Points a batch, between two movements of a bar.
const BATCH: usize = 4096;
const N_HARDEST: usize = 30;
const N_WORDS: usize = 8;
const N_STRONGEST: usize = 8;
/// The paper's thresholds, and its numbers of edges as shares of κ.
const THRESHOLDS: [f32; 8] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9];
const TOP_K_SHARES: [f64; 7] = [1.0, 0.75, 0.5, 0.3, 0.2, 0.1, 0.05];
/// Test points that pruning is measured on at most, evenly spread: fifteen indexes are measured.
const MOST_PRUNING_POINTS: usize = 5000;
/// Characters of a text that a map shows.
const MAP_TEXT: usize = 100;
/// Characters of a text in the list of the hardest points.
const HARD_TEXT: usize = 400;
/// Label frequencies within which labels are compared.
const BANDS: [(usize, usize); 4] = [(5, 9), (10, 19), (20, 49), (50, 199)];

/// Reads, computes and keeps.
pub(super) struct Gatherer<'a> {
    pub(super) model: &'a Path,
    pub(super) test: &'a Dataset,
    pub(super) train: Option<&'a Dataset>,
    pub(super) is_cached: bool,
    pub(super) console: &'a Console,
}

impl Gatherer<'_> {
    pub(super) fn gather(&self, predictor: &Predictor) -> anyhow::Result<ReportData> {
        let description = checkpoint::describe(self.model)?;
        let cache = Cache::new((self.model, &description), self.is_cached, self.console);
        let test_key = DataSummary::of(self.test).sha256;
        let features = predictor.points(self.test)?;
        let test = cache.get("test", &test_key, || self.measure(predictor, &features))?;
        let pruning = match predictor.members()[0].model.adjacency.weights() {
            Some(_) => Some(cache.get("pruning", &test_key, || self.prune(&features))?),
            None => None,
        };
        let train = match self.train {
            Some(train) => {
                let key = DataSummary::of(train).sha256;
                Some(cache.get("train", &key, || self.map(predictor, train))?)
            }
            None => None,
        };
        let first = &predictor.members()[0];
        let (strongest, clusters_of) = assignments(predictor);
        let name = self.model.file_name().map(|name| name.to_string_lossy());
        let times = std::fs::read(models::times_of(self.model)).ok();
        Ok(ReportData {
            name: name.unwrap_or_default().into_owned(),
            label_counts: predictor.label_counts().to_vec(),
            health: IndexHealth::of(first, predictor.label_counts()),
            times: times.and_then(|text| serde_json::from_slice::<Times>(&text).ok()),
            description,
            strongest,
            clusters_of,
            test,
            pruning,
            train,
        })
    }

    /// Every stage on the test set.
    fn measure(&self, predictor: &Predictor, features: &PointSet) -> anyhow::Result<TestFigures> {
        let truth = self.test.labels();
        let mut counts: Vec<usize> = predictor
            .label_counts()
            .iter()
            .map(|&n| n as usize)
            .collect();
        counts.resize(self.test.n_labels(), 0);
        let n_train = predictor.plan().counts().n_points;
        let weights = || inverse_propensities(&counts, n_train, Propensity::default());
        let mut stages = Vec::new();
        let mut rankings: Vec<(Stage, Vec<Vec<Scored>>)> = Vec::new();
        for stage in Stage::ALL {
            // The topmost stage is the model itself; those it does not have are left out.
            let Ok(part) = models::load(self.model)?.at_stage(stage) else {
                continue;
            };
            if stage == Stage::Ensemble && predictor.members().len() == 1 {
                continue;
            }
            let found = self.predict(&part, features, stage.name())?;
            stages.push(measure_stage(
                stage.name(),
                truth,
                &found,
                &counts,
                weights(),
            ));
            rankings.push((stage, found));
        }
        let of = |stage: Stage| {
            let found = rankings.iter().find(|(of, _)| *of == stage);
            found.map_or(&[][..], |(_, rankings)| &rankings[..])
        };
        let (_, last) = rankings.last().expect("every model has stage 2");
        let compared = insight::StageRankings {
            model: of(Stage::Stage2),
            ranker: of(Stage::Ranker),
            last,
        };
        let spread = insight::score_spread(truth, compared, &counts);
        let hardest = insight::find_hardest(predictor, features, truth, last, N_HARDEST);
        let text = |point: usize| match self.test.texts() {
            Some(texts) => shorten(texts.get(point), HARD_TEXT),
            None => format!("point {point}"),
        };
        Ok(TestFigures {
            n_points: self.test.n_points(),
            stages,
            spread,
            reliability: insight::reliability(predictor, truth, last, 5),
            labels: insight::recall_of_labels(truth, last),
            texts: hardest.iter().map(|hard| text(hard.point)).collect(),
            hardest,
            label_names: self
                .test
                .label_set()
                .names()
                .iter()
                .map(str::to_owned)
                .collect(),
        })
    }

    fn predict(
        &self,
        predictor: &Predictor,
        features: &PointSet,
        what: &str,
    ) -> anyhow::Result<Vec<Vec<Scored>>> {
        let progress = Progress::start(self.console, what, Unit::Items);
        let n_points = features.len();
        let mut rankings = Vec::with_capacity(n_points);
        for first in (0..n_points).step_by(BATCH) {
            let points: Vec<usize> = (first..n_points.min(first + BATCH)).collect();
            let batch = features.select_rows(&points);
            rankings.extend(predictor.predict_points(batch.points(), N_ANSWERS)?);
            progress.set(rankings.len() as u64, n_points as u64);
        }
        Ok(rankings)
    }

    /// Stage 2 with fewer and fewer edges.
    fn prune(&self, features: &PointSet) -> anyhow::Result<Pruning> {
        let mut predictor = models::load(self.model)?.at_stage(Stage::Stage2)?;
        let whole = predictor.members()[0].model.adjacency.clone();
        let kappa = predictor.plan().kappa();
        let stride = features.len().div_ceil(MOST_PRUNING_POINTS).max(1);
        let points: Vec<usize> = (0..features.len()).step_by(stride).collect();
        let features = &features.select_rows(&points);
        let truth = &self.test.labels().select_rows(&points);
        let mut last: Option<(usize, [f64; 4])> = None;
        let mut row = |cut: Cut, value: f64| -> anyhow::Result<PruneRow> {
            let pruned = whole.pruned(cut)?;
            let metrics = match last {
                // The same edges give the same answers.
                Some((n_removed, metrics)) if n_removed == pruned.n_removed => metrics,
                _ => {
                    predictor.members_mut()[0].model.adjacency = pruned.adjacency;
                    let found =
                        self.predict(&predictor, features, &format!("pruned at {value}"))?;
                    let metrics = evaluate(truth, &found, MetricsOptions::default());
                    ["p@1", "p@5", "r@10", "r@100"].map(|name| metrics.get(name).unwrap_or(0.0))
                }
            };
            last = Some((pruned.n_removed, metrics));
            Ok(PruneRow {
                cut: value,
                removed: 100.0 * pruned.n_removed as f64 / whole.edges().len().max(1) as f64,
                n_rescued: pruned.n_rescued,
                metrics,
            })
        };
        let thresholds = THRESHOLDS.iter();
        let by_threshold = thresholds
            .map(|&at| row(Cut::Threshold(at), (f64::from(at) * 1e4).round() / 1e4))
            .collect::<anyhow::Result<_>>()?;
        let ks = TOP_K_SHARES.map(|share| ((kappa as f64 * share).round() as usize).max(1));
        let by_top_k = ks
            .iter()
            .map(|&k| row(Cut::TopK(k), k as f64))
            .collect::<anyhow::Result<_>>()?;
        Ok(Pruning {
            n_points: points.len(),
            by_threshold,
            by_top_k,
        })
    }

    /// Clusters, words and maps of the training points.
    fn map(&self, predictor: &Predictor, train: &Dataset) -> anyhow::Result<TrainFigures> {
        let progress = Progress::start(self.console, "clusters and maps", Unit::Items);
        let member = &predictor.members()[0];
        let features = predictor.points(train)?;
        let points = clusters_of_points(member, &features);
        progress.set(1, 4);
        let n_clusters = member.model.clusters.n_clusters();
        let clusters = insight::cluster_words(&points, &features.features, n_clusters, N_WORDS);
        let vocabulary = predictor
            .vectorizer()
            .map(|vectorizer| vectorizer.vocabulary());
        let name = |column: &u32| match vocabulary {
            Some(words) => words.get(*column as usize).to_owned(),
            None => format!("feature {column}"),
        };
        let words = clusters
            .iter()
            .map(|one| one.columns.iter().map(name).collect());
        let words = words.collect();
        progress.set(2, 4);
        let maps = insight::label_maps(member, &points, train.labels(), &MapOptions::default());
        progress.set(3, 4);
        let map_texts = [0, 1].map(|kind| texts_of(&maps[kind], train.texts()));
        let compactness = insight::compactness(member, &points, train.labels(), &BANDS);
        Ok(TrainFigures {
            clusters,
            words,
            maps,
            map_texts,
            compactness,
        })
    }
}

fn texts_of(maps: &[LabelMap], texts: Option<&Texts>) -> Vec<Vec<String>> {
    let text = |point: u32| match texts {
        Some(texts) => shorten(texts.get(point as usize), MAP_TEXT),
        None => format!("point {point}"),
    };
    maps.iter()
        .map(|map| map.points.iter().map(|at| text(at.point)).collect())
        .collect()
}

/// The strongest labels assigned to each cluster, and the clusters each label is assigned to.
fn assignments(predictor: &Predictor) -> (Vec<Vec<u32>>, Vec<Vec<u32>>) {
    let model = &predictor.members()[0].model;
    let adjacency = &model.adjacency;
    let mut of_label: Vec<Vec<(f32, u32)>> = vec![Vec::new(); model.classifiers.n_labels()];
    let mut strongest = Vec::new();
    let assigned_above = assigning_score(adjacency);
    for cluster_idx in 0..model.clusters.n_clusters() {
        let range = adjacency.edges().range(ClusterId(cluster_idx as u32));
        let mut row: Vec<(u32, f32, f32)> = range
            .map(|edge| {
                let label: LabelId = model.numbering.label(adjacency.edges().labels()[edge]);
                let weight = adjacency.weights().map_or(0.0, |weights| weights[edge]);
                (label.0, adjacency.scores()[edge], weight)
            })
            .collect();
        // Saturated scores tie; the weights behind them do not.
        row.sort_by(|a, b| {
            (b.1, b.2)
                .partial_cmp(&(a.1, a.2))
                .unwrap_or(std::cmp::Ordering::Equal)
        });
        row.retain(|&(_, score, _)| assigned_above < score);
        for &(label, score, _) in &row {
            of_label[label as usize].push((score, cluster_idx as u32));
        }
        let first = row.iter().take(N_STRONGEST);
        strongest.push(first.map(|&(label, _, _)| label).collect());
    }
    let clusters_of = of_label.into_iter().map(|mut clusters| {
        clusters.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
        clusters.into_iter().map(|(_, cluster)| cluster).collect()
    });
    (strongest, clusters_of.collect())
}
