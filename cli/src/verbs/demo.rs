//! `elias demo`: trains on the bundled data set, evaluates, and shows the answers to a few texts.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use elias::metrics::LabelFrequencies;
use elias::{Config, Dataset, Evaluation, LabelId, Predictor, Scored, Trainer};

use crate::reading::Split;
use crate::ui::answers;
use crate::ui::console::Console;
use crate::ui::figures;
use crate::ui::interrupt::{Interrupt, unless_stopped};
use crate::ui::table::{MAX_WIDTH, Table, shorten};
use crate::ui::training::TrainingProgress;
use crate::{bundled, measuring, models};

const N_EXAMPLES: usize = 4;
const N_ANSWERS: usize = 5;
/// A text that is in neither part, and its answers that are shown.
const NEW_TEXT: &str = "library to read PNG images";
const N_NEW: usize = 3;

/// Train and evaluate on the bundled data set
///
/// The texts are Debian package descriptions, the labels the packages they depend on. Prints the metrics on the test
/// part, and a few of its texts with their predicted and true labels.
#[derive(Args)]
pub(crate) struct Demo {
    /// Save the model to this directory
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Random seed
    #[arg(long, value_name = "N", default_value_t = Config::default().train.seed)]
    seed: u64,
    /// Epochs of each stage [default: as in `elias train`]
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
}

impl Demo {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        console.info("Debian package descriptions, labelled with the packages they depend on");
        let Split { train, test } = bundled::read()?;
        let mut out = io::stdout().lock();
        write_sizes(&mut out, &train, &test)?;
        out.flush()?;

        let started = Instant::now();
        let predictor = self.train(&train, console)?;
        console.info(format_args!(
            "trained in {:.1} s",
            started.elapsed().as_secs_f64()
        ));
        if let Some(path) = &self.out {
            models::save(&predictor, path, false)?;
            console.info(format_args!("model written to {}", path.display()));
        }

        writeln!(out)?;
        let measured = measuring::evaluate(&predictor, &test, Evaluation::default(), console)?;
        figures::write_table(&mut out, &measured)?;
        writeln!(
            out,
            "(the most frequent label for every text: P@1 {:.2})",
            baseline(&train, &test)
        )?;
        write_examples(&mut out, &predictor, &test)?;
        writeln!(out)?;
        answers::write(
            &mut out,
            NEW_TEXT,
            false,
            &predictor.predict(NEW_TEXT, N_NEW)?,
        )?;
        out.flush()?;
        console.info(self.next_step());
        Ok(())
    }

    /// The command to go on with.
    fn next_step(&self) -> String {
        match &self.out {
            Some(model) => format!(
                "next: elias predict {} \"a game of chess\"",
                model.display()
            ),
            None => "next: elias demo --out my-model keeps the model; then elias predict my-model \"a game of chess\""
                .to_owned(),
        }
    }

    fn train(&self, train: &Dataset, console: &Console) -> anyhow::Result<Predictor> {
        let mut config = Config::default();
        config.train.seed = self.seed;
        if let Some(epochs) = self.epochs {
            (config.stage1.epochs, config.stage2.epochs) = (Some(epochs), Some(epochs));
        }
        train_with(config, train, console, Interrupt::listen(console)?)
    }
}

/// Trains with a progress bar.
pub(crate) fn train_with(
    config: Config,
    train: &Dataset,
    console: &Console,
    interrupt: Interrupt,
) -> anyhow::Result<Predictor> {
    let progress = TrainingProgress::new(console, &config, interrupt);
    let trainer = Trainer::new(config).observer(&progress);
    let trained = trainer.prepare(train).and_then(|prepared| {
        progress.expect(&prepared);
        prepared.train()
    });
    progress.finish();
    unless_stopped(trained, "stopped")
}

fn write_sizes(out: &mut impl Write, train: &Dataset, test: &Dataset) -> io::Result<()> {
    let mut table = Table::new(["part", "points", "labels", "labels per point"]);
    for (name, part) in [("train", train), ("test", test)] {
        let labels_per_point = part.labels().nnz() as f64 / part.n_points().max(1) as f64;
        table.row([
            name.to_string(),
            part.n_points().to_string(),
            part.n_labels().to_string(),
            format!("{labels_per_point:.2}"),
        ]);
    }
    table.write(out)
}

fn write_examples(
    out: &mut impl Write,
    predictor: &Predictor,
    test: &Dataset,
) -> anyhow::Result<()> {
    let Some(texts) = test.texts() else {
        return Ok(());
    };
    let n_points = test.n_points();
    for point_idx in (0..n_points).step_by(n_points.div_ceil(N_EXAMPLES).max(1)) {
        let text = texts.get(point_idx);
        writeln!(out, "\n{}", shorten(text, MAX_WIDTH))?;
        let names: Vec<&str> = test.label_names(point_idx).collect();
        let line = format!("  true:      {}", names.join(", "));
        writeln!(out, "{}", shorten(&line, MAX_WIDTH))?;
        let answers = predictor.predict(text, N_ANSWERS)?;
        let predicted: Vec<String> = answers
            .iter()
            .map(|answer| {
                let mark = if names.contains(&answer.label) {
                    "*"
                } else {
                    ""
                };
                format!("{}{mark} {:.2}", answer.label, answer.score)
            })
            .collect();
        let line = format!("  predicted: {}", predicted.join(", "));
        writeln!(out, "{}", shorten(&line, MAX_WIDTH))?;
    }
    Ok(())
}

/// P@1 of predicting the most frequent label for every text.
fn baseline(train: &Dataset, test: &Dataset) -> f64 {
    let counts = LabelFrequencies::of(train.labels()).counts;
    let most_frequent = (0..counts.len()).max_by_key(|&label| (counts[label], usize::MAX - label));
    let ranking: Vec<Scored> = most_frequent
        .into_iter()
        .map(|label| Scored {
            label: LabelId(label as u32),
            score: 1.0,
        })
        .collect();
    let rankings = std::iter::repeat_n(ranking, test.n_points());
    let measured = Evaluation::default().measure(test.labels(), rankings, None);
    measured.metrics.precision(1).expect("a default cut-off")
}
