//! The step as recipes train it: floors, losses as means, and AdamW on all rows.

use proptest::prelude::*;
use serde_json::Value;

use super::tests::{check_gradients, golden_gradients};
use super::*;
use crate::communicator::SingleProcess;
use crate::config::{Config, LearningRates, Recipe, RecipeName, Reduction, RowUpdates};
use crate::encoder::StepSeed;
use crate::index::Edges;
use crate::optim::Schedule;
use crate::random::Random;
use crate::reference::{Outcome, Step};
use crate::train::step::loss_weights;

const RECIPES: [RecipeName; 3] = [RecipeName::Elias, RecipeName::Paper, RecipeName::Released];

/// Whether no negative is so close to a floor that rounding decides on which side it is.
fn is_clear_of_floors(case: &Step) -> bool {
    let is_clear = |value: f64, floor: f64| floor == 0.0 || (value / floor - 1.0).abs() > 1e-3;
    let mut without = case.clone();
    (without.score_floor, without.gradient_floor) = (0.0, 0.0);
    (0..case.phi.len()).all(|point| {
        let reached = without.reached(point, &case.positives[point]);
        reached.iter().all(|reached| {
            is_clear(reached.path_score, case.score_floor)
                && is_clear(reached.score / (1.0 - reached.score), case.gradient_floor)
        })
    })
}

/// A head with floors as in a recipe, scaled so that a good part of the negatives lies below them.
fn floored(seed: u64, dim: usize, recipe: &Recipe) -> Step {
    let mut case = Step::random(seed, dim, seed.is_multiple_of(2));
    case.score_floor = 300.0 * f64::from(recipe.score_floor);
    case.gradient_floor = 100.0 * f64::from(recipe.gradient_floor);
    case
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_step_as_it_is_trained_agrees_with_the_reference(seed in 0u64..100_000, dim in 1usize..40) {
        for name in RECIPES {
            let recipe = name.column();
            let case = floored(seed, dim, &recipe);
            if !is_clear_of_floors(&case) {
                continue;
            }
            let Outcome { classification_loss, shortlist_loss, gradients } = case.outcome(0.7, 0.3);
            let (loss, fast) = case.fast(LossWeights { classification: 0.7, shortlist: 0.3 });
            check_gradients(&fast, &gradients, case.beta.is_some(), 2e-4);
            prop_assert!((loss.classification - classification_loss).abs() <= 1e-4 * classification_loss.abs() + 1e-6);
            prop_assert!((loss.shortlist - shortlist_loss).abs() <= 1e-4 * shortlist_loss.abs() + 1e-6);
        }
    }
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(64))]
    #[test]
    fn the_step_with_random_clusters_agrees_with_the_reference(seed in 0u64..100_000, dim in 1usize..20) {
        let mut case = Step::random(seed, dim, seed.is_multiple_of(2));
        let most_positives = case.positives.iter().map(Vec::len).max().unwrap();
        let filling = Filling {
            seed: StepSeed { seed, step: 7 },
            n_clusters: case.n_clusters(),
            most_positives,
        };
        let weights = LossWeights { classification: 0.7, shortlist: 0.3 };
        let (loss, fast, searched) = case.fast_filled(&|_| weights, Some(filling));
        for (point, searched) in searched.iter().enumerate() {
            let mut distinct = searched.clone();
            distinct.sort_unstable();
            distinct.dedup();
            prop_assert_eq!(distinct.len(), searched.len());
            prop_assert!(searched.len() <= case.beam_size + most_positives.min(5));
            // Nothing is drawn from so few: beam and parents are all there.
            let needed = case.selected(point, &case.positives[point]);
            if most_positives <= 5 {
                prop_assert_eq!(&searched[..needed.len()], &needed[..]);
            }
        }
        case.searched = searched;
        let Outcome { classification_loss, shortlist_loss, gradients } = case.outcome(0.7, 0.3);
        check_gradients(&fast, &gradients, case.beta.is_some(), 2e-4);
        prop_assert!((loss.classification - classification_loss).abs() <= 1e-4 * classification_loss.abs() + 1e-6);
        prop_assert!((loss.shortlist - shortlist_loss).abs() <= 1e-4 * shortlist_loss.abs() + 1e-6);
    }
}

#[test]
fn random_clusters_take_free_columns_and_columns_are_drawn_by_score() {
    let selected = |scores: &[f32]| -> Vec<Selection> {
        let clusters = (0..).map(ClusterId).zip(scores);
        clusters
            .map(|(cluster, &score)| Selection { cluster, score })
            .collect()
    };
    let filling = |step, most_positives| Filling {
        seed: StepSeed { seed: 1, step },
        n_clusters: 50,
        most_positives,
    };
    // Every cluster comes up about equally often.
    let mut counts = [0; 50];
    (0..200)
        .flat_map(|step| filling(step, 5).clusters(3))
        .for_each(|c| counts[c.idx()] += 1);
    assert!(counts.iter().all(|n| (5..=40).contains(n)), "{counts:?}");
    // Of beam 2 and six more, one is left out, mostly one of the weak.
    let scores = [0.9, 0.8, 0.7, 0.6, 0.5, 0.4, 0.05, 0.05];
    let mut lost = [0; 8];
    for step in 0..400 {
        let mut drawn = selected(&scores);
        filling(step, 6).thin(0, &mut drawn, 2);
        assert_eq!(drawn.len(), 7);
        assert!(drawn.is_sorted_by_key(|selection| selection.cluster));
        let is_left = |at: usize| drawn.iter().any(|s| s.cluster.idx() == at);
        (0..8)
            .filter(|&at| !is_left(at))
            .for_each(|at| lost[at] += 1);
    }
    assert!(300 < lost[6] + lost[7], "{lost:?}");
}

#[test]
fn floors_cut_off_negatives_in_our_recipe_alone() {
    let passing = |recipe: &Recipe| -> usize {
        let count = |seed| {
            let gradients = floored(seed, 8, recipe).outcome(1.0, 0.05).gradients;
            let passing = gradients
                .label_bias
                .iter()
                .filter(|&&gradient| 0.0 < gradient);
            passing.count()
        };
        (0..20).map(count).sum()
    };
    let [ours, paper, released] = RECIPES.map(|name| passing(&name.column()));
    assert!(ours < paper, "{ours} {paper}");
    assert_eq!(paper, released);
}

#[test]
fn losses_as_means_agree_with_numpy() {
    let text = include_str!("../../../tests/fixtures/means.json");
    let golden: Value = serde_json::from_str(text).unwrap();
    let case = Step::from_golden(&golden);
    let number = |value: &Value| value.as_f64().unwrap();
    let lambda = number(&golden["lambda"]);
    let expected = golden_gradients(&golden["expected"]["gradient"]);

    let n_points = case.phi.len() as f64;
    let most_positives = case.positives.iter().map(Vec::len).max().unwrap() as f64;
    let of_labels = 1.0 / (n_points * case.shortlist_size as f64);
    let of_positives = 1.0 / (n_points * most_positives);
    let slow = case.outcome(of_labels, lambda * of_positives);
    check_gradients(&slow.gradients, &expected, true, 1e-12);

    let seen = std::sync::Mutex::new(None);
    let (loss, fast) = case.fast_by(&|counts| {
        let weights = loss_weights(Reduction::Mean, lambda as f32, counts);
        *seen.lock().unwrap() = Some(weights);
        weights
    });
    check_gradients(&fast, &expected, true, 1e-5);
    let weights = seen.into_inner().unwrap().unwrap();
    let check = |got: f64, key: &str| {
        let expected = number(&golden["expected"][key]);
        assert!((got - expected).abs() < 1e-5 * expected, "{key}: {got}");
    };
    let classification = loss.classification * f64::from(weights.classification);
    check(classification, "classification_loss");
    let shortlist = loss.shortlist * f64::from(weights.shortlist) / lambda;
    check(shortlist, "shortlist_loss");
}

/// AdamW on every value, as it is written, in f64.
struct PlainAdamW {
    values: Vec<f64>,
    m: Vec<f64>,
    v: Vec<f64>,
    n_updates: i32,
    decay: f64,
}

impl PlainAdamW {
    fn new(values: &[f32], decay: f32) -> Self {
        PlainAdamW {
            values: values.iter().map(|&x| f64::from(x)).collect(),
            m: vec![0.0; values.len()],
            v: vec![0.0; values.len()],
            n_updates: 0,
            decay: f64::from(decay),
        }
    }

    fn update(&mut self, gradient: &[f32], rate: f32) {
        self.n_updates += 1;
        let rate = f64::from(rate);
        let correction = |beta: f64| 1.0 - beta.powi(self.n_updates);
        let (correction1, correction2) = (correction(0.9), correction(0.999));
        let moments = self.m.iter_mut().zip(&mut self.v);
        for ((w, &g), (m, v)) in self.values.iter_mut().zip(gradient).zip(moments) {
            let g = f64::from(g);
            *m = 0.9 * *m + 0.1 * g;
            *v = 0.999 * *v + 0.001 * g * g;
            let step = *m / correction1 / ((*v / correction2).sqrt() + 1e-8);
            *w -= rate * (step + self.decay * *w);
        }
    }

    #[track_caller]
    fn check(&self, what: &str, values: &[f32]) {
        for (at, (&got, &expected)) in values.iter().zip(&self.values).enumerate() {
            let error = (f64::from(got) - expected).abs();
            assert!(
                error < 1e-5 * (1.0 + expected.abs()),
                "{what} {at}: {got} {expected}"
            );
        }
    }
}

fn paper() -> Recipe {
    Recipe::of(&Config::from_toml("recipe = \"paper\"").unwrap())
}

const RATES: LearningRates = LearningRates {
    encoder: 0.01,
    labels: 0.02,
    clusters: 0.02,
    edges: 0.03,
};

#[test]
fn label_rows_without_a_gradient_move_as_in_plain_adamw() {
    const N_LABELS: usize = 20;
    const DIM: usize = 5;
    let recipe = paper();
    assert_eq!(recipe.row_updates, RowUpdates::All);
    let mut random = Random::new(3, "rows", 0);
    let mut classifiers = LabelClassifiers {
        weights: Matrix::from_vec(
            (0..N_LABELS * DIM).map(|_| random.normal()).collect(),
            N_LABELS,
            DIM,
        )
        .into(),
        bias: (0..N_LABELS).map(|_| random.normal()).collect(),
        coarse: None,
    };
    let mut plain = PlainAdamW::new(classifiers.weights.values_mut(), recipe.weight_decay);
    let mut plain_bias = PlainAdamW::new(&classifiers.bias, 0.0);
    let mut moments = LabelMoments::new(N_LABELS, DIM, recipe.second_moments);
    let mut waiting = LabelGradients::new(N_LABELS, DIM);
    let schedule = Schedule::new(300);
    for step in 0..300 {
        // Most rows have a gradient rarely, the last ones never.
        let row = random.below(N_LABELS - 3);
        if random.below(4) == 0 {
            let gradient = (0..DIM).map(|_| random.normal());
            waiting.weights.splice(row * DIM..(row + 1) * DIM, gradient);
            waiting.bias[row] = random.normal();
            waiting.touched[row] = true;
        }
        let rates = schedule.rates(step, &RATES, &recipe);
        plain.update(&waiting.weights, rates.labels.rate);
        plain_bias.update(&waiting.bias, rates.labels.rate);
        waiting.apply(&mut classifiers, &mut moments, rates, recipe.row_updates);
        assert!(
            waiting
                .weights
                .iter()
                .chain(&waiting.bias)
                .all(|&sum| sum == 0.0)
        );
    }
    plain.check("W_L", classifiers.weights.values_mut());
    plain_bias.check("b_L", &classifiers.bias);
}

#[test]
fn edges_without_a_gradient_move_as_in_plain_adamw() {
    let labels = |labels: &[u32]| {
        labels
            .iter()
            .map(|&label| crate::ids::LabelRow(label))
            .collect()
    };
    let lists = vec![labels(&[0, 1, 3]), labels(&[1, 2]), labels(&[0, 2, 3])];
    let edges = Edges::from_lists(lists, 4).unwrap();
    let start: Vec<f32> = (0..8).map(|at| 0.3 * at as f32 - 1.0).collect();
    let mut adjacency = Adjacency::learned(edges, start.clone(), 1.5).unwrap();
    let recipe = paper();
    let mut plain = PlainAdamW::new(&start, recipe.index_weight_decay);
    let mut state = EdgeState::new(&adjacency);
    let schedule = Schedule::new(60);
    for step in 0..60 {
        let mut gradient = vec![0.0; 8];
        if step % 7 == 0 {
            // ∂L/∂log ŝ of the middle row, whose softmax decides how it goes on to the weights.
            let weights = &adjacency.weights().unwrap()[3..5];
            let share = 1.0 / (1.0 + (weights[1] - weights[0]).exp());
            assert!(
                adjacency.scores()[3] < 1.0,
                "a saturated edge passes nothing"
            );
            state.gradient[3] = 0.5;
            state.touched[1] = true;
            gradient[3] = 0.5 * (1.0 - share);
            gradient[4] = -0.5 * (1.0 - share);
        }
        let rates = schedule.rates(step, &RATES, &recipe);
        plain.update(&gradient, rates.edges.rate);
        state.apply(&mut adjacency, &rates, recipe.row_updates, &SingleProcess);
    }
    plain.check("A", adjacency.weights().unwrap());
    let scores = Adjacency::learned(
        adjacency.edges().clone(),
        adjacency.weights().unwrap().to_vec(),
        1.5,
    );
    for (got, expected) in adjacency.scores().iter().zip(scores.unwrap().scores()) {
        assert!((got - expected).abs() < 1e-6, "{got} {expected}");
    }
}
