//! Refusal of requests that a web page may have sent: an emulator holds credentials and runs programs.
//!
//! A page in a browser can send requests to loopback without the user's doing. Browsers name the page in `Origin`, the name
//! that they resolved in `Host` (so DNS rebinding shows there), and without a preflight they send only the content types of
//! forms.

use axum::body::Body;
use http::header::{CONTENT_TYPE, HOST, ORIGIN};
use http::{HeaderMap, Request, Response, StatusCode};

/// Content types that a page can send without a preflight; no protocol here uses them.
const FORM_TYPES: [&str; 3] = ["application/x-www-form-urlencoded", "multipart/form-data", "text/plain"];

/// The cause of a refusal.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Refusal {
    /// The request is from a web page.
    Origin,
    /// The request is addressed to a name that is not loopback.
    Host,
    /// The content type is a form's.
    ContentType,
}

// === impl Refusal ===

impl Refusal {
    /// The answer.
    pub(crate) fn response(self) -> Response<Body> {
        let (status, message) = match self {
            Self::Origin => (StatusCode::FORBIDDEN, "requests of web pages (with an Origin) are refused"),
            Self::Host => (StatusCode::FORBIDDEN, "only localhost and loopback addresses are accepted as Host"),
            Self::ContentType => {
                (StatusCode::UNSUPPORTED_MEDIA_TYPE, "send a content type of the protocol, such as application/json")
            }
        };
        let mut response = Response::new(Body::from(format!("{message}\n")));
        *response.status_mut() = status;
        response
    }
}

/// Refuses a request that a web page may have sent. Only to paths that end in `form` may forms be sent.
pub(crate) fn check(request: &Request<Body>, form: Option<&str>) -> Result<(), Refusal> {
    let headers = request.headers();
    if headers.contains_key(ORIGIN) {
        return Err(Refusal::Origin);
    }
    // HTTP/2 has the host in the URI.
    let host = request.uri().authority().map(http::uri::Authority::as_str).or_else(|| text(headers, &HOST));
    if !host.is_some_and(is_loopback) {
        return Err(Refusal::Host);
    }
    if form.is_some_and(|form| request.uri().path().ends_with(form)) {
        return Ok(());
    }
    let content_type = text(headers, &CONTENT_TYPE).unwrap_or_default().split(';').next().unwrap_or_default().trim();
    if FORM_TYPES.iter().any(|form| content_type.eq_ignore_ascii_case(form)) {
        return Err(Refusal::ContentType);
    }
    Ok(())
}

fn text<'a>(headers: &'a HeaderMap, name: &http::HeaderName) -> Option<&'a str> {
    headers.get(name)?.to_str().ok()
}

/// True for `localhost`, names below it (RFC 6761) and loopback addresses, with any port; credentials before an `@` are ignored.
fn is_loopback(authority: &str) -> bool {
    let host = authority.rsplit('@').next().unwrap_or_default();
    let name = match host.strip_prefix('[').and_then(|rest| rest.split_once(']')) {
        Some((address, _port)) => address,
        None => host.rsplit_once(':').map_or(host, |(name, _port)| name),
    };
    let domain = name.rsplit('.').next().unwrap_or_default();
    domain.eq_ignore_ascii_case("localhost")
        || name.parse().is_ok_and(|address: std::net::IpAddr| address.is_loopback())
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    fn request(uri: &str, headers: &[(&str, &str)]) -> Request<Body> {
        let builder = Request::post(uri);
        headers
            .iter()
            .fold(builder, |builder, (name, value)| builder.header(*name, *value))
            .body(Body::empty())
            .unwrap()
    }

    #[rstest]
    #[case::address("/", &[("host", "127.0.0.1:8001")], Ok(()))]
    #[case::name("/", &[("host", "localhost")], Ok(()))]
    #[case::name_below("/", &[("host", "secret-manager.localhost:8001")], Ok(()))]
    #[case::six("/", &[("host", "[::1]:8001")], Ok(()))]
    #[case::http2("http://127.0.0.1:8001/", &[], Ok(()))]
    #[case::json("/", &[("host", "localhost"), ("content-type", "application/json; charset=utf-8")], Ok(()))]
    #[case::patch("/", &[("host", "localhost"), ("content-type", "application/apply-patch+yaml")], Ok(()))]
    #[case::page("/", &[("host", "localhost"), ("origin", "https://example.com")], Err(Refusal::Origin))]
    #[case::opaque_page("/", &[("host", "localhost"), ("origin", "null")], Err(Refusal::Origin))]
    #[case::rebound("/", &[("host", "attacker.example.com:8001")], Err(Refusal::Host))]
    #[case::rebound_http2("http://attacker.example.com/", &[], Err(Refusal::Host))]
    #[case::look_alike("/", &[("host", "localhost.example.com")], Err(Refusal::Host))]
    #[case::no_host("/", &[], Err(Refusal::Host))]
    #[case::text("/", &[("host", "localhost"), ("content-type", "text/plain")], Err(Refusal::ContentType))]
    #[case::form_elsewhere("/token/", &[("host", "localhost"), ("content-type", "application/x-www-form-urlencoded")], Err(Refusal::ContentType))]
    #[case::form_where_it_may_be("/tenant/token", &[("host", "localhost"), ("content-type", "application/x-www-form-urlencoded")], Ok(()))]
    #[case::form_of_a_page("/token", &[("host", "localhost"), ("origin", "https://example.com")], Err(Refusal::Origin))]
    #[case::form("/", &[("host", "localhost"), ("content-type", "multipart/form-data; boundary=x")], Err(Refusal::ContentType))]
    #[case::upper_case("/", &[("host", "localhost"), ("content-type", "TEXT/PLAIN;charset=UTF-8")], Err(Refusal::ContentType))]
    fn requests_of_web_pages_are_refused(
        #[case] uri: &str,
        #[case] headers: &[(&str, &str)],
        #[case] expected: Result<(), Refusal>,
    ) {
        assert_eq!(check(&request(uri, headers), Some("/token")), expected);
    }
}
