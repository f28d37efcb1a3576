//! `elias serve` under load, beside the library in one run, with every answer compared with the library's.
//!
//! ```sh
//! cargo run --release -p elias-benchmarks --bin serving -- target/release/elias MODEL TEXTS.jsonl [OTHER_MODEL]
//! ```
//!
//! `TEXTS.jsonl` has a `"text"` per line. `SECONDS` is the time of each step (10), `OVERLOAD_SECONDS` that of twice the
//! capacity (60), `N_REQUESTS` how many requests the last step sends (0). With `OTHER_MODEL`, 200 swaps between the two
//! are made under load; copies of both go into a temporary directory. Linux only: times and memory are from `/proc`.

use std::fs;
use std::io::{BufReader, Write};
use std::net::{SocketAddr, TcpStream};
use std::path::Path;
use std::sync::atomic::{AtomicBool, AtomicUsize, Ordering};
use std::time::{Duration, Instant};

use elias::Predictor;
use elias_benchmarks::service::{
    Exchange, Server, TOP_K, copy, cpu, quantile, read_answer, read_texts,
};

const N_CONNECTIONS: usize = 16;

/// Outcomes of the requests of a step.
#[derive(Default)]
struct Tally {
    n_right: usize,
    n_wrong: usize,
    /// Honest refusals: status 429.
    n_refused: usize,
    n_other: usize,
    latencies: Vec<Duration>,
}

fn main() {
    let arguments: Vec<String> = std::env::args().skip(1).collect();
    let [binary, model, texts, others @ ..] = &arguments[..] else {
        panic!("expected ELIAS MODEL TEXTS.jsonl [OTHER_MODEL]");
    };
    let seconds = setting("SECONDS", 10);
    let mut models = vec![Path::new(model)];
    models.extend(others.iter().map(Path::new));
    let predictors: Vec<Predictor> = models
        .iter()
        .map(|path| Predictor::load(path).unwrap())
        .collect();
    let texts = read_texts(texts);
    let exchanges: Vec<Exchange> = texts
        .iter()
        .map(|text| Exchange::new(&predictors, text))
        .collect();
    println!("{} texts, steps of {seconds} s", texts.len());

    let server = Server::start(binary, models[0], &[]);
    let step = |pace, n_connections, seconds| {
        drive(
            server.address,
            &exchanges,
            pace,
            n_connections,
            Until::Seconds(seconds),
        )
    };
    step(None, 1, 2);
    let mut ratios = Vec::new();
    for _ in 0..3 {
        let library = library_cpu(&predictors[0], &texts, seconds);
        let before = server.cpu();
        let tally = step(None, 1, seconds);
        let service = (server.cpu() - before) / tally.n_right.max(1) as f64;
        ratios.push(service / library);
        report("one connection", &tally, seconds);
        println!(
            "  CPU per request {:.0} us, library {:.0} us, ratio {:.2}",
            1e6 * service,
            1e6 * library,
            service / library
        );
    }
    ratios.sort_by(f64::total_cmp);
    println!(
        "CPU per request, as a multiple of the library's: {:.2} (median of 3)",
        ratios[1]
    );

    let before = server.cpu();
    let tally = step(None, N_CONNECTIONS, seconds);
    report("capacity", &tally, seconds);
    println!(
        "  CPU per request {:.0} us",
        1e6 * (server.cpu() - before) / tally.n_right.max(1) as f64
    );
    let capacity = tally.n_right as f64 / seconds as f64;
    let tally = step(Some(capacity / 2.0), N_CONNECTIONS, seconds);
    report("half of capacity", &tally, seconds);
    drop(server);

    overload(binary, models[0], &exchanges, capacity);
    if let [first, second] = models[..] {
        swaps(binary, first, second, &exchanges);
    }
    let n_requests = setting("N_REQUESTS", 0);
    if n_requests > 0 {
        let server = Server::start(binary, models[0], &[]);
        let started = Instant::now();
        let until = Until::Requests(n_requests as usize);
        let tally = drive(server.address, &exchanges, None, N_CONNECTIONS, until);
        report("many requests", &tally, started.elapsed().as_secs().max(1));
        println!("  memory {} MB", server.memory() >> 20);
    }
}

/// Twice the capacity: right answers or refusals, and memory that does not grow.
fn overload(binary: &str, model: &Path, exchanges: &[Exchange], capacity: f64) {
    let seconds = setting("OVERLOAD_SECONDS", 60);
    // As many connections as keep the queue full and more.
    let server = Server::start(binary, model, &["--max-queue", "32", "--max-texts", "32"]);
    let is_done = AtomicBool::new(false);
    let (tally, memory) = std::thread::scope(|scope| {
        let watching = scope.spawn(|| {
            let mut memory = Vec::new();
            while !is_done.load(Ordering::Relaxed) {
                memory.push(server.memory());
                std::thread::sleep(Duration::from_secs(1));
            }
            memory
        });
        let until = Until::Seconds(seconds);
        let tally = drive(server.address, exchanges, Some(2.0 * capacity), 96, until);
        is_done.store(true, Ordering::Relaxed);
        (tally, watching.join().unwrap())
    });
    report("twice the capacity", &tally, seconds);
    let later = &memory[memory.len().min(60) * usize::from(memory.len() > 60)..];
    let (low, high) = (later.iter().min().unwrap(), later.iter().max().unwrap());
    println!(
        "  memory after the first minute: {} to {} MB, {:.1} % apart",
        low >> 20,
        high >> 20,
        100.0 * (*high as f64 / *low as f64 - 1.0)
    );
}

/// 200 swaps of two models under load.
fn swaps(binary: &str, first: &Path, second: &Path, exchanges: &[Exchange]) {
    let place = std::env::temp_dir().join(format!("elias-swaps-{}", std::process::id()));
    let [current, next, aside] = ["current", "next", "aside"].map(|name| place.join(name));
    copy(first, &current);
    copy(second, &next);
    let server = Server::start(binary, &current, &[]);
    let (started, is_done) = (Instant::now(), AtomicBool::new(false));
    let tally = std::thread::scope(|scope| {
        let (address, until) = (server.address, Until::Flag(&is_done));
        let load = scope.spawn(move || drive(address, exchanges, None, 4, until));
        for n_swaps in 1..=200 {
            fs::rename(&current, &aside).unwrap();
            fs::rename(&next, &current).unwrap();
            fs::rename(&aside, &next).unwrap();
            server.signal("-HUP");
            while server.n_loads() <= n_swaps {
                std::thread::sleep(Duration::from_millis(5));
            }
        }
        is_done.store(true, Ordering::Relaxed);
        load.join().unwrap()
    });
    report("200 swaps", &tally, started.elapsed().as_secs().max(1));
    println!("  memory {} MB", server.memory() >> 20);
    drop(server);
    let _ = fs::remove_dir_all(&place);
}

fn setting(name: &str, default: u64) -> u64 {
    let value = std::env::var(name).ok();
    value.map_or(default, |value| value.parse().unwrap())
}

/// CPU seconds per text of the library, on this thread.
fn library_cpu(predictor: &Predictor, texts: &[String], seconds: u64) -> f64 {
    let (started, before) = (Instant::now(), cpu("/proc/thread-self/stat"));
    let mut n_texts = 0;
    while started.elapsed().as_secs() < seconds {
        let answers = predictor.predict(&texts[n_texts % texts.len()], TOP_K);
        assert!(!answers.unwrap().is_empty());
        n_texts += 1;
    }
    (cpu("/proc/thread-self/stat") - before) / n_texts as f64
}

#[derive(Clone, Copy)]
enum Until<'a> {
    Seconds(u64),
    Requests(usize),
    Flag(&'a AtomicBool),
}

/// Sends requests over several connections, as fast as answers come or at a pace of all together per second.
fn drive(
    address: SocketAddr,
    exchanges: &[Exchange],
    pace: Option<f64>,
    n_connections: usize,
    until: Until<'_>,
) -> Tally {
    let (started, n_sent) = (Instant::now(), AtomicUsize::new(0));
    let one = |_| {
        let mut stream = BufReader::new(TcpStream::connect(address).unwrap());
        stream.get_ref().set_nodelay(true).unwrap();
        let mut tally = Tally::default();
        let mut body = Vec::new();
        loop {
            let number = n_sent.fetch_add(1, Ordering::Relaxed);
            // What is late is sent at once, and its lateness counts.
            let mut due = Instant::now();
            if let Some(pace) = pace {
                due = started + Duration::from_secs_f64(number as f64 / pace);
                std::thread::sleep(due.saturating_duration_since(Instant::now()));
            }
            let is_over = match until {
                Until::Seconds(seconds) => seconds <= started.elapsed().as_secs(),
                Until::Requests(n_requests) => n_requests <= number,
                Until::Flag(is_done) => is_done.load(Ordering::Relaxed),
            };
            if is_over {
                return tally;
            }
            let exchange = &exchanges[number % exchanges.len()];
            stream.get_mut().write_all(&exchange.request).unwrap();
            match read_answer(&mut stream, &mut body) {
                200 if exchange.answers.contains(&body) => {
                    tally.n_right += 1;
                    tally.latencies.push(due.elapsed());
                }
                200 => tally.n_wrong += 1,
                429 => tally.n_refused += 1,
                _ => tally.n_other += 1,
            }
        }
    };
    let tallies: Vec<Tally> = std::thread::scope(|scope| {
        let threads: Vec<_> = (0..n_connections)
            .map(|at| scope.spawn(move || one(at)))
            .collect();
        threads
            .into_iter()
            .map(|thread| thread.join().unwrap())
            .collect()
    });
    let mut sum = Tally::default();
    for tally in tallies {
        sum.n_right += tally.n_right;
        sum.n_wrong += tally.n_wrong;
        sum.n_refused += tally.n_refused;
        sum.n_other += tally.n_other;
        sum.latencies.extend(tally.latencies);
    }
    sum.latencies.sort_unstable();
    sum
}

fn report(step: &str, tally: &Tally, seconds: u64) {
    let at = |share: f64| quantile(&tally.latencies, share);
    let rate = tally.n_right as f64 / seconds.max(1) as f64;
    println!(
        "{step}: {} right ({rate:.0} per s), {} wrong, {} refused, {} lost; p50 {:.2} ms, p99 {:.2} ms, ratio {:.1}",
        tally.n_right,
        tally.n_wrong,
        tally.n_refused,
        tally.n_other,
        at(0.5),
        at(0.99),
        at(0.99) / at(0.5)
    );
}
