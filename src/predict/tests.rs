//! Trained predictors, taken apart.

use super::*;
use crate::candidates::AllowedLabels;
use crate::config::Config;
use crate::data::Dataset;
use crate::error::Error;
use crate::ids::LabelId;
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
        by_text: None,
        retired: Retired::default(),
        rejected: None,
        featurizer: parts.featurizer.clone(),
        label_set: parts.label_set.clone(),
        label_counts: parts.label_counts.clone(),
        members: vec![member].into(),
        calibration: parts.calibration.clone(),
        neighbours: parts.neighbours.clone(),
        names: parts.names.clone(),
        seen: parts.seen.clone(),
        plan: parts.plan.clone(),
        record: parts.record.clone(),
    };
    Predictor::new(parts).unwrap()
}

#[test]
fn the_members_of_an_ensemble_differ_and_its_scores_are_their_mean() {
    let predictor = train(2);
    let test = data(60, "test");
    let together = predictor.rank(&test, 10).unwrap();
    let members = Vec::clone(&predictor.parts.members);
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
        rules: LabelRules::default(),
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
                assert_eq!(kept.labels, expected);
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

/// A query for the `k` best labels by rules.
fn ruled(predictor: &Predictor, k: usize, lists: &LabelLists) -> Query {
    Query {
        k,
        rules: predictor.label_rules(lists).unwrap(),
        ..Query::default()
    }
}

#[test]
fn every_listed_label_is_answered_at_every_level_and_no_other() {
    let (predictor, test) = (train(2), data(30, "test"));
    let name = |id: &u32| LabelRef::Name(predictor.labels().name(LabelId(*id)).into());
    for allow in [
        vec![3],
        vec![20, 1, 7, 7, 13],
        (0..N_LABELS as u32).collect(),
    ] {
        let lists = LabelLists {
            allow: Some(allow.iter().map(name).collect()),
            deny: vec![LabelId(13).into()],
            ..LabelLists::default()
        };
        let mut expected: Vec<u32> = allow.iter().copied().filter(|&id| id != 13).collect();
        expected.sort_unstable();
        expected.dedup();
        for level in [
            Level::Stage2,
            Level::Ranker,
            Level::Calibrated,
            Level::Ensemble,
        ] {
            let query = Query {
                level,
                ..ruled(&predictor, 100, &lists)
            };
            for answers in predictor.predict_batch(&test, &query).unwrap() {
                let mut ids: Vec<u32> = answers.iter().map(|answer| answer.id.0).collect();
                ids.sort_unstable();
                assert_eq!(ids, expected);
                assert!(answers.is_sorted_by(|a, b| a.score >= b.score));
            }
        }
    }
}

#[test]
fn leaving_labels_out_changes_nothing_about_the_others() {
    // So few labels are all candidates, and none comes in for those that are left out.
    let (predictor, test) = (train(2), data(30, "test"));
    let denied: Vec<LabelId> = (0..N_LABELS as u32).step_by(3).map(LabelId).collect();
    let lists = LabelLists {
        deny: denied.iter().map(|&label| label.into()).collect(),
        ..LabelLists::default()
    };
    let all = predictor.rank(&test, 100).unwrap();
    let some = predictor.rank(&test, ruled(&predictor, 4, &lists)).unwrap();
    assert!(all.iter().any(|all| denied.contains(&all[0].label)));
    for (all, some) in all.iter().zip(some) {
        let allowed = all.iter().filter(|of| !denied.contains(&of.label));
        assert_eq!(some, allowed.take(4).copied().collect::<Vec<_>>());
    }
}

#[test]
fn a_label_with_its_own_threshold_makes_room_for_others() {
    let (predictor, test) = (train(1), data(40, "test"));
    let all = predictor.predict_batch(&test, 10).unwrap();
    let best = all[0][0];
    let lists = LabelLists {
        // The last one counts.
        thresholds: vec![(best.label.into(), 0.0), (best.id.into(), 1.0)],
        ..LabelLists::default()
    };
    let query = Query {
        threshold: Some(all[0][4].relevance()),
        ..ruled(&predictor, 3, &lists)
    };
    let answers = predictor.predict_batch(&test, &query).unwrap();
    for (all, answers) in all.iter().zip(answers) {
        let passes = |answer: &&Prediction<'_>| match answer.id {
            id if id == best.id => answer.relevance() >= 1.0,
            _ => answer.relevance() >= query.threshold.unwrap(),
        };
        let expected: Vec<_> = all.iter().filter(passes).take(3).copied().collect();
        assert_eq!(answers.labels, expected);
    }
    let first = predictor
        .predict(test.texts().unwrap().get(0), &query)
        .unwrap();
    assert_eq!(first[0].id == best.id, best.relevance() >= 1.0);
}

#[test]
fn lists_with_mistakes_are_refused_by_name() {
    let predictor = train(1);
    let message = |lists: LabelLists| predictor.label_rules(&lists).unwrap_err().to_string();
    let names = |names: &[&str]| names.iter().map(|&name| name.into()).collect::<Vec<_>>();
    assert_eq!(
        message(LabelLists {
            allow: Some(vec![]),
            ..LabelLists::default()
        }),
        "allow: found no labels, expected at least one label"
    );
    assert_eq!(
        message(LabelLists {
            allow: Some(names(&["label 1", "pear"])),
            ..LabelLists::default()
        }),
        "allow: \"pear\" is not among the labels of the model"
    );
    assert_eq!(
        message(LabelLists {
            deny: vec![LabelId(24).into(), "label 1".into(), "a".into(), "b".into()],
            ..LabelLists::default()
        }),
        "deny: \"#24\" and 2 others are not among the labels of the model"
    );
    for threshold in [f32::NAN, -0.1, 1.1] {
        let found = message(LabelLists {
            thresholds: vec![("label 1".into(), threshold)],
            ..LabelLists::default()
        });
        assert!(found.ends_with("expected a number from 0 to 1"), "{found}");
    }
    let other = AllowedLabels::new(9, None, &[]);
    let foreign = LabelRules::of(9, other);
    let query = Query {
        rules: foreign,
        ..Query::default()
    };
    assert!(predictor.predict("sign1", &query).is_err());
}

#[test]
fn a_renamed_label_keeps_its_answers_and_mistakes_change_nothing() {
    let (mut predictor, test) = (train(1), data(40, "test"));
    let before = predictor.rank(&test, 5).unwrap();
    let rename = |old: &str, new: &str| (LabelRef::from(old), new.to_owned());
    let swap = [
        rename("label 1", "label 2"),
        rename("label 2", "label 1"),
        (LabelId(7).into(), "pear".to_owned()),
    ];
    let id = |predictor: &Predictor, name: &str| predictor.labels().find(name);
    let (first, second) = (id(&predictor, "label 1"), id(&predictor, "label 2"));
    predictor.rename_labels(&swap).unwrap();
    assert_eq!(id(&predictor, "label 1"), second);
    assert_eq!(id(&predictor, "label 2"), first);
    assert_eq!(predictor.labels().name(LabelId(7)), "pear");
    assert_eq!(predictor.rank(&test, 5).unwrap(), before);

    let directory = tempfile::tempdir().unwrap();
    predictor.save(directory.path()).unwrap();
    let loaded = Predictor::load(directory.path()).unwrap();
    assert_eq!(loaded.labels(), predictor.labels());
    let named = predictor.predict_batch(&test, 5).unwrap();
    assert_eq!(loaded.predict_batch(&test, 5).unwrap(), named);

    let renamed: Vec<String> = predictor
        .labels()
        .names()
        .iter()
        .map(str::to_owned)
        .collect();
    for (renames, words) in [
        (
            vec![rename("label 1", "label 3")],
            "two labels with the name \"label 3\"",
        ),
        (
            vec![rename("label 1", "a"), rename("label 3", "a")],
            "two labels with the name \"a\"",
        ),
        (
            vec![rename("pear", "a"), rename("pear", "b")],
            "two names for \"pear\"",
        ),
        (
            vec![rename("label 1", "a"), rename("plum", "b")],
            "\"plum\" is not among",
        ),
    ] {
        let error = predictor.rename_labels(&renames).unwrap_err().to_string();
        assert!(error.contains(words), "{error}");
        assert!(predictor.labels().names().iter().eq(&renamed));
    }
}
