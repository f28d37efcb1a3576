//! Metrics against values computed independently (PSP equals napkinXC's at 1, 3 and 5).

use elias::data::CsrBuilder;
use elias::metrics::{FilterPairs, MetricsOptions, Propensity, evaluate, inverse_propensities};
use elias::{LabelId, Scored};
use serde_json::Value;

use crate::goldens;

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
        let weights = inverse_propensities(
            &numbers(&golden["train_label_counts"]),
            golden["n_train_points"].as_u64().unwrap() as usize,
            Propensity {
                a: golden["propensity"]["a"].as_f64().unwrap(),
                b: golden["propensity"]["b"].as_f64().unwrap(),
            },
        );

        let expected = golden["expected"].as_object().unwrap();
        let mut ks: Vec<usize> = expected
            .keys()
            .map(|name| name.split_once('@').unwrap().1.parse().unwrap())
            .collect();
        ks.sort_unstable();
        ks.dedup();
        let options = MetricsOptions {
            ks: ks.clone(),
            recall_ks: ks,
            inverse_propensities: Some(weights),
            filter: FilterPairs::default(),
        };
        let metrics = evaluate(&truth, &predictions, options);
        for (name, value) in expected {
            let value = value.as_f64().unwrap();
            let found = metrics
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
