//! Reading data for a verb: with progress, a context for errors, and a summary of what was noticed.

use std::path::Path;
use std::time::Instant;

use anyhow::Context;
use clap::Args;
use clap::builder::{PossibleValuesParser, TypedValueParser};
use elias::data::{self, Columns, Dataset, Format, ReadOptions, Summary};

use crate::ui::console::Console;
use crate::ui::progress::{Progress, Unit};

/// Which columns of CSV and TSV data to read.
#[derive(Args, Default)]
pub(crate) struct ColumnArgs {
    /// Column of CSV or TSV data with the text; several are joined by a space
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    text_column: Vec<String>,
    /// Column of CSV or TSV data with the labels
    #[arg(long, value_name = "NAME", hide_short_help = true)]
    label_column: Option<String>,
    /// What separates labels in that column, if not to be recognised
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
}

/// Reads one character; `\t` and `tab` are a tab.
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

/// Reads a data set and reports on stderr what it holds.
pub(crate) fn read(
    console: &Console,
    path: &Path,
    options: ReadOptions<'_>,
) -> anyhow::Result<Dataset> {
    let part = options.part;
    let started = Instant::now();
    let (dataset, summary) = read_with_progress(console, path, options)
        .with_context(|| format!("while reading the {part} data"))?;
    console.say(format_args!(
        "read {} as {} data: {}",
        path.display(),
        part,
        describe(&dataset, &summary)
    ));
    console.detail(format_args!("reading took {:.2?}", started.elapsed()));
    Ok(dataset)
}

fn read_with_progress(
    console: &Console,
    path: &Path,
    options: ReadOptions<'_>,
) -> elias::Result<(Dataset, Summary)> {
    let progress = Progress::start(console, "reading", Unit::Bytes);
    let on_progress = |done: u64, total: u64| progress.set(done, total);
    let options = ReadOptions {
        on_progress: Some(&on_progress),
        ..options
    };
    data::read(path, &options)
}

fn describe(dataset: &Dataset, summary: &Summary) -> String {
    let mut words = format!(
        "{} points, {} labels",
        dataset.n_points(),
        dataset.n_labels()
    );
    let noticed = [
        (summary.n_empty_points, "points are empty"),
        (summary.n_unlabelled, "points have no label"),
        (summary.n_duplicate_labels, "repeated labels count once"),
        (summary.n_zero_labels, "labels of relevance 0 are left out"),
        (
            summary.n_new_labels,
            "labels are not among the training labels",
        ),
    ];
    for (count, what) in noticed {
        if count != 0 {
            words.push_str(&format!("; {count} {what}"));
        }
    }
    words
}

/// Parses `--format`, and lists the formats in its help.
pub(crate) fn format_parser() -> impl TypedValueParser<Value = Format> {
    PossibleValuesParser::new(Format::ALL.map(Format::name)).try_map(|name| name.parse::<Format>())
}
