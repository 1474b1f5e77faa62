//! The durable form: a folder with one JSON file an object, and a lock so that only one server uses it.

use std::fs;
use std::path::{Path, PathBuf};

use serde_json::{Value, json};

use super::super::meta;
use super::change::Key;
use crate::folder::{Folder, fnv};
use crate::start_error::StartError;

/// The layout of the files; another number is not read.
const FORMAT: u64 = 1;

/// So much of an object's name is in its file name, which a file system limits to 255 bytes.
const NAME_CHARACTERS: usize = 80;

/// The file that holds the newest revision whenever that is none of an object's.
const REVISION: &str = "revision";

/// The file that holds the key with which tokens are signed.
const KEY: &str = "token-key";

/// The folder, locked as long as this lives.
#[derive(Debug)]
pub(crate) struct Files(Folder);

impl Files {
    /// Makes the folder if need be, and locks it.
    pub(crate) fn open(folder: &Path) -> Result<Self, StartError> {
        Folder::open(folder).map(Self)
    }

    /// The key with which tokens are signed, made the first time.
    pub(crate) fn key(&self) -> Result<Vec<u8>, StartError> {
        let path = self.0.path().join(KEY);
        if let Ok(key) = fs::read(&path) {
            return Ok(key);
        }
        let key: [u8; 32] = rand::random();
        let fail =
            |error| StartError::Folder { folder: self.0.path().to_path_buf(), source: std::io::Error::other(error) };
        daemon::file::replace(&path, &key).map_err(fail)?;
        Ok(key.to_vec())
    }

    /// Gives each stored object to `insert`; answers with the newest revision.
    pub(crate) fn load(&self, mut insert: impl FnMut(String, Value)) -> Result<u64, StartError> {
        let folder = self.0.path();
        let fail = |source| StartError::Folder { folder: folder.to_path_buf(), source };
        let mut newest = match fs::read_to_string(folder.join(REVISION)) {
            Ok(text) => text.trim().parse().unwrap_or_default(),
            Err(_) => 0,
        };
        for entry in fs::read_dir(folder).map_err(fail)? {
            let path = entry.map_err(fail)?.path();
            if path.extension().is_some_and(|extension| extension == "json") {
                let (storage, object) =
                    read(&path).map_err(|reason| StartError::Unreadable { path: path.clone(), reason })?;
                newest = newest.max(meta::revision(&object));
                insert(storage, object);
            }
        }
        Ok(newest)
    }

    /// Makes an object durable.
    pub(crate) fn store(&self, storage: &str, object: &Value) -> Result<(), daemon::file::ReplaceError> {
        let key = (meta::namespace(object).to_owned(), meta::name(object).to_owned());
        let document = json!({"format": FORMAT, "storage": storage, "object": object});
        daemon::file::replace(&self.path(storage, &key), format!("{document:#}\n").as_bytes())
    }

    /// Makes a removal durable; `revision` is that of the removal, which no object carries.
    pub(crate) fn remove(&self, storage: &str, key: &Key, revision: u64) -> Result<(), daemon::file::ReplaceError> {
        daemon::file::replace(&self.0.path().join(REVISION), revision.to_string().as_bytes())?;
        daemon::file::remove(&self.path(storage, key))
    }

    /// The file of an object: readable, and unique also where the file system ignores case.
    fn path(&self, storage: &str, (namespace, name): &Key) -> PathBuf {
        let short: String = name.chars().take(NAME_CHARACTERS).filter(|character| *character != '/').collect();
        let hash = fnv(&format!("{storage}/{namespace}/{name}"));
        self.0.path().join(format!("{storage}~{namespace}~{short}~{hash:016x}.json"))
    }
}

/// Reads one file; the reason of a failure quotes nothing of it, because it may hold secrets.
fn read(path: &Path) -> Result<(String, Value), String> {
    let bytes = fs::read(path).map_err(|error| error.to_string())?;
    let mut document: Value = serde_json::from_slice(&bytes)
        .map_err(|error| format!("it is not a stored object (line {}, column {})", error.line(), error.column()))?;
    let format = document.get("format").and_then(Value::as_u64).unwrap_or_default();
    if format != FORMAT {
        return Err(format!("its format is {format}, this server reads {FORMAT}"));
    }
    let storage = document.get("storage").and_then(Value::as_str).map(str::to_owned);
    let object = document.get_mut("object").map(Value::take);
    storage.zip(object).ok_or_else(|| "it is not a stored object".to_owned())
}
