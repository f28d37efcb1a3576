//! Reading a data set of any format.

use std::path::Path;

use crate::data::builder::{Builder, LabelNumbering};
use crate::data::formats::npz::UnsortedRows;
use crate::data::formats::xc_json::TextField;
use crate::data::formats::{
    annif, fasttext, jsonl, libmultilabel, raw, sparse_text, table, text2text, xc, xc_json,
};
use crate::data::io::filter::read_filter_pairs;
use crate::data::io::layout::{Layout, locate};
use crate::data::io::recognise::{first_line, recognise};
use crate::data::io::source::{Line, ReadProgress, Source};
use crate::data::{Columns, Dataset, Format, LabelSet, Part, Summary, Texts};
use crate::error::{Error, ReadOption, Result};

/// Options for reading a data set.
#[derive(Clone, Copy, Default)]
pub struct ReadOptions<'a> {
    /// The format, if it is not to be recognised by content.
    pub format: Option<Format>,
    /// The part of a directory; a single file can be read as either.
    pub part: Part,
    /// Labels that are already known: they keep their ids, others are appended.
    pub known_labels: Option<&'a LabelSet>,
    /// The columns of a CSV or TSV file to read, or the fields of XC Repository JSON.
    pub columns: Columns<'a>,
    /// The fields of XC Repository JSON that are read where no columns are named.
    pub text_fields: &'a [String],
    /// Called with the bytes read so far and in total, as they are on disk.
    pub on_progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl Dataset {
    /// Reads a data set of any known format: a file, or the training part of a directory.
    ///
    /// # Errors
    /// As [`ReadOptions::read`].
    pub fn read(path: impl AsRef<Path>) -> Result<Dataset> {
        let (data, _) = ReadOptions::default().read(path)?;
        Ok(data)
    }
}

impl ReadOptions<'_> {
    /// Reads a data set: a file, or a part of a directory. A pipe is read once, into memory.
    ///
    /// # Errors
    /// [`Error::Malformed`], [`Error::LabelOutOfRange`] and [`Error::BadFile`] name the file, the line, what was found
    /// and what was expected; [`Error::Unclear`] if an option would help; [`Error::Io`] if the operating system refuses.
    pub fn read(&self, path: impl AsRef<Path>) -> Result<(Dataset, Summary)> {
        read(path.as_ref(), self)
    }

    /// Reads a data set of a single-file format from memory; errors refer to it as `name`.
    ///
    /// # Errors
    /// As [`ReadOptions::read`].
    pub fn read_bytes(&self, name: &str, bytes: &[u8]) -> Result<(Dataset, Summary)> {
        read_bytes(name, bytes, self)
    }
}

fn read(path: &Path, options: &ReadOptions<'_>) -> Result<(Dataset, Summary)> {
    if let Some(bytes) = Source::open(path)?.in_memory() {
        return read_bytes(&path.to_string_lossy(), bytes, options);
    }
    let layout = locate(path, options)?;
    check_columns(&layout, &options.columns)?;
    let n_total = layout
        .files()
        .map(|file| Source::file(file).n_bytes())
        .sum();
    let progress = ReadProgress::new(n_total, options.on_progress);
    let reader = Reader {
        points: Source::file(&layout.points),
        layout: &layout,
        columns: options.columns,
        text_fields: options.text_fields,
        builder: Builder::new(options.known_labels),
        progress: &progress,
    };
    let (dataset, summary) = reader.read()?;
    let filter = match &layout.filter {
        Some(path) => read_filter_pairs(path)?,
        None => Vec::new(),
    };
    Ok((dataset.with_filter(filter), summary))
}

fn read_bytes(name: &str, bytes: &[u8], options: &ReadOptions<'_>) -> Result<(Dataset, Summary)> {
    let source = Source::bytes(name, bytes);
    let format = match options.format {
        Some(format) => format,
        None => recognise(&source, &options.columns)?,
    };
    if !format.is_single_file() {
        return Err(Error::BadFile {
            path: source.path().to_path_buf(),
            problem: format!("a {format} data set has several files, expected a format of one"),
        });
    }
    let layout = Layout {
        format,
        points: source.path().to_path_buf(),
        labels: None,
        names: None,
        texts: None,
        filter: None,
    };
    check_columns(&layout, &options.columns)?;
    let progress = ReadProgress::new(source.n_bytes(), options.on_progress);
    let reader = Reader {
        points: source,
        layout: &layout,
        columns: options.columns,
        text_fields: options.text_fields,
        builder: Builder::new(options.known_labels),
        progress: &progress,
    };
    reader.read()
}

/// One run over the files of a part.
struct Reader<'a> {
    points: Source<'a>,
    layout: &'a Layout,
    columns: Columns<'a>,
    text_fields: &'a [String],
    builder: Builder,
    progress: &'a ReadProgress<'a>,
}

impl Reader<'_> {
    fn read(self) -> Result<(Dataset, Summary)> {
        // An empty file is reported as such, whatever the format.
        self.points.head(1)?;
        let path = self.points.path().to_path_buf();
        let (dataset, summary) = match self.layout.format {
            Format::Jsonl | Format::FastText | Format::LibMultiLabel | Format::Annif => {
                self.read_named()
            }
            Format::Csv | Format::Tsv => self.read_table(),
            Format::Xc => self.read_xc(),
            Format::XcJson => self.read_xc_json(),
            Format::XcSplit => self.read_xc_split(),
            Format::Raw => self.read_raw(),
            Format::Pecos => self.read_pecos(),
            Format::Text2Text => self.read_text2text(),
        }?;
        if dataset.n_points() == 0 {
            let problem = "has no points, expected at least one".into();
            return Err(Error::BadFile { path, problem });
        }
        Ok((dataset, summary))
    }

    /// The formats of one file whose labels are names.
    fn read_named(mut self) -> Result<(Dataset, Summary)> {
        let mut lines = self.points.lines(self.progress)?;
        match self.layout.format {
            Format::FastText => fasttext::read(&mut lines, &mut self.builder)?,
            Format::LibMultiLabel => libmultilabel::read(&mut lines, &mut self.builder)?,
            Format::Annif => annif::read(&mut lines, &mut self.builder)?,
            _ => jsonl::read(&mut lines, &self.columns, &mut self.builder)?,
        }
        if self.builder.n_points() == 0 {
            return Err(lines.bad_file("has only blank lines, expected at least one point"));
        }
        self.builder.finish(self.points.path(), 0)
    }

    fn read_table(mut self) -> Result<(Dataset, Summary)> {
        let first_line = first_line(&self.points)?;
        let delimiter = table::delimiter(self.layout.format, &first_line, &self.columns);
        let lines = self.points.lines(self.progress)?;
        table::read(lines, delimiter, &self.columns, &mut self.builder)?;
        self.builder.finish(self.points.path(), 0)
    }

    fn read_xc(mut self) -> Result<(Dataset, Summary)> {
        let shape = xc::read(&mut self.points.lines(self.progress)?, &mut self.builder)?;
        let numbering = self.numbering(Some(shape.n_labels))?;
        self.builder
            .finish_numbered(self.points.path(), shape.n_features, numbering)
    }

    fn read_text2text(mut self) -> Result<(Dataset, Summary)> {
        text2text::read(&mut self.points.lines(self.progress)?, &mut self.builder)?;
        let numbering = self.numbering(None)?;
        self.builder
            .finish_numbered(self.points.path(), 0, numbering)
    }

    fn read_xc_json(mut self) -> Result<(Dataset, Summary)> {
        if self.columns.text.is_empty() {
            self.columns.text = self.text_fields;
        }
        let fields = text_fields(self.points.path(), &self.columns)?;
        let names = match &self.layout.names {
            Some(path) => Some(xc_json::read_names(
                &mut Source::file(path).lines(self.progress)?,
            )?),
            None => None,
        };
        let mut lines = self.points.lines(self.progress)?;
        xc_json::read(
            &mut lines,
            names.as_ref().map(Texts::len),
            &fields,
            &mut self.builder,
        )?;
        let n_labels = names
            .as_ref()
            .map_or(self.builder.n_labels_seen(), Texts::len);
        self.builder
            .finish_numbered(self.points.path(), 0, LabelNumbering { n_labels, names })
    }

    fn read_xc_split(mut self) -> Result<(Dataset, Summary)> {
        let builder = &mut self.builder;
        let mut lines = self.points.lines(self.progress)?;
        let n_features = sparse_text::read_rows(&mut lines, |line, row| {
            push_features(builder, row.drain(..))
                .map_err(|found| line.malformed(found, "finite values"))
        })?;
        let labels = Source::file(self.labels_path()?);
        let builder = &mut self.builder;
        let mut lines = labels.lines(self.progress)?;
        let n_labels = sparse_text::read_rows(&mut lines, |line, row| {
            push_labels(builder, row.drain(..))
                .map_err(|found| line.malformed(found, "relevances of at least 0"))
        })?;
        let numbering = self.numbering(Some(n_labels))?;
        self.builder
            .finish_numbered(self.points.path(), n_features, numbering)
    }

    fn read_raw(mut self) -> Result<(Dataset, Summary)> {
        raw::read_texts(&mut self.points.lines(self.progress)?, &mut self.builder)?;
        let labels = Source::file(self.labels_path()?);
        let mut lines = labels.lines(self.progress)?;
        let Some(names_path) = &self.layout.names else {
            raw::read_named_labels(&mut lines, &mut self.builder)?;
            return self.builder.finish(labels.path(), 0);
        };
        let names = read_names(names_path, self.progress)?;
        raw::read_labels(&mut lines, &names, &mut self.builder)?;
        let numbering = LabelNumbering {
            n_labels: names.len(),
            names: Some(names),
        };
        self.builder.finish_numbered(labels.path(), 0, numbering)
    }

    fn read_pecos(mut self) -> Result<(Dataset, Summary)> {
        let mut n_features = 0;
        let mut texts_path = self.layout.texts.as_deref();
        if self.points.path().to_string_lossy().ends_with(".npz") {
            let rows = self.read_npz(self.points.path())?;
            for point in 0..rows.n_rows() {
                push_features(&mut self.builder, rows.row(point))
                    .map_err(|found| self.bad_file(self.points.path(), &found))?;
            }
            n_features = rows.n_columns;
        } else {
            texts_path = Some(self.points.path());
        }
        if let Some(path) = texts_path {
            let texts = Source::file(path);
            raw::read_texts(&mut texts.lines(self.progress)?, &mut self.builder)?;
        }
        let labels_path = self.labels_path()?.to_path_buf();
        let rows = self.read_npz(&labels_path)?;
        for point in 0..rows.n_rows() {
            push_labels(&mut self.builder, rows.row(point))
                .map_err(|found| self.bad_file(&labels_path, &found))?;
        }
        let numbering = self.numbering(Some(rows.n_columns))?;
        self.builder
            .finish_numbered(&labels_path, n_features, numbering)
    }

    fn read_npz(&self, path: &Path) -> Result<UnsortedRows> {
        let rows = UnsortedRows::read(path)?;
        self.progress.advance(Source::file(path).n_bytes());
        Ok(rows)
    }

    fn labels_path(&self) -> Result<&Path> {
        let missing = || self.bad_file(self.points.path(), "has no file of labels beside it");
        self.layout.labels.as_deref().ok_or_else(missing)
    }

    fn bad_file(&self, path: &Path, problem: &str) -> Error {
        Error::BadFile {
            path: path.to_path_buf(),
            problem: problem.to_owned(),
        }
    }

    /// The names of numbered labels, from the file beside the data if there is one.
    ///
    /// # Errors
    /// If there are fewer names than labels, or not as many as the data declare.
    fn numbering(&self, declared: Option<usize>) -> Result<LabelNumbering> {
        let n_seen = self.builder.n_labels_seen();
        let Some(path) = &self.layout.names else {
            return Ok(LabelNumbering {
                n_labels: declared.unwrap_or(n_seen),
                names: None,
            });
        };
        let mut names = read_names(path, self.progress)?;
        if let Some(n_labels) = declared {
            drop_blank_tail(&mut names, n_labels);
        }
        let fits = match declared {
            Some(n_labels) => names.len() == n_labels,
            None => names.len() >= n_seen,
        };
        if !fits {
            let problem = format!(
                "holds {} label names, expected {} as in {}",
                names.len(),
                declared.unwrap_or(n_seen),
                self.points.path().display()
            );
            return Err(self.bad_file(path, &problem));
        }
        Ok(LabelNumbering {
            n_labels: names.len(),
            names: Some(names),
        })
    }
}

/// The fields of XC JSON that are read as text.
fn text_fields(path: &Path, columns: &Columns<'_>) -> Result<Vec<TextField>> {
    let found = match TextField::of(columns) {
        Ok(fields) if columns.labels.is_none() && columns.label_separator.is_none() => {
            return Ok(fields);
        }
        Ok(_) => "a column of labels, which has no effect".to_owned(),
        Err(name) => format!("{name:?} as a field of the text"),
    };
    let problem = format!(
        "is read as {}, with {found}: expected title, content, or both, which is what is read by default",
        Format::XcJson
    );
    let path = path.to_path_buf();
    Err(Error::BadFile { path, problem })
}

/// Checks that columns are named only for a format that has them.
fn check_columns(layout: &Layout, columns: &Columns<'_>) -> Result<()> {
    let format = layout.format;
    if format == Format::XcJson && columns.are_given() {
        return text_fields(&layout.points, columns).map(|_| ());
    }
    let problem = match columns {
        columns if !columns.are_given() => return Ok(()),
        _ if !format.has_columns() => format!(
            "is read as {format}, which has no columns: give no columns, or the format csv, tsv or jsonl"
        ),
        _ => return Ok(()),
    };
    let path = layout.points.clone();
    let error = Error::BadFile { path, problem };
    Err(error.unless_given(ReadOption::Format))
}

fn push_features(
    builder: &mut Builder,
    row: impl Iterator<Item = (u32, f32)>,
) -> Result<(), String> {
    for (feature, value) in row {
        builder.push_feature(feature, value);
    }
    builder.end_features()
}

fn push_labels(builder: &mut Builder, row: impl Iterator<Item = (u32, f32)>) -> Result<(), String> {
    for (label, relevance) in row {
        if relevance < 0.0 {
            return Err(format!("relevance {relevance} of label {label}"));
        }
        builder.push_label_number(label, relevance);
    }
    builder.end_labels();
    Ok(())
}

/// Drops blank lines after the last name, which many editors leave.
fn drop_blank_tail(names: &mut Texts, n_names: usize) {
    let is_tail_blank = names.iter().skip(n_names).all(str::is_empty);
    if names.len() > n_names && is_tail_blank {
        *names = names.iter().take(n_names).collect();
    }
}

/// Label names, one per line.
fn read_names(path: &Path, progress: &ReadProgress<'_>) -> Result<Texts> {
    let source = Source::file(path);
    let mut lines = source.lines(progress)?;
    let mut names = Texts::default();
    while let Some(Line { text, .. }) = lines.next()? {
        names.push(text);
    }
    Ok(names)
}
