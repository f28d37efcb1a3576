//! Reading and writing data sets through the public interface.

use std::fs;
use std::path::Path;

use elias::data::{Columns, Dataset, Format, Part, ReadOptions, Summary};

fn read(path: &Path) -> (Dataset, Summary) {
    ReadOptions::default().read(path).unwrap()
}

/// A readable dump, one line per point, with id, text, features and labels by name.
fn dump(dataset: &Dataset) -> String {
    let mut out = String::new();
    for point in 0..dataset.n_points() {
        if let Some(ids) = dataset.ids() {
            out += &format!("#{} ", ids.get(point));
        }
        if let Some(texts) = dataset.texts() {
            out += &format!("{:?} ", texts.get(point));
        }
        if let Some(features) = dataset.features() {
            let (columns, values) = features.row(point);
            for (column, value) in columns.iter().zip(values) {
                out += &format!("{column}:{value} ");
            }
        }
        let (labels, relevances) = dataset.labels().row(point);
        let named = labels.iter().zip(relevances).map(|(&label, relevance)| {
            let name = dataset.label_set().name(elias::LabelId(label));
            match *relevance {
                1.0 => name.to_owned(),
                relevance => format!("{name}={relevance}"),
            }
        });
        out += &format!("-> {}\n", named.collect::<Vec<_>>().join(" | "));
    }
    out
}

#[test]
fn json_lines_hold_texts_ids_and_relevances() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("some.jsonl");
    let lines = concat!(
        "\u{feff}{\"text\": \"a \\u00e9\\n\", \"labels\": [\"x y\", 7, \"x y\"], \"other\": {\"k\": [1]}}\r\n",
        "\n",
        "{\"id\": 12, \"labels\": {\"7\": 0.5, \"z\": 0}, \"text\": \"\"}\n",
        "{\"text\": \"last\"}",
    );
    fs::write(&path, lines).unwrap();
    let (dataset, summary) = read(&path);
    assert_eq!(
        dump(&dataset),
        "# \"a é\\n\" -> x y | 7\n#12 \"\" -> 7=0.5\n# \"last\" -> \n"
    );
    let expected = Summary {
        n_points: 3,
        n_empty_points: 1,
        n_unlabelled: 1,
        n_duplicate_labels: 1,
        n_zero_labels: 1,
        ..Summary::default()
    };
    assert_eq!(summary, expected);
}

#[test]
fn xc_json_without_label_texts_numbers_its_labels() {
    let directory = tempfile::tempdir().unwrap();
    let line = "{\"uid\": \"B0\", \"title\": \"a\", \"content\": \"b\", \"target_ind\": [2, 0], \"target_rel\": [0.5, 1.0]}\n";
    fs::write(directory.path().join("trn.json"), line).unwrap();
    let (dataset, _) = read(directory.path());
    assert_eq!(dump(&dataset), "#B0 \"a b\" -> 0 | 2=0.5\n");
    let names = "{\"uid\": \"x\", \"title\": \"X\"}\n{\"uid\": \"y\"}\n{\"uid\": \"z\", \"title\": \"X\"}\n";
    fs::write(directory.path().join("lbl.json"), names).unwrap();
    let (dataset, _) = read(directory.path());
    assert_eq!(dump(&dataset), "#B0 \"a b\" -> X | X [2]=0.5\n");
}

#[test]
fn the_text_of_xc_json_is_the_field_that_is_named() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("trn.json");
    let line = "{\"uid\": \"B0\", \"title\": \"a\", \"content\": \"b\", \"target_ind\": [0]}\n";
    fs::write(&path, line).unwrap();
    let read = |fields: &[&str]| {
        let fields: Vec<String> = fields.iter().map(|&field| field.into()).collect();
        let columns = Columns {
            text: &fields,
            ..Columns::default()
        };
        let options = ReadOptions {
            columns,
            ..ReadOptions::default()
        };
        options.read(&path).map(|(dataset, _)| dump(&dataset))
    };
    for (fields, text) in [
        (&[][..], "a b"),
        (&["title"], "a"),
        (&["Content"], "b"),
        (&["content", "title"], "b a"),
    ] {
        assert_eq!(read(fields).unwrap(), format!("#B0 {text:?} -> 0\n"));
    }
    let message = read(&["body"]).unwrap_err().to_string();
    assert!(
        message.contains("trn.json: is read as xc-json, with \"body\""),
        "{message}"
    );
    fs::write(&path, line.replace("title", "name")).unwrap();
    let message = read(&["title"]).unwrap_err().to_string();
    assert!(
        message.contains("trn.json:1: found no \"title\""),
        "{message}"
    );
}

#[test]
fn files_of_other_programs_are_read_as_they_write_them() {
    let check = |name: &str, content: &str, format: Option<Format>, expected: &str| {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join(name);
        fs::write(&path, content).unwrap();
        let options = ReadOptions {
            format,
            ..ReadOptions::default()
        };
        let (dataset, _) = options.read(&path).unwrap();
        assert_eq!(dump(&dataset), expected, "{name}");
    };
    check(
        "cooking.txt",
        "__label__sauce  __label__cheese How much? __label__late\r\n__label__oven\n",
        None,
        "\"How much?\" -> sauce | cheese | late\n\"\" -> oven\n",
    );
    check(
        "rcv1.txt",
        "2286\tE11 ECAT\trecov recov\n2287\t\tnone\n",
        None,
        "#2286 \"recov recov\" -> E11 | ECAT\n#2287 \"none\" -> \n",
    );
    check(
        "no_ids.txt",
        "E11 ECAT\trecov recov\n",
        Some(Format::LibMultiLabel),
        "\"recov recov\" -> E11 | ECAT\n",
    );
    check(
        "annif.tsv",
        "A title\t<http://example.org/1> <http://example.org/2>\nB\thttp://example.org/1\n",
        None,
        "\"A title\" -> http://example.org/1 | http://example.org/2\n\"B\" -> http://example.org/1\n",
    );
    check(
        "text2text.tsv",
        "0,1::0.3\tfirst\n2\tsecond\n",
        None,
        "\"first\" -> 0 | 1=0.3\n\"second\" -> 2\n",
    );
}

#[test]
fn raw_labels_are_names_or_numbers() {
    let check = |labels: &str, names: Option<&str>, expected: &str| {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join("train_texts.txt"), "a\nb\n").unwrap();
        fs::write(directory.path().join("train_labels.txt"), labels).unwrap();
        if let Some(names) = names {
            fs::write(directory.path().join("labels.txt"), names).unwrap();
        }
        assert_eq!(dump(&read(directory.path()).0), expected);
    };
    check("x y\n1\n", None, "\"a\" -> x | y\n\"b\" -> 1\n");
    check("y\nx y\n", Some("x\ny\n"), "\"a\" -> y\n\"b\" -> x | y\n");
    check(
        "1\n0 1\n",
        Some("x one\ny\n"),
        "\"a\" -> y\n\"b\" -> x one | y\n",
    );
    // Names come first where numbers are names too.
    check("1\n2\n", Some("1\n2\n"), "\"a\" -> 1\n\"b\" -> 2\n");
    check("0\n1\n", Some("1\n2\n"), "\"a\" -> 1\n\"b\" -> 2\n");
}

#[test]
fn sparse_text_holds_features_and_numbered_labels() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("train.txt");
    fs::write(&path, "4 10 5\n2,0 3:0.5 1:1\n 9:1e-2\n\n4\n\n").unwrap();
    let (dataset, summary) = read(directory.path());
    assert_eq!(
        dump(&dataset),
        "1:1 3:0.5 -> 0 | 2\n9:0.01 -> \n-> \n-> 4\n"
    );
    assert_eq!((summary.n_empty_points, summary.n_unlabelled), (2, 2));
    assert_eq!(
        (dataset.n_labels(), dataset.features().unwrap().n_cols()),
        (5, 10)
    );

    fs::write(directory.path().join("labels.txt"), "a\nb\nc\nd\ne\n").unwrap();
    let (train, _) = read(directory.path());
    assert_eq!(train.label_set().name(elias::LabelId(4)), "e");
    let test = directory.path().join("other.jsonl");
    fs::write(&test, "{\"text\": \"t\", \"labels\": [\"new\", \"c\"]}").unwrap();
    let options = ReadOptions {
        known_labels: Some(train.label_set()),
        part: Part::Test,
        format: Some(Format::Jsonl),
        ..ReadOptions::default()
    };
    let (test, summary) = options.read(&test).unwrap();
    assert_eq!(test.labels().row(0).0, [2, 5]);
    assert_eq!(summary.n_new_labels, 1);
}
