//! Labels that come and go: added by their texts, removed, merged; and texts that are learned from at once.
//!
//! Nothing is trained. A new label is known by its names, synonyms and descriptions, and, once texts have it, by the votes
//! of those.

use std::borrow::Borrow;
use std::collections::{BTreeMap, BTreeSet};
use std::sync::Arc;

use super::{LabelRef, Predictor};
use crate::data::{Dataset, DescribedLabels, Texts};
use crate::error::{Error, Result};
use crate::features::PointSet;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};
use crate::neighbours::{Forms, Neighbours};

/// A text with labels that its user accepted, and labels that they rejected.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Correction {
    /// The text.
    pub text: String,
    /// Names of accepted labels.
    pub labels: Vec<String>,
    /// Names of rejected labels.
    pub not: Vec<String>,
}

/// Points to learn from, with labels of the model.
pub(crate) struct Lessons {
    pub(crate) points: PointSet,
    /// Labels that each has, N×L.
    pub(crate) accepted: CsrMatrix,
    /// Labels that were rejected for each, N×L.
    pub(crate) rejected: Option<CsrMatrix>,
    /// The factor of each point's losses, more than 0.
    pub(crate) weights: Vec<f32>,
}

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
            Arc::make_mut(&mut self.parts.label_set).intern(name);
        }
        let n_labels = self.parts.label_set.len();
        self.parts.label_counts.resize(n_labels, 0);
        if let Some(by_text) = &mut self.parts.by_text {
            Arc::make_mut(by_text).forms = forms;
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

    /// Learns from a data set at once, as from corrections.
    ///
    /// # Errors
    /// As [`Predictor::learn`].
    pub fn learn_data(&mut self, data: &Dataset) -> Result<()> {
        let lessons = self.lessons_of(data)?;
        self.learn_lessons(&lessons)
    }

    /// Learns from corrections at once. A text with accepted labels is a training point that similar texts are compared
    /// with; the more similar a text is to one of which a label was rejected, the lower is that label's score.
    /// Classifiers, rankers and probabilities stay as they are.
    ///
    /// # Errors
    /// [`Error::UnknownLabels`] naming a label that the model does not have; [`Error::Query`] if a correction has no label,
    /// or accepts one that it rejects; [`Error::CannotPredict`] if the model has no index of its training points, or was
    /// trained on features. The model is unchanged then.
    pub fn learn(&mut self, corrections: &[Correction]) -> Result<()> {
        self.check_corrections(corrections)?;
        let lessons = self.lessons_of_corrections(corrections)?;
        self.learn_lessons(&lessons)?;
        self.learned
            .extend(corrections.iter().cloned().map(Arc::new));
        Ok(())
    }

    /// Corrections that it learned since it was written, in their order.
    pub fn learned(&self) -> &[Arc<Correction>] {
        &self.learned
    }

    /// The points of a data set that have weight, with the model's labels.
    pub(crate) fn lessons_of(&self, data: &Dataset) -> Result<Lessons> {
        let weights = data
            .weights()
            .map_or(vec![1.0; data.n_points()], <[f32]>::to_vec);
        if weights.contains(&0.0) {
            let has_weight = |point: &usize| weights[*point] > 0.0;
            let points: Vec<usize> = (0..data.n_points()).filter(has_weight).collect();
            return self.lessons_of(&data.select(&points));
        }
        let n_labels = self.labels().len();
        let mut used: BTreeSet<u32> = data.labels().indices().iter().copied().collect();
        used.extend(data.rejected().into_iter().flat_map(CsrMatrix::indices));
        let name = |&label: &u32| LabelRef::from(data.label_set().name(LabelId(label)));
        let refs: Vec<LabelRef> = used.iter().map(name).collect();
        let found = self.find_all("labels of the texts", refs.iter())?;
        let own: BTreeMap<u32, u32> = used.into_iter().zip(found.iter().map(|id| id.0)).collect();
        let renumbered =
            |rows: &CsrMatrix| rows.renumbered(n_labels, |label| own.get(&label).copied());
        Ok(Lessons {
            points: self.points(data)?,
            accepted: renumbered(data.labels())?,
            rejected: data.rejected().map(renumbered).transpose()?,
            weights,
        })
    }

    /// The texts of corrections with the model's labels.
    pub(crate) fn lessons_of_corrections(
        &self,
        corrections: &[impl Borrow<Correction>],
    ) -> Result<Lessons> {
        let corrections = || corrections.iter().map(Borrow::borrow);
        let texts: Texts = corrections().map(|of: &Correction| &of.text).collect();
        Ok(Lessons {
            points: self.featurizer().points_of_texts(&texts)?,
            accepted: self.rows("labels", corrections().map(|of| &of.labels[..]))?,
            rejected: Some(self.rows("not", corrections().map(|of| &of.not[..]))?),
            weights: vec![1.0; corrections().count()],
        })
    }

    /// Checks that corrections can be learned.
    ///
    /// # Errors
    /// As [`Predictor::learn`].
    pub fn check_corrections(&self, corrections: &[Correction]) -> Result<()> {
        if !self.takes_texts() {
            let problem = "the model was trained on features: corrections have texts";
            return Err(Error::CannotPredict(problem.into()));
        }
        if self.parts.neighbours.is_none() {
            return Err(no_neighbours());
        }
        for Correction { labels, not, .. } in corrections {
            for (list, names) in [("labels", labels), ("not", not)] {
                self.find_all(list, refs(names).iter())?;
            }
            if let Some(name) = labels.iter().find(|name| not.contains(name)) {
                return Err(Error::Query {
                    name: "not",
                    found: format!("{name:?}, which is among the accepted labels"),
                    expected: "labels that are rejected",
                });
            }
            if labels.is_empty() && not.is_empty() {
                return Err(Error::Query {
                    name: "labels",
                    found: "neither accepted nor rejected labels".into(),
                    expected: "one of either",
                });
            }
        }
        Ok(())
    }

    /// A row per list of labels.
    fn rows<'l>(
        &self,
        list: &'static str,
        lists: impl Iterator<Item = &'l [String]>,
    ) -> Result<CsrMatrix> {
        let mut rows = CsrBuilder::default();
        for names in lists {
            let found = self.find_all(list, refs(names).iter())?;
            let labels: BTreeSet<LabelId> = found.into_iter().collect();
            rows.push_row(labels.into_iter().map(|label| (label.0, 1.0)));
        }
        rows.finish(self.labels().len())
    }

    /// Learns from points at once.
    pub(crate) fn learn_lessons(&mut self, lessons: &Lessons) -> Result<()> {
        let Lessons {
            points,
            accepted,
            rejected,
            ..
        } = lessons;
        let Some(neighbours) = &mut self.parts.neighbours else {
            return Err(no_neighbours());
        };
        add(neighbours, &points.features, accepted);
        if let Some(labels) = rejected {
            let no_text = || Neighbours::empty(points.features.n_cols());
            let texts = self.parts.rejected.get_or_insert_with(no_text);
            add(texts, &points.features, labels);
        }
        for &label in accepted.indices() {
            self.parts.label_counts[label as usize] += 1;
            let calibration = self.parts.calibration.as_mut();
            let frequency = calibration.and_then(|of| of.frequencies.get_mut(label as usize));
            if let Some(frequency) = frequency {
                *frequency += 1;
            }
        }
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
        let n_labels = parts.label_set.len();
        let retired = &parts.retired;
        let successor = |label| retired.successor(LabelId(label)).map(|label| label.0);
        for index in [&mut parts.neighbours, &mut parts.rejected] {
            if let Some(neighbours) = index.take() {
                *index = Some(neighbours.renumbered(n_labels, successor)?);
            }
        }
        Ok(())
    }
}

fn refs(names: &[String]) -> Vec<LabelRef> {
    names.iter().map(|name| name[..].into()).collect()
}

fn no_neighbours() -> Error {
    let problem = "the model has no index of its training points: train it with neighbours";
    Error::CannotPredict(problem.into())
}

/// Adds the points that have labels.
fn add(neighbours: &mut Neighbours, features: &CsrMatrix, labels: &CsrMatrix) {
    let has_labels = |&row: &usize| !labels.row(row).0.is_empty();
    let rows: Vec<usize> = (0..labels.n_rows()).filter(has_labels).collect();
    if !rows.is_empty() {
        neighbours.add(&features.select_rows(&rows), labels.select_rows(&rows));
    }
}
