//! The checks of the secret store.

use std::fmt;

use secret_store::{ErrorKind, Permission, StoreError};

use super::checks::Checks;
use crate::doctor::facts::{PermissionFacts, StoreFacts, StorePlace};
use crate::doctor::{Group, Line};

/// The permissions with which the adapter checks what is stored at Google.
pub(in crate::doctor) const ADAPTERS_PERMISSIONS: [Permission; 2] = [Permission::Find, Permission::FindVersion];

/// The further permissions of Jobs.
pub(in crate::doctor) const JOBS_PERMISSIONS: [Permission; 7] = [
    Permission::Create,
    Permission::Update,
    Permission::Delete,
    Permission::AddVersion,
    Permission::ReadVersion,
    Permission::ListVersions,
    Permission::DestroyVersion,
];

/// The role of Jobs in docs/guides/gke.md.
const MANAGER: &str = "pullsecretManager";

const LOG_IN: &str = "gcloud auth application-default login";

const REACHABLE: &str = "reachable";
const LIST: &str = "list secrets";
const ADAPTER: &str = "adapter's permissions";
const JOBS: &str = "Jobs' permissions";

/// The settings that name a store.
const SET_STORE: &str = "pull-secret doctor --project PROJECT  # or --secret-store vault, aws, azure";

pub(super) fn lines(facts: Option<&Result<StoreFacts, String>>) -> Vec<Line> {
    let mut checks = Checks::of(Group::SecretStore);
    let facts = match facts {
        Some(Ok(facts)) => facts,
        Some(Err(fault)) => {
            checks.failed("settings", fault, SET_STORE);
            return checks.lines;
        }
        None => {
            checks.skipped(REACHABLE, "no project is given, and no other store");
            checks.fix(SET_STORE);
            return checks.lines;
        }
    };
    let StoreFacts { place, listed, permissions } = facts;
    match listed {
        Ok(_) => checks.ok(REACHABLE, format!("{} answers for {place}", place.store())),
        Err(error) if error.kind == ErrorKind::PermissionDenied => {
            checks.ok(REACHABLE, format!("{} answers, and accepts the identity", place.store()));
        }
        Err(error) => {
            checks.failed(REACHABLE, error.to_string(), place.fix(error));
            for check in [LIST, ADAPTER, JOBS] {
                checks.skipped(check, format!("{} does not answer this identity", place.store()));
            }
            return checks.lines;
        }
    }
    match listed {
        Ok(count) => checks.ok(LIST, format!("allowed; {count} of this service on the first page")),
        Err(error) => checks.failed(LIST, error.to_string(), place.fix(error)),
    }
    match permissions {
        Some(Ok(permissions)) => {
            held(&mut checks, ADAPTER, place, permissions);
            held(&mut checks, JOBS, place, permissions);
        }
        Some(Err(error)) => {
            checks.failed(ADAPTER, error.to_string(), place.fix(error));
            checks.skipped(JOBS, "the permissions cannot be requested");
        }
        None => {
            for check in [ADAPTER, JOBS] {
                checks.skipped(
                    check,
                    format!("{} answers about a secret only, and no secret of this service is known", place.store()),
                );
            }
        }
    }
    checks.lines
}

/// The permissions of the adapter, or those of Jobs: the adapter's identity needs no more than its own.
fn held(checks: &mut Checks, check: &str, place: &StorePlace, permissions: &[PermissionFacts]) {
    let is_adapters = check == ADAPTER;
    let is_google = matches!(place, StorePlace::Google { .. });
    if is_adapters && !is_google {
        return checks.skipped(check, "the adapter checks what is stored at Google only");
    }
    let of_check: Vec<&PermissionFacts> = permissions
        .iter()
        .filter(|facts| !is_google || ADAPTERS_PERMISSIONS.contains(&facts.permission) == is_adapters)
        .collect();
    let names = |is_held| {
        let of_state = of_check.iter().filter(|facts| facts.is_held == is_held);
        let mut names: Vec<&str> = Vec::new();
        for facts in of_state {
            // Several permissions may have one name.
            if !names.contains(&facts.name) {
                names.push(facts.name);
            }
        }
        names.join(", ")
    };
    let (missing, unknown, held) = (names(Some(false)), names(None), names(Some(true)));
    if !missing.is_empty() && is_adapters {
        checks.failed(check, format!("missing: {missing}"), place.viewer());
    } else if !missing.is_empty() {
        let message = format!("missing, which matters if this is the identity of Jobs: {missing}");
        checks.warning(check, message, place.manager(permissions, &missing));
    } else if held.is_empty() {
        checks.skipped(check, format!("not known without a write: {unknown}"));
    } else {
        let unknown = if unknown.is_empty() { unknown } else { format!("; not known without a write: {unknown}") };
        checks.ok(check, format!("held: {held}{unknown}"));
    }
}

// === impl StorePlace ===

impl StorePlace {
    /// Returns the name of the store.
    fn store(&self) -> &'static str {
        match self {
            Self::Google { .. } => "Secret Manager",
            Self::Vault { .. } => "OpenBao or Vault",
            Self::Aws { .. } => "AWS Secrets Manager",
            Self::Azure { .. } => "Azure Key Vault",
        }
    }

    /// Returns what fixes the failure of a call.
    fn fix(&self, error: &StoreError) -> String {
        match self {
            Self::Google { .. } if error.kind == ErrorKind::PermissionDenied => self.viewer(),
            Self::Google { project } => google_fix(project, error),
            Self::Vault { server, .. } => {
                error.hint().unwrap_or_else(|| format!("curl --verbose {server}/v1/sys/health"))
            }
            Self::Azure { vault } => error.hint().unwrap_or_else(|| format!("curl --verbose {vault}/secrets")),
            Self::Aws { region, .. } => error.hint().unwrap_or_else(|| {
                format!(
                    "aws sts get-caller-identity && aws secretsmanager list-secrets --region {region} --max-items 1"
                )
            }),
        }
    }

    /// Returns what lets the adapter read what is stored.
    fn viewer(&self) -> String {
        let Self::Google { project } = self else { return String::new() };
        binding(project, "roles/secretmanager.viewer", "pullsecret-viewer")
    }

    /// Returns what gives Jobs their permissions.
    fn manager(&self, permissions: &[PermissionFacts], missing: &str) -> String {
        match self {
            Self::Google { project } => manager(project, permissions),
            Self::Vault { folder, .. } => {
                format!("bao policy write pull-secret-job policy.hcl  # with {missing} of {folder}")
            }
            // They do not say without a write what is missing.
            Self::Aws { .. } | Self::Azure { .. } => format!("grant the identity of Jobs {missing}"),
        }
    }
}

impl fmt::Display for StorePlace {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Google { project } => write!(formatter, "the project {project}"),
            Self::Vault { server, folder } => write!(formatter, "{folder} at {server}"),
            Self::Aws { region, folder } => write!(formatter, "{folder} in {region}"),
            Self::Azure { vault } => write!(formatter, "{vault}"),
        }
    }
}

/// The command that grants a role to a service account of docs/guides/gke.md.
fn binding(project: &str, role: &str, account: &str) -> String {
    format!(
        "gcloud projects add-iam-policy-binding {project} --condition None --role {role} --member \
         serviceAccount:{account}@{project}.iam.gserviceaccount.com"
    )
}

/// The commands that make the role of Jobs, unless it is there, and grant it: with the permissions that Jobs need and no others.
fn manager(project: &str, permissions: &[PermissionFacts]) -> String {
    let name_of = |wanted| permissions.iter().find(|facts| facts.permission == wanted).map(|facts| facts.name);
    let names = [Permission::Find].into_iter().chain(JOBS_PERMISSIONS).filter_map(name_of);
    format!(
        "gcloud iam roles create {MANAGER} --project {project} --title \"Pull Secret Job\" --stage GA --permissions {}; {}",
        names.collect::<Vec<_>>().join(","),
        binding(project, &format!("projects/{project}/roles/{MANAGER}"), "pullsecret-manager")
    )
}

fn google_fix(project: &str, error: &StoreError) -> String {
    match error.kind {
        ErrorKind::ApiDisabled => format!("gcloud services enable secretmanager.googleapis.com --project {project}"),
        ErrorKind::Unauthenticated => LOG_IN.to_owned(),
        // Without credentials the metadata server is asked, which a workstation does not have.
        ErrorKind::Unavailable if error.detail.as_ref().is_some_and(|text| text.starts_with("no token")) => {
            LOG_IN.to_owned()
        }
        ErrorKind::QuotaExceeded => {
            format!("gcloud services quota list --service=secretmanager.googleapis.com --consumer=projects/{project}")
        }
        ErrorKind::NotFound | ErrorKind::Invalid => format!("gcloud projects describe {project}"),
        _ => "curl --verbose https://secretmanager.googleapis.com".to_owned(),
    }
}
