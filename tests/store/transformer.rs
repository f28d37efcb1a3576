//! Models with a transformer: the directory is all they need, and an interrupted training ends in the same bytes.

use std::ops::ControlFlow;
use std::sync::atomic::{AtomicUsize, Ordering};

use super::*;
use crate::on_threads;
use elias::{Error, Event, Phase, Result};

/// The tiny golden transformer with word pieces for the words of [`dataset`].
fn pretrained(directory: &Path) {
    let golden = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/goldens/tiny-bert");
    for file in ["config.json", "model.safetensors"] {
        fs::copy(golden.join(file), directory.join(file)).unwrap();
    }
    let special = ["[PAD]", "[UNK]", "[CLS]", "[SEP]"].map(String::from);
    let words = |stem: &'static str, n: usize| (0..n).map(move |at| format!("{stem}{at}"));
    let labels = words("word", N_LABELS).chain(words("both", N_LABELS));
    let pieces: Vec<String> = special
        .into_iter()
        .chain(labels)
        .chain(words("noise", 50))
        .collect();
    fs::write(directory.join("vocab.txt"), pieces.join("\n")).unwrap();
}

fn transformer_config(pretrained: &Path, more: &[&str]) -> Config {
    let path = format!("encoder.pretrained={}", pretrained.display());
    let common = ["encoder.kind=transformer", &path, "encoder.max_len=16"];
    let all = common.iter().chain(&["rates.encoder=0.001"]).chain(more);
    all.fold(config(), |config, one| config.with_value(one).unwrap())
}

fn train_to(config: &Config, directory: &Path) -> Result<Predictor> {
    let trainer = Trainer::new(config.clone()).resume();
    trainer.train_to(directory, &dataset(120))
}

/// Trains this many steps and stops.
fn train_steps_to(config: &Config, directory: &Path, n_steps: usize) -> Result<Predictor> {
    let n_left = AtomicUsize::new(n_steps);
    let stop = |event: &Event| {
        let stages = [Phase::Stage1, Phase::Stage2];
        let is_step = matches!(event, Event::Step { phase, .. } if stages.contains(phase));
        if is_step && n_left.fetch_sub(1, Ordering::SeqCst) == 1 {
            return ControlFlow::Break(());
        }
        ControlFlow::Continue(())
    };
    let trainer = Trainer::new(config.clone()).resume().observer(&stop);
    trainer.train_to(directory, &dataset(120))
}

#[test]
fn a_model_with_a_transformer_is_the_same_on_any_number_of_threads_and_after_any_interruption() {
    for more in [
        &["encoder.projection=10"][..],
        &["encoder.trained_layers=1", "ablation.pooling=cls"],
        &["encoder.trained_layers=0", "encoder.projection=24"],
    ] {
        let (given, place) = (temporary(), temporary());
        pretrained(given.path());
        let config = transformer_config(given.path(), more);
        let whole = place.path().join("whole");
        on_threads(1, || train_to(&config, &whole)).unwrap();
        let expected = contents(&whole);

        let parts = place.path().join("parts");
        for n_steps in [2, 3] {
            let stopped = on_threads(2, || train_steps_to(&config, &parts, n_steps));
            assert!(matches!(stopped, Err(Error::Stopped)), "{more:?}");
        }
        let trained = on_threads(3, || train_to(&config, &parts)).unwrap();
        assert_eq!(contents(&parts), expected, "{more:?}");

        // Nothing of the pretrained transformer is read again.
        given.close().unwrap();
        let loaded = Predictor::load(&whole).unwrap();
        elias::Predictor::verify(&whole).unwrap();
        let test = dataset(30);
        let answers = trained.predict_batch(&test, 5).unwrap();
        assert_eq!(loaded.predict_batch(&test, 5).unwrap(), answers);
        let one = loaded.predict(test.texts().unwrap().get(3), 5).unwrap();
        for (one, listed) in one.iter().zip(&answers[3]) {
            assert!(
                (one.score - listed.score).abs() < 1e-4,
                "{one:?} {listed:?}"
            );
        }
    }
}

#[test]
fn another_transformer_does_not_continue_a_training() {
    let (given, place) = (temporary(), temporary());
    pretrained(given.path());
    let config = transformer_config(given.path(), &[]);
    assert!(train_steps_to(&config, place.path(), 2).is_err());
    let vocabulary = given.path().join("vocab.txt");
    let text = fs::read_to_string(&vocabulary).unwrap();
    fs::write(&vocabulary, text.replace("noise7\n", "noise77\n")).unwrap();
    let error = train_to(&config, place.path()).err().unwrap().to_string();
    assert!(
        error.contains("the pretrained encoder has changed"),
        "{error}"
    );
}

#[test]
fn what_a_transformer_cannot_use_is_an_error_before_training() {
    let given = temporary();
    pretrained(given.path());
    let error = |config: Config, data: &Dataset| {
        let trained = Trainer::new(config).train(data);
        trained.err().unwrap().to_string()
    };
    let (_, labels) = texts_and_labels(20);
    let features = Some(labels.clone());
    let without_texts = Dataset::new(None, features, labels, label_names(), None).unwrap();
    let config = transformer_config(given.path(), &[]);
    let found = error(config.clone(), &without_texts);
    assert!(found.contains("a transformer reads texts"), "{found}");
    let nowhere = config.with_value("encoder.pretrained=nowhere").unwrap();
    let found = error(nowhere, &dataset(20));
    assert!(found.contains("there is no such directory"), "{found}");
    let mut none = config.clone();
    none.encoder.pretrained = None;
    let found = error(none, &dataset(20));
    assert!(found.contains("encoder.pretrained"), "{found}");
    let long = config.with_value("encoder.max_len=100").unwrap();
    let found = error(long, &dataset(20));
    assert!(found.contains("32 positions"), "{found}");
    fs::remove_file(given.path().join("vocab.txt")).unwrap();
    let found = error(config, &dataset(20));
    assert!(
        found.contains("neither tokenizer.json nor vocab.txt"),
        "{found}"
    );
}

#[test]
fn features_beside_the_texts_of_a_transformer_are_taken_where_the_recipe_says_so() {
    let (given, place) = (temporary(), temporary());
    pretrained(given.path());
    let with_features = |n_points: usize| {
        let (starts, columns) = (0..=n_points).map(|at| (at, at as u32 % 7)).unzip();
        let columns: Vec<u32> = columns;
        let features = CsrMatrix::new(starts, columns[..n_points].to_vec(), vec![2.0; n_points], 7);
        dataset(n_points).with_features(features.unwrap()).unwrap()
    };
    let config = |takes: &str| transformer_config(given.path(), &[takes]);
    let train = |takes| Trainer::new(config(takes)).train_to(place.path(), &with_features(120));

    let trained = train("ablation.given_features=true").unwrap();
    assert_eq!(trained.plan().counts().n_features, 7);
    let loaded = Predictor::load(place.path()).unwrap();
    let test = with_features(30);
    let answers = trained.predict_batch(&test, 5).unwrap();
    assert_eq!(loaded.predict_batch(&test, 5).unwrap(), answers);
    let refused = [
        loaded.predict("word1 both1", 5).map(|_| ()),
        loaded
            .predict_batch(test.features().unwrap(), 5)
            .map(|_| ()),
        loaded.predict_batch(&dataset(30), 5).map(|_| ()),
    ];
    for answer in refused {
        let Err(Error::CannotPredict(problem)) = answer else {
            panic!("{answer:?}")
        };
        assert!(problem.contains("give it data that has both"), "{problem}");
    }

    drop((trained, loaded));
    fs::remove_dir_all(place.path()).unwrap();
    let of_texts = train("ablation.given_features=false").unwrap();
    assert_ne!(of_texts.plan().counts().n_features, 7);
    of_texts.predict("word1 both1", 5).unwrap();
}
