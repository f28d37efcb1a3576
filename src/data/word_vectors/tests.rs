//! Files of vectors of words, good and hostile.

use std::io::Write;
use std::path::PathBuf;

use safetensors::tensor::{Dtype, TensorView};
use tempfile::TempDir;

use super::WordVectors;
use crate::error::Result;

fn read_lines(content: impl AsRef<[u8]>) -> Result<WordVectors> {
    let directory = tempfile::tempdir().unwrap();
    let path = directory.path().join("words.vec");
    std::fs::write(&path, content).unwrap();
    WordVectors::read(path)
}

fn dump(vectors: &WordVectors) -> Vec<String> {
    let rows = vectors.entries().iter().enumerate();
    rows.map(|(row, entry)| format!("{entry} {:?}", vectors.vectors().row(row)))
        .collect()
}

/// A directory with these tokens and a matrix of this many rows of two values: 0 and 1, 2 and 3, and so on.
fn directory(tokenizer: &str, n_rows: usize) -> (TempDir, PathBuf) {
    let directory = tempfile::tempdir().unwrap();
    let values: Vec<u8> = (0..2 * n_rows)
        .flat_map(|value| (value as f32).to_le_bytes())
        .collect();
    let view = TensorView::new(Dtype::F32, vec![n_rows, 2], &values).unwrap();
    let bytes = safetensors::serialize([("embeddings", view)], None).unwrap();
    std::fs::write(directory.path().join("model.safetensors"), bytes).unwrap();
    std::fs::write(directory.path().join("tokenizer.json"), tokenizer).unwrap();
    let path = directory.path().to_owned();
    (directory, path)
}

fn read_tokens(tokenizer: &str, n_rows: usize) -> Result<WordVectors> {
    let (_kept, path) = directory(tokenizer, n_rows);
    WordVectors::read(path)
}

#[test]
fn files_of_words_are_read_with_and_without_a_header_and_compressed() {
    let words = "haus 1 -2.5\nstra\u{df}e 3e-1 4 \n";
    let expected = ["=haus [1.0, -2.5]", "=stra\u{df}e [0.3, 4.0]"];
    assert_eq!(dump(&read_lines(words).unwrap()), expected);
    assert_eq!(
        dump(&read_lines(format!("2 2\n{words}")).unwrap()),
        expected
    );
    let mut gzip = flate2::write::GzEncoder::new(Vec::new(), flate2::Compression::fast());
    gzip.write_all(words.as_bytes()).unwrap();
    assert_eq!(dump(&read_lines(gzip.finish().unwrap()).unwrap()), expected);
}

#[test]
fn of_a_word_that_comes_twice_the_first_counts_and_what_is_no_word_is_left_out() {
    let vectors = read_lines("a 1 2\n, 3 4\na 5 6\nnew york 7 8\nb 9 10\n").unwrap();
    assert_eq!(dump(&vectors), ["=a [1.0, 2.0]", "=b [9.0, 10.0]"]);
}

#[test]
fn hostile_files_of_words_are_errors_that_name_the_line() {
    let wide = format!("word{}\n", " 1".repeat(10_000));
    for (content, expected) in [
        ("a 1 2\nb 1\n", "words.vec:2"),
        ("a 1 2\nb 1.5 2 3\n", "words.vec:2: found more values"),
        ("a 1 2\nb 1 nan\n", "words.vec:2: found \"nan\""),
        ("a 1 2\nb inf 1\n", "words.vec:2: found \"inf\""),
        ("a 1 2\nb 1 x\n", "words.vec:2: found \"x\""),
        ("word\n", "words.vec:1: found a word and 0 values"),
        (&wide, "words.vec:1: found a word and 10000 values"),
        ("", "has no word with a vector"),
        ("1000000 300\n", "has 0 words, its first line says 1000000"),
        ("2 2\na 1 2\n", "has 1 words, its first line says 2"),
        ("1 3\na 1 2\n", "words.vec:2: found 2 values, expected 3"),
        (", 1 2\n", "has no word with a vector"),
    ] {
        let error = read_lines(content).unwrap_err().to_string();
        assert!(error.contains(expected), "{content:.40}: {error}");
    }
    assert!(read_lines([0x1f, 0x8b, 8, 0, 1, 2, 3]).is_err());
}

#[test]
fn tokens_keep_their_place_in_words_whatever_marks_it() {
    let word_piece = r###"{"model": {"type": "WordPiece", "continuing_subword_prefix": "##",
        "vocab": {"[UNK]": 0, "haus": 1, "##tür": 2, ".": 3}}}"###;
    let found = read_tokens(word_piece, 4).unwrap();
    assert_eq!(dump(&found), ["^haus [2.0, 3.0]", "+tür [4.0, 5.0]"]);
    let sentence_piece = r#"{"model": {"type": "Unigram",
        "vocab": [["<s>", 0], ["▁haus", -1.5], ["tür", -2], ["▁", -3]]}}"#;
    let found = read_tokens(sentence_piece, 4).unwrap();
    assert_eq!(dump(&found), ["^haus [2.0, 3.0]", "+tür [4.0, 5.0]"]);
    let bytes = r#"{"model": {"type": "BPE", "vocab": {"Ġhaus": 0, "tÃ¼r": 1, "Ã": 2}}}"#;
    let found = read_tokens(bytes, 3).unwrap();
    assert_eq!(dump(&found), ["^haus [0.0, 1.0]", "+tür [2.0, 3.0]"]);
    let words = r#"{"model": {"type": "WordLevel", "vocab": {"haus": 1}}}"#;
    assert_eq!(dump(&read_tokens(words, 2).unwrap()), ["=haus [2.0, 3.0]"]);
}

#[test]
fn hostile_directories_are_errors_of_what_was_found() {
    let good = r#"{"model": {"vocab": {"a": 0, "b": 1}}}"#;
    for (tokenizer, n_rows, expected) in [
        ("{", 2, "is not JSON"),
        ("{}", 2, "has no model.vocab"),
        (
            r#"{"model": {"vocab": {}}}"#,
            2,
            "has no word with a vector",
        ),
        (good, 1, "has 1 rows, tokenizer.json has the token 1"),
    ] {
        let error = read_tokens(tokenizer, n_rows).unwrap_err().to_string();
        assert!(error.contains(expected), "{tokenizer}: {error}");
    }
    let damaged = |change: &dyn Fn(&mut Vec<u8>)| {
        let (_kept, path) = directory(good, 2);
        let weights = path.join("model.safetensors");
        let mut bytes = std::fs::read(&weights).unwrap();
        change(&mut bytes);
        std::fs::write(weights, bytes).unwrap();
        WordVectors::read(path).unwrap_err().to_string()
    };
    let error = damaged(&|bytes| bytes.truncate(bytes.len() - 1));
    assert!(error.contains("not safetensors"), "{error}");
    let error = damaged(&|bytes| {
        let last = bytes.len() - 4;
        bytes[last..].copy_from_slice(&f32::NAN.to_le_bytes());
    });
    assert!(
        error.contains("row 1 has a value that is no number"),
        "{error}"
    );
    let (_kept, path) = directory(good, 2);
    std::fs::remove_file(path.join("model.safetensors")).unwrap();
    let error = WordVectors::read(&path).unwrap_err().to_string();
    assert!(error.contains("no model.safetensors"), "{error}");
    let (_kept, path) = directory(good, 2);
    std::fs::remove_file(path.join("tokenizer.json")).unwrap();
    let error = WordVectors::read(&path).unwrap_err().to_string();
    assert!(error.contains("tokenizer.json"), "{error}");
}

#[test]
fn a_matrix_with_a_million_dimensions_is_refused() {
    let directory = tempfile::tempdir().unwrap();
    let values = vec![0u8; 4 << 20];
    let view = TensorView::new(Dtype::F32, vec![1, 1 << 20], &values).unwrap();
    let bytes = safetensors::serialize([("embeddings", view)], None).unwrap();
    std::fs::write(directory.path().join("model.safetensors"), bytes).unwrap();
    let tokenizer = r#"{"model": {"vocab": {"a": 0}}}"#;
    std::fs::write(directory.path().join("tokenizer.json"), tokenizer).unwrap();
    let error = WordVectors::read(directory.path()).unwrap_err().to_string();
    assert!(error.contains("at most 8192 columns"), "{error}");
}
