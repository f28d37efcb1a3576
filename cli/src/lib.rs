//! The `elias` command: parse, resolve, run, report.
//!
//! [`main`] is the whole program. One file per verb. Data goes to stdout, messages and progress to stderr. Exit codes:
//! 0 done, 1 failed, 2 misused, 130 interrupted. A reader that closes the pipe early has what it wanted, so that is success.

mod bundled;
mod expected_time;
mod measuring;
mod memory;
mod models;
mod outputs;
mod plan;
mod processes;
mod read_ahead;
mod reading;
mod rules;
mod settings;
mod test_part;

mod ui;
mod verbs;

use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};

use crate::processes::Process;
use crate::ui::console::{self, Console, Misuse, Verbosity};
use crate::ui::interrupt::{self, Interrupted};
use crate::ui::{bus_error, file_limit};
#[cfg(feature = "serve")]
use crate::verbs::serve;
use crate::verbs::{
    bench, card, completions, config, convert, demo, embed, evaluate, explain, inspect, labels,
    learn, man, merge, predict, prune, report, train, update,
};

/// Extreme multi-label classification: find the relevant labels of a text
#[derive(Parser)]
#[command(name = "elias", version, max_term_width = 100)]
#[command(arg_required_else_help = true, subcommand_value_name = "VERB")]
// Without blank lines, it fits 24 lines.
#[command(
    help_template = "{about-with-newline}{usage-heading} {usage}\nVerbs:\n{subcommands}\nOptions:\n{options}"
)]
struct Cli {
    #[command(flatten)]
    common: Common,
    #[command(subcommand)]
    verb: Verb,
}

/// Options of every verb.
#[derive(Args)]
struct Common {
    /// Print errors only
    #[arg(
        short,
        long,
        global = true,
        display_order = 100,
        conflicts_with = "verbose"
    )]
    quiet: bool,
    /// Print more details
    #[arg(short, long, global = true, display_order = 101)]
    verbose: bool,
    /// Number of threads [default: all cores]
    #[arg(long, global = true, display_order = 102, value_name = "N", env = "ELIAS_THREADS", hide_env = true, value_parser = clap::value_parser!(u16).range(1..))]
    threads: Option<u16>,
}

/// The doc comment of each verb is its help.
#[derive(Subcommand)]
enum Verb {
    Demo(demo::Demo),
    Train(train::Train),
    Predict(predict::Predict),
    Evaluate(evaluate::Evaluate),
    Explain(explain::Explain),
    // For those who read docs/embeddings.md.
    #[command(hide = true)]
    Embed(embed::Embed),
    Inspect(inspect::Inspect),
    Labels(labels::Labels),
    Learn(learn::Learn),
    Update(update::Update),
    // For those who read docs/report.md.
    #[command(hide = true)]
    Prune(prune::Prune),
    Merge(merge::Merge),
    Report(report::Report),
    // For those who publish a model: docs/model-format.md.
    #[command(hide = true)]
    Card(card::Card),
    #[cfg(feature = "serve")]
    Serve(serve::Serve),
    Convert(convert::Convert),
    Config(config::ShowConfig),
    // Measurements are for those who read docs/performance.md.
    #[command(hide = true)]
    Bench(bench::Bench),
    #[command(hide = true)]
    Completions(completions::Completions),
    #[command(hide = true, name = "man")]
    Manual(man::Manual),
}

/// Runs the command with the arguments of the process.
pub fn main() -> ExitCode {
    let cli = Cli::parse();
    let console = resolve(&cli.common);
    memory::return_what_is_freed();
    bus_error::explain();
    file_limit::becomes_an_error();
    let mut process = Process::alone();
    let outcome = join(&cli.verb, &mut process)
        .and_then(|()| set_threads(cli.common.threads, &console))
        .and_then(|()| listen(&cli.verb))
        .and_then(|()| run(cli.verb, &process, &console));
    let code = conclude(outcome, &console);
    process.end(code)
}

/// Trainings may run on several processes together.
fn join(verb: &Verb, process: &mut Process) -> anyhow::Result<()> {
    if matches!(verb, Verb::Train(_) | Verb::Bench(_)) {
        *process = Process::join()?;
    }
    Ok(())
}

fn resolve(common: &Common) -> Console {
    // One process speaks for all.
    Console::new(if common.quiet || processes::process() > 0 {
        Verbosity::Quiet
    } else if common.verbose {
        Verbosity::Verbose
    } else {
        Verbosity::Normal
    })
}

/// Threads per core beyond which more of them only cost time.
const MAX_THREADS_PER_CORE: usize = 8;

/// The library works on the caller's pool; the command is the caller.
fn set_threads(asked: Option<u16>, console: &Console) -> anyhow::Result<()> {
    let n_cores = std::thread::available_parallelism().map_or(1, usize::from);
    let from_environment = || std::env::var("RAYON_NUM_THREADS").ok()?.parse().ok();
    let asked: Option<usize> = asked.map(usize::from).or_else(from_environment);
    let asked = asked.filter(|&n_threads| n_threads > 0).unwrap_or(n_cores);
    let n_threads = asked.min(MAX_THREADS_PER_CORE * n_cores);
    if n_threads < asked {
        console.info(format_args!("using {n_threads} threads instead of {asked}"));
    }
    let pool = || rayon::ThreadPoolBuilder::new();
    let Err(error) = pool().num_threads(n_threads).build_global() else {
        return Ok(());
    };
    console.info(format_args!("using one thread: {error}"));
    pool().num_threads(1).use_current_thread().build_global()?;
    Ok(())
}

/// Trainings and the service listen for Ctrl-C themselves.
fn listen(verb: &Verb) -> anyhow::Result<()> {
    match verb {
        Verb::Train(_) | Verb::Demo(_) | Verb::Bench(_) => Ok(()),
        #[cfg(feature = "serve")]
        Verb::Serve(_) => Ok(()),
        _ => interrupt::end_cleanly(),
    }
}

fn run(verb: Verb, process: &Process, console: &Console) -> anyhow::Result<()> {
    match verb {
        Verb::Demo(demo) => demo.run(console),
        Verb::Train(train) => train.run(process, console),
        Verb::Predict(predict) => predict.run(console),
        Verb::Evaluate(evaluate) => evaluate.run(console),
        Verb::Explain(explain) => explain.run(console),
        Verb::Embed(embed) => embed.run(console),
        Verb::Inspect(inspect) => inspect.run(console),
        Verb::Labels(labels) => labels.run(console),
        Verb::Learn(learn) => learn.run(console),
        Verb::Update(update) => update.run(console),
        Verb::Prune(prune) => prune.run(console),
        Verb::Merge(merge) => merge.run(console),
        Verb::Report(report) => report.run(console),
        Verb::Card(card) => card.run(console),
        #[cfg(feature = "serve")]
        Verb::Serve(serve) => serve.run(console),
        Verb::Convert(convert) => convert.run(console),
        Verb::Config(config) => config.run(),
        Verb::Bench(bench) => bench.run(process, console),
        Verb::Completions(completions) => completions.run(),
        Verb::Manual(manual) => manual.run(),
    }
}

/// Reports the outcome; returns the exit code.
fn conclude(outcome: anyhow::Result<()>, console: &Console) -> u8 {
    let Err(error) = outcome else {
        return 0;
    };
    if console::is_broken_pipe(&error) {
        return 0;
    }
    processes::let_the_first_report();
    if error.is::<Interrupted>() {
        console.info(&error);
        return interrupt::EXIT_CODE;
    }
    console.error(&error);
    // The same exit code as for arguments that cannot be parsed.
    if error.is::<Misuse>() { 2 } else { 1 }
}
