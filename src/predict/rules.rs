//! Rules for labels: which a query allows, and how relevant each must be.
//!
//! Lists are resolved once, into a bit per label, so that their length hardly matters to an answer.

use std::sync::Arc;

use super::Predictor;
use crate::candidates::AllowedLabels;
use crate::error::{Error, Result};
use crate::ids::LabelId;

/// Characters of an unknown name in an error.
const MAX_QUOTED: usize = 100;

/// A label in a list.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum LabelRef {
    /// By its name.
    Name(String),
    /// By its number.
    Id(LabelId),
}

impl From<&str> for LabelRef {
    fn from(name: &str) -> Self {
        LabelRef::Name(name.into())
    }
}

impl From<LabelId> for LabelRef {
    fn from(id: LabelId) -> Self {
        LabelRef::Id(id)
    }
}

/// Lists of labels, as a caller gives them. A label may be listed twice.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct LabelLists {
    /// The only labels that answers may have; all of them without it.
    pub allow: Option<Vec<LabelRef>>,
    /// Labels that answers may not have, also if they are in `allow`.
    pub deny: Vec<LabelRef>,
    /// Thresholds of single labels, instead of that of the query; of a label's thresholds the last one counts.
    pub thresholds: Vec<(LabelRef, f32)>,
}

/// [`LabelLists`] resolved by a model: [`Predictor::label_rules`] makes them. By default all labels are allowed.
#[derive(Clone, Debug, Default)]
pub struct LabelRules(Option<Arc<Rules>>);

#[derive(Debug)]
struct Rules {
    n_labels: usize,
    allowed: Option<AllowedLabels>,
    /// Ascending by label.
    thresholds: Vec<(LabelId, f32)>,
}

impl PartialEq for LabelRules {
    /// Whether both come from one resolution, or allow everything.
    fn eq(&self, other: &Self) -> bool {
        match (&self.0, &other.0) {
            (Some(own), Some(other)) => Arc::ptr_eq(own, other),
            (own, other) => own.is_none() && other.is_none(),
        }
    }
}

impl LabelRules {
    /// Rules for a model with this many labels.
    #[cfg(test)]
    pub(super) fn of(n_labels: usize, allowed: AllowedLabels) -> Self {
        LabelRules(Some(Arc::new(Rules {
            n_labels,
            allowed: Some(allowed),
            thresholds: Vec::new(),
        })))
    }

    /// The labels that may be answers; all of them without it.
    pub(super) fn allowed(&self) -> Option<&AllowedLabels> {
        self.0.as_ref()?.allowed.as_ref()
    }

    /// Whether single labels have thresholds.
    pub(super) fn has_thresholds(&self) -> bool {
        let rules = self.0.as_ref();
        rules.is_some_and(|rules| !rules.thresholds.is_empty())
    }

    /// The threshold of a label, if it has its own.
    pub(super) fn threshold(&self, label: LabelId) -> Option<f32> {
        let thresholds = &self.0.as_ref()?.thresholds;
        let place = thresholds.binary_search_by_key(&label, |of| of.0).ok()?;
        Some(thresholds[place].1)
    }

    /// Checks that a model with this many labels made them.
    pub(super) fn check(&self, n_labels: usize) -> Result<()> {
        match &self.0 {
            Some(rules) if rules.n_labels != n_labels => Err(Error::Query {
                name: "rules",
                found: format!("rules for {} labels", rules.n_labels),
                expected: "rules that this model made",
            }),
            _ => Ok(()),
        }
    }
}

impl Predictor {
    /// Rules for the labels of this model, which may be used in any number of queries.
    ///
    /// ```
    /// # use elias::{Config, Dataset, LabelLists, Query, Trainer};
    /// # let data = Dataset::from_texts((0..40).map(|n| (format!("word{n}"), [format!("label{}", n % 8)])));
    /// # let config = Config::from_toml("stage1.epochs = 1\nstage2.epochs = 1")?;
    /// # let predictor = Trainer::new(config).train(&data)?;
    /// let lists = LabelLists {
    ///     allow: Some(vec!["label2".into(), "label5".into()]),
    ///     ..LabelLists::default()
    /// };
    /// let query = Query { rules: predictor.label_rules(&lists)?, ..Query::default() };
    /// let answers = predictor.predict("word2", &query)?;
    /// assert_eq!(answers.len(), 2);
    /// # Ok::<(), elias::Error>(())
    /// ```
    ///
    /// # Errors
    /// [`Error::UnknownLabels`] naming the first; [`Error::Query`] if `allow` is empty or a threshold makes no sense.
    pub fn label_rules(&self, lists: &LabelLists) -> Result<LabelRules> {
        if lists == &LabelLists::default() {
            return Ok(LabelRules::default());
        }
        let n_labels = self.labels().len();
        let allow = match &lists.allow {
            Some(allow) if allow.is_empty() => {
                return Err(Error::Query {
                    name: "allow",
                    found: "no labels".into(),
                    expected: "at least one label",
                });
            }
            Some(allow) => {
                let mut listed = self.find_all("allow", allow.iter())?;
                self.retired().with_predecessors(&mut listed);
                Some(listed)
            }
            None => None,
        };
        let deny = self.find_all("deny", lists.deny.iter())?;
        for &(_, threshold) in &lists.thresholds {
            check_threshold("thresholds", threshold)?;
        }
        let labels = self.find_all("thresholds", lists.thresholds.iter().map(|of| &of.0))?;
        let values = lists.thresholds.iter().map(|of| of.1);
        // Stable, and the last of a label comes first.
        let mut thresholds: Vec<(LabelId, f32)> = labels.into_iter().zip(values).rev().collect();
        thresholds.sort_by_key(|of| of.0);
        thresholds.dedup_by_key(|of| of.0);
        let is_limited = allow.is_some() || !deny.is_empty();
        Ok(LabelRules(Some(Arc::new(Rules {
            n_labels,
            allowed: is_limited.then(|| AllowedLabels::new(n_labels, allow.as_deref(), &deny)),
            thresholds,
        }))))
    }

    /// The ids of listed labels.
    pub(super) fn find_all<'l>(
        &self,
        list: &'static str,
        labels: impl Iterator<Item = &'l LabelRef>,
    ) -> Result<Vec<LabelId>> {
        let mut unknown: Option<(String, usize)> = None;
        let mut found = Vec::new();
        for label in labels {
            let id = match label {
                LabelRef::Name(name) => self.labels().find(name),
                LabelRef::Id(id) => Some(*id).filter(|id| id.idx() < self.labels().len()),
            };
            let id = id.filter(|&id| !self.is_retired(id));
            match (id, &mut unknown) {
                (Some(id), _) => found.push(id),
                (None, Some((_, n_others))) => *n_others += 1,
                (None, None) => {
                    unknown = Some((label.to_string().chars().take(MAX_QUOTED).collect(), 0))
                }
            }
        }
        match unknown {
            Some((found, n_others)) => Err(Error::UnknownLabels {
                list,
                found,
                n_others,
            }),
            None => Ok(found),
        }
    }
}

impl std::fmt::Display for LabelRef {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            LabelRef::Name(name) => f.write_str(name),
            LabelRef::Id(id) => write!(f, "#{}", id.0),
        }
    }
}

/// Checks a threshold.
///
/// # Errors
/// [`Error::Query`] unless it is from 0 to 1.
pub(super) fn check_threshold(name: &'static str, threshold: f32) -> Result<()> {
    if (0.0..=1.0).contains(&threshold) {
        return Ok(());
    }
    Err(Error::Query {
        name,
        found: threshold.to_string(),
        expected: "a number from 0 to 1",
    })
}
