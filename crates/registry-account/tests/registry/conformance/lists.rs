//! Lists of accounts.

use std::collections::BTreeSet;

use registry_account::{AccountName, ListedAccount, Lists, NewAccount, Registry};

use super::subject::Subject;
use crate::rig::new_account;

/// More than a page of the registry in memory.
const MANY: usize = 120;

/// Every account on every page; none where the registry has no list.
async fn listed(subject: &Subject<impl Registry>) -> Vec<ListedAccount> {
    let (mut all, mut page) = (Vec::new(), None::<String>);
    for _ in 0..10 {
        let listed = subject.registry.list(page.as_deref()).await.unwrap();
        all.extend(listed.accounts);
        page = listed.next;
        if page.is_none() {
            return all;
        }
    }
    panic!("the list has no end");
}

pub(super) async fn an_empty_registry_lists_nothing(subject: &Subject<impl Registry>) {
    assert_eq!(listed(subject).await, []);
}

pub(super) async fn each_account_is_listed_once(subject: &Subject<impl Registry>) {
    let names: BTreeSet<AccountName> = (0..MANY).map(|number| format!("hf-{number}").parse().unwrap()).collect();
    for name in &names {
        subject.registry.create(&NewAccount { name: name.clone(), ..new_account() }).await.unwrap();
    }
    let listed = listed(subject).await;
    if subject.registry.capabilities().lists == Lists::Nothing {
        return assert_eq!(listed, []);
    }
    assert_eq!(listed.len(), MANY);
    let shown = |account: &ListedAccount| account.credential.is_none_or(|id| id == new_account().credential);
    assert!(listed.iter().all(|account| account.created.is_some() && shown(account)));
    assert_eq!(listed.into_iter().map(|account| account.name).collect::<BTreeSet<_>>(), names);
}

pub(super) async fn a_deleted_account_is_not_listed(subject: &Subject<impl Registry>) {
    let name = subject.create().await.account.name;
    assert_eq!(listed(subject).await.len(), usize::from(subject.registry.capabilities().lists == Lists::All));
    subject.registry.delete(&name).await.unwrap();
    assert_eq!(listed(subject).await, []);
}
