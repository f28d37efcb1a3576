//! Fitting the scores of labels that are known by their texts alone, on held-out points.
//!
//! The known labels are divided into parts. For a held-out point, the labels of a part are looked at as if no training
//! text had them: by their forms, with votes and kin of the other parts alone. Every part has its turn, so that the trees
//! see right answers of all labels. Half of the labels with very few training texts keep their votes: labels that were
//! added to a model have such.
//!
//! So these are the chances of a label of which nothing is known but its text. Those that the vocabulary has and no
//! training text are less likely, how much is measured: labels of held-out points that no other training text has are to a fold
//! as such labels are to texts to come.

use rayon::prelude::*;

use super::split::HeldOut;
use crate::candidates::{
    BoostedTrees, Evidence, Examples, Features, Knowledge, N_NEAREST_FORMS, PointBuffers,
    RankedPoint, TextCandidates, TextColumns, Unused,
};
use crate::error::Result;
use crate::ids::{LabelId, Scored};
use crate::neighbours::{Forms, Names};
use crate::predict::CHUNK;
use crate::random::Random;

/// Most parts, of which one is hidden; fewer if many labels of the model are known by their texts alone.
const MAX_PARTS: usize = 10;
/// Forms of a part that are nearest to a point, and to its kin.
const N_NEAREST: usize = 20;
/// Candidates of all points, about.
const MAX_ROWS: usize = 150_000;
/// Right ones below which nothing is learned.
const MIN_RELEVANT: usize = 30;
/// Training texts of a label that may keep its votes.
const FEW_POINTS: u32 = 5;

/// Bytes of fitting on this many held-out points.
pub(super) fn n_bytes(n_points: usize) -> usize {
    let n_rows = MAX_ROWS.min(n_points * MAX_PARTS * 2 * N_NEAREST);
    Examples::n_feature_bytes(n_rows) + Examples::n_bytes(n_rows)
}

/// Held-out points of a fold with the best known labels of each.
#[derive(Clone, Copy)]
pub(super) struct RankedPoints<'a> {
    pub(super) held_out: &'a HeldOut<'a>,
    pub(super) best: &'a [Vec<Scored>],
    pub(super) knowledge: Knowledge<'a>,
    pub(super) names: &'a Names,
}

/// A part of the labels.
struct Part {
    /// Ascending.
    labels: Vec<LabelId>,
    forms: Forms,
}

/// The candidates of a point.
struct Described {
    features: Features,
    relevant: Vec<bool>,
}

/// Fits trees for a model that knows `n_by_text` labels by their texts alone; none if too little can be learned.
pub(super) fn fit(
    folds: &[RankedPoints<'_>],
    forms: &Forms,
    n_by_text: usize,
) -> Result<Option<BoostedTrees>> {
    let n_labels = forms.n_labels();
    let n_parts = (n_labels + n_by_text)
        .checked_div(n_by_text)
        .unwrap_or(MAX_PARTS)
        .clamp(2, MAX_PARTS);
    let part_of = |label: LabelId| Random::new(0, "known by text", label.0.into()).below(n_parts);
    let part = |part: usize| {
        let labels = (0..n_labels as u32).map(LabelId);
        let labels: Vec<LabelId> = labels.filter(|&label| part_of(label) == part).collect();
        let forms = forms.select(labels.iter().map(|label| label.idx()));
        Part { labels, forms }
    };
    let parts: Vec<Part> = (0..n_parts).into_par_iter().map(part).collect();
    let n_rows: usize = folds.iter().map(|fold| fold.best.len()).sum();
    let n_shown = (MAX_ROWS / (2 * N_NEAREST * n_rows.max(1))).clamp(1, n_parts);
    let mut examples = Examples::default();
    let mut n_relevant = 0;
    for ranked in folds {
        let rows: Vec<usize> = (0..ranked.best.len()).collect();
        let described: Vec<Vec<Described>> = rows
            .par_chunks(CHUNK)
            .map_init(
                || (PointBuffers::default(), TextCandidates::default()),
                |(buffers, found), rows| {
                    let describe = |&row: &usize| {
                        let shown = (0..n_shown).map(|turn| (row + turn) % n_parts);
                        let shown = shown.map(|part| &parts[part]);
                        ranked.describe(row, shown, &part_of, buffers, found)
                    };
                    rows.iter().map(describe).collect()
                },
            )
            .collect();
        for Described { features, relevant } in described.into_iter().flatten() {
            n_relevant += relevant.iter().filter(|is| **is).count();
            examples.push(&features, relevant.into_iter(), 1.0);
        }
    }
    if n_relevant < MIN_RELEVANT {
        return Ok(None);
    }
    Ok(Some(examples.fit()?.0))
}

/// Measures how likely those labels are that the vocabulary has and no training text, whose forms are `more`.
pub(super) fn measure_unused(
    folds: &[RankedPoints<'_>],
    [forms, more]: [&Forms; 2],
    trees: &BoostedTrees,
) -> Result<Unused> {
    let (mut scores, mut n_right, mut n_lost) = (Vec::new(), 0, 0);
    for ranked in folds {
        let labels = (0..forms.n_labels() as u32).map(LabelId);
        let lost: Vec<LabelId> = labels.filter(|&label| ranked.is_lost(label)).collect();
        let unknown = Part {
            forms: forms
                .select(lost.iter().map(|label| label.idx()))
                .with(more),
            labels: lost,
        };
        let rows: Vec<usize> = (0..ranked.best.len()).collect();
        let held_out = rows.iter().flat_map(|&row| ranked.held_out.labels(row));
        n_lost += held_out.filter(|&label| ranked.is_lost(label)).count();
        let scored: Vec<Vec<UnknownScores>> = rows
            .par_chunks(CHUNK)
            .map_init(
                || (PointBuffers::default(), TextCandidates::default()),
                |(buffers, found), rows| {
                    let score = |&row: &usize| ranked.score(row, &unknown, trees, buffers, found);
                    rows.iter().map(score).collect()
                },
            )
            .collect();
        for of_point in scored.into_iter().flatten() {
            n_right += of_point.n_right;
            scores.extend(of_point.scores);
        }
    }
    if n_lost == 0 {
        return Unused::new(more.n_labels(), 1.0);
    }
    // A half more: none of a few is not never.
    Unused::fit(more.n_labels(), &scores, n_right as f64 + 0.5)
}

/// The scores of the unknown labels that are candidates of a point.
struct UnknownScores {
    scores: Vec<f32>,
    n_right: usize,
}

impl RankedPoints<'_> {
    /// Whether the label has no training point in the fold.
    fn is_lost(&self, label: LabelId) -> bool {
        self.knowledge.frequencies[label.idx()] == 0
    }

    /// The scores of labels that have no training point, the first of which are labels of the data.
    fn score(
        &self,
        row: usize,
        Part { labels, forms }: &Part,
        trees: &BoostedTrees,
        buffers: &mut PointBuffers,
        found: &mut TextCandidates,
    ) -> UnknownScores {
        let points = self.held_out.points().points();
        let point = &self.knowledge.point(points, row, buffers);
        let ranked = RankedPoint {
            point,
            best: &self.best[row],
            names: self.names,
        };
        let is_lost = |label| self.is_lost(label);
        found.find(forms, ranked, N_NEAREST_FORMS, is_lost, std::iter::empty());
        found.describe(forms, point, |_| Evidence::default());
        let (mut columns, mut features) = (TextColumns::default(), Features::default());
        found.fill(ranked, is_lost, &mut columns);
        columns.features(&mut features);
        let mut scores = Vec::new();
        trees.score(&features, &mut Vec::new(), &mut scores);
        let of_data = found
            .labels
            .iter()
            .filter_map(|&place| labels.get(place as usize));
        let n_right = of_data
            .filter(|&&label| self.held_out.has(row, label))
            .count();
        UnknownScores { scores, n_right }
    }

    /// The candidates of a point in some parts, each without what is known of its own labels.
    fn describe<'p>(
        &self,
        row: usize,
        parts: impl Iterator<Item = &'p Part>,
        part_of: &impl Fn(LabelId) -> usize,
        buffers: &mut PointBuffers,
        found: &mut TextCandidates,
    ) -> Described {
        let point = &self
            .knowledge
            .point(self.held_out.points().points(), row, buffers);
        let ranked = RankedPoint {
            point,
            best: &self.best[row],
            names: self.names,
        };
        let (mut columns, mut relevant) = (TextColumns::default(), Vec::new());
        for Part { labels, forms } in parts {
            let is_hidden = |label: LabelId| {
                labels
                    .first()
                    .is_some_and(|&first| part_of(first) == part_of(label))
            };
            let keeps_votes = |label: LabelId| {
                self.knowledge.frequencies[label.idx()] <= FEW_POINTS && label.0.is_multiple_of(2)
            };
            let voted = point.votes.iter().map(|vote| vote.label);
            let voted = voted.filter(|&label| keeps_votes(label));
            let voted = voted.filter_map(|label| labels.binary_search(&label).ok());
            let added = voted.map(|place| place as u32);
            found.find(forms, ranked, N_NEAREST, is_hidden, added);
            found.describe(forms, point, |place| {
                let label = labels[place as usize];
                let n_points = self.knowledge.frequencies[label.idx()];
                let vote = point.vote(label).filter(|_| keeps_votes(label));
                Evidence {
                    votes: vote.map_or([0.0; 2], |vote| [vote.score, vote.nearest]),
                    n_points: if keeps_votes(label) {
                        n_points as f32
                    } else {
                        0.0
                    },
                }
            });
            found.fill(ranked, is_hidden, &mut columns);
            let is_right = |&place: &u32| self.held_out.has(row, labels[place as usize]);
            relevant.extend(found.labels.iter().map(is_right));
        }
        let mut features = Features::default();
        columns.features(&mut features);
        Described { features, relevant }
    }
}
