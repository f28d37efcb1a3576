//! `elias demo`: trains on the bundled data set, measures, and shows what the model says of a few texts.

use std::io::{self, Write};
use std::path::PathBuf;
use std::time::Instant;

use clap::Args;
use elias::metrics::{MetricsBuilder, MetricsOptions, label_counts};
use elias::{Config, Dataset, LabelId, Predictor, Scored, Trainer};

use crate::measuring::Measuring;
use crate::ui::console::Console;
use crate::ui::interrupt::{Interrupt, Interrupted};
use crate::ui::table::{MAX_WIDTH, Table, shorten};
use crate::ui::training::TrainingProgress;
use crate::{bundled, models};

const N_EXAMPLES: usize = 4;
const N_ANSWERS: usize = 5;
/// Passes over the data in stage 1 and in stage 2: enough to see it work, few enough to wait for.
const EPOCHS: [usize; 2] = [6, 8];

/// Train on the bundled data set and show what comes out: nothing to download
///
/// Debian package descriptions are the texts, the packages they depend on are the labels. Prints the metrics on the
/// test part, and a few of its texts with their predicted and true labels. Takes a minute on two cores.
#[derive(Args)]
pub(crate) struct Demo {
    /// Keep the model
    #[arg(long, value_name = "DIR")]
    out: Option<PathBuf>,
    /// Seed of everything random
    #[arg(long, value_name = "N", default_value_t = Config::default().train.seed)]
    seed: u64,
    /// Passes over the data in each stage
    #[arg(long, value_name = "N")]
    epochs: Option<usize>,
}

impl Demo {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        console.say("Debian package descriptions, labelled with the packages they depend on");
        let (train, test) = bundled::read()?;
        let mut out = io::stdout().lock();
        write_sizes(&mut out, &train, &test)?;
        out.flush()?;

        let started = Instant::now();
        let predictor = self.train(&train, console)?;
        console.say(format_args!(
            "trained in {:.1} s",
            started.elapsed().as_secs_f64()
        ));
        if let Some(path) = &self.out {
            models::save(&predictor, path, false)?;
            console.say(format_args!("the model is in {}", path.display()));
        }

        writeln!(out)?;
        Measuring::default()
            .measure(&predictor, &test, console)?
            .write_table(&mut out)?;
        writeln!(
            out,
            "(the most frequent labels for every text: P@1 {:.2})",
            floor(&train, &test)
        )?;
        write_examples(&mut out, &predictor, &test)?;
        out.flush()?;
        Ok(())
    }

    fn train(&self, train: &Dataset, console: &Console) -> anyhow::Result<Predictor> {
        let mut config = Config::default();
        config.train.seed = self.seed;
        let [stage1, stage2] = EPOCHS.map(|epochs| self.epochs.unwrap_or(epochs));
        (config.stage1.epochs, config.stage2.epochs) = (stage1, stage2);
        let interrupt = Interrupt::listen(console)?;
        let progress = TrainingProgress::new(console, &config, Some(interrupt));
        let trained = Trainer::new(config).observer(&progress).train(train);
        progress.finish();
        match trained {
            Err(elias::Error::Stopped) => Err(Interrupted("stopped".into()).into()),
            trained => Ok(trained?),
        }
    }
}

fn write_sizes(out: &mut impl Write, train: &Dataset, test: &Dataset) -> io::Result<()> {
    let mut table = Table::new(["part", "points", "labels", "labels/point"]);
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

/// P@1 of the ranking that knows no text.
fn floor(train: &Dataset, test: &Dataset) -> f64 {
    let counts = label_counts(train.labels());
    let most_frequent = (0..counts.len()).max_by_key(|&label| (counts[label], usize::MAX - label));
    let ranking: Vec<Scored> = most_frequent
        .map(|label| Scored {
            label: LabelId(label as u32),
            score: 1.0,
        })
        .into_iter()
        .collect();
    let mut metrics = MetricsBuilder::new(MetricsOptions::default());
    for point_idx in 0..test.n_points() {
        metrics.push(test.labels().row(point_idx).0, &ranking);
    }
    metrics.finish().get("p@1").unwrap_or(0.0)
}
