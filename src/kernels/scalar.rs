//! The readable kernels, and the reference for the fast ones.

use std::ops::Range;

use super::{AdamWStep, TILE};

pub(super) fn dot(a: &[f32], b: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += a * b;
        }
    }
    lanes.iter().sum()
}

pub(super) fn dot_eight(a: &[i8], b: &[f32]) -> f32 {
    let mut lanes = [0f32; 8];
    for (a, b) in a.chunks(8).zip(b.chunks(8)) {
        for (lane, (a, b)) in lanes.iter_mut().zip(a.iter().zip(b)) {
            *lane += f32::from(*a) * b;
        }
    }
    lanes.iter().sum()
}

pub(super) fn axpy_eight(alpha: f32, x: &[i8], y: &mut [f32]) {
    for (y, &x) in y.iter_mut().zip(x) {
        *y += alpha * f32::from(x);
    }
}

pub(super) fn axpy(alpha: f32, x: &[f32], y: &mut [f32]) {
    for (y, x) in y.iter_mut().zip(x) {
        *y += alpha * x;
    }
}

fn row(matrix: &[f32], width: usize, row_idx: u32) -> &[f32] {
    &matrix[row_idx as usize * width..][..width]
}

pub(super) fn sum_rows(coefficients: &[f32], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    out.fill(0.0);
    for (&row_idx, &coefficient) in rows.iter().zip(coefficients) {
        axpy(coefficient, row(matrix, out.len(), row_idx), out);
    }
}

pub(super) fn dot_tile(w: [&[f32]; TILE], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    for (&row_idx, out) in rows.iter().zip(out.chunks_exact_mut(TILE)) {
        for (out, w) in out.iter_mut().zip(w) {
            *out = dot(w, row(matrix, w.len(), row_idx));
        }
    }
}

pub(super) fn sum_tile(coefficients: &[f32], matrix: &[f32], rows: &[u32], out: &mut [f32]) {
    let width = out.len() / TILE;
    out.fill(0.0);
    for (&row_idx, coefficients) in rows.iter().zip(coefficients.chunks_exact(TILE)) {
        for (out, &coefficient) in out.chunks_exact_mut(width.max(1)).zip(coefficients) {
            axpy(coefficient, row(matrix, width, row_idx), out);
        }
    }
}

pub(super) fn add_tile(coefficients: &[f32], w: [&[f32]; TILE], matrix: &mut [f32], rows: &[u32]) {
    let width = w[0].len();
    for (&row_idx, coefficients) in rows.iter().zip(coefficients.chunks_exact(TILE)) {
        for (w, &coefficient) in w.iter().zip(coefficients) {
            axpy(
                coefficient,
                w,
                &mut matrix[row_idx as usize * width..][..width],
            );
        }
    }
}

pub(super) fn adamw(
    step: &AdamWStep,
    w: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
    v: &mut [f32],
) {
    let moments = m.iter_mut().zip(v.iter_mut());
    for ((w, &g), (m, v)) in w.iter_mut().zip(gradient).zip(moments) {
        *m = step.beta1 * *m + (1.0 - step.beta1) * g;
        *v = step.beta2 * *v + (1.0 - step.beta2) * (g * g);
        let m_hat = *m / step.bias_correction1;
        let v_hat = *v / step.bias_correction2;
        *w -= step.learning_rate * (m_hat / (v_hat.sqrt() + step.epsilon) + step.weight_decay * *w);
    }
}

pub(super) fn adamw_scaled(
    step: &AdamWStep,
    denominator: f32,
    w: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
) {
    for ((w, &g), m) in w.iter_mut().zip(gradient).zip(m) {
        *m = step.beta1 * *m + (1.0 - step.beta1) * g;
        let m_hat = *m / step.bias_correction1;
        *w -= step.learning_rate * (m_hat / denominator + step.weight_decay * *w);
    }
}

pub(super) fn exp_sum(x: &mut [f32], shift: f32) -> f32 {
    let mut lanes = [0f32; 8];
    for chunk in x.chunks_mut(8) {
        for (lane, x) in lanes.iter_mut().zip(chunk) {
            *x = (*x - shift).exp();
            *lane += *x;
        }
    }
    lanes.iter().sum()
}

pub(super) fn integer_dots(x: &[i16], matrix: &[i8], rows: &[u32], out: &mut [i32]) {
    for (&row_idx, out) in rows.iter().zip(out) {
        let row = &matrix[row_idx as usize * x.len()..][..x.len()];
        let products = x
            .iter()
            .zip(row)
            .map(|(&x, &w)| i32::from(x) * i32::from(w));
        *out = products.sum();
    }
}

pub(super) fn find_between(factor: f32, x: &[f32], range: Range<f32>, found: &mut Vec<u32>) {
    found.clear();
    let positions = x.iter().zip(0u32..);
    found.extend(
        positions
            .filter(|(x, _)| range.contains(&(factor * **x)))
            .map(|(_, position)| position),
    );
}
