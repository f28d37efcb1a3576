//! What is saved is what is loaded.

use super::*;
use elias::checkpoint::{FileState, check_files, describe, load, verify};
use elias::error::Error;
use elias::predict::Stage;
use elias::train::{Event, Phase};

#[test]
fn a_loaded_model_gives_the_same_answers_and_is_saved_as_the_same_bytes() {
    let data = dataset(120);
    let predictor = train(&data);
    let first = temporary();
    save(&predictor, first.path(), &info(&data)).unwrap();
    let loaded = load(first.path()).unwrap();
    assert_eq!(loaded.label_set(), predictor.label_set());
    assert_eq!(loaded.label_counts(), predictor.label_counts());
    assert_eq!(loaded.plan(), predictor.plan());
    let answers = predictor.predict_dataset(&data, 10).unwrap();
    assert_eq!(loaded.predict_dataset(&data, 10).unwrap(), answers);
    assert_eq!(loaded.predict("word3 both3", 5).unwrap().len(), 5);
    let checked = verify(first.path()).unwrap();
    assert_eq!(checked.predict_dataset(&data, 10).unwrap(), answers);

    let second = temporary();
    save(&loaded, second.path(), &info(&data)).unwrap();
    assert_eq!(contents(first.path()), contents(second.path()));
}

#[test]
fn classifiers_in_sixteen_bits_take_less_and_answer_as_they_did_in_memory() {
    let data = dataset(120);
    let sizes = ["full", "half"].map(|precision| {
        let assignment = format!("train.label_precision={precision}");
        let config = config().with_value(&assignment).unwrap();
        let predictor = Trainer::new(config).train(&data, None, &Silent).unwrap();
        let directory = temporary();
        save(&predictor, directory.path(), &info(&data)).unwrap();
        let loaded = verify(directory.path()).unwrap();
        assert_eq!(
            loaded.predict_dataset(&data, 10).unwrap(),
            predictor.predict_dataset(&data, 10).unwrap()
        );
        let described = describe(directory.path()).unwrap();
        let mut files = described.files.into_iter();
        let file = files.find(|(name, _)| name.starts_with("classifiers-0"));
        file.unwrap().1.bytes
    });
    assert!(sizes[1] < sizes[0], "{sizes:?}");
}

#[test]
fn a_model_of_features_and_one_without_a_learned_index_survive() {
    let (_, labels) = texts_and_labels(60);
    let mut features = CsrBuilder::default();
    for point in 0..60 {
        let columns = labels.row(point).0.iter().copied();
        features.push_row(columns.map(|label| (label, 2.0)));
    }
    let features = features.finish(N_LABELS).unwrap();
    let data = Dataset::new(None, Some(features), labels, label_names(), None).unwrap();
    let one_versus_all = config().with_value("index.mode=ova").unwrap();
    let predictor = Trainer::new(one_versus_all)
        .train(&data, None, &Silent)
        .unwrap();
    let directory = temporary();
    save(&predictor, directory.path(), &info(&data)).unwrap();
    let loaded = load(directory.path()).unwrap();
    assert!(loaded.vectorizer().is_none());
    assert_eq!(
        loaded.predict_dataset(&data, 5).unwrap(),
        predictor.predict_dataset(&data, 5).unwrap()
    );
    assert!(!describe(directory.path()).unwrap().takes_texts);
}

#[test]
fn the_manifest_alone_tells_what_the_model_is() {
    let data = dataset(120);
    let predictor = train(&data);
    let history = vec![
        Event::AdjacencyReady {
            n_edges: 90,
            n_repaired: 1,
        },
        Event::Epoch {
            phase: Phase::Stage2,
            epoch: 2,
            loss: 0.1 + 0.2,
            classification_loss: 1.0 / 3.0,
            shortlist_loss: 1e-17,
            labels_scored: 12.0,
        },
        Event::Validation {
            phase: Phase::Stage2,
            epoch: 2,
            precision_at_1: 1.0 / 7.0,
            precision_at_5: 50.0,
            recall_at_100: 100.0,
        },
    ];
    let directory = temporary();
    let info = SaveInfo {
        history: history.clone(),
        ..info(&data)
    };
    save(&predictor, directory.path(), &info).unwrap();
    let description = describe(directory.path()).unwrap();
    assert_eq!(description.version, 1);
    assert_eq!(&description.plan, predictor.plan());
    assert_eq!(description.data, DataSummary::of(&data));
    assert_eq!(description.history, history);
    assert!(description.takes_texts);
    let found = contents(directory.path());
    assert_eq!(description.files.len() + 1, found.len());
    for (name, record) in &description.files {
        assert_eq!(record.bytes, found[name].len() as u64);
    }
}

#[test]
fn a_model_is_replaced_only_when_asked_and_without_leftovers() {
    let data = dataset(120);
    let directory = saved_model();
    let before = contents(directory.path());
    let other_data = dataset(96);
    let other = train(&other_data);
    let error = save(&other, directory.path(), &info(&other_data)).unwrap_err();
    assert!(
        error.to_string().contains("holds a model already"),
        "{error}"
    );
    assert_eq!(contents(directory.path()), before);

    // Whoever mapped the old model keeps it.
    let old = load(directory.path()).unwrap();
    let replace = SaveInfo {
        existing: Existing::Replace,
        ..info(&other_data)
    };
    save(&other, directory.path(), &replace).unwrap();
    let loaded = load(directory.path()).unwrap();
    assert_eq!(loaded.plan(), other.plan());
    let files = describe(directory.path()).unwrap().files;
    assert_eq!(files.len() + 1, contents(directory.path()).len());
    let answers = train(&data).predict_dataset(&data, 5).unwrap();
    assert_eq!(old.predict_dataset(&data, 5).unwrap(), answers);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let parent = temporary();
    let in_the_way = parent.path().join("file");
    fs::write(&in_the_way, "mine").unwrap();
    let data = dataset(120);
    let error = save(&train(&data), &in_the_way, &info(&data)).unwrap_err();
    assert!(matches!(error, Error::Io { .. }), "{error}");
    assert_eq!(fs::read(&in_the_way).unwrap(), b"mine");
}

#[test]
fn a_data_summary_tells_data_sets_apart() {
    let summary = DataSummary::of(&dataset(60));
    assert_eq!(summary, DataSummary::of(&dataset(60)));
    assert_ne!(summary.sha256, DataSummary::of(&dataset(61)).sha256);
    let (texts, labels) = texts_and_labels(60);
    let names = (0..N_LABELS).map(|idx| format!("other {idx}")).collect();
    let renamed = Dataset::new(Some(texts), None, labels, names, None).unwrap();
    assert_ne!(summary.sha256, DataSummary::of(&renamed).sha256);
}

#[test]
fn a_model_without_ranker_and_calibration_loads_from_a_manifest_that_knows_of_neither() {
    let data = dataset(120);
    let mut plain = config().with_value("ranker.enabled=false").unwrap();
    plain.calibration.enabled = false;
    let predictor = Trainer::new(plain).train(&data, None, &Silent).unwrap();
    let directory = tempfile::tempdir().unwrap();
    save(&predictor, directory.path(), &info(&data)).unwrap();
    let manifest = fs::read_to_string(directory.path().join("manifest.json")).unwrap();
    assert!(!manifest.contains("ranker-0") && !manifest.contains("calibrator"));
    let loaded = load(directory.path()).unwrap();
    assert_eq!(loaded.probability(0.5), None);
    assert_eq!(
        loaded.predict_dataset(&data, 5).unwrap(),
        predictor.predict_dataset(&data, 5).unwrap()
    );
}

#[test]
fn every_file_is_told_apart_by_how_it_is_damaged() {
    let directory = saved_model();
    let path = |name: &str| directory.path().join(name);
    let found = check_files(directory.path()).unwrap();
    assert!(found.is_whole() && found.strangers.is_empty());
    assert_eq!(
        found.files.len() + 1,
        contents(directory.path()).len(),
        "all but the manifest"
    );
    let names: Vec<&String> = found.files.keys().collect();
    let [missing, longer, flipped, folder, ..] = names[..] else {
        panic!("a model has more files than {names:?}");
    };
    fs::remove_file(path(missing)).unwrap();
    let bytes = fs::read(path(longer)).unwrap();
    fs::write(path(longer), [&bytes[..], b"x"].concat()).unwrap();
    let n_longer = bytes.len() as u64 + 1;
    let mut bytes = fs::read(path(flipped)).unwrap();
    bytes[0] ^= 1;
    fs::write(path(flipped), &bytes).unwrap();
    fs::remove_file(path(folder)).unwrap();
    fs::create_dir(path(folder)).unwrap();
    fs::write(path("notes.txt"), "mine").unwrap();

    let damaged = check_files(directory.path()).unwrap();
    assert!(!damaged.is_whole());
    assert_eq!(damaged.strangers, ["notes.txt"]);
    let state = |name: &String| &damaged.files[name].1;
    assert_eq!(state(missing), &FileState::Missing);
    assert_eq!(state(longer), &FileState::WrongSize { found: n_longer });
    assert!(matches!(state(flipped), FileState::WrongHash { found } if found.len() == 64));
    assert!(matches!(state(folder), FileState::Unreadable(_)));
    let n_whole = damaged.files.values();
    let n_whole = n_whole.filter(|(_, state)| *state == FileState::Whole);
    assert_eq!(n_whole.count(), names.len() - 4);

    fs::write(path("manifest.json"), "{}").unwrap();
    assert!(check_files(directory.path()).is_err());
}

#[test]
fn stage_1_is_kept_when_asked_and_answers_by_itself() {
    let data = dataset(120);
    let keeping = config().with_value("train.keep_stage1=true").unwrap();
    let predictor = Trainer::new(keeping.clone())
        .train(&data, None, &Silent)
        .unwrap();
    // The final model is the same with and without it.
    let plain = train(&data);
    let answers = predictor.predict_dataset(&data, 10).unwrap();
    assert_eq!(answers, plain.predict_dataset(&data, 10).unwrap());

    let directory = temporary();
    save(&predictor, directory.path(), &info(&data)).unwrap();
    let before = predictor.at_stage(Stage::Stage1).unwrap();
    let expected = before.predict_dataset(&data, 10).unwrap();
    assert_ne!(expected, answers);
    let loaded = verify(directory.path()).unwrap();
    let again = temporary();
    save(&loaded, again.path(), &info(&data)).unwrap();
    assert_eq!(contents(directory.path()), contents(again.path()));
    let loaded = loaded.at_stage(Stage::Stage1).unwrap();
    assert_eq!(loaded.predict_dataset(&data, 10).unwrap(), expected);

    // Its answers are those of a training that ends there.
    let one_stage = ["stage2.epochs=0", "ranker.enabled=false"].iter();
    let one_stage = one_stage.fold(keeping, |config, one| config.with_value(one).unwrap());
    let short = Trainer::new(one_stage).train(&data, None, &Silent).unwrap();
    let short = short.at_stage(Stage::Stage1).unwrap();
    assert_eq!(short.predict_dataset(&data, 10).unwrap(), expected);

    let error = plain.at_stage(Stage::Stage1).err().unwrap();
    assert!(error.to_string().contains("train.keep_stage1"), "{error}");
}

#[test]
fn every_label_has_one_edge_of_stage_1() {
    let directory = saved_model();
    let loaded = load(directory.path()).unwrap();
    let edges = loaded.members()[0].stage1.edges.as_ref().unwrap();
    assert_eq!(edges.n_clusters(), 4);
    let labels: Vec<u32> = edges.labels().iter().map(|label| label.0).collect();
    assert_eq!(labels, (0..N_LABELS as u32).collect::<Vec<_>>());
}
