//! Data sets in a zip archive, read as they are downloaded: `archive.zip/folder/trn.json.gz` is a file in it.
//!
//! Nothing is unpacked to disk, and an entry is read as a stream, so memory does not grow with what it expands to; lines
//! have their bound as in any other file. Entries that would lie outside of the folder they are unpacked into, links and
//! directories are no files here, and an archive in an archive is a file like any other. Bytes are checked against the
//! archive's sums when an entry ends.

use std::fs::File;
use std::io::{self, BufReader, Read, Seek, SeekFrom};
use std::path::{Path, PathBuf};

use flate2::Crc;
use flate2::read::DeflateDecoder;
use zip::CompressionMethod;
use zip::read::ZipArchive;
use zip::result::ZipError;

use crate::data::io::missing::missing;
use crate::error::{Error, Result};

/// Most entries of an archive: data sets have a handful of files.
const MAX_ENTRIES: usize = 10_000;
/// Most bytes of an entry that is held in memory as a whole.
const MAX_WHOLE: u64 = 4 << 30;

/// A file in an archive.
struct Entry {
    /// Its path in the archive.
    path: PathBuf,
    /// Bytes in the archive, where they start, and how they are stored.
    n_bytes: u64,
    start: u64,
    is_deflated: bool,
    crc: u32,
}

/// Whether a path is a zip archive, by its name.
pub(in crate::data) fn is_archive(path: &Path) -> bool {
    let has_ending = path
        .extension()
        .is_some_and(|ending| ending.eq_ignore_ascii_case("zip"));
    has_ending && path.is_file()
}

/// The archive that a path leads into, and the rest of the path.
fn split(path: &Path) -> Option<(&Path, &Path)> {
    let archive = path.ancestors().find(|path| is_archive(path))?;
    Some((archive, path.strip_prefix(archive).ok()?))
}

/// The directory of a data set in an archive: where its files are, below folders that hold a single folder.
///
/// # Errors
/// [`Error::BadFile`] if it is no archive, or holds what cannot be read.
pub(in crate::data) fn root(archive: &Path) -> Result<PathBuf> {
    let entries = entries(archive)?;
    let mut root = PathBuf::new();
    loop {
        let below: Vec<&Path> = entries
            .iter()
            .filter_map(|entry| entry.path.strip_prefix(&root).ok())
            // What macOS adds.
            .filter(|path| !path.starts_with("__MACOSX"))
            .collect();
        let first = below.first().and_then(|path| path.components().next());
        let Some(first) = first else { break };
        let is_folder =
            |path: &&Path| path.starts_with(first) && path.components().nth(1).is_some();
        if !below.iter().all(is_folder) {
            break;
        }
        root.push(first);
    }
    if root.as_os_str().is_empty() {
        // Joining nothing would end the path in a slash, which is no path of a file.
        return Ok(archive.to_path_buf());
    }
    Ok(archive.join(root))
}

/// Whether a path is a file, on disk or in an archive.
pub(in crate::data) fn is_file(path: &Path) -> bool {
    path.is_file() || find(path).is_ok_and(|found| found.is_some())
}

/// Size of a file as it is stored, on disk or in an archive; 0 where there is none.
pub(in crate::data) fn n_bytes(path: &Path) -> u64 {
    match std::fs::metadata(path) {
        Ok(metadata) => metadata.len(),
        Err(_) => find(path)
            .ok()
            .flatten()
            .map_or(0, |(_, entry)| entry.n_bytes),
    }
}

/// The bytes of a file on disk or in an archive.
///
/// # Errors
/// As [`open`], and [`Error::NotFound`].
pub(in crate::data) fn open_file(path: &Path) -> Result<Box<dyn Read>> {
    match File::open(path) {
        Ok(file) => Ok(Box::new(file)),
        Err(error) => open(path)?.ok_or_else(|| missing(path, error)),
    }
}

/// The names of the files of a directory in an archive; `None` for any other path.
pub(in crate::data) fn file_names(directory: &Path) -> Option<Vec<String>> {
    let (archive, inside) = split(directory)?;
    let entries = entries(archive).ok()?;
    let files = entries
        .iter()
        .filter(|entry| entry.path.parent() == Some(inside));
    let names = files.filter_map(|entry| entry.path.file_name());
    Some(
        names
            .map(|name| name.to_string_lossy().into_owned())
            .collect(),
    )
}

/// The bytes of a file in an archive; `None` for any other path.
///
/// # Errors
/// [`Error::BadFile`] if the archive cannot be read; [`Error::Io`].
fn open(path: &Path) -> Result<Option<Box<dyn Read>>> {
    let Some((archive, entry)) = find(path)? else {
        return Ok(None);
    };
    let read_error = |error| Error::io(archive, "read", error);
    let mut file = File::open(archive).map_err(read_error)?;
    file.seek(SeekFrom::Start(entry.start))
        .map_err(read_error)?;
    let stored = BufReader::new(file.take(entry.n_bytes));
    let inner: Box<dyn Read> = match entry.is_deflated {
        true => Box::new(DeflateDecoder::new(stored)),
        false => Box::new(stored),
    };
    Ok(Some(Box::new(Checked {
        inner,
        sum: Crc::new(),
        expected: entry.crc,
    })))
}

/// All bytes of a file in an archive, for formats that are not read from front to back; `None` for any other path.
///
/// # Errors
/// As [`open`]; [`Error::BadFile`] if there are too many.
pub(in crate::data) fn read_whole(path: &Path) -> Result<Option<Vec<u8>>> {
    let Some(reader) = open(path)? else {
        return Ok(None);
    };
    let mut bytes = Vec::new();
    let mut bounded = reader.take(MAX_WHOLE + 1);
    bounded
        .read_to_end(&mut bytes)
        .map_err(|error| Error::io(path, "read", error))?;
    if bytes.len() as u64 > MAX_WHOLE {
        return Err(bad(
            path,
            format!("holds more than {MAX_WHOLE} bytes: unpack the archive"),
        ));
    }
    Ok(Some(bytes))
}

/// The archive and the entry of a path that leads to a file in an archive.
fn find(path: &Path) -> Result<Option<(&Path, Entry)>> {
    let Some((archive, inside)) = split(path) else {
        return Ok(None);
    };
    let found = entries(archive)?
        .into_iter()
        .find(|entry| entry.path == inside);
    Ok(found.map(|entry| (archive, entry)))
}

/// The files of an archive.
fn entries(archive: &Path) -> Result<Vec<Entry>> {
    let refused = |error: ZipError| match error {
        ZipError::Io(error) => Error::io(archive, "read", error),
        error => bad(
            archive,
            format!("is not a zip archive that can be read: {error}"),
        ),
    };
    let file = File::open(archive).map_err(|error| Error::io(archive, "open", error))?;
    let mut zip = ZipArchive::new(BufReader::new(file)).map_err(refused)?;
    if zip.len() > MAX_ENTRIES {
        let problem = format!(
            "holds {} entries, expected at most {MAX_ENTRIES}",
            zip.len()
        );
        return Err(bad(archive, problem));
    }
    let mut entries = Vec::new();
    for at in 0..zip.len() {
        let entry = zip.by_index_raw(at).map_err(refused)?;
        let is_plain = entry.is_file() && !entry.is_symlink();
        let Some(path) = entry.enclosed_name().filter(|_| is_plain) else {
            continue;
        };
        let is_deflated = match entry.compression() {
            _ if entry.encrypted() => Err("is encrypted"),
            CompressionMethod::Stored => Ok(false),
            CompressionMethod::Deflated => Ok(true),
            _ => Err("is compressed in a way that is not known here"),
        };
        let is_deflated = is_deflated.map_err(|problem| {
            let name = path.display();
            bad(
                archive,
                format!("holds {name}, which {problem}: unpack the archive"),
            )
        })?;
        let start = entry
            .data_start()
            .ok_or_else(|| bad(archive, "is cut off".to_owned()))?;
        entries.push(Entry {
            n_bytes: entry.compressed_size(),
            start,
            is_deflated,
            crc: entry.crc32(),
            path,
        });
    }
    Ok(entries)
}

fn bad(path: &Path, problem: String) -> Error {
    Error::BadFile {
        path: path.to_path_buf(),
        problem,
    }
}

/// Compares the sum of all bytes with the archive's at their end.
struct Checked {
    inner: Box<dyn Read>,
    sum: Crc,
    expected: u32,
}

impl Read for Checked {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        if n_read == 0 && !buffer.is_empty() && self.sum.sum() != self.expected {
            let problem = "the file is not what the archive says, it is damaged";
            return Err(io::Error::new(io::ErrorKind::InvalidData, problem));
        }
        self.sum.update(&buffer[..n_read]);
        Ok(n_read)
    }
}
