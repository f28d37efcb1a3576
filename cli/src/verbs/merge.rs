//! `elias merge`: the members of several models as one ensemble.

use std::path::PathBuf;

use clap::Args;
use elias::Predictor;
use elias::data::Part;

use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::{models, outputs, reading};

/// Make one ensemble of several models
///
/// The models must be trained on the same data, with the same features, encoder, index and kind of ranker and
/// calibration; seeds, epochs, rates and losses may differ. The score of a label is its mean over all members. The
/// probabilities of each model belong to its own scores: the ensemble has some only with --calibrate.
#[derive(Args)]
pub(crate) struct Merge {
    /// The models, two or more
    #[arg(required = true, value_name = "MODEL")]
    models: Vec<PathBuf>,
    /// Directory to write the ensemble to
    #[arg(short, long, value_name = "MODEL")]
    out: PathBuf,
    /// Data to fit probabilities on, which no model was trained on
    #[arg(long, value_name = "DATA")]
    calibrate: Option<PathBuf>,
    #[command(flatten)]
    data_args: reading::DataArgs,
    /// Replace an existing model
    #[arg(long)]
    overwrite: bool,
}

impl Merge {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        if self.models.len() < 2 {
            let problem = "expected two or more models, found one";
            return Err(Misuse(problem.into()).into());
        }
        let may_replace = self.overwrite || outputs::is_empty_directory(&self.out);
        outputs::check(&self.out, may_replace, self.calibrate.as_deref().as_slice())?;
        for model in &self.models {
            models::check(model)?;
        }
        Predictor::check_merge(&self.models, &self.out)
            .map_err(|error| Misuse(error.to_string()))?;
        let mut predictor = Predictor::merge(&self.models)?;
        if let Some(path) = &self.calibrate {
            let options = self.data_args.options(Part::Test, Some(predictor.labels()));
            let data = reading::read(console, path, options)?;
            let given = predictor.calibrate(&data)?;
            console.info(format_args!(
                "fitted probabilities on {} of {}",
                given.n_used,
                count(given.n_points, "point")
            ));
        }
        models::save(&predictor, &self.out, self.overwrite)?;
        let n_members = count(predictor.n_members(), "member");
        let out = self.out.display();
        console.info(format_args!("model with {n_members} written to {out}"));
        if let Some(reason) = models::why_uncalibrated(&predictor) {
            console.info(format_args!("no probabilities: {reason}"));
        }
        Ok(())
    }
}
