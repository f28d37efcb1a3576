//! What the processes of a training tell each other, as typed values.
//!
//! Where there is one process, sums are taken in place and vectors are passed on as they are; [`gather`] copies.

use bytemuck::Pod;
use rayon::prelude::*;

use super::{Communicator, N_RANGES, share};
use crate::kernels::Kernels;

/// Values a task when sums are taken.
const VALUES_PER_TASK: usize = 1 << 13;

/// What every process gives, in the order of processes.
pub(crate) fn gather<T: Pod>(communicator: &dyn Communicator, values: &[T]) -> Vec<Vec<T>> {
    let told = communicator.all_gather(bytemuck::cast_slice(values));
    told.iter().map(|bytes| collect(bytes)).collect()
}

/// Most bytes that a process is told at once.
const PIECE: usize = 4 << 20;

/// What every process gives, one after the other, on all processes. It is told piece by piece, so that it is held once beside
/// the own part.
pub(crate) fn gather_all<T: Pod>(communicator: &dyn Communicator, own: Vec<T>) -> Vec<T> {
    if communicator.n_processes() == 1 {
        return own;
    }
    let lengths = gather(communicator, &[own.len() as u64]).concat();
    let n_values = lengths.iter().sum::<u64>() as usize;
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let mut all = vec![T::zeroed(); n_values];
    let per_piece = PIECE / communicator.n_processes() / size_of::<T>().max(1);
    for start in (0..longest).step_by(per_piece) {
        let piece = start.min(own.len())..(start + per_piece).min(own.len());
        let mut rest = &mut all[..];
        for (values, &length) in gather(communicator, &own[piece]).iter().zip(&lengths) {
            let (of_rank, later) = rest.split_at_mut(length as usize);
            rest = later;
            let start = start.min(of_rank.len());
            of_rank[start..start + values.len()].copy_from_slice(values);
        }
    }
    all
}

/// What every process gives, one after the other, on process 0; nothing on the others. It is told piece by piece.
pub(crate) fn gather_to_first<T: Pod>(communicator: &dyn Communicator, own: Vec<T>) -> Vec<T> {
    if communicator.n_processes() == 1 {
        return own;
    }
    let lengths = gather(communicator, &[own.len() as u64]).concat();
    let n_values = lengths.iter().sum::<u64>() as usize;
    let is_first = communicator.process() == 0;
    let mut all = Vec::with_capacity(if is_first { n_values } else { 0 });
    if is_first {
        all.extend_from_slice(&own);
    }
    let per_piece = PIECE / size_of::<T>().max(1);
    for (from, &length) in lengths.iter().enumerate().skip(1) {
        for start in (0..length as usize).step_by(per_piece) {
            let mut parts: Vec<&[u8]> = vec![&[]; communicator.n_processes()];
            if communicator.process() == from {
                let piece = &own[start..own.len().min(start + per_piece)];
                parts[0] = bytemuck::cast_slice(piece);
            }
            let told = communicator.all_to_all(&parts);
            all.extend(told.iter().flat_map(|bytes| collect::<T>(bytes)));
        }
    }
    all
}

/// What process 0 says; what the others say does not count.
pub(crate) fn is_told(communicator: &dyn Communicator, flag: bool) -> bool {
    if communicator.n_processes() == 1 {
        return flag;
    }
    let mine = [u8::from(flag && communicator.process() == 0)];
    communicator.all_gather(&mine)[0] == [1]
}

/// The values of all ranges, item by item, from those of the own ranges. own: items×own ranges   result: items×ranges
pub(crate) fn gather_ranges(communicator: &dyn Communicator, own: Vec<f32>) -> Vec<f32> {
    if communicator.n_processes() == 1 {
        return own;
    }
    let told = gather(communicator, &own);
    let n_own = share(N_RANGES, communicator.process(), communicator.n_processes()).len();
    let mut all = Vec::with_capacity(own.len() / n_own * N_RANGES);
    for item in 0..own.len() / n_own {
        for (process, values) in told.iter().enumerate() {
            let n = share(N_RANGES, process, communicator.n_processes()).len();
            all.extend_from_slice(&values[item * n..(item + 1) * n]);
        }
    }
    all
}

/// Adds the parts of all ranges to `sum`, one after the other in the order of ranges; all processes get the result.
///
/// Every process gives the parts of its ranges and the same `sum`. A process adds up a part of the values, so that each number
/// of a range crosses the wire once.
pub(crate) fn sum_in_order(communicator: &dyn Communicator, parts: &[&[f32]], sum: &mut [f32]) {
    let (process, n_processes) = (communicator.process(), communicator.n_processes());
    if n_processes == 1 {
        return add_in_order(parts, sum);
    }
    let n_values = sum.len();
    let outgoing: Vec<Vec<f32>> = (0..n_processes)
        .map(|to| {
            let values = share(n_values, to, n_processes);
            let slices = parts.iter().map(|part| &part[values.clone()]);
            slices.collect::<Vec<_>>().concat()
        })
        .collect();
    let outgoing: Vec<&[u8]> = outgoing
        .iter()
        .map(|part| bytemuck::cast_slice(part))
        .collect();
    let incoming = communicator.all_to_all(&outgoing);
    let incoming: Vec<Vec<f32>> = incoming.iter().map(|bytes| collect(bytes)).collect();
    let own = share(n_values, process, n_processes);
    if !own.is_empty() {
        let parts = incoming.iter().flat_map(|part| part.chunks(own.len()));
        add_in_order(&parts.collect::<Vec<_>>(), &mut sum[own.clone()]);
    }
    for (from, values) in gather(communicator, &sum[own]).iter().enumerate() {
        sum[share(n_values, from, n_processes)].copy_from_slice(values);
    }
}

fn add_in_order(parts: &[&[f32]], sum: &mut [f32]) {
    let tasks = sum.par_chunks_mut(VALUES_PER_TASK).enumerate();
    tasks.for_each(|(task, sum)| {
        for part in parts {
            let part = &part[task * VALUES_PER_TASK..][..sum.len()];
            // With the factor 1 the products are exact, so that a sum does not depend on where a chunk begins.
            Kernels::detect().axpy(1.0, part, sum);
        }
    });
}

fn collect<T: Pod>(bytes: &[u8]) -> Vec<T> {
    bytemuck::pod_collect_to_vec(bytes)
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::{own_ranges, threads};
    use crate::random::Random;

    #[test]
    fn sums_over_ranges_have_the_same_bits_on_any_number_of_ranks() {
        let mut random = Random::new(3, "parts", 0);
        for n_values in [0, 1, 5, 1000] {
            let parts: Vec<Vec<f32>> = (0..N_RANGES)
                .map(|_| (0..n_values).map(|_| random.normal()).collect())
                .collect();
            let start: Vec<f32> = (0..n_values).map(|_| random.normal()).collect();
            let sums = |n_processes| {
                threads::run(n_processes, |communicator| {
                    let own: Vec<&[f32]> = parts[own_ranges(communicator)]
                        .iter()
                        .map(Vec::as_slice)
                        .collect();
                    let mut sum = start.clone();
                    sum_in_order(communicator, &own, &mut sum);
                    sum
                })
            };
            let mut expected = start.clone();
            for part in &parts {
                expected.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            for n_processes in [1, 2, 3, 16] {
                assert!(sums(n_processes).iter().all(|sum| *sum == expected));
            }
        }
    }

    #[test]
    fn values_of_ranges_come_in_the_order_of_ranges() {
        for n_processes in [1, 2, 5, 16] {
            let all = threads::run(n_processes, |communicator| {
                let items = 0..3;
                let own = items.flat_map(|item| {
                    own_ranges(communicator).map(move |range| (item * 100 + range) as f32)
                });
                gather_ranges(communicator, own.collect())
            });
            let expected: Vec<f32> = (0..3)
                .flat_map(|item| (0..N_RANGES).map(move |range| (item * 100 + range) as f32))
                .collect();
            assert!(all.iter().all(|values| *values == expected));
        }
    }

    #[test]
    fn rank_zero_or_every_rank_gets_what_all_have_piece_by_piece() {
        for n_processes in [1, 2, 5] {
            // Process 1 has nothing, and process 0 more than a piece.
            let own =
                |process: usize| vec![process as u32; [PIECE / 4 + 3, 0, PIECE / 2, 7, 1][process]];
            let told = threads::run(n_processes, |communicator| {
                gather_to_first(communicator, own(communicator.process()))
            });
            let expected: Vec<u32> = (0..n_processes).flat_map(own).collect();
            assert!(told[0] == expected, "{n_processes} communicator");
            assert!(told[1..].iter().all(Vec::is_empty));
            let told = threads::run(n_processes, |communicator| {
                gather_all(communicator, own(communicator.process()))
            });
            assert!(
                told.iter().all(|all| *all == expected),
                "{n_processes} communicator"
            );
        }
    }

    #[test]
    fn rank_zero_decides() {
        for flag in [false, true] {
            let told = threads::run(3, |communicator| {
                is_told(communicator, flag == (communicator.process() == 0))
            });
            assert_eq!(told, [flag; 3]);
        }
    }
}
