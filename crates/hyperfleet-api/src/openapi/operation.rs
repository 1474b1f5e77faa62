//! An operation of the document: a method of a path with its parameters, body and responses.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::problems;
use super::superset::beyond;

/// The parts of an operation that differ; the rest is added when it is rendered.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    /// The id, unique in the document; code generators name functions after it.
    pub(super) id: String,
    /// The group in which it is listed.
    pub(super) tag: String,
    /// The purpose in one line.
    pub(super) summary: String,
    /// Further explanation.
    pub(super) description: String,
    /// The parameters in query and headers. Those of the path are listed beside the operations.
    pub(super) parameters: Vec<Value>,
    /// The schema and the examples of the body.
    pub(super) body: Option<(Value, Value)>,
    /// The responses of success.
    pub(super) responses: Vec<SuccessResponse>,
    /// The statuses of its problems, in addition to those of its access.
    pub(super) problems: Vec<StatusCode>,
    /// The access that it needs.
    pub(super) access: Access,
    /// True if HyperFleet's own server has no such operation.
    pub(super) is_beyond: bool,
}

/// The access of an operation, which decides most of its problems.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Access {
    /// Needs no authentication and no database.
    #[default]
    Public,
    /// Reads the database.
    Reads,
    /// Writes to the database, usually with a request body.
    Writes,
}

/// A response of success.
#[derive(Clone, Debug)]
pub(super) struct SuccessResponse {
    pub(super) status: StatusCode,
    pub(super) description: &'static str,
    /// Schemas by media type.
    pub(super) content: Vec<(&'static str, Value)>,
}

impl Operation {
    /// Renders the operation.
    pub(super) fn value(self) -> Value {
        let mut responses = Map::new();
        for status in self.all_problems() {
            responses.insert(status.as_str().to_owned(), problems::response(status));
        }
        for response in self.responses {
            responses.insert(response.status.as_str().to_owned(), response.value());
        }
        let mut operation = json!({
            "operationId": self.id,
            "tags": [self.tag],
            "summary": self.summary,
            "responses": responses,
        });
        let mut put = |name: &str, value: Value| {
            if let Some(members) = operation.as_object_mut() {
                members.insert(name.to_owned(), value);
            }
        };
        if !self.description.is_empty() {
            put("description", json!(self.description));
        }
        if !self.parameters.is_empty() {
            put("parameters", json!(self.parameters));
        }
        if let Some((schema, examples)) = self.body {
            let content = json!({ "application/json": { "schema": schema, "examples": examples } });
            put("requestBody", json!({ "required": true, "content": content }));
        }
        if self.access == Access::Public {
            put("security", json!([]));
        }
        if self.is_beyond {
            operation = beyond(operation);
        }
        operation
    }

    fn all_problems(&self) -> Vec<StatusCode> {
        let (read, write) = (
            [
                StatusCode::UNAUTHORIZED,
                StatusCode::FORBIDDEN,
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ],
            [StatusCode::REQUEST_TIMEOUT, StatusCode::PAYLOAD_TOO_LARGE],
        );
        let of_access: Vec<StatusCode> = match self.access {
            Access::Public => Vec::new(),
            Access::Reads => read.to_vec(),
            Access::Writes => [&read[..], &write[..]].concat(),
        };
        of_access.into_iter().chain(self.problems.iter().copied()).collect()
    }
}

impl SuccessResponse {
    /// A JSON response.
    pub(super) fn json(status: StatusCode, description: &'static str, schema: Value) -> Self {
        Self { status, description, content: vec![("application/json", schema)] }
    }

    /// A response without content.
    pub(super) fn empty(description: &'static str) -> Self {
        Self { status: StatusCode::NO_CONTENT, description, content: Vec::new() }
    }

    fn value(self) -> Value {
        let mut value = json!({ "description": self.description, "headers": problems::common_headers() });
        let content: Map<String, Value> =
            self.content.into_iter().map(|(media, schema)| (media.to_owned(), json!({ "schema": schema }))).collect();
        if let (false, Some(members)) = (content.is_empty(), value.as_object_mut()) {
            members.insert("content".to_owned(), Value::Object(content));
        }
        value
    }
}
