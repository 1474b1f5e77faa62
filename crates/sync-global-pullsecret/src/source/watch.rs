//! Changes in folders, as the kernel reports them (inotify).

use std::io;
use std::mem::MaybeUninit;
use std::os::fd::OwnedFd;
use std::path::Path;

use rustix::fs::inotify::{self, CreateFlags, ReadFlags, Reader, WatchFlags};
use rustix::io::Errno;
use tokio::io::unix::AsyncFd;

/// A set of folders whose changes the kernel reports.
#[derive(Debug)]
pub struct Watch {
    inotify: AsyncFd<OwnedFd>,
}

impl Watch {
    /// A watch without folders.
    pub fn new() -> io::Result<Self> {
        let inotify = inotify::init(CreateFlags::NONBLOCK | CreateFlags::CLOEXEC)?;
        #[expect(deprecated, reason = "it is unsound for types whose descriptor may change; this one's never does")]
        let inotify = AsyncFd::with_interest(inotify, tokio::io::Interest::READABLE)?;
        Ok(Self { inotify })
    }

    /// Adds a folder: names that appear and disappear, and files that are written.
    pub fn add(&self, folder: &Path) -> io::Result<()> {
        let flags = WatchFlags::CREATE
            | WatchFlags::CLOSE_WRITE
            | WatchFlags::MOVE
            | WatchFlags::DELETE
            | WatchFlags::DELETE_SELF
            | WatchFlags::MOVE_SELF
            | WatchFlags::ONLYDIR;
        inotify::add_watch(&self.inotify, folder, flags)?;
        Ok(())
    }

    /// Waits for a change that `matters`, and consumes all changes reported by then. `matters` receives the changed name, or
    /// `None` if the folder itself changed or the kernel's queue overflowed.
    pub async fn changed(&self, matters: impl Fn(Option<&[u8]>) -> bool) -> io::Result<()> {
        loop {
            let mut ready = self.inotify.readable().await?;
            let mut found = false;
            let mut buffer = [MaybeUninit::<u8>::uninit(); 2048];
            let mut reader = Reader::new(self.inotify.get_ref(), &mut buffer);
            loop {
                match reader.next() {
                    Ok(event) => {
                        let overflown = event.events().contains(ReadFlags::QUEUE_OVERFLOW);
                        let name = event.file_name().map(std::ffi::CStr::to_bytes).filter(|_name| !overflown);
                        found |= matters(name);
                    }
                    Err(Errno::AGAIN) => break,
                    Err(Errno::INTR) => {}
                    Err(error) => return Err(error.into()),
                }
            }
            ready.clear_ready();
            if found {
                return Ok(());
            }
        }
    }
}
