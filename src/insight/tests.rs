//! Figures of a trained model against what is inside of it.

use super::*;
use crate::config::Config;
use crate::data::Dataset;
use crate::ids::{ClusterId, LabelRow};
use crate::matrix::{CsrBuilder, Matrix};
use crate::predict::Predictor;
use crate::random::Random;
use crate::training::Trainer;

const N_LABELS: usize = 24;

/// Texts of two topics each; one word and one label per topic.
fn data() -> Dataset {
    data_of(N_LABELS)
}

fn data_of(n_labels: usize) -> Dataset {
    let point = |point: usize| {
        let mut random = Random::new(5, "insight test", point as u64);
        let (first, second) = (point % n_labels, random.below(n_labels));
        let text = format!("topic{first} word{second} about{first}");
        (text, vec![format!("l{first}"), format!("l{second}")])
    };
    Dataset::from_texts((0..240).map(point))
}

fn train(data: &Dataset) -> Predictor {
    let toml = "
        [hold_out]
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
fn recall_inside_the_shortlist_is_that_of_following_every_path() {
    let data = data_of(120);
    let predictor = train(&data);
    let points = predictor.points(&data).unwrap();
    let recall = shortlist_recall(&predictor, &points, data.labels()).unwrap();
    let names: Vec<&str> = recall.indices.iter().map(|i| &i.index[..]).collect();
    let others = ["equal weights", "shuffled weights", "partition of stage 1"];
    assert_eq!(names, [&["the index"][..], &others[..]].concat());

    let member = &predictor.members()[0];
    let (model, adjacency) = (&member.model, &member.model.adjacency);
    let rows: Vec<u32> = (0..data.n_points() as u32).collect();
    let mut embeddings = Matrix::default();
    member
        .encoder
        .encode(points.points(), &rows, &mut embeddings);
    let share = |point: usize, ranked: &[(f32, u32)], size: usize| {
        let truth = data.labels().row(point).0;
        let best = &ranked[..ranked.len().min(size)];
        let found = best.iter().filter(|(_, row)| {
            let label = model.numbering.label(LabelRow(*row));
            truth.contains(&label.0)
        });
        100.0 * found.count() as f64 / truth.len() as f64 / data.n_points() as f64
    };
    let sort = |ranked: &mut Vec<(f32, u32)>| {
        ranked.sort_by(|a, b| b.0.total_cmp(&a.0).then(a.1.cmp(&b.1)));
    };
    let mut by_beam = vec![[0.0; SHORTLIST_SIZES.len()]; BEAM_SIZES.len()];
    let mut exact = [0.0; SHORTLIST_SIZES.len()];
    for point in 0..data.n_points() {
        let embedding = embeddings.row(point);
        let mut probabilities = vec![0.0; model.clusters.n_clusters()];
        let clusters = &model.clusters;
        clusters.probabilities(embedding, &mut probabilities);
        let mut order: Vec<usize> = (0..probabilities.len()).collect();
        let score = |cluster: usize| clusters.score(probabilities[cluster]);
        order.sort_by(|&a, &b| score(b).total_cmp(&score(a)).then(a.cmp(&b)));
        for (sums, beam_size) in by_beam.iter_mut().zip(BEAM_SIZES) {
            let mut best = vec![0f32; model.classifiers.n_labels()];
            for &cluster in order.iter().take(beam_size) {
                for edge in adjacency.edges().range(ClusterId(cluster as u32)) {
                    let label = adjacency.edges().rows()[edge].idx();
                    let score = clusters.score(probabilities[cluster]) * adjacency.scores()[edge];
                    best[label] = best[label].max(score);
                }
            }
            let mut ranked: Vec<(f32, u32)> = best.into_iter().zip(0..).collect();
            ranked.retain(|&(score, _)| score > 0.0);
            sort(&mut ranked);
            for (sum, size) in sums.iter_mut().zip(SHORTLIST_SIZES) {
                *sum += share(point, &ranked, size);
            }
        }
        let margins = (0..model.classifiers.n_labels()).map(|row| {
            let product = model.classifiers.weights.dot(row, embedding);
            (product + model.classifiers.bias[row], row as u32)
        });
        let mut ranked: Vec<(f32, u32)> = margins.collect();
        sort(&mut ranked);
        for (sum, size) in exact.iter_mut().zip(SHORTLIST_SIZES) {
            *sum += share(point, &ranked, size);
        }
    }
    let near = |a: &[f64], b: &[f64]| a.iter().zip(b).all(|(a, b)| (a - b).abs() < 1e-6);
    for (found, expected) in recall.indices[0].by_beam.iter().zip(&by_beam) {
        assert!(near(found, expected), "{found:?} {expected:?}");
    }
    assert!(near(&recall.one_against_all, &exact), "{exact:?}");
    // A label that the model does not know is not found.
    let mut with_unknown = CsrBuilder::default();
    for point in 0..data.n_points() {
        let labels = data.labels().row(point).0.iter().copied();
        with_unknown.push_row(labels.chain([120]).map(|label| (label, 1.0)));
    }
    let truth = with_unknown.finish(121).unwrap();
    let less = shortlist_recall(&predictor, &points, &truth).unwrap();
    assert!(less.one_against_all[0] < 0.7 * exact[0]);
    assert!(less.indices[0].by_beam[4][5] <= 70.0);
    let is_partial = |share: f64| share > 1.0 && share < 99.0;
    assert!(is_partial(by_beam[0][0]) && is_partial(exact[0]));
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
            match point.cluster {
                None => assert!(labels.contains(&map.label)),
                Some(at) => {
                    let cluster = map.clusters[usize::from(at)];
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
