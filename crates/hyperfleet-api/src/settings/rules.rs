//! Checks settings that are valid each for itself but contradict each other.

use daemon::host::is_loopback;

use super::{Server, Settings};

/// Every contradiction between settings.
pub(super) fn faults(settings: &Settings) -> Vec<String> {
    let of_server = broken(&of_server(&settings.server)).into_iter();
    let others = broken(&of_permissions(settings)).into_iter().chain(settings.tracing.faults());
    of_server.chain(settings.database.faults()).chain(others).collect()
}

/// Every setting of a file of HyperFleet's own server that has no effect here, as this server is stricter.
pub(super) fn notes(settings: &Settings) -> Vec<String> {
    let mut notes = broken(&differences(settings));
    let issuers = &settings.server.jwt.configs;
    for (index, issuer) in issuers.iter().enumerate() {
        if let Some(first) = issuers.iter().take(index).position(|other| other.issuer_url == issuer.issuer_url) {
            notes.push(format!(
                "server.jwt.configs[{index}]: no effect here: server.jwt.configs[{first}] is for the same issuer_url"
            ));
        }
        if issuer.audience.as_deref().unwrap_or_default().is_empty() {
            notes.push(format!(
                "server.jwt.configs[{index}]: no effect here without audience: tokens that were made for another service would \
                 be accepted, so every token of this issuer is refused"
            ));
        }
    }
    let entities = settings.entities.iter().flatten().enumerate();
    let searched = entities.filter(|(_, entity)| entity.search_disallowed_fields.is_some());
    notes.extend(searched.map(|(index, _)| {
        format!("entities[{index}].search_disallowed_fields: no effect here: every field can be searched")
    }));
    notes
}

fn broken(rules: &[(bool, &str)]) -> Vec<String> {
    rules.iter().filter(|(holds, _)| !holds).map(|(_, text)| (*text).to_owned()).collect()
}

/// Rules for what HyperFleet's own server accepts: a note for the log if one is broken, and the safe side is taken.
fn differences(settings: &Settings) -> Vec<(bool, &'static str)> {
    let Server { host, proxies, tls, jwt, tenant, .. } = &settings.server;
    vec![
        (
            jwt.enabled || is_loopback(host),
            "server.host: no effect here without authentication: only loopback is served; set server.jwt.enabled",
        ),
        (jwt.enabled || jwt.configs.is_empty(), "server.jwt.configs: no effect here without server.jwt.enabled"),
        (
            !proxies.is_empty() || jwt.configs.iter().all(|issuer| issuer.identity_header.is_none()),
            "server.jwt.configs: no effect here of identity_header: it is trusted only from a proxy; name the proxies in \
             server.proxies",
        ),
        (
            !settings.authorization.grants.is_empty() || !jwt.enabled || jwt.configs.is_empty(),
            "authorization.grants: is empty, so that every call is denied; give each identity what it needs",
        ),
        (
            tenant.enabled || tenant.dimensions.is_empty(),
            "server.tenant.dimensions: no effect here without server.tenant.enabled",
        ),
        (
            tenant.enabled || tenant.system_header.is_none(),
            "server.tenant.system_header: no effect here without server.tenant.enabled",
        ),
        (
            !tenant.enabled || !proxies.is_empty(),
            "server.tenant: no effect here of its headers: they are trusted only from a proxy; name the proxies in \
             server.proxies",
        ),
        (
            tls.enabled || (tls.cert_file.is_none() && tls.key_file.is_none()),
            "server.tls: no effect here of cert_file and key_file without server.tls.enabled",
        ),
    ]
}

fn of_server(server: &Server) -> Vec<(bool, &'static str)> {
    let Server { tls, tenant, .. } = server;
    let is_header = |name: &str| http::HeaderName::try_from(name).is_ok();
    vec![
        (
            !tenant.enabled || !tenant.dimensions.is_empty(),
            "server.tenant.enabled: names no dimension in server.tenant.dimensions",
        ),
        (
            tenant.dimensions.iter().all(|dimension| is_header(&dimension.header)),
            "server.tenant.dimensions: a header is not a valid header name",
        ),
        (
            tenant.system_header.as_deref().is_none_or(is_header),
            "server.tenant.system_header: must be a valid header name",
        ),
        (
            !tls.enabled || (tls.cert_file.is_some() && tls.key_file.is_some()),
            "server.tls: enabled, cert_file and key_file must be set together",
        ),
    ]
}

fn of_permissions(settings: &Settings) -> Vec<(bool, &'static str)> {
    let Settings { server, authorization, pull_secret, .. } = settings;
    vec![
        (
            authorization.grants.is_empty() || server.jwt.enabled,
            "authorization.grants: has no effect without server.jwt.enabled",
        ),
        (
            pull_secret.reader_token_file.is_none() || !server.jwt.enabled,
            "pull_secret.reader_token_file: is for servers without authentication; with server.jwt.enabled give the \
             reader's identity reads_pull_secrets in authorization.grants",
        ),
    ]
}
