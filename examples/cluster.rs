//! Clusters the labels of a JSON Lines file, says how long that took, and writes everything for NumPy.
//!
//! `cargo run --release --example cluster -- train.jsonl.gz OUT_DIR [N_CLUSTERS | default] [SEED]`
//! prints the number of clusters, the seconds for centroids, the seconds for clustering and the mean cosine;
//! `benchmarks/clustering/compare.py` calls it.

mod jsonl;

use std::error::Error;
use std::io::Write;
use std::path::PathBuf;
use std::time::Instant;

use elias::clustering::{PointFeatures, cluster_labels, label_centroids, mean_cosine};
use elias::config::default_n_clusters;
use elias::config::{ClusteringConfig, FeaturesConfig};
use elias::features::Vectorizer;

fn main() -> Result<(), Box<dyn Error>> {
    let mut arguments = std::env::args().skip(1);
    let usage = "usage: cluster FILE OUT_DIR [N_CLUSTERS | default] [SEED]";
    let input = PathBuf::from(arguments.next().ok_or(usage)?);
    let out = PathBuf::from(arguments.next().ok_or(usage)?);
    let (texts, labels) = jsonl::read(&input)?;
    let n_clusters = match arguments.next().as_deref() {
        None | Some("default") => default_n_clusters(labels.n_cols()),
        Some(count) => count.parse()?,
    };
    let seed = arguments.next().map_or(Ok(0), |seed| seed.parse())?;
    let (_, rows) = Vectorizer::fit_transform(&texts, &FeaturesConfig::default())?;

    let start = Instant::now();
    let points = PointFeatures {
        sparse: &rows,
        dense: None,
    };
    let centroids = label_centroids(&labels, points);
    let centroid_seconds = start.elapsed().as_secs_f64();
    let start = Instant::now();
    let clustering = cluster_labels(&centroids, n_clusters, &ClusteringConfig::default(), seed)?;
    let cluster_seconds = start.elapsed().as_secs_f64();

    let cosine = mean_cosine(&centroids, &clustering);
    writeln!(
        std::io::stdout(),
        "{n_clusters} {centroid_seconds:.4} {cluster_seconds:.4} {cosine:.6}"
    )?;
    std::fs::create_dir_all(&out)?;
    jsonl::write_matrix(&out, "rows", &rows)?;
    jsonl::write_matrix(&out, "labels", &labels)?;
    let cluster_of = clustering.cluster_of().iter();
    jsonl::write(
        &out,
        "cluster_of",
        cluster_of.map(|cluster| cluster.0.to_le_bytes()),
    )
}
