//! Collects the points of a data set while a reader runs, and applies the policies that [`Summary`] documents.

use std::path::Path;

use crate::data::{Dataset, LabelSet, Summary, Texts};
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};

/// A data set under construction, one point after the other.
pub(super) struct Builder {
    label_set: LabelSet,
    n_known: usize,
    n_labels_seen: usize,
    texts: Texts,
    ids: Texts,
    features: CsrBuilder,
    labels: CsrBuilder,
    /// Weights of the points up to the last that has one of its own.
    weights: Vec<f32>,
    /// Rejected labels, by point and name.
    rejected: Vec<(usize, String)>,
    label_row: Vec<(u32, f32)>,
    feature_row: Vec<(u32, f32)>,
    summary: Summary,
}

impl Builder {
    /// An empty data set over the labels known beforehand.
    pub(super) fn new(known_labels: Option<&LabelSet>) -> Self {
        Builder {
            n_known: known_labels.map_or(0, LabelSet::len),
            n_labels_seen: 0,
            label_set: known_labels.cloned().unwrap_or_default(),
            texts: Texts::default(),
            ids: Texts::default(),
            features: CsrBuilder::default(),
            labels: CsrBuilder::default(),
            weights: Vec::new(),
            rejected: Vec::new(),
            label_row: Vec::new(),
            feature_row: Vec::new(),
            summary: Summary::default(),
        }
    }

    /// The text of the point under construction.
    pub(super) fn push_text(&mut self, text: &str) {
        self.summary.n_empty_points += usize::from(text.trim_ascii().is_empty());
        self.texts.push(text);
    }

    /// The identifier of the point under construction; points before it that had none get an empty one.
    ///
    /// Must come before [`Builder::end_labels`] of the point.
    pub(super) fn push_id(&mut self, id: &str) {
        pad(&mut self.ids, self.labels.n_rows());
        self.ids.push(id);
    }

    /// A feature of the point under construction.
    #[inline]
    pub(super) fn push_feature(&mut self, feature: u32, value: f32) {
        self.feature_row.push((feature, value));
    }

    /// Ends the features of the point under construction.
    ///
    /// # Errors
    /// A phrase for the error message, if a feature given twice sums to infinity.
    pub(super) fn end_features(&mut self) -> Result<(), String> {
        self.summary.n_empty_points += usize::from(self.feature_row.is_empty());
        sum_duplicates(&mut self.feature_row)?;
        self.features.push_row(self.feature_row.drain(..));
        Ok(())
    }

    /// A label of the point under construction, by name.
    pub(super) fn push_label(&mut self, name: &str, relevance: f32) {
        if relevance == 0.0 {
            self.summary.n_zero_labels += 1;
            return;
        }
        let label = self.label_set.intern(name);
        self.label_row.push((label.0, relevance));
    }

    /// A label that was rejected for the point under construction.
    ///
    /// Must come before [`Builder::end_labels`] of the point, as must its weight.
    pub(super) fn push_rejected(&mut self, name: &str) {
        self.rejected.push((self.labels.n_rows(), name.to_owned()));
    }

    /// The weight of the point under construction; points that have none get 1.
    ///
    /// # Errors
    /// A phrase for the error message, if it is negative or not finite.
    pub(super) fn push_weight(&mut self, weight: f32) -> Result<(), String> {
        if !weight.is_finite() || weight < 0.0 {
            return Err(format!(
                "the weight {weight}, which is not a finite number of at least 0"
            ));
        }
        self.weights.resize(self.labels.n_rows(), 1.0);
        self.weights.push(weight);
        Ok(())
    }

    /// Counts a field that held so many labels of the point under construction, as one string.
    pub(super) fn count_label_field(&mut self, n_labels: usize) {
        self.summary.n_label_fields += usize::from(n_labels > 0);
        self.summary.n_split_fields += usize::from(n_labels > 1);
    }

    /// A label of the point under construction, by its number in the file; see [`Builder::finish_numbered`].
    #[inline]
    pub(super) fn push_label_number(&mut self, label: u32, relevance: f32) {
        if relevance == 0.0 {
            self.summary.n_zero_labels += 1;
            return;
        }
        self.n_labels_seen = self.n_labels_seen.max(label as usize + 1);
        self.label_row.push((label, relevance));
    }

    /// Ends the labels of the point under construction.
    pub(super) fn end_labels(&mut self) {
        self.summary.n_unlabelled += usize::from(self.label_row.is_empty());
        self.summary.n_duplicate_labels += keep_highest(&mut self.label_row);
        self.labels.push_row(self.label_row.drain(..));
    }

    /// Points whose labels are complete.
    pub(super) fn n_points(&self) -> usize {
        self.labels.n_rows()
    }

    /// The largest label number so far plus one.
    pub(super) fn n_labels_seen(&self) -> usize {
        self.n_labels_seen
    }

    /// The data set, its labels having been given by name.
    ///
    /// # Errors
    /// [`Error::BadFile`] if texts, features and labels do not fit each other.
    pub(super) fn finish(mut self, path: &Path, n_features: usize) -> Result<(Dataset, Summary)> {
        let labels = std::mem::take(&mut self.labels).finish(self.label_set.len());
        self.assemble(path, n_features, labels)
    }

    /// The data set, its labels having been given by number.
    ///
    /// # Errors
    /// [`Error::BadFile`] if texts, features, labels and names do not fit each other.
    pub(super) fn finish_numbered(
        mut self,
        path: &Path,
        n_features: usize,
        numbering: LabelNumbering,
    ) -> Result<(Dataset, Summary)> {
        let labels = std::mem::take(&mut self.labels)
            .finish(numbering.n_labels)
            .map_err(|error| bad_file(path, &error))?;
        let names = numbering.names(path, labels.n_rows() + labels.nnz())?;
        if self.n_known == 0 {
            self.label_set = names;
            return self.assemble(path, n_features, Ok(labels));
        }
        let of_number: Vec<LabelId> = names
            .names()
            .iter()
            .map(|name| self.label_set.intern(name))
            .collect();
        let mut renumbered = CsrBuilder::default();
        for point in 0..labels.n_rows() {
            let (numbers, relevances) = labels.row(point);
            for (&number, &relevance) in numbers.iter().zip(relevances) {
                let label = of_number[number as usize];
                self.label_row.push((label.0, relevance));
            }
            keep_highest(&mut self.label_row);
            renumbered.push_row(self.label_row.drain(..));
        }
        let labels = renumbered.finish(self.label_set.len());
        self.assemble(path, n_features, labels)
    }

    fn assemble(
        mut self,
        path: &Path,
        n_features: usize,
        labels: Result<CsrMatrix>,
    ) -> Result<(Dataset, Summary)> {
        let fail = |error: Error| bad_file(path, &error);
        let labels = labels.map_err(fail)?;
        self.summary.n_points = labels.n_rows();
        self.summary.n_new_labels = self.label_set.len() - self.n_known;
        if self.n_known == 0 {
            self.summary.n_new_labels = 0;
        }
        let features = match self.features.n_rows() {
            0 if !self.texts.is_empty() || labels.n_rows() == 0 => None,
            _ => Some(self.features.finish(n_features).map_err(fail)?),
        };
        let texts = (!self.texts.is_empty() || features.is_none()).then_some(self.texts);
        let ids = (!self.ids.is_empty()).then(|| {
            pad(&mut self.ids, labels.n_rows());
            self.ids
        });
        let rejected = (!self.rejected.is_empty())
            .then(|| rejected_rows(&self.rejected, &self.label_set, labels.n_rows()));
        let (n_points, weights) = (labels.n_rows(), self.weights);
        let mut dataset =
            Dataset::new(texts, features, labels, self.label_set, ids).map_err(fail)?;
        if let Some((rows, n_unknown)) = rejected {
            self.summary.n_unknown_rejected = n_unknown;
            dataset = rows
                .and_then(|rows| dataset.with_rejected(rows))
                .map_err(fail)?;
        }
        if !weights.is_empty() {
            let rest = std::iter::repeat_n(1.0, n_points - weights.len());
            let weights = weights.into_iter().chain(rest).collect();
            dataset = dataset.with_weights(weights).map_err(fail)?;
        }
        Ok((dataset, self.summary))
    }
}

/// Rejected labels of every point, which come in the order of points, and how many are no labels of the set.
fn rejected_rows(
    rejected: &[(usize, String)],
    label_set: &LabelSet,
    n_points: usize,
) -> (Result<CsrMatrix>, usize) {
    let (mut rows, mut n_unknown) = (CsrBuilder::default(), 0);
    let mut rest = rejected.iter().peekable();
    for point in 0..n_points {
        let mut row: Vec<u32> = Vec::new();
        while let Some((_, name)) = rest.next_if(|(of, _)| *of == point) {
            match label_set.find(name) {
                Some(label) => row.push(label.0),
                None => n_unknown += 1,
            }
        }
        row.sort_unstable();
        row.dedup();
        rows.push_row(row.into_iter().map(|label| (label, 1.0)));
    }
    (rows.finish(label_set.len()), n_unknown)
}

/// The meaning of the label numbers of a file.
pub(super) struct LabelNumbering {
    /// Number of labels.
    pub(super) n_labels: usize,
    /// Their names, if a file beside it gives them; otherwise a label is named by its number.
    pub(super) names: Option<Texts>,
}

impl LabelNumbering {
    /// The names as a set: a name used before gets the label's number behind it.
    fn names(&self, path: &Path, n_entries: usize) -> Result<LabelSet> {
        // Naming costs memory for each declared label, so a mistyped header must not be trusted blindly.
        const PLAUSIBLE: usize = 1_000_000;
        if self.names.is_none() && self.n_labels > PLAUSIBLE.max(1000 * n_entries) {
            return Err(Error::BadFile {
                path: path.to_path_buf(),
                problem: format!(
                    "declares {} labels for {n_entries} points and label entries, expected a plausible number: correct the header or give the label names",
                    self.n_labels
                ),
            });
        }
        let mut set = LabelSet::default();
        for number in 0..self.n_labels {
            let mut name = match &self.names {
                Some(names) => names.get(number).to_owned(),
                None => number.to_string(),
            };
            while set.find(&name).is_some() {
                name.push_str(&format!(" [{number}]"));
            }
            set.intern(&name);
        }
        Ok(set)
    }
}

fn bad_file(path: &Path, error: &Error) -> Error {
    let problem = match error {
        Error::InvalidMatrix(problem) | Error::InvalidDataset(problem) => {
            format!("found {problem}, expected parts that fit")
        }
        error => error.to_string(),
    };
    Error::BadFile {
        path: path.to_path_buf(),
        problem,
    }
}

fn pad(ids: &mut Texts, n: usize) {
    while ids.len() < n {
        ids.push("");
    }
}

fn is_strictly_increasing(row: &[(u32, f32)]) -> bool {
    row.windows(2).all(|pair| pair[0].0 < pair[1].0)
}

/// Sorts a row of labels and keeps each once, with its highest relevance; returns how many were dropped.
pub(super) fn keep_highest(row: &mut Vec<(u32, f32)>) -> usize {
    if is_strictly_increasing(row) {
        return 0;
    }
    let n_before = row.len();
    row.sort_unstable_by(|a, b| a.0.cmp(&b.0).then(b.1.total_cmp(&a.1)));
    row.dedup_by_key(|entry| entry.0);
    n_before - row.len()
}

/// Sorts a row of features and adds up the values of a feature given several times, as SciPy does.
///
/// # Errors
/// A phrase for the error message, if a sum is not finite.
pub(super) fn sum_duplicates(row: &mut Vec<(u32, f32)>) -> Result<(), String> {
    if is_strictly_increasing(row) {
        return Ok(());
    }
    // Stable, so that the sum does not depend on how the sort treats equal columns.
    row.sort_by_key(|entry| entry.0);
    row.dedup_by(|next, kept| {
        let same = next.0 == kept.0;
        if same {
            kept.1 += next.1;
        }
        same
    });
    match row.iter().find(|entry| !entry.1.is_finite()) {
        Some((feature, _)) => Err(format!(
            "feature {feature} several times with an infinite sum"
        )),
        None => Ok(()),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_label_given_twice_keeps_its_highest_relevance() {
        let mut row = vec![(3, 0.5), (1, 1.0), (3, 0.75), (3, 0.25)];
        assert_eq!(keep_highest(&mut row), 2);
        assert_eq!(row, [(1, 1.0), (3, 0.75)]);
    }

    #[test]
    fn a_feature_given_twice_is_summed() {
        let mut row = vec![(3, 0.5), (1, 1.0), (3, 0.75)];
        sum_duplicates(&mut row).unwrap();
        assert_eq!(row, [(1, 1.0), (3, 1.25)]);
        let mut row = vec![(3, f32::MAX), (3, f32::MAX)];
        assert!(sum_duplicates(&mut row).is_err());
    }

    #[test]
    fn label_names_are_made_distinct() {
        let names: Texts = ["a", "", "a", ""].into_iter().collect();
        let numbering = LabelNumbering {
            n_labels: 4,
            names: Some(names),
        };
        let set = numbering.names(Path::new("labels.txt"), 0).unwrap();
        let names: Vec<&str> = set.names().iter().collect();
        assert_eq!(names, ["a", "", "a [2]", " [3]"]);
    }
}
