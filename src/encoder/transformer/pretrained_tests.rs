//! Transformers against values computed by PyTorch: outputs, every gradient, and a real model.

use std::collections::BTreeMap;
use std::io::Write;
use std::path::{Path, PathBuf};

use crate::config::Config;
use crate::data::Pretrained;
use crate::encoder::{Encoder, Gradient, Points, StepSeed, TrainableEncoder, TransformerEncoder};
use crate::features::{TokenRows, WordPieces};
use crate::matrix::{CsrMatrix, Matrix};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use crate::goldens;

fn config(assignments: &[&str]) -> Config {
    let set = |config: Config, one: &&str| config.with_value(one).unwrap();
    let config = Config::default().with_value("encoder.max_len=32").unwrap();
    assignments.iter().fold(config, set)
}

fn load(directory: &Path, config: &Config) -> TransformerEncoder {
    let files = Pretrained::read(directory).unwrap();
    let mut encoder = TransformerEncoder::from_pretrained(&files, config).unwrap();
    encoder.layer_dropout = 0.0;
    encoder
}

/// The tensors of a file, by name.
struct Golden(BTreeMap<String, (Vec<usize>, Vec<f64>)>);

impl Golden {
    fn read(path: &Path) -> Golden {
        let bytes = std::fs::read(path).unwrap();
        let tensors = SafeTensors::deserialize(&bytes).unwrap();
        let values = |tensor: &TensorView<'_>| match tensor.dtype() {
            Dtype::I64 => {
                let words = tensor.data().chunks_exact(8);
                words
                    .map(|b| i64::from_le_bytes(b.try_into().unwrap()) as f64)
                    .collect()
            }
            Dtype::F32 => {
                let words = tensor.data().chunks_exact(4);
                words
                    .map(|b| f64::from(f32::from_le_bytes(b.try_into().unwrap())))
                    .collect()
            }
            other => panic!("{other:?}"),
        };
        let all = tensors.iter();
        Golden(
            all.map(|(name, t)| (name.into(), (t.shape().to_vec(), values(&t))))
                .collect(),
        )
    }

    fn get(&self, name: &str) -> &[f64] {
        &self.0.get(name).unwrap_or_else(|| panic!("no {name}")).1
    }

    /// Input ids without padding.
    fn tokens(&self) -> TokenRows {
        let width = self.0["input_ids"].0[1];
        let rows = self
            .get("input_ids")
            .chunks(width)
            .zip(self.get("attention_mask").chunks(width));
        let kept = rows.map(|(ids, mask)| {
            let kept = ids.iter().zip(mask).filter(|(_, mask)| **mask == 1.0);
            kept.map(|(id, _)| *id as u32).collect::<Vec<u32>>()
        });
        kept.collect()
    }
}

fn with_points<T>(tokens: &TokenRows, then: impl FnOnce(Points<'_>) -> T) -> T {
    let features = CsrMatrix::new(vec![0; tokens.n_rows() + 1], vec![], vec![], 1).unwrap();
    then(Points {
        tokens: Some(tokens),
        ..Points::of_features(&features)
    })
}

fn encode(encoder: &TransformerEncoder, tokens: &TokenRows) -> Matrix {
    let rows: Vec<u32> = (0..tokens.n_rows() as u32).collect();
    let mut out = Matrix::default();
    with_points(tokens, |points| encoder.encode(points, &rows, &mut out));
    out
}

/// Agreement to 1e-4 of the largest value; the bias of keys has no effect, so its gradient is rounding error.
#[track_caller]
fn check(what: &str, found: &[f32], expected: &[f64]) {
    assert_eq!(found.len(), expected.len(), "{what}");
    let largest = expected
        .iter()
        .fold(0.1, |most: f64, value| most.max(value.abs()));
    for (at, (found, expected)) in found.iter().zip(expected).enumerate() {
        let off = (f64::from(*found) - expected).abs();
        assert!(
            off <= 1e-4 * largest,
            "{what}[{at}]: {found}, expected {expected}"
        );
    }
}

#[test]
fn outputs_and_every_gradient_agree_with_pytorch() {
    for directory in goldens::directories("tiny-") {
        let name = directory.display();
        let golden = Golden::read(&directory.join("golden.safetensors"));
        let tokens = golden.tokens();
        let mean = encode(
            &load(&directory, &config(&["ablation.pooling=mean"])),
            &tokens,
        );
        check(&format!("{name}: mean"), mean.values(), golden.get("mean"));

        let mut encoder = load(&directory, &config(&["ablation.pooling=cls"]));
        let cls = encode(&encoder, &tokens);
        check(&format!("{name}: cls"), cls.values(), golden.get("cls"));
        let rows: Vec<u32> = (0..tokens.n_rows() as u32).collect();
        let derivatives = golden
            .get("upstream")
            .iter()
            .map(|&value| value as f32)
            .collect();
        let upstream = Matrix::from_vec(derivatives, cls.n_rows(), cls.n_cols());
        let step = StepSeed { seed: 0, step: 0 };
        let mut out = Matrix::default();
        with_points(&tokens, |points| {
            encoder.forward(points, &rows, step, &mut out);
            encoder.backward(points, &rows, &upstream);
        });
        check(&format!("{name}: forward"), out.values(), golden.get("cls"));
        let mut n_checked = 0;
        for parameter in encoder.parameters() {
            let width = parameter.shape.1;
            let gradient = match parameter.gradient {
                Gradient::Dense(values) => values.to_vec(),
                Gradient::Rows(rows, values) => {
                    let mut all = vec![0.0; parameter.values.len()];
                    for (&row, values) in rows.iter().zip(values.chunks_exact(width)) {
                        all[row as usize * width..][..width].copy_from_slice(values);
                    }
                    all
                }
            };
            let expected = golden.get(&format!("grad.{}", parameter.name));
            check(&format!("{name}: {}", parameter.name), &gradient, expected);
            n_checked += 1;
        }
        let n_expected = golden
            .0
            .keys()
            .filter(|key| key.starts_with("grad."))
            .count();
        assert_eq!(n_checked, n_expected, "{name}");
    }
}

#[test]
fn a_real_model_gives_the_published_tokens_and_vectors() {
    let Some(directory) = minilm() else {
        // Not `eprintln!`, which the test harness would capture.
        let written = writeln!(
            std::io::stderr(),
            "skipped: benchmarks/minilm/model is missing; benchmarks/minilm/fetch.sh downloads it"
        );
        written.unwrap();
        return;
    };
    let (_, golden) = goldens::of_kind("minilm").remove(0);
    let max_len = golden["max_len"].as_u64().unwrap() as usize;
    let files = Pretrained::read(&directory).unwrap();
    let pieces = WordPieces::new(&files.tokenizer, max_len).unwrap();
    let strings = |key: &str| golden[key].as_array().unwrap().clone();
    let sentences = strings("sentences");
    let tokens: TokenRows = sentences
        .iter()
        .map(|text| pieces.ids(text.as_str().unwrap()).unwrap())
        .collect();
    for (row, expected) in strings("input_ids").iter().enumerate() {
        let expected: Vec<u32> = serde_json::from_value(expected.clone()).unwrap();
        assert_eq!(tokens.row(row), expected, "{}", sentences[row]);
    }
    for pooling in ["cls", "mean"] {
        let settings = [
            format!("ablation.pooling={pooling}"),
            format!("encoder.max_len={max_len}"),
        ];
        let settings = settings.each_ref().map(String::as_str);
        let out = encode(&load(&directory, &config(&settings)), &tokens);
        for (row, expected) in strings(pooling).iter().enumerate() {
            let expected: Vec<f32> = serde_json::from_value(expected.clone()).unwrap();
            let off = out
                .row(row)
                .iter()
                .zip(&expected)
                .map(|(a, b)| (a - b).abs());
            let most = off.fold(0f32, f32::max);
            assert!(most < 1e-4, "{pooling} of text {row} is off by {most}");
        }
    }
}

/// The model that `benchmarks/minilm/fetch.sh` downloads.
fn minilm() -> Option<PathBuf> {
    let directory = Path::new(env!("CARGO_MANIFEST_DIR")).join("benchmarks/minilm/model");
    directory
        .join("model.safetensors")
        .is_file()
        .then_some(directory)
}

fn tiny() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens/tiny-bert")
}

/// A tensor of a file.
struct OwnedTensor {
    name: String,
    dtype: Dtype,
    shape: Vec<usize>,
    bytes: Vec<u8>,
}

/// Writes the tiny model with its tensors changed.
fn rewrite(change: impl Fn(&str, &TensorView<'_>) -> Option<OwnedTensor>) -> tempfile::TempDir {
    let directory = tempfile::tempdir().unwrap();
    std::fs::copy(
        tiny().join("config.json"),
        directory.path().join("config.json"),
    )
    .unwrap();
    let bytes = std::fs::read(tiny().join("model.safetensors")).unwrap();
    let tensors = SafeTensors::deserialize(&bytes).unwrap();
    let changed: Vec<_> = tensors
        .iter()
        .filter_map(|(name, t)| change(name, &t))
        .collect();
    let views = changed.iter().map(|tensor| {
        let view = TensorView::new(tensor.dtype, tensor.shape.clone(), &tensor.bytes);
        (tensor.name.clone(), view.unwrap())
    });
    let path = directory.path().join("model.safetensors");
    std::fs::write(path, safetensors::serialize(views, None).unwrap()).unwrap();
    directory
}

fn same(name: &str, tensor: &TensorView<'_>) -> OwnedTensor {
    OwnedTensor {
        name: name.into(),
        dtype: tensor.dtype(),
        shape: tensor.shape().to_vec(),
        bytes: tensor.data().to_vec(),
    }
}

#[test]
fn prefixes_older_names_and_unused_tensors_are_accepted() {
    let directory = rewrite(|name, tensor| {
        let older = name
            .replace("LayerNorm.weight", "LayerNorm.gamma")
            .replace("LayerNorm.bias", "LayerNorm.beta");
        Some(OwnedTensor {
            name: format!("bert.{older}"),
            ..same(name, tensor)
        })
    });
    let tokens: TokenRows = [vec![1, 2, 3]].into_iter().collect();
    let expected = encode(&load(&tiny(), &config(&[])), &tokens);
    assert_eq!(
        encode(&load(directory.path(), &config(&[])), &tokens),
        expected
    );
}

#[test]
fn half_precision_weights_are_read() {
    let floats = |tensor: &TensorView<'_>| -> Vec<f32> {
        let words = tensor.data().chunks_exact(4);
        words
            .map(|b| f32::from_le_bytes(b.try_into().unwrap()))
            .collect()
    };
    let tokens: TokenRows = [vec![5, 9, 2, 7]].into_iter().collect();
    let expected = encode(&load(&tiny(), &config(&[])), &tokens);
    for (dtype, tolerance) in [(Dtype::F16, 0.01), (Dtype::BF16, 0.08)] {
        let directory = rewrite(|name, tensor| {
            let halves = floats(tensor).into_iter().map(|value| match dtype {
                Dtype::F16 => half::f16::from_f32(value).to_le_bytes(),
                _ => half::bf16::from_f32(value).to_le_bytes(),
            });
            let bytes = halves.flatten().collect();
            Some(OwnedTensor {
                dtype,
                bytes,
                ..same(name, tensor)
            })
        });
        let found = encode(&load(directory.path(), &config(&[])), &tokens);
        let off = found
            .values()
            .iter()
            .zip(expected.values())
            .map(|(a, b)| (a - b).abs());
        let most = off.fold(0f32, f32::max);
        assert!(most > 0.0 && most < tolerance, "{dtype:?}: {most}");
    }
}

#[test]
fn invalid_directories_are_errors_that_say_what_is_missing() {
    let error = |directory: &Path, config: &Config| {
        let encoder = Pretrained::read(directory)
            .and_then(|files| TransformerEncoder::from_pretrained(&files, config));
        encoder.expect_err("not a valid transformer").to_string()
    };
    let check = |directory: &Path, expected: &str| {
        let found = error(directory, &config(&[]));
        assert!(found.contains(expected), "{found}");
    };
    let empty = tempfile::tempdir().unwrap();
    check(&empty.path().join("nowhere"), "there is no such directory");
    check(empty.path(), "it has no config.json");
    std::fs::write(
        empty.path().join("config.json"),
        r#"{"model_type": "gpt2"}"#,
    )
    .unwrap();
    check(empty.path(), "it has no model.safetensors");
    std::fs::write(empty.path().join("pytorch_model.bin"), "").unwrap();
    check(empty.path(), "pytorch_model.bin is not read");
    std::fs::write(empty.path().join("model.safetensors"), "?").unwrap();
    check(empty.path(), "model_type is gpt2: supported are bert");
    std::fs::copy(tiny().join("config.json"), empty.path().join("config.json")).unwrap();
    check(empty.path(), "it is not safetensors");

    let key = "encoder.layer.1.attention.self.key.weight";
    let missing = rewrite(|name, tensor| (name != key).then(|| same(name, tensor)));
    check(missing.path(), &format!("tensor {key} is missing"));
    let narrow = rewrite(|name, tensor| {
        let mut tensor = same(name, tensor);
        if name == key {
            tensor.shape[0] -= 1;
            tensor.bytes.truncate(4 * 24 * 23);
        }
        Some(tensor)
    });
    check(
        narrow.path(),
        &format!("tensor {key} is [23, 24], expected [24, 24]"),
    );
    let other = rewrite(|name, tensor| {
        let mut tensor = same(name, tensor);
        if name == key {
            tensor.dtype = Dtype::I32;
        }
        Some(tensor)
    });
    check(other.path(), "supported are F32, F16 and BF16");
    let broken = rewrite(|name, tensor| {
        let mut tensor = same(name, tensor);
        if name == key {
            tensor.bytes[4..8].copy_from_slice(&f32::NAN.to_le_bytes());
        }
        Some(tensor)
    });
    check(broken.path(), "value 1 is NaN");
    let long = error(&tiny(), &config(&["encoder.max_len=64"]));
    assert!(
        long.contains("it has 32 positions, encoder.max_len is 64"),
        "{long}"
    );
}
