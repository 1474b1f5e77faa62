//! Routing: the method and the resource of a path.

use crate::secret_manager::method::Method;

/// A path that this API has.
#[derive(Debug, PartialEq, Eq)]
pub(super) struct Routed {
    pub(super) method: Method,
    pub(super) resource: String,
}

/// The target of a path.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Kind {
    Secrets,
    Secret,
    Versions,
    Version,
}

/// HTTP method, what the path ends at, the verb behind the colon, and the method that this means.
const ROUTES: [(&str, Kind, &str, Method); 17] = [
    ("GET", Kind::Secrets, "", Method::ListSecrets),
    ("POST", Kind::Secrets, "", Method::CreateSecret),
    ("GET", Kind::Secret, "", Method::GetSecret),
    ("PATCH", Kind::Secret, "", Method::UpdateSecret),
    ("DELETE", Kind::Secret, "", Method::DeleteSecret),
    ("POST", Kind::Secret, "addVersion", Method::AddVersion),
    ("GET", Kind::Versions, "", Method::ListVersions),
    ("GET", Kind::Version, "", Method::GetVersion),
    ("GET", Kind::Version, "access", Method::AccessVersion),
    ("POST", Kind::Version, "disable", Method::DisableVersion),
    ("POST", Kind::Version, "enable", Method::EnableVersion),
    ("POST", Kind::Version, "destroy", Method::DestroyVersion),
    ("POST", Kind::Secret, "testIamPermissions", Method::TestIamPermissions),
    ("GET", Kind::Secret, "getIamPolicy", Method::GetIamPolicy),
    ("POST", Kind::Secret, "setIamPolicy", Method::SetIamPolicy),
    ("POST", Kind::Secret, "enableManagedRotation", Method::EnableManagedRotation),
    ("POST", Kind::Secret, "rotateSecret", Method::RotateSecret),
];

/// Finds the method; none if there is no such path.
pub(super) fn route(http: &http::Method, path: &str) -> Option<Routed> {
    let path = path.strip_prefix("/v1/")?;
    let decoded: Option<Vec<String>> = path.split('/').map(decode).collect();
    let mut segments = decoded?;
    let last = segments.pop()?;
    let (last, verb) = last.split_once(':').unwrap_or((&last, ""));
    segments.push(last.to_owned());
    let below = match segments.iter().map(String::as_str).collect::<Vec<_>>().as_slice() {
        ["projects", _, "locations", _, below @ ..] | ["projects", _, below @ ..] => kind(below)?,
        _ => return None,
    };
    // The collection itself belongs to the method, not to the parent's name.
    if matches!(below, Kind::Secrets | Kind::Versions) {
        segments.pop();
    }
    let found =
        ROUTES.iter().find(|(wanted, kind, name, _)| *wanted == http.as_str() && *kind == below && *name == verb);
    found.map(|(.., method)| Routed { method: *method, resource: segments.join("/") })
}

fn kind(below: &[&str]) -> Option<Kind> {
    match below {
        ["secrets"] => Some(Kind::Secrets),
        ["secrets", _] => Some(Kind::Secret),
        ["secrets", _, "versions"] => Some(Kind::Versions),
        ["secrets", _, "versions", _] => Some(Kind::Version),
        _ => None,
    }
}

/// Undoes percent-encoding.
fn decode(segment: &str) -> Option<String> {
    let mut bytes = Vec::with_capacity(segment.len());
    let mut rest = segment.bytes();
    while let Some(byte) = rest.next() {
        if byte == b'%' {
            let digit = |byte: Option<u8>| char::from(byte?).to_digit(16);
            let value = digit(rest.next())? * 16 + digit(rest.next())?;
            bytes.push(u8::try_from(value).ok()?);
        } else {
            bytes.push(byte);
        }
    }
    String::from_utf8(bytes).ok()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("GET", "/v1/projects/p/secrets", Some((Method::ListSecrets, "projects/p")))]
    #[case("POST", "/v1/projects/p/locations/l/secrets", Some((Method::CreateSecret, "projects/p/locations/l")))]
    #[case("GET", "/v1/projects/p/secrets/s/versions/latest:access", Some((Method::AccessVersion, "projects/p/secrets/s/versions/latest")))]
    #[case("POST", "/v1/projects/p/secrets/s%3AaddVersion", Some((Method::AddVersion, "projects/p/secrets/s")))]
    #[case("POST", "/v1/projects/p/secrets/s/versions/1:access", None)]
    #[case("GET", "/v1beta1/projects/p/secrets", None)]
    #[case("GET", "/v1/projects/p/secrets/%zz", None)]
    fn finds(#[case] http: &str, #[case] path: &str, #[case] expected: Option<(Method, &str)>) {
        let routed = route(&http.parse().unwrap(), path);
        assert_eq!(routed, expected.map(|(method, resource)| Routed { method, resource: resource.to_owned() }));
    }
}
