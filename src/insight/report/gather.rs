//! Computes the contents of a report from a model and its data.

use std::path::Path;

use super::ReportOptions;
use super::cache::Cache;
use super::data::{PruneRow, Pruning, ReportData, TestFigures, TrainFigures};
use super::times::TrainingTimes;
use super::wording::shorten;
use crate::config::IndexMode;
use crate::data::{DataSummary, Dataset, Texts};
use crate::error::{Error, Result};
use crate::evaluation::Evaluation;
use crate::features::PointSet;
use crate::ids::Scored;
use crate::insight::{
    Cut, IndexHealth, LabelMap, MapOptions, StageFigures, StageRankings, assignments,
    cluster_words, clusters_of_points, compactness, find_hardest, label_maps, measure_stage,
    recall_of_labels, reliability, repetitions, score_spread, shortlist_recall, threshold_quality,
};
use crate::predict::{Level, Predictor, Query};
use crate::store;

/// Answers per point.
const N_ANSWERS: usize = 100;
/// Points per batch, between two updates of the progress bar.
const BATCH: usize = 4096;
const N_HARDEST: usize = 30;
const N_WORDS: usize = 8;
const N_STRONGEST: usize = 8;
/// The thresholds of the paper, and its numbers of edges per cluster as shares of κ.
const THRESHOLDS: [f32; 8] = [0.0, 0.01, 0.05, 0.1, 0.25, 0.5, 0.75, 0.9];
const TOP_K_SHARES: [f64; 7] = [1.0, 0.75, 0.5, 0.3, 0.2, 0.1, 0.05];
/// Maximum number of test points for pruning, evenly spread: fifteen indexes are measured.
const MAX_PRUNING_POINTS: usize = 5000;
/// Maximum number of test points for recall inside the shortlist: all labels are scored for each.
const MAX_SHORTLIST_POINTS: usize = 2000;
/// Characters of a text on a map.
const MAP_TEXT: usize = 100;
/// Characters of a text in the list of the hardest points.
const HARD_TEXT: usize = 400;
/// Ranges of label frequency within which labels are compared.
const BANDS: [(usize, usize); 4] = [(5, 9), (10, 19), (20, 49), (50, 199)];

/// Computes the contents of a report, or reads them from the cache.
pub(super) struct Gatherer<'a> {
    pub(super) model: &'a Path,
    pub(super) options: &'a ReportOptions<'a>,
}

impl Gatherer<'_> {
    pub(super) fn gather(&self, predictor: &Predictor) -> Result<ReportData> {
        // Figures of a damaged model must not get into the cache.
        predictor.check_files()?;
        let description = store::describe(self.model)?;
        let cache = Cache::new(self.model, &description, self.options.cache);
        let test_key = DataSummary::of(self.options.test).sha256;
        let features = predictor.points(self.options.test)?;
        let test = cache.get("test", &test_key, || self.measure(predictor, &features))?;
        let shortlist = cache.get("shortlist", &test_key, || {
            let points = spread_out(features.len(), MAX_SHORTLIST_POINTS);
            let truth = self.options.test.labels().select_rows(&points);
            let features = features.select_rows(&points);
            shortlist_recall(predictor, &features, &truth)
        })?;
        let fixed = self
            .options
            .fixed
            .map(|fixed| self.measure_fixed(fixed, predictor));
        let health = IndexHealth::of(predictor, 0);
        let pruning = match health.beta {
            Some(_) => Some(cache.get("pruning", &test_key, || self.prune(&features))?),
            None => None,
        };
        let train = match self.options.train {
            Some(train) => {
                let key = DataSummary::of(train).sha256;
                Some(cache.get("train", &key, || self.map(predictor, train))?)
            }
            None => None,
        };
        let train_data = self.options.train;
        let repetitions = train_data.and_then(|train| repetitions(train, self.options.test));
        let assignments = assignments(predictor, N_STRONGEST);
        let name = self.model.file_name().map(|name| name.to_string_lossy());
        Ok(ReportData {
            name: name.unwrap_or_default().into_owned(),
            label_counts: predictor.label_counts()[..predictor.n_trained_labels()].to_vec(),
            health,
            times: TrainingTimes::read(self.model),
            description,
            strongest: assignments.strongest_labels,
            clusters_of: assignments.clusters_of_label,
            test,
            shortlist,
            fixed: fixed.transpose()?,
            pruning,
            train,
            repetitions,
            n_seen: predictor.n_seen(self.options.test),
        })
    }

    /// The filter of the data and the propensity of the model.
    fn evaluation(&self, predictor: &Predictor) -> Evaluation<'static> {
        Evaluation {
            propensity: predictor.propensity(),
            filter: self.options.test.filter().iter().copied().collect(),
            ..Evaluation::default()
        }
    }

    /// Every stage on the test set.
    fn measure(&self, predictor: &Predictor, features: &PointSet) -> Result<TestFigures> {
        let truth = self.options.test.labels();
        let frequencies = predictor.frequencies(self.options.test.n_labels());
        let evaluation = self.evaluation(predictor);
        let counts = &frequencies.counts;
        let mut stages = Vec::new();
        let mut rankings: Vec<(Level, Vec<Vec<Scored>>)> = Vec::new();
        for level in Level::ALL {
            // After a few epochs of stage 1 there is nothing to compare stage 2 with.
            let is_redundant =
                level == Level::Stage1 || level.has_all_members() && predictor.n_members() == 1;
            if is_redundant || predictor.check_level(level).is_err() {
                continue;
            }
            let found = self.predict(predictor, features, level, level.name())?;
            let figures = measure_stage(level.name(), truth, &found, &frequencies, &evaluation);
            stages.push(figures);
            rankings.push((level, found));
        }
        let of = |level: Level| {
            let found = rankings.iter().find(|(of, _)| *of == level);
            found.map_or(&[][..], |(_, rankings)| &rankings[..])
        };
        let (_, last) = rankings.last().expect("every model has stage 2");
        let compared = StageRankings {
            model: of(Level::Stage2),
            ranker: of(Level::Ranker),
            last,
        };
        let spread = score_spread(truth, compared, counts);
        let hardest = find_hardest(predictor, features, truth, last, N_HARDEST)?;
        let text = |point: usize| match self.options.test.texts() {
            Some(texts) => shorten(texts.get(point), HARD_TEXT),
            None => format!("point {point}"),
        };
        Ok(TestFigures {
            n_points: self.options.test.n_points(),
            stages,
            spread,
            reliability: reliability(predictor, truth, last, 5),
            labels: recall_of_labels(truth, last),
            thresholds: threshold_quality(predictor, truth, last),
            texts: hardest.iter().map(|hard| text(hard.point)).collect(),
            hardest,
            label_names: self
                .options
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
        level: Level,
        what: &str,
    ) -> Result<Vec<Vec<Scored>>> {
        let query = Query {
            k: N_ANSWERS,
            level,
            ..Query::default()
        };
        let n_points = features.len();
        let mut rankings = Vec::with_capacity(n_points);
        for first in (0..n_points).step_by(BATCH) {
            let points: Vec<usize> = (first..n_points.min(first + BATCH)).collect();
            let batch = features.select_rows(&points);
            rankings.extend(predictor.rank_points(batch.points(), &query)?);
            self.report_progress(what, rankings.len(), n_points);
        }
        Ok(rankings)
    }

    /// The network of a model with fixed clusters, which must have been trained as long.
    fn measure_fixed(&self, model: &Path, predictor: &Predictor) -> Result<StageFigures> {
        let fixed = Predictor::load(model)?;
        let epochs = |predictor: &Predictor| {
            let stages = predictor.plan().stages().into_iter();
            stages.map(|stage| stage.epochs).sum::<usize>()
        };
        let differs = |problem: String| {
            let path = model.into();
            Err(Error::BadFile { path, problem })
        };
        if fixed.plan().config().index.mode != IndexMode::Fixed {
            return differs(
                "does not have fixed clusters: train it with index.mode = fixed".into(),
            );
        }
        if epochs(&fixed) != epochs(predictor) {
            return differs(format!(
                "was trained for {} epochs, the model for {}: the budgets differ",
                epochs(&fixed),
                epochs(predictor)
            ));
        }
        if fixed.training_data() != predictor.training_data() {
            return differs("was trained on other data".into());
        }
        let features = fixed.points(self.options.test)?;
        let found = self.predict(&fixed, &features, Level::Stage2, "fixed clusters")?;
        fixed.check_files()?;
        let frequencies = fixed.frequencies(self.options.test.n_labels());
        let truth = self.options.test.labels();
        let evaluation = self.evaluation(&fixed);
        Ok(measure_stage(
            "fixed",
            truth,
            &found,
            &frequencies,
            &evaluation,
        ))
    }

    /// Stage 2 with fewer and fewer edges.
    fn prune(&self, features: &PointSet) -> Result<Pruning> {
        let kappa = Predictor::load(self.model)?.plan().kappa();
        let points = spread_out(features.len(), MAX_PRUNING_POINTS);
        let features = &features.select_rows(&points);
        let truth = &self.options.test.labels().select_rows(&points);
        let mut last: Option<(usize, [f64; 4])> = None;
        let mut row = |cut: Cut, value: f64| -> Result<PruneRow> {
            let mut predictor = Predictor::load(self.model)?;
            let pruned = predictor.prune(cut)?[0];
            let metrics = match last {
                // The same edges give the same metrics.
                Some((n_removed, metrics)) if n_removed == pruned.n_removed => metrics,
                _ => {
                    let what = format!("pruned at {value}");
                    let found = self.predict(&predictor, features, Level::Stage2, &what)?;
                    let evaluation = Evaluation {
                        n_asked: Some(N_ANSWERS),
                        ..Evaluation::default()
                    };
                    let metrics = evaluation.measure(truth, &found, None).metrics;
                    let [p1, p5] = [1, 5].map(|k| metrics.precision(k));
                    let [r10, r100] = [10, 100].map(|k| metrics.recall(k));
                    [p1, p5, r10, r100].map(|value| value.expect("a default cut-off"))
                }
            };
            last = Some((pruned.n_removed, metrics));
            Ok(PruneRow {
                cut: value,
                removed: 100.0 * pruned.n_removed as f64 / pruned.n_edges.max(1) as f64,
                n_rescued: pruned.n_rescued,
                metrics,
            })
        };
        let thresholds = THRESHOLDS.iter();
        let by_threshold = thresholds
            .map(|&at| row(Cut::Threshold(at), (f64::from(at) * 1e4).round() / 1e4))
            .collect::<Result<_>>()?;
        let ks = TOP_K_SHARES.map(|share| ((kappa as f64 * share).round() as usize).max(1));
        let by_top_k = ks
            .iter()
            .map(|&k| row(Cut::TopK(k), k as f64))
            .collect::<Result<_>>()?;
        Ok(Pruning {
            n_points: points.len(),
            by_threshold,
            by_top_k,
        })
    }

    fn report_progress(&self, what: &str, n_done: usize, n_items: usize) {
        if let Some(on_progress) = self.options.on_progress {
            on_progress(what, n_done as u64, n_items as u64);
        }
    }

    /// Clusters, words and maps of the training points.
    fn map(&self, predictor: &Predictor, train: &Dataset) -> Result<TrainFigures> {
        let progress = |n_done| self.report_progress("clusters and maps", n_done, 4);
        let features = predictor.points(train)?;
        let points = clusters_of_points(predictor, &features);
        progress(1);
        let clusters = cluster_words(predictor, &points, &features, N_WORDS);
        progress(2);
        let maps = label_maps(predictor, &points, train.labels(), &MapOptions::default());
        progress(3);
        let map_texts = [0, 1].map(|kind| texts_of(&maps[kind], train.texts()));
        progress(4);
        let compactness = compactness(predictor, &points, train.labels(), &BANDS);
        Ok(TrainFigures {
            clusters,
            maps,
            map_texts,
            compactness,
        })
    }
}

/// At most so many of the points, evenly spread.
fn spread_out(n_points: usize, n_most: usize) -> Vec<usize> {
    let stride = n_points.div_ceil(n_most).max(1);
    (0..n_points).step_by(stride).collect()
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
