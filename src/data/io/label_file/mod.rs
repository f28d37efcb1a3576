//! Files of texts about labels: names, synonyms, descriptions.
//!
//! Recognised by their first lines: JSON Lines with `label` and `text`, or with `uid`, `title` and `content` (the XC
//! Repository's `lbl.json`); SKOS; Annif's vocabularies, `<uri><TAB>name`; CSV or TSV with a column `uri` or `label` and
//! columns `label_…`, `title` or `text`; or one text per line, for labels that are numbers (PECOS's `output-items.txt`).

mod skos;
mod vocabulary;

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;

use self::skos::Syntax;
use self::vocabulary::{Vocabulary, append};
use crate::data::formats::jsonl::{Uid, json_error};
use crate::data::formats::records::Records;
use crate::data::formats::table::split_header;
use crate::data::io::source::{Lines, ReadProgress, Source};
use crate::data::label_texts::words_of_name;
use crate::data::{DescribedLabels, LabelSet, Texts};
use crate::error::{Error, Result};

/// Bytes by which a format is recognised.
const HEAD_BYTES: usize = 64 << 10;

const EXPECTED: &str =
    r#"{"label": "..", "text": ".."} or {"uid": "..", "title": "..", "content": ".."}"#;

/// Texts about labels, and the number of labels they describe.
#[derive(Clone, Debug, PartialEq)]
pub struct LabelFile {
    /// One text per label: the words of its name, then its texts in the file, one per line.
    pub texts: Texts,
    /// Labels that the file mentions.
    pub n_described: usize,
    /// Labels that the file mentions and the data does not have.
    pub others: DescribedLabels,
}

impl LabelFile {
    /// Reads what a file says of these labels and of others; labels it does not mention keep their names alone.
    ///
    /// # Errors
    /// [`Error::BadFile`] if it mentions none of them; [`Error::Malformed`], [`Error::Io`].
    pub fn read(path: impl AsRef<Path>, labels: &LabelSet) -> Result<LabelFile> {
        let path = path.as_ref();
        let divided = read_vocabulary(path)?.divide(labels);
        let n_described = divided.known.iter().filter(|text| !text.is_empty());
        let n_described = n_described.count();
        if n_described == 0 {
            return Err(Error::BadFile {
                path: path.into(),
                problem:
                    "it mentions no label of the data: expected the labels as the data names them"
                        .into(),
            });
        }
        let names = labels.names().iter().map(words_of_name);
        let texts = names.zip(&divided.known).map(|(mut text, more)| {
            append(&mut text, more);
            text
        });
        Ok(LabelFile {
            texts: texts.collect(),
            n_described,
            others: divided.others,
        })
    }
}

/// Reads the labels of a file that are not among the known ones.
///
/// # Errors
/// [`Error::BadFile`] if all are known; as [`LabelFile::read`].
pub fn read_others(path: impl AsRef<Path>, known: &LabelSet) -> Result<DescribedLabels> {
    let path = path.as_ref();
    let others = read_vocabulary(path)?.divide(known).others;
    if others.is_empty() {
        return Err(Error::BadFile {
            path: path.into(),
            problem: "it has no label that is not known already".into(),
        });
    }
    Ok(others)
}

fn read_vocabulary(path: &Path) -> Result<Vocabulary> {
    let source = Source::open(path)?;
    let silent = ReadProgress::default();
    let head = match source.head(HEAD_BYTES) {
        Ok(head) => head,
        // An empty file says nothing of any label.
        Err(_) if source.n_bytes() == 0 => Vec::new(),
        Err(error) => return Err(error),
    };
    let head = String::from_utf8_lossy(&head);
    let first = head.trim_start_matches('\u{feff}').lines().next();
    let first = first.unwrap_or_default();
    let mut lines = source.lines(&silent)?;
    let mut vocabulary = Vocabulary::default();
    let table = |delimiter| is_table(&split_header(first, delimiter));
    if first.trim_start().starts_with('{') {
        read_json(&mut lines, &mut vocabulary)?;
    } else if let Some(syntax) = Syntax::of(&head) {
        skos::read(lines, syntax, &mut vocabulary)?;
    } else if first.starts_with('<') && first.contains('\t') {
        read_tsv(&mut lines, &mut vocabulary)?;
    } else if table(b',') {
        read_table(Records::new(lines, b','), &mut vocabulary)?;
    } else if table(b'\t') {
        read_table(Records::new(lines, b'\t'), &mut vocabulary)?;
    } else {
        read_list(&mut lines, &mut vocabulary)?;
    }
    Ok(vocabulary)
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct LabelRecord<'a> {
    #[serde(alias = "uid", alias = "uri")]
    label: Option<Uid>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<TextLines<'a>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

/// A text, or a list of names and other texts.
#[derive(Deserialize)]
#[serde(untagged, expecting = "a string or a list of strings")]
enum TextLines<'a> {
    One(#[serde(borrow)] Cow<'a, str>),
    Many(Vec<String>),
}

impl TextLines<'_> {
    fn iter(&self) -> impl Iterator<Item = &str> {
        let (one, many) = match self {
            TextLines::One(text) => (Some(&**text), &[][..]),
            TextLines::Many(texts) => (None, &texts[..]),
        };
        one.into_iter().chain(many.iter().map(String::as_str))
    }
}

fn read_json(lines: &mut Lines<'_>, vocabulary: &mut Vocabulary) -> Result<()> {
    while let Some(line) = lines.next()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let record: LabelRecord<'_> =
            serde_json::from_str(line.text).map_err(|error| json_error(&line, &error, EXPECTED))?;
        let title = record.title.as_deref();
        let id = match (&record.label, title) {
            (Some(label), _) => &*label.0,
            (None, Some(title)) => title,
            (None, None) => {
                return Err(line.malformed("neither \"label\" nor \"title\"", EXPECTED));
            }
        };
        vocabulary.mention(id);
        if let Some(title) = title {
            // The XC Repository's labels are named by their titles.
            vocabulary.add_title(id, title);
        }
        let texts = record.text.iter().flat_map(TextLines::iter);
        let texts = title.into_iter().chain(texts);
        for text in texts.chain(record.content.as_deref()) {
            let added = vocabulary.add(id, text);
            added.map_err(|problem| line.malformed(problem, "shorter texts"))?;
        }
    }
    Ok(())
}

/// Annif's `<uri><TAB>name`.
fn read_tsv(lines: &mut Lines<'_>, vocabulary: &mut Vocabulary) -> Result<()> {
    while let Some(line) = lines.next()? {
        if line.text.trim_ascii().is_empty() {
            continue;
        }
        let Some((uri, name)) = line.text.split_once('\t') else {
            return Err(line.malformed(line.text, "<uri><TAB>name"));
        };
        let uri = uri.trim();
        let inner = uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>'));
        let added = vocabulary.add(inner.unwrap_or(uri), name);
        added.map_err(|problem| line.malformed(problem, "shorter texts"))?;
    }
    Ok(())
}

/// Whether these are the columns of a table of labels.
fn is_table(header: &csv::StringRecord) -> bool {
    let has = |wanted: &str| header.iter().any(|name| name == wanted);
    has("uri") || has("label") && (has("text") || has("title"))
}

fn read_table(mut records: Records<'_>, vocabulary: &mut Vocabulary) -> Result<()> {
    records.advance()?;
    let header = records.fields().clone();
    let place = |wanted: &str| header.iter().position(|name| name == wanted);
    let id = place("uri").or_else(|| place("label")).unwrap_or(0);
    let is_text = |&at: &usize| {
        let name = &header[at];
        at != id && (name.starts_with("label") || ["text", "title"].contains(&name))
    };
    let texts: Vec<usize> = (0..header.len()).filter(is_text).collect();
    if texts.is_empty() {
        return Err(records.malformed("no column of names", "a column label, label_en, … or text"));
    }
    while records.advance()? {
        records.check_n_fields(header.len())?;
        for &text in &texts {
            let added = vocabulary.add(records.field(id), records.field(text));
            added.map_err(|problem| records.malformed(&problem, "shorter texts"))?;
        }
    }
    Ok(())
}

fn read_list(lines: &mut Lines<'_>, vocabulary: &mut Vocabulary) -> Result<()> {
    let mut number = 0;
    while let Some(line) = lines.next()? {
        let added = vocabulary.add(&number.to_string(), line.text);
        added.map_err(|problem| line.malformed(problem, "shorter texts"))?;
        number += 1;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(labels: &[&str], file: &str) -> Result<Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels");
        std::fs::write(&path, file).unwrap();
        let file = LabelFile::read(&path, &labels.iter().collect())?;
        Ok(file.texts.iter().map(str::to_owned).collect())
    }

    #[test]
    fn every_kind_of_file_is_read() {
        let pear = ["pear", "", "17"];
        let json = "{\"label\": \"pear\", \"text\": \"a fruit\"}\n{\"label\": 17, \"text\": \"prime\"}\n{\"label\": \"plum\", \"text\": \"no label\"}\n{\"label\": \"pear\", \"text\": \"green\"}\n";
        assert_eq!(
            texts_of(&pear, json).unwrap(),
            ["pear\na fruit\ngreen", "", "prime"]
        );
        let xc = "{\"uid\": \"B00\", \"title\": \"pear\", \"content\": \"a fruit\"}\n";
        assert_eq!(texts_of(&pear, xc).unwrap(), ["pear\na fruit", "", ""]);
        let uris = ["http://x/1", "http://x/2"];
        let tsv = "<http://x/1>\tPear\n<http://x/2>\tPlum\n<http://x/3>\tFig\n";
        assert_eq!(texts_of(&uris, tsv).unwrap(), ["Pear", "Plum"]);
        let csv = "uri,label_en,label_de\nhttp://x/2,Plum,\"Pflaume, blau\"\n";
        assert_eq!(texts_of(&uris, csv).unwrap(), ["", "Plum\nPflaume, blau"]);
        assert_eq!(
            texts_of(&["0", "1"], "Pear\nPlum\n").unwrap(),
            ["Pear", "Plum"]
        );
    }

    #[test]
    fn files_about_other_labels_and_broken_ones_are_errors() {
        let message = |file| texts_of(&["pear"], file).unwrap_err().to_string();
        assert!(
            message("{\"label\": \"fig\", \"text\": \"x\"}\n").contains("no label of the data")
        );
        assert!(message("").contains("no label of the data"));
        assert!(message("{\"label\": \"pear\"\n").contains(":1:"));
        assert!(message("{\"text\": \"pear\"}\n").contains("neither"));
        assert!(message("<a>\tA\nb\n").contains(":2:"));
        assert!(message("uri,notation\na,b\n").contains("label_en"));
    }
}
