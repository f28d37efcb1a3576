//! A compact fingerprint of texts: which of other texts are among them.
//!
//! Of every text 32 bits of its SHA-256 are kept. Surrounding spaces do not count. Of texts that are not among N others a
//! share of N / 2³² is taken to be.

use sha2::{Digest, Sha256};

use crate::data::Texts;

/// The texts that a model was trained on, recognisable but not readable.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct SeenTexts {
    /// Strictly ascending.
    hashes: Vec<u32>,
}

impl SeenTexts {
    /// The fingerprint of texts; empty ones are none.
    pub(crate) fn of(texts: &Texts) -> Self {
        let texts = texts.iter().filter(|text| !text.trim().is_empty());
        SeenTexts::from_hashes(texts.map(hash).collect())
    }

    /// A fingerprint from its parts, in any order.
    pub(crate) fn from_hashes(mut hashes: Vec<u32>) -> Self {
        hashes.sort_unstable();
        hashes.dedup();
        SeenTexts { hashes }
    }

    /// These texts and others.
    pub(crate) fn with(&self, others: &SeenTexts) -> Self {
        SeenTexts::from_hashes([&self.hashes[..], &others.hashes].concat())
    }

    /// Its parts, ascending.
    pub(crate) fn hashes(&self) -> &[u32] {
        &self.hashes
    }

    /// Number of the texts that are among them.
    pub(crate) fn count(&self, texts: &Texts) -> usize {
        let is_seen = |text: &&str| self.hashes.binary_search(&hash(text)).is_ok();
        texts.iter().filter(is_seen).count()
    }
}

fn hash(text: &str) -> u32 {
    let digest = Sha256::digest(text.trim());
    u32::from_le_bytes([digest[0], digest[1], digest[2], digest[3]])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn texts_are_recognised_whatever_surrounds_them() {
        let seen = SeenTexts::of(
            &["one text", "another", "", "one text "]
                .into_iter()
                .collect(),
        );
        assert_eq!(seen.hashes().len(), 2);
        let others = [" one text\n", "another", "ANOTHER", "a third", ""];
        assert_eq!(seen.count(&others.into_iter().collect()), 2);
    }
}
