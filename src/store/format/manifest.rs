//! Version 1 of the manifest: wire structs and their way from and to the text of `manifest.json`.
//!
//! The last member is a checksum over all bytes before it, so that a changed manifest is rejected.

use std::collections::{BTreeMap, BTreeSet};
use std::path::Path;

use serde::{Deserialize, Serialize};

use super::files::{FileRecord, is_plain_name, sha256};
use super::history::WireEvent;
use crate::config::{Config, Decided, RankerLoss};
use crate::data::DataSummary;
use crate::error::{Error, Result, in_plain_words, shortened};

/// The `format` of a model's manifest.
pub(crate) const FORMAT: &str = "elias-model";
/// The `version` this module reads and writes.
pub(crate) const VERSION: u32 = 1;

/// `manifest.json`, without its checksum.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Manifest {
    pub(crate) format: String,
    pub(crate) version: u32,
    pub(crate) written_by: String,
    pub(crate) seed: u64,
    pub(crate) data: Data,
    pub(crate) n_features: usize,
    pub(crate) n_pairs: usize,
    /// Parts of words that are not in the vocabulary.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) n_parts: usize,
    /// Values of the embedding that is given with every text.
    #[serde(default, skip_serializing_if = "is_zero")]
    pub(crate) embedding_dim: usize,
    /// Points that were trained on: those that have a label.
    pub(crate) n_training_points: usize,
    pub(crate) plan: WirePlan,
    pub(crate) labels: Labels,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) features: Option<Features>,
    /// File of the words that are added to texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) synonyms: Option<String>,
    /// File of the parts of words that are not in the vocabulary.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) parts: Option<String>,
    /// File of the pairs of words that the rankers read.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) pairs: Option<String>,
    /// Files of a transformer besides its tensors.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) transformer: Option<Transformer>,
    pub(crate) members: Vec<Member>,
    /// File of the calibration of all members together.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calibration: Option<String>,
    /// File of the training points by their words.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) neighbours: Option<String>,
    /// File of the labels by their names.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) names: Option<String>,
    /// File of the fingerprint of the training texts.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) training_texts: Option<String>,
    /// Labels known by their texts alone.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) by_text: Option<ByText>,
    /// File of the labels that are answers no more.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) retired: Option<String>,
    /// File of the texts of which labels were rejected.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) rejected: Option<String>,
    pub(crate) history: Vec<WireEvent>,
    pub(crate) config: Config,
    pub(crate) files: BTreeMap<String, WireFile>,
}

fn is_zero(count: &usize) -> bool {
    *count == 0
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Data {
    pub(crate) n_points: usize,
    pub(crate) n_labels: usize,
    pub(crate) n_positives: usize,
    pub(crate) sha256: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WirePlan {
    n_clusters: usize,
    beta: f32,
    kappa: usize,
    beam_size: usize,
    shortlist_size: usize,
}

/// Files of the label names and of the number of training points per label.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Labels {
    pub(crate) names: String,
    pub(crate) counts: String,
}

/// Labels that no training text has, which come after the others, and the file of their texts and of the trees that
/// score them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct ByText {
    pub(crate) n_labels: usize,
    /// The first of them: the training's vocabulary had them.
    pub(crate) n_unused: usize,
    pub(crate) file: String,
}

/// Files of the vocabulary and of its weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Features {
    pub(crate) vocabulary: String,
    pub(crate) weights: String,
}

/// Files of a transformer's sizes and of its tokeniser, as Hugging Face has them.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Transformer {
    pub(crate) config: String,
    pub(crate) tokenizer: String,
}

/// One encoder with its index and classifiers.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Member {
    pub(crate) alpha: f32,
    /// Absent where edges are fixed.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) beta: Option<f32>,
    pub(crate) encoder: String,
    pub(crate) index: String,
    pub(crate) classifiers: String,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) ranker: Option<Ranker>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) calibrator: Option<Calibrator>,
    /// File of the boosted trees, where they take the place of the calibrator.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) boosted: Option<String>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pub(crate) stage1: Option<Stage1>,
}

/// Files of a member as it was after stage 1.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Stage1 {
    pub(crate) encoder: String,
    pub(crate) clusters: String,
    pub(crate) classifiers: String,
}

/// The ranker of a member and the file of its weights.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Ranker {
    pub(crate) loss: RankerLoss,
    /// Whether it reads the embedding besides the words.
    pub(crate) uses_embedding: bool,
    pub(crate) weights: String,
}

/// The calibration of a member and the file of its tree.
#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct Calibrator {
    pub(crate) tree_weight: f32,
    pub(crate) product_weight: f32,
    pub(crate) tree: String,
}

#[derive(Clone, Debug, Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
pub(crate) struct WireFile {
    bytes: u64,
    sha256: String,
}

/// The fields of every version.
#[derive(Deserialize)]
struct Opening {
    format: String,
    version: u32,
}

const BEFORE_CHECKSUM: &str = ",\n  \"checksum\": \"";
const AFTER_CHECKSUM: &str = "\"\n}\n";

/// A manifest as text, with its checksum.
pub(crate) fn to_text(manifest: &impl Serialize) -> String {
    let text = serde_json::to_string_pretty(manifest).expect("a manifest has only string keys");
    let body = text.strip_suffix("\n}").unwrap_or(&text);
    let checksum = sha256(body.as_bytes());
    format!("{body}{BEFORE_CHECKSUM}{checksum}{AFTER_CHECKSUM}")
}

/// Reads a manifest of the given format and of this module's version.
///
/// # Errors
/// [`Error::BadFile`] if it is of another format or version, damaged, or does not follow the format.
pub(crate) fn from_text<T: for<'de> Deserialize<'de>>(
    path: &Path,
    bytes: &[u8],
    format: &str,
) -> Result<T> {
    let bad = |problem: String| Error::BadFile {
        path: path.into(),
        problem,
    };
    let text =
        std::str::from_utf8(bytes).map_err(|_| bad("it is damaged: it is not UTF-8".into()))?;
    let opening: Opening = serde_json::from_str(text).map_err(|error| {
        bad(format!(
            "it is not a manifest: {}",
            shortened(&in_plain_words(&error.to_string()))
        ))
    })?;
    if opening.format != format {
        let found = shortened(&opening.format);
        return Err(bad(format!("its format is {found:?}, expected {format:?}")));
    }
    if opening.version != VERSION {
        let found = opening.version;
        return Err(bad(format!(
            "its format version is {found}, this program reads {VERSION}: use the program that wrote it"
        )));
    }
    let body = text
        .strip_suffix(AFTER_CHECKSUM)
        .and_then(|text| text.split_at_checked(text.len().checked_sub(64)?))
        .and_then(|(text, checksum)| Some((text.strip_suffix(BEFORE_CHECKSUM)?, checksum)));
    match body {
        Some((body, checksum)) if sha256(body.as_bytes()) == checksum => {
            serde_json::from_str(&format!("{body}\n}}")).map_err(|error: serde_json::Error| {
                let reason = shortened(&in_plain_words(&error.to_string()));
                bad(format!("it does not follow version {VERSION}: {reason}"))
            })
        }
        _ => Err(bad(
            "it was changed after it was written: its checksum differs".into(),
        )),
    }
}

/// Checks the name of every file, and that every file a manifest uses is listed, and used once.
///
/// # Errors
/// [`Error::BadFile`].
pub(crate) fn check_names(
    path: &Path,
    files: &BTreeMap<String, WireFile>,
    referenced: &[&str],
) -> Result<()> {
    let bad = |problem: String| Error::BadFile {
        path: path.into(),
        problem,
    };
    for name in files.keys() {
        if !is_plain_name(name) {
            let name = shortened(name);
            return Err(bad(format!("{name:?} is not the name of a model file")));
        }
    }
    let mut used = BTreeSet::new();
    for name in referenced {
        if !files.contains_key(*name) {
            let name = shortened(name);
            return Err(bad(format!("file {name:?} is used but not listed")));
        }
        // It would be read as often as it is used.
        if !used.insert(name) {
            let name = shortened(name);
            return Err(bad(format!("file {name:?} is used twice")));
        }
    }
    Ok(())
}

impl Manifest {
    /// Every file the manifest uses.
    pub(crate) fn referenced(&self) -> Vec<&str> {
        let mut names = vec![&self.labels.names[..], &self.labels.counts];
        if let Some(features) = &self.features {
            names.extend([&features.vocabulary[..], &features.weights]);
        }
        names.extend(self.synonyms.as_deref());
        names.extend(self.parts.as_deref());
        names.extend(self.pairs.as_deref());
        if let Some(transformer) = &self.transformer {
            names.extend([&transformer.config[..], &transformer.tokenizer]);
        }
        names.extend(self.members.iter().flat_map(Member::referenced));
        names.extend(self.calibration.as_deref());
        names.extend(self.neighbours.as_deref());
        names.extend(self.names.as_deref());
        names.extend(self.training_texts.as_deref());
        names.extend(self.retired.as_deref());
        names.extend(self.rejected.as_deref());
        names.extend(self.by_text.as_ref().map(|by_text| &by_text.file[..]));
        names
    }

    /// Bytes of all files that the manifest uses.
    pub(crate) fn n_bytes(&self) -> u64 {
        let used = self.referenced().into_iter();
        let sizes = used.filter_map(|name| self.files.get(name));
        sizes.fold(0, |sum, file| file.bytes.saturating_add(sum))
    }

    /// Size and hash of every file.
    pub(crate) fn records(&self) -> BTreeMap<String, FileRecord> {
        let records = self.files.iter().map(|(name, file)| {
            let (bytes, sha256) = (file.bytes, file.sha256.clone());
            (name.clone(), FileRecord { bytes, sha256 })
        });
        records.collect()
    }
}

impl Member {
    /// Every file the member uses.
    pub(crate) fn referenced(&self) -> Vec<&str> {
        let mut names = vec![&self.encoder[..], &self.index, &self.classifiers];
        if let Some(stage1) = &self.stage1 {
            names.extend([&stage1.encoder[..], &stage1.clusters, &stage1.classifiers]);
        }
        names.extend(self.ranker.iter().map(|ranker| &ranker.weights[..]));
        names.extend(
            self.calibrator
                .iter()
                .map(|calibrator| &calibrator.tree[..]),
        );
        names.extend(self.boosted.as_deref());
        names
    }
}

/// Size and hash of files, as a manifest lists them.
pub(crate) fn wire_files(files: &BTreeMap<String, FileRecord>) -> BTreeMap<String, WireFile> {
    let files = files.iter();
    files
        .map(|(name, record)| (name.clone(), record.into()))
        .collect()
}

impl WireFile {
    /// The listed size.
    pub(crate) fn bytes(&self) -> u64 {
        self.bytes
    }

    /// Whether a file of this size and hash is the one listed.
    pub(crate) fn is_of(&self, bytes: u64, sha256: &str) -> bool {
        self.bytes == bytes && self.sha256 == sha256
    }
}

impl From<&FileRecord> for WireFile {
    fn from(record: &FileRecord) -> Self {
        WireFile {
            bytes: record.bytes,
            sha256: record.sha256.clone(),
        }
    }
}

impl From<&DataSummary> for Data {
    fn from(data: &DataSummary) -> Self {
        Data {
            n_points: data.n_points,
            n_labels: data.n_labels,
            n_positives: data.n_positives,
            sha256: data.sha256.clone(),
        }
    }
}

impl From<&Data> for DataSummary {
    fn from(data: &Data) -> Self {
        DataSummary {
            n_points: data.n_points,
            n_labels: data.n_labels,
            n_positives: data.n_positives,
            sha256: data.sha256.clone(),
        }
    }
}

impl From<Decided> for WirePlan {
    fn from(plan: Decided) -> Self {
        WirePlan {
            n_clusters: plan.n_clusters,
            beta: plan.beta,
            kappa: plan.kappa,
            beam_size: plan.beam_size,
            shortlist_size: plan.shortlist_size,
        }
    }
}

impl From<&WirePlan> for Decided {
    fn from(plan: &WirePlan) -> Self {
        Decided {
            n_clusters: plan.n_clusters,
            beta: plan.beta,
            kappa: plan.kappa,
            beam_size: plan.beam_size,
            shortlist_size: plan.shortlist_size,
        }
    }
}
