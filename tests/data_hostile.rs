//! Hostile data: whatever the bytes, reading ends without a panic.

use std::fs;
use std::path::Path;

use elias::data::{self, CsrMatrix, Format, Part, PredictionShape, ReadOptions};
use proptest::prelude::*;

/// Small valid files of every single-file format, to be mutated.
const VALID: [&str; 9] = [
    "{\"id\": 1, \"text\": \"a\", \"labels\": [\"x\", \"y\"]}\n{\"text\": \"b\", \"labels\": {\"x\": 0.5}}\n",
    "{\"uid\": \"1\", \"title\": \"a\", \"content\": \"b\", \"target_ind\": [0, 2], \"target_rel\": [1.0, 0.5]}\n",
    "2 5 4\n0,3 1:0.5 4:1\n 2:1e-3\n",
    "0,2::0.3\tsome text\n1\tmore\n",
    "__label__a __label__b%20c some text\n__label__a more\n",
    "7\ta b\tsome text\n8\t\tmore\n",
    "some text\t<http://a> <b c>\nmore\t\n",
    "id,title,abstract,labels\n1,\"a, b\",\"c\nd\",x;y\n2,\"e \"\"f\"\"\",,\"[\"\"x\"\"]\"\n",
    "text\tsubject_uris\na b\t<http://x> <y>\nc\t\n",
];

fn read_every_way(bytes: &[u8]) {
    for format in Format::ALL.map(Some).into_iter().chain([None]) {
        let options = ReadOptions {
            format,
            ..ReadOptions::default()
        };
        // Whether it can be read does not matter, only that it ends without a panic.
        let _ = options.read_bytes("bytes", bytes);
    }
}

/// The same bytes in every place where a directory has a file.
fn read_as_directory(bytes: &[u8], names: &[u8]) {
    let pairs = [
        ("trn.json", None, "lbl.json"),
        ("trn_X_Xf.txt", Some("trn_X_Y.txt"), "labels.txt"),
        ("train_texts.txt", Some("train_labels.txt"), "labels.txt"),
        ("X.trn.npz", Some("Y.trn.npz"), "output-items.txt"),
        ("X.tst.txt", Some("Y.tst.npz"), "output-items.txt"),
    ];
    for (points, labels, label_names) in pairs {
        let directory = tempfile::tempdir().unwrap();
        fs::write(directory.path().join(points), bytes).unwrap();
        fs::write(directory.path().join(label_names), names).unwrap();
        if let Some(labels) = labels {
            fs::write(directory.path().join(labels), bytes).unwrap();
        }
        for part in Part::ALL {
            let options = ReadOptions {
                part,
                ..ReadOptions::default()
            };
            let _ = options.read(directory.path());
        }
        let label_set: data::LabelSet = ["x"].into_iter().collect();
        let shape = PredictionShape {
            n_points: 1,
            label_set: &label_set,
            n_trained: label_set.len(),
            ids: None,
        };
        let _ = shape.read(directory.path().join(points));
        let _ = data::read_filter_pairs(&directory.path().join(points));
    }
    let inputs = data::TextInputs::new("bytes", bytes);
    let _ = inputs.map(|inputs| inputs.take_while(Result::is_ok).count());
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]

    #[test]
    fn random_bytes_never_panic(bytes in prop::collection::vec(any::<u8>(), 0..200)) {
        read_every_way(&bytes);
        read_as_directory(&bytes, &bytes);
    }

    #[test]
    fn random_words_never_panic(text in "[0-9a:,.<>{}\"\\[\\]_ \t\n%e-]{0,80}") {
        read_every_way(text.as_bytes());
        read_as_directory(text.as_bytes(), b"a\nb\n");
    }

    #[test]
    fn mutated_files_never_panic(
        which in 0..VALID.len(),
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..4),
        cut in any::<prop::sample::Index>(),
    ) {
        let mut bytes = VALID[which].as_bytes().to_vec();
        for (at, byte) in changes {
            let at = at.index(bytes.len());
            bytes[at] = byte;
        }
        read_every_way(&bytes);
        bytes.truncate(cut.index(bytes.len()) + 1);
        read_every_way(&bytes);
        read_as_directory(&bytes, &bytes);
    }

    #[test]
    fn mutated_archives_never_panic(
        changes in prop::collection::vec((any::<prop::sample::Index>(), any::<u8>()), 1..6),
        cut in prop::option::of(any::<prop::sample::Index>()),
    ) {
        let fixtures = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/fixtures/npz");
        for name in ["stored.npz", "float64.npz"] {
            let mut bytes = fs::read(fixtures.join(name)).unwrap();
            for (at, byte) in &changes {
                let at = at.index(bytes.len());
                bytes[at] = *byte;
            }
            if let Some(cut) = cut {
                bytes.truncate(cut.index(bytes.len()));
            }
            let directory = tempfile::tempdir().unwrap();
            let path = directory.path().join("m.npz");
            fs::write(&path, &bytes).unwrap();
            let _ = CsrMatrix::read_npz(&path);
        }
    }
}
