//! Everything known of the candidates of one text, as columns of numbers.

/// What the experts say of one candidate.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct Clues {
    /// p; 0 if the index did not find it.
    pub(crate) p: f32,
    /// w·φ + b of its classifier.
    pub(crate) logit: f32,
    /// The ranker's margin.
    pub(crate) margin: f32,
    /// The margin of its cluster.
    pub(crate) cluster: f32,
    /// ln of the ranker's scores of itself, its cluster, the cluster of that, and so on, summed.
    pub(crate) path: f32,
    /// The neighbours' votes for it.
    pub(crate) vote: f32,
    /// Cosine of the nearest neighbour that has it.
    pub(crate) nearest: f32,
    /// Training points that have it, f.
    pub(crate) frequency: f32,
    /// Cosine of its name and the text.
    pub(crate) name: f32,
    /// Share of its name that the text contains.
    pub(crate) contained: f32,
}

/// What is known of the text itself.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub(crate) struct TextClues {
    /// Known words.
    pub(crate) n_words: usize,
    /// Cosine of its nearest neighbour.
    pub(crate) nearest: f32,
}

/// Columns of the evidence.
pub(crate) const N_COLUMNS: usize = 24;

/// The columns of p and of the votes against the most votes.
const P: usize = 0;
const VOTE_SHARE: usize = 12;
/// Log-odds for a p of 1, and for the most votes: enough to order candidates, too little to matter otherwise.
const NUDGE: f32 = 0.02;

/// The evidence on the candidates of one text: one column per kind, one row per candidate.
#[derive(Clone, Debug, Default)]
pub(crate) struct Evidence {
    n_candidates: usize,
    /// Column after column.
    values: Vec<f32>,
    order: Vec<u32>,
}

impl Evidence {
    /// Replaces the evidence by that on other candidates.
    pub(crate) fn fill(&mut self, text: TextClues, clues: &[Clues]) {
        self.n_candidates = clues.len();
        self.values.clear();
        self.own(clues, |clue| clue.p);
        self.own(clues, |clue| clue.logit);
        self.own(clues, |clue| clue.margin);
        self.own(clues, |clue| clue.vote);
        self.own(clues, |clue| clue.nearest);
        self.own(clues, |clue| clue.frequency);
        self.own(clues, |clue| clue.name);
        self.own(clues, |clue| clue.contained);
        self.own(clues, |clue| clue.p * (1.0 + (-clue.logit).exp())); // ŷ = p/σ
        self.shared(clues, |clue| clue.p, |own, best| own / best);
        self.shared(clues, |clue| clue.logit, |own, best| own - best);
        self.shared(clues, |clue| clue.margin, |own, best| own - best);
        self.shared(clues, |clue| clue.vote, |own, best| own / best);
        self.shared(clues, |clue| clue.name, |own, best| own / best);
        self.rank(clues, |clue| clue.p);
        self.rank(clues, |clue| clue.margin);
        self.rank(clues, |clue| clue.vote);
        self.own(clues, |_| text.n_words as f32);
        self.own(clues, |_| text.nearest);
        let best = clues.iter().map(|clue| clue.p).fold(0.0, f32::max);
        self.own(clues, |_| best);
        self.own(clues, |clue| clue.cluster);
        self.own(clues, |clue| clue.path);
        self.shared(clues, |clue| clue.path, |own, best| own - best);
        self.rank(clues, |clue| clue.path);
        for value in &mut self.values {
            // A share of nothing, or an overflow.
            if !value.is_finite() {
                *value = 0.0;
            }
        }
        debug_assert_eq!(self.values.len(), N_COLUMNS * clues.len());
    }

    /// How much the log-odds of each candidate begin above the same start for all: the trees cannot tell apart the
    /// candidates of one leaf, nor any where nothing could be learned, and then p and votes decide.
    pub(super) fn nudges(&self) -> impl Iterator<Item = f32> {
        let both = self.column(P).iter().zip(self.column(VOTE_SHARE));
        both.map(|(p, votes)| NUDGE * (p + votes))
    }

    /// One column.
    #[inline]
    pub(crate) fn column(&self, column: usize) -> &[f32] {
        &self.values[column * self.n_candidates..][..self.n_candidates]
    }

    fn own(&mut self, clues: &[Clues], of: impl Fn(&Clues) -> f32) {
        self.values.extend(clues.iter().map(of));
    }

    /// A value against the best of all candidates.
    fn shared(
        &mut self,
        clues: &[Clues],
        of: impl Fn(&Clues) -> f32,
        against: impl Fn(f32, f32) -> f32,
    ) {
        let best = clues.iter().map(&of).fold(f32::NEG_INFINITY, f32::max);
        self.own(clues, |clue| against(of(clue), best));
    }

    /// How many candidates have more.
    fn rank(&mut self, clues: &[Clues], of: impl Fn(&Clues) -> f32) {
        self.order.clear();
        self.order.extend(0..clues.len() as u32);
        let value = |at: &u32| of(&clues[*at as usize]);
        self.order
            .sort_unstable_by(|a, b| value(b).total_cmp(&value(a)));
        let start = self.values.len();
        self.values.resize(start + clues.len(), 0.0);
        let ranks = &mut self.values[start..];
        let mut rank = 0;
        for (place, at) in self.order.iter().enumerate() {
            if place > 0 && value(at) < value(&self.order[place - 1]) {
                rank = place;
            }
            ranks[*at as usize] = rank as f32;
        }
    }
}
