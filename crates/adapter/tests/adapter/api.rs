//! The HyperFleet API in this process, and the requests of users and other adapters.

use std::ops::Deref;

use hyperfleet_client::{Generation, NewReport, NewResource, Report, Resource, Status};
use serde_json::{Value, json};
use testkit::hyperfleet::{self, HyperFleetApi};

/// Returns a pull secret whose content is searched for in logs and objects.
pub(crate) fn pull_secret(content: &str) -> Value {
    // `user:` and a password, as base64.
    let auth = match content {
        "one" => "dXNlcjpIdW50ZXIyLW9uZQ==",
        _ => "dXNlcjpIdW50ZXIyLXR3bw==",
    };
    json!({"auths": {"registry.example.com": {"auth": auth}}})
}

/// The common prefix of the credentials above.
pub(crate) const CREDENTIAL: &str = "dXNlcjpIdW50ZXIy";

/// An API server with the requests of an adapter's neighbours.
pub(crate) struct Api(HyperFleetApi);

impl Deref for Api {
    type Target = HyperFleetApi;

    fn deref(&self) -> &HyperFleetApi {
        &self.0
    }
}

impl Api {
    pub(crate) async fn start() -> Self {
        Self(HyperFleetApi::start().await)
    }

    /// Stops the server; the returned future restarts it.
    pub(crate) async fn stop(self) -> impl Future<Output = Self> {
        let restart = self.0.stop().await;
        async move { Self(restart.await) }
    }

    pub(crate) async fn create(&self, id: &str) -> Resource {
        self.create_of(id, &json!({"data": pull_secret("one")})).await
    }

    pub(crate) async fn create_of(&self, id: &str, secret: &Value) -> Resource {
        let Value::Object(spec) = spec(secret) else { panic!("a spec is an object") };
        self.create_cluster(&NewResource { spec, ..hyperfleet::cluster(id) }).await
    }

    pub(crate) async fn rotate(&self, id: &str) -> Resource {
        self.patch(id, spec(&json!({"data": pull_secret("two")}))).await
    }

    /// Reports as another adapter about generation 1.
    pub(crate) async fn report(&self, id: &str, adapter: &str, available: Status, data: Value) {
        let data = data.as_object().cloned().unwrap_or_default();
        let report = NewReport { data, ..hyperfleet::report(adapter, Generation::FIRST, available) };
        self.0.report(id, &report).await;
    }

    /// Reports `Finalized` as another adapter.
    pub(crate) async fn report_finalized(&self, id: &str, adapter: &str, generation: Generation) {
        self.0.report(id, &hyperfleet::finalized_report(adapter, generation)).await;
    }

    /// Reports as the adapters that the pull secret depends on.
    pub(crate) async fn make_ready(&self, id: &str, namespace: &str) {
        for adapter in ["validation", "dns"] {
            self.report(id, adapter, Status::True, json!({})).await;
        }
        self.report(id, "placement", Status::True, json!({"namespace": namespace})).await;
    }

    /// Returns the adapter's last report.
    pub(crate) async fn last_report(&self, id: &str) -> Option<Report> {
        self.0.last_report(id, "pullsecret").await
    }
}

fn spec(secret: &Value) -> Value {
    json!({"provider": "gcp", "gcp": {"projectId": "redhat-prod-1"}, "pullSecret": secret})
}
