//! Logs what a run would do, and checks what would stop it.

use std::collections::{BTreeMap, BTreeSet};

use docker_config::Digest;
use fleet_model::job::Reason;
use kubernetes::{AppliedSecret, ErrorKind, ObservedSecret, Verb};
use secrecy::{ExposeSecret as _, SecretSlice};
use secret_store::{Permission, Permissions, SecretStore};
use tracing::info;

use crate::decide::Plan;
use crate::decide::kubernetes_secret::{Plan as KubernetesSecretPlan, Step};
use crate::outcome::RunError;
use crate::session::Session;
use crate::settings::{KUBERNETES_SECRET_PHASE, Settings};

use super::phase::Pass;

/// Logs one line of the dry run.
fn log_line(line: &str) {
    info!(operation = "dry-run", "DRY RUN: {line}");
}

/// Logs the plan and checks the permissions that it needs; fails as the run would.
pub(super) async fn report_and_check<S: SecretStore>(
    session: &Session<'_, S>,
    settings: &Settings,
    plan: &Plan,
    secret_exists: bool,
) -> Result<(), RunError> {
    log_line("Skipping secret creation/update operations");
    if plan.actions.is_empty() {
        log_line(&format!("Would change nothing: {}", plan.cause));
        return Ok(());
    }
    let verb = if plan.reason == Reason::SecretDeleted { "delete" } else { "create/update" };
    log_line(&format!("Would {verb} secret: {} ({})", settings.secret, plan.cause));
    for (index, action) in plan.actions.iter().enumerate() {
        log_line(&format!("Step {}: would {action}", index + 1));
    }
    let needed = plan.permissions();
    let answer = permissions(session, &needed, secret_exists).await?;
    for permission in &needed {
        let state = match (answer.missing.contains(permission), answer.unknown.contains(permission)) {
            (true, _) => "missing",
            (false, true) => "not checkable without writing",
            (false, false) => "held",
        };
        log_line(&format!("Permission {}: {state}", session.store.permission_name(*permission)));
    }
    // The first step that the run would fail at.
    match needed.iter().find(|permission| answer.missing.contains(permission)) {
        None => Ok(()),
        Some(permission) => Err(denied(session, *permission)),
    }
}

/// Permissions on a secret that does not exist cannot be queried: the answer would be that none is held.
async fn permissions<S: SecretStore>(
    session: &Session<'_, S>,
    needed: &BTreeSet<Permission>,
    secret_exists: bool,
) -> Result<Permissions, RunError> {
    if !secret_exists {
        return Ok(Permissions { missing: BTreeSet::new(), unknown: needed.clone() });
    }
    let query = async || session.store.permissions(session.secret, needed).await;
    session.caller.call(query).await
}

fn denied<S: SecretStore>(session: &Session<'_, S>, permission: Permission) -> RunError {
    let (path, permission) = (session.store.path(session.secret), session.store.permission_name(permission));
    let message = format!("A real run would fail: permission {permission} on {path} is missing");
    let hint = format!("grant the Job's service account {permission}");
    RunError { hint: Some(hint), ..RunError::new("dry-run", Reason::PermissionDenied, message) }
}

/// Logs the step for the Kubernetes Secret, checks that it is allowed, and has the server validate it.
pub(super) async fn apply(
    pass: &Pass<'_>,
    plan: &KubernetesSecretPlan,
    applied: &AppliedSecret,
    observed: Option<&ObservedSecret>,
) -> Result<(), RunError> {
    let key = &pass.kubernetes_secret.key;
    log_line(&format!("Would {} {}/{} ({})", plan.step, key.namespace, key.name, plan.why()));
    for line in differences(applied, observed) {
        log_line(&line);
    }
    check_access(pass, plan.step).await?;
    match (plan.step, observed) {
        (Step::Create, _) => pass.caller.call(async || pass.cluster.create_secret(key, applied, true).await).await,
        (Step::Apply, Some(observed)) => {
            let attempt = async || match pass.cluster.apply_secret(key, applied, observed, true).await {
                // Another writer at the same moment: a run would observe again.
                Err(error) if error.kind == ErrorKind::Changed => Ok(()),
                other => other,
            };
            pass.caller.call(attempt).await
        }
        _ => Ok(()),
    }
}

/// Logs the step for the Kubernetes Secret, and checks that it is allowed.
pub(super) async fn remove(pass: &Pass<'_>, plan: &KubernetesSecretPlan) -> Result<(), RunError> {
    let key = &pass.kubernetes_secret.key;
    log_line(&format!("Would {} {}/{} ({})", plan.step, key.namespace, key.name, plan.why()));
    check_access(pass, plan.step).await
}

async fn check_access(pass: &Pass<'_>, step: Step) -> Result<(), RunError> {
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
        let access = pass.caller.call(review).await?;
        let state = if access.allowed { "held" } else { "missing" };
        log_line(&format!("Permission to {verb} secrets in namespace {}: {state}", key.namespace));
        if !access.allowed {
            let message = format!("A real run would fail: it may not {verb} secrets in namespace {}", key.namespace);
            let hint = "allow the Job's service account that verb on secrets there (Role, RoleBinding)".to_owned();
            let failed = RunError::new("dry-run", Reason::PermissionDenied, message);
            return Err(RunError { hint: Some(hint), phase: Some(KUBERNETES_SECRET_PHASE), ..failed });
        }
    }
    Ok(())
}

/// Lists the changes: metadata with its values, content only as changed or not.
fn differences(applied: &AppliedSecret, observed: Option<&ObservedSecret>) -> Vec<String> {
    let none = BTreeMap::new();
    let mut lines = Vec::new();
    for (kind, desired, present) in [
        ("label", &applied.labels, observed.map_or(&none, |observed| &observed.labels)),
        ("annotation", &applied.annotations, observed.map_or(&none, |observed| &observed.annotations)),
    ] {
        for (key, value) in desired {
            match present.get(key) {
                None => lines.push(format!("+ {kind} {key}: {value}")),
                Some(old) if old != value => lines.push(format!("~ {kind} {key}: {old} -> {value}")),
                Some(_) => {}
            }
        }
    }
    let digest = |content: &SecretSlice<u8>| Digest::of_bytes(content.expose_secret());
    match observed.and_then(|observed| observed.content.as_ref()) {
        None => lines.push("+ content".to_owned()),
        Some(old) if digest(old) != digest(&applied.content) => lines.push("~ content".to_owned()),
        Some(_) => {}
    }
    lines
}
