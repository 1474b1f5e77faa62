//! Errors in the form and wording of a real API server: a `Status` object.

use serde_json::{Value, json};

/// A refused call.
#[derive(Clone, Debug, PartialEq)]
pub(crate) struct Status {
    pub(crate) code: u16,
    pub(crate) reason: &'static str,
    pub(crate) message: String,
    details: Value,
    /// True if the details are sent although there are none, as Go's generic refusals do.
    generic: bool,
}

/// One of several things that are wrong.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) struct Cause {
    pub(crate) reason: String,
    pub(crate) message: String,
    pub(crate) field: String,
}

/// The subject of a refusal: the plural or the kind, the group, the name.
#[derive(Clone, Copy, Debug)]
pub(crate) struct About<'a> {
    pub(crate) group: &'a str,
    pub(crate) kind: &'a str,
    pub(crate) name: &'a str,
}

/// The reasons that go with HTTP codes where nothing more exact is known.
const REASONS: [(u16, &str); 14] = [
    (400, "BadRequest"),
    (401, "Unauthorized"),
    (403, "Forbidden"),
    (404, "NotFound"),
    (405, "MethodNotAllowed"),
    (406, "NotAcceptable"),
    (409, "Conflict"),
    (410, "Gone"),
    (413, "RequestEntityTooLarge"),
    (415, "UnsupportedMediaType"),
    (422, "Invalid"),
    (429, "TooManyRequests"),
    (500, "InternalError"),
    (503, "ServiceUnavailable"),
];

impl Status {
    /// A refusal with the reason that usually goes with the code.
    pub(crate) fn new(code: u16, message: impl Into<String>) -> Self {
        let reason = REASONS.iter().find(|row| row.0 == code).map_or("", |row| row.1);
        Self { code, reason, message: message.into(), details: json!({}), generic: false }
    }

    /// A refusal that knows no object.
    pub(crate) fn generic(code: u16, message: &str) -> Self {
        Self { generic: true, ..Self::new(code, message) }
    }

    pub(crate) fn bad_request(message: impl Into<String>) -> Self {
        Self::new(400, message)
    }

    pub(crate) fn internal(message: impl std::fmt::Display) -> Self {
        let mut status = Self::new(500, format!("Internal error occurred: {message}"));
        status.details = json!({"causes": [{"message": message.to_string()}]});
        status
    }

    pub(crate) fn unauthorized() -> Self {
        Self::new(401, "Unauthorized")
    }

    pub(crate) fn not_found(about: About<'_>) -> Self {
        Self::new(404, format!("{} {:?} not found", about.qualified(), about.name)).about(about)
    }

    /// No such path.
    pub(crate) fn no_route() -> Self {
        Self::generic(404, "the server could not find the requested resource")
    }

    pub(crate) fn exists(about: About<'_>) -> Self {
        let status = Self::new(409, format!("{} {:?} already exists", about.qualified(), about.name));
        status.because("AlreadyExists").about(about)
    }

    pub(crate) fn conflict(about: About<'_>, why: &str) -> Self {
        let message = format!("Operation cannot be fulfilled on {} {:?}: {why}", about.qualified(), about.name);
        Self::new(409, message).about(about)
    }

    pub(crate) fn forbidden(about: About<'_>, why: &str) -> Self {
        let name = if about.name.is_empty() { String::new() } else { format!(" {:?}", about.name) };
        Self::new(403, format!("{}{name} is forbidden: {why}", about.qualified())).about(about)
    }

    /// `about.kind` is the object's kind here, not the plural.
    pub(crate) fn invalid(about: About<'_>, causes: &[Cause]) -> Self {
        let texts: Vec<String> = causes.iter().map(Cause::text).collect();
        let why = match texts.as_slice() {
            [one] => one.clone(),
            many => format!("[{}]", many.join(", ")),
        };
        let message = format!("{} {:?} is invalid: {why}", about.qualified(), about.name);
        Self::new(422, message).about(about).with_causes(causes)
    }

    pub(crate) fn method_not_allowed() -> Self {
        Self::generic(405, "the server does not allow this method on the requested resource")
    }

    /// A revision that is forgotten.
    pub(crate) fn expired(message: impl Into<String>) -> Self {
        Self::new(410, message).because("Expired")
    }

    #[must_use]
    pub(crate) fn because(mut self, reason: &'static str) -> Self {
        self.reason = reason;
        self
    }

    #[must_use]
    pub(crate) fn about(mut self, about: About<'_>) -> Self {
        for (member, value) in [("name", about.name), ("group", about.group), ("kind", about.kind)] {
            if !value.is_empty() {
                self.detail(member, json!(value));
            }
        }
        self
    }

    #[must_use]
    pub(crate) fn with_causes(mut self, causes: &[Cause]) -> Self {
        self.detail("causes", causes.iter().map(Cause::json).collect());
        self
    }

    #[must_use]
    pub(crate) fn retry_after(mut self, seconds: u64) -> Self {
        self.detail("retryAfterSeconds", json!(seconds));
        self
    }

    /// The value of the HTTP header `Retry-After`.
    pub(crate) fn retry_seconds(&self) -> Option<u64> {
        self.details.get("retryAfterSeconds").and_then(Value::as_u64)
    }

    pub(crate) fn json(&self) -> Value {
        let mut status = json!({
            "kind": "Status", "apiVersion": "v1", "metadata": {}, "status": "Failure",
            "message": self.message, "reason": self.reason, "details": self.details, "code": self.code,
        });
        if let Some(members) = status.as_object_mut() {
            let is_kept = |name: &str, value: &Value| match name {
                "details" => self.generic || *value != json!({}),
                "reason" => *value != "",
                _ => true,
            };
            members.retain(|name, value| is_kept(name, value));
        }
        status
    }

    fn detail(&mut self, member: &str, value: Value) {
        if let Some(members) = self.details.as_object_mut() {
            members.insert(member.to_owned(), value);
        }
    }
}

impl std::fmt::Display for Status {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter.write_str(&self.message)
    }
}

impl About<'_> {
    fn qualified(&self) -> String {
        if self.group.is_empty() { self.kind.to_owned() } else { format!("{}.{}", self.kind, self.group) }
    }
}

impl Cause {
    pub(crate) fn required(field: &str, message: &str) -> Self {
        let message =
            if message.is_empty() { "Required value".to_owned() } else { format!("Required value: {message}") };
        Self { reason: "FieldValueRequired".to_owned(), message, field: field.to_owned() }
    }

    /// `value` as Go's `%#v`-like notation writes it: texts in quotes.
    pub(crate) fn invalid(field: &str, value: &Value, message: &str) -> Self {
        let message = format!("Invalid value: {value}: {message}");
        Self { reason: "FieldValueInvalid".to_owned(), message, field: field.to_owned() }
    }

    pub(crate) fn forbidden(field: &str, message: &str) -> Self {
        let message = format!("Forbidden: {message}");
        Self { reason: "FieldValueForbidden".to_owned(), message, field: field.to_owned() }
    }

    pub(crate) fn unsupported(field: &str, value: &str, supported: &[&str]) -> Self {
        let supported: Vec<String> = supported.iter().map(|value| format!("{value:?}")).collect();
        let message = format!("Unsupported value: {value:?}: supported values: {}", supported.join(", "));
        Self { reason: "FieldValueNotSupported".to_owned(), message, field: field.to_owned() }
    }

    pub(crate) fn too_long(field: &str, maximum: usize) -> Self {
        let message = format!("Too long: may not be more than {maximum} bytes");
        Self { reason: "FieldValueTooLong".to_owned(), message, field: field.to_owned() }
    }

    fn text(&self) -> String {
        format!("{}: {}", self.field, self.message)
    }

    fn json(&self) -> Value {
        let mut cause = json!({"reason": self.reason, "message": self.message});
        if let Some(members) = cause.as_object_mut()
            && !self.field.is_empty()
        {
            members.insert("field".to_owned(), json!(self.field));
        }
        cause
    }
}
