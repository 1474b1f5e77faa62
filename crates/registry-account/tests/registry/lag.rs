//! The registry in memory beyond the contract: scripted faults, and lists that lag.

use registry_account::probe::{Cause, Finding, Place, Verdict};
use registry_account::{AccountName, ErrorKind, Fault, MemoryRegistry, NewAccount, Operation, Registry as _};
use rstest::rstest;

use crate::rig::{call, credential, image, name, new_account};

async fn attempt(registry: &MemoryRegistry, operation: Operation) -> Option<ErrorKind> {
    call(registry, operation).await.err().map(|error| error.kind)
}

#[rstest]
#[case(Operation::Create)]
#[case(Operation::Find)]
#[case(Operation::Permit)]
#[case(Operation::Usage)]
#[case(Operation::Disable)]
#[case(Operation::Delete)]
#[case(Operation::List)]
#[tokio::test]
async fn a_fault_comes_once(#[case] operation: Operation) {
    let registry = MemoryRegistry::new();
    registry.create(&new_account()).await.unwrap();
    registry.inject(operation, Fault::Before(ErrorKind::QuotaExceeded));
    registry.inject(operation, Fault::After(ErrorKind::TimedOut));
    assert_eq!(attempt(&registry, operation).await, Some(ErrorKind::QuotaExceeded));
    assert_eq!(attempt(&registry, operation).await, Some(ErrorKind::TimedOut));
    assert_eq!(attempt(&registry, operation).await, None);
}

#[tokio::test]
async fn a_fault_before_does_nothing_and_one_after_has_done_it() {
    let registry = MemoryRegistry::new();
    registry.inject(Operation::Create, Fault::Before(ErrorKind::Unavailable));
    registry.create(&new_account()).await.unwrap_err();
    assert_eq!(registry.find(&name()).await.unwrap(), None);
    registry.inject(Operation::Create, Fault::After(ErrorKind::Unavailable));
    registry.create(&new_account()).await.unwrap_err();
    assert!(registry.find(&name()).await.unwrap().is_some());
    registry.inject(Operation::Delete, Fault::After(ErrorKind::Unavailable));
    registry.delete(&name()).await.unwrap_err();
    assert!(!registry.delete(&name()).await.unwrap());
}

#[tokio::test]
async fn a_list_lags_until_it_is_let_go() {
    let registry = MemoryRegistry::new();
    registry.create(&new_account()).await.unwrap();
    registry.lag_lists(true);
    let other: AccountName = "hf-two".parse().unwrap();
    registry.create(&NewAccount { name: other.clone(), ..new_account() }).await.unwrap();
    registry.delete(&name()).await.unwrap();
    let names = async || {
        let listed = registry.list(None).await.unwrap();
        listed.accounts.into_iter().map(|account| account.name).collect::<Vec<_>>()
    };
    assert_eq!(names().await, [name()]);
    registry.lag_lists(false);
    assert_eq!(names().await, [other]);
}

/// Quay would create it, and revive its tokens.
#[tokio::test]
async fn a_name_that_was_deleted_is_spent() {
    let registry = MemoryRegistry::new();
    registry.create(&new_account()).await.unwrap();
    registry.delete(&name()).await.unwrap();
    assert_eq!(registry.create(&new_account()).await.unwrap_err().kind, ErrorKind::NameTaken);
    assert_eq!(credential(), new_account().credential);
}

#[tokio::test]
async fn a_probe_has_the_finding_that_was_injected() {
    let registry = MemoryRegistry::new();
    let login = registry.create(&new_account()).await.unwrap().login();
    let finding = Finding { verdict: Verdict::Inconclusive, place: Place::Registry, cause: Cause::NoAnswer };
    registry.inject_finding(finding);
    assert_eq!(registry.probe(&login, &image()).await, finding);
    assert_eq!(registry.probe(&login, &image()).await.verdict, Verdict::NotPermitted);
}
