//! One file of tensors of which each process has a part.
//!
//! Process 0 writes; the others send it their parts piece by piece, so that it never holds more than its own part and a
//! piece of another. The file is the one that a single process would have written. All processes call [`write`] with the
//! same tensors in the same order.

use std::io::{self, Write};

use crate::communicator::Communicator;
use crate::store::format::tensors::{self, Tensor};
use crate::train::Spread;

/// Most bytes of a piece.
const PIECE: usize = 4 << 20;

/// Row offsets of the edges of all processes together, from those of each.
pub(crate) fn sum_offsets(own: &[u64], communicator: &dyn Communicator) -> Vec<u64> {
    let all = communicator.gather_each(own);
    let sum = |row: usize| all.iter().map(|indptr| indptr[row]).sum();
    (0..own.len()).map(sum).collect()
}

/// Writes tensors as one file; on processes other than 0, `out` gets nothing of use.
///
/// `indptr` are the row offsets of the edges that this process has.
///
/// # Errors
/// Those of `out`.
pub(crate) fn write(
    mut tensors: Vec<Tensor<'_>>,
    spread_of: impl Fn(&str) -> Spread,
    indptr: &[u64],
    communicator: &dyn Communicator,
    out: &mut dyn Write,
) -> io::Result<()> {
    if communicator.n_processes() == 1 {
        return tensors::write(tensors, out);
    }
    tensors::sort(&mut tensors);
    let spreads: Vec<Spread> = tensors.iter().map(|t| spread_of(&t.name)).collect();
    let own: Vec<u64> = tensors.iter().map(|t| t.shape[0] as u64).collect();
    let n_rows = communicator.gather_each(&own);
    let mut shapes: Vec<Vec<usize>> = tensors.iter().map(|t| t.shape.clone()).collect();
    for (at, shape) in shapes.iter_mut().enumerate() {
        if spreads[at] != Spread::Whole {
            shape[0] = n_rows.iter().map(|n_rows| n_rows[at] as usize).sum();
        }
    }
    tensors::write_header(&tensors, &shapes, out)?;
    let indptrs = communicator.gather_each(indptr);
    for (at, tensor) in tensors.iter().enumerate() {
        let bytes = tensor.values.bytes();
        let n_row_bytes = bytes.len() / tensor.shape[0].max(1);
        match spreads[at] {
            Spread::Whole => out.write_all(bytes)?,
            Spread::Labels => {
                let n_bytes = |from: usize| n_rows[from][at] as usize * n_row_bytes;
                let lengths: Vec<usize> = (0..communicator.n_processes()).map(n_bytes).collect();
                write_one_after_the_other(bytes, &lengths, communicator, out)?;
            }
            Spread::Edges => write_interleaved(bytes, n_row_bytes, &indptrs, communicator, out)?,
        }
    }
    Ok(())
}

/// The parts of the processes, which are this many bytes long.
fn write_one_after_the_other(
    bytes: &[u8],
    lengths: &[usize],
    communicator: &dyn Communicator,
    out: &mut dyn Write,
) -> io::Result<()> {
    for (from, &length) in lengths.iter().enumerate() {
        if from == 0 {
            out.write_all(&bytes[..lengths[0].min(bytes.len())])?;
            continue;
        }
        for start in (0..length).step_by(PIECE) {
            let piece = match communicator.process() == from {
                true => &bytes[start..length.min(start + PIECE)],
                false => &[],
            };
            for piece in communicator.send_to_first(piece) {
                out.write_all(&piece)?;
            }
        }
    }
    Ok(())
}

/// Row by row what each process has of the row; rows end as `indptrs` say.
fn write_interleaved(
    bytes: &[u8],
    n_edge_bytes: usize,
    indptrs: &[Vec<u64>],
    communicator: &dyn Communicator,
    out: &mut dyn Write,
) -> io::Result<()> {
    let n_edge_bytes = communicator.gather(vec![n_edge_bytes as u64]);
    let n_edge_bytes = n_edge_bytes.into_iter().max().unwrap_or(0) as usize;
    let n_rows = indptrs[0].len() - 1;
    let end = |process: usize, row: usize| indptrs[process][row] as usize * n_edge_bytes;
    let all_ends = |row: usize| {
        (0..indptrs.len())
            .map(|process| end(process, row))
            .sum::<usize>()
    };
    let mut first = 0;
    while first < n_rows {
        // At least one row, and as many as make a piece.
        let mut last = first + 1;
        while last < n_rows && all_ends(last + 1) - all_ends(first) <= PIECE {
            last += 1;
        }
        let process = communicator.process();
        let own = &bytes[end(process, first)..end(process, last)];
        let pieces = communicator.send_to_first(own);
        for row in first..last {
            for (from, piece) in pieces.iter().enumerate() {
                if !piece.is_empty() {
                    let start = end(from, first);
                    out.write_all(&piece[end(from, row) - start..end(from, row + 1) - start])?;
                }
            }
        }
        first = last;
    }
    Ok(())
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::threads;
    use crate::random::Random;
    use crate::store::format::tensors::Values;

    /// Edges of 9 clusters to 50 labels with a weight each, and two numbers a label.
    #[test]
    fn ranks_write_the_file_that_one_would() {
        let mut random = Random::new(5, "edges", 0);
        let lists: Vec<Vec<(u32, f32)>> = (0..9)
            .map(|_| {
                let labels = (0..50u32).filter(|_| random.f32() < 0.3);
                labels.map(|label| (label, label as f32 + 0.5)).collect()
            })
            .collect();
        let rows: Vec<f32> = (0..100).map(|value| value as f32).collect();
        let files = |n_processes| {
            threads::run(n_processes, |communicator| {
                let own = communicator.own_labels(50);
                let mut indptr = vec![0u64];
                let (mut labels, mut weights) = (Vec::new(), Vec::new());
                for list in &lists {
                    let kept = list.iter().filter(|edge| own.contains(&(edge.0 as usize)));
                    for &(label, weight) in kept {
                        labels.push(label as u8);
                        weights.push(weight);
                    }
                    indptr.push(labels.len() as u64);
                }
                let rows = &rows[2 * own.start..2 * own.end];
                let tensors = vec![
                    Tensor::list("edges.labels", Values::U8(&labels)),
                    Tensor::list("edges.weights", Values::F32(&weights)),
                    Tensor::matrix("labels", (own.len(), 2), rows),
                    Tensor::list("whole", Values::U64(&[1, 2, 3])),
                ];
                let spread_of = |name: &str| match name {
                    "labels" => Spread::Labels,
                    "whole" => Spread::Whole,
                    _ => Spread::Edges,
                };
                let mut out = Vec::new();
                write(tensors, spread_of, &indptr, communicator, &mut out).unwrap();
                out
            })
        };
        let alone = files(1);
        for n_processes in [2, 5, 16] {
            assert!(files(n_processes)[0] == alone[0], "{n_processes} processes");
        }
    }
}
