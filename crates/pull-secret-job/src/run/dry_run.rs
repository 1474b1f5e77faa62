//! Telling what a real run would do, and what would stop it.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::Digest;
use fleet_model::job::Reason;
use kubernetes::{AppliedSecret, Fault, ObservedSecret, Verb};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Permission, Permissions, SecretStore};
use tracing::info;

use crate::decide::Plan;
use crate::decide::kubernetes_secret::{Plan as KubernetesSecretPlan, Step};
use crate::ending::{KUBERNETES_SECRET_PHASE, Stop};
use crate::session::Session;
use crate::settings::Settings;

use super::kubernetes_secret::Pass;

/// One line of the dry run.
fn tell(line: &str) {
    info!(operation = "dry-run", "DRY RUN: {line}");
}

/// Prints the plan and checks the permissions that it needs; fails as the real run would.
pub(super) async fn check_and_tell<S: SecretStore>(
    session: &Session<'_, S>,
    settings: &Settings,
    plan: &Plan,
    secret_exists: bool,
) -> Result<(), Stop> {
    tell("Skipping secret creation/update operations");
    if plan.actions.is_empty() {
        tell(&format!("Would change nothing: {}", plan.because));
        return Ok(());
    }
    let verb = if plan.reason == Reason::SecretDeleted { "delete" } else { "create/update" };
    tell(&format!("Would {verb} secret: {} ({})", settings.secret, plan.because));
    for (index, action) in plan.actions.iter().enumerate() {
        tell(&format!("Step {}: would {action}", index + 1));
    }
    let needed = plan.permissions();
    let answer = ask(session, &needed, secret_exists).await?;
    for permission in &needed {
        let standing = match (answer.missing.contains(permission), answer.unknown.contains(permission)) {
            (true, _) => "missing",
            (false, true) => "not checkable without writing",
            (false, false) => "held",
        };
        tell(&format!("Permission {permission}: {standing}"));
    }
    // The first step that the real run would fail at.
    match needed.iter().find(|permission| answer.missing.contains(permission)) {
        None => Ok(()),
        Some(permission) => Err(denied(session, *permission)),
    }
}

/// On a secret that does not exist nothing can be asked: the answer would be that nothing is held.
async fn ask<S: SecretStore>(
    session: &Session<'_, S>,
    needed: &BTreeSet<Permission>,
    secret_exists: bool,
) -> Result<Permissions, Stop> {
    if !secret_exists {
        return Ok(Permissions { missing: BTreeSet::new(), unknown: needed.clone() });
    }
    let ask = async || session.store.permissions(session.secret, needed).await;
    session.caller.call("testIamPermissions", ask).await
}

fn denied<S: SecretStore>(session: &Session<'_, S>, permission: Permission) -> Stop {
    let path = session.store.path(session.secret);
    let message = format!("A real run would fail: permission {permission} on {path} is missing");
    let hint = format!("grant the Job's service account {permission} (or roles/secretmanager.admin)");
    Stop { hint: Some(hint), ..Stop::new("dry-run", Reason::PermissionDenied, message) }
}

/// Prints what would become of the Kubernetes Secret, asks whether that is allowed, and has the server try it.
pub(super) async fn apply(
    pass: &Pass<'_>,
    plan: &KubernetesSecretPlan,
    applied: &AppliedSecret,
    seen: Option<&ObservedSecret>,
) -> Result<(), Stop> {
    let key = &pass.kubernetes_secret.key;
    tell(&format!("Would {} {}/{} ({})", plan.step, key.namespace, key.name, plan.why()));
    for line in differences(applied, seen) {
        tell(&line);
    }
    check_access(pass, plan.step).await?;
    match (plan.step, seen) {
        (Step::Create, _) => {
            pass.caller.call("createSecret", async || pass.cluster.create_secret(key, applied, true).await).await
        }
        (Step::Apply, Some(seen)) => {
            let attempt = async || match pass.cluster.apply_secret(key, applied, seen, true).await {
                // Another writer at this very moment: a real run would look again.
                Err(error) if error.fault == Fault::Changed => Ok(()),
                other => other,
            };
            pass.caller.call("patchSecret", attempt).await
        }
        _ => Ok(()),
    }
}

/// Prints what would become of the Kubernetes Secret, and asks whether that is allowed.
pub(super) async fn remove(pass: &Pass<'_>, plan: &KubernetesSecretPlan) -> Result<(), Stop> {
    let key = &pass.kubernetes_secret.key;
    tell(&format!("Would {} {}/{} ({})", plan.step, key.namespace, key.name, plan.why()));
    check_access(pass, plan.step).await
}

async fn check_access(pass: &Pass<'_>, step: Step) -> Result<(), Stop> {
    let needed: &[Verb] = match step {
        Step::Create => &[Verb::Create],
        Step::Apply => &[Verb::Apply],
        Step::Replace => &[Verb::Delete, Verb::Create],
        Step::Delete => &[Verb::Delete],
        Step::Nothing | Step::Wait => &[],
    };
    let key = &pass.kubernetes_secret.key;
    for verb in needed {
        let review = async || pass.cluster.may(*verb, key).await;
        let access = pass.caller.call("reviewAccess", review).await?;
        let standing = if access.allowed { "held" } else { "missing" };
        tell(&format!("Permission to {verb} secrets in namespace {}: {standing}", key.namespace));
        if !access.allowed {
            let message = format!("A real run would fail: it may not {verb} secrets in namespace {}", key.namespace);
            let hint = "allow the Job's service account that verb on secrets there (Role, RoleBinding)".to_owned();
            let stop = Stop::new("dry-run", Reason::PermissionDenied, message);
            return Err(Stop { hint: Some(hint), phase: KUBERNETES_SECRET_PHASE, ..stop });
        }
    }
    Ok(())
}

/// What would change, metadata by its values, content by nothing but whether it is the same.
fn differences(applied: &AppliedSecret, seen: Option<&ObservedSecret>) -> Vec<String> {
    let none = BTreeMap::new();
    let mut lines = Vec::new();
    for (kind, wanted, present) in [
        ("label", &applied.labels, seen.map_or(&none, |seen| &seen.labels)),
        ("annotation", &applied.annotations, seen.map_or(&none, |seen| &seen.annotations)),
    ] {
        for (key, value) in wanted {
            match present.get(key) {
                None => lines.push(format!("+ {kind} {key}: {value}")),
                Some(old) if old != value => lines.push(format!("~ {kind} {key}: {old} -> {value}")),
                Some(_) => {}
            }
        }
    }
    let digest = |content: &SecretSlice<u8>| Digest::of_bytes(content.expose_secret());
    match seen.and_then(|seen| seen.content.as_ref()) {
        None => lines.push("+ content".to_owned()),
        Some(old) if digest(old) != digest(&applied.content) => lines.push("~ content".to_owned()),
        Some(_) => {}
    }
    lines
}
