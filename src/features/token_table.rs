//! A table of distinct words, numbered, without an allocation per word.
//!
//! The hash is fixed, so that a word always falls into the same shard when the tables of many chunks are merged. No
//! result depends on the order of the hash table.

use hashbrown::HashTable;

use crate::data::Texts;

/// Distinct words, numbered in order of first occurrence.
#[derive(Clone, Debug, Default)]
pub(super) struct TokenTable {
    slots: HashTable<Slot>,
    bytes: Vec<u8>,
    entries: Vec<Entry>,
}

#[derive(Clone, Copy, Debug)]
struct Slot {
    hash: u64,
    token_idx: u32,
}

#[derive(Clone, Copy, Debug)]
struct Entry {
    hash: u64,
    end: usize,
}

impl TokenTable {
    /// The number of a word; a new word is added.
    #[inline]
    pub(super) fn intern(&mut self, token: &[u8]) -> u32 {
        self.intern_hashed(hash_token(token), token)
    }

    /// As [`TokenTable::intern`], with the word's hash.
    #[inline]
    pub(super) fn intern_hashed(&mut self, hash: u64, token: &[u8]) -> u32 {
        if let Some(token_idx) = self.find_hashed(hash, token) {
            return token_idx;
        }
        let token_idx = u32::try_from(self.entries.len()).expect("fewer than 2^32 distinct words");
        self.bytes.extend_from_slice(token);
        self.entries.push(Entry {
            hash,
            end: self.bytes.len(),
        });
        self.slots
            .insert_unique(hash, Slot { hash, token_idx }, |slot| slot.hash);
        token_idx
    }

    /// The number of a word, if it is known.
    #[inline]
    pub(super) fn find(&self, token: &[u8]) -> Option<u32> {
        self.find_hashed(hash_token(token), token)
    }

    #[inline]
    fn find_hashed(&self, hash: u64, token: &[u8]) -> Option<u32> {
        self.slots
            .find(hash, |slot| {
                slot.hash == hash && self.token(slot.token_idx as usize) == token
            })
            .map(|slot| slot.token_idx)
    }

    /// A word by its number.
    #[inline]
    pub(super) fn token(&self, token_idx: usize) -> &[u8] {
        let start = if token_idx == 0 {
            0
        } else {
            self.entries[token_idx - 1].end
        };
        &self.bytes[start..self.entries[token_idx].end]
    }

    /// The hash of a word by its number.
    #[inline]
    pub(super) fn hash(&self, token_idx: usize) -> u64 {
        self.entries[token_idx].hash
    }

    /// Number of words.
    pub(super) fn len(&self) -> usize {
        self.entries.len()
    }
}

impl From<&Texts> for TokenTable {
    /// A table of these words; duplicates are kept once.
    fn from(words: &Texts) -> Self {
        let mut table = TokenTable {
            slots: HashTable::with_capacity(words.len()),
            bytes: Vec::with_capacity(words.n_bytes()),
            entries: Vec::with_capacity(words.len()),
        };
        for word in words.iter() {
            table.intern(word.as_bytes());
        }
        table
    }
}

/// A 64-bit hash of a word, by folded multiplication of eight bytes at a time.
#[inline]
pub(super) fn hash_token(token: &[u8]) -> u64 {
    let n_bytes = token.len();
    let mut state = (n_bytes as u64).wrapping_mul(FACTORS[0]);
    let tail = if n_bytes < 4 {
        match token {
            [] => 0,
            [first, ..] => {
                let middle = token[n_bytes / 2];
                let last = token[n_bytes - 1];
                u64::from(*first) << 16 | u64::from(middle) << 8 | u64::from(last)
            }
        }
    } else if n_bytes < 8 {
        // Two groups of four bytes, which may overlap, cover all.
        four_bytes(token, 0) << 32 | four_bytes(token, n_bytes - 4)
    } else {
        let mut at = 0;
        while at + 8 < n_bytes {
            state = fold(state ^ eight_bytes(token, at));
            at += 8;
        }
        eight_bytes(token, n_bytes - 8)
    };
    fold(fold(state ^ tail) ^ FACTORS[1])
}

const FACTORS: [u64; 2] = [0x9E37_79B9_7F4A_7C15, 0xD6E8_FEB8_6659_FD93];

#[inline]
fn fold(word: u64) -> u64 {
    let product = u128::from(word) * u128::from(FACTORS[1]);
    (product >> 64) as u64 ^ product as u64
}

#[inline]
fn four_bytes(token: &[u8], at: usize) -> u64 {
    u64::from(u32::from_le_bytes(
        token[at..at + 4].try_into().expect("four bytes"),
    ))
}

#[inline]
fn eight_bytes(token: &[u8], at: usize) -> u64 {
    u64::from_le_bytes(token[at..at + 8].try_into().expect("eight bytes"))
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    proptest! {
        #[test]
        fn interning_numbers_words_by_first_occurrence(words in prop::collection::vec("[ab]{0,12}", 0..60)) {
            let mut table = TokenTable::default();
            let mut distinct: Vec<&str> = Vec::new();
            for word in &words {
                let expected = distinct.iter().position(|known| known == word);
                prop_assert_eq!(table.find(word.as_bytes()), expected.map(|at| at as u32));
                let token_idx = table.intern(word.as_bytes()) as usize;
                prop_assert_eq!(token_idx, expected.unwrap_or(distinct.len()));
                if expected.is_none() {
                    distinct.push(word);
                }
                prop_assert_eq!(table.token(token_idx), word.as_bytes());
                prop_assert_eq!(table.hash(token_idx), hash_token(word.as_bytes()));
            }
            prop_assert_eq!(table.len(), distinct.len());
        }
    }

    #[test]
    fn hashes_of_similar_words_spread() {
        let mut shards = [0usize; 16];
        let mut hashes = std::collections::HashSet::new();
        for number in 0..16_000 {
            let hash = hash_token(format!("word{number}").as_bytes());
            shards[(hash >> 32) as usize % 16] += 1;
            hashes.insert(hash);
        }
        assert_eq!(hashes.len(), 16_000);
        assert!(
            shards.iter().all(|count| (800..1200).contains(count)),
            "{shards:?}"
        );
    }
}
