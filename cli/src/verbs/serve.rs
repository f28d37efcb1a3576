//! `elias serve`: answers over HTTP, and a page to look at them.

use std::fs;
use std::io::Read;
use std::path::{Path, PathBuf};
use std::time::Duration;

use anyhow::Context;
use clap::Args;
use clap::builder::FalseyValueParser;
use elias::{Config, Predictor};
use elias_server::{Log, ModelSource, Options, ServeError};

use crate::ui::console::{Console, Misuse};
use crate::ui::interrupt::Interrupt;
use crate::verbs::demo;
use crate::{bundled, models};

/// Bytes of the longest file of a key.
const MAX_KEY_BYTES: u64 = 64 << 10;

/// Serve models over HTTP
///
/// Answers are at /v1/predict, a page for people at /, the interface is described at /docs. Listens on this machine
/// alone unless told otherwise. SIGTERM answers what has begun and stops; SIGHUP, or a new version in a model's
/// directory, loads it beside the old one and replaces it.
#[derive(Args)]
pub(crate) struct Serve {
    /// The model, called "default" in requests
    #[arg(env = "ELIAS_MODEL", required_unless_present_any = ["models", "demo"])]
    model: Option<PathBuf>,
    /// Another model, by a name for requests; repeatable
    #[arg(long = "model", value_name = "NAME=PATH", env = "ELIAS_MODELS", value_delimiter = ',', value_parser = parse_model)]
    models: Vec<ModelSource>,
    /// Serve a model of the bundled data set
    ///
    /// It is trained on the first start, and kept in the user's cache.
    #[arg(long, env = "ELIAS_DEMO", value_parser = FalseyValueParser::new())]
    demo: bool,
    /// Address and port to listen on
    #[arg(long, value_name = "ADDRESS", env = "ELIAS_BIND", default_value_t = Options::default().bind)]
    bind: String,
    /// Name that it goes by besides those of this machine; repeatable
    ///
    /// Behind a proxy, the name that the proxy passes on. Requests for other names are refused, so that no foreign
    /// page can lead its own name here; * is any.
    #[arg(long, value_name = "NAME", env = "ELIAS_HOST", value_delimiter = ',')]
    host: Vec<String>,
    /// File with the API key that requests must carry
    ///
    /// The variable ELIAS_API_KEY can hold the key itself.
    #[arg(long, value_name = "FILE", env = "ELIAS_API_KEY_FILE")]
    api_key_file: Option<PathBuf>,
    /// File with the key that requests to learn must carry
    ///
    /// Without it, nobody can correct answers. The variable ELIAS_LEARN_KEY can hold the key itself.
    #[arg(
        long,
        value_name = "FILE",
        env = "ELIAS_LEARN_KEY_FILE",
        hide_short_help = true
    )]
    learn_key_file: Option<PathBuf>,
    /// Origin of pages that may call it; repeatable
    ///
    /// * is any. Without it, pages of other hosts may not read answers.
    #[arg(
        long,
        value_name = "ORIGIN",
        env = "ELIAS_CORS_ORIGIN",
        value_delimiter = ','
    )]
    cors_origin: Vec<String>,
    /// Texts that may wait; more get status 429
    #[arg(long, value_name = "N", env = "ELIAS_MAX_QUEUE", hide_short_help = true, default_value_t = Options::default().max_queue)]
    max_queue: usize,
    /// Texts per request
    #[arg(long, value_name = "N", env = "ELIAS_MAX_TEXTS", hide_short_help = true, default_value_t = Options::default().max_texts)]
    max_texts: usize,
    /// Bytes per text
    #[arg(long, value_name = "N", env = "ELIAS_MAX_TEXT_BYTES", hide_short_help = true, default_value_t = Options::default().max_text_bytes)]
    max_text_bytes: usize,
    /// Bytes per request
    #[arg(long, value_name = "N", env = "ELIAS_MAX_BODY_BYTES", hide_short_help = true, default_value_t = Options::default().max_body_bytes)]
    max_body_bytes: usize,
    /// Bytes of answers that were not taken yet
    #[arg(long, value_name = "N", env = "ELIAS_MAX_ANSWER_BYTES", hide_short_help = true, default_value_t = Options::default().max_answer_bytes)]
    max_answer_bytes: usize,
    /// Bytes of a model's files [default: the memory that is available]
    #[arg(
        long,
        value_name = "N",
        env = "ELIAS_MAX_MODEL_BYTES",
        hide_short_help = true
    )]
    max_model_bytes: Option<u64>,
    /// Connections at a time
    #[arg(long, value_name = "N", env = "ELIAS_MAX_CONNECTIONS", hide_short_help = true, default_value_t = Options::default().max_connections)]
    max_connections: usize,
    /// Seconds that a request may take
    #[arg(long, value_name = "SECONDS", env = "ELIAS_TIMEOUT", default_value_t = Options::default().timeout.as_secs_f64(), value_parser = parse_seconds)]
    timeout: f64,
    /// Seconds that a connection may be silent
    #[arg(long, value_name = "SECONDS", env = "ELIAS_IDLE_TIMEOUT", hide_short_help = true, default_value_t = Options::default().idle_timeout.as_secs_f64(), value_parser = parse_seconds)]
    idle_timeout: f64,
    /// Log every request
    ///
    /// Method, endpoint, status and time; never its content.
    #[arg(long, env = "ELIAS_LOG_REQUESTS", value_parser = FalseyValueParser::new())]
    log_requests: bool,
}

impl Serve {
    pub(crate) fn run(&self, console: &Console) -> anyhow::Result<()> {
        let options = Options {
            models: self.sources(console)?,
            bind: self.bind.clone(),
            hosts: self.host.clone(),
            api_key: key(self.api_key_file.as_deref(), "ELIAS_API_KEY")?,
            learn_key: key(self.learn_key_file.as_deref(), "ELIAS_LEARN_KEY")?,
            threads: rayon::current_num_threads(),
            max_queue: self.max_queue,
            max_texts: self.max_texts,
            max_text_bytes: self.max_text_bytes,
            max_body_bytes: self.max_body_bytes,
            max_answer_bytes: self.max_answer_bytes,
            max_model_bytes: self.max_model_bytes,
            max_connections: self.max_connections,
            timeout: Duration::from_secs_f64(self.timeout),
            idle_timeout: Duration::from_secs_f64(self.idle_timeout),
            cors_origins: self.cors_origin.clone(),
            log_requests: self.log_requests,
            log: Log::new({
                let console = *console;
                move |line| console.info(line)
            }),
            ..Options::default()
        };
        let on_start = |address| console.info(format_args!("listening on http://{address}"));
        match elias_server::run(options, on_start) {
            Err(ServeError::Options(problem)) => Err(Misuse(problem).into()),
            outcome => Ok(outcome?),
        }
    }

    fn sources(&self, console: &Console) -> anyhow::Result<Vec<ModelSource>> {
        let mut sources = Vec::new();
        if let Some(path) = &self.model {
            sources.push(ModelSource {
                name: "default".into(),
                path: path.clone(),
            });
        }
        sources.extend(self.models.iter().cloned());
        for source in &sources {
            models::check(&source.path)?;
        }
        if self.demo {
            sources.push(ModelSource {
                name: "demo".into(),
                path: demo_model(console)?,
            });
        }
        Ok(sources)
    }
}

/// A key from its file or, without one, from a variable: not an option, since other users of the machine can see the
/// arguments of a process.
fn key(file: Option<&Path>, variable: &str) -> anyhow::Result<Option<String>> {
    let Some(path) = file else {
        return Ok(std::env::var(variable).ok());
    };
    let content = read_key(path).with_context(|| format!("cannot read {}", path.display()))?;
    Ok(Some(content.trim().to_owned()))
}

/// Reads a file that holds a key; the wrong file may be long, or have no end.
fn read_key(path: &Path) -> std::io::Result<String> {
    let mut content = String::new();
    fs::File::open(path)?
        .take(MAX_KEY_BYTES)
        .read_to_string(&mut content)?;
    Ok(content)
}

/// The model of the bundled data set, from the cache or trained now.
fn demo_model(console: &Console) -> anyhow::Result<PathBuf> {
    let version = env!("CARGO_PKG_VERSION");
    let path = cache_directory()?.join(format!("elias/demo-{version}"));
    let is_trained = path.join("manifest.json").exists() && Predictor::load(&path).is_ok();
    if is_trained {
        return Ok(path);
    }
    console.info("training a model of Debian package descriptions, for this and later starts");
    let data = bundled::read()?;
    let predictor = demo::train_with(Config::default(), &data.train, console, Interrupt::none())?;
    models::save(&predictor, &path, true)?;
    console.info(format_args!("model written to {}", path.display()));
    Ok(path)
}

fn cache_directory() -> anyhow::Result<PathBuf> {
    let variable = |name| std::env::var_os(name).filter(|value| !value.is_empty());
    if let Some(cache) = variable("XDG_CACHE_HOME") {
        return Ok(cache.into());
    }
    let home = variable("HOME").or_else(|| variable("USERPROFILE"));
    let home = home.context("no place to keep the demo's model: set XDG_CACHE_HOME")?;
    Ok(Path::new(&home).join(".cache"))
}

fn parse_model(text: &str) -> Result<ModelSource, String> {
    match text.split_once('=') {
        Some((name, path)) if !name.is_empty() && !path.is_empty() => Ok(ModelSource {
            name: name.into(),
            path: path.into(),
        }),
        _ => Err("expected NAME=PATH".into()),
    }
}

fn parse_seconds(text: &str) -> Result<f64, String> {
    match text.parse::<f64>() {
        Ok(seconds) if (0.001..=86_400.0).contains(&seconds) => Ok(seconds),
        _ => Err("expected a number of seconds from 0.001 to 86400".into()),
    }
}
