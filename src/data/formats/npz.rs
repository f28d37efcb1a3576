//! SciPy's sparse matrices: `scipy.sparse.save_npz` in CSR form, read and written.
//!
//! Such a file is a zip archive of five NumPy arrays: `format`, `shape`, `data`, `indices`, `indptr`. Values may be
//! floats of 4 or 8 bytes, integers or booleans; indices of any integer type; either byte order; compressed or not.
//! SciPy allows columns out of order and several entries for one column: readers sort them and then add them up for
//! features and keep the highest for labels. Arrays are read as far as they go, so a false header cannot cause a large allocation.

use std::fs::File;
use std::io::{self, BufReader, Cursor, Read, Seek, Write};
use std::path::Path;

use zip::write::SimpleFileOptions;
use zip::{CompressionMethod, DateTime, ZipArchive, ZipWriter};

use crate::data::builder::sum_duplicates;
use crate::data::formats::npy::{self, Number};
use crate::data::io::archive;
use crate::data::io::missing::missing;
use crate::data::io::sink::Sink;
use crate::error::{Error, Result, shortened};
use crate::matrix::{CsrBuilder, CsrMatrix};

impl CsrMatrix {
    /// Reads a SciPy CSR matrix; columns are sorted, entries for the same column added up.
    ///
    /// # Errors
    /// [`Error::BadFile`] if the file is not such a matrix, [`Error::Io`] if it cannot be read.
    pub fn read_npz(path: impl AsRef<Path>) -> Result<CsrMatrix> {
        let path = path.as_ref();
        let rows = UnsortedRows::read(path)?;
        let mut builder = CsrBuilder::default();
        let mut row = Vec::new();
        for row_idx in 0..rows.n_rows() {
            row.extend(rows.row(row_idx));
            sum_duplicates(&mut row).map_err(|found| {
                bad_file(path, format!("found {found}, expected finite values"))
            })?;
            builder.push_row(row.drain(..));
        }
        builder.finish(rows.n_columns)
    }
}

impl CsrMatrix {
    /// Writes a matrix so that `scipy.sparse.load_npz` reads it: compressed, values `float32`.
    ///
    /// # Errors
    /// [`Error::Io`] if the file cannot be written.
    pub fn write_npz(&self, path: impl AsRef<Path>) -> Result<()> {
        let (path, matrix) = (path.as_ref(), self);
        let mut archive = Vec::new();
        write_npz_to(&mut io::Cursor::new(&mut archive), matrix)
            .map_err(|error| Error::io(path, "write", error))?;
        let mut sink = Sink::create_plain(path)?;
        sink.write_all(&archive)
            .map_err(|error| Error::io(path, "write", error))?;
        sink.finish()
    }
}

/// Writes the archive to anything that can seek.
pub(in crate::data) fn write_npz_to(
    out: &mut (impl Write + Seek),
    matrix: &CsrMatrix,
) -> io::Result<()> {
    // A fixed date, so that the same matrix gives the same bytes.
    let options = SimpleFileOptions::default()
        .compression_method(CompressionMethod::Deflated)
        .last_modified_time(DateTime::default())
        .large_file(true);
    let mut zip = ZipWriter::new(out);
    let start = |zip: &mut ZipWriter<_>, name: &str| {
        zip.start_file(format!("{name}.npy"), options)
            .map_err(io::Error::other)
    };
    let widest = matrix.nnz().max(matrix.n_cols()).max(matrix.n_rows());
    let is_wide = widest >= i32::MAX as usize;

    start(&mut zip, "indices")?;
    npy::write_integers(
        &mut zip,
        is_wide,
        matrix.indices().iter().map(|&column| column as u64),
    )?;
    start(&mut zip, "indptr")?;
    npy::write_integers(
        &mut zip,
        is_wide,
        matrix.indptr().iter().map(|&end| end as u64),
    )?;
    start(&mut zip, "format")?;
    npy::write_header(&mut zip, "|S3", "()")?;
    zip.write_all(b"csr")?;
    start(&mut zip, "shape")?;
    let shape = [matrix.n_rows() as u64, matrix.n_cols() as u64];
    npy::write_integers(&mut zip, true, shape.into_iter())?;
    start(&mut zip, "data")?;
    npy::write_header(&mut zip, "<f4", &format!("({},)", matrix.nnz()))?;
    for values in matrix.values().chunks(16 * 1024) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        zip.write_all(&bytes)?;
    }
    zip.finish().map_err(io::Error::other)?;
    Ok(())
}

/// The rows as they are in the file: within bounds and finite, but in any order.
pub(in crate::data) struct UnsortedRows {
    indptr: Vec<usize>,
    indices: Vec<u32>,
    values: Vec<f32>,
    /// Number of columns.
    pub(in crate::data) n_columns: usize,
}

impl UnsortedRows {
    /// Reads and checks a file.
    pub(in crate::data) fn read(path: &Path) -> Result<Self> {
        let rows = match (File::open(path), archive::read_whole(path)?) {
            (_, Some(bytes)) => Self::from_archive(Cursor::new(bytes)),
            (Ok(file), None) => Self::from_archive(BufReader::new(file)),
            (Err(error), None) => return Err(missing(path, error)),
        };
        rows.map_err(|problem| bad_file(path, problem))
    }

    fn from_archive(reader: impl Read + Seek) -> Result<Self, String> {
        let mut zip = ZipArchive::new(reader).map_err(|error| {
            format!(
                "is not a SciPy npz file: {error}; expected scipy.sparse.save_npz of a csr_matrix"
            )
        })?;
        let format: String = read_bytes(&mut zip, "format")?
            .iter()
            .filter(|byte| **byte != 0)
            .map(|&byte| char::from(byte))
            .collect();
        if format != "csr" {
            return Err(format!(
                "holds a sparse matrix of form {format:?}, expected \"csr\": save matrix.tocsr()"
            ));
        }
        let shape = read_array(&mut zip, "shape", |number| number.as_index())?;
        let [n_rows, n_columns] = shape[..] else {
            return Err(format!(
                "has a shape of {} numbers, expected 2",
                shape.len()
            ));
        };
        if n_columns > u64::from(u32::MAX) {
            return Err(format!(
                "has {n_columns} columns, expected at most {}",
                u32::MAX
            ));
        }
        let indptr = read_array(&mut zip, "indptr", |number| {
            number.as_index().and_then(|end| usize::try_from(end).ok())
        })?;
        let indices = read_array(&mut zip, "indices", |number| {
            let column = number.as_index().filter(|column| *column < n_columns);
            column.map(|column| column as u32)
        })?;
        let values = read_array(&mut zip, "data", |number| {
            Some(number.as_f32()).filter(|value| value.is_finite())
        })?;
        if indptr.len() as u64 != n_rows.saturating_add(1) {
            return Err(format!(
                "has {} row offsets, expected {n_rows} rows and one more",
                indptr.len()
            ));
        }
        if indices.len() != values.len() {
            return Err(format!(
                "has {} column indices and {} values, expected as many",
                indices.len(),
                values.len()
            ));
        }
        let ends_fit = indptr.first() == Some(&0) && indptr.last() == Some(&indices.len());
        if !ends_fit || indptr.windows(2).any(|ends| ends[1] < ends[0]) {
            return Err(format!(
                "has row offsets that do not rise from 0 to the {} entries",
                indices.len()
            ));
        }
        Ok(UnsortedRows {
            indptr,
            indices,
            values,
            n_columns: n_columns as usize,
        })
    }

    /// Number of rows.
    pub(in crate::data) fn n_rows(&self) -> usize {
        self.indptr.len() - 1
    }

    /// The entries of a row as they are.
    pub(in crate::data) fn row(&self, row_idx: usize) -> impl Iterator<Item = (u32, f32)> {
        let range = self.indptr[row_idx]..self.indptr[row_idx + 1];
        let columns = self.indices[range.clone()].iter().copied();
        columns.zip(self.values[range].iter().copied())
    }
}

fn bad_file(path: &Path, problem: String) -> Error {
    Error::BadFile {
        path: path.to_path_buf(),
        problem,
    }
}

fn read_array<T, R: Read + Seek>(
    zip: &mut ZipArchive<R>,
    name: &str,
    convert: impl FnMut(Number) -> Option<T>,
) -> Result<Vec<T>, String> {
    let entry = open_entry(zip, name)?;
    npy::read_numbers(entry, convert).map_err(|problem| format!("array {name}: {problem}"))
}

fn read_bytes<R: Read + Seek>(zip: &mut ZipArchive<R>, name: &str) -> Result<Vec<u8>, String> {
    let entry = open_entry(zip, name)?;
    npy::read_text(entry).map_err(|problem| format!("array {name}: {problem}"))
}

fn open_entry<'z, R: Read + Seek>(
    zip: &'z mut ZipArchive<R>,
    name: &str,
) -> Result<impl Read + 'z, String> {
    let names: Vec<String> = zip
        .file_names()
        .take(8)
        .flatten()
        .map(|name| name.into_owned())
        .collect();
    let entry = zip.by_name(&format!("{name}.npy")).map_err(|error| {
        format!(
            "array {name} cannot be read ({error}); found {}, expected scipy.sparse.save_npz of a csr_matrix",
            shortened(&names.join(", "))
        )
    })?;
    Ok(BufReader::with_capacity(64 * 1024, entry))
}
