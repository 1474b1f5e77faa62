//! Checks in front of the service: token, scripted faults, permissions.

use std::collections::BTreeSet;

use jiff::Timestamp;

use super::entra::Entra;
use super::faults::{Aim, Effect, Fault};
use super::operation::{Operation, Permission};
use super::refusal::Refusal;
use super::settings::Settings;
use crate::scripted::Script;

/// The checks and what they remember.
#[derive(Debug)]
pub(crate) struct Gate {
    pub(crate) entra: Entra,
    pub(crate) faults: Script<Fault>,
}

impl Gate {
    pub(crate) fn new(settings: &Settings) -> Self {
        let mut faults = Script::default();
        settings.faults.iter().cloned().for_each(|fault| faults.add(fault));
        Self { entra: Entra::new(settings), faults }
    }

    /// Lets a call for `secret` pass, perhaps with something to be done to it afterwards, or refuses it.
    pub(crate) fn check(
        &mut self,
        now: Timestamp,
        operation: Operation,
        secret: &str,
        authorization: Option<&str>,
    ) -> Result<Option<Effect>, Refusal> {
        let identity = operation.permission().map(|needed| {
            let token = bearer(authorization)?;
            let identity = self.entra.identity(now, token)?;
            let granted = check_permission(operation, needed, &identity.client_id, &identity.permissions);
            Ok::<_, Refusal>(granted)
        });
        let granted = identity.transpose()?;
        let effect = self.faults.strike(&Aim { operation, secret: secret.to_owned() });
        match effect {
            Some(Effect::Refuse { answer, retry_after }) => return Err(answer.refusal(secret, retry_after)),
            Some(effect) if !effect.commits() => return Ok(Some(effect)),
            _ => {}
        }
        granted.transpose()?;
        Ok(effect)
    }
}

fn bearer(authorization: Option<&str>) -> Result<&str, Refusal> {
    match authorization.and_then(|value| value.split_once(' ')) {
        Some((scheme, token)) if scheme.eq_ignore_ascii_case("bearer") => Ok(token.trim()),
        _ => Err(Refusal::unauthorized("Request is missing a Bearer or PoP token.")),
    }
}

fn check_permission(
    operation: Operation,
    needed: Permission,
    client: &str,
    granted: &BTreeSet<Permission>,
) -> Result<(), Refusal> {
    if granted.contains(&needed) {
        return Ok(());
    }
    let message = format!(
        "Caller is not authorized to perform action on resource.\r\nCaller: appid={client}\r\nAction: '{}'",
        operation.action()
    );
    Err(Refusal::forbidden("ForbiddenByRbac", message))
}
