//! Determines where a run would store the pull secret, and checks it against the allowed destinations.

use std::collections::{BTreeMap, BTreeSet};

use fleet_model::id::{is_dns_label, is_dns_subdomain};
use fleet_model::names::{self, variable};
use fleet_model::{ClusterId, StoredCopy};
use hyperfleet_client::Status;
use secret_store::{Location, ProjectId, SecretId, StorePath};

use super::facts::Facts;
use super::plan::Plan;
use crate::binding::{FieldPath, ValueSource};
use crate::config::{AwsPlace, Checked, Destination, FOLDER, JobStore, StoreKind, VaultPlace};

/// Returns the copies that a run would write for the resource as it is now; none if the adapter tracks no copies.
///
/// # Errors
///
/// The reason why no run can store the pull secret where the resource says.
pub(super) fn planned_copies(config: &Checked, facts: &Facts<'_>) -> Result<BTreeSet<StoredCopy>, String> {
    if !config.tracks_copies {
        return Ok(BTreeSet::new());
    }
    let value = |name: &str| value(config, facts, name);
    let named = |built_in: fn(&ClusterId) -> String| facts.resource.id.parse().ok().as_ref().map(built_in);
    let kubernetes_secret = value(variable::MANAGEMENT_NAMESPACE)
        .zip(value(variable::K8S_SECRET_NAME).or_else(|| named(names::kubernetes_secret_name)))
        .map(|(namespace, name)| StoredCopy::KubernetesSecret { namespace, name });
    if let Some(StoredCopy::KubernetesSecret { namespace, name }) = &kubernetes_secret
        && !(is_dns_label(namespace) && is_dns_subdomain(name))
    {
        return Err(
            "the namespace of the Kubernetes Secret must be a DNS-1123 label, and its name a DNS-1123 subdomain"
                .to_owned(),
        );
    }
    let mirror = mirror_copy(config, facts)?;
    Ok([stored_copy(config, facts)?].into_iter().chain(mirror).chain(kubernetes_secret).collect())
}

/// Returns the copy that a run would write in the first secret store.
///
/// # Errors
///
/// The reason why no run can store the pull secret where the resource says.
pub fn stored_copy(config: &Checked, facts: &Facts<'_>) -> Result<StoredCopy, String> {
    copy_in(config.stores.of(facts.view)?, config, facts)
}

/// Returns the copy that a run would write in the mirror, if there is one.
///
/// # Errors
///
/// The reason why no run can store the pull secret where the resource says.
pub fn mirror_copy(config: &Checked, facts: &Facts<'_>) -> Result<Option<StoredCopy>, String> {
    config.mirror.as_ref().map(|mirror| copy_in(mirror, config, facts)).transpose()
}

/// Returns the copy in a store. A name that the Job refuses must not be recorded: no Job could delete it.
fn copy_in(store: &JobStore, config: &Checked, facts: &Facts<'_>) -> Result<StoredCopy, String> {
    let known = |name: &str| value(config, facts, name);
    let unknown = |name: &str| format!("it is not known where the pull secret is to be stored: {name} has no value");
    let built_in = || facts.resource.id.parse().ok().as_ref().map(names::secret_name);
    let name = known(variable::SECRET_NAME).or_else(built_in).ok_or_else(|| unknown(variable::SECRET_NAME))?;
    let name = name.parse::<SecretId>().map_err(|error| format!("the name of the secret: {error}"))?.to_string();
    match store {
        JobStore::Google => {
            let project = known(variable::GCP_PROJECT_ID).ok_or_else(|| unknown(variable::GCP_PROJECT_ID))?;
            let project = project.parse::<ProjectId>().map_err(|error| format!("the project: {error}"))?.to_string();
            let location = known(variable::GCP_LOCATION).map(|location| location.parse::<Location>()).transpose();
            let location = location.map_err(|error| format!("the location: {error}"))?;
            Ok(StoredCopy::Secret { project, location: location.as_ref().map(ToString::to_string), name })
        }
        JobStore::Vault(VaultPlace { address, namespace, mount, folder }) => Ok(StoredCopy::VaultSecret {
            server: address.to_string(),
            namespace: namespace.as_ref().map(ToString::to_string),
            mount: mount.to_string(),
            folder: chosen(folder, config, facts)?,
            name,
        }),
        JobStore::Aws(AwsPlace { region, folder }) => {
            Ok(StoredCopy::AwsSecret { region: region.to_string(), folder: chosen(folder, config, facts)?, name })
        }
        JobStore::Azure(vault) => Ok(StoredCopy::AzureSecret { vault: vault.to_string(), name }),
    }
}

/// Returns the folder of a resource in its normal form.
fn chosen(folder: &ValueSource, config: &Checked, facts: &Facts<'_>) -> Result<String, String> {
    let text = folder.resolve(facts.view, facts.placeholders(config)).unwrap_or_default();
    let path = text.parse::<StorePath>();
    path.map(|path| path.to_string()).map_err(|error| format!("{FOLDER}: {error}"))
}

/// Adds to a plan's message about a stored pull secret that the resource chooses a folder and its store has none. It is stored all the
/// same: no rotation of a pull secret is to fail for a field that was always without effect there.
pub(super) fn note_folder(config: &Checked, facts: &Facts<'_>, plan: &mut Plan) {
    let is_given = FOLDER.parse::<FieldPath>().is_ok_and(|folder| {
        let chosen = ValueSource { from: vec![folder], value: None };
        chosen.resolve(facts.view, facts.placeholders(config)).is_some()
    });
    let store = match config.stores.of(facts.view).map(JobStore::kind) {
        Ok(StoreKind::Google) => "Google Secret Manager",
        Ok(StoreKind::Azure) => "Azure Key Vault",
        Ok(StoreKind::Vault | StoreKind::Aws) | Err(_) => return,
    };
    let note = format!("; {FOLDER} has no effect: {store} has no folders");
    let available = plan.conditions.iter_mut().find(|condition| condition.kind == names::condition::AVAILABLE);
    // The message of the last report may be repeated.
    let available = available.filter(|it| it.status == Status::True && !it.message.ends_with(&note));
    if let Some(available) = available.filter(|_| is_given && config.tracks_copies) {
        available.message.push_str(&note);
    }
}

/// Returns the value of a variable of the Job's template.
fn value(config: &Checked, facts: &Facts<'_>, name: &str) -> Option<String> {
    let binding = config.bindings.iter().find(|binding| binding.name == name)?;
    binding.resolve(facts.view, facts.placeholders(config))
}

/// Returns the planned copies that no rule of `spec.destinations` allows for a resource of this tenancy.
pub(super) fn refused_copies<'a>(
    rules: Option<&[Destination]>,
    tenancy: &BTreeMap<String, String>,
    planned: &'a BTreeSet<StoredCopy>,
) -> Vec<&'a StoredCopy> {
    let Some(rules) = rules else { return Vec::new() };
    let is_of_tenant = |rule: &&Destination| rule.tenancy.iter().all(|(key, value)| tenancy.get(key) == Some(value));
    let is_allowed = |copy: &StoredCopy| {
        rules.iter().filter(is_of_tenant).any(|rule| match copy {
            StoredCopy::Secret { project, .. } => rule.projects.iter().any(|pattern| matches(pattern, project)),
            StoredCopy::VaultSecret { folder, .. } | StoredCopy::AwsSecret { folder, .. } => {
                rule.folders.iter().any(|pattern| matches(pattern, folder))
            }
            // Resources choose no vault.
            StoredCopy::AzureSecret { .. } => true,
            StoredCopy::KubernetesSecret { namespace, .. } => {
                rule.namespaces.iter().any(|pattern| matches(pattern, namespace))
            }
        })
    };
    planned.iter().filter(|copy| !is_allowed(copy)).collect()
}

/// Matches a whole text against a pattern in which `*` stands for any characters, or none.
fn matches(pattern: &str, text: &str) -> bool {
    let Some((first, rest)) = pattern.split_once('*') else { return pattern == text };
    let Some(mut text) = text.strip_prefix(first) else { return false };
    let Some((middle, last)) = rest.rsplit_once('*') else { return text.ends_with(rest) };
    for piece in middle.split('*') {
        let Some(at) = text.find(piece) else { return false };
        text = text.get(at + piece.len()..).unwrap_or_default();
    }
    text.ends_with(last)
}

#[cfg(test)]
mod tests {
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case("acme-prod", "acme-prod", true)]
    #[case("acme-prod", "acme-prod-2", false)]
    #[case("*", "anything", true)]
    #[case("acme-*", "acme-", true)]
    #[case("acme-*", "attacker-acme-1", false)]
    #[case("*-prod", "acme-prod", true)]
    #[case("*-prod", "acme-prod-x", false)]
    #[case("a*b*c", "a-b-c", true)]
    #[case("a*b*c", "a-c", false)]
    #[case("ab*ba", "aba", false)]
    #[case("a**a", "aa", true)]
    fn patterns(#[case] pattern: &str, #[case] text: &str, #[case] expected: bool) {
        assert_eq!(matches(pattern, text), expected);
    }

    #[test]
    fn a_rule_with_a_tenancy_is_for_resources_of_that_tenant_only() {
        let text = |texts: &[&str]| texts.iter().map(|text| (*text).to_owned()).collect::<Vec<_>>();
        let tenant = |name: &str| BTreeMap::from([("org".to_owned(), name.to_owned())]);
        let rule = |tenancy, projects: &[&str]| Destination {
            tenancy,
            projects: text(projects),
            namespaces: text(&["clusters-*"]),
            ..Destination::default()
        };
        let rules = [rule(tenant("acme"), &["acme-*"]), rule(tenant("beta"), &["beta-*"])];
        let secret =
            |project: &str| StoredCopy::Secret { project: project.to_owned(), location: None, name: "s".to_owned() };
        let refused = |tenancy: &BTreeMap<_, _>, project: &str| {
            refused_copies(Some(&rules), tenancy, &BTreeSet::from([secret(project)])).len()
        };
        assert_eq!(refused(&tenant("acme"), "acme-1"), 0);
        assert_eq!(refused(&tenant("acme"), "beta-1"), 1);
        assert_eq!(refused(&tenant("beta"), "beta-1"), 0);
        assert_eq!(refused(&BTreeMap::new(), "acme-1"), 1);
        assert_eq!(refused_copies(None, &BTreeMap::new(), &BTreeSet::from([secret("any")])).len(), 0);
        assert_eq!(refused_copies(Some(&[]), &BTreeMap::new(), &BTreeSet::from([secret("any")])).len(), 1);
    }
}
