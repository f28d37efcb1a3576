//! Files for NumPy: arrays that its `fromfile` reads.

pub mod service;

use std::error::Error;
use std::fs::File;
use std::io::{BufWriter, Write};
use std::path::Path;

use elias::data::CsrMatrix;

/// Writes `NAME.indptr` (u64), `NAME.indices` (u32), `NAME.values` (f32) and `NAME.shape` (u64), little-endian.
///
/// # Errors
/// If a file cannot be written.
pub fn write_matrix(
    directory: &Path,
    name: &str,
    matrix: &CsrMatrix,
) -> Result<(), Box<dyn Error>> {
    let indptr = matrix.indptr().iter().map(|&offset| offset as u64);
    write(
        directory,
        &format!("{name}.indptr"),
        indptr.map(u64::to_le_bytes),
    )?;
    let indices = matrix.indices().iter().map(|index| index.to_le_bytes());
    write(directory, &format!("{name}.indices"), indices)?;
    let values = matrix.values().iter().map(|value| value.to_le_bytes());
    write(directory, &format!("{name}.values"), values)?;
    let shape = [matrix.n_rows() as u64, matrix.n_cols() as u64];
    write(
        directory,
        &format!("{name}.shape"),
        shape.map(u64::to_le_bytes),
    )
}

/// Writes these pieces one after the other.
///
/// # Errors
/// If the file cannot be written.
pub fn write<T: AsRef<[u8]>>(
    directory: &Path,
    name: &str,
    pieces: impl IntoIterator<Item = T>,
) -> Result<(), Box<dyn Error>> {
    let mut file = BufWriter::new(File::create(directory.join(name))?);
    for piece in pieces {
        file.write_all(piece.as_ref())?;
    }
    Ok(file.flush()?)
}
