//! Conventions of counting: filters and propensities of the data set, for a model as for its predictions.

use std::path::Path;

use serde_json::Value;

use crate::command::{Ran, run, write};

const WORDS: [(&str, &str); 4] = [
    ("ripe apple", "fruit"),
    ("fast car", "vehicle"),
    ("old oak", "tree"),
    ("wet fish", "animal"),
];

/// A directory in the layout of the XC Repository; some training points have no labels, and a label of each test point is
/// filtered.
fn data(dir: &Path) -> String {
    let (mut train, mut test, mut labels, mut filter) =
        (String::new(), String::new(), String::new(), String::new());
    let line = |title: &str, content: &str, targets: &str| {
        format!(
            "{{\"uid\": \"u\", \"title\": \"{title}\", \"content\": \"{content}\", \"target_ind\": {targets}}}\n"
        )
    };
    for (at, (words, name)) in WORDS.iter().enumerate() {
        labels.push_str(&format!("{{\"uid\": \"{at}\", \"title\": \"{name}\"}}\n"));
        for _ in 0..8 - at {
            train.push_str(&line(words, "noise", &format!("[{at}]")));
        }
        train.push_str(&line("nothing known", "noise", "[]"));
        test.push_str(&line(words, "noise", &format!("[{at}, {}]", (at + 1) % 4)));
        filter.push_str(&format!("{at} {at}\n"));
    }
    write(dir, "set/trn.json", &train);
    write(dir, "set/tst.json", &test);
    write(dir, "set/lbl.json", &labels);
    write(dir, "set/filter_labels_test.txt", &filter);
    dir.join("set").to_str().unwrap().to_owned()
}

const FAST: [&str; 6] = [
    "--set",
    "train.batch_size=4",
    "--set",
    "encoder.dim=16",
    "--set",
    "stage2.epochs=8",
];

fn parse(ran: &Ran) -> Value {
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    serde_json::from_str(&ran.stdout).unwrap()
}

#[test]
fn filter_and_propensity_are_those_of_the_data_set() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let model = model.to_str().unwrap();
    let amazon = [
        "--set",
        "data.propensity=amazon",
        "--set",
        "data.text_fields=[\"title\"]",
    ];
    let train = ["train", &data, "--test", &data, "--out", model];
    let trained = run(train.iter().chain(&FAST).chain(&amazon));
    assert_eq!(trained.code, Some(0), "{}", trained.stderr);
    let evaluate = |more: &[&str]| {
        parse(&run(["evaluate", model, &data, "--json"]
            .iter()
            .chain(more)))
    };
    let found = evaluate(&[]);
    let filter = format!("{data}/filter_labels_test.txt");
    let given = evaluate(&["--filter", &filter, "--propensity", "amazon"]);
    for key in ["p@1", "r@5", "psp@1", "psp@3"] {
        assert_eq!(found[key], given[key], "{key}");
    }
    // The best answer of each point is filtered; what is true and listed counts as missed with the truth as it is.
    let truth_kept = evaluate(&["--filter-answers-only"]);
    assert_eq!(found["p@1"], truth_kept["p@1"]);
    let recalls = [&truth_kept, &found].map(|found| found["r@5"].as_f64().unwrap());
    assert_eq!(recalls, [50.0, 100.0]);
    let others = evaluate(&["--filter-answers-only", "--propensity", "default"]);
    assert_ne!(truth_kept["psp@1"], others["psp@1"]);
    // `train --test` prints the same.
    let p1 = format!("{:.2}", found["p@1"].as_f64().unwrap());
    assert!(trained.stdout.contains(&p1), "{} {p1}", trained.stdout);

    // Predictions that are measured give the same, N of PSP with the points without labels.
    let out = dir.path().join("predictions.jsonl");
    let out = out.to_str().unwrap();
    let test = format!("{data}/tst.json");
    let predict = [
        "predict",
        model,
        &test,
        "-k",
        "4",
        "--out",
        out,
        "--text-column",
        "title",
    ];
    let predicted = run(predict);
    assert_eq!(predicted.code, Some(0), "{}", predicted.stderr);
    let measure = [
        "evaluate",
        "--predictions",
        out,
        &data,
        "--json",
        "--propensity",
        "amazon",
    ];
    let measured = parse(&run(measure));
    for key in ["p@1", "psp@1", "psp@3"] {
        let [a, b] = [&found, &measured].map(|found| found[key].as_f64().unwrap());
        assert!((a - b).abs() < 1e-9, "{key}: {a} {b}");
    }
}

#[test]
fn tenths_are_of_labels_or_of_pairs() {
    let dir = tempfile::tempdir().unwrap();
    let lines: String = (0..12)
        .map(|at| {
            format!(
                "{{\"text\": \"word{at}\", \"labels\": [\"{}\"]}}\n",
                at.max(3)
            )
        })
        .collect();
    let folder = dir.path().join("data");
    write(dir.path(), "data/train.jsonl", &lines);
    write(dir.path(), "data/test.jsonl", &lines);
    let answers: Vec<String> = (3..12)
        .map(|at| format!("{{\"label\": \"{at}\", \"score\": 0.5}}"))
        .collect();
    let answer = format!("{{\"labels\": [{}]}}\n", answers.join(", ")).repeat(12);
    let predictions = write(dir.path(), "predictions.jsonl", &answer);
    let deciles = |option: &str| {
        let arguments = [
            "evaluate",
            "--predictions",
            &predictions,
            folder.to_str().unwrap(),
            "--json",
            option,
        ];
        let json = parse(&run(arguments));
        json["by_decile"]
            .as_array()
            .unwrap()
            .iter()
            .map(|decile| decile["n_labels"].as_u64().unwrap())
            .collect::<Vec<_>>()
    };
    // Label 3 has four of twelve pairs, each of the eight others one.
    assert_eq!(deciles("--by-decile"), deciles("--by-decile=labels"));
    let of_pairs = deciles("--by-decile=pairs");
    assert_eq!(of_pairs.iter().sum::<u64>(), 9);
    assert_eq!(of_pairs[..4], [1, 0, 0, 1]);
    let wrong = run([
        "evaluate",
        "--predictions",
        &predictions,
        "x",
        "--by-decile=words",
    ]);
    assert_eq!(wrong.code, Some(2));
}
