//! A service on a free port, which stops when the test ends.

use std::net::SocketAddr;
use std::path::Path;
use std::sync::{Arc, Mutex};
use std::time::Duration;

use elias::Predictor;
use elias_server::{Log, ModelSource, Options, Service, serve};
use serde_json::{Value, json};
use tempfile::TempDir;
use tokio::net::TcpListener;
use tokio::runtime::Runtime;
use tokio::sync::watch;
use tokio::task::JoinHandle;

use crate::client::Client;
use crate::tiny;

pub(crate) struct Running {
    pub(crate) address: SocketAddr,
    pub(crate) service: Service,
    /// The first model, as the library loads it.
    pub(crate) model: Predictor,
    pub(crate) directory: TempDir,
    lines: Arc<Mutex<Vec<String>>>,
    log: Log,
    stop: watch::Sender<bool>,
    serving: Option<JoinHandle<()>>,
    runtime: Runtime,
}

impl Running {
    /// With the defaults.
    pub(crate) fn new() -> Self {
        Running::with(|_| {})
    }

    /// With options of the test's own.
    pub(crate) fn with(change: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        tiny::model("a", 1)
            .save(directory.path().join("a"))
            .unwrap();
        let lines: Arc<Mutex<Vec<String>>> = Arc::default();
        let log = Log::new({
            let lines = Arc::clone(&lines);
            move |line| lines.lock().unwrap().push(line.to_owned())
        });
        let mut options = Options {
            models: vec![source("first", &directory.path().join("a"))],
            threads: 2,
            poll_interval: Duration::from_secs(3600),
            log: log.clone(),
            ..Options::default()
        };
        change(&mut options);
        let model = Predictor::load(directory.path().join("a")).unwrap();
        let service = Service::load(options).unwrap();
        let runtime = Runtime::new().unwrap();
        let (stop, stopping) = watch::channel(false);
        let listener = runtime.block_on(TcpListener::bind("127.0.0.1:0")).unwrap();
        let address = listener.local_addr().unwrap();
        let serving = runtime.spawn(serve(listener, service.clone(), stopping));
        Running {
            address,
            service,
            model,
            directory,
            lines,
            log,
            stop,
            serving: Some(serving),
            runtime,
        }
    }

    pub(crate) fn client(&self) -> Client {
        Client::new(self.address)
    }

    pub(crate) fn log(&self) -> Vec<String> {
        self.log.flush(Duration::from_secs(60));
        self.lines.lock().unwrap().clone()
    }

    pub(crate) fn path(&self, name: &str) -> std::path::PathBuf {
        self.directory.path().join(name)
    }

    /// Stops the service and waits until it has.
    pub(crate) fn stop(&mut self) {
        self.stop.send_replace(true);
        if let Some(serving) = self.serving.take() {
            self.runtime.block_on(serving).unwrap();
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.stop.send_replace(true);
    }
}

pub(crate) fn source(name: &str, path: &Path) -> ModelSource {
    ModelSource {
        name: name.into(),
        path: path.into(),
    }
}

/// The labels that the service must answer for a text, from the library.
pub(crate) fn expected(model: &Predictor, text: &str, k: usize) -> Value {
    let answers = model.predict(text, k).unwrap();
    let labels = answers.iter().map(|answer| {
        json!({"label": answer.label, "id": answer.id.0,
               "score": shortest(answer.score), "probability": answer.probability.map(shortest)})
    });
    labels.collect()
}

/// A number as it is written down.
fn shortest(number: f32) -> f64 {
    number.to_string().parse().unwrap()
}
