//! Files of texts about labels: names, synonyms, descriptions.
//!
//! Recognised by their first line: JSON Lines with `label` and `text`, or with `uid`, `title` and `content` (the XC
//! Repository's `lbl.json`); Annif's vocabularies, `<uri><TAB>name` or CSV with a column `uri` and columns
//! `label_…`; or one text per line, for labels that are numbers (PECOS's `output-items.txt`).

use std::borrow::Cow;
use std::path::Path;

use serde::Deserialize;

use crate::data::formats::jsonl::{Uid, json_error};
use crate::data::formats::records::Records;
use crate::data::formats::table::split_header;
use crate::data::io::source::{Lines, ReadProgress, Source};
use crate::data::label_texts::words_of_name;
use crate::data::{LabelSet, Texts};
use crate::error::{Error, Result};

const EXPECTED: &str =
    r#"{"label": "..", "text": ".."} or {"uid": "..", "title": "..", "content": ".."}"#;

/// Texts about labels, and the number of labels they describe.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LabelFile {
    /// One text per label: the words of its name, then its texts in the file.
    pub texts: Texts,
    /// Labels that the file mentions.
    pub n_described: usize,
}

/// Reads the texts of a file about these labels; labels it does not mention keep their names alone.
///
/// # Errors
/// [`Error::BadFile`] if it mentions none of them; [`Error::Malformed`], [`Error::Io`].
pub fn read_label_file(path: &Path, labels: &LabelSet) -> Result<LabelFile> {
    let source = Source::open(path)?;
    let silent = ReadProgress::default();
    let mut descriptions = Descriptions {
        labels,
        texts: vec![String::new(); labels.len()],
    };
    let mut lines = source.lines(&silent)?;
    let first = lines
        .next()?
        .map_or(String::new(), |line| line.text.to_owned());
    lines.put_back();
    if first.trim_start().starts_with('{') {
        descriptions.read_json(&mut lines)?;
    } else if first.starts_with('<') && first.contains('\t') {
        descriptions.read_vocabulary(&mut lines)?;
    } else if split_header(&first, b',').iter().any(|name| name == "uri") {
        descriptions.read_table(Records::new(lines, b','))?;
    } else {
        descriptions.read_list(&mut lines)?;
    }
    let n_described = descriptions
        .texts
        .iter()
        .filter(|text| !text.is_empty())
        .count();
    if n_described == 0 {
        return Err(Error::BadFile {
            path: path.into(),
            problem: "it mentions no label of the data: expected the labels as the data names them"
                .into(),
        });
    }
    let names = labels.names().iter().map(words_of_name);
    let texts = names
        .zip(&descriptions.texts)
        .map(|(name, text)| match text.as_str() {
            "" => name,
            text => format!("{name} {text}").trim_start().to_owned(),
        });
    Ok(LabelFile {
        texts: texts.collect(),
        n_described,
    })
}

/// The texts read so far.
struct Descriptions<'a> {
    labels: &'a LabelSet,
    texts: Vec<String>,
}

#[derive(Deserialize)]
#[serde(expecting = "an object")]
struct LabelRecord<'a> {
    #[serde(alias = "uid", alias = "uri")]
    label: Option<Uid>,
    #[serde(borrow, default)]
    title: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    text: Option<Cow<'a, str>>,
    #[serde(borrow, default)]
    content: Option<Cow<'a, str>>,
}

impl Descriptions<'_> {
    /// Adds a text about a label; false if the data does not have the label.
    fn add(&mut self, label: &str, text: &str) -> bool {
        let Some(label) = self.labels.find(label) else {
            return false;
        };
        let so_far = &mut self.texts[label.idx()];
        if !so_far.is_empty() {
            so_far.push(' ');
        }
        so_far.push_str(text.trim());
        true
    }

    fn read_json(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        let mut text = String::new();
        while let Some(line) = lines.next()? {
            if line.text.trim_ascii().is_empty() {
                continue;
            }
            let record: LabelRecord<'_> = serde_json::from_str(line.text)
                .map_err(|error| json_error(&line, &error, EXPECTED))?;
            if record.label.is_none() && record.title.is_none() {
                return Err(line.malformed("neither \"label\" nor \"title\"", EXPECTED));
            }
            text.clear();
            for part in [&record.title, &record.text, &record.content] {
                if let Some(part) = part.as_deref().filter(|part| !part.is_empty()) {
                    text.push_str(part);
                    text.push(' ');
                }
            }
            // The XC Repository's labels are named by their titles.
            let known = record.label.is_some_and(|label| self.add(&label.0, &text));
            if let Some(title) = record.title.as_deref().filter(|_| !known) {
                self.add(title, &text);
            }
        }
        Ok(())
    }

    fn read_vocabulary(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        while let Some(line) = lines.next()? {
            if line.text.trim_ascii().is_empty() {
                continue;
            }
            let Some((uri, name)) = line.text.split_once('\t') else {
                return Err(line.malformed(line.text, "<uri><TAB>name"));
            };
            let uri = uri.trim();
            let inner = uri.strip_prefix('<').and_then(|uri| uri.strip_suffix('>'));
            self.add(inner.unwrap_or(uri), name);
        }
        Ok(())
    }

    fn read_table(&mut self, mut records: Records<'_>) -> Result<()> {
        records.advance()?;
        let header = records.fields().clone();
        let uri = header.iter().position(|name| name == "uri").unwrap_or(0);
        let names: Vec<usize> = (0..header.len())
            .filter(|&at| header[at].starts_with("label") || &header[at] == "text")
            .collect();
        if names.is_empty() {
            return Err(
                records.malformed("no column of names", "a column label, label_en, … or text")
            );
        }
        while records.advance()? {
            records.check_n_fields(header.len())?;
            for &name in &names {
                let (uri, name) = (records.field(uri).to_owned(), records.field(name));
                self.add(&uri, name);
            }
        }
        Ok(())
    }

    fn read_list(&mut self, lines: &mut Lines<'_>) -> Result<()> {
        let mut number = 0;
        while let Some(line) = lines.next()? {
            self.add(&number.to_string(), line.text);
            number += 1;
        }
        Ok(())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn texts_of(labels: &[&str], file: &str) -> Result<Vec<String>> {
        let directory = tempfile::tempdir().unwrap();
        let path = directory.path().join("labels");
        std::fs::write(&path, file).unwrap();
        let file = read_label_file(&path, &labels.iter().collect())?;
        Ok(file.texts.iter().map(str::to_owned).collect())
    }

    #[test]
    fn every_kind_of_file_is_read() {
        let pear = ["pear", "", "17"];
        let json = "{\"label\": \"pear\", \"text\": \"a fruit\"}\n{\"label\": 17, \"text\": \"prime\"}\n{\"label\": \"plum\", \"text\": \"no label\"}\n{\"label\": \"pear\", \"text\": \"green\"}\n";
        assert_eq!(
            texts_of(&pear, json).unwrap(),
            ["pear a fruit green", "", "prime"]
        );
        let xc = "{\"uid\": \"B00\", \"title\": \"pear\", \"content\": \"a fruit\"}\n";
        assert_eq!(texts_of(&pear, xc).unwrap(), ["pear pear a fruit", "", ""]);
        let uris = ["http://x/1", "http://x/2"];
        let tsv = "<http://x/1>\tPear\n<http://x/2>\tPlum\n<http://x/3>\tFig\n";
        assert_eq!(texts_of(&uris, tsv).unwrap(), ["Pear", "Plum"]);
        let csv = "uri,label_en,label_de\nhttp://x/2,Plum,\"Pflaume, blau\"\n";
        assert_eq!(texts_of(&uris, csv).unwrap(), ["", "Plum Pflaume, blau"]);
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
