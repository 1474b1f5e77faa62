//! The checks of Secret Manager in one project.

use secret_store::{ErrorKind, Permission, StoreError};

use super::checks::Checks;
use crate::doctor::facts::{PermissionFacts, StoreFacts};
use crate::doctor::{Group, Line};

/// The permissions with which the adapter checks what is stored.
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

const API: &str = "API";
const LIST: &str = "list secrets";
const ADAPTER: &str = "adapter's permissions";
const JOBS: &str = "Jobs' permissions";

pub(super) fn lines(facts: Option<&Result<StoreFacts, String>>) -> Vec<Line> {
    let mut checks = Checks::of(Group::SecretManager);
    let facts = match facts {
        Some(Ok(facts)) => facts,
        Some(Err(fault)) => {
            checks.failed("settings", fault, "pull-secret doctor --project PROJECT");
            return checks.lines;
        }
        None => {
            checks.skipped(API, "no project is given");
            checks.fix("pull-secret doctor --project PROJECT");
            return checks.lines;
        }
    };
    match &facts.listed {
        Ok(_) => checks.ok(API, format!("Secret Manager answers for the project {}", facts.project)),
        Err(error) if error.kind == ErrorKind::PermissionDenied => {
            checks.ok(API, "Secret Manager answers, and accepts the identity");
        }
        Err(error) => {
            checks.failed(API, error.to_string(), fix(&facts.project, error));
            for check in [LIST, ADAPTER, JOBS] {
                checks.skipped(check, "Secret Manager does not answer this identity");
            }
            return checks.lines;
        }
    }
    match &facts.listed {
        Ok(count) => checks.ok(LIST, format!("allowed; {count} of this service on the first page")),
        Err(error) => checks.failed(LIST, error.to_string(), viewer(&facts.project)),
    }
    match &facts.permissions {
        Some(Ok(permissions)) => {
            held(&mut checks, ADAPTER, facts, permissions);
            held(&mut checks, JOBS, facts, permissions);
        }
        Some(Err(error)) => {
            checks.failed(ADAPTER, error.to_string(), viewer(&facts.project));
            checks.skipped(JOBS, "the permissions cannot be requested");
        }
        None => {
            for check in [ADAPTER, JOBS] {
                checks.skipped(
                    check,
                    "Secret Manager answers about a secret only, and no secret of this service is known",
                );
            }
        }
    }
    checks.lines
}

/// The permissions of the adapter, or those of Jobs: the adapter's identity needs no more than its own.
fn held(checks: &mut Checks, check: &str, facts: &StoreFacts, permissions: &[PermissionFacts]) {
    let is_adapters = check == ADAPTER;
    let of_check: Vec<&PermissionFacts> =
        permissions.iter().filter(|facts| ADAPTERS_PERMISSIONS.contains(&facts.permission) == is_adapters).collect();
    let names = |is_held| {
        let named = of_check.iter().filter(|facts| facts.is_held == is_held).map(|facts| facts.name);
        named.collect::<Vec<_>>().join(", ")
    };
    let (missing, unknown) = (names(Some(false)), names(None));
    if missing.is_empty() {
        let unknown = if unknown.is_empty() { unknown } else { format!("; not known without a write: {unknown}") };
        checks.ok(check, format!("held: {}{unknown}", names(Some(true))));
    } else if is_adapters {
        checks.failed(check, format!("missing: {missing}"), viewer(&facts.project));
    } else {
        let message = format!("missing, which matters if this is the identity of Jobs: {missing}");
        checks.warning(check, message, manager(&facts.project, permissions));
    }
}

/// The command that grants a role to a service account of docs/guides/gke.md.
fn binding(project: &str, role: &str, account: &str) -> String {
    format!(
        "gcloud projects add-iam-policy-binding {project} --condition None --role {role} --member \
         serviceAccount:{account}@{project}.iam.gserviceaccount.com"
    )
}

/// The command that lets the adapter read what is stored.
fn viewer(project: &str) -> String {
    binding(project, "roles/secretmanager.viewer", "pullsecret-viewer")
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

fn fix(project: &str, error: &StoreError) -> String {
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
