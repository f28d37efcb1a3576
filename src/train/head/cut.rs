//! The end of part 1: the K best labels of each point, where several processes have found some.
//!
//! Each process has cut its own labels at K already. Of a point with more than K labels left, the keys that may be among the
//! K best go to one process, which finds the best key that is out; then every process drops what is not better. Which keys may
//! be follows from some of them, at fixed places in each process's order, that all processes tell first.

use rayon::prelude::*;

use super::Head;
use super::search::{Pair, ShardBuffers};
use crate::communicator::{Communicator, gather, share};
use crate::index::{ShortlistOptions, descending_key};

impl Head<'_> {
    /// Leaves the K best pairs of each point, and positives if they stay.
    pub(super) fn cut(&mut self, n_points: usize, options: &ShortlistOptions) {
        if self.communicator.n_processes() == 1 {
            return;
        }
        let mut keys = vec![Vec::new(); n_points];
        for pair in self
            .shards
            .iter()
            .flat_map(|shard| shard.pairs.iter().flatten())
        {
            keys[pair.point as usize].push(key(pair));
        }
        let first_out = cut_together(self.communicator, keys, options.shortlist_size);
        let shards = self.shards.par_iter_mut();
        shards.for_each(|shard| shard.drop_worse(&first_out, options.keeps_positives));
    }
}

impl ShardBuffers {
    /// Keeps the pairs that are better than the best that is out.
    fn drop_worse(&mut self, first_out: &[Option<u64>], keeps_positives: bool) {
        let ShardBuffers { pairs, dropped, .. } = self;
        for pairs in pairs {
            pairs.retain(|pair| {
                let stays = keeps_positives && pair.is_positive()
                    || first_out[pair.point as usize].is_none_or(|out| out < key(pair));
                if !stays && pair.is_positive() {
                    dropped.push(*pair);
                }
                stays
            });
        }
    }
}

/// The order of the shortlist.
fn key(pair: &Pair) -> u64 {
    descending_key(pair.score, pair.label)
}

/// Keys of each point that a process tells first.
const N_MARKS: usize = 8;

/// What a process tells of a point first: how many keys it has, and every (K+1)/8-th of them in descending order.
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

/// A key that more than K of all keys reach; 0 if the sketches of a point do not tell one.
fn lower_bound<'a>(
    sketches: impl Iterator<Item = &'a Sketch>,
    stride: usize,
    shortlist_size: usize,
) -> u64 {
    let mut marks: Vec<u64> = sketches.flat_map(|sketch| sketch.marks).collect();
    marks.sort_unstable_by(|a, b| b.cmp(a));
    // Each mark stands for as many keys of its process as lie between two marks.
    marks[shortlist_size / stride]
}

/// The best key that is out of each point's K best among those of all processes; none where there are no more than K.
///
/// keys: this process's, a list each point
pub(crate) fn cut_together(
    communicator: &dyn Communicator,
    mut keys: Vec<Vec<u64>>,
    shortlist_size: usize,
) -> Vec<Option<u64>> {
    let (process, n_processes) = (communicator.process(), communicator.n_processes());
    let stride = (shortlist_size + 1).div_ceil(N_MARKS);
    let sketch = |keys: &mut Vec<u64>| {
        keys.sort_unstable_by(|a, b| b.cmp(a));
        Sketch::of(keys, stride)
    };
    let own: Vec<Sketch> = keys.par_iter_mut().map(sketch).collect();
    let sketches = gather(communicator, &own);
    let of_point = |point: usize| sketches.iter().map(move |sketches| &sketches[point]);
    let totals: Vec<usize> = (0..keys.len())
        .map(|point| of_point(point).map(|sketch| sketch.n_keys as usize).sum())
        .collect();
    let mut first_out = vec![None; keys.len()];
    let crowded: Vec<usize> = (0..keys.len())
        .filter(|&point| shortlist_size < totals[point])
        .collect();
    if crowded.is_empty() {
        return first_out;
    }
    for &point in &crowded {
        let bound = lower_bound(of_point(point), stride, shortlist_size);
        let n_kept = keys[point].partition_point(|&key| bound <= key);
        keys[point].truncate(n_kept);
    }

    let points_of = |process| &crowded[share(crowded.len(), process, n_processes)];
    // The number of keys before them.
    let message = |&point: &usize| {
        let keys = &keys[point];
        std::iter::once(keys.len() as u64).chain(keys.iter().copied())
    };
    let outgoing: Vec<Vec<u64>> = (0..n_processes)
        .map(|to| points_of(to).iter().flat_map(message).collect())
        .collect();
    let bytes = outgoing.iter().map(|keys| bytemuck::cast_slice(keys));
    let incoming = communicator.all_to_all(&bytes.collect::<Vec<_>>());
    let incoming = incoming.iter();
    let incoming: Vec<Vec<u64>> = incoming
        .map(|bytes| bytemuck::pod_collect_to_vec(bytes))
        .collect();
    let mut incoming: Vec<_> = incoming.iter().map(|told| told.iter().copied()).collect();
    let decided = points_of(process).iter().map(|_| {
        let mut keys = Vec::new();
        for told in &mut incoming {
            let n_keys = told.next().unwrap_or(0) as usize;
            keys.extend(told.by_ref().take(n_keys));
        }
        let (_, &mut first_out, _) = keys.select_nth_unstable_by(shortlist_size, |a, b| b.cmp(a));
        first_out
    });
    let decided: Vec<u64> = decided.collect();
    let decided = gather(communicator, &decided).concat();
    for (&point, key) in crowded.iter().zip(decided) {
        first_out[point] = Some(key);
    }
    first_out
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::communicator::{Counted, threads};
    use crate::random::Random;

    #[test]
    fn what_stays_is_what_one_rank_would_keep() {
        for (n_processes, k, n_keys) in [(1, 3, 9), (2, 0, 9), (2, 5, 9), (4, 7, 9), (3, 40, 80)] {
            let mut random = Random::new(k as u64, "keys", 0);
            let lists: Vec<Vec<Vec<u64>>> = (0..n_processes)
                .map(|_| {
                    let mut list = || (0..random.below(n_keys)).map(|_| random.u64()).collect();
                    (0..20).map(|_| list()).collect()
                })
                .collect();
            let cuts = threads::run(n_processes, |communicator| {
                cut_together(communicator, lists[communicator.process()].clone(), k)
            });
            for point in 0..20 {
                let mut all: Vec<u64> = lists.iter().flat_map(|l| l[point].clone()).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                for cut in &cuts {
                    assert_eq!(cut[point], all.get(k).copied());
                }
            }
        }
    }

    #[test]
    fn keys_that_cannot_stay_are_not_sent() {
        let n_bytes = threads::run(4, |communicator| {
            let counted = Counted::new(communicator);
            let keys = (0..800).map(|key| 4 * key + communicator.process() as u64 + 1);
            cut_together(&counted, vec![keys.collect(); 100], 800);
            counted.n_bytes()
        });
        // Of 800 keys per process some 200 stay, and three of four points are cut by others.
        let all_keys = 8 * 800 * 75;
        assert!(n_bytes.iter().all(|&n| n < all_keys / 2), "{n_bytes:?}");
    }
}
