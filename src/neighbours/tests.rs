//! The inverted index against all products.

use super::postings::Neighbour;
use super::*;
use crate::config::Precision;
use crate::ids::LabelId;
use crate::matrix::{CsrBuilder, CsrMatrix};
use proptest::prelude::*;

fn rows(rows: &[Vec<(u32, f32)>], n_cols: usize) -> CsrMatrix {
    let mut builder = CsrBuilder::default();
    rows.iter()
        .for_each(|row| builder.push_row(row.iter().copied()));
    builder.finish(n_cols).unwrap()
}

fn some_rows(
    n_rows: impl Into<prop::collection::SizeRange>,
) -> impl Strategy<Value = Vec<Vec<(u32, f32)>>> {
    // Sixteenths, so that sums are exact in any order.
    let row = prop::collection::btree_map(0u32..20, 1u8..16, 0..8);
    let row = row.prop_map(|row| {
        let entries = row.into_iter();
        entries
            .map(|(word, value)| (word, f32::from(value) / 16.0))
            .collect()
    });
    prop::collection::vec(row, n_rows)
}

proptest! {
    #[test]
    fn the_nearest_are_those_of_all_products(
        points in some_rows(1..60), texts in some_rows(1..4), k in 0usize..12,
    ) {
        let features = rows(&points, 20);
        let index = Postings::new(&features, points.len());
        let mut scratch = NeighbourScratch::default();
        for text in texts {
            let cosine = |point: &Vec<(u32, f32)>| -> f32 {
                let shared = text.iter().flat_map(|(w, x)| point.iter().filter(move |(v, _)| v == w).map(move |(_, y)| x * y));
                shared.sum()
            };
            let mut expected: Vec<Neighbour> = points.iter().zip(0..).map(|(point, row)| Neighbour { row, cosine: cosine(point) }).collect();
            expected.retain(|found| 0.0 < found.cosine);
            expected.sort_by(|a, b| b.cosine.total_cmp(&a.cosine).then(a.row.cmp(&b.row)));
            expected.truncate(k);
            let (words, values): (Vec<u32>, Vec<f32>) = text.iter().copied().unzip();
            prop_assert_eq!(index.nearest((&words, &values), k, &mut scratch), &expected[..]);
        }
    }
}

proptest! {
    #[test]
    fn points_answer_alike_however_they_were_added(
        points in some_rows(1..60), sizes in prop::collection::vec(1usize..20, 1..12), text in some_rows(1), k in 1usize..12,
    ) {
        let (features, of_point) = (rows(&points, 20), |row: usize| vec![(row as u32 % 5, 1.0)]);
        let labels = rows(&(0..points.len()).map(of_point).collect::<Vec<_>>(), 5);
        let trained = Neighbours::new(&features, &labels, points.len()).narrowed(Precision::Eight);
        let (mut whole, mut parts, mut rest) = (trained.clone(), trained, 0..points.len());
        whole.add(&features, labels.clone());
        for size in sizes.into_iter().cycle() {
            let part: Vec<usize> = rest.by_ref().take(size).collect();
            if part.is_empty() {
                break;
            }
            parts.add(&features.select_rows(&part), labels.select_rows(&part));
        }
        let (words, values): (Vec<u32>, Vec<f32>) = text[0].iter().copied().unzip();
        let of = |neighbours: &Neighbours| {
            let (mut scratch, mut votes) = (NeighbourScratch::default(), Vec::new());
            let nearest = neighbours.nearest((&words, &values), k, &mut scratch).to_vec();
            neighbours.votes((&words, &values), &mut scratch, &mut votes);
            let labels: Vec<Vec<u32>> = (0..2 * points.len()).map(|point| neighbours.labels_of(point).to_vec()).collect();
            (nearest, votes, labels, neighbours.examples(LabelId(1), 7))
        };
        prop_assert_eq!(of(&parts), of(&whole));
        prop_assert_eq!(parts.whole(), whole.whole());
        prop_assert_eq!(parts.shape(), (20, 5));
    }
}

proptest! {
    #[test]
    fn rows_have_the_words_that_they_were_made_of(points in some_rows(1..60), chosen in any::<u64>()) {
        let index = Postings::new(&rows(&points, 20), points.len());
        let chosen: Vec<u32> = (0..points.len() as u32).filter(|row| chosen >> row & 1 == 1).collect();
        let expected: Vec<_> = chosen.iter().map(|&row| points[row as usize].clone()).collect();
        prop_assert_eq!(index.words_of(&chosen), expected);
    }
}

#[test]
fn labels_of_neighbours_get_their_squared_cosines() {
    let features = rows(
        &[vec![(0, 1.0)], vec![(0, 0.6), (1, 0.8)], vec![(2, 1.0)]],
        3,
    );
    let labels = rows(
        &[vec![(4, 1.0)], vec![(1, 1.0), (4, 1.0)], vec![(0, 1.0)]],
        5,
    );
    let index = Neighbours::new(&features, &labels, 3);
    let mut votes = Vec::new();
    let bow: (&[u32], &[f32]) = (&[0, 7], &[0.5, 0.5]);
    index.votes(bow, &mut NeighbourScratch::default(), &mut votes);
    let vote = |label, score, nearest| Vote {
        label: LabelId(label),
        score,
        nearest,
    };
    assert_eq!(votes, [vote(4, 0.25 + 0.09, 0.5), vote(1, 0.09, 0.3)]);
}

#[test]
fn words_of_most_points_are_not_listed() {
    let points: Vec<Vec<(u32, f32)>> = (0..300).map(|_| vec![(0, 1.0)]).collect();
    let index = Postings::new(&rows(&points, 1), 300);
    let scratch = &mut NeighbourScratch::default();
    let found = index.nearest((&[0], &[1.0]), 5, scratch);
    assert!(found.is_empty());
}

#[test]
fn parts_that_do_not_fit_are_refused() {
    let index = Postings::new(&rows(&[vec![(0, 1.0)]], 1), 1);
    let by_word = index.by_word();
    assert_eq!(Postings::from_parts(by_word.clone(), None).unwrap(), index);
    assert!(Postings::from_parts(by_word.clone(), Some(vec![0.1; 2])).is_err());
    let labels = rows(&[vec![], vec![]], 1);
    assert!(Neighbours::from_parts(index, labels).is_err());
}

proptest! {
    #[test]
    fn rounded_weights_find_nearly_the_same_cosines_and_stay_rounded(
        points in some_rows(1..40), more in some_rows(0..10), text in some_rows(1..2),
    ) {
        let (points, more) = (rows(&points, 20), rows(&more, 20));
        let more = Postings::of_all_words(&more);
        let index = Postings::new(&points, points.n_rows());
        let rounded = Postings::new(&points, points.n_rows()).rounded();
        let (words, values): (Vec<u32>, Vec<f32>) = text[0].iter().copied().unzip();
        let cosines = |index: &Postings| {
            let mut cosines = vec![0.0; index.n_rows()];
            let mut scratch = NeighbourScratch::default();
            for found in index.nearest((&words, &values), index.n_rows(), &mut scratch) {
                cosines[found.row as usize] = found.cosine;
            }
            cosines
        };
        // Each of at most 20 weights moves by half of a step of at most 1/127.
        let near = cosines(&index).into_iter().zip(cosines(&rounded));
        prop_assert!(near.into_iter().all(|(a, b)| (a - b).abs() < 10.0 / 127.0));
        let again = Postings::from_parts(rounded.by_word().clone(), None).unwrap().rounded();
        prop_assert_eq!(again.by_word().indices(), rounded.by_word().indices());
        prop_assert!(rounded.steps().is_some());
        let followed = cosines(&rounded.followed_by(&more));
        prop_assert_eq!(&followed[..points.n_rows()], &cosines(&rounded)[..]);
    }
}

#[test]
fn names_that_are_contained_are_found() {
    let names = Names::new(rows(&[vec![(0, 0.6), (1, 0.8)], vec![], vec![(2, 1.0)]], 3));
    let mut matches = Vec::new();
    let bow: (&[u32], &[f32]) = (&[1, 2], &[0.8, 0.6]);
    let mut scratch = NeighbourScratch::default();
    names.matches(bow, &mut scratch, &mut matches);
    let expected = |label, cosine: f32, contained: f32| NameMatch {
        label: LabelId(label),
        cosine,
        contained,
    };
    let squared = 0.8f32 * 0.8;
    assert_eq!(
        matches,
        [expected(0, squared, squared), expected(2, 0.6, 1.0)]
    );
}

#[test]
fn a_label_matches_by_its_best_form() {
    // Label 0 has two forms, label 1 none, label 2 one.
    let words = rows(
        &[vec![(0, 0.6), (1, 0.8)], vec![(2, 1.0)], vec![(3, 1.0)]],
        4,
    );
    let forms = Forms::new(words, vec![2, 2, 3]).unwrap();
    let text: (&[u32], &[f32]) = (&[1, 2], &[0.8, 0.6]);
    let expected = FormMatch {
        cosine: 0.8f32 * 0.8,
        contained: 1.0,
        covered: 0.8f32 * 0.8,
        n_words: 1.0,
    };
    assert_eq!(forms.matched(0, text), expected);
    assert_eq!(forms.matched(1, text), FormMatch::default());
    let nearest = |forms: &Forms| {
        let mut labels = Vec::new();
        let text: (&[u32], &[f32]) = (&[1, 3], &[0.6, 0.8]);
        let scratch = &mut NeighbourScratch::default();
        forms.nearest(text, 5, scratch, &mut labels);
        labels
    };
    assert_eq!(nearest(&forms), [2, 0]);
    assert_eq!(nearest(&forms.select([2, 0].into_iter())), [0, 1]);
    let twice = forms.with(&forms);
    assert_eq!(nearest(&twice), [2, 5, 0, 3]);
    assert_eq!(twice.matched(3, text), expected);
    assert!(Forms::new(forms.words().clone(), vec![2, 1, 3]).is_err());
    assert!(Forms::new(forms.words().clone(), vec![2]).is_err());
}

proptest! {
    #[test]
    fn rows_that_come_later_are_found_as_if_they_had_been_there(
        points in some_rows(1..40), more in some_rows(1..20),
    ) {
        let all: Vec<_> = points.iter().chain(&more).cloned().collect();
        let index = Postings::new(&rows(&points, 20), points.len());
        let expected = Postings::new(&rows(&all, 20), all.len());
        let later = Postings::of_all_words(&rows(&more, 20));
        prop_assert_eq!(index.followed_by(&later), expected);
    }
}
