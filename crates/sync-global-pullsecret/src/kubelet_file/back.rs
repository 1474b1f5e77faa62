//! Putting the kubelet's file back as it was.

use std::path::Path;

use docker_config::Document;
use tracing::warn;

use super::{Done, KubeletFile, cannot};
use crate::combine::{self, Existing};
use crate::disk::{Disk, Held};
use crate::record::Owned;

impl<D: Disk> KubeletFile<D> {
    /// Puts the file back as it was before the change. What others have put into it since stays.
    pub fn roll_back(&mut self) -> Done {
        let Some(begun) = self.record.change.clone() else { return Ok(()) };
        let held = self.read()?;
        let now = self.id_of(&held);
        if now == begun.before {
            return self.sync_parent();
        }
        let existing = match &held {
            Held::Bytes(bytes) if now != Some(begun.after) => combine::existing(bytes),
            _ => None,
        };
        if let (None, Some(now)) = (&existing, now)
            && now != begun.after
        {
            self.set_aside(now)?;
        }
        match existing {
            Some(existing) => self.take_ours_out(&existing, begun.before.is_some(), &begun.owned),
            None if begun.before.is_some() => self.restore(),
            None => {
                self.disk.remove(&self.paths.file).map_err(cannot("remove the kubelet's file"))?;
                self.sync_parent()
            }
        }
    }

    /// The very file of before gets its name back.
    fn restore(&self) -> Done {
        let fail = cannot("put the kubelet's file back");
        let (disk, paths) = (&self.disk, &self.paths);
        disk.remove(&paths.temporary).map_err(&fail)?;
        disk.link(&paths.state("before.json"), &paths.temporary).map_err(&fail)?;
        disk.rename(&paths.temporary, &paths.file).map_err(&fail)?;
        // Where both were the same file already, renaming has left both names.
        disk.remove(&paths.temporary).map_err(&fail)?;
        self.sync_parent()
    }

    /// Somebody has changed the file since: only what came from this change is taken out or put back.
    fn take_ours_out(&self, existing: &Existing, was_there: bool, owned: &Owned) -> Done {
        warn!(operation = "roll-back", "somebody else has changed the kubelet's file; only our entries are taken back");
        let fail = cannot("read the backup");
        let before = match was_there.then(|| self.disk.read(&self.paths.state("before.json"), combine::MOST_BYTES)) {
            Some(Err(error)) => return Err(fail(error)),
            Some(Ok(Held::Bytes(bytes))) => Document::parse(&bytes, &combine::limits()).unwrap_or_default(),
            _ => Document::default(),
        };
        let bytes = before.to_bytes();
        let all = self.record.all_owned().union(owned);
        let bytes = secrecy::ExposeSecret::expose_secret(&bytes);
        let target = combine::target(bytes, &before, Some(existing), &all, combine::Foreign::Keep);
        if target.digest == existing.digest() {
            return self.sync_parent();
        }
        let nothing_left = !was_there && existing_without(existing, &all);
        if nothing_left {
            self.disk.remove(&self.paths.file).map_err(cannot("remove the kubelet's file"))?;
            return self.sync_parent();
        }
        let like: &Path = &self.paths.file;
        self.put(target.bytes(), Some(like))
    }

    fn sync_parent(&self) -> Done {
        self.disk.sync_folder(&self.paths.parent).map_err(cannot("flush the kubelet's folder"))
    }
}

/// Whether nothing is in the file but ours.
fn existing_without(existing: &Existing, owned: &Owned) -> bool {
    let document = existing.document();
    document.keys().all(|key| owned.auths.contains(key))
        && document.other_members().all(|name| owned.members.contains(name))
}
