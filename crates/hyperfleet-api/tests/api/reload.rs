//! Grants that are replaced without a restart.

use serde_json::json;

use crate::rig::stream::Stream;
use crate::rig::tokens::{Issuer, granted};
use crate::rig::{Kind, Rig, until};

rules! {
    shared: ;
    own: grants_are_replaced a_configuration_that_cannot_be_used_changes_nothing;
}

struct Fleet {
    rig: Rig,
    issuer: Issuer,
}

impl Fleet {
    async fn new(kind: Kind, subjects: &[&str]) -> Self {
        let issuer = Issuer::start("k").await;
        let rig = Rig::start(kind, &settings(&issuer, subjects)).await;
        Self { rig, issuer }
    }

    fn grant(&self, subjects: &[&str]) {
        self.rig.reconfigure(&settings(&self.issuer, subjects));
    }

    fn token(&self, subject: &str) -> String {
        self.issuer.bearer(json!({ "sub": subject }))
    }

    async fn may_list(&self, subject: &str) -> bool {
        let answer = self.rig.send("GET /clusters", &[("authorization", &self.token(subject))], "").await;
        assert!([200, 403].contains(&answer.status), "{answer}");
        answer.status == 200
    }
}

/// Settings with which these may read.
fn settings(issuer: &Issuer, subjects: &[&str]) -> String {
    let grants = subjects.iter().map(|subject| issuer.grant(subject, "kinds: [Cluster], verbs: [get, list, watch]"));
    granted(&[issuer.settings(", identity_claim: sub")], &grants.collect::<Vec<_>>())
}

async fn grants_are_replaced(kind: Kind) {
    let fleet = Fleet::new(kind, &["jane"]).await;
    assert!(fleet.may_list("jane").await && !fleet.may_list("joe").await);
    let token = fleet.token("jane");
    let mut stream = Stream::open_as(&fleet.rig, &[("authorization", &token)], "/clusters", &[]).await;
    assert_eq!(stream.until_bookmark().await, Vec::<String>::new());
    fleet.grant(&["joe"]);
    until("the new grant", async || fleet.may_list("joe").await).await;
    assert!(!fleet.may_list("jane").await);
    // What was open ends: it was allowed by a grant that is no more.
    while stream.next().await.is_some() {}
    assert!(!fleet.rig.is_stale().await);
}

async fn a_configuration_that_cannot_be_used_changes_nothing(kind: Kind) {
    let fleet = Fleet::new(kind, &["jane"]).await;
    // No YAML, and a server that would trust everybody.
    for (broken, repaired) in [("authorization: [", &["jane", "joe"][..]), ("{}", &["jane"])] {
        fleet.rig.reconfigure(broken);
        until("the refusal", async || fleet.rig.is_stale().await).await;
        assert!(fleet.may_list("jane").await);
        fleet.grant(repaired);
        until("the repair", async || !fleet.rig.is_stale().await).await;
        assert_eq!((fleet.may_list("jane").await, fleet.may_list("joe").await), (true, repaired.len() == 2));
    }
}
