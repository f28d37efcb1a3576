//! Boosted trees against one candidate at a time, and on any number of threads.

use super::features::N_FEATURES;
use super::*;
use crate::candidates::table::PointFigures;
use crate::candidates::{Candidates, Column};
use crate::on_threads;
use crate::random::Random;
use proptest::prelude::*;

/// Candidates of random points whose relevance depends on margin and votes together.
fn examples(n_points: u64) -> (Examples, Vec<Features>, Vec<bool>) {
    let mut examples = Examples::default();
    let (mut all, mut relevant) = (Vec::new(), Vec::new());
    for point in 0..n_points {
        let mut random = Random::new(3, "boosted", point);
        let rows: Vec<[f32; 3]> = (0..20)
            .map(|_| [random.f32(), random.normal(), random.f32()])
            .collect();
        let column = |at: usize| rows.iter().map(|row| row[at]).collect::<Vec<f32>>();
        let features = features(
            PointFigures::default(),
            &[
                (Column::P, column(0)),
                (Column::Margin, column(1)),
                (Column::Votes, column(2)),
            ],
        );
        let is_right = |[_, margin, votes]: &[f32; 3]| *margin > 0.5 && *votes > 0.5;
        examples.push(&features, rows.iter().map(is_right), 1.0);
        relevant.extend(rows.iter().map(is_right));
        all.push(features);
    }
    (examples, all, relevant)
}

/// The features of candidates of which nothing is known but these columns.
fn features(about: PointFigures, columns: &[(Column, Vec<f32>)]) -> Features {
    let mut features = Features::default();
    features.fill(&Candidates::of_columns(about, columns));
    features
}

#[test]
fn trees_learn_from_two_columns_together_also_of_points_they_have_not_seen() {
    let (examples, features, relevant) = examples(300);
    let (trees, left_out) = examples.fit().unwrap();
    let n_wrong = |scores: &[f32]| {
        let pairs = scores.iter().zip(&relevant);
        pairs.filter(|(score, is)| (**score > 0.5) != **is).count()
    };
    assert!(n_wrong(&left_out) < 60, "{} of 6000", n_wrong(&left_out));
    let (mut leaves, mut scores, mut all) = (Vec::new(), Vec::new(), Vec::new());
    for features in &features {
        trees.score(features, &mut leaves, &mut scores);
        all.extend_from_slice(&scores);
    }
    assert!(n_wrong(&all) < 60);
    assert_ne!(all, left_out);
}

#[test]
fn any_number_of_threads_fits_the_same_trees() {
    let fit = |n_threads| on_threads(n_threads, || examples(60).0.fit().unwrap());
    assert_eq!(fit(1), fit(4));
}

#[test]
fn without_a_right_candidate_there_is_nothing_to_fit() {
    assert!(Examples::default().fit().is_err());
}

proptest! {
    /// The fast way through the trees against one candidate at a time.
    #[test]
    fn scores_are_those_of_following_every_tree(seed in 0u64..1000, n_candidates in 0usize..40) {
        let mut random = Random::new(seed, "trees", 0);
        let tree = |random: &mut Random| Tree {
            columns: std::array::from_fn(|_| random.below(20) as u32),
            thresholds: std::array::from_fn(|_| random.f32()),
            leaves: std::array::from_fn(|_| random.normal()),
        };
        let trees: Vec<Tree> = (0..5).map(|_| tree(&mut random)).collect();
        let boosted = BoostedTrees::from_parts(-1.0, trees.clone()).unwrap();
        let columns = [Column::P, Column::Votes, Column::NameMatch]
            .map(|column| (column, (0..n_candidates).map(|_| random.f32()).collect()));
        let features = features(PointFigures { n_words: 3, nearest: 0.5 }, &columns);
        let mut scores = Vec::new();
        boosted.score(&features, &mut Vec::new(), &mut scores);
        prop_assert_eq!(scores.len(), n_candidates);
        for (at, &score) in scores.iter().enumerate() {
            let mut logit = -1.0 + 0.02 * (features.column(0)[at] + features.column(12)[at]);
            for tree in &trees {
                let bit = |level: usize| usize::from(features.column(tree.columns[level] as usize)[at] > tree.thresholds[level]) << level;
                logit += tree.leaves[(0..DEPTH).map(bit).sum::<usize>()];
            }
            prop_assert_eq!(score, 1.0 / (1.0 + (-logit).exp()));
        }
    }
}

#[test]
fn ranks_and_shares_are_within_the_text_and_never_infinite() {
    let features = features(PointFigures::default(), &[(Column::P, vec![0.2, 0.4, 0.2])]);
    let columns: Vec<&[f32]> = (0..20).map(|at| features.column(at)).collect();
    assert!(columns.contains(&&[0.5, 1.0, 0.5][..]), "share of p");
    assert!(columns.contains(&&[1.0, 0.0, 1.0][..]), "rank by p");
    assert!(
        columns
            .iter()
            .all(|column| column.iter().all(|value| value.is_finite()))
    );
}

#[test]
fn trees_that_ask_for_what_is_not_there_are_errors() {
    let tree = Tree {
        columns: [0; DEPTH],
        thresholds: [f32::MAX; DEPTH],
        leaves: [0.0; 1 << DEPTH],
    };
    let with = |change: &dyn Fn(&mut Tree)| {
        let mut tree = tree.clone();
        change(&mut tree);
        BoostedTrees::from_parts(0.0, vec![tree])
    };
    assert!(with(&|_| ()).is_ok());
    assert!(with(&|tree| tree.columns[2] = N_FEATURES as u32).is_err());
    assert!(with(&|tree| tree.thresholds[1] = f32::NAN).is_err());
    assert!(with(&|tree| tree.leaves[3] = f32::INFINITY).is_err());
    assert!(BoostedTrees::from_parts(f32::NAN, vec![]).is_err());
}
