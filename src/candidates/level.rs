//! How far the walk goes: the rows of the paper's ablation.

use std::fmt;
use std::str::FromStr;

/// The part of a model that answers.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Level {
    /// p of the first member after stage 1; needs `train.keep_stage1`.
    Stage1,
    /// p of the first member.
    Stage2,
    /// The mean of all members' p: the paper's ensemble without ranker and calibration.
    Networks,
    /// p·q of the first member.
    Ranker,
    /// The calibrated score of the first member.
    Calibrated,
    /// The mean of all members' final scores.
    #[default]
    Ensemble,
}

impl Level {
    /// Every level, from the bottom to the top.
    pub const ALL: [Level; 6] = [
        Level::Stage1,
        Level::Stage2,
        Level::Networks,
        Level::Ranker,
        Level::Calibrated,
        Level::Ensemble,
    ];

    /// Whether all members answer together, not the first alone.
    pub fn has_all_members(self) -> bool {
        matches!(self, Level::Networks | Level::Ensemble)
    }

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Level::Stage1 => "stage1",
            Level::Stage2 => "stage2",
            Level::Networks => "networks",
            Level::Ranker => "ranker",
            Level::Calibrated => "calibrated",
            Level::Ensemble => "ensemble",
        }
    }
}

impl fmt::Display for Level {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Level {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Level::ALL.into_iter().find(|level| level.name() == name);
        found.ok_or_else(|| {
            let names = Level::ALL.map(Level::name).join(", ");
            format!("unknown stage {name:?}, expected {names}")
        })
    }
}
