//! The best k of many scores.
//!
//! The order is by descending score, ties to the lower label id. NaN sorts below every number.

use std::cmp::Ordering;

use crate::ids::Scored;

/// Sorts by descending score, ties to the lower id.
pub(crate) fn sort_descending(scored: &mut [Scored]) {
    scored.sort_unstable_by(best_first);
}

/// Keeps the `k` best, in descending order; ties to the lower id.
pub(crate) fn top_k(scored: &mut Vec<Scored>, k: usize) {
    if k == 0 {
        scored.clear();
        return;
    }
    if scored.len() > k {
        scored.select_nth_unstable_by(k - 1, best_first);
        scored.truncate(k);
    }
    sort_descending(scored);
}

fn best_first(a: &Scored, b: &Scored) -> Ordering {
    let nan_last = a.score.is_nan().cmp(&b.score.is_nan());
    let by_score = b.score.partial_cmp(&a.score).unwrap_or(Ordering::Equal);
    nan_last.then(by_score).then(a.label.cmp(&b.label))
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::ids::LabelId;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn top_k_is_the_head_of_the_sorted_list(scores in prop::collection::vec(0u8..20, 0..60), k in 0usize..70) {
            let mut all: Vec<Scored> =
                scores.iter().enumerate().map(|(i, &s)| Scored { label: LabelId(i as u32), score: f32::from(s) }).collect();
            let mut best = all.clone();
            top_k(&mut best, k);
            all.sort_by(|a, b| b.score.total_cmp(&a.score).then(a.label.cmp(&b.label)));
            all.truncate(k);
            prop_assert_eq!(best, all);
        }
    }

    #[test]
    fn nan_sorts_last() {
        let mut scored = vec![
            Scored {
                label: LabelId(0),
                score: f32::NAN,
            },
            Scored {
                label: LabelId(1),
                score: -1.0,
            },
            Scored {
                label: LabelId(2),
                score: 3.0,
            },
        ];
        top_k(&mut scored, 2);
        assert_eq!(scored.iter().map(|s| s.label.0).collect::<Vec<_>>(), [2, 1]);
    }
}
