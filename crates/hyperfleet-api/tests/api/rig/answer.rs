//! Responses, and the checks that apply to every response.

use reqwest::Response;
use reqwest::header::HeaderMap;
use serde_json::Value;

/// Terms of drivers and internals that no response may contain.
const INSIDE: &[&str] = &[
    "sqlx",
    "sqlstate",
    "sqlite",
    "postgres",
    "panicked",
    "src/",
    "rust_backtrace",
    "constraint failed",
    "syntax error at",
    "duplicate key",
    "serde",
    "tokio",
    "hyper::",
    "axum",
    "unwrap",
    "no such column",
    "no such table",
    "select ",
];

/// The statuses, title and type of each code.
const CODES: &[(&str, &[u16], &str, &str)] = &[
    ("VAL-000", &[400, 422], "Validation Failed", "validation-error"),
    ("VAL-005", &[400], "Bad Request", "bad-request"),
    ("VAL-006", &[400], "Malformed Request", "malformed-request"),
    ("AUT-001", &[401], "Authentication Required", "authentication-error"),
    ("AUT-002", &[401], "Invalid Credentials", "authentication-error"),
    ("AUT-003", &[401], "Invalid Token", "authentication-error"),
    ("AUZ-001", &[403], "Permission Denied", "permission-denied"),
    ("NTF-000", &[404], "Endpoint Not Found", "not-found"),
    ("NTF-001", &[404], "Resource Not Found", "not-found"),
    ("CNF-001", &[409], "Resource Conflict", "conflict"),
    ("CNF-002", &[412], "", ""),
    ("CNF-003", &[409], "State Conflict", "conflict"),
    ("CNF-004", &[410], "", ""),
    ("LMT-002", &[413, 431], "", ""),
    ("INT-001", &[500], "Internal Server Error", "internal-error"),
    ("SVC-001", &[503], "Service Unavailable", "service-unavailable"),
    ("SVC-002", &[504, 408], "Service Timeout", "service-unavailable"),
];

/// A complete response.
#[derive(Clone, Debug)]
pub(crate) struct Answer {
    /// The request line.
    pub(crate) line: String,
    pub(crate) status: u16,
    pub(crate) headers: HeaderMap,
    pub(crate) bytes: Vec<u8>,
}

impl Answer {
    /// Reads a response and checks it.
    pub(crate) async fn of(line: &str, response: Response) -> Self {
        let (status, headers) = (response.status().as_u16(), response.headers().clone());
        let answer = Self { line: line.to_owned(), status, headers, bytes: response.bytes().await.unwrap().into() };
        answer.check();
        answer
    }

    fn check(&self) {
        let id = self.header("x-request-id");
        let parsed = uuid::Uuid::parse_str(id).unwrap_or_else(|_| panic!("no X-Request-ID: {self}"));
        assert_eq!((parsed.get_version_num(), parsed.to_string().as_str()), (7, id), "{self}");
        let vary: Vec<_> = self.headers.get_all("vary").iter().map(|value| value.to_str().unwrap()).collect();
        assert!(vary.join(",").to_ascii_lowercase().contains("authorization"), "{self}");
        if self.status < 400 || self.status == 405 || self.bytes.is_empty() {
            return;
        }
        let text = self.text();
        let query = self.line.split_once('?').map_or("", |(_, query)| query);
        let given: String = form_urlencoded::parse(query.as_bytes()).map(|(_, value)| value.to_lowercase()).collect();
        let inside = INSIDE.iter().find(|word| text.to_lowercase().contains(**word) && !given.contains(**word));
        assert_eq!(inside, None, "{self}");
        assert_eq!(self.header("content-type"), "application/problem+json", "{self}");
        let body = self.body();
        let code = body["code"].as_str().unwrap().strip_prefix("HYPERFLEET-").unwrap();
        let (_, statuses, title, tail) =
            CODES.iter().find(|(known, ..)| *known == code).unwrap_or_else(|| panic!("{self}"));
        assert!(statuses.contains(&self.status), "{self}");
        assert_eq!(body["status"], self.status, "{self}");
        if !title.is_empty() {
            assert_eq!(body["title"], **title, "{self}");
            assert_eq!(body["type"], format!("https://api.hyperfleet.io/errors/{tail}"), "{self}");
        }
        assert_eq!(body["trace_id"], id, "{self}");
        let path = self.line.split_once(' ').unwrap().1.split('?').next().unwrap();
        assert!(body["instance"].as_str().unwrap().ends_with(path), "{self}");
        let time: jiff::Timestamp = body["timestamp"].as_str().unwrap().parse().unwrap();
        assert!(time.duration_since(jiff::Timestamp::now()).abs() < jiff::SignedDuration::from_mins(1), "{self}");
        assert!(body["timestamp"].as_str().unwrap().ends_with('Z'), "{self}");
        assert!(!body["detail"].as_str().unwrap().is_empty(), "{self}");
        for error in body.get("errors").and_then(Value::as_array).into_iter().flatten() {
            assert!(
                !error["field"].as_str().unwrap().is_empty() && !error["message"].as_str().unwrap().is_empty(),
                "{self}"
            );
            let constraints = "required min max min_length max_length pattern enum format unique";
            let constraint = error.get("constraint").map_or("min", |constraint| constraint.as_str().unwrap());
            assert!(constraints.split(' ').any(|known| known == constraint), "{self}");
        }
    }

    /// Checks the status.
    #[track_caller]
    pub(crate) fn is(self, status: u16) -> Self {
        assert_eq!(self.status, status, "{self}");
        self
    }

    /// Checks a problem: status and code such as `400 VAL-000`, and its whole detail.
    #[track_caller]
    pub(crate) fn refuses(self, problem: &str, detail: &str) -> Self {
        let body = self.problem(problem);
        assert_eq!(body["detail"], detail, "{self}");
        self
    }

    /// Checks a problem's status and code; its body.
    #[track_caller]
    pub(crate) fn problem(&self, problem: &str) -> Value {
        let (status, code) = problem.split_once(' ').unwrap();
        let body = if self.status < 400 { Value::Null } else { self.body() };
        let actual = format!("{} {}", self.status, body["code"].as_str().unwrap_or_default());
        assert_eq!(actual, format!("{status} HYPERFLEET-{code}"), "{self}");
        body
    }

    /// Checks that a problem names that field, with that constraint.
    #[track_caller]
    pub(crate) fn at(self, field: &str, constraint: &str) -> Self {
        let body = self.body();
        let found = body["errors"].as_array().is_some_and(|errors| {
            errors.iter().any(|error| error["field"] == field && error["constraint"] == constraint)
        });
        assert!(found, "{field} {constraint}: {self}");
        self
    }

    pub(crate) fn header(&self, name: &str) -> &str {
        self.headers.get(name).map_or("", |value| value.to_str().unwrap())
    }

    pub(crate) fn text(&self) -> String {
        String::from_utf8_lossy(&self.bytes).into_owned()
    }

    #[track_caller]
    pub(crate) fn body(&self) -> Value {
        serde_json::from_slice(&self.bytes).unwrap_or_else(|_| panic!("no JSON: {self}"))
    }

    /// The names of a list's items.
    #[track_caller]
    pub(crate) fn names(&self) -> Vec<String> {
        assert_eq!(self.status, 200, "{self}");
        let items = self.body()["items"].as_array().unwrap().clone();
        items.iter().map(|item| item["name"].as_str().unwrap().to_owned()).collect()
    }
}

impl std::fmt::Display for Answer {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        let text: String = self.text().chars().take(1500).collect();
        write!(formatter, "{} -> {} {text}", self.line, self.status)
    }
}
