//! Models of a few texts, for tests.

use elias::{Config, Dataset, Predictor, Trainer};

/// Topics of texts; the labels have the same names behind a prefix.
pub(crate) const TOPICS: [&str; 8] = [
    "apple", "pear", "plum", "cherry", "car", "bike", "train", "boat",
];

/// A text about two topics.
pub(crate) fn text(number: usize) -> String {
    let (first, second) = (TOPICS[number % 8], TOPICS[number / 8 % 8]);
    // Words of its own, so that it is no near duplicate of another text.
    let own = [7, 11, 13].map(|step| format!("word{step}x{}", number * step % 61));
    format!("{first} of{first} about{second} {}", own.join(" "))
}

/// A model whose labels begin with `prefix`.
pub(crate) fn model(prefix: &str, seed: u64) -> Predictor {
    let point = |number: usize| {
        let (first, second) = (TOPICS[number % 8], TOPICS[number / 8 % 8]);
        let labels = vec![format!("{prefix} {first}"), format!("{prefix} {second}")];
        (text(number), labels)
    };
    let data = Dataset::from_texts((0..240).map(point));
    let config = format!(
        "train.seed = {seed}
        train.batch_size = 16
        encoder.dim = 8
        stage1.epochs = 4
        stage2.epochs = 4
        [hold_out]
        n_points = 12
        min_points = 5
        [index]
        n_clusters = 4
        beam_size = 3
        shortlist_size = 8"
    );
    let config = Config::from_toml(&config).unwrap();
    Trainer::new(config).train(&data).unwrap()
}
