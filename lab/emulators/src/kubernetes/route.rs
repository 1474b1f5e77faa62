//! Routing of paths.

use http::Method;

/// A path taken apart.
#[derive(Clone, Debug, PartialEq, Eq)]
pub(crate) enum Route {
    /// `/healthz` and its kin.
    Health,
    Version,
    /// `/api`
    CoreVersions,
    /// `/apis`
    Groups,
    /// `/apis/GROUP`
    Group(String),
    /// `/api/v1`, `/apis/GROUP/VERSION`
    Resources {
        group: String,
        version: String,
    },
    /// `/openapi/v2`
    OpenApiV2,
    /// `/openapi/v3`
    OpenApi,
    /// `/openapi/v3/…`
    OpenApiOf {
        group: String,
        version: String,
    },
    Object(Place),
    Unknown,
}

/// A resource, an object, or a subresource.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub(crate) struct Place {
    pub(crate) group: String,
    pub(crate) version: String,
    pub(crate) plural: String,
    /// Empty if the path has none.
    pub(crate) namespace: String,
    /// Empty if the path has none.
    pub(crate) name: String,
    /// Empty if the path has none.
    pub(crate) subresource: String,
}

/// Subresources of a namespace, which look like resources in it.
const OF_NAMESPACES: [&str; 2] = ["status", "finalize"];

pub(crate) fn route(path: &str) -> Route {
    let steps: Vec<String> = path.split('/').filter(|step| !step.is_empty()).map(decoded).collect();
    let steps: Vec<&str> = steps.iter().map(String::as_str).collect();
    match steps.as_slice() {
        ["healthz" | "livez" | "readyz", ..] => Route::Health,
        ["version"] => Route::Version,
        ["api"] => Route::CoreVersions,
        ["apis"] => Route::Groups,
        ["apis", group] => Route::Group((*group).to_owned()),
        ["openapi", "v2"] => Route::OpenApiV2,
        ["openapi", "v3"] => Route::OpenApi,
        ["openapi", "v3", rest @ ..] => match versioned(rest) {
            Some((group, version, [])) => Route::OpenApiOf { group, version },
            _ => Route::Unknown,
        },
        steps => match versioned(steps) {
            Some((group, version, [])) => Route::Resources { group, version },
            Some((group, version, rest)) => match place(rest) {
                Some(place) => Route::Object(Place { group, version, ..place }),
                None => Route::Unknown,
            },
            None => Route::Unknown,
        },
    }
}

/// Group, version, and the steps behind them.
fn versioned<'a, 'b>(steps: &'b [&'a str]) -> Option<(String, String, &'b [&'a str])> {
    match steps {
        ["api", version, rest @ ..] => Some((String::new(), (*version).to_owned(), rest)),
        ["apis", group, version, rest @ ..] => Some(((*group).to_owned(), (*version).to_owned(), rest)),
        _ => None,
    }
}

fn place(steps: &[&str]) -> Option<Place> {
    let (namespace, steps) = match steps {
        ["namespaces", _] => ("", steps),
        ["namespaces", _, sub] if OF_NAMESPACES.contains(sub) => ("", steps),
        ["namespaces", namespace, rest @ ..] if !rest.is_empty() => (*namespace, rest),
        steps => ("", steps),
    };
    let place = |plural: &str, name: &str, subresource: &str| Place {
        plural: plural.to_owned(),
        namespace: namespace.to_owned(),
        name: name.to_owned(),
        subresource: subresource.to_owned(),
        ..Place::default()
    };
    match steps {
        [plural] => Some(place(plural, "", "")),
        [plural, name] => Some(place(plural, name, "")),
        [plural, name, subresource] => Some(place(plural, name, subresource)),
        _ => None,
    }
}

/// The verb that a request has on a place; none if the place does not know the method.
pub(crate) fn verb(method: &Method, place: &Place, watch: bool) -> Option<&'static str> {
    Some(match (method.as_str(), place.name.is_empty()) {
        ("GET", false) => "get",
        ("GET", true) if watch => "watch",
        ("GET", true) => "list",
        ("POST", true) => "create",
        ("POST", false) if !place.subresource.is_empty() => "create",
        ("PUT", false) => "update",
        ("PATCH", false) => "patch",
        ("DELETE", false) => "delete",
        ("DELETE", true) => "deletecollection",
        _ => return None,
    })
}

/// A step of a path without percent signs.
fn decoded(step: &str) -> String {
    let mut bytes = Vec::new();
    let mut rest = step.as_bytes();
    while let Some((first, tail)) = rest.split_first() {
        let hex = if *first == b'%' { tail.get(..2).and_then(|hex| std::str::from_utf8(hex).ok()) } else { None };
        let byte = hex.and_then(|hex| u8::from_str_radix(hex, 16).ok());
        bytes.push(byte.unwrap_or(*first));
        rest = if byte.is_some() { tail.get(2..).unwrap_or_default() } else { tail };
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[rstest::rstest]
    #[case("/api/v1/secrets", "v1 secrets   ")]
    #[case("/api/v1/namespaces", "v1 namespaces   ")]
    #[case("/api/v1/namespaces/a", "v1 namespaces  a ")]
    #[case("/api/v1/namespaces/a/status", "v1 namespaces  a status")]
    #[case("/api/v1/namespaces/a/secrets/b", "v1 secrets a b ")]
    #[case("/apis/batch/v1/namespaces/a/jobs/b/status", "batch/v1 jobs a b status")]
    #[case(
        "/apis/rbac.authorization.k8s.io/v1/clusterroles/system%3Anode",
        "rbac.authorization.k8s.io/v1 clusterroles  system:node "
    )]
    fn reads_paths(#[case] path: &str, #[case] wanted: &str) {
        let Route::Object(place) = route(path) else { panic!("{path}") };
        let Place { group, version, plural, namespace, name, subresource } = place;
        let slash = if group.is_empty() { "" } else { "/" };
        assert_eq!(format!("{group}{slash}{version} {plural} {namespace} {name} {subresource}"), wanted);
    }

    #[rstest::rstest]
    #[case("/", Route::Unknown)]
    #[case("/healthz/ping", Route::Health)]
    #[case("/apis/batch/v1", Route::Resources { group: "batch".to_owned(), version: "v1".to_owned() })]
    #[case("/openapi/v3/api/v1", Route::OpenApiOf { group: String::new(), version: "v1".to_owned() })]
    #[case("/api/v1/namespaces/a/secrets/b/c/d", Route::Unknown)]
    fn knows_the_other_paths(#[case] path: &str, #[case] wanted: Route) {
        assert_eq!(route(path), wanted);
    }
}
