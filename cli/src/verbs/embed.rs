//! `elias embed`: the vectors of texts, or of the labels, as a NumPy array.

use std::path::PathBuf;

use anyhow::Context;
use clap::Args;
use elias::Predictor;
use elias::data::{self, LabelSet, Part, PredictionFormat, Sink, Texts};

use crate::read_ahead::ReadAhead;
use crate::ui::console::Console;
use crate::ui::count::count;
use crate::{models, outputs, reading};

/// Write the vectors of texts or labels, for a store of vectors
///
/// INPUT as for `elias predict`. FILE is a NumPy array (float32) with a row per text, or with --labels per label, whose
/// names are written to FILE.labels.txt. The inner product of both is the network's score of the label, without its bias.
/// Ranker, similar training points and final score are no part of it.
#[derive(Args)]
pub(crate) struct Embed {
    /// The model
    model: PathBuf,
    /// Texts; - is standard input
    #[arg(value_name = "INPUT", default_value = "-", conflicts_with = "labels")]
    input: PathBuf,
    /// The array to write
    #[arg(short, long, value_name = "FILE.npy")]
    out: PathBuf,
    /// Write the vectors of the labels
    #[arg(long)]
    labels: bool,
    /// Replace the file if it exists
    #[arg(long)]
    overwrite: bool,
    #[command(flatten)]
    columns: reading::ColumnArgs,
}

impl Embed {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let names = PredictionFormat::label_list_of(&self.out);
        let written = [&self.out].into_iter().chain(self.labels.then_some(&names));
        for out in written {
            outputs::check(out, self.overwrite, &[&self.input])?;
            outputs::check_outside(out, &self.model)?;
        }
        let predictor = models::load(&self.model)?;
        let (values, dim) = if self.labels {
            let vectors = predictor.embed_labels()?;
            (vectors.values, vectors.dim)
        } else {
            self.embed_texts(&predictor, console)?
        };
        predictor.check_files()?;
        let mut out = Sink::create(&self.out)?;
        data::write_npy(&mut out, dim, &values).context("while writing the vectors")?;
        out.finish()?;
        if self.labels {
            let trained = predictor.labels().names().iter();
            let trained: LabelSet = trained.take(predictor.n_trained_labels()).collect();
            trained.write(&names)?;
        }
        let n_vectors = count(values.len() / dim.max(1), "vector");
        console.info(format_args!(
            "{n_vectors} of {dim} values written to {}",
            self.out.display()
        ));
        Ok(())
    }

    /// The vectors of all inputs, and their length.
    fn embed_texts(
        &self,
        predictor: &Predictor,
        console: &Console,
    ) -> anyhow::Result<(Vec<f32>, usize)> {
        if !predictor.takes_texts() {
            let options = self.columns.options(Part::Test, Some(predictor.labels()));
            let vectors = predictor.embed(&reading::read(console, &self.input, options)?)?;
            return Ok((vectors.values, vectors.dim));
        }
        let mut inputs = ReadAhead::start(self.input.clone(), self.columns.clone())?;
        let (mut values, mut dim) = (Vec::new(), predictor.embed(&Texts::default())?.dim);
        loop {
            let batch = inputs.next_batch().into_iter();
            let batch: Vec<_> = batch
                .collect::<elias::Result<_>>()
                .context("while reading the texts")?;
            if batch.is_empty() {
                return Ok((values, dim));
            }
            let texts: Texts = batch.iter().map(|input| &input.text).collect();
            let vectors = predictor.embed(&texts)?;
            dim = vectors.dim;
            values.extend(vectors.values);
        }
    }
}
