//! Reading a data set of any format.

use std::path::Path;

use crate::data::builder::{Builder, Numbering};
use crate::data::layout::{Layout, locate};
use crate::data::recognise::recognise;
use crate::data::source::{Lines, Progress, Source};
use crate::data::{Dataset, Format, LabelSet, Part, Summary, Texts, jsonl, xc};
use crate::error::{Error, Result};

/// How to read a data set.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// The format, if it is not to be recognised by content.
    pub format: Option<Format>,
    /// Which part of a directory; a single file is either.
    pub part: Part,
    /// Labels known beforehand: they keep their ids, others are appended.
    pub known_labels: Option<&'a LabelSet>,
    /// Called with the bytes read so far and in total, as they are on disk.
    pub on_progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

/// Reads a data set: a file, or a part of a directory.
///
/// # Errors
/// [`Error::Malformed`], [`Error::LabelOutOfRange`] and [`Error::BadFile`] name the file, the line, what was found
/// and what was expected; [`Error::Io`] if the operating system refuses.
pub fn read(path: &Path, options: &ReadOptions<'_>) -> Result<(Dataset, Summary)> {
    let layout = locate(path, options.part, options.format)?;
    let n_total = layout
        .files()
        .map(|file| Source::file(file).n_bytes())
        .sum();
    let progress = Progress::new(n_total, options.on_progress);
    let builder = Builder::new(options.known_labels);
    read_single(&Source::file(&layout.points), &layout, builder, &progress)
}

/// Reads a data set of a single-file format from memory; errors call it `name`.
///
/// # Errors
/// As [`read`].
pub fn read_bytes(
    name: &str,
    bytes: &[u8],
    options: &ReadOptions<'_>,
) -> Result<(Dataset, Summary)> {
    let source = Source::bytes(name, bytes);
    let format = match options.format {
        Some(format) => format,
        None => recognise(&source)?,
    };
    let layout = Layout {
        format,
        points: source.path().to_path_buf(),
        labels: None,
        names: None,
        texts: None,
    };
    let progress = Progress::new(source.n_bytes(), options.on_progress);
    read_single(
        &source,
        &layout,
        Builder::new(options.known_labels),
        &progress,
    )
}

fn read_single(
    source: &Source<'_>,
    layout: &Layout,
    mut builder: Builder,
    progress: &Progress<'_>,
) -> Result<(Dataset, Summary)> {
    // An empty file is reported as such, whatever the format.
    source.head(1)?;
    let path = source.path();
    let mut lines = source.lines(progress)?;
    match layout.format {
        Format::Jsonl => {
            jsonl::read(&mut lines, &mut builder)?;
            builder.finish(path, 0)
        }
        Format::Xc => {
            let shape = xc::read(&mut lines, &mut builder)?;
            let numbering = read_numbering(layout, Some(shape.n_labels), &builder, progress)?;
            builder.finish_numbered(path, shape.n_features, numbering)
        }
        format => Err(Error::BadFile {
            path: path.to_path_buf(),
            problem: format!("a {format} data set has several files, expected a directory"),
        }),
    }
}

/// The names of numbered labels, from the file beside the data if there is one.
///
/// # Errors
/// If there are fewer names than labels, or not as many as the data declare.
fn read_numbering(
    layout: &Layout,
    declared: Option<usize>,
    builder: &Builder,
    progress: &Progress<'_>,
) -> Result<Numbering> {
    let n_seen = builder.n_labels_seen();
    let Some(path) = &layout.names else {
        return Ok(Numbering {
            n_labels: declared.unwrap_or(n_seen),
            names: None,
        });
    };
    let names = read_names(path, progress)?;
    let fits = match declared {
        Some(n_labels) => names.len() == n_labels,
        None => n_seen <= names.len(),
    };
    if !fits {
        return Err(Error::BadFile {
            path: path.clone(),
            problem: format!(
                "holds {} label names, expected {} as {} has",
                names.len(),
                declared.unwrap_or(n_seen),
                layout.points.display()
            ),
        });
    }
    Ok(Numbering {
        n_labels: names.len(),
        names: Some(names),
    })
}

/// Label names, one a line.
fn read_names(path: &Path, progress: &Progress<'_>) -> Result<Texts> {
    let source = Source::file(path);
    let mut lines: Lines<'_> = source.lines(progress)?;
    let mut names = Texts::default();
    while let Some(line) = lines.next()? {
        names.push(line.text.trim_ascii());
    }
    Ok(names)
}
