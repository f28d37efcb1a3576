//! Recipes: the method as it is trained here by default, as the paper has it, and as the authors' released code has it.
//!
//! One table says it all: a row per element, a column per recipe. A new element is a new row; the code of the method reads
//! its value from [`Plan::recipe`](super::Plan::recipe). Where the paper is silent its column follows the released code.
//! Reasons and measured effects of the departures are in `docs/paper-map.md`.

use std::collections::BTreeMap;

use documented::DocumentedFields;
use serde::{Deserialize, Serialize};

use super::elements::{
    EdgeStart, LabelStart, Parents, Pooling, Positives, RankerLoss, RankerNegatives, Reduction,
    RowUpdates, Searched, SecondMoments, SizeRule,
};
use super::{Config, FinalScoreKind, LabelTexts, Refit};

/// The recipe of a training: everything that the method leaves open.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Serialize, Deserialize, DocumentedFields)]
#[serde(rename_all = "snake_case")]
pub enum RecipeName {
    /// Measured best on many sets.
    #[default]
    Elias,
    /// As the paper has it.
    Paper,
    /// As the authors' released code has it.
    Released,
}

/// Makes [`Recipe`] and [`Ablation`] from the table: rows that a key of the configuration overrides, rows that only an
/// ablation overrides, and rules for sizes that are left open.
macro_rules! recipes {
    (
        keys: { $($(#[$key_doc:meta])* $key:ident: $key_type:ty = $key_elias:expr, $key_paper:expr, $key_released:expr;
            set by $section:ident.$name:ident;)* }
        elements: { $($(#[$doc:meta])* $element:ident: $type:ty = $elias:expr, $paper:expr, $released:expr;)* }
        sizes: { $($(#[$size_doc:meta])* $size:ident: $size_type:ty = $size_elias:expr, $size_paper:expr, $size_released:expr;)* }
    ) => {
        /// Every element of a recipe, with what the configuration overrides.
        #[derive(Clone, Debug, PartialEq)]
        pub struct Recipe {
            $($(#[$key_doc])* pub $key: $key_type,)*
            $($(#[$doc])* pub $element: $type,)*
            $($(#[$size_doc])* pub $size: $size_type,)*
        }

        /// Single elements that differ from the recipe's, to measure what each is worth.
        #[derive(Clone, Debug, Default, PartialEq, Serialize, Deserialize, DocumentedFields)]
        #[serde(deny_unknown_fields, default)]
        pub struct Ablation {
            $($(#[$doc])* #[serde(skip_serializing_if = "Option::is_none")] pub $element: Option<$type>,)*
        }

        impl RecipeName {
            /// The recipe's column of the table.
            pub(crate) fn column(self) -> Recipe {
                match self {
                    RecipeName::Elias => Recipe {
                        $($key: $key_elias,)* $($element: $elias,)* $($size: $size_elias,)*
                    },
                    RecipeName::Paper => Recipe {
                        $($key: $key_paper,)* $($element: $paper,)* $($size: $size_paper,)*
                    },
                    RecipeName::Released => Recipe {
                        $($key: $key_released,)* $($element: $released,)* $($size: $size_released,)*
                    },
                }
            }
        }

        impl Recipe {
            /// The recipe that a configuration names, with the elements it overrides.
            pub fn of(config: &Config) -> Self {
                let column = config.recipe.column();
                Recipe {
                    $($key: config.$section.$name.unwrap_or(column.$key),)*
                    $($element: config.ablation.$element.unwrap_or(column.$element),)*
                    ..column
                }
            }

            /// The value of every key that overrides an element, as TOML and JSON spell it.
            pub(super) fn spelled(&self) -> BTreeMap<&'static str, String> {
                let spell = |value: serde_json::Result<String>| value.expect("an element is a JSON value");
                BTreeMap::from([
                    $((
                        concat!(stringify!($section), ".", stringify!($name)),
                        spell(serde_json::to_string(&self.$key)),
                    ),)*
                    $((
                        concat!("ablation.", stringify!($element)),
                        spell(serde_json::to_string(&self.$element)),
                    ),)*
                ])
            }
        }
    };
}

#[rustfmt::skip] // It is a table.
recipes! {
    //  element                                     elias           paper           released
    keys: {
        /// The final score of a candidate.
        final_score: FinalScoreKind               = FinalScoreKind::Boosted, FinalScoreKind::Tree, FinalScoreKind::Mixture;
            set by final_score.kind;
        /// Whether labels of similar training points are candidates.
        neighbours: bool                          = true,           false,          false;
            set by final_score.neighbours;
        /// Cosine from which points are near duplicates.
        near_duplicates: f32                      = 0.6,            2.0,            2.0;
            set by hold_out.near_duplicates;
        /// Parts of small data that are held out in turn.
        folds: usize                              = 5,              0,              0;
            set by hold_out.folds;
        /// The part that is trained again on all points.
        refit: Refit                              = Refit::Auto,    Refit::Nothing, Refit::Nothing;
            set by hold_out.refit;
        /// Whether labels are also learned from their names.
        label_texts: LabelTexts                   = LabelTexts::Auto, LabelTexts::Off, LabelTexts::Off;
            set by train.label_texts;
    }
    elements: {
        /// How the losses of a batch are combined; λ weighs the two sums or the two means alike.
        reduction: Reduction                      = Reduction::Sum, Reduction::Sum, Reduction::Mean;
        /// Which positives of a point are in L_c.
        positives: Positives                      = Positives::All, Positives::Shortlisted, Positives::Shortlisted;
        /// Second moments of W_L and of the word embeddings.
        second_moments: SecondMoments             = SecondMoments::Shared, SecondMoments::Coordinate, SecondMoments::Coordinate;
        /// Which rows of W_L, of A and of the word embeddings an update moves.
        row_updates: RowUpdates                   = RowUpdates::Touched, RowUpdates::All, RowUpdates::All;
        /// Decoupled weight decay of the encoder and of W_L; not applied to biases.
        weight_decay: f32                         = 0.15,           0.01,           0.01;
        /// Decoupled weight decay of the index, W_C and A.
        index_weight_decay: f32                   = 0.5,            0.01,           0.01;
        /// Score ŷ from which a negative is scored in training; 0 scores the whole shortlist.
        score_floor: f32                          = 1e-4,           0.0,            0.0;
        /// Size of |∂L_c/∂z| or |∂L_c/∂log ŷ| from which a negative passes a gradient; 0 passes all.
        gradient_floor: f32                       = 1e-3,           0.0,            0.0;
        /// Steps between updates of W_L, A and W_C.
        update_every: usize                       = 1,              10,             10;
        /// Epochs of stage 1 after which labels are clustered again, on features and embeddings together, and stage 1
        /// starts over; 0 clusters once, on features.
        warmup_epochs: usize                      = 0,              5,              5;
        /// Start of W_L and b_L.
        label_start: LabelStart                   = LabelStart::Improbable, LabelStart::Random, LabelStart::Random;
        /// Whether W_L and b_L start again at stage 2, or go on as stage 1 left them.
        label_restart: bool                       = false,          true,           true;
        /// The clusters that a point is searched through in training.
        searched: Searched                        = Searched::Parents, Searched::Parents, Searched::Filled;
        /// How long a label keeps its parent, the cluster whose edge to it is the strongest.
        parents: Parents                          = Parents::Epoch, Parents::Update, Parents::Epoch;
        /// Epochs of stage 2 between two steps whose weights are averaged, all but those of A; 0 keeps the last weights.
        average_every: f32                        = 0.0,            1.0,            1.0;
        /// Share of stage 2 from which weights are averaged.
        average_from: f32                         = 0.2,            0.2,            0.2;
        /// Whether a stage ends with the weights of the best nDCG@5 on the held-out points, looked at in every third epoch and
        /// after the last, or with the last weights. Where A is counted again, epochs before that do not count.
        best_epoch: bool                          = false,          true,           true;
        /// Start of the edges and their weights.
        edge_start: EdgeStart                     = EdgeStart::Recounts, EdgeStart::Random, EdgeStart::Random;
        /// Whether a transformer's texts go with the features that the data has for them, or features are made of the texts.
        given_features: bool                      = false,          true,           true;
        /// How the token states of a transformer become one vector.
        pooling: Pooling                          = Pooling::Mean,  Pooling::Cls,   Pooling::Cls;
        /// Loss of the ranker's classifiers.
        ranker_loss: RankerLoss                   = RankerLoss::SquaredHinge, RankerLoss::Logistic, RankerLoss::SquaredHinge;
        /// C: weight of the ranker's loss against ½‖w‖².
        ranker_cost: f32                          = 0.5,            1.0,            1.0;
        /// Which points are negatives of a label in the ranker.
        ranker_negatives: RankerNegatives         = RankerNegatives::Clusters, RankerNegatives::Candidates, RankerNegatives::Candidates;
        /// Whether the ranker reads the embedding φ/‖φ‖ besides the words.
        ranker_embedding: bool                    = false,          true,           true;
        /// Whether the ranker reads pairs of neighbouring words besides the words.
        ranker_pairs: bool                        = true,           false,          false;
    }
    sizes: {
        /// Up to so many, clusters are small: C is 2^⌈log2(L/25)⌉, beyond that 2^⌈log2(L/100)⌉ (`index.n_clusters`).
        max_small_clusters: usize                 = 512,            0,              0;
        /// β over a bag of words (`index.beta`).
        beta: SizeRule                            = SizeRule::PerLabel(4.5), SizeRule::Fixed(150.0), SizeRule::Fixed(150.0);
        /// β over a transformer, where W_L alone must tell labels apart (`index.beta`).
        beta_transformer: SizeRule                = SizeRule::PerLabel(8.5), SizeRule::Fixed(150.0), SizeRule::Fixed(150.0);
        /// κ (`index.kappa`).
        kappa: SizeRule                           = SizeRule::PerLabel(10.0), SizeRule::Fixed(1000.0), SizeRule::Fixed(1000.0);
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_recipe_is_its_column_and_single_elements_can_be_overridden() {
        let paper = Config::from_toml("recipe = \"paper\"").unwrap();
        assert_eq!(Recipe::of(&paper), RecipeName::Paper.column());
        assert_eq!(Recipe::of(&Config::default()), RecipeName::Elias.column());
        let settings = ["ablation.update_every=3", "final_score.kind=product"];
        let changed = settings
            .iter()
            .fold(paper, |config, setting| config.with_value(setting).unwrap());
        let expected = Recipe {
            update_every: 3,
            final_score: FinalScoreKind::Product,
            ..RecipeName::Paper.column()
        };
        assert_eq!(Recipe::of(&changed), expected);
    }

    #[test]
    fn the_order_of_recipe_and_override_does_not_matter() {
        let set = |settings: [&str; 2]| {
            settings.iter().fold(Config::default(), |config, setting| {
                config.with_value(setting).unwrap()
            })
        };
        let override_last = set(["recipe=released", "ablation.ranker_pairs=true"]);
        let override_first = set(["ablation.ranker_pairs=true", "recipe=released"]);
        assert_eq!(override_first, override_last);
        assert!(Recipe::of(&override_last).ranker_pairs);
    }

    #[test]
    fn the_paper_and_the_released_code_differ_in_few_elements() {
        let released = RecipeName::Released.column();
        let expected = Recipe {
            final_score: FinalScoreKind::Mixture,
            reduction: Reduction::Mean,
            searched: Searched::Filled,
            parents: Parents::Epoch,
            ranker_loss: RankerLoss::SquaredHinge,
            ..RecipeName::Paper.column()
        };
        assert_eq!(released, expected);
    }
}
