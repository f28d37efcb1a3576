//! Kernels over tiles of rows: each load of a row serves several products.
//!
//! SAFETY of every function: the caller has the instructions of `V`, and has checked that rows lie inside of their
//! matrices and that widths agree; columns stay below the width, those of a tail by their count.

use super::TILE;
use super::vector::{LANES, Vector, load_up_to, store_up_to};

/// Products of a tile with several points. Sums of a pair are in one vector, whatever the number of points.
#[inline(always)]
unsafe fn products<V: Vector, const POINTS: usize>(
    w: [*const f32; TILE],
    points: [*const f32; POINTS],
    width: usize,
) -> [[f32; TILE]; POINTS] {
    unsafe {
        let mut sums = [[V::splat(0.0); TILE]; POINTS];
        let mut at = 0;
        while at + LANES <= width {
            let mut x = [V::splat(0.0); POINTS];
            for point in 0..POINTS {
                x[point] = V::load(points[point].add(at));
            }
            for label in 0..TILE {
                let w = V::load(w[label].add(at));
                for point in 0..POINTS {
                    sums[point][label] = w.mul_add(x[point], sums[point][label]);
                }
            }
            at += LANES;
        }
        if at < width {
            let mut x = [V::splat(0.0); POINTS];
            for point in 0..POINTS {
                x[point] = V::load_first(points[point].add(at), width - at);
            }
            for label in 0..TILE {
                let w = V::load_first(w[label].add(at), width - at);
                for point in 0..POINTS {
                    sums[point][label] = w.mul_add(x[point], sums[point][label]);
                }
            }
        }
        let mut products = [[0.0; TILE]; POINTS];
        for point in 0..POINTS {
            products[point] = V::sums(sums[point]);
        }
        products
    }
}

#[inline(always)]
pub(super) unsafe fn dot_tile<V: Vector>(
    w: [&[f32]; TILE],
    matrix: &[f32],
    rows: &[u32],
    out: &mut [f32],
) {
    unsafe {
        match V::N_REGISTERS >= 32 {
            true => dot_points::<V, 4>(w, matrix, rows, out),
            false => dot_points::<V, 1>(w, matrix, rows, out),
        }
    }
}

#[inline(always)]
unsafe fn dot_points<V: Vector, const POINTS: usize>(
    w: [&[f32]; TILE],
    matrix: &[f32],
    rows: &[u32],
    out: &mut [f32],
) {
    let width = w[0].len();
    let w = w.map(<[f32]>::as_ptr);
    let point = |row: u32| unsafe { matrix.as_ptr().add(row as usize * width) };
    let (chunks, rest) = rows.as_chunks::<POINTS>();
    let (out, out_rest) = out
        .as_chunks_mut::<TILE>()
        .0
        .split_at_mut(chunks.len() * POINTS);
    for (rows, out) in chunks.iter().zip(out.chunks_exact_mut(POINTS)) {
        out.copy_from_slice(&unsafe { products::<V, POINTS>(w, rows.map(point), width) });
    }
    for (&row, out) in rest.iter().zip(out_rest) {
        [*out] = unsafe { products::<V, 1>(w, [point(row)], width) };
    }
}

/// `out[i][j] = Σ left[i] · right[j]` of row-major matrices with rows of this width.
#[inline(always)]
pub(super) unsafe fn dot_all<V: Vector>(
    left: &[f32],
    right: &[f32],
    width: usize,
    out: &mut [f32],
) {
    let (n_left, n_right) = (left.len() / width, right.len() / width);
    let row = |matrix: &[f32], row: usize| unsafe { matrix.as_ptr().add(row * width) };
    for first in (0..n_right).step_by(TILE) {
        // A tile with fewer rows repeats the last; nobody reads the products.
        let w = [0, 1, 2, 3].map(|at: usize| row(right, (first + at).min(n_right - 1)));
        let n_kept = TILE.min(n_right - first);
        let mut write = |at: usize, products: [f32; TILE]| {
            out[at * n_right + first..][..n_kept].copy_from_slice(&products[..n_kept]);
        };
        let mut at = 0;
        unsafe {
            while V::N_REGISTERS >= 32 && at + 4 <= n_left {
                let points = [0, 1, 2, 3].map(|point| row(left, at + point));
                for (point, products) in products::<V, 4>(w, points, width).into_iter().enumerate()
                {
                    write(at + point, products);
                }
                at += 4;
            }
            while at < n_left {
                let [products] = products::<V, 1>(w, [row(left, at)], width);
                write(at, products);
                at += 1;
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn sum_tile<V: Vector>(
    coefficients: &[f32],
    matrix: &[f32],
    rows: &[u32],
    out: &mut [f32],
) {
    let width = out.len() / TILE;
    let mut at = 0;
    unsafe {
        while V::N_REGISTERS >= 32 && at + 4 * LANES <= width {
            sum_columns::<V, 4>(coefficients, matrix, rows, (out, at));
            at += 4 * LANES;
        }
        while at + LANES <= width {
            sum_columns::<V, 1>(coefficients, matrix, rows, (out, at));
            at += LANES;
        }
        if at < width {
            let mut sums = [V::splat(0.0); TILE];
            for (&row, coefficients) in rows.iter().zip(coefficients.as_chunks::<TILE>().0) {
                let x = V::load_first(matrix.as_ptr().add(row as usize * width + at), width - at);
                for (sum, &coefficient) in sums.iter_mut().zip(coefficients) {
                    *sum = V::splat(coefficient).mul_add(x, *sum);
                }
            }
            for (label, sum) in sums.into_iter().enumerate() {
                sum.store_first(out.as_mut_ptr().add(label * width + at), width - at);
            }
        }
    }
}

/// N vectors of columns from `at` on, of all labels, stay in registers while looping over the points.
#[inline(always)]
unsafe fn sum_columns<V: Vector, const N: usize>(
    coefficients: &[f32],
    matrix: &[f32],
    rows: &[u32],
    (out, at): (&mut [f32], usize),
) {
    let width = out.len() / TILE;
    unsafe {
        let mut sums = [[V::splat(0.0); N]; TILE];
        for (&row, coefficients) in rows.iter().zip(coefficients.as_chunks::<TILE>().0) {
            let row = matrix.as_ptr().add(row as usize * width + at);
            let mut x = [V::splat(0.0); N];
            for (block, x) in x.iter_mut().enumerate() {
                *x = V::load(row.add(block * LANES));
            }
            for (sums, &coefficient) in sums.iter_mut().zip(coefficients) {
                let factor = V::splat(coefficient);
                for (sum, x) in sums.iter_mut().zip(x) {
                    *sum = factor.mul_add(x, *sum);
                }
            }
        }
        for (label, sums) in sums.into_iter().enumerate() {
            for (block, sum) in sums.into_iter().enumerate() {
                sum.store(out.as_mut_ptr().add(label * width + at + block * LANES));
            }
        }
    }
}

#[inline(always)]
pub(super) unsafe fn add_tile<V: Vector>(
    coefficients: &[f32],
    w: [&[f32]; TILE],
    matrix: &mut [f32],
    rows: &[u32],
) {
    let width = w[0].len();
    let w = w.map(<[f32]>::as_ptr);
    let mut at = 0;
    unsafe {
        while V::N_REGISTERS >= 32 && at + 4 * LANES <= width {
            add_columns::<V, 4>(coefficients, w, (matrix, width, at), rows);
            at += 4 * LANES;
        }
        while at + LANES <= width {
            add_columns::<V, 1>(coefficients, w, (matrix, width, at), rows);
            at += LANES;
        }
        if at < width {
            let mut tile = [V::splat(0.0); TILE];
            for (tile, w) in tile.iter_mut().zip(w) {
                *tile = V::load_first(w.add(at), width - at);
            }
            for (&row, coefficients) in rows.iter().zip(coefficients.as_chunks::<TILE>().0) {
                let row = matrix.as_mut_ptr().add(row as usize * width + at);
                let mut sum: V = load_up_to(row, width - at);
                for (w, &coefficient) in tile.iter().zip(coefficients) {
                    sum = V::splat(coefficient).mul_add(*w, sum);
                }
                store_up_to(sum, row, width - at);
            }
        }
    }
}

/// N vectors of columns from `at` on, of all labels, stay in registers while looping over the points.
#[inline(always)]
unsafe fn add_columns<V: Vector, const N: usize>(
    coefficients: &[f32],
    w: [*const f32; TILE],
    (matrix, width, at): (&mut [f32], usize, usize),
    rows: &[u32],
) {
    unsafe {
        let mut tile = [[V::splat(0.0); N]; TILE];
        for (tile, w) in tile.iter_mut().zip(w) {
            for (block, tile) in tile.iter_mut().enumerate() {
                *tile = V::load(w.add(at + block * LANES));
            }
        }
        for (&row, coefficients) in rows.iter().zip(coefficients.as_chunks::<TILE>().0) {
            let row = matrix.as_mut_ptr().add(row as usize * width + at);
            for block in 0..N {
                let row = row.add(block * LANES);
                let mut sum = V::load(row);
                for label in 0..TILE {
                    sum = V::splat(coefficients[label]).mul_add(tile[label][block], sum);
                }
                sum.store(row);
            }
        }
    }
}
