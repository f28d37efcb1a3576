//! The judge against one candidate at a time, and on any number of threads.

use super::evidence::N_COLUMNS;
use super::*;
use crate::on_threads;
use crate::random::Random;
use proptest::prelude::*;

/// Candidates of random points whose relevance depends on margin and votes together.
fn examples(n_points: u64) -> (Examples, Vec<Evidence>, Vec<bool>) {
    let mut examples = Examples::default();
    let (mut all, mut relevant) = (Vec::new(), Vec::new());
    for point in 0..n_points {
        let mut random = Random::new(3, "judged", point);
        let clues: Vec<Clues> = (0..20)
            .map(|_| Clues {
                p: random.f32(),
                margin: random.normal(),
                vote: random.f32(),
                ..Clues::default()
            })
            .collect();
        let mut evidence = Evidence::default();
        evidence.fill(TextClues::default(), &clues);
        let is_right = |clue: &Clues| clue.margin > 0.5 && clue.vote > 0.5;
        examples.push(&evidence, clues.iter().map(is_right));
        relevant.extend(clues.iter().map(is_right));
        all.push(evidence);
    }
    (examples, all, relevant)
}

#[test]
fn a_judge_learns_what_two_experts_say_together_also_of_points_it_has_not_seen() {
    let (examples, evidence, relevant) = examples(300);
    let (judge, left_out) = examples.fit().unwrap();
    let n_wrong = |scores: &[f32]| {
        let pairs = scores.iter().zip(&relevant);
        pairs.filter(|(score, is)| (**score > 0.5) != **is).count()
    };
    assert!(n_wrong(&left_out) < 60, "{} of 6000", n_wrong(&left_out));
    let (mut scratch, mut scores, mut all) = (JudgeScratch::default(), Vec::new(), Vec::new());
    for evidence in &evidence {
        judge.score(evidence, &mut scratch, &mut scores);
        all.extend_from_slice(&scores);
    }
    assert!(n_wrong(&all) < 60);
    assert_ne!(all, left_out);
}

#[test]
fn any_number_of_threads_fits_the_same_judge() {
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
        let mut random = Random::new(seed, "judge", 0);
        let tree = |random: &mut Random| Tree {
            columns: std::array::from_fn(|_| random.below(20) as u32),
            thresholds: std::array::from_fn(|_| random.f32()),
            leaves: std::array::from_fn(|_| random.normal()),
        };
        let trees: Vec<Tree> = (0..5).map(|_| tree(&mut random)).collect();
        let judge = Judge::from_parts(-1.0, trees.clone()).unwrap();
        let clues: Vec<Clues> = (0..n_candidates).map(|_| Clues { p: random.f32(), vote: random.f32(), name: random.f32(), ..Clues::default() }).collect();
        let mut evidence = Evidence::default();
        evidence.fill(TextClues { n_words: 3, nearest: 0.5 }, &clues);
        let mut scores = Vec::new();
        judge.score(&evidence, &mut JudgeScratch::default(), &mut scores);
        prop_assert_eq!(scores.len(), n_candidates);
        for (at, &score) in scores.iter().enumerate() {
            let mut logit = -1.0 + 0.02 * (evidence.column(0)[at] + evidence.column(12)[at]);
            for tree in &trees {
                let bit = |level: usize| usize::from(evidence.column(tree.columns[level] as usize)[at] > tree.thresholds[level]) << level;
                logit += tree.leaves[(0..DEPTH).map(bit).sum::<usize>()];
            }
            prop_assert_eq!(score, 1.0 / (1.0 + (-logit).exp()));
        }
    }
}

#[test]
fn ranks_and_shares_are_within_the_text_and_never_infinite() {
    let clue = |p: f32, vote: f32| Clues {
        p,
        vote,
        ..Clues::default()
    };
    let mut evidence = Evidence::default();
    evidence.fill(
        TextClues::default(),
        &[clue(0.2, 0.0), clue(0.4, 0.0), clue(0.2, 0.0)],
    );
    let columns: Vec<&[f32]> = (0..20).map(|at| evidence.column(at)).collect();
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
        Judge::from_parts(0.0, vec![tree])
    };
    assert!(with(&|_| ()).is_ok());
    assert!(with(&|tree| tree.columns[2] = N_COLUMNS as u32).is_err());
    assert!(with(&|tree| tree.thresholds[1] = f32::NAN).is_err());
    assert!(with(&|tree| tree.leaves[3] = f32::INFINITY).is_err());
    assert!(Judge::from_parts(f32::NAN, vec![]).is_err());
}
