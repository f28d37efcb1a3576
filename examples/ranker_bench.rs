//! Trains the ranker on a problem made by `benchmarks/ranker/make_problem.py`, times it, and times scoring.
//!
//! Prints one JSON object; with `--out DIR` also writes the weights as raw little-endian arrays.

#![allow(clippy::print_stdout)] // a program, not the library

use std::error::Error;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use elias::calibration::{Calibrator, CandidateScores};
use elias::config::{CalibrationConfig, RankerConfig, RankerLoss};
use elias::data::read_npz;
use elias::ids::LabelId;
use elias::matrix::Matrix;
use elias::ranker::{CandidateLists, PointView, Ranker, RankerProblem, RankerScratch};

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = RankerConfig::default();
    let mut out = None;
    let mut n_threads = 2;
    let mut words = std::env::args().skip(1);
    let folder = words
        .next()
        .ok_or("usage: ranker_bench PROBLEM [options]")?;
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        match option.as_str() {
            "--loss" if value == "logistic" => config.loss = RankerLoss::Logistic,
            "--loss" => config.loss = RankerLoss::SquaredHinge,
            "--tolerance" => config.tolerance = value.parse()?,
            "--bias" => config.bias = value.parse()?,
            "--threshold" => config.threshold = value.parse()?,
            "--threads" => n_threads = value.parse()?,
            "--out" => out = Some(value),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }

    let folder = Path::new(&folder);
    let bow = read_npz(&folder.join("bow.npz"))?;
    let labels = read_npz(&folder.join("labels.npz"))?;
    let test_bow = read_npz(&folder.join("test_bow.npz"))?;
    let dense = dense(&folder.join("dense.f32"), bow.n_rows())?;
    let test_dense = self::dense(&folder.join("test_dense.f32"), test_bow.n_rows())?;
    let candidates = candidates(&folder.join("candidates.u32"), bow.n_rows())?;
    let test_candidates = self::candidates(&folder.join("test_candidates.u32"), test_bow.n_rows())?;

    let problem = RankerProblem {
        bow: &bow,
        dense: Some(&dense),
        labels: &labels,
        candidates: &candidates,
    };
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(n_threads)
        .build()?;
    let started = Instant::now();
    let ranker =
        pool.install(|| Ranker::train(&problem, &config, 0, |_, _| ControlFlow::Continue(())))?;
    let train_seconds = started.elapsed().as_secs_f64();

    let mut scratch = RankerScratch::default();
    let mut margins = Vec::new();
    let mut checksum = 0.0;
    let mut to_calibrate = Vec::new();
    let started = Instant::now();
    for point_idx in 0..test_bow.n_rows() {
        let point = PointView {
            bow: test_bow.row(point_idx),
            dense: test_dense.row(point_idx),
        };
        ranker.score(
            point,
            test_candidates.get(point_idx),
            &mut scratch,
            &mut margins,
        );
        checksum += margins.iter().map(|&margin| f64::from(margin)).sum::<f64>();
    }
    let score_microseconds = started.elapsed().as_secs_f64() * 1e6 / test_bow.n_rows() as f64;

    // A place in the list stands for the model's p, which this problem does not have.
    let test_labels = read_npz(&folder.join("test_labels.npz"))?;
    let mut relevant = Vec::new();
    for point_idx in 0..test_bow.n_rows().min(5000) {
        let point = PointView {
            bow: test_bow.row(point_idx),
            dense: test_dense.row(point_idx),
        };
        let listed = test_candidates.get(point_idx);
        ranker.score(point, listed, &mut scratch, &mut margins);
        for (place, (label, &margin)) in listed.iter().zip(&margins).enumerate() {
            to_calibrate.push(CandidateScores {
                model: 1.0 / (place as f32 + 1.0),
                ranker: ranker.probability(margin),
                frequency: label.0 % 1000,
            });
            relevant.push(test_labels.row(point_idx).0.contains(&label.0));
        }
    }
    let started = Instant::now();
    let calibration = CalibrationConfig::default();
    pool.install(|| Calibrator::fit(&to_calibrate, &relevant, &calibration))?;
    let calibrate_seconds = started.elapsed().as_secs_f64();

    let parts = ranker.parts();
    println!(
        "{{\"train_seconds\": {train_seconds}, \"score_microseconds\": {score_microseconds}, \"calibrate_seconds\": {calibrate_seconds}, \"calibrated_rows\": {}, \"word_weights\": {}, \"checksum\": {checksum}}}",
        relevant.len(),
        parts.words.nnz()
    );
    if let Some(out) = out {
        let out = Path::new(&out);
        let indptr: Vec<u64> = parts.words.indptr().iter().map(|&at| at as u64).collect();
        std::fs::write(out.join("indptr"), bytemuck::cast_slice(&indptr))?;
        std::fs::write(
            out.join("columns"),
            bytemuck::cast_slice(parts.words.indices()),
        )?;
        std::fs::write(
            out.join("weights"),
            bytemuck::cast_slice(parts.words.values()),
        )?;
        std::fs::write(
            out.join("dense"),
            bytemuck::cast_slice(parts.dense.values()),
        )?;
        std::fs::write(
            out.join("intercepts"),
            bytemuck::cast_slice(&parts.intercepts),
        )?;
    }
    Ok(())
}

fn array<T: bytemuck::Pod>(path: &Path) -> Result<Vec<T>, Box<dyn Error>> {
    let bytes = std::fs::read(path)?;
    let items = bytes.chunks_exact(size_of::<T>());
    Ok(items.map(bytemuck::pod_read_unaligned).collect())
}

fn dense(path: &Path, n_rows: usize) -> Result<Matrix, Box<dyn Error>> {
    let values: Vec<f32> = array(path)?;
    let n_columns = values.len() / n_rows;
    Ok(Matrix::from_vec(values, n_rows, n_columns))
}

fn candidates(path: &Path, n_rows: usize) -> Result<CandidateLists, Box<dyn Error>> {
    let labels: Vec<u32> = array(path)?;
    let mut lists = CandidateLists::default();
    for list in labels.chunks(labels.len() / n_rows) {
        lists.push(list.iter().copied().map(LabelId));
    }
    Ok(lists)
}
