//! Trains the ranker on a problem made by `benchmarks/ranker/make_problem.py`, times it, and times scoring.
//!
//! Prints one JSON object; with `--out DIR` also writes the weights as raw little-endian arrays.

#![allow(clippy::print_stdout)] // a program, not the library

use std::error::Error;
use std::fs::File;
use std::io::BufReader;
use std::ops::ControlFlow;
use std::path::Path;
use std::time::Instant;

use elias::config::{RankerConfig, RankerLoss};
use elias::ids::LabelId;
use elias::matrix::{CsrMatrix, Matrix};
use elias::ranker::{CandidateLists, PointView, Ranker, RankerProblem, RankerScratch};
use npyz::npz::NpzArchive;

type Archive = NpzArchive<BufReader<File>>;

fn main() -> Result<(), Box<dyn Error>> {
    let mut config = RankerConfig::default();
    let mut out = None;
    let mut n_threads = 2;
    let mut words = std::env::args().skip(1);
    let problem_path = words
        .next()
        .ok_or("usage: ranker_bench PROBLEM.npz [options]")?;
    while let (Some(option), Some(value)) = (words.next(), words.next()) {
        match option.as_str() {
            "--loss" if value == "logistic" => config.loss = RankerLoss::Logistic,
            "--loss" => config.loss = RankerLoss::SquaredHinge,
            "--tolerance" => config.tolerance = value.parse()?,
            "--threshold" => config.threshold = value.parse()?,
            "--threads" => n_threads = value.parse()?,
            "--out" => out = Some(value),
            _ => return Err(format!("unknown option {option}").into()),
        }
    }

    let mut archive = NpzArchive::open(&problem_path)?;
    let bow = csr(&mut archive, "bow")?;
    let labels = csr(&mut archive, "labels")?;
    let test_bow = csr(&mut archive, "test_bow")?;
    let dense = dense(&mut archive, "dense", bow.n_rows())?;
    let test_dense = self::dense(&mut archive, "test_dense", test_bow.n_rows())?;
    let candidates = candidates(&mut archive, "candidates", bow.n_rows())?;
    let test_candidates = self::candidates(&mut archive, "test_candidates", test_bow.n_rows())?;

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

    let parts = ranker.parts();
    println!(
        "{{\"train_seconds\": {train_seconds}, \"score_microseconds\": {score_microseconds}, \"word_weights\": {}, \"checksum\": {checksum}}}",
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

fn array<T: npyz::Deserialize>(
    archive: &mut Archive,
    name: &str,
) -> Result<Vec<T>, Box<dyn Error>> {
    let array = archive
        .by_name(name)?
        .ok_or_else(|| format!("no array {name}"))?;
    Ok(array.into_vec()?)
}

fn csr(archive: &mut Archive, name: &str) -> Result<CsrMatrix, Box<dyn Error>> {
    let indptr: Vec<u64> = array(archive, &format!("{name}_indptr"))?;
    let indices = array(archive, &format!("{name}_indices"))?;
    let values = array(archive, &format!("{name}_data"))?;
    let n_columns: Vec<u64> = array(archive, &format!("{name}_columns"))?;
    let indptr = indptr.into_iter().map(|at| at as usize).collect();
    Ok(CsrMatrix::new(
        indptr,
        indices,
        values,
        n_columns[0] as usize,
    )?)
}

fn dense(archive: &mut Archive, name: &str, n_rows: usize) -> Result<Matrix, Box<dyn Error>> {
    let values: Vec<f32> = array(archive, name)?;
    let n_columns = values.len() / n_rows;
    Ok(Matrix::from_vec(values, n_rows, n_columns))
}

fn candidates(
    archive: &mut Archive,
    name: &str,
    n_rows: usize,
) -> Result<CandidateLists, Box<dyn Error>> {
    let labels: Vec<u32> = array(archive, name)?;
    let mut lists = CandidateLists::default();
    for list in labels.chunks(labels.len() / n_rows) {
        lists.push(list.iter().copied().map(LabelId));
    }
    Ok(lists)
}
