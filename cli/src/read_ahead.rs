//! Texts read ahead of their answers, on a thread of its own: in batches of what has arrived, within bounds.

use std::io;
use std::path::{Path, PathBuf};
use std::sync::mpsc::{self, Receiver};
use std::sync::{Arc, Condvar, Mutex, PoisonError};

use anyhow::Context;
use elias::data::{TextInput, TextInputs};

use crate::reading::ColumnArgs;

/// Texts per batch and thread; a batch is predicted in parallel and written in order.
const TEXTS_PER_THREAD: usize = 512;

/// Bytes of all texts that are waiting or in a batch; a longer text is alone.
const MAX_BYTES: usize = 16 << 20;

/// The texts of an input, or the errors in their place.
pub(crate) struct ReadAhead {
    inputs: Receiver<elias::Result<TextInput>>,
    in_memory: Arc<InMemory>,
    /// Bytes of the batch that was returned last.
    n_batch_bytes: usize,
}

impl ReadAhead {
    /// Starts to read; - is standard input. The thread may still wait for input when this process ends.
    pub(crate) fn start(path: PathBuf, columns: ColumnArgs) -> anyhow::Result<Self> {
        let (sender, inputs) = mpsc::sync_channel(max_batch());
        let in_memory = Arc::new(InMemory::default());
        let added = Arc::clone(&in_memory);
        let read = move || {
            let texts = if path == Path::new("-") {
                TextInputs::new("standard input", io::stdin())
            } else {
                TextInputs::open(&path)
            };
            let texts = match texts {
                Ok(texts) => texts,
                Err(error) => return drop(sender.send(Err(error))),
            };
            for input in texts.with_columns(columns.columns()) {
                added.add(n_bytes(&input));
                if sender.send(input).is_err() {
                    return;
                }
            }
        };
        let thread = std::thread::Builder::new().name("reader".into());
        thread
            .spawn(read)
            .context("while starting a thread to read the texts")?;
        Ok(ReadAhead {
            inputs,
            in_memory,
            n_batch_bytes: 0,
        })
    }

    /// These texts alone.
    pub(crate) fn of_texts(texts: Vec<String>) -> Self {
        let (sender, inputs) = mpsc::sync_channel(texts.len());
        for text in texts {
            // The receiver is alive and has room for all.
            let _ = sender.send(Ok(text.into()));
        }
        ReadAhead {
            inputs,
            in_memory: Arc::default(),
            n_batch_bytes: 0,
        }
    }

    /// The inputs that have arrived, at least one unless the input has ended. The batch before must be gone.
    pub(crate) fn next_batch(&mut self) -> Vec<elias::Result<TextInput>> {
        self.in_memory.remove(self.n_batch_bytes);
        let first = self.inputs.recv().into_iter();
        let arrived = first.chain(self.inputs.try_iter()).take(max_batch());
        let batch: Vec<_> = arrived.collect();
        self.n_batch_bytes = batch.iter().map(n_bytes).sum();
        batch
    }
}

/// Most texts per batch.
fn max_batch() -> usize {
    TEXTS_PER_THREAD * rayon::current_num_threads()
}

fn n_bytes(input: &elias::Result<TextInput>) -> usize {
    input.as_ref().map_or(0, |input| input.text.len())
}

/// Bytes in memory: adding waits until there is room.
#[derive(Default)]
struct InMemory {
    n_bytes: Mutex<usize>,
    removed: Condvar,
}

impl InMemory {
    fn add(&self, n_new: usize) {
        let is_full = |n_bytes: &mut usize| *n_bytes > 0 && *n_bytes + n_new > MAX_BYTES;
        let n_bytes = self.n_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        let n_bytes = self.removed.wait_while(n_bytes, is_full);
        *n_bytes.unwrap_or_else(PoisonError::into_inner) += n_new;
    }

    fn remove(&self, n_gone: usize) {
        let mut n_bytes = self.n_bytes.lock().unwrap_or_else(PoisonError::into_inner);
        *n_bytes = n_bytes.saturating_sub(n_gone);
        self.removed.notify_one();
    }
}
