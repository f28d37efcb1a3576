//! Metrics against values computed independently (PSP equals napkinXC's at 1, 3 and 5).

use serde_json::Value;

use super::*;
use crate::data::LabelSet;
use crate::goldens;
use crate::ids::LabelId;
use crate::matrix::CsrBuilder;

fn numbers(value: &Value) -> Vec<usize> {
    (value.as_array().unwrap().iter())
        .map(|item| item.as_u64().unwrap() as usize)
        .collect()
}

#[test]
fn metrics_equal_the_golden_values() {
    for (path, golden) in goldens::of_kind("metrics") {
        let mut truth = CsrBuilder::default();
        for labels in golden["truth"].as_array().unwrap() {
            let mut labels = numbers(labels);
            labels.sort_unstable();
            truth.push_row(labels.into_iter().map(|label| (label as u32, 1.0)));
        }
        let truth = truth
            .finish(golden["n_labels"].as_u64().unwrap() as usize)
            .unwrap();
        let scored = |item: &Value| Scored {
            label: LabelId(item["label"].as_u64().unwrap() as u32),
            score: item["score"].as_f64().unwrap() as f32,
        };
        let predictions: Vec<Vec<Scored>> = golden["predictions"]
            .as_array()
            .unwrap()
            .iter()
            .map(|row| row.as_array().unwrap().iter().map(scored).collect())
            .collect();
        let frequencies = LabelFrequencies {
            counts: numbers(&golden["train_label_counts"]),
            n_points: golden["n_train_points"].as_u64().unwrap() as usize,
        };
        let weights = frequencies.inverse_propensities(Propensity {
            a: golden["propensity"]["a"].as_f64().unwrap(),
            b: golden["propensity"]["b"].as_f64().unwrap(),
        });

        let expected = golden["expected"].as_object().unwrap();
        let mut ks: Vec<usize> = expected
            .keys()
            .map(|name| name.split_once('@').unwrap().1.parse().unwrap())
            .collect();
        ks.sort_unstable();
        ks.dedup();
        let options = MetricsOptions {
            cut_offs: CutOffs::at(ks),
            inverse_propensities: Some(weights),
            filter: FilterPairs::default(),
        };
        let metrics = measure(&truth, &predictions, options);
        let named: std::collections::BTreeMap<String, f64> = metrics.iter().collect();
        for (name, value) in expected {
            let value = value.as_f64().unwrap();
            let found = *named
                .get(name)
                .unwrap_or_else(|| panic!("{name} was not computed"));
            assert!(
                (found - value).abs() <= 1e-6,
                "{}: {name} is {found}, expected {value}",
                path.display()
            );
        }
    }
}

/// The figures that scikit-learn computes for the same truth and scores; see `tests/fixtures/make_metrics.py`.
#[test]
fn metrics_equal_those_of_scikit_learn() {
    let golden: Value =
        serde_json::from_str(include_str!("../../tests/fixtures/metrics_sklearn.json")).unwrap();
    let rows = |name: &str| golden[name].as_array().unwrap().clone();
    let (truth, scores) = (rows("truth"), rows("scores"));
    let ks = [1, 3, 5, 10, 50];
    let mut metrics = MetricsBuilder::new(MetricsOptions {
        cut_offs: CutOffs::at(ks),
        ..MetricsOptions::default()
    });
    let mut thresholds = ThresholdsBuilder::new(Some(0.33), FilterPairs::default());
    for (truth, scores) in truth.iter().zip(&scores) {
        let truth: Vec<u32> = numbers(truth).iter().map(|&label| label as u32).collect();
        let scores = scores.as_array().unwrap().iter().enumerate();
        let ranking = scores.map(|(label, score)| Scored {
            label: LabelId(label as u32),
            score: score.as_f64().unwrap() as f32,
        });
        let ranking: Vec<Scored> = ranking.collect();
        metrics.push(&truth, &ranking);
        thresholds.push(&truth, &ranking, |score| score);
    }
    let is_close = |found: f64, expected: &Value| {
        (found - expected.as_f64().unwrap()).abs() < 1e-4 // Scores are compared as f32 there.
    };
    let named: std::collections::BTreeMap<_, _> = metrics.finish(50).iter().collect();
    let expected = golden["expected"].as_object().unwrap();
    assert_eq!(named.len(), expected.len());
    for (name, expected) in expected {
        assert!(is_close(named[name], expected), "{name}: {}", named[name]);
    }

    let found = thresholds.finish();
    for (name, found) in [
        ("at_best_threshold", found.best),
        ("at_threshold", found.asked),
    ] {
        let found = serde_json::to_value(found.unwrap()).unwrap();
        for (key, expected) in golden[name].as_object().unwrap() {
            assert!(
                is_close(found[key].as_f64().unwrap(), expected),
                "{name}: {found}"
            );
        }
    }
    let names: LabelSet = (0..60).map(|label| label.to_string()).collect();
    let figures = found.by_label.figures(&names);
    let expected = rows("by_label");
    assert_eq!(figures.len(), expected.len());
    for (label, (found, expected)) in figures.iter().zip(&expected).enumerate() {
        assert_eq!(found.label, label.to_string());
        assert_eq!(u64::from(found.support), expected[3].as_u64().unwrap());
        let figures = [found.precision, found.recall, found.f1];
        let firsts = [found.precision_at_5, found.recall_at_5];
        for (place, found) in [0, 1, 2, 4, 5]
            .into_iter()
            .zip(figures.into_iter().chain(firsts))
        {
            let expected = &expected[place];
            let is_same = found.map_or(expected.is_null(), |found| is_close(found, expected));
            assert!(
                is_same,
                "label {label}, figure {place}: {found:?}, not {expected}"
            );
        }
    }
}
