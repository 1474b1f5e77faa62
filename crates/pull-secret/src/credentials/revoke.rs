//! `pull-secret credentials revoke`: break-glass.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use credentials::credential::{Approval, Credential, Record, RegistryName};
use credentials::ledger::{Filter, Ledger, LedgerError, Revocation, Statement};
use credentials::settings::{Plan, RegistryPlan};
use daemon::output;
use jiff::Timestamp;
use registry_account::{Capabilities, CredentialId, Identities, Registry as _};
use serde_json::{Value, json};

use super::{common, page};
use crate::cli::{OutputFormat, RevokeArguments, Target};

/// A credential that is revoked, and the end of what it opens.
struct Revoked {
    credential: Credential,
    /// The time until which tokens that were issued before may be good; an estimate until the account is deleted. `None` if its
    /// registry is not configured.
    tokens_until: Option<Timestamp>,
}

/// Orders the revocation of credentials, or prints which would be revoked.
pub(super) async fn revoke(arguments: RevokeArguments) -> anyhow::Result<ExitCode> {
    let RevokeArguments { target, order, yes, output: format, flags } = arguments;
    let actor = common::actor(&order)?;
    let plan = common::plan(flags)?;
    let ledger = common::ledger(&plan).await?;
    let found = select(&ledger, target).await?;
    let now = Timestamp::now();
    let statement = Statement { actor: &actor, reason: &order.reason, now };
    let registries = capabilities(&plan)?;
    let (mut revoked, mut requested) = (Vec::new(), 0_usize);
    for mut credential in found {
        if yes && !credential.state.is_over() {
            let approval = approval(&plan, &credential.registry);
            match ledger.revoke(credential.id, approval, &statement).await {
                Ok(Revocation::Requested) => requested += 1,
                // The service was faster.
                Ok(Revocation::Ordered) | Err(LedgerError::TooLate(_)) => {}
                Err(error) => return Err(error.into()),
            }
            credential = common::find(&ledger, credential.id).await?;
        }
        let registry = registries.get(&credential.registry);
        let tokens_until = registry.and_then(|registry| tokens_until(&credential.record, registry, now));
        revoked.push(Revoked { credential, tokens_until });
    }
    print(&revoked, format)?;
    if requested > 0 {
        output::note(format_args!(
            "{requested} are requested and not revoked yet: another person has to run the same command within an hour"
        ));
    }
    output::note(match (yes, revoked.is_empty()) {
        (_, true) => "there is nothing to revoke",
        (false, _) => "nothing was changed: add --yes",
        (true, _) if requested == revoked.len() => "nothing is revoked yet",
        (true, _) => {
            "recorded: the service deletes the accounts before all other work; the same command without --yes shows when the \
             registry has refused each password (REFUSED)"
        }
    });
    Ok(ExitCode::SUCCESS)
}

/// Reads the credentials that are meant. Those whose account is deleted are shown as well; those that are done with are not.
async fn select(ledger: &Ledger, target: Target) -> anyhow::Result<Vec<Credential>> {
    let mut found = match target {
        Target { credential: Some(id), .. } => vec![common::find(ledger, id).await?],
        Target { cluster: Some(cluster), .. } => {
            without_replacements(ledger.list(&Filter { cluster: Some(cluster), ..Filter::default() }).await?)
        }
        Target { registry: Some(registry), .. } => {
            without_replacements(ledger.list(&Filter { registry: Some(registry), ..Filter::default() }).await?)
        }
        Target { .. } => bail!("give --cluster, --credential or --registry"),
    };
    found.retain(|credential| !credential.state.is_final());
    Ok(found)
}

/// Leaves out what replaces a credential that is revoked already: the order was about that one.
fn without_replacements(mut found: Vec<Credential>) -> Vec<Credential> {
    let is_revoked = |credential: &Credential| credential.record.order.as_ref().is_some_and(|order| order.break_glass);
    let revoked: Vec<CredentialId> = found.iter().filter(|found| is_revoked(found)).map(|found| found.id).collect();
    found.retain(|found| is_revoked(found) || found.replaces.is_none_or(|replaced| !revoked.contains(&replaced)));
    found
}

/// Returns the condition for revocations at a registry.
fn approval(plan: &Plan, registry: &RegistryName) -> Approval {
    let planned = plan.registries.iter().find(|planned| planned.name == *registry);
    planned.map_or(Approval::None, |planned| planned.policy.revocation)
}

fn capabilities(plan: &Plan) -> anyhow::Result<BTreeMap<RegistryName, Capabilities>> {
    let of = |planned: &RegistryPlan| Ok((planned.name.clone(), planned.connect()?.registry.capabilities()));
    plan.registries.iter().map(of).collect()
}

/// Returns the time until which tokens that were issued before may be good. A minted token ends by itself; the password of an account
/// may end, too, but its account is deleted before.
fn tokens_until(record: &Record, registry: &Capabilities, now: Timestamp) -> Option<Timestamp> {
    let end = match registry.identities {
        Identities::Minted => record.expires,
        Identities::Accounts | Identities::Passwords => record.deleted,
    };
    end.unwrap_or(now).checked_add(registry.token_life).ok()
}

fn print(revoked: &[Revoked], format: OutputFormat) -> anyhow::Result<()> {
    let text = match format {
        OutputFormat::Json => {
            let object = |revoked: &Revoked| {
                let mut object = page::object(&revoked.credential);
                if let Some(members) = object.as_object_mut() {
                    members.insert("tokensGoodUntil".to_owned(), json!(revoked.tokens_until));
                    members.insert("refusedAt".to_owned(), json!(revoked.credential.record.dead));
                }
                object
            };
            format!("{:#}\n", revoked.iter().map(object).collect::<Value>())
        }
        OutputFormat::Table => {
            let row = |Revoked { credential, tokens_until }: &Revoked| {
                let record = &credential.record;
                let about = if record.deleted.is_none() { "about " } else { "" };
                let until = tokens_until.map_or_else(|| "not known".to_owned(), |until| format!("{about}{until}"));
                [
                    credential.id.to_string(),
                    credential.registry.to_string(),
                    credential.account.to_string(),
                    credential.cluster.as_ref().map_or_else(|| "-".to_owned(), |cluster| output::plain(&cluster.id)),
                    credential.state.to_string(),
                    page::time(record.deleted),
                    page::time(record.dead),
                    until,
                ]
            };
            let header = ["ID", "REGISTRY", "ACCOUNT", "CLUSTER", "STATE", "DELETED", "REFUSED", "TOKENS GOOD UNTIL"];
            output::table(header, revoked.iter().map(row))
        }
    };
    output::print(text)?;
    Ok(())
}

#[cfg(test)]
mod tests {
    use registry_account::MemoryRegistry;
    use rstest::rstest;

    use super::*;

    #[rstest]
    #[case::not_deleted_yet(Identities::Accounts, None, "2026-11-29T01:00:00Z")]
    #[case::deleted(Identities::Accounts, Some("2026-11-29T00:30:00Z"), "2026-11-29T00:30:00Z")]
    #[case::minted(Identities::Minted, None, "2027-02-01T00:00:00Z")]
    fn the_password_of_an_account_does_not_lengthen_a_revocation(
        #[case] identities: Identities,
        #[case] deleted: Option<&str>,
        #[case] end: &str,
    ) {
        let time = |text: &str| text.parse::<Timestamp>().unwrap();
        let record =
            Record { deleted: deleted.map(time), expires: Some(time("2027-02-01T00:00:00Z")), ..Record::default() };
        let registry = Capabilities { identities, ..MemoryRegistry::new().capabilities() };
        let found = tokens_until(&record, &registry, time("2026-11-29T01:00:00Z"));
        assert_eq!(found, time(end).checked_add(registry.token_life).ok());
    }
}
