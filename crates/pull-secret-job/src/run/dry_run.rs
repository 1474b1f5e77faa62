//! Telling what a real run would do, and what would stop it.

use std::collections::BTreeSet;

use fleet_model::job::Reason;
use secret_store::{Permission, Permissions, SecretStore};
use tracing::info;

use crate::decide::Plan;
use crate::ending::Stop;
use crate::session::Session;
use crate::settings::Settings;

/// Prints the plan and checks the permissions that it needs; fails as the real run would.
pub(super) async fn check_and_tell<S: SecretStore>(
    session: &Session<'_, S>,
    settings: &Settings,
    plan: &Plan,
    secret_exists: bool,
) -> Result<(), Stop> {
    info!(operation = "dry-run", "DRY RUN: Skipping secret creation/update operations");
    if plan.actions.is_empty() {
        info!(operation = "dry-run", "DRY RUN: Would change nothing: {}", plan.because);
        return Ok(());
    }
    let verb = if plan.reason == Reason::SecretDeleted { "delete" } else { "create/update" };
    info!(operation = "dry-run", "DRY RUN: Would {verb} secret: {} ({})", settings.secret, plan.because);
    for (index, action) in plan.actions.iter().enumerate() {
        info!(operation = "dry-run", "DRY RUN: Step {}: would {action}", index + 1);
    }
    let needed = plan.permissions();
    let answer = ask(session, &needed, secret_exists).await?;
    for permission in &needed {
        let standing = match (answer.missing.contains(permission), answer.unknown.contains(permission)) {
            (true, _) => "missing",
            (false, true) => "not checkable without writing",
            (false, false) => "held",
        };
        info!(operation = "dry-run", "DRY RUN: Permission {permission}: {standing}");
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
    session.call("testIamPermissions", async || session.store.permissions(session.secret, needed).await).await
}

fn denied<S: SecretStore>(session: &Session<'_, S>, permission: Permission) -> Stop {
    let path = session.store.path(session.secret);
    let message = format!("A real run would fail: permission {permission} on {path} is missing");
    let mut stop = Stop::new("dry-run", Reason::PermissionDenied, message);
    stop.hint = Some(format!("grant the Job's service account {permission} (or roles/secretmanager.admin)"));
    stop
}
