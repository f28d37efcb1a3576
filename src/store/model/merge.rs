//! The members of several models as one ensemble.
//!
//! Models fit together if everything that an ensemble has once is the same in all of them: training data, labels,
//! features, neighbours, names, and the settings that answers depend on. Then a member answers in the ensemble as it
//! did in its own model, and the score of a label is the mean over all members, each with the same weight.
//! The probabilities of a model were fitted on its own scores and say nothing of the mean, so the ensemble has none
//! until [`Predictor::calibrate`] fits them.

use std::collections::BTreeMap;
use std::path::PathBuf;
use std::sync::Arc;

use super::describe::read_manifest;
use super::load::load_parts;
use crate::candidates::{Member, ScoreKind};
use crate::config::{Change, Plan};
use crate::data::LabelSet;
use crate::error::{Error, Result, shortened};
use crate::events::Event;
use crate::features::{Featurizer, WordParts};
use crate::predict::{EnsembleCalibration, Predictor, PredictorParts};
use crate::store::format::open::{Depth, Residence, bad};

/// Settings of which each member may have its own: only its training reads them, or the member itself holds their
/// result. A name with a dot at its end is a section.
const OWN_SETTINGS: [&str; 31] = [
    "ablation.edge_start",
    "ablation.gradient_floor",
    "ablation.index_weight_decay",
    "ablation.label_restart",
    "ablation.label_start",
    "ablation.positives",
    "ablation.ranker_cost",
    "ablation.ranker_loss",
    "ablation.ranker_negatives",
    "ablation.reduction",
    "ablation.row_updates",
    "ablation.score_floor",
    "ablation.second_moments",
    "ablation.update_every",
    "ablation.warmup_epochs",
    "ablation.weight_decay",
    "encoder.dropout",
    "encoder.pretrained",
    "encoder.trained_layers",
    "ensemble.members",
    "hold_out.",
    "index.alpha",
    "index.beta",
    "index.kappa",
    "rates.",
    "recipe",
    "stage1.",
    "stage2.",
    "train.batch_size",
    "train.lambda",
    "train.seed",
];
/// Differing settings that are listed.
const MAX_LISTED: usize = 6;

/// Loads the members of several models as one ensemble, after reading and checking every byte of them.
///
/// Its configuration is that of the first model with the number of members.
///
/// # Errors
/// As [`Predictor::load`]; [`Error::BadFile`] naming the model that does not fit the first one, and what differs;
/// [`Error::InvalidModel`] for fewer than two models.
pub(crate) fn merge(directories: &[PathBuf]) -> Result<Predictor> {
    let [first_path, other_paths @ ..] = directories else {
        return Err(too_few(0));
    };
    if other_paths.is_empty() {
        return Err(too_few(1));
    }
    check_members_differ(directories)?;
    let (mut ensemble, _) = load_parts(first_path, Depth::Full, Residence::Mapped)?;
    check_frequencies(first_path, &ensemble)?;
    let mut histories = vec![std::mem::take(&mut ensemble.record.history)];
    for path in other_paths {
        let (model, _) = load_parts(path, Depth::Full, Residence::Mapped)?;
        if let Some(problem) = difference(&ensemble, &model) {
            let first = first_path.display();
            return Err(bad(
                path.clone(),
                format!("it cannot be merged with {first}: {problem}"),
            ));
        }
        check_frequencies(path, &model)?;
        histories.push(model.record.history);
        ensemble.seen = ensemble
            .seen
            .zip(model.seen)
            .map(|(one, other)| one.with(&other).into());
        let members = Arc::make_mut(&mut ensemble.members);
        members.extend(Arc::unwrap_or_clone(model.members));
    }
    ensemble.calibration = None;
    ensemble.plan = ensemble.plan.of_ensemble(ensemble.members.len());
    ensemble.record.history = join(histories);
    Predictor::new(ensemble)
}

fn too_few(n_models: usize) -> Error {
    Error::InvalidModel(format!("found {n_models} to merge, expected at least two"))
}

/// A member that counts twice is a mistake: the same model given twice, or trained twice with the same seed.
fn check_members_differ(directories: &[PathBuf]) -> Result<()> {
    let mut known: BTreeMap<String, &PathBuf> = BTreeMap::new();
    for path in directories {
        let manifest = read_manifest(path)?;
        let records = manifest.records();
        for member in &manifest.members {
            let Some(record) = records.get(&member.classifiers) else {
                continue; // Loading says what is missing.
            };
            if let Some(other) = known.insert(record.sha256.clone(), path) {
                let other = other.display();
                let problem = format!(
                    "it has the same member as {other}: give each model once, trained with a seed of its own"
                );
                return Err(bad(path.clone(), problem));
            }
        }
    }
    Ok(())
}

/// Calibrated scores depend on how many training points each label has; an ensemble without probabilities has the
/// counts of all points only.
fn check_frequencies(path: &std::path::Path, model: &PredictorParts) -> Result<()> {
    let calibration = model.calibration.as_ref();
    let is_same = |calibration: &EnsembleCalibration| {
        let n_trained = calibration.frequencies.len();
        calibration.frequencies == model.label_counts[..n_trained]
    };
    if calibration.is_none_or(is_same) {
        return Ok(());
    }
    let problem =
        "it was not trained on all points: train models to merge with hold_out.refit = ranker";
    Err(bad(path.into(), problem.into()))
}

/// Why a model does not fit into an ensemble; nothing if it does.
fn difference(ensemble: &PredictorParts, model: &PredictorParts) -> Option<String> {
    let differing = |is_same: bool, what: &str| (!is_same).then(|| what.to_owned());
    different_labels(&ensemble.label_set, &model.label_set)
        .or_else(|| {
            let is_same = ensemble.record.data == model.record.data;
            differing(
                is_same && ensemble.label_counts == model.label_counts,
                "it was trained on other data; members share their training data",
            )
        })
        .or_else(|| {
            let forms = |parts: &PredictorParts| parts.by_text.as_ref().map(|by| by.forms.clone());
            differing(
                forms(ensemble) == forms(model) && ensemble.retired == model.retired,
                "it has other labels that are known by their texts, or removed",
            )
        })
        .or_else(|| different_settings(&ensemble.plan, &model.plan))
        .or_else(|| {
            let is_same = are_same_features(&ensemble.featurizer, &model.featurizer);
            differing(is_same, "it has other words, or other weights of them")
        })
        .or_else(|| {
            let [first, other] =
                [ensemble, model].map(|parts| parts.members[0].encoder.architecture());
            differing(first == other, "its transformer has another architecture")
        })
        .or_else(|| {
            let is_same = ensemble.neighbours == model.neighbours && ensemble.names == model.names;
            differing(is_same, "it knows other training points or label names")
        })
        .or_else(|| {
            let first = parts_of(&ensemble.members[0]);
            let is_same = model.members.iter().all(|member| parts_of(member) == first);
            differing(
                is_same,
                "one of them is calibrated, or has a ranker, and the other is not, or has none",
            )
        })
}

fn different_labels(first: &LabelSet, other: &LabelSet) -> Option<String> {
    if first.names() == other.names() {
        return None;
    }
    let mut names = other.names().iter();
    let unknown = names.find(|name| first.find(name).is_none());
    Some(match unknown {
        Some(name) => format!("its label {:?} is not there", shortened(name)),
        None if first.len() != other.len() => {
            format!("it has {} labels, not {}", other.len(), first.len())
        }
        None => "its labels are the same in another order: train both on the same data".into(),
    })
}

fn different_settings(first: &Plan, other: &Plan) -> Option<String> {
    let is_own = |key: &str| {
        let mut own = OWN_SETTINGS.iter();
        own.any(|own| key == *own || own.ends_with('.') && key.starts_with(own))
    };
    let changes = first.config().changes(other.config()).into_iter();
    let mut settings: Vec<String> = changes
        .filter(|change| !is_own(&change.key))
        .map(|Change { key, before, after }| shortened(&format!("{key} is {after}, not {before}")))
        .collect();
    let sizes = |plan: &Plan| (plan.n_clusters(), plan.beam_size(), plan.shortlist_size());
    if settings.is_empty() && sizes(first) != sizes(other) {
        settings.push("clusters, beam or shortlist have another size".into());
    }
    let n_left = settings.len().saturating_sub(MAX_LISTED);
    settings.truncate(MAX_LISTED);
    if n_left > 0 {
        settings.push(format!("{n_left} more settings differ"));
    }
    (!settings.is_empty()).then(|| settings.join("; "))
}

fn are_same_features(first: &Featurizer, other: &Featurizer) -> bool {
    let words = |featurizer: &Featurizer| {
        let words = featurizer.words()?;
        Some((words.vocabulary().clone(), words.idf().to_vec()))
    };
    let pieces = |featurizer: &Featurizer| Some(featurizer.pieces()?.to_json());
    first.n_features() == other.n_features()
        && first.synonyms() == other.synonyms()
        && words(first) == words(other)
        && first.parts().map(WordParts::entries) == other.parts().map(WordParts::entries)
        && first.pairs() == other.pairs()
        && pieces(first) == pieces(other)
}

/// The parts of a member besides its network.
fn parts_of(member: &Member) -> (bool, ScoreKind) {
    (member.ranker.is_some(), member.final_scorer.kind())
}

/// The histories of several models as one, its trainings counted through.
fn join(histories: Vec<Vec<Event>>) -> Vec<Event> {
    let is_start = |event: &&Event| matches!(event, Event::MemberStarted { .. });
    // A model of a single training does not say that it started.
    let n_runs = |history: &[Event]| history.iter().filter(is_start).count().max(1);
    let n_members = histories.iter().map(|history| n_runs(history)).sum();
    let (mut joined, mut n_before) = (Vec::new(), 0);
    for history in histories {
        let next = n_before + n_runs(&history);
        if history.iter().find(is_start).is_none() {
            let member = n_before;
            joined.push(Event::MemberStarted { member, n_members });
        }
        for event in history {
            if let Event::MemberStarted { .. } = event {
                let member = n_before;
                joined.push(Event::MemberStarted { member, n_members });
                n_before += 1;
            } else {
                joined.push(event);
            }
        }
        n_before = next;
    }
    joined
}
