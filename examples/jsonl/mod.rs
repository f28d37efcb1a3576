//! What the examples share: reading JSON Lines, and writing arrays that NumPy's `fromfile` reads.

use std::collections::BTreeSet;
use std::error::Error;
use std::fs::File;
use std::io::{BufRead, BufReader, BufWriter, Read, Write};
use std::path::Path;

use elias::data::{LabelSet, Texts};
use elias::matrix::{CsrBuilder, CsrMatrix};

/// The texts of a file of `{"text": ..., "labels": [...]}` lines and their labels, N×L.
pub(crate) fn read(path: &Path) -> Result<(Texts, CsrMatrix), Box<dyn Error>> {
    let file = File::open(path)?;
    let source: Box<dyn Read> = if path.extension().is_some_and(|extension| extension == "gz") {
        Box::new(flate2::read::MultiGzDecoder::new(file))
    } else {
        Box::new(file)
    };
    let mut texts = Texts::default();
    let mut label_set = LabelSet::default();
    let mut labels = CsrBuilder::default();
    for line in BufReader::new(source).lines() {
        let point: serde_json::Value = serde_json::from_str(&line?)?;
        texts.push(point["text"].as_str().ok_or("a line without a text")?);
        let names = point["labels"].as_array().map_or(&[][..], Vec::as_slice);
        let ids: BTreeSet<u32> = names
            .iter()
            .filter_map(|name| name.as_str())
            .map(|name| label_set.intern(name).0)
            .collect();
        labels.push_row(ids.into_iter().map(|label| (label, 1.0)));
    }
    Ok((texts, labels.finish(label_set.len())?))
}

/// Writes `NAME.indptr` (u64), `NAME.indices` (u32), `NAME.values` (f32) and `NAME.shape` (u64), little-endian.
pub(crate) fn write_matrix(
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
pub(crate) fn write<T: AsRef<[u8]>>(
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
