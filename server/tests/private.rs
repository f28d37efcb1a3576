//! Keys, pages of other hosts, and what is never written down.

use serde_json::json;

use crate::running::Running;

const KEY: &str = "correct-horse-battery";

#[test]
fn with_a_key_only_those_who_know_it_are_answered() {
    let running = Running::with(|options| options.api_key = Some(KEY.into()));
    let mut client = running.client();
    for path in ["/v1/models", "/v1/labels", "/v1/annif/first"] {
        for header in [
            String::new(),
            format!("authorization: {KEY}\r\n"),
            format!("authorization: Basic {KEY}\r\n"),
            format!("authorization: Bearer {KEY}x\r\n"),
            format!("authorization: Bearer {}\r\n", &KEY[1..]),
            "authorization: Bearer \r\n".into(),
        ] {
            let reply = client.send("GET", path, &header, b"");
            assert_eq!(
                (reply.status, &reply.error_type()[..]),
                (401, "unauthorized")
            );
            assert_eq!(reply.header("www-authenticate"), Some("Bearer"));
        }
        for scheme in ["Bearer", "bearer"] {
            let header = format!("authorization: {scheme} {KEY}\r\n");
            assert_eq!(client.send("GET", path, &header, b"").status, 200);
        }
    }
    // The page asks for the key, so it loads without one.
    for path in [
        "/",
        "/health",
        "/ready",
        "/metrics",
        "/openapi.json",
        "/docs",
    ] {
        assert_eq!(client.get(path).status, 200, "{path}");
    }
}

#[test]
fn only_requests_for_a_name_of_this_service_are_answered() {
    let running = Running::with(|options| options.hosts = vec!["labels.example.org".into()]);
    let status = |request: &str, headers: &str| {
        let mut client = running.client();
        client.write(format!("{request} HTTP/1.1\r\n{headers}\r\n").as_bytes());
        client.read("GET").status
    };
    let port = running.address.port();
    for name in [
        "localhost",
        "LOCALHOST.:80",
        "elias.localhost",
        &format!("127.0.0.1:{port}"),
        "127.8.9.1",
        "[::1]:8080",
        "[::ffff:127.0.0.1]",
        "labels.example.org",
        "Labels.Example.org:443",
    ] {
        for path in ["/", "/health", "/v1/limits"] {
            let found = status(&format!("GET {path}"), &format!("host: {name}\r\n"));
            assert_eq!(found, 200, "{path} of {name}");
        }
    }
    for name in [
        "evil.example",
        "localhost.evil.example",
        "labels.example.org.evil.example",
        "notlocalhost",
        "192.168.0.7",
        "127.1",
        "localhost@evil.example",
        "evil.example@localhost",
    ] {
        for path in ["/", "/health", "/v1/limits", "/nothing"] {
            let found = status(&format!("GET {path}"), &format!("host: {name}\r\n"));
            assert_eq!(found, 421, "{path} of {name}");
        }
    }
    for headers in [
        "",
        "host: localhost\r\nhost: localhost\r\n",
        "host: localhost\r\nhost: evil.example\r\n",
        "host:\r\n",
        "host: a b\r\n",
        "host: \u{7f}\r\n",
    ] {
        assert_eq!(status("GET /v1/limits", headers), 400, "{headers}");
    }
    let headers = "host: localhost\r\n";
    assert_eq!(status("GET http://evil.example/v1/limits", headers), 421);
    assert_eq!(status("GET http://localhost/v1/limits", headers), 200);
    let any = Running::with(|options| options.hosts = vec!["*".into()]);
    let mut client = any.client();
    client.write(b"GET /health HTTP/1.1\r\nhost: anything.example\r\n\r\n");
    assert_eq!(client.read("GET").status, 200);
}

#[test]
fn pages_of_other_hosts_may_not_read_answers_unless_told() {
    let origin = "origin: https://page.example\r\n";
    let ask = "access-control-request-method: POST\r\naccess-control-request-headers: authorization,content-type\r\n";
    let allowed = |running: &Running, origin: &str| {
        let mut client = running.client();
        let preflight = client.send("OPTIONS", "/v1/predict", &format!("{origin}{ask}"), b"");
        let reply = client.send("GET", "/v1/limits", origin, b"");
        let header = "access-control-allow-origin";
        let of = |reply: &crate::client::Reply| reply.header(header).map(str::to_owned);
        assert_eq!(of(&preflight), of(&reply));
        of(&reply)
    };
    assert_eq!(allowed(&Running::new(), origin), None);
    let one = Running::with(|options| options.cors_origins = vec!["https://page.example".into()]);
    assert_eq!(
        allowed(&one, origin).as_deref(),
        Some("https://page.example")
    );
    assert_eq!(allowed(&one, "origin: https://other.example\r\n"), None);
    let any = Running::with(|options| options.cors_origins = vec!["*".into()]);
    assert_eq!(allowed(&any, origin).as_deref(), Some("*"));
    // Browsers ask before they send the key.
    let guarded = Running::with(|options| {
        options.cors_origins = vec!["https://page.example".into()];
        options.api_key = Some(KEY.into());
    });
    let reply = guarded
        .client()
        .send("OPTIONS", "/v1/predict", &format!("{origin}{ask}"), b"");
    assert_eq!(reply.status, 200);
}

#[test]
fn the_log_has_no_text_no_key_and_answers_have_no_path() {
    let running = Running::with(|options| {
        options.api_key = Some(KEY.into());
        options.log_requests = true;
    });
    let mut client = running.client();
    let headers = format!("authorization: Bearer {KEY}\r\ncontent-type: application/json\r\n");
    let secret = "secret-medical-history";
    let bodies = [
        json!({"text": secret}).to_string(),
        json!({"text": [secret]}).to_string(),
        json!({secret: secret}).to_string(),
        json!({"text": "a", "model": secret}).to_string(),
        format!("{{{secret}"),
    ];
    let mut replies = Vec::new();
    for body in bodies {
        for path in ["/v1/predict", "/v1/explain"] {
            replies.push(client.send("POST", path, &headers, body.as_bytes()));
        }
    }
    for path in [
        format!("/v1/labels?query={secret}"),
        format!("/v1/labels/{secret}"),
        format!("/v1/annif/{secret}"),
        format!("/{secret}"),
    ] {
        replies.push(client.send("GET", &path, &headers, b""));
    }
    replies.push(client.send(
        "POST",
        "/v1/predict",
        &format!("authorization: Bearer {secret}\r\n"),
        b"",
    ));
    replies.push(client.send(&secret.to_uppercase(), "/v1/predict", &headers, b""));
    std::fs::write(running.path("a").join("manifest.json"), "{").unwrap();
    running.service.reload();
    replies.push(client.send("GET", "/v1/models", &headers, b""));
    replies.push(client.get("/metrics"));
    let log = running.log().join("\n");
    assert!(
        log.contains("POST /v1/predict 200") && log.contains("GET /v1/labels 200"),
        "{log}"
    );
    assert!(log.contains("OTHER /v1/predict 405"), "{log}");
    for hidden in [KEY, secret] {
        assert!(!log.to_lowercase().contains(hidden), "{log}");
    }
    let directory = running.directory.path().to_str().unwrap();
    for reply in &replies {
        let body = reply.text();
        assert!(!body.contains(directory) && !body.contains(KEY), "{body}");
    }
}
