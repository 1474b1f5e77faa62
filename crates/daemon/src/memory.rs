//! Keeps the memory of a process that holds credentials to itself: no core dump, no reading by others, no swap.

use std::io;

use rustix::mm::{MlockAllFlags, mlockall};
use rustix::process::{DumpableBehavior, Resource, Rlimit, getrlimit, set_dumpable_behavior, setrlimit};

/// Protects the memory of this process. To be called first in a program that may read a credential.
///
/// Core dumps are off, also for the programs that it starts; other processes of the user can neither trace it nor read its
/// memory. The memory is kept out of swap where the system sets no limit for that, since with one every later allocation
/// could fail. Whatever the system refuses is left as it is: no program should fail to start because of it.
pub fn protect() {
    let _best_effort = deny_dumps();
    let _where_possible = lock();
}

fn deny_dumps() -> io::Result<()> {
    setrlimit(Resource::Core, Rlimit { current: Some(0), maximum: Some(0) })?;
    Ok(set_dumpable_behavior(DumpableBehavior::NotDumpable)?)
}

fn lock() -> io::Result<()> {
    if getrlimit(Resource::Memlock).current.is_some() {
        return Ok(());
    }
    // Pages that are never touched need not be in memory.
    Ok(mlockall(MlockAllFlags::CURRENT | MlockAllFlags::FUTURE | MlockAllFlags::ONFAULT)?)
}

#[cfg(test)]
mod tests {
    use rustix::process::dumpable_behavior;

    use super::*;

    #[test]
    fn a_protected_process_leaves_no_core() {
        protect();
        let Rlimit { current, maximum } = getrlimit(Resource::Core);
        assert_eq!((current, maximum), (Some(0), Some(0)));
        assert_eq!(dumpable_behavior().unwrap(), DumpableBehavior::NotDumpable);
        // Twice is no error.
        deny_dumps().unwrap();
        lock().unwrap();
    }
}
