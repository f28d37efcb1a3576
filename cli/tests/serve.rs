//! `elias serve` as a process: options, signals, restarts.
#![cfg(all(unix, feature = "serve"))]

use std::io::{BufRead, BufReader, Read, Write};
use std::net::{TcpListener, TcpStream};
use std::path::Path;
use std::process::{Child, ChildStderr, Command, ExitStatus, Stdio};

use serde_json::{Value, json};

use crate::careful::{train, trained};
use crate::command::{elias, run, write};

/// A service that is killed when the test ends.
struct Server {
    child: Child,
    stderr: BufReader<ChildStderr>,
    address: String,
    /// Lines that it printed before it listened.
    before: String,
}

impl Server {
    fn start(arguments: &[&str], environment: &[(&str, &str)]) -> Self {
        let mut command = elias([&["serve"], arguments].concat());
        let bind = [("ELIAS_BIND", "127.0.0.1:0")];
        for (name, value) in bind.iter().chain(environment) {
            command.env(name, value);
        }
        let mut child = command.stderr(Stdio::piped()).spawn().unwrap();
        let stderr = BufReader::new(child.stderr.take().unwrap());
        let mut server = Server {
            child,
            stderr,
            address: String::new(),
            before: String::new(),
        };
        let line = server.wait_for("listening on http://");
        server.address = line.rsplit('/').next().unwrap().trim().to_owned();
        server
    }

    /// Reads the log up to a line with these words.
    fn wait_for(&mut self, words: &str) -> String {
        loop {
            let mut line = String::new();
            let n_read = self.stderr.read_line(&mut line).unwrap();
            assert_ne!(n_read, 0, "it ended before {words:?}: {}", self.before);
            if line.contains(words) {
                return line;
            }
            self.before.push_str(&line);
        }
    }

    fn signal(&self, name: &str) {
        let id = self.child.id().to_string();
        let sent = Command::new("kill").args([name, &id]).status().unwrap();
        assert!(sent.success());
    }

    fn connect(&self) -> TcpStream {
        TcpStream::connect(&self.address).unwrap()
    }

    /// Sends a request and gives status and body.
    fn ask(&self, request: &str, headers: &str, body: &str) -> (u16, String) {
        let mut stream = self.connect();
        let n_bytes = body.len();
        write!(
            stream,
            "{request} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n{headers}content-length: {n_bytes}\r\n\r\n{body}"
        )
        .unwrap();
        let mut answer = String::new();
        stream.read_to_string(&mut answer).unwrap();
        let (head, body) = answer.split_once("\r\n\r\n").unwrap();
        (head[9..12].parse().unwrap(), body.to_owned())
    }

    fn predict(&self, text: &str) -> Value {
        let body = json!({"text": text, "k": 3}).to_string();
        let kind = "content-type: application/json\r\n";
        let (status, body) = self.ask("POST /v1/predict", kind, &body);
        assert_eq!(status, 200, "{body}");
        serde_json::from_str::<Value>(&body).unwrap()["labels"].take()
    }

    fn wait(mut self) -> ExitStatus {
        self.child.wait().unwrap()
    }
}

impl Drop for Server {
    fn drop(&mut self) {
        let _ = self.child.kill();
        let _ = self.child.wait();
    }
}

fn names(labels: &Value) -> Vec<&str> {
    let labels = labels.as_array().unwrap().iter();
    labels
        .map(|label| label["label"].as_str().unwrap())
        .collect()
}

#[test]
fn it_answers_like_predict_and_ends_well_on_a_signal() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let texts = write(dir.path(), "texts.txt", "ripe apple green\n");
    let ran = run(["predict", model, &texts, "--top-k", "3"]);
    let predicted: Value = serde_json::from_str(&ran.stdout).unwrap();
    for signal in ["-TERM", "-INT"] {
        let mut server = Server::start(&[model], &[]);
        assert_eq!(server.before, "");
        let mut labels = server.predict("ripe apple green");
        for label in labels.as_array_mut().unwrap() {
            let label = label.as_object_mut().unwrap();
            label.remove("id");
            // `elias predict` leaves out what there is not.
            label.retain(|_, value| !value.is_null());
        }
        assert_eq!(labels, predicted["labels"]);
        let idle = server.connect();
        server.signal(signal);
        server.wait_for("stopping");
        server.wait_for("stopped");
        drop(idle);
        assert_eq!(server.wait().code(), Some(0));
    }
}

#[test]
fn a_new_version_replaces_the_old_one_and_a_damaged_one_does_not() {
    let (dir, _, model) = trained();
    let mut server = Server::start(&[model.to_str().unwrap()], &[]);
    assert!(names(&server.predict("ripe apple green")).contains(&"fruit"));
    let manifest = model.join("manifest.json");
    let content = std::fs::read(&manifest).unwrap();
    std::fs::write(&manifest, "{").unwrap();
    server.wait_for("cannot be loaded");
    assert!(names(&server.predict("ripe apple green")).contains(&"fruit"));
    std::fs::write(&manifest, content).unwrap();
    server.signal("-HUP");
    server.wait_for("loaded the new version");
    let others = "{\"text\": \"ripe apple green\", \"labels\": [\"other\"]}\n".repeat(20);
    let others = write(dir.path(), "others.jsonl", &others);
    let ran = train(
        &others,
        &model,
        &["--overwrite", "--set", "stage1.epochs=2"],
    );
    assert_eq!(ran.code, Some(0), "{}", ran.stderr);
    server.wait_for("loaded the new version");
    assert_eq!(names(&server.predict("ripe apple green")), ["other"]);
}

#[test]
fn it_can_be_killed_and_started_again_on_the_same_port() {
    let (_dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let server = Server::start(&[model], &[]);
    let expected = server.predict("fast car red");
    let open = server.connect();
    let address = server.address.clone();
    server.signal("-KILL");
    assert_eq!(server.wait().code(), None);
    let server = Server::start(&[model, "--bind", &address], &[]);
    assert_eq!(server.address, address);
    assert_eq!(server.predict("fast car red"), expected);
    drop(open);
}

#[test]
fn options_come_from_the_environment_and_the_key_from_a_file() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let more = format!("second={model},third={model}");
    let key = write(dir.path(), "key", "file-key\n");
    let environment = [
        ("ELIAS_MODEL", model),
        ("ELIAS_MODELS", &more),
        ("ELIAS_MAX_TEXTS", "7"),
        ("ELIAS_TIMEOUT", "2.5"),
        ("ELIAS_LOG_REQUESTS", "1"),
        ("ELIAS_THREADS", "1"),
        ("ELIAS_API_KEY", "environment-key"),
    ];
    for (arguments, key) in [
        (&[][..], "environment-key"),
        (&["--api-key-file", &key], "file-key"),
    ] {
        let mut server = Server::start(arguments, &environment);
        assert_eq!(server.ask("GET /v1/limits", "", "").0, 401);
        let header = format!("authorization: Bearer {key}\r\n");
        let (status, limits) = server.ask("GET /v1/limits", &header, "");
        assert_eq!(status, 200, "{limits}");
        let limits: Value = serde_json::from_str(&limits).unwrap();
        assert_eq!(
            (&limits["max_texts"], &limits["timeout_ms"]),
            (&json!(7), &json!(2500))
        );
        let (_, models) = server.ask("GET /v1/models", &header, "");
        for name in ["default", "second", "third"] {
            assert!(models.contains(&format!("\"{name}\"")), "{models}");
        }
        server.wait_for("GET /v1/models 200");
        assert!(!server.before.contains("-key"), "{}", server.before);
    }
}

#[test]
fn what_cannot_be_served_is_named() {
    let (dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let taken = TcpListener::bind("127.0.0.1:0").unwrap();
    let taken = taken.local_addr().unwrap().to_string();
    let nowhere = dir.path().join("nowhere");
    let nowhere = nowhere.to_str().unwrap();
    let pair = format!("x={nowhere}");
    for (arguments, code, words) in [
        (&[model, "--bind", &taken][..], 1, &taken[..]),
        (&[model, "--bind", "nonsense"], 1, "nonsense"),
        (&[nowhere], 1, "nowhere"),
        (&["--model", &pair], 1, "nowhere"),
        (&["--model", "x"], 2, "NAME=PATH"),
        (&["--model", &format!("a/b={model}")], 2, "a/b"),
        (&[model, "--max-queue", "1"], 2, "max-queue"),
        (&[model, "--timeout", "0"], 2, "seconds"),
        (&[model, "--cors-origin", "here"], 2, "cors-origin"),
        (&[model, "--api-key-file", nowhere], 1, "nowhere"),
        (&[], 2, "MODEL"),
    ] {
        let ran = run([&["serve"], arguments].concat());
        assert_eq!(ran.code, Some(code), "{arguments:?}: {}", ran.stderr);
        assert!(ran.stderr.contains(words), "{arguments:?}: {}", ran.stderr);
    }
}

#[test]
fn an_open_address_without_a_key_is_warned_of() {
    let (_dir, _, model) = trained();
    let model = model.to_str().unwrap();
    let server = Server::start(&[model, "--bind", "0.0.0.0:0"], &[]);
    assert!(server.before.contains("no API key"), "{}", server.before);
    let server = Server::start(&[model, "--bind", "0.0.0.0:0"], &[("ELIAS_API_KEY", "k")]);
    assert_eq!(server.before, "");
}

#[test]
fn the_demo_serves_the_model_in_the_cache() {
    let (dir, _, model) = trained();
    let cache = dir.path().join("elias");
    std::fs::create_dir(&cache).unwrap();
    let place = cache.join(format!("demo-{}", env!("CARGO_PKG_VERSION")));
    std::fs::rename(&model, place).unwrap();
    let directory = dir.path().to_str().unwrap();
    let server = Server::start(&["--demo"], &[("XDG_CACHE_HOME", directory)]);
    assert_eq!(server.before, "");
    assert!(names(&server.predict("fast car red")).contains(&"vehicle"));
    assert!(Path::new(directory).join("elias").exists());
}

#[test]
fn a_log_that_nobody_reads_stops_neither_answers_nor_the_end() {
    let (_dir, _, model) = trained();
    let server = Server::start(&[model.to_str().unwrap(), "--log-requests"], &[]);
    // The pipe holds some 2,800 lines.
    let mut stream = BufReader::new(server.connect());
    for _ in 0..6000 {
        let request = b"GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
        stream.get_mut().write_all(request).unwrap();
        let mut line = String::new();
        while !line.ends_with("{\"status\":\"ok\"}") {
            let mut byte = [0];
            stream.read_exact(&mut byte).unwrap();
            line.push(byte[0].into());
        }
    }
    let (_, metrics) = server.ask("GET /metrics", "", "");
    let dropped = metrics.lines().find_map(|line| {
        let number = line.strip_prefix("elias_dropped_log_lines_total ")?;
        number.parse::<u64>().ok()
    });
    assert!(dropped.unwrap() > 0, "{metrics}");
    server.signal("-TERM");
    let Server { child, .. } = &mut { server };
    assert_eq!(child.wait().unwrap().code(), Some(0));
}

#[test]
fn few_files_are_told_of_and_leave_room_for_some_connections() {
    let (_dir, _, model) = trained();
    let script = "ulimit -n 64; exec \"$0\" \"$@\"";
    let binary = elias([""; 0]).get_program().to_owned();
    let mut child = Command::new("sh")
        .args(["-c", script])
        .arg(binary)
        .args(["serve", model.to_str().unwrap(), "--bind", "127.0.0.1:0"])
        .stderr(Stdio::piped())
        .spawn()
        .unwrap();
    let stderr = BufReader::new(child.stderr.take().unwrap());
    let mut server = Server {
        child,
        stderr,
        address: String::new(),
        before: String::new(),
    };
    let line = server.wait_for("room for");
    assert!(
        line.contains("64 open files") && line.contains("24 connections"),
        "{line}"
    );
}
