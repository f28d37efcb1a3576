//! A service as a process, requests with the answers that would be right, and a client.

use std::fs;
use std::io::{BufRead, BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::process::{Child, Command, ExitStatus, Stdio};
use std::time::Duration;

use elias::Predictor;
use serde_json::Value;

/// Labels per text.
pub const TOP_K: usize = 5;

/// A request and the bodies that would be right.
pub struct Exchange {
    /// Head and body.
    pub request: Vec<u8>,
    /// One per model.
    pub answers: Vec<Vec<u8>>,
}

impl Exchange {
    /// The request for a text.
    pub fn new(predictors: &[Predictor], text: &str) -> Self {
        let body = serde_json::json!({"text": text, "k": TOP_K}).to_string();
        let answers = predictors.iter().map(|predictor| answer(predictor, text));
        Exchange {
            request: post(body.as_bytes()),
            answers: answers.collect(),
        }
    }
}

/// A request to predict.
pub fn post(body: &[u8]) -> Vec<u8> {
    let head = format!(
        "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\nContent-Length: {}\r\n\r\n",
        body.len()
    );
    [head.as_bytes(), body].concat()
}

/// The body of the right answer.
fn answer(predictor: &Predictor, text: &str) -> Vec<u8> {
    let plain = |number: f32| serde_json::to_string(&number).unwrap();
    let answers = predictor.predict(text, TOP_K).unwrap();
    let mark = if answers.has_known_word {
        ""
    } else {
        ",\"no_known_word\":true"
    };
    let labels: Vec<String> = answers
        .into_iter()
        .map(|answer| {
            format!(
                "{{\"label\":{},\"id\":{},\"score\":{},\"probability\":{}}}",
                serde_json::to_string(answer.label).unwrap(),
                answer.id.0,
                plain(answer.score),
                answer.probability.map_or("null".into(), plain)
            )
        })
        .collect();
    let labels = labels.join(",");
    format!("{{\"model\":\"default\",\"labels\":[{labels}]{mark}}}").into_bytes()
}

/// The texts of a file with a `"text"` per line.
pub fn read_texts(path: &str) -> Vec<String> {
    let content = fs::read_to_string(path).unwrap();
    let text = |line: &str| {
        let object: Value = serde_json::from_str(line).unwrap();
        object["text"].as_str().unwrap().to_owned()
    };
    content.lines().map(text).collect()
}

/// Copies the files of a directory.
pub fn copy(from: &Path, to: &Path) {
    fs::create_dir_all(to).unwrap();
    for entry in fs::read_dir(from).unwrap() {
        let path = entry.unwrap().path();
        if path.is_file() {
            fs::copy(&path, to.join(path.file_name().unwrap())).unwrap();
        }
    }
}

/// CPU seconds of a process or thread; the system counts in hundredths.
pub fn cpu(path: &str) -> f64 {
    let content = fs::read_to_string(path).unwrap();
    let (_, after_name) = content.rsplit_once(") ").unwrap();
    let fields: Vec<&str> = after_name.split(' ').collect();
    let ticks = |at: usize| fields[at].parse::<f64>().unwrap();
    (ticks(11) + ticks(12)) / 100.0
}

/// Reads an answer into `body`, and gives its status; 0 if the connection ended.
pub fn read_answer(stream: &mut BufReader<TcpStream>, body: &mut Vec<u8>) -> u16 {
    let (mut line, mut status, mut length) = (String::new(), 0, 0);
    loop {
        line.clear();
        if stream.read_line(&mut line).unwrap_or(0) == 0 {
            return 0;
        }
        let lower = line.trim().to_ascii_lowercase();
        if lower.is_empty() {
            break;
        }
        if let Some(rest) = lower.strip_prefix("http/1.1 ") {
            status = rest[..3].parse().unwrap();
        } else if let Some(value) = lower.strip_prefix("content-length: ") {
            length = value.parse().unwrap();
        }
    }
    body.resize(length, 0);
    stream.read_exact(body).map_or(0, |()| status)
}

/// The time below which this share of sorted times is, in milliseconds.
pub fn quantile(sorted: &[Duration], share: f64) -> f64 {
    let place = (sorted.len() as f64 * share) as usize;
    let time = sorted.get(place.min(sorted.len().saturating_sub(1)));
    time.map_or(0.0, |time| 1e3 * time.as_secs_f64())
}

/// A server that ends with the program.
pub struct Server {
    child: Child,
    /// Where it listens.
    pub address: SocketAddr,
}

impl Server {
    /// Starts it on a free port.
    pub fn start(binary: &str, model: &Path, more: &[&str]) -> Self {
        let mut child = Command::new(PathBuf::from(binary))
            .arg("serve")
            .arg(model)
            .args(["--bind", "127.0.0.1:0"])
            .args(more)
            .stderr(Stdio::piped())
            .spawn()
            .unwrap();
        let mut lines = BufReader::new(child.stderr.take().unwrap()).lines();
        let address = lines.by_ref().find_map(|line| {
            let line = line.unwrap();
            line.strip_prefix("listening on http://")?.parse().ok()
        });
        std::thread::spawn(move || lines.for_each(drop));
        Server {
            child,
            address: address.expect("the server's address"),
        }
    }

    /// CPU seconds so far.
    pub fn cpu(&self) -> f64 {
        cpu(&format!("/proc/{}/stat", self.child.id()))
    }

    /// Resident bytes.
    pub fn memory(&self) -> u64 {
        let status = fs::read_to_string(format!("/proc/{}/status", self.child.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:"));
        let kibibytes = line.unwrap().trim().trim_end_matches(" kB");
        1024 * kibibytes.parse::<u64>().unwrap()
    }

    /// Sends a signal.
    pub fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    /// Stops it as an operator does.
    pub fn stop(mut self) -> ExitStatus {
        self.signal("-TERM");
        self.child.wait().unwrap()
    }

    /// The value of a metric.
    pub fn metric(&self, name: &str) -> f64 {
        let mut stream = TcpStream::connect(self.address).unwrap();
        stream
            .write_all(b"GET /metrics HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n")
            .unwrap();
        let mut metrics = String::new();
        stream.read_to_string(&mut metrics).unwrap();
        let mut lines = metrics.lines();
        let value = lines.find_map(|line| line.strip_prefix(name)?.trim().parse().ok());
        value.unwrap_or(0.0)
    }

    /// Versions of the model that were loaded so far.
    pub fn n_loads(&self) -> usize {
        self.metric("elias_model_loads_total{model=\"default\",result=\"loaded\"} ") as usize
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}
