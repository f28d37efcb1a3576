//! Every kernel of every implementation against a plain `f64` reference, and all implementations against each other to
//! the bit, on odd lengths, unaligned slices, zeros, denormals and large values.

mod checks;
mod inputs;
mod reference;
mod row_checks;

use std::collections::BTreeSet;
use std::sync::Mutex;
use std::sync::atomic::{AtomicUsize, Ordering};

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

/// The position in [`Kernels::all`] of the kernels that [`Kernels::detect`] is made to return, plus 1; 0 leaves it alone.
static FORCED: AtomicUsize = AtomicUsize::new(0);

/// The kernels that a test forces on the whole process.
pub(super) fn forced() -> Option<Kernels> {
    match FORCED.load(Ordering::Relaxed) {
        0 => None,
        position => Some(Kernels::all()[position - 1]),
    }
}

/// Calls a function once with each implementation that the machine has, which everything in the process uses meanwhile.
/// Other tests may run at the same time: their results do not change.
pub(crate) fn with_each_implementation<T>(mut call: impl FnMut(Kernels) -> T) -> Vec<T> {
    static ONE_AT_A_TIME: Mutex<()> = Mutex::new(());
    let _guard = ONE_AT_A_TIME
        .lock()
        .unwrap_or_else(|error| error.into_inner());
    let results = Kernels::all().into_iter().enumerate().map(|(at, kernels)| {
        FORCED.store(at + 1, Ordering::Relaxed);
        call(kernels)
    });
    let results = results.collect();
    FORCED.store(0, Ordering::Relaxed);
    results
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
            for kernels in Kernels::all() {
                let found = (check.run)(kernels, inputs);
                assert_close(&found, &expected, || {
                    format!("{} of {kernels:?}, {}", check.name, inputs.name())
                });
            }
        });
    }
}

#[test]
fn every_implementation_has_the_same_bits() {
    for check in all_checks() {
        for_each_case(|inputs| {
            let bits = |kernels: Kernels| -> Vec<u32> {
                let found = (check.run)(kernels, inputs);
                found.into_iter().map(f32::to_bits).collect()
            };
            let expected = bits(Kernels::Scalar);
            for kernels in Kernels::all() {
                let (check, inputs) = (check.name, inputs.name());
                assert_eq!(bits(kernels), expected, "{check} of {kernels:?}, {inputs}");
            }
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
    for kernels in Kernels::all() {
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
    for kernels in Kernels::all() {
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
