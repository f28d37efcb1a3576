//! Writing a data set in any format, and reporting what the format could not hold.
//!
//! Parts that a format cannot hold are left out and reported as a [`ConversionLoss`]; where leaving them out would make
//! the result wrong (label names that would be read as others), writing is refused.

use std::fmt;
use std::fs;
use std::io::{self, Write};
use std::path::{Path, PathBuf};

use crate::data::formats::line_text::{is_changed, write_line_text};
use crate::data::formats::sparse_text::write_rows;
use crate::data::formats::{
    annif, fasttext, jsonl, libmultilabel, raw, table, text2text, xc, xc_json,
};
use crate::data::io::layout::names_path;
use crate::data::io::sink::Sink;
use crate::data::{Dataset, Format, Part};
use crate::error::{Error, Result};
use crate::matrix::CsrMatrix;

/// Something of a data set that a format cannot hold.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ConversionLoss {
    /// The points' ids.
    Ids,
    /// The texts.
    Texts,
    /// The sparse features.
    Features,
    /// Weights of the points.
    Weights,
    /// Rejected labels, and their number.
    Rejected(usize),
    /// Relevances other than 1, and their number.
    Relevances(usize),
    /// Labels without a point, and their number.
    UnusedLabels(usize),
    /// Line breaks, tabs or label prefixes, replaced by others, and the number of texts.
    ChangedTexts(usize),
    /// Number of label names that other readers will split at their spaces; nothing is lost for this library.
    SpacedNames(usize),
}

impl fmt::Display for ConversionLoss {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConversionLoss::Ids => f.write_str("the ids of the points are left out"),
            ConversionLoss::Texts => f.write_str("the texts are left out"),
            ConversionLoss::Features => f.write_str("the sparse features are left out"),
            ConversionLoss::Weights => f.write_str("the weights of the points are left out"),
            ConversionLoss::Rejected(n) => write!(f, "{n} rejected labels are left out"),
            ConversionLoss::Relevances(n) => write!(f, "{n} relevances other than 1 become 1"),
            ConversionLoss::UnusedLabels(n) => write!(f, "{n} labels without a point are left out"),
            ConversionLoss::ChangedTexts(n) => {
                write!(
                    f,
                    "line breaks, tabs or label prefixes are replaced in {n} texts"
                )
            }
            ConversionLoss::SpacedNames(n) => {
                write!(
                    f,
                    "{n} label names hold spaces, at which other programs will split them"
                )
            }
        }
    }
}

/// The result of writing a data set.
#[derive(Clone, Debug, Default, PartialEq)]
pub struct Written {
    /// The files.
    pub files: Vec<PathBuf>,
    /// Parts of the data set that they do not hold.
    pub losses: Vec<ConversionLoss>,
}

impl Dataset {
    /// Writes a data set.
    ///
    /// `path` is a directory for the formats of several files, and for the others where it is one already; it then gets
    /// the usual names for the part, such as `train.jsonl` or `tst_X_Y.txt`. Otherwise `path` is the file, compressed if
    /// it is named `.gz` or `.zst`; names of numbered labels go beside it into `NAME.labels.txt`.
    ///
    /// # Errors
    /// [`Error::BadFile`] if the format needs what the data set lacks or cannot tell its label names apart,
    /// [`Error::Io`] if a file cannot be written.
    pub fn write(&self, format: Format, path: impl AsRef<Path>, part: Part) -> Result<Written> {
        let (dataset, path) = (self, path.as_ref());
        check(dataset, format, path)?;
        let losses = losses(dataset, format);
        let mut writer = DatasetWriter {
            dataset,
            files: Vec::new(),
        };
        if !format.is_single_file() {
            fs::create_dir_all(path).map_err(|error| Error::io(path, "create", error))?;
            writer.write_several(format, path, part)?;
        } else if path.is_dir() {
            let ending = match format {
                Format::Jsonl | Format::Csv | Format::Tsv => format.name(),
                _ => "txt",
            };
            let names = if format == Format::Xc {
                "labels.txt"
            } else {
                "output-items.txt"
            };
            let file = path.join(format!("{part}.{ending}"));
            writer.write_single(format, &file, &path.join(names))?;
        } else {
            writer.write_single(format, path, &names_path(path))?;
        }
        Ok(Written {
            files: writer.files,
            losses,
        })
    }
}

struct DatasetWriter<'a> {
    dataset: &'a Dataset,
    files: Vec<PathBuf>,
}

impl DatasetWriter<'_> {
    fn write_single(&mut self, format: Format, path: &Path, names: &Path) -> Result<()> {
        let dataset = self.dataset;
        match format {
            Format::Csv => self.file(path, |out| table::write(dataset, b',', out)),
            Format::Tsv => self.file(path, |out| table::write(dataset, b'\t', out)),
            Format::FastText => self.file(path, |out| fasttext::write(dataset, out)),
            Format::LibMultiLabel => self.file(path, |out| libmultilabel::write(dataset, out)),
            Format::Annif => self.file(path, |out| annif::write(dataset, out)),
            Format::Text2Text => {
                self.file(path, |out| text2text::write(dataset, out))?;
                self.write_names(names)
            }
            Format::Xc => {
                self.file(path, |out| xc::write(dataset, out))?;
                self.write_names(names)
            }
            _ => self.file(path, |out| jsonl::write(dataset, out)),
        }
    }

    fn write_several(&mut self, format: Format, directory: &Path, part: Part) -> Result<()> {
        let dataset = self.dataset;
        let (long, short) = (part.name(), part.short_name());
        let at = |name: String| directory.join(name);
        match format {
            Format::XcJson => {
                let points = at(format!("{short}.json.gz"));
                self.file(&points, |out| xc_json::write(dataset, out))?;
                self.file(&at("lbl.json.gz".into()), |out| {
                    xc_json::write_names(dataset.label_set(), out)
                })
            }
            Format::XcSplit => {
                if let Some(features) = dataset.features() {
                    let path = at(format!("{short}_X_Xf.txt"));
                    self.file(&path, |out| write_rows(out, features))?;
                }
                let path = at(format!("{short}_X_Y.txt"));
                self.file(&path, |out| write_rows(out, dataset.labels()))?;
                self.write_names(&at("labels.txt".into()))
            }
            Format::Raw => {
                self.write_texts(&at(format!("{long}_texts.txt")))?;
                let path = at(format!("{long}_labels.txt"));
                self.file(&path, |out| raw::write_labels(dataset, out))?;
                self.write_names(&at("labels.txt".into()))
            }
            _ => {
                if let Some(features) = dataset.features() {
                    let path = at(format!("X.{short}.npz"));
                    features.write_npz(&path)?;
                    self.files.push(path);
                }
                if dataset.texts().is_some() {
                    self.write_texts(&at(format!("X.{short}.txt")))?;
                }
                let path = at(format!("Y.{short}.npz"));
                dataset.labels().write_npz(&path)?;
                self.files.push(path);
                self.write_names(&at("output-items.txt".into()))
            }
        }
    }

    fn write_texts(&mut self, path: &Path) -> Result<()> {
        let texts = self.dataset.texts();
        self.file(path, |out| {
            for text in texts.into_iter().flat_map(|texts| texts.iter()) {
                write_line_text(out, text, b"")?;
                out.write_all(b"\n")?;
            }
            Ok(())
        })
    }

    fn write_names(&mut self, path: &Path) -> Result<()> {
        let names = self.dataset.label_set().names();
        self.file(path, |out| {
            for name in names.iter() {
                writeln!(out, "{name}")?;
            }
            Ok(())
        })
    }

    fn file(
        &mut self,
        path: &Path,
        content: impl FnOnce(&mut Sink) -> io::Result<()>,
    ) -> Result<()> {
        let mut sink = Sink::create(path)?;
        content(&mut sink).map_err(|error| Error::io(path, "write", error))?;
        sink.finish()?;
        self.files.push(path.to_path_buf());
        Ok(())
    }
}

/// Checks that the result would not be wrong.
///
/// # Errors
/// [`Error::BadFile`] if it would.
fn check(dataset: &Dataset, format: Format, path: &Path) -> Result<()> {
    let refuse = |problem: String| {
        Err(Error::BadFile {
            path: path.to_path_buf(),
            problem,
        })
    };
    if format.needs_features() && dataset.features().is_none() {
        return refuse(format!(
            "{format} holds sparse features, the data set has texts only: compute tf-idf features first"
        ));
    }
    if !holds_features(format) && dataset.texts().is_none() {
        return refuse(format!(
            "{format} holds texts, the data set has sparse features only: choose xc, xc-split or pecos"
        ));
    }
    let raw_by_name = format == Format::Raw && raw::uses_names(dataset);
    if let Some(name) = dataset
        .label_set()
        .names()
        .iter()
        .find(|name| !can_hold(format, raw_by_name, name))
    {
        return refuse(format!(
            "{format} cannot hold the label name {name:?}: rename it, or choose jsonl"
        ));
    }
    Ok(())
}

/// The parts of the data set that will be lost.
fn losses(dataset: &Dataset, format: Format) -> Vec<ConversionLoss> {
    let mut losses = Vec::new();
    if dataset.ids().is_some() && !holds_ids(format) {
        losses.push(ConversionLoss::Ids);
    }
    if dataset.texts().is_some() && format.needs_features() {
        losses.push(ConversionLoss::Texts);
    }
    if dataset.features().is_some() && !holds_features(format) {
        losses.push(ConversionLoss::Features);
    }
    let is_table = matches!(format, Format::Csv | Format::Tsv);
    if dataset.weights().is_some() && !is_table && format != Format::Jsonl {
        losses.push(ConversionLoss::Weights);
    }
    let n_rejected = dataset.rejected().map_or(0, CsrMatrix::nnz);
    if n_rejected > 0 && format != Format::Jsonl {
        losses.push(ConversionLoss::Rejected(n_rejected));
    }
    let n_weighted = dataset
        .labels()
        .values()
        .iter()
        .filter(|relevance| **relevance != 1.0)
        .count();
    if n_weighted > 0 && !holds_relevances(format) {
        losses.push(ConversionLoss::Relevances(n_weighted));
    }
    let n_unused = n_unused_labels(dataset);
    if n_unused > 0 && names_only(format) {
        losses.push(ConversionLoss::UnusedLabels(n_unused));
    }
    let n_changed = n_changed_texts(dataset, format);
    if n_changed > 0 {
        losses.push(ConversionLoss::ChangedTexts(n_changed));
    }
    let n_spaced = dataset
        .label_set()
        .names()
        .iter()
        .filter(|name| name.contains(char::is_whitespace))
        .count();
    if n_spaced > 0 && format == Format::Annif {
        losses.push(ConversionLoss::SpacedNames(n_spaced));
    }
    losses
}

fn holds_features(format: Format) -> bool {
    format.needs_features() || format == Format::Pecos
}

fn holds_ids(format: Format) -> bool {
    matches!(
        format,
        Format::Jsonl | Format::Csv | Format::Tsv | Format::XcJson | Format::LibMultiLabel
    )
}

fn holds_relevances(format: Format) -> bool {
    matches!(
        format,
        Format::Jsonl
            | Format::Csv
            | Format::Tsv
            | Format::XcJson
            | Format::XcSplit
            | Format::Pecos
            | Format::Text2Text
    )
}

/// Whether labels appear only by name in their points: a label without a point is lost.
fn names_only(format: Format) -> bool {
    matches!(
        format,
        Format::Jsonl
            | Format::Csv
            | Format::Tsv
            | Format::FastText
            | Format::LibMultiLabel
            | Format::Annif
    )
}

fn can_hold(format: Format, raw_by_name: bool, name: &str) -> bool {
    let is_line = !name.contains(['\n', '\r']);
    match format {
        Format::Jsonl | Format::Csv | Format::Tsv | Format::XcJson | Format::FastText => true,
        Format::LibMultiLabel => !name.is_empty(),
        Format::Annif => annif::can_hold(name),
        Format::Raw => is_line && (!raw_by_name || raw::can_hold(name)),
        Format::Xc | Format::XcSplit | Format::Pecos | Format::Text2Text => is_line,
    }
}

fn n_unused_labels(dataset: &Dataset) -> usize {
    let mut is_used = vec![false; dataset.n_labels()];
    for &label in dataset.labels().indices() {
        is_used[label as usize] = true;
    }
    is_used.iter().filter(|is_used| !**is_used).count()
}

fn n_changed_texts(dataset: &Dataset, format: Format) -> usize {
    let is_changed: fn(&str) -> bool = match format {
        Format::Jsonl
        | Format::Csv
        | Format::Tsv
        | Format::XcJson
        | Format::Xc
        | Format::XcSplit => return 0,
        Format::Raw | Format::Pecos => |text| is_changed(text, b""),
        Format::FastText => |text| is_changed(text, b"") || fasttext::has_label_word(text),
        Format::Text2Text | Format::LibMultiLabel | Format::Annif => |text| is_changed(text, b"\t"),
    };
    let texts = dataset.texts().into_iter().flat_map(|texts| texts.iter());
    texts.filter(|text| is_changed(text)).count()
}
