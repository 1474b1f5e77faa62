//! Changes in folders, told by the kernel.

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// Folders whose changes are told.
#[derive(Debug)]
pub struct Watch {
    inotify: AsyncFd<OwnedFd>,
}

impl Watch {
    /// Watches nothing yet.
    pub fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "it is unsound for types whose descriptor may change; this one's never does")]
        let inotify = AsyncFd::with_interest(inotify, tokio::io::Interest::READABLE)?;
        Ok(Self { inotify })
    }

    /// Tells of changes in this folder too: names that come and go, and files that were written.
    pub fn add(&self, folder: &Path) -> io::Result<()> {
        let what = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&self.inotify, folder, what)?;
        Ok(())
    }

    /// Waits until something has changed that `matters`, which hears the name, or nothing where the folder itself or more
    /// than could be told has changed. Takes all that has been told by then.
    pub async fn changed(&self, matters: impl Fn(Option<&[u8]>) -> bool) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            let mut told = false;
            let mut buffer = [MaybeUninit::<u8>::uninit(); 2048];
            let mut reader = Reader::new(self.inotify.get_ref(), &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let overflown = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                        let name = event.file_name().map(std::ffi::CStr::to_bytes).filter(|_name| !overflown);
                        told |= matters(name);
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            ready.clear_ready();
            if told {
                return Ok(());
            }
        }
    }
}
