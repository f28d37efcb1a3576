//! Requests while the threads that answer are busy, which only the inside can arrange.

use std::io::{Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::sync::atomic::Ordering;
use std::sync::mpsc;
use std::time::Duration;

use axum::body::Body;
use axum::http::{Request, StatusCode};
use axum::response::Response;
use elias::Query;
use http_body_util::BodyExt;
use serde_json::Value;
use tokio::net::TcpListener;
use tokio::sync::{oneshot, watch};
use tower::ServiceExt;

use crate::{ModelSource, Options, Service, router, serve};

#[path = "../tests/tiny.rs"]
mod tiny;

/// A service with one thread.
struct Fixture {
    service: Service,
    _directory: tempfile::TempDir,
}

/// Work that has not ended; it would be skipped if nobody waited for it.
struct Block(
    #[allow(dead_code)] mpsc::Sender<()>,
    #[allow(dead_code)] oneshot::Receiver<()>,
);

impl Fixture {
    fn new(change: impl FnOnce(&mut Options)) -> Self {
        let directory = tempfile::tempdir().unwrap();
        tiny::model("a", 1)
            .save(directory.path().join("a"))
            .unwrap();
        let mut options = Options {
            models: vec![ModelSource {
                name: "first".into(),
                path: directory.path().join("a"),
            }],
            threads: 1,
            ..Options::default()
        };
        change(&mut options);
        Fixture {
            service: Service::load(options).unwrap(),
            _directory: directory,
        }
    }

    /// Keeps the thread busy until the result is dropped.
    fn block(&self) -> Block {
        let (release, released) = mpsc::channel::<()>();
        let (started, has_started) = mpsc::channel();
        let blocked = self.service.queue().run(move || {
            started.send(()).unwrap();
            let _ = released.recv();
        });
        let blocked = blocked.unwrap();
        has_started.recv().unwrap();
        Block(release, blocked)
    }

    async fn ask(&self, texts: &[&str]) -> Response {
        let body = serde_json::json!({"texts": texts}).to_string();
        let request = Request::post("/v1/predict")
            .header("host", "localhost")
            .header("content-type", "application/json")
            .body(Body::from(body));
        let answered = router(&self.service).oneshot(request.unwrap()).await;
        answered.unwrap()
    }

    fn n_waiting(&self) -> String {
        let metrics = self.service.metrics().text(0);
        let mut lines = metrics.lines();
        let line = lines.find_map(|line| line.strip_prefix("elias_queue_texts "));
        line.unwrap().to_owned()
    }
}

async fn json(response: Response) -> Value {
    let body = response.into_body().collect().await.unwrap().to_bytes();
    serde_json::from_slice(&body).unwrap()
}

#[tokio::test]
async fn what_does_not_fit_into_the_queue_gets_429_and_the_rest_its_answer() {
    let fixture = Fixture::new(|options| (options.max_texts, options.max_queue) = (3, 4));
    let release = fixture.block();
    let first = fixture.ask(&["apple", "pear", "plum"]);
    let refused = async {
        while fixture.n_waiting() != "3" {
            tokio::task::yield_now().await;
        }
        let refused = fixture.ask(&["car", "bike"]).await;
        assert_eq!(refused.status(), StatusCode::TOO_MANY_REQUESTS);
        assert_eq!(refused.headers()["retry-after"], "1");
        assert_eq!(json(refused).await["error_type"], "queue_full");
        drop(release);
    };
    let (first, ()) = tokio::join!(first, refused);
    assert_eq!(first.status(), StatusCode::OK);
    assert_eq!(json(first).await["results"].as_array().unwrap().len(), 3);
    assert_eq!(fixture.ask(&["car", "bike"]).await.status(), StatusCode::OK);
    assert_eq!(fixture.n_waiting(), "0");
}

#[tokio::test]
async fn what_takes_too_long_gets_504_and_is_not_worked_on_any_more() {
    let fixture = Fixture::new(|options| options.timeout = Duration::from_millis(50));
    let release = fixture.block();
    let late = fixture.ask(&["apple"]).await;
    assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
    assert_eq!(json(late).await["error_type"], "timeout");
    // The job is still there, and is passed over.
    assert_eq!(fixture.n_waiting(), "1");
    drop(release);
    let done = fixture.service.queue().run(|| ()).unwrap();
    done.await.unwrap();
    assert_eq!(fixture.n_waiting(), "0");
}

#[tokio::test]
async fn a_panic_is_an_error_of_one_request() {
    let fixture = Fixture::new(|_| {});
    let broken = fixture.service.queue().run(|| panic!("a bug")).unwrap();
    assert!(broken.await.is_err());
    assert_eq!(fixture.ask(&["apple"]).await.status(), StatusCode::OK);
}

/// A request over a connection of its own, which waits until the queue has it.
async fn send(fixture: &Fixture, address: SocketAddr) -> TcpStream {
    let mut stream = TcpStream::connect(address).unwrap();
    let body = "{\"text\": \"apple\"}";
    let head = "POST /v1/predict HTTP/1.1\r\nhost: localhost\r\ncontent-type: application/json\r\n";
    let request = format!("{head}content-length: {}\r\n\r\n{body}", body.len());
    stream.write_all(request.as_bytes()).unwrap();
    while fixture.n_waiting() != "1" {
        tokio::task::yield_now().await;
    }
    stream
}

/// Everything that arrives until the connection is closed.
async fn read_to_end(mut stream: TcpStream) -> String {
    let reading = tokio::task::spawn_blocking(move || {
        let mut answer = String::new();
        // A reset is an end, too.
        let _ = stream.read_to_string(&mut answer);
        answer
    });
    reading.await.unwrap()
}

#[tokio::test]
async fn a_job_that_does_not_end_loses_its_thread_and_stops_nobody() {
    let fixture = Fixture::new(|options| options.timeout = Duration::from_millis(50));
    let blocked = fixture.block();
    // The only thread is busy for ever; those who ask are told so until another takes its place.
    while fixture.ask(&["apple"]).await.status() != StatusCode::OK {}
    let metrics = fixture.service.metrics().text(0);
    assert!(
        metrics.contains("elias_overdue_jobs_total 1\n"),
        "{metrics}"
    );
    // It would wait for the thread otherwise.
    drop(fixture);
    drop(blocked);
}

#[tokio::test]
async fn a_request_whose_time_is_over_is_stopped_after_the_text_that_is_being_answered() {
    let fixture = Fixture::new(|options| options.timeout = Duration::from_millis(5));
    let texts = vec!["apple pear ".repeat(1000); 1000];
    let texts: Vec<&str> = texts.iter().map(String::as_str).collect();
    let late = fixture.ask(&texts).await;
    assert_eq!(late.status(), StatusCode::GATEWAY_TIMEOUT);
    // Behind all of them, were they still answered.
    let done = fixture.service.queue().run(|| ()).unwrap();
    done.await.unwrap();
    let metrics = fixture.service.metrics().text(0);
    assert!(metrics.contains("elias_queue_texts 0\n"), "{metrics}");
}

#[tokio::test]
async fn where_all_connections_are_busy_one_can_still_ask_how_the_service_is() {
    let fixture = Fixture::new(|options| options.max_connections = 1);
    let release = fixture.block();
    let (stop, stopping) = watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve(listener, fixture.service.clone(), stopping));
    let busy = send(&fixture, address).await;
    for (path, status) in [("/health", "200"), ("/v1/limits", "503"), ("/ready", "200")] {
        let mut other = TcpStream::connect(address).unwrap();
        let request =
            format!("GET {path} HTTP/1.1\r\nhost: localhost\r\nconnection: close\r\n\r\n");
        other.write_all(request.as_bytes()).unwrap();
        let answer = read_to_end(other).await;
        assert!(
            answer.starts_with(&format!("HTTP/1.1 {status}")),
            "{answer}"
        );
    }
    stop.send_replace(true);
    drop(release);
    assert!(read_to_end(busy).await.starts_with("HTTP/1.1 200 OK\r\n"));
    serving.await.unwrap();
}

#[tokio::test]
async fn a_stopping_service_answers_what_has_begun_and_takes_nothing_new() {
    let fixture = Fixture::new(|_| {});
    let release = fixture.block();
    let (stop, stopping) = watch::channel(false);
    let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
    let address = listener.local_addr().unwrap();
    let serving = tokio::spawn(serve(listener, fixture.service.clone(), stopping));
    let waiting = send(&fixture, address).await;
    stop.send_replace(true);
    while !fixture.service.is_draining() {
        tokio::task::yield_now().await;
    }
    let ready = Request::get("/ready").header("host", "localhost");
    let ready = ready.body(Body::empty()).unwrap();
    let ready = router(&fixture.service).oneshot(ready).await.unwrap();
    assert_eq!(ready.status(), StatusCode::SERVICE_UNAVAILABLE);
    drop(release);
    let answer = read_to_end(waiting).await;
    assert!(answer.starts_with("HTTP/1.1 200 OK\r\n"), "{answer}");
    assert!(answer.contains("connection: close"), "{answer}");
    serving.await.unwrap();
    assert!(TcpStream::connect(address).is_err());
}

#[tokio::test]
async fn a_short_text_is_answered_on_the_spot_where_a_thread_is_free_and_nothing_waits() {
    let fixture = Fixture::new(|_| {});
    let queue = fixture.service.queue();
    let model = fixture.service.models().get(None).unwrap();
    let query = Query::default();
    let here = |text: &str| queue.predict_here(&model, &query, &[text.to_owned()]);
    // The thread may have to be started first.
    let answered = loop {
        match here("ripe apple") {
            Some(answered) => break answered.unwrap(),
            None => tokio::task::yield_now().await,
        }
    };
    let asked = json(fixture.ask(&["ripe apple"]).await).await;
    assert_eq!(
        // Numbers as they are written.
        serde_json::from_str::<Value>(&serde_json::to_string(&answered[0]).unwrap()).unwrap(),
        asked["results"][0]
    );
    assert!(here(&"apple ".repeat(1000)).is_none(), "a long text");
    let two = ["apple".to_owned(), "pear".to_owned()];
    assert!(queue.predict_here(&model, &query, &two).is_none());
    let release = fixture.block();
    assert!(here("ripe apple").is_none(), "the thread is busy");
    drop(release);
}

/// Places are given back, and what was queued meanwhile is answered.
#[test]
fn short_texts_on_the_spot_and_queued_ones_are_all_answered() {
    let fixture = Fixture::new(|options| (options.threads, options.max_queue) = (2, 1 << 20));
    let model = fixture.service.models().get(None).unwrap();
    let n_here = std::sync::atomic::AtomicUsize::new(0);
    std::thread::scope(|scope| {
        for _ in 0..4 {
            scope.spawn(|| {
                let queue = fixture.service.queue();
                for round in 0..500 {
                    let text = [format!("ripe apple {round}")];
                    let here = queue.predict_here(&model, &Query::default(), &text);
                    n_here.fetch_add(usize::from(here.is_some()), Ordering::Relaxed);
                    let texts = vec![text[0].clone(); 2];
                    let queued = queue.predict(&model, Query::default(), texts).unwrap();
                    for part in queued {
                        assert_eq!(part.blocking_recv().unwrap().unwrap().len(), 2);
                    }
                }
            });
        }
    });
    assert!(n_here.into_inner() > 0);
    assert_eq!(fixture.n_waiting(), "0");
}
