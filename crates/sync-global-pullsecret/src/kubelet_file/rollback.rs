//! Puts the kubelet's previous file back.

use std::path::Path;

use docker_config::Document;
use tracing::warn;

use super::{Done, KubeletFile, cannot};
use crate::combine::{self, Combination, Existing, Target, UnmanagedEntries};
use crate::disk::{Disk, FileContent};
use crate::record::Owned;

impl<D: Disk> KubeletFile<D> {
    /// Restores the file from before the change. Entries that other programs have added since stay.
    pub fn roll_back(&mut self) -> Done {
        let Some(begun) = self.record.change.clone() else { return Ok(()) };
        let file = self.read()?;
        let now = self.id_of(&file);
        if now == begun.before {
            return self.sync_parent();
        }
        let existing = match &file {
            FileContent::Bytes(bytes) if now != Some(begun.after) => combine::parse_existing(bytes),
            _ => None,
        };
        if let (None, Some(now)) = (&existing, now)
            && now != begun.after
        {
            self.set_aside(now)?;
            // Recorded before the file is replaced: it is the only copy then.
            self.write_record(&self.record)?;
        }
        match existing {
            Some(existing) => self.remove_managed_entries(&existing, begun.before.is_some(), &begun.owned),
            None if begun.before.is_some() => self.restore(),
            None => {
                self.disk.remove(&self.paths.file).map_err(cannot("remove the kubelet's file"))?;
                self.sync_parent()
            }
        }
    }

    /// Gives the backup, which is the very same file, its name back.
    fn restore(&self) -> Done {
        let fail = cannot("put the kubelet's file back");
        let (disk, paths) = (&self.disk, &self.paths);
        disk.remove(&paths.temporary).map_err(&fail)?;
        disk.link(&paths.state("before.json"), &paths.temporary).map_err(&fail)?;
        disk.rename(&paths.temporary, &paths.file).map_err(&fail)?;
        // rename(2) leaves both names if they already are the same file.
        disk.remove(&paths.temporary).map_err(&fail)?;
        self.sync_parent()
    }

    /// Undoes the change in a file that another program has changed since: removes or restores managed entries only.
    fn remove_managed_entries(&self, existing: &Existing, was_there: bool, owned: &Owned) -> Done {
        warn!(
            operation = "rollback",
            "another program has changed the kubelet's file; only managed entries are rolled back"
        );
        let fail = cannot("read the backup");
        let before = match was_there.then(|| self.disk.read(&self.paths.state("before.json"), combine::MAX_BYTES)) {
            Some(Err(error)) => return Err(fail(error)),
            Some(Ok(FileContent::Bytes(bytes))) => Document::parse(&bytes, &combine::limits()).unwrap_or_default(),
            _ => Document::default(),
        };
        let bytes = before.to_bytes();
        let all = self.record.all_owned().union(owned);
        let bytes = secrecy::ExposeSecret::expose_secret(&bytes);
        let target = Target::combine(&Combination {
            bytes,
            desired: &before,
            existing: Some(existing),
            owned: &all,
            unmanaged_entries: UnmanagedEntries::Keep,
        });
        if target.digest == existing.digest() {
            return self.sync_parent();
        }
        let nothing_left = !was_there && has_only(existing, &all);
        if nothing_left {
            self.disk.remove(&self.paths.file).map_err(cannot("remove the kubelet's file"))?;
            return self.sync_parent();
        }
        let like: &Path = &self.paths.file;
        self.replace(target.bytes(), Some(like))
    }

    fn sync_parent(&self) -> Done {
        self.disk.sync_folder(&self.paths.parent).map_err(cannot("flush the kubelet's folder"))
    }
}

/// Returns true if the file has managed entries and members only.
fn has_only(existing: &Existing, owned: &Owned) -> bool {
    let document = existing.document();
    document.keys().all(|key| owned.auths.contains(key))
        && document.other_members().all(|name| owned.members.contains(name))
}
