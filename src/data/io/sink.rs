//! Bytes out: a file that appears only when it is complete, compressed if its name ends in `.gz` or `.zst`.

use std::fs::{self, File};
use std::io::{self, BufWriter, Write};
use std::path::{Path, PathBuf};

use flate2::write::GzEncoder;

use crate::error::{Error, Result};

/// A file being written beside its final place; [`Sink::finish`] moves it there, dropping it removes it.
pub struct Sink {
    path: PathBuf,
    temporary: PathBuf,
    encoder: Option<Encoder>,
}

enum Encoder {
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
        let name = path.file_name().ok_or_else(|| {
            fail(io::Error::new(
                io::ErrorKind::InvalidInput,
                "the path has no file name",
            ))
        })?;
        let mut hidden = std::ffi::OsString::from(".");
        hidden.push(name);
        hidden.push(format!(".{}.partial", std::process::id()));
        let temporary = path.with_file_name(hidden);
        let file = BufWriter::with_capacity(256 * 1024, File::create(&temporary).map_err(fail)?);
        let encoder = match ending {
            "gz" => Encoder::Gzip(GzEncoder::new(file, flate2::Compression::default())),
            "zst" => Encoder::Zstd(zstd::Encoder::new(file, 0).map_err(fail)?),
            _ => Encoder::Plain(file),
        };
        Ok(Sink {
            path: path.to_path_buf(),
            temporary,
            encoder: Some(encoder),
        })
    }

    /// Completes the file and puts it in its place.
    ///
    /// # Errors
    /// [`Error::Io`] if it cannot be written or moved.
    pub fn finish(mut self) -> Result<()> {
        let Some(encoder) = self.encoder.take() else {
            return Ok(());
        };
        encoder
            .finish()
            .and_then(|()| fs::rename(&self.temporary, &self.path))
            .map_err(|error| Error::io(&self.path, "write", error))
    }
}

impl Encoder {
    fn finish(self) -> io::Result<()> {
        let mut file = match self {
            Encoder::Plain(file) => file,
            Encoder::Gzip(encoder) => encoder.finish()?,
            Encoder::Zstd(encoder) => encoder.finish()?,
        };
        file.flush()?;
        file.get_ref().sync_all()
    }
}

impl Write for Sink {
    fn write(&mut self, bytes: &[u8]) -> io::Result<usize> {
        match &mut self.encoder {
            Some(Encoder::Plain(file)) => file.write(bytes),
            Some(Encoder::Gzip(encoder)) => encoder.write(bytes),
            Some(Encoder::Zstd(encoder)) => encoder.write(bytes),
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
        let _ = fs::remove_file(&self.temporary);
    }
}
