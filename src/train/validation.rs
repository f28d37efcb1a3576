//! Predictions of the validation points while a model is trained.

use rayon::prelude::*;

use super::ValidationPoints;
use super::head::cut_together;
use crate::communicator::{Communicator, gather, own_labels};
use crate::encoder::Encoder;
use crate::events::{Event, POINTS_PER_EVENT, Phase};
use crate::ids::{LabelId, LabelRow, Scored};
use crate::index::{ShortlistOptions, Shortlister, descending_key};
use crate::matrix::{Matrix, top_k};
use crate::metrics::{MetricsBuilder, MetricsOptions};
use crate::model::{Model, RankScratch};

/// Labels predicted per point.
const N_PREDICTED: usize = 100;

/// What predicts: a model of which each process has its labels.
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
        let rows: Vec<u32> = (0..validation.labels.n_rows() as u32).collect();
        let mut metrics = MetricsBuilder::new(MetricsOptions::default());
        for rows in rows.chunks(POINTS_PER_EVENT) {
            let mut embeddings = Matrix::default();
            self.encoder
                .encode(validation.points, rows, &mut embeddings);
            let ranked = match self.communicator.n_processes() {
                1 => self.process(&embeddings),
                _ => self.rank_together(&embeddings),
            };
            for (&row, ranked) in rows.iter().zip(&ranked) {
                metrics.push(validation.labels.row(row as usize).0, ranked);
            }
        }
        let metrics = metrics.finish();
        let percent = |value: Option<f64>| value.expect("a default cut-off");
        Event::Validation {
            phase,
            epoch,
            precision_at_1: percent(metrics.precision(1)),
            precision_at_5: percent(metrics.precision(5)),
            recall_at_100: percent(metrics.recall(100)),
        }
    }

    fn process(&self, embeddings: &Matrix) -> Vec<Vec<Scored>> {
        let (model, options) = (self.model, &self.options);
        let embeddings = embeddings.values().par_chunks(embeddings.n_cols());
        let process = |scratch: &mut RankScratch, embedding: &[f32]| {
            model.rank(embedding, options, N_PREDICTED, scratch)
        };
        let ranked = embeddings.map_init(|| RankScratch::new(model), process);
        ranked.collect()
    }

    /// As `process`: each process scores those of its labels that are among the K best of all, and the best are merged.
    fn rank_together(&self, embeddings: &Matrix) -> Vec<Vec<Scored>> {
        let Model {
            clusters,
            adjacency,
            classifiers,
            numbering,
        } = self.model;
        let n_labels = adjacency.edges().n_labels();
        let first_row = own_labels(n_labels, self.communicator).start as u32;
        let embeddings = embeddings.values().par_chunks(embeddings.n_cols());
        let searched = embeddings.clone().map_init(
            || (Shortlister::new(n_labels), vec![0.0; clusters.n_clusters()]),
            |(searcher, probabilities), embedding| {
                clusters.probabilities_of_one(embedding, probabilities);
                searcher.search(clusters, adjacency, probabilities, &self.options);
                searcher.paths.clone()
            },
        );
        let paths: Vec<_> = searched.collect();
        let key = |path: &crate::index::Path| descending_key(path.score, path.row.0);
        let keys: Vec<Vec<u64>> = paths.iter().map(|p| p.iter().map(key).collect()).collect();
        let first_out = cut_together(self.communicator, keys, self.options.shortlist_size);
        let best = embeddings.zip(&paths).zip(&first_out);
        let best = best.map(|((embedding, paths), first_out)| {
            let kept = paths.iter();
            let kept = kept.filter(|path| first_out.is_none_or(|out| out < key(path)));
            let scored = kept.map(|path| Scored {
                label: numbering.label(path.row),
                score: path.score * classifiers.score(LabelRow(path.row.0 - first_row), embedding),
            });
            best_of(scored.collect())
        });
        let best: Vec<Vec<Scored>> = best.collect();

        let lengths: Vec<u32> = best.iter().map(|list| list.len() as u32).collect();
        let lengths = gather(self.communicator, &lengths);
        let flat = best.iter().flatten();
        let flat: Vec<[u32; 2]> = flat
            .map(|scored| [scored.label.0, scored.score.to_bits()])
            .collect();
        let told = gather(self.communicator, &flat);
        let mut told: Vec<_> = told.iter().map(|list| list.iter()).collect();
        let merged = (0..best.len()).map(|point| {
            let mut all = Vec::new();
            for (from, lengths) in told.iter_mut().zip(&lengths) {
                let list = from.by_ref().take(lengths[point] as usize);
                all.extend(list.map(|&[label, score]| Scored {
                    label: LabelId(label),
                    score: f32::from_bits(score),
                }));
            }
            best_of(all)
        });
        merged.collect()
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
