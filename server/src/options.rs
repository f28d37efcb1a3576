//! Everything that can be set about the service: one struct, plain values, safe defaults.

use std::path::PathBuf;
use std::time::Duration;

use crate::log::Log;
use crate::router::is_origin;

/// A model and the name it is asked for by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ModelSource {
    /// Its name in requests: letters, digits, `-`, `_` and `.`.
    pub name: String,
    /// Its directory.
    pub path: PathBuf,
}

/// The options of a service.
#[derive(Clone)]
pub struct Options {
    /// The models; the first one answers where a request names none.
    pub models: Vec<ModelSource>,
    /// The address to listen on.
    pub bind: String,
    /// Names that the service goes by besides those of this machine and its address; `*` is any.
    pub hosts: Vec<String>,
    /// The key that requests to `/v1` must carry.
    pub api_key: Option<String>,
    /// The key that requests to learn must carry, which also reads; without one, nobody learns.
    pub learn_key: Option<String>,
    /// Threads that answer.
    pub threads: usize,
    /// Texts that may wait; more are refused with 429.
    pub max_queue: usize,
    /// Texts per request.
    pub max_texts: usize,
    /// Bytes per text.
    pub max_text_bytes: usize,
    /// Bytes per request body.
    pub max_body_bytes: usize,
    /// Bytes of answers that were not taken yet; those that nobody takes make room for others.
    pub max_answer_bytes: usize,
    /// Bytes of a model's files; unset: the memory that is available when it is loaded.
    pub max_model_bytes: Option<u64>,
    /// The time that a request may take, its body included.
    pub timeout: Duration,
    /// The time that a connection may be silent, or take for the head of a request.
    pub idle_timeout: Duration,
    /// Connections at a time; beyond it, the one that is idle for longest is closed.
    pub max_connections: usize,
    /// How often the manifests of the models are looked at.
    pub poll_interval: Duration,
    /// Origins of pages that may call the service; `*` is any.
    pub cors_origins: Vec<String>,
    /// Whether every request is logged: method, endpoint, status and time.
    pub log_requests: bool,
    /// Where log lines go.
    pub log: Log,
}

impl Default for Options {
    fn default() -> Self {
        Options {
            models: Vec::new(),
            bind: "127.0.0.1:8080".into(),
            hosts: Vec::new(),
            api_key: None,
            learn_key: None,
            threads: std::thread::available_parallelism().map_or(1, usize::from),
            max_queue: 2000,
            max_texts: 1000,
            max_text_bytes: 1 << 20,
            max_body_bytes: 16 << 20,
            max_answer_bytes: 128 << 20,
            max_model_bytes: None,
            timeout: Duration::from_secs(30),
            idle_timeout: Duration::from_secs(30),
            max_connections: 4096,
            poll_interval: Duration::from_secs(1),
            cors_origins: Vec::new(),
            log_requests: false,
            log: Log::none(),
        }
    }
}

impl Options {
    /// Checks that the values make sense together.
    pub(crate) fn check(&self) -> Result<(), String> {
        if self.models.is_empty() {
            return Err("no model to serve".into());
        }
        for (place, model) in self.models.iter().enumerate() {
            let is_plain = |c: char| c.is_ascii_alphanumeric() || matches!(c, '-' | '_' | '.');
            let name = &model.name;
            if name.is_empty() || 64 < name.len() || !name.chars().all(is_plain) {
                return Err(format!(
                    "model name {name:?}: expected up to 64 letters, digits, -, _ and ."
                ));
            }
            if self.models[..place].iter().any(|other| other.name == *name) {
                return Err(format!(
                    "two models are called {name:?}: give them other names"
                ));
            }
        }
        let numbers = [
            ("threads", self.threads),
            ("max-texts", self.max_texts),
            ("max-text-bytes", self.max_text_bytes),
            ("max-body-bytes", self.max_body_bytes),
            ("max-answer-bytes", self.max_answer_bytes),
            ("max-connections", self.max_connections),
        ];
        for (name, number) in numbers {
            if number == 0 {
                return Err(format!("{name}: found 0, expected at least 1"));
            }
        }
        if self.max_queue < self.max_texts {
            return Err(format!(
                "max-queue: found {}, expected at least max-texts, {}",
                self.max_queue, self.max_texts
            ));
        }
        if self.timeout.is_zero() || self.idle_timeout.is_zero() {
            return Err("a timeout of 0 s refuses every request; give a longer one".into());
        }
        let is_name = |host: &String| !host.is_empty() && !host.contains(['/', ':', ' ', '@']);
        if let Some(host) = self.hosts.iter().find(|host| !is_name(host)) {
            return Err(format!(
                "host: found {host:?}, expected a name without scheme and port, or *"
            ));
        }
        if let Some(origin) = self.cors_origins.iter().find(|origin| !is_origin(origin)) {
            return Err(format!(
                "cors-origin: found {origin:?}, expected * or an origin such as https://example.org"
            ));
        }
        // A key that no header can carry would lock everybody out.
        let is_visible =
            |key: &String| !key.is_empty() && key.bytes().all(|b| b.is_ascii_graphic());
        for (name, key) in [
            ("API key", &self.api_key),
            ("key for learning", &self.learn_key),
        ] {
            if !key.as_ref().is_none_or(is_visible) {
                return Err(format!(
                    "the {name}: expected visible ASCII characters without spaces"
                ));
            }
        }
        if self.learn_key.is_some() && self.learn_key == self.api_key {
            return Err("the key for learning is the API key: whoever reads could learn".into());
        }
        Ok(())
    }
}
