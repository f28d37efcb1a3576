//! Clusters the labels of a data set, prints how long that took, and writes everything for NumPy.
//!
//! `cargo run --release -p elias-benchmarks --bin cluster -- DATA OUT_DIR [N_CLUSTERS | default] [SEED]`
//! prints the number of clusters and the seconds for centroids and clusters;
//! `benchmarks/clustering/compare.py` calls it.

use std::error::Error;
use std::path::PathBuf;
use std::time::Instant;

use elias::internals::{cluster_labels, default_n_clusters};
use elias::{Dataset, TfIdf};
use elias_benchmarks::{write, write_matrix};

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: cluster DATA OUT_DIR [N_CLUSTERS | default] [SEED]";
    let input = PathBuf::from(arguments.next().ok_or(usage)?);
    let out = PathBuf::from(arguments.next().ok_or(usage)?);
    let data = Dataset::read(&input)?;
    let n_clusters = match arguments.next().as_deref() {
        None | Some("default") => default_n_clusters(data.n_labels()),
        Some(count) => count.parse()?,
    };
    let seed = arguments.next().map_or(Ok(0), |seed| seed.parse())?;
    let texts = data.texts().ok_or("the data has no texts")?;
    let (_, rows) = TfIdf::fit_transform(texts)?;

    let start = Instant::now();
    let cluster_of = cluster_labels(&rows, data.labels(), n_clusters, seed)?;
    println!("{n_clusters} {:.4}", start.elapsed().as_secs_f64());
    std::fs::create_dir_all(&out)?;
    write_matrix(&out, "rows", &rows)?;
    write_matrix(&out, "labels", data.labels())?;
    let cluster_of = cluster_of.iter().map(|cluster| cluster.to_le_bytes());
    write(&out, "cluster_of", cluster_of)
}
