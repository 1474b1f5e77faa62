//! The credentials service.

use credentials::settings::RegistryKind;
use registry_account::{AccountError, ErrorKind, Operation};
use rstest::rstest;

use super::super::super::State;
use super::super::super::facts::{ApiAccess, CredentialsFacts, Facts, LedgerFacts, RegistryFacts};
use super::{Expected, check, denied, unauthenticated};

pub(super) fn facts() -> CredentialsFacts {
    CredentialsFacts {
        api: Ok(ApiAccess { list: Ok(()), read: Ok(()), update: Ok(()) }),
        ledger: Ok(LedgerFacts { is_current: true, passwords: 7, missing_keys: Vec::new(), old: 0 }),
        registries: vec![RegistryFacts { name: "quay".to_owned(), kind: RegistryKind::Quay, answer: Ok(()) }],
    }
}

fn of(facts: &mut Facts) -> &mut CredentialsFacts {
    facts.credentials.as_mut().unwrap().as_mut().unwrap()
}

fn access(facts: &mut Facts) -> &mut ApiAccess {
    of(facts).api.as_mut().unwrap()
}

fn ledger(facts: &mut Facts) -> &mut LedgerFacts {
    of(facts).ledger.as_mut().unwrap()
}

fn refused(facts: &mut Facts, kind: ErrorKind) {
    of(facts).registries[0].answer = Err(AccountError::new(Operation::Find, "fleet+hf-a", kind));
}

fn refused_at_harbor(facts: &mut Facts, kind: ErrorKind) {
    of(facts).registries[0].kind = RegistryKind::Harbor;
    refused(facts, kind);
}

fn refused_at_red_hat(facts: &mut Facts, kind: ErrorKind) {
    of(facts).registries[0].kind = RegistryKind::RedHat;
    refused(facts, kind);
}

#[rstest]
#[case::none(
    |facts: &mut Facts| facts.credentials = None,
    ("settings", State::Skipped, "no configuration of the credentials service", "pull-secret doctor --credentials-config FILE")
)]
#[case::settings(
    |facts: &mut Facts| facts.credentials = Some(Err("registries: must name one or more".to_owned())),
    ("settings", State::Failed, "registries: must name one or more", "pull-secret credentials config-dump")
)]
#[case::client(
    |facts: &mut Facts| of(facts).api = Err("the file with authorities cannot be read".to_owned()),
    ("settings", State::Failed, "authorities cannot be read", "pull-secret credentials config-dump")
)]
#[case::list(
    |facts: &mut Facts| access(facts).list = denied(),
    ("list clusters", State::Failed, "no grant of the caller", "verbs: [get, list, watch, update], reads_pull_secrets: true")
)]
#[case::read(
    |facts: &mut Facts| access(facts).read = denied(),
    ("read pull secrets", State::Failed, "no grant of the caller", "credentials.enabled")
)]
#[case::update(
    |facts: &mut Facts| access(facts).update = denied(),
    ("update clusters", State::Failed, "no grant of the caller", "credentials.enabled")
)]
#[case::token_of_the_api(
    |facts: &mut Facts| access(facts).update = unauthenticated(),
    ("update clusters", State::Failed, "it is of another issuer", "clients.hyperfleet_api.auth.token_path")
)]
#[case::database(
    |facts: &mut Facts| of(facts).ledger = Err("there is no ledger credentials.db".to_owned()),
    ("ledger", State::Failed, "there is no ledger credentials.db", "# database, keys")
)]
#[case::schema(
    |facts: &mut Facts| ledger(facts).is_current = false,
    ("ledger", State::Warning, "its schema is not up to date", "pull-secret credentials serve")
)]
#[case::missing_key(
    |facts: &mut Facts| ledger(facts).missing_keys = vec!["2026-05".to_owned()],
    ("keys", State::Failed, "not configured: 2026-05", "# keys: put them back")
)]
#[case::old_key(
    |facts: &mut Facts| ledger(facts).old = 3,
    ("keys", State::Warning, "3 passwords are sealed with another key than the first", "pull-secret credentials serve")
)]
#[case::token(
    |facts: &mut Facts| refused(facts, ErrorKind::Unauthenticated),
    ("registry quay", State::Failed, "not authenticated", "token_file: docs/guides/registries/quay.md, step 3")
)]
#[case::organization(
    |facts: &mut Facts| refused(facts, ErrorKind::PermissionDenied),
    ("registry quay", State::Failed, "permission denied", "organization and token_file")
)]
#[case::certificate(
    |facts: &mut Facts| refused_at_red_hat(facts, ErrorKind::Unauthenticated),
    ("registry quay", State::Failed, "not authenticated", "cert_file and key_file: docs/guides/registries/red_hat.md")
)]
#[case::partner(
    |facts: &mut Facts| refused_at_red_hat(facts, ErrorKind::PermissionDenied),
    ("registry quay", State::Failed, "permission denied", "partner, cert_file and key_file")
)]
#[case::files(
    |facts: &mut Facts| refused_at_red_hat(facts, ErrorKind::Invalid),
    ("registry quay", State::Failed, "invalid", "url, partner, ca_file, cert_file and key_file")
)]
#[case::handshake(
    |facts: &mut Facts| refused_at_red_hat(facts, ErrorKind::Unavailable),
    ("registry quay", State::Failed, "unavailable", "url, partner, ca_file, cert_file and key_file")
)]
#[case::password(
    |facts: &mut Facts| refused_at_harbor(facts, ErrorKind::Unauthenticated),
    ("registry quay", State::Failed, "not authenticated", "password_file: docs/guides/registries/harbor.md, steps 2 and 3")
)]
#[case::user(
    |facts: &mut Facts| refused_at_harbor(facts, ErrorKind::PermissionDenied),
    ("registry quay", State::Failed, "permission denied", "project and username")
)]
#[case::project(
    |facts: &mut Facts| refused_at_harbor(facts, ErrorKind::NotPrepared),
    ("registry quay", State::Failed, "is not set up", "project and username")
)]
#[case::network(
    |facts: &mut Facts| refused(facts, ErrorKind::Unavailable),
    ("registry quay", State::Failed, "unavailable", "url, ca_file")
)]
fn a_fault_is_named_with_the_command_that_fixes_it(#[case] change: fn(&mut Facts), #[case] expected: Expected) {
    check(change, expected);
}
