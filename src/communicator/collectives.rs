//! Wholes of parts: gathered, summed in order, or the highest.
//!
//! All processes call an operation together. On one process a vector is passed on as it is, and sums are taken in place.

use rayon::prelude::*;

use super::message::{Message, packed, unpacked};
use super::partition::part;
use super::{Communicator, N_RANGES, shares_clusters};
use crate::kernels::Kernels;

/// Values per task when sums are taken.
const VALUES_PER_TASK: usize = 1 << 13;

/// Most bytes that a process receives at once of what is sent piece by piece.
const PIECE: usize = 4 << 20;

impl dyn Communicator + '_ {
    /// The values of each process, in their order.
    pub(crate) fn gather_each<T: Message>(&self, own: &[T]) -> Vec<Vec<T>> {
        let sent = self.all_gather(bytemuck::cast_slice(&packed(own)));
        sent.iter().map(|bytes| unpacked(bytes).collect()).collect()
    }

    /// The values of all processes, one after the other: few of them, in one call.
    pub(crate) fn gather<T: Message>(&self, own: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return own;
        }
        let sent = self.all_gather(bytemuck::cast_slice(&packed(&own)));
        sent.iter().flat_map(|bytes| unpacked(bytes)).collect()
    }

    /// The values of all processes, one after the other: many of them, piece by piece, so that they are held once beside
    /// the own part.
    pub(crate) fn gather_many<T: Message>(&self, own: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return own;
        }
        let lengths = self.gather(vec![own.len() as u64]);
        let n_values = lengths.iter().sum::<u64>() as usize;
        let longest = lengths.iter().copied().max().unwrap_or(0) as usize;
        let mut all = vec![T::unpack(bytemuck::Zeroable::zeroed()); n_values];
        let per_piece = PIECE / self.n_processes() / size_of::<T::Plain>().max(1);
        for start in (0..longest).step_by(per_piece) {
            let piece = start.min(own.len())..(start + per_piece).min(own.len());
            let mut rest = &mut all[..];
            for (values, &length) in self.gather_each(&own[piece]).iter().zip(&lengths) {
                let (of_process, later) = rest.split_at_mut(length as usize);
                rest = later;
                let start = start.min(of_process.len());
                of_process[start..start + values.len()].copy_from_slice(values);
            }
        }
        all
    }

    /// The lists of all processes, one after the other, piece by piece.
    pub(crate) fn gather_lists<T: Message>(&self, own: Vec<Vec<T>>) -> Vec<Vec<T>> {
        if self.is_alone() {
            return own;
        }
        let lengths = self.gather_many(own.iter().map(|list| list.len() as u32).collect());
        let values = own.iter().flatten().copied().collect();
        drop(own);
        let mut all = self.gather_many(values).into_iter();
        let list = |n: u32| all.by_ref().take(n as usize).collect();
        lengths.into_iter().map(list).collect()
    }

    /// Lists with the same number on every process, joined in the order of processes.
    pub(crate) fn join_lists<T: Message>(&self, own: Vec<Vec<T>>) -> Vec<Vec<T>> {
        if self.is_alone() {
            return own;
        }
        let lengths: Vec<u32> = own.iter().map(|list| list.len() as u32).collect();
        let lengths = self.gather_each(&lengths);
        let values = self.gather_each(&own.concat());
        let mut parts: Vec<_> = values.iter().map(|values| values.iter().copied()).collect();
        let join = |at: usize| {
            let lists = parts.iter_mut().zip(&lengths);
            lists
                .flat_map(|(part, lengths)| part.by_ref().take(lengths[at] as usize))
                .collect()
        };
        (0..own.len()).map(join).collect()
    }

    /// The values of all processes, one after the other, on process 0; nothing on the others. Sent piece by piece.
    pub(crate) fn gather_to_first<T: Message>(&self, own: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return own;
        }
        let lengths = self.gather(vec![own.len() as u64]);
        let mut all = Vec::new();
        if self.is_first() {
            all.reserve_exact(lengths.iter().sum::<u64>() as usize);
            all.extend_from_slice(&own);
        }
        let per_piece = PIECE / size_of::<T::Plain>().max(1);
        for (from, &length) in lengths.iter().enumerate().skip(1) {
            for start in (0..length as usize).step_by(per_piece) {
                let piece = if self.process() == from {
                    packed(&own[start..own.len().min(start + per_piece)])
                } else {
                    Vec::new()
                };
                let sent = self.send_to_first(bytemuck::cast_slice(&piece));
                all.extend(sent.iter().flat_map(|bytes| unpacked::<T>(bytes)));
            }
        }
        all
    }

    /// Sends process 0 some bytes; returns what each process sent to this one.
    pub(crate) fn send_to_first(&self, bytes: &[u8]) -> Vec<Vec<u8>> {
        let mut parts: Vec<&[u8]> = vec![&[]; self.n_processes()];
        parts[0] = bytes;
        self.all_to_all(&parts)
    }

    /// Columns of all processes side by side, from the own ones. own: rows×own columns   result: rows×all columns
    pub(crate) fn join_columns<T: Message>(&self, n_rows: usize, own: Vec<T>) -> Vec<T> {
        if self.is_alone() {
            return own;
        }
        let parts = self.gather_each(&own);
        let mut all = Vec::with_capacity(parts.iter().map(Vec::len).sum());
        for row in 0..n_rows {
            for part in &parts {
                let n_columns = part.len() / n_rows;
                all.extend_from_slice(&part[row * n_columns..(row + 1) * n_columns]);
            }
        }
        all
    }

    /// The values of all ranges, item by item, from those of the own ranges. own: items×own ranges   result: items×ranges
    pub(crate) fn join_ranges(&self, own: Vec<f32>) -> Vec<f32> {
        self.join_columns(own.len() / self.own_ranges().len(), own)
    }

    /// The sum over all ranges of each item, in the order of ranges. own: items×own ranges   result: items
    pub(crate) fn sum_ranges(&self, own: Vec<f32>) -> Vec<f32> {
        let all = self.join_ranges(own);
        all.par_chunks(N_RANGES)
            .map(|ranges| ranges.iter().sum())
            .collect()
    }

    /// Adds the parts of all ranges to `sum`, one after the other in the order of ranges; all processes get the result.
    ///
    /// Every process gives the parts of its ranges and the same `sum`. A process adds up a part of the values, so that
    /// each number of a range crosses the wire once.
    pub(crate) fn sum_in_order<'p>(&self, parts: impl Iterator<Item = &'p [f32]>, sum: &mut [f32]) {
        let parts: Vec<&[f32]> = parts.collect();
        if self.is_alone() {
            return add_in_order(&parts, sum);
        }
        let n_values = sum.len();
        let of_process = |process| part(n_values, process, self.n_processes());
        let outgoing: Vec<Vec<f32>> = (0..self.n_processes())
            .map(|to| {
                parts
                    .iter()
                    .flat_map(|part| &part[of_process(to)])
                    .copied()
                    .collect()
            })
            .collect();
        let outgoing: Vec<&[u8]> = outgoing
            .iter()
            .map(|part| bytemuck::cast_slice(part))
            .collect();
        let incoming: Vec<Vec<f32>> = self
            .all_to_all(&outgoing)
            .iter()
            .map(|bytes| unpacked(bytes).collect())
            .collect();
        let own = self.own(n_values);
        if !own.is_empty() {
            let parts = incoming.iter().flat_map(|part| part.chunks(own.len()));
            add_in_order(&parts.collect::<Vec<_>>(), &mut sum[own.clone()]);
        }
        let all = self.gather(sum[own].to_vec());
        sum.copy_from_slice(&all);
    }

    /// The sum of each count and the values of all processes, one after the other: few of them, in one call.
    pub(crate) fn sum_and_gather<const N: usize>(
        &self,
        counts: [usize; N],
        own: Vec<u32>,
    ) -> ([usize; N], Vec<u32>) {
        if self.is_alone() {
            return (counts, own);
        }
        let mut bytes = bytemuck::cast_slice(&counts.map(|count| count as u64)).to_vec();
        bytes.extend_from_slice(bytemuck::cast_slice(&own));
        let (mut sums, mut all) = ([0; N], Vec::new());
        for bytes in self.all_gather(&bytes) {
            let (counts, values) = bytes.split_at(N * size_of::<u64>());
            let counts = sums.iter_mut().zip(unpacked::<u64>(counts));
            counts.for_each(|(sum, count)| *sum += count as usize);
            all.extend(unpacked::<u32>(values));
        }
        (sums, all)
    }

    /// Fills in the values that belong to ranges of other processes; `range_of` gives the range of each.
    pub(crate) fn fill(&self, values: &mut [f32], range_of: impl Fn(usize) -> usize) {
        if self.is_alone() {
            return;
        }
        let owner = |at: usize| {
            let range = range_of(at);
            let owns =
                |process: &usize| part(N_RANGES, *process, self.n_processes()).contains(&range);
            (0..self.n_processes()).find(owns)
        };
        let owners: Vec<Option<usize>> = (0..values.len()).map(owner).collect();
        let own = std::iter::zip(&owners, values.iter())
            .filter(|(owner, _)| **owner == Some(self.process()));
        let sent = self.gather_each(&own.map(|(_, &value)| value).collect::<Vec<_>>());
        let mut parts: Vec<_> = sent.into_iter().map(Vec::into_iter).collect();
        for (value, owner) in values.iter_mut().zip(owners) {
            if let Some(next) = owner.and_then(|owner| parts[owner].next()) {
                *value = next;
            }
        }
    }

    /// Raises each value to the highest that any process has.
    pub(crate) fn max(&self, values: &mut [f32]) {
        if self.is_alone() {
            return;
        }
        for sent in self.gather_each(values) {
            for (value, other) in values.iter_mut().zip(sent) {
                *value = value.max(other);
            }
        }
    }

    /// Brings the rows of clusters that other processes own up to date, where processes share the clusters. values: C×any
    pub(crate) fn refresh_clusters(&self, n_clusters: usize, values: &mut [f32]) {
        if self.is_alone() || !shares_clusters(n_clusters) {
            return;
        }
        let own = self.own_clusters(n_clusters);
        let n_columns = values.len() / n_clusters;
        let own = own[0].start * n_columns..own[own.len() - 1].end * n_columns;
        values.copy_from_slice(&self.gather_many(values[own].to_vec()));
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

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::threads;
    use crate::ids::ClusterId;
    use crate::random::Random;

    #[test]
    fn sums_over_ranges_have_the_same_bits_on_any_number_of_processes() {
        let mut random = Random::new(3, "parts", 0);
        for n_values in [0, 1, 5, 1000] {
            let parts: Vec<Vec<f32>> = (0..N_RANGES)
                .map(|_| (0..n_values).map(|_| random.normal()).collect())
                .collect();
            let start: Vec<f32> = (0..n_values).map(|_| random.normal()).collect();
            let sums = |n_processes| {
                threads::run(n_processes, |communicator| {
                    let own = parts[communicator.own_ranges()].iter().map(Vec::as_slice);
                    let mut sum = start.clone();
                    communicator.sum_in_order(own, &mut sum);
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
        let value = |item: usize, range: usize| (item * 100 + range) as f32;
        for n_processes in [1, 2, 5, 16] {
            let all = threads::run(n_processes, |communicator| {
                let ranges = communicator.own_ranges();
                let of_item = |item| ranges.clone().map(move |range| value(item, range));
                let own: Vec<f32> = (0..3).flat_map(of_item).collect();
                let sums = communicator.sum_ranges(own.clone());
                (communicator.join_ranges(own), sums)
            });
            let of_item = |item| (0..N_RANGES).map(move |range| value(item, range));
            let expected: Vec<f32> = (0..3).flat_map(of_item).collect();
            let sums: Vec<f32> = (0..3).map(|item| of_item(item).sum()).collect();
            assert!(
                all.iter()
                    .all(|found| *found == (expected.clone(), sums.clone()))
            );
        }
    }

    #[test]
    fn process_zero_or_every_process_gets_what_all_have_piece_by_piece() {
        for n_processes in [1, 2, 5] {
            // Process 1 has nothing, and process 0 more than a piece.
            let own =
                |process: usize| vec![process as u32; [PIECE / 4 + 3, 0, PIECE / 2, 7, 1][process]];
            let expected: Vec<u32> = (0..n_processes).flat_map(own).collect();
            let first = threads::run(n_processes, |communicator| {
                communicator.gather_to_first(own(communicator.process()))
            });
            assert!(first[0] == expected, "{n_processes} processes");
            assert!(first[1..].iter().all(Vec::is_empty));
            let many = threads::run(n_processes, |communicator| {
                communicator.gather_many(own(communicator.process()))
            });
            assert!(
                many.iter().all(|all| *all == expected),
                "{n_processes} processes"
            );
        }
    }

    #[test]
    fn lists_are_appended_or_joined_in_the_order_of_processes() {
        for n_processes in [1, 2, 3] {
            // List i of process p has i+p entries.
            let own = |process: usize| -> Vec<Vec<(ClusterId, f32)>> {
                let list = |n: usize| (0..n).map(|at| (ClusterId(at as u32), process as f32));
                (0..3).map(|at| list(at + process).collect()).collect()
            };
            let parts: Vec<_> = (0..n_processes).map(own).collect();
            let joined: Vec<Vec<_>> = (0..3)
                .map(|at| parts.iter().flat_map(|lists| lists[at].clone()).collect())
                .collect();
            let found = threads::run(n_processes, |communicator| {
                let own = own(communicator.process());
                (
                    communicator.gather_lists(own.clone()),
                    communicator.join_lists(own),
                )
            });
            assert!(
                found
                    .iter()
                    .all(|all| *all == (parts.concat(), joined.clone()))
            );
        }
    }

    #[test]
    fn counts_are_added_up_and_values_of_others_filled_in() {
        for n_processes in [1, 3, 16] {
            let found = threads::run(n_processes, |communicator| {
                let process = communicator.process();
                let counted =
                    communicator.sum_and_gather([1, process], vec![process as u32; process]);
                let mut highest = [process as f32, -(process as f32)];
                communicator.max(&mut highest);
                let parents = communicator.gather(vec![None, Some(ClusterId(process as u32))]);
                let range_of = |at: usize| at * 7 % N_RANGES;
                let own = communicator.own_ranges();
                let value = |at| {
                    if own.contains(&range_of(at)) {
                        at as f32
                    } else {
                        -1.0
                    }
                };
                let mut filled: Vec<f32> = (0..40).map(value).collect();
                communicator.fill(&mut filled, range_of);
                (counted, highest, parents, filled)
            });
            let last = n_processes - 1;
            let values = (0..n_processes).flat_map(|p| vec![p as u32; p]).collect();
            let parents = (0..n_processes).flat_map(|p| [None, Some(ClusterId(p as u32))]);
            let expected = (
                ([n_processes, last * n_processes / 2], values),
                [last as f32, 0.0],
                parents.collect::<Vec<_>>(),
                (0..40).map(|at| at as f32).collect::<Vec<_>>(),
            );
            assert!(found.iter().all(|found| *found == expected));
        }
    }
}
