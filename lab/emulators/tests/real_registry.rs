//! A real registry with the Quay emulator as its issuer of tokens, and skopeo as the one who pulls.
//!
//! `hack/real-parts/with.sh registry -- cargo test --package emulators --test real_registry` gets both. If they are missing, a
//! line says so and the tests pass, unless `CI=true`.

#![expect(clippy::unwrap_used, clippy::indexing_slicing, reason = "what is missing fails the test that looks for it")]

use std::time::Duration;

use emulators::quay::{Operation, Settings};
use emulators::real_registry::{Login, RealRegistry};
use rstest::rstest;
use serde_json::json;
use testkit::http::exchange;
use testkit::quay::{Server, bearer};
use testkit::registry;

const IMAGE: &str = "hyperfleet/release:v1";
const MANIFEST: &str = "/v2/hyperfleet/release/manifests/v1";

/// An emulator with a registry that has an image, and the robot `a1` that may pull it, with its password.
struct Scene {
    server: Server,
    registry: RealRegistry,
    password: String,
    digest: String,
}

impl Scene {
    async fn set(settings: Settings) -> Option<Self> {
        let server = Server::start(settings).await;
        let registry = registry::start(&server.quay).await?;
        let pusher = server.quay.add_pusher("pusher", "release");
        let digest = registry.push(&Login { user: "hyperfleet+pusher", password: &pusher }, IMAGE).await.unwrap();
        let password = server.robot("a1").await;
        server.permit("a1", "release", "read").await;
        Some(Self { server, registry, password, digest })
    }

    /// The errors of a pull; none if it succeeds.
    async fn pull(&self, password: &str) -> Option<String> {
        let document = self.registry.document(&Login { user: "hyperfleet+a1", password });
        let output = self.registry.pull(&document, IMAGE).await.unwrap();
        (!output.status.success()).then(|| String::from_utf8(output.stderr).unwrap())
    }

    /// The status of the manifest for a token of the emulator.
    async fn manifest(&self, token: &str) -> u16 {
        let headers = format!("accept: application/vnd.oci.image.manifest.v1+json\r\n{}", bearer(token));
        exchange(self.registry.address(), "GET", MANIFEST, "", &headers).await.unwrap().status
    }

    async fn token(&self) -> String {
        let answer = self.server.request_token("a1", &self.password, "release").await.expect(200);
        answer["token"].as_str().unwrap().to_owned()
    }
}

#[tokio::test]
async fn a_robot_pulls_and_the_usage_log_has_it() {
    let Some(scene) = Scene::set(Settings::default()).await else { return };
    assert_eq!(scene.pull(&scene.password).await, None);
    scene.server.quay.wait_for_pulls(1).await;
    let [pull] = scene.server.quay.pulls().try_into().unwrap();
    assert_eq!((pull.robot.as_str(), pull.repository.as_str()), ("hyperfleet+a1", "release"));
    assert!(pull.reference == "v1" || pull.reference == scene.digest, "{pull:?}");
    assert_eq!(pull.address, "127.0.0.1");
    assert!(pull.agent.starts_with("skopeo/"), "{pull:?}");
    assert!(scene.server.outcomes(Operation::IssueToken).iter().all(|outcome| *outcome == Some(200)));
}

#[tokio::test]
async fn a_wrong_password_is_refused() {
    let Some(scene) = Scene::set(Settings::default()).await else { return };
    let refused = scene.pull("wrong").await.unwrap();
    assert!(refused.contains("Could not find robot with username: hyperfleet+a1"), "{refused}");
    scene.server.call("POST", "robots/a1/regenerate", json!(null)).await.expect(200);
    let refused = scene.pull(&scene.password).await.unwrap();
    assert!(refused.contains("and supplied password"), "{refused}");
}

#[tokio::test]
async fn a_deleted_robot_is_refused() {
    let Some(scene) = Scene::set(Settings::default()).await else { return };
    scene.server.call("DELETE", "robots/a1", json!(null)).await.expect(204);
    let refused = scene.pull(&scene.password).await.unwrap();
    assert!(refused.contains("Could not find robot with specified username"), "{refused}");
}

/// The token is issued, and the registry refuses it.
#[tokio::test]
async fn a_robot_without_a_permission_is_refused() {
    let Some(scene) = Scene::set(Settings::default()).await else { return };
    let path = "/api/v1/repository/hyperfleet/release/permissions/user/hyperfleet+a1";
    scene.server.raw("DELETE", path, "", &bearer(scene.server.quay.token())).await.unwrap().expect(204);
    let refused = scene.pull(&scene.password).await.unwrap();
    assert!(refused.contains("unauthorized: authentication required") || refused.contains("denied"), "{refused}");
    assert!(scene.server.outcomes(Operation::IssueToken).iter().all(|outcome| *outcome == Some(200)));
}

/// Neither a deletion nor a new password stops a token that was issued before.
#[rstest]
#[case("DELETE", "robots/a1")]
#[case("POST", "robots/a1/regenerate")]
#[tokio::test]
async fn a_token_outlives_its_robot(#[case] method: &str, #[case] path: &str) {
    let Some(scene) = Scene::set(Settings::default()).await else { return };
    let token = scene.token().await;
    assert_eq!(scene.manifest(&token).await, 200);
    assert!(scene.server.call(method, path, json!(null)).await.status < 300);
    assert_eq!(scene.manifest(&token).await, 200);
}

/// The registry goes by its own clock, of which the emulator's is behind: the token is so old when it is used.
#[rstest]
#[case::last_minute(Duration::from_mins(59), 200)]
// The registry allows clocks to differ by a minute.
#[case::over(Duration::from_secs(3_665), 401)]
#[tokio::test]
async fn a_token_lives_for_an_hour(#[case] age: Duration, #[case] status: u16) {
    let Some(scene) = Scene::set(Settings::default()).await else { return };
    let old = Server::start(Settings { clock_lag: age, ..Settings::default() }).await;
    let Some(registry) = registry::start(&old.quay).await else { return };
    let password = old.robot("a1").await;
    old.permit("a1", "release", "read").await;
    let token = old.request_token("a1", &password, "release").await.expect(200);
    let token = token["token"].as_str().unwrap();
    let headers = bearer(token);
    let found = exchange(registry.address(), "GET", "/v2/", "", &headers).await.unwrap().status;
    assert_eq!(found, status);
    // A token of another issuer is none.
    assert_eq!(scene.manifest(token).await, 401);
}
