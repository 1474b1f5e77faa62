//! `pull-secret api grants`: the permissions of an identity.

use std::fmt::Write as _;
use std::process::ExitCode;

use anyhow::{Context as _, bail};
use daemon::faults::Faults;
use daemon::output;
use hyperfleet_api::authorization::{Identity, KindPermissions};
use hyperfleet_api::http::jwt::IssuerSettings;
use hyperfleet_api::settings::Settings;
use serde_json::json;

use crate::cli::{IdentityArguments, OutputFormat};

/// Prints what an identity may do; exits with 1 if that is nothing.
pub(super) fn grants(arguments: IdentityArguments, settings: &Settings) -> anyhow::Result<ExitCode> {
    let IdentityArguments { subject, issuer, claims, output } = arguments;
    let registry = settings.registry().map_err(Faults::of_configuration)?;
    let grants = settings.grants(&registry).map_err(Faults::of_configuration)?;
    let issuer = issuer_of(settings, issuer.as_deref())?;
    // The identity is a claim of the token too.
    let claims = std::iter::once((issuer.identity_claim.clone(), subject.clone())).chain(claims);
    let identity = Identity::with_claims(&issuer.issuer_url, &subject, claims);
    let permissions = grants.of(&identity).by_kind();
    match output {
        OutputFormat::Table => output::print(table(&identity, &permissions))?,
        OutputFormat::Json => {
            let document = json!({ "identity": identity, "permissions": permissions });
            output::print(format_args!("{document:#}\n"))?
        }
    };
    Ok(if permissions.is_empty() { ExitCode::FAILURE } else { ExitCode::SUCCESS })
}

/// The issuer that is meant: the given one, or the only one.
fn issuer_of<'a>(settings: &'a Settings, given: Option<&str>) -> anyhow::Result<&'a IssuerSettings> {
    let configs = &settings.server.jwt.configs;
    if !settings.server.jwt.enabled {
        bail!("authentication is off (server.jwt.enabled): every caller may do everything but read pull secrets");
    }
    match (given, configs.as_slice()) {
        (Some(given), _) => {
            let known = configs.iter().find(|issuer| issuer.issuer_url == given);
            known.context("no item of server.jwt.configs has this issuer_url")
        }
        (None, [only]) => Ok(only),
        (None, _) => bail!("several issuers are configured: say which with --issuer"),
    }
}

fn table(identity: &Identity, permissions: &[KindPermissions]) -> String {
    let mut text = format!("{} of {}\n", identity.subject, identity.issuer);
    if permissions.is_empty() {
        text.push_str("  no grant: every call is denied\n");
    }
    for of_kind in permissions {
        let KindPermissions {
            kind,
            verbs,
            reports_as,
            reads_pull_secrets,
            chooses_destination,
            force_deletes,
            sweeps,
            all_tenants,
            grants,
        } = of_kind;
        let further = [
            (*reads_pull_secrets, "reads pull secrets"),
            (*chooses_destination, "chooses destinations"),
            (*force_deletes, "force-deletes"),
            (*sweeps, "sweeps tombstones"),
            (*all_tenants, "in all tenants"),
        ];
        let further = further.into_iter().filter(|(holds, _)| *holds).map(|(_, text)| text.to_owned());
        let reports = (!reports_as.is_empty()).then(|| format!("reports as {}", reports_as.join(", ")));
        let verbs = (!verbs.is_empty()).then(|| verbs.join(", "));
        let all: Vec<String> = verbs.into_iter().chain(reports).chain(further).collect();
        let _infallible = writeln!(text, "  {kind}: {} (by {})", all.join("; "), grants.join(", "));
    }
    text
}
