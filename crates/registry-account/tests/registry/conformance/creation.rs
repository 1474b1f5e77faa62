//! Creation, permission and probes.

use std::collections::BTreeSet;
use std::sync::Arc;

use registry_account::probe::Verdict;
use registry_account::{Disables, ErrorKind, Lists, Login, NewAccount, Operation, Passwords, Registry};
use secrecy::ExposeSecret as _;
use tokio::task::JoinSet;

use super::subject::{Subject, other_credential};
use crate::rig::new_account;

pub(super) async fn a_created_account_is_found_as_it_was_sent(subject: &Subject<impl Registry>) {
    let new = new_account();
    let created = subject.create().await;
    assert_eq!(created.account.name, new.name);
    assert_eq!(created.account.login, subject.registry.login(&new.name));
    assert_eq!(created.account.credential, Some(new.credential));
    assert_eq!(created.account.description, new.description);
    assert!(created.account.created.is_some() && !created.account.disabled);
    assert!(!created.password.expose_secret().is_empty());
    assert_eq!(subject.registry.find(&new.name).await.unwrap(), Some(created.account));
}

pub(super) async fn a_created_account_may_pull_as_stated(subject: &Subject<impl Registry>) {
    let login = subject.create().await.login();
    let pulls = subject.registry.capabilities().new_accounts_pull;
    let expected = if pulls { Verdict::Pulls } else { Verdict::NotPermitted };
    assert_eq!(subject.probe(&login).await.verdict, expected);
}

pub(super) async fn a_permitted_account_pulls(subject: &Subject<impl Registry>) {
    let login = subject.permitted().await.login();
    let finding = subject.probe(&login).await;
    assert_eq!(finding.verdict, Verdict::Pulls, "{finding}");
    assert!(subject.pull(&login).await);
}

pub(super) async fn permitting_again_changes_nothing(subject: &Subject<impl Registry>) {
    let credential = subject.permitted().await;
    subject.registry.permit(&credential.account.name).await.unwrap();
    assert_eq!(subject.probe(&credential.login()).await.verdict, Verdict::Pulls);
}

pub(super) async fn creating_again_returns_the_same_account(subject: &Subject<impl Registry>) {
    let (first, second) = (subject.permitted().await, subject.create().await);
    assert_eq!(first.account, second.account);
    assert_eq!(subject.probe(&second.login()).await.verdict, Verdict::Pulls);
    // Where a password is shown once, the account has another one from now on.
    let is_same = first.password.expose_secret() == second.password.expose_secret();
    assert_eq!(is_same, subject.registry.capabilities().passwords == Passwords::Kept);
    let expected = if is_same { Verdict::Pulls } else { Verdict::Refused };
    assert_eq!(subject.probe(&first.login()).await.verdict, expected);
}

pub(super) async fn of_many_creators_with_one_credential_all_get_one_account(
    subject: &Subject<impl Registry + 'static>,
) {
    let mut creators = JoinSet::new();
    for _ in 0..10 {
        let (registry, new) = (Arc::clone(&subject.registry), new_account());
        creators.spawn(async move { registry.create(&new).await.unwrap() });
    }
    let created = creators.join_all().await;
    assert!(created.iter().all(|one| one.account == created[0].account));
    let listed = subject.registry.list(None).await.unwrap().accounts.len();
    assert_eq!(listed, usize::from(subject.registry.capabilities().lists == Lists::All));
    let mut accepted = BTreeSet::new();
    for one in &created {
        if subject.probe(&one.login()).await.verdict != Verdict::Refused {
            accepted.insert(one.password.expose_secret());
        }
    }
    assert_eq!(accepted.len(), 1, "one password is the account's");
}

pub(super) async fn an_account_whose_answer_was_lost_is_created_again(subject: &Subject<impl Registry>) {
    subject.lose(Operation::Create);
    let error = subject.registry.create(&new_account()).await.unwrap_err();
    assert!(error.kind == ErrorKind::Unavailable || error.kind == ErrorKind::TimedOut, "{error}");
    let found = subject.registry.find(&new_account().name).await.unwrap().unwrap();
    let login = subject.permitted().await.login();
    assert_eq!(subject.probe(&login).await.verdict, Verdict::Pulls);
    assert_eq!(found.credential, Some(new_account().credential));
}

pub(super) async fn a_permission_whose_answer_was_lost_is_given_again(subject: &Subject<impl Registry>) {
    let credential = subject.create().await;
    subject.lose(Operation::Permit);
    subject.registry.permit(&credential.account.name).await.unwrap_err();
    subject.registry.permit(&credential.account.name).await.unwrap();
    assert_eq!(subject.probe(&credential.login()).await.verdict, Verdict::Pulls);
}

pub(super) async fn a_name_of_another_credential_is_not_taken(subject: &Subject<impl Registry>) {
    let before = subject.permitted().await;
    let other = NewAccount { credential: other_credential(), ..new_account() };
    subject.refused(subject.registry.create(&other).await, ErrorKind::NameTaken);
    assert_eq!(subject.probe(&before.login()).await.verdict, Verdict::Pulls);
    let found = subject.registry.find(&other.name).await.unwrap().unwrap();
    assert_eq!(found.credential, before.account.credential);
}

pub(super) async fn a_name_of_a_stranger_is_not_taken(subject: &Subject<impl Registry>) {
    let new = new_account();
    subject.add_stranger(&new.name).await;
    subject.refused(subject.registry.create(&new).await, ErrorKind::NameTaken);
    assert_eq!(subject.registry.find(&new.name).await.unwrap().unwrap().credential, None);
}

pub(super) async fn an_account_that_was_kept_otherwise_is_not_returned(subject: &Subject<impl Registry>) {
    subject.garble();
    subject.refused(subject.registry.create(&new_account()).await, ErrorKind::Corrupt);
    // The same call again does not make it good.
    let again = subject.registry.create(&new_account()).await.unwrap_err();
    assert!(matches!(again.kind, ErrorKind::Corrupt | ErrorKind::NameTaken), "{again}");
}

pub(super) async fn a_description_that_is_too_long_is_refused(subject: &Subject<impl Registry>) {
    let longest = subject.registry.capabilities().max_description;
    let with = |length: usize| NewAccount { description: "é".repeat(length), ..new_account() };
    subject.refused(subject.registry.create(&with(longest + 1)).await, ErrorKind::Invalid);
    assert_eq!(subject.registry.find(&new_account().name).await.unwrap(), None);
    subject.registry.create(&with(longest)).await.unwrap();
}

pub(super) async fn a_wrong_password_is_refused(subject: &Subject<impl Registry>) {
    let right = subject.permitted().await.login();
    let wrong = Login { password: "WRONG".into(), ..right };
    assert_eq!(subject.probe(&wrong).await.verdict, Verdict::Refused);
    assert!(!subject.pull(&wrong).await);
}

pub(super) async fn an_unknown_account_is_not_found(subject: &Subject<impl Registry>) {
    let (registry, name) = (&subject.registry, new_account().name);
    assert_eq!(registry.find(&name).await.unwrap(), None);
    subject.refused(registry.permit(&name).await, ErrorKind::NotFound);
    let disables = registry.capabilities().disables != Disables::Never;
    let kind = if disables { ErrorKind::NotFound } else { ErrorKind::Unsupported };
    subject.refused(registry.disable(&name).await, kind);
    assert!(!registry.delete(&name).await.unwrap());
    assert_eq!(subject.usage(&name, subject.now()).await.map_or(0, |usage| usage.pulls), 0);
    let login = Login { username: registry.login(&name), password: "NONE".into() };
    assert_eq!(subject.probe(&login).await.verdict, Verdict::Refused);
}

pub(super) async fn an_exhausted_rate_says_so(subject: &Subject<impl Registry>) {
    subject.exhaust(Operation::Create);
    subject.refused(subject.registry.create(&new_account()).await, ErrorKind::QuotaExceeded);
    subject.create().await;
}
