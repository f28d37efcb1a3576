//! Members of several models as one ensemble: compatibility, scores and probabilities.

use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::{Path, PathBuf};
use std::sync::atomic::{AtomicUsize, Ordering};

use elias::{
    Config, Dataset, Event, GivenHoldOut, LabelId, Level, Predictions, Predictor, Trainer,
};

use crate::random::Random;

const N_LABELS: usize = 30;

/// Texts in which one word determines each of two labels, among words that determine none.
fn data(n_points: usize, purpose: &str) -> Dataset {
    Dataset::from_texts((0..n_points).map(|point| {
        let mut random = Random::new(5, purpose, point as u64);
        let (first, second) = (point % N_LABELS, random.below(N_LABELS));
        let noise: Vec<String> = (0..8)
            .map(|_| format!("noise{}", random.below(80)))
            .collect();
        let mut labels = vec![format!("label {first:02}"), format!("label {second:02}")];
        labels.dedup();
        (
            format!("sign{first} sign{second} {}", noise.join(" ")),
            labels,
        )
    }))
}

fn config(settings: &[&str]) -> Config {
    let small = [
        "encoder.dim=8",
        "index.n_clusters=4",
        "index.beam_size=3",
        "stage1.epochs=3",
        "stage2.epochs=2",
        "train.batch_size=32",
        "hold_out.min_points=20",
    ];
    let all = small.iter().chain(settings);
    all.fold(Config::default(), |config, one| {
        config.with_value(one).unwrap()
    })
}

/// Models in a directory that is removed in the end.
struct Models(tempfile::TempDir);

impl Models {
    fn new() -> Self {
        Models(tempfile::tempdir().unwrap())
    }

    fn path(&self, name: &str) -> PathBuf {
        self.0.path().join(name)
    }

    fn train(&self, name: &str, settings: &[&str]) -> PathBuf {
        self.train_on(name, settings, &data(300, "train"))
    }

    fn train_on(&self, name: &str, settings: &[&str], data: &Dataset) -> PathBuf {
        let path = self.path(name);
        Trainer::new(config(settings))
            .train_to(&path, data)
            .unwrap();
        path
    }
}

/// All files of a model, by name.
fn contents(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).unwrap().map(|entry| entry.unwrap());
    entries
        .map(|entry| {
            let name = entry.file_name().into_string().unwrap();
            (name, fs::read(entry.path()).unwrap())
        })
        .collect()
}

fn seed_of_second_member(seed: u64) -> String {
    format!("train.seed={}", Random::new(seed, "member", 1).u64())
}

#[track_caller]
fn check_refused(models: &[PathBuf], expected: &str) {
    let message = Predictor::merge(models).err().unwrap().to_string();
    assert!(message.contains(expected), "{message}");
}

#[test]
fn without_calibration_a_merged_model_is_the_ensemble_that_one_training_makes() {
    let models = Models::new();
    let off = "final_score.kind=product";
    let first = models.train("first", &[off, "train.seed=9"]);
    let second = models.train("second", &[off, &seed_of_second_member(9)]);
    let both = models.train("both", &[off, "train.seed=9", "ensemble.members=2"]);
    let merged = models.path("merged");
    Predictor::merge(&[first, second])
        .unwrap()
        .save(&merged)
        .unwrap();
    assert!(contents(&merged) == contents(&both));
}

#[test]
fn scores_are_the_means_of_the_models_and_probabilities_are_none() {
    let models = Models::new();
    let test = data(60, "test");
    for settings in [
        &[][..],
        &["final_score.kind=tree"],
        &["ranker.enabled=false"],
    ] {
        let name = |number: usize| format!("{}-{number}", settings.concat());
        let paths: Vec<PathBuf> = (0..3)
            .map(|number| {
                let seed = format!("train.seed={number}");
                models.train(&name(number), &[settings, &[&seed]].concat())
            })
            .collect();
        let merged = Predictor::merge(&paths).unwrap();
        assert_eq!(merged.n_members(), 3);
        let alone: Vec<Predictor> = paths
            .iter()
            .map(|path| Predictor::load(path).unwrap())
            .collect();
        let alone: Vec<_> = alone
            .iter()
            .map(|model| model.predict_batch(&test, N_LABELS).unwrap())
            .collect();
        for (point, answers) in merged
            .predict_batch(&test, N_LABELS)
            .unwrap()
            .iter()
            .enumerate()
        {
            assert!(!answers.is_empty());
            for answer in answers {
                let score_of = |lists: &Vec<Predictions<'_>>| {
                    let mut listed = lists[point].iter();
                    let found = listed.find(|scored| scored.label == answer.label);
                    found.map_or(0.0, |scored| scored.score)
                };
                let mean = alone.iter().map(score_of).sum::<f32>() / 3.0;
                assert_eq!(answer.score, mean, "{settings:?} {answer:?}");
            }
        }
        // Each map from scores to probabilities was fitted on the scores of one model.
        assert_eq!(merged.probability(0.5), None);
        merged.check_level(Level::Calibrated).unwrap();
        let saved = models.path(&name(9));
        merged.save(&saved).unwrap();
        let loaded = Predictor::load(&saved).unwrap();
        assert_eq!(
            loaded.predict_batch(&test, 5).unwrap(),
            merged.predict_batch(&test, 5).unwrap()
        );
        assert_eq!(loaded.probability(0.5), None);
    }
}

#[test]
fn an_ensemble_can_be_merged_and_its_history_counts_all_trainings() {
    let models = Models::new();
    let two = models.train("two", &["ensemble.members=2", "stage2.epochs=3"]);
    let one = models.train(
        "one",
        &["train.seed=7", "hold_out.min_points=25", "hold_out.folds=0"],
    );
    let merged = Predictor::merge(&[two, one]).unwrap();
    assert_eq!(merged.n_members(), 3);
    assert_eq!(merged.plan().config().ensemble.members, 3);
    let runs: Vec<(usize, usize)> = merged
        .history()
        .iter()
        .filter_map(|event| match *event {
            Event::MemberStarted { member, n_members } => Some((member, n_members)),
            _ => None,
        })
        .collect();
    let expected: Vec<(usize, usize)> = (0..6).map(|run| (run, 6)).collect();
    assert_eq!(runs, expected);
}

#[test]
fn probabilities_are_fitted_on_points_that_no_member_was_trained_on() {
    let models = Models::new();
    let paths = [
        models.train("a", &["train.seed=1"]),
        models.train("b", &["train.seed=2"]),
    ];
    let mut merged = Predictor::merge(&paths).unwrap();
    let known = merged.labels().clone();
    let given = |data: &Dataset| {
        let texts = data.texts().unwrap().clone();
        Dataset::new(
            Some(texts),
            None,
            data.labels().clone(),
            known.clone(),
            None,
        )
        .unwrap()
    };
    // `data` names its labels in the order of the first points, so all sets number them in the same way.
    let held_out = given(&data(500, "held out"));
    let used = merged.calibrate(&held_out).unwrap();
    assert_eq!(used.n_points, 500);
    assert!((100..=500).contains(&used.n_used), "{used:?}");
    let last = merged.history().last().unwrap();
    assert!(matches!(last, Event::CalibrationReady { n_points, .. } if *n_points == used.n_used));

    // Probabilities are calibrated.
    let test = given(&data(600, "test"));
    let (mut expected, mut n_right, mut n_answers) = (0.0, 0, 0);
    for (point, answers) in merged.predict_batch(&test, 5).unwrap().iter().enumerate() {
        for answer in answers {
            expected += f64::from(answer.probability.unwrap());
            let LabelId(label) = answer.id;
            n_right += usize::from(test.labels().row(point).0.contains(&label));
            n_answers += 1;
        }
    }
    let difference = (expected - n_right as f64) / n_answers as f64;
    assert!(difference.abs() < 0.03, "{difference}");

    let saved = models.path("saved");
    merged.save(&saved).unwrap();
    let loaded = Predictor::load(&saved).unwrap();
    assert_eq!(loaded.probability(0.4), merged.probability(0.4));

    // Training points do not count, as a whole or one by one.
    let train = data(300, "train");
    let message = merged.calibrate(&given(&train)).unwrap_err().to_string();
    assert!(
        message.contains("what the model was trained on"),
        "{message}"
    );
    let some: Vec<usize> = (0..250).collect();
    let message = merged.calibrate(&train.select(&some)).unwrap_err();
    let message = message.to_string();
    assert!(message.contains("found 0 of 250 points"), "{message}");
    let few: Vec<usize> = (0..15).collect();
    let message = merged.calibrate(&held_out.select(&few)).unwrap_err();
    assert!(message.to_string().contains("at least 20"), "{message}");
    let others = Dataset::from_texts([("sign1", ["something else"])]);
    let message = merged.calibrate(&others).unwrap_err().to_string();
    assert!(message.contains("in another way"), "{message}");
    assert_eq!(loaded.probability(0.4), merged.probability(0.4));

    // Near duplicates are left out, and so are points without labels.
    let mixed = Dataset::from_texts((0..300).map(|point| {
        let from = if point < 100 { &train } else { &held_out };
        let labels: Vec<String> = (from.labels().row(point).0.iter())
            .filter(|_| point % 3 > 0 || point < 60)
            .map(|&label| known.name(LabelId(label)).to_owned())
            .collect();
        (from.texts().unwrap().get(point).to_owned(), labels)
    }));
    let GivenHoldOut { n_points, n_used } = merged.calibrate(&mixed).unwrap();
    assert_eq!(n_points, 300);
    assert!((50..=134).contains(&n_used), "{n_used}");
}

#[test]
fn models_that_do_not_fit_are_refused_by_name() {
    let models = Models::new();
    let first = models.train("first", &[]);
    let train = data(300, "train");
    let settings: [(&str, &[&str], &str); 8] = [
        ("dim", &["encoder.dim=4"], "encoder.dim is 4, not 8"),
        (
            "words",
            &["features.ngrams=2"],
            "features.ngrams is 2, not 1",
        ),
        (
            "clusters",
            &["index.n_clusters=2"],
            "index.n_clusters is 2, not 4",
        ),
        (
            "kind",
            &["final_score.kind=tree"],
            "final_score.kind is \"tree\", not \"boosted\"",
        ),
        (
            "off",
            &["final_score.kind=product"],
            "final_score.kind is \"product\", not \"boosted\"",
        ),
        (
            "ranker",
            &["ranker.enabled=false"],
            "ranker.enabled is false, not true",
        ),
        (
            "skipped",
            &["hold_out.min_points=100", "hold_out.folds=0"],
            "one of them is calibrated",
        ),
        (
            "refit",
            &["hold_out.refit=nothing"],
            "hold_out.refit = ranker",
        ),
    ];
    for (name, settings, expected) in settings {
        let other = models.train(name, &[settings, &["train.seed=2"]].concat());
        check_refused(&[first.clone(), other.clone()], expected);
        let path = other.display().to_string();
        let message = Predictor::merge(&[first.clone(), other])
            .err()
            .unwrap()
            .to_string();
        assert!(message.starts_with(&path), "{message}");
    }
    let points: Vec<usize> = (0..290).collect();
    let fewer = models.train_on("fewer", &[], &train.select(&points));
    check_refused(&[first.clone(), fewer], "it was trained on other data");
    let backwards: Vec<usize> = (0..300).rev().collect();
    let named = |order: &[usize], prefix: &str| {
        Dataset::from_texts(order.iter().map(|&point| {
            let labels: Vec<String> = train
                .label_names(point)
                .map(|name| format!("{prefix}{name}"))
                .collect();
            (train.texts().unwrap().get(point).to_owned(), labels)
        }))
    };
    let reordered = models.train_on("reordered", &[], &named(&backwards, ""));
    check_refused(&[first.clone(), reordered], "in another order");
    let renamed = models.train_on("renamed", &[], &named(&backwards, "my "));
    check_refused(&[first.clone(), renamed], "its label \"my label");

    check_refused(&[first.clone(), first.clone()], "it has the same member as");
    let copy = models.train("copy", &["stage1.epochs=3"]);
    check_refused(&[first.clone(), copy], "it has the same member as");
    check_refused(std::slice::from_ref(&first), "found 1 to merge");
    check_refused(&[], "found 0 to merge");
    check_refused(&[first.clone(), models.path("nothing")], "no such file");

    // Every byte is read before anything is merged.
    let second = models.train("second", &["train.seed=2"]);
    for name in contents(&second).keys() {
        let path = second.join(name);
        let whole = fs::read(&path).unwrap();
        let mut damaged = whole.clone();
        let middle = damaged.len() / 2;
        damaged[middle] ^= 1;
        fs::write(&path, &damaged).unwrap();
        assert!(
            Predictor::merge(&[first.clone(), second.clone()]).is_err(),
            "{name}"
        );
        fs::write(&path, &whole).unwrap();
    }
    Predictor::merge(&[first, second]).unwrap();
}

#[test]
fn members_trained_one_by_one_make_the_model_of_one_training() {
    let models = Models::new();
    let (train, validation) = (data(300, "train"), data(40, "validation"));
    let config = config(&["ensemble.members=2"]);
    let expected = models.path("expected");
    let trainer = Trainer::new(config.clone()).validation(&validation);
    trainer.train_to(&expected, &train).unwrap();

    // Two members, each trained again on all points; there is no fifth run.
    let places: Vec<PathBuf> = (0..5)
        .map(|run| models.path(&format!("run-{run}")))
        .collect();
    for (run, place) in places.iter().enumerate() {
        let prepared = trainer.prepare(&train).unwrap();
        prepared.train_run(place, run).unwrap();
        assert_eq!(place.join("checkpoint/members").exists(), run < 4);
    }
    // A run that is there is not trained again, and a training of other settings has its own.
    let n_steps = AtomicUsize::new(0);
    let count = |event: &Event| {
        if let Event::Step {
            n_points: 1..,
            loss,
            ..
        } = event
            && *loss > 0.0
        {
            n_steps.fetch_add(1, Ordering::Relaxed);
        }
        ControlFlow::Continue(())
    };
    let again = trainer.clone().resume().observer(&count);
    again
        .prepare(&train)
        .unwrap()
        .train_run(&places[1], 1)
        .unwrap();
    assert_eq!(n_steps.load(Ordering::Relaxed), 0);

    let out = models.path("out");
    let gathering = trainer.clone().take_runs_from(places.clone());
    gathering.observer(&count).train_to(&out, &train).unwrap();
    assert_eq!(n_steps.load(Ordering::Relaxed), 0);
    assert!(contents(&out) == contents(&expected));

    // Damaged or missing runs are trained.
    let kept = fs::read_dir(places[2].join("checkpoint/members")).unwrap();
    for member in kept {
        let manifest = member.unwrap().path().join("manifest.json");
        let text = fs::read_to_string(&manifest).unwrap();
        fs::write(&manifest, text.replace("elias", "alias")).unwrap();
    }
    let out = models.path("repaired");
    let some = trainer.clone().take_runs_from(places[1..].to_vec());
    some.observer(&count).train_to(&out, &train).unwrap();
    assert!(n_steps.load(Ordering::Relaxed) > 0);
    assert!(contents(&out) == contents(&expected));
}
