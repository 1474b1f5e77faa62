//! A request to the API, which can be sent more than once.

use http::{HeaderMap, HeaderName, HeaderValue, Method};
use reqwest::Url;
use serde::Serialize;

use crate::TraceContext;
use crate::error::Error;
use crate::settings::BaseUrl;

/// A request to the API.
#[derive(Clone, Debug)]
pub(crate) struct Request {
    /// The request, for people: `get clusters/cls-123`.
    pub(crate) call: String,
    pub(crate) method: Method,
    pub(crate) url: Url,
    pub(crate) headers: HeaderMap,
    pub(crate) body: Option<Vec<u8>>,
    /// True if the request is idempotent.
    pub(crate) repeatable: bool,
}

// === impl Request ===

impl Request {
    /// A request for a path below the API's; each segment is one, whatever characters it has.
    pub(crate) fn new(base: &BaseUrl, verb: &str, method: Method, path: &[&str]) -> Result<Self, Error> {
        let call = format!("{verb} {}", path.join("/").escape_debug());
        // URLs cannot say these: `.` and `..` walk, and an empty segment asks for the list instead of the item.
        if path.iter().any(|segment| matches!(*segment, "" | "." | "..")) {
            return Err(Error::Invalid { call, what: "a kind or an id is empty or a dot; give the resource's own" });
        }
        let mut url = base.url().clone();
        match url.path_segments_mut() {
            Ok(mut segments) => segments.pop_if_empty().extend(path),
            Err(()) => return Err(Error::Invalid { call, what: "the API's address has no path" }),
        };
        let repeatable = method == Method::GET;
        Ok(Self { call, method, url, headers: HeaderMap::new(), body: None, repeatable })
    }

    /// The same with a parameter, if there is a value for it.
    pub(crate) fn query(mut self, name: &str, value: Option<&str>) -> Self {
        if let Some(value) = value {
            self.url.query_pairs_mut().append_pair(name, value);
        }
        self
    }

    /// The same with a body.
    pub(crate) fn json(mut self, body: &impl Serialize) -> Result<Self, Error> {
        let Ok(body) = serde_json::to_vec(body) else {
            return Err(Error::Invalid { call: self.call, what: "its body cannot be written as JSON" });
        };
        self.body = Some(body);
        Ok(self)
    }

    /// The same with a header.
    pub(crate) fn header(mut self, name: HeaderName, value: HeaderValue) -> Self {
        self.headers.insert(name, value);
        self
    }

    /// The same as part of a trace.
    pub(crate) fn traced(self, trace: Option<&TraceContext>) -> Self {
        match trace.and_then(|trace| HeaderValue::from_str(trace.as_str()).ok()) {
            Some(value) => self.header(HeaderName::from_static("traceparent"), value),
            None => self,
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn request(path: &[&str]) -> Result<Request, Error> {
        Request::new(&"http://api/prefix".parse().unwrap(), "get", Method::GET, path)
    }

    #[test]
    fn a_segment_never_leaves_its_place() {
        let url = |path: &[&str]| request(path).unwrap().url.to_string();
        assert_eq!(url(&["clusters", "a"]), "http://api/prefix/api/hyperfleet/v1/clusters/a");
        assert_eq!(url(&["clusters", "a/../b?c#d"]), "http://api/prefix/api/hyperfleet/v1/clusters/a%2F..%2Fb%3Fc%23d");
        for id in ["", ".", ".."] {
            assert!(matches!(request(&["clusters", id]), Err(Error::Invalid { .. })));
        }
    }

    #[test]
    fn what_is_asked_stays_on_one_line() {
        assert_eq!(request(&["clusters", "a\nb"]).unwrap().call, "get clusters/a\\nb");
    }

    #[test]
    fn parameters_are_escaped() {
        let request = request(&["clusters"]).unwrap().query("search", Some("name='a&b'")).query("page", None);
        assert_eq!(request.url.query(), Some("search=name%3D%27a%26b%27"));
    }
}
