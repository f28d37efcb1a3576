//! Reading data sets for a verb: options, progress, error context, and a summary on stderr.

use std::io::Read;
use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use elias::Predictor;
use elias::data::{
    Columns, Dataset, Format, LabelSeparator, LabelSet, Part, ReadOptions, Summary, TextEmbeddings,
};

use crate::ui::console::Console;
use crate::ui::count::count;
use crate::ui::progress::{Progress, Unit};
use crate::ui::table::shorten;

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
    /// Separator of the labels in that column, if it should not be detected; none, if a field is one label
    #[arg(long, value_name = "C|none", hide_short_help = true, value_parser = parse_separator)]
    label_separator: Option<LabelSeparator>,
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

/// Parses one character, or `none`; `\t` and `tab` are a tab.
fn parse_separator(text: &str) -> Result<LabelSeparator, String> {
    match text {
        "\\t" | "tab" => return Ok('\t'.into()),
        "none" => return Ok(LabelSeparator::None),
        _ => {}
    }
    let mut characters = text.chars();
    match (characters.next(), characters.next()) {
        (Some(separator), None) => Ok(separator.into()),
        _ => Err("expected one character, such as ; or |, or none".into()),
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
    let has_own_labels = options.known_labels.is_none();
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
    if has_own_labels {
        if summary.n_label_fields > 0 {
            console.info(describe_labels(&dataset, &summary));
        }
        if let Some(separator) = dataset.suspected_separator() {
            console.info(format_args!(
                "warning: most points have a label of their own with {separator:?} in it: if that separates labels, \
                 add --label-separator {}",
                shell_word(separator)
            ));
        }
    }
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
    let weights = dataset.weights().unwrap_or_default().iter();
    let n_weighted = weights.filter(|weight| **weight != 1.0).count();
    let n_rejected = dataset.rejected().map_or(0, |rejected| rejected.nnz());
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
        (n_weighted, "point", " with a weight other than 1"),
        (n_rejected, "rejected label", ""),
        (
            summary.n_unknown_rejected,
            "rejected label",
            " that no point has left out",
        ),
    ] {
        if n > 0 {
            text.push_str(&format!("; {}{remark}", count(n, what)));
        }
    }
    text
}

/// How the labels of fields were read, with two of them: points with several labels, if there are any.
fn describe_labels(dataset: &Dataset, summary: &Summary) -> String {
    const N_EXAMPLES: usize = 2;
    const MAX_CHARS: usize = 60;
    let n_least = if summary.n_split_fields > 0 { 2 } else { 1 };
    let has_enough = |&point: &usize| dataset.labels().row(point).0.len() >= n_least;
    let points = (0..dataset.n_points()).filter(has_enough);
    let examples = points.take(N_EXAMPLES).map(|point| {
        let names: Vec<String> = dataset
            .label_names(point)
            .map(|name| format!("{name:?}"))
            .collect();
        shorten(&names.join(" and "), MAX_CHARS)
    });
    format!(
        "labels: {} of {} split, for example {}",
        summary.n_split_fields,
        count(summary.n_label_fields, "field"),
        examples.collect::<Vec<_>>().join("; ")
    )
}

/// A character as a shell takes it.
fn shell_word(character: char) -> String {
    match character {
        ',' => ",".into(),
        other => format!("'{other}'"),
    }
}

/// Parses the name of a format.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}

/// The names of all formats, for help texts.
pub(crate) fn format_names() -> String {
    Format::ALL.map(Format::name).join(", ")
}
