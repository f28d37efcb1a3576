//! Predictions of the validation points while a model is trained.

use rayon::prelude::*;

use super::ValidationPoints;
use crate::communicator::Communicator;
use crate::encoder::Encoder;
use crate::events::{Event, Phase};
use crate::ids::{LabelRow, Scored};
use crate::index::{Path, ShortlistOptions, Shortlister, descending_key};
use crate::matrix::{Matrix, top_k};
use crate::metrics::{Metrics, MetricsBuilder, MetricsOptions};
use crate::model::Model;

/// Labels predicted per point.
const N_PREDICTED: usize = 100;
/// Points predicted at once: their shortlists are held together.
const BLOCK: usize = 256;

/// A model in training that predicts, with the rows of W_L that the process owns.
pub(super) struct Validator<'a> {
    pub(super) options: ShortlistOptions,
    pub(super) communicator: &'a dyn Communicator,
    pub(super) model: &'a Model,
    pub(super) encoder: &'a dyn Encoder,
}

impl Validator<'_> {
    /// Predicts the points; the metrics as an event.
    pub(super) fn validate(
        &self,
        phase: Phase,
        epoch: usize,
        validation: ValidationPoints<'_>,
    ) -> Event {
        let metrics = self.metrics(validation);
        let percent = |value: Option<f64>| value.expect("a default cut-off");
        Event::Validation {
            phase,
            epoch,
            precision_at_1: percent(metrics.precision(1)),
            precision_at_5: percent(metrics.precision(5)),
            recall_at_100: percent(metrics.recall(100)),
        }
    }

    /// Predicts the points; the metrics.
    pub(super) fn metrics(&self, validation: ValidationPoints<'_>) -> Metrics {
        let rows: Vec<u32> = (0..validation.labels.n_rows() as u32).collect();
        let mut metrics = MetricsBuilder::new(MetricsOptions {
            filter: validation.filter.iter().copied().collect(),
            ..MetricsOptions::default()
        });
        for rows in rows.chunks(BLOCK) {
            let mut embeddings = Matrix::default();
            self.encoder
                .encode(validation.points, rows, &mut embeddings);
            for (&row, ranked) in rows.iter().zip(&self.rank(&embeddings)) {
                metrics.push(validation.labels.row(row as usize).0, ranked);
            }
        }
        metrics.finish(usize::MAX)
    }

    /// The best labels of each embedding by p = σ(w·φ + b)·ŷ: the shortlist, cut at K, scored and ranked.
    fn rank(&self, embeddings: &Matrix) -> Vec<Vec<Scored>> {
        let shortlists = self.shortlists(embeddings);
        let key = |path: &Path| descending_key(path.score, path.row.0);
        let keys = || {
            let lists = shortlists.iter();
            lists.map(|paths| paths.iter().map(key).collect()).collect()
        };
        let best = self
            .communicator
            .best_of_all(self.options.shortlist_size, keys);
        let n_labels = self.model.adjacency.edges().n_labels();
        let first_row = self.communicator.own_labels(n_labels).start as u32;
        let own = shortlists.par_iter().enumerate().map(|(point, paths)| {
            let embedding = embeddings.row(point);
            let kept = paths.iter().filter(|path| best.contains(point, key(path)));
            best_of(
                kept.map(|path| self.score(path, first_row, embedding))
                    .collect(),
            )
        });
        let joined = self.communicator.join_lists(own.collect());
        joined.into_iter().map(best_of).collect()
    }

    /// The own labels among the shortlist of each embedding.
    fn shortlists(&self, embeddings: &Matrix) -> Vec<Vec<Path>> {
        let (clusters, adjacency) = (&self.model.clusters, &self.model.adjacency);
        let n_labels = adjacency.edges().n_labels();
        let scratch = || (Shortlister::new(n_labels), vec![0.0; clusters.n_clusters()]);
        let embeddings = embeddings.values().par_chunks(embeddings.n_cols());
        embeddings
            .map_init(scratch, |(searcher, probabilities), embedding| {
                clusters.probabilities(embedding, probabilities);
                searcher.search(clusters, adjacency, probabilities, &self.options);
                searcher.paths.clone()
            })
            .collect()
    }

    /// p of a label; the first of the own labels has this row.
    fn score(&self, path: &Path, first_row: u32, embedding: &[f32]) -> Scored {
        let row = LabelRow(path.row.0 - first_row);
        Scored {
            label: self.model.numbering.label(path.row),
            score: path.score * self.model.classifiers.score(row, embedding),
        }
    }
}

/// The best labels; where a product is not finite, those labels alone.
fn best_of(mut scored: Vec<Scored>) -> Vec<Scored> {
    if scored.iter().any(|scored| scored.score.is_nan()) {
        scored.retain(|scored| scored.score.is_nan());
    } else {
        top_k(&mut scored, N_PREDICTED);
    }
    scored
}
