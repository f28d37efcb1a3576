//! Points that are nearly the same as a given one.
//!
//! A collection often has several variants of one text (editions of a book, packages built from one
//! source). A hold-out that takes some and leaves others to train on is easier than what users will ask later.
//! A point's near duplicates share its rarest words, so those with few points are looked up and compared in full.

use crate::matrix::CsrMatrix;

/// Rarest words of a point that are looked up.
const N_WORDS: usize = 8;
/// Upper bound of the points of a word that is looked up; others are too common.
const MAX_POINTS: usize = 512;

/// Finds near duplicates among the rows of a matrix.
pub(super) struct NearDuplicates<'a> {
    points: &'a CsrMatrix,
    /// The points of each word, as rows.
    by_word: CsrMatrix,
    norms: Vec<f32>,
    /// Least cosine of near duplicates.
    cosine: f32,
    /// Rows compared with the current one.
    is_compared: Vec<bool>,
    /// The current row, spread out.
    spread: Vec<f32>,
}

impl<'a> NearDuplicates<'a> {
    pub(super) fn new(points: &'a CsrMatrix, cosine: f32) -> Self {
        let norm = |row| {
            let (_, values): (_, &[f32]) = points.row(row);
            values.iter().map(|value| value * value).sum::<f32>().sqrt()
        };
        NearDuplicates {
            points,
            by_word: points.transpose(),
            norms: (0..points.n_rows()).map(norm).collect(),
            cosine,
            is_compared: vec![false; points.n_rows()],
            spread: vec![0.0; points.n_cols()],
        }
    }

    /// The near duplicates of a point, itself among them, ascending.
    pub(super) fn of(&mut self, point: usize) -> Vec<usize> {
        let (words, values) = self.points.row(point);
        let mut rarest: Vec<(usize, u32)> = words
            .iter()
            .map(|&word| (self.by_word.row(word as usize).0.len(), word))
            .filter(|&(n_points, _)| n_points <= MAX_POINTS)
            .collect();
        rarest.sort_unstable();
        rarest.truncate(N_WORDS);
        for (&word, &value) in words.iter().zip(values) {
            self.spread[word as usize] = value;
        }
        let mut compared = vec![point];
        self.is_compared[point] = true;
        let mut found = vec![point];
        for (_, word) in rarest {
            for &other in self.by_word.row(word as usize).0 {
                let other = other as usize;
                if !std::mem::replace(&mut self.is_compared[other], true) {
                    compared.push(other);
                    let (words, values) = self.points.row(other);
                    let product: f32 = words
                        .iter()
                        .zip(values)
                        .map(|(&word, value)| value * self.spread[word as usize])
                        .sum();
                    if product >= self.cosine * self.norms[point] * self.norms[other] {
                        found.push(other);
                    }
                }
            }
        }
        compared
            .iter()
            .for_each(|&other| self.is_compared[other] = false);
        words
            .iter()
            .for_each(|&word| self.spread[word as usize] = 0.0);
        found.sort_unstable();
        found
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::matrix::CsrBuilder;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn all_rows_of_high_cosine_are_found(
            rows in prop::collection::vec(prop::collection::btree_map(0u32..12, 0.1f32..1.0, 1..6), 1..60),
            cosine in 0.5f32..0.95,
        ) {
            let mut builder = CsrBuilder::default();
            for row in &rows {
                builder.push_row(row.iter().map(|(&word, &value)| (word, value)));
            }
            let points = builder.finish(12).unwrap();
            let mut near = NearDuplicates::new(&points, cosine);
            let norm = |row: &std::collections::BTreeMap<u32, f32>| row.values().map(|v| v * v).sum::<f32>().sqrt();
            for (at, row) in rows.iter().enumerate() {
                let found = near.of(at);
                for (other_at, other) in rows.iter().enumerate() {
                    let product: f32 = row.iter().filter_map(|(word, value)| Some(value * other.get(word)?)).sum();
                    let exact = product / (norm(row) * norm(other));
                    if (exact - cosine).abs() > 1e-4 && at != other_at {
                        prop_assert_eq!(found.contains(&other_at), exact > cosine, "{} {}", exact, cosine);
                    }
                }
                prop_assert!(found.contains(&at));
            }
        }
    }
}
