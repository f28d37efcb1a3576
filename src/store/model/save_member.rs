//! One member of a model as files: its encoder, index, classifiers, ranker and calibrator.

use std::io::{self, Write};

use super::boosting::BoostedColumns;
use super::rerank;
use crate::calibration::{Calibrator, Mixing};
use crate::candidates::{FinalScorer, Member};
use crate::classifiers::LabelClassifiers;
use crate::communicator::Communicator;
use crate::encoder::{TensorValues, TrainableEncoder};
use crate::error::Result;
use crate::index::ClusterClassifiers;
use crate::matrix::WeightRows;
use crate::model::Stage1Model;
use crate::ranker::Ranker;
use crate::store::format::files::Writer;
use crate::store::format::manifest;
use crate::store::format::tensors::{self, Tensor, Values, offsets};
use crate::store::processes::spread;
use crate::train::Spread;

/// Writes the files of a member; their names end in its number. The other processes [`send_member`] their parts meanwhile.
///
/// # Errors
/// [`crate::Error::Io`].
pub(crate) fn write_member(
    writer: &mut Writer,
    member_idx: usize,
    member: &Member,
    communicator: &dyn Communicator,
) -> Result<manifest::Member> {
    let model = &member.model;
    let clusters = &model.clusters;
    let encoder = encoder_tensors(member.encoder.as_ref());
    let named = |part: &str| format!("{part}-{member_idx}");
    Ok(manifest::Member {
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
        calibrator: match &member.final_scorer {
            FinalScorer::Tree(tree) => Some(write_calibrator(writer, &named("tree"), tree)?),
            _ => None,
        },
        boosted: match &member.final_scorer {
            FinalScorer::Boosted(trees) => {
                let columns = BoostedColumns::from(trees);
                Some(write_tensors(writer, &named("boosted"), columns.tensors())?)
            }
            _ => None,
        },
        stage1: match &member.stage1.whole {
            Some(stage1) => Some(write_stage1(writer, &named("stage1"), stage1)?),
            None => None,
        },
    })
}

/// Sends the process that writes a member what this one has of it.
pub(crate) fn send_member(member: &Member, communicator: &dyn Communicator) {
    let out = &mut io::sink();
    let sent = write_index(member, communicator, out)
        .and_then(|()| write_classifiers(&member.model.classifiers, communicator, out));
    sent.expect("what is thrown away can be written");
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

fn write_stage1(writer: &mut Writer, stem: &str, stage1: &Stage1Model) -> Result<manifest::Stage1> {
    let named = |part: &str| format!("{stem}-{part}");
    let Stage1Model { encoder, model } = stage1;
    let encoder = encoder_tensors(encoder.as_ref());
    let clusters = cluster_tensors(&model.clusters).into();
    let classifiers = classifier_tensors(&model.classifiers);
    Ok(manifest::Stage1 {
        encoder: write_tensors(writer, &named("encoder"), encoder)?,
        clusters: write_tensors(writer, &named("clusters"), clusters)?,
        classifiers: write_tensors(writer, &named("classifiers"), classifiers)?,
    })
}

fn encoder_tensors(encoder: &dyn TrainableEncoder) -> Vec<Tensor<'_>> {
    let tensors = encoder.tensors().into_iter();
    let written = tensors.flat_map(|tensor| match tensor.values {
        TensorValues::Full(values) => vec![Tensor::matrix(tensor.name, tensor.shape, values)],
        TensorValues::Eight(rows) => Tensor::eight(tensor.name, rows).into(),
    });
    written.collect()
}

fn cluster_tensors(clusters: &ClusterClassifiers) -> [Tensor<'_>; 2] {
    let shape = (clusters.n_clusters(), clusters.weights.n_cols());
    [
        Tensor::matrix("clusters.weight", shape, clusters.weights.values()),
        Tensor::list("clusters.bias", Values::F32(&clusters.bias)),
    ]
}

fn classifier_tensors(classifiers: &LabelClassifiers) -> Vec<Tensor<'_>> {
    let mut tensors = match &classifiers.weights {
        WeightRows::Full(matrix) => {
            let shape = (matrix.n_rows(), matrix.n_cols());
            vec![Tensor::matrix("classifiers.weight", shape, matrix.values())]
        }
        WeightRows::Eight(rows) => Tensor::eight("classifiers.weight", rows).into(),
    };
    let bias = Values::F32(&classifiers.bias);
    tensors.push(Tensor::list("classifiers.bias", bias));
    if let Some(coarse) = &classifiers.coarse {
        let (rows, errors) = coarse.parts();
        tensors.extend(Tensor::eight("classifiers.coarse", rows));
        tensors.push(Tensor::list(
            "classifiers.coarse_error",
            Values::F32(errors),
        ));
    }
    tensors
}

fn write_ranker(writer: &mut Writer, stem: &str, ranker: &Ranker) -> Result<manifest::Ranker> {
    let stored = rerank::StoredRanker::from(ranker);
    Ok(manifest::Ranker {
        loss: ranker.loss(),
        uses_embedding: ranker.n_dense() > 0,
        weights: write_tensors(writer, stem, rerank::ranker_tensors(ranker, &stored))?,
    })
}

fn write_calibrator(
    writer: &mut Writer,
    stem: &str,
    calibrator: &Calibrator,
) -> Result<manifest::Calibrator> {
    let Mixing {
        tree_weight,
        product_weight,
    } = calibrator.mixing();
    let columns = rerank::TreeColumns::from(calibrator.tree());
    Ok(manifest::Calibrator {
        tree_weight,
        product_weight,
        tree: write_tensors(writer, stem, columns.tensors())?,
    })
}

/// Writes one file of tensors and returns its name.
pub(crate) fn write_tensors(
    writer: &mut Writer,
    stem: &str,
    all: Vec<Tensor<'_>>,
) -> Result<String> {
    writer.write(stem, "safetensors", |out| tensors::write(all, out))
}
