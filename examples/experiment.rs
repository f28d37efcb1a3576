//! Trains on a data set and prints losses and validation metrics: the workbench of `docs/experiments.md`.
//!
//! `cargo run --release --example experiment -- DATA [section.key=value ...]`
//!
//! With `encoder.kind=transformer encoder.pretrained=DIR encoder.trained_layers=0` what the transformer makes of the
//! texts is kept in the folder that the environment names by `EMBEDDINGS`, and read from there the next time: a folder
//! for each data set, transformer, pooling and length.

#![allow(clippy::print_stdout)] // a program, not the library

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::time::Instant;

use elias::config::{Config, DataCounts, EncoderKind};
use elias::data::{Part, Pretrained, ReadOptions, Texts, read};
use elias::encoder::{Encoder, EncoderOrigin, PointSet, TransformerEncoder};
use elias::features::{Vectorizer, WordPieces};
use elias::matrix::Matrix;
use elias::train::{Event, Observer, TrainingData, Watched, train};

struct Printer(Instant);

impl Observer for Printer {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        if !matches!(event, Event::Step { .. }) {
            println!("{:7.1}s {event:?}", self.0.elapsed().as_secs_f64());
        }
        ControlFlow::Continue(())
    }
}

type Failure = Box<dyn std::error::Error>;

/// A transformer, and what it reads.
struct Reader {
    encoder: TransformerEncoder,
    pieces: WordPieces,
}

impl Reader {
    fn new(config: &mut Config) -> Result<Option<Self>, Failure> {
        if config.encoder.kind != EncoderKind::Transformer {
            return Ok(None);
        }
        let directory = config.encoder.pretrained.as_ref();
        let files = Pretrained::read(directory.ok_or("encoder.pretrained is missing")?.as_ref())?;
        let encoder =
            TransformerEncoder::from_pretrained(&files, &config.encoder, config.train.seed)?;
        let pieces = WordPieces::new(&files.tokenizer, config.encoder.max_len)?;
        config.encoder.dim = encoder.dim();
        Ok(Some(Reader { encoder, pieces }))
    }

    /// Tokens of the texts, and their embeddings if those will not change.
    fn read(&self, texts: &Texts, part: &str, points: &mut PointSet) -> Result<(), Failure> {
        points.tokens = Some(self.pieces.rows(texts)?);
        if !self.encoder.is_frozen() {
            return Ok(());
        }
        let n_points = points.len();
        let kept = std::env::var("EMBEDDINGS").map(|folder| PathBuf::from(folder).join(part));
        points.embedded = match kept.as_ref().ok().and_then(|path| std::fs::read(path).ok()) {
            Some(bytes) => {
                let values: Vec<f32> = bytes
                    .as_chunks()
                    .0
                    .iter()
                    .map(|b| f32::from_le_bytes(*b))
                    .collect();
                let n_cols = self.encoder.shape().hidden;
                if values.len() != n_points * n_cols {
                    return Err("EMBEDDINGS has those of other texts".into());
                }
                Some(Matrix::from_vec(values, n_points, n_cols))
            }
            None => {
                let rows: Vec<u32> = (0..n_points as u32).collect();
                let embedded = self
                    .encoder
                    .embed_once(points.points(), &rows)
                    .ok_or("not frozen")?;
                if let Ok(path) = kept {
                    let bytes = embedded.values().iter().flat_map(|x| x.to_le_bytes());
                    std::fs::write(path, bytes.collect::<Vec<u8>>())?;
                }
                Some(embedded)
            }
        };
        Ok(())
    }
}

fn main() -> Result<(), Failure> {
    let mut arguments = std::env::args().skip(1);
    let path = arguments.next().ok_or("DATA is missing")?;
    let mut config = Config::default();
    for assignment in arguments {
        config = config.with_value(&assignment)?;
    }
    let start = Instant::now();
    let (train_set, _) = read(Path::new(&path), &ReadOptions::default())?;
    let known_labels = Some(train_set.label_set());
    let options = ReadOptions {
        part: Part::Test,
        known_labels,
        ..ReadOptions::default()
    };
    let (test_set, _) = read(Path::new(&path), &options)?;
    let (vectorizer, features) =
        Vectorizer::fit_transform(train_set.texts().ok_or("no texts")?, &config.features)?;
    let test_features = vectorizer.transform(test_set.texts().ok_or("no texts")?);
    println!(
        "{:7.1}s {} points, {} labels, {} words",
        start.elapsed().as_secs_f64(),
        train_set.n_points(),
        train_set.n_labels(),
        features.n_cols()
    );
    let counts = DataCounts {
        n_points: train_set.n_points(),
        n_labels: train_set.n_labels(),
        n_features: features.n_cols(),
    };
    let mut points = PointSet::of_features(features);
    let mut test_points = PointSet::of_features(test_features);
    let origin = match Reader::new(&mut config)? {
        None => EncoderOrigin::Bag,
        Some(reader) => {
            reader.read(train_set.texts().ok_or("no texts")?, "train", &mut points)?;
            reader.read(
                test_set.texts().ok_or("no texts")?,
                "test",
                &mut test_points,
            )?;
            EncoderOrigin::Pretrained(Box::new(reader.encoder))
        }
    };
    let plan = config.resolve(counts)?;
    let watched = Watched {
        points: test_points.points(),
        labels: test_set.labels(),
    };
    let data = TrainingData {
        points: points.points(),
        labels: train_set.labels(),
        watched: Some(watched),
        origin: &origin,
    };
    let trained = train(data, &plan, &Printer(start))?;
    let options = elias::index::ShortlistOptions {
        beam_size: plan.beam_size(),
        shortlist_size: plan.shortlist_size(),
        score_floor: 0.0,
    };
    let rows: Vec<u32> = (0..test_set.n_points() as u32).collect();
    let mut embeddings = elias::matrix::Matrix::default();
    trained
        .encoder
        .encode(watched.points, &rows, &mut embeddings);
    let mut scratch = elias::model::RankScratch::new(&trained.model);
    let mut sums = [0f64; 5];
    for (row, embedding) in embeddings.values().chunks(embeddings.n_cols()).enumerate() {
        let ranked = trained.model.rank(embedding, &options, 100, &mut scratch);
        let truth = test_set.labels().row(row).0;
        for (sum, k) in sums.iter_mut().zip([1, 3, 5, 10, 100]) {
            let hits = ranked
                .iter()
                .take(k)
                .filter(|s| truth.binary_search(&s.label.0).is_ok())
                .count() as f64;
            *sum += hits / if k < 10 { k as f64 } else { truth.len() as f64 };
        }
    }
    let n = test_set.n_points() as f64 / 100.0;
    println!(
        "final P@1/3/5 R@10/100 {:.2} {:.2} {:.2} {:.2} {:.2}",
        sums[0] / n,
        sums[1] / n,
        sums[2] / n,
        sums[3] / n,
        sums[4] / n
    );
    println!("{:7.1}s done", start.elapsed().as_secs_f64());
    Ok(())
}
