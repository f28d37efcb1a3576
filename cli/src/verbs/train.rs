//! `elias train`: from a data set to a model.

use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use anyhow::Context;
use clap::{Args, ValueEnum};
use elias::config::{EncoderKind, FinalScoreKind, LabelTexts, Plan, Refit};
use elias::data::{LabelFile, Part, ReadOptions, Synonyms, WordVectors};
use elias::internals::size;
use elias::{
    Config, Contents, Dataset, Error, Evaluation, MemoryEstimate, Predictor, PreparedTraining,
    Trainer,
};

use crate::processes::Process;
use crate::settings::{Settings, preset};
use crate::test_part::TestPart;
use crate::ui::console::{Console, Misuse};
use crate::ui::count::count;
use crate::ui::figures;
use crate::ui::interrupt::{Interrupt, unless_stopped};
use crate::ui::training::TrainingProgress;
use crate::{measuring, memory, plan, reading};

/// Train a model
///
/// DATA is a file, or a directory with a train part, in any format; the format is detected from the content.
/// Settings come from the defaults, --preset, --config and --set; later ones win. `elias config` prints and explains
/// them. Checkpoints are written to MODEL during training: after Ctrl-C or a crash, the same command with --resume
/// continues, and the model is the same as without the interruption. Built with MPI, mpirun starts it on several
/// machines, which share the labels.
#[derive(Args)]
pub(crate) struct Train {
    /// Training data: a file, or a directory with a train part
    data: PathBuf,
    /// Directory to write the model to
    #[arg(short, long, value_name = "MODEL", required_unless_present = "dry_run")]
    out: Option<PathBuf>,
    /// Test data, evaluated during training and at the end
    #[arg(long, value_name = "DATA")]
    test: Option<PathBuf>,
    /// Keep a random part aside and test on it at the end: 10%, or a number of points
    #[arg(long, value_name = "PART", conflicts_with = "test", value_parser = TestPart::parse)]
    hold_out: Option<TestPart>,
    /// Encoder: bag, or a directory with a transformer
    #[arg(long, value_name = "bag|DIR", hide_short_help = true)]
    encoder: Option<String>,
    /// Number of models in the ensemble
    #[arg(long, value_name = "N", hide_short_help = true)]
    members: Option<usize>,
    /// Re-rank the answers with a sparse ranker
    #[arg(long, value_name = "on|off", hide_short_help = true)]
    ranker: Option<Switch>,
    /// Calibrate scores on held-out training points
    #[arg(long, value_name = "on|off", hide_short_help = true)]
    calibration: Option<Switch>,
    /// Learn labels from their names too [default: if texts contain them]
    #[arg(long, value_name = "on|off", hide_short_help = true)]
    label_text: Option<Switch>,
    /// File with names, synonyms or descriptions of the labels
    ///
    /// JSON Lines with "label" and "text", lbl.json of the XC Repository, a vocabulary of Annif (TSV or CSV), or one text
    /// per line for labels that are numbers.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    labels: Option<PathBuf>,
    /// List of words to add to texts: a word or phrase, a tab, and the words that mean the same
    ///
    /// For example those of another language. The model keeps the list and adds its words to the texts that it answers,
    /// too. A pair that holds in both directions has two lines.
    #[arg(long, value_name = "FILE", hide_short_help = true)]
    synonyms: Option<PathBuf>,
    /// Vectors of words to start from: a file of words with their vectors, or a directory of tokens with theirs
    ///
    /// word2vec, GloVe and fastText write such files as text; a directory has vectors of tokens as safetensors beside
    /// tokenizer.json, as model2vec and WordLlama have it. Words that no training text has get the vectors of their parts.
    #[arg(long, value_name = "FILE|DIR", hide_short_help = true)]
    embeddings: Option<PathBuf>,
    /// NumPy array with an embedding of every training text, which the model reads beside the words
    ///
    /// f2, f4 or f8, a row per text, from whatever program makes embeddings. The model then answers texts that are given
    /// with such embeddings, too.
    #[arg(long, value_name = "FILE.npy", hide_short_help = true, conflicts_with_all = ["embeddings", "test"])]
    embeddings_of_texts: Option<PathBuf>,
    /// Let similar training points have a say in the answers
    #[arg(long, value_name = "on|off", hide_short_help = true)]
    neighbours: Option<Switch>,
    #[command(flatten)]
    data_args: reading::DataArgs,
    /// Refuse to start if training would need more memory
    #[arg(long, value_name = "GiB", hide_short_help = true, value_parser = parse_gibibytes)]
    memory_limit: Option<f64>,
    /// Continue an interrupted training
    #[arg(long)]
    resume: bool,
    /// Seconds between checkpoints [default: 60, or more if checkpoints would take over 2 % of the time]
    #[arg(long, value_name = "SECONDS", hide_short_help = true)]
    checkpoint_every: Option<u64>,
    /// Replace an existing model
    #[arg(long)]
    overwrite: bool,
    /// Print sizes, memory and time without training
    #[arg(long)]
    dry_run: bool,
    #[command(flatten)]
    settings: Settings,
}

/// Data to train on, and to test on if there is any.
struct Parts {
    train: Dataset,
    test: Option<Dataset>,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq, ValueEnum)]
enum Switch {
    On,
    Off,
}

impl Train {
    pub(crate) fn run(&self, process: &Process, console: &Console) -> anyhow::Result<()> {
        let config = self.config()?;
        let out = self.out.as_deref().filter(|_| !self.dry_run);
        if let Some(out) = out
            && process.is_first()
        {
            self.check_out(out)?;
        }
        let started = Instant::now();
        let Parts { train, test } = self.read_parts(&config, console)?;

        let interrupt = Interrupt::listen(console)?;
        let progress = TrainingProgress::new(console, &config, interrupt);
        let mut trainer = Trainer::new(config).observer(&progress);
        if let Some(communicator) = process.communicator() {
            trainer = trainer.communicator(communicator);
        }
        // A part that is kept aside is for the end alone.
        if let Some(test) = test.as_ref().filter(|_| self.hold_out.is_none()) {
            trainer = trainer.validation(test);
        }
        let trainer = self.with_destination(trainer);
        let prepared = trainer.prepare(&train);
        progress.finish();
        let prepared = prepared?;
        progress.expect(&prepared);
        let estimate = prepared.peak_memory(rayon::current_num_threads());
        if self.dry_run && process.is_first() {
            plan::write(&mut std::io::stdout().lock(), &prepared, &estimate)?;
        }
        self.check_memory(&estimate)?;
        let Some(out) = out else {
            return Ok(());
        };
        say_what_is_planned(&prepared, &estimate, console);

        let trained = prepared.train_to(out);
        progress.finish();
        let message = format!("stopped; to continue: {}", resume_command());
        let predictor = unless_stopped(trained, message)?;
        if !process.is_first() {
            return Ok(());
        }

        self.report(&progress, started, out, &estimate, console);
        say_what_is_known_by_text(&predictor, &train, console);
        if let Some(test) = &test {
            let evaluation = Evaluation {
                propensity: predictor.propensity(),
                ..Evaluation::default()
            };
            let measured = measuring::evaluate(&predictor, test, evaluation, console)?;
            figures::write_table(&mut std::io::stdout().lock(), &measured)?;
        }
        Ok(())
    }

    /// Says what was trained, and keeps its times for reports.
    fn report(
        &self,
        progress: &TrainingProgress,
        started: Instant,
        out: &Path,
        estimate: &MemoryEstimate,
        console: &Console,
    ) {
        let name = out.display();
        if progress.is_already_trained() {
            console.info(format_args!(
                "{name} had finished: nothing was left to train; --overwrite trains it again"
            ));
            return;
        }
        if let Err(error) = progress.times(self.resume).write(out) {
            console.info(format_args!(
                "could not write the times of the training: {error}"
            ));
        }
        console.info(format_args!(
            "trained in {:.1} s{}",
            started.elapsed().as_secs_f64(),
            peak_memory(estimate)
        ));
        console.info(format_args!("model written to {name}"));
    }

    /// The data to train on, and what there is to test on.
    fn read_parts(&self, config: &Config, console: &Console) -> anyhow::Result<Parts> {
        let fields = &config.data.text_fields;
        let train = self.read_training_data(fields, console)?;
        if let Some(part) = self.hold_out {
            let [train, test] = part.cut(&train, config.train.seed)?;
            console.info(format_args!(
                "{} kept aside to test on",
                count(test.n_points(), "point")
            ));
            return Ok(Parts {
                train,
                test: Some(test),
            });
        }
        let options = ReadOptions {
            text_fields: fields,
            ..self.data_args.options(Part::Test, Some(train.label_set()))
        };
        let test = match &self.test {
            Some(path) => Some(reading::read(console, path, options)?),
            None => None,
        };
        Ok(Parts { train, test })
    }

    /// The training data, with the texts of its labels and the synonyms.
    fn read_training_data(
        &self,
        text_fields: &[String],
        console: &Console,
    ) -> anyhow::Result<Dataset> {
        let options = ReadOptions {
            text_fields,
            ..self.data_args.options(Part::Train, None)
        };
        let train = reading::read(console, &self.data, options)?;
        let mut train = reading::with_embeddings(train, self.embeddings_of_texts.as_deref())?;
        if let Some(path) = &self.synonyms {
            let synonyms = Synonyms::read(path).context("while reading the synonyms")?;
            let n_lines = count(synonyms.len(), "line");
            console.info(format_args!(
                "{n_lines} of synonyms from {}",
                path.display()
            ));
            train = train.with_synonyms(synonyms);
        }
        if let Some(path) = &self.embeddings {
            let vectors = WordVectors::read(path).context("while reading the vectors of words")?;
            let (n_words, dim) = (count(vectors.len(), "word or part"), vectors.dim());
            let name = path.display();
            console.info(format_args!("{n_words} with {dim} dimensions from {name}"));
            train = train.with_word_vectors(vectors);
        }
        let Some(path) = &self.labels else {
            return Ok(train);
        };
        let LabelFile {
            texts,
            n_described,
            others,
        } = LabelFile::read(path, train.label_set())?;
        console.info(format_args!(
            "{} says something of {n_described} of {} labels",
            path.display(),
            train.n_labels()
        ));
        Ok(train.with_label_texts(texts)?.with_more_labels(others)?)
    }

    /// The trainer, told what to do with what is there already and how often to write a checkpoint.
    fn with_destination<'a>(&self, mut trainer: Trainer<'a>) -> Trainer<'a> {
        if self.resume {
            trainer = trainer.resume();
        }
        if self.overwrite {
            trainer = trainer.overwrite();
        }
        match self.checkpoint_every {
            Some(seconds) => trainer.checkpoint_every(Duration::from_secs(seconds)),
            None => trainer,
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
            config.final_score.kind = match switch {
                Switch::On => None,
                Switch::Off => Some(FinalScoreKind::Product),
            };
        }
        if let Some(switch) = self.neighbours {
            config.final_score.neighbours = Some(switch == Switch::On);
        }
        match (self.label_text, &self.labels) {
            (Some(Switch::Off), _) => config.train.label_texts = Some(LabelTexts::Off),
            // Who gives texts wants them used.
            (Some(Switch::On), _) | (None, Some(_)) => {
                config.train.label_texts = Some(LabelTexts::On)
            }
            (None, None) => {}
        }
        // Invalid values are reported before any data is read.
        config
            .validate()
            .map_err(|error| Misuse(error.to_string()))?;
        Ok(config)
    }

    /// The configuration for the encoder given; the learning rates of a transformer are much lower than those of a bag.
    fn with_encoder(&self) -> anyhow::Result<Config> {
        let Some(encoder) = &self.encoder else {
            let config = self.settings.config()?;
            let is_transformer = config.encoder.kind == EncoderKind::Transformer;
            if is_transformer && config.encoder.pretrained.is_none() {
                let problem = "these settings need a transformer: give its directory with \
                               --encoder DIR, or use --encoder bag";
                return Err(Misuse(problem.into()).into());
            }
            return Ok(config);
        };
        if encoder == "bag" {
            let mut config = self.settings.config()?;
            if config.encoder.kind == EncoderKind::Transformer {
                let default = Config::default();
                config.rates.encoder = default.rates.encoder;
                config.encoder = default.encoder;
            }
            return Ok(config);
        }
        let mut config = self.settings.over(preset("transformer")?)?;
        if config.encoder.kind == EncoderKind::Bag {
            let problem = "this preset is for the bag encoder: omit --encoder or --preset";
            return Err(Misuse(problem.into()).into());
        }
        config.encoder.pretrained = Some(encoder.clone());
        Ok(config)
    }

    fn check_out(&self, out: &Path) -> anyhow::Result<()> {
        let mut trainer = Trainer::new(Config::default());
        if self.resume {
            trainer = trainer.resume();
        }
        if self.overwrite {
            trainer = trainer.overwrite();
        }
        trainer.check_directory(out).map_err(|error| match error {
            Error::Taken { holds, .. } => {
                let remedy = match holds {
                    Contents::UnfinishedTraining => {
                        "--resume continues it, --overwrite discards it"
                    }
                    _ => "--overwrite replaces it",
                };
                Misuse(format!("{error}; {remedy}")).into()
            }
            error => error.into(),
        })
    }

    fn check_memory(&self, estimate: &MemoryEstimate) -> anyhow::Result<()> {
        if self.dry_run && self.memory_limit.is_none() {
            return Ok(());
        }
        let given = self.memory_limit;
        let given = given.map(|limit| (limit * f64::from(1 << 30)) as usize);
        Ok(estimate.check(given)?)
    }
}

/// Says what will run.
fn say_what_is_planned(
    prepared: &PreparedTraining<'_>,
    estimate: &MemoryEstimate,
    console: &Console,
) {
    console.info(plan::summary(prepared.plan(), estimate));
    say_what_never_trains(prepared.plan(), console);
    if prepared.workload().learns_label_texts {
        console.info("labels are learned from their names, too; --label-text off turns that off");
    }
}

/// Says what became of the labels that no training text has.
fn say_what_is_known_by_text(predictor: &Predictor, train: &Dataset, console: &Console) {
    let labels = count(train.more_labels().len(), "label");
    if train.more_labels().is_empty() {
        return;
    }
    if predictor.n_trained_labels() < predictor.labels().len() {
        console.info(format_args!(
            "{labels} without a training text will be found by name"
        ));
    } else {
        console.info(format_args!(
            "{labels} without a training text are left out: they need a final score, and points to fit it on"
        ));
    }
}

/// Says so if points that are held out are not trained on in the end, either.
fn say_what_never_trains(plan: &Plan, console: &Console) {
    if plan.recipe().final_score.is_fitted() && plan.refit() == Refit::Nothing {
        console.info(
            "points that are held out for the final score, up to a tenth, and their near duplicates, up to as many, \
             will never train: hold_out.refit is nothing",
        );
    }
}

fn parse_gibibytes(text: &str) -> anyhow::Result<f64> {
    let number: f64 = text.parse().context("expected a number of GiB")?;
    anyhow::ensure!(
        number > 0.0 && number.is_finite(),
        "expected a positive number of GiB"
    );
    Ok(number)
}

/// This command with --resume, as a shell reads it.
fn resume_command() -> String {
    let mut arguments: Vec<String> = std::env::args().collect();
    if !arguments.iter().any(|argument| argument == "--resume") {
        arguments.push("--resume".into());
    }
    let is_plain = |c: char| c.is_alphanumeric() || "-_./=:,+@%".contains(c);
    let quote = |argument: &String| {
        if !argument.is_empty() && argument.chars().all(is_plain) {
            argument.clone()
        } else {
            format!("'{}'", argument.replace('\'', r"'\''"))
        }
    };
    let quoted: Vec<String> = arguments.iter().map(quote).collect();
    quoted.join(" ")
}

/// The peak of the process beside the estimate, where the system tells it.
fn peak_memory(estimate: &MemoryEstimate) -> String {
    memory::peak_rss().map_or(String::new(), |bytes| {
        format!(
            ", peak memory {} (predicted {})",
            size(bytes as usize),
            size(estimate.total())
        )
    })
}
