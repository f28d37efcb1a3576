//! Random numbers: one named, numbered stream per purpose.
//!
//! A stream is fixed by the seed of the configuration, a purpose (`"clustering"`, `"dropout"`) and an index (a
//! node, a step, a row). Streams with different names or indices are independent, so work may run on any number of
//! threads, in any order, without changing a draw. The generator is xoshiro256++ (Blackman and Vigna),
//! its state filled by SplitMix64. It is not cryptographically secure.

/// A stream of random numbers.
#[derive(Clone, Debug)]
pub(crate) struct Random {
    state: [u64; 4],
}

impl Random {
    /// The stream for this seed, purpose and index.
    pub(crate) fn new(seed: u64, purpose: &str, index: u64) -> Self {
        // Each part is mixed before the next is added, so that (seed, index) and (index, seed) or neighbouring seeds
        // and indices do not collide.
        let mut mixer = mix(seed) ^ fnv1a(purpose.as_bytes());
        mixer = mix(mixer) ^ index;
        Random::from_mixer(mix(mixer))
    }

    fn from_mixer(mut mixer: u64) -> Self {
        let mut state = [0; 4];
        for word in &mut state {
            *word = mix(mixer);
            mixer = mixer.wrapping_add(GOLDEN_GAMMA);
        }
        Random { state }
    }

    /// The next 64 random bits.
    #[inline]
    pub(crate) fn u64(&mut self) -> u64 {
        let state = &mut self.state;
        let result = state[0]
            .wrapping_add(state[3])
            .rotate_left(23)
            .wrapping_add(state[0]);
        let shifted = state[1] << 17;
        state[2] ^= state[0];
        state[3] ^= state[1];
        state[1] ^= state[2];
        state[0] ^= state[3];
        state[2] ^= shifted;
        state[3] = state[3].rotate_left(45);
        result
    }

    /// A number in `[0, 1)`, a multiple of 2⁻²⁴.
    #[inline]
    pub(crate) fn f32(&mut self) -> f32 {
        (self.u64() >> 40) as f32 * (1.0 / (1u32 << 24) as f32)
    }

    /// A number in `[0, 1)`, a multiple of 2⁻⁵³.
    #[inline]
    pub(crate) fn f64(&mut self) -> f64 {
        (self.u64() >> 11) as f64 * (1.0 / (1u64 << 53) as f64)
    }

    /// An integer in `0..bound`, each equally likely.
    ///
    /// # Panics
    /// If `bound` is 0.
    #[inline]
    pub(crate) fn below(&mut self, bound: usize) -> usize {
        assert!(bound > 0, "no number is below 0");
        // Lemire's method; the few products that would favour small numbers are rejected.
        let bound = bound as u64;
        let threshold = bound.wrapping_neg() % bound;
        loop {
            let product = u128::from(self.u64()) * u128::from(bound);
            if product as u64 >= threshold {
                return (product >> 64) as usize;
            }
        }
    }

    /// A draw from the normal distribution with mean 0 and variance 1 (Box and Muller).
    pub(crate) fn normal(&mut self) -> f32 {
        let radius = (-2.0 * (1.0 - self.f64()).ln()).sqrt();
        let angle = std::f64::consts::TAU * self.f64();
        (radius * angle.cos()) as f32
    }

    /// Shuffles the items, each order equally likely (Fisher and Yates).
    pub(crate) fn shuffle<T>(&mut self, items: &mut [T]) {
        for end in (1..items.len()).rev() {
            items.swap(end, self.below(end + 1));
        }
    }
}

const GOLDEN_GAMMA: u64 = 0x9E37_79B9_7F4A_7C15;

/// One step of SplitMix64 from this state.
fn mix(state: u64) -> u64 {
    let mut word = state.wrapping_add(GOLDEN_GAMMA);
    word = (word ^ (word >> 30)).wrapping_mul(0xBF58_476D_1CE4_E5B9);
    word = (word ^ (word >> 27)).wrapping_mul(0x94D0_49BB_1331_11EB);
    word ^ (word >> 31)
}

/// The 64-bit FNV-1a hash, for names only.
fn fnv1a(bytes: &[u8]) -> u64 {
    let mut hash = 0xCBF2_9CE4_8422_2325;
    for &byte in bytes {
        hash = (hash ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01B3);
    }
    hash
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn generator_gives_the_published_numbers() {
        // From the authors' C code, as recorded in the tests of the crate rand_xoshiro.
        let mut random = Random {
            state: [1, 2, 3, 4],
        };
        let drawn: Vec<u64> = (0..5).map(|_| random.u64()).collect();
        let published = [
            41_943_041,
            58_720_359,
            3_588_806_011_781_223,
            3_591_011_842_654_386,
            9_228_616_714_210_784_205,
        ];
        assert_eq!(drawn, published);
        assert_eq!(mix(0), 0xE220_A839_7B1D_CDAF);
        assert_eq!(mix(1_477_776_061_723_855_037), 1_985_237_415_132_408_290);
        assert_eq!(fnv1a(b"a"), 0xAF63_DC4C_8601_EC8C);
    }

    #[test]
    fn streams_differ_by_seed_by_purpose_and_by_index() {
        let first = |seed, purpose, index| Random::new(seed, purpose, index).u64();
        let all = [
            first(0, "a", 0),
            first(1, "a", 0),
            first(0, "b", 0),
            first(0, "a", 1),
            first(1, "a", 1),
            first(0, "", 0),
        ];
        for (place, number) in all.iter().enumerate() {
            assert!(!all[..place].contains(number), "stream {place} repeats");
        }
        assert_eq!(first(7, "a", 9), first(7, "a", 9));
    }

    #[test]
    fn below_reaches_every_number_about_equally_often() {
        let mut random = Random::new(3, "below", 0);
        let mut counts = [0; 7];
        for _ in 0..70_000 {
            counts[random.below(7)] += 1;
        }
        // Five standard deviations of a binomial count are 463.
        assert!(
            counts.iter().all(|count| (9_500..10_500).contains(count)),
            "{counts:?}"
        );
    }

    #[test]
    fn fractions_stay_in_range_and_normal_draws_have_mean_0_and_variance_1() {
        let mut random = Random::new(4, "moments", 0);
        let (mut uniform_sum, mut sum, mut squares) = (0.0, 0.0, 0.0);
        for _ in 0..100_000 {
            let fraction = random.f32();
            assert!((0.0..1.0).contains(&fraction));
            uniform_sum += f64::from(fraction);
            let draw = f64::from(random.normal());
            sum += draw;
            squares += draw * draw;
        }
        assert!((uniform_sum / 1e5 - 0.5).abs() < 0.005);
        assert!((sum / 1e5).abs() < 0.02);
        assert!((squares / 1e5 - 1.0).abs() < 0.03);
    }

    #[test]
    fn shuffling_keeps_the_items_and_moves_them() {
        let mut items: Vec<u32> = (0..100).collect();
        Random::new(5, "shuffle", 0).shuffle(&mut items);
        assert!(
            items
                .iter()
                .enumerate()
                .any(|(at, &item)| at != item as usize)
        );
        items.sort_unstable();
        assert_eq!(items, (0..100).collect::<Vec<_>>());
    }
}
