//! Embeddings of texts that someone else computed, for a model to be trained over: the rows of a NumPy file, one per text.
//!
//! Rows are read one after the other, so that memory grows with what is read, whatever the header says.

use std::fs::File;
use std::io::BufReader;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use super::formats::npy::MatrixRows;
use crate::data::missing;
use crate::error::{Error, Result};
use crate::matrix::Matrix;

/// One vector per text; every value is finite.
#[derive(Clone, Debug, PartialEq)]
pub struct TextEmbeddings {
    matrix: Arc<Matrix>,
}

impl TextEmbeddings {
    /// Reads a matrix of floats from a NumPy file.
    ///
    /// # Errors
    /// As [`EmbeddingRows::open`] and [`EmbeddingRows::next`].
    pub fn read(path: impl AsRef<Path>) -> Result<Self> {
        let mut rows = EmbeddingRows::open(path.as_ref())?;
        rows.next(usize::MAX)
    }

    /// Vectors of `dim` values each, one after the other.
    ///
    /// # Errors
    /// [`Error::InvalidDataset`] if they do not fill rows, or a value is not finite.
    pub fn new(values: Vec<f32>, dim: usize) -> Result<Self> {
        let invalid = |problem: String| Err(Error::InvalidDataset(problem));
        if dim == 0 || !values.len().is_multiple_of(dim) {
            return invalid(format!("{} values are no rows of {dim}", values.len()));
        }
        if let Some(at) = values.iter().position(|value| !value.is_finite()) {
            let (row, value) = (at / dim, values[at]);
            return invalid(format!("the embedding of text {row} has the value {value}"));
        }
        let n_rows = values.len() / dim;
        let matrix = Arc::new(Matrix::from_vec(values, n_rows, dim));
        Ok(TextEmbeddings { matrix })
    }

    /// Number of vectors.
    pub fn len(&self) -> usize {
        self.matrix.n_rows()
    }

    /// Whether there are none.
    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// Values of a vector.
    pub fn dim(&self) -> usize {
        self.matrix.n_cols()
    }

    /// These vectors, in that order.
    ///
    /// # Panics
    /// If one is out of range.
    pub fn select(&self, rows: &[usize]) -> Self {
        let values = rows.iter().flat_map(|&row| self.matrix.row(row)).copied();
        let matrix = Matrix::from_vec(values.collect(), rows.len(), self.dim());
        TextEmbeddings {
            matrix: Arc::new(matrix),
        }
    }

    pub(crate) fn matrix(&self) -> &Matrix {
        &self.matrix
    }
}

/// The vectors of a NumPy file, read in their order.
pub struct EmbeddingRows {
    path: PathBuf,
    file: BufReader<File>,
    rows: MatrixRows,
    n_left: u64,
}

impl EmbeddingRows {
    /// Opens a file with a matrix of floats of 16, 32 or 64 bits.
    ///
    /// # Errors
    /// [`Error::BadFile`] if it is none, or has not as many bytes as it says; [`Error::Io`].
    pub fn open(path: &Path) -> Result<Self> {
        let file = File::open(path).map_err(|error| missing(path, error))?;
        let n_bytes = file.metadata().map_or(0, |metadata| metadata.len());
        let mut file = BufReader::with_capacity(1 << 18, file);
        let bad = |problem: String| Error::BadFile {
            path: path.into(),
            problem,
        };
        let rows = MatrixRows::start(&mut file).map_err(bad)?;
        if rows
            .n_file_bytes()
            .is_none_or(|expected| n_bytes < expected)
        {
            let (n_rows, n_cols) = (rows.n_rows, rows.n_cols);
            let problem = format!("has {n_bytes} bytes, too few for its {n_rows} rows of {n_cols}");
            return Err(bad(problem));
        }
        Ok(EmbeddingRows {
            path: path.into(),
            file,
            n_left: rows.n_rows,
            rows,
        })
    }

    /// The next vectors, at most so many; fewer at the end.
    ///
    /// # Errors
    /// [`Error::BadFile`] if the file ends early, or a value is not finite.
    #[allow(clippy::should_implement_trait)] // An iterator has no number of items to ask for.
    pub fn next(&mut self, n_rows: usize) -> Result<TextEmbeddings> {
        let n_rows = self.n_left.min(n_rows as u64);
        let mut values = Vec::new();
        for row in 0..n_rows {
            let read = self.rows.read_row(&mut self.file, &mut values);
            read.map_err(|problem| Error::BadFile {
                path: self.path.clone(),
                problem: format!("row {}: {problem}", self.rows.n_rows - self.n_left + row),
            })?;
        }
        self.n_left -= n_rows;
        let matrix = Matrix::from_vec(values, n_rows as usize, self.rows.n_cols);
        Ok(TextEmbeddings {
            matrix: Arc::new(matrix),
        })
    }

    /// Vectors that were not read yet.
    pub fn n_left(&self) -> u64 {
        self.n_left
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::data::write_npy;

    fn written(header: &str, bytes: &[u8]) -> Result<TextEmbeddings> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("texts.npy");
        let mut file = b"\x93NUMPY\x01\x00".to_vec();
        let header = format!("{header:<100}\n");
        file.extend((header.len() as u16).to_le_bytes());
        file.extend(header.as_bytes());
        file.extend(bytes);
        std::fs::write(&path, file).unwrap();
        TextEmbeddings::read(path)
    }

    fn header(descr: &str, shape: &str) -> String {
        format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}")
    }

    #[test]
    fn floats_of_any_size_are_read() {
        let expected = TextEmbeddings::new(vec![1.0, -0.5, 2.0, 0.0], 2).unwrap();
        let values = expected.matrix().values();
        let halves: Vec<u8> = [0x3c00u16, 0xb800, 0x4000, 0]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        assert_eq!(
            written(&header("<f2", "(2, 2)"), &halves).unwrap(),
            expected
        );
        let singles: Vec<u8> = values.iter().flat_map(|v| v.to_le_bytes()).collect();
        assert_eq!(
            written(&header("<f4", "(2, 2)"), &singles).unwrap(),
            expected
        );
        let doubles: Vec<u8> = values
            .iter()
            .flat_map(|&v| f64::from(v).to_be_bytes())
            .collect();
        assert_eq!(
            written(&header(">f8", "(2, 2)"), &doubles).unwrap(),
            expected
        );
    }

    #[test]
    fn rows_come_in_parts_and_end() {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("texts.npy");
        let mut file = Vec::new();
        write_npy(&mut file, 2, &[1.0, 2.0, 3.0, 4.0, 5.0, 6.0]).unwrap();
        std::fs::write(&path, file).unwrap();
        let mut rows = EmbeddingRows::open(&path).unwrap();
        assert_eq!(
            rows.next(2).unwrap().matrix().values(),
            [1.0, 2.0, 3.0, 4.0]
        );
        assert_eq!(rows.n_left(), 1);
        assert_eq!(rows.next(9).unwrap().select(&[0, 0]).len(), 2);
        assert!(rows.next(9).unwrap().is_empty());
    }

    #[test]
    fn files_that_are_no_matrices_of_floats_are_errors_of_bounded_memory() {
        let nan: Vec<u8> = [1.0f32, f32::NAN]
            .iter()
            .flat_map(|v| v.to_le_bytes())
            .collect();
        for (header, bytes, expected) in [
            (
                header("<f4", "(1, 2)"),
                &nan[..],
                "row 0: has the value NaN",
            ),
            (
                header("<f4", "(1000000000000, 2)"),
                &nan,
                "too few for its 1000000000000 rows",
            ),
            (
                header("<f4", "(18446744073709551615, 65536)"),
                &nan,
                "NumPy header",
            ),
            (header("<f4", "(1, 1000000)"), &nan, "1 to 65536 columns"),
            (header("<f4", "(2,)"), &nan, "shape [2]"),
            (header("<i4", "(1, 2)"), &nan, "type i4"),
            (header("<f4", "(1, 0)"), &nan, "1 to 65536 columns"),
            (
                header("<f4", "(1, 2)").replace("False", "True"),
                &nan,
                "ascontiguousarray",
            ),
            (header("<f4", "(1, 2)"), &nan[..5], "row 0: ends early"),
            ("nothing".into(), &nan, "NumPy header"),
        ] {
            let error = written(&header, bytes).unwrap_err().to_string();
            assert!(error.contains(expected), "{header}: {error}");
        }
        assert!(TextEmbeddings::new(vec![1.0; 3], 2).is_err());
        assert!(TextEmbeddings::new(vec![f32::INFINITY; 2], 2).is_err());
    }
}
