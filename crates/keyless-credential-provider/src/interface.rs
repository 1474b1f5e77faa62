//! The kubelet's interface to credential providers.

/// Its version, in requests and responses.
pub(crate) const API_VERSION: &str = "credentialprovider.kubelet.k8s.io/v1";
/// The kind of a request.
pub(crate) const REQUEST: &str = "CredentialProviderRequest";
/// The kind of a response.
pub(crate) const RESPONSE: &str = "CredentialProviderResponse";
