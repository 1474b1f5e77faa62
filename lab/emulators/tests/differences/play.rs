//! A server, and scenarios played on it.
//!
//! Variables of requests: `ns` is the scenario's namespace; `core`, `batch`, `apps`, `rbac`, `leases` are paths in it;
//! `reviews`, `authentication` and `crds` are paths outside. Steps set further ones.

use std::collections::BTreeMap;
use std::sync::Arc;
use std::time::Duration;

use http::Request;
use http::header::{ACCEPT, CONTENT_TYPE};
use http_body_util::BodyExt as _;
use kube::client::Body;
use kube::config::{KubeConfigOptions, Kubeconfig};
use kube::{Client, Config};
use serde_json::{Value, json};
use testkit::api_server::{ApiServer, Kind, TIMEOUT};
use tokio::sync::Semaphore;
use tokio::task::JoinSet;
use tokio::time::{Instant, sleep, timeout};

use crate::answers::{Answer, Reply, sort_managed_fields};
use crate::suite::{Scenario, Step, Suite};

/// Number of scenarios that are played at a time.
const AT_A_TIME: usize = 8;

/// An API server, and clients for it.
pub(crate) struct Server {
    api: ApiServer,
    admin: Client,
    /// Time for what the server's controllers do.
    timeout: Duration,
    /// The same where it is documented that the servers differ: one of them never does it.
    short_timeout: Duration,
}

/// One scenario on its way.
struct Play<'a> {
    server: &'a Server,
    objects: &'a BTreeMap<String, Value>,
    variables: BTreeMap<String, String>,
    /// Time for what the server's controllers do.
    timeout: Duration,
}

impl Server {
    /// `None`, with a line that gives the reason, where there is no such server; in CI that is a failure.
    pub(crate) async fn start(kind: Kind) -> Option<Self> {
        let api = ApiServer::start(kind).await?;
        let admin = client(api.kubeconfig.clone()).await;
        // The emulator's controllers are in the same process; a real one's share the machine with other tests.
        let (timeout, short_timeout) = match kind {
            Kind::Real => (Duration::from_mins(5), Duration::from_mins(5)),
            Kind::Emulator => (Duration::from_mins(1), Duration::from_secs(5)),
        };
        Some(Self { api, admin, timeout, short_timeout })
    }

    pub(crate) async fn version(&self) -> String {
        let request = Request::get("/version").body(Body::empty()).unwrap();
        send(&self.admin, request).await.body["gitVersion"].as_str().unwrap().to_owned()
    }

    /// Plays all scenarios.
    pub(crate) async fn play(self, suite: &Arc<Suite>) -> BTreeMap<String, Vec<Answer>> {
        let (server, room) = (Arc::new(self), Arc::new(Semaphore::new(AT_A_TIME)));
        let mut playing = JoinSet::new();
        let positions = suite.families.iter().enumerate();
        for (family, scenario) in positions.flat_map(|(at, family)| (0..family.scenarios.len()).map(move |n| (at, n))) {
            let (suite, server, room) = (Arc::clone(suite), Arc::clone(&server), Arc::clone(&room));
            playing.spawn(async move {
                let _room = room.acquire().await.unwrap();
                let family = &suite.families[family];
                let scenario = &family.scenarios[scenario];
                (scenario.title.clone(), server.play_one(&family.objects, scenario).await)
            });
        }
        playing.join_all().await.into_iter().collect()
    }

    async fn play_one(&self, objects: &BTreeMap<String, Value>, scenario: &Scenario) -> Vec<Answer> {
        let name = format!("differences-{:08x}", rand::random::<u32>());
        self.api.create_namespace(&name).await;
        let timeout = if scenario.left.is_some() { self.short_timeout } else { self.timeout };
        let mut play = Play { server: self, objects, variables: variables(&name), timeout };
        play.wait_for_account().await;
        let mut answers = Vec::new();
        for step in &scenario.steps {
            answers.push(play.step(step).await);
        }
        // Some scenarios delete it themselves.
        let request = Request::delete(format!("/api/v1/namespaces/{name}")).body(Body::empty()).unwrap();
        send(&self.admin, request).await;
        answers
    }
}

fn variables(namespace: &str) -> BTreeMap<String, String> {
    let rbac = "apis/rbac.authorization.k8s.io/v1";
    let inside = |group: &str| format!("/{group}/namespaces/{namespace}");
    [
        ("ns", namespace.to_owned()),
        ("core", inside("api/v1")),
        ("batch", inside("apis/batch/v1")),
        ("apps", inside("apis/apps/v1")),
        ("leases", format!("{}/leases", inside("apis/coordination.k8s.io/v1"))),
        ("rbac", inside(rbac)),
        ("clusterroles", format!("/{rbac}/clusterroles")),
        ("reviews", "/apis/authorization.k8s.io/v1".to_owned()),
        ("authentication", "/apis/authentication.k8s.io/v1".to_owned()),
        ("crds", "/apis/apiextensions.k8s.io/v1/customresourcedefinitions".to_owned()),
    ]
    .map(|(name, value)| (name.to_owned(), value))
    .into()
}

impl Play<'_> {
    /// A real server's controllers complete a namespace a little later; until then it takes no Pods.
    async fn wait_for_account(&self) {
        let path = self.filled("${core}/serviceaccounts/default");
        let limit = Instant::now() + self.server.timeout;
        while Instant::now() < limit {
            let request = Request::get(&path).body(Body::empty()).unwrap();
            if send(&self.server.admin, request).await.status == 200 {
                return;
            }
            sleep(Duration::from_millis(25)).await;
        }
        panic!("{path} is missing");
    }

    async fn step(&mut self, step: &Step) -> Answer {
        let client = match step.caller.as_deref() {
            None => self.server.admin.clone(),
            Some("anonymous") => {
                let mut kubeconfig = self.server.api.with_token("");
                kubeconfig.auth_infos[0].auth_info.as_mut().unwrap().token = None;
                client(kubeconfig).await
            }
            Some(name) => client(self.server.api.with_token(&self.variables[name])).await,
        };
        let limit = Instant::now() + self.timeout;
        let (reply, is_late) = loop {
            let reply = send(&client, self.request(step)).await;
            if reply.is(&step.until, &self.variables) {
                break (reply, false);
            }
            if Instant::now() > limit {
                break (reply, true);
            }
            sleep(Duration::from_millis(50)).await;
        };
        let mut answer = reply.answer(step, &self.variables);
        if is_late {
            answer.insert("until".to_owned(), json!("never"));
        }
        for (name, pointer) in &step.save {
            let saved = reply.body.pointer(pointer).and_then(Value::as_str).unwrap_or_default();
            self.variables.insert(name.clone(), saved.to_owned());
        }
        answer
    }

    fn request(&self, step: &Step) -> Request<Body> {
        let call = self.filled(&step.call);
        let (method, path) = call.split_once(' ').unwrap();
        let mut request = Request::builder().method(method).uri(path.replace(' ', "%20"));
        if let Some(accept) = &step.accept {
            request = request.header(ACCEPT, accept);
        }
        let body = self.body(step);
        if !body.is_empty() {
            request = request.header(CONTENT_TYPE, step.full_media_type());
        }
        request.body(Body::from(body.into_bytes())).unwrap()
    }

    fn body(&self, step: &Step) -> String {
        if let Some(raw) = &step.raw {
            return self.filled(raw);
        }
        let mut body = step.object.as_ref().map(|name| self.objects[name].clone()).unwrap_or_default();
        if let Some(given) = &step.body {
            merge(&mut body, given);
        }
        if let Some(padding) = step.padding {
            merge(&mut body, &json!({"data": {"padding": "x".repeat(padding)}}));
        }
        if body.is_null() { String::new() } else { self.filled(&body.to_string()) }
    }

    /// The text with the values of its variables.
    fn filled(&self, text: &str) -> String {
        let mut text = text.to_owned();
        // Values are names, paths and numbers; none needs escaping in JSON.
        for (name, value) in &self.variables {
            text = text.replace(&format!("${{{name}}}"), value);
        }
        assert!(!text.contains("${"), "{text}: there is no such variable");
        text
    }
}

/// Merges as RFC 7396 says, but keeps nulls: requests may contain them.
fn merge(target: &mut Value, change: &Value) {
    match (target, change) {
        (Value::Object(members), Value::Object(changes)) => {
            for (name, change) in changes {
                merge(members.entry(name.clone()).or_insert(Value::Null), change);
            }
        }
        (target, change) => *target = change.clone(),
    }
}

async fn client(kubeconfig: Kubeconfig) -> Client {
    let mut config = Config::from_custom_kubeconfig(kubeconfig, &KubeConfigOptions::default()).await.unwrap();
    config.default_retry = false;
    Client::try_from(config).unwrap()
}

async fn send(client: &Client, request: Request<Body>) -> Reply {
    let is_watch = request.uri().query().is_some_and(|query| query.contains("watch="));
    let call = format!("{} {}", request.method(), request.uri());
    let answered = async {
        let (head, body) = client.send(request).await.unwrap().into_parts();
        (head, body.collect().await.unwrap().to_bytes())
    };
    let (head, bytes) = timeout(TIMEOUT, answered).await.unwrap_or_else(|_| panic!("{call}: the answer does not end"));
    let text = String::from_utf8_lossy(&bytes).into_owned();
    let mut body = if is_watch && head.status.is_success() {
        text.lines().map(|line| serde_json::from_str::<Value>(line).unwrap_or_default()).collect()
    } else {
        serde_json::from_str(&text).unwrap_or_default()
    };
    sort_managed_fields(&mut body);
    Reply { status: head.status.as_u16(), headers: head.headers, text, body }
}
