//! The kubelet's credential file, and the state beside it with which a change can always be finished or undone.
//!
//! Beside `config.json` stands the folder `global-pull-secret`: `state.json` (the journal, and the managed entries),
//! `before.json` (the file as it was before the last change), `found.json` (as it was before the first one), at most three
//! `set-aside-….json` (files that no reader could parse), `key` and `lock`. Backups are hard links to the file itself: they
//! take no space on a full disk, and restoring one restores owner and label too. They are readable by root only.

mod backups;
mod open;
mod rollback;

use std::io;
use std::path::{Path, PathBuf};

use docker_config::Digest;
use tracing::warn;
use zeroize::Zeroizing;

use crate::combine::{self, Combination, Target, UnmanagedEntries};
use crate::content::ContentId;
use crate::decide::{Change, Comparison, Failed, FileVersion, Journal, Stage};
use crate::disk::{Disk, FileContent};
use crate::record::{Record, UnfinishedChange};
use crate::source::Credentials;

pub use open::{FOLDER, OpenError};

/// The kubelet's file and the state beside it.
pub struct KubeletFile<D> {
    disk: D,
    paths: Paths,
    /// The key of content ids; it never leaves this node.
    key: Zeroizing<[u8; 32]>,
    unmanaged_entries: UnmanagedEntries,
    record: Record,
    prepared: Option<PreparedFile>,
}

/// The paths of the file and its state.
#[derive(Clone, Debug)]
struct Paths {
    file: PathBuf,
    /// The folder of the file.
    parent: PathBuf,
    /// The name under which a new file is written before it is renamed.
    temporary: PathBuf,
    /// The folder of the state.
    state: PathBuf,
}

/// The new file that the last comparison prepared.
struct PreparedFile {
    content: ContentId,
    target: Target,
    /// The id of the file that was compared; `None` if there was none.
    observed: Option<ContentId>,
    /// No reader could use the compared file, or a part of it is left out.
    set_aside: bool,
}

/// The error of an effect on the disk.
#[derive(Debug, thiserror::Error)]
pub enum DiskFault {
    /// The disk refused a step.
    #[error("cannot {doing}: {source}")]
    Disk {
        /// The step that failed, such as `read the kubelet's file`.
        doing: &'static str,
        /// The error of the system.
        source: io::Error,
    },
    /// The file is no longer the one that was compared.
    #[error("the kubelet's file has changed in the meantime")]
    FileChanged,
}

type Done = Result<(), DiskFault>;

fn cannot(doing: &'static str) -> impl Fn(io::Error) -> DiskFault {
    move |source| DiskFault::Disk { doing, source }
}

impl<D: Disk> KubeletFile<D> {
    /// The journal of an earlier process.
    pub fn journal(&self) -> Journal {
        self.record.journal()
    }

    /// Returns the id of a document or of bytes.
    pub fn id(&self, digest: Digest) -> ContentId {
        digest.keyed(&*self.key).into()
    }

    /// The key of content ids.
    pub fn key(&self) -> &Zeroizing<[u8; 32]> {
        &self.key
    }

    /// Compares the file with the desired credentials, and prepares the file that `write` would put in its place.
    pub fn compare(&mut self, credentials: &Credentials) -> Result<Comparison, DiskFault> {
        self.prepared = None;
        let file = self.read()?;
        let observed = self.id_of(&file);
        let existing = match &file {
            FileContent::Bytes(bytes) => combine::parse_existing(bytes),
            FileContent::Absent | FileContent::TooLarge(_) => None,
        };
        let is_empty = matches!(&file, FileContent::Bytes(bytes) if bytes.is_empty());
        // It was valid when the source was read.
        let desired = combine::parse_desired(credentials.bytes())
            .map_err(|_invalid| cannot("use the source's content")(io::ErrorKind::InvalidData.into()))?;
        let owned = self.record.all_owned();
        let target = Target::combine(&Combination {
            bytes: credentials.bytes(),
            desired: &desired,
            existing: existing.as_ref(),
            owned: &owned,
            unmanaged_entries: self.unmanaged_entries,
        });
        let equal = existing.as_ref().is_some_and(|existing| existing.digest() == target.digest);
        let unreadable = existing.is_none() && observed.is_some() && !is_empty;
        if unreadable {
            warn!(operation = "compare", "the kubelet's file is no credential document; it is set aside");
        }
        for key in &target.rejected {
            let key = docker_config::shown_key(key);
            warn!(
                operation = "compare",
                key, "an unmanaged entry that makes the kubelet reject the whole file is left out"
            );
        }
        let set_aside = unreadable || !target.rejected.is_empty();
        self.prepared = Some(PreparedFile { content: credentials.id(), target, observed, set_aside });
        Ok(if equal { Comparison::Equal } else { Comparison::Different })
    }

    /// Backs the file up and records the change, both durably.
    ///
    /// The backup of an unfinished change stays: it is the last file with which the kubelet is known to run.
    pub fn prepare(&mut self, content: ContentId) -> Done {
        let prepared =
            self.prepared.as_ref().filter(|prepared| prepared.content == content).ok_or(DiskFault::FileChanged)?;
        let (observed, set_aside, owned) = (prepared.observed, prepared.set_aside, prepared.target.owned.clone());
        let after = self.id(Digest::of_bytes(prepared.target.bytes()));
        if self.id_of(&self.read()?) != observed {
            return Err(DiskFault::FileChanged);
        }
        if let Some(observed) = observed {
            self.back_up(observed, set_aside)?;
        }
        let (before, owned) = match &self.record.change {
            Some(unfinished) => (unfinished.before, unfinished.owned.union(&owned)),
            None => (observed, owned),
        };
        let change = Change { to: content, stage: Stage::Apply };
        let mut record = self.record.clone();
        record.change = Some(UnfinishedChange { change, before, after, owned });
        self.write_record(&record)?;
        self.record = record;
        Ok(())
    }

    /// Replaces the file with the one that the last comparison prepared.
    pub fn write(&mut self, content: ContentId) -> Done {
        let prepared =
            self.prepared.as_ref().filter(|prepared| prepared.content == content).ok_or(DiskFault::FileChanged)?;
        if self.id_of(&self.read()?) != prepared.observed {
            return Err(DiskFault::FileChanged);
        }
        let like = prepared.observed.map(|_seen| self.paths.file.clone());
        self.replace(prepared.target.bytes(), like.as_deref())
    }

    /// Replaces the file with these bytes.
    fn replace(&self, bytes: &[u8], like: Option<&Path>) -> Done {
        let Paths { file, parent, temporary, .. } = &self.paths;
        let replaced = self.disk.create(temporary, bytes, like).and_then(|()| self.disk.rename(temporary, file));
        if replaced.is_err() {
            // It holds credentials. If it cannot be removed now, the next start removes it.
            let _removed_later = self.disk.shred(temporary);
        }
        replaced.and_then(|()| self.disk.sync_folder(parent)).map_err(cannot("write the kubelet's file"))
    }

    /// Records that the content is applied, and which entries of the file are managed since.
    pub fn commit(&mut self, content: ContentId) -> Done {
        if let Some(prepared) = self.prepared.take().filter(|prepared| prepared.content == content) {
            self.record.owned = prepared.target.owned;
        } else if let Some(begun) = &self.record.change {
            self.record.owned = begun.owned.clone();
        }
        self.record.applied = Some(content);
        self.record.change = None;
        self.record.failed = None;
        self.write_record(&self.record)
    }

    /// Returns the version of the file after an unfinished change.
    pub fn examine(&self) -> Result<FileVersion, DiskFault> {
        let now = self.id_of(&self.read()?);
        Ok(match &self.record.change {
            Some(begun) if begun.before == now => FileVersion::Before,
            Some(begun) if Some(begun.after) == now => FileVersion::After,
            _ => FileVersion::Other,
        })
    }

    /// Records that the change is to be rolled back.
    pub fn mark_for_rollback(&mut self) -> Done {
        if let Some(begun) = &mut self.record.change {
            begun.change.stage = Stage::RollBack;
        }
        self.write_record(&self.record)
    }

    /// Records that the change was rolled back.
    pub fn finish_rollback(&mut self, failed: Option<Failed>) -> Done {
        self.record.change = None;
        self.record.failed = failed;
        self.write_record(&self.record)
    }

    fn read(&self) -> Result<FileContent, DiskFault> {
        self.disk.read(&self.paths.file, combine::MAX_BYTES).map_err(cannot("read the kubelet's file"))
    }

    fn id_of(&self, file: &FileContent) -> Option<ContentId> {
        match file {
            FileContent::Absent => None,
            FileContent::Bytes(bytes) => Some(self.id(Digest::of_bytes(bytes))),
            FileContent::TooLarge(length) => Some(self.id(Digest::of_bytes(format!("too large: {length}").as_bytes()))),
        }
    }

    fn write_record(&self, record: &Record) -> Done {
        let (temporary, state) = (self.paths.state("state.tmp"), &self.paths.state);
        let disk = &self.disk;
        let written = disk.create(&temporary, &record.to_bytes(), None);
        let written = written.and_then(|()| disk.rename(&temporary, &self.paths.state("state.json")));
        if written.is_err() {
            // If it cannot be removed now, the next start removes it.
            let _removed_later = disk.remove(&temporary);
        }
        written.and_then(|()| disk.sync_folder(state)).map_err(cannot("record the state"))
    }
}

impl Paths {
    fn state(&self, name: &str) -> PathBuf {
        self.state.join(name)
    }
}

impl<D> std::fmt::Debug for KubeletFile<D> {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.debug_struct("KubeletFile").field("paths", &self.paths).finish_non_exhaustive()
    }
}
