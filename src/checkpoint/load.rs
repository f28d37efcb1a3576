//! From a model directory to a predictor, without believing it.

use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use rayon::prelude::*;

use super::files::{FileRecord, MANIFEST, read_bounded, sha256};
use super::tensors::{Scan, TensorFile};
use super::v1::Manifest;
use super::{Description, lines, map, rerank, v1};
use crate::calibration::{Calibrator, Mixing};
use crate::classifiers::{CoarseRows, LabelClassifiers};
use crate::config::{DataCounts, EncoderKind, Plan};
use crate::data::LabelSet;
use crate::encoder::{BagEncoder, Encoder, TrainableEncoder, TransformerEncoder};
use crate::error::{Error, Result};
use crate::features::{Vectorizer, WordPieces};
use crate::ids::LabelId;
use crate::index::{Adjacency, ClusterClassifiers, Edges};
use crate::matrix::Matrix;
use crate::model::{Model, Numbering};
use crate::predict::{Calibration, Member, Predictor, PredictorParts};
use crate::ranker::Ranker;
use crate::train::{Stage1, Stage1Model};

/// No manifest is longer.
const MAX_MANIFEST: u64 = 64 << 20;
/// Files up to this size are read and hashed whenever they are loaded.
const SMALL_FILE: u64 = 16 << 20;

/// How much of a model is read before it is used.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Depth {
    /// All but the matrices of large files.
    Quick,
    /// Every byte.
    Full,
}

/// Loads a model. Its large matrices stay where they are and are mapped; see the module for what is checked.
///
/// # Errors
/// [`Error::Io`] if a file cannot be opened; [`Error::BadFile`] and others if the directory does not hold a model of
/// this format, or a damaged one.
pub fn load(directory: &Path) -> Result<Predictor> {
    load_to(directory, Depth::Quick)
}

/// Loads a model after reading and checking every byte of it.
///
/// # Errors
/// As [`load`].
pub fn verify(directory: &Path) -> Result<Predictor> {
    load_to(directory, Depth::Full)
}

/// Reads the manifest alone.
///
/// # Errors
/// As [`load`], for what concerns the manifest.
pub fn describe(directory: &Path) -> Result<Description> {
    let manifest = read_manifest(directory)?;
    Ok(Description {
        version: manifest.version,
        plan: plan_of(&manifest)?,
        data: (&manifest.data).into(),
        history: manifest.history.iter().map(Into::into).collect(),
        n_members: manifest.members.len(),
        takes_texts: manifest.features.is_some(),
        files: manifest.records(),
        written_by: manifest.written_by,
    })
}

pub(super) fn read_manifest(directory: &Path) -> Result<Manifest> {
    let path = directory.join(MANIFEST);
    let bytes = read_bounded(&path, MAX_MANIFEST)?;
    let manifest: Manifest = v1::from_text(&path, &bytes, (v1::FORMAT, v1::VERSION))?;
    manifest.check_names(&path)?;
    Ok(manifest)
}

fn plan_of(manifest: &Manifest) -> Result<Plan> {
    let counts = DataCounts {
        n_points: manifest.n_training_points,
        n_labels: manifest.data.n_labels,
        n_features: manifest.n_features,
    };
    manifest.config.restore(counts, (&manifest.plan).into())
}

fn load_to(directory: &Path, depth: Depth) -> Result<Predictor> {
    let manifest = read_manifest(directory)?;
    let loader = Loader {
        directory,
        plan: plan_of(&manifest)?,
        manifest: &manifest,
        depth,
    };
    if manifest.members.is_empty() {
        return Err(loader.bad_manifest("it has 0 members, expected at least 1".into()));
    }
    let members = || -> Result<Vec<Member>> {
        let members = manifest.members.par_iter();
        members.map(|member| loader.member(member)).collect()
    };
    let ((labels, calibration, pieces), (vectorizer, members)) = rayon::join(
        || (loader.labels(), loader.calibration(), loader.pieces()),
        || rayon::join(|| loader.vectorizer(), members),
    );
    let (label_set, label_counts) = labels?;
    Predictor::new(PredictorParts {
        vectorizer: vectorizer?,
        pieces: pieces?,
        label_set,
        label_counts,
        members: members?,
        calibration: calibration?,
        plan: loader.plan,
    })
}

/// A directory that is being read.
struct Loader<'a> {
    directory: &'a Path,
    manifest: &'a Manifest,
    plan: Plan,
    depth: Depth,
}

impl Loader<'_> {
    fn labels(&self) -> Result<(LabelSet, Vec<u32>)> {
        let n_labels = self.plan.counts().n_labels;
        let (path, bytes, _) = self.open(&self.manifest.labels.names, Depth::Full)?;
        let names = lines::read(&path, &bytes)?;
        self.check_count(&path, (names.len(), n_labels), "names")?;
        let label_set: LabelSet = names.iter().collect();
        self.check_count(&path, (label_set.len(), n_labels), "different names")?;
        let mut file = self.tensors(&self.manifest.labels.counts)?;
        let counts = file.numbers("label_counts", n_labels)?;
        file.finish()?;
        Ok((label_set, counts))
    }

    fn vectorizer(&self) -> Result<Option<Vectorizer>> {
        let Some(features) = &self.manifest.features else {
            return Ok(None);
        };
        let n_words = self.plan.counts().n_features;
        let (path, bytes, _) = self.open(&features.vocabulary, Depth::Full)?;
        let words = lines::read(&path, &bytes)?;
        self.check_count(&path, (words.len(), n_words), "words")?;
        let mut file = self.tensors(&features.weights)?;
        let idf = file.floats("idf", n_words)?;
        file.finish()?;
        let config = self.plan.config().features.clone();
        Vectorizer::from_parts(words, idf, config)
            .map(Some)
            .map_err(|error| bad(path, error.to_string()))
    }

    fn member(&self, member: &v1::Member) -> Result<Member> {
        let is_positive = |value: f32| 0.0 < value && value.is_finite();
        if !is_positive(member.alpha) || !member.beta.is_none_or(is_positive) {
            return Err(self.bad_manifest("alpha and beta must be positive".into()));
        }
        let ((encoder, ranker), (index, classifiers)) = rayon::join(
            || (self.encoder(&member.encoder), self.ranker(member)),
            || {
                let classifiers = || self.classifiers(&member.classifiers);
                rayon::join(|| self.index(member), classifiers)
            },
        );
        let (model, edges) = index?;
        let whole = self.stage1(member, (&model.numbering, edges.as_ref()))?;
        Ok(Member {
            encoder: encoder?,
            model: Model {
                classifiers: classifiers?,
                ..model
            },
            ranker: ranker?,
            calibrator: self.calibrator(member)?,
            stage1: Stage1 { edges, whole },
        })
    }

    /// The member as it was after stage 1, if it was kept.
    fn stage1(
        &self,
        member: &v1::Member,
        (numbering, edges): (&Numbering, Option<&Edges>),
    ) -> Result<Option<Stage1Model>> {
        let Some(stage1) = &member.stage1 else {
            return Ok(None);
        };
        let edges = edges.ok_or_else(|| {
            let problem = "tensor stage1.indptr: it is missing";
            bad(self.directory.join(&member.index), problem.into())
        })?;
        let mut file = self.tensors(&stage1.clusters)?;
        let clusters = self.clusters(&mut file, member.alpha)?;
        file.finish()?;
        Ok(Some(Stage1Model {
            encoder: self.encoder(&stage1.encoder)?,
            model: Model {
                clusters,
                adjacency: Adjacency::fixed(edges.clone()),
                classifiers: self.classifiers(&stage1.classifiers)?,
                numbering: numbering.clone(),
            },
        }))
    }

    fn ranker(&self, member: &v1::Member) -> Result<Option<Ranker>> {
        let Some(ranker) = &member.ranker else {
            return Ok(None);
        };
        let counts = self.plan.counts();
        let dim = match ranker.uses_embedding {
            true => self.plan.config().encoder.dim,
            false => 0,
        };
        let shape = (counts.n_labels, counts.n_features, dim);
        self.read(&ranker.weights, |file| {
            rerank::read_ranker(file, ranker.loss, shape)
        })
        .map(Some)
    }

    fn calibrator(&self, member: &v1::Member) -> Result<Option<Calibrator>> {
        let Some(calibrator) = &member.calibrator else {
            return Ok(None);
        };
        let mixing = Mixing {
            tree_weight: calibrator.tree_weight,
            product_weight: calibrator.product_weight,
            model_power: calibrator.model_power,
            ranker_power: calibrator.ranker_power,
        };
        self.read(&calibrator.tree, |file| {
            Calibrator::from_parts(rerank::read_tree(file)?, mixing)
        })
        .map(Some)
    }

    fn calibration(&self) -> Result<Option<Calibration>> {
        let Some(name) = &self.manifest.calibration else {
            return Ok(None);
        };
        let n_labels = self.plan.counts().n_labels;
        self.read(name, |file| rerank::read_calibration(file, n_labels))
            .map(Some)
    }

    /// Reads a file whose parts form something whole; what does not fit together is told with the file's name.
    fn read<T>(&self, name: &str, parse: impl FnOnce(&mut TensorFile) -> Result<T>) -> Result<T> {
        let mut file = self.tensors(name)?;
        let parsed = parse(&mut file).map_err(|error| match error {
            Error::InvalidMatrix(problem) | Error::InvalidModel(problem) => {
                bad(self.directory.join(name), problem)
            }
            error => error,
        })?;
        file.finish()?;
        Ok(parsed)
    }

    fn encoder(&self, name: &str) -> Result<Box<dyn TrainableEncoder>> {
        let config = &self.plan.config().encoder;
        let n_words = self.plan.counts().n_features;
        let mut file = self.tensors(name)?;
        let mut take = |name: &str, n_rows, n_cols| file.matrix(name, (n_rows, n_cols));
        let encoder: Box<dyn TrainableEncoder> = match (config.kind, &self.manifest.transformer) {
            (EncoderKind::Bag, _) => {
                Box::new(BagEncoder::from_tensors(n_words, config, &mut take)?)
            }
            (EncoderKind::Transformer, Some(transformer)) => {
                let (path, text) = self.text(&transformer.config)?;
                let encoder = TransformerEncoder::from_tensors(&text, config, &mut take);
                let encoder = encoder.map_err(|error| match error {
                    Error::Config { found, .. } => bad(path, found),
                    error => error,
                })?;
                if encoder.dim() != config.dim {
                    let (found, expected) = (encoder.dim(), config.dim);
                    let problem = format!("the encoder has {found} dimensions, not {expected}");
                    return Err(self.bad_manifest(problem));
                }
                Box::new(encoder)
            }
            (EncoderKind::Transformer, None) => {
                return Err(self.bad_manifest("it names no files of its transformer".into()));
            }
        };
        file.finish()?;
        Ok(encoder)
    }

    fn pieces(&self) -> Result<Option<WordPieces>> {
        let Some(transformer) = &self.manifest.transformer else {
            return Ok(None);
        };
        let (path, text) = self.text(&transformer.tokenizer)?;
        let pieces = WordPieces::from_json(&text);
        pieces
            .map(Some)
            .map_err(|error| bad(path, error.to_string()))
    }

    fn text(&self, name: &str) -> Result<(PathBuf, String)> {
        let (path, bytes, _) = self.open(name, Depth::Full)?;
        match std::str::from_utf8(&bytes) {
            Ok(text) => Ok((path, text.to_owned())),
            Err(_) => Err(bad(path, "it is not UTF-8".into())),
        }
    }

    fn clusters(&self, file: &mut TensorFile, alpha: f32) -> Result<ClusterClassifiers> {
        let (n_clusters, dim) = (self.plan.n_clusters(), self.plan.config().encoder.dim);
        Ok(ClusterClassifiers {
            weights: file.matrix("clusters.weight", (n_clusters, dim))?,
            bias: file.floats("clusters.bias", n_clusters)?,
            alpha,
        })
    }

    /// The model without its label classifiers, and the edges of stage 1 where they are known.
    fn index(&self, member: &v1::Member) -> Result<(Model, Option<Edges>)> {
        let n_clusters = self.plan.n_clusters();
        let n_labels = self.plan.counts().n_labels;
        let mut file = self.tensors(&member.index)?.scanning_everything();
        let clusters = self.clusters(&mut file, member.alpha)?;
        let n_edges = file.len("adjacency.labels")?;
        let has_stage1 = file.has("stage1.indptr");
        let has_removed = file.has("adjacency.removed") && member.beta.is_some();
        let mut offsets = |name: &str| -> Result<Vec<usize>> {
            let ends = file.large_numbers(name, n_clusters + 1)?;
            Ok(ends.iter().map(|&end| end as usize).collect())
        };
        let indptr = offsets("adjacency.indptr")?;
        let stage1 = match has_stage1 {
            true => Some(offsets("stage1.indptr")?),
            false => None,
        };
        let labels = file.numbers("adjacency.labels", n_edges)?;
        let numbering = file.numbers("numbering", n_labels)?;
        let weights = match member.beta {
            Some(beta) => Some((file.floats("adjacency.weight", n_edges)?, beta)),
            None => None,
        };
        let removed = match has_removed {
            true => Some(file.floats("adjacency.removed", n_clusters)?),
            false => None,
        };
        file.finish()?;
        let path = || self.directory.join(&member.index);
        let parts = || -> Result<(Model, Option<Edges>)> {
            let edges = Edges::new(indptr, label_ids(labels), n_labels)?;
            let in_order = || label_ids((0..n_labels as u32).collect());
            let stage1 = stage1.map(|indptr| Edges::new(indptr, in_order(), n_labels));
            let adjacency = match weights {
                Some((weights, beta)) => Adjacency::learned(edges, weights, beta)?,
                None => Adjacency::fixed(edges),
            };
            let adjacency = match removed {
                Some(removed) => adjacency.with_removed(removed)?,
                None => adjacency,
            };
            let model = Model {
                clusters,
                adjacency,
                classifiers: LabelClassifiers {
                    weights: Matrix::default().into(),
                    bias: Vec::new(),
                    coarse: None,
                },
                numbering: Numbering::new(label_ids(numbering))?,
            };
            Ok((model, stage1.transpose()?))
        };
        parts().map_err(|error| bad(path(), error.to_string()))
    }

    fn classifiers(&self, name: &str) -> Result<LabelClassifiers> {
        let (n_labels, dim) = (self.plan.counts().n_labels, self.plan.config().encoder.dim);
        let mut file = self.tensors(name)?;
        let weights = file.label_weights("classifiers.weight", (n_labels, dim))?;
        let bias = file.floats("classifiers.bias", n_labels)?;
        let coarse = match file.has("classifiers.coarse") {
            true => {
                let values = file.whole_matrix("classifiers.coarse", (n_labels, dim))?;
                let scales = file.floats("classifiers.coarse_scale", n_labels)?;
                let errors = file.floats("classifiers.coarse_error", n_labels)?;
                let broken = |problem: String| bad(self.directory.join(name), problem);
                let rows = CoarseRows::from_parts(values, scales, errors)
                    .map_err(|error| broken(error.to_string()))?;
                if file.scan() == Scan::Everything && rows != CoarseRows::new(&weights) {
                    return Err(broken(
                        "its coarse rows are not those of its weights".into(),
                    ));
                }
                Some(rows)
            }
            false => None,
        };
        file.finish()?;
        Ok(LabelClassifiers {
            weights,
            bias,
            coarse,
        })
    }

    fn tensors(&self, name: &str) -> Result<TensorFile> {
        let (path, map, depth) = self.open(name, self.depth)?;
        let scan = match depth {
            Depth::Full => Scan::Everything,
            Depth::Quick => Scan::Lists,
        };
        TensorFile::new(&path, map, scan)
    }

    /// Maps a file whose size is as listed, and whose hash is if it is small or read to that depth.
    fn open(&self, name: &str, depth: Depth) -> Result<(PathBuf, Arc<Mmap>, Depth)> {
        let path = self.directory.join(name);
        let records = self.manifest.record(name);
        let FileRecord {
            bytes: expected,
            sha256: hash,
        } = records.ok_or_else(|| self.bad_manifest(format!("it does not list {name}")))?;
        let map = map::open(&path)?;
        let found = map.len() as u64;
        if found != expected {
            return Err(bad(
                path,
                format!("it has {found} bytes, the manifest says {expected}"),
            ));
        }
        let depth = if found <= SMALL_FILE {
            Depth::Full
        } else {
            depth
        };
        if depth == Depth::Full && sha256(&map) != hash {
            let problem = "it is damaged: its SHA-256 is not the one in the manifest";
            return Err(bad(path, problem.into()));
        }
        Ok((path, map, depth))
    }

    fn check_count(
        &self,
        path: &Path,
        (found, expected): (usize, usize),
        what: &str,
    ) -> Result<()> {
        if found == expected {
            return Ok(());
        }
        let problem = format!("it has {found} {what}, the manifest says {expected}");
        Err(bad(path.into(), problem))
    }

    fn bad_manifest(&self, problem: String) -> Error {
        bad(self.directory.join(MANIFEST), problem)
    }
}

fn bad(path: PathBuf, problem: String) -> Error {
    Error::BadFile { path, problem }
}

fn label_ids(ids: Vec<u32>) -> Vec<LabelId> {
    bytemuck::allocation::cast_vec(ids)
}
