//! Authorization: tokens, RBAC, access reviews.

use emulators::kubernetes::{Authorization, Settings, User};
use rstest::rstest;
use serde_json::{Value, json};

use super::client::{Refused as _, SECRETS, Server, secret};

const ROLES: &str = "/apis/rbac.authorization.k8s.io/v1/namespaces/default";

fn user(name: &str, groups: &[&str]) -> User {
    User { name: name.to_owned(), groups: groups.iter().map(|group| (*group).to_owned()).collect() }
}

/// A server on which alice may see the Secret `s`, and the job's `ServiceAccount` may create Secrets.
async fn server() -> Server {
    let tokens =
        [("root", user("root", &["system:masters"])), ("alice", user("alice", &["people"])), ("bob", user("bob", &[]))];
    let tokens = tokens.map(|(token, user)| (token.to_owned(), user)).into();
    let server = Server::start(Settings { authorization: Authorization::Rbac, tokens, ..Settings::default() }).await;
    let see =
        json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": ["get", "list", "watch"]});
    let make = json!({"apiGroups": [""], "resources": ["secrets", "pods/log"], "verbs": ["create", "get"]});
    for (name, rule) in [("see", see), ("make", make)] {
        let role = json!({"metadata": {"name": name}, "rules": [rule]});
        server.with("root", "POST", &format!("{ROLES}/roles"), &role).await.expect(201);
    }
    let subjects = [
        ("see", json!({"kind": "Group", "name": "people"})),
        ("make", json!({"kind": "ServiceAccount", "name": "default", "namespace": "default"})),
    ];
    for (name, subject) in subjects {
        let binding =
            json!({"metadata": {"name": name}, "roleRef": {"kind": "Role", "name": name}, "subjects": [subject]});
        server.with("root", "POST", &format!("{ROLES}/rolebindings"), &binding).await.expect(201);
    }
    server.with("root", "POST", SECRETS, &secret("s")).await.expect(201);
    server
}

#[rstest]
#[case::by_name("alice", "GET", "/api/v1/namespaces/default/secrets/s", 200)]
#[case::another("alice", "GET", "/api/v1/namespaces/default/secrets/t", 403)]
#[case::all("alice", "GET", "/api/v1/namespaces/default/secrets", 403)]
#[case::one_of_all("alice", "GET", "/api/v1/namespaces/default/secrets?fieldSelector=metadata.name%3Ds", 200)]
#[case::elsewhere("alice", "GET", "/api/v1/namespaces/kube-system/secrets/s", 403)]
#[case::delete("alice", "DELETE", "/api/v1/namespaces/default/secrets/s", 403)]
#[case::unknown_user("bob", "GET", "/api/v1/namespaces/default/secrets/s", 403)]
#[case::discovery("bob", "GET", "/apis", 200)]
#[case::unknown("mallory", "GET", "/api/v1/namespaces/default/secrets/s", 401)]
#[case::root("root", "DELETE", "/api/v1/namespaces/default/secrets/s", 200)]
#[tokio::test]
async fn rules_allow_and_nothing_else_does(
    #[case] token: &str,
    #[case] method: &str,
    #[case] path: &str,
    #[case] code: u16,
) {
    let reply = server().await.with(token, method, path, &Value::Null).await;
    assert_eq!(reply.status, code, "{:#}", reply.body);
}

#[tokio::test]
async fn refusals_say_who_cannot_what_where() {
    let server = server().await;
    let text = "secrets is forbidden: User \"alice\" cannot list resource \"secrets\" in API group \"\" in the namespace \"default\"";
    server.with("alice", "GET", SECRETS, &Value::Null).await.refused(403, "Forbidden", text);
    let text = "User \"system:anonymous\" cannot list resource \"jobs\" in API group \"batch\" at the cluster scope";
    server.get("/apis/batch/v1/jobs").await.refused(403, "Forbidden", text);
    let text = "forbidden: User \"system:anonymous\" cannot get path \"/apis\"";
    server.get("/apis").await.refused(403, "Forbidden", text);
    server.with("x", "GET", "/apis", &Value::Null).await.refused(401, "Unauthorized", "Unauthorized");
    assert_eq!(server.get("/readyz").await.body, "ok");
}

#[tokio::test]
async fn service_accounts_have_tokens_that_end() {
    let server = server().await;
    let path = "/api/v1/namespaces/default/serviceaccounts/default/token";
    let request = json!({"spec": {"expirationSeconds": 600}});
    let issued = server.with("root", "POST", path, &request).await.expect(201);
    let token = issued["status"]["token"].as_str().unwrap();
    server.with(token, "POST", SECRETS, &secret("t")).await.expect(201);
    server.with(token, "DELETE", &format!("{SECRETS}/t"), &json!({})).await.refused(
        403,
        "Forbidden",
        "User \"system:serviceaccount:default:default\" cannot delete",
    );
    server.with("root", "POST", path, &json!({"spec": {"expirationSeconds": 1}})).await.refused(
        422,
        "Invalid",
        "10 minutes",
    );
    server.kubernetes.advance_clock(std::time::Duration::from_mins(11));
    server.with(token, "GET", &format!("{SECRETS}/s"), &Value::Null).await.refused(401, "Unauthorized", "");
}

#[rstest]
#[case("alice", json!({"verb": "get", "resource": "secrets", "namespace": "default", "name": "s"}), true)]
#[case("alice", json!({"verb": "get", "resource": "secrets", "namespace": "default"}), false)]
#[case("bob", json!({"verb": "create", "resource": "secrets", "namespace": "default"}), false)]
#[case("root", json!({"verb": "delete", "resource": "nodes"}), true)]
#[tokio::test]
async fn a_caller_may_ask_what_it_may(#[case] token: &str, #[case] attributes: Value, #[case] allowed: bool) {
    let server = server().await;
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    let review = json!({"spec": {"resourceAttributes": attributes}});
    let answered = server.with(token, "POST", path, &review).await.expect(201);
    assert_eq!(answered["status"]["allowed"], allowed);
    if token == "alice" && allowed {
        let reason = "RBAC: allowed by RoleBinding \"see/default\" of Role \"see\" to Group \"people\"";
        assert_eq!(answered["status"]["reason"], reason);
    }
}

#[tokio::test]
async fn no_user_grants_more_than_it_has() {
    let server = server().await;
    let rule = json!({"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create"]});
    let role = json!({"metadata": {"name": "grant"}, "rules": [rule]});
    server.with("root", "POST", &format!("{ROLES}/roles"), &role).await.expect(201);
    let subject = json!({"kind": "User", "name": "alice"});
    let binding =
        json!({"metadata": {"name": "grant"}, "roleRef": {"kind": "Role", "name": "grant"}, "subjects": [subject]});
    server.with("root", "POST", &format!("{ROLES}/rolebindings"), &binding).await.expect(201);
    let wanted = |verb: &str| {
        let rule = json!({"apiGroups": [""], "resources": ["secrets"], "resourceNames": ["s"], "verbs": [verb]});
        json!({"metadata": {"name": verb}, "rules": [rule]})
    };
    server.with("alice", "POST", &format!("{ROLES}/roles"), &wanted("get")).await.expect(201);
    let text = "is attempting to grant RBAC permissions not currently held";
    server.with("alice", "POST", &format!("{ROLES}/roles"), &wanted("delete")).await.refused(403, "Forbidden", text);
    // Unless it may do so by name, as on the real server.
    let rules = json!([{
        "apiGroups": ["rbac.authorization.k8s.io"], "resources": ["roles"], "verbs": ["create", "escalate", "bind"],
    }, {"apiGroups": ["rbac.authorization.k8s.io"], "resources": ["rolebindings"], "verbs": ["create"]}]);
    let role = json!({"metadata": {"name": "grant"}, "rules": rules});
    server.with("root", "PUT", &format!("{ROLES}/roles/grant"), &role).await.expect(200);
    server.with("alice", "POST", &format!("{ROLES}/roles"), &wanted("patch")).await.expect(201);
    let binding = json!({"metadata": {"name": "patch"}, "roleRef": {"kind": "Role", "name": "patch"}});
    server.with("alice", "POST", &format!("{ROLES}/rolebindings"), &binding).await.expect(201);
    let binding = json!({"metadata": {"name": "view"}, "roleRef": {"kind": "ClusterRole", "name": "cluster-admin"}});
    server.with("alice", "POST", &format!("{ROLES}/rolebindings"), &binding).await.refused(403, "Forbidden", text);
}

#[tokio::test]
async fn without_authorization_everybody_may_everything() {
    let server = Server::plain().await;
    server.with("unchecked", "POST", SECRETS, &secret("s")).await.expect(201);
    let review = json!({"spec": {"resourceAttributes": {"verb": "delete", "resource": "secrets"}}});
    let path = "/apis/authorization.k8s.io/v1/selfsubjectaccessreviews";
    assert_eq!(server.post(path, &review).await.expect(201)["status"]["allowed"], true);
}
