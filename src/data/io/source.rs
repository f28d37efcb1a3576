//! Bytes in: from a file or from memory, compressed or not, line by line.
//!
//! gzip and zstd are recognised by their first bytes, never by the file's name. Lines are borrowed from one buffer
//! that is as large as the longest line, so memory does not grow with the file. A byte order mark before the first
//! line and a carriage return before a line feed are dropped.

use std::borrow::Cow;
use std::cell::Cell;
use std::fs::File;
use std::io::{self, BufReader, Cursor, Read};
use std::ops::Range;
use std::path::{Path, PathBuf};

use crate::data::io::archive;
use crate::data::io::missing::missing;
use crate::error::{Error, Result};

const READ_BYTES: usize = 256 * 1024;

/// Upper bound of a line's bytes: no document is that long, but a binary file is, or a small archive of one endless line.
pub(in crate::data) const MAX_LINE_BYTES: usize = 64 << 20;

/// A source of bytes.
#[derive(Clone, Debug)]
pub(in crate::data) struct Source<'a> {
    path: PathBuf,
    bytes: Option<Cow<'a, [u8]>>,
}

impl<'a> Source<'a> {
    /// A file on disk.
    pub(in crate::data) fn file(path: impl Into<PathBuf>) -> Source<'static> {
        Source {
            path: path.into(),
            bytes: None,
        }
    }

    /// A file on disk, or the bytes of a pipe or device, which can be read only once and are held in memory.
    ///
    /// # Errors
    /// [`Error::Io`] and [`Error::BadFile`] if it cannot be read.
    pub(in crate::data) fn open(path: &Path) -> Result<Source<'static>> {
        if !is_stream(path) {
            return Ok(Source::file(path));
        }
        let mut bytes = Vec::new();
        let mut file = File::open(path).map_err(|error| missing(path, error))?;
        file.read_to_end(&mut bytes)
            .map_err(|error| Error::io(path, "read", error))?;
        Ok(Source {
            path: path.into(),
            bytes: Some(bytes.into()),
        })
    }

    /// Whether its bytes are in memory.
    pub(in crate::data) fn in_memory(&self) -> Option<&[u8]> {
        self.bytes.as_deref()
    }

    /// Bytes in memory, with the name that errors call them.
    pub(in crate::data) fn bytes(name: &str, bytes: &'a [u8]) -> Source<'a> {
        Source {
            path: PathBuf::from(name),
            bytes: Some(bytes.into()),
        }
    }

    /// The path or name.
    pub(in crate::data) fn path(&self) -> &Path {
        &self.path
    }

    /// Size before decompression.
    pub(in crate::data) fn n_bytes(&self) -> u64 {
        match &self.bytes {
            Some(bytes) => bytes.len() as u64,
            None => archive::n_bytes(&self.path),
        }
    }

    /// The lines, decompressed.
    pub(in crate::data) fn lines<'b>(
        &'b self,
        progress: &'b ReadProgress<'b>,
    ) -> Result<Lines<'b>> {
        let raw: Box<dyn Read + 'b> = match &self.bytes {
            Some(bytes) => Box::new(Cursor::new(&bytes[..])),
            // Sources are opened more than once: to recognise their format, then to read them.
            None if is_stream(&self.path) => {
                return Err(Error::BadFile {
                    path: self.path.clone(),
                    problem: "is a pipe or a device, which can be read only once: give its path \
                              alone, or save it to a file"
                        .into(),
                });
            }
            None => archive::open_file(&self.path)?,
        };
        let counted = CountingReader {
            inner: raw,
            progress,
        };
        Lines::new(self.path.clone(), Box::new(counted))
    }

    /// The first decompressed bytes, at most `n_bytes`, cut back to whole lines if there was more.
    ///
    /// # Errors
    /// [`Error::BadFile`] if there is nothing at all.
    pub(in crate::data) fn head(&self, n_bytes: usize) -> Result<Vec<u8>> {
        let silent = ReadProgress::default();
        let mut lines = self.lines(&silent)?;
        let mut head = Vec::new();
        let mut chunk = [0u8; 8192];
        while head.len() < n_bytes {
            match lines.reader.read(&mut chunk) {
                Ok(0) => break,
                Ok(n_read) => head.extend_from_slice(&chunk[..n_read]),
                // Recognition needs only the head; the reader will report the damaged tail.
                Err(_) if !head.is_empty() => break,
                Err(error) => return Err(lines.read_error(error)),
            }
        }
        if head.is_empty() {
            return Err(Error::BadFile {
                path: self.path.clone(),
                problem: "is empty, expected at least one line".into(),
            });
        }
        if head.len() >= n_bytes
            && let Some(end) = memchr::memrchr(b'\n', &head)
        {
            head.truncate(end + 1);
        }
        Ok(head)
    }
}

/// Whether a path leads to a pipe, a socket or a device, which can be read only once.
pub(in crate::data) fn is_stream(path: &Path) -> bool {
    std::fs::metadata(path).is_ok_and(|metadata| !metadata.is_file() && !metadata.is_dir())
}

/// Counts the bytes read from all files of a data set and reports them to the caller.
#[derive(Default)]
pub(in crate::data) struct ReadProgress<'a> {
    n_total: u64,
    n_done: Cell<u64>,
    report: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl<'a> ReadProgress<'a> {
    pub(in crate::data) fn new(
        n_total: u64,
        report: Option<&'a (dyn Fn(u64, u64) + Sync)>,
    ) -> Self {
        ReadProgress {
            n_total,
            n_done: Cell::new(0),
            report,
        }
    }

    /// Adds bytes read.
    pub(in crate::data) fn advance(&self, n_bytes: u64) {
        self.n_done.set(self.n_done.get() + n_bytes);
        if let Some(report) = self.report {
            report(self.n_done.get(), self.n_total);
        }
    }
}

struct CountingReader<'a> {
    inner: Box<dyn Read + 'a>,
    progress: &'a ReadProgress<'a>,
}

impl Read for CountingReader<'_> {
    fn read(&mut self, buffer: &mut [u8]) -> io::Result<usize> {
        let n_read = self.inner.read(buffer)?;
        self.progress.advance(n_read as u64);
        Ok(n_read)
    }
}

#[derive(Clone, Copy, Debug, PartialEq)]
enum Compression {
    None,
    Gzip,
    Zstd,
}

fn decompress<'a>(mut raw: Box<dyn Read + 'a>) -> io::Result<(Box<dyn Read + 'a>, Compression)> {
    let mut magic = Vec::with_capacity(4);
    raw.by_ref().take(4).read_to_end(&mut magic)?;
    let compression = match magic.as_slice() {
        [0x1f, 0x8b, ..] => Compression::Gzip,
        [0x28, 0xb5, 0x2f, 0xfd] => Compression::Zstd,
        _ => Compression::None,
    };
    let whole = Cursor::new(magic).chain(raw);
    let reader: Box<dyn Read + 'a> = match compression {
        Compression::None => Box::new(whole),
        Compression::Gzip => {
            let buffered = BufReader::with_capacity(READ_BYTES, whole);
            Box::new(flate2::bufread::MultiGzDecoder::new(buffered))
        }
        Compression::Zstd => Box::new(zstd::stream::read::Decoder::new(whole)?),
    };
    Ok((reader, compression))
}

/// One line of a file.
#[derive(Clone, Copy)]
pub(in crate::data) struct Line<'b> {
    /// The line without its end.
    pub(in crate::data) text: &'b str,
    /// One-based number.
    pub(in crate::data) number: usize,
    path: &'b Path,
}

impl Line<'_> {
    /// The error that this line does not follow its format.
    pub(in crate::data) fn malformed(
        &self,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Error {
        Error::Malformed {
            path: self.path.to_path_buf(),
            line: self.number,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// The error that a label id is not below the declared number of labels.
    pub(in crate::data) fn label_out_of_range(&self, label: u64, n_labels: usize) -> Error {
        Error::LabelOutOfRange {
            path: self.path.to_path_buf(),
            line: self.number,
            label,
            n_labels,
        }
    }
}

/// A piece of input for an error message: quoted and shortened.
pub(in crate::data) fn excerpt(text: &str) -> String {
    const MAX_CHARS: usize = 40;
    let mut chars = text.chars();
    let start: String = chars.by_ref().take(MAX_CHARS).collect();
    match chars.next() {
        None => format!("{start:?}"),
        Some(_) => format!("{start:?}…"),
    }
}

/// The lines of one file; see the module documentation.
pub(in crate::data) struct Lines<'a> {
    path: PathBuf,
    reader: Box<dyn Read + 'a>,
    compression: Compression,
    buffer: Vec<u8>,
    start: usize,
    end: usize,
    /// Offset in the decompressed file of `buffer[start]`.
    offset: u64,
    n_lines: usize,
    /// Length of the line that was returned last.
    n_last_bytes: usize,
    max_line_bytes: usize,
    /// Whether the buffer starts within a line that was too long.
    is_discarding: bool,
}

impl<'a> Lines<'a> {
    /// The lines of any reader.
    pub(in crate::data) fn new(path: PathBuf, raw: Box<dyn Read + 'a>) -> Result<Self> {
        let (reader, compression) =
            decompress(raw).map_err(|error| Error::io(&path, "read", error))?;
        Ok(Lines {
            path,
            reader,
            compression,
            buffer: Vec::new(),
            start: 0,
            end: 0,
            offset: 0,
            n_lines: 0,
            n_last_bytes: 0,
            max_line_bytes: MAX_LINE_BYTES,
            is_discarding: false,
        })
    }

    /// The decompressed bytes; no line may have been read yet.
    pub(in crate::data) fn into_reader(self) -> Box<dyn Read + 'a> {
        self.reader
    }

    /// The next line without its end; `None` at the end of the file.
    ///
    /// # Errors
    /// If the file cannot be read or decompressed, or the line is too long or not UTF-8. After
    /// [`Error::Malformed`] the next call continues with the following line.
    pub(in crate::data) fn next(&mut self) -> Result<Option<Line<'_>>> {
        let line = self.next_with_end()?;
        Ok(line.map(|line| {
            let before_feed = line.text.strip_suffix('\n').unwrap_or(line.text);
            let text = before_feed.strip_suffix('\r').unwrap_or(before_feed);
            Line { text, ..line }
        }))
    }

    /// The next line with its end, for formats in which a line break can be part of a value.
    ///
    /// # Errors
    /// Those of [`Lines::next`].
    pub(in crate::data) fn next_with_end(&mut self) -> Result<Option<Line<'_>>> {
        let Some(range) = self.next_range()? else {
            return Ok(None);
        };
        let mut offset = self.offset;
        self.n_last_bytes = range.len();
        self.offset += range.len() as u64;
        self.n_lines += 1;
        let mut bytes = &self.buffer[range];
        if self.n_lines == 1
            && let Some(after_mark) = bytes.strip_prefix(b"\xef\xbb\xbf")
        {
            offset += (bytes.len() - after_mark.len()) as u64;
            bytes = after_mark;
        }
        match std::str::from_utf8(bytes) {
            Ok(text) => Ok(Some(Line {
                text,
                number: self.n_lines,
                path: &self.path,
            })),
            Err(error) => {
                let at = error.valid_up_to();
                let found = format!(
                    "byte 0x{:02x} at byte offset {} of the file",
                    bytes[at],
                    offset + at as u64
                );
                let expected = "UTF-8 text; if it was saved as Latin-1 or by Excel, convert it: \
                                iconv -f WINDOWS-1252 -t UTF-8 in > out";
                Err(self.malformed(self.n_lines, found, expected))
            }
        }
    }

    /// Puts back the line that was returned last, so that it is the next one again.
    pub(in crate::data) fn put_back(&mut self) {
        self.start -= self.n_last_bytes;
        self.offset -= self.n_last_bytes as u64;
        self.n_lines -= usize::from(self.n_last_bytes > 0);
        self.n_last_bytes = 0;
    }

    /// The error that a line does not follow its format.
    pub(in crate::data) fn malformed(
        &self,
        line: usize,
        found: impl Into<String>,
        expected: impl Into<String>,
    ) -> Error {
        Error::Malformed {
            path: self.path.clone(),
            line,
            found: found.into(),
            expected: expected.into(),
        }
    }

    /// The path or name that errors use.
    pub(in crate::data) fn path(&self) -> &Path {
        &self.path
    }

    /// Lines read so far.
    pub(in crate::data) fn n_lines(&self) -> usize {
        self.n_lines
    }

    /// The error that the file as a whole is wrong.
    pub(in crate::data) fn bad_file(&self, problem: impl Into<String>) -> Error {
        Error::BadFile {
            path: self.path.clone(),
            problem: problem.into(),
        }
    }

    /// The next line with its end, as a range of the buffer.
    fn next_range(&mut self) -> Result<Option<Range<usize>>> {
        self.n_last_bytes = 0;
        if self.is_discarding {
            self.discard_line()?;
        }
        let mut searched = self.start;
        loop {
            if let Some(found) = memchr::memchr(b'\n', &self.buffer[searched..self.end]) {
                let range = self.start..searched + found + 1;
                self.start = range.end;
                return Ok(Some(range));
            }
            let n_pending = self.end - self.start;
            if self.fill()? == 0 {
                let range = self.start..self.end;
                self.start = self.end;
                return Ok((!range.is_empty()).then_some(range));
            }
            searched = self.start + n_pending;
        }
    }

    /// Drops the rest of a line that was too long.
    fn discard_line(&mut self) -> Result<()> {
        loop {
            let unread = &self.buffer[self.start..self.end];
            let line_end = memchr::memchr(b'\n', unread);
            let n_dropped = line_end.map_or(unread.len(), |at| at + 1);
            self.start += n_dropped;
            self.offset += n_dropped as u64;
            if line_end.is_some() || self.fill()? == 0 {
                self.is_discarding = false;
                return Ok(());
            }
        }
    }

    /// Moves the unread bytes to the front and reads more behind them.
    fn fill(&mut self) -> Result<usize> {
        self.buffer.copy_within(self.start..self.end, 0);
        self.end -= self.start;
        self.start = 0;
        if self.end > self.max_line_bytes {
            self.offset += self.end as u64;
            self.end = 0;
            self.n_lines += 1;
            self.is_discarding = true;
            let (found, expected) = (
                format!("more than {} bytes without a line end", self.max_line_bytes),
                "lines of text: check that this is a text file, or split its longest texts",
            );
            return Err(self.malformed(self.n_lines, found, expected));
        }
        if self.buffer.len() < self.end + READ_BYTES {
            let doubled = (2 * self.buffer.len()).max(2 * READ_BYTES);
            self.buffer.resize(doubled, 0);
        }
        loop {
            match self.reader.read(&mut self.buffer[self.end..]) {
                Ok(n_read) => {
                    self.end += n_read;
                    return Ok(n_read);
                }
                Err(error) if error.kind() == io::ErrorKind::Interrupted => {}
                Err(error) => return Err(self.read_error(error)),
            }
        }
    }

    fn read_error(&self, error: io::Error) -> Error {
        let name = match self.compression {
            Compression::None => return Error::io(&self.path, "read", error),
            Compression::Gzip => "gzip",
            Compression::Zstd => "zstd",
        };
        let n_good = self.offset + (self.end - self.start) as u64;
        // What follows the end of a gzip stream must begin another one.
        let is_header = error.kind() == io::ErrorKind::InvalidInput;
        if self.compression == Compression::Gzip && is_header && n_good > 0 {
            return self.bad_file(format!(
                "there is data after the end of the gzip stream ({n_good} bytes of text in {} lines) that is no gzip: \
                 cut it off, or compress the file again",
                self.n_lines
            ));
        }
        if error.kind() == io::ErrorKind::UnexpectedEof {
            return self.bad_file(format!(
                "the {name} data ends early, after {n_good} bytes of text in {} lines: the file is truncated, copy it again",
                self.n_lines
            ));
        }
        self.bad_file(format!(
            "the {name} data is damaged after {n_good} bytes of text in {} lines: {error}",
            self.n_lines
        ))
    }
}

#[cfg(test)]
mod tests;
