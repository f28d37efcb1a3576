//! Bytes out: a file that appears only when it is complete, compressed if its name ends in `.gz` or `.zst`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};
use std::sync::{Mutex, MutexGuard, PoisonError};

use flate2::write::GzEncoder;

use crate::data::io::source::is_stream;
use crate::error::{Error, Result};

/// A file being written beside its final place; [`Sink::finish`] moves it there, dropping it removes it.
///
/// A pipe or a device is written to as it is.
pub struct Sink {
    path: PathBuf,
    temporary: Option<PathBuf>,
    compressor: Option<Compressor>,
}

enum Compressor {
    Plain(BufWriter<File>),
    Gzip(GzEncoder<BufWriter<File>>),
    Zstd(zstd::Encoder<'static, BufWriter<File>>),
}

impl Sink {
    /// Starts a file: gzip if it is named `.gz`, zstd if `.zst`, plain otherwise.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be created.
    pub fn create(path: &Path) -> Result<Sink> {
        let ending = path.extension().unwrap_or_default().to_string_lossy();
        Sink::start(path, &ending)
    }

    /// Starts a file without compression.
    pub(in crate::data) fn create_plain(path: &Path) -> Result<Sink> {
        Sink::start(path, "")
    }

    fn start(path: &Path, ending: &str) -> Result<Sink> {
        let fail = |error| Error::io(path, "create", error);
        let (temporary, file) = if is_stream(path) {
            (None, File::options().write(true).open(path))
        } else {
            let temporary = temporary_name(path).map_err(fail)?;
            unfinished().push(temporary.clone());
            let file = File::create(&temporary);
            (Some(temporary), file)
        };
        let mut sink = Sink {
            path: path.to_path_buf(),
            temporary,
            compressor: None,
        };
        let file = BufWriter::with_capacity(256 * 1024, file.map_err(fail)?);
        let compressor = match ending {
            "gz" => Compressor::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            "zst" => Compressor::Zstd(zstd::Encoder::new(file, 0).map_err(fail)?),
            _ => Compressor::Plain(file),
        };
        sink.compressor = Some(compressor);
        Ok(sink)
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written or moved.
    pub fn finish(mut self) -> Result<()> {
        let Some(compressor) = self.compressor.take() else {
            return Ok(());
        };
        let finished = compressor.finish().and_then(|()| match &self.temporary {
            Some(temporary) => fs::rename(temporary, &self.path),
            None => Ok(()),
        });
        finished.map_err(|error| Error::io(&self.path, "write", error))
    }
}

impl Compressor {
    fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Compressor::Plain(file) => file,
            Compressor::Gzip(encoder) => encoder.finish()?,
            Compressor::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()?;
        let is_file = file.get_ref().metadata()?.is_file();
        if is_file {
            file.get_ref().sync_all()?;
        }
        Ok(())
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.compressor {
            Some(Compressor::Plain(file)) => file.write(bytes),
            Some(Compressor::Gzip(encoder)) => encoder.write(bytes),
            Some(Compressor::Zstd(encoder)) => encoder.write(bytes),
            None => Err(io::Error::other("the file is complete")),
        }
    }

    fn flush(&mut self) -> io::Result<()> {
        Ok(())
    }
}

impl Drop for Sink {
    fn drop(&mut self) {
        // After `finish` nothing is left under this name; before, an incomplete file must not stay.
        if let Some(temporary) = &self.temporary {
            let _ = fs::remove_file(temporary);
            unfinished().retain(|other| other != temporary);
        }
    }
}

/// A hidden name beside the file, of this process alone.
fn temporary_name(path: &Path) -> io::Result<PathBuf> {
    let no_name = || io::Error::new(io::ErrorKind::InvalidInput, "the path has no file name");
    let mut hidden = std::ffi::OsString::from(".");
    hidden.push(path.file_name().ok_or_else(no_name)?);
    hidden.push(format!(".{}.partial", std::process::id()));
    Ok(path.with_file_name(hidden))
}

static UNFINISHED: Mutex<Vec<PathBuf>> = Mutex::new(Vec::new());

fn unfinished() -> MutexGuard<'static, Vec<PathBuf>> {
    UNFINISHED.lock().unwrap_or_else(PoisonError::into_inner)
}

/// Removes the files that are being written, for a process that is about to end.
pub fn remove_unfinished_files() {
    for temporary in unfinished().drain(..) {
        let _ = fs::remove_file(temporary);
    }
}
