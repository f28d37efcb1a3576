//! Labels that come and go: added by their texts, removed, merged; and texts that are learned from at once.
//!
//! Nothing is trained. A new label is known by its names, synonyms and descriptions, and, once texts have it, by the votes
//! of those.

use super::{LabelRef, Predictor};
use crate::data::{Dataset, DescribedLabels};
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::neighbours::{Forms, Neighbours};

impl Predictor {
    /// Adds labels that are known by their texts alone, and brings back those of them that were removed or merged.
    ///
    /// # Errors
    /// [`Error::Query`] naming a label that the model has; [`Error::CannotPredict`] if the model cannot score labels by
    /// their texts. The model is unchanged then.
    pub fn add_labels(&mut self, labels: &DescribedLabels) -> Result<()> {
        let featurizer = &self.parts.featurizer;
        let Some(by_text) = &self.parts.by_text else {
            let problem = "the model cannot score labels by their texts: train it with label texts and a final score";
            return Err(Error::CannotPredict(problem.into()));
        };
        let (mut back, mut new, mut texts) = (Vec::new(), Vec::new(), Vec::new());
        for (name, text) in labels.labels().names().iter().zip(labels.texts().iter()) {
            match self.parts.label_set.find(name) {
                Some(label) if self.parts.retired.contains(label) => back.push(label),
                Some(_) => {
                    return Err(Error::Query {
                        name: "labels",
                        found: format!("{name:?}, which the model has"),
                        expected: "labels that it does not have",
                    });
                }
                None => {
                    new.push(name);
                    texts.push(text);
                }
            }
        }
        let texts = texts.into_iter().collect();
        let forms = by_text.forms.with(&Forms::of_texts(featurizer, &texts)?);
        for name in new {
            self.parts.label_set.intern(name);
        }
        let n_labels = self.parts.label_set.len();
        self.parts.label_counts.resize(n_labels, 0);
        if let Some(by_text) = &mut self.parts.by_text {
            by_text.forms = forms;
        }
        back.into_iter()
            .for_each(|label| self.parts.retired.restore(label));
        Ok(())
    }

    /// Removes labels: they are not answers any more. What the members learned of them stays with the model.
    ///
    /// # Errors
    /// [`Error::UnknownLabels`] naming the first.
    pub fn remove_labels(&mut self, labels: &[LabelRef]) -> Result<()> {
        let labels = self.find_all("remove", labels.iter())?;
        self.retire(labels.into_iter().map(|label| (label, None)))
    }

    /// Merges labels into others: the score of the second is the higher of both, and training texts of the first are its
    /// own.
    ///
    /// # Errors
    /// [`Error::UnknownLabels`] naming the first; [`Error::Query`] if a label would be merged into itself.
    pub fn merge_labels(&mut self, merges: &[(LabelRef, LabelRef)]) -> Result<()> {
        let old = self.find_all("merge", merges.iter().map(|merge| &merge.0))?;
        let new = self.find_all("merge", merges.iter().map(|merge| &merge.1))?;
        let mut changed = self.parts.retired.clone();
        for (&old, &new) in old.iter().zip(&new) {
            let into = changed.successor(new).filter(|&into| into != old);
            let Some(into) = into.filter(|_| !changed.contains(old)) else {
                return Err(Error::Query {
                    name: "merge",
                    found: format!(
                        "{:?} into {:?}",
                        self.labels().name(old),
                        self.labels().name(new)
                    ),
                    expected: "two labels, of which the first is merged once",
                });
            };
            changed.retire(old, Some(into));
        }
        let merged = old.into_iter();
        let merged = merged.map(|old| (old, changed.successor(old)));
        self.retire(merged.collect::<Vec<_>>().into_iter())
    }

    /// Whether a label was removed or merged into another.
    pub fn is_retired(&self, label: LabelId) -> bool {
        self.parts.retired.contains(label)
    }

    /// Learns from texts and their labels at once: they are training points that similar texts are compared with.
    /// Classifiers, rankers and probabilities stay as they are.
    ///
    /// The data has labels of the model alone: read it with its labels.
    ///
    /// # Errors
    /// [`Error::UnknownLabels`] naming a label that the model does not have; [`Error::CannotPredict`] if the model has
    /// no index of its training points, or was trained on other features.
    pub fn learn(&mut self, data: &Dataset) -> Result<()> {
        let names = data.label_set().names().iter();
        let names: Vec<LabelRef> = names.map(LabelRef::from).collect();
        let points = self.points(data)?;
        let Some(neighbours) = &self.parts.neighbours else {
            let problem = "the model has no index of its training points: train it with neighbours";
            return Err(Error::CannotPredict(problem.into()));
        };
        let used: std::collections::BTreeSet<u32> =
            data.labels().indices().iter().copied().collect();
        let used: Vec<LabelRef> = used
            .into_iter()
            .map(|at| names[at as usize].clone())
            .collect();
        let ids = self.find_all("labels of the texts", used.iter())?;
        let by_name = |at: u32| {
            let name = data.label_set().name(LabelId(at));
            self.labels().find(name).map(|label| label.0)
        };
        let n_labels = self.labels().len();
        debug_assert!(ids.iter().all(|id| id.idx() < n_labels));
        let labels = data.labels().renumbered(n_labels, by_name)?;
        let neighbours = neighbours.with(&points.features, &labels, n_labels)?;
        for &label in labels.indices() {
            self.parts.label_counts[label as usize] += 1;
            if let Some(calibration) = &mut self.parts.calibration
                && let Some(frequency) = calibration.frequencies.get_mut(label as usize)
            {
                *frequency += 1;
            }
        }
        self.parts.neighbours = Some(neighbours);
        Ok(())
    }

    fn retire(&mut self, labels: impl Iterator<Item = (LabelId, Option<LabelId>)>) -> Result<()> {
        let parts = &mut self.parts;
        for (label, into) in labels {
            let n_points = std::mem::take(&mut parts.label_counts[label.idx()]);
            if let Some(into) = into {
                parts.label_counts[into.idx()] += n_points;
            }
            parts.retired.retire(label, into);
        }
        if let Some(neighbours) = &parts.neighbours {
            let n_labels = parts.label_set.len();
            let retired = &parts.retired;
            let successor = |label| retired.successor(LabelId(label)).map(|label| label.0);
            let labels = neighbours.labels().renumbered(n_labels, successor)?;
            let postings = neighbours.postings().clone();
            parts.neighbours = Some(Neighbours::from_parts(postings, labels)?);
        }
        Ok(())
    }
}
