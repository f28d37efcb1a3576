//! `elias serve` at capacity for a long time, among hostile clients, slow readers and models that are replaced.
//!
//! ```sh
//! cargo run --release -p elias-benchmarks --bin soak -- target/release/elias MODEL OTHER_MODEL TEXTS.jsonl --seconds 3600
//! ```
//!
//! Every answer is compared with the library's; memory is sampled, and what honest clients and `/health` wait is told
//! minute by minute. Copies of both models go into a temporary directory. Linux only: memory is from `/proc`.

use std::fs;
use std::io::{BufReader, Read, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use elias::Predictor;
use elias_benchmarks::service::{Exchange, Server, copy, post, quantile, read_answer, read_texts};

const N_HONEST: usize = 8;
const N_HOSTILE: usize = 4;
const N_SLOW: usize = 8;
/// Time between two swaps.
const SWAP_PAUSE: Duration = Duration::from_secs(5);

/// Counts so far.
#[derive(Default)]
struct Tally {
    n_right: AtomicUsize,
    n_wrong: AtomicUsize,
    /// Honest refusals: status 429.
    n_refused: AtomicUsize,
    n_lost: AtomicUsize,
    n_hostile: AtomicUsize,
    n_slow: AtomicUsize,
    n_swaps: AtomicUsize,
    n_broken: AtomicUsize,
    latencies: Mutex<Vec<Duration>>,
    health: Mutex<Vec<Duration>>,
    memory: Mutex<Vec<u64>>,
}

struct Soak<'a> {
    server: &'a Server,
    address: SocketAddr,
    exchanges: &'a [Exchange],
    large: &'a [u8],
    tally: Tally,
    is_done: AtomicBool,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [binary, model, other, texts, option, seconds] = &arguments[..] else {
        panic!("expected ELIAS MODEL OTHER_MODEL TEXTS.jsonl --seconds N");
    };
    assert_eq!(option, "--seconds");
    let seconds: u64 = seconds.parse().expect("a number of seconds");
    let place = std::env::temp_dir().join(format!("elias-soak-{}", std::process::id()));
    let directories = ["current", "next", "aside"].map(|name| place.join(name));
    copy(Path::new(model), &directories[0]);
    copy(Path::new(other), &directories[1]);
    let predictors = [model, other].map(|path| Predictor::load(path).unwrap());
    let texts = read_texts(texts);
    let exchanges: Vec<Exchange> = texts
        .iter()
        .map(|text| Exchange::new(&predictors, text))
        .collect();
    let many: Vec<&String> = texts.iter().cycle().take(1000).collect();
    let large = post(
        serde_json::json!({"texts": many, "k": 100})
            .to_string()
            .as_bytes(),
    );
    let server = Server::start(binary, &directories[0], &["--idle-timeout", "10"]);
    let soak = Soak {
        server: &server,
        address: server.address,
        exchanges: &exchanges,
        large: &large,
        tally: Tally::default(),
        is_done: AtomicBool::new(false),
    };
    let started = Instant::now();
    std::thread::scope(|scope| {
        let soak = &soak;
        (0..N_HONEST).for_each(|number| drop(scope.spawn(move || soak.ask(number * 97))));
        (0..N_HOSTILE).for_each(|number| drop(scope.spawn(move || soak.harm(number))));
        (0..N_SLOW).for_each(|number| drop(scope.spawn(move || soak.dawdle(number))));
        scope.spawn(|| soak.swap(&directories));
        scope.spawn(|| soak.watch());
        let minutes = (1..)
            .map(|minute| 60 * minute)
            .take_while(|&end| end < seconds);
        for end in minutes.chain([seconds]) {
            std::thread::sleep(Duration::from_secs(end).saturating_sub(started.elapsed()));
            soak.tell(end);
        }
        soak.is_done.store(true, Ordering::Relaxed);
    });
    soak.conclude();
    drop(soak);
    println!("end: {}", server.stop());
    let _ = fs::remove_dir_all(&place);
}

impl Soak<'_> {
    fn goes_on(&self) -> bool {
        !self.is_done.load(Ordering::Relaxed)
    }

    fn connect(&self) -> Option<BufReader<TcpStream>> {
        let stream = TcpStream::connect(self.address).ok()?;
        stream.set_nodelay(true).ok()?;
        stream
            .set_read_timeout(Some(Duration::from_secs(40)))
            .ok()?;
        Some(BufReader::new(stream))
    }

    /// Asks for one text after the other, and compares every answer.
    fn ask(&self, first: usize) {
        let (tally, mut body, mut number) = (&self.tally, Vec::new(), first);
        while self.goes_on() {
            let Some(mut stream) = self.connect() else {
                tally.n_lost.fetch_add(1, Ordering::Relaxed);
                continue;
            };
            while self.goes_on() {
                let exchange = &self.exchanges[number % self.exchanges.len()];
                number += 1;
                let asked = Instant::now();
                let sent = stream.get_mut().write_all(&exchange.request);
                let status = sent.map_or(0, |()| read_answer(&mut stream, &mut body));
                let counter = match status {
                    200 if exchange.answers.contains(&body) => {
                        tally.latencies.lock().unwrap().push(asked.elapsed());
                        &tally.n_right
                    }
                    200 => &tally.n_wrong,
                    429 | 503 => &tally.n_refused,
                    _ => &tally.n_lost,
                };
                counter.fetch_add(1, Ordering::Relaxed);
                if ![200, 429].contains(&status) {
                    break;
                }
            }
        }
    }

    /// Sends what nobody should.
    fn harm(&self, first: usize) {
        let letters = || b'a'..=b'z';
        let keys = letters().flat_map(|a| letters().map(move |b| [a, b]));
        let keys = keys.flat_map(|[a, b]| letters().map(move |c| [a, b, c, b'&']));
        let keys = String::from_utf8(keys.take(15_000).flatten().collect()).unwrap();
        let json =
            "POST /v1/predict HTTP/1.1\r\nHost: localhost\r\nContent-Type: application/json\r\n";
        let deep = "[".repeat(50_000);
        let harms: Vec<Vec<u8>> = [
            format!("GET /v1/labels?{keys} HTTP/1.1\r\nHost: localhost\r\n\r\n"),
            format!("{json}Content-Length: 50000\r\n\r\n{deep}"),
            format!("{json}Content-Length: 100\r\n\r\n{{\"text\": \"never"),
            format!("{json}Content-Length: 999999999999\r\n\r\n"),
            format!("{json}Transfer-Encoding: gzip, chunked\r\n\r\n0\r\n\r\n"),
            format!(
                "{json}Transfer-Encoding: chunked\r\nContent-Length: 3\r\n\r\nffffffffffffffff\r\n"
            ),
            "GET /v1/limits HTTP/1.1\r\nHost: evil.example\r\n\r\n".into(),
            "GET /v1/limits HTTP/1.1\r\n\r\n".into(),
            format!("GET /{} HTTP/1.1\r\n", "a".repeat(100_000)),
            "GET /health HTTP/1.1\r\nHost: lo".into(),
            "\u{16}\u{3}\u{1}\0\0\0\0\r\n\r\n".into(),
            format!(
                "GET /health HTTP/1.1\r\nHost: localhost\r\n{}\r\n",
                "X: y\r\n".repeat(5000)
            ),
        ]
        .map(String::into_bytes)
        .into();
        let mut number = first;
        while self.goes_on() {
            let harm = &harms[number % harms.len()];
            number += 1;
            if let Ok(mut stream) = TcpStream::connect(self.address) {
                let _ = stream.set_read_timeout(Some(Duration::from_millis(500)));
                let _ = stream.write_all(harm);
                let _ = stream.read(&mut [0; 4096]);
            }
            self.tally.n_hostile.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Asks for much, and takes little or nothing of it.
    fn dawdle(&self, number: usize) {
        while self.goes_on() {
            let Ok(mut stream) = TcpStream::connect(self.address) else {
                continue;
            };
            let _ = stream.set_write_timeout(Some(Duration::from_secs(5)));
            for _ in 0..4 {
                let _ = stream.write_all(self.large);
            }
            let since = Instant::now();
            while self.goes_on() && since.elapsed().as_secs() < 5 + number as u64 {
                std::thread::sleep(Duration::from_millis(200));
                if number.is_multiple_of(2) && stream.read(&mut [0; 512]).unwrap_or(0) == 0 {
                    break;
                }
            }
            self.tally.n_slow.fetch_add(1, Ordering::Relaxed);
        }
    }

    /// Replaces the model by the other one; now and then by a broken one, which changes nothing.
    fn swap(&self, [current, next, aside]: &[PathBuf; 3]) {
        while self.goes_on() {
            std::thread::sleep(SWAP_PAUSE);
            fs::rename(current, aside).unwrap();
            fs::rename(next, current).unwrap();
            fs::rename(aside, next).unwrap();
            self.server.signal("-HUP");
            let n_swaps = self.tally.n_swaps.fetch_add(1, Ordering::Relaxed);
            if n_swaps % 4 == 3 {
                std::thread::sleep(SWAP_PAUSE);
                let manifest = current.join("manifest.json");
                let content = fs::read(&manifest).unwrap();
                fs::write(&manifest, &content[..content.len() / 2]).unwrap();
                self.server.signal("-HUP");
                std::thread::sleep(Duration::from_secs(2));
                fs::write(&manifest, content).unwrap();
                self.tally.n_broken.fetch_add(1, Ordering::Relaxed);
            }
        }
    }

    /// Samples memory, and how long `/health` takes over a connection of its own.
    fn watch(&self) {
        let mut since_sample = Instant::now();
        while self.goes_on() {
            let asked = Instant::now();
            let answered = self.connect().and_then(|mut stream| {
                let request =
                    b"GET /health HTTP/1.1\r\nHost: localhost\r\nConnection: close\r\n\r\n";
                stream.get_mut().write_all(request).ok()?;
                (read_answer(&mut stream, &mut Vec::new()) == 200).then_some(())
            });
            // What is not answered counts as a minute.
            let time = answered.map_or(Duration::from_secs(60), |()| asked.elapsed());
            self.tally.health.lock().unwrap().push(time);
            if 1 <= since_sample.elapsed().as_secs() {
                since_sample = Instant::now();
                self.tally.memory.lock().unwrap().push(self.server.memory());
            }
            std::thread::sleep(Duration::from_millis(100));
        }
    }

    /// One line about everything so far.
    fn tell(&self, seconds: u64) {
        let tally = &self.tally;
        let sorted = |times: &Mutex<Vec<Duration>>| {
            let mut times = times.lock().unwrap().clone();
            times.sort_unstable();
            times
        };
        let (latencies, health) = (sorted(&tally.latencies), sorted(&tally.health));
        let of = |counter: &AtomicUsize| counter.load(Ordering::Relaxed);
        let memory = tally.memory.lock().unwrap().last().copied().unwrap_or(0);
        println!(
            "{seconds} s: {} right ({:.0} per s), {} wrong, {} refused, {} lost; p50 {:.2} ms, p99 {:.2} ms; \
             health p99 {:.1} ms, worst {:.1} ms of {}; {} hostile, {} slow, {} swaps, {} broken; memory {} MB",
            of(&tally.n_right),
            of(&tally.n_right) as f64 / seconds.max(1) as f64,
            of(&tally.n_wrong),
            of(&tally.n_refused),
            of(&tally.n_lost),
            quantile(&latencies, 0.5),
            quantile(&latencies, 0.99),
            quantile(&health, 0.99),
            quantile(&health, 1.0),
            health.len(),
            of(&tally.n_hostile),
            of(&tally.n_slow),
            of(&tally.n_swaps),
            of(&tally.n_broken),
            memory >> 20
        );
    }

    /// Prints the course of the memory, and the counts of the service itself.
    fn conclude(&self) {
        let memory = self.tally.memory.lock().unwrap();
        let (first, second) = memory.split_at(memory.len() / 2);
        let mean = |part: &[u64]| part.iter().sum::<u64>() as f64 / part.len().max(1) as f64;
        println!(
            "memory: peak {} MB, mean of the first half {:.0} MB, of the second {:.0} MB",
            memory.iter().max().unwrap_or(&0) >> 20,
            mean(first) / 1048576.0,
            mean(second) / 1048576.0
        );
        println!(
            "overdue jobs {}, dropped log lines {}, loads {}",
            self.server.metric("elias_overdue_jobs_total "),
            self.server.metric("elias_dropped_log_lines_total "),
            self.server.n_loads()
        );
    }
}
