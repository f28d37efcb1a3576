//! Rules for labels from files: which may be answers, and how likely each must be.

use std::path::{Path, PathBuf};

use clap::Args;
use elias::data::{read_label_names, read_label_thresholds};
use elias::{Error, LabelLists, LabelRef, LabelRules, Predictor};

/// Files of rules.
#[derive(Args)]
pub(crate) struct RuleArgs {
    /// Answer with these labels only, one name per line
    #[arg(long, value_name = "FILE")]
    labels_only: Option<PathBuf>,
    /// Never answer with these labels, one name per line
    #[arg(long, value_name = "FILE")]
    deny: Option<PathBuf>,
    /// Thresholds of single labels: name, tab, number per line
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    thresholds: Option<PathBuf>,
}

impl RuleArgs {
    /// The rules for the labels of a model.
    pub(crate) fn resolve(&self, predictor: &Predictor) -> anyhow::Result<LabelRules> {
        let names = |path: &PathBuf| -> elias::Result<Vec<LabelRef>> {
            let names = read_label_names(path)?;
            Ok(names.into_iter().map(LabelRef::Name).collect())
        };
        let thresholds = self.thresholds.as_ref().map(read_label_thresholds);
        let thresholds = thresholds.transpose()?.unwrap_or_default().into_iter();
        let lists = LabelLists {
            allow: self.labels_only.as_ref().map(names).transpose()?,
            deny: self
                .deny
                .as_ref()
                .map(names)
                .transpose()?
                .unwrap_or_default(),
            thresholds: thresholds
                .map(|(name, threshold)| (LabelRef::Name(name), threshold))
                .collect(),
        };
        let rules = predictor.label_rules(&lists);
        rules.map_err(|error| match self.file_of(&error) {
            Some(path) => {
                let place = format!("while reading {}", path.display());
                anyhow::Error::new(error).context(place)
            }
            None => error.into(),
        })
    }

    /// The file behind an error, which names the list alone.
    fn file_of(&self, error: &Error) -> Option<&Path> {
        let path = match error {
            Error::UnknownLabels { list: "deny", .. } => &self.deny,
            Error::UnknownLabels {
                list: "thresholds", ..
            } => &self.thresholds,
            _ => &self.labels_only,
        };
        path.as_deref()
    }
}
