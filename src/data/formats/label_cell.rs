//! The labels of a point in one cell of a table.
//!
//! With a separator given, a cell is split at it. Otherwise a cell is, in this order: a JSON list of names, or the same
//! as Python writes it; a JSON object of names and relevances; URIs in angle brackets, separated by spaces; names
//! separated by `;`; names separated by `|`; a single name. Surrounding spaces do not count, nor do empty names outside
//! of JSON.

use std::io::{self, Write};

use serde::de::DeserializeSeed;

use crate::data::Dataset;
use crate::data::builder::Builder;
use crate::data::formats::annif::split_label;
use crate::data::formats::columns::{Columns, LabelSeparator};
use crate::data::formats::jsonl::{LabelsSeed, json_problem, write_labels};

/// The separator of labels, where a cell does not show it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(in crate::data) enum CellStyle {
    /// The cell shows it; see the module documentation.
    Any,
    /// White space, as between URIs; JSON is still recognised.
    Spaced,
    /// This character, whatever the cell looks like.
    Separated(char),
    /// None: the cell is one name.
    Whole,
}

impl CellStyle {
    /// The style that the caller has chosen.
    pub(in crate::data) fn of(columns: &Columns<'_>) -> Self {
        match columns.label_separator {
            Some(LabelSeparator::Character(separator)) => CellStyle::Separated(separator),
            Some(LabelSeparator::None) => CellStyle::Whole,
            None => CellStyle::Any,
        }
    }
}

/// Reads the labels of a cell into the builder.
///
/// # Errors
/// A phrase for what was found, if the cell starts like JSON and is not.
pub(in crate::data) fn read_labels(
    cell: &str,
    style: CellStyle,
    builder: &mut Builder,
) -> Result<(), String> {
    let cell = cell.trim();
    match style {
        CellStyle::Separated(separator) => {
            push_split(cell, Some(separator), builder);
            return Ok(());
        }
        CellStyle::Whole => {
            push_split(cell, None, builder);
            return Ok(());
        }
        CellStyle::Any | CellStyle::Spaced => {}
    }
    if let Some(names) = python_list(cell) {
        names
            .iter()
            .for_each(|name| builder.push_label(name.trim(), 1.0));
        return Ok(());
    }
    if cell.starts_with(['[', '{']) {
        let mut json = serde_json::Deserializer::from_str(cell);
        return LabelsSeed::new(builder, CellStyle::Whole)
            .deserialize(&mut json)
            .and_then(|()| json.end())
            .map_err(|error| json_problem(cell, &error));
    }
    let are_uris = cell.starts_with('<') && cell.ends_with('>');
    if are_uris || style == CellStyle::Spaced {
        let mut rest = cell;
        while !rest.is_empty() {
            let (label, after) = split_label(rest);
            builder.push_label(label, 1.0);
            rest = after.trim_start();
        }
    } else if cell.contains(';') {
        push_split(cell, Some(';'), builder);
    } else {
        push_split(cell, Some('|'), builder);
    }
    Ok(())
}

/// Adds the names of a cell: one if there is no separator.
fn push_split(cell: &str, separator: Option<char>, builder: &mut Builder) {
    let names = cell.split(|found| Some(found) == separator).map(str::trim);
    let mut n_names = 0;
    for name in names.filter(|name| !name.is_empty()) {
        builder.push_label(name, 1.0);
        n_names += 1;
    }
    builder.count_label_field(n_names);
}

/// The strings of a list as Python, and so pandas, writes it: `['a', "it's"]`; none if it is not one.
fn python_list(cell: &str) -> Option<Vec<String>> {
    let mut rest = cell.strip_prefix('[')?.strip_suffix(']')?.trim_start();
    // JSON has no single quotes.
    if !rest.contains('\'') {
        return None;
    }
    let mut names = Vec::new();
    while !rest.is_empty() {
        let quote = rest
            .chars()
            .next()
            .filter(|quote| ['\'', '"'].contains(quote))?;
        let (mut name, mut is_escaped, mut end) = (String::new(), false, None);
        for (at, found) in rest.char_indices().skip(1) {
            match found {
                _ if is_escaped => {
                    name.push(match found {
                        'n' => '\n',
                        't' => '\t',
                        '\\' | '\'' | '"' => found,
                        _ => return None,
                    });
                    is_escaped = false;
                }
                '\\' => is_escaped = true,
                _ if found == quote => {
                    end = Some(at + 1);
                    break;
                }
                _ => name.push(found),
            }
        }
        names.push(name);
        rest = rest[end?..].trim_start();
        rest = match rest.strip_prefix(',') {
            Some(after) => after.trim_start(),
            None if rest.is_empty() => rest,
            None => return None,
        };
    }
    Some(names)
}

/// Writes the labels of a point: separated by `;` where that is read as it was, as JSON otherwise.
pub(in crate::data) fn write_cell(
    dataset: &Dataset,
    point: usize,
    cell: &mut Vec<u8>,
) -> io::Result<()> {
    let (_, relevances) = dataset.labels().row(point);
    let is_weighted = relevances.iter().any(|relevance| *relevance != 1.0);
    if is_weighted || !dataset.label_names(point).all(is_plain) {
        return write_labels(dataset, point, cell);
    }
    let mut separator = "";
    for name in dataset.label_names(point) {
        write!(cell, "{separator}{name}")?;
        separator = ";";
    }
    Ok(())
}

/// Whether a name is read as it is among others separated by `;`, and alone.
fn is_plain(name: &str) -> bool {
    !name.is_empty()
        && name.trim() == name
        && !name.contains([';', '|'])
        && !name.starts_with(['[', '{', '<'])
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::path::Path;

    fn read(cell: &str, style: CellStyle) -> Result<Vec<String>, String> {
        let mut builder = Builder::new(None);
        read_labels(cell, style, &mut builder)?;
        builder.push_text("");
        builder.end_labels();
        let (dataset, _) = builder.finish(Path::new("t"), 0).unwrap();
        let (_, relevances) = dataset.labels().row(0);
        let shown =
            dataset
                .label_names(0)
                .zip(relevances)
                .map(|(name, relevance)| match *relevance {
                    1.0 => name.to_owned(),
                    relevance => format!("{name}={relevance}"),
                });
        Ok(shown.collect())
    }

    #[test]
    fn a_cell_shows_how_its_labels_are_separated() {
        let check = |cell: &str, expected: &[&str]| {
            assert_eq!(read(cell, CellStyle::Any).unwrap(), expected, "{cell}");
        };
        check("", &[]);
        check("one label", &["one label"]);
        check(" a; b c ;;d|e ", &["a", "b c", "d|e"]);
        check("a|b c|", &["a", "b c"]);
        check("[\"a;b\", \"\", 7]", &["a;b", "", "7"]);
        check("{\"a\": 0.5, \"b\": 1}", &["a=0.5", "b"]);
        check("<http://a> <http://b>", &["http://a", "http://b"]);
        check("<not a uri; b", &["<not a uri", "b"]);
    }

    #[test]
    fn a_given_separator_overrides_what_the_cell_shows() {
        let labels = read("[a], b;c", CellStyle::Separated(','));
        assert_eq!(labels.unwrap(), ["[a]", "b;c"]);
        let labels = read("http://a  <http://b>", CellStyle::Spaced);
        assert_eq!(labels.unwrap(), ["http://a", "http://b"]);
    }

    #[test]
    fn a_list_may_be_written_by_python() {
        let check = |cell: &str, expected: &[&str]| {
            assert_eq!(read(cell, CellStyle::Any).unwrap(), expected, "{cell}");
        };
        check("['x', 'y']", &["x", "y"]);
        check(
            r#"["it's", ' a, b; c ' ,'d\'e',]"#,
            &["it's", "a, b; c", "d'e"],
        );
        for broken in ["['a' 'b']", "['a", "['a', b]", r"['\x41']"] {
            assert!(read(broken, CellStyle::Any).is_err(), "{broken}");
        }
    }

    #[test]
    fn a_cell_is_one_label_where_nothing_separates() {
        let whole = read(" Hoses; Fittings ", CellStyle::Whole).unwrap();
        assert_eq!(whole, ["Hoses; Fittings"]);
        let whole = read("['a', \"b\"]", CellStyle::Whole).unwrap();
        assert_eq!(whole, ["['a', \"b\"]"]);
    }

    #[test]
    fn a_cell_that_starts_like_json_must_be_json() {
        let problem = read("[a, b]", CellStyle::Any).unwrap_err();
        assert!(
            problem.starts_with("\"[a, b]\" which is not valid JSON"),
            "{problem}"
        );
    }
}
