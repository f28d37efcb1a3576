//! Labels that come and go: known by their texts alone, added, removed, merged.

use std::sync::OnceLock;

use elias::data::{DescribedLabels, LabelSet, Texts};
use elias::{Config, Dataset, LabelId, LabelLists, Level, Prediction, Predictor, Query, Trainer};

use crate::on_threads;
use crate::random::Random;

const N_LABELS: usize = 60;

/// Texts that have the names of their two labels, among words of which some are names of labels that no text has.
fn texts(n_points: usize) -> Vec<(String, Vec<String>)> {
    let point = |point: usize| {
        let mut random = Random::new(5, "labels", point as u64);
        let (first, second) = (point % N_LABELS, random.below(N_LABELS));
        let noise: Vec<String> = (0..6)
            .map(|_| format!("noise{}", random.below(80)))
            .collect();
        let other = format!("fresh{}", random.below(20));
        let mut labels = vec![format!("kind{first}x"), format!("kind{second}x")];
        labels.dedup();
        (
            format!("{} {other} {}", labels.join(" "), noise.join(" ")),
            labels,
        )
    };
    (0..n_points).map(point).collect()
}

fn described(labels: &[(&str, &str)]) -> DescribedLabels {
    let names: LabelSet = labels.iter().map(|label| label.0).collect();
    let texts: Texts = labels.iter().map(|label| label.1).collect();
    DescribedLabels::new(names, texts).unwrap()
}

fn more() -> DescribedLabels {
    described(&[
        (
            "id:7",
            "fresh7\nsomething else\na description without known words",
        ),
        ("id:8", "fresh8"),
        ("id:9", "nobody writes this"),
    ])
}

fn config() -> Config {
    let small = [
        "encoder.dim=8",
        "index.n_clusters=4",
        "index.beam_size=3",
        "stage1.epochs=3",
        "stage2.epochs=2",
        "train.batch_size=32",
        "hold_out.min_points=20",
    ];
    small.iter().fold(Config::default(), |config, one| {
        config.with_value(one).unwrap()
    })
}

fn train(more: DescribedLabels) -> Predictor {
    let data = Dataset::from_texts(texts(1500))
        .with_more_labels(more)
        .unwrap();
    Trainer::new(config()).train(&data).unwrap()
}

/// A model in a directory that stays until the tests end.
fn saved() -> &'static std::path::Path {
    static SAVED: OnceLock<tempfile::TempDir> = OnceLock::new();
    let saved = SAVED.get_or_init(|| {
        let directory = tempfile::tempdir().unwrap();
        train(more()).save(directory.path().join("model")).unwrap();
        directory
    });
    static PATH: OnceLock<std::path::PathBuf> = OnceLock::new();
    PATH.get_or_init(|| saved.path().join("model"))
}

pub(crate) fn load() -> Predictor {
    Predictor::load(saved()).unwrap()
}

fn names(answers: &[Prediction<'_>]) -> Vec<String> {
    answers
        .iter()
        .map(|answer| answer.label.to_owned())
        .collect()
}

pub(crate) const TEXT: &str = "kind3x fresh7 noise1 noise2";

#[test]
fn labels_without_a_training_text_are_answers_with_probabilities() {
    let model = load();
    assert_eq!((model.labels().len(), model.n_trained_labels()), (63, 60));
    let answers = model.predict(TEXT, 5).unwrap();
    let places = names(&answers);
    assert_eq!(
        places[..2]
            .iter()
            .filter(|name| *name == "id:7" || *name == "kind3x")
            .count(),
        2,
        "{places:?}"
    );
    let fresh = answers
        .iter()
        .find(|answer| answer.label == "id:7")
        .unwrap();
    assert!(fresh.probability.unwrap() > 0.3, "{fresh:?}");
    assert_eq!(model.label_counts()[fresh.id.idx()], 0);
    // The network alone does not know it.
    let query = Query {
        level: Level::Stage2,
        k: 63,
        ..Query::default()
    };
    assert!(!names(&model.predict(TEXT, query).unwrap()).contains(&"id:7".into()));
    // A text without its words does not have it.
    let other = model.predict("kind5x noise1 noise2", 3).unwrap();
    assert!(!names(&other).contains(&"id:7".into()));
}

#[test]
fn unused_labels_of_a_vocabulary_are_less_likely_than_those_added_later() {
    // Every fifth text has a label of its own, which its words do not tell, and none has a fresh one.
    let texts = texts(1500).into_iter().enumerate();
    let texts = texts.map(|(number, (text, mut labels))| {
        labels.extend((number % 5 == 0).then(|| format!("own{number}")));
        (text, labels)
    });
    let data = Dataset::from_texts(texts).with_more_labels(more()).unwrap();
    let mut model = Trainer::new(config()).train(&data).unwrap();
    model.add_labels(&described(&[("id:3", "fresh3")])).unwrap();
    let score = |model: &Predictor, word: &str| {
        let text = format!("kind3x {word} noise1 noise2");
        let answers = model.predict(&text, 2000).unwrap();
        let names = ["id:3", "id:8"];
        let answer = answers.iter().find(|answer| names.contains(&answer.label));
        answer.unwrap().score
    };
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    model.save(&path).unwrap();
    for model in [model, Predictor::load(&path).unwrap()] {
        let (unused, added) = (score(&model, "fresh8"), score(&model, "fresh3"));
        assert!(unused < 0.05, "{unused}");
        assert!(0.2 < added, "{added}");
    }
}

#[test]
fn known_labels_keep_their_scores() {
    let (with, without) = (load(), train(DescribedLabels::default()));
    for (text, _) in texts(40) {
        let mut answers = with.predict(&text, 63).unwrap();
        answers.labels.retain(|answer| answer.id.idx() < N_LABELS);
        let expected = without.predict(&text, 63).unwrap();
        assert_eq!(answers.len(), expected.len());
        for (answer, expected) in answers.iter().zip(&expected) {
            assert_eq!(
                (answer.label, answer.score),
                (expected.label, expected.score)
            );
        }
    }
}

#[test]
fn listed_labels_are_scored_whatever_the_text() {
    let model = load();
    let lists = LabelLists {
        allow: Some(["id:9", "id:8", "kind4x"].map(Into::into).into()),
        ..LabelLists::default()
    };
    let query = Query {
        k: 63,
        rules: model.label_rules(&lists).unwrap(),
        ..Query::default()
    };
    let mut answers = names(&model.predict(TEXT, &query).unwrap());
    answers.sort();
    assert_eq!(answers, ["id:8", "id:9", "kind4x"]);
    let lists = LabelLists {
        deny: vec!["id:7".into()],
        ..LabelLists::default()
    };
    let query = Query {
        rules: model.label_rules(&lists).unwrap(),
        ..Query::default()
    };
    assert!(!names(&model.predict(TEXT, &query).unwrap()).contains(&"id:7".into()));
}

#[test]
fn a_saved_model_answers_as_before_on_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let copies = [1, 3].map(|n_threads| {
        let path = directory.path().join(n_threads.to_string());
        on_threads(n_threads, || train(more())).save(&path).unwrap();
        path
    });
    let bytes = |path: &std::path::Path| {
        let mut files: Vec<_> = std::fs::read_dir(path)
            .unwrap()
            .map(|file| file.unwrap().path())
            .collect();
        files.sort();
        files
            .iter()
            .map(|file| std::fs::read(file).unwrap())
            .collect::<Vec<_>>()
    };
    assert!(bytes(&copies[0]) == bytes(&copies[1]));
    let model = train(more());
    for (text, _) in texts(10) {
        assert_eq!(
            model.predict(&text, 10).unwrap(),
            load().predict(&text, 10).unwrap()
        );
    }
}

#[test]
fn added_labels_answer_as_if_the_training_had_brought_them() {
    let mut model = train(DescribedLabels::default());
    assert_eq!(model.labels().len(), 60);
    model.add_labels(&described(&[("id:6", "fresh6")])).unwrap();
    model
        .add_labels(&described(&[("id:7", "fresh7\nsomething else")]))
        .unwrap();
    let answers = model.predict(TEXT, 2).unwrap();
    assert!(names(&answers).contains(&"id:7".into()), "{answers:?}");
    let directory = tempfile::tempdir().unwrap();
    model.save(directory.path().join("model")).unwrap();
    let loaded = Predictor::load(directory.path().join("model")).unwrap();
    assert_eq!(
        loaded.predict(TEXT, 9).unwrap(),
        model.predict(TEXT, 9).unwrap()
    );
    for known in ["kind3x", "id:6"] {
        let error = model
            .add_labels(&described(&[("id:1", "one"), (known, "x")]))
            .unwrap_err();
        assert!(error.to_string().contains(known), "{error}");
        assert_eq!(model.labels().find("id:1"), None);
    }
}

#[test]
fn removed_and_merged_labels_are_answers_no_more() {
    let mut model = load();
    let best = |model: &Predictor, text: &str| names(&model.predict(text, 4).unwrap());
    let counts = model.label_counts().to_vec();
    model
        .merge_labels(&[
            ("kind3x".into(), "id:8".into()),
            ("id:8".into(), "kind4x".into()),
        ])
        .unwrap();
    model.remove_labels(&["id:7".into()]).unwrap();
    let check = |model: &Predictor| {
        let answers = best(model, TEXT);
        assert_eq!(answers[0], "kind4x");
        for gone in ["kind3x", "id:7", "id:8"] {
            assert!(!answers.iter().any(|answer| answer == gone), "{answers:?}");
        }
        let [old, new] = ["kind3x", "kind4x"].map(|name| model.labels().find(name).unwrap().idx());
        assert_eq!(model.label_counts()[new], counts[old] + counts[new]);
        let lists = LabelLists {
            allow: Some(vec!["kind4x".into()]),
            ..LabelLists::default()
        };
        let query = Query {
            rules: model.label_rules(&lists).unwrap(),
            ..Query::default()
        };
        let score = model.predict(TEXT, &query).unwrap()[0].score;
        // The predecessors are candidates, too; they are among what a score is compared with.
        let unlisted = model.predict(TEXT, 1).unwrap()[0].score;
        assert!((score - unlisted).abs() < 0.01, "{score} {unlisted}");
    };
    check(&model);
    let directory = tempfile::tempdir().unwrap();
    model.save(directory.path().join("model")).unwrap();
    check(&Predictor::load(directory.path().join("model")).unwrap());
    // Their names are unknown, until they are added again.
    assert!(model.remove_labels(&["id:7".into()]).is_err());
    assert!(
        model
            .merge_labels(&[("kind1x".into(), "kind3x".into())])
            .is_err()
    );
    assert!(
        model
            .merge_labels(&[("kind1x".into(), "kind1x".into())])
            .is_err()
    );
    model.add_labels(&described(&[("id:7", "fresh7")])).unwrap();
    assert!(best(&model, TEXT).contains(&"id:7".into()));
}

#[test]
fn what_is_learned_shows_in_the_next_answer() {
    let mut model = load();
    let text = "kind5x noise11 noise12 noise13 noise14";
    let score = |model: &Predictor, label: LabelId| {
        let answers = model.predict(text, 63).unwrap();
        answers
            .iter()
            .find(|answer| answer.id == label)
            .map_or(0.0, |answer| answer.score)
    };
    let wanted = ["kind20x", "id:9"].map(|name| model.labels().find(name).unwrap());
    let before = wanted.map(|label| score(&model, label));
    let learned = [(text, ["kind20x", "id:9"]), (text, ["kind20x", "id:9"])];
    model.learn_data(&Dataset::from_texts(learned)).unwrap();
    let after = wanted.map(|label| score(&model, label));
    assert!(
        before[0] < after[0] && before[1] < after[1],
        "{before:?} {after:?}"
    );
    assert_eq!(model.label_counts()[wanted[1].idx()], 2);
    let directory = tempfile::tempdir().unwrap();
    model.save(directory.path().join("model")).unwrap();
    let loaded = Predictor::load(directory.path().join("model")).unwrap();
    assert_eq!(wanted.map(|label| score(&loaded, label)), after);
    let unknown = Dataset::from_texts([(text, ["kind20x", "unheard of"])]);
    let error = model.learn_data(&unknown).unwrap_err().to_string();
    assert!(error.contains("unheard of"), "{error}");
    assert_eq!(model.label_counts()[wanted[1].idx()], 2);
}
