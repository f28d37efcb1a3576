//! From a data set to a predictor, in one call.

use crate::checkpoint::{Destination, Identity, TrainingFolder};
use crate::config::{Config, DataCounts, DataSizes, HoldOutConfig, MemoryEstimate, Plan};
use crate::data::{Dataset, HoldOut, Texts};
use crate::encoder::Points;
use crate::error::{Error, Result};
use crate::features::Vectorizer;
use crate::matrix::CsrMatrix;
use crate::predict::{Member, Predictor};
use crate::train::{
    Event, Observer, Phase, TrainState, Trained, TrainingData, Watched, begin, tell, train,
    train_from,
};

/// Trains predictors as a configuration says.
#[derive(Clone, Debug, Default)]
pub struct Trainer {
    config: Config,
}

/// A data set made ready for training: features and what will run.
pub struct Prepared {
    vectorizer: Option<Vectorizer>,
    features: CsrMatrix,
    plan: Plan,
}

impl Prepared {
    /// What will run.
    pub fn plan(&self) -> &Plan {
        &self.plan
    }

    /// The features.
    pub fn features(&self) -> &CsrMatrix {
        &self.features
    }

    /// Predicts the most memory that training on the same data will take, on this many threads.
    pub fn peak_memory(
        &self,
        data: &Dataset,
        watched: Option<&Dataset>,
        n_threads: usize,
    ) -> MemoryEstimate {
        let n_points = data.n_points();
        let n_words_a_point = self.features.nnz().div_ceil(n_points.max(1));
        let mut sizes = DataSizes {
            n_feature_entries: self.features.nnz(),
            n_centroid_entries: count_centroid_entries(data.labels(), &self.features),
            n_words_a_point,
            n_threads,
            ..DataSizes::default()
        };
        for part in std::iter::once(data).chain(watched) {
            let given = part.features().map_or(0, CsrMatrix::nnz);
            sizes.n_text_bytes += part.texts().map_or(0, Texts::n_bytes);
            sizes.n_text_bytes += part.ids().map_or(0, Texts::n_bytes);
            sizes.n_feature_entries += given;
            sizes.n_label_entries += part.labels().nnz();
            sizes.n_points += part.n_points();
        }
        // Watched points are as long as the others.
        sizes.n_feature_entries += n_words_a_point * (sizes.n_points - n_points);
        self.plan.peak_memory(&sizes)
    }
}

/// Labels whose centroids are counted; the rest is extrapolated.
const MOST_COUNTED_LABELS: usize = 4096;

/// How many words the points of each label have together, summed over the labels.
fn count_centroid_entries(labels: &CsrMatrix, features: &CsrMatrix) -> usize {
    let points_of = labels.transpose();
    let stride = points_of.n_rows().div_ceil(MOST_COUNTED_LABELS).max(1);
    let mut last_seen = vec![u32::MAX; features.n_cols()];
    let (mut n_entries, mut n_counted) = (0, 0);
    for label in (0..points_of.n_rows()).step_by(stride) {
        n_counted += 1;
        for &point in points_of.row(label).0 {
            for &word in features.row(point as usize).0 {
                let seen = &mut last_seen[word as usize];
                n_entries += usize::from(*seen != label as u32);
                *seen = label as u32;
            }
        }
    }
    (n_entries as f64 * points_of.n_rows() as f64 / f64::from(n_counted.max(1))) as usize
}

impl Trainer {
    /// A trainer with this configuration.
    pub fn new(config: Config) -> Self {
        Trainer { config }
    }

    /// Features of the data and the plan for it; nothing is trained yet.
    ///
    /// # Errors
    /// [`Error::Config`] and [`Error::Untrainable`].
    pub fn prepare(&self, data: &Dataset) -> Result<Prepared> {
        let (vectorizer, features) = match (data.features(), data.texts()) {
            (Some(features), None) => (None, features.with_unit_rows()),
            (_, Some(texts)) => {
                let (vectorizer, features) =
                    Vectorizer::fit_transform(texts, &self.config.features)?;
                (Some(vectorizer), features)
            }
            (None, None) => {
                return Err(Error::Untrainable(
                    "the data has neither texts nor features".into(),
                ));
            }
        };
        let n_points = (0..data.n_points())
            .filter(|&point| !data.labels().row(point).0.is_empty())
            .count();
        let counts = DataCounts {
            n_points,
            n_labels: data.n_labels(),
            n_features: features.n_cols(),
        };
        let plan = self.config.resolve(counts)?;
        Ok(Prepared {
            vectorizer,
            features,
            plan,
        })
    }

    /// Trains on a data set; `watched` is predicted every few epochs for the observer's eyes.
    ///
    /// # Errors
    /// As [`Trainer::prepare`]; [`Error::Diverged`]; [`Error::Stopped`] if the observer asks for it.
    pub fn train(
        &self,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        tell(
            observer,
            Event::PhaseStarted {
                phase: Phase::Features,
                n_steps: 0,
            },
        )?;
        let prepared = self.prepare(data)?;
        self.train_prepared(prepared, data, watched, observer)
    }

    /// Trains on a data set, keeps the training from being lost meanwhile, and saves the model.
    ///
    /// Interrupted at any instant and resumed, it ends in the same bytes as if it had not been.
    ///
    /// # Errors
    /// As [`Trainer::train`]; [`Error::BadFile`] if the destination is taken or cannot be resumed; [`Error::Io`].
    pub fn train_to(
        &self,
        destination: &Destination,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        tell(
            observer,
            Event::PhaseStarted {
                phase: Phase::Features,
                n_steps: 0,
            },
        )?;
        let prepared = self.prepare(data)?;
        self.train_prepared_to(destination, prepared, data, watched, observer)
    }

    /// As [`Trainer::train_to`], on what [`Trainer::prepare`] made of the same data.
    ///
    /// # Errors
    /// As [`Trainer::train_to`].
    pub fn train_prepared_to(
        &self,
        destination: &Destination,
        prepared: Prepared,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let identity = Identity::new(&self.config, data, watched);
        let mut folder = TrainingFolder::open(destination, identity)?;
        if let Some(predictor) = folder.finished()? {
            folder.remove()?;
            return Ok(predictor);
        }
        let (predictor, history) =
            self.run(prepared, data, watched, observer, Some(&mut folder))?;
        folder.finish(&predictor, history)?;
        Ok(predictor)
    }

    /// Trains on what [`Trainer::prepare`] made of the same data.
    ///
    /// # Errors
    /// As [`Trainer::train`].
    pub fn train_prepared(
        &self,
        prepared: Prepared,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
    ) -> Result<Predictor> {
        let (predictor, _) = self.run(prepared, data, watched, observer, None)?;
        Ok(predictor)
    }

    fn run(
        &self,
        prepared: Prepared,
        data: &Dataset,
        watched: Option<&Dataset>,
        observer: &dyn Observer,
        folder: Option<&mut TrainingFolder>,
    ) -> Result<(Predictor, Vec<Event>)> {
        let Prepared {
            vectorizer,
            features,
            plan,
        } = prepared;
        let watched_features = match (
            watched.and_then(Dataset::texts),
            &vectorizer,
            watched.and_then(Dataset::features),
        ) {
            (Some(texts), Some(vectorizer), _) => Some(vectorizer.transform(texts)),
            (_, None, Some(features)) => Some(
                features
                    .with_n_cols(plan.counts().n_features)?
                    .with_unit_rows(),
            ),
            _ => None,
        };
        let watched = watched_features.as_ref().zip(watched);
        let watched = watched.map(|(features, data)| Watched {
            points: Points { features },
            labels: data.labels(),
        });
        let held_out = self.validation_part(data, &features, watched.is_some());
        let held_out_view = held_out.as_ref().map(|(_, _, features, labels)| Watched {
            points: Points { features },
            labels,
        });
        let (train_features, train_labels) = held_out
            .as_ref()
            .map_or((&features, data.labels()), |(features, labels, _, _)| {
                (features, labels)
            });
        let training = TrainingData {
            points: Points {
                features: train_features,
            },
            labels: train_labels,
            watched: watched.or(held_out_view),
        };
        let trained = match folder {
            Some(folder) => train_kept(training, &plan, observer, folder)?,
            None => train(training, &plan, observer)?,
        };
        let label_counts = count_labels(data.labels());
        let member = Member {
            encoder: trained.encoder,
            model: trained.model,
        };
        let labels = (data.label_set().clone(), label_counts);
        let predictor = Predictor::new(vectorizer, labels, member, plan)?;
        Ok((predictor, trained.history))
    }

    /// Features and labels to train on, and features and labels to watch.
    fn validation_part(
        &self,
        data: &Dataset,
        features: &CsrMatrix,
        is_watched: bool,
    ) -> Option<(CsrMatrix, CsrMatrix, CsrMatrix, CsrMatrix)> {
        let n_points = self.config.train.validation_points;
        if n_points == 0 || is_watched {
            return None;
        }
        let hold_out = HoldOutConfig {
            n_points,
            ..HoldOutConfig::default()
        };
        let HoldOut { train, held_out } =
            HoldOut::choose(data.labels(), &hold_out, self.config.train.seed);
        let labels = data.labels();
        Some((
            features.select_rows(&train),
            labels.select_rows(&train),
            features.select_rows(&held_out),
            labels.select_rows(&held_out),
        ))
    }
}

/// Trains from the last snapshot in the folder, and keeps further ones there.
fn train_kept(
    data: TrainingData<'_>,
    plan: &Plan,
    observer: &dyn Observer,
    folder: &mut TrainingFolder,
) -> Result<Trained> {
    let state = match folder.restore(plan)? {
        Some(state) => state,
        None => begin(data, plan, observer)?,
    };
    let mut keep = |state: &mut TrainState, boundary| folder.keep(state, boundary);
    train_from(state, data, plan, observer, &mut keep)
}

fn count_labels(labels: &CsrMatrix) -> Vec<u32> {
    let mut counts = vec![0; labels.n_cols()];
    labels
        .indices()
        .iter()
        .for_each(|&label| counts[label as usize] += 1);
    counts
}
