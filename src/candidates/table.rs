//! The table of candidates: a row per label, a column per source or scorer of values.
//!
//! The order of the walk is in the types: rows are added through [`Rows`], which holds the table until no source is
//! left, and a column that nobody has filled cannot be read.

use super::point::Point;
use crate::calibration::CandidateScores;
use crate::error::{Error, Result};
use crate::ids::{LabelId, Scored};
use crate::index::Selection;

/// The columns of the table.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Column {
    /// p = σ(w·φ + b)·ŷ; 0 if the index did not find the label.
    P,
    /// w·φ + b of the label's classifier.
    Logit,
    /// The ranker's margin z.
    Margin,
    /// The ranker's score q.
    RankerScore,
    /// The ranker's margin of the label's cluster.
    ClusterMargin,
    /// ln of the ranker's scores of the label, its cluster, the cluster of that, and so on, summed.
    PathScore,
    /// Votes of the nearest training points.
    Votes,
    /// Cosine of the nearest training point that has the label.
    Nearest,
    /// Cosine of the label's name and the text.
    NameMatch,
    /// Share of the label's name that the text contains.
    Contained,
    /// Training points that have the label, f.
    Frequency,
    /// The member's score of the label.
    FinalScore,
}

const N_COLUMNS: usize = Column::FinalScore as usize + 1;

/// The candidates of one point in one member. Every column that is filled has a value per label.
#[derive(Clone, Debug, Default)]
pub(crate) struct Candidates {
    /// Those of the index best first, then the others by label.
    labels: Vec<LabelId>,
    columns: [Vec<f32>; N_COLUMNS],
    /// Labels with their rows, ascending.
    by_label: Vec<(LabelId, u32)>,
    /// Labels added besides those of the index.
    added: Vec<LabelId>,
    about: PointFigures,
    searched: Searched,
}

/// Figures of the point itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct PointFigures {
    /// Known words.
    pub(crate) n_words: usize,
    /// Cosine of the nearest training point with a label.
    pub(crate) nearest: f32,
}

/// The search of the index.
#[derive(Clone, Debug, Default, PartialEq)]
pub(crate) struct Searched {
    /// Searched clusters, best first.
    pub(crate) clusters: Vec<Selection>,
    /// Labels of the shortlist.
    pub(crate) n_shortlisted: usize,
    /// Rows of W_L that were read in full.
    pub(crate) n_scored: usize,
}

/// Candidates to which sources still add labels.
#[must_use]
pub(crate) struct Rows<'c> {
    candidates: &'c mut Candidates,
}

impl Candidates {
    /// Replaces the candidates by those of a point, of which there are none yet.
    pub(super) fn start(&mut self, point: &Point<'_>) -> Rows<'_> {
        self.labels.clear();
        self.columns.iter_mut().for_each(Vec::clear);
        self.added.clear();
        self.about = PointFigures {
            n_words: point.words.0.len(),
            nearest: point.nearest(),
        };
        self.searched.clusters.clear();
        Rows { candidates: self }
    }

    /// The labels.
    pub(crate) fn labels(&self) -> &[LabelId] {
        &self.labels
    }

    /// Number of candidates.
    pub(crate) fn len(&self) -> usize {
        self.labels.len()
    }

    /// A column, in the order of the labels.
    ///
    /// # Panics
    /// If no source or scorer has filled it.
    #[inline]
    pub(crate) fn column(&self, column: Column) -> &[f32] {
        let values = &self.columns[column as usize];
        assert_eq!(values.len(), self.labels.len(), "{column:?} is not filled");
        values
    }

    /// Figures of the point.
    pub(crate) fn about(&self) -> PointFigures {
        self.about
    }

    /// The search of the index that found the first of them.
    pub(crate) fn searched(&self) -> &Searched {
        &self.searched
    }

    /// The row of a label, if it is a candidate.
    #[inline]
    pub(crate) fn row_of(&self, label: LabelId) -> Option<usize> {
        let found = self.by_label.binary_search_by_key(&label, |row| row.0);
        found.ok().map(|at| self.by_label[at].1 as usize)
    }

    /// Labels with their final scores.
    pub(crate) fn scored(&self) -> impl Iterator<Item = Scored> {
        let both = self.labels.iter().zip(self.column(Column::FinalScore));
        both.map(|(&label, &score)| Scored { label, score })
    }

    /// Fills columns row by row; those filled before may be read.
    pub(super) fn fill<const N: usize>(
        &mut self,
        columns: [Column; N],
        values_of: impl Fn(&Candidates, usize) -> [f32; N],
    ) {
        let mut filled = columns.map(|column| std::mem::take(&mut self.columns[column as usize]));
        filled.iter_mut().for_each(Vec::clear);
        for row in 0..self.len() {
            for (values, value) in filled.iter_mut().zip(values_of(self, row)) {
                values.push(value);
            }
        }
        for (column, values) in columns.into_iter().zip(filled) {
            self.columns[column as usize] = values;
        }
    }

    /// Fills columns with the values of some labels, of which not all need be candidates; others have 0.
    pub(super) fn fill_listed<const N: usize>(
        &mut self,
        columns: [Column; N],
        listed: impl Iterator<Item = (LabelId, [f32; N])>,
    ) {
        for column in columns {
            let (labels, values) = self.labels_and(column);
            values.clear();
            values.resize(labels.len(), 0.0);
        }
        for (label, values) in listed {
            if let Some(row) = self.row_of(label) {
                for (column, value) in columns.into_iter().zip(values) {
                    self.columns[column as usize][row] = value;
                }
            }
        }
    }

    /// The labels, and a column to be filled with a value for each.
    pub(super) fn labels_and(&mut self, column: Column) -> (&[LabelId], &mut Vec<f32>) {
        (&self.labels, &mut self.columns[column as usize])
    }

    /// The same candidates had nothing been found out about some columns.
    pub(crate) fn without(&self, columns: &[Column]) -> Candidates {
        let mut rest = self.clone();
        for &column in columns {
            rest.columns[column as usize].fill(0.0);
        }
        rest
    }

    /// The candidates with some of the labels only.
    pub(crate) fn of_labels(&self, is_kept: impl Fn(LabelId) -> bool) -> Candidates {
        let is_kept: Vec<bool> = self.labels.iter().map(|&label| is_kept(label)).collect();
        let mut rest = self.clone();
        let kept = |values: &mut Vec<f32>| {
            let mut is_kept = is_kept.iter();
            values.retain(|_| is_kept.next().is_none_or(|kept| *kept));
        };
        rest.columns.iter_mut().for_each(kept);
        let mut is_kept = is_kept.iter();
        rest.labels.retain(|_| is_kept.next() == Some(&true));
        rest.by_label.clear();
        rest.by_label.extend(rest.labels.iter().copied().zip(0..));
        rest.by_label.sort_unstable();
        rest
    }

    /// Large model files are not checked when they are loaded, so what is read from them is checked here.
    ///
    /// # Errors
    /// [`Error::CannotPredict`] if a value of the column is not finite.
    pub(super) fn check_finite(&self, column: Column) -> Result<()> {
        check_finite(self.column(column).iter().copied())
    }

    /// p, q and f of a candidate.
    #[inline]
    pub(crate) fn scores(&self, row: usize) -> CandidateScores {
        CandidateScores {
            model: self.column(Column::P)[row],
            ranker: self.column(Column::RankerScore)[row],
            frequency: self.column(Column::Frequency)[row],
        }
    }

    /// Candidates with these columns, of labels 0, 1, and so on.
    #[cfg(test)]
    pub(crate) fn of_columns(about: PointFigures, columns: &[(Column, Vec<f32>)]) -> Self {
        let n = columns.first().map_or(0, |(_, values)| values.len());
        let mut candidates = Candidates {
            labels: (0..n as u32).map(LabelId).collect(),
            columns: std::array::from_fn(|_| vec![0.0; n]),
            by_label: (0..n as u32).map(|label| (LabelId(label), label)).collect(),
            about,
            ..Candidates::default()
        };
        for (column, values) in columns {
            candidates.columns[*column as usize].clone_from(values);
        }
        candidates
    }
}

impl Rows<'_> {
    /// Adds labels that the index found, best first, with their p; a label once.
    pub(super) fn add_ranked(&mut self, ranked: impl Iterator<Item = Scored>) {
        for scored in ranked {
            self.candidates.labels.push(scored.label);
            self.candidates.columns[Column::P as usize].push(scored.score);
        }
    }

    /// Labels that the index found so far.
    pub(super) fn labels(&self) -> &[LabelId] {
        &self.candidates.labels
    }

    /// Adds labels whatever the index makes of them; those that are candidates already stay where they are.
    pub(super) fn add(&mut self, labels: impl Iterator<Item = LabelId>) {
        self.candidates.added.extend(labels);
    }

    /// Labels of a kind found so far; those that several sources added count several times.
    pub(super) fn n_found(&self, is_of_kind: impl Fn(LabelId) -> bool) -> usize {
        let found = self.candidates.labels.iter().chain(&self.candidates.added);
        found.filter(|label| is_of_kind(**label)).count()
    }

    /// The search of the index, to be described.
    pub(super) fn searched(&mut self) -> &mut Searched {
        &mut self.candidates.searched
    }

    /// Ends the addition of rows: from now on there are columns to fill.
    pub(super) fn settle(self) {
        let Candidates {
            labels,
            columns,
            by_label,
            added,
            ..
        } = self.candidates;
        let n_ranked = labels.len() as u32;
        by_label.clear();
        by_label.extend(labels.iter().copied().zip(0..));
        by_label.extend(added.iter().copied().zip(n_ranked..));
        // Of a label that several sources add, the first row stays.
        by_label.sort_unstable();
        by_label.dedup_by_key(|row| row.0);
        for (label, row) in by_label.iter_mut().filter(|row| n_ranked <= row.1) {
            *row = labels.len() as u32;
            labels.push(*label);
        }
        columns[Column::P as usize].resize(labels.len(), 0.0);
    }
}

/// Fails unless every value is finite.
///
/// # Errors
/// [`Error::CannotPredict`].
pub(super) fn check_finite(mut values: impl Iterator<Item = f32>) -> Result<()> {
    if values.all(f32::is_finite) {
        return Ok(());
    }
    let problem = "the model holds a weight that is not finite: it is damaged";
    Err(Error::CannotPredict(problem.into()))
}
