//! Named tensors in a file: the safetensors format, written in one pass and read in place.
//!
//! Eight bytes with the length of the header, little-endian; the header, JSON, padded with spaces so that the data
//! starts at a multiple of 64 bytes; the data. Tensors are in the order in which they were given, of which the
//! ones with the larger elements come first.

use std::io::{self, Write};
use std::path::{Path, PathBuf};
use std::sync::Arc;

use memmap2::Mmap;
use safetensors::tensor::{Dtype, Metadata, SafeTensors};

use crate::error::{Error, Result, shortened};
use crate::matrix::{EightBits, Matrix, WeightRows};

#[cfg(target_endian = "big")]
compile_error!("model files are little-endian and read in place");

/// Data starts at a multiple of this.
const ALIGNMENT: usize = 64;
/// Most bytes of a header.
const MAX_HEADER: u64 = 1 << 20;

/// Values of a tensor to write.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Values<'a> {
    U64(&'a [u64]),
    F64(&'a [f64]),
    F32(&'a [f32]),
    U32(&'a [u32]),
    U8(&'a [u8]),
    I8(&'a [i8]),
}

/// Row offsets as they are written.
pub(crate) fn offsets(indptr: &[usize]) -> Vec<u64> {
    indptr.iter().map(|&end| end as u64).collect()
}

/// Some values of a list.
pub(crate) struct Excerpt<'a> {
    /// Values of the whole list.
    pub(crate) n_values: usize,
    pub(crate) places: Places<'a>,
}

/// Where the values of an excerpt are.
pub(crate) enum Places<'a> {
    /// One after the other, from this one on.
    From(usize),
    /// At these places.
    At(&'a [usize]),
}

impl Excerpt<'_> {
    fn copy<T: bytemuck::Pod>(&self, bytes: &[u8], out: &mut [T]) {
        let size = size_of::<T>();
        match &self.places {
            Places::From(first) => {
                let n_bytes = size_of_val(out);
                let bytes = &bytes[first * size..][..n_bytes];
                bytemuck::cast_slice_mut(out).copy_from_slice(bytes);
            }
            Places::At(places) => {
                for (out, place) in out.iter_mut().zip(*places) {
                    *out = bytemuck::pod_read_unaligned(&bytes[place * size..][..size]);
                }
            }
        }
    }
}

/// A tensor to write.
#[derive(Clone, Debug)]
pub(crate) struct Tensor<'a> {
    pub(crate) name: String,
    pub(crate) shape: Vec<usize>,
    pub(crate) values: Values<'a>,
}

impl<'a> Tensor<'a> {
    /// A matrix of floats.
    pub(crate) fn matrix(name: &str, (n_rows, n_cols): (usize, usize), values: &'a [f32]) -> Self {
        debug_assert_eq!(values.len(), n_rows * n_cols, "{name}");
        Tensor {
            name: name.into(),
            shape: vec![n_rows, n_cols],
            values: Values::F32(values),
        }
    }

    /// Rows of eight bits: the integers, and the scales as `name_scale`.
    pub(crate) fn eight(name: &str, rows: &'a EightBits) -> [Self; 2] {
        let (values, scales) = rows.parts();
        let whole = Tensor {
            name: name.into(),
            shape: vec![rows.n_rows(), rows.n_cols()],
            values: Values::I8(values.values()),
        };
        [
            whole,
            Tensor::list(&format!("{name}_scale"), Values::F32(scales)),
        ]
    }

    /// A list.
    pub(crate) fn list(name: &str, values: Values<'a>) -> Self {
        Tensor {
            name: name.into(),
            shape: vec![values.len()],
            values,
        }
    }
}

impl<'a> Values<'a> {
    fn len(&self) -> usize {
        match self {
            Values::U64(values) => values.len(),
            Values::F64(values) => values.len(),
            Values::F32(values) => values.len(),
            Values::U32(values) => values.len(),
            Values::U8(values) => values.len(),
            Values::I8(values) => values.len(),
        }
    }

    pub(crate) fn bytes(&self) -> &'a [u8] {
        match self {
            Values::U64(values) => bytemuck::cast_slice(values),
            Values::F64(values) => bytemuck::cast_slice(values),
            Values::F32(values) => bytemuck::cast_slice(values),
            Values::U32(values) => bytemuck::cast_slice(values),
            Values::U8(values) => values,
            Values::I8(values) => bytemuck::cast_slice(values),
        }
    }

    fn dtype(&self) -> (&'static str, usize) {
        match self {
            Values::U64(_) => ("U64", 8),
            Values::F64(_) => ("F64", 8),
            Values::F32(_) => ("F32", 4),
            Values::U32(_) => ("U32", 4),
            Values::U8(_) => ("U8", 1),
            Values::I8(_) => ("I8", 1),
        }
    }
}

/// Writes tensors as one safetensors file.
pub(crate) fn write(mut tensors: Vec<Tensor<'_>>, out: &mut dyn Write) -> io::Result<()> {
    sort(&mut tensors);
    let shapes = tensors.iter().map(|tensor| tensor.shape.clone());
    write_header(&tensors, &shapes.collect::<Vec<_>>(), out)?;
    for tensor in &tensors {
        out.write_all(tensor.values.bytes())?;
    }
    Ok(())
}

/// Puts tensors in the order of a file: each is then aligned to its elements without gaps between tensors.
pub(crate) fn sort(tensors: &mut [Tensor<'_>]) {
    tensors.sort_by_key(|tensor| std::cmp::Reverse(tensor.values.dtype().1));
}

/// Writes what comes before the data, for tensors that have these shapes in the file.
pub(crate) fn write_header(
    tensors: &[Tensor<'_>],
    shapes: &[Vec<usize>],
    out: &mut dyn Write,
) -> io::Result<()> {
    let mut header = String::from("{");
    let mut start = 0;
    for (position, (tensor, shape)) in tensors.iter().zip(shapes).enumerate() {
        let (dtype, n_bytes) = tensor.values.dtype();
        let end = start + shape.iter().product::<usize>() * n_bytes;
        let separator = if position == 0 { "" } else { "," };
        header += &format!(
            "{separator}{}:{{\"dtype\":\"{dtype}\",\"shape\":{shape:?},\"data_offsets\":[{start},{end}]}}",
            serde_json::to_string(&tensor.name)?,
        );
        start = end;
    }
    header.push('}');
    while (8 + header.len()) % ALIGNMENT != 0 {
        header.push(' ');
    }
    out.write_all(&(header.len() as u64).to_le_bytes())?;
    out.write_all(header.as_bytes())
}

/// How thoroughly values are read.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Scan {
    /// Every value of every matrix is looked at: none may be infinite or not a number.
    Everything,
    /// Matrices are not looked at; lists are.
    Lists,
}

/// A mapped safetensors file.
pub(crate) struct TensorFile {
    path: PathBuf,
    map: Arc<Mmap>,
    metadata: Metadata,
    data_start: usize,
    scan: Scan,
    n_taken: usize,
}

impl TensorFile {
    /// Reads the header.
    ///
    /// # Errors
    /// [`Error::BadFile`] if it is not safetensors or its parts do not fill the file exactly.
    pub(crate) fn new(path: &Path, map: Arc<Mmap>, scan: Scan) -> Result<Self> {
        let bad = |problem: String| Error::BadFile {
            path: path.into(),
            problem,
        };
        let length = map.first_chunk().map(|bytes| u64::from_le_bytes(*bytes));
        if length.is_none_or(|length| MAX_HEADER < length) {
            return Err(bad("it does not begin with a safetensors header".into()));
        }
        let (header_len, metadata) = SafeTensors::read_metadata(&map).map_err(|error| {
            bad(format!(
                "its safetensors header is broken: {}",
                shortened(&error.to_string())
            ))
        })?;
        Ok(TensorFile {
            path: path.into(),
            data_start: 8 + header_len,
            map,
            metadata,
            scan,
            n_taken: 0,
        })
    }

    /// How thoroughly it is read.
    pub(crate) fn scan(&self) -> Scan {
        self.scan
    }

    /// The same file, with every value looked at.
    pub(crate) fn scanning_everything(self) -> Self {
        let scan = Scan::Everything;
        TensorFile { scan, ..self }
    }

    /// A matrix of this shape, in place.
    ///
    /// # Errors
    /// [`Error::BadFile`] if it is missing, of another shape, not aligned, or holds a value that is not finite.
    pub(crate) fn matrix(&mut self, name: &str, shape: (usize, usize)) -> Result<Matrix> {
        let bytes = self.bytes(name, Dtype::F32, &[shape.0, shape.1])?;
        let matrix = Matrix::from_map(Arc::clone(&self.map), bytes.start, shape.0, shape.1)
            .map_err(|error| self.bad(name, &error.to_string()))?;
        if self.scan == Scan::Everything {
            self.check_finite(name, matrix.values())?;
        }
        Ok(matrix)
    }

    /// Rows of weights, in place, in 32 bits or in eight.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn weight_rows(&mut self, name: &str, shape: (usize, usize)) -> Result<WeightRows> {
        match self.metadata.info(name).map(|info| info.dtype) {
            Some(Dtype::I8) => self.eight_bits(name, shape).map(WeightRows::Eight),
            _ => self.matrix(name, shape).map(WeightRows::Full),
        }
    }

    /// Rows of eight bits, in place.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn eight_bits(&mut self, name: &str, shape: (usize, usize)) -> Result<EightBits> {
        let bytes = self.bytes(name, Dtype::I8, &[shape.0, shape.1])?;
        let values = Matrix::from_map(Arc::clone(&self.map), bytes.start, shape.0, shape.1)
            .map_err(|error| self.bad(name, &error.to_string()))?;
        let scales = format!("{name}_scale");
        let of_rows = self.floats(&scales, shape.0)?;
        EightBits::from_parts(values, of_rows)
            .map_err(|error| self.bad(&scales, &error.to_string()))
    }

    /// A list of finite floats.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn floats(&mut self, name: &str, n_values: usize) -> Result<Vec<f32>> {
        let values = self.list::<f32>(name, Dtype::F32, n_values)?;
        self.check_finite(name, &values)?;
        Ok(values)
    }

    /// A list of 32-bit numbers.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn numbers(&mut self, name: &str, n_values: usize) -> Result<Vec<u32>> {
        self.list(name, Dtype::U32, n_values)
    }

    /// A list of 64-bit numbers.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn large_numbers(&mut self, name: &str, n_values: usize) -> Result<Vec<u64>> {
        self.list(name, Dtype::U64, n_values)
    }

    /// A list of bytes.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn octets(&mut self, name: &str, n_values: usize) -> Result<Vec<u8>> {
        self.list(name, Dtype::U8, n_values)
    }

    /// A list of integers of eight bits.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn small_integers(&mut self, name: &str, n_values: usize) -> Result<Vec<i8>> {
        self.list(name, Dtype::I8, n_values)
    }

    /// A list of 64-bit floats, which may be anything.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn doubles(&mut self, name: &str, n_values: usize) -> Result<Vec<f64>> {
        self.list(name, Dtype::F64, n_values)
    }

    /// Fills an array with some of a list's finite floats.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn copy_floats(
        &mut self,
        name: &str,
        from: &Excerpt<'_>,
        out: &mut [f32],
    ) -> Result<()> {
        let bytes = self.bytes(name, Dtype::F32, &[from.n_values])?;
        from.copy(&self.map[bytes], out);
        self.check_finite(name, out)
    }

    /// Fills an array with some of a list's 32-bit numbers.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn copy_numbers(
        &mut self,
        name: &str,
        from: &Excerpt<'_>,
        out: &mut [u32],
    ) -> Result<()> {
        let bytes = self.bytes(name, Dtype::U32, &[from.n_values])?;
        from.copy(&self.map[bytes], out);
        Ok(())
    }

    /// Fills an array with some of a list's flags, of which each byte that is not 0 is one.
    ///
    /// # Errors
    /// As [`TensorFile::matrix`].
    pub(crate) fn copy_flags(
        &mut self,
        name: &str,
        from: &Excerpt<'_>,
        out: &mut [bool],
    ) -> Result<()> {
        let bytes = self.bytes(name, Dtype::U8, &[from.n_values])?;
        let mut flags = vec![0u8; out.len()];
        from.copy(&self.map[bytes], &mut flags);
        let flags = out.iter_mut().zip(flags);
        flags.for_each(|(flag, byte)| *flag = byte != 0);
        Ok(())
    }

    /// Entries of a list.
    ///
    /// # Errors
    /// [`Error::BadFile`] if there is no such tensor or it is not a list.
    pub(crate) fn len(&self, name: &str) -> Result<usize> {
        match self.metadata.info(name).map(|info| &info.shape[..]) {
            Some([n_values]) => Ok(*n_values),
            Some(_) => Err(self.bad(name, "it is not a list")),
            None => Err(self.bad(name, "it is missing")),
        }
    }

    /// Whether there is a tensor of this name.
    pub(crate) fn has(&self, name: &str) -> bool {
        self.metadata.info(name).is_some()
    }

    /// Nothing may be left that nobody asked for.
    ///
    /// # Errors
    /// [`Error::BadFile`] if there is.
    pub(crate) fn finish(self) -> Result<()> {
        let n_tensors = self.metadata.tensors().len();
        if n_tensors == self.n_taken {
            return Ok(());
        }
        let problem = format!("it holds {n_tensors} tensors, expected {}", self.n_taken);
        Err(Error::BadFile {
            path: self.path,
            problem,
        })
    }

    fn list<T: bytemuck::Pod>(&mut self, name: &str, dtype: Dtype, n: usize) -> Result<Vec<T>> {
        let bytes = self.bytes(name, dtype, &[n])?;
        Ok(bytemuck::pod_collect_to_vec(&self.map[bytes]))
    }

    fn bytes(
        &mut self,
        name: &str,
        dtype: Dtype,
        shape: &[usize],
    ) -> Result<std::ops::Range<usize>> {
        let info = self
            .metadata
            .info(name)
            .ok_or_else(|| self.bad(name, "it is missing"))?;
        if info.dtype != dtype || info.shape != shape {
            let (found, found_shape) = (info.dtype, &info.shape);
            let problem = format!("it is {found:?} {found_shape:?}, expected {dtype:?} {shape:?}");
            return Err(self.bad(name, &problem));
        }
        self.n_taken += 1;
        let (start, end) = info.data_offsets;
        Ok(self.data_start + start..self.data_start + end)
    }

    fn check_finite(&self, name: &str, values: &[f32]) -> Result<()> {
        use rayon::prelude::*;
        let is_finite = |chunk: &[f32]| {
            chunk
                .iter()
                .fold(true, |all, value| all & value.is_finite())
        };
        if values.par_chunks(1 << 16).all(is_finite) {
            return Ok(());
        }
        let position = values.iter().position(|value| !value.is_finite());
        let position = position.unwrap_or_default();
        let problem = format!("value {position} is {}", values[position]);
        Err(self.bad(name, &problem))
    }

    pub(crate) fn bad(&self, name: &str, problem: &str) -> Error {
        Error::BadFile {
            path: self.path.clone(),
            problem: format!("tensor {name}: {problem}"),
        }
    }
}
