//! The training points nearest to a text, and the labels they vote for: a neighbour with cosine c gives each of its
//! labels c².

use std::sync::Arc;

use super::postings::{Neighbour, NeighbourScratch, Postings};
use crate::config::Precision;
use crate::error::{Error, Result};
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};

/// Neighbours that vote.
const N_NEIGHBOURS: usize = 30;

/// Points by their words, with their labels.
///
/// Points come in layers, so that adding some costs as much as those that were added before at most, never as much as the
/// points of the training. Answers do not depend on how points are divided.
///
/// Invariant: at least one layer, all over the same words.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Neighbours {
    layers: Vec<Arc<Layer>>,
}

/// Points that are indexed together.
///
/// Invariant: as many points as rows of labels.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Layer {
    pub(crate) postings: Postings,
    /// Y, N×L; labels that are newer than the layer have no column.
    pub(crate) labels: CsrMatrix,
}

/// The votes of the neighbours for a label.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Vote {
    /// The label.
    pub(crate) label: LabelId,
    /// Sum of the squared cosines of the neighbours that have it.
    pub(crate) score: f32,
    /// Cosine of the nearest of them.
    pub(crate) nearest: f32,
}

impl Neighbours {
    /// Bytes of the index of so many entries of features and labels.
    pub(crate) fn n_bytes(n_feature_entries: usize, n_label_entries: usize) -> usize {
        8 * (n_feature_entries + n_label_entries)
    }

    /// The first `n_points` of these points, with rows of length 1, and their labels.
    pub(crate) fn new(features: &CsrMatrix, labels: &CsrMatrix, n_points: usize) -> Self {
        let points: Vec<usize> = (0..n_points).collect();
        let layer = Layer {
            postings: Postings::new(features, n_points),
            labels: labels.select_rows(&points),
        };
        Neighbours {
            layers: vec![Arc::new(layer)],
        }
    }

    /// No points yet, over so many words.
    pub(crate) fn empty(n_words: usize) -> Self {
        let of = |n_cols| CsrBuilder::default().finish(n_cols).expect("no rows");
        Neighbours::new(&of(n_words), &of(0), 0)
    }

    /// Neighbours from their parts.
    ///
    /// # Errors
    /// [`Error::InvalidModel`] if there are not as many points as rows of labels.
    pub(crate) fn from_parts(postings: Postings, labels: CsrMatrix) -> Result<Self> {
        let (n_points, n_labelled) = (postings.n_rows(), labels.n_rows());
        if n_points == n_labelled {
            let layers = vec![Arc::new(Layer { postings, labels })];
            return Ok(Neighbours { layers });
        }
        let problem = format!("{n_points} neighbours with the labels of {n_labelled}");
        Err(Error::InvalidModel(problem))
    }

    /// Adds points with their labels, all of whose words are listed.
    pub(crate) fn add(&mut self, features: &CsrMatrix, labels: CsrMatrix) {
        let mut added = Layer {
            postings: Postings::of_all_words(features),
            labels,
        };
        // Layers grow twofold at least, so a point is copied a few times, however many come one by one.
        while let [_, .., last] = &self.layers[..]
            && last.labels.n_rows() <= added.labels.n_rows()
        {
            added = last.followed_by(&added);
            self.layers.pop();
        }
        self.layers.push(Arc::new(added));
    }

    /// The same points as one layer, with their words' weights in this precision.
    pub(crate) fn narrowed(self, precision: Precision) -> Self {
        if precision == Precision::Full {
            return self;
        }
        let Layer { postings, labels } = Arc::unwrap_or_clone(self.whole());
        let postings = postings.rounded();
        Neighbours {
            layers: vec![Arc::new(Layer { postings, labels })],
        }
    }

    /// The same points with other labels, of which there are `n_labels`; those without another are left out.
    ///
    /// # Errors
    /// As [`CsrMatrix::renumbered`].
    pub(crate) fn renumbered(
        &self,
        n_labels: usize,
        number: impl Fn(u32) -> Option<u32>,
    ) -> Result<Self> {
        let layers = self.layers.iter().map(|layer| {
            Ok(Arc::new(Layer {
                postings: layer.postings.clone(),
                labels: layer.labels.renumbered(n_labels, &number)?,
            }))
        });
        Ok(Neighbours {
            layers: layers.collect::<Result<_>>()?,
        })
    }

    /// All points as one layer.
    pub(crate) fn whole(&self) -> Arc<Layer> {
        let (first, added) = self.layers.split_first().expect("at least one layer");
        added.iter().fold(Arc::clone(first), |all, layer| {
            Arc::new(all.followed_by(layer))
        })
    }

    /// Number of points, N.
    pub(crate) fn n_points(&self) -> usize {
        self.layers.iter().map(|layer| layer.labels.n_rows()).sum()
    }

    /// Number of words, V, and of labels, L.
    pub(crate) fn shape(&self) -> (usize, usize) {
        let n_labels = self.layers.iter().map(|layer| layer.labels.n_cols());
        let n_words = self.layers[0].postings.n_words();
        (n_words, n_labels.max().unwrap_or(0))
    }

    /// The layers, each with the number of its first point.
    fn numbered(&self) -> impl Iterator<Item = (usize, &Layer)> {
        self.layers.iter().scan(0, |next, layer| {
            let first = *next;
            *next += layer.labels.n_rows();
            Some((first, &**layer))
        })
    }

    /// The labels of a point.
    pub(crate) fn labels_of(&self, point: usize) -> &[u32] {
        let mut layers = self.numbered();
        let own = layers.find_map(|(first, layer)| {
            let row = point.checked_sub(first)?;
            (row < layer.labels.n_rows()).then(|| layer.labels.row(row).0)
        });
        own.unwrap_or_default()
    }

    /// The first `n` points that have a label, each with its listed words and their weights; it reads the whole index.
    pub(crate) fn examples(&self, label: LabelId, n: usize) -> Vec<(usize, Vec<(u32, f32)>)> {
        let mut examples = Vec::new();
        for (first, Layer { postings, labels }) in self.numbered() {
            let has_it = |&row: &u32| labels.row(row as usize).0.binary_search(&label.0).is_ok();
            let rows = (0..labels.n_rows() as u32).filter(has_it);
            let rows: Vec<u32> = rows.take(n - examples.len()).collect();
            let points = rows.iter().map(|&row| first + row as usize);
            examples.extend(points.zip(postings.words_of(&rows)));
        }
        examples
    }

    /// The `k` points nearest to the words of a text, best first, ties to the lower point.
    pub(crate) fn nearest<'s>(
        &self,
        bow: (&[u32], &[f32]),
        k: usize,
        scratch: &'s mut NeighbourScratch,
    ) -> &'s [Neighbour] {
        scratch.others.clear();
        for (first, layer) in self.numbered() {
            layer.postings.nearest(bow, k, scratch);
            let NeighbourScratch { found, others, .. } = scratch;
            others.extend(found.iter().map(|found| Neighbour {
                row: first as u32 + found.row,
                cosine: found.cosine,
            }));
        }
        let NeighbourScratch { found, others, .. } = scratch;
        std::mem::swap(found, others);
        if 1 < self.layers.len() {
            found.sort_unstable_by(Neighbour::before);
            found.truncate(k);
        }
        found
    }

    /// The votes of a text's nearest points, best first, ties to the lower label.
    pub(crate) fn votes(
        &self,
        bow: (&[u32], &[f32]),
        scratch: &mut NeighbourScratch,
        votes: &mut Vec<Vote>,
    ) {
        self.nearest(bow, N_NEIGHBOURS, scratch);
        let NeighbourScratch { found, labels, .. } = scratch;
        labels.clear();
        for neighbour in found.iter() {
            let of_point = self.labels_of(neighbour.row as usize);
            labels.extend(of_point.iter().map(|&label| (label, neighbour.cosine)));
        }
        // Stable, so that the cosines of a label still descend: the sum has one order.
        labels.sort_by_key(|&(label, _)| label);
        votes.clear();
        votes.extend(labels.chunk_by(|a, b| a.0 == b.0).map(|of_label| Vote {
            label: LabelId(of_label[0].0),
            score: of_label.iter().map(|(_, cosine)| cosine * cosine).sum(),
            nearest: of_label[0].1,
        }));
        votes.sort_unstable_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
    }
}

impl Layer {
    /// These points, and then those of another layer.
    fn followed_by(&self, more: &Layer) -> Layer {
        let n_labels = self.labels.n_cols().max(more.labels.n_cols());
        let widened = |labels: &CsrMatrix| labels.with_n_cols(n_labels);
        let mut labels = widened(&self.labels).expect("as many labels or more");
        labels.append(&widened(&more.labels).expect("as many labels or more"));
        Layer {
            postings: self.postings.followed_by(&more.postings),
            labels,
        }
    }
}
