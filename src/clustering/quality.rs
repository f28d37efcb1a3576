//! How tight clusters are.

use rayon::prelude::*;

use crate::clustering::Clustering;
use crate::ids::LabelId;
use crate::matrix::CsrMatrix;

/// The mean cosine between labels and the centres of their clusters, over the labels with a centroid; 0 without any.
///
/// `centroids` is L×D with rows of L2 norm 1 or empty. A centre is the normalised sum of its members' centroids, so a
/// cluster's cosines add up to the norm of that sum.
pub(crate) fn mean_cosine(centroids: &CsrMatrix, clustering: &Clustering) -> f64 {
    let n_described = (0..centroids.n_rows())
        .filter(|&label_idx| !centroids.row(label_idx).0.is_empty())
        .count();
    let clusters: Vec<&[LabelId]> = clustering.iter().collect();
    let cosine_sums: Vec<f64> = clusters
        .par_iter()
        .map_init(
            || vec![0f64; centroids.n_cols()],
            |sum, members| norm_of_sum(centroids, members, sum),
        )
        .collect();
    cosine_sums.iter().sum::<f64>() / n_described.max(1) as f64
}

/// ‖Σ rows‖. `zeros` is all zero before and after.
fn norm_of_sum(centroids: &CsrMatrix, members: &[LabelId], zeros: &mut [f64]) -> f64 {
    for label in members {
        let (columns, values) = centroids.row(label.idx());
        for (&column, &value) in columns.iter().zip(values) {
            zeros[column as usize] += f64::from(value);
        }
    }
    let mut squares = 0.0;
    for label in members {
        for &column in centroids.row(label.idx()).0 {
            let value = std::mem::take(&mut zeros[column as usize]);
            squares += value * value;
        }
    }
    squares.sqrt()
}
