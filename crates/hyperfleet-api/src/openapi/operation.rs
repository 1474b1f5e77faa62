//! One operation: a method of a path, put together from what differs.

use http::StatusCode;
use serde_json::{Map, Value, json};

use super::problems;

/// An operation as it is described; the rest follows.
#[derive(Clone, Debug, Default)]
pub(super) struct Operation {
    /// Unique in the document; generators name functions after it.
    pub(super) id: String,
    /// The group under which it is shown.
    pub(super) tag: String,
    /// What it does, in a line.
    pub(super) summary: String,
    /// What there is to know besides.
    pub(super) description: String,
    /// Parameters of query and headers; those of the path stand beside the operations.
    pub(super) parameters: Vec<Value>,
    /// The schema and the examples of the body.
    pub(super) body: Option<(Value, Value)>,
    /// What is answered when it is done.
    pub(super) answers: Vec<Answer>,
    /// What it can be refused with, besides what follows from its nature.
    pub(super) problems: Vec<StatusCode>,
    /// What it is by nature.
    pub(super) nature: Nature,
}

/// What an operation is by nature, from which most problems follow.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(super) enum Nature {
    /// Answered to anybody, out of memory.
    #[default]
    Public,
    /// Reads the database.
    Reads,
    /// Takes a body and writes.
    Writes,
}

/// An answer to something that was done.
#[derive(Clone, Debug)]
pub(super) struct Answer {
    pub(super) status: StatusCode,
    pub(super) description: &'static str,
    /// Schemas by media type.
    pub(super) content: Vec<(&'static str, Value)>,
}

impl Operation {
    /// As the document has it.
    pub(super) fn value(self) -> Value {
        let mut responses = Map::new();
        for status in self.all_problems() {
            responses.insert(status.as_str().to_owned(), problems::response(status));
        }
        for answer in self.answers {
            responses.insert(answer.status.as_str().to_owned(), answer.value());
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
        if self.nature == Nature::Public {
            put("security", json!([]));
        }
        operation
    }

    fn all_problems(&self) -> Vec<StatusCode> {
        let (read, write) = (
            [
                StatusCode::UNAUTHORIZED,
                StatusCode::INTERNAL_SERVER_ERROR,
                StatusCode::SERVICE_UNAVAILABLE,
                StatusCode::GATEWAY_TIMEOUT,
            ],
            [StatusCode::FORBIDDEN, StatusCode::REQUEST_TIMEOUT, StatusCode::PAYLOAD_TOO_LARGE],
        );
        let natural: Vec<StatusCode> = match self.nature {
            Nature::Public => Vec::new(),
            Nature::Reads => read.to_vec(),
            Nature::Writes => [&read[..], &write[..]].concat(),
        };
        natural.into_iter().chain(self.problems.iter().copied()).collect()
    }
}

impl Answer {
    /// An answer in JSON.
    pub(super) fn json(status: StatusCode, description: &'static str, schema: Value) -> Self {
        Self { status, description, content: vec![("application/json", schema)] }
    }

    /// An answer without content.
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
