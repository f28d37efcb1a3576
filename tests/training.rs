//! Training as a whole: tiny data, odd data, any number of threads, and a slice of real data.

use std::collections::BTreeMap;
use std::ops::ControlFlow;
use std::sync::Mutex;

use elias::config::Refit;
use elias::data::{CsrBuilder, CsrMatrix, LabelSet, ReadOptions};
use elias::{
    Config, Dataset, Error, Evaluation, Event, LabelId, Phase, Predictor, Result, Trainer,
};

use crate::on_threads;

/// A configuration for data of a few lines.
fn tiny(assignments: &[&str]) -> Config {
    let small = [
        "encoder.dim=16",
        "stage1.epochs=8",
        "stage2.epochs=8",
        "train.batch_size=8",
    ];
    let mut config = Config::default();
    for assignment in small.iter().chain(assignments) {
        config = config.with_value(assignment).unwrap();
    }
    config
}

/// Texts about fruit and vehicles, `n` of each.
fn two_topics(n: usize) -> Dataset {
    let colours = ["red", "green", "blue"];
    Dataset::from_texts((0..2 * n).map(|at| {
        let colour = colours[at / 2 % 3];
        match at % 2 {
            0 => (format!("ripe {colour} apple or pear"), ["fruit", colour]),
            _ => (format!("fast {colour} car or bike"), ["vehicle", colour]),
        }
    }))
}

fn train(config: Config, data: &Dataset) -> Result<Predictor> {
    Trainer::new(config).train(data)
}

fn best(predictor: &Predictor, text: &str) -> String {
    predictor.predict(text, 1).unwrap()[0].label.to_string()
}

#[test]
fn a_model_of_two_topics_tells_them_apart() {
    let predictor = train(tiny(&[]), &two_topics(30)).unwrap();
    assert_eq!(best(&predictor, "ripe apple"), "fruit");
    assert_eq!(best(&predictor, "a fast bike"), "vehicle");
}

#[test]
fn the_ranker_reads_the_order_of_words() {
    let data = Dataset::from_texts((0..120).map(|at| match at % 2 {
        0 => (format!("man bites dog {}", at / 2 % 7), ["strange"]),
        _ => (format!("dog bites man {}", at / 2 % 7), ["common"]),
    }));
    let predictor = train(tiny(&[]), &data).unwrap();
    assert_eq!(best(&predictor, "man bites dog"), "strange");
    assert_eq!(best(&predictor, "dog bites man"), "common");
    let explained = predictor.explain("man bites dog", 1).unwrap();
    let ranker = explained.answers[0].members[0].ranker.as_ref().unwrap();
    let names: Vec<&str> = ranker.words.iter().map(|(name, _)| &name[..]).collect();
    assert!(
        names.contains(&"man bites") && names.contains(&"bites dog"),
        "{names:?}"
    );

    let without = train(tiny(&["ablation.ranker_pairs=false"]), &data).unwrap();
    let answers = |text| -> Vec<f32> {
        let answers = without.predict(text, 2).unwrap();
        answers.iter().map(|answer| answer.score).collect()
    };
    assert_eq!(answers("man bites dog"), answers("dog bites man"));
}

#[test]
fn a_single_label_is_predicted_for_everything() {
    let data = Dataset::from_texts([("one text", ["only"]), ("another text", ["only"])]);
    let predictor = train(tiny(&[]), &data).unwrap();
    let answers = predictor.predict("text", 10).unwrap();
    assert_eq!(answers.len(), 1);
    assert!(answers[0].score.is_finite());
}

#[test]
fn more_clusters_than_labels_become_as_many_as_labels() {
    let predictor = train(tiny(&["index.n_clusters=64"]), &two_topics(30)).unwrap();
    assert_eq!(predictor.plan().n_clusters(), 5);
    assert_eq!(best(&predictor, "ripe apple"), "fruit");
    assert_eq!(predictor.predict("ripe apple", 10).unwrap().len(), 5);
}

#[test]
fn a_text_without_known_words_is_trained_on_and_answered() {
    let mut points: Vec<(&str, Vec<&str>)> = vec![("", vec!["fruit"]), ("zzz", vec!["vehicle"])];
    points.extend([("ripe apple", vec!["fruit"]), ("ripe pear", vec!["fruit"])]);
    let predictor = train(tiny(&[]), &Dataset::from_texts(points)).unwrap();
    for text in ["", "qqqq www", "\u{0}"] {
        let answers = predictor.predict(text, 2).unwrap();
        assert!(!answers.has_known_word, "{text:?}");
        assert_eq!(answers.len(), 2, "{text:?}");
        assert!(answers.iter().all(|answer| answer.score.is_finite()));
    }
    let answers = predictor.predict_batch(&["qqqq", "ripe qqqq"], 1).unwrap();
    let known: Vec<bool> = answers.iter().map(|of| of.has_known_word).collect();
    assert_eq!(known, [false, true]);
}

#[test]
fn a_test_label_that_training_never_saw_counts_as_missed() {
    let train_set = two_topics(30);
    let test = b"{\"text\": \"ripe apple\", \"labels\": [\"fruit\", \"unheard of\"]}\n";
    let options = ReadOptions {
        known_labels: Some(train_set.label_set()),
        ..ReadOptions::default()
    };
    let (test, summary) = options.read_bytes("test", test).unwrap();
    assert_eq!(summary.n_new_labels, 1);
    let trainer = Trainer::new(tiny(&[])).validation(&test);
    let predictor = trainer.train(&train_set).unwrap();
    let measured = predictor.evaluate(&test, &Evaluation::default()).unwrap();
    assert_eq!(measured.metrics.recall(100), Some(50.0));
}

#[test]
fn answers_that_a_filter_drops_do_not_count_as_unreliable() {
    let data = two_topics(60);
    let config = tiny(&["hold_out.min_points=5", "hold_out.near_duplicates=2"]);
    let predictor = train(config, &data).unwrap();
    let is_wrong = |&(point, label): &(usize, u32)| !data.labels().row(point).0.contains(&label);
    let all = (0..data.n_points()).flat_map(|point| (0..5).map(move |label| (point, label)));
    let wrong = all.filter(is_wrong);
    let evaluation = Evaluation {
        filter: wrong
            .map(|(point, label)| (point, LabelId(label)))
            .collect(),
        ..Evaluation::default()
    };
    let answers = |evaluation: &Evaluation<'_>| {
        let measured = predictor.evaluate(&data, evaluation).unwrap();
        let bins = measured.reliability.unwrap().bins;
        let count = |right: fn(f64) -> f64| -> f64 {
            let of_bin = |bin: &elias::metrics::ReliabilityBin| {
                bin.n_answers as f64 * right(bin.relevant_share)
            };
            bins.iter().map(of_bin).sum()
        };
        [count(|share| share), count(|share| 1.0 - share)].map(f64::round)
    };
    assert_eq!(answers(&Evaluation::default()), [240.0, 360.0]);
    assert_eq!(answers(&evaluation), [240.0, 0.0]);
}

#[test]
fn a_corpus_of_one_line_makes_a_model() {
    let data = Dataset::from_texts([("the only line there is", ["one", "two"])]);
    let predictor = train(tiny(&[]), &data).unwrap();
    assert_eq!(predictor.predict("line", 5).unwrap().len(), 2);
}

#[test]
fn data_without_labels_or_words_or_lines_is_refused_in_words() {
    let no_names: [&str; 0] = [];
    for (data, part_of_message) in [
        (Dataset::from_texts([("a text", no_names)]), "label"),
        (Dataset::from_texts([("...", ["a"])]), "word"),
        (Dataset::from_texts::<&str, [&str; 0], _>([]), "word"),
    ] {
        let Err(error) = train(tiny(&[]), &data) else {
            panic!("trained without {part_of_message}s");
        };
        let message = error.to_string();
        assert!(message.starts_with("cannot train"), "{message}");
        assert!(message.contains(part_of_message), "{message}");
    }
}

#[test]
fn models_are_the_same_bytes_on_one_and_on_many_threads() {
    let data = two_topics(50);
    let config = tiny(&["index.n_clusters=3", "train.batch_size=48"]);
    let bytes = |n_threads| {
        let directory = tempfile::tempdir().unwrap();
        let predictor = on_threads(n_threads, || train(config.clone(), &data).unwrap());
        predictor.save(directory.path()).unwrap();
        std::fs::read_dir(directory.path())
            .unwrap()
            .map(|entry| {
                let path = entry.unwrap().path();
                let name = path.file_name().unwrap().to_owned();
                (name, std::fs::read(path).unwrap())
            })
            .collect::<BTreeMap<_, _>>()
    };
    let one = bytes(1);
    let n_bytes: usize = one.values().map(Vec::len).sum();
    assert!(n_bytes > 800, "{n_bytes} bytes are compared");
    for n_threads in [2, 8] {
        assert!(
            bytes(n_threads) == one,
            "{n_threads} threads differ from one"
        );
    }
}

/// Keeps the events of a training and stops it after some steps.
struct Recorder {
    n_steps: usize,
    events: Mutex<Vec<Event>>,
}

impl Recorder {
    fn stopping_after(n_steps: usize) -> Self {
        Recorder {
            n_steps,
            events: Mutex::default(),
        }
    }

    fn train(&self, config: Config, data: &Dataset) -> Result<Predictor> {
        let observer = |event: &Event| {
            let mut events = self.events.lock().unwrap();
            events.push(event.clone());
            let is_step = |event: &&Event| matches!(event, Event::Step { .. });
            if events.iter().filter(is_step).count() >= self.n_steps {
                return ControlFlow::Break(());
            }
            ControlFlow::Continue(())
        };
        Trainer::new(config).observer(&observer).train(data)
    }

    fn events(self) -> Vec<Event> {
        self.events.into_inner().unwrap()
    }
}

#[test]
fn an_observer_can_stop_a_training() {
    let recorder = Recorder::stopping_after(3);
    let outcome = recorder.train(tiny(&[]), &two_topics(30));
    assert!(matches!(outcome, Err(Error::Stopped)));
    let seen = recorder.events();
    assert!(matches!(seen.last(), Some(Event::Step { step: 3, .. })));
}

#[test]
fn the_way_to_stage_2_reports_its_progress() {
    let recorder = Recorder::stopping_after(usize::MAX);
    let config = tiny(&[
        "ranker.enabled=false",
        "final_score.kind=product",
        "train.label_texts=off",
    ]);
    let data = two_topics(30);
    recorder.train(config, &data).unwrap();
    let seen = recorder.events();
    let phase = Phase::Adjacency;
    let n_steps = data.n_points();
    assert!(seen.contains(&Event::PhaseStarted { phase, n_steps }));
    let is_done = |event: &Event| matches!(event, Event::Step { phase: Phase::Adjacency, step, .. } if *step == n_steps);
    assert!(seen.iter().any(is_done));
}

#[test]
fn a_prepared_training_knows_how_much_there_is_to_do() {
    let recorder = Recorder::stopping_after(usize::MAX);
    let config = tiny(&[
        "train.label_texts=on",
        "hold_out.min_points=1",
        // Most of these texts are the same.
        "hold_out.near_duplicates=2",
        "hold_out.refit=everything",
    ]);
    let data = two_topics(200);
    let (n_points, refit) = {
        let trainer = Trainer::new(config.clone());
        let prepared = trainer.prepare(&data).unwrap();
        let workload = prepared.workload();
        (workload.points_per_epoch, workload.refit)
    };
    recorder.train(config, &data).unwrap();
    let n_steps = |event| match event {
        Event::PhaseStarted {
            phase: Phase::Stage2,
            n_steps,
        } => Some(n_steps),
        _ => None,
    };
    let of_passes: Vec<usize> = recorder.events().into_iter().filter_map(n_steps).collect();
    assert_eq!(of_passes.len(), 2);
    // Eight epochs in steps of eight points; the last pass has all points, and a third of the three known names.
    assert_eq!(of_passes[1], 8 * n_points.div_ceil(8));
    assert_eq!((n_points, refit), (401, Refit::Everything));
}

#[test]
fn one_against_all_scores_every_label_for_as_many_epochs_as_both_stages() {
    let recorder = Recorder::stopping_after(usize::MAX);
    let config = tiny(&[
        "index.mode=ova",
        "stage1.epochs=3",
        "hold_out.refit=nothing",
        "hold_out.folds=0",
    ]);
    let data = two_topics(30);
    let predictor = recorder.train(config, &data).unwrap();
    let labels_scored = |event| match event {
        Event::Epoch { labels_scored, .. } => Some(labels_scored),
        _ => None,
    };
    let seen = recorder.events().into_iter();
    let n_labels = data.label_set().len() as f64;
    let scored: Vec<f64> = seen.filter_map(labels_scored).collect();
    assert_eq!(scored, [n_labels; 3 + 8]);
    assert_eq!(best(&predictor, "ripe apple"), "fruit");
}

#[test]
fn a_slice_of_real_data_is_learnt() {
    let folder = std::path::Path::new(env!("CARGO_MANIFEST_DIR")).join("data/debian-small");
    let whole = Dataset::read(&folder).unwrap();
    // Every tenth point is for testing.
    let part = |wanted: fn(usize) -> bool| -> Vec<usize> {
        (0..2000).filter(|&point| wanted(point)).collect()
    };
    let train_set = whole.select(&part(|point| point % 10 != 0));
    let test_set = whole.select(&part(|point| point % 10 == 0));
    let config = tiny(&[
        "encoder.dim=64",
        "stage1.epochs=10",
        "stage2.epochs=10",
        "index.shortlist_size=500",
        "train.batch_size=32",
    ]);
    let predictor = train(config, &train_set).unwrap();
    let measured = predictor.evaluate(&test_set, &Evaluation::default());
    let precision = measured.unwrap().metrics.precision(1).unwrap();
    // Five seeds gave 16.5 to 18; the most frequent label for every text gives 4.5.
    assert!(precision > 12.0, "P@1 {precision}");
}

/// Sparse features: a column per word of a text.
fn as_features(data: &Dataset, words: &[&str]) -> CsrMatrix {
    let mut features = CsrBuilder::default();
    for text in data.texts().unwrap().iter() {
        let has = |word: &&str| text.split(' ').any(|other| other == *word);
        let columns = (0..words.len()).filter(|&column| has(&words[column]));
        features.push_row(columns.map(|column| (column as u32, 2.5)));
    }
    features.finish(words.len()).unwrap()
}

const WORDS: [&str; 10] = [
    "apple", "bike", "blue", "car", "fast", "green", "or", "pear", "red", "ripe",
];

fn two_topics_as_features(n: usize) -> Dataset {
    let data = two_topics(n);
    let features = as_features(&data, &WORDS);
    let names: LabelSet = data.label_set().names().iter().collect();
    Dataset::new(None, Some(features), data.labels().clone(), names, None).unwrap()
}

#[test]
fn a_matrix_is_ranked_as_the_data_set_that_holds_it() {
    let data = two_topics_as_features(30);
    let predictor = train(tiny(&[]), &data).unwrap();
    assert!(!predictor.takes_texts());
    let features = data.features().unwrap();
    let rankings = predictor.predict_batch(features, 5).unwrap();
    assert_eq!(rankings, predictor.predict_batch(&data, 5).unwrap());
    let named = predictor.predict_batch(features, 1).unwrap();
    assert_eq!((named[0][0].label, named[1][0].label), ("fruit", "vehicle"));
    // Rows are scaled to length 1: only the proportions count.
    let values = features.values().iter().map(|value| 2.0 * value).collect();
    let doubled = CsrMatrix::new(
        features.indptr().to_vec(),
        features.indices().to_vec(),
        values,
        features.n_cols(),
    );
    assert_eq!(
        predictor.predict_batch(&doubled.unwrap(), 5).unwrap(),
        rankings
    );
}

#[test]
fn texts_and_their_own_features_train_the_same_answers() {
    // Where every word has the same idf, normalised tf-idf rows do not depend on it.
    let texts = Dataset::from_texts((0..40).map(|at| {
        let topic = at % 4;
        (
            format!("word{topic} other{topic}"),
            [format!("topic {topic}")],
        )
    }));
    let words = [
        "other0", "other1", "other2", "other3", "word0", "word1", "word2", "word3",
    ];
    let features = as_features(&texts, &words);
    let names: LabelSet = texts.label_set().names().iter().collect();
    let data = Dataset::new(
        None,
        Some(features.clone()),
        texts.labels().clone(),
        names,
        None,
    );
    let by_features = train(tiny(&[]), &data.unwrap()).unwrap();
    let by_texts = train(tiny(&[]), &texts).unwrap();
    let expected = by_texts.predict_batch(texts.texts().unwrap(), 4).unwrap();
    for (found, expected) in by_features
        .predict_batch(&features, 4)
        .unwrap()
        .iter()
        .zip(&expected)
    {
        for (found, expected) in found.iter().zip(expected) {
            assert_eq!(found.label, expected.label);
            assert!((found.score - expected.score).abs() < 1e-4);
        }
    }
}

#[test]
fn inputs_that_the_model_does_not_read_are_errors() {
    let (texts, features) = (two_topics(30), two_topics_as_features(30));
    let of_texts = train(tiny(&[]), &texts).unwrap();
    let of_features = train(tiny(&[]), &features).unwrap();
    let check = |error: Error, part_of_message: &str| {
        assert!(matches!(error, Error::CannotPredict(_)), "{error:?}");
        assert!(error.to_string().contains(part_of_message), "{error}");
    };
    check(
        of_texts.predict_batch(&features, 1).unwrap_err(),
        "trained on texts",
    );
    check(
        of_texts
            .predict_batch(features.features().unwrap(), 1)
            .unwrap_err(),
        "trained on texts",
    );
    check(
        of_features.predict_batch(&texts, 1).unwrap_err(),
        "sparse features",
    );
    check(
        of_features.predict("ripe", 1).unwrap_err(),
        "sparse features",
    );
    let wide = CsrMatrix::new(vec![0, 1], vec![10], vec![1.0], 11).unwrap();
    check(
        of_features.predict_batch(&wide, 1).unwrap_err(),
        "11 feature columns",
    );
}

#[test]
fn validation_data_that_lacks_what_the_model_reads_is_an_error() {
    let (texts, features) = (two_topics(30), two_topics_as_features(30));
    for (data, validation, part_of_message) in [
        (&texts, &features, "trained on texts"),
        (&features, &texts, "sparse features"),
    ] {
        let trainer = Trainer::new(tiny(&[])).validation(validation);
        let error = trainer.train(data).err().expect("it must be refused");
        assert!(error.to_string().contains(part_of_message), "{error}");
        let directory = tempfile::tempdir().unwrap();
        let error = trainer.train_to(directory.path(), data).err();
        assert!(error.unwrap().to_string().contains(part_of_message));
    }
}
