//! CSV and TSV with a header; see [`crate::data::formats::columns`] for the columns and
//! [`crate::data::formats::label_cell`] for the labels.
//!
//! Fields of a CSV file are separated by commas, or by semicolons where its header is; those of a TSV file by tabs.
//! Quoting is the same for all; see [`crate::data::formats::records`].

use std::io::{self, Write};
use std::sync::Arc;

use crate::data::builder::Builder;
use crate::data::formats::columns::{
    ColumnPositions, Columns, WEIGHT, find_columns, n_usual_names, no_labels,
};
use crate::data::formats::label_cell::{CellStyle, read_labels, write_cell};
use crate::data::formats::records::Records;
use crate::data::io::source::Lines;
use crate::data::{Dataset, Format, InputColumns};
use crate::error::{ReadOption, Result};

/// A table whose header has been read.
pub(in crate::data) struct Table<'a> {
    records: Records<'a>,
    n_columns: usize,
    positions: ColumnPositions,
    header: Arc<Vec<String>>,
}

impl<'a> Table<'a> {
    /// Reads the header.
    ///
    /// # Errors
    /// [`crate::Error::Malformed`] if it lacks a column, [`crate::Error::BadFile`] if there is none.
    pub(in crate::data) fn open(
        lines: Lines<'a>,
        delimiter: u8,
        columns: &Columns<'_>,
    ) -> Result<Self> {
        let mut records = Records::new(lines, delimiter);
        if !records.advance()? {
            return Err(records.bad_file("has only blank lines, expected a header of column names"));
        }
        let names: Vec<&str> = records.fields().iter().collect();
        let positions = find_columns(&names, columns).map_err(|problem| {
            problem.into_error(|found, expected| records.malformed(found, expected))
        })?;
        let header: Arc<Vec<String>> = Arc::new(names.into_iter().map(str::to_owned).collect());
        Ok(Table {
            n_columns: header.len(),
            records,
            positions,
            header,
        })
    }

    /// Moves to the next row; false at the end.
    ///
    /// # Errors
    /// If it cannot be read, or does not have as many fields as the header.
    pub(in crate::data) fn advance(&mut self) -> Result<bool> {
        let is_row = self.records.advance()?;
        if is_row {
            self.records.check_n_fields(self.n_columns)?;
        }
        Ok(is_row)
    }

    /// The text of the row: the parts that are not empty, joined by a space.
    pub(in crate::data) fn text(&self, text: &mut String) {
        text.clear();
        for &position in &self.positions.text {
            let part = self.records.field(position);
            if !text.is_empty() && !part.is_empty() {
                text.push(' ');
            }
            text.push_str(part);
        }
    }

    /// All columns of the row.
    pub(in crate::data) fn columns(&self) -> InputColumns {
        let values = (0..self.n_columns).map(|column| self.records.field(column).to_owned());
        InputColumns {
            names: Arc::clone(&self.header),
            values: values.collect(),
        }
    }

    /// Reads the weight of the row into the builder, if there is such a column and the cell is not empty.
    fn read_weight(&self, builder: &mut Builder) -> Result<()> {
        let cell = self
            .positions
            .weight
            .map(|weight| self.records.field(weight).trim());
        let Some(cell) = cell.filter(|cell| !cell.is_empty()) else {
            return Ok(());
        };
        let weight = cell.parse::<f32>();
        let pushed = weight.map_err(|_| format!("the weight {cell:?}"));
        pushed
            .and_then(|weight| builder.push_weight(weight))
            .map_err(|found| {
                let expected = "a finite number of at least 0, or another name of the column if it \
                            has something else than weights of points";
                self.records.malformed(found, expected)
            })
    }

    /// The id of the row, if there is such a column.
    pub(in crate::data) fn id(&self) -> Option<&str> {
        self.positions.id.map(|id| self.records.field(id))
    }
}

/// Reads all rows into the builder.
pub(in crate::data) fn read(
    lines: Lines<'_>,
    delimiter: u8,
    columns: &Columns<'_>,
    builder: &mut Builder,
) -> Result<()> {
    let mut table = Table::open(lines, delimiter, columns)?;
    let Some(labels) = table.positions.labels else {
        let header: Vec<&str> = table.header.iter().map(String::as_str).collect();
        let problem = no_labels(&header);
        return Err(problem.into_error(|found, expected| table.records.malformed(found, expected)));
    };
    let style = match CellStyle::of(columns) {
        CellStyle::Any if table.positions.are_labels_uris => CellStyle::Spaced,
        style => style,
    };
    let mut text = String::new();
    while table.advance()? {
        let cell = table.records.field(labels);
        read_labels(cell, style, builder).map_err(|found| {
            let expected = "a JSON list such as [\"a\", \"b\"], or names separated by ; or |";
            let error = table.records.malformed(found, expected);
            error.unless_given(ReadOption::LabelSeparator)
        })?;
        if let Some(id) = table.id() {
            builder.push_id(id);
        }
        table.read_weight(builder)?;
        table.text(&mut text);
        builder.push_text(&text);
        builder.end_labels();
    }
    if builder.n_points() == 0 {
        return Err(table
            .records
            .bad_file("has a header and no rows, expected at least one row"));
    }
    Ok(())
}

/// Writes a header and all points: `id` where there are ids, `weight` where there are weights, `text`, `labels`.
pub(in crate::data) fn write(
    dataset: &Dataset,
    delimiter: u8,
    out: &mut impl Write,
) -> io::Result<()> {
    let mut writer = csv::WriterBuilder::new()
        .delimiter(delimiter)
        .from_writer(out);
    if dataset.ids().is_some() {
        writer.write_field("id")?;
    }
    if dataset.weights().is_some() {
        writer.write_field(WEIGHT)?;
    }
    writer.write_record(["text", "labels"])?;
    let texts = dataset.texts().into_iter().flat_map(|texts| texts.iter());
    let mut cell = Vec::new();
    for (point, text) in texts.enumerate() {
        if let Some(ids) = dataset.ids() {
            writer.write_field(ids.get(point))?;
        }
        if let Some(weights) = dataset.weights() {
            writer.write_field(weights[point].to_string())?;
        }
        cell.clear();
        write_cell(dataset, point, &mut cell)?;
        writer.write_record([text.as_bytes(), &cell])?;
    }
    writer.flush()
}

/// The separator of fields of a file of this format that starts with this line.
pub(in crate::data) fn delimiter(format: Format, first_line: &str, columns: &Columns<'_>) -> u8 {
    if format == Format::Tsv {
        return b'\t';
    }
    let has_only_semicolons = first_line.contains(';') && !first_line.contains(',');
    if is_header(first_line, b';', columns) || has_only_semicolons {
        b';'
    } else {
        b','
    }
}

/// The format of a file that starts with this line, if that is a header with a text and labels.
pub(in crate::data) fn recognise(first_line: &str, columns: &Columns<'_>) -> Option<Format> {
    if is_header(first_line, b'\t', columns) {
        Some(Format::Tsv)
    } else if is_header(first_line, b',', columns) || is_header(first_line, b';', columns) {
        Some(Format::Csv)
    } else {
        None
    }
}

/// The format of texts to predict for that start with this line, if that is a header with at least two of the usual
/// names, a text among them.
pub(in crate::data) fn recognise_texts(first_line: &str) -> Option<Format> {
    let is_header = |&(_, delimiter): &(Format, u8)| {
        let record = split_header(first_line, delimiter);
        let header: Vec<&str> = record.iter().collect();
        n_usual_names(&header) >= 2 && find_columns(&header, &Columns::default()).is_ok()
    };
    let candidates = [
        (Format::Tsv, b'\t'),
        (Format::Csv, b','),
        (Format::Csv, b';'),
    ];
    let found = candidates.iter().find(|candidate| is_header(candidate));
    found.map(|(format, _)| *format)
}

fn is_header(line: &str, delimiter: u8, columns: &Columns<'_>) -> bool {
    if !line.as_bytes().contains(&delimiter) {
        return false;
    }
    let record = split_header(line, delimiter);
    let header: Vec<&str> = record.iter().collect();
    find_columns(&header, columns).is_ok_and(|positions| positions.labels.is_some())
}

/// The fields of a line; none if it is not a record.
pub(in crate::data) fn split_header(line: &str, delimiter: u8) -> csv::StringRecord {
    let mut reader = csv::ReaderBuilder::new()
        .delimiter(delimiter)
        .has_headers(false)
        .from_reader(line.as_bytes());
    let mut record = csv::StringRecord::new();
    match reader.read_record(&mut record) {
        Ok(true) => record,
        _ => csv::StringRecord::new(),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_header_is_recognised_by_its_column_names() {
        let check = |line: &str, expected: Option<Format>| {
            assert_eq!(recognise(line, &Columns::default()), expected, "{line}");
        };
        check("text,labels", Some(Format::Csv));
        check("\"Title\",x,\"abstract\",subjects", Some(Format::Csv));
        check("text;labels", Some(Format::Csv));
        check("id\ttext\tsubject_uris", Some(Format::Tsv));
        check("text,topic", None);
        check("labels,topic", None);
        check("text", None);
        check("some text, with labels", None);
    }

    #[test]
    fn texts_need_two_usual_names_to_be_a_table() {
        let check = |line: &str, expected: Option<Format>| {
            assert_eq!(recognise_texts(line), expected, "{line}");
        };
        check("id,text", Some(Format::Csv));
        check("title\tabstract", Some(Format::Tsv));
        check("text;labels;x", Some(Format::Csv));
        check("text, the first", None);
        check("id,labels", None);
        check("text", None);
    }
}
