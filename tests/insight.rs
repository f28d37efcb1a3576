//! Explanations and figures agree with the model's answers.

use elias::config::Config;
use elias::data::Dataset;
use elias::ids::LabelId;
use elias::index::Cut;
use elias::insight::{
    IndexHealth, MapOptions, MissReason, clusters_of_points, compactness, explain, find_hardest,
    label_maps, neighbours,
};
use elias::pipeline::Trainer;
use elias::predict::{Predictor, Stage};
use elias::random::Random;
use elias::train::Silent;

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

fn train(data: &Dataset, members: usize) -> Predictor {
    let toml = format!(
        "ensemble.members = {members}
        [calibration.hold_out]
        n_points = 12
        min_points = 5
        [encoder]
        dim = 8
        [index]
        n_clusters = 4
        beam_size = 3
        shortlist_size = 20
        [stage1]
        batch_size = 16
        [stage2]
        batch_size = 16"
    );
    let config = Config::from_toml(&toml).unwrap();
    Trainer::new(config).train(data, None, &Silent).unwrap()
}

#[test]
fn an_explanation_adds_up_to_the_answer() {
    let data = data();
    for members in [1, 2] {
        let mut n_words = 0;
        let predictor = train(&data, members);
        let features = predictor.points(&data).unwrap();
        let answers = predictor.predict_points(features.points(), 5).unwrap();
        for point in [0, 17] {
            let explanations = explain(&predictor, &features, point, 5).unwrap();
            assert_eq!(explanations.len(), 5);
            for (explanation, answer) in explanations.iter().zip(&answers[point as usize]) {
                assert_eq!(explanation.label, predictor.label_set().name(answer.label));
                assert!(
                    (explanation.score - answer.score).abs() < 1e-5,
                    "{explanation:?}"
                );
                let mut sum = 0.0;
                for member in &explanation.members {
                    let best = member.paths.first().map_or(0.0, |path| {
                        assert!(path.edge_score <= 1.0 && path.cluster_score <= 1.0);
                        path.cluster_score * path.edge_score
                    });
                    assert!((best * member.relevance - member.model_score).abs() < 1e-6);
                    if let Some(ranker) = &member.ranker {
                        n_words += ranker.words.len();
                    }
                    sum += member.score.unwrap_or(0.0);
                }
                let mean = sum / members as f32;
                assert!(
                    (mean - explanation.score).abs() < 1e-4,
                    "{mean} {explanation:?}"
                );
            }
        }
        assert!(n_words > 0);
    }
}

#[test]
fn the_nearest_training_point_of_a_training_point_is_itself() {
    let data = data();
    let predictor = train(&data, 1);
    let features = predictor.points(&data).unwrap();
    let near = neighbours(&predictor, &features, 7, &features, 3);
    assert_eq!(near.len(), 3);
    assert!(near[0].similarity > 0.999, "{near:?}");
    // Equal texts tie to the lower point.
    let texts = data.texts().unwrap();
    assert_eq!(texts.get(near[0].point), texts.get(7));
    assert!(near.is_sorted_by(|a, b| a.similarity >= b.similarity));
}

#[test]
fn index_health_agrees_with_the_index() {
    let data = data();
    let predictor = train(&data, 1);
    let member = &predictor.members()[0];
    let health = IndexHealth::of(member, predictor.label_counts());
    let adjacency = &member.model.adjacency;
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
fn a_pruned_model_answers_almost_the_same_and_keeps_all_labels() {
    let data = data();
    let mut predictor = train(&data, 1).at_stage(Stage::Stage2).unwrap();
    let before = predictor.predict_dataset(&data, 1).unwrap();
    let member = &mut predictor.members_mut()[0];
    let pruned = member.model.adjacency.pruned(Cut::Threshold(0.01)).unwrap();
    assert!(pruned.adjacency.edges().unreachable().is_empty());
    member.model.adjacency = pruned.adjacency;
    let after = predictor.predict_dataset(&data, 1).unwrap();
    let same = before.iter().zip(&after);
    let n_same = same.filter(|(a, b)| a[0].label == b[0].label).count();
    assert!(n_same * 100 >= before.len() * 95, "{n_same}");
}

#[test]
fn maps_show_points_of_the_label_and_of_its_clusters() {
    let data = data();
    let predictor = train(&data, 1);
    let member = &predictor.members()[0];
    let features = predictor.points(&data).unwrap();
    let points = clusters_of_points(member, &features);
    assert_eq!(points.of_point.len(), data.n_points());
    let options = MapOptions {
        fewest_points: 5,
        ..MapOptions::default()
    };
    let maps = label_maps(member, &points, data.labels(), &options);
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
    let bands = compactness(member, &points, data.labels(), &[(1, 1000)]);
    let lengths = bands[0].mean_length;
    assert!(
        lengths
            .iter()
            .all(|length| (0.0..=1.000001).contains(length))
    );
}

#[test]
fn the_hardest_points_are_those_without_a_hit_and_each_label_has_a_reason() {
    let data = data();
    let predictor = train(&data, 1);
    let features = predictor.points(&data).unwrap();
    let mut rankings = predictor.predict_points(features.points(), 20).unwrap();
    // Make point 3 a miss: remove its labels from its answers.
    let own = data.labels().row(3).0;
    rankings[3].retain(|scored| own.binary_search(&scored.label.0).is_err());
    let hardest = find_hardest(&predictor, &features, data.labels(), &rankings, 400);
    assert!(hardest.iter().any(|hard| hard.point == 3));
    for hard in &hardest {
        let labels = data.labels().row(hard.point).0;
        assert_eq!(hard.misses.len(), labels.len());
        for miss in &hard.misses {
            assert_ne!(miss.reason, MissReason::Found);
            assert_ne!(miss.reason, MissReason::Unseen);
            assert!(labels.contains(&miss.label));
            assert_eq!(miss.n_points, predictor.label_counts()[miss.label as usize]);
        }
    }
    assert!(data.label_set().find("l0") == Some(LabelId(0)));
}
