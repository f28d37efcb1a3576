//! The formats that data sets come in, and the parts they come as.

use std::fmt;
use std::str::FromStr;

use crate::error::Error;

/// A format of data sets on disk.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    /// JSON Lines: `{"id": "7", "text": "...", "labels": ["name", ...]}`, or `"labels": {"name": 0.5}`.
    Jsonl,
    /// CSV with a header: `text,labels`, labels separated by `;` or `|`, or as a JSON list.
    Csv,
    /// The same separated by tabs.
    Tsv,
    /// XC Repository JSON: `trn.json.gz`, `tst.json.gz`, `lbl.json.gz`.
    XcJson,
    /// XC Repository sparse text: header `N D L`, then `l1,l2 f:v f:v` per line.
    Xc,
    /// Split sparse text: `trn_X_Xf.txt` and `trn_X_Y.txt`, header `rows cols`, then `idx:val` pairs.
    XcSplit,
    /// Raw lines: `train_texts.txt`, `train_labels.txt`, `labels.txt`.
    Raw,
    /// PECOS: `X.trn.npz` and/or `X.trn.txt`, `Y.trn.npz`, `output-items.txt`.
    Pecos,
    /// text2text: `id1,id2<TAB>text`, `id::0.3` for relevance.
    Text2Text,
    /// fastText: `__label__a __label__b text`.
    FastText,
    /// LibMultiLabel: `id<TAB>label label<TAB>text`.
    LibMultiLabel,
    /// Annif: `text<TAB><uri> <uri>`.
    Annif,
}

impl Format {
    /// All formats, in the order of the documentation.
    pub const ALL: [Format; 12] = [
        Format::Jsonl,
        Format::Csv,
        Format::Tsv,
        Format::XcJson,
        Format::Xc,
        Format::XcSplit,
        Format::Raw,
        Format::Pecos,
        Format::Text2Text,
        Format::FastText,
        Format::LibMultiLabel,
        Format::Annif,
    ];

    /// The name, as the command line spells it.
    pub fn name(self) -> &'static str {
        match self {
            Format::Jsonl => "jsonl",
            Format::Csv => "csv",
            Format::Tsv => "tsv",
            Format::XcJson => "xc-json",
            Format::Xc => "xc",
            Format::XcSplit => "xc-split",
            Format::Raw => "raw",
            Format::Pecos => "pecos",
            Format::Text2Text => "text2text",
            Format::FastText => "fasttext",
            Format::LibMultiLabel => "libmultilabel",
            Format::Annif => "annif",
        }
    }

    /// Whether a part of a data set is one file (besides label names) rather than several.
    pub fn is_single_file(self) -> bool {
        !matches!(
            self,
            Format::XcJson | Format::XcSplit | Format::Raw | Format::Pecos
        )
    }

    /// Whether the points of the format have columns, or keys, that can be named.
    pub fn has_columns(self) -> bool {
        matches!(self, Format::Csv | Format::Tsv | Format::Jsonl)
    }

    /// Whether the format holds sparse features and no texts.
    pub fn needs_features(self) -> bool {
        matches!(self, Format::Xc | Format::XcSplit)
    }
}

impl fmt::Display for Format {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

impl FromStr for Format {
    type Err = Error;

    fn from_str(name: &str) -> Result<Self, Error> {
        Format::ALL
            .into_iter()
            .find(|format| format.name() == name)
            .ok_or_else(|| Error::Config {
                key: "format".into(),
                found: format!("{name:?}"),
                expected: Format::ALL.map(Format::name).join(", "),
            })
    }
}

/// A part of a data set that is a directory; a single file can be read as either part.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Part {
    /// The points to train on.
    #[default]
    Train,
    /// The points to evaluate on.
    Test,
}

impl Part {
    /// Both parts.
    pub const ALL: [Part; 2] = [Part::Train, Part::Test];

    /// The part's name in files such as `train.jsonl`.
    pub fn name(self) -> &'static str {
        match self {
            Part::Train => "train",
            Part::Test => "test",
        }
    }

    /// The part's name in files such as `trn_X_Y.txt`.
    pub fn short_name(self) -> &'static str {
        match self {
            Part::Train => "trn",
            Part::Test => "tst",
        }
    }
}

impl fmt::Display for Part {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.pad(self.name())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn every_format_is_found_by_its_name() {
        for format in Format::ALL {
            assert_eq!(format.to_string().parse::<Format>().unwrap(), format);
        }
        let error = "json".parse::<Format>().unwrap_err().to_string();
        assert!(
            error.contains("found \"json\", expected jsonl, csv, tsv, xc-json"),
            "{error}"
        );
    }
}
