//! What the ranks of a training tell each other, as typed values.
//!
//! Where there is one rank, sums are taken in place and vectors are passed on as they are; [`gather`] copies.

use bytemuck::Pod;
use rayon::prelude::*;

use super::{N_RANGES, Ranks, share};
use crate::kernels::Kernels;

/// Values a task when sums are taken.
const VALUES_PER_TASK: usize = 1 << 13;

/// What every rank gives, in the order of ranks.
pub(crate) fn gather<T: Pod>(ranks: &dyn Ranks, values: &[T]) -> Vec<Vec<T>> {
    let told = ranks.all_gather(bytemuck::cast_slice(values));
    told.iter().map(|bytes| collect(bytes)).collect()
}

/// Most bytes that a rank is told at once.
const PIECE: usize = 4 << 20;

/// What every rank gives, one after the other, on all ranks. It is told piece by piece, so that it is held once beside
/// the own part.
pub(crate) fn gather_all<T: Pod>(ranks: &dyn Ranks, own: Vec<T>) -> Vec<T> {
    if ranks.n_ranks() == 1 {
        return own;
    }
    let lengths = gather(ranks, &[own.len() as u64]).concat();
    let n_values = lengths.iter().sum::<u64>() as usize;
    let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
    let mut all = vec![T::zeroed(); n_values];
    let per_piece = PIECE / ranks.n_ranks() / size_of::<T>().max(1);
    for start in (0..longest).step_by(per_piece) {
        let piece = start.min(own.len())..(start + per_piece).min(own.len());
        let mut rest = &mut all[..];
        for (values, &length) in gather(ranks, &own[piece]).iter().zip(&lengths) {
            let (of_rank, later) = rest.split_at_mut(length as usize);
            rest = later;
            let start = start.min(of_rank.len());
            of_rank[start..start + values.len()].copy_from_slice(values);
        }
    }
    all
}

/// What every rank gives, one after the other, on rank 0; nothing on the others. It is told piece by piece.
pub(crate) fn gather_to_first<T: Pod>(ranks: &dyn Ranks, own: Vec<T>) -> Vec<T> {
    if ranks.n_ranks() == 1 {
        return own;
    }
    let lengths = gather(ranks, &[own.len() as u64]).concat();
    let n_values = lengths.iter().sum::<u64>() as usize;
    let is_first = ranks.rank() == 0;
    let mut all = Vec::with_capacity(if is_first { n_values } else { 0 });
    if is_first {
        all.extend_from_slice(&own);
    }
    let per_piece = PIECE / size_of::<T>().max(1);
    for (from, &length) in lengths.iter().enumerate().skip(1) {
        for start in (0..length as usize).step_by(per_piece) {
            let mut parts: Vec<&[u8]> = vec![&[]; ranks.n_ranks()];
            if ranks.rank() == from {
                let piece = &own[start..own.len().min(start + per_piece)];
                parts[0] = bytemuck::cast_slice(piece);
            }
            let told = ranks.all_to_all(&parts);
            all.extend(told.iter().flat_map(|bytes| collect::<T>(bytes)));
        }
    }
    all
}

/// What rank 0 says; what the others say does not count.
pub(crate) fn is_told(ranks: &dyn Ranks, flag: bool) -> bool {
    if ranks.n_ranks() == 1 {
        return flag;
    }
    let mine = [u8::from(flag && ranks.rank() == 0)];
    ranks.all_gather(&mine)[0] == [1]
}

/// The values of all ranges, item by item, from those of the own ranges. own: items×own ranges   result: items×ranges
pub(crate) fn gather_ranges(ranks: &dyn Ranks, own: Vec<f32>) -> Vec<f32> {
    if ranks.n_ranks() == 1 {
        return own;
    }
    let told = gather(ranks, &own);
    let n_own = share(N_RANGES, ranks.rank(), ranks.n_ranks()).len();
    let mut all = Vec::with_capacity(own.len() / n_own * N_RANGES);
    for item in 0..own.len() / n_own {
        for (rank, values) in told.iter().enumerate() {
            let n = share(N_RANGES, rank, ranks.n_ranks()).len();
            all.extend_from_slice(&values[item * n..(item + 1) * n]);
        }
    }
    all
}

/// Adds the parts of all ranges to `sum`, one after the other in the order of ranges; all ranks get the result.
///
/// Every rank gives the parts of its ranges and the same `sum`. A rank adds up a part of the values, so that each number
/// of a range crosses the wire once.
pub(crate) fn sum_in_order(ranks: &dyn Ranks, parts: &[&[f32]], sum: &mut [f32]) {
    let (rank, n_ranks) = (ranks.rank(), ranks.n_ranks());
    if n_ranks == 1 {
        return add_in_order(parts, sum);
    }
    let n_values = sum.len();
    let outgoing: Vec<Vec<f32>> = (0..n_ranks)
        .map(|to| {
            let values = share(n_values, to, n_ranks);
            let slices = parts.iter().map(|part| &part[values.clone()]);
            slices.collect::<Vec<_>>().concat()
        })
        .collect();
    let outgoing: Vec<&[u8]> = outgoing
        .iter()
        .map(|part| bytemuck::cast_slice(part))
        .collect();
    let incoming = ranks.all_to_all(&outgoing);
    let incoming: Vec<Vec<f32>> = incoming.iter().map(|bytes| collect(bytes)).collect();
    let own = share(n_values, rank, n_ranks);
    if !own.is_empty() {
        let parts = incoming.iter().flat_map(|part| part.chunks(own.len()));
        add_in_order(&parts.collect::<Vec<_>>(), &mut sum[own.clone()]);
    }
    for (from, values) in gather(ranks, &sum[own]).iter().enumerate() {
        sum[share(n_values, from, n_ranks)].copy_from_slice(values);
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
            let sums = |n_ranks| {
                threads::run(n_ranks, |ranks| {
                    let own: Vec<&[f32]> =
                        parts[own_ranges(ranks)].iter().map(Vec::as_slice).collect();
                    let mut sum = start.clone();
                    sum_in_order(ranks, &own, &mut sum);
                    sum
                })
            };
            let mut expected = start.clone();
            for part in &parts {
                expected.iter_mut().zip(part).for_each(|(sum, x)| *sum += x);
            }
            for n_ranks in [1, 2, 3, 16] {
                assert!(sums(n_ranks).iter().all(|sum| *sum == expected));
            }
        }
    }

    #[test]
    fn values_of_ranges_come_in_the_order_of_ranges() {
        for n_ranks in [1, 2, 5, 16] {
            let all = threads::run(n_ranks, |ranks| {
                let items = 0..3;
                let own = items.flat_map(|item| {
                    own_ranges(ranks).map(move |range| (item * 100 + range) as f32)
                });
                gather_ranges(ranks, own.collect())
            });
            let expected: Vec<f32> = (0..3)
                .flat_map(|item| (0..N_RANGES).map(move |range| (item * 100 + range) as f32))
                .collect();
            assert!(all.iter().all(|values| *values == expected));
        }
    }

    #[test]
    fn rank_zero_or_every_rank_gets_what_all_have_piece_by_piece() {
        for n_ranks in [1, 2, 5] {
            // Rank 1 has nothing, and rank 0 more than a piece.
            let own = |rank: usize| vec![rank as u32; [PIECE / 4 + 3, 0, PIECE / 2, 7, 1][rank]];
            let told = threads::run(n_ranks, |ranks| gather_to_first(ranks, own(ranks.rank())));
            let expected: Vec<u32> = (0..n_ranks).flat_map(own).collect();
            assert!(told[0] == expected, "{n_ranks} ranks");
            assert!(told[1..].iter().all(Vec::is_empty));
            let told = threads::run(n_ranks, |ranks| gather_all(ranks, own(ranks.rank())));
            assert!(told.iter().all(|all| *all == expected), "{n_ranks} ranks");
        }
    }

    #[test]
    fn rank_zero_decides() {
        for flag in [false, true] {
            let told = threads::run(3, |ranks| is_told(ranks, flag == (ranks.rank() == 0)));
            assert_eq!(told, [flag; 3]);
        }
    }
}
