//! One member of a model as files: its encoder, index, classifiers, ranker and calibrator.

use std::io::{self, Write};

use super::files::Writer;
use super::judging::JudgeColumns;
use super::tensors::{self, Tensor, Values, offsets};
use super::{rerank, spread, v1};
use crate::calibration::{Calibrator, Mixing};
use crate::classifiers::{LabelClassifiers, LabelWeights};
use crate::communicator::Communicator;
use crate::encoder::TrainableEncoder;
use crate::error::Result;
use crate::index::ClusterClassifiers;
use crate::model::Stage1Model;
use crate::predict::{Member, Verdict};
use crate::ranker::Ranker;
use crate::train::Spread;

/// Writes the files of a member; their names end in its number. The other processes [`tell`] their parts meanwhile.
///
/// # Errors
/// [`crate::Error::Io`].
pub(super) fn write_member(
    writer: &mut Writer,
    member_idx: usize,
    member: &Member,
    communicator: &dyn Communicator,
) -> Result<v1::Member> {
    let model = &member.model;
    let clusters = &model.clusters;
    let encoder = encoder_tensors(member.encoder.as_ref());
    let named = |part: &str| format!("{part}-{member_idx}");
    Ok(v1::Member {
        alpha: clusters.alpha,
        beta: model.adjacency.beta(),
        encoder: write_tensors(writer, &named("encoder"), encoder)?,
        index: writer.write(&named("index"), "safetensors", |out| {
            write_index(member, communicator, out)
        })?,
        classifiers: writer.write(&named("classifiers"), "safetensors", |out| {
            write_classifiers(&model.classifiers, communicator, out)
        })?,
        ranker: match &member.ranker {
            Some(ranker) => Some(write_ranker(writer, &named("ranker"), ranker)?),
            None => None,
        },
        calibrator: match &member.verdict {
            Some(Verdict::Tree(tree)) => Some(write_calibrator(writer, &named("tree"), tree)?),
            _ => None,
        },
        judge: match &member.verdict {
            Some(Verdict::Judge(judge)) => {
                let columns = JudgeColumns::from(judge);
                Some(write_tensors(writer, &named("judge"), columns.tensors())?)
            }
            _ => None,
        },
        stage1: match &member.stage1.whole {
            Some(stage1) => Some(write_stage1(writer, &named("stage1"), stage1)?),
            None => None,
        },
    })
}

/// Tells the process that writes a member what this one has of it.
pub(super) fn tell(member: &Member, communicator: &dyn Communicator) {
    let out = &mut io::sink();
    let told = write_index(member, communicator, out)
        .and_then(|()| write_classifiers(&member.model.classifiers, communicator, out));
    told.expect("what is thrown away can be written");
}

fn write_index(
    member: &Member,
    communicator: &dyn Communicator,
    out: &mut dyn Write,
) -> io::Result<()> {
    let model = &member.model;
    let edges = model.adjacency.edges();
    let own_indptr = offsets(edges.indptr());
    let indptr = spread::sum_offsets(&own_indptr, communicator);
    // For stage 1 offsets are enough: its labels are the rows of W_L in order.
    let stage1_edges = member.stage1.edges.as_ref();
    let stage1_indptr = stage1_edges.map(|edges| offsets(edges.indptr()));
    let mut index = vec![
        Tensor::list("adjacency.indptr", Values::U64(&indptr)),
        Tensor::list(
            "adjacency.labels",
            Values::U32(bytemuck::cast_slice(edges.rows())),
        ),
        Tensor::list(
            "numbering",
            Values::U32(bytemuck::cast_slice(model.numbering.labels())),
        ),
    ];
    if let Some(weights) = model.adjacency.weights() {
        index.push(Tensor::list("adjacency.weight", Values::F32(weights)));
    }
    if let Some(removed) = model.adjacency.removed() {
        index.push(Tensor::list("adjacency.removed", Values::F32(removed)));
    }
    if let Some(indptr) = &stage1_indptr {
        index.push(Tensor::list("stage1.indptr", Values::U64(indptr)));
    }
    index.extend(cluster_tensors(&model.clusters));
    spread::write(index, Spread::of, &own_indptr, communicator, out)
}

fn write_classifiers(
    classifiers: &LabelClassifiers,
    communicator: &dyn Communicator,
    out: &mut dyn Write,
) -> io::Result<()> {
    spread::write(
        classifier_tensors(classifiers),
        Spread::of,
        &[0],
        communicator,
        out,
    )
}

fn write_stage1(writer: &mut Writer, stem: &str, stage1: &Stage1Model) -> Result<v1::Stage1> {
    let named = |part: &str| format!("{stem}-{part}");
    let Stage1Model { encoder, model } = stage1;
    let encoder = encoder_tensors(encoder.as_ref());
    let clusters = cluster_tensors(&model.clusters).into();
    let classifiers = classifier_tensors(&model.classifiers);
    Ok(v1::Stage1 {
        encoder: write_tensors(writer, &named("encoder"), encoder)?,
        clusters: write_tensors(writer, &named("clusters"), clusters)?,
        classifiers: write_tensors(writer, &named("classifiers"), classifiers)?,
    })
}

fn encoder_tensors(encoder: &dyn TrainableEncoder) -> Vec<Tensor<'_>> {
    let tensors = encoder.tensors().into_iter();
    tensors
        .map(|tensor| Tensor::matrix(tensor.name, tensor.shape, tensor.values))
        .collect()
}

fn cluster_tensors(clusters: &ClusterClassifiers) -> [Tensor<'_>; 2] {
    let shape = (clusters.n_clusters(), clusters.weights.n_cols());
    [
        Tensor::matrix("clusters.weight", shape, clusters.weights.values()),
        Tensor::list("clusters.bias", Values::F32(&clusters.bias)),
    ]
}

fn classifier_tensors(classifiers: &LabelClassifiers) -> Vec<Tensor<'_>> {
    let weights = &classifiers.weights;
    let shape = (weights.n_rows(), weights.n_cols());
    let values = match weights {
        LabelWeights::Full(matrix) => Values::F32(matrix.values()),
        LabelWeights::Half(matrix) => Values::F16(matrix.values()),
    };
    let mut tensors = vec![
        Tensor {
            name: "classifiers.weight".into(),
            shape: vec![shape.0, shape.1],
            values,
        },
        Tensor::list("classifiers.bias", Values::F32(&classifiers.bias)),
    ];
    if let Some(coarse) = &classifiers.coarse {
        let (values, scales, errors) = coarse.parts();
        tensors.push(Tensor::list(
            "classifiers.coarse_scale",
            Values::F32(scales),
        ));
        tensors.push(Tensor::list(
            "classifiers.coarse_error",
            Values::F32(errors),
        ));
        tensors.push(Tensor {
            name: "classifiers.coarse".into(),
            shape: vec![shape.0, shape.1],
            values: Values::I8(values.values()),
        });
    }
    tensors
}

fn write_ranker(writer: &mut Writer, stem: &str, ranker: &Ranker) -> Result<v1::Ranker> {
    let stored = rerank::StoredRanker::from(ranker);
    Ok(v1::Ranker {
        loss: ranker.loss(),
        uses_embedding: ranker.n_dense() > 0,
        weights: write_tensors(writer, stem, rerank::ranker_tensors(ranker, &stored))?,
    })
}

fn write_calibrator(
    writer: &mut Writer,
    stem: &str,
    calibrator: &Calibrator,
) -> Result<v1::Calibrator> {
    let Mixing {
        tree_weight,
        product_weight,
    } = calibrator.mixing();
    let columns = rerank::TreeColumns::from(calibrator.tree());
    Ok(v1::Calibrator {
        tree_weight,
        product_weight,
        tree: write_tensors(writer, stem, columns.tensors())?,
    })
}

/// Writes one file of tensors and returns its name.
pub(super) fn write_tensors(
    writer: &mut Writer,
    stem: &str,
    all: Vec<Tensor<'_>>,
) -> Result<String> {
    writer.write(stem, "safetensors", |out| tensors::write(all, out))
}
