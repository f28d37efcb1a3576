//! Readers of data.

use std::cell::OnceCell;
use std::fs;
use std::io::{Cursor, Write};
use std::os::fd::AsRawFd;
use std::path::PathBuf;

use elias::data::{
    CsrMatrix, Dataset, Format, LabelSet, Part, PredictionShape, ReadOptions, Summary, Synonyms,
    TextInputs, Texts, read_filter_pairs,
};
use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, ZipWriter};

use super::{checked, join, repository, split, temporary};

/// The formats of one file, by the first byte of an input; none is to be recognised.
const SINGLE: [Option<Format>; 9] = [
    None,
    Some(Format::Jsonl),
    Some(Format::Xc),
    Some(Format::Text2Text),
    Some(Format::FastText),
    Some(Format::LibMultiLabel),
    Some(Format::Annif),
    Some(Format::Csv),
    Some(Format::Tsv),
];

/// The formats of several files with the names of their files, by the first byte of an input.
const SEVERAL: [(Format, [&str; 3]); 4] = [
    (Format::XcJson, ["trn.json", "lbl.json", ""]),
    (
        Format::XcSplit,
        ["trn_X_Xf.txt", "trn_X_Y.txt", "labels.txt"],
    ),
    (
        Format::Raw,
        ["train_texts.txt", "train_labels.txt", "labels.txt"],
    ),
    (
        Format::Pecos,
        ["X.trn.txt", "Y.trn.npz", "output-items.txt"],
    ),
];

/// The arrays of a SciPy matrix, in the order of their parts in an input.
const ARRAYS: [&str; 5] = ["format", "shape", "indptr", "indices", "data"];

fn known_labels() -> LabelSet {
    ["a", "0", "<b>"].into_iter().collect()
}

/// A data set of one file. The first byte chooses the format, its highest bit whether labels are known beforehand.
pub fn lines(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    let format = SINGLE[usize::from(choice & 0x7f) % SINGLE.len()];
    let known = known_labels();
    let options = ReadOptions {
        format,
        known_labels: (choice >= 0x80).then_some(&known),
        ..ReadOptions::default()
    };
    if let Some((dataset, _)) = checked(options.read_bytes("input", content)) {
        check_dataset(&dataset);
        if dataset.texts().is_some() {
            check_written(&dataset);
        }
    }
}

/// A data set of several files. The first byte chooses the format, then come the files.
pub fn files(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    let (format, names) = SEVERAL[usize::from(choice) % SEVERAL.len()];
    let directory = temporary();
    for (name, part) in names.iter().zip(split(content, names.len())) {
        if !name.is_empty() {
            fs::write(directory.path().join(name), part).expect("a small file can be written");
        }
    }
    let options = ReadOptions {
        format: (choice < 0x80).then_some(format),
        ..ReadOptions::default()
    };
    if let Some((dataset, _)) = checked(options.read(directory.path())) {
        check_dataset(&dataset);
    }
}

/// A SciPy matrix. After an odd byte comes the archive, otherwise the arrays of one that is sound.
pub fn npz(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    let file = match choice % 2 {
        0 => in_file(&archive(&split(content, ARRAYS.len()))),
        _ => in_file(content),
    };
    if let Some(matrix) = checked(CsrMatrix::read_npz(&file)) {
        assert!(matrix.values().iter().all(|value| value.is_finite()));
    }
}

/// Predictions; the first byte is the number of points.
pub fn predictions(bytes: &[u8]) {
    let Some((&n_points, content)) = bytes.split_first() else {
        return;
    };
    let file = in_file(content);
    let (label_set, ids) = (known_labels(), ["a", "b"].into_iter().collect::<Texts>());
    let shape = PredictionShape {
        n_points: n_points.into(),
        label_set: &label_set,
        n_trained: 2,
        ids: (n_points == 2).then_some(&ids),
    };
    let rows = shape.read(&file);
    if let Some(rows) = checked(rows) {
        assert_eq!(rows.len(), usize::from(n_points));
        let is_ranked = |pair: &[elias::Scored]| pair[1].score <= pair[0].score;
        assert!(rows.iter().all(|row| row.windows(2).all(is_ranked)));
    }
}

/// A list of label names, which is the same after it was written and read again; and the same bytes as synonyms.
pub fn labels(bytes: &[u8]) {
    checked(Synonyms::read(in_file(bytes)));
    if let Some(labels) = checked(LabelSet::read(in_file(bytes))) {
        let path = place().with_extension("labels.txt");
        labels.write(&path).expect("a small file can be written");
        let again = LabelSet::read(&path).expect("what was written can be read");
        assert_eq!(again, labels);
    }
}

/// A data set that comes through a pipe, which can be read once: the same as from memory.
pub fn pipes(bytes: &[u8]) {
    let (reader, mut writer) = std::io::pipe().expect("there are pipes");
    // More would fill the pipe, whose reader comes later.
    let bytes = &bytes[..bytes.len().min(4096)];
    writer.write_all(bytes).expect("the pipe has room");
    drop(writer);
    let path = format!("/dev/fd/{}", reader.as_raw_fd());
    let options = ReadOptions::default();
    let piped = checked(options.read(&path));
    let expected = checked(options.read_bytes("input", bytes));
    let texts =
        |read: &Option<(Dataset, Summary)>| read.as_ref().map(|(data, _)| data.texts().cloned());
    assert_eq!(texts(&piped), texts(&expected));
    if let Some((dataset, _)) = piped {
        check_dataset(&dataset);
    }
}

/// Texts to predict for, and the same bytes as filter pairs.
pub fn inputs(bytes: &[u8]) {
    if let Some(inputs) = checked(TextInputs::new("input", bytes)) {
        // Reading goes on after a bad text; there are never more texts than bytes.
        let n_texts = inputs.map(checked).count();
        let is_compressed = bytes.starts_with(&[0x1f, 0x8b]) || bytes.starts_with(&[0x28, 0xb5]);
        assert!(is_compressed || n_texts <= bytes.len());
    }
    checked(read_filter_pairs(&in_file(bytes)));
}

fn check_dataset(dataset: &Dataset) {
    assert_eq!(dataset.labels().n_rows(), dataset.n_points());
    assert_eq!(dataset.labels().n_cols(), dataset.n_labels());
    let n_texts = dataset.texts().map(|texts| texts.len());
    assert!(n_texts.is_none_or(|n_texts| n_texts == dataset.n_points()));
    let values = dataset.labels().values();
    assert!(values.iter().all(|value| *value > 0.0 && value.is_finite()));
}

/// Checks that a data set is the same after it was written in a format that holds everything.
fn check_written(dataset: &Dataset) {
    for format in [Format::Jsonl, Format::Csv, Format::Tsv] {
        check_written_as(dataset, format);
    }
}

fn check_written_as(dataset: &Dataset, format: Format) {
    let path = place().with_extension(format.name());
    dataset
        .write(format, &path, Part::Train)
        .expect("the format holds any text");
    let options = ReadOptions {
        format: Some(format),
        ..ReadOptions::default()
    };
    let (again, _) = options.read(&path).expect("what was written can be read");
    assert_eq!(again.texts(), dataset.texts());
    for point in 0..dataset.n_points() {
        let sorted = |dataset: &Dataset| {
            let (_, relevances) = dataset.labels().row(point);
            let mut labels: Vec<(String, u32)> = dataset
                .label_names(point)
                .zip(relevances)
                // Spaces around a label do not count.
                .map(|(name, relevance)| (name.trim_ascii().to_string(), relevance.to_bits()))
                .collect();
            labels.sort_by(|a, b| b.cmp(a));
            labels.dedup_by(|a, b| a.0 == b.0);
            labels
        };
        assert_eq!(sorted(&again), sorted(dataset));
    }
}

/// A path for one file, the same for every input of a thread.
fn place() -> PathBuf {
    thread_local! {
        static DIRECTORY: OnceCell<tempfile::TempDir> = const { OnceCell::new() };
    }
    DIRECTORY.with(|directory| directory.get_or_init(temporary).path().join("input"))
}

fn in_file(bytes: &[u8]) -> PathBuf {
    let path = place();
    fs::write(&path, bytes).expect("a small file can be written");
    path
}

fn archive(arrays: &[&[u8]]) -> Vec<u8> {
    let mut zip = ZipWriter::new(Cursor::new(Vec::new()));
    let options = SimpleFileOptions::default().compression_method(CompressionMethod::Stored);
    for (name, array) in ARRAYS.iter().zip(arrays) {
        zip.start_file(format!("{name}.npy"), options)
            .and_then(|()| Ok(zip.write_all(array)?))
            .expect("memory can be written");
    }
    zip.finish().expect("memory can be written").into_inner()
}

/// Valid inputs of [`lines`].
pub fn lines_seeds() -> Vec<Vec<u8>> {
    let contents: [(u8, &str); 16] = [
        (0, "{\"text\": \"one\", \"labels\": [\"a\"]}\n"),
        (
            1,
            "{\"text\": \"t\\u00e9\", \"labels\": {\"a\": 0.5, \"b\": 1e-3}, \"id\": 7}\n",
        ),
        (
            1,
            "\n{\"id\": \"x\", \"text\": \"\", \"labels\": []}\n{\"text\":\"b\",\"labels\":[\"0\",1]}",
        ),
        (2, "2 3 2\n0,1 0:1.5 2:-2\n 1:1e-3\n"),
        (0x82, "1 1 1\n0 0:1\n\n"),
        (3, "0,2::0.3\tsome text\n\tno label\n"),
        (
            4,
            "__label__a __label__b some text\nno label __label__c\r\n",
        ),
        (4, "\u{feff}__label__a\\u0020b text\n"),
        (5, "1\ta b\ttext\n2\t\tother text\twith a tab\n"),
        (6, "a text\t<http://a> <b c>\nanother\tplain <x>\n"),
        (0x86, "a text\t<b>\n\t\n"),
        (0, "1 2\n0:1\n"),
        (0, "text,labels\n\"a, b\",x;y\n"),
        (
            7,
            "\u{feff}id,title,abstract,tags\r\n1,\"t \"\"q\"\"\",\"a\r\nb\",\"[\"\"x\"\", 1]\"\r\n",
        ),
        (7, "text;subject_uris\na;<http://x> <y>\n\nb;\n"),
        (8, "labels\ttext\n{\"a\": 0.5}\tb\n|c|\t\"d\te\"\n"),
    ];
    let plain = contents.map(|(choice, content)| [&[choice], content.as_bytes()].concat());
    let mut seeds = plain.to_vec();
    // The same in gzip: the line `{"text": "a", "labels": ["b"]}`.
    let zipped = [
        0x1f, 0x8b, 8, 0, 0, 0, 0, 0, 2, 0xff, 0xab, 0x56, 0x2a, 0x49, 0xad, 0x28, 0x51, 0xb2,
    ];
    seeds.push([&[0][..], &zipped].concat());
    seeds
}

/// Valid inputs of [`files`].
pub fn files_seeds() -> Vec<Vec<u8>> {
    let matrix = fs::read(repository("tests/fixtures/npz/float32.npz")).expect("a fixture");
    let contents: [(u8, Vec<u8>); 5] = [
        (
            0,
            join(&[
                b"{\"uid\": \"1\", \"title\": \"t\", \"content\": \"c\", \"target_ind\": [0, 1], \"target_rel\": [1, 0.5]}\n",
                b"{\"uid\": \"a\", \"title\": \"A\"}\n{\"uid\": \"b\", \"title\": \"B\"}\n",
            ]),
        ),
        (1, join(&[b"2 3\n0:1 2:0.5\n\n", b"2 2\n1:1\n0:1 1:1\n", b"x\ny\n"])),
        (2, join(&[b"one text\ntwo\n", b"x y\n\n", b"x\ny\n"])),
        (2, join(&[b"one text\ntwo\n", b"0 1\n1\n", b"x\ny\n"])),
        (3, join(&[b"one\ntwo\nthree\n", &matrix])),
    ];
    contents
        .map(|(choice, content)| [&[choice][..], &content].concat())
        .to_vec()
}

/// Valid inputs of [`npz`].
pub fn npz_seeds() -> Vec<Vec<u8>> {
    let fixtures = repository("tests/fixtures/npz");
    let names = [
        "float32",
        "bool",
        "big_endian",
        "unsorted_duplicates",
        "stored",
        "wide",
    ];
    let archives = names.map(|name| {
        let path = fixtures.join(format!("{name}.npz"));
        [&[1][..], &fs::read(path).expect("a fixture")].concat()
    });
    let mut seeds = archives.to_vec();
    let array = |descr: &str, shape: &str, elements: &[u8]| {
        let header =
            format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}\n");
        let length = (header.len() as u16).to_le_bytes();
        [
            b"\x93NUMPY\x01\x00",
            &length[..],
            header.as_bytes(),
            elements,
        ]
        .concat()
    };
    let integers = |values: &[i32]| -> Vec<u8> {
        values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect()
    };
    let arrays = [
        array("|S3", "()", b"csr"),
        array("<i4", "(2,)", &integers(&[2, 3])),
        array("<i4", "(3,)", &integers(&[0, 1, 3])),
        array("<i4", "(3,)", &integers(&[2, 0, 2])),
        array(
            "<f4",
            "(3,)",
            &integers(&[0x3f80_0000, 0x3f00_0000, 0x3f80_0000]),
        ),
    ];
    seeds.push([&[0][..], &join(&arrays.each_ref().map(Vec::as_slice))].concat());
    seeds
}

/// Valid inputs of [`predictions`].
pub fn predictions_seeds() -> Vec<Vec<u8>> {
    let contents: [(u8, &str); 6] = [
        (
            2,
            "{\"labels\": [{\"label\": \"a\", \"score\": 0.5}]}\n{\"labels\": {\"b\": 1, \"a\": -2e3}}\n",
        ),
        (2, "2 3\n0:0.5 2:1\n1:1e-3\n"),
        (1, "1 3\n2:1 2:2 0:-1\n"),
        (
            2,
            "id,rank,label,score,probability\na,1,x,0.5,\nb,1,\"<b>\",-1,0.25\n",
        ),
        (3, "row,rank,label,score,probability\n2,1,a,1e-3,\n"),
        (2, "a\tx\t0.5\n1\ty\t1\n"),
    ];
    let plain = contents.map(|(n_points, content)| [&[n_points], content.as_bytes()].concat());
    let mut seeds = plain.to_vec();
    let matrix = repository("tests/fixtures/npz/float32.npz");
    seeds.push([&[3][..], &fs::read(matrix).expect("a fixture")].concat());
    seeds
}

/// Valid inputs of [`inputs`].
pub fn inputs_seeds() -> Vec<Vec<u8>> {
    let contents = [
        "one text\n\nanother\r\n",
        "\n{\"text\": \"a\", \"id\": 3}\n{\"id\": \"x\", \"text\": \"b\\n\"}\n",
        "0 1\n7 4294967295\n\n",
        "id,title,content\n1,\"a\nb\",c\n2,d\n",
    ];
    contents.map(|content| content.as_bytes().to_vec()).to_vec()
}

pub fn labels_seeds() -> Vec<Vec<u8>> {
    let contents = [
        "a\tb c\n# d\n\"e f\",g\n",
        "a\nb\n",
        "one\\ntwo\n\\\\n\n\nends\\r\n",
        "é\r\n<b> c\n\\",
    ];
    contents.map(|content| content.as_bytes().to_vec()).to_vec()
}

/// Like [`files`], without the byte that chooses the format.
pub fn pipes_seeds() -> Vec<Vec<u8>> {
    lines_seeds()
        .into_iter()
        .map(|seed| seed[1..].to_vec())
        .collect()
}
