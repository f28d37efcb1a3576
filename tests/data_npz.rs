//! Sparse matrices saved by SciPy; `fixtures/npz/make.py` made them with SciPy 1.17.

use std::path::{Path, PathBuf};

use elias::data::CsrMatrix;

fn fixture(name: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("tests/fixtures/npz")
        .join(format!("{name}.npz"))
}

/// The matrix that all good fixtures hold.
fn expected() -> CsrMatrix {
    let values = vec![2.0, 1.0, 5.0, 3.0, 7.0];
    CsrMatrix::new(vec![0, 2, 2, 4, 5], vec![1, 5, 0, 3, 4], values, 6).unwrap()
}

#[test]
fn every_number_type_of_scipy_is_read() {
    let types = ["float32", "float64", "int8", "int32", "int64", "uint16"];
    let ways = [
        "stored",
        "array",
        "wide",
        "big_endian",
        "unsorted_duplicates",
    ];
    for name in types.into_iter().chain(ways) {
        assert_eq!(
            CsrMatrix::read_npz(fixture(name)).unwrap(),
            expected(),
            "{name}"
        );
    }
    let booleans = CsrMatrix::read_npz(fixture("bool")).unwrap();
    assert_eq!(booleans.indices(), expected().indices());
    assert!(booleans.values().iter().all(|value| *value == 1.0));
}

#[test]
fn what_cannot_be_used_is_refused_with_a_reason() {
    let check = |name: &str, part_of_message: &str| {
        let error = CsrMatrix::read_npz(fixture(name)).unwrap_err().to_string();
        assert!(error.contains(part_of_message), "{error}");
    };
    check("csc", "form \"csc\", expected \"csr\": save matrix.tocsr()");
    check("not_finite", "array data: element 0 is NaN, out of range");
    check(
        "column_out_of_range",
        "array indices: element 1 is 6, out of range",
    );
    check("missing", "no such file");
}

#[test]
fn a_matrix_survives_writing_and_the_bytes_do_not_change() {
    let directory = tempfile::tempdir().unwrap();
    let paths = [
        directory.path().join("a.npz"),
        directory.path().join("b.npz"),
    ];
    let empty = CsrMatrix::new(vec![0], Vec::new(), Vec::new(), 0).unwrap();
    for matrix in [expected(), empty] {
        for path in &paths {
            matrix.write_npz(path).unwrap();
            assert_eq!(CsrMatrix::read_npz(path).unwrap(), matrix);
        }
        let bytes = paths.each_ref().map(|path| std::fs::read(path).unwrap());
        assert_eq!(bytes[0], bytes[1]);
    }
}
