//! One member of a model: its encoder, index, classifiers, ranker and calibrator.

use bytemuck::allocation::cast_vec;

use super::{boosting, rerank};
use crate::calibration::{Calibrator, Mixing};
use crate::candidates::{FinalScorer, Member};
use crate::classifiers::{CoarseRows, LabelClassifiers};
use crate::config::{EncoderKind, Plan};
use crate::encoder::{BagEncoder, Encoder, TrainableEncoder, TransformerEncoder};
use crate::error::{Error, Result};
use crate::ids::LabelRow;
use crate::index::{Adjacency, ClusterClassifiers, Edges};
use crate::model::{Model, Numbering, Stage1, Stage1Model};
use crate::ranker::Ranker;
use crate::store::format::manifest;
use crate::store::format::open::{ListedFiles, bad};
use crate::store::format::tensors::{Scan, TensorFile};

/// Reads members.
pub(crate) struct MemberLoader<'a> {
    pub(crate) files: ListedFiles<'a>,
    pub(crate) plan: &'a Plan,
    /// The file of a transformer's architecture.
    pub(crate) architecture: Option<&'a str>,
}

/// An index and the edges of stage 1 where they are known.
struct Index {
    clusters: ClusterClassifiers,
    adjacency: Adjacency,
    numbering: Numbering,
    stage1: Option<Edges>,
}

impl MemberLoader<'_> {
    /// Reads a member.
    ///
    /// # Errors
    /// [`Error::BadFile`], [`Error::Io`].
    pub(crate) fn member(&self, member: &manifest::Member) -> Result<Member> {
        let is_positive = |value: f32| value > 0.0 && value.is_finite();
        if !is_positive(member.alpha) || !member.beta.is_none_or(is_positive) {
            return Err(self
                .files
                .bad_manifest("alpha and beta must be positive".into()));
        }
        let ((encoder, ranker), (index, classifiers)) = rayon::join(
            || (self.encoder(&member.encoder), self.ranker(member)),
            || {
                let classifiers = || self.classifiers(&member.classifiers);
                rayon::join(|| self.index(member), classifiers)
            },
        );
        let index = index?;
        let whole = self.stage1(member, &index)?;
        Ok(Member {
            encoder: encoder?,
            model: Model {
                clusters: index.clusters,
                adjacency: index.adjacency,
                classifiers: classifiers?,
                numbering: index.numbering,
            },
            ranker: ranker?,
            final_scorer: self.final_scorer(member)?,
            stage1: Stage1 {
                edges: index.stage1,
                whole,
            },
        })
    }

    /// The member after stage 1, if it was kept.
    fn stage1(&self, member: &manifest::Member, index: &Index) -> Result<Option<Stage1Model>> {
        let Some(stage1) = &member.stage1 else {
            return Ok(None);
        };
        let edges = index.stage1.clone().ok_or_else(|| {
            let problem = "tensor stage1.indptr: it is missing";
            bad(self.files.directory.join(&member.index), problem.into())
        })?;
        let mut file = self.files.tensors(&stage1.clusters)?;
        let clusters = self.clusters(&mut file, member.alpha)?;
        file.finish()?;
        Ok(Some(Stage1Model {
            encoder: self.encoder(&stage1.encoder)?,
            model: Model {
                clusters,
                adjacency: Adjacency::fixed(edges),
                classifiers: self.classifiers(&stage1.classifiers)?,
                numbering: index.numbering.clone(),
            },
        }))
    }

    fn ranker(&self, member: &manifest::Member) -> Result<Option<Ranker>> {
        let Some(ranker) = &member.ranker else {
            return Ok(None);
        };
        let counts = self.plan.counts();
        let dim = self.plan.config().encoder.dim;
        let shape = rerank::RankerShape {
            n_labels: counts.n_labels,
            n_words: counts.n_features.saturating_add(counts.n_pairs),
            n_dense: if ranker.uses_embedding { dim } else { 0 },
        };
        let read = |file: &mut TensorFile| rerank::read_ranker(file, ranker.loss, shape);
        self.files.parse(&ranker.weights, read).map(Some)
    }

    fn final_scorer(&self, member: &manifest::Member) -> Result<FinalScorer> {
        if let Some(trees) = &member.boosted {
            let trees = self.files.parse(trees, boosting::read_boosted)?;
            return Ok(FinalScorer::Boosted(trees));
        }
        let Some(calibrator) = &member.calibrator else {
            return Ok(FinalScorer::Product);
        };
        let mixing = Mixing {
            tree_weight: calibrator.tree_weight,
            product_weight: calibrator.product_weight,
        };
        let read = |file: &mut TensorFile| Calibrator::from_parts(rerank::read_tree(file)?, mixing);
        let calibrator = self.files.parse(&calibrator.tree, read)?;
        Ok(FinalScorer::Tree(calibrator))
    }

    fn encoder(&self, name: &str) -> Result<Box<dyn TrainableEncoder>> {
        let config = self.plan.config();
        let mut file = self.files.tensors(name)?;
        let mut take = |name: &str, n_rows, n_cols| file.weight_rows(name, (n_rows, n_cols));
        let encoder: Box<dyn TrainableEncoder> = match (config.encoder.kind, self.architecture) {
            (EncoderKind::Bag, _) => Box::new(BagEncoder::from_tensors(
                self.plan.counts(),
                &config.encoder,
                &mut take,
            )?),
            (EncoderKind::Transformer, Some(architecture)) => {
                let text = self.files.text(architecture)?;
                let encoder = TransformerEncoder::from_tensors(&text, config, &mut take);
                let encoder = encoder.map_err(|error| match error {
                    Error::Config { found, .. } => {
                        bad(self.files.directory.join(architecture), found)
                    }
                    error => error,
                })?;
                if encoder.dim() != config.encoder.dim {
                    let (found, expected) = (encoder.dim(), config.encoder.dim);
                    let problem = format!("the encoder has {found} dimensions, not {expected}");
                    return Err(self.files.bad_manifest(problem));
                }
                Box::new(encoder)
            }
            (EncoderKind::Transformer, None) => {
                return Err(self
                    .files
                    .bad_manifest("it names no files of its transformer".into()));
            }
        };
        file.finish()?;
        Ok(encoder)
    }

    fn clusters(&self, file: &mut TensorFile, alpha: f32) -> Result<ClusterClassifiers> {
        let (n_clusters, dim) = (self.plan.n_clusters(), self.plan.config().encoder.dim);
        Ok(ClusterClassifiers {
            weights: file.matrix("clusters.weight", (n_clusters, dim))?,
            bias: file.floats("clusters.bias", n_clusters)?,
            alpha,
        })
    }

    fn index(&self, member: &manifest::Member) -> Result<Index> {
        let n_clusters = self.plan.n_clusters();
        let n_labels = self.plan.counts().n_labels;
        let mut file = self.files.tensors(&member.index)?.scanning_everything();
        let clusters = self.clusters(&mut file, member.alpha)?;
        let n_edges = file.len("adjacency.labels")?;
        let has_removed = file.has("adjacency.removed") && member.beta.is_some();
        let mut offsets = |name: &str| -> Result<Vec<usize>> {
            let ends = file.large_numbers(name, n_clusters + 1)?;
            Ok(ends.iter().map(|&end| end as usize).collect())
        };
        let indptr = offsets("adjacency.indptr")?;
        let stage1 = offsets("stage1.indptr")?;
        let rows = file.numbers("adjacency.labels", n_edges)?;
        let numbering = file.numbers("numbering", n_labels)?;
        let weights = match member.beta {
            Some(beta) => Some((file.floats("adjacency.weight", n_edges)?, beta)),
            None => None,
        };
        let removed = if has_removed {
            Some(file.floats("adjacency.removed", n_clusters)?)
        } else {
            None
        };
        file.finish()?;
        let assemble = || -> Result<Index> {
            let edges = Edges::new(indptr, cast_vec(rows), n_labels)?;
            let in_order = || (0..n_labels as u32).map(LabelRow).collect();
            let stage1 = Edges::new(stage1, in_order(), n_labels)?;
            let adjacency = match weights {
                Some((weights, beta)) => Adjacency::learned(edges, weights, beta)?,
                None => Adjacency::fixed(edges),
            };
            let adjacency = match removed {
                Some(removed) => adjacency.with_removed(removed)?,
                None => adjacency,
            };
            Ok(Index {
                clusters,
                adjacency,
                numbering: Numbering::new(cast_vec(numbering))?,
                stage1: Some(stage1),
            })
        };
        let path = || self.files.directory.join(&member.index);
        assemble().map_err(|error| bad(path(), error.to_string()))
    }

    fn classifiers(&self, name: &str) -> Result<LabelClassifiers> {
        let (n_labels, dim) = (self.plan.counts().n_labels, self.plan.config().encoder.dim);
        let mut file = self.files.tensors(name)?;
        let weights = file.weight_rows("classifiers.weight", (n_labels, dim))?;
        let bias = file.floats("classifiers.bias", n_labels)?;
        let mut coarse = None;
        if file.has("classifiers.coarse") {
            let rows = file.eight_bits("classifiers.coarse", (n_labels, dim))?;
            let errors = file.floats("classifiers.coarse_error", n_labels)?;
            let broken = |problem: String| bad(self.files.directory.join(name), problem);
            let rows =
                CoarseRows::from_parts(rows, errors).map_err(|error| broken(error.to_string()))?;
            let expected = || CoarseRows::new(&weights);
            if file.scan() == Scan::Everything && expected().as_ref() != Some(&rows) {
                let problem = "its coarse rows are not those of its weights";
                return Err(broken(problem.into()));
            }
            coarse = Some(rows);
        }
        file.finish()?;
        Ok(LabelClassifiers {
            weights,
            bias,
            coarse,
        })
    }
}
