//! The fast transformer against the reference, finite differences, and itself on other numbers of threads.

use super::reference::Reference;
use super::*;
use crate::config::{Pooling, Recipe};
use crate::encoder::Gradient;
use crate::features::TokenRows;
use crate::matrix::CsrMatrix;
use crate::on_threads;

const STEP: StepSeed = StepSeed { seed: 5, step: 3 };

fn tiny(architecture: Architecture) -> Shape {
    Shape {
        architecture,
        n_words: 23,
        n_positions: 12,
        n_types: if architecture == Architecture::Bert {
            2
        } else {
            0
        },
        hidden: 12,
        inner: 20,
        n_layers: 3,
        n_heads: 3,
        epsilon: 1e-6,
    }
}

fn config(assignments: &[&str]) -> Config {
    let set = |config: crate::config::Config, one: &&str| config.with_value(one).unwrap();
    let defaults = crate::config::Config::default();
    assignments.iter().fold(defaults, set)
}

/// Random weights of a size at which every part of the network matters; without dropout.
fn encoder(architecture: Architecture, config: &Config) -> TransformerEncoder {
    let mut encoder = TransformerEncoder::random(&tiny(architecture), config, 3);
    encoder.layer_dropout = 0.0;
    let mut random = Random::new(9, "test", 0);
    let weights = &mut encoder.body.weights;
    let embeddings = [&mut weights.words, &mut weights.positions];
    let layers = weights.layers.iter_mut().flat_map(weights::Layer::all_mut);
    for weight in embeddings.into_iter().chain(layers) {
        weight
            .values
            .values_mut()
            .iter_mut()
            .for_each(|value| *value += 0.3 * random.normal());
    }
    encoder
}

fn texts(n: usize) -> TokenRows {
    let mut random = Random::new(1, "texts", 0);
    let text = |_| {
        let n_tokens = 1 + random.below(12);
        (0..n_tokens)
            .map(|_| random.below(23) as u32)
            .collect::<Vec<u32>>()
    };
    (0..n).map(text).collect()
}

/// Token ids with unused features.
fn with_points<T>(tokens: &TokenRows, then: impl FnOnce(Points<'_>) -> T) -> T {
    let features = CsrMatrix::new(vec![0; tokens.n_rows() + 1], vec![], vec![], 1).unwrap();
    then(Points {
        tokens: Some(tokens),
        ..Points::of_features(&features)
    })
}

/// Loss Σ upstream·φ and every gradient by name, dense.
fn run(encoder: &mut TransformerEncoder, tokens: &TokenRows) -> (f64, Vec<(String, Vec<f32>)>) {
    let rows: Vec<u32> = (0..tokens.n_rows() as u32).collect();
    let mut out = Matrix::default();
    with_points(tokens, |points| {
        encoder.forward(points, &rows, STEP, &mut out)
    });
    let mut upstream = Matrix::zeros(out.n_rows(), out.n_cols());
    let mut random = Random::new(2, "upstream", 0);
    upstream
        .values_mut()
        .iter_mut()
        .for_each(|value| *value = random.normal());
    with_points(tokens, |points| encoder.backward(points, &rows, &upstream));
    let products = out.values().iter().zip(upstream.values());
    let loss = products.map(|(&a, &b)| f64::from(a) * f64::from(b)).sum();
    let dense = |parameter: Parameter<'_>| {
        let gradient = match parameter.gradient {
            Gradient::Dense(values) => values.to_vec(),
            Gradient::Rows(rows, values) => {
                let width = parameter.shape.1;
                let mut all = vec![0.0; parameter.values.len()];
                for (&row, values) in rows.iter().zip(values.chunks_exact(width)) {
                    all[row as usize * width..][..width].copy_from_slice(values);
                }
                all
            }
        };
        (parameter.name.to_owned(), gradient)
    };
    (loss, encoder.parameters().into_iter().map(dense).collect())
}

/// The same loss by the reference.
fn reference_loss(reference: &Reference, config: &Config, tokens: &TokenRows) -> f64 {
    let mut random = Random::new(2, "upstream", 0);
    let mut loss = 0.0;
    for text in 0..tokens.n_rows() {
        let states = reference.states(tokens.row(text));
        let pooled: Vec<f64> = match Recipe::of(config).pooling {
            Pooling::Cls => states[0].clone(),
            Pooling::Mean => (0..states[0].len())
                .map(|c| states.iter().map(|s| s[c]).sum::<f64>() / states.len() as f64)
                .collect(),
        };
        let embedding = match config.encoder.projection {
            None => pooled,
            Some(_) => reference.linear("projection", &vec![pooled]).remove(0),
        };
        loss += embedding
            .iter()
            .map(|x| x * f64::from(random.normal()))
            .sum::<f64>();
    }
    loss
}

#[test]
fn every_gradient_agrees_with_finite_differences_of_the_reference() {
    let tokens = texts(7);
    for (architecture, settings) in [
        (
            Architecture::Bert,
            &["ablation.pooling=mean", "encoder.projection=5"][..],
        ),
        (Architecture::DistilBert, &["ablation.pooling=cls"]),
    ] {
        let config = config(settings);
        let mut encoder = encoder(architecture, &config);
        let (loss, gradients) = run(&mut encoder, &tokens);
        let mut reference = Reference::new(encoder.shape(), encoder.tensors());
        let expected = reference_loss(&reference, &config, &tokens);
        assert!(
            (loss - expected).abs() < 1e-4 * expected.abs().max(1.0),
            "{loss} {expected}"
        );
        assert_eq!(gradients.len(), reference.tensors.len());
        let mut random = Random::new(4, "entries", 0);
        for (name, gradient) in &gradients {
            let largest = gradient.iter().fold(0f32, |most, g| most.max(g.abs()));
            for _ in 0..6 {
                let at = random.below(gradient.len());
                let mut moved = |by: f64| {
                    reference.tensors.get_mut(name).unwrap()[at] += by;
                    let loss = reference_loss(&reference, &config, &tokens);
                    reference.tensors.get_mut(name).unwrap()[at] -= by;
                    loss
                };
                let expected = (moved(1e-5) - moved(-1e-5)) / 2e-5;
                let found = f64::from(gradient[at]);
                let scale = f64::from(largest).max(1.0);
                assert!(
                    (found - expected).abs() < 1e-4 * scale,
                    "{name}[{at}]: {found} {expected}"
                );
            }
        }
    }
}

#[test]
fn a_packed_batch_equals_each_text_alone() {
    let config = config(&[]);
    let encoder = encoder(Architecture::Bert, &config);
    let tokens = texts(40);
    let rows: Vec<u32> = (0..40).rev().collect();
    let (mut together, mut alone) = (Matrix::default(), Matrix::default());
    with_points(&tokens, |points| {
        encoder.encode(points, &rows, &mut together);
        for (place, &row) in rows.iter().enumerate() {
            encoder.encode(points, &[row], &mut alone);
            let pairs = together.row(place).iter().zip(alone.row(0));
            assert!(
                pairs.clone().all(|(a, b)| (a - b).abs() < 1e-5),
                "text {row}"
            );
        }
    });
}

#[test]
fn a_text_without_tokens_and_an_empty_batch_are_embedded() {
    let config = config(&[]);
    let mut encoder = encoder(Architecture::Bert, &config);
    let tokens: TokenRows = [vec![], vec![3, 4]].into_iter().collect();
    let mut out = Matrix::default();
    with_points(&tokens, |points| {
        encoder.encode(points, &[], &mut out);
        assert_eq!(out.n_rows(), 0);
        encoder.encode(points, &[0, 1], &mut out);
    });
    assert!(out.row(0).iter().all(|&value| value == 0.0));
    assert!(out.row(1).iter().any(|&value| value != 0.0));
    run(&mut encoder, &tokens);
}

/// Gradients as bits.
fn bits(gradients: &[(String, Vec<f32>)]) -> Vec<u32> {
    let values = gradients.iter().flat_map(|(_, values)| values);
    values.map(|value| value.to_bits()).collect()
}

#[test]
fn gradients_are_the_same_bytes_on_any_number_of_threads_and_with_layers_run_again() {
    let config = config(&[]);
    let tokens = texts(200);
    let gradients = |n_threads: usize, max_tape_values: usize| {
        let mut encoder = encoder(Architecture::Bert, &config);
        encoder.layer_dropout = 0.2;
        encoder.body.max_tape_values = max_tape_values;
        on_threads(n_threads, || bits(&run(&mut encoder, &tokens).1))
    };
    let one = gradients(1, usize::MAX);
    assert_eq!(one, gradients(2, usize::MAX));
    assert_eq!(one, gradients(7, usize::MAX));
    assert_eq!(one, gradients(2, 0));
}

#[test]
fn dropout_drops_the_same_values_in_both_passes() {
    let config = config(&["encoder.projection=12"]);
    let tokens = texts(6);
    let mut encoder = encoder(Architecture::Bert, &config);
    let without_dropout = run(&mut encoder.clone(), &tokens).0;
    encoder.layer_dropout = 0.3;
    let (loss, gradients) = run(&mut encoder, &tokens);
    assert_ne!(without_dropout, loss);
    for (name, gradient) in &gradients {
        // Along the gradient the loss rises with its squared length.
        let length: f64 = gradient.iter().map(|&g| f64::from(g * g)).sum();
        let by = 1e-2 / length.sqrt();
        let moved = |sign: f64| {
            let mut encoder = encoder.clone();
            let parameters = encoder.parameters().into_iter();
            for parameter in parameters.filter(|parameter| parameter.name == name) {
                for (value, &gradient) in parameter.values.iter_mut().zip(gradient) {
                    *value += (sign * by * f64::from(gradient)) as f32;
                }
            }
            run(&mut encoder, &tokens).0
        };
        let slope = (moved(1.0) - moved(-1.0)) / (2.0 * by);
        assert!(
            (slope - length).abs() < 0.03 * length + 1e-3,
            "{name}: {slope} {length}"
        );
    }
}

#[test]
fn upper_layers_train_as_in_the_full_model_and_lower_ones_stay() {
    let tokens = texts(9);
    let mut whole = encoder(Architecture::Bert, &config(&[]));
    let mut upper = encoder(Architecture::Bert, &config(&["encoder.trained_layers=1"]));
    let (all, some) = (run(&mut whole, &tokens).1, run(&mut upper, &tokens).1);
    assert_eq!(some.len(), 16);
    assert_eq!(bits(&all[all.len() - 16..]), bits(&some));
    assert_eq!(whole.tensors().len(), upper.tensors().len());
}

#[test]
fn memory_includes_attention_and_every_thread_that_embeds() {
    let trained = encoder(Architecture::Bert, &config(&[]));
    let frozen = encoder(Architecture::Bert, &config(&["encoder.trained_layers=0"]));
    let step = |encoder: &TransformerEncoder, n_tokens, n_threads| {
        encoder.sizes(4, n_tokens, n_threads).n_step
    };
    assert!(step(&trained, 8, 1) < step(&trained, 8, 2));
    assert_eq!(step(&frozen, 8, 1), step(&frozen, 8, 2));
    // A text twice as long has four times the attention weights.
    let fixed = trained.sizes(0, 0, 0).n_step;
    assert!(2 * (step(&trained, 8, 1) - fixed) < step(&trained, 16, 1) - fixed);
}

#[test]
fn a_frozen_encoder_embeds_once_and_gives_the_same_embeddings() {
    let config = config(&["encoder.trained_layers=0", "encoder.projection=4"]);
    let mut encoder = encoder(Architecture::DistilBert, &config);
    let tokens = texts(30);
    let rows: Vec<u32> = (0..30).collect();
    let (mut fresh, mut kept) = (Matrix::default(), Matrix::default());
    with_points(&tokens, |points| {
        let embedded = encoder.embed_once(points, &rows).unwrap();
        encoder.encode(points, &[7, 2], &mut fresh);
        let points = Points {
            tokens: None,
            embedded: Some(&embedded),
            ..points
        };
        encoder.forward(points, &[7, 2], STEP, &mut kept);
    });
    let pairs = fresh.values().iter().zip(kept.values());
    assert!(pairs.clone().all(|(a, b)| (a - b).abs() < 1e-5));
    let names: Vec<String> = run(&mut encoder, &tokens)
        .1
        .into_iter()
        .map(|(name, _)| name)
        .collect();
    assert_eq!(names, ["projection.weight", "projection.bias"]);
}

#[test]
fn an_encoder_is_restored_from_its_tensors() {
    let config = config(&["encoder.projection=4"]);
    let encoder = encoder(Architecture::Bert, &config);
    let json = r#"{"model_type": "bert", "vocab_size": 23, "max_position_embeddings": 12,
        "type_vocab_size": 2, "hidden_size": 12, "intermediate_size": 20, "num_hidden_layers": 3,
        "num_attention_heads": 3, "layer_norm_eps": 1e-6}"#;
    let tensors = encoder.tensors();
    let mut take = |name: &str, n_rows: usize, n_cols: usize| {
        let tensor = tensors.iter().find(|tensor| tensor.name == name).unwrap();
        assert_eq!(tensor.shape, (n_rows, n_cols), "{name}");
        Ok(Matrix::from_vec(tensor.values.to_vec(), n_rows, n_cols).into())
    };
    let again = TransformerEncoder::from_tensors(json, &config, &mut take).unwrap();
    let tokens = texts(5);
    let (mut before, mut after) = (Matrix::default(), Matrix::default());
    with_points(&tokens, |points| {
        encoder.encode(points, &[0, 1, 2, 3, 4], &mut before);
        again.encode(points, &[0, 1, 2, 3, 4], &mut after);
    });
    assert_eq!(before, after);
}
