//! Labels that come and go: known by their texts alone, added, removed, merged; and texts that are learned from.

use std::sync::OnceLock;

use elias::data::{DescribedLabels, LabelSet, Texts};
use elias::{
    Config, Correction, Dataset, Error, LabelId, LabelLists, Learner, Level, Prediction, Predictor,
    Query, Trainer,
};

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

fn load() -> Predictor {
    Predictor::load(saved()).unwrap()
}

fn names(answers: &[Prediction<'_>]) -> Vec<String> {
    answers
        .iter()
        .map(|answer| answer.label.to_owned())
        .collect()
}

const TEXT: &str = "kind3x fresh7 noise1 noise2";

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

/// A copy of the model, and a correction of it.
fn copied() -> (tempfile::TempDir, std::path::PathBuf, Correction) {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("model");
    load().save(&path).unwrap();
    let correction = Correction {
        text: TEXT.into(),
        labels: vec!["kind30x".into(), "id:9".into()],
        not: vec!["kind3x".into()],
    };
    (directory, path, correction)
}

fn journal(model: &std::path::Path) -> std::path::PathBuf {
    let mut files = std::fs::read_dir(model)
        .unwrap()
        .map(|file| file.unwrap().path());
    let is_journal = |path: &std::path::PathBuf| path.extension().is_some_and(|end| end == "jsonl");
    files.find(is_journal).unwrap()
}

#[test]
fn corrections_are_heeded_by_whoever_loads_the_model() {
    let (_directory, path, correction) = copied();
    let score = |model: &Predictor, label: &str| {
        let answers = model.predict(TEXT, 63).unwrap();
        let answer = answers.iter().find(|answer| answer.label == label);
        answer.map_or(0.0, |answer| answer.score)
    };
    let before = Predictor::load(&path).unwrap();
    Predictor::learn_in(&path, std::slice::from_ref(&correction)).unwrap();
    let after = Predictor::load(&path).unwrap();
    assert!(score(&before, "kind3x") > 0.1);
    assert!(score(&after, "kind3x") < 0.001);
    for label in ["kind30x", "id:9"] {
        assert!(score(&before, label) < score(&after, label), "{label}");
    }
    // Other texts are answered as before.
    let other = "kind40x noise70 noise71";
    assert_eq!(
        before.predict(other, 1).unwrap()[0].label,
        after.predict(other, 1).unwrap()[0].label
    );
    // Saving makes them part of the files, and ends the journal.
    let answers = after.predict(TEXT, 63).unwrap();
    let kept = journal(&path);
    after.replace(&path).unwrap();
    assert!(!kept.exists());
    assert_eq!(
        Predictor::load(&path).unwrap().predict(TEXT, 63).unwrap(),
        answers
    );
    // What cannot be learned is not kept.
    let unknown = Correction {
        labels: vec!["unheard of".into()],
        ..correction
    };
    assert!(Predictor::learn_in(&path, &[unknown]).is_err());
    assert!(
        std::fs::read_dir(&path)
            .unwrap()
            .all(|file| file.unwrap().path() != kept)
    );
}

#[test]
fn a_damaged_journal_is_an_error_that_names_the_line() {
    let (_directory, path, correction) = copied();
    for n in 0..4 {
        let text = format!("{TEXT} noise{n}");
        Predictor::learn_in(
            &path,
            &[Correction {
                text,
                ..correction.clone()
            }],
        )
        .unwrap();
    }
    let journal = journal(&path);
    let whole = std::fs::read_to_string(&journal).unwrap();
    let lines: Vec<&str> = whole.split_inclusive('\n').collect();
    assert_eq!(lines.len(), 4);
    let check = |text: String, line: usize| {
        std::fs::write(&journal, &text).unwrap();
        let error = Predictor::load(&path).err().unwrap().to_string();
        assert!(error.contains(&format!("line {line} ")), "{error}");
        assert!(Predictor::learn_in(&path, std::slice::from_ref(&correction)).is_err());
        assert_eq!(std::fs::read_to_string(&journal).unwrap(), text);
    };
    let flipped = lines[1].replace("noise1", "noise7");
    check([lines[0], &flipped, lines[2]].concat(), 2);
    check([lines[0], lines[0], lines[1]].concat(), 2);
    check([lines[1], lines[0]].concat(), 1);
    check([lines[0], lines[2], lines[3]].concat(), 2);
    check([lines[0], &lines[1][30..], lines[2]].concat(), 2);
    check(["\n", lines[0]].concat(), 1);
    // A correction of which nobody was told: the program died while it was written.
    for n_bytes in [1, 20, lines[3].len() - 1] {
        std::fs::write(
            &journal,
            [lines[0], lines[1], lines[2], &lines[3][..n_bytes]].concat(),
        )
        .unwrap();
        assert!(Predictor::load(&path).is_ok());
    }
    Predictor::learn_in(&path, std::slice::from_ref(&correction)).unwrap();
    let again = std::fs::read_to_string(&journal).unwrap();
    assert!(again.starts_with(&lines[..3].concat()) && again.matches('\n').count() == 4);
    Predictor::load(&path).unwrap();
}

fn corrections(numbers: std::ops::Range<usize>) -> Vec<Correction> {
    let correction = |number: usize| Correction {
        text: format!("kind{}x noise{number} noise{}", number % 40, number + 3),
        labels: vec![format!("kind{}x", (number + 1) % 40)],
        not: (number % 3 == 0)
            .then(|| format!("kind{}x", number % 40))
            .into_iter()
            .collect(),
    };
    numbers.map(correction).collect()
}

/// Answers to the texts of corrections, and to others.
fn all_answers(model: &Predictor) -> Vec<Vec<(String, u32)>> {
    let texts: Vec<String> = corrections(0..60).into_iter().map(|of| of.text).collect();
    let answers = model.predict_batch(&texts, 63).unwrap();
    let bits = |answer: &Prediction<'_>| (answer.label.to_owned(), answer.score.to_bits());
    let rows = answers.iter().map(|row| row.iter().map(bits).collect());
    rows.collect()
}

#[test]
fn corrections_learned_one_by_one_together_or_from_the_journal_give_the_same_bits() {
    let (_directory, path, _) = copied();
    let untouched = Predictor::load(&path).unwrap();
    let before = all_answers(&untouched);
    let mut together = untouched.clone();
    together.learn(&corrections(0..40)).unwrap();
    let mut one_by_one = untouched.clone();
    for correction in corrections(0..40) {
        one_by_one.learn(&[correction]).unwrap();
    }
    let mut learner = Learner::load(&path).unwrap();
    for start in (0..40).step_by(8) {
        learner.learn(&corrections(start..start + 8)).unwrap();
    }
    let expected = all_answers(&together);
    assert_ne!(expected, before);
    assert_eq!(all_answers(&untouched), before);
    assert_eq!(all_answers(&one_by_one), expected);
    assert_eq!(all_answers(learner.predictor()), expected);
    assert_eq!(all_answers(&Predictor::load(&path).unwrap()), expected);
    let saved = path.with_file_name("saved");
    one_by_one.save(&saved).unwrap();
    assert_eq!(all_answers(&Predictor::load(&saved).unwrap()), expected);
    assert_eq!(learner.predictor().learned().len(), 40);
    let learned = learner.predictor().learned().iter();
    let learned: Vec<Correction> = learned.map(|of| (**of).clone()).collect();
    assert_eq!(learned, corrections(0..40));
}

#[test]
fn learners_of_one_directory_learn_what_the_others_do() {
    let (_directory, path, _) = copied();
    let mut first = Learner::load(&path).unwrap();
    let mut second = Learner::load(&path).unwrap();
    assert!(!second.follow().unwrap());
    first.learn(&corrections(0..5)).unwrap();
    second.learn(&corrections(5..9)).unwrap();
    assert!(first.follow().unwrap() && !first.follow().unwrap());
    let loaded = all_answers(&Predictor::load(&path).unwrap());
    for learner in [&first, &second] {
        assert_eq!(learner.predictor().learned().len(), 9);
        assert_eq!(all_answers(learner.predictor()), loaded);
    }
    // A damaged line is not learned, and what was learned stays.
    let journal = journal(&path);
    let whole = std::fs::read(&journal).unwrap();
    std::fs::write(&journal, [&whole[..], b"0123456789abcdef {}\n"].concat()).unwrap();
    assert!(first.follow().is_err());
    assert!(first.learn(&corrections(9..10)).is_err());
    assert_eq!(all_answers(first.predictor()), loaded);
    std::fs::write(&journal, &whole[..whole.len() - 9]).unwrap();
    assert!(first.learn(&corrections(9..10)).is_err());
    std::fs::write(&journal, &whole).unwrap();
    first.learn(&corrections(9..10)).unwrap();
    assert_eq!(Predictor::load(&path).unwrap().learned().len(), 10);
}

#[test]
fn a_learner_of_a_replaced_model_learns_no_more() {
    let (_directory, path, correction) = copied();
    let mut learner = Learner::load(&path).unwrap();
    let mut changed = Predictor::load(&path).unwrap();
    changed.remove_labels(&["kind30x".into()]).unwrap();
    changed.replace(&path).unwrap();
    let error = learner.learn(std::slice::from_ref(&correction));
    assert!(matches!(error, Err(Error::InUse { .. })), "{error:?}");
    assert_eq!(Predictor::load(&path).unwrap().learned().len(), 0);
}

#[test]
fn corrections_that_say_nothing_or_contradict_themselves_are_refused() {
    let mut model = load();
    let mut check = |labels: &[&str], not: &[&str], expected: &str| {
        let names = |names: &[&str]| names.iter().map(|&name| name.to_owned()).collect();
        let correction = Correction {
            text: TEXT.into(),
            labels: names(labels),
            not: names(not),
        };
        let error = model.check_corrections(std::slice::from_ref(&correction));
        let error = error.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
        assert!(model.learn(&[correction]).is_err());
    };
    check(&[], &[], "neither accepted nor rejected");
    check(&["kind3x"], &["kind4x", "kind3x"], "among the accepted");
    check(&["kind3x"], &["unheard of"], "unheard of");
}
