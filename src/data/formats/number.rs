//! Numbers as data files spell them.

/// An unsigned integer that fills the whole text; `None` if it does not or overflows.
#[inline]
pub(in crate::data) fn parse_integer(text: &[u8]) -> Option<u64> {
    if text.is_empty() {
        return None;
    }
    let mut value = 0u64;
    for &byte in text {
        let digit = byte.wrapping_sub(b'0');
        if digit > 9 {
            return None;
        }
        value = value.checked_mul(10)?.checked_add(u64::from(digit))?;
    }
    Some(value)
}

/// A finite number that fills the whole text.
#[inline]
pub(in crate::data) fn parse_finite(text: &str) -> Option<f32> {
    text.parse::<f32>().ok().filter(|value| value.is_finite())
}

/// A relevance that fills the whole text: finite and not negative.
pub(in crate::data) fn parse_relevance(text: &str) -> Option<f32> {
    parse_finite(text).filter(|relevance| *relevance >= 0.0)
}

/// A number of 16 bits (IEEE 754).
pub(in crate::data) fn f16_to_f32(bits: u16) -> f32 {
    let (exponent, fraction) = (u32::from(bits >> 10 & 0x1f), u32::from(bits & 0x3ff));
    let magnitude = match exponent {
        0 => fraction as f32 * 2f32.powi(-24),
        31 if fraction == 0 => f32::INFINITY,
        31 => f32::NAN,
        _ => f32::from_bits((exponent + 112) << 23 | fraction << 13),
    };
    if bits >> 15 == 0 {
        magnitude
    } else {
        -magnitude
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn numbers_of_16_bits_are_those_of_ieee_754() {
        for bits in 0..=u16::MAX {
            let (found, expected) = (f16_to_f32(bits), half::f16::from_bits(bits).to_f32());
            assert!(found.to_bits() == expected.to_bits() || found.is_nan() && expected.is_nan());
        }
    }

    #[test]
    fn only_digits_are_integers() {
        assert_eq!(parse_integer(b"018"), Some(18));
        assert_eq!(parse_integer(b"18446744073709551615"), Some(u64::MAX));
        for bad in ["", "18446744073709551616", "-1", "+1", "1 ", "1e3", "٣"] {
            assert_eq!(parse_integer(bad.as_bytes()), None, "{bad}");
        }
    }

    #[test]
    fn infinity_and_nan_are_rejected() {
        assert_eq!(parse_finite("-1.5e-3"), Some(-0.0015));
        for bad in ["", "nan", "inf", "-Infinity", "1e99", "1,5", " 1"] {
            assert_eq!(parse_finite(bad), None, "{bad}");
        }
        assert_eq!(parse_relevance("-0.5"), None);
    }
}
