//! Counters and histograms in the text format of Prometheus.

use std::sync::atomic::AtomicU64;
use std::time::Duration;

use prometheus_client::encoding::EncodeLabelSet;
use prometheus_client::encoding::text::encode;
use prometheus_client::metrics::counter::Counter;
use prometheus_client::metrics::family::Family;
use prometheus_client::metrics::gauge::Gauge;
use prometheus_client::metrics::histogram::Histogram;
use prometheus_client::registry::Registry;

use crate::memory;

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct RequestLabels {
    endpoint: String,
    status: u16,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct EndpointLabels {
    endpoint: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct ModelLabels {
    model: String,
}

#[derive(Clone, Debug, PartialEq, Eq, Hash, EncodeLabelSet)]
struct LoadLabels {
    model: String,
    result: &'static str,
}

/// Everything that is measured.
pub(crate) struct Metrics {
    registry: Registry,
    requests: Family<RequestLabels, Counter>,
    latencies: Family<EndpointLabels, Histogram, fn() -> Histogram>,
    queue: Gauge,
    connections: Gauge,
    batches: Histogram,
    loads: Family<LoadLabels, Counter>,
    load_seconds: Family<ModelLabels, Gauge<f64, AtomicU64>>,
    memory: Gauge,
    overdue: Counter,
    corrections: Family<ModelLabels, Counter>,
    learn_seconds: Histogram,
    dropped_lines: Counter,
}

/// From 0.1 ms to 26 s, each bound twice the one before.
fn latency_histogram() -> Histogram {
    Histogram::new((0..19).map(|power| 1e-4 * f64::from(1 << power)))
}

impl Metrics {
    pub(crate) fn new() -> Self {
        let mut metrics = Metrics {
            registry: Registry::with_prefix("elias"),
            requests: Family::default(),
            latencies: Family::new_with_constructor(latency_histogram),
            queue: Gauge::default(),
            connections: Gauge::default(),
            batches: Histogram::new([1.0, 2.0, 4.0, 8.0, 16.0, 32.0]),
            loads: Family::default(),
            load_seconds: Family::default(),
            memory: Gauge::default(),
            overdue: Counter::default(),
            corrections: Family::default(),
            learn_seconds: latency_histogram(),
            dropped_lines: Counter::default(),
        };
        let registry = &mut metrics.registry;
        let requests = metrics.requests.clone();
        registry.register("requests", "Requests by endpoint and status", requests);
        let latencies = metrics.latencies.clone();
        registry.register("request_seconds", "Time of a request", latencies);
        let queue = metrics.queue.clone();
        registry.register("queue_texts", "Texts that wait for an answer", queue);
        let connections = metrics.connections.clone();
        registry.register("connections", "Open connections", connections);
        let batches = metrics.batches.clone();
        registry.register("batch_texts", "Texts that were answered together", batches);
        let loads = metrics.loads.clone();
        registry.register("model_loads", "Versions of a model, by result", loads);
        let load_seconds = metrics.load_seconds.clone();
        registry.register("model_load_seconds", "Time of the last load", load_seconds);
        let memory = metrics.memory.clone();
        registry.register("resident_memory_bytes", "Memory of the process", memory);
        let overdue = metrics.overdue.clone();
        registry.register("overdue_jobs", "Jobs that ran on after their time", overdue);
        let corrections = metrics.corrections.clone();
        registry.register("corrections", "Corrections that were learned", corrections);
        let learn_seconds = metrics.learn_seconds.clone();
        registry.register(
            "learn_seconds",
            "Time of keeping what waits together and replacing the model",
            learn_seconds,
        );
        let dropped = metrics.dropped_lines.clone();
        registry.register("dropped_log_lines", "Log lines that were dropped", dropped);
        metrics
    }

    pub(crate) fn observe_request(&self, endpoint: &str, status: u16, time: Duration) {
        let endpoint = endpoint.to_owned();
        let labels = EndpointLabels {
            endpoint: endpoint.clone(),
        };
        let latency = self.latencies.get_or_create(&labels);
        latency.observe(time.as_secs_f64());
        drop(latency);
        let labels = RequestLabels { endpoint, status };
        self.requests.get_or_create(&labels).inc();
    }

    pub(crate) fn set_queue(&self, n_texts: usize) {
        self.queue.set(n_texts as i64);
    }

    pub(crate) fn set_connections(&self, n_connections: usize) {
        self.connections.set(n_connections as i64);
    }

    pub(crate) fn observe_batch(&self, n_texts: usize) {
        self.batches.observe(n_texts as f64);
    }

    pub(crate) fn observe_load(&self, model: &str, time: Duration) {
        let model = model.to_owned();
        let labels = ModelLabels {
            model: model.clone(),
        };
        let seconds = self.load_seconds.get_or_create(&labels);
        seconds.set(time.as_secs_f64());
        drop(seconds);
        let result = "loaded";
        self.loads
            .get_or_create(&LoadLabels { model, result })
            .inc();
    }

    pub(crate) fn count_failed_load(&self, model: &str) {
        let (model, result) = (model.to_owned(), "failed");
        self.loads
            .get_or_create(&LoadLabels { model, result })
            .inc();
    }

    pub(crate) fn observe_learned(&self, model: &str, n_corrections: usize, time: Duration) {
        let model = model.to_owned();
        let count = self.corrections.get_or_create(&ModelLabels { model });
        count.inc_by(n_corrections as u64);
        self.learn_seconds.observe(time.as_secs_f64());
    }

    pub(crate) fn count_overdue(&self) {
        self.overdue.inc();
    }

    /// Everything as text, with the number of log lines that were dropped.
    pub(crate) fn text(&self, n_dropped_lines: u64) -> String {
        let n_known = self.dropped_lines.get();
        self.dropped_lines
            .inc_by(n_dropped_lines.saturating_sub(n_known));
        if let Some(n_bytes) = memory::resident() {
            self.memory.set(n_bytes as i64);
        }
        let mut text = String::new();
        // Writing into a string does not fail.
        let _ = encode(&mut text, &self.registry);
        text
    }
}
