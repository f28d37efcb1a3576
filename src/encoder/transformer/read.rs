//! From the files of a pretrained transformer to its weights.

use half::{bf16, f16};
use safetensors::SafeTensors;
use safetensors::tensor::{Dtype, TensorView};

use super::shape::Shape;
use super::weights::{Weights, candidates};
use crate::data::Pretrained;
use crate::error::Result;
use crate::matrix::Matrix;

/// The sizes, from `config.json`.
///
/// # Errors
/// [`crate::Error::BadFile`] with what was found and what is supported.
pub(super) fn read_shape(files: &Pretrained) -> Result<Shape> {
    Shape::from_json(&files.config).map_err(|problem| files.bad_config(problem))
}

/// The weights. Tensors that the encoder does not use, such as those of a pooler, are ignored.
///
/// # Errors
/// [`crate::Error::BadFile`] if a tensor is missing, has another shape or type, or holds a value that is not finite.
pub(super) fn read_weights(files: &Pretrained, shape: &Shape) -> Result<Weights> {
    let bad = |problem: String| files.bad_weights(problem);
    let tensors = SafeTensors::deserialize(&files.weights)
        .map_err(|error| bad(format!("it is not safetensors: {error}")))?;
    let mut take = |name: &str, n_rows: usize, n_cols: usize| {
        let names = candidates(shape.architecture, name);
        let found = names.iter().find_map(|name| tensors.tensor(name).ok());
        let tensor = found.ok_or_else(|| {
            let n_found = tensors.len();
            bad(format!(
                "tensor {name} is missing (with or without {:?} in front) among {n_found}",
                shape.architecture.prefix()
            ))
        })?;
        let is_row = n_rows == 1 && tensor.shape() == [n_cols];
        if !is_row && tensor.shape() != [n_rows, n_cols] {
            let found = tensor.shape();
            return Err(bad(format!(
                "tensor {name} is {found:?}, expected [{n_rows}, {n_cols}] by config.json"
            )));
        }
        let values = floats(&tensor).ok_or_else(|| {
            let found = tensor.dtype();
            bad(format!(
                "tensor {name} is {found:?}, supported are F32, F16 and BF16"
            ))
        })?;
        match values.iter().position(|value| !value.is_finite()) {
            None => Ok(Matrix::from_vec(values, n_rows, n_cols).into()),
            Some(at) => Err(bad(format!("tensor {name}: value {at} is {}", values[at]))),
        }
    };
    Weights::new(shape, &mut take)
}

/// The values of a tensor; `None` if it has an unsupported type.
fn floats(tensor: &TensorView<'_>) -> Option<Vec<f32>> {
    let pairs = || tensor.data().chunks_exact(2).map(|b| [b[0], b[1]]);
    let quads = || {
        tensor
            .data()
            .chunks_exact(4)
            .map(|b| [b[0], b[1], b[2], b[3]])
    };
    match tensor.dtype() {
        Dtype::F32 => Some(quads().map(f32::from_le_bytes).collect()),
        Dtype::F16 => Some(pairs().map(|b| f16::from_le_bytes(b).to_f32()).collect()),
        Dtype::BF16 => Some(pairs().map(|b| bf16::from_le_bytes(b).to_f32()).collect()),
        _ => None,
    }
}
