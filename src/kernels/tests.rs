//! Every vector kernel against its scalar version, on odd lengths and unaligned slices.

use proptest::prelude::*;

use super::*;

fn close(a: f32, b: f32) -> bool {
    (a - b).abs() <= 2e-5 * (1.0 + a.abs().max(b.abs()))
}

fn all_close(a: &[f32], b: &[f32]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(a, b)| close(*a, *b))
}

fn values(n: usize) -> impl Strategy<Value = Vec<f32>> {
    prop::collection::vec(-2.0f32..2.0, n)
}

/// A width, a matrix of five such rows one float off alignment, and a row of that width.
fn rows_case() -> impl Strategy<Value = (usize, Vec<f32>, Vec<f32>, Vec<u32>)> {
    (1usize..150).prop_flat_map(|width| {
        (
            Just(width),
            values(5 * width + 1),
            values(width),
            prop::collection::vec(0u32..5, 0..11),
        )
    })
}

proptest! {
    #[test]
    fn half_products_agree_with_the_scalar_version(pairs in prop::collection::vec((-3.0f32..3.0, -3.0f32..3.0), 0..70)) {
        let a: Vec<half::f16> = pairs.iter().map(|pair| half::f16::from_f32(pair.0)).collect();
        let b: Vec<f32> = pairs.iter().map(|pair| pair.1).collect();
        prop_assert!(close(Kernels::detect().dot_half(&a, &b), scalar::dot_half(&a, &b)));
    }

    #[test]
    fn values_between_are_found_where_the_scalar_version_finds_them(
        x in prop::collection::vec(prop::sample::select(vec![0.0f32, 0.25, 0.5, 1.0, f32::NAN]), 0..70),
        factor in prop::sample::select(vec![0.5f32, 1.0]),
        low in prop::sample::select(vec![0.0f32, 0.25, 0.5]),
        high in prop::sample::select(vec![0.5f32, f32::INFINITY]),
    ) {
        let (mut fast, mut slow) = (vec![7], vec![7]);
        Kernels::detect().find_between(factor, &x, (low, high), &mut fast);
        scalar::find_between(factor, &x, (low, high), &mut slow);
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn whole_products_are_those_of_the_scalar_version(
        width in 0usize..70,
        matrix in prop::collection::vec(any::<i8>(), 70 * 12),
        x in prop::collection::vec(any::<i16>(), 70),
        rows in prop::collection::vec(0u32..12, 0..20),
    ) {
        let (matrix, x) = (&matrix[..12 * width], &x[..width]);
        let (mut fast, mut slow) = (vec![0; rows.len()], vec![0; rows.len()]);
        Kernels::detect().whole_dots(x, matrix, &rows, &mut fast);
        scalar::whole_dots(x, matrix, &rows, &mut slow);
        prop_assert_eq!(fast, slow);
    }

    #[test]
    fn products_agree_with_the_scalar_version((width, buffer, w, rows) in rows_case()) {
        let kernels = Kernels::detect();
        let matrix = &buffer[1..];
        prop_assert!(close(kernels.dot(&w, &matrix[..width]), scalar::dot(&w, &matrix[..width])));

        let coefficients: Vec<f32> = rows.iter().map(|&row| row as f32 - 2.5).collect();
        let (mut fast, mut slow) = (vec![7.0; width], vec![7.0; width]);
        kernels.sum_rows(&coefficients, matrix, &rows, &mut fast);
        scalar::sum_rows(&coefficients, matrix, &rows, &mut slow);
        prop_assert!(all_close(&fast, &slow));

        let tile: Vec<Vec<f32>> = (0..TILE).map(|i| w.iter().map(|x| x + i as f32).collect()).collect();
        let w: [&[f32]; TILE] = std::array::from_fn(|i| tile[i].as_slice());
        let (mut fast, mut slow) = (vec![0.0; rows.len() * TILE], vec![0.0; rows.len() * TILE]);
        kernels.dot_tile(w, matrix, &rows, &mut fast);
        scalar::dot_tile(w, matrix, &rows, &mut slow);
        prop_assert!(all_close(&fast, &slow));

        let coefficients: Vec<f32> = (0..rows.len() * TILE).map(|at| (at % 7) as f32 - 2.5).collect();
        let (mut fast, mut slow) = (vec![7.0; width * TILE], vec![7.0; width * TILE]);
        kernels.sum_tile(&coefficients, matrix, &rows, &mut fast);
        scalar::sum_tile(&coefficients, matrix, &rows, &mut slow);
        prop_assert!(all_close(&fast, &slow));

        let (mut fast, mut slow) = (buffer.clone(), buffer.clone());
        kernels.add_tile(&coefficients, w, &mut fast[1..], &rows);
        scalar::add_tile(&coefficients, w, &mut slow[1..], &rows);
        prop_assert!(all_close(&fast, &slow));
    }

    #[test]
    fn adamw_agrees_with_the_scalar_version(n in 1usize..70, seed in values(280)) {
        let step = AdamWStep {
            learning_rate: 0.01, beta1: 0.9, beta2: 0.999, epsilon: 1e-8, weight_decay: 0.01,
            bias_correction1: 0.19, bias_correction2: 0.002,
        };
        let squares: Vec<f32> = seed[3 * n..4 * n].iter().map(|x| x * x).collect();
        let (mut w, mut m, mut v) = (seed[..n].to_vec(), seed[n..2 * n].to_vec(), squares.clone());
        Kernels::detect().adamw(&step, &mut w, &seed[2 * n..3 * n], &mut m, &mut v);
        let (mut w_slow, mut m_slow, mut v_slow) = (seed[..n].to_vec(), seed[n..2 * n].to_vec(), squares);
        scalar::adamw(&step, &mut w_slow, &seed[2 * n..3 * n], &mut m_slow, &mut v_slow);
        prop_assert!(all_close(&w, &w_slow) && all_close(&m, &m_slow) && all_close(&v, &v_slow));

        let (mut w_slow, mut m_slow) = (w.clone(), m.clone());
        Kernels::detect().adamw_scaled(&step, 0.3, &mut w, &seed[2 * n..3 * n], &mut m);
        scalar::adamw_scaled(&step, 0.3, &mut w_slow, &seed[2 * n..3 * n], &mut m_slow);
        prop_assert!(all_close(&w, &w_slow) && all_close(&m, &m_slow));
    }

    #[test]
    fn exponentials_agree_with_the_scalar_version(x in prop::collection::vec(-120.0f32..10.0, 0..40), shift in -3.0f32..3.0) {
        let (mut fast, mut slow) = (x.clone(), x);
        let (sum_fast, sum_slow) = (Kernels::detect().exp_sum(&mut fast, shift), scalar::exp_sum(&mut slow, shift));
        prop_assert!(close(sum_fast / sum_slow.max(1e-30), sum_slow / sum_slow.max(1e-30)));
        for (fast, slow) in fast.iter().zip(&slow) {
            prop_assert!((fast - slow).abs() <= 2e-6 * slow + 1e-37, "{fast} {slow}");
        }
    }
}
