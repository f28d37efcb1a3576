//! `elias update`: a model goes on learning from new data.

use std::ops::ControlFlow;
use std::path::{Path, PathBuf};

use anyhow::Context;
use clap::Args;
use elias::data::{Part, read_others};
use elias::{Event, Predictor, Updated};

use super::labels::DestinationArgs;
use crate::reading;
use crate::ui::console::Console;
use crate::ui::count::count;

/// Go on learning from new texts, old and new labels, and corrections
///
/// Takes a small part of the time of a training. Similar texts are compared with the new ones, labels that the model does
/// not know become its own, network and rankers are fitted to the new texts and to the corrections that `elias learn` took
/// since the model was written. Probabilities stay. Labels that are known by name only get other numbers when texts have
/// them.
#[derive(Args)]
pub(crate) struct Update {
    /// The model
    model: PathBuf,
    /// New texts with their labels, or a directory with a train part
    data: PathBuf,
    /// The data that the model was trained on, without the new texts: rankers hold the new ones against all of it
    #[arg(long, value_name = "OLD")]
    train: Option<PathBuf>,
    /// Names, synonyms and descriptions of labels that the model does not know yet
    #[arg(long, value_name = "FILE")]
    labels: Option<PathBuf>,
    #[command(flatten)]
    data_args: reading::DataArgs,
    #[command(flatten)]
    destination: DestinationArgs,
}

impl Update {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let updated = self
            .destination
            .change(&self.model, |model| self.update(model, console))?;
        let done = format!(
            "learned {}, {} and {}",
            count(updated.n_points, "point"),
            count(updated.n_corrections, "correction"),
            count(updated.n_new_labels, "new label"),
        );
        self.destination.report(&self.model, &done, console);
        Ok(())
    }

    fn update(
        &self,
        mut model: Predictor,
        console: &Console,
    ) -> anyhow::Result<(Predictor, Updated)> {
        if let Some(labels) = &self.labels {
            model.add_labels(&unknown_labels(&model, labels)?)?;
        }
        let read = |path: &Path| {
            let options = self.data_args.options_of(Part::Train, &model);
            reading::read(console, path, options)
        };
        let (news, earlier) = (read(&self.data)?, self.train.as_deref().map(read));
        let go_on = |_: &Event| ControlFlow::Continue(());
        let updated = model.update(&news, earlier.transpose()?.as_ref(), &go_on);
        updated.context("while going on with the model")
    }
}

/// The labels of a file that a model does not have.
pub(super) fn unknown_labels(
    model: &Predictor,
    path: &Path,
) -> anyhow::Result<elias::data::DescribedLabels> {
    let present = model.labels().names().iter().zip(0..);
    let present = present.filter(|&(_, id)| !model.is_retired(elias::LabelId(id)));
    let present = present.map(|(name, _)| name).collect();
    read_others(path, &present).context("while reading the labels")
}
