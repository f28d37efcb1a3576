//! From a predictor to a model directory.

use std::collections::BTreeMap;
use std::path::Path;

use super::files::{MANIFEST, Writer};
use super::tensors::{self, Tensor, Values};
use super::{Existing, SaveInfo, lines, load, rerank, v1, v1_history, written_by};
use crate::calibration::{Calibrator, Mixing};
use crate::classifiers::{LabelClassifiers, LabelWeights};
use crate::encoder::TrainableEncoder;
use crate::error::{Error, Result};
use crate::features::Vectorizer;
use crate::index::{ClusterClassifiers, Edges};
use crate::predict::{Member, Predictor};
use crate::ranker::Ranker;
use crate::model::Stage1Model;

/// Writes a model directory.
///
/// Readers see the model that was there before, or none, until everything is on the disk. The same predictor and
/// information give the same bytes.
///
/// # Errors
/// [`Error::Io`], and [`Error::BadFile`] if a model is there already and shall be kept. What was there before is
/// unharmed.
pub fn save(predictor: &Predictor, directory: &Path, info: &SaveInfo) -> Result<()> {
    let is_there = directory.join(MANIFEST).exists();
    if is_there && info.existing == Existing::Keep {
        return Err(Error::BadFile {
            path: directory.into(),
            problem: "it holds a model already: choose another directory, or ask to replace it"
                .into(),
        });
    }
    // A damaged manifest may be replaced as well; its files are then unknown and stay.
    let earlier: Vec<String> = load::read_manifest(directory)
        .map(|manifest| manifest.files.into_keys().collect())
        .unwrap_or_default();
    let mut writer = Writer::new(directory)?;
    match write_files(predictor, info, &mut writer) {
        Ok(manifest) => writer.commit(&v1::to_text(&manifest), &earlier),
        Err(error) => {
            writer.abandon(&earlier);
            Err(error)
        }
    }
}

fn write_files(
    predictor: &Predictor,
    info: &SaveInfo,
    writer: &mut Writer,
) -> Result<v1::Manifest> {
    let plan = predictor.plan();
    let labels = v1::Labels {
        names: writer.write(("labels", "txt"), |out| {
            lines::write(predictor.label_set().names(), out)
        })?,
        counts: write_tensors(
            writer,
            "label-counts",
            vec![Tensor::list(
                "label_counts",
                Values::U32(predictor.label_counts()),
            )],
        )?,
    };
    let features = match predictor.vectorizer() {
        Some(vectorizer) => Some(write_features(writer, vectorizer)?),
        None => None,
    };
    let transformer = write_transformer(writer, predictor)?;
    let mut members = Vec::new();
    for (member_idx, member) in predictor.members().iter().enumerate() {
        members.push(write_member(writer, member_idx, member)?);
    }
    let calibration = match predictor.calibration() {
        Some(calibration) => {
            let tensors = rerank::calibration_tensors(calibration);
            Some(write_tensors(writer, "calibration", tensors)?)
        }
        None => None,
    };
    let files: BTreeMap<_, _> = writer.files().iter().collect();
    Ok(v1::Manifest {
        format: v1::FORMAT.into(),
        version: v1::VERSION,
        written_by: written_by(),
        seed: plan.config().train.seed,
        data: (&info.data).into(),
        n_features: plan.counts().n_features,
        n_training_points: plan.counts().n_points,
        plan: plan.decided().into(),
        labels,
        features,
        transformer,
        members,
        calibration,
        history: v1_history::told(&info.history),
        config: plan.config().clone(),
        files: files
            .into_iter()
            .map(|(name, record)| (name.clone(), record.into()))
            .collect(),
    })
}

fn write_features(writer: &mut Writer, vectorizer: &Vectorizer) -> Result<v1::Features> {
    let vocabulary = vectorizer.vocabulary();
    Ok(v1::Features {
        vocabulary: writer.write(("vocabulary", "txt"), |out| lines::write(vocabulary, out))?,
        weights: write_tensors(
            writer,
            "features",
            vec![Tensor::list("idf", Values::F32(vectorizer.idf()))],
        )?,
    })
}

fn write_transformer(
    writer: &mut Writer,
    predictor: &Predictor,
) -> Result<Option<v1::Transformer>> {
    let config = predictor.members()[0].encoder.architecture();
    let Some((config, pieces)) = config.zip(predictor.pieces()) else {
        return Ok(None);
    };
    let mut text =
        |stem, text: &str| writer.write((stem, "json"), |out| out.write_all(text.as_bytes()));
    Ok(Some(v1::Transformer {
        config: text("config", config)?,
        tokenizer: text("tokenizer", &pieces.to_json())?,
    }))
}

fn write_member(writer: &mut Writer, member_idx: usize, member: &Member) -> Result<v1::Member> {
    let model = &member.model;
    let (clusters, edges) = (&model.clusters, model.adjacency.edges());
    let indptr = offsets(edges);
    let stage1_indptr = member.stage1.edges.as_ref().map(offsets);
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
    index.extend(cluster_tensors(clusters));
    let encoder = encoder_tensors(member.encoder.as_ref());
    let classifiers = classifier_tensors(&model.classifiers);
    let named = |part: &str| format!("{part}-{member_idx}");
    Ok(v1::Member {
        alpha: clusters.alpha,
        beta: model.adjacency.beta(),
        encoder: write_tensors(writer, &named("encoder"), encoder)?,
        index: write_tensors(writer, &named("index"), index)?,
        classifiers: write_tensors(writer, &named("classifiers"), classifiers)?,
        ranker: match &member.ranker {
            Some(ranker) => Some(write_ranker(writer, &named("ranker"), ranker)?),
            None => None,
        },
        calibrator: match &member.calibrator {
            Some(calibrator) => Some(write_calibrator(writer, &named("tree"), calibrator)?),
            None => None,
        },
        stage1: match &member.stage1.whole {
            Some(stage1) => Some(write_stage1(writer, &named("stage1"), stage1)?),
            None => None,
        },
    })
}

/// Row offsets of edges. Those of stage 1 are all of it: its labels are the rows of W_L in their order.
fn offsets(edges: &Edges) -> Vec<u64> {
    edges.indptr().iter().map(|&end| end as u64).collect()
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
    let parts = ranker.parts();
    let indptr: Vec<u64> = parts.words.indptr().iter().map(|&end| end as u64).collect();
    Ok(v1::Ranker {
        loss: parts.loss,
        uses_embedding: 0 < ranker.n_dense(),
        weights: write_tensors(writer, stem, rerank::ranker_tensors(ranker, &indptr))?,
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
        model_power,
        ranker_power,
    } = calibrator.mixing();
    let columns = rerank::TreeColumns::from(calibrator.tree());
    Ok(v1::Calibrator {
        tree_weight,
        product_weight,
        model_power,
        ranker_power,
        tree: write_tensors(writer, stem, columns.tensors())?,
    })
}

fn write_tensors(writer: &mut Writer, stem: &str, all: Vec<Tensor<'_>>) -> Result<String> {
    writer.write((stem, "safetensors"), |out| tensors::write(all, out))
}
