//! Usage of accounts.

use std::collections::BTreeSet;
use std::time::Duration;

use registry_account::{Login, Registry, Usage};

use super::subject::{SOURCE, Subject};

/// Longer than the precision of a registry's log.
const A_MINUTE: Duration = Duration::from_mins(1);

pub(super) async fn an_account_that_was_not_used_has_no_usage(subject: &Subject<impl Registry>) {
    let since = subject.now();
    let name = subject.permitted().await.account.name;
    assert_eq!(subject.usage(&name, since).await.unwrap_or_else(Usage::none), Usage::none());
}

pub(super) async fn pulls_are_counted_with_their_repositories(subject: &Subject<impl Registry>) {
    let since = subject.now();
    let credential = subject.permitted().await;
    for _ in 0..3 {
        subject.advance(A_MINUTE);
        assert!(subject.pull(&credential.login()).await);
    }
    let Some(usage) = subject.usage(&credential.account.name, since).await else { return };
    assert_eq!((usage.pulls, usage.failed_logins, usage.requests), (3, 0, 1));
    assert_eq!(usage.repositories, BTreeSet::from([subject.image().repository.to_string()]));
    let (first, last) = (usage.first_pull.unwrap(), usage.last_pull.unwrap());
    assert!(since < first && first < last && last <= subject.now(), "{usage:?}");
}

pub(super) async fn probes_are_not_counted(subject: &Subject<impl Registry>) {
    let since = subject.now();
    let credential = subject.permitted().await;
    subject.probe(&credential.login()).await;
    subject.probe(&Login { password: "WRONG".into(), ..credential.login() }).await;
    let Some(usage) = subject.usage(&credential.account.name, since).await else { return };
    assert_eq!((usage.pulls, usage.failed_logins), (0, 0), "{usage:?}");
}

pub(super) async fn failed_logins_name_their_sources(subject: &Subject<impl Registry>) {
    let since = subject.now();
    let credential = subject.permitted().await;
    assert!(!subject.pull(&Login { password: "WRONG".into(), ..credential.login() }).await);
    let Some(usage) = subject.usage(&credential.account.name, since).await else { return };
    let recorded = subject.recorded(1);
    assert_eq!((usage.pulls, usage.failed_logins), (0, recorded));
    assert_eq!(usage.failed_login_sources, if recorded > 0 { BTreeSet::from([SOURCE]) } else { BTreeSet::new() });
    // A registry's log may have whole seconds.
    let is_recent = usage.last_failed_login.map(|at| at.as_second() >= since.as_second());
    assert_eq!(is_recent, (recorded > 0).then_some(true), "{usage:?}");
}

pub(super) async fn older_usage_is_left_out(subject: &Subject<impl Registry>) {
    let credential = subject.permitted().await;
    assert!(subject.pull(&credential.login()).await);
    subject.advance(A_MINUTE);
    let since = subject.now();
    let Some(usage) = subject.usage(&credential.account.name, since).await else { return };
    assert_eq!(usage.pulls, 0, "{usage:?}");
}
