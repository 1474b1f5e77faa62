//! The durable form: a folder with one JSON file a secret, and a lock so that only one server uses it.

use std::collections::BTreeMap;
use std::fs;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Arc;

use serde::{Deserialize, Serialize};

use super::names::Key;
use super::state::{Record, State, Version, Write};
use super::wire::{Secret, SecretPayload, SecretVersion};
use crate::folder::{Folder, fnv};
use crate::start_error::StartError;

/// The layout of the files; another number is not read.
const FORMAT: u32 = 1;

/// So much of a secret's id is in its file name, which a file system limits to 255 bytes.
const NAME_ID_CHARACTERS: usize = 120;

/// The folder, locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Files(Folder);

/// One secret as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(rename_all = "camelCase", deny_unknown_fields)]
struct Document {
    format: u32,
    secret: Secret,
    versions: BTreeMap<u64, Stored>,
}

/// One version as it is stored.
#[derive(Serialize, Deserialize)]
#[serde(deny_unknown_fields)]
struct Stored {
    version: SecretVersion,
    #[serde(default, skip_serializing_if = "Option::is_none")]
    payload: Option<SecretPayload>,
}

impl Files {
    /// Makes the folder if need be, and locks it.
    pub(crate) fn open(folder: &Path) -> Result<Self, StartError> {
        Folder::open(folder).map(Self)
    }

    /// Fills `state` with all that is stored.
    pub(crate) fn load(&self, state: &mut State) -> Result<(), StartError> {
        let fail = |source| StartError::Folder { folder: self.0.path().to_path_buf(), source };
        for entry in fs::read_dir(self.0.path()).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let (key, record) =
                    read(&path).map_err(|reason| StartError::Unreadable { path: path.clone(), reason })?;
                state.load(key, record);
            }
        }
        Ok(())
    }

    /// Makes a write durable.
    pub(crate) fn store(&self, write: &Write) -> io::Result<()> {
        let path = self.path(&write.key);
        let done = match &write.record {
            Some(record) => daemon::file::replace(&path, &serde_json::to_vec_pretty(&document(record))?),
            None => daemon::file::remove(&path),
        };
        done.map_err(io::Error::other)
    }

    /// The file of a secret: readable, and unique also where the file system ignores case.
    fn path(&self, key: &Key) -> PathBuf {
        let place = key.parent.location.as_deref().unwrap_or("global");
        let id: String = key.id.chars().take(NAME_ID_CHARACTERS).collect();
        let hash = fnv(&key.to_string());
        self.0.path().join(format!("{}~{place}~{id}~{hash:016x}.json", key.parent.project))
    }
}

fn document(record: &Record) -> Document {
    let stored =
        |version: &Version| Stored { version: version.meta.clone(), payload: version.payload.as_deref().cloned() };
    let versions = record.versions.iter().map(|(number, version)| (*number, stored(version))).collect();
    Document { format: FORMAT, secret: record.secret.clone(), versions }
}

/// Reads one file; the reason of a failure quotes nothing of it, because it holds payloads.
fn read(path: &Path) -> Result<(Key, Record), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let document: Document = serde_json::from_slice(&bytes)
        .map_err(|error| format!("it is not a stored secret (line {}, column {})", error.line(), error.column()))?;
    let Document { format, secret, versions } = document;
    if format != FORMAT {
        return Err(format!("its format is {format}, this server reads {FORMAT}"));
    }
    let key = Key::parse(&secret.name).map_err(|status| status.message)?;
    let version = |stored: Stored| Version { meta: stored.version, payload: stored.payload.map(Arc::new) };
    let versions = versions.into_iter().map(|(number, stored)| (number, version(stored))).collect();
    Ok((key, Record { secret, versions }))
}
