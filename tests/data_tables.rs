//! CSV and TSV data sets: columns, labels, quoting, and errors with their line.

use std::fs;

use elias::data::{Columns, Dataset, Format, Part, ReadOptions};
use proptest::prelude::*;

fn read_with(content: &str, options: &ReadOptions<'_>) -> elias::Result<Dataset> {
    options
        .read_bytes("some.csv", content.as_bytes())
        .map(|(dataset, _)| dataset)
}

/// One line per point: `#id text -> label | label=relevance`.
fn dump(dataset: &Dataset) -> String {
    let mut out = String::new();
    for point in 0..dataset.n_points() {
        if let Some(ids) = dataset.ids() {
            out += &format!("#{} ", ids.get(point));
        }
        let (_, relevances) = dataset.labels().row(point);
        let named: Vec<String> = dataset
            .label_names(point)
            .zip(relevances)
            .map(|(name, relevance)| match *relevance {
                1.0 => name.to_owned(),
                relevance => format!("{name}={relevance}"),
            })
            .collect();
        let labels = named.join(" | ");
        let text = dataset.texts().unwrap().get(point);
        out += &format!("{text:?} -> {labels}\n");
    }
    out
}

fn check(content: &str, expected: &str) {
    let dataset = read_with(content, &ReadOptions::default()).unwrap();
    assert_eq!(dump(&dataset), expected, "{content}");
}

fn check_error(content: &str, options: &ReadOptions<'_>, expected: &str) {
    let error = read_with(content, options).unwrap_err().to_string();
    assert!(error.starts_with(expected), "{error}");
}

#[test]
fn columns_are_found_by_their_names_and_labels_by_their_shape() {
    check(
        "text,labels\na b,x;y z\nc,x|w\nd,\"[\"\"x;1\"\", 7]\"\ne,\n",
        "\"a b\" -> x | y z\n\"c\" -> x | w\n\"d\" -> x;1 | 7\n\"e\" -> \n",
    );
    check(
        "id,abstract,Tags,title\n7,second,\"{\"\"x\"\": 0.5}\",first\n8,,y,only\n",
        "#7 \"first second\" -> x=0.5\n#8 \"only\" -> y\n",
    );
    check(
        "text,subject_uris\nA title,<http://a/1> <http://a/2>\nB,http://a/1 http://a/3\n",
        "\"A title\" -> http://a/1 | http://a/2\n\"B\" -> http://a/1 | http://a/3\n",
    );
    check("text\tlabels\na, b\tx\n", "\"a, b\" -> x\n");
    check("text;labels\na, b;\"x;y\"\n", "\"a, b\" -> x | y\n");
}

#[test]
fn quotes_byte_order_marks_and_carriage_returns_are_handled() {
    check(
        "\u{feff}\"text\",\"labels\"\r\n\r\n\"a \"\"b\"\",\r\n\r\nc\",x\r\n5\" pipe,y",
        "\"a \\\"b\\\",\\r\\n\\r\\nc\" -> x\n\"5\\\" pipe\" -> y\n",
    );
    let long = "word ".repeat(400_000);
    check(
        &format!("text,labels\n\"{long}\",x\n"),
        &format!("{long:?} -> x\n"),
    );
}

#[test]
fn columns_and_the_separator_can_be_named() {
    let text = ["body".to_owned(), "head".to_owned()];
    let columns = Columns {
        text: &text,
        labels: Some("topic"),
        label_separator: Some(','.into()),
    };
    let options = ReadOptions {
        columns,
        ..ReadOptions::default()
    };
    for format in [None, Some(Format::Csv)] {
        let options = ReadOptions { format, ..options };
        let dataset = read_with(
            "head,body,topic,text,labels\nh,b,\"x, y;z\",t,l\n",
            &options,
        );
        assert_eq!(dump(&dataset.unwrap()), "\"b h\" -> x | y;z\n");
    }
    check_error(
        "text,labels\na,b\n",
        &options,
        "some.csv:1: found a header that has: text, labels, expected a column \"body\"",
    );
    let lines =
        "{\"body\": \"b\", \"topic\": \"x, y;z\"}\n{\"body\": null, \"topic\": [\"x, y\"]}\n";
    let dataset = read_with(lines, &options).unwrap();
    assert_eq!(dump(&dataset), "\"b\" -> x | y;z\n\"\" -> x, y\n");
    check_error(
        "1 2 3\n",
        &ReadOptions {
            format: Some(Format::Xc),
            ..options
        },
        "some.csv: is read as xc, which has no columns: give no columns, or the format csv, tsv or jsonl",
    );
}

#[test]
fn keys_of_json_lines_can_be_named_as_columns() {
    let text = ["title".to_owned(), "abstract".to_owned()];
    let columns = Columns {
        text: &text,
        labels: Some("topics"),
        label_separator: None,
    };
    let options = ReadOptions {
        columns,
        ..ReadOptions::default()
    };
    let lines = concat!(
        r#"{"abstract": "b", "text": "c", "topics": ["x"], "labels": ["y"], "title": "a"}"#,
        "\n",
        r#"{"title": "d", "abstract": null, "topics": {"z": 0.5}}"#,
        "\n",
        r#"{"abstract": "e"}"#,
        "\n",
    );
    let dataset = read_with(lines, &options).unwrap();
    assert_eq!(dump(&dataset), "\"a b\" -> x\n\"d\" -> z=0.5\n\"e\" -> \n");
    let check = |line: &str, expected: &str| check_error(line, &options, expected);
    check(
        "{\"text\": \"a\"}\n",
        "some.csv:1: found no key \"title\" or \"abstract\"",
    );
    check(
        "{\"title\": \"a\", \"title\": \"b\"}\n",
        "some.csv:1: found key \"title\" twice",
    );
    check("{\"title\": 7}\n", "some.csv:1: found ");
}

#[test]
fn bad_tables_are_reported_with_their_line() {
    let check = |content: &str, expected: &str| {
        check_error(content, &ReadOptions::default(), expected);
    };
    check(
        "body,topic\na,b\n",
        "some.csv:1: found a header that has: body, topic, expected a column text (or title, abstract, content, description), or a header line if there is none",
    );
    check(
        "text,topic\na,b\n",
        "some.csv:1: found a header that has: text, topic, expected a column of labels (labels, subjects, subject_uris, tags, categories)",
    );
    check(
        "text,labels,text\na,b,c\n",
        "some.csv:1: found the column \"text\" twice, at positions 1 and 3, expected distinct column names",
    );
    check(
        "text,labels\n\"a\nb\",x\nc\n",
        "some.csv:4: found 1 field, expected 2 as in the header: put double quotes around fields that contain a comma",
    );
    check(
        "text,labels\na,b,c\n",
        "some.csv:2: found 3 fields, expected 2 as in the header",
    );
    check(
        "text,labels\r\na,b\r\n\"c,d\r\ne,f\r\n",
        "some.csv:3: found a double quote that opens a field and is never closed",
    );
    check(
        "text,labels\na,\"['x', y]\"\n",
        "some.csv:2: found \"['x', y]\" which is not valid JSON: expected value at column 2, expected a JSON list",
    );
    check(
        "text,labels\n",
        "some.csv: has a header and no rows, expected at least one row",
    );
    let bytes = b"text,labels\na,b\nc\xff,d\n";
    let error = ReadOptions::default().read_bytes("some.csv", bytes);
    assert_eq!(
        error.unwrap_err().to_string(),
        "some.csv:3: found byte 0xff at byte offset 17 of the file, expected UTF-8 text; if it was saved as Latin-1 or by Excel, convert it: iconv -f WINDOWS-1252 -t UTF-8 in > out"
    );
}

#[test]
fn a_directory_of_tables_has_parts() {
    for ending in ["csv", "tsv", "csv.gz"] {
        let directory = tempfile::tempdir().unwrap();
        let dataset = Dataset::from_texts([("a", ["x", "y"]), ("b", ["x", "z"])]);
        let format = if ending == "tsv" {
            Format::Tsv
        } else {
            Format::Csv
        };
        for part in Part::ALL {
            let path = directory.path().join(format!("{part}.{ending}"));
            dataset.write(format, &path, part).unwrap();
        }
        assert_eq!(Part::find(directory.path()).unwrap(), Part::ALL);
        for part in Part::ALL {
            let options = ReadOptions {
                part,
                ..ReadOptions::default()
            };
            let (read, _) = options.read(directory.path()).unwrap();
            assert_eq!(read, dataset, "{ending}");
        }
    }
}

#[test]
fn a_directory_of_one_other_file_names_it() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("data.csv");
    fs::write(&path, "text,labels\na,b\n").unwrap();
    let error = ReadOptions::default().read(directory.path()).unwrap_err();
    let hint = format!("to read that file, name {}", path.display());
    assert!(error.to_string().contains(&hint), "{error}");
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(300))]

    #[test]
    fn tables_hold_any_text_label_and_id(
        points in prop::collection::vec(
            ("[a,;\t\"\r\n |é]{0,8}|\\PC{0,8}", prop::collection::btree_set("[a,;\t\"\n |<>{\\[]{0,4}", 0..4), "[a,\"\n]{0,3}"),
            1..6,
        ),
        has_ids in any::<bool>(),
    ) {
        let named = Dataset::from_texts(points.iter().map(|(text, labels, _)| (text, labels)));
        let ids = has_ids.then(|| points.iter().map(|(_, _, id)| id).collect());
        let dataset = Dataset::new(
            named.texts().cloned(),
            None,
            named.labels().clone(),
            named.label_set().clone(),
            ids,
        )
        .unwrap();
        let directory = tempfile::tempdir().unwrap();
        for format in [Format::Csv, Format::Tsv] {
            let path = directory.path().join(format.name());
            let written = dataset.write(format, &path, Part::Train).unwrap();
            prop_assert_eq!(written.losses, []);
            let (read, _) = ReadOptions::default().read(&path).unwrap();
            prop_assert_eq!(&read, &dataset);
        }
    }
}
