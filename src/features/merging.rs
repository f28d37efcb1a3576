//! The second half of fitting: one vocabulary from the terms of all chunks.
//!
//! Terms are assigned to shards by their hash; shards sum document counts in parallel. The terms within the limits of
//! the configuration are sorted by bytes; a term's position is its column.

use rayon::prelude::*;

use crate::config::FeaturesConfig;
use crate::data::Texts;
use crate::features::counting::ChunkCounts;
use crate::features::token_table::TokenTable;

/// The terms that became columns.
#[derive(Debug)]
pub(super) struct Merged {
    /// The term of each column, in ascending order.
    pub(super) words: Texts,
    /// Per column: number of texts that contain its term.
    pub(super) document_counts: Vec<u32>,
    /// Per chunk, per term of the chunk: its column, unless the term was dropped.
    pub(super) columns: Vec<Vec<Option<u32>>>,
}

/// Merges the counts of the chunks and drops terms outside the limits of the configuration.
pub(super) fn merge(chunks: &[ChunkCounts], config: &FeaturesConfig) -> Merged {
    let shards: Vec<TermShard> = (0..N_SHARDS)
        .into_par_iter()
        .map(|shard_idx| merge_shard(chunks, shard_idx))
        .collect();
    let kept = choose_terms(&shards, config);

    let mut words = Texts::default();
    let mut document_counts = Vec::with_capacity(kept.len());
    let mut shard_columns: Vec<Vec<Option<u32>>> = shards
        .iter()
        .map(|shard| vec![None; shard.table.len()])
        .collect();
    for (column, term) in kept.iter().enumerate() {
        words.push(std::str::from_utf8(term.token).expect("words are cut from texts"));
        document_counts.push(term.document_count);
        shard_columns[term.shard_idx][term.token_idx] = Some(column as u32);
    }
    let columns = chunks
        .par_iter()
        .enumerate()
        .map(|(chunk_idx, chunk)| {
            let mut columns = vec![None; chunk.table.len()];
            for (shard, shard_columns) in shards.iter().zip(&shard_columns) {
                for &(chunk_token, shard_token) in &shard.members[chunk_idx] {
                    columns[chunk_token as usize] = shard_columns[shard_token as usize];
                }
            }
            columns
        })
        .collect();
    Merged {
        words,
        document_counts,
        columns,
    }
}

/// A power of two; more than any likely number of threads would leave too little work in each.
const N_SHARDS: usize = 32;

/// The terms whose hashes fall into one shard.
#[derive(Debug, Default)]
struct TermShard {
    table: TokenTable,
    document_counts: Vec<u32>,
    occurrences: Vec<u64>,
    /// Per chunk: number of the term in the chunk, number of the term in this shard.
    members: Vec<Vec<(u32, u32)>>,
}

fn merge_shard(chunks: &[ChunkCounts], shard_idx: usize) -> TermShard {
    let mut shard = TermShard::default();
    for chunk in chunks {
        let mut members = Vec::with_capacity(chunk.table.len() / N_SHARDS);
        for token_idx in 0..chunk.table.len() {
            let hash = chunk.table.hash(token_idx);
            // The table uses the lowest and the highest bits, not these.
            if (hash >> 40) as usize % N_SHARDS != shard_idx {
                continue;
            }
            let merged_idx = shard
                .table
                .intern_hashed(hash, chunk.table.token(token_idx));
            if shard.document_counts.len() < shard.table.len() {
                shard.document_counts.push(0);
                shard.occurrences.push(0);
            }
            shard.document_counts[merged_idx as usize] += chunk.document_counts[token_idx];
            shard.occurrences[merged_idx as usize] += chunk.occurrences[token_idx];
            members.push((token_idx as u32, merged_idx));
        }
        shard.members.push(members);
    }
    shard
}

#[derive(Clone, Copy)]
struct MergedTerm<'shards> {
    token: &'shards [u8],
    shard_idx: usize,
    token_idx: usize,
    document_count: u32,
    occurrences: u64,
}

/// The terms to keep, sorted by their bytes.
fn choose_terms<'shards>(
    shards: &'shards [TermShard],
    config: &FeaturesConfig,
) -> Vec<MergedTerm<'shards>> {
    let mut kept = terms_in_enough_texts(shards, config.min_df);
    if kept.is_empty() {
        // For a handful of texts without a common word, rare words are better than none.
        kept = terms_in_enough_texts(shards, 1);
    }
    if let Some(max_features) = config.max_features.filter(|&max| kept.len() > max) {
        kept.par_sort_unstable_by(|a, b| {
            let most_frequent_first = b.occurrences.cmp(&a.occurrences);
            most_frequent_first.then_with(|| a.token.cmp(b.token))
        });
        kept.truncate(max_features);
    }
    kept.par_sort_unstable_by(|a, b| a.token.cmp(b.token));
    kept
}

fn terms_in_enough_texts(shards: &[TermShard], min_df: usize) -> Vec<MergedTerm<'_>> {
    let mut kept = Vec::new();
    for (shard_idx, shard) in shards.iter().enumerate() {
        for (token_idx, &document_count) in shard.document_counts.iter().enumerate() {
            if document_count as usize >= min_df {
                kept.push(MergedTerm {
                    token: shard.table.token(token_idx),
                    shard_idx,
                    token_idx,
                    document_count,
                    occurrences: shard.occurrences[token_idx],
                });
            }
        }
    }
    kept
}
