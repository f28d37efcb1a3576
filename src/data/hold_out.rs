//! Choosing points to hold out of training.
//!
//! Many labels may have one training point. Were points with such labels never held out, those that are would have
//! frequent labels alone, and be easier than what users will ask. So a label may lose its last point where all points
//! train in the end; a validation part takes none.
//!
//! Near duplicates of a held-out point make it easier than most of what users will ask; set aside, they neither
//! train nor calibrate. But some of what users will ask has near duplicates, too: a final scorer that never saw such
//! points cannot know how much to trust them. For its data they are set aside for every other point only.
//!
//! Folds divide all points instead: near duplicates of every other point are in its fold.

use super::near_duplicates::NearDuplicates;
use crate::config::{Config, Recipe};
use crate::matrix::CsrMatrix;
use crate::random::Random;

/// A split of all points into those that train, those held out and those set aside; each ascending.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct HoldOut {
    /// Points to train on.
    pub train: Vec<usize>,
    /// Points to calibrate on.
    pub held_out: Vec<usize>,
    /// Their near duplicates.
    pub set_aside: Vec<usize>,
}

/// The held-out points that have no near duplicate among the training points.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Alone {
    /// All, to measure on.
    All,
    /// Every other one, to calibrate on.
    EveryOther,
}

/// Points that must not train because others are held out, and those that must.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct HoldOutRules {
    /// Cosine from which points are near duplicates; above 1 none are.
    pub cosine: f32,
    /// The points whose near duplicates are set aside.
    pub alone: Alone,
    /// Training points that every label keeps, if it has them.
    pub points_per_label: usize,
}

impl HoldOut {
    /// Visits the points of `labels` (N×L) in random order and holds out each if all labels can do without it and those
    /// of its near duplicates among `features` (N×V) that are set aside, until min(`n_points`, a tenth of all) are
    /// held out, as many as a tenth of all are set aside, or none is left.
    ///
    /// Points with many labels can be held out less often than others. So that those held out have as many labels as
    /// the rest, each number of labels has its share of them; fewer are held out where it cannot be filled.
    ///
    /// Points without a label always train: nothing can be calibrated on them. The same seed gives the same points.
    pub(crate) fn choose(
        features: &CsrMatrix,
        labels: &CsrMatrix,
        config: &Config,
        rules: HoldOutRules,
    ) -> HoldOut {
        let n_points = labels.n_rows();
        let share = n_points / 10;
        let wanted = config.hold_out.most_points(n_points);
        let mut n_training = vec![0usize; labels.n_cols()];
        for &label in labels.indices() {
            n_training[label as usize] += 1;
        }

        let mut order: Vec<usize> = (0..n_points).collect();
        Random::new(config.train.seed, "hold-out", 0).shuffle(&mut order);
        let is_wanted = wanted > 0 && rules.cosine <= 1.0;
        let mut near = is_wanted.then(|| NearDuplicates::new(features, rules.cosine));
        let mut quotas = quotas(labels, wanted);
        let mut uses = vec![Use::Train; n_points];
        let (mut n_held_out, mut n_set_aside) = (0, 0);
        for point_idx in order {
            if n_held_out >= wanted {
                break;
            }
            let own = labels.row(point_idx).0;
            let n_labels = own.len();
            // Near duplicates are not worth looking for where the point itself cannot be held out.
            let can_lose_one = |&label: &u32| rules.points_per_label < n_training[label as usize];
            if uses[point_idx] != Use::Train
                || quotas[n_labels] == 0
                || !own.iter().all(can_lose_one)
            {
                continue;
            }
            let is_alone = rules.alone == Alone::All || n_held_out % 2 == 0;
            let mut group = match &mut near {
                Some(near) if is_alone => near.of(point_idx),
                _ => vec![point_idx],
            };
            group.retain(|&member| uses[member] == Use::Train);
            let of_group = || group.iter().flat_map(|&member| labels.row(member).0);
            of_group().for_each(|&label| n_training[label as usize] -= 1);
            let keeps_enough = |label: &u32| rules.points_per_label <= n_training[*label as usize];
            if n_set_aside + group.len() - 1 > share || !of_group().all(keeps_enough) {
                of_group().for_each(|&label| n_training[label as usize] += 1);
                continue;
            }
            group
                .iter()
                .for_each(|&member| uses[member] = Use::SetAside);
            uses[point_idx] = Use::HeldOut;
            quotas[n_labels] -= 1;
            n_held_out += 1;
            n_set_aside += group.len() - 1;
        }
        let all = |wanted| {
            (0..n_points)
                .filter(|&point| uses[point] == wanted)
                .collect()
        };
        HoldOut {
            train: all(Use::Train),
            held_out: all(Use::HeldOut),
            set_aside: all(Use::SetAside),
        }
    }

    /// Divides the labelled points of `labels` (N×L) into folds of equal size, each held out of the training of all
    /// other points. Points without a label always train.
    ///
    /// Points are dealt out in random order; near duplicates among `features` (N×V) of every other point follow it into
    /// its fold, while there is room. The same seed gives the same folds.
    pub(crate) fn folds(
        features: &CsrMatrix,
        labels: &CsrMatrix,
        config: &Config,
        n_folds: usize,
    ) -> Vec<HoldOut> {
        let cosine = Recipe::of(config).near_duplicates;
        let is_labelled = |point: &usize| !labels.row(*point).0.is_empty();
        let mut order: Vec<usize> = (0..labels.n_rows()).filter(is_labelled).collect();
        Random::new(config.train.seed, "folds", 0).shuffle(&mut order);
        let mut near = (cosine <= 1.0).then(|| NearDuplicates::new(features, cosine));
        let mut fold_of: Vec<Option<usize>> = vec![None; labels.n_rows()];
        // Sizes differ by one at most.
        let mut room: Vec<usize> = (0..n_folds)
            .map(|fold| (order.len() + n_folds - 1 - fold) / n_folds)
            .collect();
        let mut n_dealt = 0;
        for &point in &order {
            if fold_of[point].is_some() {
                continue;
            }
            let free = (0..n_folds).max_by_key(|&fold| (room[fold], n_folds - fold));
            let fold = free.expect("there are folds");
            n_dealt += 1;
            let group = match &mut near {
                Some(near) if n_dealt % 2 == 1 => near.of(point),
                _ => Vec::new(),
            };
            let is_free = |&other: &usize| other != point && is_labelled(&other);
            for member in std::iter::once(point).chain(group.into_iter().filter(is_free)) {
                if room[fold] > 0 && fold_of[member].is_none() {
                    fold_of[member] = Some(fold);
                    room[fold] -= 1;
                }
            }
        }
        let points = |is_in: &dyn Fn(Option<usize>) -> bool| -> Vec<usize> {
            let all = 0..labels.n_rows();
            all.filter(|&point| is_in(fold_of[point])).collect()
        };
        (0..n_folds)
            .map(|fold| HoldOut {
                train: points(&|of| of != Some(fold)),
                held_out: points(&|of| of == Some(fold)),
                set_aside: Vec::new(),
            })
            .collect()
    }
}

/// Number of points to hold out, by their number of labels: none of those without a label.
fn quotas(labels: &CsrMatrix, wanted: usize) -> Vec<usize> {
    let n_labels: Vec<usize> = labels
        .indptr()
        .windows(2)
        .map(|ends| ends[1] - ends[0])
        .collect();
    let mut counts = vec![0usize; n_labels.iter().max().map_or(1, |most| most + 1)];
    n_labels.iter().for_each(|&n_labels| counts[n_labels] += 1);
    counts[0] = 0;
    let n_points = counts.iter().sum::<usize>().max(1);
    let mut n_before = 0;
    let quota = |count: &usize| {
        let first = n_before * wanted / n_points;
        n_before += count;
        n_before * wanted / n_points - first
    };
    counts.iter().map(quota).collect()
}

/// The use of a point.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Use {
    Train,
    HeldOut,
    SetAside,
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::CsrBuilder;
    use proptest::prelude::*;

    fn rules(alone: Alone) -> HoldOutRules {
        HoldOutRules {
            cosine: 0.6,
            alone,
            points_per_label: 1,
        }
    }

    fn config(n_points: usize, seed: u64) -> Config {
        let mut config = Config::default();
        config.hold_out.n_points = n_points;
        config.train.seed = seed;
        config
    }

    proptest! {
        #[test]
        fn no_label_falls_below_its_minimum_and_no_point_is_lost(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..15, 0..4), 0..120),
            n_points in 0usize..20, points_per_label in 0usize..3, every_other in any::<bool>(), seed in any::<u64>(),
        ) {
            let mut builder = CsrBuilder::default();
            for row in &rows {
                builder.push_row(row.iter().map(|&label| (label, 1.0)));
            }
            let labels = builder.finish(15).unwrap();
            let features = labels.clone();
            let config = config(n_points, seed);
            let alone = if every_other { Alone::EveryOther } else { Alone::All };
            let rules = HoldOutRules { points_per_label, ..rules(alone) };
            let chosen = HoldOut::choose(&features, &labels, &config, rules);
            prop_assert_eq!(&chosen, &HoldOut::choose(&features, &labels, &config, rules));

            let mut all = [&chosen.train[..], &chosen.held_out, &chosen.set_aside].concat();
            all.sort_unstable();
            prop_assert_eq!(all, (0..rows.len()).collect::<Vec<_>>());
            prop_assert!(chosen.held_out.len() <= n_points.min(rows.len() / 10));
            let count = |points: &[usize], label| points.iter().filter(|&&point| rows[point].contains(&label)).count();
            for label in 0..15 {
                let given = count(&chosen.held_out, label) + count(&chosen.set_aside, label);
                let kept = count(&chosen.train, label);
                prop_assert!(kept >= points_per_label.min(kept + given));
            }
        }
    }

    proptest! {
        #[test]
        fn every_labelled_point_is_held_out_once_and_trains_for_every_other_fold(
            rows in prop::collection::vec(prop::collection::btree_set(0u32..15, 0..4), 0..80),
            n_folds in 2usize..7, seed in any::<u64>(),
        ) {
            let mut builder = CsrBuilder::default();
            for row in &rows {
                builder.push_row(row.iter().map(|&label| (label, 1.0)));
            }
            let labels = builder.finish(15).unwrap();
            let folds = HoldOut::folds(&labels, &labels, &config(0, seed), n_folds);
            let mut held_out: Vec<usize> = folds.iter().flat_map(|fold| fold.held_out.clone()).collect();
            held_out.sort_unstable();
            let labelled: Vec<usize> = (0..rows.len()).filter(|&row| !rows[row].is_empty()).collect();
            prop_assert_eq!(&held_out, &labelled);
            for fold in &folds {
                prop_assert!(fold.held_out.len().abs_diff(labelled.len() / n_folds) <= 1);
                let mut all = [&fold.train[..], &fold.held_out].concat();
                all.sort_unstable();
                prop_assert_eq!(all, (0..rows.len()).collect::<Vec<_>>());
            }
        }
    }

    #[test]
    fn all_that_is_wanted_is_held_out_where_labels_allow_it() {
        let mut builder = CsrBuilder::default();
        (0..1000u32).for_each(|point| builder.push_row([(point % 10, 1.0)]));
        let labels = builder.finish(10).unwrap();
        let mut builder = CsrBuilder::default();
        (0..1000u32).for_each(|point| builder.push_row([(point, 1.0)]));
        let features = builder.finish(1000).unwrap();
        let choose = |n_points, seed| {
            let config = config(n_points, seed);
            HoldOut::choose(&features, &labels, &config, rules(Alone::All)).held_out
        };
        assert_eq!(choose(5000, 1).len(), 100);
        assert_eq!(choose(30, 1).len(), 30);
        assert_ne!(choose(30, 1), choose(30, 2));
    }

    #[test]
    fn points_with_a_label_of_their_own_are_held_out_where_labels_may_lose_their_last_point() {
        // Every other point has one.
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..1000u32 {
            words.push_row([(point, 1.0)]);
            let own = if point % 2 == 0 { 10 + point } else { 5 };
            labels.push_row([(point % 5, 1.0), (own, 1.0)]);
        }
        let features = words.finish(1000).unwrap();
        let labels = labels.finish(1010).unwrap();
        let n_held_out = |points_per_label| {
            let rules = HoldOutRules {
                points_per_label,
                ..rules(Alone::All)
            };
            let chosen = HoldOut::choose(&features, &labels, &config(5000, 5), rules);
            let n_own = chosen.held_out.iter().filter(|point| *point % 2 == 0);
            (chosen.held_out.len(), n_own.count())
        };
        assert_eq!(n_held_out(1), (100, 0));
        let (n_points, n_own) = n_held_out(0);
        assert_eq!(n_points, 100);
        assert!((35..=65).contains(&n_own), "{n_own}");
    }

    #[test]
    fn points_held_out_have_as_many_labels_as_the_others() {
        // Points with three labels share a label with few points.
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..1000u32 {
            words.push_row([(point, 1.0)]);
            match point % 4 {
                0 => labels.push_row([(0, 1.0), (1, 1.0), (2 + point / 8, 1.0)]),
                _ => labels.push_row([(0, 1.0)]),
            }
        }
        let features = words.finish(1000).unwrap();
        let labels = labels.finish(200).unwrap();
        let chosen = HoldOut::choose(&features, &labels, &config(5000, 5), rules(Alone::All));
        let of_three = |point: &&usize| labels.row(**point).0.len() == 3;
        assert_eq!(chosen.held_out.len(), 100);
        assert_eq!(chosen.held_out.iter().filter(of_three).count(), 25);
    }

    #[test]
    fn near_duplicates_of_what_is_held_out_do_not_train() {
        // Points 2n and 2n + 1 share their words, points n and n + 10 their labels.
        let (mut words, mut labels) = (CsrBuilder::default(), CsrBuilder::default());
        for point in 0..200u32 {
            words.push_row([(point / 2, 1.0)]);
            labels.push_row([(point % 10, 1.0)]);
        }
        let (features, labels) = (words.finish(100).unwrap(), labels.finish(10).unwrap());
        let choose = |of| HoldOut::choose(&features, &labels, &config(5000, 3), rules(of));
        let partners =
            |held_out: &[usize]| held_out.iter().map(|point| point ^ 1).collect::<Vec<_>>();

        let all = choose(Alone::All);
        assert_eq!(all.held_out.len(), 20);
        assert_eq!(all.set_aside, partners(&all.held_out));

        let half = choose(Alone::EveryOther);
        assert_eq!(half.held_out.len(), 20);
        assert_eq!(half.set_aside.len(), 10);
        assert!(
            half.set_aside
                .iter()
                .all(|point| partners(&half.held_out).contains(point))
        );
    }
}
