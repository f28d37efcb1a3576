//! The K best keys of each list, where several processes have found some of them.
//!
//! Each process has cut its own keys at K already. Of a list with more than K keys left, those that may be among the K
//! best go to one process, which finds the best key that is out; then every process drops what is not better. Which keys
//! may be follows from some of them, at fixed places in each process's order, that all processes send first.

use rayon::prelude::*;

use super::Communicator;
use super::message::unpacked;
use super::partition::part;

/// The keys of each list that are among its K best on all processes.
pub(crate) struct BestOfAll {
    /// The best key of each list that is out, none where there are no more than K; empty if no key is out.
    first_out: Vec<Option<u64>>,
}

impl BestOfAll {
    /// Whether any key is out.
    pub(crate) fn drops_any(&self) -> bool {
        !self.first_out.is_empty()
    }

    /// Whether this key of a list is among its best.
    pub(crate) fn contains(&self, list: usize, key: u64) -> bool {
        let first_out = self.first_out.get(list).copied().flatten();
        first_out.is_none_or(|out| out < key)
    }
}

impl dyn Communicator + '_ {
    /// The K best keys of each list; higher is better. own: this process's keys, which it has cut at K
    pub(crate) fn best_of_all(&self, k: usize, own: impl FnOnce() -> Vec<Vec<u64>>) -> BestOfAll {
        let first_out = if self.is_alone() {
            Vec::new()
        } else {
            self.first_out(k, own())
        };
        BestOfAll { first_out }
    }

    fn first_out(&self, k: usize, mut keys: Vec<Vec<u64>>) -> Vec<Option<u64>> {
        let crowded = self.leave_possible(k, &mut keys);
        if crowded.is_empty() {
            return Vec::new();
        }
        let lists_of = |process| &crowded[part(crowded.len(), process, self.n_processes())];
        // The number of keys before them.
        let message = |&list: &usize| {
            let keys = &keys[list];
            std::iter::once(keys.len() as u64).chain(keys.iter().copied())
        };
        let outgoing: Vec<Vec<u64>> = (0..self.n_processes())
            .map(|to| lists_of(to).iter().flat_map(message).collect())
            .collect();
        let bytes = outgoing.iter().map(|keys| bytemuck::cast_slice(keys));
        let sent = self.all_to_all(&bytes.collect::<Vec<_>>());
        let mut incoming: Vec<_> = sent.iter().map(|bytes| unpacked::<u64>(bytes)).collect();
        let decide = |_: &usize| {
            let mut keys = Vec::new();
            for keys_of_process in &mut incoming {
                let n_keys = keys_of_process.next().unwrap_or(0) as usize;
                keys.extend(keys_of_process.take(n_keys));
            }
            *keys.select_nth_unstable_by(k, |a, b| b.cmp(a)).1
        };
        let decided = self.gather(lists_of(self.process()).iter().map(decide).collect());
        let mut first_out = vec![None; keys.len()];
        for (&list, key) in crowded.iter().zip(decided) {
            first_out[list] = Some(key);
        }
        first_out
    }

    /// The lists with more than K keys on all processes, of which those keys are left that may be among the K best and the
    /// next.
    fn leave_possible(&self, k: usize, keys: &mut [Vec<u64>]) -> Vec<usize> {
        let stride = (k + 1).div_ceil(N_MARKS);
        let sketch = |keys: &mut Vec<u64>| {
            keys.sort_unstable_by(|a, b| b.cmp(a));
            Sketch::of(keys, stride)
        };
        let own: Vec<Sketch> = keys.par_iter_mut().map(sketch).collect();
        let sent = self.all_gather(bytemuck::cast_slice(&own));
        let sketches: Vec<Vec<Sketch>> = sent
            .iter()
            .map(|bytes| bytemuck::pod_collect_to_vec(bytes))
            .collect();
        let of_list = |list: usize| sketches.iter().map(move |sketches| &sketches[list]);
        let n_keys = |list| {
            of_list(list)
                .map(|sketch| sketch.n_keys as usize)
                .sum::<usize>()
        };
        let crowded: Vec<usize> = (0..keys.len()).filter(|&list| n_keys(list) > k).collect();
        for &list in &crowded {
            let bound = lower_bound(of_list(list), stride, k);
            let n_left = keys[list].partition_point(|&key| bound <= key);
            keys[list].truncate(n_left);
        }
        crowded
    }
}

/// Keys of each list that a process sends first.
const N_MARKS: usize = 8;

/// The number of keys that a process has of a list, and every (K+1)/8-th of them in descending order.
#[derive(Clone, Copy, Default, bytemuck::Pod, bytemuck::Zeroable)]
#[repr(C)]
struct Sketch {
    n_keys: u64,
    marks: [u64; N_MARKS],
}

impl Sketch {
    /// keys: descending
    fn of(keys: &[u64], stride: usize) -> Self {
        let mark = |at: usize| keys.get((at + 1) * stride - 1).copied().unwrap_or(0);
        Sketch {
            n_keys: keys.len() as u64,
            marks: std::array::from_fn(mark),
        }
    }
}

/// A key that more than K of all keys reach; 0 if the sketches of a list do not show one.
fn lower_bound<'a>(sketches: impl Iterator<Item = &'a Sketch>, stride: usize, k: usize) -> u64 {
    let mut marks: Vec<u64> = sketches.flat_map(|sketch| sketch.marks).collect();
    marks.sort_unstable_by(|a, b| b.cmp(a));
    // Each mark stands for as many keys of its process as lie between two marks.
    marks[k / stride]
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::{Counted, threads};
    use crate::random::Random;

    #[test]
    fn keys_that_stay_are_those_that_one_process_would_keep() {
        for (n_processes, k, n_keys) in [(1, 9, 9), (2, 0, 9), (2, 5, 9), (4, 7, 9), (3, 40, 80)] {
            let mut random = Random::new(k as u64, "keys", 0);
            let lists: Vec<Vec<Vec<u64>>> = (0..n_processes)
                .map(|_| {
                    let mut list = || (0..random.below(n_keys)).map(|_| random.u64()).collect();
                    (0..20).map(|_| list()).collect()
                })
                .collect();
            let cuts = threads::run(n_processes, |communicator| {
                communicator.best_of_all(k, || lists[communicator.process()].clone())
            });
            for list in 0..20 {
                let mut all: Vec<u64> = lists.iter().flat_map(|l| l[list].clone()).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                for cut in &cuts {
                    let n_kept = all.iter().filter(|&&key| cut.contains(list, key)).count();
                    assert_eq!(n_kept, all.len().min(k));
                    assert!(all[..n_kept].iter().all(|&key| cut.contains(list, key)));
                }
            }
        }
    }

    #[test]
    fn keys_that_cannot_stay_are_not_sent() {
        let n_bytes = threads::run(4, |communicator| {
            let counted = Counted::new(communicator);
            let keys = (0..800).map(|key| 4 * key + communicator.process() as u64 + 1);
            let own = || vec![keys.collect(); 100];
            (&counted as &dyn Communicator).best_of_all(800, own);
            counted.n_bytes()
        });
        // Of 800 keys per process some 200 stay, and three of four lists are cut by others.
        let all_keys = 8 * 800 * 75;
        assert!(n_bytes.iter().all(|&n| n < all_keys / 2), "{n_bytes:?}");
    }
}
