//! From a predictor to a model directory.

use std::path::Path;

use super::boosting::BoostedColumns;
use super::corrections::Journal;
use super::save_member::{write_member, write_tensors};
use super::sparse::{StepOf, StoredSparse};
use super::{describe, rerank};
use crate::candidates::LabelsByText;
use crate::communicator::SingleProcess;
use crate::data::{SeenTexts, Synonyms, Texts};
use crate::error::{Error, Result};
use crate::features::{Pairs, Vectorizer, WordParts};
use crate::neighbours::{Names, Neighbours};
use crate::predict::{Predictor, Retired};
use crate::store::format::files::{MANIFEST, Writer};
use crate::store::format::tensors::{Tensor, Values};
use crate::store::format::{history, lines, manifest};
use crate::store::unfinished::WriteLock;
use crate::store::{Existing, written_by};

impl Predictor {
    /// Saves the model into a directory that holds none yet.
    ///
    /// The model appears in one instant, when everything is on the disk. The same predictor gives the same bytes.
    ///
    /// # Errors
    /// [`Error::Io`]; [`Error::BadFile`] if a model is there already; [`Error::InUse`] if another process is writing there.
    pub fn save(&self, directory: impl AsRef<Path>) -> Result<()> {
        save(self, directory.as_ref(), Existing::Keep)
    }

    /// Saves the model in the place of one that may be there. Readers see the old model until the new one is complete.
    ///
    /// # Errors
    /// [`Error::Io`], and [`Error::InUse`] if another process is writing there; the old model is unharmed then.
    pub fn replace(&self, directory: impl AsRef<Path>) -> Result<()> {
        save(self, directory.as_ref(), Existing::Replace)
    }
}

fn save(predictor: &Predictor, directory: &Path, existing: Existing) -> Result<()> {
    let lock = WriteLock::take(directory)?;
    let saved = save_locked(predictor, directory, existing);
    lock.release();
    saved
}

/// Saves into a directory whose lock the caller holds.
pub(crate) fn save_locked(
    predictor: &Predictor,
    directory: &Path,
    existing: Existing,
) -> Result<()> {
    if existing == Existing::Keep && directory.join(MANIFEST).exists() {
        return Err(Error::BadFile {
            path: directory.into(),
            problem: "it holds a model already: choose another directory, or overwrite it".into(),
        });
    }
    // A damaged manifest may be replaced as well; its files are then unknown and stay.
    let earlier: Vec<String> = describe::read_manifest(directory)
        .map(|manifest| manifest.files.into_keys().collect())
        .unwrap_or_default();
    let mut writer = Writer::new(directory)?;
    let journal = Journal::of(directory).ok();
    match write_files(predictor, &mut writer) {
        Ok(manifest) => {
            writer.commit(&manifest::to_text(&manifest), &earlier)?;
            journal.iter().for_each(Journal::remove);
            Ok(())
        }
        Err(error) => {
            writer.abandon(&earlier);
            Err(error)
        }
    }
}

fn write_files(predictor: &Predictor, writer: &mut Writer) -> Result<manifest::Manifest> {
    let plan = predictor.plan();
    let names = predictor.labels().names();
    let counts = Values::U32(predictor.label_counts());
    let counts = vec![Tensor::list("label_counts", counts)];
    let labels = manifest::Labels {
        names: writer.write("labels", "txt", |out| lines::write(names, out))?,
        counts: write_tensors(writer, "label-counts", counts)?,
    };
    let featurizer = predictor.featurizer();
    let features = featurizer.words();
    let features = features
        .map(|words| write_words(writer, words))
        .transpose()?;
    let synonyms = featurizer.synonyms().map(Synonyms::to_lines);
    let synonyms = write_list(writer, "synonyms", synonyms.as_ref())?;
    let parts = write_list(writer, "parts", featurizer.parts().map(WordParts::entries))?;
    let pairs = featurizer.pairs();
    let pairs = pairs.map(|pairs| write_pairs(writer, pairs)).transpose()?;
    let transformer = write_transformer(writer, predictor)?;
    let mut members = Vec::new();
    for (member_idx, member) in predictor.members().iter().enumerate() {
        members.push(write_member(writer, member_idx, member, &SingleProcess)?);
    }
    let calibration = match predictor.calibration() {
        Some(calibration) => {
            let tensors = rerank::calibration_tensors(calibration);
            Some(write_tensors(writer, "calibration", tensors)?)
        }
        None => None,
    };
    let knowledge = predictor.knowledge();
    let neighbours = write_neighbours(writer, "neighbours", knowledge.neighbours)?;
    let rejected = write_neighbours(writer, "rejected", predictor.rejected())?;
    let names = knowledge.names;
    let names = names.map(|names| write_names(writer, names)).transpose()?;
    let seen = predictor.seen();
    let training_texts = seen.map(|seen| write_seen(writer, seen)).transpose()?;
    let by_text = predictor.labels_by_text();
    let by_text = by_text.map(|by| write_by_text(writer, by)).transpose()?;
    let retired = write_retired(writer, predictor.retired())?;
    let record = predictor.record();
    Ok(manifest::Manifest {
        format: manifest::FORMAT.into(),
        version: manifest::VERSION,
        written_by: written_by(),
        seed: plan.config().train.seed,
        data: (&record.data).into(),
        n_features: plan.counts().n_features,
        n_pairs: plan.counts().n_pairs,
        n_parts: plan.counts().n_parts,
        embedding_dim: plan.counts().embedding_dim,
        n_training_points: plan.counts().n_points,
        plan: plan.decided().into(),
        labels,
        features,
        synonyms,
        parts,
        pairs,
        transformer,
        members,
        calibration,
        neighbours,
        names,
        training_texts,
        by_text,
        retired,
        rejected,
        history: history::wire_history(&record.history),
        config: plan.config().clone(),
        files: manifest::wire_files(writer.files()),
    })
}

fn write_list(writer: &mut Writer, stem: &str, list: Option<&Texts>) -> Result<Option<String>> {
    let write = |list| writer.write(stem, "txt", |out| lines::write(list, out));
    list.map(write).transpose()
}

fn write_words(writer: &mut Writer, words: &Vectorizer) -> Result<manifest::Features> {
    let vocabulary = words.vocabulary();
    let idf = vec![Tensor::list("idf", Values::F32(words.idf()))];
    Ok(manifest::Features {
        vocabulary: writer.write("vocabulary", "txt", |out| lines::write(vocabulary, out))?,
        weights: write_tensors(writer, "features", idf)?,
    })
}

fn write_seen(writer: &mut Writer, seen: &SeenTexts) -> Result<String> {
    let hashes = Tensor::list("training_texts", Values::U32(seen.hashes()));
    write_tensors(writer, "training-texts", vec![hashes])
}

fn write_pairs(writer: &mut Writer, pairs: &Pairs) -> Result<String> {
    let pairs = StoredSparse::new(pairs.idf(), None, StepOf::Row);
    write_tensors(writer, "pairs", pairs.tensors("pairs"))
}

fn write_neighbours(
    writer: &mut Writer,
    stem: &str,
    neighbours: Option<&Neighbours>,
) -> Result<Option<String>> {
    let Some(neighbours) = neighbours else {
        return Ok(None);
    };
    let all = neighbours.whole();
    let words = StoredSparse::new(all.postings.by_word(), all.postings.steps(), StepOf::Row);
    let labels = StoredSparse::new(&all.labels, None, StepOf::Row);
    let mut tensors = words.tensors(&format!("{stem}.words"));
    tensors.extend(labels.tensors(&format!("{stem}.labels")));
    write_tensors(writer, stem, tensors).map(Some)
}

fn write_names(writer: &mut Writer, names: &Names) -> Result<String> {
    let words = StoredSparse::new(names.words(), None, StepOf::Row);
    write_tensors(writer, "names", words.tensors("names"))
}

/// Retired labels, each with one more than the label that it was merged into, or 0; nothing if there are none.
fn write_retired(writer: &mut Writer, retired: &Retired) -> Result<Option<String>> {
    if retired.is_empty() {
        return Ok(None);
    }
    let labels: Vec<u32> = retired.iter().map(|(label, _)| label.0).collect();
    let into = retired
        .iter()
        .map(|(_, into)| into.map_or(0, |into| into.0 + 1));
    let into: Vec<u32> = into.collect();
    let tensors = vec![
        Tensor::list("retired.labels", Values::U32(&labels)),
        Tensor::list("retired.into", Values::U32(&into)),
    ];
    write_tensors(writer, "retired", tensors).map(Some)
}

fn write_by_text(writer: &mut Writer, by_text: &LabelsByText) -> Result<manifest::ByText> {
    let forms = &by_text.forms;
    let words = StoredSparse::new(forms.words(), None, StepOf::Row);
    let trees = BoostedColumns::from(&by_text.trees);
    let mut tensors = words.tensors("forms");
    tensors.push(Tensor::list("labels.ends", Values::U32(forms.ends())));
    let odds = [by_text.unused.odds()];
    tensors.push(Tensor::list("unused.odds", Values::F32(&odds)));
    tensors.extend(trees.tensors());
    Ok(manifest::ByText {
        n_labels: forms.n_labels(),
        n_unused: by_text.unused.n_labels(),
        file: write_tensors(writer, "by-text", tensors)?,
    })
}

fn write_transformer(
    writer: &mut Writer,
    predictor: &Predictor,
) -> Result<Option<manifest::Transformer>> {
    let config = predictor.members()[0].encoder.architecture();
    let Some((config, pieces)) = config.zip(predictor.featurizer().pieces()) else {
        return Ok(None);
    };
    let mut text =
        |stem, text: &str| writer.write(stem, "json", |out| out.write_all(text.as_bytes()));
    Ok(Some(manifest::Transformer {
        config: text("config", config)?,
        tokenizer: text("tokenizer", &pieces.to_json())?,
    }))
}
