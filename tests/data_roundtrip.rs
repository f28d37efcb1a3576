//! Conversion between every pair of formats: the parts that both can hold are unchanged.

use std::fs;
use std::path::Path;

use elias::data::{
    self, ConversionLoss, CsrBuilder, CsrMatrix, Dataset, Format, LabelSet, Part, ReadOptions,
    Texts,
};

/// The parts of a point that a format holds, in addition to the names of its labels.
#[derive(Clone, Copy)]
struct Holds {
    ids: bool,
    texts: bool,
    features: bool,
    relevances: bool,
}

fn holds(format: Format) -> Holds {
    let is = |formats: &[Format]| formats.contains(&format);
    Holds {
        ids: is(&[
            Format::Jsonl,
            Format::Csv,
            Format::Tsv,
            Format::XcJson,
            Format::LibMultiLabel,
        ]),
        texts: !is(&[Format::Xc, Format::XcSplit]),
        features: is(&[Format::Xc, Format::XcSplit, Format::Pecos]),
        relevances: is(&[
            Format::Jsonl,
            Format::Csv,
            Format::Tsv,
            Format::XcJson,
            Format::XcSplit,
            Format::Pecos,
            Format::Text2Text,
        ]),
    }
}

/// A data set with everything: texts, features, ids, relevances, odd names, an empty and an unlabelled point.
fn rich() -> Dataset {
    let texts = [
        " led by a space",
        "Größe: \"7\" % 100%20 \\n",
        "",
        "{not: json}",
        "<x> 1 2 3",
        "no label, twice  spaced",
    ];
    let names = [
        "one",
        "two words",
        "100%",
        "a%20b",
        "<http://x/y>z",
        "7th",
        "\u{a0}é",
        "Ünicode, with: comma",
        "r::0.5",
    ];
    let mut labels = CsrBuilder::default();
    labels.push_row([(0, 1.0), (1, 0.5), (4, 1.0)]);
    labels.push_row([(2, 0.1), (3, 3.0e-7)]);
    labels.push_row([(5, 1.0)]);
    labels.push_row([(1, 1.0), (6, 1.0), (7, 1.0), (8, 1.0)]);
    labels.push_row([(0, 2.5)]);
    labels.push_row([]);
    let mut features = CsrBuilder::default();
    features.push_row([(0, 0.1), (7, -3.5)]);
    features.push_row([(3, 1.0e-30)]);
    features.push_row([]);
    features.push_row([(1, 123456.79), (2, 0.0)]);
    features.push_row([(9, 1.0)]);
    features.push_row([(4, 1.0 / 3.0)]);
    let ids: Texts = ["p0", "p 1", "2", "é", "", "p5"].into_iter().collect();
    Dataset::new(
        Some(texts.into_iter().collect()),
        Some(features.finish(10).unwrap()),
        labels.finish(names.len()).unwrap(),
        names.into_iter().collect(),
        Some(ids),
    )
    .unwrap()
}

/// One line per point, with these parts only.
fn view(dataset: &Dataset, holds: Holds) -> Vec<String> {
    let row = |matrix: &CsrMatrix, point: usize| {
        let (columns, values) = matrix.row(point);
        columns
            .iter()
            .copied()
            .zip(values.iter().copied())
            .collect::<Vec<_>>()
    };
    let point = |point: usize| {
        let mut labels: Vec<(&str, f32)> = dataset
            .label_names(point)
            .zip(dataset.labels().row(point).1.iter().copied())
            .map(|(name, relevance)| (name, if holds.relevances { relevance } else { 1.0 }))
            .collect();
        labels.sort_by(|a, b| a.0.cmp(b.0));
        let id = dataset
            .ids()
            .filter(|_| holds.ids)
            .map(|ids| ids.get(point));
        let text = dataset
            .texts()
            .filter(|_| holds.texts)
            .map(|texts| texts.get(point));
        let features = dataset
            .features()
            .filter(|_| holds.features)
            .map(|features| row(features, point));
        format!("{id:?} {text:?} {features:?} {labels:?}")
    };
    (0..dataset.n_points()).map(point).collect()
}

fn write(dataset: &Dataset, format: Format, path: &Path) -> elias::Result<data::Written> {
    data::write(dataset, format, path, Part::Train)
}

fn read(path: &Path) -> Dataset {
    data::read(path, &ReadOptions::default()).unwrap().0
}

#[test]
fn every_format_pair_keeps_what_both_can_hold() {
    let original = rich();
    for first in Format::ALL {
        let directory = tempfile::tempdir().unwrap();
        let a = directory.path().join("a");
        fs::create_dir(&a).unwrap();
        write(&original, first, &a).unwrap();
        let after_first = read(&a);
        assert_eq!(
            view(&after_first, holds(first)),
            view(&original, holds(first)),
            "{first}"
        );
        for second in Format::ALL {
            let b = directory.path().join(second.name());
            fs::create_dir(&b).unwrap();
            let (one, two) = (holds(first), holds(second));
            let both = Holds {
                ids: one.ids && two.ids,
                texts: one.texts && two.texts,
                features: one.features && two.features,
                relevances: one.relevances && two.relevances,
            };
            let written = write(&after_first, second, &b);
            if !both.texts && !both.features {
                let error = written.unwrap_err().to_string();
                assert!(
                    error.contains("holds texts, the data")
                        || error.contains("holds sparse features, the data"),
                    "{error}"
                );
                continue;
            }
            written.unwrap();
            assert_eq!(
                view(&read(&b), both),
                view(&original, both),
                "{first} to {second}"
            );
        }
    }
}

#[test]
fn single_files_may_be_compressed_and_keep_their_label_names() {
    let original = rich();
    let directory = tempfile::tempdir().unwrap();
    for format in Format::ALL
        .into_iter()
        .filter(|format| format.is_single_file())
    {
        for ending in ["txt", "txt.gz", "txt.zst"] {
            let path = directory.path().join(format!("{format}.{ending}"));
            let written = write(&original, format, &path).unwrap();
            assert_eq!(written.files[0], path);
            assert_eq!(
                view(&read(&path), holds(format)),
                view(&original, holds(format)),
                "{path:?}"
            );
        }
    }
}

#[test]
fn what_a_format_cannot_hold_is_reported() {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path();
    let losses = |dataset: &Dataset, format| write(dataset, format, path).unwrap().losses;
    let original = rich();
    assert_eq!(losses(&original, Format::Jsonl), [ConversionLoss::Features]);
    assert_eq!(
        losses(&original, Format::Xc),
        [
            ConversionLoss::Ids,
            ConversionLoss::Texts,
            ConversionLoss::Relevances(4)
        ]
    );
    assert_eq!(losses(&original, Format::Pecos), [ConversionLoss::Ids]);
    assert_eq!(
        losses(&original, Format::Annif),
        [
            ConversionLoss::Ids,
            ConversionLoss::Features,
            ConversionLoss::Relevances(4),
            ConversionLoss::SpacedNames(3)
        ]
    );
    let texts: Texts = ["a\nb", "a\tb", "a __label__b"].into_iter().collect();
    let labels = CsrMatrix::new(vec![0, 1, 1, 1], vec![0], vec![1.0], 2).unwrap();
    let names: LabelSet = ["x", "unused"].into_iter().collect();
    let odd = Dataset::new(Some(texts), None, labels, names, None).unwrap();
    assert_eq!(losses(&odd, Format::XcJson), []);
    assert_eq!(losses(&odd, Format::Raw), [ConversionLoss::ChangedTexts(1)]);
    assert_eq!(
        losses(&odd, Format::Text2Text),
        [ConversionLoss::ChangedTexts(2)]
    );
    assert_eq!(
        losses(&odd, Format::FastText),
        [
            ConversionLoss::UnusedLabels(1),
            ConversionLoss::ChangedTexts(2)
        ]
    );
}

#[test]
fn label_names_that_would_be_read_as_others_are_refused() {
    let check = |name: &str, format: Format, is_written: bool| {
        let directory = tempfile::tempdir().unwrap();
        let texts: Texts = ["a"].into_iter().collect();
        let labels = CsrMatrix::new(vec![0, 2], vec![0, 1], vec![1.0, 1.0], 2).unwrap();
        let names: LabelSet = [name, "0"].into_iter().collect();
        let dataset = Dataset::new(Some(texts), None, labels, names, None).unwrap();
        match write(&dataset, format, directory.path()) {
            Ok(_) => {
                let none = Holds {
                    ids: false,
                    texts: true,
                    features: false,
                    relevances: true,
                };
                assert_eq!(
                    view(&read(directory.path()), none),
                    view(&dataset, none),
                    "{format} {name:?}"
                );
                assert!(is_written, "{format} {name:?}");
            }
            Err(error) => {
                assert!(!is_written, "{error}");
                assert!(
                    error.to_string().contains("rename it, or choose jsonl"),
                    "{error}"
                );
            }
        }
    };
    check("a\nb", Format::Jsonl, true);
    check("a\nb", Format::FastText, true);
    for name in [
        "a\nb", "a;b", "a|b", "[a]", "<a>", " a", "a, b", "\"a\"", "{", "a\tb",
    ] {
        check(name, Format::Csv, true);
        check(name, Format::Tsv, true);
    }
    check("a\nb", Format::LibMultiLabel, true);
    check("a\nb", Format::Text2Text, false);
    check("a\nb", Format::Pecos, false);
    for format in [
        Format::Jsonl,
        Format::Csv,
        Format::Tsv,
        Format::XcJson,
        Format::Raw,
        Format::Pecos,
        Format::Text2Text,
        Format::FastText,
        Format::Annif,
    ] {
        check("", format, format != Format::Raw);
    }
    check("", Format::LibMultiLabel, false);
    check("a> <b", Format::Annif, false);
    // A label named "0" that is not label 0: the labels are written by name, so names must be words.
    check("ab", Format::Raw, true);
    check("a b", Format::Raw, false);
}

#[test]
fn both_parts_of_a_directory_share_their_labels() {
    let directory = tempfile::tempdir().unwrap();
    let train = rich();
    for format in [
        Format::Jsonl,
        Format::Csv,
        Format::Tsv,
        Format::Xc,
        Format::XcSplit,
        Format::Raw,
        Format::Pecos,
        Format::XcJson,
    ] {
        let path = directory.path().join(format.name());
        fs::create_dir(&path).unwrap();
        for part in Part::ALL {
            data::write(&train, format, &path, part).unwrap();
        }
        assert_eq!(data::parts(&path).unwrap(), Part::ALL);
        let (first, _) = data::read(&path, &ReadOptions::default()).unwrap();
        let options = ReadOptions {
            part: Part::Test,
            known_labels: Some(first.label_set()),
            ..ReadOptions::default()
        };
        let (second, summary) = data::read(&path, &options).unwrap();
        assert_eq!((first, 0), (second, summary.n_new_labels), "{format}");
    }
}
