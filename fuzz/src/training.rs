//! Snapshots of an unfinished training, forged as models are, and resumed to the end.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::ops::ControlFlow;
use std::path::Path;
use std::sync::OnceLock;
use std::time::Duration;

use elias::data::{CsrBuilder, Dataset, LabelSet, Texts};
use elias::{Config, Event, Phase, Trainer};

use super::model::{Forged, files, seeds_of};
use super::{checked, temporary};

const CONFIG: &str = "
    [final_score]
    kind = 'product'
    [ranker]
    enabled = false
    [encoder]
    dim = 2
    [index]
    n_clusters = 2
    beam_size = 1
    shortlist_size = 4
    [train]
    batch_size = 8
    [stage1]
    epochs = 1
    [stage2]
    epochs = 2
";

/// A snapshot of stage 2. The first byte chooses the file that is replaced, 0 for the manifest; then comes its content.
pub fn load(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    thread_local! {
        static SNAPSHOT: OnceCell<Forged> = const { OnceCell::new() };
    }
    SNAPSHOT.with(|snapshot| {
        let snapshot = snapshot.get_or_init(|| Forged::new(valid_snapshot().clone()));
        snapshot.with_replaced(choice, content, |forged| {
            let directory = temporary();
            let slot = directory.path().join("checkpoint").join("slot-0");
            fs::create_dir_all(&slot).expect("a directory can be made");
            for (name, bytes) in files(forged) {
                fs::write(slot.join(name), bytes).expect("a small file can be written");
            }
            let resumed = trainer().resume().overwrite();
            checked(resumed.train_to(directory.path(), dataset()));
        });
    });
}

/// Valid inputs of [`load`]: both files of a snapshot.
pub fn seeds() -> Vec<Vec<u8>> {
    seeds_of(valid_snapshot())
}

/// Stops at the second step of stage 2.
fn stop(event: &Event) -> ControlFlow<()> {
    match event {
        Event::Step {
            phase: Phase::Stage2,
            step: 2,
            ..
        } => ControlFlow::Break(()),
        _ => ControlFlow::Continue(()),
    }
}

/// The files of the snapshot that a stopped training left.
fn valid_snapshot() -> &'static BTreeMap<String, Vec<u8>> {
    static SNAPSHOT: OnceLock<BTreeMap<String, Vec<u8>>> = OnceLock::new();
    SNAPSHOT.get_or_init(|| {
        let directory = temporary();
        // None is due before the stop.
        let stopping = trainer().observer(&stop).checkpoint_every(Duration::MAX);
        assert!(stopping.train_to(directory.path(), dataset()).is_err());
        files(&newest_slot(&directory.path().join("checkpoint")))
    })
}

fn newest_slot(folder: &Path) -> std::path::PathBuf {
    let slots = ["slot-1", "slot-0"].map(|slot| folder.join(slot));
    let newest = slots.into_iter().find(|slot| slot.is_dir());
    newest.expect("stopping leaves a snapshot")
}

fn trainer<'a>() -> Trainer<'a> {
    Trainer::new(Config::from_toml(CONFIG).expect("it is valid"))
}

/// Sixteen texts whose words are their labels.
fn dataset() -> &'static Dataset {
    static DATASET: OnceLock<Dataset> = OnceLock::new();
    DATASET.get_or_init(|| {
        let names: LabelSet = (0..4).map(|label| format!("label {label}")).collect();
        let texts: Texts = (0..16)
            .map(|point| format!("word{} both", point % 4))
            .collect();
        let mut labels = CsrBuilder::default();
        (0..16).for_each(|point| labels.push_row([(point % 4, 1.0)]));
        let labels = labels.finish(4).expect("the rows are in order");
        Dataset::new(Some(texts), None, labels, names, None).expect("the parts fit")
    })
}
