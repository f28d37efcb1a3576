//! Quality as a user meets it: answers of at least a threshold, labels one by one, and texts that occur more than once.

use std::collections::HashMap;

use serde::{Deserialize, Serialize};

use crate::data::{Dataset, Texts};
use crate::ids::Scored;
use crate::matrix::CsrMatrix;
use crate::metrics::{AtThreshold, FilterPairs, ThresholdsBuilder};
use crate::predict::Predictor;

/// The quality of sets of answers instead of rankings.
#[derive(Clone, Debug, PartialEq, Serialize, Deserialize)]
pub(crate) struct ThresholdQuality {
    /// At 0.05, 0.10, …, 0.95.
    pub curve: Vec<AtThreshold>,
    /// At the threshold of the highest F1.
    pub best: AtThreshold,
    /// Precision and recall at that threshold by label, in percent, of labels that are true of a point or answered.
    pub labels: Vec<(u32, Option<f64>, Option<f64>)>,
}

/// Answers of the last stage of a model by their probabilities; by their scores where there are none.
///
/// None where scores are not between 0 and 1.
pub(crate) fn threshold_quality(
    predictor: &Predictor,
    truth: &CsrMatrix,
    rankings: &[Vec<Scored>],
) -> Option<ThresholdQuality> {
    let mut builder = ThresholdsBuilder::new(None, FilterPairs::default());
    for (point_idx, ranking) in rankings.iter().enumerate() {
        let value = |score| predictor.probability(score).unwrap_or(score);
        builder.push(truth.row(point_idx).0, ranking, value);
    }
    let figures = builder.finish();
    let best = figures.best?;
    let labels = figures.by_label.at_threshold().into_iter();
    Some(ThresholdQuality {
        curve: figures.by_label.curve(),
        best,
        labels: labels
            .map(|(label, precision, recall)| (label.0, precision, recall))
            .collect(),
    })
}

/// Texts of a data set that occur more than once, and points without labels.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct PartCounts {
    pub n_points: usize,
    pub n_without_labels: usize,
    /// Points whose text an earlier point has.
    pub n_repeated: usize,
}

/// Repetitions within training and test data, and between them. Texts are compared without case and spaces.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize, Deserialize)]
pub(crate) struct Repetitions {
    pub train: PartCounts,
    pub test: PartCounts,
    /// Test points whose text a training point has.
    pub n_test_in_train: usize,
    /// Those of them with the same labels there.
    pub n_with_same_labels: usize,
}

/// Counts repeated texts; None of data without texts.
pub(crate) fn repetitions(train: &Dataset, test: &Dataset) -> Option<Repetitions> {
    let (train_texts, test_texts) = (train.texts()?, test.texts()?);
    // Label names, since the two may number labels differently.
    let names = |data: &Dataset, point: usize| {
        let labels = data.labels().row(point).0.iter();
        let mut names: Vec<String> = labels
            .map(|&label| data.label_set().name(crate::ids::LabelId(label)).to_owned())
            .collect();
        names.sort_unstable();
        names
    };
    let mut first_with: HashMap<String, usize> = HashMap::new();
    let count = |data: &Dataset, texts: &Texts, seen: &mut HashMap<String, usize>| {
        let mut counts = PartCounts {
            n_points: data.n_points(),
            ..PartCounts::default()
        };
        for (point, text) in texts.iter().enumerate() {
            counts.n_without_labels += usize::from(data.labels().row(point).0.is_empty());
            let place = *seen.entry(folded(text)).or_insert(point);
            counts.n_repeated += usize::from(place != point);
        }
        counts
    };
    let train_counts = count(train, train_texts, &mut first_with);
    let test_counts = count(test, test_texts, &mut HashMap::new());
    let (mut n_test_in_train, mut n_with_same_labels) = (0, 0);
    for (point, text) in test_texts.iter().enumerate() {
        if let Some(&twin) = first_with.get(&folded(text)) {
            n_test_in_train += 1;
            n_with_same_labels += usize::from(names(train, twin) == names(test, point));
        }
    }
    Some(Repetitions {
        train: train_counts,
        test: test_counts,
        n_test_in_train,
        n_with_same_labels,
    })
}

/// A text without case and with single spaces.
fn folded(text: &str) -> String {
    let mut folded = String::with_capacity(text.len());
    for word in text.split_whitespace() {
        if !folded.is_empty() {
            folded.push(' ');
        }
        folded.extend(word.chars().flat_map(char::to_lowercase));
    }
    folded
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn repeated_texts_are_counted_within_and_between_the_parts() {
        let train = Dataset::from_texts([
            ("Red  apple", vec!["fruit"]),
            ("red apple", vec!["colour"]),
            ("blue car", vec!["vehicle"]),
            ("nothing", vec![]),
        ]);
        let test = Dataset::from_texts([
            ("RED apple ", vec!["fruit"]),
            ("blue car", vec!["colour"]),
            ("green pear", vec!["fruit"]),
            ("green pear", vec!["fruit"]),
        ]);
        let part = |n_without_labels, n_repeated| PartCounts {
            n_points: 4,
            n_without_labels,
            n_repeated,
        };
        let found = repetitions(&train, &test).unwrap();
        assert_eq!((found.train, found.test), (part(1, 1), part(0, 1)));
        // The first apple of the training data has the same label, the car another.
        assert_eq!((found.n_test_in_train, found.n_with_same_labels), (2, 1));
    }
}
