//! The endpoint that a path names.

use http::Method;

/// The beginning of AMS's paths.
const AMS: &str = "/api/accounts_mgmt/v1/";

/// An endpoint with the parameters of its path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Route<'a> {
    /// The `OpenAPI` document.
    OpenApi,
    /// The credentials of a cluster.
    PullSecrets(&'a str),
    /// The rotations of a cluster's credentials.
    Rotations(&'a str),
    /// One rotation.
    Rotation {
        /// The cluster.
        cluster: &'a str,
        /// The rotation.
        id: &'a str,
    },
    /// AMS: the pull secret of the caller.
    AmsAccessToken,
    /// AMS: pull secrets of resources.
    AmsPullSecrets,
    /// AMS: the pull secret of one resource.
    AmsPullSecret(&'a str),
}

/// Returns the endpoint of a path; `None` if nothing is served there.
pub(crate) fn route(path: &str) -> Option<Route<'_>> {
    if let Some(rest) = path.strip_prefix(AMS) {
        return match rest.split('/').collect::<Vec<_>>().as_slice() {
            ["access_token"] => Some(Route::AmsAccessToken),
            ["pull_secrets"] => Some(Route::AmsPullSecrets),
            ["pull_secrets", id] => Some(Route::AmsPullSecret(id)),
            _ => None,
        };
    }
    match path.strip_prefix("/v1/")?.split('/').collect::<Vec<_>>().as_slice() {
        ["openapi"] => Some(Route::OpenApi),
        ["clusters", cluster, "pull-secrets"] => Some(Route::PullSecrets(cluster)),
        ["clusters", cluster, "rotations"] | ["clusters", cluster, "pull-secrets", "rotations"] => {
            Some(Route::Rotations(cluster))
        }
        ["clusters", cluster, "rotations", id] | ["clusters", cluster, "pull-secrets", "rotations", id] => {
            Some(Route::Rotation { cluster, id })
        }
        _ => None,
    }
}

/// Returns true for a path whose refusals have AMS's form.
pub(crate) fn is_of_ams(path: &str) -> bool {
    path.starts_with(AMS)
}

// === impl Route ===

impl Route<'_> {
    /// Returns the methods that it has.
    pub(crate) fn methods(&self) -> &'static [Method] {
        match self {
            Self::OpenApi | Self::Rotation { .. } => &[Method::GET],
            Self::PullSecrets(_) => &[Method::GET, Method::POST, Method::DELETE],
            Self::Rotations(_) => &[Method::GET, Method::POST],
            Self::AmsAccessToken | Self::AmsPullSecrets => &[Method::POST],
            Self::AmsPullSecret(_) => &[Method::DELETE],
        }
    }

    /// Returns the path with placeholders, for metrics, traces and the document.
    pub(crate) fn template(&self) -> &'static str {
        match self {
            Self::OpenApi => "/v1/openapi",
            Self::PullSecrets(_) => "/v1/clusters/{cluster_id}/pull-secrets",
            Self::Rotations(_) => "/v1/clusters/{cluster_id}/rotations",
            Self::Rotation { .. } => "/v1/clusters/{cluster_id}/rotations/{rotation_id}",
            Self::AmsAccessToken => "/api/accounts_mgmt/v1/access_token",
            Self::AmsPullSecrets => "/api/accounts_mgmt/v1/pull_secrets",
            Self::AmsPullSecret(_) => "/api/accounts_mgmt/v1/pull_secrets/{external_resource_id}",
        }
    }
}
