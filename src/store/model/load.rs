//! From a model directory to a predictor, without trusting it.

use std::path::Path;
use std::sync::Arc;

use rayon::prelude::*;

use super::boosting::read_boosted;
use super::check::check_in_background;
use super::describe::{plan_of, read_manifest};
use super::learner::Learner;
use super::load_member::MemberLoader;
use super::rerank;
use super::sparse::{StepOf, read_sparse};
use crate::candidates::{LabelsByText, Member, Unused};
use crate::config::Plan;
use crate::data::{LabelSet, SeenTexts, Synonyms, Texts};
use crate::error::Result;
use crate::features::{
    Expansion, Featurizer, Pairs, Vectorizer, Vocabulary, WordParts, WordPieces,
};
use crate::ids::LabelId;
use crate::neighbours::{Forms, Names, Neighbours, Postings};
use crate::predict::{EnsembleCalibration, Predictor, PredictorParts, Retired, TrainingRecord};
use crate::store::format::files::MANIFEST;
use crate::store::format::lines;
use crate::store::format::manifest::Manifest;
use crate::store::format::open::{Depth, ListedFiles, OpenFile, Residence, Unchecked, bad};
use crate::store::format::tensors::TensorFile;

/// Most members of a model.
const MAX_MEMBERS: usize = 1024;

impl Predictor {
    /// Loads a model. Its large matrices are mapped and read when they are used, and checked in the background;
    /// [`Predictor::check_files`] waits for the result.
    ///
    /// # Errors
    /// [`Error::Io`](crate::Error::Io) if a file cannot be opened; [`Error::BadFile`](crate::Error::BadFile) if the
    /// directory does not hold a model of this format, or a damaged one.
    pub fn load(directory: impl AsRef<Path>) -> Result<Predictor> {
        Learner::load(directory).map(Learner::into_predictor)
    }

    /// Loads a model into memory, after reading and checking every byte of it.
    ///
    /// Slower than [`Predictor::load`], and processes do not share the memory; but whatever happens to the files
    /// afterwards, the model answers as before. A model whose files have more than `max_bytes` together is refused
    /// before any of them is read.
    ///
    /// # Errors
    /// As [`Predictor::load`].
    pub fn load_into_memory(directory: impl AsRef<Path>, max_bytes: u64) -> Result<Predictor> {
        Learner::load_into_memory(directory, max_bytes).map(Learner::into_predictor)
    }
}

/// Loads a model after reading and checking every byte of it.
///
/// # Errors
/// As [`Predictor::load`].
pub(crate) fn verify(directory: &Path) -> Result<Predictor> {
    Learner::of(directory, |directory| mapped(directory, Depth::Full)).map(Learner::into_predictor)
}

/// A model as it was written, mapped.
pub(super) fn mapped(directory: &Path, depth: Depth) -> Result<Predictor> {
    let (parts, unchecked) = load_parts(directory, depth, Residence::Mapped)?;
    Predictor::with_integrity(parts, check_in_background(unchecked))
}

/// A model as it was written, in memory, if its files have no more than so many bytes.
pub(super) fn in_memory(directory: &Path, max_bytes: u64) -> Result<Predictor> {
    let manifest = read_manifest(directory)?;
    let n_bytes = manifest.n_bytes();
    if max_bytes < n_bytes {
        let problem = format!("its files have {n_bytes} bytes, at most {max_bytes} may be used");
        return Err(bad(directory.join(MANIFEST), problem));
    }
    let (parts, _) = parts_of(directory, &manifest, Depth::Full, Residence::Memory)?;
    Predictor::new(parts)
}

/// The parts of a model, and the files that were not read in full.
pub(crate) fn load_parts(
    directory: &Path,
    depth: Depth,
    residence: Residence,
) -> Result<(PredictorParts, Vec<Unchecked>)> {
    parts_of(directory, &read_manifest(directory)?, depth, residence)
}

fn parts_of(
    directory: &Path,
    manifest: &Manifest,
    depth: Depth,
    residence: Residence,
) -> Result<(PredictorParts, Vec<Unchecked>)> {
    let plan = plan_of(manifest)?;
    let loader = Loader {
        files: ListedFiles {
            directory,
            records: &manifest.files,
            depth,
            residence,
        },
        plan: &plan,
        manifest,
    };
    let n_members = manifest.members.len();
    if !(1..=MAX_MEMBERS).contains(&n_members) {
        let problem = format!("it has {n_members} members, expected 1 to {MAX_MEMBERS}");
        return Err(loader.files.bad_manifest(problem));
    }
    // Its words are counted before anything takes room for as many.
    let featurizer = loader.featurizer()?;
    let ((labels, calibration, neighbours), members) = rayon::join(
        || {
            let neighbours = (loader.neighbours(), loader.names(), loader.by_text());
            (loader.labels(), loader.calibration(), neighbours)
        },
        || loader.members(),
    );
    let LabelNames { set, counts } = labels?;
    let parts = PredictorParts {
        featurizer: featurizer.into(),
        label_set: set.into(),
        label_counts: counts,
        members: members?.into(),
        calibration: calibration?,
        neighbours: neighbours.0?,
        names: neighbours.1?.map(Arc::new),
        seen: loader.seen()?.map(Arc::new),
        by_text: neighbours.2?.map(Arc::new),
        retired: loader.retired()?,
        rejected: loader.rejected()?,
        record: TrainingRecord {
            data: (&manifest.data).into(),
            history: manifest.history.iter().map(Into::into).collect(),
        },
        plan: plan.clone(),
    };
    let unchecked = loader.files.unchecked();
    Ok((parts, unchecked))
}

/// A directory that is being read.
struct Loader<'a> {
    files: ListedFiles<'a>,
    manifest: &'a Manifest,
    plan: &'a Plan,
}

struct LabelNames {
    set: LabelSet,
    counts: Vec<u32>,
}

impl Loader<'_> {
    /// Number of all labels, those known by their texts alone included.
    fn n_labels(&self) -> usize {
        let by_text = self.manifest.by_text.as_ref();
        let n_by_text = by_text.map_or(0, |by_text| by_text.n_labels);
        self.plan.counts().n_labels.saturating_add(n_by_text)
    }

    fn labels(&self) -> Result<LabelNames> {
        let n_labels = self.n_labels();
        let (file, names) = self.lines(&self.manifest.labels.names, n_labels, "names")?;
        let set: LabelSet = names.iter().collect();
        check_count(&file, set.len(), n_labels, "different names")?;
        let mut tensors = self.files.tensors(&self.manifest.labels.counts)?;
        let counts = tensors.numbers("label_counts", n_labels)?;
        tensors.finish()?;
        Ok(LabelNames { set, counts })
    }

    /// A list of texts, which is counted before it is taken apart.
    fn lines(&self, name: &str, n_expected: usize, what: &str) -> Result<(OpenFile, Texts)> {
        let file = self.files.whole(name)?;
        let n_found = memchr::memchr_iter(b'\n', &file.map).count();
        check_count(&file, n_found, n_expected, what)?;
        let texts = lines::read(&file.path, &file.map)?;
        Ok((file, texts))
    }

    fn featurizer(&self) -> Result<Featurizer> {
        let n_features = self.plan.counts().n_features;
        let (words, pairs) = (self.words(n_features)?, self.pairs()?);
        if words.is_none() && pairs.is_some() {
            let problem = "it names pairs of words, but no words";
            return Err(self.files.bad_manifest(problem.into()));
        }
        let vocabulary = words.map(|words| Vocabulary::from_parts(words, pairs));
        Ok(Featurizer::from_parts(
            self.expansion()?,
            vocabulary,
            self.pieces()?,
            self.parts()?,
            self.plan.counts(),
        ))
    }

    fn pairs(&self) -> Result<Option<Pairs>> {
        let Some(name) = &self.manifest.pairs else {
            return Ok(None);
        };
        let counts = self.plan.counts();
        let (n_words, n_pairs) = (counts.n_features, counts.n_pairs);
        let read = |file: &mut TensorFile| {
            let pairs = read_sparse(file, "pairs", (Some(n_words), n_words), StepOf::Row)?;
            if pairs.matrix.nnz() == n_pairs {
                return Pairs::from_parts(pairs.matrix);
            }
            let problem = format!("they are not the {n_pairs} pairs of the manifest");
            Err(file.bad("pairs.gaps", &problem))
        };
        self.files.parse(name, read).map(Some)
    }

    fn words(&self, n_words: usize) -> Result<Option<Vectorizer>> {
        let Some(features) = &self.manifest.features else {
            return Ok(None);
        };
        let (file, words) = self.lines(&features.vocabulary, n_words, "words")?;
        let mut tensors = self.files.tensors(&features.weights)?;
        let idf = tensors.floats("idf", n_words)?;
        tensors.finish()?;
        let config = &self.plan.config().features;
        Vectorizer::from_parts(words, idf, config)
            .map(Some)
            .map_err(|error| bad(file.path, error.to_string()))
    }

    fn expansion(&self) -> Result<Option<Expansion>> {
        let Some(name) = &self.manifest.synonyms else {
            return Ok(None);
        };
        let file = self.files.whole(name)?;
        let lines = lines::read(&file.path, &file.map)?;
        let synonyms = Synonyms::from_lines(&lines).map_err(|problem| bad(file.path, problem))?;
        Ok(Some(Expansion::new(synonyms)))
    }

    fn parts(&self) -> Result<Option<WordParts>> {
        let Some(name) = &self.manifest.parts else {
            return Ok(None);
        };
        let (file, entries) = self.lines(name, self.plan.counts().n_parts, "parts of words")?;
        let parts = WordParts::new(entries);
        parts
            .map(Some)
            .map_err(|error| bad(file.path, error.to_string()))
    }

    fn pieces(&self) -> Result<Option<WordPieces>> {
        let Some(transformer) = &self.manifest.transformer else {
            return Ok(None);
        };
        let name = &transformer.tokenizer;
        let pieces = WordPieces::from_json(&self.files.text(name)?);
        let pieces =
            pieces.map_err(|error| bad(self.files.directory.join(name), error.to_string()));
        pieces.map(Some)
    }

    fn members(&self) -> Result<Vec<Member>> {
        let transformer = self.manifest.transformer.as_ref();
        let loader = MemberLoader {
            files: self.files,
            plan: self.plan,
            architecture: transformer.map(|transformer| &transformer.config[..]),
        };
        let members = self.manifest.members.par_iter();
        members.map(|member| loader.member(member)).collect()
    }

    fn calibration(&self) -> Result<Option<EnsembleCalibration>> {
        let Some(name) = &self.manifest.calibration else {
            return Ok(None);
        };
        let n_labels = self.plan.counts().n_labels;
        let read = |file: &mut _| rerank::read_calibration(file, n_labels);
        self.files.parse(name, read).map(Some)
    }

    fn neighbours(&self) -> Result<Option<Neighbours>> {
        let name = self.manifest.neighbours.as_deref();
        self.points_by_words("neighbours", name)
    }

    fn rejected(&self) -> Result<Option<Neighbours>> {
        let name = self.manifest.rejected.as_deref();
        self.points_by_words("rejected", name)
    }

    fn points_by_words(&self, prefix: &str, name: Option<&str>) -> Result<Option<Neighbours>> {
        let Some(name) = name else {
            return Ok(None);
        };
        let (n_words, n_labels) = (self.plan.counts().n_features, self.n_labels());
        let read = |file: &mut _| {
            let labels = format!("{prefix}.labels");
            let labels = read_sparse(file, &labels, (None, n_labels), StepOf::Row)?.matrix;
            let shape = (Some(n_words), labels.n_rows());
            let words = read_sparse(file, &format!("{prefix}.words"), shape, StepOf::Row)?;
            Neighbours::from_parts(Postings::from_parts(words.matrix, words.steps)?, labels)
        };
        self.files.parse(name, read).map(Some)
    }

    fn seen(&self) -> Result<Option<SeenTexts>> {
        let Some(name) = &self.manifest.training_texts else {
            return Ok(None);
        };
        let read = |file: &mut TensorFile| {
            let n_texts = file.len("training_texts")?;
            file.numbers("training_texts", n_texts)
        };
        let hashes = self.files.parse(name, read)?;
        Ok(Some(SeenTexts::from_hashes(hashes)))
    }

    fn retired(&self) -> Result<Retired> {
        let Some(name) = &self.manifest.retired else {
            return Ok(Retired::default());
        };
        let n_labels = self.n_labels();
        let read = |file: &mut TensorFile| {
            let n_retired = file.len("retired.labels")?;
            let labels = file.numbers("retired.labels", n_retired)?;
            let into = file.numbers("retired.into", n_retired)?;
            let into = into.iter().map(|into| into.checked_sub(1).map(LabelId));
            let labels = labels.iter().map(|&label| LabelId(label));
            Retired::new(labels.zip(into), n_labels)
        };
        self.files.parse(name, read)
    }

    fn by_text(&self) -> Result<Option<LabelsByText>> {
        let Some(by_text) = &self.manifest.by_text else {
            return Ok(None);
        };
        let n_words = self.plan.counts().n_features;
        let read = |file: &mut _| {
            let words = read_sparse(file, "forms", (None, n_words), StepOf::Row)?;
            let ends = file.numbers("labels.ends", by_text.n_labels)?;
            let odds = file.floats("unused.odds", 1)?[0];
            Ok(LabelsByText {
                unused: Unused::new(by_text.n_unused, odds)?,
                trees: read_boosted(file)?,
                forms: Forms::new(words.matrix, ends)?,
            })
        };
        self.files.parse(&by_text.file, read).map(Some)
    }

    fn names(&self) -> Result<Option<Names>> {
        let Some(name) = &self.manifest.names else {
            return Ok(None);
        };
        let counts = self.plan.counts();
        let shape = (Some(counts.n_labels), counts.n_features);
        let read = |file: &mut _| {
            let words = read_sparse(file, "names", shape, StepOf::Row)?;
            Ok(Names::new(words.matrix))
        };
        self.files.parse(name, read).map(Some)
    }
}

fn check_count(file: &OpenFile, found: usize, expected: usize, what: &str) -> Result<()> {
    if found == expected {
        return Ok(());
    }
    let problem = format!("it has {found} {what}, the manifest says {expected}");
    Err(bad(file.path.clone(), problem))
}
