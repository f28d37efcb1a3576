//! The service in process: queries of addresses, and whole connections from their first byte on.
//!
//! A target fails by a panic, by an answer that is no HTTP or no JSON, or by status 500.

#![allow(unreachable_pub)] // a library here, a module there
#![allow(dead_code)] // a program has a part of it

use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use elias::Predictor;
use elias_server::{ModelSource, Options, Service, router};
use http_body_util::BodyExt;
use hyper_util::rt::TokioIo;
use hyper_util::service::TowerToHyperService;
use serde_json::Value;
use tokio::io::{AsyncReadExt, AsyncWriteExt};
use tokio::runtime::Runtime;
use tower::ServiceExt;

/// Pieces that readers of requests have rules for.
pub const PIECES: [&[u8]; 30] = [
    b"\r\n",
    b"\r\n\r\n",
    b"\n",
    b" ",
    b":",
    b"&",
    b"=",
    b"%",
    b"%ff",
    b"%00",
    b"+",
    b"limit=",
    b"&limit=1",
    b"offset=4294967296",
    b"model=first",
    b"\"",
    b"{",
    b"[",
    b"\\u0000",
    b"\\ud800",
    b"\xff",
    b"-1",
    b"1e400",
    b"18446744073709551616",
    b"content-length: 5\r\n",
    b"transfer-encoding: chunked\r\n",
    b"host: evil.example\r\n",
    b"expect: 100-continue\r\n",
    b"authorization: Bearer key\r\n",
    b"null",
];

/// A service in process.
pub struct Target {
    service: Service,
    runtime: Runtime,
}

impl Target {
    /// Serves a model.
    pub fn new(model: &Predictor) -> Self {
        let directory = tempfile::tempdir().expect("there is a place for temporary files");
        let path = directory.path().join("model");
        model.save(&path).expect("a small model can be written");
        let options = Options {
            models: vec![ModelSource {
                name: "first".into(),
                path,
            }],
            threads: 1,
            timeout: Duration::from_secs(20),
            max_body_bytes: 1 << 16,
            cors_origins: vec!["https://page.example".into()],
            ..Options::default()
        };
        Target {
            service: Service::load(options).expect("the model is whole"),
            runtime: tokio::runtime::Builder::new_current_thread()
                .enable_all()
                .build()
                .expect("a runtime can be had"),
        }
    }

    /// A path with a query.
    pub fn query(&self, bytes: &[u8]) {
        let request = Request::get(bytes).header("host", "localhost");
        let Ok(request) = request.body(Body::empty()) else {
            return;
        };
        let answer = self.runtime.block_on(async {
            let answered = router(&self.service).oneshot(request).await;
            let response = answered.unwrap_or_else(|never| match never {});
            let (head, body) = response.into_parts();
            let body = body.collect().await.expect("it is in memory").to_bytes();
            (head, body)
        });
        let (head, body) = answer;
        assert_ne!(head.status, StatusCode::INTERNAL_SERVER_ERROR);
        let kind = head.headers.get("content-type");
        if kind.is_some_and(|kind| kind == "application/json") {
            check_json(head.status.as_u16(), &body);
        }
    }

    /// Everything that a client sends over a connection.
    pub fn connection(&self, bytes: &[u8]) {
        let answers = self.runtime.block_on(async {
            let (mut client, server) = tokio::io::duplex(1 << 16);
            let serving = hyper::server::conn::http1::Builder::new()
                .max_buf_size(1 << 16)
                .serve_connection(
                    TokioIo::new(server),
                    TowerToHyperService::new(router(&self.service)),
                );
            let talking = async {
                // The other side may hang up before it has read everything.
                let _ = client.write_all(bytes).await;
                let _ = client.shutdown().await;
                let mut answers = Vec::new();
                let _ = client.read_to_end(&mut answers).await;
                answers
            };
            let (_, answers) = tokio::join!(serving, talking);
            answers
        });
        check_answers(&answers);
    }
}

/// Answers one after the other, each with a head and, where it says so, a body of JSON.
fn check_answers(mut answers: &[u8]) {
    while !answers.is_empty() {
        if let Some(rest) = answers.strip_prefix(b"HTTP/1.1 100 Continue\r\n\r\n") {
            answers = rest;
            continue;
        }
        let end = answers.windows(4).position(|at| at == b"\r\n\r\n");
        let end = end.expect("a whole head");
        let head = std::str::from_utf8(&answers[..end]).expect("heads are ASCII");
        let head = head.to_ascii_lowercase();
        answers = &answers[end + 4..];
        let status = head
            .split(' ')
            .nth(1)
            .and_then(|status| status.parse().ok());
        let status: u16 = status.expect("a status");
        assert!(head.starts_with("http/1.") && status != 500, "{head}");
        let value = |name: &str| {
            let mut lines = head.lines().filter_map(|line| line.split_once(": "));
            lines.find(|(key, _)| *key == name).map(|(_, value)| value)
        };
        let length = value("content-length").map_or(0, |value| value.parse().expect("a length"));
        // The answer to HEAD has the length and not the body; nothing tells it from here.
        if answers.len() < length {
            return;
        }
        let is_json = value("content-type") == Some("application/json");
        let (body, rest) = answers.split_at(length);
        if body.starts_with(b"HTTP/1.") {
            continue;
        }
        if is_json {
            check_json(status, body);
        }
        answers = rest;
    }
}

fn check_json(status: u16, body: &[u8]) {
    let value: Value = serde_json::from_slice(body).expect("JSON");
    if 400 <= status {
        let words = value["error"].as_str().expect("words");
        assert!(!words.is_empty() && words.len() < 2000, "{words}");
        assert!(value["error_type"].is_string(), "{value}");
    }
}

/// Addresses that are in order, or nearly so.
pub fn query_seeds() -> Vec<Vec<u8>> {
    let seeds = [
        "/v1/labels?query=a%20apple&limit=7&offset=2&model=first",
        "/v1/labels?limit=1000",
        "/v1/labels/3?model=first",
        "/v1/clusters?query=l&offset=1",
        "/v1/clusters/1",
        "/v1/models",
        "/v1/limits?",
        "/v1/annif/first",
        "/health",
        "/metrics",
        "/openapi.json",
        "/docs",
        "/",
        "/app.js?v=1",
    ];
    seeds.map(|seed| seed.as_bytes().to_vec()).into()
}

/// Connections that are in order, or nearly so.
pub fn connection_seeds() -> Vec<Vec<u8>> {
    let post = |path: &str, kind: &str, body: &str| {
        let n_bytes = body.len();
        format!(
            "POST {path} HTTP/1.1\r\nhost: localhost\r\ncontent-type: {kind}\r\ncontent-length: {n_bytes}\r\n\r\n{body}"
        )
    };
    let json = "application/json";
    let get = "GET /health HTTP/1.1\r\nhost: localhost\r\n\r\n";
    let predict = post("/v1/predict", json, r#"{"text": "apple pear", "k": 3}"#);
    let seeds = [
        get.to_owned(),
        format!("{get}{predict}{get}"),
        post("/v1/predict", json, r#"{"texts": ["apple", "", "plum"], "threshold": 0.5, "model": "first"}"#),
        post("/v1/explain", json, r#"{"text": "apple ofapple", "k": 2}"#),
        post("/v1/annif/first/suggest", "application/x-www-form-urlencoded", "text=apple+pear&limit=5"),
        format!(
            "POST /v1/predict HTTP/1.1\r\nhost: 127.0.0.1:80\r\ncontent-type: {json}\r\ntransfer-encoding: chunked\r\n\r\n10\r\n{{\"text\": \"apple\"\r\n1\r\n}}\r\n0\r\n\r\n"
        ),
        "OPTIONS /v1/predict HTTP/1.1\r\nhost: localhost\r\norigin: https://page.example\r\naccess-control-request-method: POST\r\n\r\n".into(),
        "HEAD / HTTP/1.1\r\nhost: localhost\r\nif-none-match: \"0\"\r\n\r\n".into(),
        "GET http://localhost/v1/labels?limit=2 HTTP/1.0\r\nhost: localhost\r\nconnection: keep-alive\r\n\r\n".into(),
        format!(
            "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\nexpect: 100-continue\r\ncontent-type: {json}\r\ncontent-length: 17\r\n\r\n{{\"text\": \"apple\"}}"
        ),
    ];
    seeds.map(String::into_bytes).into()
}
