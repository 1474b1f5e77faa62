//! The closed vocabulary: how a node's credentials are, in one word.

use std::fmt;

/// How things are. The same word is in the log, the status, the metrics and the readiness.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub enum Reason {
    /// The process has begun and knows nothing yet.
    Starting,
    /// An earlier process was ended in the middle of a change, which is finished or undone now.
    Resuming,
    /// The kubelet runs with the newest content.
    Applied,
    /// There is no such Secret, file or key.
    SourceMissing,
    /// The content of the source cannot be used.
    SourceInvalid,
    /// The content of the source is of another revision.
    OtherRevision,
    /// The file is being replaced.
    Applying,
    /// The kubelet is being restarted or watched.
    Restarting,
    /// A restart with the new content failed and will be tried again.
    RestartFailed,
    /// The file is being put back.
    RollingBack,
    /// The file was put back, and the kubelet does not come up with it either.
    RollbackUnproven,
    /// The content was taken back.
    ContentFailed,
    /// Somebody else keeps changing the file.
    RepairDelayed,
    /// The file, its folder or the state beside it cannot be read or written.
    DiskFault,
    /// systemd cannot be asked.
    SystemdUnreachable,
    /// The process ends.
    Stopping,
}

impl Reason {
    /// All reasons, in the order of a journey.
    pub const ALL: [Self; 16] = [
        Self::Starting,
        Self::Resuming,
        Self::Applied,
        Self::SourceMissing,
        Self::SourceInvalid,
        Self::OtherRevision,
        Self::Applying,
        Self::Restarting,
        Self::RestartFailed,
        Self::RollingBack,
        Self::RollbackUnproven,
        Self::ContentFailed,
        Self::RepairDelayed,
        Self::DiskFault,
        Self::SystemdUnreachable,
        Self::Stopping,
    ];

    /// The word.
    pub fn name(self) -> &'static str {
        match self {
            Self::Starting => "Starting",
            Self::Resuming => "Resuming",
            Self::Applied => "Applied",
            Self::SourceMissing => "SourceMissing",
            Self::SourceInvalid => "SourceInvalid",
            Self::OtherRevision => "OtherRevision",
            Self::Applying => "Applying",
            Self::Restarting => "Restarting",
            Self::RestartFailed => "RestartFailed",
            Self::RollingBack => "RollingBack",
            Self::RollbackUnproven => "RollbackUnproven",
            Self::ContentFailed => "ContentFailed",
            Self::RepairDelayed => "RepairDelayed",
            Self::DiskFault => "DiskFault",
            Self::SystemdUnreachable => "SystemdUnreachable",
            Self::Stopping => "Stopping",
        }
    }

    /// What it means, and what happens next.
    pub fn meaning(self) -> &'static str {
        match self {
            Self::Starting => "nothing is known yet; waiting for the source's first answer",
            Self::Resuming => "an earlier process was ended in the middle of a change; it is finished or undone now",
            Self::Applied => "the kubelet runs with the newest credentials",
            Self::SourceMissing => "there is no such Secret or file; what was applied before stays in force",
            Self::SourceInvalid => "the source's content cannot be used; what was applied before stays in force",
            Self::OtherRevision => "the source's content is of another revision than this pod's; waiting for its own",
            Self::Applying => "the kubelet's file is being replaced",
            Self::Restarting => "the kubelet is being restarted with the new file, or watched whether it stays up",
            Self::RestartFailed => "the kubelet did not come up with the new file; it is tried again in a few seconds",
            Self::RollingBack => {
                "the kubelet did not come up three times; the file is put back and the kubelet restarted"
            }
            Self::RollbackUnproven => {
                "the file is as it was, and the kubelet does not come up with it either: look at the unit; \
                 restarts go on, at most 5 minutes apart"
            }
            Self::ContentFailed => {
                "the kubelet did not come up with these credentials, and the file is as it was before; \
                 other content is tried at once, the same one after a long wait"
            }
            Self::RepairDelayed => {
                "somebody else keeps removing credentials from the file; they are put back at growing intervals, \
                 because each time costs a restart of the kubelet"
            }
            Self::DiskFault => {
                "the file or its folder cannot be read or written; it is tried again, at most a minute apart"
            }
            Self::SystemdUnreachable => {
                "the file is written, and systemd cannot be asked to restart the kubelet; it is tried again, at most \
                 a minute apart. The kubelet rereads the file by itself within 5 minutes"
            }
            Self::Stopping => "the process ends; the file is consistent",
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        formatter.write_str(self.name())
    }
}
