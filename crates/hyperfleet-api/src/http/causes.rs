//! The handler of causes: the resources of a kind that are not done, grouped by what blocks them.

use axum::response::Response;
use http::StatusCode;

use super::query::{self, Parameters};
use super::{Api, response};
use crate::decide::aggregate::condition_type;
use crate::entity::Descriptor;
use crate::problem::{FieldError, Problem, Rejection};
use crate::service::Caller;
use crate::store::Query;

/// Returns the causes by the condition of one of the kind's required adapters.
pub(super) async fn read(
    api: &Api,
    descriptor: &Descriptor,
    parameters: &Parameters,
    caller: &Caller,
) -> Result<Response, Rejection> {
    let adapter = adapter(descriptor, parameters)?;
    let query = Query { search: parameters.search()?, ..Query::of_kind(&descriptor.kind, &caller.reach, 0) };
    let causes = api.service().causes(&query, &condition_type(adapter)).await?;
    Ok(response::json(StatusCode::OK, &causes))
}

fn adapter<'a>(descriptor: &Descriptor, parameters: &'a Parameters) -> Result<&'a str, Problem> {
    let required = &descriptor.required_adapters;
    let Some(adapter) = parameters.first("adapter") else {
        let fault =
            FieldError::new("adapter", "required", format!("adapter is required: one of {}", required.join(", ")));
        return Err(query::invalid(vec![fault]));
    };
    if !required.iter().any(|one| one == adapter) {
        let message = format!("must be a required adapter of the kind: one of {}", required.join(", "));
        return Err(query::invalid(vec![FieldError::new("adapter", "enum", message).with_value(adapter)]));
    }
    Ok(adapter)
}
