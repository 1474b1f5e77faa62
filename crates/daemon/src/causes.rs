//! Reads what errors and answers of services say about their causes.

use std::error::Error;
use std::time::Duration;

/// Limit of the delay that an answer may ask for.
const MAX_RETRY_AFTER: Duration = Duration::from_hours(24);

/// Returns the delay that a header `Retry-After` asks for, in seconds, up to a day.
pub fn retry_after(header: Option<&str>) -> Option<Duration> {
    let seconds = header?.parse().ok()?;
    Some(Duration::from_secs(seconds).min(MAX_RETRY_AFTER))
}

/// Returns the first cause of this type, the error itself included.
pub fn cause<'a, T: Error + 'static>(error: &'a (dyn Error + 'static)) -> Option<&'a T> {
    let mut next = Some(error);
    while let Some(cause) = next {
        if let Some(found) = cause.downcast_ref() {
            return Some(found);
        }
        next = cause.source();
    }
    None
}

/// Returns the last cause of an error, such as "connection refused".
pub fn innermost(error: &(dyn Error + 'static)) -> String {
    let mut cause = error;
    while let Some(source) = cause.source() {
        cause = source;
    }
    cause.to_string()
}
