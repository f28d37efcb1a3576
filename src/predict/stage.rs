//! The parts of a model that can answer by themselves: the rows of the paper's ablation.

use std::fmt;
use std::str::FromStr;

/// How far up the answers are built.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub enum Stage {
    /// p of the first member as it was after stage 1.
    Stage1,
    /// p of the first member.
    Stage2,
    /// p·q of the first member.
    Ranker,
    /// The calibrated score of the first member.
    Calibrated,
    /// All members with all they have.
    #[default]
    Ensemble,
}

impl Stage {
    /// Every stage, from the bottom to the top.
    pub const ALL: [Stage; 5] = [
        Stage::Stage1,
        Stage::Stage2,
        Stage::Ranker,
        Stage::Calibrated,
        Stage::Ensemble,
    ];

    /// Its name on the command line.
    pub fn name(self) -> &'static str {
        match self {
            Stage::Stage1 => "stage1",
            Stage::Stage2 => "stage2",
            Stage::Ranker => "ranker",
            Stage::Calibrated => "calibrated",
            Stage::Ensemble => "ensemble",
        }
    }
}

impl fmt::Display for Stage {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl FromStr for Stage {
    type Err = String;

    fn from_str(name: &str) -> Result<Self, String> {
        let found = Stage::ALL.into_iter().find(|stage| stage.name() == name);
        found.ok_or_else(|| {
            let names = Stage::ALL.map(Stage::name).join(", ");
            format!("there is no stage {name:?}: expected {names}")
        })
    }
}
