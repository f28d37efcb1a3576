//! `elias inspect`, `explain`, `prune`, `report` and `bench sweep` on data of a few lines.

use std::path::{Path, PathBuf};

use serde_json::Value;

use crate::browser::Browser;
use crate::command::{run, write};

const TOPICS: [&str; 12] = [
    "apple",
    "pear",
    "plum",
    "car",
    "bike",
    "train",
    "cat",
    "dog",
    "horse",
    "red",
    "green",
    "<b>&\"blue",
];

/// Texts of two topics each.
fn data(dir: &Path) -> String {
    let folder = dir.join("data");
    std::fs::create_dir(&folder).unwrap();
    let lines = |n: usize, step: usize| {
        let line = |point: usize| {
            let (first, second) = (TOPICS[point % 12], TOPICS[(point * step + point / 12) % 12]);
            let text = format!("about {first} and some {second}");
            let labels = [first, second];
            let labels = if first == second {
                &labels[..1]
            } else {
                &labels[..]
            };
            serde_json::json!({"text": text, "labels": labels}).to_string() + "\n"
        };
        (0..n).map(line).collect::<String>()
    };
    write(&folder, "train.jsonl", &lines(360, 5));
    write(&folder, "test.jsonl", &lines(60, 7));
    folder.to_str().unwrap().to_owned()
}

const FAST: [&str; 9] = [
    "train.batch_size=8",
    "encoder.dim=16",
    "index.n_clusters=4",
    "stage1.epochs=6",
    "stage2.epochs=6",
    "train.keep_stage1=true",
    "hold_out.n_points=30",
    "hold_out.min_points=10",
    "hold_out.near_duplicates=2",
];

fn sets(settings: &[&'static str]) -> Vec<&'static str> {
    settings
        .iter()
        .flat_map(|setting| ["--set", setting])
        .collect()
}

/// A directory with data and a model.
fn trained() -> (tempfile::TempDir, String, PathBuf) {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let model = dir.path().join("model");
    let arguments = ["train", &data, "--out", model.to_str().unwrap()];
    let ran = run(arguments.into_iter().chain(sets(&FAST)));
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    (dir, data, model)
}

fn ok<'a>(arguments: impl IntoIterator<Item = &'a str>) -> String {
    let ran = run(arguments);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let is_narrow = |line: &str| line.chars().count() <= 80 || line.starts_with(['{', '[', ' ']);
    assert!(ran.stdout.lines().all(is_narrow), "{}", ran.stdout);
    ran.stdout
}

fn json<'a>(arguments: impl IntoIterator<Item = &'a str>) -> Value {
    serde_json::from_str(&ok(arguments)).unwrap()
}

#[test]
fn a_model_is_inspected_explained_and_pruned() {
    let (dir, data, model) = trained();
    let model = model.to_str().unwrap();
    let words = ok(["inspect", model, "--verify"]);
    assert!(words.contains("0 labels cannot be reached"), "{words}");
    assert!(
        words.contains("stage1, stage2, ranker, calibrated"),
        "{words}"
    );
    let words = ok(["evaluate", model, &data, "--stage", "shortlist"]);
    assert!(words.contains("beam 20") && words.contains("one against all"));
    let shortlist = json(["evaluate", model, &data, "--stage", "shortlist", "--json"]);
    assert_eq!(shortlist["indices"][0]["index"], "the index");
    assert_eq!(shortlist["indices"][0]["by_beam"][4][5], 100.0);
    let facts = json(["inspect", model, "--json"]);
    assert_eq!(facts["n_labels"], 12);
    assert_eq!(facts["index"][0]["n_unreachable"], 0);
    assert_eq!(
        facts["index"][0]["stage1_overlap"]
            .as_array()
            .unwrap()
            .len(),
        10
    );

    let text = "about apple and some pear";
    let words = ok(["explain", model, "--text", text, "--top-k", "2"]);
    assert!(words.starts_with("1. "), "{words}");
    assert_eq!(ok(["explain", model, text, "--top-k", "2"]), words);
    for part in ["cluster", "relevance", "ranker", "words: ", "final score"] {
        assert!(words.contains(part), "{part}: {words}");
    }
    let other = write(
        dir.path(),
        "other.jsonl",
        "{\"text\": \"x\", \"labels\": [\"apple\"]}\n",
    );
    let refused = run(["explain", model, "--text", text, "--train", &other]);
    let words = refused.stderr;
    assert!(words.contains("it has 1 point, the model was"), "{words}");
    let story = json(["explain", model, "--text", text, "--train", &data, "--json"]);
    let answers = story["answers"].as_array().unwrap();
    let names: Vec<&str> = answers
        .iter()
        .map(|one| one["label"].as_str().unwrap())
        .collect();
    assert!(
        names.contains(&"apple") && names.contains(&"pear"),
        "{names:?}"
    );
    assert!(
        story["neighbours"][0]["text"]
            .as_str()
            .unwrap()
            .contains("apple"),
        "{story}"
    );

    let small = dir.path().join("small");
    let small = small.to_str().unwrap();
    let ran = run(["prune", model, "--out", small, "--top-k", "2"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(
        ran.stderr.contains("0 labels cannot be reached"),
        "{}",
        ran.stderr
    );
    let pruned = json(["inspect", small, "--json"]);
    let n_edges = |facts: &Value| facts["index"][0]["n_edges"].as_u64().unwrap();
    assert!(n_edges(&pruned) < n_edges(&facts));
    assert_eq!(
        run(["prune", model, "--out", small, "--threshold", "2"]).code,
        Some(2)
    );
    assert_eq!(run(["prune", model, "--out", small]).code, Some(2));

    let before = json(["evaluate", model, &data, "--stage", "stage1", "--json"]);
    assert!(50.0 < before["p@1"].as_f64().unwrap(), "{before}");
    let ran = run(["evaluate", small, &data, "--stage", "stage1", "--json"]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}

#[test]
fn a_grid_is_trained_once_and_goes_on_where_it_was() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let out = dir.path().join("sweep");
    let out = out.to_str().unwrap();
    let sweep = |lambdas: &'static str| {
        let arguments = [
            "bench", "sweep", &data, "--out", out, "--stage", "stage2", "--json",
        ];
        let lambdas = ["--set", lambdas];
        json(arguments.into_iter().chain(sets(&FAST)).chain(lambdas))
    };
    let first = sweep("train.lambda=0.05");
    let second = sweep("train.lambda=0,0.05");
    assert_eq!(
        (
            first.as_array().unwrap().len(),
            second.as_array().unwrap().len()
        ),
        (1, 2)
    );
    // The cell that was there has the same clock time: it was not trained again.
    assert_eq!(first[0], second[1]);
    let results = std::fs::read_to_string(Path::new(out).join("results.jsonl")).unwrap();
    assert_eq!(results.lines().filter(|line| !line.is_empty()).count(), 2);
    let svg = std::fs::read_to_string(Path::new(out).join("sweep.svg")).unwrap();
    assert!(
        svg.starts_with("<svg") && svg.contains("train.lambda"),
        "{svg}"
    );
    assert_eq!(
        run(["bench", "sweep", "--out", out, "--set", "no.key=1,2"]).code,
        Some(2)
    );
}

#[test]
fn a_model_with_its_card_is_a_folder_that_loads_again() {
    let (dir, data, model) = trained();
    let (model, data) = (model.to_str().unwrap(), data.as_str());
    ok(["card", model, data, "--license", "mit", "--name", "Fruit"]);
    let readme = Path::new(model).join("README.md");
    let card = std::fs::read_to_string(&readme).unwrap();
    for part in [
        "---\nlibrary_name: elias\n",
        "license: \"mit\"\n",
        "model-index: [{",
        "# Fruit\n",
        "| points | 360 |",
        "On data (60 points",
        "stage1.epochs",
    ] {
        assert!(card.contains(part), "{part}\n{card}");
    }
    let again = run(["card", model]);
    assert_eq!(again.code, Some(2));
    assert!(again.stderr.contains("--overwrite"), "{}", again.stderr);
    ok(["card", model, "--overwrite"]);
    let plain = std::fs::read_to_string(&readme).unwrap();
    assert!(
        plain.contains("Not measured") && plain.contains("# model\n"),
        "{plain}"
    );

    // A copy as the hub gives it back.
    let copy = dir.path().join("copy");
    std::fs::create_dir_all(copy.join(".cache/huggingface")).unwrap();
    std::fs::write(copy.join(".gitattributes"), "*.safetensors filter=lfs\n").unwrap();
    for entry in std::fs::read_dir(model).unwrap() {
        let entry = entry.unwrap();
        if entry.path().is_file() {
            std::fs::copy(entry.path(), copy.join(entry.file_name())).unwrap();
        }
    }
    let copy = copy.to_str().unwrap();
    ok(["inspect", copy, "--verify"]);
    let question = write(
        dir.path(),
        "question.jsonl",
        "{\"text\": \"about apple\"}\n",
    );
    let answers = |model: &str| run(["predict", model, &question]).stdout;
    assert!(!answers(copy).is_empty());
    assert_eq!(answers(copy), answers(model));
}

#[test]
fn a_report_is_one_page_that_can_be_searched_sorted_and_hovered() {
    let (dir, data, model) = trained();
    let page = dir.path().join("report.html");
    let fixed = dir.path().join("fixed");
    let arguments = ["train", &data, "--out", fixed.to_str().unwrap()];
    let settings = [&FAST[..], &["index.mode=fixed"]].concat();
    ok(arguments.into_iter().chain(sets(&settings)));
    let arguments = [
        "report",
        model.to_str().unwrap(),
        &data,
        "--out",
        page.to_str().unwrap(),
        "--fixed",
        fixed.to_str().unwrap(),
    ];
    ok(arguments);
    let html = std::fs::read_to_string(&page).unwrap();
    for part in [
        "fixed clusters, as many epochs",
        "recall inside the shortlist",
        "+ calibration",
        "by threshold",
        "Recall",
        "Hardest texts",
        "The highest F1 of the test texts",
        "quality against the threshold",
        "also in the training data",
        "<b>The model was trained on",
        "reliability",
        "Labels in one cluster",
        "learning rates",
        "seconds",
        "outcome",
    ] {
        assert!(html.contains(part), "{part}");
    }
    let outside = html.replace("http://www.w3.org/2000/svg", "");
    assert!(
        !outside.contains("http://") && !outside.contains("https://"),
        "the page needs a network"
    );
    assert!(!html.contains("<b>&\"blue"), "a label's name became markup");
    let itself = [&arguments[..6], &[model.to_str().unwrap(), "--overwrite"]].concat();
    let ran = run(itself);
    assert_eq!(ran.code, Some(1));
    assert!(
        ran.stderr.contains("does not have fixed clusters"),
        "{}",
        ran.stderr
    );
    // What was computed is kept, and the page is the same from it.
    assert!(model.join("report").is_dir());
    ok(arguments.into_iter().chain(["--overwrite"]));
    assert!(std::fs::read_to_string(&page).unwrap() == html);

    let Some(browser) = Browser::start(1280) else {
        return;
    };
    browser.open(&page);
    // A link leads to a heading that the links themselves do not cover.
    let edges = "location.hash = '#labels'; const edge = (of, which) => document.querySelector(of).getBoundingClientRect()[which]; \
                 return edge('#labels', 'top') - edge('nav', 'bottom')";
    let distance = browser.run(edges).as_f64().unwrap();
    assert!(distance >= 0.0, "covered by {} px", -distance);
    let rows = "return document.querySelectorAll('#label-table tbody tr').length";
    assert_eq!(browser.run(rows), 12);
    browser.type_into("#label-table input", "BLUE");
    assert_eq!(browser.run(rows), 1);
    let links = "const span = clusterLinks([...Array(10).keys()]); const links = () => span.textContent.trim(); \
                 const before = links(); span.lastElementChild.click(); return [before, links()]";
    let [few, all] = ["#0 #1 #2 #3 +6", "#0 #1 #2 #3  #4 #5 #6 #7 #8 #9"];
    assert_eq!(browser.run(links), serde_json::json!([few, all]));
    let first = "return document.querySelector('#label-table tbody td').textContent";
    assert_eq!(browser.run(first), "<b>&\"blue");
    browser.run("const input = document.querySelector('#label-table input'); input.value = ''; input.dispatchEvent(new Event('input'))");

    let column = "return [...document.querySelectorAll('#label-table tbody tr')].map(row => row.cells[0].textContent)";
    let names =
        |browser: &Browser| -> Vec<String> { serde_json::from_value(browser.run(column)).unwrap() };
    browser.run("document.querySelector('#label-table').scrollIntoView({block: 'center'})");
    browser.click("#label-table th:first-child button");
    let ascending = names(&browser);
    browser.click("#label-table th:first-child button");
    let mut descending = names(&browser);
    let sort = "return document.querySelector('#label-table th').getAttribute('aria-sort')";
    assert_eq!(browser.run(sort), "descending");
    descending.reverse();
    assert_eq!(ascending, descending);
    assert!(
        ascending.iter().position(|name| name == "apple")
            < ascending.iter().position(|name| name == "train")
    );

    browser.click("#label-table td button.link");
    assert_eq!(
        browser.run("return document.querySelectorAll('#cluster-table tbody tr').length"),
        1
    );

    for mark in [
        "#s-recall circle[data-t]",
        ".map [data-t]",
        "#s-stage1 circle[data-t]",
    ] {
        browser.hover(mark);
        let told = browser.run(
            "const tip = document.getElementById('tip'); return tip.hidden ? '' : tip.textContent",
        );
        assert!(!told.as_str().unwrap().is_empty(), "{mark}");
    }
    assert_eq!(browser.errors(), Vec::<String>::new());
    let wide = browser.run("return document.documentElement.scrollWidth <= innerWidth");
    assert_eq!(wide, true, "the page is wider than the window");
}
