//! `elias train`: from a data set to a model.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use elias::config::{DataCounts, EncoderKind};
use elias::data::{Format, Part, ReadOptions};
use elias::tools::{self, MemoryEstimate};
use elias::{Config, Dataset, Trainer};

use crate::measuring::Measuring;
use crate::settings::Settings;
use crate::ui::console::{Console, Misuse};
use crate::ui::interrupt::{Interrupt, Interrupted};
use crate::ui::training::TrainingProgress;
use crate::verbs::report::Times;
use crate::{memory, models, plan, presets, reading};

/// Train a model
///
/// DATA is a file, or a directory with a train part, in any format; the format is recognised by content.
/// Settings come from the defaults, --preset, --config and --set, each over the one before; `elias config` prints
/// and explains them. Checkpoints go into MODEL while it runs: after Ctrl-C, which ends the training after the step it
/// is at, or a crash, the same command with --resume continues and ends with the same bytes.
#[derive(Args)]
pub(crate) struct Train {
    /// Training data: a file, or a directory with a train part
    data: PathBuf,
    /// Where the model goes
    #[arg(short, long, value_name = "MODEL", required_unless_present = "dry_run")]
    out: Option<PathBuf>,
    /// Test data, measured while it runs and at the end
    #[arg(long, value_name = "DATA")]
    test: Option<PathBuf>,
    /// Encoder: bag, or the directory of a transformer
    #[arg(long, value_name = "bag|DIR", hide_short_help = true)]
    encoder: Option<String>,
    /// Models in the ensemble
    #[arg(long, value_name = "N", hide_short_help = true)]
    members: Option<usize>,
    /// Re-rank with a sparse ranker
    #[arg(long, value_name = "on|off", hide_short_help = true)]
    ranker: Option<Switch>,
    /// Calibrate scores on training points that are held out
    #[arg(long, value_name = "on|off", hide_short_help = true)]
    calibration: Option<Switch>,
    /// Format of the data, if not to be recognised by content
    #[arg(long, hide_short_help = true, value_parser = reading::format_parser())]
    format: Option<Format>,
    #[command(flatten)]
    columns: reading::ColumnArgs,
    /// Refuse to start if more memory would be needed
    #[arg(long, value_name = "GiB", hide_short_help = true, value_parser = parse_gibibytes)]
    memory_limit: Option<f64>,
    /// Continue an interrupted training
    #[arg(long, conflicts_with = "overwrite")]
    resume: bool,
    /// Seconds between checkpoints; by default 60, if that costs less than 2 % of the time
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    checkpoint_every: Option<u64>,
    /// Replace the model if there is one
    #[arg(long)]
    overwrite: bool,
    /// Print the plan: sizes, memory, time; train nothing
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: Settings,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl Train {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let config = self.config()?;
        let out = self.out.as_deref().filter(|_| !self.dry_run);
        if let Some(out) = out {
            self.check_out(out)?;
        }
        let started = Instant::now();
        let (train, test) = self.read(console)?;

        let interrupt = Interrupt::listen(console)?;
        let progress = TrainingProgress::new(console, &config, Some(interrupt.clone()));
        let mut trainer = Trainer::new(config).observer(&progress);
        if let Some(test) = &test {
            trainer = trainer.validate_on(test);
        }
        if self.resume {
            trainer = trainer.resume();
        }
        if self.overwrite {
            trainer = trainer.overwrite();
        }
        if let Some(seconds) = self.checkpoint_every {
            trainer = trainer.checkpoint_every(Duration::from_secs(seconds));
        }
        let prepared = trainer.prepare(&train);
        progress.finish();
        let prepared = prepared?;
        let estimate = prepared.peak_memory(rayon::current_num_threads());
        if self.dry_run {
            plan::write(&mut std::io::stdout().lock(), &prepared, &estimate)?;
        }
        self.check_memory(&estimate)?;
        let Some(out) = out else {
            return Ok(());
        };
        console.say(plan::in_words(prepared.plan(), &estimate));

        let trained = prepared.train_to(out);
        progress.finish();
        let predictor = match trained {
            Err(elias::Error::Stopped) => {
                let kept = format!(
                    "stopped; the same command with --resume continues in {}",
                    out.display()
                );
                return Err(Interrupted(kept).into());
            }
            trained => trained?,
        };

        self.write_times(out, &progress, console);
        let peak = memory::peak_rss().map_or(String::new(), |bytes| {
            format!(
                ", peak memory {} (predicted {})",
                memory::size(bytes as usize),
                memory::size(estimate.total())
            )
        });
        console.say(format_args!(
            "trained in {:.1} s{peak}",
            started.elapsed().as_secs_f64()
        ));
        console.say(format_args!("the model is in {}", out.display()));
        if let Some(test) = &test {
            let figures = Measuring::default().measure(&predictor, test, console)?;
            figures.write_table(&mut std::io::stdout().lock())?;
        }
        Ok(())
    }

    /// Writes how long the phases took beside the model, for reports; a model is no worse without.
    fn write_times(&self, out: &Path, progress: &TrainingProgress, console: &Console) {
        let times = Times {
            resumed: self.resume,
            phases: progress.times(),
            checkpoints: progress.checkpoints(),
        };
        let written = serde_json::to_vec_pretty(&times)
            .map_err(std::io::Error::from)
            .and_then(|text| std::fs::write(models::times_of(out), text));
        if let Err(error) = written {
            console.say(format_args!(
                "the times of the training were not written: {error}"
            ));
        }
    }

    fn config(&self) -> anyhow::Result<Config> {
        let mut config = self.with_encoder()?;
        if let Some(members) = self.members {
            config.ensemble.members = members;
        }
        if let Some(switch) = self.ranker {
            config.ranker.enabled = switch == Switch::On;
        }
        if let Some(switch) = self.calibration {
            config.calibration.enabled = switch == Switch::On;
        }
        // Values that no data could use are reported before any is read.
        let smallest = DataCounts {
            n_points: 1,
            n_labels: 1,
            n_features: 1,
        };
        let resolved = config.resolve(smallest);
        resolved.map_err(|error| Misuse(error.to_string()))?;
        Ok(config)
    }

    /// The configuration with the encoder that was asked for; rates of a transformer are far below those of a bag.
    fn with_encoder(&self) -> anyhow::Result<Config> {
        let Some(encoder) = &self.encoder else {
            let config = self.settings.config()?;
            let is_transformer = config.encoder.kind == EncoderKind::Transformer;
            if is_transformer && config.encoder.pretrained.is_none() {
                let problem = "these settings want a transformer: name its directory with \
                               --encoder DIR, or use --encoder bag";
                return Err(Misuse(problem.into()).into());
            }
            return Ok(config);
        };
        if encoder == "bag" {
            let mut config = self.settings.config()?;
            if config.encoder.kind == EncoderKind::Transformer {
                let default = Config::default();
                config.stage1.rates.encoder = default.stage1.rates.encoder;
                config.stage2.rates.encoder = default.stage2.rates.encoder;
                config.encoder = default.encoder;
            }
            return Ok(config);
        }
        let mut config = self.settings.over(presets::config("transformer")?)?;
        if config.encoder.kind == EncoderKind::Bag {
            let problem = "this preset is for the bag encoder: leave out --encoder, or the preset";
            return Err(Misuse(problem.into()).into());
        }
        config.encoder.pretrained = Some(encoder.clone());
        Ok(config)
    }

    fn check_out(&self, out: &Path) -> anyhow::Result<()> {
        let is_taken = out.exists() && !is_empty_folder(out);
        if is_taken && !self.overwrite && !self.resume {
            let problem = if tools::is_unfinished(out) {
                "holds an unfinished training; --resume continues it, --overwrite drops it"
            } else {
                "exists; --overwrite replaces it"
            };
            return Err(Misuse(format!("{} {problem}", out.display())).into());
        }
        let parent = out.parent().filter(|parent| *parent != Path::new(""));
        match parent {
            Some(parent) if !parent.is_dir() => {
                anyhow::bail!("{}: no such directory", parent.display())
            }
            _ => Ok(()),
        }
    }

    fn read(&self, console: &Console) -> anyhow::Result<(Dataset, Option<Dataset>)> {
        let options = ReadOptions {
            format: self.format,
            columns: self.columns.columns(),
            part: Part::Train,
            ..ReadOptions::default()
        };
        let train = reading::read(console, &self.data, options)?;
        let options = ReadOptions {
            part: Part::Test,
            known_labels: Some(train.label_set()),
            ..options
        };
        let test = self.test.as_deref();
        let test = test.map(|path| reading::read(console, path, options));
        let test = test.transpose()?;
        Ok((train, test))
    }

    fn check_memory(&self, estimate: &MemoryEstimate) -> anyhow::Result<()> {
        let Some(limit) = self.memory_limit else {
            return Ok(());
        };
        let limit = (limit * f64::from(1 << 30)) as usize;
        if estimate.total() <= limit {
            return Ok(());
        }
        anyhow::bail!(
            "training would take about {}, above the limit of {}; {}",
            memory::size(estimate.total()),
            memory::size(limit),
            plan::advice(estimate)
        );
    }
}

fn is_empty_folder(path: &Path) -> bool {
    std::fs::read_dir(path).is_ok_and(|mut entries| entries.next().is_none())
}

fn parse_gibibytes(text: &str) -> anyhow::Result<f64> {
    let number: f64 = text.parse().context("expected a number of GiB")?;
    anyhow::ensure!(
        0.0 < number && number.is_finite(),
        "expected a positive number of GiB"
    );
    Ok(number)
}
