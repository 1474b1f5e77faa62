//! Harbor's lists come in pages.

use crate::client::Answer;

/// Harbor's largest page.
pub(super) const PAGE: u64 = 100;

/// Returns true if a list has another page.
pub(super) fn has_more(answer: &Answer, page: u64, length: usize) -> bool {
    let total = answer.header("x-total-count").and_then(|total| total.parse::<u64>().ok());
    let is_full = u64::try_from(length).is_ok_and(|length| length >= PAGE);
    is_full && total.is_none_or(|total| total > page.saturating_mul(PAGE))
}
