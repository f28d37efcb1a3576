//! Figures of a trained model against what is inside of it.

use super::*;
use crate::config::Config;
use crate::data::Dataset;
use crate::pipeline::Trainer;
use crate::predict::Predictor;
use crate::random::Random;

const N_LABELS: usize = 24;

/// Texts of two topics each; one word and one label per topic.
fn data() -> Dataset {
    let point = |point: usize| {
        let mut random = Random::new(5, "insight test", point as u64);
        let (first, second) = (point % N_LABELS, random.below(N_LABELS));
        let text = format!("topic{first} word{second} about{first}");
        (text, vec![format!("l{first}"), format!("l{second}")])
    };
    Dataset::from_texts((0..240).map(point))
}

fn train(data: &Dataset) -> Predictor {
    let toml = "
        [calibration.hold_out]
        n_points = 12
        min_points = 5
        [encoder]
        dim = 8
        [index]
        n_clusters = 4
        beam_size = 3
        shortlist_size = 20
        [train]
        batch_size = 16
    ";
    let config = Config::from_toml(toml).unwrap();
    Trainer::new(config).train(data).unwrap()
}

#[test]
fn index_health_agrees_with_the_index() {
    let predictor = train(&data());
    let health = IndexHealth::of(&predictor, 0);
    let adjacency = &predictor.members()[0].model.adjacency;
    assert_eq!((health.n_clusters, health.n_labels), (4, N_LABELS));
    assert_eq!(health.n_edges, adjacency.edges().len());
    assert_eq!(health.histogram.iter().sum::<usize>(), health.n_edges);
    assert_eq!(health.labels_by_clusters.iter().sum::<usize>(), N_LABELS);
    assert_eq!(health.n_unreachable, 0);
    let mass: f64 = health.weight_by_rank.iter().sum();
    assert!((mass - 1.0).abs() < 1e-6, "{mass}");
    let overlap = health.stage1_overlap.as_ref().unwrap();
    // Decreasing with the cut-off.
    assert!(overlap.is_sorted_by(|a, b| a >= b), "{overlap:?}");
    let is_strong = |score: &&f32| **score > health.assigned_above;
    let n_strong = adjacency.scores().iter().filter(is_strong).count() as f64;
    let mean = n_strong / N_LABELS as f64;
    let by_decile = health.clusters_by_decile.iter();
    assert!(by_decile.clone().any(|&clusters| clusters <= mean + 1e-9));
    assert!(by_decile.clone().any(|&clusters| clusters + 1e-9 >= mean));
}

#[test]
fn maps_show_points_of_the_label_and_of_its_clusters() {
    let data = data();
    let predictor = train(&data);
    let features = predictor.points(&data).unwrap();
    let points = clusters_of_points(&predictor, &features);
    assert_eq!(points.of_point.len(), data.n_points());
    let options = MapOptions {
        fewest_points: 5,
        ..MapOptions::default()
    };
    let maps = label_maps(&predictor, &points, data.labels(), &options);
    let all: Vec<_> = maps.iter().flatten().collect();
    assert!(!all.is_empty());
    for map in &all {
        for point in &map.points {
            assert!((0.0..=1.0).contains(&point.x) && (0.0..=1.0).contains(&point.y));
            let labels = data.labels().row(point.point as usize).0;
            match point.group {
                0 => assert!(labels.contains(&map.label)),
                group => {
                    let cluster = map.clusters[usize::from(group) - 1];
                    let own = &points.of_point[point.point as usize];
                    assert!(own.iter().any(|found| found.0 == cluster));
                }
            }
        }
    }
    assert!(maps[1].iter().all(|map| map.clusters.len() == 1));
    let bands = compactness(&predictor, &points, data.labels(), &[(1, 1000)]);
    let lengths = bands[0].mean_length;
    assert!(
        lengths
            .iter()
            .all(|length| (0.0..=1.000001).contains(length))
    );
}
