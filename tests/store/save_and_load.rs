//! Saving and loading a model.

use super::*;
use elias::config::FinalScoreKind;
use elias::internals::{FileState, check_files, describe};
use elias::{Error, Event, Level, Query};

#[test]
fn a_loaded_model_gives_the_same_answers_and_is_saved_as_the_same_bytes() {
    let data = dataset(120);
    let predictor = train(&data);
    let first = temporary();
    predictor.save(first.path()).unwrap();
    let loaded = Predictor::load(first.path()).unwrap();
    assert_eq!(loaded.labels(), predictor.labels());
    assert_eq!(loaded.label_counts(), predictor.label_counts());
    assert_eq!(loaded.plan(), predictor.plan());
    let answers = predictor.predict_batch(&data, 10).unwrap();
    assert_eq!(loaded.predict_batch(&data, 10).unwrap(), answers);
    assert_eq!(loaded.predict("word3 both3", 5).unwrap().len(), 5);
    let checked = elias::Predictor::verify(first.path()).unwrap();
    assert_eq!(checked.predict_batch(&data, 10).unwrap(), answers);

    let second = temporary();
    loaded.save(second.path()).unwrap();
    assert_eq!(contents(first.path()), contents(second.path()));
}

#[test]
fn a_model_in_memory_answers_as_before_whatever_happens_to_its_files() {
    let data = dataset(120);
    let predictor = train(&data);
    let directory = temporary();
    predictor.save(directory.path()).unwrap();
    let loaded = Predictor::load_into_memory(directory.path(), u64::MAX).unwrap();
    for entry in fs::read_dir(directory.path()).unwrap() {
        // A mapped file that is cut short would end the process.
        fs::File::create(entry.unwrap().path()).unwrap();
    }
    let answers = predictor.predict_batch(&data, 10).unwrap();
    assert_eq!(loaded.predict_batch(&data, 10).unwrap(), answers);
    assert!(Predictor::load_into_memory(directory.path(), u64::MAX).is_err());
}

#[test]
fn weights_in_eight_bits_take_less_and_answer_as_they_did_in_memory() {
    let data = dataset(120);
    let sizes = ["full", "eight"].map(|precision| {
        let assignment = format!("train.precision={precision}");
        let config = config().with_value(&assignment).unwrap();
        let predictor = Trainer::new(config).train(&data).unwrap();
        let directory = temporary();
        predictor.save(directory.path()).unwrap();
        let loaded = elias::Predictor::verify(directory.path()).unwrap();
        assert_eq!(
            loaded.predict_batch(&data, 10).unwrap(),
            predictor.predict_batch(&data, 10).unwrap()
        );
        let described = describe(directory.path()).unwrap();
        ["classifiers-0", "encoder-0"].map(|part| {
            let mut files = described.files.iter();
            let file = files.find(|(name, _)| name.starts_with(part));
            file.unwrap().1.bytes
        })
    });
    let [full, eight] = sizes;
    assert!(eight[0] < full[0] && eight[1] < full[1], "{sizes:?}");
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
    let predictor = Trainer::new(one_versus_all).train(&data).unwrap();
    let directory = temporary();
    predictor.save(directory.path()).unwrap();
    let loaded = Predictor::load(directory.path()).unwrap();
    assert!(!loaded.takes_texts());
    assert_eq!(
        loaded.predict_batch(&data, 5).unwrap(),
        predictor.predict_batch(&data, 5).unwrap()
    );
    assert!(!describe(directory.path()).unwrap().takes_texts);
}

#[test]
fn the_manifest_alone_tells_what_the_model_is() {
    let data = dataset(120);
    let validation = dataset(40);
    let predictor = Trainer::new(config()).validation(&validation).train(&data);
    let predictor = predictor.unwrap();
    let directory = temporary();
    predictor.save(directory.path()).unwrap();
    let description = describe(directory.path()).unwrap();
    assert_eq!(description.version, 1);
    assert_eq!(&description.plan, predictor.plan());
    assert_eq!(description.data, DataSummary::of(&data));
    assert_eq!(description.history, predictor.history());
    assert!(description.takes_texts);
    let found = contents(directory.path());
    assert_eq!(description.files.len() + 1, found.len());
    for (name, record) in &description.files {
        assert_eq!(record.bytes, found[name].len() as u64);
    }
}

#[test]
fn history_and_data_summary_travel_with_the_model() {
    let (data, validation) = (dataset(120), dataset(40));
    let two = ["ensemble.members=2", "hold_out.refit=everything"].iter();
    let two = two.fold(config(), |config, one| config.with_value(one).unwrap());
    let trained = Trainer::new(two).validation(&validation).train(&data);
    let trained = trained.unwrap();
    assert_eq!(trained.training_data(), &DataSummary::of(&data));
    let has = |wanted: fn(&Event) -> bool| trained.history().iter().any(wanted);
    assert!(has(|event| matches!(event, Event::Epoch { .. })));
    assert!(has(|event| matches!(event, Event::Validation { .. })));
    assert!(has(|event| matches!(event, Event::AdjacencyReady { .. })));
    assert!(has(|event| matches!(event, Event::MemberStarted { .. })));
    assert!(has(|event| matches!(event, Event::CalibrationReady { .. })));

    let (first, second) = (temporary(), temporary());
    trained.save(first.path()).unwrap();
    let loaded = Predictor::load(first.path()).unwrap();
    assert_eq!(loaded.history(), trained.history());
    assert_eq!(loaded.training_data(), trained.training_data());
    loaded.save(second.path()).unwrap();
    assert!(contents(first.path()) == contents(second.path()));
}

#[test]
fn a_model_is_replaced_only_when_asked_and_without_leftovers() {
    let data = dataset(120);
    let directory = saved_model();
    let before = contents(directory.path());
    let other = train(&dataset(96));
    let error = other.save(directory.path()).unwrap_err();
    assert!(
        error.to_string().contains("holds a model already"),
        "{error}"
    );
    assert_eq!(contents(directory.path()), before);

    // Whoever mapped the old model keeps it.
    let old = Predictor::load(directory.path()).unwrap();
    other.replace(directory.path()).unwrap();
    let loaded = Predictor::load(directory.path()).unwrap();
    assert_eq!(loaded.plan(), other.plan());
    let files = describe(directory.path()).unwrap().files;
    assert_eq!(files.len() + 1, contents(directory.path()).len());
    let new = train(&data);
    let answers = new.predict_batch(&data, 5).unwrap();
    assert_eq!(old.predict_batch(&data, 5).unwrap(), answers);
}

#[test]
fn a_directory_that_cannot_be_written_is_named() {
    let parent = temporary();
    let in_the_way = parent.path().join("file");
    fs::write(&in_the_way, "mine").unwrap();
    let data = dataset(120);
    let error = train(&data).save(&in_the_way).unwrap_err();
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
    plain.final_score.kind = Some(FinalScoreKind::Product);
    let predictor = Trainer::new(plain).train(&data).unwrap();
    let directory = tempfile::tempdir().unwrap();
    predictor.save(directory.path()).unwrap();
    let manifest = fs::read_to_string(directory.path().join("manifest.json")).unwrap();
    assert!(!manifest.contains("ranker-0") && !manifest.contains("calibrator"));
    let loaded = Predictor::load(directory.path()).unwrap();
    assert_eq!(loaded.probability(0.5), None);
    assert_eq!(
        loaded.predict_batch(&data, 5).unwrap(),
        predictor.predict_batch(&data, 5).unwrap()
    );
}

#[test]
fn every_file_is_told_apart_by_how_it_is_damaged() {
    let directory = saved_model();
    let path = |name: &str| directory.path().join(name);
    let found = check_files(directory.path()).unwrap();
    assert!(found.is_whole() && found.unlisted_files.is_empty());
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
    assert_eq!(damaged.unlisted_files, ["notes.txt"]);
    let state = |name: &String| &damaged.files[name].state;
    assert_eq!(state(missing), &FileState::Missing);
    assert_eq!(state(longer), &FileState::WrongSize { found: n_longer });
    assert!(matches!(state(flipped), FileState::WrongHash { found } if found.len() == 64));
    assert!(matches!(state(folder), FileState::Unreadable(_)));
    let n_whole = damaged
        .files
        .values()
        .filter(|file| file.state == FileState::Whole)
        .count();
    assert_eq!(n_whole, names.len() - 4);

    fs::write(path("manifest.json"), "{}").unwrap();
    assert!(check_files(directory.path()).is_err());
}

#[test]
fn stage_1_is_kept_when_asked_and_answers_by_itself() {
    let data = dataset(120);
    let keeping = config().with_value("train.keep_stage1=true").unwrap();
    let predictor = Trainer::new(keeping.clone()).train(&data).unwrap();
    // The final model is the same with and without it.
    let plain = train(&data);
    let answers = predictor.predict_batch(&data, 10).unwrap();
    assert_eq!(answers, plain.predict_batch(&data, 10).unwrap());

    let stage1 = Query {
        k: 10,
        level: Level::Stage1,
        ..Query::default()
    };
    let directory = temporary();
    predictor.save(directory.path()).unwrap();
    let expected = predictor.predict_batch(&data, &stage1).unwrap();
    assert_ne!(expected, answers);
    let loaded = elias::Predictor::verify(directory.path()).unwrap();
    let again = temporary();
    loaded.save(again.path()).unwrap();
    assert_eq!(contents(directory.path()), contents(again.path()));
    assert_eq!(loaded.predict_batch(&data, &stage1).unwrap(), expected);

    // Its answers are those of a training that ends there.
    let one_stage = ["stage2.epochs=0", "ranker.enabled=false"].iter();
    let one_stage = one_stage.fold(keeping, |config, one| config.with_value(one).unwrap());
    let short = Trainer::new(one_stage).train(&data).unwrap();
    assert_eq!(short.predict_batch(&data, &stage1).unwrap(), expected);

    let error = plain.predict_batch(&data, &stage1).unwrap_err();
    assert!(error.to_string().contains("train.keep_stage1"), "{error}");
}
