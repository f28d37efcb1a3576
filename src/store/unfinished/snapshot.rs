//! One snapshot of an unfinished training: a state file and its manifest.

use std::io::{self, Write};
use std::path::Path;

use super::identity::Identity;
use crate::clustering::Clustering;
use crate::communicator::Communicator;
use crate::config::Plan;
use crate::encoder::EncoderOrigin;
use crate::error::{Error, Result};
use crate::ids::{ClusterId, LabelRow};
use crate::index::{Adjacency, Edges};
use crate::store::format::files::{MANIFEST, Writer, is_plain_name, read_bounded, sha256};
use crate::store::format::history::wire_history;
use crate::store::format::manifest::{self, VERSION};
use crate::store::format::map;
use crate::store::format::snapshot_manifest::{FORMAT, Snapshot};
use crate::store::format::tensors::{Excerpt, Places, Scan, Tensor, TensorFile, Values, offsets};
use crate::store::processes::spread;
use crate::store::written_by;
use crate::train::{Array, NamedArray, Spread, StateParts, TrainState};

/// Most bytes of a snapshot's manifest.
const MAX_MANIFEST: u64 = 16 << 20;

/// Which snapshot of a training it is.
#[derive(Clone, Copy)]
pub(crate) struct Turn {
    /// Snapshots written before it.
    pub(crate) generation: u64,
    /// The member that is being trained.
    pub(crate) member: usize,
}

/// Writes a snapshot into a directory of its own; the other processes [`send`] theirs meanwhile.
pub(crate) fn write(
    directory: &Path,
    turn: Turn,
    identity: &Identity,
    state: &mut TrainState,
    communicator: &dyn Communicator,
) -> Result<()> {
    let (position, history) = (state.position.into(), wire_history(&state.history));
    let beta = state.model.adjacency.beta();
    let mut writer = Writer::new(directory)?;
    let state = writer.write("state", "safetensors", |out| {
        write_state(state, communicator, out)
    })?;
    let snapshot = Snapshot {
        format: FORMAT.into(),
        version: VERSION,
        written_by: written_by(),
        generation: turn.generation,
        data: identity.data.sha256.clone(),
        validation: identity.validation.clone(),
        encoder: identity.encoder.clone(),
        member: turn.member,
        position,
        beta,
        state,
        history,
        config: identity.config.clone(),
        files: manifest::wire_files(writer.files()),
    };
    writer.commit(&manifest::to_text(&snapshot), &[])
}

/// Sends the process that writes a snapshot what this one has.
pub(crate) fn send(state: &mut TrainState, communicator: &dyn Communicator) {
    let sent = write_state(state, communicator, &mut io::sink());
    sent.expect("what is thrown away can be written");
}

fn write_state(
    state: &mut TrainState,
    communicator: &dyn Communicator,
    out: &mut dyn Write,
) -> io::Result<()> {
    let cluster_of: Vec<u32> = state.clustering.cluster_of().iter().map(|c| c.0).collect();
    let edges = state.model.adjacency.edges().clone();
    let weights = state.model.adjacency.weights().map(<[f32]>::to_vec);
    let own_indptr = offsets(edges.indptr());
    let indptr = spread::sum_offsets(&own_indptr, communicator);
    // 0 is no parent.
    let parent = |parent: &Option<ClusterId>| parent.map_or(0, |cluster| cluster.0 + 1);
    let parents: Vec<u32> = state.parents.iter().map(parent).collect();
    let mut all = vec![
        Tensor::list("clustering", Values::U32(&cluster_of)),
        Tensor::list("parents", Values::U32(&parents)),
        Tensor::list("adjacency.indptr", Values::U64(&indptr)),
        Tensor::list(
            "adjacency.labels",
            Values::U32(bytemuck::cast_slice(edges.rows())),
        ),
    ];
    if let Some(weights) = &weights {
        all.push(Tensor::list("adjacency.weight", Values::F32(weights)));
    }
    for NamedArray { name, array, .. } in state.arrays() {
        let values = match array {
            Array::Floats(values) => Values::F32(values),
            Array::Counts(values) => Values::U32(values),
            Array::Flags(values) => Values::U8(bytemuck::cast_slice(values)),
        };
        all.push(Tensor::list(&name, values));
    }
    spread::write(all, Spread::of, &own_indptr, communicator, out)
}

/// The manifest of a snapshot, if there is one.
pub(crate) fn read_manifest(directory: &Path) -> Result<Option<Snapshot>> {
    let path = directory.join(MANIFEST);
    if !path.exists() {
        return Ok(None);
    }
    let bytes = read_bounded(&path, MAX_MANIFEST)?;
    manifest::from_text(&path, &bytes, FORMAT).map(Some)
}

/// The state of a snapshot, after every byte of it was checked.
pub(crate) fn read(
    directory: &Path,
    snapshot: &Snapshot,
    plan: &Plan,
    origin: &EncoderOrigin,
    communicator: &dyn Communicator,
) -> Result<TrainState> {
    let mut file = open_state(directory, snapshot)?;
    let parts = read_parts(&mut file, snapshot, plan)?;
    let n_labels = plan.counts().n_labels;
    let own = communicator.own_labels(n_labels);
    let labels = parts.adjacency.edges().rows();
    let own_edges: Vec<usize> = (0..labels.len())
        .filter(|&edge| own.contains(&labels[edge].idx()))
        .collect();
    let n_edges = labels.len();
    let mut fill = |NamedArray {
                        name,
                        array,
                        spread,
                    }: NamedArray<'_>| {
        let n_own = match &array {
            Array::Floats(values) => values.len(),
            Array::Counts(values) => values.len(),
            Array::Flags(values) => values.len(),
        };
        let width = n_own / own.len();
        let (n_values, places) = match spread {
            Spread::Whole => (n_own, Places::From(0)),
            Spread::Labels => (width * n_labels, Places::From(width * own.start)),
            Spread::Edges => (n_edges, Places::At(&own_edges)),
        };
        let from = Excerpt { n_values, places };
        match array {
            Array::Floats(values) => file.copy_floats(&name, &from, values),
            Array::Counts(values) => file.copy_numbers(&name, &from, values),
            Array::Flags(values) => file.copy_flags(&name, &from, values),
        }
    };
    let state = TrainState::restore(plan, origin, parts, own.clone(), &mut fill)?;
    file.finish()?;
    Ok(state)
}

/// The state file of a snapshot, if its bytes are those that were written.
fn open_state(directory: &Path, snapshot: &Snapshot) -> Result<TensorFile> {
    let path = directory.join(&snapshot.state);
    let bad = |problem: &str| Error::BadFile {
        path: path.clone(),
        problem: problem.into(),
    };
    let is_plain = is_plain_name(&snapshot.state);
    let file = snapshot.files.get(&snapshot.state).filter(|_| is_plain);
    let record = file.ok_or_else(|| bad("it is not listed in the manifest"))?;
    let map = map::open(&path, record.bytes())?;
    if !record.is_of(map.len() as u64, &sha256(&map)) {
        return Err(bad(
            "it is damaged: its size or SHA-256 is not the one in the manifest",
        ));
    }
    TensorFile::new(&path, map, Scan::Lists)
}

/// The parts of a state that have a structure of their own.
fn read_parts(file: &mut TensorFile, snapshot: &Snapshot, plan: &Plan) -> Result<StateParts> {
    let (n_labels, n_clusters) = (plan.counts().n_labels, plan.n_clusters());
    let cluster_of = file.numbers("clustering", n_labels)?;
    let n_edges = file.len("adjacency.labels")?;
    let indptr = file.large_numbers("adjacency.indptr", n_clusters + 1)?;
    let labels = file.numbers("adjacency.labels", n_edges)?;
    let edges = Edges::new(
        indptr.iter().map(|&end| end as usize).collect(),
        labels.into_iter().map(LabelRow).collect(),
        n_labels,
    )?;
    let adjacency = match snapshot.beta {
        None => Adjacency::fixed(edges),
        Some(beta) => Adjacency::learned(edges, file.floats("adjacency.weight", n_edges)?, beta)?,
    };
    let n_parents = file.len("parents")?;
    let parents = file.numbers("parents", n_parents)?;
    let is_parent = |parent: &u32| *parent as usize <= n_clusters;
    if ![0, n_labels].contains(&n_parents) || !parents.iter().all(is_parent) {
        return Err(file.bad("parents", "it does not hold one cluster per label"));
    }
    Ok(StateParts {
        clustering: Clustering::new(cluster_of.into_iter().map(ClusterId).collect(), n_clusters)?,
        adjacency,
        position: (&snapshot.position).into(),
        parents: parents
            .into_iter()
            .map(|parent| parent.checked_sub(1).map(ClusterId))
            .collect(),
        history: snapshot.history.iter().map(Into::into).collect(),
    })
}
