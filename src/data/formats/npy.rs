//! NumPy's array files, as far as sparse matrices need them: flat arrays of numbers, and short byte strings.
//!
//! A file is `\x93NUMPY`, a version, the length of a header, the header (a Python dictionary literal with `descr`,
//! `fortran_order` and `shape`) and the raw elements.

use std::fmt;
use std::io::{self, Read, Write};

use super::f16_to_f32;
use crate::data::io::source::excerpt;

/// An element of any type.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(in crate::data) enum Number {
    Signed(i64),
    Unsigned(u64),
    Float(f64),
}

impl Number {
    /// The element as a count or an index: an integer of at least 0.
    pub(in crate::data) fn as_index(self) -> Option<u64> {
        match self {
            Number::Signed(value) => u64::try_from(value).ok(),
            Number::Unsigned(value) => Some(value),
            Number::Float(_) => None,
        }
    }

    /// The element as a value.
    pub(in crate::data) fn as_f32(self) -> f32 {
        match self {
            Number::Signed(value) => value as f32,
            Number::Unsigned(value) => value as f32,
            Number::Float(value) => value as f32,
        }
    }
}

impl fmt::Display for Number {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Number::Signed(value) => value.fmt(f),
            Number::Unsigned(value) => value.fmt(f),
            Number::Float(value) => value.fmt(f),
        }
    }
}

/// Most columns of a matrix of floats.
const MAX_COLUMNS: u64 = 1 << 16;

#[derive(Debug, PartialEq)]
struct Header {
    is_big_endian: bool,
    /// NumPy's letter: `f`, `i`, `u`, `b`, `S`, `U`.
    kind: u8,
    n_bytes: usize,
    n_elements: u64,
    /// Whether columns follow each other, not rows.
    is_fortran: bool,
    /// Extents.
    shape: Vec<u64>,
}

/// A matrix whose rows are read one after the other.
#[derive(Clone, Copy)]
pub(in crate::data) struct MatrixRows {
    pub(in crate::data) n_rows: u64,
    pub(in crate::data) n_cols: usize,
    is_big_endian: bool,
    /// Bytes of an element.
    n_bytes: usize,
    decode: fn(&[u8]) -> Number,
}

impl MatrixRows {
    /// Reads the header of a matrix of floats.
    ///
    /// # Errors
    /// A phrase of what is wrong.
    pub(in crate::data) fn start(reader: &mut impl Read) -> Result<Self, String> {
        let header = read_header(reader)?;
        let decode = decoder(&header)?;
        let Header {
            is_big_endian,
            n_bytes,
            ..
        } = header;
        match (&header.shape[..], header.kind) {
            (_, b'f') if header.is_fortran => Err(
                "has its columns one after the other: save numpy.ascontiguousarray of it".into(),
            ),
            (&[n_rows, n_cols @ 1..=MAX_COLUMNS], b'f') => Ok(MatrixRows {
                n_rows,
                n_cols: n_cols as usize,
                is_big_endian,
                n_bytes,
                decode,
            }),
            (shape, kind) => Err(format!(
                "has the shape {shape:?} and elements of NumPy type {}{n_bytes}, expected rows of f2, f4 or f8 with 1 to {MAX_COLUMNS} columns",
                char::from(kind)
            )),
        }
    }

    /// Bytes of all rows, if they can be counted.
    pub(in crate::data) fn n_file_bytes(&self) -> Option<u64> {
        let n_values = self.n_rows.checked_mul(self.n_cols as u64)?;
        n_values.checked_mul(self.n_bytes as u64)
    }

    /// Adds the next row to the values.
    ///
    /// # Errors
    /// A phrase of what is wrong.
    pub(in crate::data) fn read_row(
        &self,
        reader: &mut impl Read,
        values: &mut Vec<f32>,
    ) -> Result<(), String> {
        let mut bytes = vec![0u8; self.n_cols * self.n_bytes];
        let read = reader.read_exact(&mut bytes);
        read.map_err(|error| format!("ends early: {error}"))?;
        for element in bytes.chunks_exact_mut(self.n_bytes) {
            if self.is_big_endian {
                element.reverse();
            }
            let value = (self.decode)(element).as_f32();
            if !value.is_finite() {
                return Err(format!("has the value {value}, expected finite numbers"));
            }
            values.push(value);
        }
        Ok(())
    }
}

/// Reads a flat array; `convert` maps an element, and returns `None` if it is out of range.
///
/// # Errors
/// A phrase of what is wrong.
pub(in crate::data) fn read_numbers<T>(
    mut reader: impl Read,
    mut convert: impl FnMut(Number) -> Option<T>,
) -> Result<Vec<T>, String> {
    let header = read_header(&mut reader)?;
    let decode = decoder(&header)?;
    let mut numbers = Vec::new();
    let mut chunk = vec![0u8; 8192 * header.n_bytes];
    let mut n_left = header.n_elements;
    while n_left > 0 {
        let n_now = n_left.min(8192);
        let bytes = &mut chunk[..n_now as usize * header.n_bytes];
        reader.read_exact(bytes).map_err(|error| {
            format!(
                "ends within its {} elements, after about {}: {error}",
                header.n_elements,
                numbers.len()
            )
        })?;
        for element in bytes.chunks_exact_mut(header.n_bytes) {
            if header.is_big_endian {
                element.reverse();
            }
            let number = decode(element);
            let converted = convert(number)
                .ok_or_else(|| format!("element {} is {number}, out of range", numbers.len()))?;
            numbers.push(converted);
        }
        n_left -= n_now;
    }
    Ok(numbers)
}

/// Reads a short string, as its bytes.
///
/// # Errors
/// A phrase of what is wrong.
pub(in crate::data) fn read_text(mut reader: impl Read) -> Result<Vec<u8>, String> {
    let header = read_header(&mut reader)?;
    if !matches!(header.kind, b'S' | b'U') {
        return Err("is not a string".into());
    }
    let mut text = Vec::new();
    let read = reader.take(64).read_to_end(&mut text);
    read.map_err(|error| error.to_string())?;
    Ok(text)
}

/// Writes the header of an array; the elements follow.
pub(in crate::data) fn write_header(
    out: &mut impl Write,
    descr: &str,
    shape: &str,
) -> io::Result<()> {
    let mut header = format!("{{'descr': '{descr}', 'fortran_order': False, 'shape': {shape}, }}");
    // The elements start at a multiple of 64 bytes, the header ends with a line feed.
    let n_before = 10;
    while !(n_before + header.len() + 1).is_multiple_of(64) {
        header.push(' ');
    }
    header.push('\n');
    out.write_all(b"\x93NUMPY\x01\x00")?;
    out.write_all(&(header.len() as u16).to_le_bytes())?;
    out.write_all(header.as_bytes())
}

/// Writes a matrix of this many columns.
///
/// # Errors
/// If it cannot be written.
pub fn write_npy(out: &mut impl Write, n_cols: usize, values: &[f32]) -> io::Result<()> {
    let n_rows = values.len() / n_cols.max(1);
    write_header(out, "<f4", &format!("({n_rows}, {n_cols})"))?;
    for values in values.chunks(16 * 1024) {
        let bytes: Vec<u8> = values
            .iter()
            .flat_map(|value| value.to_le_bytes())
            .collect();
        out.write_all(&bytes)?;
    }
    Ok(())
}

/// Writes a flat array of integers, of 8 bytes each if `is_wide`, otherwise of 4.
pub(in crate::data) fn write_integers(
    out: &mut impl Write,
    is_wide: bool,
    numbers: impl ExactSizeIterator<Item = u64>,
) -> io::Result<()> {
    let shape = format!("({},)", numbers.len());
    write_header(out, if is_wide { "<i8" } else { "<i4" }, &shape)?;
    let mut bytes = Vec::with_capacity(64 * 1024);
    for number in numbers {
        if is_wide {
            bytes.extend_from_slice(&(number as i64).to_le_bytes());
        } else {
            bytes.extend_from_slice(&(number as i32).to_le_bytes());
        }
        if bytes.len() > 64 * 1024 - 8 {
            out.write_all(&bytes)?;
            bytes.clear();
        }
    }
    out.write_all(&bytes)
}

fn read_header(reader: &mut impl Read) -> Result<Header, String> {
    let mut start = [0u8; 8];
    let read = reader.read_exact(&mut start);
    read.map_err(|error| format!("has no NumPy header: {error}"))?;
    if &start[..6] != b"\x93NUMPY" {
        return Err("is not a NumPy array".into());
    }
    let n_length_bytes = if start[6] == 1 { 2 } else { 4 };
    let mut length = [0u8; 4];
    let read = reader.read_exact(&mut length[..n_length_bytes]);
    read.map_err(|error| format!("has no NumPy header: {error}"))?;
    // Longer headers exist for records of many fields only.
    let n_bytes = u32::from_le_bytes(length).min(64 * 1024);
    let mut bytes = Vec::new();
    reader
        .take(u64::from(n_bytes))
        .read_to_end(&mut bytes)
        .map_err(|error| format!("has no NumPy header: {error}"))?;
    let text = String::from_utf8_lossy(&bytes);
    parse_header(&text).ok_or_else(|| {
        format!(
            "has the NumPy header {}, expected a flat array",
            excerpt(text.trim())
        )
    })
}

fn parse_header(text: &str) -> Option<Header> {
    let value_of = |key: &str| {
        let (_, after) = text.split_once(&format!("'{key}':"))?;
        Some(after.trim_ascii_start())
    };
    let descr = value_of("descr")?.strip_prefix('\'')?.split('\'').next()?;
    let (order, rest) = descr.split_at_checked(1)?;
    let (kind, size) = rest.split_at_checked(1)?;
    let size: usize = size.parse().ok()?;
    let shape = value_of("shape")?.strip_prefix('(')?.split(')').next()?;
    let extents = shape.split(',').map(str::trim_ascii);
    let shape: Vec<u64> = extents
        .filter(|extent| !extent.is_empty())
        .map(|extent| extent.trim_end_matches('L').parse().ok())
        .collect::<Option<_>>()?;
    let n_elements = shape
        .iter()
        .try_fold(1u64, |product, &extent| product.checked_mul(extent))?;
    Some(Header {
        is_big_endian: order == ">",
        kind: kind.as_bytes()[0],
        n_bytes: size,
        n_elements,
        is_fortran: value_of("fortran_order").is_some_and(|value| value.starts_with("True")),
        shape,
    })
}

fn decoder(header: &Header) -> Result<fn(&[u8]) -> Number, String> {
    /// The element's bytes, which the chunking made exactly that many.
    fn exact<const N: usize>(bytes: &[u8]) -> [u8; N] {
        bytes.try_into().unwrap_or([0; N])
    }
    Ok(match (header.kind, header.n_bytes) {
        (b'f', 2) => |bytes| Number::Float(f64::from(f16_to_f32(u16::from_le_bytes(exact(bytes))))),
        (b'f', 4) => |bytes| Number::Float(f64::from(f32::from_le_bytes(exact(bytes)))),
        (b'f', 8) => |bytes| Number::Float(f64::from_le_bytes(exact(bytes))),
        (b'i', 1) => |bytes| Number::Signed(i64::from(i8::from_le_bytes(exact(bytes)))),
        (b'i', 2) => |bytes| Number::Signed(i64::from(i16::from_le_bytes(exact(bytes)))),
        (b'i', 4) => |bytes| Number::Signed(i64::from(i32::from_le_bytes(exact(bytes)))),
        (b'i', 8) => |bytes| Number::Signed(i64::from_le_bytes(exact(bytes))),
        (b'u' | b'b', 1) => |bytes| Number::Unsigned(u64::from(bytes[0])),
        (b'u', 2) => |bytes| Number::Unsigned(u64::from(u16::from_le_bytes(exact(bytes)))),
        (b'u', 4) => |bytes| Number::Unsigned(u64::from(u32::from_le_bytes(exact(bytes)))),
        (b'u', 8) => |bytes| Number::Unsigned(u64::from_le_bytes(exact(bytes))),
        (kind, n_bytes) => {
            return Err(format!(
                "has elements of NumPy type {}{n_bytes}, expected f2, f4, f8, an integer or a boolean",
                char::from(kind)
            ));
        }
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn headers_are_parsed() {
        let text = "{'descr': '>i8', 'fortran_order': False, 'shape': (3, 2L,), }  \n";
        let expected = Header {
            is_big_endian: true,
            kind: b'i',
            n_bytes: 8,
            n_elements: 6,
            is_fortran: false,
            shape: vec![3, 2],
        };
        assert_eq!(parse_header(text), Some(expected));
        for bad in [
            "",
            "{'descr': 'é'}",
            "{'descr': '<f4', 'shape': (99999999999, 99999999999)}",
        ] {
            assert_eq!(parse_header(bad), None, "{bad}");
        }
    }

    #[test]
    fn a_claimed_length_does_not_allocate() {
        let mut bytes = Vec::new();
        write_header(&mut bytes, "<f4", "(1000000000000000,)").unwrap();
        bytes.extend_from_slice(&1f32.to_le_bytes());
        let error = read_numbers(&bytes[..], |number| Some(number.as_f32())).unwrap_err();
        assert!(
            error.contains("ends within its 1000000000000000 elements"),
            "{error}"
        );
    }

    #[test]
    fn matrices_are_read_as_written() {
        let values: Vec<f32> = (0..30_000).map(|n| n as f32 / 7.0).collect();
        let mut bytes = Vec::new();
        write_npy(&mut bytes, 3, &values).unwrap();
        let header = String::from_utf8_lossy(&bytes[..128]);
        assert!(header.contains("'shape': (10000, 3)"), "{header}");
        let numbers = read_numbers(&bytes[..], |number| Some(number.as_f32())).unwrap();
        assert_eq!(numbers, values);
    }

    #[test]
    fn integers_are_read_as_written() {
        for is_wide in [false, true] {
            let mut bytes = Vec::new();
            write_integers(
                &mut bytes,
                is_wide,
                (0..20_000u64).collect::<Vec<_>>().into_iter(),
            )
            .unwrap();
            let numbers = read_numbers(&bytes[..], Number::as_index).unwrap();
            assert!(numbers.into_iter().eq(0..20_000));
        }
    }
}
