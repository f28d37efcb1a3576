//! The columns of a table that hold the text, the labels and the id of a point.
//!
//! Names are compared without surrounding spaces and without regard to ASCII case. The text is the column `text`, or
//! else the columns `title`, `abstract`, `content` and `description`, as many as there are, joined by a space. Labels
//! are the first of `labels`, `subjects`, `subject_uris`, `tags` and `categories` that exists. The id is the column
//! `id`, the weight the column `weight`. Columns named by the caller take the place of these.

use crate::error::{Error, ReadOption};

/// Columns of a CSV or TSV file to read, where the header does not use the usual names.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Columns<'a> {
    /// The columns of the text, joined by a space in this order; the usual ones if empty.
    pub text: &'a [String],
    /// The column of the labels.
    pub labels: Option<&'a str>,
    /// The separator of labels; if not given, a cell holds a JSON list, URIs in angle brackets, or names separated by
    /// `;` or `|`.
    pub label_separator: Option<LabelSeparator>,
}

/// The separator of the labels of one point.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum LabelSeparator {
    /// This character.
    Character(char),
    /// None: a cell is one label.
    None,
}

impl From<char> for LabelSeparator {
    fn from(separator: char) -> Self {
        LabelSeparator::Character(separator)
    }
}

impl Columns<'_> {
    /// Whether the caller named anything.
    pub(in crate::data) fn are_given(&self) -> bool {
        *self != Columns::default()
    }
}

pub(in crate::data) const TEXT: &str = "text";
pub(in crate::data) const TEXT_PARTS: [&str; 4] = ["title", "abstract", "content", "description"];
pub(in crate::data) const LABELS: [&str; 5] = ["labels", "subjects", URIS, "tags", "categories"];
const URIS: &str = "subject_uris";
const ID: &str = "id";
pub(in crate::data) const WEIGHT: &str = "weight";

/// The positions of the columns in a header.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(in crate::data) struct ColumnPositions {
    /// The parts of the text; never empty.
    pub(in crate::data) text: Vec<usize>,
    /// The labels, if the header has them.
    pub(in crate::data) labels: Option<usize>,
    /// The id, if the header has one.
    pub(in crate::data) id: Option<usize>,
    /// The weight, if the header has one.
    pub(in crate::data) weight: Option<usize>,
    /// Whether labels are separated by spaces unless the cell shows otherwise.
    pub(in crate::data) are_labels_uris: bool,
}

/// An error in a header or a row.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(in crate::data) struct Problem {
    /// A phrase for what was found.
    pub(in crate::data) found: String,
    /// A phrase for what was expected.
    pub(in crate::data) expected: String,
    /// The option that would help.
    pub(in crate::data) needs: Option<ReadOption>,
}

impl Problem {
    /// This problem as an error, made from what was found and what was expected.
    pub(in crate::data) fn into_error(self, malformed: impl Fn(String, String) -> Error) -> Error {
        let error = malformed(self.found, self.expected);
        match self.needs {
            Some(needs) => error.unless_given(needs),
            None => error,
        }
    }
}

/// Finds the columns in a header; a missing column of labels is an error only if the caller named it.
///
/// # Errors
/// If there is no text, a named column does not exist, or a column that is needed exists twice.
pub(in crate::data) fn find_columns(
    header: &[&str],
    columns: &Columns<'_>,
) -> Result<ColumnPositions, Problem> {
    let text = find_text(header, columns)?;
    let labels = match columns.labels {
        Some(name) => Some(find_named(header, name, ReadOption::LabelColumn)?),
        None => find_first(header, &LABELS)?,
    };
    let are_labels_uris = labels.is_some_and(|labels| is_name(header[labels], URIS));
    let is_other = |weight: &usize| !text.contains(weight) && labels != Some(*weight);
    Ok(ColumnPositions {
        weight: find_one(header, WEIGHT)?.filter(is_other),
        text,
        labels,
        id: find_one(header, ID)?,
        are_labels_uris,
    })
}

/// Number of columns with one of the usual names.
pub(in crate::data) fn n_usual_names(header: &[&str]) -> usize {
    [TEXT, ID]
        .into_iter()
        .chain(TEXT_PARTS)
        .chain(LABELS)
        .filter(|usual| header.iter().any(|name| is_name(name, usual)))
        .count()
}

/// The error that no column holds labels.
pub(in crate::data) fn no_labels(header: &[&str]) -> Problem {
    Problem {
        found: describe(header),
        expected: format!("a column of labels ({})", LABELS.join(", ")),
        needs: Some(ReadOption::LabelColumn),
    }
}

fn find_text(header: &[&str], columns: &Columns<'_>) -> Result<Vec<usize>, Problem> {
    if !columns.text.is_empty() {
        return columns
            .text
            .iter()
            .map(|name| find_named(header, name, ReadOption::TextColumn))
            .collect();
    }
    if let Some(text) = find_one(header, TEXT)? {
        return Ok(vec![text]);
    }
    let mut parts = Vec::new();
    for name in TEXT_PARTS {
        parts.extend(find_one(header, name)?);
    }
    if parts.is_empty() {
        return Err(Problem {
            found: describe(header),
            expected: format!(
                "a column {TEXT} (or {}), or a header line if there is none",
                TEXT_PARTS.join(", ")
            ),
            needs: Some(ReadOption::TextColumn),
        });
    }
    Ok(parts)
}

fn find_named(header: &[&str], name: &str, option: ReadOption) -> Result<usize, Problem> {
    find_one(header, name)?.ok_or_else(|| Problem {
        found: describe(header),
        expected: format!("a column {name:?}"),
        needs: Some(option),
    })
}

fn find_first(header: &[&str], names: &[&str]) -> Result<Option<usize>, Problem> {
    for name in names {
        if let Some(position) = find_one(header, name)? {
            return Ok(Some(position));
        }
    }
    Ok(None)
}

/// The position of a name.
///
/// # Errors
/// If it occurs twice.
pub(in crate::data) fn find_one(header: &[&str], name: &str) -> Result<Option<usize>, Problem> {
    let mut positions = (0..header.len()).filter(|&position| is_name(header[position], name));
    let first = positions.next();
    match positions.next() {
        None => Ok(first),
        Some(second) => Err(Problem {
            found: format!(
                "the column {:?} twice, at positions {} and {}",
                header[second].trim(),
                first.unwrap_or_default() + 1,
                second + 1
            ),
            expected: "distinct column names: rename one in the header".into(),
            needs: None,
        }),
    }
}

fn is_name(column: &str, name: &str) -> bool {
    column.trim().eq_ignore_ascii_case(name.trim())
}

/// The header for an error message, shortened.
pub(in crate::data) fn describe(header: &[&str]) -> String {
    const MAX_NAMES: usize = 12;
    const MAX_CHARS: usize = 30;
    let shown = header.iter().take(MAX_NAMES).map(|name| {
        let name = name.trim();
        let mut short: String = name.chars().take(MAX_CHARS).collect();
        if short.len() < name.len() {
            short.push('…');
        }
        short.escape_debug().to_string()
    });
    let mut names = shown.collect::<Vec<_>>().join(", ");
    if header.len() > MAX_NAMES {
        names.push_str(", …");
    }
    format!("a header that has: {names}")
}

#[cfg(test)]
mod tests {
    use super::*;

    fn check(header: &[&str], text: &[usize], labels: Option<usize>, id: Option<usize>) {
        let found = find_columns(header, &Columns::default()).unwrap();
        assert_eq!(
            (found.text.as_slice(), found.labels, found.id),
            (text, labels, id),
            "{header:?}"
        );
    }

    #[test]
    fn columns_are_found_by_their_usual_names() {
        check(&["text", "labels"], &[0], Some(1), None);
        check(&[" Tags ", "ID", "Text", "title"], &[2], Some(0), Some(1));
        check(
            &["description", "title", "abstract"],
            &[1, 2, 0],
            None,
            None,
        );
        check(&["title", "categories", "subjects"], &[0], Some(2), None);
        // Columns that are not read may occur twice.
        check(&["", "text", "", "labels"], &[1], Some(3), None);
    }

    #[test]
    fn named_columns_take_the_place_of_the_usual_ones() {
        let text = ["body".to_owned(), "Title".to_owned()];
        let columns = Columns {
            text: &text,
            labels: Some("topic"),
            label_separator: None,
        };
        let header = ["text", "title", "topic", "labels", "body"];
        let found = find_columns(&header, &columns).unwrap();
        assert_eq!((found.text, found.labels), (vec![4, 1], Some(2)));
    }

    #[test]
    fn a_header_that_lacks_a_column_lists_what_it_has() {
        let problem = find_columns(&["body", "tags"], &Columns::default()).unwrap_err();
        assert_eq!(problem.found, "a header that has: body, tags");
        assert_eq!(problem.needs, Some(ReadOption::TextColumn));
        let columns = Columns {
            labels: Some("topics"),
            ..Columns::default()
        };
        let problem = find_columns(&["text", "tags"], &columns).unwrap_err();
        assert_eq!(problem.expected, "a column \"topics\"");
        assert_eq!(problem.needs, Some(ReadOption::LabelColumn));
        let many = ["column"; 20];
        let problem = find_columns(&many, &Columns::default()).unwrap_err();
        assert!(problem.found.ends_with(", column, …"), "{problem:?}");
    }

    #[test]
    fn a_column_that_is_read_must_be_unique() {
        let problem = find_columns(&["text", "tags", "Text"], &Columns::default()).unwrap_err();
        assert_eq!(
            problem.found,
            "the column \"Text\" twice, at positions 1 and 3"
        );
    }
}
