//! Clusters of labels: partition, balance, quality against brute force, the same on any number of threads.

use crate::clustering::{Clustering, PointFeatures, cluster_labels, label_centroids, mean_cosine};
use crate::communicator::{SingleProcess, threads};
use crate::config::{default_n_clusters, paper_n_clusters};
use crate::ids::{ClusterId, LabelId};
use crate::matrix::{CsrBuilder, CsrMatrix, Matrix};
use crate::random::Random;
use proptest::prelude::*;

use crate::on_threads;

/// Rows of L2 norm 1 with few entries, every tenth row empty.
fn random_rows(n_rows: usize, n_cols: usize, seed: u64) -> CsrMatrix {
    let mut builder = CsrBuilder::default();
    for row_idx in 0..n_rows {
        let mut random = Random::new(seed, "test rows", row_idx as u64);
        let mut row: Vec<(u32, f32)> = Vec::new();
        for column in 0..n_cols as u32 {
            if row_idx % 10 != 9 && random.below(4) == 0 {
                row.push((column, 0.1 + random.f32()));
            }
        }
        let norm = row
            .iter()
            .map(|(_, value)| value * value)
            .sum::<f32>()
            .sqrt();
        builder.push_row(
            row.into_iter()
                .map(|(column, value)| (column, value / norm)),
        );
    }
    builder.finish(n_cols).unwrap()
}

fn cluster(centroids: &CsrMatrix, n_clusters: usize, seed: u64) -> Clustering {
    cluster_labels(centroids, n_clusters, seed, &SingleProcess).unwrap()
}

proptest! {
    #[test]
    fn every_label_is_in_one_cluster_and_sizes_differ_by_at_most_one(
        n_labels in 1usize..80, share in 0.0f64..1.0, seed in 0u64..1000,
    ) {
        let n_clusters = 1 + (share * (n_labels - 1) as f64) as usize;
        let clustering = cluster(&random_rows(n_labels, 12, seed), n_clusters, seed);
        prop_assert_eq!(clustering.n_clusters(), n_clusters);
        prop_assert_eq!(clustering.n_labels(), n_labels);
        let mut seen = vec![0; n_labels];
        for (cluster_idx, members) in clustering.iter().enumerate() {
            let size = members.len();
            prop_assert!(size == n_labels / n_clusters || size == n_labels.div_ceil(n_clusters));
            prop_assert!(members.is_sorted());
            for label in members {
                seen[label.idx()] += 1;
                prop_assert_eq!(clustering.cluster_of()[label.idx()], ClusterId(cluster_idx as u32));
            }
        }
        prop_assert!(seen.iter().all(|&times| times == 1));
        let rebuilt = Clustering::new(clustering.cluster_of().to_vec(), n_clusters).unwrap();
        prop_assert_eq!(rebuilt, clustering);
    }

    #[test]
    fn centroids_are_the_normalised_sums_of_unit_rows(seed in 0u64..1000) {
        let (n_points, n_labels, n_sparse, n_dense) = (20, 7, 9, 3);
        let sparse = random_rows(n_points, n_sparse, seed);
        let labels = random_rows(n_points, n_labels, seed + 1);
        let mut random = Random::new(seed, "dense", 0);
        let values = (0..n_points * n_dense).map(|_| random.normal()).collect();
        let dense = Matrix::from_vec(values, n_points, n_dense);
        let points = PointFeatures { sparse: &sparse, dense: Some(&dense) };
        let centroids = label_centroids(&labels, points);
        prop_assert_eq!((centroids.n_rows(), centroids.n_cols()), (n_labels, n_sparse + n_dense));

        let mut expected = vec![vec![0f64; n_sparse + n_dense]; n_labels];
        for point_idx in 0..n_points {
            let mut psi = vec![0f64; n_sparse + n_dense];
            let (columns, values) = sparse.row(point_idx);
            for (&column, &value) in columns.iter().zip(values) {
                psi[column as usize] = f64::from(value);
            }
            let norm = dense.row(point_idx).iter().map(|&v| f64::from(v).powi(2)).sum::<f64>().sqrt();
            for (place, &value) in psi[n_sparse..].iter_mut().zip(dense.row(point_idx)) {
                *place = f64::from(value) / norm;
            }
            let (point_labels, relevances) = labels.row(point_idx);
            for (&label, &relevance) in point_labels.iter().zip(relevances) {
                for (sum, value) in expected[label as usize].iter_mut().zip(&psi) {
                    *sum += f64::from(relevance) * value;
                }
            }
        }
        for (label_idx, sum) in expected.iter().enumerate() {
            let norm = sum.iter().map(|value| value * value).sum::<f64>().sqrt();
            let mut found = vec![0f64; sum.len()];
            let (columns, values) = centroids.row(label_idx);
            for (&column, &value) in columns.iter().zip(values) {
                found[column as usize] = f64::from(value);
            }
            for (found, sum) in found.iter().zip(sum) {
                prop_assert!((found - sum / norm.max(1e-30)).abs() < 1e-5);
            }
        }
    }
}

#[test]
fn the_same_seed_gives_the_same_clusters_on_1_2_and_7_threads() {
    let centroids = random_rows(6000, 300, 3);
    let one = on_threads(1, || cluster(&centroids, 64, 5));
    assert_eq!(one, on_threads(2, || cluster(&centroids, 64, 5)));
    assert_eq!(one, on_threads(7, || cluster(&centroids, 64, 5)));
    assert_ne!(one, cluster(&centroids, 64, 6));
}

#[test]
fn centroids_are_the_same_bytes_on_1_2_and_7_threads() {
    let (labels, sparse) = (random_rows(500, 90, 1), random_rows(500, 200, 2));
    let points = PointFeatures {
        sparse: &sparse,
        dense: None,
    };
    let one = on_threads(1, || label_centroids(&labels, points));
    assert_eq!(one, on_threads(2, || label_centroids(&labels, points)));
    assert_eq!(one, on_threads(7, || label_centroids(&labels, points)));
}

#[test]
fn clear_groups_within_groups_are_found_with_any_seed() {
    // 40 labels, four groups of ten: four columns per group, and one per pair of groups.
    let mut builder = CsrBuilder::default();
    for label_idx in 0..40u32 {
        let group = label_idx % 4;
        let mut random = Random::new(9, "noise", u64::from(label_idx));
        let mut row: Vec<(u32, f32)> = (group * 4..group * 4 + 4)
            .map(|column| (column, 1.0 + 0.2 * random.f32()))
            .collect();
        row.push((16 + group / 2, 1.5));
        let norm = row
            .iter()
            .map(|(_, value)| value * value)
            .sum::<f32>()
            .sqrt();
        builder.push_row(
            row.into_iter()
                .map(|(column, value)| (column, value / norm)),
        );
    }
    let centroids = builder.finish(18).unwrap();
    for seed in 0..20 {
        let clustering = cluster(&centroids, 4, seed);
        for members in clustering.iter() {
            assert!(members.iter().all(|label| label.0 % 4 == members[0].0 % 4));
        }
        assert!(mean_cosine(&centroids, &clustering) > 0.99);
    }
}

#[test]
fn the_best_of_a_few_seeds_is_the_best_of_all_balanced_halvings() {
    for case in 0..10 {
        let centroids = random_rows(8, 6, 100 + case);
        let by_seed = (0..20).map(|seed| mean_cosine(&centroids, &cluster(&centroids, 2, seed)));
        let found = by_seed.fold(0.0, f64::max);
        let mut best = 0.0;
        for side in 0..256u32 {
            if side.count_ones() == 4 {
                let cluster_of = (0..8).map(|label| ClusterId(side >> label & 1)).collect();
                let halving = Clustering::new(cluster_of, 2).unwrap();
                best = f64::max(best, mean_cosine(&centroids, &halving));
            }
        }
        assert!(
            (found - best).abs() < 1e-6,
            "case {case}: found {found}, best {best}"
        );
    }
}

#[test]
fn processes_find_the_clusters_of_one() {
    let centroids = random_rows(203, 12, 1);
    for n_clusters in [1, 5, 8, 23] {
        let alone = cluster(&centroids, n_clusters, 6);
        for n_processes in [2, 3, 16] {
            let together = threads::run(n_processes, |communicator| {
                cluster_labels(&centroids, n_clusters, 6, communicator).unwrap()
            });
            assert!(together.iter().all(|clustering| *clustering == alone));
        }
    }
}

#[test]
fn labels_without_points_are_clustered_too() {
    let nothing = CsrBuilder::default();
    let mut builder = nothing.clone();
    for _ in 0..5 {
        builder.push_row([]);
    }
    let clustering = cluster(&builder.finish(3).unwrap(), 2, 0);
    assert_eq!(
        clustering.members(ClusterId(0)),
        [LabelId(0), LabelId(1), LabelId(2)]
    );
    assert_eq!(clustering.members(ClusterId(1)), [LabelId(3), LabelId(4)]);
}

#[test]
fn impossible_numbers_of_clusters_are_errors() {
    let centroids = random_rows(3, 4, 0);
    for n_clusters in [0, 4] {
        let error = cluster_labels(&centroids, n_clusters, 0, &SingleProcess).unwrap_err();
        assert_eq!(
            error.to_string(),
            format!(
                "config clustering.n_clusters: found {n_clusters}, expected 1 to 3, the number of labels"
            )
        );
    }
    let error = Clustering::new(vec![ClusterId(0), ClusterId(2)], 2).unwrap_err();
    assert!(error.to_string().contains("label 1 is in cluster 2"));
    let error = Clustering::new(vec![ClusterId(0), ClusterId(0)], 2).unwrap_err();
    assert!(error.to_string().contains("cluster 1 has no label"));
}

#[test]
fn clusters_are_small_up_to_512_and_then_follow_the_paper() {
    // The paper's table: 131,073 labels give 2048 clusters, 670,091 give 8192, 2,812,281 give 32768.
    let expected = [
        (0, 1, 1),
        (1, 1, 1),
        (25, 1, 1),
        (26, 1, 2),
        (100, 1, 4),
        (101, 2, 8),
        (201, 4, 16),
        (10_146, 128, 512),
        (20_000, 256, 512),
        (28_484, 512, 512),
        (131_073, 2048, 2048),
        (670_091, 8192, 8192),
        (2_812_281, 32_768, 32_768),
    ];
    for (n_labels, paper, default) in expected {
        let found = (paper_n_clusters(n_labels), default_n_clusters(n_labels));
        assert_eq!(found, (paper, default), "{n_labels} labels");
    }
}
