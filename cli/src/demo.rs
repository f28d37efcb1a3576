//! `elias demo`: the bundled data set, its label clusters, and how far a ranking that knows no text gets on it.
//!
//! The baseline ranks the same most frequent labels for every text: the floor that any model must leave behind.

use std::io::{self, Write};

use clap::Args;
use elias::clustering::{PointFeatures, cluster_labels, default_n_clusters, label_centroids};
use elias::config::{ClusteringConfig, FeaturesConfig};
use elias::data::Dataset;
use elias::features::Vectorizer;
use elias::ids::{LabelId, Scored};
use elias::matrix::top_k;
use elias::metrics::{
    MetricsBuilder, MetricsOptions, Propensity, inverse_propensities, label_counts,
};

use crate::bundled;
use crate::console::Console;
use crate::figures::write_metrics;
use crate::table::{MAX_WIDTH, Table, shorten};

const N_EXAMPLES: usize = 3;

/// Show the bundled data set: nothing to download
///
/// Shows a few texts with their labels, clusters the labels, and measures the ranking that gives the most
/// frequent labels to every text: the floor for any model.
#[derive(Args)]
pub(crate) struct Demo {
    /// Seed of the clusters
    #[arg(long, value_name = "N", default_value_t = 0)]
    seed: u64,
}

impl Demo {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        console.say("Debian package descriptions, labelled with the packages they depend on");
        let (train, test) = bundled::read()?;
        let counts = label_counts(train.labels());

        let mut out = io::stdout().lock();
        write_sizes(&mut out, &train, &test)?;
        write_examples(&mut out, &test)?;
        write_clusters(&mut out, &train, self.seed)?;

        writeln!(
            out,
            "\nThe most frequent labels for every text (a floor), in percent:"
        )?;
        let ranking = most_frequent(&counts, 100);
        let weights = inverse_propensities(&counts, train.n_points(), Propensity::default());
        let mut metrics = MetricsBuilder::new(MetricsOptions {
            inverse_propensities: Some(weights),
            ..MetricsOptions::default()
        });
        for point_idx in 0..test.n_points() {
            metrics.push(test.labels().row(point_idx).0, &ranking);
        }
        write_metrics(&mut out, &metrics.finish())?;
        out.flush()?;
        Ok(())
    }
}

fn write_sizes(out: &mut impl Write, train: &Dataset, test: &Dataset) -> io::Result<()> {
    let mut table = Table::new(["part", "points", "labels", "labels/point"]);
    for (name, part) in [("train", train), ("test", test)] {
        let labels_a_point = part.labels().nnz() as f64 / part.n_points().max(1) as f64;
        table.row([
            name.to_string(),
            part.n_points().to_string(),
            part.n_labels().to_string(),
            format!("{labels_a_point:.2}"),
        ]);
    }
    table.write(out)
}

fn write_examples(out: &mut impl Write, test: &Dataset) -> io::Result<()> {
    let Some(texts) = test.texts() else {
        return Ok(());
    };
    for (point_idx, text) in texts.iter().take(N_EXAMPLES).enumerate() {
        let (labels, _) = test.labels().row(point_idx);
        let names: Vec<&str> = labels
            .iter()
            .map(|&label| test.label_set().name(LabelId(label)))
            .collect();
        writeln!(out, "\n{}", shorten(text, MAX_WIDTH))?;
        writeln!(
            out,
            "{}",
            shorten(&format!("  -> {}", names.join(", ")), MAX_WIDTH)
        )?;
    }
    Ok(())
}

fn write_clusters(out: &mut impl Write, train: &Dataset, seed: u64) -> anyhow::Result<()> {
    let Some(texts) = train.texts() else {
        return Ok(());
    };
    let (_, features) = Vectorizer::fit_transform(texts, &FeaturesConfig::default())?;
    let points = PointFeatures {
        sparse: &features,
        dense: None,
    };
    let centroids = label_centroids(train.labels(), points);
    let n_clusters = default_n_clusters(train.n_labels());
    let clusters = cluster_labels(&centroids, n_clusters, &ClusteringConfig::default(), seed)?;

    writeln!(
        out,
        "\n{n_clusters} clusters of labels, by the words of their texts; {N_EXAMPLES} of them:"
    )?;
    for labels in clusters.iter().step_by(n_clusters.div_ceil(N_EXAMPLES)) {
        let names: Vec<&str> = labels
            .iter()
            .map(|&label| train.label_set().name(label))
            .collect();
        let line = format!("  {} labels: {}", labels.len(), names.join(", "));
        writeln!(out, "{}", shorten(&line, MAX_WIDTH))?;
    }
    Ok(())
}

fn most_frequent(counts: &[usize], k: usize) -> Vec<Scored> {
    let mut ranking: Vec<Scored> = counts
        .iter()
        .enumerate()
        .map(|(label_idx, &count)| Scored {
            label: LabelId(label_idx as u32),
            score: count as f32,
        })
        .collect();
    top_k(&mut ranking, k);
    ranking
}
