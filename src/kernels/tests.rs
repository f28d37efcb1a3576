//! Every kernel of every implementation against a plain `f64` reference, and the fast implementations against the
//! scalar one, on odd lengths, unaligned slices, zeros, denormals and large values.

mod checks;
mod inputs;
mod reference;
mod row_checks;

use std::collections::BTreeSet;

use super::*;
use inputs::{KernelInputs, LENGTHS, MagnitudeRange, OFFSETS};
use reference::Expected;

/// A kernel and how to check it.
struct Check {
    /// The method of [`Kernels`].
    name: &'static str,
    /// Runs the kernel and returns everything it wrote or returned.
    run: fn(Kernels, &KernelInputs) -> Vec<f32>,
    /// The same values in `f64`, each with the error allowed.
    expect: fn(&KernelInputs) -> Vec<Expected>,
}

/// One check per method of [`Kernels`].
fn all_checks() -> impl Iterator<Item = &'static Check> {
    checks::CHECKS.iter().chain(row_checks::CHECKS)
}

/// The scalar kernels, and those of this machine if it has others.
fn implementations() -> Vec<Kernels> {
    let fast = Avx2::new().map(Kernels::Avx2);
    std::iter::once(Kernels::Scalar).chain(fast).collect()
}

fn for_each_case(mut visit: impl FnMut(&KernelInputs)) {
    for len in LENGTHS {
        for offset in OFFSETS {
            for magnitudes in MagnitudeRange::ALL {
                visit(&KernelInputs::new(len, offset, magnitudes));
            }
        }
    }
}

#[track_caller]
fn assert_close(found: &[f32], expected: &[Expected], what: impl Fn() -> String) {
    assert_eq!(found.len(), expected.len(), "{}", what());
    for (at, (&found, expected)) in found.iter().zip(expected).enumerate() {
        let error = (f64::from(found) - expected.value).abs();
        assert!(
            error <= expected.tolerance,
            "{}: value {at} is {found:e}, expected {:e} ± {:e}",
            what(),
            expected.value,
            expected.tolerance
        );
    }
}

#[test]
fn every_implementation_agrees_with_the_reference() {
    for check in all_checks() {
        for_each_case(|inputs| {
            let expected = (check.expect)(inputs);
            for kernels in implementations() {
                let found = (check.run)(kernels, inputs);
                assert_close(&found, &expected, || {
                    format!("{} of {kernels:?}, {}", check.name, inputs.name())
                });
            }
        });
    }
}

#[test]
fn fast_implementations_agree_with_the_scalar_one() {
    for check in all_checks() {
        for_each_case(|inputs| {
            let scalar = (check.run)(Kernels::Scalar, inputs);
            // Both may be off by the tolerance, in opposite directions.
            let expected: Vec<Expected> = (check.expect)(inputs)
                .iter()
                .zip(&scalar)
                .map(|(expected, &scalar)| Expected {
                    value: f64::from(scalar),
                    tolerance: 2.0 * expected.tolerance,
                })
                .collect();
            let found = (check.run)(Kernels::detect(), inputs);
            assert_close(&found, &expected, || {
                format!("{} against scalar, {}", check.name, inputs.name())
            });
        });
    }
}

#[test]
fn every_method_has_a_check() {
    let sources = [include_str!("mod.rs"), include_str!("rows.rs")].concat();
    let methods: BTreeSet<&str> = sources
        .split("pub(crate) fn ")
        .skip(1)
        .filter_map(|item| {
            let (name, rest) = item.split_once('(')?;
            rest.trim_start().starts_with("self,").then_some(name)
        })
        .collect();
    let checked: BTreeSet<&str> = all_checks().map(|check| check.name).collect();
    assert!(!methods.is_empty());
    assert_eq!(methods, checked);
}

#[test]
fn not_a_number_is_in_no_range() {
    for kernels in implementations() {
        let special = [f32::NAN, 1.0, f32::INFINITY, f32::NEG_INFINITY, f32::NAN];
        let x = [&special[..]; 4].concat();
        let mut found = vec![7];
        kernels.find_between(1.0, &x, f32::NEG_INFINITY..f32::INFINITY, &mut found);
        assert_eq!(found, [1, 3, 6, 8, 11, 13, 16, 18], "{kernels:?}");
    }
}

#[test]
fn gelu_has_the_published_values() {
    // From scipy.stats.norm: x·cdf(x) and cdf(x) + x·pdf(x).
    let cases = [
        (-3.0, -0.004_049_694, -0.011_945_647),
        (-0.5, -0.154_268_77, 0.132_504_88),
        (0.0, 0.0, 0.5),
        (1.0, 0.841_344_8, 1.083_315_5),
        (6.0, 6.0, 1.0),
    ];
    for kernels in implementations() {
        for (x, value, slope) in cases {
            let (mut derivative, mut out) = ([x], [0.0]);
            kernels.gelu(&mut derivative, &[0.0], &mut out);
            let is_close = |found: f32, expected: f32| (found - expected).abs() < 1e-6;
            assert!(is_close(out[0], value), "{kernels:?} at {x}: {}", out[0]);
            assert!(
                is_close(derivative[0], slope),
                "{kernels:?} at {x}: {}",
                derivative[0]
            );
        }
    }
}
