//! The end of accounts: disabled, deleted, and the tokens that outlive them.

use std::time::Duration;

use registry_account::probe::Verdict;
use registry_account::{Disables, ErrorKind, Operation, Registry};

use super::subject::Subject;

pub(super) async fn a_deleted_account_is_gone(subject: &Subject<impl Registry>) {
    let name = subject.permitted().await.account.name;
    assert!(subject.registry.delete(&name).await.unwrap());
    assert_eq!(subject.registry.find(&name).await.unwrap(), None);
    assert!(!subject.registry.delete(&name).await.unwrap());
    subject.refused(subject.registry.permit(&name).await, ErrorKind::NotFound);
}

pub(super) async fn a_deletion_whose_answer_was_lost_is_repeated(subject: &Subject<impl Registry>) {
    let name = subject.create().await.account.name;
    subject.lose(Operation::Delete);
    subject.registry.delete(&name).await.unwrap_err();
    assert!(!subject.registry.delete(&name).await.unwrap());
}

pub(super) async fn a_deleted_account_is_refused(subject: &Subject<impl Registry>) {
    let credential = subject.permitted().await;
    assert!(subject.registry.delete(&credential.account.name).await.unwrap());
    assert_eq!(subject.probe(&credential.login()).await.verdict, Verdict::Refused);
    assert!(!subject.pull(&credential.login()).await);
}

/// The stated life is that of tokens in truth: no shorter, or it is not a bound; no longer, or a revocation waits in vain.
pub(super) async fn a_token_outlives_its_account_by_its_life(subject: &Subject<impl Registry>) {
    let credential = subject.permitted().await;
    let bearer = subject.bearer(&credential.login()).await;
    assert!(subject.registry.delete(&credential.account.name).await.unwrap());
    let life = subject.registry.capabilities().token_life;
    subject.advance(life.checked_sub(Duration::from_mins(1)).unwrap());
    assert!(subject.serves(&bearer).await);
    subject.advance(Duration::from_secs(61));
    assert!(!subject.serves(&bearer).await);
}

pub(super) async fn a_disabled_account_is_refused_and_has_its_usage(subject: &Subject<impl Registry>) {
    let since = subject.now();
    let credential = subject.permitted().await;
    let name = &credential.account.name;
    assert!(subject.pull(&credential.login()).await);
    if subject.registry.capabilities().disables == Disables::Never {
        return subject.refused(subject.registry.disable(name).await, ErrorKind::Unsupported);
    }
    subject.registry.disable(name).await.unwrap();
    assert_eq!(subject.probe(&credential.login()).await.verdict, Verdict::Refused);
    assert!(!subject.pull(&credential.login()).await);
    let usage = subject.registry.usage(name, since).await.unwrap();
    assert_eq!((usage.pulls, usage.failed_logins), (1, subject.recorded(1)), "{usage:?}");
    assert!(subject.registry.delete(name).await.unwrap());
}

pub(super) async fn disabling_again_changes_nothing(subject: &Subject<impl Registry>) {
    let credential = subject.permitted().await;
    if subject.registry.capabilities().disables != Disables::Never {
        for _ in 0..2 {
            subject.registry.disable(&credential.account.name).await.unwrap();
            assert_eq!(subject.probe(&credential.login()).await.verdict, Verdict::Refused);
        }
    }
}
