//! Reading data sets for a verb: options, progress, error context, and a summary on stderr.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use elias::Predictor;
use elias::data::{Columns, Dataset, Format, LabelSet, Part, ReadOptions, Summary, TextEmbeddings};

use crate::ui::console::Console;
use crate::ui::count::count;
use crate::ui::progress::{Progress, Unit};

/// How to read a data set.
#[derive(Args)]
pub(crate) struct DataArgs {
    /// Format of the data, if it should not be detected
    #[arg(long, hide_short_help = true, value_parser = format_parser(), hide_possible_values = true)]
    #[arg(long_help = format!("Format of the data, if it should not be detected: {}", format_names()))]
    format: Option<Format>,
    #[command(flatten)]
    columns: ColumnArgs,
}

impl DataArgs {
    /// Options for a part of a data set; labels of `known_labels` keep their ids.
    pub(crate) fn options<'a>(
        &'a self,
        part: Part,
        known_labels: Option<&'a LabelSet>,
    ) -> ReadOptions<'a> {
        ReadOptions {
            format: self.format,
            ..self.columns.options(part, known_labels)
        }
    }

    /// Options for a part of the data that a model answers: its labels, and its fields of the text.
    pub(crate) fn options_of<'a>(
        &'a self,
        part: Part,
        predictor: &'a Predictor,
    ) -> ReadOptions<'a> {
        ReadOptions {
            text_fields: &predictor.plan().config().data.text_fields,
            ..self.options(part, Some(predictor.labels()))
        }
    }
}

/// Which columns of CSV and TSV data, or keys of JSON Lines, to read.
#[derive(Args, Clone)]
pub(crate) struct ColumnArgs {
    /// Text columns of CSV or TSV data, or keys of JSON Lines, or fields of XC JSON; several are joined by a space
    #[arg(
        long,
        visible_alias = "text-columns",
        value_name = "NAME,…",
        value_delimiter = ',',
        hide_short_help = true
    )]
    text_column: Vec<String>,
    /// Label column of CSV or TSV data, or key of JSON Lines
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    label_column: Option<String>,
    /// Separator of the labels in that column, if it should not be detected
    #[arg(long, value_name = "C", hide_short_help = true, value_parser = parse_separator)]
    label_separator: Option<char>,
}

impl ColumnArgs {
    /// The columns as the library takes them.
    pub(crate) fn columns(&self) -> Columns<'_> {
        Columns {
            text: &self.text_column,
            labels: self.label_column.as_deref(),
            label_separator: self.label_separator,
        }
    }

    /// Options for a part of a data set; labels of `known_labels` keep their ids.
    pub(crate) fn options<'a>(
        &'a self,
        part: Part,
        known_labels: Option<&'a LabelSet>,
    ) -> ReadOptions<'a> {
        ReadOptions {
            columns: self.columns(),
            part,
            known_labels,
            ..ReadOptions::default()
        }
    }
}

/// Parses one character; `\t` and `tab` are a tab.
fn parse_separator(text: &str) -> Result<char, String> {
    if ["\\t", "tab"].contains(&text) {
        return Ok('\t');
    }
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(separator), None) => Ok(separator),
        _ => Err("expected one character, such as ; or |".into()),
    }
}

/// The parts of a data set, with the same label ids.
pub(crate) struct Split {
    pub(crate) train: Dataset,
    pub(crate) test: Dataset,
}

/// Reads a data set and reports on stderr what it contains.
pub(crate) fn read(
    console: &Console,
    path: &Path,
    options: ReadOptions<'_>,
) -> anyhow::Result<Dataset> {
    let part = options.part;
    let started = Instant::now();
    let progress = Progress::start(console, "reading", Unit::Bytes);
    let on_progress = |done: u64, total: u64| progress.set(done, total);
    let options = ReadOptions {
        on_progress: Some(&on_progress),
        ..options
    };
    let (dataset, summary) = if path == Path::new("-") {
        let mut bytes = Vec::new();
        std::io::stdin()
            .read_to_end(&mut bytes)
            .context("while reading standard input")?;
        options.read_bytes("standard input", &bytes)
    } else {
        options.read(path)
    }
    .with_context(|| format!("while reading the {part} data"))?;
    drop(progress);
    console.info(format_args!(
        "read {} as {part} data: {}",
        path.display(),
        describe(&dataset, &summary)
    ));
    console.detail(format_args!("reading took {:.2?}", started.elapsed()));
    Ok(dataset)
}

/// The points with the embeddings of their texts, if a file has any.
pub(crate) fn with_embeddings(data: Dataset, path: Option<&Path>) -> anyhow::Result<Dataset> {
    let Some(path) = path else {
        return Ok(data);
    };
    let embeddings = TextEmbeddings::read(path).context("while reading the embeddings of texts")?;
    Ok(data.with_embeddings(embeddings)?)
}

/// Where the training data is: the path given, else the train part of the directory `data`.
pub(crate) fn find_train<'a>(
    given: Option<&'a Path>,
    data: &'a Path,
) -> anyhow::Result<Option<&'a Path>> {
    if given.is_some() {
        return Ok(given);
    }
    let is_directory = data.is_dir() || data.extension().is_some_and(|ending| ending == "zip");
    let has_train = is_directory && Part::find(data)?.contains(&Part::Train);
    Ok(has_train.then_some(data))
}

fn describe(dataset: &Dataset, summary: &Summary) -> String {
    let mut text = format!(
        "{}, {}",
        count(dataset.n_points(), "point"),
        count(dataset.n_labels(), "label")
    );
    for (n, what, remark) in [
        (summary.n_empty_points, "empty point", ""),
        (summary.n_unlabelled, "point", " without labels"),
        (
            summary.n_duplicate_labels,
            "repeated label",
            " counted once",
        ),
        (summary.n_zero_labels, "label", " of relevance 0 left out"),
        (summary.n_new_labels, "label", " not in the training data"),
    ] {
        if n > 0 {
            text.push_str(&format!("; {}{remark}", count(n, what)));
        }
    }
    text
}

/// Parses the name of a format.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// The names of all formats, for help texts.
pub(crate) fn format_names() -> String {
    Format::ALL.map(Format::name).join(", ")
}
