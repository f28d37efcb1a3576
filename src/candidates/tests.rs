//! The walk at every level against a slow and readable computation of each column.

use std::panic::{AssertUnwindSafe, catch_unwind};

use super::*;
use crate::classifiers::sigmoid;
use crate::config::Config;
use crate::data::Dataset;
use crate::features::PointSet;
use crate::ids::{ClusterId, LabelId, Scored};
use crate::matrix::{CsrMatrix, top_k};
use crate::neighbours::{Names, Neighbours};
use crate::predict::{LabelLists, Predictor, Query};
use crate::random::Random;
use crate::ranker::{PointView, Ranker};
use crate::training::Trainer;

const N_LABELS: usize = 40;
const K: usize = 5;

/// Texts with the names of their labels and other words.
fn data(n_points: usize, purpose: &str) -> Dataset {
    Dataset::from_texts((0..n_points).map(|point| {
        let mut random = Random::new(9, purpose, point as u64);
        let (first, second) = (point % N_LABELS, random.below(N_LABELS));
        let noise = [random.below(50), random.below(50)];
        let text = format!(
            "topic{first} about{second} noise{} noise{}",
            noise[0], noise[1]
        );
        (
            text,
            vec![format!("topic{first}"), format!("topic{second}")],
        )
    }))
}

fn train(kind: &str) -> Predictor {
    let toml = format!(
        "ensemble.members = 2
        encoder.dim = 8
        final_score.kind = \"{kind}\"
        hold_out.min_points = 10
        ranker.n_candidates = 15
        [train]
        batch_size = 16
        keep_stage1 = true
        label_texts = \"on\"
        [index]
        n_clusters = 6
        beam_size = 2
        shortlist_size = 30"
    );
    let trainer = Trainer::new(Config::from_toml(&toml).unwrap());
    trainer.train(&data(320, "train")).unwrap()
}

/// One point in one member at one level.
struct Brute<'a> {
    predictor: &'a Predictor,
    member: &'a Member,
    walk: Walk<'a>,
    points: &'a PointSet,
    embedding: &'a [f32],
    probabilities: &'a [f32],
}

impl Brute<'_> {
    fn words(&self) -> (&[u32], &[f32]) {
        self.points.features.row(0)
    }

    fn logit(&self, label: LabelId) -> f32 {
        let model = self.member.network(self.walk.level).model;
        let row = model.numbering.row(label).idx();
        model.classifiers.weights.dot(row, self.embedding) + model.classifiers.bias[row]
    }

    /// σ·ŷ of the shortlisted labels, ŷ being that of a label's best path through the `beam_size` best clusters; 0 of
    /// the others.
    fn p(&self) -> Vec<f32> {
        let model = self.member.network(self.walk.level).model;
        let Search { options, .. } = self.walk.search;
        let score = |cluster: &u32| model.clusters.score(self.probabilities[*cluster as usize]);
        let mut clusters: Vec<u32> = (0..self.probabilities.len() as u32).collect();
        clusters.sort_by(|a, b| score(b).total_cmp(&score(a)).then(a.cmp(b)));
        let mut paths = [0f32; N_LABELS];
        for cluster in &clusters[..options.beam_size] {
            for edge in model.adjacency.edges().range(ClusterId(*cluster)) {
                let label = model.numbering.label(model.adjacency.edges().rows()[edge]);
                let path = score(cluster) * model.adjacency.scores()[edge];
                paths[label.idx()] = paths[label.idx()].max(path);
            }
        }
        let mut by_path: Vec<LabelId> = (0..N_LABELS as u32).map(LabelId).collect();
        by_path.sort_by(|a, b| {
            let by_row = model.numbering.row(*a).cmp(&model.numbering.row(*b));
            paths[b.idx()].total_cmp(&paths[a.idx()]).then(by_row)
        });
        let mut p = vec![0.0; N_LABELS];
        for &label in &by_path[..options.shortlist_size] {
            p[label.idx()] = paths[label.idx()] * sigmoid(self.logit(label));
        }
        p
    }

    fn allows(&self, label: LabelId) -> bool {
        self.walk.allowed.is_none_or(|all| all.contains(label))
    }

    /// The first `n` of these labels, then the first `n_allowed` that are allowed, a label once.
    fn best_of(&self, labels: &[LabelId], n: usize, n_allowed: usize) -> Vec<LabelId> {
        let mut best: Vec<LabelId> = labels.iter().take(n).copied().collect();
        let allowed = labels
            .iter()
            .filter(|&&label| self.allows(label))
            .take(n_allowed);
        let more: Vec<LabelId> = allowed
            .filter(|label| !best.contains(label))
            .copied()
            .collect();
        best.extend(more);
        best
    }

    /// The rows of the index: the best by p.
    fn ranked(&self) -> Vec<LabelId> {
        let p = self.p().into_iter().zip(0..);
        let mut ranked: Vec<Scored> = p
            .filter(|(score, _)| *score > 0.0)
            .map(|(score, label)| Scored {
                label: LabelId(label),
                score,
            })
            .collect();
        top_k(&mut ranked, usize::MAX);
        let ranked: Vec<LabelId> = ranked.iter().map(|scored| scored.label).collect();
        let n = self.walk.search.n_candidates;
        let listed = self.walk.allowed.and_then(|allowed| allowed.listed());
        self.best_of(&ranked, n, n.max(listed.map_or(0, <[_]>::len)))
    }

    fn margin(&self, label: LabelId) -> f32 {
        let terms = self.points.terms();
        let view = PointView {
            bow: terms.row(0),
            dense: self.embedding,
        };
        let parts = self.ranker().explain(view, label, usize::MAX);
        parts.intercept + parts.dense + parts.words.iter().map(|word| word.1).sum::<f32>()
    }

    fn ranker(&self) -> &Ranker {
        self.member.ranker.as_ref().unwrap()
    }

    /// Margins of the clusters above a label, its own first.
    fn margins_above(&self, label: LabelId) -> Vec<f32> {
        let clusters = self.ranker().clusters().unwrap();
        let (cluster_of, parents) = (clusters.cluster_of(), clusters.parents());
        let (weights, intercepts) = (clusters.weights(), clusters.intercepts());
        let terms = self.points.terms();
        let (columns, values) = terms.row(0);
        let length = values.iter().map(|value| value * value).sum::<f32>().sqrt();
        let mut margins = Vec::new();
        let mut above = Some(cluster_of[label.idx()]);
        while let Some(cluster) = above {
            let products = columns.iter().zip(values).map(|(&column, value)| {
                let (clusters, weights) = weights.row(column as usize);
                let place = clusters.iter().position(|&other| other == cluster.0);
                place.map_or(0.0, |place| weights[place] * value / length)
            });
            margins.push(intercepts[cluster.idx()] + products.sum::<f32>());
            above = parents[cluster.idx()];
        }
        margins
    }

    /// Votes, and the cosine of the nearest point, of every label.
    fn votes(&self, neighbours: &Neighbours) -> Vec<(LabelId, [f32; 2])> {
        let mut scratch = crate::neighbours::NeighbourScratch::default();
        let mut votes = Vec::new();
        neighbours.votes(self.words(), &mut scratch, &mut votes);
        let of = |vote: &crate::neighbours::Vote| (vote.label, [vote.score, vote.nearest]);
        votes.iter().map(of).collect()
    }

    /// Cosine of each name and the text, and the share of the name that the text contains, best first.
    fn names(&self, names: &Names) -> Vec<(LabelId, [f32; 2])> {
        let words: &CsrMatrix = names.words();
        let (text, values) = self.words();
        let one = |label: usize| {
            let (name, weights) = words.row(label);
            let both = name.iter().zip(weights).filter_map(|(word, &weight)| {
                let place = text.iter().position(|other| other == word)?;
                Some([weight * values[place], weight * weight])
            });
            let sums = both.fold([0.0, 0.0], |sum, [a, b]| [sum[0] + a, sum[1] + b]);
            (LabelId(label as u32), sums)
        };
        let mut names: Vec<_> = (0..N_LABELS).map(one).filter(|of| of.1[0] > 0.0).collect();
        names.sort_by(|a, b| b.1[0].total_cmp(&a.1[0]).then(a.0.cmp(&b.0)));
        names
    }

    fn check(&self, kind: ScoreKind, candidates: &Candidates) {
        let ranked = self.ranked();
        let knowledge = self.predictor.knowledge();
        let votes = self.votes(knowledge.neighbours.unwrap());
        let names = knowledge.names.map(|names| self.names(names));
        let names = names.unwrap_or_default();
        let mut added: Vec<LabelId> = Vec::new();
        if kind == ScoreKind::Boosted {
            let labels = |of: &[(LabelId, [f32; 2])]| of.iter().map(|of| of.0).collect::<Vec<_>>();
            added.extend(self.best_of(&labels(&votes), 50, 50));
            added.extend(self.best_of(&labels(&names), 20, 20));
        }
        let listed_labels = self.walk.allowed.and_then(|allowed| allowed.listed());
        added.extend(listed_labels.unwrap_or_default());
        added.retain(|label| !ranked.contains(label));
        added.sort();
        added.dedup();
        assert_eq!(candidates.labels(), [&ranked[..], &added].concat());

        let listed = |list: &[(LabelId, [f32; 2])], label: LabelId, at: usize| {
            let found = list.iter().find(|of| of.0 == label);
            found.map_or(0.0, |of| of.1[at])
        };
        let (p, ranker) = (self.p(), self.ranker());
        let is_ranked = |label: LabelId| ranked.contains(&label);
        let expected = |column: Column, label: LabelId| match column {
            Column::P if !is_ranked(label) => 0.0,
            Column::P => p[label.idx()],
            Column::Logit => self.logit(label),
            Column::Margin => self.margin(label),
            Column::RankerScore => ranker.probability(self.margin(label)),
            Column::ClusterMargin => self.margins_above(label)[0],
            Column::PathScore => {
                let mut margins = self.margins_above(label);
                margins.push(self.margin(label));
                let ln = margins.iter().map(|&margin| ranker.log_probability(margin));
                ln.sum::<f32>()
            }
            Column::Votes => listed(&votes, label, 0),
            Column::Nearest => listed(&votes, label, 1),
            Column::NameMatch => listed(&names, label, 0),
            Column::Contained => listed(&names, label, 1),
            Column::Frequency => knowledge.frequencies[label.idx()] as f32,
            Column::FinalScore => {
                let row = candidates.row_of(label).unwrap();
                match &self.member.scorer_at(self.walk.level) {
                    FinalScorer::P => p[label.idx()],
                    FinalScorer::Product => p[label.idx()] * ranker.probability(self.margin(label)),
                    FinalScorer::Tree(tree) => tree.score(candidates.scores(row)),
                    FinalScorer::Boosted(trees) => one_by_one(trees, candidates, row),
                }
            }
        };
        for &column in columns_of(kind) {
            for (&label, &value) in candidates.labels().iter().zip(candidates.column(column)) {
                let expected = expected(column, label);
                let bound = 1e-4 * expected.abs().max(1.0);
                assert!(
                    (value - expected).abs() <= bound,
                    "{kind:?} {column:?} of {label:?}: {value}, expected {expected}"
                );
            }
        }
        for column in ALL_COLUMNS {
            let read = catch_unwind(AssertUnwindSafe(|| candidates.column(column).len()));
            assert_eq!(
                read.is_ok(),
                columns_of(kind).contains(&column),
                "{column:?}"
            );
        }
    }
}

/// The score of one candidate, tree after tree.
fn one_by_one(trees: &BoostedTrees, candidates: &Candidates, row: usize) -> f32 {
    let mut features = Features::default();
    features.fill(candidates);
    let value = |column: usize| features.column(column)[row];
    let mut logit = trees.start() + 0.02 * (value(0) + value(12));
    for tree in trees.trees() {
        let bit = |level: usize| {
            let is_above = value(tree.columns[level] as usize) > tree.thresholds[level];
            usize::from(is_above) << level
        };
        logit += tree.leaves[(0..DEPTH).map(bit).sum::<usize>()];
    }
    sigmoid(logit)
}

const ALL_COLUMNS: [Column; 12] = [
    Column::P,
    Column::Logit,
    Column::Margin,
    Column::RankerScore,
    Column::ClusterMargin,
    Column::PathScore,
    Column::Votes,
    Column::Nearest,
    Column::NameMatch,
    Column::Contained,
    Column::Frequency,
    Column::FinalScore,
];

fn columns_of(kind: ScoreKind) -> &'static [Column] {
    use Column::*;
    match kind {
        ScoreKind::P => &[P, FinalScore],
        ScoreKind::Product => &[P, Margin, RankerScore, FinalScore],
        ScoreKind::Tree => &[P, Margin, RankerScore, Frequency, FinalScore],
        ScoreKind::Boosted => &[
            P,
            Logit,
            Margin,
            ClusterMargin,
            PathScore,
            Votes,
            Nearest,
            NameMatch,
            Contained,
            Frequency,
            FinalScore,
        ],
    }
}

#[test]
fn every_level_has_the_columns_that_brute_force_finds_and_no_others() {
    for (name, top) in [("boosted", ScoreKind::Boosted), ("tree", ScoreKind::Tree)] {
        let predictor = train(name);
        let ids = |ids: &[u32]| ids.iter().map(|&id| LabelId(id).into()).collect();
        for (allow, deny) in [
            (None, vec![]),
            (None, (0..30).collect()),
            (Some((0..30).step_by(3).collect::<Vec<_>>()), vec![6, 7]),
        ] {
            let lists = LabelLists {
                allow: allow.as_deref().map(ids),
                deny: ids(&deny),
                ..LabelLists::default()
            };
            check_levels(&predictor, top, &lists);
        }
    }
}

fn check_levels(predictor: &Predictor, top: ScoreKind, lists: &LabelLists) {
    let test = data(12, "test");
    let all = predictor.points(&test).unwrap();
    let levels = [
        (Level::Stage1, ScoreKind::P),
        (Level::Stage2, ScoreKind::P),
        (Level::Ranker, ScoreKind::Product),
        (Level::Calibrated, top),
        (Level::Ensemble, top),
    ];
    let mut scratch = CandidateScratch::new(&predictor.members()[0].model);
    // One table for everything: nothing of another level or point is left in it.
    let (mut candidates, mut merger) = (Candidates::default(), Merger::default());
    for (level, kind) in levels {
        let query = Query {
            k: K,
            level,
            rules: predictor.label_rules(lists).unwrap(),
            ..Query::default()
        };
        let walk = predictor.walk(&query).unwrap();
        assert_eq!(
            walk.members.len(),
            if level == Level::Ensemble { 2 } else { 1 }
        );
        for row in 0..test.n_points() {
            let points = all.select_rows(&[row]);
            let (mut encoded, mut buffers) = (Vec::new(), PointBuffers::default());
            walk.encode(points.points(), &[0], &mut encoded).unwrap();
            let knowledge = walk.knowledge;
            let point = knowledge.point(points.points(), 0, &mut buffers);
            let mut merging = merger.start();
            for (member, encoded) in walk.members.iter().zip(&encoded) {
                let encoded = encoded.get(0);
                let at = MemberPoint::new(member, &point, encoded);
                walk.candidates(&at, &mut scratch, &mut candidates).unwrap();
                merging.add(candidates.scored());
                let brute = Brute {
                    predictor,
                    member,
                    walk,
                    points: &points,
                    embedding: encoded.embedding,
                    probabilities: encoded.clusters,
                };
                brute.check(kind, &candidates);
            }
            let merged = merging.finish();
            walk.keep_allowed(merged);
            let best = crate::predict::best(merged, &query);
            assert_eq!(
                predictor.rank_points(points.points(), &query).unwrap(),
                [best]
            );
        }
    }
}

#[test]
#[should_panic(expected = "Votes is not filled")]
fn a_column_that_nobody_filled_cannot_be_read() {
    let mut candidates = Candidates::default();
    let point = Point {
        words: (&[], &[]),
        terms: (&[], &[]),
        votes: &[],
        names: &[],
    };
    let mut rows = candidates.start(&point);
    rows.add([LabelId(3)].into_iter());
    rows.settle();
    candidates.column(Column::Votes);
}

#[test]
fn rows_of_the_index_come_first_and_a_label_has_one_row() {
    let point = Point {
        words: (&[], &[]),
        terms: (&[], &[]),
        votes: &[],
        names: &[],
    };
    let scored = |label, score| Scored {
        label: LabelId(label),
        score,
    };
    let mut candidates = Candidates::default();
    for _ in 0..2 {
        let mut rows = candidates.start(&point);
        // Whichever source is asked first.
        rows.add([9, 7, 2, 7].map(LabelId).into_iter());
        rows.add_ranked([scored(7, 0.5), scored(3, 0.25)].into_iter());
        rows.settle();
        assert_eq!(candidates.labels(), [7, 3, 2, 9].map(LabelId));
        assert_eq!(candidates.column(Column::P), [0.5, 0.25, 0.0, 0.0]);
        assert_eq!(candidates.row_of(LabelId(2)), Some(2));
        assert_eq!(candidates.row_of(LabelId(8)), None);
    }
}
