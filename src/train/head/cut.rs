//! The end of part 1: the K best labels of each point, where several ranks have found some.
//!
//! Each rank has cut its own labels at K already. The keys of a point with more than K labels left go to one rank, which
//! finds the best key that is out; then every rank drops what is not better.

use rayon::prelude::*;

use super::Head;
use super::search::{Pair, ShardBuffers};
use crate::index::descending_key;
use crate::ranks::{Ranks, gather, share};

impl Head<'_> {
    /// Leaves the K best pairs of each point; returns how many are left on all ranks.
    pub(super) fn cut(&mut self, n_points: usize, shortlist_size: usize) -> usize {
        let all_pairs = |shard: &ShardBuffers| shard.pairs.iter().map(Vec::len).sum::<usize>();
        if self.ranks.n_ranks() == 1 {
            return self.shards.iter().map(all_pairs).sum();
        }
        let mut keys = vec![Vec::new(); n_points];
        for pair in self
            .shards
            .iter()
            .flat_map(|shard| shard.pairs.iter().flatten())
        {
            keys[pair.point as usize].push(key(pair));
        }
        let Cut { totals, first_out } = cut_together(self.ranks, &keys, shortlist_size);
        let shards = self.shards.par_iter_mut();
        shards.for_each(|shard| shard.drop_worse(&first_out));
        totals.iter().map(|&n| n.min(shortlist_size)).sum()
    }
}

impl ShardBuffers {
    /// Keeps the pairs that are better than the best that is out.
    fn drop_worse(&mut self, first_out: &[Option<u64>]) {
        let ShardBuffers { pairs, dropped, .. } = self;
        for pairs in pairs {
            pairs.retain(|pair| {
                let stays = first_out[pair.point as usize].is_none_or(|out| out < key(pair));
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

/// Where the shortlists of some points end.
pub(crate) struct Cut {
    /// Labels that all ranks found together, a point each.
    totals: Vec<usize>,
    /// The best key that is out, where there are more than K.
    pub(crate) first_out: Vec<Option<u64>>,
}

/// Finds the end of each point's K best among the keys of all ranks. keys: this rank's, a list each point
pub(crate) fn cut_together(ranks: &dyn Ranks, keys: &[Vec<u64>], shortlist_size: usize) -> Cut {
    let (rank, n_ranks) = (ranks.rank(), ranks.n_ranks());
    let own: Vec<u32> = keys.iter().map(|keys| keys.len() as u32).collect();
    let counts = gather(ranks, &own);
    let total = |point: usize| counts.iter().map(|counts| counts[point] as usize).sum();
    let totals: Vec<usize> = (0..keys.len()).map(total).collect();
    let mut first_out = vec![None; keys.len()];
    let crowded: Vec<usize> = (0..keys.len())
        .filter(|&point| shortlist_size < totals[point])
        .collect();
    if crowded.is_empty() {
        return Cut { totals, first_out };
    }

    let points_of = |rank| &crowded[share(crowded.len(), rank, n_ranks)];
    let outgoing = (0..n_ranks).map(|to| {
        let keys = points_of(to).iter().flat_map(|&point| &keys[point]);
        keys.copied().collect::<Vec<u64>>()
    });
    let outgoing: Vec<Vec<u64>> = outgoing.collect();
    let bytes = outgoing.iter().map(|keys| bytemuck::cast_slice(keys));
    let incoming = ranks.all_to_all(&bytes.collect::<Vec<_>>());
    let incoming = incoming.iter();
    let incoming: Vec<Vec<u64>> = incoming
        .map(|bytes| bytemuck::pod_collect_to_vec(bytes))
        .collect();
    let mut read = vec![0; n_ranks];
    let decided = points_of(rank).iter().map(|&point| {
        let mut keys = Vec::with_capacity(totals[point]);
        for (from, told) in incoming.iter().enumerate() {
            let end = read[from] + counts[from][point] as usize;
            keys.extend_from_slice(&told[read[from]..end]);
            read[from] = end;
        }
        let (_, &mut first_out, _) = keys.select_nth_unstable_by(shortlist_size, |a, b| b.cmp(a));
        first_out
    });
    let decided: Vec<u64> = decided.collect();
    let decided = gather(ranks, &decided).concat();
    for (&point, key) in crowded.iter().zip(decided) {
        first_out[point] = Some(key);
    }
    Cut { totals, first_out }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::random::Random;
    use crate::ranks::threads;

    #[test]
    fn what_stays_is_what_one_rank_would_keep() {
        for (n_ranks, k) in [(1, 3), (2, 0), (2, 5), (4, 7)] {
            let mut random = Random::new(k as u64, "keys", 0);
            let lists: Vec<Vec<Vec<u64>>> = (0..n_ranks)
                .map(|_| {
                    let mut list = || (0..random.below(9)).map(|_| random.u64()).collect();
                    (0..20).map(|_| list()).collect()
                })
                .collect();
            let cuts = threads::run(n_ranks, |ranks| {
                cut_together(ranks, &lists[ranks.rank()], k)
            });
            for point in 0..20 {
                let mut all: Vec<u64> = lists.iter().flat_map(|l| l[point].clone()).collect();
                all.sort_unstable_by(|a, b| b.cmp(a));
                for cut in &cuts {
                    assert_eq!(cut.totals[point], all.len());
                    assert_eq!(cut.first_out[point], all.get(k).copied());
                }
            }
        }
    }
}
