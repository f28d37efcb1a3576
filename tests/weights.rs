//! Weights of points and rejected labels: read, written, and what training makes of them.

use elias::data::{Columns, ConversionLoss, CsrBuilder, CsrMatrix, Format, Part, ReadOptions};
use elias::{Config, Dataset, Level, Predictor, Query, Trainer};

fn read(name: &str, content: &str) -> elias::Result<(Dataset, elias::data::Summary)> {
    ReadOptions::default().read_bytes(name, content.as_bytes())
}

const LINES: &str = r#"{"text": "red apple", "labels": ["fruit"], "not": ["car", "unheard of", 7], "weight": 2.5}
{"text": "fast", "labels": ["car"], "weight": null, "not": null}
{"text": "slow", "labels": ["car", "7"], "weight": 0}
"#;

#[test]
fn weights_and_rejected_labels_are_read_from_json_lines() {
    let (data, summary) = read("some.jsonl", LINES).unwrap();
    assert_eq!(data.weights(), Some(&[2.5, 1.0, 0.0][..]));
    let rejected = data.rejected().unwrap();
    let [car, seven] = ["car", "7"].map(|name| data.label_set().find(name).unwrap().0);
    assert_eq!(rejected.row(0).0, [car, seven]);
    assert_eq!((rejected.nnz(), summary.n_unknown_rejected), (2, 1));
    assert_eq!(data.label_set().find("unheard of"), None);
    let parts = data.select(&[2, 0]);
    assert_eq!(parts.weights(), Some(&[0.0, 2.5][..]));
    assert_eq!(parts.rejected().unwrap().row(1).0, [car, seven]);

    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("again.jsonl");
    data.write(Format::Jsonl, &path, Part::Train).unwrap();
    let (again, _) = ReadOptions::default().read(&path).unwrap();
    assert_eq!(again, data);
    let path = directory.path().join("again.txt");
    let losses = data
        .write(Format::FastText, &path, Part::Train)
        .unwrap()
        .losses;
    let lost = [ConversionLoss::Weights, ConversionLoss::Rejected(2)];
    assert!(lost.iter().all(|lost| losses.contains(lost)), "{losses:?}");
}

#[test]
fn weights_are_read_from_a_column_and_written_to_one() {
    let table = "id,weight,text,labels\n1,0.5,a,x\n2,,b,y\n3, 3 ,c,x\n";
    let (data, _) = read("some.csv", table).unwrap();
    assert_eq!(data.weights(), Some(&[0.5, 1.0, 3.0][..]));
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("again.tsv");
    data.write(Format::Tsv, &path, Part::Train).unwrap();
    assert_eq!(ReadOptions::default().read(&path).unwrap().0, data);
    // A column of texts that is called so is one.
    let text = ["weight".to_owned()];
    let columns = Columns {
        text: &text,
        ..Columns::default()
    };
    let options = ReadOptions {
        columns,
        ..ReadOptions::default()
    };
    let (data, _) = options
        .read_bytes("some.csv", b"weight,labels\n2,x\n")
        .unwrap();
    assert_eq!(data.weights(), None);
}

#[test]
fn weights_that_are_none_are_errors_that_name_their_line() {
    let check = |name: &str, content: &str, expected: &[&str]| {
        let error = read(name, content).unwrap_err().to_string();
        let names = |part: &&str| error.contains(*part);
        assert!(expected.iter().all(names), "{error}");
    };
    let line = |rest: &str| format!("{{\"text\": \"a\", \"labels\": [\"x\"]{rest}}}\n");
    check(
        "a.jsonl",
        &line(", \"weight\": -1"),
        &["a.jsonl:1", "the weight -1"],
    );
    check("a.jsonl", &line(", \"weight\": 1e39"), &["a.jsonl:1"]);
    check("a.jsonl", &line(", \"weight\": \"1\""), &["a.jsonl:1"]);
    check(
        "a.jsonl",
        &line(", \"weight\": 1, \"weight\": 1"),
        &["twice"],
    );
    check(
        "a.jsonl",
        &line(", \"not\": [\"x\"]"),
        &["\"x\" both accepted and rejected"],
    );
    check("a.jsonl", &line(", \"not\": [[]]"), &["a.jsonl:1"]);
    check(
        "a.csv",
        "text,labels,weight\na,x,1\nb,y,2 kg\n",
        &["a.csv:3", "2 kg", "another name"],
    );
    check(
        "a.csv",
        "text,labels,weight\na,x,inf\n",
        &["a.csv:2", "inf"],
    );
    let data = Dataset::from_texts([("a", ["x"])]);
    assert!(data.clone().with_weights(vec![]).is_err());
    assert!(data.clone().with_weights(vec![f32::NAN]).is_err());
    assert!(data.clone().with_rejected(rows(&[&[]], 2)).is_err());
    assert!(data.clone().with_rejected(rows(&[&[0]], 1)).is_err());
    let unset = data.clone().with_weights(vec![1.0]).unwrap();
    assert_eq!(unset.with_rejected(rows(&[&[]], 1)).unwrap(), data);
}

fn rows(rows: &[&[u32]], n_cols: usize) -> CsrMatrix {
    let mut builder = CsrBuilder::default();
    for row in rows {
        builder.push_row(row.iter().map(|&column| (column, 1.0)));
    }
    builder.finish(n_cols).unwrap()
}

/// Texts of two colours; those that are both have either label, `heavy` twice as seldom as `light`.
fn data() -> Dataset {
    Dataset::from_texts(
        (0..120)
            .map(|at| match at % 6 {
                0 => (format!("stone rock{}", at % 5), "heavy"),
                1 => (format!("feather down{}", at % 5), "light"),
                2 => (format!("thing object{}", at % 5), "heavy"),
                3 | 4 => (format!("thing object{}", at % 5), "light"),
                _ => (format!("word other{}", at % 5), "neither"),
            })
            .map(|(text, label)| (text, [label])),
    )
}

fn train(data: &Dataset, settings: &[&str]) -> Predictor {
    let small = [
        "encoder.dim=8",
        "index.n_clusters=2",
        "stage1.epochs=6",
        "stage2.epochs=6",
        "train.batch_size=16",
    ];
    let config = small
        .iter()
        .chain(settings)
        .fold(Config::default(), |config, one| {
            config.with_value(one).unwrap()
        });
    Trainer::new(config).train(data).unwrap()
}

/// The score of a label for the ambiguous text.
fn score(model: &Predictor, level: Level, label: &str) -> f32 {
    let query = Query {
        k: 3,
        level,
        ..Query::default()
    };
    let answers = model.predict("thing", query).unwrap();
    let found = answers.iter().find(|answer| answer.label == label);
    found.map_or(0.0, |answer| answer.score)
}

const LEVELS: [Level; 2] = [Level::Stage2, Level::Ranker];

#[test]
fn heavier_points_win_over_lighter_ones() {
    let data = data();
    let weights: Vec<f32> = (0..data.n_points())
        .map(|at| if at % 6 == 2 { 8.0 } else { 1.0 })
        .collect();
    let weighted = data.clone().with_weights(weights).unwrap();
    for settings in [&[][..], &["ablation.ranker_loss=logistic"]] {
        let [plain, heavy] = [&data, &weighted].map(|data| train(data, settings));
        for level in LEVELS {
            assert!(score(&plain, level, "heavy") < score(&plain, level, "light"));
            assert!(
                score(&heavy, level, "light") < score(&heavy, level, "heavy"),
                "{level}"
            );
        }
    }
}

#[test]
fn a_rejected_label_counts_less_for_texts_like_the_one_that_rejects_it() {
    let data = data();
    let heavy = data.label_set().find("heavy").unwrap();
    let rejecting: Vec<&[u32]> = (0..data.n_points())
        .map(|at| {
            if at % 6 > 2 && at % 6 < 5 {
                std::slice::from_ref(&heavy.0)
            } else {
                &[]
            }
        })
        .collect();
    let rejecting = data
        .clone()
        .with_rejected(rows(&rejecting, data.n_labels()))
        .unwrap();
    let [plain, rejecting] = [&data, &rejecting].map(|data| train(data, &[]));
    let score = |model| score(model, Level::Ensemble, "heavy");
    assert!(score(&rejecting) < score(&plain));
    let lowered = rejecting.predict("thing object3", 3).unwrap();
    assert!(
        lowered
            .iter()
            .all(|answer| answer.id != heavy || answer.score < 0.01),
        "{lowered:?}"
    );
}

#[test]
fn a_point_without_weight_teaches_what_one_without_labels_does() {
    let data = data();
    let weights = |weight: f32| {
        (0..data.n_points())
            .map(|at| if at % 7 == 0 { weight } else { 1.0 })
            .collect()
    };
    let weightless = data.clone().with_weights(weights(0.0)).unwrap();
    let labels = (0..data.n_points()).map(|at| {
        if at % 7 == 0 {
            &[][..]
        } else {
            data.labels().row(at).0
        }
    });
    let labels = rows(&labels.collect::<Vec<_>>(), data.n_labels());
    let texts = data.texts().cloned();
    let unlabelled = Dataset::new(texts, None, labels, data.label_set().clone(), None).unwrap();
    let heavy = unlabelled.clone().with_weights(weights(5.0)).unwrap();
    let models =
        [weightless, unlabelled, heavy].map(|data| train(&data, &["train.label_texts=off"]));
    for text in ["thing", "stone rock3", "word down1"] {
        let answers = models
            .each_ref()
            .map(|model| model.predict(text, 3).unwrap());
        assert_eq!(answers[0], answers[1]);
        assert_eq!(answers[2], answers[1]);
    }
}
