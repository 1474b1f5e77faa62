//! The closed list of reasons for the state of a node's credentials.

fleet_model::reasons! {
    /// The reason for the current state. The log, the status, the metrics and the readiness probe use the same name.
    pub enum Reason {
        /// the source has not been read yet
        Starting,
        /// an earlier process ended during a change; the change is being finished or undone
        Resuming,
        /// the kubelet runs with the newest credentials
        Applied,
        /// there is no such Secret or file; the applied credentials stay in force
        SourceMissing,
        /// the source's content cannot be used; the applied credentials stay in force
        SourceInvalid,
        /// the source's content is of another revision than this pod's; waiting for its own
        OtherRevision,
        /// the kubelet's file is being replaced
        Applying,
        /// the kubelet is being restarted with the new file, or verified to stay up
        Restarting,
        /// the kubelet did not come up with the new file; retrying in a few seconds
        RestartFailed,
        /// the kubelet did not come up three times; the previous file is put back and the kubelet restarted
        RollingBack,
        /// the previous file is back, and the kubelet does not come up with it either: inspect the unit; restarts are
        /// retried, at most 5 minutes apart
        RollbackUnverified,
        /// the kubelet did not come up with these credentials, and the previous file is back; other credentials are
        /// applied at once, the same ones are retried after a long back-off
        ContentFailed,
        /// another program keeps removing credentials from the file; they are put back at growing intervals, because
        /// each repair restarts the kubelet
        RepairDelayed,
        /// the file or its folder cannot be read or written; retrying, at most a minute apart
        DiskFault,
        /// systemd cannot be reached to restart the kubelet; after three attempts the previous file is put back, and the
        /// change is retried a minute later
        SystemdUnreachable,
        /// the process is stopping; the file is consistent
        Stopping,
    }
}
