//! Models: the stored fixture with one of its files replaced, and a manifest whose hashes agree with that.
//!
//! Hashes keep chance out, not a forger, and no search by coverage gets past them: so they are made right here.

use std::cell::OnceCell;
use std::collections::BTreeMap;
use std::fs;
use std::path::Path;

use elias::tools::{describe, verify};
use serde_json::{Value, json};
use sha2::{Digest, Sha256};

use super::{checked, repository, temporary};

/// A model. The first byte chooses the file that is replaced, 0 for the manifest; then comes its content.
pub fn load(bytes: &[u8]) {
    let Some((&choice, content)) = bytes.split_first() else {
        return;
    };
    thread_local! {
        static MODEL: OnceCell<Forged> = const { OnceCell::new() };
    }
    MODEL.with(|model| {
        let model =
            model.get_or_init(|| Forged::new(files(&repository("tests/fixtures/model-v1/model"))));
        model.with_replaced(choice, content, |directory| {
            checked(describe(directory));
            if let Some(predictor) = checked(verify(directory)) {
                for text in ["word1 word2 noise3", ""] {
                    if let Some(answers) = checked(predictor.predict(text, 5)) {
                        assert!(answers.iter().all(|answer| answer.score.is_finite()));
                    }
                }
            }
        });
    });
}

/// Valid inputs of [`load`]: every file of the model.
pub fn seeds() -> Vec<Vec<u8>> {
    seeds_of(&files(&repository("tests/fixtures/model-v1/model")))
}

/// Files of a directory by their names.
pub(super) fn files(directory: &Path) -> BTreeMap<String, Vec<u8>> {
    let entries = fs::read_dir(directory).expect("the directory is there");
    entries
        .map(|entry| {
            let path = entry.expect("the directory can be read").path();
            let name = path.file_name().unwrap_or_default().to_string_lossy();
            (name.into_owned(), fs::read(&path).expect("its files too"))
        })
        .collect()
}

/// An input for each file: its number, 0 for the manifest, and its content.
pub(super) fn seeds_of(files: &BTreeMap<String, Vec<u8>>) -> Vec<Vec<u8>> {
    let others = files
        .iter()
        .filter(|(name, _)| *name != MANIFEST)
        .zip(1u8..)
        .map(|((_, bytes), number)| (number, &bytes[..]));
    let manifest = without_checksum(&files[MANIFEST]);
    std::iter::once((0, manifest))
        .chain(others)
        .map(|(number, bytes)| [&[number], bytes].concat())
        .collect()
}

const MANIFEST: &str = "manifest.json";

/// A directory with a manifest, of which one file at a time is replaced.
pub(super) struct Forged {
    pub(super) directory: tempfile::TempDir,
    files: BTreeMap<String, Vec<u8>>,
    pub(super) manifest: Value,
}

impl Forged {
    /// Writes the files to a directory of its own.
    pub(super) fn new(files: BTreeMap<String, Vec<u8>>) -> Self {
        let directory = temporary();
        for (name, bytes) in &files {
            fs::write(directory.path().join(name), bytes).expect("a small file can be written");
        }
        let mut manifest: Value = serde_json::from_slice(&files[MANIFEST]).expect("it is JSON");
        manifest
            .as_object_mut()
            .map(|members| members.remove("checksum"));
        Forged {
            directory,
            files,
            manifest,
        }
    }

    /// Runs the work with another manifest, then puts the right one back.
    pub(super) fn with_manifest(&self, manifest: &[u8], work: impl FnOnce(&Path)) {
        let path = self.directory.path().join(MANIFEST);
        fs::write(&path, manifest).expect("a small file can be written");
        work(self.directory.path());
        fs::write(&path, &self.files[MANIFEST]).expect("a small file can be written");
    }

    /// Runs the work with a file replaced and all hashes right, then puts everything back.
    pub(super) fn with_replaced(&self, choice: u8, content: &[u8], work: impl FnOnce(&Path)) {
        let directory = self.directory.path();
        let others: Vec<&String> = self.files.keys().filter(|name| *name != MANIFEST).collect();
        let number = usize::from(choice) % (others.len() + 1);
        let put = |name: &str, bytes: &[u8]| {
            fs::write(directory.join(name), bytes).expect("a small file can be written");
        };
        if number == 0 {
            put(MANIFEST, &with_checksum(content));
            work(directory);
        } else {
            let name = others[number - 1];
            put(name, content);
            let mut manifest = self.manifest.clone();
            manifest["files"][name] = json!({"bytes": content.len(), "sha256": sha256(content)});
            let text = serde_json::to_string_pretty(&manifest).expect("it was JSON before");
            put(
                MANIFEST,
                &with_checksum(text.trim_end_matches("\n}").as_bytes()),
            );
            work(directory);
            put(name, &self.files[name]);
        }
        put(MANIFEST, &self.files[MANIFEST]);
    }
}

fn without_checksum(manifest: &[u8]) -> &[u8] {
    let mark = b",\n  \"checksum\"";
    let at = manifest.windows(mark.len()).rposition(|at| at == mark);
    &manifest[..at.unwrap_or(manifest.len())]
}

pub(super) fn with_checksum(body: &[u8]) -> Vec<u8> {
    let checksum = format!(",\n  \"checksum\": \"{}\"\n}}\n", sha256(body));
    [body, checksum.as_bytes()].concat()
}

fn sha256(bytes: &[u8]) -> String {
    let digest = Sha256::digest(bytes);
    digest.iter().map(|byte| format!("{byte:02x}")).collect()
}
