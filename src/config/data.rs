//! Settings that belong to a data set, so that its presets have them.

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

/// Settings that belong to the data set.
#[derive(Clone, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(deny_unknown_fields, default)]
pub struct DataConfig {
    /// The fields of XC Repository JSON that are read as text, unless others are named; empty: title and content.
    pub text_fields: Vec<String>,
    /// The constants A and B of PSP@k, unless others are named.
    pub propensity: PropensityModel,
}

/// The constants of the propensity model that are customary for a data set.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum PropensityModel {
    /// 0.55 and 1.5.
    #[default]
    Default,
    /// 0.6 and 2.6: Amazon's data sets.
    Amazon,
    /// 0.5 and 0.4: Wikipedia's data sets.
    Wikipedia,
}
