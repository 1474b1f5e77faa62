//! `pull-secret credentials revoke`: break-glass.

use std::collections::BTreeMap;
use std::process::ExitCode;

use anyhow::bail;
use credentials::credential::{APPROVED_WITHIN, Credential, Record, RegistryName};
use credentials::ledger::{Filter, Ledger, LedgerError, Revocation, Statement};
use credentials::settings::{Checked, CheckedRegistry};
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
    let checked = common::checked(flags)?;
    let ledger = common::ledger(&checked).await?;
    let now = Timestamp::now();
    let Selected { found, left_out } = select(&ledger, target, now).await?;
    if yes {
        // All of them, before the first order.
        found.iter().try_for_each(|credential| common::configured(&checked, &credential.registry).map(drop))?;
    }
    let statement = Statement { actor: &actor, reason: &order.reason, now };
    let registries = capabilities(&checked)?;
    let (mut revoked, mut requested) = (Vec::new(), 0_usize);
    for mut credential in found {
        if yes && !credential.state.is_over() {
            let approval = common::configured(&checked, &credential.registry)?.policy.revocation;
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
    print(&revoked, &left_out, format)?;
    if !left_out.is_empty() {
        let ids: Vec<String> = left_out.iter().map(|credential| credential.id.to_string()).collect();
        output::note(format_args!(
            "not among them, as they were published after what they replace was revoked: {}; revoke these by --credential",
            ids.join(", ")
        ));
    }
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

/// The credentials that are meant by a target.
#[derive(Debug, Default)]
struct Selected {
    found: Vec<Credential>,
    /// Those that came for what an earlier order revoked: the same order again is not about them.
    left_out: Vec<Credential>,
}

/// Reads the credentials that are meant. Those whose account is deleted are shown as well; those that are done with are not.
async fn select(ledger: &Ledger, target: Target, now: Timestamp) -> anyhow::Result<Selected> {
    let mut selected = match target {
        Target { credential: Some(id), .. } => {
            Selected { found: vec![common::find(ledger, id).await?], ..Selected::default() }
        }
        Target { cluster: Some(cluster), .. } => {
            of_all(ledger.list(&Filter { cluster: Some(cluster), ..Filter::default() }).await?, now)
        }
        Target { registry: Some(registry), .. } => {
            of_all(ledger.list(&Filter { registry: Some(registry), ..Filter::default() }).await?, now)
        }
        Target { .. } => bail!("give --cluster, --credential or --registry"),
    };
    selected.found.retain(|credential| !credential.state.is_final());
    Ok(selected)
}

/// Leaves out what was published, or is to be, only after the credential that it replaces was revoked, while that one is not done with.
fn of_all(all: Vec<Credential>, now: Timestamp) -> Selected {
    let open = all.iter().filter(|one| !one.state.is_final());
    let revoked: BTreeMap<CredentialId, Timestamp> =
        open.filter_map(|one| revoked_at(one, now).map(|at| (one.id, at))).collect();
    let is_left_out = |one: &Credential| {
        let before = one.replaces.and_then(|replaced| revoked.get(&replaced));
        // A token is published again with each renewal.
        let Record { published, adopted, .. } = one.record;
        let is_earlier = |revoked: &Timestamp| published.into_iter().chain(adopted).any(|at| at < *revoked);
        !one.state.is_over() && revoked_at(one, now).is_none() && before.is_some_and(|revoked| !is_earlier(revoked))
    };
    let (left_out, found) = all.into_iter().partition(is_left_out);
    Selected { found, left_out }
}

/// Returns the time of the order to revoke a credential: the first person's, where another one has approved it or may do so yet.
fn revoked_at(credential: &Credential, now: Timestamp) -> Option<Timestamp> {
    let Record { order, revocation_request, .. } = &credential.record;
    let ordered = order.as_ref().filter(|order| order.break_glass).map(|order| order.at);
    let requested = revocation_request.as_ref().map(|request| request.at);
    requested.filter(|at| ordered.unwrap_or(now).duration_since(*at) < APPROVED_WITHIN).or(ordered)
}

fn capabilities(checked: &Checked) -> anyhow::Result<BTreeMap<RegistryName, Capabilities>> {
    let of =
        |configured: &CheckedRegistry| Ok((configured.name.clone(), configured.connect()?.registry.capabilities()));
    checked.registries.iter().map(of).collect()
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

fn print(revoked: &[Revoked], left_out: &[Credential], format: OutputFormat) -> anyhow::Result<()> {
    let text = match format {
        OutputFormat::Json => {
            let revoked = revoked.iter().map(|revoked| object(&revoked.credential, revoked.tokens_until, false));
            let left_out = left_out.iter().map(|credential| object(credential, None, true));
            format!("{:#}\n", revoked.chain(left_out).collect::<Value>())
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

fn object(credential: &Credential, tokens_until: Option<Timestamp>, is_left_out: bool) -> Value {
    let mut object = page::object(credential);
    if let Some(members) = object.as_object_mut() {
        members.insert("tokensGoodUntil".to_owned(), json!(tokens_until));
        members.insert("refusedAt".to_owned(), json!(credential.record.dead));
        members.insert("leftOut".to_owned(), json!(is_left_out));
    }
    object
}

#[cfg(test)]
mod tests {
    use credentials::credential::Order;
    use credentials::reason::Reason;
    use credentials::state::State;
    use jiff::SignedDuration;
    use registry_account::MemoryRegistry;
    use rstest::rstest;

    use super::*;

    fn at(minute: i64) -> Timestamp {
        Timestamp::UNIX_EPOCH + SignedDuration::from_mins(minute)
    }

    fn id(number: u128) -> CredentialId {
        format!("00000000-0000-7000-8000-{number:012}").parse().unwrap()
    }

    fn ids(credentials: &[Credential]) -> Vec<CredentialId> {
        credentials.iter().map(|credential| credential.id).collect()
    }

    fn order(minute: i64) -> Order {
        Order { actor: "jane".to_owned(), reason: "leaked".to_owned(), at: at(minute), break_glass: true }
    }

    /// A credential of one cluster, which replaces the one before it.
    fn credential(number: u128, published: Option<i64>, revoked: Option<i64>) -> Credential {
        Credential {
            id: id(number),
            registry: "quay".parse().unwrap(),
            account: format!("hf-{number}").parse().unwrap(),
            state: State::Published,
            reason: Reason::InUse,
            cluster: None,
            replaces: number.checked_sub(1).map(id),
            has_password: true,
            record: Record { published: published.map(at), order: revoked.map(order), ..Record::default() },
        }
    }

    #[rstest]
    #[case::in_use_when_the_one_before_was_revoked(Some(1), None, &[])]
    #[case::came_for_what_was_revoked(Some(3), None, &[1])]
    #[case::is_to_come(None, None, &[1])]
    #[case::revoked_too(Some(3), Some(4), &[])]
    fn what_came_for_a_revoked_credential_is_left_out(
        #[case] published: Option<i64>,
        #[case] revoked: Option<i64>,
        #[case] left_out: &[u128],
    ) {
        let first = credential(0, Some(0), Some(2));
        let selected = of_all(vec![first, credential(1, published, revoked)], at(5));
        assert_eq!(ids(&selected.left_out), left_out.iter().copied().map(id).collect::<Vec<_>>());
        assert_eq!(selected.found.len(), 2 - left_out.len());
    }

    #[test]
    fn a_renewed_token_was_in_use_before() {
        let mut renewed = credential(1, Some(3), None);
        renewed.record.adopted = Some(at(1));
        assert_eq!(of_all(vec![credential(0, Some(0), Some(2)), renewed], at(5)).left_out, []);
    }

    #[rstest]
    #[case::waits_for_another_person(Some(2), None, 10, &[1])]
    #[case::was_approved(Some(2), Some(8), 100, &[1])]
    #[case::has_lapsed(Some(2), None, 62, &[])]
    #[case::had_lapsed(Some(2), Some(90), 100, &[])]
    #[case::was_never_revoked(None, None, 10, &[])]
    fn a_revocation_that_is_requested_counts_from_its_request(
        #[case] requested: Option<i64>,
        #[case] revoked: Option<i64>,
        #[case] now: i64,
        #[case] left_out: &[u128],
    ) {
        let mut first = credential(0, Some(0), revoked);
        first.record.revocation_request = requested.map(order);
        let selected = of_all(vec![first, credential(1, Some(3), None)], at(now));
        assert_eq!(ids(&selected.left_out), left_out.iter().copied().map(id).collect::<Vec<_>>());
    }

    #[test]
    fn a_revocation_that_is_done_with_leaves_nothing_out() {
        let first = Credential { state: State::WaitedOut, ..credential(0, Some(0), Some(2)) };
        let selected = of_all(vec![first, credential(1, Some(3), None)], at(5));
        assert_eq!((selected.found.len(), selected.left_out), (2, Vec::new()));
    }

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
