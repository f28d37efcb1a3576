//! The files that make up a part of a data set.
//!
//! A data set is a file or a directory. In a directory a part is found by file names (`train.jsonl.gz`,
//! `trn_X_Xf.txt`, `X.tst.npz`, …), the format of a single file by its content. Several formats side by side are
//! refused, since choosing silently would surprise.

use std::fs;
use std::path::{Path, PathBuf};

use crate::data::io::archive;
use crate::data::io::missing::missing;
use crate::data::io::recognise::recognise;
use crate::data::io::source::Source;
use crate::data::{Columns, Format, Part, ReadOptions};
use crate::error::{Error, ReadOption, Result};

const COMPRESSED: [&str; 3] = ["", ".gz", ".zst"];
const SINGLE_ENDINGS: [&str; 5] = [".jsonl", ".json", ".txt", ".tsv", ".csv"];

/// The files of one part.
#[derive(Clone, Debug, PartialEq)]
pub(in crate::data) struct Layout {
    /// Their format.
    pub(in crate::data) format: Format,
    /// The file with the points: texts, features, or everything.
    pub(in crate::data) points: PathBuf,
    /// The file with the labels of the points, where it is another one.
    pub(in crate::data) labels: Option<PathBuf>,
    /// The file with the names of the labels.
    pub(in crate::data) names: Option<PathBuf>,
    /// PECOS only: the texts that go with the features.
    pub(in crate::data) texts: Option<PathBuf>,
    /// The pairs of a point and a label that do not count when the part is measured on.
    pub(in crate::data) filter: Option<PathBuf>,
}

impl Layout {
    /// All files.
    pub(in crate::data) fn files(&self) -> impl Iterator<Item = &Path> {
        let others = [&self.labels, &self.names, &self.texts, &self.filter];
        std::iter::once(self.points.as_path())
            .chain(others.into_iter().filter_map(|file| file.as_deref()))
    }
}

/// The files of a part of the data set at `path`.
pub(in crate::data) fn locate(path: &Path, options: &ReadOptions<'_>) -> Result<Layout> {
    let (part, forced) = (options.part, options.format);
    let Some(directory) = directory_of(path)? else {
        return locate_file(path, forced, &options.columns);
    };
    let path = &directory;
    let mut found = locate_in_directory(path, options)?;
    for layout in &mut found {
        layout.filter = filter_of(path, part);
    }
    match found.len() {
        0 => Err(no_part(path, part, forced)),
        1 => Ok(found.remove(0)),
        _ => {
            let formats: Vec<&str> = found.iter().map(|layout| layout.format.name()).collect();
            let error = Error::BadFile {
                path: path.to_path_buf(),
                problem: format!(
                    "has its {part} part in several formats: {}",
                    formats.join(", ")
                ),
            };
            Err(error.unless_given(ReadOption::Format))
        }
    }
}

impl Part {
    /// The parts of the data set at `path`: for a single file, the training part.
    ///
    /// # Errors
    /// If there is no such path, or a directory has none of the parts.
    pub fn find(path: impl AsRef<Path>) -> Result<Vec<Part>> {
        let path = path.as_ref();
        let Some(path) = &directory_of(path)? else {
            return Ok(vec![Part::Train]);
        };
        let mut found = Vec::new();
        for part in Part::ALL {
            if has_part(path, part) {
                found.push(part);
            }
        }
        if found.is_empty() {
            return Err(no_part(path, Part::Train, None));
        }
        Ok(found)
    }
}

/// The directory of a data set: a directory, or the one in a zip archive; `None` for another file.
fn directory_of(path: &Path) -> Result<Option<PathBuf>> {
    let metadata = fs::metadata(path).map_err(|error| missing(path, error))?;
    if archive::is_archive(path) {
        return archive::root(path).map(Some);
    }
    Ok(metadata.is_dir().then(|| path.to_path_buf()))
}

/// The filter that the XC Repository has beside a test part.
fn filter_of(directory: &Path, part: Part) -> Option<PathBuf> {
    let name = match part {
        Part::Test => "filter_labels_test.txt",
        Part::Train => return None,
    };
    existing(directory, name)
}

fn has_part(directory: &Path, part: Part) -> bool {
    single_files(directory, part).next().is_some()
        || Format::ALL
            .into_iter()
            .any(|format| several_files(directory, part, format).is_some())
}

fn locate_file(path: &Path, forced: Option<Format>, columns: &Columns<'_>) -> Result<Layout> {
    let directory = path.parent().unwrap_or(Path::new(""));
    for part in Part::ALL {
        for format in Format::ALL {
            if forced.is_some_and(|forced| forced != format) {
                continue;
            }
            let layout = several_files(directory, part, format);
            if let Some(layout) = layout.filter(|layout| layout.files().any(|file| file == path)) {
                return Ok(layout);
            }
        }
    }
    let format = match forced {
        Some(format) => format,
        None => recognise(&Source::file(path), columns)?,
    };
    let mut layout = single_file(path, format);
    if format == Format::XcJson {
        layout.names = existing(directory, "lbl.json");
        return Ok(layout);
    }
    if !format.is_single_file() {
        return Err(Error::BadFile {
            path: path.to_path_buf(),
            problem: format!(
                "looks like a part of a {format} data set, but the files that belong to it are not beside it; expected {}",
                expected_files(format)
            ),
        });
    }
    Ok(layout)
}

fn locate_in_directory(directory: &Path, options: &ReadOptions<'_>) -> Result<Vec<Layout>> {
    let (part, forced) = (options.part, options.format);
    let wanted = |format: Format| forced.is_none_or(|forced| forced == format);
    let mut found: Vec<Layout> = Format::ALL
        .into_iter()
        .filter(|&format| wanted(format))
        .filter_map(|format| several_files(directory, part, format))
        .collect();
    let mut last_error = None;
    for file in single_files(directory, part) {
        match recognise(&Source::file(&file), &options.columns) {
            Ok(format) if wanted(format) && format.is_single_file() => {
                found.push(single_file(&file, format));
            }
            // Without its `lbl.json` the labels are known by number only.
            Ok(Format::XcJson) if wanted(Format::XcJson) && found.is_empty() => {
                found.push(single_file(&file, Format::XcJson));
            }
            Ok(_) => {}
            Err(error) => last_error = Some((file, error)),
        }
    }
    match last_error {
        // A file that is there but is not recognised: the format may be forced, otherwise its error counts.
        Some((file, error)) if found.is_empty() => {
            match forced.filter(|format| format.is_single_file()) {
                Some(format) => Ok(vec![single_file(&file, format)]),
                None => Err(error),
            }
        }
        _ => Ok(found),
    }
}

fn single_file(path: &Path, format: Format) -> Layout {
    let names = match format {
        Format::Xc | Format::Text2Text => names_beside(path),
        _ => None,
    };
    Layout {
        format,
        points: path.to_path_buf(),
        labels: None,
        names,
        texts: None,
        filter: None,
    }
}

/// The file with the names of numbered labels of a single file: `NAME.labels.txt`.
pub(in crate::data) fn names_path(path: &Path) -> PathBuf {
    path.with_file_name(format!("{}.labels.txt", stem(path)))
}

/// The file name without compression and format endings.
fn stem(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let mut stem: &str = &name;
    for ending in COMPRESSED.iter().chain(&SINGLE_ENDINGS) {
        stem = stem.strip_suffix(ending).unwrap_or(stem);
    }
    stem.to_owned()
}

fn names_beside(path: &Path) -> Option<PathBuf> {
    let own = names_path(path);
    if archive::is_file(&own) {
        return Some(own);
    }
    // A `labels.txt` belongs to files with the name of a part; beside any other file it may be unrelated.
    let stem = stem(path);
    let is_part = Part::ALL.into_iter().any(|part| is_part_stem(&stem, part));
    let directory = path.parent().unwrap_or(Path::new(""));
    is_part.then(|| names_in(directory)).flatten()
}

fn names_in(directory: &Path) -> Option<PathBuf> {
    existing(directory, "labels.txt").or_else(|| existing(directory, "output-items.txt"))
}

fn is_part_stem(stem: &str, part: Part) -> bool {
    [part.name(), part.short_name()].into_iter().any(|name| {
        stem.strip_suffix(name)
            .is_some_and(|before| before.is_empty() || before.ends_with(['_', '-', '.']))
    })
}

/// Files such as `train.jsonl.gz` or `bibtex_train.txt`.
fn single_files(directory: &Path, part: Part) -> impl Iterator<Item = PathBuf> {
    let mut files: Vec<PathBuf> = file_names(directory)
        .into_iter()
        .filter(|name| {
            let path = Path::new(name);
            let stem = stem(path);
            stem != *name && is_part_stem(&stem, part)
        })
        // `X.trn.txt` holds the texts of a PECOS part.
        .filter(|name| !name.starts_with("X.") && !name.starts_with("Y."))
        .map(|name| directory.join(name))
        .collect();
    // The same file with and without compression counts once.
    files.dedup_by_key(|file| stem(file) + &ending(file));
    files.into_iter()
}

fn ending(path: &Path) -> String {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let plain = name
        .strip_suffix(".gz")
        .or_else(|| name.strip_suffix(".zst"))
        .unwrap_or(&name);
    plain[plain.rfind('.').unwrap_or(plain.len())..].to_owned()
}

/// The part in a format of several files, if its files are there.
fn several_files(directory: &Path, part: Part, format: Format) -> Option<Layout> {
    let (long, short) = (part.name(), part.short_name());
    let find = |name: String| existing(directory, &name);
    let find_either = |before: &str, after: &str| {
        find(format!("{before}{short}{after}")).or_else(|| find(format!("{before}{long}{after}")))
    };
    let mut layout = Layout {
        format,
        points: PathBuf::new(),
        labels: None,
        names: names_in(directory),
        texts: None,
        filter: None,
    };
    match format {
        Format::XcJson => {
            layout.points = find_either("", ".json")?;
            layout.names = Some(existing(directory, "lbl.json")?);
        }
        Format::XcSplit => {
            layout.points = find_either("", "_X_Xf.txt")?;
            layout.labels = Some(find_either("", "_X_Y.txt")?);
        }
        Format::Raw => {
            layout.points =
                find_either("", "_texts.txt").or_else(|| find_either("", "_raw_texts.txt"))?;
            layout.labels = Some(find_either("", "_labels.txt")?);
        }
        Format::Pecos => {
            layout.labels = Some(find_either("Y.", ".npz")?);
            // The authors of ELIAS have texts and names in a directory of their own.
            layout.texts = find_either("X.", ".txt").or_else(|| find_either("raw/", "_X.txt"));
            layout.names = existing(directory, "output-items.txt")
                .or(layout.names)
                .or_else(|| existing(directory, "raw/Y.txt"));
            layout.points = match find_either("X.", ".npz") {
                Some(features) => features,
                None => layout.texts.take()?,
            };
        }
        _ => return None,
    }
    Some(layout)
}

fn existing(directory: &Path, name: &str) -> Option<PathBuf> {
    COMPRESSED
        .into_iter()
        .map(|compressed| directory.join(format!("{name}{compressed}")))
        .find(|path| archive::is_file(path))
}

fn expected_files(format: Format) -> &'static str {
    match format {
        Format::XcJson => "trn.json.gz, tst.json.gz and lbl.json.gz",
        Format::XcSplit => "trn_X_Xf.txt and trn_X_Y.txt (and tst_…)",
        Format::Raw => "train_texts.txt, train_labels.txt and labels.txt (and test_…)",
        Format::Pecos => "X.trn.npz or X.trn.txt, Y.trn.npz and output-items.txt (and X.tst…)",
        Format::Jsonl => "train.jsonl (and test.jsonl)",
        Format::Csv => "train.csv (and test.csv)",
        Format::Tsv => "train.tsv (and test.tsv)",
        _ => "train.txt (and test.txt)",
    }
}

fn no_part(directory: &Path, part: Part, forced: Option<Format>) -> Error {
    const MAX_SHOWN: usize = 8;
    let names = file_names(directory);
    let mut found = match names.len() {
        0 => "nothing".to_owned(),
        _ => names[..names.len().min(MAX_SHOWN)].join(", "),
    };
    if names.len() > MAX_SHOWN {
        found.push_str(", …");
    }
    let remedy = match names.as_slice() {
        [only] => format!(
            "; to read that file, name {}",
            directory.join(only).display()
        ),
        _ => String::new(),
    };
    let expected = match forced {
        Some(format) => expected_files(format).to_owned(),
        None => format!(
            "{part}.jsonl, {part}.csv, {part}.tsv, {part}.txt, {short}.json, {short}_X_Xf.txt, {part}_texts.txt or X.{short}.npz, also as .gz or .zst",
            short = part.short_name()
        ),
    };
    Error::BadFile {
        path: directory.to_path_buf(),
        problem: format!("has no {part} part: found {found}, expected {expected}{remedy}"),
    }
}

fn file_names(directory: &Path) -> Vec<String> {
    if let Some(mut names) = archive::file_names(directory) {
        names.sort();
        return names;
    }
    let entries = fs::read_dir(directory).into_iter().flatten().flatten();
    let mut names: Vec<String> = entries
        .filter(|entry| entry.path().is_file())
        .map(|entry| entry.file_name().to_string_lossy().into_owned())
        .collect();
    names.sort();
    names
}
