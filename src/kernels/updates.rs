//! Updates of AdamW.
//!
//! SAFETY of every function: the caller has the instructions of `V` and has compared lengths; accesses lie below the
//! common length, those of a tail by their count.

use super::AdamWStep;
use super::vector::{LANES, Vector, load_up_to, store_up_to};

#[inline(always)]
pub(super) unsafe fn adamw<V: Vector>(
    step: &AdamWStep,
    w: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
    v: &mut [f32],
) {
    let n = w.len();
    let (w, gradient) = (w.as_mut_ptr(), gradient.as_ptr());
    let (m, v) = (m.as_mut_ptr(), v.as_mut_ptr());
    unsafe {
        let (beta1, rest1) = (V::splat(step.beta1), V::splat(1.0 - step.beta1));
        let (beta2, rest2) = (V::splat(step.beta2), V::splat(1.0 - step.beta2));
        let epsilon = V::splat(step.epsilon);
        let rate = V::splat(-step.learning_rate / step.bias_correction1);
        let keep = V::splat(1.0 - step.learning_rate * step.weight_decay);
        let inverse2 = V::splat(1.0 / step.bias_correction2);
        for at in (0..n).step_by(LANES) {
            let n_left = n - at;
            let g: V = load_up_to(gradient.add(at), n_left);
            let m_new = beta1.mul_add(load_up_to(m.add(at), n_left), rest1.mul(g));
            let v_new = beta2.mul_add(load_up_to(v.add(at), n_left), rest2.mul(g.mul(g)));
            let root = v_new.mul(inverse2).sqrt().add(epsilon);
            let change = rate.mul(m_new).div(root);
            let w_new = keep.mul_add(load_up_to(w.add(at), n_left), change);
            store_up_to(m_new, m.add(at), n_left);
            store_up_to(v_new, v.add(at), n_left);
            store_up_to(w_new, w.add(at), n_left);
        }
    }
}

#[inline(always)]
pub(super) unsafe fn adamw_scaled<V: Vector>(
    step: &AdamWStep,
    denominator: f32,
    w: &mut [f32],
    gradient: &[f32],
    m: &mut [f32],
) {
    let n = w.len();
    let (w, gradient, m) = (w.as_mut_ptr(), gradient.as_ptr(), m.as_mut_ptr());
    unsafe {
        let (beta1, rest1) = (V::splat(step.beta1), V::splat(1.0 - step.beta1));
        let rate = V::splat(-step.learning_rate / (step.bias_correction1 * denominator));
        let keep = V::splat(1.0 - step.learning_rate * step.weight_decay);
        for at in (0..n).step_by(LANES) {
            let n_left = n - at;
            let g: V = load_up_to(gradient.add(at), n_left);
            let m_new = beta1.mul_add(load_up_to(m.add(at), n_left), rest1.mul(g));
            let w_new = keep.mul_add(load_up_to(w.add(at), n_left), rate.mul(m_new));
            store_up_to(m_new, m.add(at), n_left);
            store_up_to(w_new, w.add(at), n_left);
        }
    }
}
