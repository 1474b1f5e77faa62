//! The checks of the credentials service.

use credentials::settings::RegistryKind;
use registry_account::ErrorKind;

use super::api::words;
use super::checks::Checks;
use crate::doctor::facts::{ApiAccess, CredentialsFacts, LedgerFacts, Refusal, RegistryFacts};
use crate::doctor::{Group, Line};

const SETTINGS: &str = "settings";
const LEDGER: &str = "ledger";
const KEYS: &str = "keys";

/// The command that shows the settings, and all their faults.
const SHOW: &str = "pull-secret credentials config-dump";
const GRANT: &str = "helm upgrade hyperfleet charts/pull-secret --namespace hyperfleet-system --values values.yaml  # with \
     credentials.enabled; else add to the API's grants: kinds: [Cluster], verbs: [get, list, watch, update], reads_pull_secrets: true";

pub(super) fn lines(facts: Option<&Result<CredentialsFacts, String>>) -> Vec<Line> {
    let mut checks = Checks::of(Group::Credentials);
    match facts {
        Some(Ok(CredentialsFacts { api, ledger, registries })) => {
            access(&mut checks, api);
            stored(&mut checks, ledger);
            for facts in registries {
                registry(&mut checks, facts);
            }
        }
        Some(Err(fault)) => checks.failed(SETTINGS, fault, SHOW),
        None => {
            checks.skipped(
                SETTINGS,
                "no configuration of the credentials service is given, and none is where it is searched",
            );
            checks.fix("pull-secret doctor --credentials-config FILE");
        }
    }
    checks.lines
}

/// The permissions of the service at the API.
fn access(checks: &mut Checks, api: &Result<ApiAccess, String>) {
    let ApiAccess { list, read, update } = match api {
        Ok(api) => api,
        Err(fault) => return checks.failed(SETTINGS, fault, SHOW),
    };
    for (check, answer) in [("list clusters", list), ("read pull secrets", read), ("update clusters", update)] {
        match answer {
            Ok(()) => checks.ok(check, "allowed"),
            Err(Refusal::Denied(words)) => checks.failed(check, words, GRANT),
            Err(Refusal::Unauthenticated(words)) => {
                let message = format!("the API does not accept the token: {words}");
                checks.failed(check, message, format!("{SHOW}  # clients.hyperfleet_api.auth.token_path"));
            }
            Err(other) => {
                checks.failed(check, words(other), format!("{SHOW}  # clients.hyperfleet_api.base_url, ca_file"));
            }
        }
    }
}

fn stored(checks: &mut Checks, ledger: &Result<LedgerFacts, String>) {
    let LedgerFacts { is_current, passwords, missing_keys, old } = match ledger {
        Ok(ledger) => ledger,
        Err(fault) => {
            checks.failed(LEDGER, fault, format!("{SHOW}  # database, keys"));
            return checks.skipped(KEYS, "the ledger cannot be read");
        }
    };
    if !is_current {
        let fix = "pull-secret credentials serve  # of this version, which migrates it";
        checks.warning(LEDGER, "the database answers; its schema is not up to date", fix);
        return checks.skipped(KEYS, "the schema is not up to date");
    }
    checks.ok(LEDGER, format!("the database answers; it has {passwords} passwords"));
    if !missing_keys.is_empty() {
        let message = format!("passwords are sealed with keys that are not configured: {}", missing_keys.join(", "));
        checks.failed(KEYS, message, format!("{SHOW}  # keys: put them back"));
    } else if *old > 0 {
        let message = format!("{old} passwords are sealed with another key than the first; it cannot be withdrawn yet");
        checks.warning(KEYS, message, "pull-secret credentials serve  # seals them anew within ten minutes");
    } else {
        checks.ok(KEYS, "the first key seals all passwords");
    }
}

fn registry(checks: &mut Checks, facts: &RegistryFacts) {
    let RegistryFacts { name, kind, answer } = facts;
    let check = format!("registry {name}");
    match answer {
        Ok(()) => {
            checks.ok(&check, "it accepts the identity; the permissions to create and to pull show when they are used");
        }
        Err(error) => {
            let setting = match (kind, error.kind) {
                (RegistryKind::Acr, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) => {
                    "tenant_id, client_id and token_file: docs/guides/registries/acr.md, steps 1 to 3"
                }
                (RegistryKind::Ecr, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) => {
                    "role: docs/guides/registries/ecr.md, steps 1 and 2"
                }
                (RegistryKind::Gar, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) => {
                    "service_account: docs/guides/registries/gar.md, steps 1 and 2"
                }
                (RegistryKind::Harbor, ErrorKind::Unauthenticated) => {
                    "username and password_file: docs/guides/registries/harbor.md, steps 2 and 3"
                }
                (RegistryKind::Harbor, ErrorKind::PermissionDenied | ErrorKind::NotPrepared) => {
                    "project and username: docs/guides/registries/harbor.md, steps 1 and 2"
                }
                (RegistryKind::Quay, ErrorKind::Unauthenticated) => {
                    "token_file: docs/guides/registries/quay.md, step 3"
                }
                (RegistryKind::Quay, ErrorKind::PermissionDenied) => {
                    "organization and token_file: docs/guides/registries/quay.md, steps 1 and 3"
                }
                (RegistryKind::RedHat, ErrorKind::Unauthenticated | ErrorKind::PermissionDenied) => {
                    "partner, cert_file and key_file: docs/guides/registries/red_hat.md, steps 1 and 2"
                }
                (RegistryKind::RedHat, ErrorKind::Invalid | ErrorKind::Unavailable) => {
                    "url, partner, ca_file, cert_file and key_file"
                }
                _ => "url, ca_file",
            };
            checks.failed(&check, error.to_string(), format!("{SHOW}  # registries: {setting}"));
        }
    }
}
