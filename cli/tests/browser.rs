//! A real Chromium, driven through chromedriver: just enough of the WebDriver protocol to search, sort and hover.

use std::io::{BufRead, BufReader, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::process::{Child, Command, Stdio};

use serde_json::{Value, json};

/// Set where a browser must be there, so that its absence fails instead of being skipped.
const REQUIRED: &str = "ELIAS_BROWSER_REQUIRED";

/// A browser with one page; both programs end with it.
pub(crate) struct Browser {
    driver: Child,
    port: u16,
    session: String,
    _profile: tempfile::TempDir,
}

impl Browser {
    /// Starts a browser; none, with a word on stderr, where there is no Chromium or no chromedriver.
    pub(crate) fn start(width: usize) -> Option<Browser> {
        let chromium = ["chromium", "chromium-browser", "google-chrome"]
            .into_iter()
            .find(|name| is_program(name));
        let (Some(chromium), true) = (chromium, is_program("chromedriver")) else {
            let words = "skipped: there is no chromium with chromedriver (Debian: chromium, chromium-driver)";
            assert!(std::env::var_os(REQUIRED).is_none(), "{words}");
            eprintln!("{words}");
            return None;
        };
        let mut driver = Command::new("chromedriver")
            .arg("--port=0")
            .stdout(Stdio::piped())
            .stderr(Stdio::null())
            .spawn()
            .unwrap();
        let output = BufReader::new(driver.stdout.take().unwrap());
        let mut lines = output.lines();
        let port = lines.find_map(|line| {
            let line = line.unwrap();
            let (_, port) = line.split_once("successfully on port ")?;
            port.trim_end_matches('.').parse().ok()
        });
        // The pipe stays open, or the driver's next word would end it.
        std::thread::spawn(move || lines.for_each(drop));
        let profile = tempfile::tempdir().unwrap();
        let folder = profile.path().display().to_string();
        let mut browser = Browser {
            driver,
            port: port.expect("chromedriver says its port"),
            session: String::new(),
            _profile: profile,
        };
        let arguments = [
            "--headless",
            "--no-sandbox",
            "--disable-gpu",
            "--disable-quic",
            "--no-first-run",
            "--disable-background-networking",
            "--disable-component-update",
            "--disable-sync",
            "--disable-dev-shm-usage",
            &format!("--user-data-dir={folder}"),
            &format!("--window-size={width},900"),
        ];
        let options = json!({"args": arguments, "binary": which(chromium)});
        let wanted = json!({"capabilities": {"alwaysMatch": {
            "goog:chromeOptions": options, "goog:loggingPrefs": {"browser": "ALL"}}}});
        let answer = browser.call("POST", "/session", Some(wanted));
        browser.session = format!("/session/{}", answer["sessionId"].as_str().unwrap());
        Some(browser)
    }

    /// Opens a file.
    pub(crate) fn open(&self, file: &Path) {
        let url = format!("file://{}", file.display());
        self.post("/url", json!({"url": url}));
    }

    /// The result of a script.
    pub(crate) fn run(&self, script: &str) -> Value {
        self.post("/execute/sync", json!({"script": script, "args": []}))
    }

    /// Clicks what a CSS selector finds.
    pub(crate) fn click(&self, selector: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/click"), json!({}));
    }

    /// Types into what a CSS selector finds.
    pub(crate) fn type_into(&self, selector: &str, text: &str) {
        let element = self.find(selector);
        self.post(&format!("/element/{element}/clear"), json!({}));
        self.post(&format!("/element/{element}/value"), json!({"text": text}));
    }

    /// Moves the pointer over what a CSS selector finds.
    pub(crate) fn hover(&self, selector: &str) {
        self.run(&format!(
            "document.querySelector('{selector}').scrollIntoView({{block: 'center'}})"
        ));
        let element = json!({"element-6066-11e4-a52e-4f735466cecf": self.find(selector)});
        let step = json!({"type": "pointerMove", "duration": 0, "origin": element, "x": 0, "y": 0});
        let near =
            json!({"type": "pointerMove", "duration": 0, "origin": "pointer", "x": 1, "y": 0});
        let mouse = json!({"type": "pointer", "id": "mouse", "actions": [step, near]});
        self.post("/actions", json!({"actions": [mouse]}));
    }

    /// The page's console: errors of its script.
    pub(crate) fn errors(&self) -> Vec<String> {
        let log = self.post("/se/log", json!({"type": "browser"}));
        let entries = log.as_array().cloned().unwrap_or_default();
        let severe = entries.iter().filter(|entry| entry["level"] == "SEVERE");
        severe.map(|entry| entry["message"].to_string()).collect()
    }

    fn find(&self, selector: &str) -> String {
        let query = json!({"using": "css selector", "value": selector});
        let found = self.post("/element", query);
        let id = found.as_object().and_then(|object| object.values().next());
        id.and_then(Value::as_str)
            .unwrap_or_else(|| panic!("{selector}: {found}"))
            .to_owned()
    }

    fn post(&self, path: &str, body: Value) -> Value {
        self.call("POST", &format!("{}{path}", self.session), Some(body))
    }

    /// One request; the value of its answer.
    fn call(&self, method: &str, path: &str, body: Option<Value>) -> Value {
        let body = body.map_or(String::new(), |body| body.to_string());
        let mut stream = TcpStream::connect(("127.0.0.1", self.port)).unwrap();
        let head = format!(
            "{method} {path} HTTP/1.1\r\nHost: 127.0.0.1:{}\r\nContent-Type: application/json\r\n\
             Content-Length: {}\r\nConnection: close\r\n\r\n",
            self.port,
            body.len()
        );
        stream.write_all(head.as_bytes()).unwrap();
        stream.write_all(body.as_bytes()).unwrap();
        let mut reader = BufReader::new(stream);
        let mut length = 0;
        loop {
            let mut line = String::new();
            reader.read_line(&mut line).unwrap();
            let line = line.trim_end().to_ascii_lowercase();
            if let Some(value) = line.strip_prefix("content-length:") {
                length = value.trim().parse().unwrap();
            }
            if line.is_empty() {
                break;
            }
        }
        let mut answer = vec![0; length];
        reader.read_exact(&mut answer).unwrap();
        let answer: Value = serde_json::from_slice(&answer).unwrap();
        let value = answer["value"].clone();
        let error = value.get("error").and_then(Value::as_str);
        assert!(error.is_none(), "{method} {path}: {value}");
        value
    }
}

impl Drop for Browser {
    fn drop(&mut self) {
        // Ending the session ends Chromium; the driver is our child.
        if !self.session.is_empty() && !std::thread::panicking() {
            self.call("DELETE", &self.session.clone(), None);
        }
        let _ = self.driver.kill();
        let _ = self.driver.wait();
    }
}

fn which(program: &str) -> Option<String> {
    let paths = std::env::var_os("PATH")?;
    let mut found = std::env::split_paths(&paths).map(|folder| folder.join(program));
    let found = found.find(|path| path.is_file())?;
    Some(found.to_string_lossy().into_owned())
}

fn is_program(program: &str) -> bool {
    which(program).is_some()
}
