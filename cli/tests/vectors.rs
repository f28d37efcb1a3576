//! Vectors of words and embeddings of texts from files.

use std::path::Path;

use crate::command::{run, write};
use crate::model::{data, first_label, train};

#[test]
fn vectors_of_words_and_embeddings_of_texts_come_from_files() {
    let dir = tempfile::tempdir().unwrap();
    let data = data(dir.path());
    let words = write(
        dir.path(),
        "words.vec",
        "apple 1 0\ncherry 1 0.1\ncar 0 1\ntram 0.1 1\n",
    );
    let out = |name: &str| dir.path().join(name).to_str().unwrap().to_owned();
    let (model, texts) = (
        out("model"),
        write(dir.path(), "texts.txt", "cherry\ntram\n"),
    );
    let ran = train(&data, Path::new(&model), &["--embeddings", &words]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    assert!(ran.stderr.contains("with 2 dimensions"), "{}", ran.stderr);
    let ran = run(["predict", &model, &texts]);
    let labels: Vec<String> = ran.stdout.lines().map(first_label).collect();
    assert_eq!(labels, ["fruit", "vehicle"]);
    let bad = write(dir.path(), "bad.vec", "apple 1 0\ncar 1 nan\n");
    let ran = train(&data, Path::new(&out("other")), &["--embeddings", &bad]);
    assert_eq!(ran.code, Some(1));
    assert!(ran.stderr.contains("bad.vec:2"), "{}", ran.stderr);

    // A model's own vectors are embeddings of texts like any others.
    let (vectors, second) = (out("train.npy"), out("second"));
    let ran = run(["embed", &model, &data, "--out", &vectors]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let ran = train(
        &data,
        Path::new(&second),
        &["--embeddings-of-texts", &vectors],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    let of_texts = out("texts.npy");
    assert_eq!(
        run(["embed", &model, &texts, "--out", &of_texts]).code,
        Some(0)
    );
    let ran = run([
        "predict",
        &second,
        &texts,
        "--embeddings-of-texts",
        &of_texts,
    ]);
    let labels: Vec<String> = ran.stdout.lines().map(first_label).collect();
    assert_eq!(labels, ["fruit", "vehicle"], "{}", ran.stderr);
    for (arguments, expected) in [
        (vec!["predict", &second, &texts], "give them with the texts"),
        (
            vec![
                "predict",
                &second,
                &texts,
                "--embeddings-of-texts",
                &vectors,
            ],
            "more embeddings than texts",
        ),
        (
            vec![
                "predict",
                &second,
                &data,
                "--embeddings-of-texts",
                &of_texts,
            ],
            "fewer embeddings than texts",
        ),
    ] {
        let ran = run(arguments);
        assert_eq!(ran.code, Some(1));
        assert!(ran.stderr.contains(expected), "{}", ran.stderr);
    }
    let ran = run([
        "evaluate",
        &second,
        &data,
        "--embeddings-of-texts",
        &vectors,
    ]);
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
}
