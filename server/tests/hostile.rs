//! Requests that no well-behaved client sends: each gets a clear error, and the service goes on.

use std::sync::mpsc;
use std::time::Duration;

use serde_json::json;

use crate::client::Client;
use crate::running::{Running, expected};
use crate::tiny;

const JSON: &str = "content-type: application/json\r\n";

/// The service still answers as it should.
fn check_alive(running: &Running) {
    let text = tiny::text(5);
    let reply = running.client().post("/v1/predict", &json!({"text": text}));
    assert_eq!(reply.json()["labels"], expected(&running.model, &text, 10));
}

#[test]
fn bad_bodies_get_400_and_bad_values_422() {
    let running = Running::new();
    let mut client = running.client();
    let deep = "[".repeat(100_000);
    let deep_inside = format!("{{\"text\": \"x\", \"k\": {deep}");
    let bad: [(&[u8], u16); 17] = [
        (b"", 400),
        (b"{", 400),
        (b"text", 400),
        (b"{\"text\": \"\xff\xfe\"}", 400),
        (b"{\"text\": \"\\ud800\"}", 400),
        (b"{\"text\": \"a\"} {}", 400),
        (b"[]", 422),
        (b"null", 422),
        (b"{}", 422),
        (b"{\"text\": null}", 422),
        (b"{\"text\": 5}", 422),
        (b"{\"text\": \"a\", \"text\": \"b\"}", 422),
        (b"{\"text\": \"a\", \"texts\": [\"b\"]}", 422),
        (b"{\"texts\": []}", 422),
        (b"{\"txt\": \"a\"}", 422),
        (b"{\"text\": \"a\", \"k\": 0.5}", 422),
        (b"{\"text\": \"a\", \"model\": null}", 422),
    ];
    for (body, status) in bad {
        let reply = client.send("POST", "/v1/predict", JSON, body);
        let words = String::from_utf8_lossy(body);
        assert_eq!(reply.status, status, "{words}: {}", reply.text());
        let kind = if status == 400 {
            "bad_json"
        } else {
            "bad_value"
        };
        assert_eq!(reply.error_type(), kind, "{words}");
    }
    for body in [deep.as_bytes(), deep_inside.as_bytes()] {
        let reply = client.send("POST", "/v1/predict", JSON, body);
        assert!([400, 422].contains(&reply.status), "{}", reply.text());
        assert!(reply.body.len() < 1000);
    }
    for (key, value) in [
        ("k", json!(0)),
        ("k", json!(101)),
        ("k", json!(-1)),
        ("k", json!(1e300)),
        ("threshold", json!(1.5)),
        ("threshold", json!(-0.1)),
        ("threshold", json!("0.5")),
    ] {
        let reply = client.post("/v1/predict", &json!({"text": "a", key: value}));
        assert_eq!(reply.status, 422, "{key} {value}");
    }
    let reply = client.post("/v1/explain", &json!({"text": "a", "k": 101}));
    assert_eq!(reply.status, 422);
    check_alive(&running);
}

#[test]
fn bad_addresses_get_404_405_or_422() {
    let running = Running::new();
    let mut client = running.client();
    for (path, status, kind) in [
        ("/v1/nothing", 404, "not_found"),
        ("/v1/labels/8", 404, "not_found"),
        ("/v1/labels/2147483647", 404, "not_found"),
        ("/v1/labels/2147483648", 422, "bad_value"),
        ("/v1/labels/-1", 422, "bad_value"),
        ("/v1/labels/%ff", 422, "bad_value"),
        ("/v1/labels?limit=0", 422, "bad_value"),
        ("/v1/labels?limit=1001", 422, "bad_value"),
        ("/v1/labels?offset=x", 422, "bad_value"),
        ("/v1/labels?limit=1&limit=2", 422, "bad_value"),
        ("/v1/labels?qurey=a", 422, "bad_value"),
        ("/v1/labels?model=none", 404, "not_found"),
        ("/v1/clusters/4", 404, "not_found"),
        ("/v1/clusters/x", 422, "bad_value"),
        ("/v1/predict", 405, "method_not_allowed"),
    ] {
        let reply = client.get(path);
        assert_eq!(reply.status, status, "{path}: {}", reply.text());
        assert_eq!(reply.error_type(), kind, "{path}");
    }
    assert!(
        client
            .get("/v1/predict")
            .header("allow")
            .unwrap()
            .contains("POST")
    );
    let reply = client.post("/v1/predict", &json!({"text": "a", "model": "none"}));
    assert_eq!((reply.status, &reply.error_type()[..]), (404, "not_found"));
    assert_eq!(client.send("DELETE", "/v1/models", "", b"").status, 405);
    assert_eq!(client.send("POST", "/", "", b"").status, 405);
    for kind in ["", "content-type: text/plain\r\n"] {
        let reply = client.send("POST", "/v1/predict", kind, b"{\"text\": \"a\"}");
        assert_eq!(
            (reply.status, &reply.error_type()[..]),
            (415, "unsupported_media_type")
        );
    }
    check_alive(&running);
}

#[test]
fn bodies_beyond_the_limit_get_413_whether_they_say_so_or_not() {
    let running = Running::new();
    let chunk = vec![b'x'; 1 << 20];
    let mut client = running.client();
    let head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    client.write(format!("{head}content-length: {}\r\n\r\n", 100 << 20).as_bytes());
    for _ in 0..100 {
        client.write(&chunk);
    }
    let reply = client.read("POST");
    assert_eq!((reply.status, &reply.error_type()[..]), (413, "too_large"));

    let mut client = running.client();
    client.write(format!("{head}transfer-encoding: chunked\r\n\r\n").as_bytes());
    for _ in 0..32 {
        client.write(b"100000\r\n");
        client.write(&chunk);
        client.write(b"\r\n");
    }
    client.write(b"0\r\n\r\n");
    assert_eq!(client.read("POST").status, 413);
    check_alive(&running);
}

#[test]
fn texts_beyond_the_limits_get_422() {
    let running = Running::with(|options| {
        (options.max_texts, options.max_text_bytes) = (3, 10);
    });
    let mut client = running.client();
    let mut status = |texts: &[&str]| client.post("/v1/predict", &json!({"texts": texts})).status;
    assert_eq!(status(&["a", "b", "c"]), 200);
    assert_eq!(status(&["a", "b", "c", "d"]), 422);
    assert_eq!(status(&["0123456789"]), 200);
    assert_eq!(status(&["0123456789a"]), 422);
    assert_eq!(
        client
            .post("/v1/explain", &json!({"text": "0123456789a"}))
            .status,
        422
    );
}

#[test]
fn odd_texts_are_answered() {
    let running = Running::new();
    let mut client = running.client();
    for text in [
        "",
        " ",
        "\0",
        "zzz",
        "\u{202e}apple",
        "🍎🍐",
        &"apple ".repeat(100_000),
    ] {
        let reply = client.post("/v1/predict", &json!({"text": text}));
        assert_eq!(reply.status, 200);
        assert_eq!(reply.json()["labels"], expected(&running.model, text, 10));
        assert_eq!(
            client.post("/v1/explain", &json!({"text": text})).status,
            200
        );
    }
}

#[test]
fn slow_and_silent_clients_are_cut_off() {
    let running = Running::with(|options| {
        options.timeout = Duration::from_millis(100);
        options.idle_timeout = Duration::from_millis(100);
    });
    // Each of these would wait for ever if the service did not hang up.
    let mut silent = running.client();
    let mut slow_head = running.client();
    slow_head.write(b"POST /v1/predict HTTP/1.1\r\nhost: lo");
    let mut slow_body = running.client();
    slow_body.write(
        b"POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n",
    );
    slow_body.write(b"content-length: 100\r\n\r\n{\"text\": ");
    let reply = slow_body.read("POST");
    assert_eq!((reply.status, &reply.error_type()[..]), (408, "slow_body"));
    slow_body.read_to_end();
    silent.read_to_end();
    slow_head.read_to_end();
}

#[test]
fn a_client_that_does_not_take_its_answer_is_cut_off() {
    let mut running = Running::with(|options| {
        options.idle_timeout = Duration::from_millis(100);
    });
    let texts: Vec<String> = (0..1000).map(tiny::text).collect();
    let body = json!({"texts": texts, "k": 8}).to_string();
    let mut client = running.client();
    let head = format!(
        "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {}\r\n\r\n",
        body.len()
    );
    // More answers than the buffers of the system hold.
    for _ in 0..40 {
        if client
            .try_write(&[head.as_bytes(), body.as_bytes()].concat())
            .is_err()
        {
            break;
        }
    }
    // It would go on waiting for the client otherwise.
    running.stop();
}

#[test]
fn clients_that_take_nothing_make_room_for_the_answers_of_others() {
    let running = Running::with(|options| {
        options.max_answer_bytes = 1 << 20;
        options.idle_timeout = Duration::from_secs(3600);
    });
    let texts: Vec<String> = (0..1000).map(tiny::text).collect();
    let body = json!({"texts": texts, "k": 8}).to_string();
    let head = format!(
        "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\n{JSON}content-length: {}\r\n\r\n",
        body.len()
    );
    let request = [head.as_bytes(), body.as_bytes()].concat();
    let mut honest = running.client();
    honest.write(&request);
    let expected = honest.read("POST");
    assert_eq!(expected.status, 200);
    assert!(1 << 19 < expected.body.len(), "two do not fit");
    // It does not read, so at some time the service does not read what it writes either.
    let (mut greedy, again) = (running.client(), request.clone());
    let (ended, end) = mpsc::channel();
    std::thread::spawn(move || {
        // More than the buffers of the system hold.
        let n_written = (0..2000).take_while(|_| greedy.try_write(&again).is_ok());
        let _ = ended.send(n_written.count());
    });
    let mut n_answered = || {
        std::thread::sleep(Duration::from_millis(500));
        let metrics = honest.get("/metrics");
        let name = "elias_requests_total{endpoint=\"/v1/predict\",status=\"200\"} ";
        let line = metrics
            .text()
            .lines()
            .find_map(|line| line.strip_prefix(name));
        line.unwrap().to_owned()
    };
    while n_answered() != n_answered() {}
    // It is cut off long before its time to be idle is over, and meanwhile others are told to come again.
    let mut until_end = || {
        honest.write(&request);
        assert!([200, 429].contains(&honest.read("POST").status));
        end.recv_timeout(Duration::from_millis(100)).ok()
    };
    let n_written = (0..600).find_map(|_| until_end());
    assert!(n_written.expect("it is cut off") < 2000);
    honest.write(&request);
    assert_eq!(honest.read("POST").body, expected.body);
}

#[test]
fn bodies_in_a_coding_that_is_not_known_are_refused() {
    let running = Running::new();
    let chunks = "10\r\n{\"text\": \"apple\"\r\n1\r\n}\r\n0\r\n\r\n";
    for (coding, status) in [
        ("transfer-encoding: chunked\r\n", 200),
        ("transfer-encoding: Chunked\r\n", 200),
        ("transfer-encoding: gzip, chunked\r\n", 501),
        (
            "transfer-encoding: gzip\r\ntransfer-encoding: chunked\r\n",
            501,
        ),
        ("transfer-encoding: chunked, chunked\r\n", 501),
        (
            "transfer-encoding: chunked\r\ncontent-encoding: gzip\r\n",
            415,
        ),
        (
            "transfer-encoding: chunked\r\ncontent-encoding: identity\r\n",
            200,
        ),
    ] {
        let mut client = running.client();
        let head = format!("POST /v1/predict HTTP/1.1\r\nhost: localhost\r\n{JSON}{coding}\r\n");
        client.write(format!("{head}{chunks}").as_bytes());
        assert_eq!(client.read("POST").status, status, "{coding}");
    }
    check_alive(&running);
}

#[test]
fn idle_connections_make_room_for_new_ones() {
    let running = Running::with(|options| options.max_connections = 8);
    let mut idle: Vec<Client> = (0..50).map(|_| running.client()).collect();
    check_alive(&running);
    // All but the last eight at most were closed.
    for client in &mut idle[..40] {
        assert_eq!(client.read_to_end(), b"");
    }
    check_alive(&running);
}

#[test]
fn what_is_not_http_ends_the_connection_alone() {
    let running = Running::new();
    for garbage in [
        &b"\x16\x03\x01\x02\x00\x01\x00\x01\xfc\x03\x03"[..],
        b"GET\r\n\r\n",
        &[0; 100_000],
    ] {
        let mut client = running.client();
        let _ = client.try_write(garbage);
        let _ = client.try_write(b"\r\n\r\n");
        client.read_to_end();
    }
    let mut long = running.client();
    let head = format!("GET /{} HTTP/1.1\r\n", "a".repeat(1 << 20));
    let _ = long.try_write(head.as_bytes());
    long.read_to_end();
    check_alive(&running);
}
