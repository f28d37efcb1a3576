//! A finished member of an unfinished training, in a directory of its own.

use std::collections::BTreeMap;
use std::path::Path;

use serde::{Deserialize, Serialize};

use crate::candidates::Member;
use crate::communicator::Communicator;
use crate::config::Plan;
use crate::error::Result;
use crate::events::Event;
use crate::store::format::files::{MANIFEST, Writer, read_bounded};
use crate::store::format::history::{WireEvent, wire_history};
use crate::store::format::manifest::{self, VERSION, WireFile};
use crate::store::format::open::{Depth, ListedFiles, Residence};
use crate::store::model::{MemberLoader, write_member};
use crate::store::written_by;

/// The `format` of a member's manifest.
const FORMAT: &str = "elias-member";
/// Most bytes of a member's manifest.
const MAX_MANIFEST: u64 = 16 << 20;

/// A member and the events of its training.
pub(crate) struct FinishedMember {
    pub(crate) member: Member,
    pub(crate) history: Vec<Event>,
}

/// `manifest.json` of a member, without its checksum.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Manifest {
    format: String,
    version: u32,
    written_by: String,
    member: manifest::Member,
    /// File of a transformer's architecture.
    #[serde(skip_serializing_if = "Option::is_none")]
    architecture: Option<String>,
    history: Vec<WireEvent>,
    files: BTreeMap<String, WireFile>,
}

/// Writes a member.
///
/// # Errors
/// [`crate::Error::Io`].
pub(crate) fn write(
    directory: &Path,
    finished: &FinishedMember,
    communicator: &dyn Communicator,
) -> Result<()> {
    let mut writer = Writer::new(directory)?;
    let member = write_member(&mut writer, 0, &finished.member, communicator)?;
    let architecture = match finished.member.encoder.architecture() {
        Some(text) => Some(writer.write("config", "json", |out| out.write_all(text.as_bytes()))?),
        None => None,
    };
    let manifest = Manifest {
        format: FORMAT.into(),
        version: VERSION,
        written_by: written_by(),
        member,
        architecture,
        history: wire_history(&finished.history),
        files: manifest::wire_files(writer.files()),
    };
    writer.commit(&manifest::to_text(&manifest), &[])
}

/// Reads a member after checking every byte of it.
///
/// # Errors
/// [`crate::Error::BadFile`], [`crate::Error::Io`].
pub(crate) fn read(directory: &Path, plan: &Plan) -> Result<FinishedMember> {
    let path = directory.join(MANIFEST);
    let bytes = read_bounded(&path, MAX_MANIFEST)?;
    let manifest: Manifest = manifest::from_text(&path, &bytes, FORMAT)?;
    let mut referenced = manifest.member.referenced();
    referenced.extend(manifest.architecture.as_deref());
    manifest::check_names(&path, &manifest.files, &referenced)?;
    let loader = MemberLoader {
        files: ListedFiles {
            directory,
            records: &manifest.files,
            depth: Depth::Full,
            residence: Residence::Mapped,
        },
        plan,
        architecture: manifest.architecture.as_deref(),
    };
    Ok(FinishedMember {
        member: loader.member(&manifest.member)?,
        history: manifest.history.iter().map(Into::into).collect(),
    })
}
