//! ELIAS++ as a whole: ranker, calibration and ensemble on small data.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::sync::Mutex;

use elias::checkpoint::{DataSummary, Existing, SaveInfo, load, save};
use elias::config::Config;
use elias::data::Dataset;
use elias::ensemble::Merger;
use elias::ids::Scored;
use elias::metrics::{MetricsOptions, evaluate};
use elias::pipeline::Trainer;
use elias::predict::{Predictor, PredictorParts, Stage};
use elias::random::Random;
use elias::train::{Event, Observer, Silent};

use crate::on_threads;

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

/// A weak model: there is something left to do for the ranker.
fn config(assignments: &[&str]) -> Config {
    let small = [
        "encoder.dim=8",
        "index.n_clusters=4",
        "index.beam_size=3",
        "stage1.epochs=3",
        "stage2.epochs=3",
        "stage1.batch_size=32",
        "stage2.batch_size=32",
        "calibration.hold_out.min_points=20",
    ];
    let all = small.iter().chain(assignments);
    all.fold(Config::default(), |config, one| {
        config.with_value(one).unwrap()
    })
}

fn train(assignments: &[&str]) -> Predictor {
    let trainer = Trainer::new(config(assignments));
    trainer.train(&train_data(), None, &Silent).unwrap()
}

fn precision_at_1(predictor: &Predictor, test: &Dataset) -> f64 {
    let rankings = predictor.predict_dataset(test, 5).unwrap();
    let metrics = evaluate(test.labels(), &rankings, MetricsOptions::default());
    metrics.get("p@1").unwrap()
}

/// Everything a model is, as bytes.
fn saved(predictor: &Predictor) -> (tempfile::TempDir, BTreeMap<String, Vec<u8>>) {
    let directory = tempfile::tempdir().unwrap();
    let info = SaveInfo {
        history: Vec::new(),
        data: DataSummary::of(&train_data()),
        existing: Existing::Keep,
    };
    save(predictor, directory.path(), &info).unwrap();
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

    let loaded = load(directory.path()).unwrap();
    let test = data(60, "test");
    let answers = predictor.predict_dataset(&test, 10).unwrap();
    assert_eq!(loaded.predict_dataset(&test, 10).unwrap(), answers);
    assert_eq!(loaded.members().len(), 2);
    assert_eq!(loaded.calibration(), predictor.calibration());
    let score = answers[0][0].score;
    assert_eq!(loaded.probability(score), predictor.probability(score));
    assert!(saved(&loaded).1 == expected);
}

#[test]
fn the_members_of_an_ensemble_differ_and_its_scores_are_their_mean() {
    let predictor = train(&["ensemble.members=2"]);
    let test = data(60, "test");
    let together = predictor.predict_dataset(&test, 10).unwrap();
    let PredictorParts {
        vectorizer,
        pieces,
        label_set,
        label_counts,
        members,
        calibration,
        plan,
    } = predictor.into_parts();
    let numberings: Vec<_> = members
        .iter()
        .map(|member| member.model.numbering.clone())
        .collect();
    assert_ne!(numberings[0], numberings[1]);
    let mut vectorizer = vectorizer;
    let mut lists: Vec<Vec<Vec<Scored>>> = Vec::new();
    for member in members {
        let parts = PredictorParts {
            vectorizer: vectorizer.take(),
            pieces: pieces.clone(),
            label_set: label_set.clone(),
            label_counts: label_counts.clone(),
            members: vec![member],
            calibration: calibration.clone(),
            plan: plan.clone(),
        };
        let alone = Predictor::new(parts).unwrap();
        lists.push(alone.predict_dataset(&test, 100).unwrap());
        vectorizer = alone.into_parts().vectorizer;
    }
    let mut merged = Vec::new();
    for (point, answers) in together.iter().enumerate() {
        Merger::default().merge(&[&lists[0][point], &lists[1][point]], 10, &mut merged);
        assert_eq!(&merged, answers);
    }
}

#[test]
fn each_stage_answers_by_itself_and_the_ranker_helps_where_words_decide() {
    let (predictor, test) = (train(&[]), data(200, "test"));
    let full = predictor.predict_dataset(&test, 10).unwrap();
    let full_precision = precision_at_1(&predictor, &test);
    let predictor = predictor.at_stage(Stage::Stage2).unwrap();
    let by_model = precision_at_1(&predictor, &test);
    assert_eq!(predictor.probability(0.5), None);
    let predictor = predictor.at_stage(Stage::Ranker).unwrap();
    let by_ranker = precision_at_1(&predictor, &test);
    assert!(by_model < by_ranker, "{by_model} {by_ranker}");
    assert!(by_model <= full_precision, "{by_model} {full_precision}");
    // An ensemble of one is its member.
    let predictor = predictor.at_stage(Stage::Calibrated).unwrap();
    assert_eq!(predictor.predict_dataset(&test, 10).unwrap(), full);
}

#[test]
fn one_text_and_a_batch_get_the_same_answers() {
    let (predictor, test) = (train(&["ensemble.members=2"]), data(30, "test"));
    let batch = predictor.predict_dataset(&test, 5).unwrap();
    for (text, expected) in test.texts().unwrap().iter().zip(&batch) {
        let found = predictor.predict(text, 5).unwrap();
        let labels = |answers: &[Scored]| -> Vec<_> { answers.iter().map(|a| a.label).collect() };
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
    for (point, answers) in predictor
        .predict_dataset(&test, 10)
        .unwrap()
        .iter()
        .enumerate()
    {
        let truth = test.labels().row(point).0;
        let mut last = 1.0;
        for answer in answers {
            let probability = predictor.probability(answer.score).unwrap();
            assert!((0.0..=last).contains(&probability));
            last = probability;
            match truth.contains(&answer.label.0) {
                true => of_right.push(probability),
                false => of_wrong.push(probability),
            }
        }
    }
    let mean = |all: &[f32]| all.iter().sum::<f32>() / all.len() as f32;
    assert!(mean(&of_wrong) + 0.2 < mean(&of_right));
}

/// Keeps what is worth keeping.
struct Listening(Mutex<Vec<Event>>);

impl Observer for Listening {
    fn on_event(&self, event: &Event) -> ControlFlow<()> {
        self.0.lock().unwrap().push(event.clone());
        ControlFlow::Continue(())
    }
}

#[test]
fn data_too_small_to_hold_out_is_trained_on_whole_and_that_is_told() {
    let listening = Listening(Mutex::default());
    let config = config(&["calibration.hold_out.min_points=41"]);
    let predictor = Trainer::new(config)
        .train(&train_data(), None, &listening)
        .unwrap();
    let told = listening.0.into_inner().unwrap();
    let skipped = Event::CalibrationSkipped {
        n_points: 40,
        n_needed: 41,
    };
    assert!(told.contains(&skipped));
    assert_eq!(predictor.probability(1.0), None);
    let error = predictor.at_stage(Stage::Calibrated).err().unwrap();
    assert!(error.to_string().contains("without calibration"), "{error}");
}

#[test]
fn what_is_switched_off_is_not_there() {
    let predictor = train(&["ranker.enabled=false", "calibration.enabled=false"]);
    let member = &predictor.members()[0];
    assert!(member.ranker.is_none() && member.calibrator.is_none());
    assert!(predictor.at_stage(Stage::Ranker).is_err());
    let calibrated = train(&["ranker.enabled=false"]);
    assert!(calibrated.members()[0].calibrator.is_some());
    assert!(calibrated.probability(1.0).is_some());
    let none = config(&["ensemble.members=0"]);
    let refused = Trainer::new(none).train(&train_data(), None, &Silent);
    let message = refused.err().unwrap().to_string();
    assert!(message.contains("ensemble.members"), "{message}");
}
