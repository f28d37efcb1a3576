//! Vectors from outside: of words, which serve words that no training text has, and of texts, beside their words.

use std::path::Path;

use elias::data::{TextEmbeddings, Texts, WordVectors};
use elias::{Config, Dataset, Error, Inputs, Predictor, Trainer};

use crate::on_threads;

const FRUIT: [&str; 4] = ["apple", "pear", "cherry", "plum"];
const VEHICLES: [&str; 4] = ["car", "bike", "truck", "tram"];

fn config() -> Config {
    let small = "encoder.dim = 16\ntrain.batch_size = 8\nranker.enabled = false";
    let epochs = "[stage1]\nepochs = 8\n[stage2]\nepochs = 8\n[train]\nkeep_stage1 = true";
    let mut config = Config::from_toml(epochs).unwrap();
    for assignment in small.lines() {
        config = config.with_value(&assignment.replace(' ', "")).unwrap();
    }
    config
}

/// Texts about two fruits and two vehicles; the other words are only in the vectors.
fn topics() -> Dataset {
    Dataset::from_texts((0..80).map(|n| match n % 2 {
        0 => (format!("ripe {} {}", FRUIT[n / 2 % 2], n % 7), ["fruit"]),
        _ => (
            format!("fast {} {}", VEHICLES[n / 2 % 2], n % 7),
            ["vehicle"],
        ),
    }))
}

/// Vectors in which the words of a topic are alike; `quince` and `moped` are made of two parts.
fn word_vectors(directory: &Path) -> WordVectors {
    let mut lines = String::new();
    for (words, [x, y]) in [(FRUIT, [1.0, 0.1]), (VEHICLES, [-0.1, 1.0])] {
        for (at, word) in words.iter().enumerate() {
            let noise = 0.05 * at as f32;
            lines.push_str(&format!("{word} {} {} 0.3\n", x + noise, y - noise));
        }
    }
    let path = directory.join("words.vec");
    std::fs::write(&path, lines).unwrap();
    WordVectors::read(path).unwrap()
}

fn best(predictor: &Predictor, text: &str) -> String {
    predictor.predict(text, 1).unwrap()[0].label.to_owned()
}

#[test]
fn words_that_no_training_text_has_are_known_by_their_vectors() {
    let directory = tempfile::tempdir().unwrap();
    let data = topics().with_word_vectors(word_vectors(directory.path()));
    let predictor = Trainer::new(config()).train(&data).unwrap();
    for (text, expected) in [
        ("cherry", "fruit"),
        ("a Plum", "fruit"),
        ("truck", "vehicle"),
        ("tram", "vehicle"),
        // A compound of two words of the vectors.
        ("cherryplum", "fruit"),
    ] {
        assert_eq!(best(&predictor, text), expected, "{text}");
        let has_known_word = |model: &Predictor| model.predict(text, 1).unwrap().has_known_word;
        assert!(has_known_word(&predictor), "{text}");
    }
    let without = Trainer::new(config()).train(&topics()).unwrap();
    let answers = |text| without.predict(text, 2).unwrap();
    assert_eq!(answers("cherry"), answers("truck"));
    assert!(!answers("cherry").has_known_word);
}

#[test]
fn a_model_with_vectors_of_words_is_stored_whole_and_is_the_same_on_any_number_of_threads() {
    let directory = tempfile::tempdir().unwrap();
    let data = topics().with_word_vectors(word_vectors(directory.path()));
    let train = |name: &str, n_threads| {
        let out = directory.path().join(name);
        on_threads(n_threads, || Trainer::new(config()).train_to(&out, &data)).unwrap();
        let manifest = std::fs::read_to_string(out.join("manifest.json")).unwrap();
        (Predictor::load(&out).unwrap(), manifest)
    };
    let (one, manifest) = train("one", 1);
    let (many, manifest_of_many) = train("many", 8);
    assert_eq!(manifest, manifest_of_many);
    assert!(manifest.contains("\"n_parts\": 8"), "{manifest}");
    for text in ["cherry", "fast car", "unknown", "tram tram apple"] {
        let [first, other] = [&one, &many].map(|predictor| predictor.predict(text, 2).unwrap());
        assert_eq!(first, other, "{text}");
        let batch = one.predict_batch(&[text], 2).unwrap();
        assert_eq!(batch[0], first, "{text}");
    }
    one.check_files().unwrap();
}

#[test]
fn a_training_over_vectors_of_words_that_was_stopped_ends_in_the_same_bytes() {
    use std::ops::ControlFlow;
    let directory = tempfile::tempdir().unwrap();
    let data = topics().with_word_vectors(word_vectors(directory.path()));
    let [whole, parts] = ["whole", "parts"].map(|name| directory.path().join(name));
    Trainer::new(config()).train_to(&whole, &data).unwrap();
    let stop = |event: &elias::Event| match event {
        elias::Event::Step {
            phase: elias::Phase::Stage2,
            step: 30,
            ..
        } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    };
    let stopped = Trainer::new(config())
        .observer(&stop)
        .train_to(&parts, &data);
    assert!(matches!(stopped, Err(Error::Stopped)));
    Trainer::new(config())
        .resume()
        .train_to(&parts, &data)
        .unwrap();
    let manifest = |path: &Path| std::fs::read_to_string(path.join("manifest.json")).unwrap();
    assert_eq!(manifest(&whole), manifest(&parts));
}

/// Texts that say nothing, with embeddings that say everything.
fn embedded() -> (Dataset, TextEmbeddings) {
    let labels = ["fruit", "vehicle"];
    let points = (0..80).map(|n| (format!("text {}", n % 5), [labels[n % 2]]));
    let values = (0..80).flat_map(|n| {
        let noise = 0.1 * (n % 7) as f32;
        [5.0 - noise, 10.0 * (n % 2) as f32 + noise, 3.0]
    });
    let embeddings = TextEmbeddings::new(values.collect(), 3).unwrap();
    (Dataset::from_texts(points), embeddings)
}

#[test]
fn embeddings_of_texts_are_read_beside_the_words_and_must_come_with_every_text() {
    let (data, embeddings) = embedded();
    let data = data.with_embeddings(embeddings).unwrap();
    let directory = tempfile::tempdir().unwrap();
    let out = directory.path().join("model");
    Trainer::new(config()).train_to(&out, &data).unwrap();
    let predictor = Predictor::load(&out).unwrap();
    let texts: Texts = ["text 1", "text 1", "never seen"].into_iter().collect();
    let given = TextEmbeddings::new(vec![5.0, 0.2, 3.0, 4.9, 9.9, 3.0, 5.0, 10.0, 3.0], 3).unwrap();
    let answers = predictor.predict_batch(Inputs::Embedded(&texts, &given), 1);
    let answers = answers.unwrap();
    let best: Vec<&str> = answers.iter().map(|answers| answers[0].label).collect();
    assert_eq!(best, ["fruit", "vehicle", "vehicle"]);
    // An embedding says something even where no word does.
    assert!(answers[2].has_known_word);
    let measured = predictor
        .evaluate(&data, &elias::Evaluation::default())
        .unwrap();
    assert!(measured.metrics.n_points() == 80);

    let refused = |result: elias::Result<Vec<_>>, expected: &str| {
        let error = result.unwrap_err().to_string();
        assert!(error.contains(expected), "{error}");
    };
    refused(
        predictor.predict_batch(&texts, 1),
        "give them with the texts",
    );
    refused(
        predictor.predict("text", 1).map(|one| vec![one]),
        "give them with the texts",
    );
    let other = TextEmbeddings::new(vec![1.0; 6], 2).unwrap();
    let inputs = Inputs::Embedded(&texts, &other);
    refused(
        predictor.predict_batch(inputs, 1),
        "have 2 values, the model was trained with 3",
    );
    let inputs = Inputs::Embedded(&texts, &other);
    let without = Trainer::new(config()).train(&topics()).unwrap();
    refused(
        without.predict_batch(inputs, 1),
        "the model was trained without",
    );
}

#[test]
fn vectors_that_do_not_fit_the_data_are_refused() {
    let (data, embeddings) = embedded();
    let few = embeddings.select(&[0, 1]);
    let error = data.clone().with_embeddings(few).unwrap_err().to_string();
    assert!(
        error.contains("2 embeddings of texts for 80 points"),
        "{error}"
    );
    let directory = tempfile::tempdir().unwrap();
    let both = data.with_embeddings(embeddings).unwrap();
    let both = both.with_word_vectors(word_vectors(directory.path()));
    let error = Trainer::new(config()).train(&both).map(|_| ()).unwrap_err();
    assert!(error.to_string().contains("give one of them"), "{error}");
}

#[test]
fn labels_with_names_are_learned_beside_embeddings() {
    let (data, embeddings) = embedded();
    let names: Texts = ["fruit you can eat", "vehicle to drive"]
        .into_iter()
        .collect();
    let data = data.with_label_texts(names).unwrap();
    let data = data.with_embeddings(embeddings).unwrap();
    let config = config().with_value("train.label_texts=on").unwrap();
    let predictor = Trainer::new(config).train(&data).unwrap();
    let texts: Texts = ["text 1"].into_iter().collect();
    let given = TextEmbeddings::new(vec![5.0, 9.9, 3.0], 3).unwrap();
    let answers = predictor
        .predict_batch(Inputs::Embedded(&texts, &given), 1)
        .unwrap();
    assert_eq!(answers[0][0].label, "vehicle");
}
