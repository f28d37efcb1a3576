//! ELIAS++ as a whole: ranker, calibration and ensemble on small data.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::sync::Mutex;

use elias::{
    Config, Dataset, Evaluation, Event, Level, Prediction, Predictor, Query, Scored, Trainer,
};

use crate::on_threads;
use crate::random::Random;

const N_LABELS: usize = 40;

/// Texts in which one word alone decides each label, among many that do not.
fn data(n_points: usize, purpose: &str) -> Dataset {
    Dataset::from_texts((0..n_points).map(|point| {
        let mut random = Random::new(3, purpose, point as u64);
        let first = point % N_LABELS;
        let second = random.below(N_LABELS);
        let noise: Vec<String> = (0..6)
            .map(|_| format!("noise{}", random.below(60)))
            .collect();
        let text = format!("sign{first} sign{second} {}", noise.join(" "));
        let mut labels = vec![format!("label {first}"), format!("label {second}")];
        labels.dedup();
        (text, labels)
    }))
}

fn train_data() -> Dataset {
    data(400, "train")
}

/// The settings of a weak model, which the ranker can improve.
fn config(assignments: &[&str]) -> Config {
    let small = [
        "encoder.dim=8",
        "index.n_clusters=4",
        "index.beam_size=3",
        "stage1.epochs=3",
        "stage2.epochs=3",
        "train.batch_size=32",
        "hold_out.min_points=20",
    ];
    let all = small.iter().chain(assignments);
    all.fold(Config::default(), |config, one| {
        config.with_value(one).unwrap()
    })
}

fn train(assignments: &[&str]) -> Predictor {
    Trainer::new(config(assignments))
        .train(&train_data())
        .unwrap()
}

/// The best ten labels of each point and their scores, at a level.
fn scores(predictor: &Predictor, test: &Dataset, level: Level) -> Vec<Vec<Scored>> {
    let query = Query {
        k: 10,
        level,
        ..Query::default()
    };
    let answers = predictor.predict_batch(test, query).unwrap();
    let scored = |answer: &Prediction<'_>| Scored {
        label: answer.id,
        score: answer.score,
    };
    answers
        .iter()
        .map(|answers| answers.iter().map(scored).collect())
        .collect()
}

fn precision_at_1(predictor: &Predictor, test: &Dataset, level: Level) -> f64 {
    let evaluation = Evaluation {
        level,
        ..Evaluation::default()
    };
    let measured = predictor.evaluate(test, &evaluation).unwrap();
    measured.metrics.precision(1).unwrap()
}

/// All files of a model, by name.
fn saved(predictor: &Predictor) -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    predictor.save(directory.path()).unwrap();
    let files = fs::read_dir(directory.path()).unwrap().map(|entry| {
        let path = entry.unwrap().path();
        let name = path.file_name().unwrap().to_string_lossy().into_owned();
        (name, fs::read(path).unwrap())
    });
    let files = files.collect();
    (directory, files)
}

#[test]
fn all_parts_together_are_the_same_bytes_on_any_number_of_threads_and_after_loading() {
    let two = ["ensemble.members=2"];
    let predictor = on_threads(1, || train(&two));
    let (directory, expected) = saved(&predictor);
    let (_, found) = saved(&on_threads(2, || train(&two)));
    assert!(found == expected);

    let loaded = Predictor::load(directory.path()).unwrap();
    let test = data(60, "test");
    let answers = predictor.predict_batch(&test, 10).unwrap();
    assert_eq!(loaded.predict_batch(&test, 10).unwrap(), answers);
    assert_eq!(loaded.n_members(), 2);
    let score = answers[0][0].score;
    assert_eq!(loaded.probability(score), predictor.probability(score));
    assert!(saved(&loaded).1 == expected);
}

#[test]
fn one_predictor_answers_at_every_level_and_the_ranker_helps_where_words_decide() {
    let (predictor, test) = (train(&["train.keep_stage1=true"]), data(200, "test"));
    let precision = |level| precision_at_1(&predictor, &test, level);
    let (by_model, by_ranker) = (precision(Level::Stage2), precision(Level::Ranker));
    assert!(by_model < by_ranker, "{by_model} {by_ranker}");
    let by_all = precision(Level::Ensemble);
    assert!(by_model <= by_all, "{by_model} {by_all}");
    assert!(precision(Level::Stage1) > 0.0);

    // An ensemble of one is its member.
    let at = |level| scores(&predictor, &test, level);
    assert_eq!(at(Level::Calibrated), at(Level::Ensemble));
    // Levels below the top have scores but no probabilities.
    for level in Level::ALL {
        let text = test.texts().unwrap().get(0);
        let query = Query {
            k: 3,
            level,
            ..Query::default()
        };
        let answers = predictor.predict(text, query).unwrap();
        let has_probability = |answer: &Prediction<'_>| answer.probability.is_some();
        let is_top = level == Level::Ensemble;
        assert!(
            answers
                .iter()
                .all(|answer| has_probability(answer) == is_top)
        );
    }
}

#[test]
fn a_level_answers_as_a_model_that_was_trained_up_to_it() {
    let test = data(60, "test");
    // Without calibration all points train, as they do after a refit.
    let whole = train(&["final_score.kind=product"]);
    let at = |level| scores(&whole, &test, level);
    let model_alone = train(&["final_score.kind=product", "ranker.enabled=false"]);
    let top = |predictor| scores(predictor, &test, Level::default());
    assert_eq!(at(Level::Stage2), top(&model_alone));
    // The top of a model without calibration is p·q.
    assert_eq!(at(Level::Ranker), top(&whole));
    // Levels of one member are those of the first.
    let two = train(&["final_score.kind=product", "ensemble.members=2"]);
    for level in [Level::Stage2, Level::Ranker] {
        assert_eq!(scores(&two, &test, level), at(level));
    }
    assert_ne!(top(&two), at(Level::Ensemble));
    // The networks of all members answer as an ensemble without rankers.
    let without = [
        "ranker.enabled=false",
        "final_score.kind=product",
        "ensemble.members=2",
    ];
    assert_eq!(scores(&two, &test, Level::Networks), top(&train(&without)));
    assert_eq!(at(Level::Networks), at(Level::Stage2));
    assert_ne!(scores(&two, &test, Level::Networks), at(Level::Stage2));
}

#[test]
fn a_level_that_the_model_lacks_is_an_error_naming_what_is_missing() {
    let predictor = train(&["ranker.enabled=false", "final_score.kind=product"]);
    for (level, missing) in [
        (Level::Stage1, "train.keep_stage1"),
        (Level::Ranker, "without ranker"),
        (Level::Calibrated, "without calibration"),
    ] {
        let query = Query {
            k: 5,
            level,
            ..Query::default()
        };
        for error in [
            predictor.check_level(level).unwrap_err(),
            predictor.predict("sign1", &query).unwrap_err(),
            predictor.predict_batch(&["sign1"], &query).unwrap_err(),
        ] {
            assert!(matches!(error, elias::Error::CannotPredict(_)), "{error:?}");
            assert!(error.to_string().contains(missing), "{error}");
        }
    }
    for level in [Level::Stage2, Level::Ensemble] {
        predictor.check_level(level).unwrap();
    }
}

#[test]
fn one_text_and_a_batch_get_the_same_answers() {
    let (predictor, test) = (train(&["ensemble.members=2"]), data(30, "test"));
    let batch = predictor.predict_batch(&test, 5).unwrap();
    for (text, expected) in test.texts().unwrap().iter().zip(&batch) {
        let found = predictor.predict(text, 5).unwrap();
        let labels = |answers: &[Prediction<'_>]| -> Vec<_> {
            answers.iter().map(|answer| answer.id).collect()
        };
        assert_eq!(labels(&found), labels(expected));
        for (found, expected) in found.iter().zip(expected) {
            assert!((found.score - expected.score).abs() < 1e-5);
        }
    }
}

#[test]
fn probabilities_rise_with_the_score_and_tell_right_from_wrong() {
    let (predictor, test) = (train(&[]), data(200, "test"));
    let (mut of_right, mut of_wrong) = (Vec::new(), Vec::new());
    let batch = predictor.predict_batch(&test, 10).unwrap();
    for (point, answers) in batch.iter().enumerate() {
        let truth = test.labels().row(point).0;
        let mut last = 1.0;
        for answer in answers {
            let probability = answer.probability.unwrap();
            assert_eq!(predictor.probability(answer.score), Some(probability));
            assert!((0.0..=last).contains(&probability));
            last = probability;
            if truth.contains(&answer.id.0) {
                of_right.push(probability);
            } else {
                of_wrong.push(probability);
            }
        }
    }
    let mean = |all: &[f32]| all.iter().sum::<f32>() / all.len() as f32;
    assert!(mean(&of_wrong) + 0.2 < mean(&of_right));
}

#[test]
fn data_too_small_to_hold_out_is_trained_on_whole_and_an_event_says_so() {
    let events = Mutex::new(Vec::new());
    let keep = |event: &Event| {
        events.lock().unwrap().push(event.clone());
        ControlFlow::Continue(())
    };
    let config = config(&["hold_out.min_points=41", "hold_out.folds=0"]);
    let trainer = Trainer::new(config).observer(&keep);
    let predictor = trainer.train(&train_data()).unwrap();
    let skipped = Event::CalibrationSkipped {
        n_points: 40,
        n_needed: 41,
    };
    assert!(events.into_inner().unwrap().contains(&skipped));
    assert!(predictor.history().contains(&skipped));
    assert_eq!(predictor.probability(1.0), None);
    let error = predictor.check_level(Level::Calibrated).unwrap_err();
    assert!(error.to_string().contains("without calibration"), "{error}");
}

#[test]
fn what_is_switched_off_is_not_there() {
    let plain = train(&["ranker.enabled=false", "final_score.kind=product"]);
    assert!(plain.check_level(Level::Ranker).is_err());
    assert!(plain.check_level(Level::Calibrated).is_err());
    assert_eq!(plain.probability(1.0), None);
    let calibrated = train(&["ranker.enabled=false"]);
    assert!(calibrated.check_level(Level::Ranker).is_err());
    calibrated.check_level(Level::Calibrated).unwrap();
    assert!(calibrated.probability(1.0).is_some());
    let none = config(&["ensemble.members=0"]);
    let refused = Trainer::new(none).train(&train_data());
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("ensemble.members"), "{message}");
}

/// Pairs of words, each pair once, with a random label: nothing to learn, all to memorise.
///
/// A word is in four points, so that a point that was not trained on looks as familiar as others.
fn memorisable_data() -> Dataset {
    let (n_points, n_words) = (1600, 800);
    let shuffled = |n_kinds: usize, purpose: &str| {
        let mut kinds: Vec<usize> = (0..n_points).map(|point| point % n_kinds).collect();
        Random::new(9, purpose, 0).shuffle(&mut kinds);
        kinds
    };
    let (seconds, labels) = (shuffled(n_words, "words"), shuffled(N_LABELS, "labels"));
    let pair = |point: usize| {
        let text = format!("word{} word{}", point % n_words, seconds[point]);
        (text, [format!("label {}", labels[point])])
    };
    Dataset::from_texts((0..n_points).map(pair))
}

#[test]
fn nothing_is_calibrated_on_points_that_a_member_was_trained_on() {
    let data = memorisable_data();
    let config = config(&[
        "features.min_df=1",
        "encoder.dim=64",
        "stage1.epochs=20",
        "stage2.epochs=5",
    ]);
    for refit in ["everything", "ranker", "nothing"] {
        let config = config.with_value(&format!("hold_out.refit={refit}"));
        let predictor = Trainer::new(config.unwrap()).train(&data).unwrap();
        // The final score has learned that nothing can be predicted, so this uses the member below it.
        let on_training = precision_at_1(&predictor, &data, Level::Ranker);
        assert!(on_training > 80.0, "P@1 of training points: {on_training}");

        // Chance is 2.5 %; the tree, fitted on the same 160 points, adds some.
        let on_held_out = predictor.history().iter().find_map(|event| match event {
            Event::CalibrationReady { precision_at_1, .. } => Some(*precision_at_1),
            _ => None,
        });
        assert!(on_held_out.unwrap() < 20.0, "held out: {on_held_out:?}");

        let answers = predictor.predict_batch(&data, 1).unwrap();
        let of_best = answers.iter().map(|best| best[0].probability.unwrap());
        let mean = of_best.sum::<f32>() / answers.len() as f32;
        assert!(mean < 0.25, "mean probability of memorised answers: {mean}");
    }
}
