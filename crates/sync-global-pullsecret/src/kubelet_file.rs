//! The kubelet's credential file, and what is kept beside it so that a change can always be finished or undone.
//!
//! Beside `config.json` stands the folder `global-pull-secret`: `state.json` (the journal, and which entries are ours),
//! `before.json` (the file as it was before the last change), `found.json` (as it was before the first one),
//! `set-aside-….json` (files that nobody could read), `key` and `lock`. Backups are second names of the very file: they
//! need no room on a full disk, and putting one back restores owner, label and all.

mod back;
mod opening;

use std::io;
use std::path::{Path, PathBuf};

use docker_config::Digest;
use tracing::warn;
use zeroize::Zeroizing;

use crate::combine::{self, Foreign, Target};
use crate::content::ContentId;
use crate::decide::{Change, Failed, Found, Journal, Look, Stage};
use crate::disk::{Disk, Held};
use crate::record::{BegunChange, Record};
use crate::source::Content;

pub use opening::{FOLDER, OpenError};

/// The kubelet's file and the state beside it.
pub struct KubeletFile<D> {
    disk: D,
    paths: Paths,
    /// With which ids of content are made; known on this node only.
    key: Zeroizing<[u8; 32]>,
    foreign: Foreign,
    record: Record,
    plan: Option<Plan>,
}

/// Where everything is.
#[derive(Clone, Debug)]
struct Paths {
    file: PathBuf,
    /// The folder that the file is in.
    parent: PathBuf,
    /// The name under which a new file is written before it gets its own.
    temporary: PathBuf,
    /// The folder of what is kept beside the file.
    state: PathBuf,
}

/// What the last look has made.
struct Plan {
    content: ContentId,
    target: Target,
    /// The file that was looked at.
    seen: Option<ContentId>,
    /// The file is nothing that a reader could use, or a part of it is left out.
    set_aside: bool,
}

/// An effect on the disk that could not be had.
#[derive(Debug, thiserror::Error)]
pub enum Fault {
    /// The disk refuses.
    #[error("cannot {doing}: {source}")]
    Disk {
        /// The step that failed, such as `read the kubelet's file`.
        doing: &'static str,
        /// What the system says.
        source: io::Error,
    },
    /// The file is no longer the one that was looked at.
    #[error("the kubelet's file has changed in the meantime")]
    Moved,
}

type Done = Result<(), Fault>;

fn cannot(doing: &'static str) -> impl Fn(io::Error) -> Fault {
    move |source| Fault::Disk { doing, source }
}

impl<D: Disk> KubeletFile<D> {
    /// What an earlier process has left to do.
    pub fn journal(&self) -> Journal {
        self.record.journal()
    }

    /// The id of what a document means.
    pub fn id(&self, digest: Digest) -> ContentId {
        digest.keyed(&*self.key).into()
    }

    /// The key with which ids are made.
    pub fn key(&self) -> &Zeroizing<[u8; 32]> {
        &self.key
    }

    /// Whether the file says what is wanted; if not, remembers what it is to say.
    pub fn look(&mut self, content: &Content) -> Result<Look, Fault> {
        self.plan = None;
        let held = self.read()?;
        let seen = self.id_of(&held);
        let existing = match &held {
            Held::Bytes(bytes) => combine::existing(bytes),
            Held::Absent | Held::TooLarge(_) => None,
        };
        let is_empty = matches!(&held, Held::Bytes(bytes) if bytes.is_empty());
        // It was valid when the source was read.
        let wanted = combine::wanted(content.bytes())
            .map_err(|_invalid| cannot("use the source's content")(io::ErrorKind::InvalidData.into()))?;
        let owned = self.record.all_owned();
        let target = combine::target(content.bytes(), &wanted, existing.as_ref(), &owned, self.foreign);
        let same = existing.as_ref().is_some_and(|existing| existing.digest() == target.digest);
        let unreadable = existing.is_none() && seen.is_some() && !is_empty;
        if unreadable {
            warn!(operation = "look", "the kubelet's file is no credential document; it is set aside");
        }
        for key in &target.spoilers {
            let key = docker_config::shown_key(key);
            warn!(operation = "look", key, "a foreign entry that makes the kubelet drop the whole file is left out");
        }
        let set_aside = unreadable || !target.spoilers.is_empty();
        self.plan = Some(Plan { content: content.id(), target, seen, set_aside });
        Ok(if same { Look::AsWanted } else { Look::Differs })
    }

    /// Backs the file up and records the change, both for good.
    ///
    /// Where a change is unfinished, its backup stays: it is the last file with which the kubelet is known to run.
    pub fn prepare(&mut self, content: ContentId) -> Done {
        let plan = self.plan.as_ref().filter(|plan| plan.content == content).ok_or(Fault::Moved)?;
        let (seen, set_aside, owned) = (plan.seen, plan.set_aside, plan.target.owned.clone());
        let after = self.id(Digest::of_bytes(plan.target.bytes()));
        if self.id_of(&self.read()?) != seen {
            return Err(Fault::Moved);
        }
        if let Some(seen) = seen {
            self.back_up(seen, set_aside)?;
        }
        let (before, owned) = match &self.record.change {
            Some(unfinished) => (unfinished.before, unfinished.owned.union(&owned)),
            None => (seen, owned),
        };
        let change = Change { to: content, stage: Stage::Apply };
        let mut record = self.record.clone();
        record.change = Some(BegunChange { change, before, after, owned });
        self.write_record(&record)?;
        self.record = record;
        Ok(())
    }

    fn back_up(&self, seen: ContentId, set_aside: bool) -> Done {
        let fail = cannot("back the kubelet's file up");
        let (disk, paths) = (&self.disk, &self.paths);
        if self.record.change.is_none() {
            let link = paths.state("before.tmp");
            disk.remove(&link).map_err(&fail)?;
            disk.link(&paths.file, &link).map_err(&fail)?;
            disk.rename(&link, &paths.state("before.json")).map_err(&fail)?;
            // Where both were the same file already, renaming has left both names.
            disk.remove(&link).map_err(&fail)?;
        }
        self.keep(&paths.state("found.json"))?;
        if set_aside {
            self.set_aside(seen)?;
        }
        disk.sync_folder(&paths.state).map_err(fail)
    }

    /// Keeps a file for people to look at.
    fn set_aside(&self, seen: ContentId) -> Done {
        let id = seen.to_string();
        self.keep(&self.paths.state(&format!("set-aside-{}.json", id.get(..16).unwrap_or(&id))))
    }

    /// Gives the file this name too, unless an earlier one has it.
    fn keep(&self, name: &Path) -> Done {
        match self.disk.link(&self.paths.file, name) {
            Err(error) if error.kind() != io::ErrorKind::AlreadyExists => {
                Err(cannot("back the kubelet's file up")(error))
            }
            _ => Ok(()),
        }
    }

    /// Replaces the file by what the last look has made.
    pub fn write(&mut self, content: ContentId) -> Done {
        let plan = self.plan.as_ref().filter(|plan| plan.content == content).ok_or(Fault::Moved)?;
        if self.id_of(&self.read()?) != plan.seen {
            return Err(Fault::Moved);
        }
        let like = plan.seen.map(|_seen| self.paths.file.clone());
        self.put(plan.target.bytes(), like.as_deref())
    }

    /// Puts bytes in the file's place.
    fn put(&self, bytes: &[u8], like: Option<&Path>) -> Done {
        let Paths { file, parent, temporary, .. } = &self.paths;
        let put = self.disk.create(temporary, bytes, like).and_then(|()| self.disk.rename(temporary, file));
        if put.is_err() {
            // It holds credentials and is of no use. The next opening removes it where this does not.
            let _of_no_use = self.disk.remove(temporary);
        }
        put.and_then(|()| self.disk.sync_folder(parent)).map_err(cannot("write the kubelet's file"))
    }

    /// Records that the content is applied, and what in the file is ours since.
    pub fn commit(&mut self, content: ContentId) -> Done {
        if let Some(plan) = self.plan.take().filter(|plan| plan.content == content) {
            self.record.owned = plan.target.owned;
        } else if let Some(begun) = &self.record.change {
            self.record.owned = begun.owned.clone();
        }
        self.record.applied = Some(content);
        self.record.change = None;
        self.record.failed = None;
        self.write_record(&self.record)
    }

    /// Which content the file has after a change that was not finished.
    pub fn examine(&self) -> Result<Found, Fault> {
        let now = self.id_of(&self.read()?);
        Ok(match &self.record.change {
            Some(begun) if begun.before == now => Found::Before,
            Some(begun) if Some(begun.after) == now => Found::After,
            _ => Found::Other,
        })
    }

    /// Records that the change is to be taken back.
    pub fn condemn(&mut self) -> Done {
        if let Some(begun) = &mut self.record.change {
            begun.change.stage = Stage::RollBack;
        }
        self.write_record(&self.record)
    }

    /// Records that the change was taken back.
    pub fn close(&mut self, failed: Option<Failed>) -> Done {
        self.record.change = None;
        self.record.failed = failed;
        self.write_record(&self.record)
    }

    fn read(&self) -> Result<Held, Fault> {
        self.disk.read(&self.paths.file, combine::MOST_BYTES).map_err(cannot("read the kubelet's file"))
    }

    fn id_of(&self, held: &Held) -> Option<ContentId> {
        match held {
            Held::Absent => None,
            Held::Bytes(bytes) => Some(self.id(Digest::of_bytes(bytes))),
            Held::TooLarge(length) => Some(self.id(Digest::of_bytes(format!("too large: {length}").as_bytes()))),
        }
    }

    fn write_record(&self, record: &Record) -> Done {
        let (temporary, state) = (self.paths.state("state.tmp"), &self.paths.state);
        let disk = &self.disk;
        let written = disk.create(&temporary, &record.to_bytes(), None);
        let written = written.and_then(|()| disk.rename(&temporary, &self.paths.state("state.json")));
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
