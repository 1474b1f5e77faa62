//! Permissions of an identity, by review and by trying.

use k8s_openapi::api::authentication::v1::{TokenRequest, TokenRequestSpec};
use k8s_openapi::api::core::v1::ServiceAccount;
use k8s_openapi::api::rbac::v1::{Role, RoleBinding};
use kube::api::PostParams;
use kubernetes::{ErrorKind, NamespaceSummary, Operation, SecretKey, Verb};
use rstest::rstest;
use serde_json::json;

use crate::rig::{Kind, Rig, until};
use crate::secrets::secret;

impl Rig {
    /// A token of a new ServiceAccount that may do everything to the Secret `pull` but create it.
    async fn token(&self) -> String {
        drop(self.create::<ServiceAccount>(json!({"metadata": {"name": "job"}})).await);
        let verbs = ["get", "patch", "delete"];
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["pull"], "verbs": verbs});
        drop(self.create::<Role>(json!({"metadata": {"name": "job"}, "rules": [rule]})).await);
        let binding = json!({
            "metadata": {"name": "job"},
            "roleRef": {"apiGroup": "rbac.authorization.k8s.io", "kind": "Role", "name": "job"},
            "subjects": [{"kind": "ServiceAccount", "name": "job", "namespace": self.namespace}],
        });
        drop(self.create::<RoleBinding>(binding).await);
        let request = TokenRequest { spec: TokenRequestSpec::default(), ..TokenRequest::default() };
        let accounts = self.api::<ServiceAccount>();
        let request = accounts.create_token_request("job", &PostParams::default(), &request).await.unwrap();
        request.status.unwrap().token
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn an_administrator_is_allowed_everything(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    for verb in [Verb::Get, Verb::Create, Verb::Apply, Verb::Delete] {
        assert!(rig.cluster.may(verb, &rig.key()).await.unwrap().allowed, "{verb}");
    }
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_role_for_one_name_is_reviewed_as_it_is_enforced(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let limited = rig.with_token(&rig.token().await).await;
    let key = rig.key();
    let other = SecretKey { name: "other".to_owned(), ..key.clone() };
    // A real server's authorizer learns of the role a little later.
    until("the permission holds", async || limited.may(Verb::Get, &key).await.unwrap().allowed.then_some(())).await;
    let allowed = limited.may(Verb::Get, &key).await.unwrap();
    assert!(allowed.reason.is_some_and(|reason| reason.contains("Role \"job\"")));
    for (verb, key, is_allowed) in [
        (Verb::Apply, &key, true),
        (Verb::Delete, &key, true),
        (Verb::Create, &key, false),
        (Verb::Get, &other, false),
        (Verb::Delete, &other, false),
    ] {
        assert_eq!(limited.may(verb, key).await.unwrap().allowed, is_allowed, "{verb} {key}");
    }
    assert!(limited.find_secret(&key).await.unwrap().is_none());
    let refused = limited.create_secret(&key, &secret("a"), false).await.unwrap_err();
    assert_eq!((refused.kind, refused.hint().is_some()), (ErrorKind::Forbidden, true), "{refused}");
    let refused = limited.find_secret(&other).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden, "{refused}");
    let observed = rig.created(&secret("a")).await;
    assert_eq!(
        limited.apply_secret(&other, &secret("b"), &observed, false).await.unwrap_err().kind,
        ErrorKind::Forbidden
    );
    assert_eq!(limited.delete_secret(&other, &observed, false).await.unwrap_err().kind, ErrorKind::Forbidden);
    limited.apply_secret(&key, &secret("b"), &observed, false).await.unwrap();
    limited.delete_secret(&key, &rig.observed().await, false).await.unwrap();
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn the_identity_and_what_it_may_do_are_known(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let limited = rig.with_token(&rig.token().await).await;
    assert_eq!(limited.user().await.unwrap(), format!("system:serviceaccount:{}:job", rig.namespace));
    let namespace = Some(rig.namespace.as_str());
    let delete =
        Operation { verb: "delete", group: "", resource: "secrets", subresource: None, name: Some("pull"), namespace };
    until("the permission holds", async || limited.may_do(&delete).await.unwrap().allowed.then_some(())).await;
    for denied in [
        Operation { name: None, ..delete },
        Operation { namespace: None, ..delete },
        Operation { verb: "watch", ..delete },
        Operation { resource: "configmaps", ..delete },
        Operation { group: "batch", ..delete },
    ] {
        assert!(!limited.may_do(&denied).await.unwrap().allowed, "{denied:?}");
        assert!(rig.cluster.may_do(&denied).await.unwrap().allowed, "{denied:?}");
    }
    let summary = rig.cluster.namespace_summary(&rig.namespace).await.unwrap().unwrap();
    assert_eq!(summary, NamespaceSummary { pod_security: None, is_terminating: false });
    assert_eq!(rig.cluster.namespace_summary("no-such-namespace").await.unwrap(), None);
    let refused = limited.namespace_summary(&rig.namespace).await.unwrap_err();
    assert_eq!(refused.kind, ErrorKind::Forbidden, "{refused}");
}

#[rstest]
#[case::emulator(Kind::Emulator)]
#[case::real(Kind::Real)]
#[tokio::test(flavor = "multi_thread")]
async fn a_token_that_is_none_is_not_authenticated(#[case] kind: Kind) {
    let Some(rig) = Rig::new(kind).await else { return };
    let stranger = rig.with_token("n0b0dy-c4n4ry").await;
    let (key, mut errors) = (rig.key(), Vec::new());
    errors.push(stranger.find_secret(&key).await.unwrap_err());
    errors.push(stranger.create_secret(&key, &secret("a"), false).await.unwrap_err());
    errors.push(stranger.may(Verb::Get, &key).await.unwrap_err());
    errors.push(stranger.find_job(&rig.namespace, "store").await.unwrap_err());
    for error in errors {
        assert_eq!(error.kind, ErrorKind::Unauthenticated, "{error}");
        assert!(!format!("{error} {error:?} {stranger:?}").contains("c4n4ry"));
    }
}
