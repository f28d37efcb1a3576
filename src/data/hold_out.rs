//! Choosing points to hold out of training without taking any label's last training points.

use crate::config::HoldOutConfig;
use crate::matrix::CsrMatrix;
use crate::random::Random;

/// Which points train and which are held out; both ascending, together all points.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HoldOut {
    /// Points to train on.
    pub train: Vec<usize>,
    /// Points to calibrate on.
    pub held_out: Vec<usize>,
}

impl HoldOut {
    /// Visits the points of `labels` (N×L) in random order and holds out each whose labels can all spare it, until
    /// min(`n_points`, `max_share`·N) are held out or none is left.
    ///
    /// Every label keeps `min_points_per_label` training points, or all it has. Points without a label always
    /// train: nothing can be calibrated on them. The same seed gives the same points.
    pub fn choose(labels: &CsrMatrix, config: &HoldOutConfig, seed: u64) -> HoldOut {
        let n_points = labels.n_rows();
        let share = (f64::from(config.max_share) * n_points as f64) as usize;
        let wanted = config.n_points.min(share);
        let mut n_training = vec![0usize; labels.n_cols()];
        for &label in labels.indices() {
            n_training[label as usize] += 1;
        }

        let mut order: Vec<usize> = (0..n_points).collect();
        Random::new(seed, "hold-out", 0).shuffle(&mut order);
        let mut is_held_out = vec![false; n_points];
        let mut n_held_out = 0;
        for point_idx in order {
            if n_held_out == wanted {
                break;
            }
            let of_point = labels.row(point_idx).0;
            let can_spare = |label: &u32| config.min_points_per_label < n_training[*label as usize];
            if of_point.is_empty() || !of_point.iter().all(can_spare) {
                continue;
            }
            for &label in of_point {
                n_training[label as usize] -= 1;
            }
            is_held_out[point_idx] = true;
            n_held_out += 1;
        }
        let (held_out, train) = (0..n_points).partition(|&point_idx| is_held_out[point_idx]);
        HoldOut { train, held_out }
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::CsrBuilder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn no_label_falls_below_its_minimum_and_no_point_is_lost(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..15, 0..4), 0..120),
            n_points in 0usize..40, min_points_per_label in 1usize..4, seed in any::<u64>(),
        ) {
            let mut builder = CsrBuilder::default();
            for row in &rows {
                builder.push_row(row.iter().map(|&label| (label, 1.0)));
            }
            let labels = builder.finish(15).unwrap();
            let config = HoldOutConfig { n_points, max_share: 0.3, min_points_per_label, ..HoldOutConfig::default() };
            let chosen = HoldOut::choose(&labels, &config, seed);
            prop_assert_eq!(&chosen, &HoldOut::choose(&labels, &config, seed));

            let mut all = [chosen.train.clone(), chosen.held_out.clone()].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows.len()).collect::<Vec<_>>());
            prop_assert!(chosen.held_out.len() <= n_points.min((0.3f32 * rows.len() as f32).ceil() as usize));
            let count = |points: &[usize], label| points.iter().filter(|&&point| rows[point].contains(&label)).count();
            for label in 0..15 {
                let (kept, given) = (count(&chosen.train, label), count(&chosen.held_out, label));
                prop_assert!(min_points_per_label.min(kept + given) <= kept);
            }
        }
    }

    #[test]
    fn all_that_is_wanted_is_held_out_where_labels_can_spare_it() {
        let mut builder = CsrBuilder::default();
        (0..1000u32).for_each(|point| builder.push_row([(point % 10, 1.0)]));
        let labels = builder.finish(10).unwrap();
        let choose = |n_points, seed| {
            let config = HoldOutConfig {
                n_points,
                ..HoldOutConfig::default()
            };
            HoldOut::choose(&labels, &config, seed).held_out
        };
        assert_eq!(choose(5000, 1).len(), 100);
        assert_eq!(choose(30, 1).len(), 30);
        assert_ne!(choose(30, 1), choose(30, 2));
    }
}
