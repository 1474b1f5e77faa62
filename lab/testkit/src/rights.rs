//! Proof that a `ServiceAccount` needs each of its rights, and no other, from the audit log of a real API server.

use std::collections::BTreeSet;
use std::path::PathBuf;

use k8s_openapi::api::authorization::v1::SubjectAccessReview;
use kube::api::{ApiResource, DynamicObject, PostParams};
use kube::{Api, Client};
use serde::Deserialize;
use serde_json::{Value, json};

use crate::api_server::until;
use crate::environment::{missing, variable};

const GROUP: &str = "rbac.authorization.k8s.io";

/// A `ServiceAccount` under test.
#[derive(Clone, Debug)]
pub struct Account {
    pub namespace: String,
    pub name: String,
}

/// A Role of a namespace, or a `ClusterRole`.
#[derive(Clone, Debug)]
pub struct Role {
    pub namespace: Option<String>,
    pub name: String,
}

/// One verb on one resource, of one name if the rule has names.
type Right = Value;

/// A request of the account, as the API server authorized it.
#[derive(Clone, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Deserialize)]
#[serde(default, rename_all = "camelCase")]
struct Attributes {
    verb: String,
    api_group: String,
    resource: String,
    subresource: String,
    namespace: String,
    name: String,
}

/// The audit log of the real API server, from the time at which a test began.
#[derive(Debug)]
pub struct AuditLog {
    path: PathBuf,
    from: usize,
}

impl AuditLog {
    /// `None`, with a line that gives the reason, where there is none; in CI that is a failure.
    pub fn here() -> Option<Self> {
        let path = variable("REAL_AUDIT_LOG").map(PathBuf::from);
        let path = path.or_else(|| {
            missing("REAL_AUDIT_LOG is not set: no audit log; `make real-parts` starts a server with one")
        })?;
        let from = std::fs::read(&path).unwrap_or_default().len();
        Some(Self { path, from })
    }

    /// Asserts that none of the account's requests was denied.
    ///
    /// # Panics
    ///
    /// If one was.
    pub fn assert_sufficient(&self, account: &Account) {
        let denied: Vec<Attributes> = self.requests(account, "forbid").into_iter().collect();
        assert!(denied.is_empty(), "{account:?} was denied {denied:?}");
    }

    /// Asserts that removing any single right from the roles denies a request that the account has made.
    ///
    /// # Panics
    ///
    /// If a right was not needed; or if the API server does not answer.
    pub async fn assert_minimal(&self, client: &Client, account: &Account, roles: &[Role]) {
        let requests = self.requests(account, "allow");
        assert!(!requests.is_empty(), "no requests of {account:?} in {}", self.path.display());
        let mut unneeded = Vec::new();
        for role in roles {
            // A Role allows nothing outside its namespace: no such request proves that it is needed.
            let is_inside =
                |request: &&Attributes| role.namespace.as_ref().is_none_or(|namespace| *namespace == request.namespace);
            let of_role = requests.iter().filter(is_inside).cloned().collect();
            let complete = role.api(client).get(&role.name).await.unwrap();
            let rights: Vec<Right> = complete.data["rules"].as_array().unwrap().iter().flat_map(rights).collect();
            for (index, right) in rights.iter().enumerate() {
                let mut others = rights.clone();
                others.remove(index);
                replace(client, account, role, &others).await;
                if !any_is_denied(client, account, &of_role, right).await {
                    unneeded.push(right.clone());
                }
            }
            replace(client, account, role, &rights).await;
        }
        assert!(unneeded.is_empty(), "{account:?} does not need {}", json!(unneeded));
    }

    /// The account's requests with this decision, each once.
    fn requests(&self, account: &Account, decision: &str) -> BTreeSet<Attributes> {
        let user = format!("system:serviceaccount:{}:{}", account.namespace, account.name);
        let text = String::from_utf8(std::fs::read(&self.path).unwrap().split_off(self.from)).unwrap();
        // The last line may be half written.
        let complete = text.rsplit_once('\n').map_or("", |(lines, _)| lines);
        let events = complete.lines().map(|line| serde_json::from_str::<Value>(line).unwrap());
        let mut requests = BTreeSet::new();
        let of_account = |event: &Value| {
            event["user"]["username"] == user.as_str()
                && event["annotations"]["authorization.k8s.io/decision"] == decision
                && event["objectRef"].is_object()
        };
        for event in events.filter(of_account) {
            let object: Attributes = serde_json::from_value(event["objectRef"].clone()).unwrap();
            requests.insert(Attributes { verb: event["verb"].as_str().unwrap().to_owned(), ..object });
        }
        // Every authenticated account may ask what it may do.
        requests.retain(|request| request.resource != "selfsubjectaccessreviews");
        requests
    }
}

impl Role {
    fn api(&self, client: &Client) -> Api<DynamicObject> {
        let kind = if self.namespace.is_some() { "Role" } else { "ClusterRole" };
        let resource = ApiResource::from_gvk(&kube::core::GroupVersionKind::gvk(GROUP, "v1", kind));
        match &self.namespace {
            Some(namespace) => Api::namespaced_with(client.clone(), namespace, &resource),
            None => Api::all_with(client.clone(), &resource),
        }
    }
}

/// The single rights of a rule.
fn rights(rule: &Value) -> Vec<Right> {
    let list = |name: &str| rule[name].as_array().cloned().unwrap_or_default();
    let names = match list("resourceNames") {
        names if names.is_empty() => vec![json!([])],
        names => names.into_iter().map(|name| json!([name])).collect(),
    };
    let mut rights = Vec::new();
    for group in list("apiGroups") {
        for resource in list("resources") {
            for name in &names {
                rights.extend(list("verbs").into_iter().map(|verb| {
                    json!({"apiGroups": [group], "resources": [resource], "resourceNames": name, "verbs": [verb]})
                }));
            }
        }
    }
    rights
}

/// Gives the role these rights, and waits until the API server authorizes by them.
async fn replace(client: &Client, account: &Account, role: &Role, rights: &[Right]) {
    let api = role.api(client);
    let mut object = api.get(&role.name).await.unwrap();
    // The resource version marks this revision of the role: a right that no other revision has.
    let marker = format!("revision-{}", object.metadata.resource_version.clone().unwrap());
    let mut rules = rights.to_vec();
    rules.push(json!({"apiGroups": ["test"], "resources": [marker], "verbs": ["get"]}));
    object.data["rules"] = json!(rules);
    api.replace(&role.name, &PostParams::default(), &object).await.unwrap();
    let namespace = role.namespace.clone().unwrap_or_default();
    let resource = marker.clone();
    let request =
        Attributes { verb: "get".into(), api_group: "test".into(), resource, namespace, ..Default::default() };
    until("the changed role is in force", async || may(client, account, &request).await.then_some(())).await;
}

async fn any_is_denied(client: &Client, account: &Account, requests: &BTreeSet<Attributes>, right: &Right) -> bool {
    let of_right = |request: &&Attributes| {
        right["verbs"][0] == request.verb.as_str() && right["apiGroups"][0] == request.api_group.as_str()
    };
    for request in requests.iter().filter(of_right) {
        if !may(client, account, request).await {
            return true;
        }
    }
    false
}

async fn may(client: &Client, account: &Account, request: &Attributes) -> bool {
    let Account { namespace, name } = account;
    let review = json!({"spec": {
        "user": format!("system:serviceaccount:{namespace}:{name}"),
        "groups": ["system:serviceaccounts", format!("system:serviceaccounts:{namespace}"), "system:authenticated"],
        "resourceAttributes": {
            "verb": request.verb, "group": request.api_group, "resource": request.resource,
            "subresource": request.subresource, "namespace": request.namespace, "name": request.name,
        },
    }});
    let api: Api<SubjectAccessReview> = Api::all(client.clone());
    let review = api.create(&PostParams::default(), &serde_json::from_value(review).unwrap()).await.unwrap();
    review.status.unwrap().allowed
}
