//! Rankers that go on from earlier ones.

use super::*;

/// The weights of a label before it gets points.
fn unknown(bias: f32) -> Vec<f64> {
    let mut weights = vec![0.0; N_WORDS + N_DENSE + 1];
    weights[N_WORDS + N_DENSE] = f64::from(-1.0 / bias);
    weights
}

#[test]
fn weights_of_earlier_points_are_drawn_to_by_later_ones() {
    // Two labels are new.
    let (earlier, later) = (problem(120, 9, 1), problem(60, 11, 5));
    let go_on = |_| ControlFlow::Continue(());
    for loss in [RankerLoss::SquaredHinge, RankerLoss::Logistic] {
        let config = RankerOptions {
            bias: 0.5,
            ..exact(loss)
        };
        let before = earlier.train(&config);
        let after = before.after(&later.view(), &[0.5; 11], &config, 42, go_on);
        let after = after.unwrap().unwrap();
        for label_idx in 0..11 {
            let mut points = later.training_points(label_idx as u32, &config);
            points.iter_mut().for_each(|point| point.cost *= 0.5);
            let prior = match label_idx {
                0..9 => dense_weights(&before, label_idx, config.bias),
                _ => unknown(config.bias),
            };
            let weights = dense_weights(&after, label_idx, config.bias);
            let reached = objective_from(&prior, &points, loss, &weights);
            let least = least_objective_from(&prior, &points, loss);
            assert!(reached <= least * 1.001, "{label_idx}: {reached} {least}");
        }
    }
}

#[test]
fn labels_in_lockstep_go_on_as_each_alone_does() {
    let (earlier, later) = (problem(120, 9, 1), problem(60, 11, 5));
    let config = RankerOptions {
        use_embedding: false,
        ..exact(RankerLoss::SquaredHinge)
    };
    let go_on = |_| ControlFlow::Continue(());
    // No later point has a label of the second cluster.
    let clusters: Vec<ClusterId> = (0..11)
        .map(|label| ClusterId((label == 4).into()))
        .collect();
    let labels = later
        .labels
        .renumbered(11, |label| (label != 4).then_some(label));
    let labels = labels.unwrap();
    let view = |problem| RankerProblem {
        dense: None,
        negatives: Negatives::Clusters(&clusters[..9]),
        ..Problem::view(problem)
    };
    let before = Ranker::train(&view(&earlier), &config, 42, go_on);
    let before = before.unwrap().unwrap();
    let problem = RankerProblem {
        labels: &labels,
        negatives: Negatives::Clusters(&clusters),
        ..view(&later)
    };
    let after = before.after(&problem, &[0.5; 11], &config, 42, go_on);
    let after = after.unwrap().unwrap();
    let tree = after.clusters().unwrap();
    assert_eq!(tree.cluster_of(), clusters);
    assert_eq!(tree.weights(), before.clusters().unwrap().weights());
    assert_eq!(after.words_of(LabelId(4)), before.words_of(LabelId(4)));
    for label_idx in (0..11).filter(|&label_idx| label_idx != 4) {
        let labelled = (0..60).filter(|&row| !labels.row(row).0.is_empty());
        let points: Vec<TrainingPoint> = labelled
            .map(|row| TrainingPoint {
                features: later.word_features(row, config.bias),
                sign: match labels.row(row).0.contains(&(label_idx as u32)) {
                    true => 1.0,
                    false => -1.0,
                },
                cost: f64::from(0.5 * later.weights[row] * config.cost_positive),
            })
            .collect();
        // Without embeddings, their weights are none.
        let dense = |ranker: &Ranker| {
            let mut weights = dense_weights(ranker, label_idx, config.bias);
            weights.splice(N_WORDS..N_WORDS, [0.0; N_DENSE]);
            weights
        };
        let prior = match label_idx {
            0..9 => dense(&before),
            _ => unknown(config.bias),
        };
        let reached = objective_from(&prior, &points, config.loss, &dense(&after));
        let least = least_objective_from(&prior, &points, config.loss);
        assert!(reached <= least * 1.001, "{label_idx}: {reached} {least}");
    }
}
