//! Explanations and figures agree with the model's answers.

use std::collections::BTreeSet;

use super::browse::known_words;
use super::explain::{explain, neighbours};
use super::*;
use crate::config::Config;
use crate::data::Dataset;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::predict::{Level, Predictor, Query};
use crate::random::Random;
use crate::training::Trainer;

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
        [hold_out]
        n_points = 12
        min_points = 5
        [encoder]
        dim = 8
        [index]
        n_clusters = 4
        beam_size = 2
        shortlist_size = 20
        [train]
        batch_size = 16"
    );
    let config = Config::from_toml(&toml).unwrap();
    Trainer::new(config).train(data).unwrap()
}

#[test]
fn an_explanation_adds_up_to_the_answer() {
    let data = data();
    for members in [1, 2] {
        let mut n_words = 0;
        let predictor = train(&data, members);
        let answers = predictor.rank(&data, 5).unwrap();
        for point in [0, 17] {
            let features = predictor.points(&data.select(&[point])).unwrap();
            let explained = explain(&predictor, &features, 5).unwrap();
            assert_eq!(explained.len(), 5);
            for (explanation, answer) in explained.iter().zip(&answers[point]) {
                assert_eq!(explanation.label, predictor.labels().name(answer.label));
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
    let own = predictor.points(&data.select(&[7])).unwrap();
    let near = neighbours(&predictor, &own, 3).unwrap();
    assert_eq!(near.len(), 3);
    assert!(near[0].similarity > 0.999, "{near:?}");
    // Equal texts tie to the lower point.
    let texts = data.texts().unwrap();
    assert_eq!(texts.get(near[0].point), texts.get(7));
    assert!(near.is_sorted_by(|a, b| a.similarity >= b.similarity));
}

#[test]
fn a_pruned_model_answers_almost_the_same_and_keeps_all_labels() {
    let data = data();
    let mut predictor = train(&data, 1);
    let query = Query {
        k: 1,
        level: Level::Stage2,
        ..Query::default()
    };
    let before = predictor.rank(&data, &query).unwrap();
    let figures = predictor.prune(Cut::TopK(15)).unwrap();
    assert!(figures[0].n_removed > 0);
    assert_eq!(figures[0].n_unreachable, 0);
    let after = predictor.rank(&data, query).unwrap();
    let same = before.iter().zip(&after);
    let n_same = same.filter(|(a, b)| a[0].label == b[0].label).count();
    assert!(n_same * 100 >= before.len() * 95, "{n_same}");
}

#[test]
fn the_hardest_points_are_those_without_a_hit_and_each_label_has_a_reason() {
    let data = data();
    let predictor = train(&data, 1);
    let features = predictor.points(&data).unwrap();
    let mut rankings = predictor.rank(&data, 20).unwrap();
    // Point 3 is made to miss: its answers are all but its labels.
    let own = data.labels().row(3).0;
    rankings[3].retain(|scored| own.binary_search(&scored.label.0).is_err());
    let hardest = find_hardest(&predictor, &features, data.labels(), &rankings, 400).unwrap();
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

#[test]
fn labels_and_clusters_know_of_each_other() {
    let data = data();
    let predictor = train(&data, 1);
    let n_labels = predictor.labels().len();
    let mut n_edges = 0;
    for label in (0..n_labels as u32).map(LabelId) {
        let details = predictor.inspect_label(label, 100).unwrap();
        assert!(!details.clusters.is_empty(), "{label:?}");
        n_edges += details.clusters.len();
        for edge in &details.clusters {
            let cluster = predictor.inspect_cluster(edge.cluster, n_labels).unwrap();
            let score = edge.edge_score;
            assert!(cluster.labels.contains(&Scored { label, score }));
            assert!(cluster.labels.is_sorted_by(|a, b| a.score >= b.score));
        }
        let has_it = |point: usize| data.labels().row(point).0.contains(&label.0);
        let expected: Vec<usize> = (0..240).filter(|&point| has_it(point)).take(100).collect();
        let points: Vec<usize> = details.examples.iter().map(|one| one.point).collect();
        assert_eq!(points, expected);
        for example in &details.examples {
            let text = data.texts().unwrap().get(example.point);
            let words: BTreeSet<&str> = text.split(' ').collect();
            let found = example.words.iter().map(String::as_str);
            assert_eq!(found.collect::<BTreeSet<&str>>(), words);
        }
        let magnitudes = details.words.iter().map(|(_, weight)| weight.abs());
        assert!(magnitudes.is_sorted_by(|a, b| a >= b));
        let few = predictor.inspect_label(label, 1).unwrap();
        assert_eq!(few.clusters[..], details.clusters[..1]);
    }
    let clusters = (0..predictor.n_clusters() as u32).map(ClusterId);
    let sizes = clusters.map(|id| predictor.inspect_cluster(id, 0).unwrap().n_labels);
    assert_eq!(sizes.sum::<usize>(), n_edges);
    assert_eq!(predictor.inspect_label(LabelId(n_labels as u32), 1), None);
    assert_eq!(predictor.inspect_cluster(ClusterId(4), 1), None);
}

#[test]
fn the_known_words_of_a_text_are_those_of_its_features() {
    let predictor = train(&data(), 1);
    let points = predictor.points(&["topic3 topic3 unheard about5"]).unwrap();
    let words = known_words(&predictor, &points);
    let names: Vec<&str> = words.iter().map(|(word, _)| &word[..]).collect();
    assert_eq!(names, ["topic3", "about5"]);
    let length: f32 = words.iter().map(|(_, weight)| weight * weight).sum();
    assert!((length - 1.0).abs() < 1e-5, "{words:?}");
}
