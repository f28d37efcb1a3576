//! Makes a model of any size without training it, to time how fast models load and answer.
//!
//! `cargo run --release --example large_model -- MODEL N_WORDS N_LABELS DIM`

use std::path::Path;

use elias::checkpoint::{DataSummary, Existing, SaveInfo, save};
use elias::classifiers::LabelClassifiers;
use elias::config::{Config, DataCounts, LabelPrecision};
use elias::data::{LabelSet, Texts};
use elias::encoder::BagEncoder;
use elias::features::Vectorizer;
use elias::ids::LabelId;
use elias::index::{Adjacency, ClusterClassifiers, Edges};
use elias::matrix::Matrix;
use elias::model::{Model, Numbering};
use elias::predict::{Member, Predictor, PredictorParts};
use elias::random::Random;
use elias::train::Stage1;

fn main() -> Result<(), Box<dyn std::error::Error>> {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [directory, n_words, n_labels, dim] = &arguments[..] else {
        return Err("expected MODEL N_WORDS N_LABELS DIM".into());
    };
    let (n_words, n_labels): (usize, usize) = (n_words.parse()?, n_labels.parse()?);
    let config = Config::default().with_value(&format!("encoder.dim={dim}"))?;
    let plan = config.resolve(DataCounts {
        n_points: n_labels,
        n_labels,
        n_features: n_words,
    })?;
    let (dim, n_clusters) = (config.encoder.dim, plan.n_clusters());
    let words: Texts = (0..n_words).map(|word| format!("word{word:09}")).collect();
    let vectorizer = Vectorizer::from_parts(words, vec![1.0; n_words], config.features.clone())?;
    let names: LabelSet = (0..n_labels)
        .map(|label| format!("label {label}"))
        .collect();
    let edges_of = |cluster: usize| {
        let first = cluster * n_labels / n_clusters;
        let labels = (0..plan.kappa()).map(|edge| LabelId(((first + edge) % n_labels) as u32));
        labels.collect()
    };
    let edges = Edges::from_lists((0..n_clusters).map(edges_of).collect(), n_labels)?;
    let weights = values(edges.len());
    let model = Model {
        clusters: ClusterClassifiers {
            weights: Matrix::from_vec(values(n_clusters * dim), n_clusters, dim),
            bias: vec![0.0; n_clusters],
            alpha: config.index.alpha,
        },
        adjacency: Adjacency::learned(edges, weights, plan.beta())?,
        classifiers: LabelClassifiers {
            weights: Matrix::from_vec(values(n_labels * dim), n_labels, dim).into(),
            bias: vec![0.0; n_labels],
            coarse: None,
        }
        .finished(LabelPrecision::Full),
        numbering: Numbering::new((0..n_labels as u32).map(LabelId).collect())?,
    };
    let member = Member {
        encoder: Box::new(BagEncoder::new(n_words, &config.encoder, 0)),
        model,
        ranker: None,
        calibrator: None,
        stage1: Stage1::default(),
    };
    let labels = (names, vec![1; n_labels]);
    let (label_set, label_counts) = labels;
    let predictor = Predictor::new(PredictorParts {
        vectorizer: Some(vectorizer),
        pieces: None,
        label_set,
        label_counts,
        members: vec![member],
        calibration: None,
        plan,
    })?;
    let info = SaveInfo {
        history: Vec::new(),
        data: DataSummary {
            n_labels,
            ..DataSummary::default()
        },
        existing: Existing::Replace,
    };
    save(&predictor, Path::new(directory), &info)?;
    Ok(())
}

fn values(n_values: usize) -> Vec<f32> {
    let mut random = Random::new(0, "large model", 0);
    (0..n_values).map(|_| random.f32() - 0.5).collect()
}
