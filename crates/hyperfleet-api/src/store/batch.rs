//! The size of one read of the change stream.

/// Limits of one read of the change stream.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Batch {
    /// Maximum number of resources, or of versions.
    pub items: i64,
    /// Maximum size of the resources, in bytes of JSON; a single larger one is read alone.
    pub bytes: i64,
}

// === impl Batch ===

impl Batch {
    /// Returns how many of the items of these sizes fit, at least one.
    pub(super) fn fitting(self, sizes: impl Iterator<Item = i64>) -> usize {
        let mut sum = 0_i64;
        let fits = |size: &i64| {
            let is_first = sum == 0;
            sum = sum.saturating_add((*size).max(1));
            is_first || sum <= self.bytes
        };
        sizes.take_while(fits).count()
    }
}
