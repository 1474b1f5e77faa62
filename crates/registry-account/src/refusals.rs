//! Refusals that say by a name what they are, where the status is 400 for most.

use http::StatusCode;
use serde::Deserialize;

use crate::client::{Answer, Call};
use crate::error::AccountError;

#[derive(Deserialize)]
struct Refusal {
    /// The name of the error: Amazon's, possibly after a namespace and `#`, or that of OAuth (RFC 6749, section 5.2).
    #[serde(rename = "__type", alias = "error")]
    name: String,
}

/// A name that a client acts on, and the status that means the same.
pub(crate) struct Known {
    pub(crate) name: &'static str,
    pub(crate) status: StatusCode,
}

/// Returns the error of an answer that is no success. Its message is not repeated, nor a name that is not known.
pub(crate) fn refused(call: &Call<'_>, answer: Answer, known: &[Known]) -> AccountError {
    let refusal = answer.parse::<Refusal>();
    let name = refusal.as_ref().and_then(|refusal| refusal.name.rsplit('#').next());
    match known.iter().find(|known| Some(known.name) == name) {
        Some(Known { name, status }) => call.refused(&answer.with_status(*status)).with_detail(name),
        None => call.refused(&answer),
    }
}
