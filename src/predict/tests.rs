//! Trained predictors, taken apart.

use super::*;
use crate::config::Config;
use crate::data::Dataset;
use crate::error::Error;
use crate::random::Random;
use crate::training::Trainer;

const N_LABELS: usize = 24;

/// Texts in which one word decides each label, among some that do not.
fn data(n_points: usize, purpose: &str) -> Dataset {
    Dataset::from_texts((0..n_points).map(|point| {
        let mut random = Random::new(3, purpose, point as u64);
        let (first, second) = (point % N_LABELS, random.below(N_LABELS));
        let noise = [random.below(60), random.below(60)];
        let text = format!(
            "sign{first} sign{second} noise{} noise{}",
            noise[0], noise[1]
        );
        let mut labels = vec![format!("label {first}"), format!("label {second}")];
        labels.dedup();
        (text, labels)
    }))
}

fn train(n_members: usize) -> Predictor {
    let toml = format!(
        "ensemble.members = {n_members}
        encoder.dim = 8
        stage1.epochs = 2
        stage2.epochs = 2
        train.batch_size = 16
        hold_out.min_points = 10
        [index]
        n_clusters = 4
        beam_size = 2
        shortlist_size = 12"
    );
    let trainer = Trainer::new(Config::from_toml(&toml).unwrap());
    trainer.train(&data(240, "train")).unwrap()
}

/// The same predictor with one of its members only.
fn alone(parts: &PredictorParts, member: Member) -> Predictor {
    let parts = PredictorParts {
        featurizer: parts.featurizer.clone(),
        label_set: parts.label_set.clone(),
        label_counts: parts.label_counts.clone(),
        members: vec![member],
        calibration: parts.calibration.clone(),
        neighbours: parts.neighbours.clone(),
        names: parts.names.clone(),
        plan: parts.plan.clone(),
        record: parts.record.clone(),
    };
    Predictor::new(parts).unwrap()
}

#[test]
fn the_members_of_an_ensemble_differ_and_its_scores_are_their_mean() {
    let mut predictor = train(2);
    let test = data(60, "test");
    let together = predictor.rank(&test, 10).unwrap();
    let members = std::mem::take(&mut predictor.parts.members);
    assert_ne!(members[0].model.numbering, members[1].model.numbering);
    let lists: Vec<Vec<Vec<Scored>>> = members
        .into_iter()
        .map(|member| alone(&predictor.parts, member).rank(&test, 100).unwrap())
        .collect();
    let mut merger = Merger::default();
    for (point, answers) in together.iter().enumerate() {
        let mut merging = merger.start();
        lists
            .iter()
            .for_each(|of| merging.add(of[point].iter().copied()));
        assert_eq!(&best(merging.finish(), &10.into()), answers);
    }
}

#[test]
fn a_weight_that_is_not_finite_is_met_by_the_prediction_that_reads_it() {
    let data = data(60, "test");
    for value in [f32::NAN, f32::INFINITY, f32::NEG_INFINITY] {
        let mut predictor = train(1);
        let classifiers = &mut predictor.members_mut()[0].model.classifiers;
        classifiers.weights.values_mut().fill(value);
        classifiers.coarse = None;
        let error = predictor.predict("sign1", 3).unwrap_err();
        assert!(matches!(error, Error::CannotPredict(_)), "{error}");
        assert!(predictor.rank(&data, 3).is_err());
        for parameter in predictor.members_mut()[0].encoder.parameters() {
            parameter.values.fill(value);
        }
        assert!(predictor.rank(&data, 3).is_err());
    }
}

#[test]
fn every_label_has_one_edge_of_stage_1_in_a_saved_model() {
    let directory = tempfile::tempdir().unwrap();
    train(1).save(directory.path()).unwrap();
    let loaded = Predictor::load(directory.path()).unwrap();
    let edges = loaded.members()[0].stage1.edges.as_ref().unwrap();
    assert_eq!(edges.n_clusters(), 4);
    let labels: Vec<u32> = edges.rows().iter().map(|label| label.0).collect();
    assert_eq!(labels, (0..N_LABELS as u32).collect::<Vec<_>>());
}

#[test]
fn a_threshold_is_compared_with_probabilities_or_else_with_scores() {
    let (mut predictor, test) = (train(1), data(40, "test"));
    assert!(predictor.is_calibrated());
    let at = |level, threshold| Query {
        k: 10,
        threshold,
        level,
    };
    for is_calibrated in [true, false] {
        if !is_calibrated {
            predictor.parts.calibration = None;
        }
        for level in [Level::Stage2, Level::Ensemble] {
            let all = predictor.predict_batch(&test, at(level, None)).unwrap();
            let threshold = all[0][3].relevance();
            let kept = predictor.predict_batch(&test, at(level, Some(threshold)));
            for (all, kept) in all.iter().zip(kept.unwrap()) {
                let is_above = |answer: &&Prediction<'_>| answer.relevance() >= threshold;
                let expected: Vec<_> = all.iter().filter(is_above).copied().collect();
                assert_eq!(kept, expected);
            }
            let has_probabilities = is_calibrated && level == Level::Ensemble;
            assert_eq!(all[0][0].probability.is_some(), has_probabilities);
            for outside in [1.5, -0.1, f32::NAN] {
                let error = predictor.predict("sign1", at(level, Some(outside)));
                assert!(matches!(
                    error,
                    Err(Error::Query {
                        name: "threshold",
                        ..
                    })
                ));
            }
        }
    }
    let error = predictor.predict("sign1", 0).unwrap_err().to_string();
    assert_eq!(error, "k: found 0, expected an integer of at least 1");
}
