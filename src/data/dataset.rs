//! The one shape of data that everything after reading works on.

use std::collections::BTreeMap;

use crate::data::{DescribedLabels, LabelSet, Synonyms, TextEmbeddings, Texts, WordVectors};
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};
use crate::random::Random;

/// Points with their labels.
///
/// Invariants: at least one of `texts` and `features` is there; whatever is there has one entry per point; the label
/// matrix has as many columns as `label_set` has names, and its values (relevance weights) are positive; `weights` are
/// finite and not negative; no label is rejected by a point that has it; `more_labels` are not in `label_set`.
#[derive(Clone, Debug, PartialEq)]
pub struct Dataset {
    texts: Option<Texts>,
    features: Option<CsrMatrix>,
    labels: CsrMatrix,
    label_set: LabelSet,
    ids: Option<Texts>,
    weights: Option<Vec<f32>>,
    rejected: Option<CsrMatrix>,
    label_texts: Option<Texts>,
    more_labels: DescribedLabels,
    synonyms: Option<Synonyms>,
    filter: Vec<(usize, LabelId)>,
    word_vectors: Option<WordVectors>,
    embeddings: Option<TextEmbeddings>,
}

/// Counts of what a reader found in a data set, and how it was handled.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Summary {
    /// Points read.
    pub n_points: usize,
    /// Points whose text or feature row is empty: kept.
    pub n_empty_points: usize,
    /// Points without a label: kept; training skips them, metrics skip and count them.
    pub n_unlabelled: usize,
    /// Labels named twice for the same point: kept once, with the highest relevance.
    pub n_duplicate_labels: usize,
    /// Labels with relevance 0: left out.
    pub n_zero_labels: usize,
    /// Labels that the known label set did not have: appended after it.
    pub n_new_labels: usize,
    /// Names of rejected labels that no point has: left out.
    pub n_unknown_rejected: usize,
    /// Fields that held the labels of a point as one string.
    pub n_label_fields: usize,
    /// Those of them that were split into several labels.
    pub n_split_fields: usize,
}

impl Dataset {
    /// A data set over these parts.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if the parts do not fit each other.
    pub fn new(
        texts: Option<Texts>,
        features: Option<CsrMatrix>,
        labels: CsrMatrix,
        label_set: LabelSet,
        ids: Option<Texts>,
    ) -> Result<Self> {
        let n_points = labels.n_rows();
        let counts = [
            ("texts", texts.as_ref().map(Texts::len)),
            ("feature rows", features.as_ref().map(CsrMatrix::n_rows)),
            ("ids", ids.as_ref().map(Texts::len)),
        ];
        for (what, count) in counts {
            if let Some(count) = count.filter(|&count| count != n_points) {
                return Err(Error::InvalidDataset(format!(
                    "{count} {what} for {n_points} label rows"
                )));
            }
        }
        if texts.is_none() && features.is_none() {
            return Err(Error::InvalidDataset("neither texts nor features".into()));
        }
        if labels.n_cols() != label_set.len() {
            let problem = format!(
                "{} label columns but {} label names",
                labels.n_cols(),
                label_set.len()
            );
            return Err(Error::InvalidDataset(problem));
        }
        if let Some(weight) = labels.values().iter().find(|weight| **weight <= 0.0) {
            return Err(Error::InvalidDataset(format!(
                "relevance {weight}, expected a positive number"
            )));
        }
        Ok(Dataset {
            texts,
            features,
            labels,
            label_set,
            ids,
            weights: None,
            rejected: None,
            label_texts: None,
            more_labels: DescribedLabels::default(),
            synonyms: None,
            filter: Vec::new(),
            word_vectors: None,
            embeddings: None,
        })
    }

    /// A data set of texts in memory, each with the names of its labels.
    pub fn from_texts<T, L, N>(points: impl IntoIterator<Item = (T, L)>) -> Self
    where
        T: AsRef<str>,
        L: IntoIterator<Item = N>,
        N: AsRef<str>,
    {
        let mut texts = Texts::default();
        let mut label_set = LabelSet::default();
        let mut rows = CsrBuilder::default();
        for (text, names) in points {
            texts.push(text.as_ref());
            let mut labels: Vec<u32> = names
                .into_iter()
                .map(|name| label_set.intern(name.as_ref()).0)
                .collect();
            labels.sort_unstable();
            labels.dedup();
            rows.push_row(labels.into_iter().map(|label| (label, 1.0)));
        }
        let labels = rows
            .finish(label_set.len())
            .expect("labels ascend and are in the set that numbered them");
        Dataset {
            texts: Some(texts),
            features: None,
            labels,
            label_set,
            ids: None,
            weights: None,
            rejected: None,
            label_texts: None,
            more_labels: DescribedLabels::default(),
            synonyms: None,
            filter: Vec::new(),
            word_vectors: None,
            embeddings: None,
        }
    }

    /// The character that seems to separate labels that were read as one: most points have one label, which no other
    /// point has, with this character in it.
    ///
    /// # Examples
    /// ```
    /// let data = elias::Dataset::from_texts([("a", ["x, y"]), ("b", ["y, z"]), ("c", ["x, z"])]);
    /// assert_eq!(data.suspected_separator(), Some(','));
    /// ```
    pub fn suspected_separator(&self) -> Option<char> {
        let mut counts = vec![0usize; self.n_labels()];
        self.labels
            .indices()
            .iter()
            .for_each(|&label| counts[label as usize] += 1);
        let n_labelled = (0..self.n_points()).filter(|&point| !self.labels.row(point).0.is_empty());
        let n_labelled = n_labelled.count();
        let names = (0..self.n_points()).filter_map(|point| match self.labels.row(point).0 {
            &[label] if counts[label as usize] == 1 => self.label_names(point).next(),
            _ => None,
        });
        let mut n_with = [(',', 0), ('|', 0), (';', 0)];
        for name in names {
            for (separator, n_with) in &mut n_with {
                *n_with += usize::from(name.contains(*separator));
            }
        }
        let (separator, n_with) = n_with.into_iter().max_by_key(|&(_, n_with)| n_with)?;
        (n_with >= 3 && 2 * n_with > n_labelled).then_some(separator)
    }

    /// Cuts a random part of so many points off, to test on; both parts have the labels of the whole. Points without a
    /// label stay in the first part. The same seed gives the same parts.
    pub fn cut_test(&self, n_points: usize, seed: u64) -> [Dataset; 2] {
        let is_labelled = |point: &usize| !self.labels.row(*point).0.is_empty();
        let mut order: Vec<usize> = (0..self.n_points()).filter(is_labelled).collect();
        Random::new(seed, "test part", 0).shuffle(&mut order);
        order.truncate(n_points);
        order.sort_unstable();
        let is_cut = |point: &usize| order.binary_search(point).is_ok();
        let (test, train): (Vec<usize>, Vec<usize>) = (0..self.n_points()).partition(is_cut);
        [train, test].map(|points| self.select(&points))
    }

    /// Number of points, N.
    pub fn n_points(&self) -> usize {
        self.labels.n_rows()
    }

    /// Number of labels, L.
    pub fn n_labels(&self) -> usize {
        self.labels.n_cols()
    }

    /// The texts, where the source had them.
    pub fn texts(&self) -> Option<&Texts> {
        self.texts.as_ref()
    }

    /// Ready-made sparse features, where the source had them.
    pub fn features(&self) -> Option<&CsrMatrix> {
        self.features.as_ref()
    }

    /// Y, N×L: a value is the relevance weight of the label for the point, 1 unless the source gives another.
    pub fn labels(&self) -> &CsrMatrix {
        &self.labels
    }

    /// Names of the labels.
    pub fn label_set(&self) -> &LabelSet {
        &self.label_set
    }

    /// Names of the labels of one point, in the order of their ids.
    ///
    /// # Panics
    /// If the point is out of range.
    pub fn label_names(&self, point: usize) -> impl Iterator<Item = &str> {
        let (labels, _) = self.labels.row(point);
        labels
            .iter()
            .map(|&label| self.label_set.name(LabelId(label)))
    }

    /// The same points over a larger label set, which must start with the labels of this one.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if it does not.
    pub fn with_label_set(self, label_set: LabelSet) -> Result<Dataset> {
        let own = self.label_set.names().iter();
        if label_set.len() < own.len() || !own.eq(label_set.names().iter().take(self.n_labels())) {
            return Err(Error::InvalidDataset(
                "the label set does not start with the labels of the data set".into(),
            ));
        }
        let rejected = self.rejected.as_ref();
        Ok(Dataset {
            labels: self.labels.with_n_cols(label_set.len())?,
            rejected: rejected
                .map(|rejected| rejected.with_n_cols(label_set.len()))
                .transpose()?,
            label_set,
            ..self
        })
    }

    /// The same points with these features, one row per point.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if there are not as many rows as points.
    pub fn with_features(self, features: CsrMatrix) -> Result<Dataset> {
        if features.n_rows() != self.n_points() {
            let (n_rows, n_points) = (features.n_rows(), self.n_points());
            let problem = format!("{n_rows} feature rows for {n_points} label rows");
            return Err(Error::InvalidDataset(problem));
        }
        Ok(Dataset {
            features: Some(features),
            ..self
        })
    }

    /// The same points with a weight each: a point of weight 2 counts as much as two points, one of weight 0 teaches
    /// nothing.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if there are not as many weights as points, or one is negative or not finite.
    pub fn with_weights(self, weights: Vec<f32>) -> Result<Dataset> {
        let (n_weights, n_points) = (weights.len(), self.n_points());
        if n_weights != n_points {
            let problem = format!("{n_weights} weights for {n_points} points");
            return Err(Error::InvalidDataset(problem));
        }
        let is_wrong = |weight: &&f32| !weight.is_finite() || **weight < 0.0;
        if let Some(weight) = weights.iter().find(is_wrong) {
            let problem = format!("weight {weight}, expected a finite number of at least 0");
            return Err(Error::InvalidDataset(problem));
        }
        let differ = weights.iter().any(|weight| *weight != 1.0);
        Ok(Dataset {
            weights: differ.then_some(weights),
            ..self
        })
    }

    /// The weights of the points, if [`Dataset::with_weights`] gave any but 1.
    pub fn weights(&self) -> Option<&[f32]> {
        self.weights.as_deref()
    }

    /// The same points with labels that were rejected for each, N×L: they count against the label more than any other
    /// label that a point does not have. Values do not matter.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if the matrix has another shape than the labels, or a point has a label that it rejects.
    pub fn with_rejected(self, rejected: CsrMatrix) -> Result<Dataset> {
        let (n_rows, n_cols) = (rejected.n_rows(), rejected.n_cols());
        if (n_rows, n_cols) != (self.n_points(), self.n_labels()) {
            return Err(Error::InvalidDataset(format!(
                "{n_rows} rows of {n_cols} rejected labels for {} points and {} labels",
                self.n_points(),
                self.n_labels()
            )));
        }
        for point in 0..n_rows {
            let own = self.labels.row(point).0;
            let mut labels = rejected.row(point).0.iter();
            if let Some(&label) = labels.find(|label| own.binary_search(label).is_ok()) {
                let name = self.label_set.name(LabelId(label));
                let problem = format!("{name:?} both accepted and rejected for point {point}");
                return Err(Error::InvalidDataset(problem));
            }
        }
        Ok(Dataset {
            rejected: (rejected.nnz() > 0).then_some(rejected),
            ..self
        })
    }

    /// The rejected labels of the points, if [`Dataset::with_rejected`] gave any.
    pub fn rejected(&self) -> Option<&CsrMatrix> {
        self.rejected.as_ref()
    }

    /// The same points with texts about their labels: names, synonyms, descriptions; one text per label, in the
    /// order of their ids, empty where nothing is known. Training learns from them in addition to the points.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if there are not as many texts as labels.
    pub fn with_label_texts(self, texts: Texts) -> Result<Dataset> {
        if texts.len() != self.n_labels() {
            let (n_texts, n_labels) = (texts.len(), self.n_labels());
            let problem = format!("{n_texts} label texts for {n_labels} labels");
            return Err(Error::InvalidDataset(problem));
        }
        Ok(Dataset {
            label_texts: Some(texts),
            ..self
        })
    }

    /// Texts about the labels, if [`Dataset::with_label_texts`] gave them.
    pub(crate) fn label_texts(&self) -> Option<&Texts> {
        self.label_texts.as_ref()
    }

    /// The same points with labels that none of them has, known by their texts alone. A model whose final scores
    /// are boosted trees suggests them where a text has words of theirs.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if the data has one of them.
    pub fn with_more_labels(self, more_labels: DescribedLabels) -> Result<Dataset> {
        for name in more_labels.labels().names().iter() {
            if self.label_set.find(name).is_some() {
                let problem = format!("{name:?} is a label of the data already");
                return Err(Error::InvalidDataset(problem));
            }
        }
        Ok(Dataset {
            more_labels,
            ..self
        })
    }

    /// Labels that [`Dataset::with_more_labels`] gave.
    pub fn more_labels(&self) -> &DescribedLabels {
        &self.more_labels
    }

    /// The same points with a list of synonyms: training, and the model ever after, adds its words to every text that
    /// has its phrases.
    pub fn with_synonyms(self, synonyms: Synonyms) -> Dataset {
        Dataset {
            synonyms: Some(synonyms),
            ..self
        }
    }

    /// The synonyms, if [`Dataset::with_synonyms`] gave them.
    pub(crate) fn synonyms(&self) -> Option<&Synonyms> {
        self.synonyms.as_ref()
    }

    /// The same points with pairs of a point and a label that do not count when they are measured on.
    pub fn with_filter(self, filter: Vec<(usize, LabelId)>) -> Dataset {
        Dataset { filter, ..self }
    }

    /// Pairs of a point and a label that do not count; public data sets list an item that is its own label this way.
    pub fn filter(&self) -> &[(usize, LabelId)] {
        &self.filter
    }

    /// The same points with vectors of words that someone else trained: the encoder of a bag of words starts from them.
    pub fn with_word_vectors(self, vectors: WordVectors) -> Dataset {
        Dataset {
            word_vectors: Some(vectors),
            ..self
        }
    }

    /// The vectors of words, if [`Dataset::with_word_vectors`] gave them.
    pub(crate) fn word_vectors(&self) -> Option<&WordVectors> {
        self.word_vectors.as_ref()
    }

    /// The same points with embeddings of their texts that someone else computed, which the encoder of a bag of words reads
    /// beside the words.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if there are not as many embeddings as points.
    pub fn with_embeddings(self, embeddings: TextEmbeddings) -> Result<Dataset> {
        let (n_found, n_points) = (embeddings.len(), self.n_points());
        if n_found != n_points {
            let problem = format!("{n_found} embeddings of texts for {n_points} points");
            return Err(Error::InvalidDataset(problem));
        }
        Ok(Dataset {
            embeddings: Some(embeddings),
            ..self
        })
    }

    /// The embeddings of the texts, if [`Dataset::with_embeddings`] gave them.
    pub(crate) fn embeddings(&self) -> Option<&TextEmbeddings> {
        self.embeddings.as_ref()
    }

    /// Identifiers of the points, where the source had them.
    pub fn ids(&self) -> Option<&Texts> {
        self.ids.as_ref()
    }

    /// These points, in that order, over the same labels.
    ///
    /// # Panics
    /// If a point is out of range.
    pub fn select(&self, points: &[usize]) -> Dataset {
        let pick = |texts: &Texts| {
            points
                .iter()
                .map(|&point| texts.get(point))
                .collect::<Texts>()
        };
        Dataset {
            texts: self.texts.as_ref().map(pick),
            features: self
                .features
                .as_ref()
                .map(|features| features.select_rows(points)),
            labels: self.labels.select_rows(points),
            label_set: self.label_set.clone(),
            ids: self.ids.as_ref().map(pick),
            weights: self
                .weights
                .as_ref()
                .map(|weights| points.iter().map(|&point| weights[point]).collect()),
            rejected: self.rejected.as_ref().map(|all| all.select_rows(points)),
            label_texts: self.label_texts.clone(),
            more_labels: self.more_labels.clone(),
            synonyms: self.synonyms.clone(),
            filter: self.filter_of(points),
            word_vectors: self.word_vectors.clone(),
            embeddings: self.embeddings.as_ref().map(|all| all.select(points)),
        }
    }
    /// The pairs of these points, by their new places.
    fn filter_of(&self, points: &[usize]) -> Vec<(usize, LabelId)> {
        if self.filter.is_empty() {
            return Vec::new();
        }
        let mut labels: BTreeMap<usize, Vec<LabelId>> = BTreeMap::new();
        for &(point, label) in &self.filter {
            labels.entry(point).or_default().push(label);
        }
        let of_point = points.iter().enumerate().flat_map(|(at, point)| {
            let labels = labels.get(point).into_iter().flatten();
            labels.map(move |&label| (at, label))
        });
        of_point.collect()
    }
}
