//! Backups of the kubelet's file: made before a change, bounded in number, and shredded when no credential is to be left.

use std::io;
use std::path::Path;

use super::{DiskFault, Done, KubeletFile, cannot};
use crate::content::ContentId;
use crate::disk::Disk;

/// Maximum number of files that are set aside.
const MAX_SET_ASIDE: usize = 3;

/// The beginning of the names of files that are set aside.
const SET_ASIDE: &str = "set-aside-";

/// The backups that are not numbered.
const SINGLE: [&str; 3] = ["before.json", "found.json", "state-unreadable.json"];

impl<D: Disk> KubeletFile<D> {
    /// Backs the file up. Its mode becomes that of the backups, as they are the same file; the new file has it anyway.
    pub(super) fn back_up(&mut self, observed: ContentId, set_aside: bool) -> Done {
        let fail = cannot("back the kubelet's file up");
        self.disk.protect(&self.paths.file).map_err(&fail)?;
        if self.record.change.is_none() {
            let (disk, link) = (&self.disk, self.paths.state("before.tmp"));
            disk.remove(&link).map_err(&fail)?;
            disk.link(&self.paths.file, &link).map_err(&fail)?;
            disk.rename(&link, &self.paths.state("before.json")).map_err(&fail)?;
            // rename(2) leaves both names if they already are the same file.
            disk.remove(&link).map_err(&fail)?;
        }
        self.link_once(&self.paths.state("found.json"))?;
        if set_aside {
            self.set_aside(observed)?;
        }
        self.disk.sync_folder(&self.paths.state).map_err(fail)
    }

    /// Keeps a file for people to inspect.
    pub(super) fn set_aside(&mut self, observed: ContentId) -> Done {
        let id = observed.to_string();
        let name = format!("{SET_ASIDE}{}.json", id.get(..16).unwrap_or(&id));
        self.disk.protect(&self.paths.file).map_err(cannot("back the kubelet's file up"))?;
        self.link_once(&self.paths.state(&name))?;
        if !self.record.set_aside.contains(&name) {
            self.record.set_aside.push(name);
        }
        self.bound_set_aside()
    }

    /// Finds the files that an earlier process has set aside and has not recorded, and those of a lost record.
    pub(super) fn adopt_set_aside(&mut self) -> Done {
        let names = self.disk.names(&self.paths.state).map_err(cannot("list the backups"))?;
        let is_unknown = |name: &String| name.starts_with(SET_ASIDE) && !self.record.set_aside.contains(name);
        let mut unknown: Vec<String> = names.into_iter().filter(is_unknown).collect();
        unknown.sort();
        self.record.set_aside.splice(0..0, unknown);
        for name in SINGLE.into_iter().chain(self.record.set_aside.iter().map(String::as_str)) {
            match self.disk.protect(&self.paths.state(name)) {
                Err(error) if error.kind() != io::ErrorKind::NotFound => {
                    return Err(cannot("protect the backups")(error));
                }
                _ => {}
            }
        }
        self.bound_set_aside()
    }

    fn bound_set_aside(&mut self) -> Done {
        while self.record.set_aside.len() > MAX_SET_ASIDE {
            let oldest = self.record.set_aside.remove(0);
            self.disk.shred(&self.paths.state(&oldest)).map_err(cannot("remove the oldest backup"))?;
        }
        Ok(())
    }

    /// Removes all backups, durably: the node is back at the original, and none of the earlier credentials is to be left.
    /// Returns false if a change is under way, which needs them.
    pub fn shred_backups(&mut self) -> Result<bool, DiskFault> {
        if self.record.change.is_some() {
            return Ok(false);
        }
        let fail = cannot("remove the backups");
        for name in SINGLE.into_iter().chain(self.record.set_aside.iter().map(String::as_str)) {
            self.disk.shred(&self.paths.state(name)).map_err(&fail)?;
        }
        self.disk.sync_folder(&self.paths.state).map_err(fail)?;
        if !self.record.set_aside.is_empty() {
            self.record.set_aside.clear();
            self.write_record(&self.record)?;
        }
        Ok(true)
    }

    /// Links the file under this name, unless an earlier file has it.
    fn link_once(&self, name: &Path) -> Done {
        match self.disk.link(&self.paths.file, name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(cannot("back the kubelet's file up")(error))
            }
            _ => Ok(()),
        }
    }
}
