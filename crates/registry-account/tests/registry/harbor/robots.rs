//! Robots at an emulated Harbor, beyond the contract.

use emulators::harbor::{Harbor, Pull, Settings};
use registry_account::probe::Verdict;
use registry_account::{
    ErrorKind, HarborRegistry, HarborSettings, IdentitySecret, Image, Login, Registry as _, RobotPrefix,
};
use serde_json::{Value, json};

use crate::rig::{harbor_settings, name, new_account};

fn connect(server: &Harbor, prefix: &str) -> HarborRegistry {
    let settings = HarborSettings {
        project: server.project().parse().unwrap(),
        robot_prefix: prefix.parse().unwrap(),
        username: server.username().parse().unwrap(),
        password: IdentitySecret::Value(server.password().into()),
        ..harbor_settings(server.address())
    };
    HarborRegistry::connect(settings).unwrap()
}

async fn start(settings: Settings) -> (Harbor, HarborRegistry) {
    let server = Harbor::start(settings).await.unwrap();
    let registry = connect(&server, &RobotPrefix::default().to_string());
    (server, registry)
}

fn image() -> Image {
    Image { repository: "hyperfleet/release".parse().unwrap(), reference: None }
}

/// Changes the robot as a person does.
async fn put(server: &Harbor, change: impl FnOnce(&mut Value)) {
    let url = format!("{}/api/v2.0/robots/{}", server.url(), server.robots()[0].id);
    let client = reqwest::Client::new();
    let user = |request: reqwest::RequestBuilder| request.basic_auth(server.username(), Some(server.password()));
    let found = user(client.get(&url)).send().await.unwrap().bytes().await.unwrap();
    let mut robot: Value = serde_json::from_slice(&found).unwrap();
    change(&mut robot);
    let request = user(client.put(&url)).header("content-type", "application/json").body(robot.to_string());
    assert_eq!(request.send().await.unwrap().status(), 200);
}

#[tokio::test]
async fn a_permission_that_was_taken_away_is_given_again() {
    let (server, registry) = start(Settings::default()).await;
    let login = registry.create(&new_account()).await.unwrap().login();
    put(&server, |robot| robot["permissions"][0]["access"][0]["action"] = json!("read")).await;
    assert_eq!(registry.probe(&login, &image()).await.verdict, Verdict::NotPermitted);
    let before = registry.find(&name()).await.unwrap();
    registry.permit(&name()).await.unwrap();
    assert_eq!(registry.probe(&login, &image()).await.verdict, Verdict::Pulls);
    assert_eq!(registry.find(&name()).await.unwrap(), before, "all else stays as it was");
}

#[tokio::test]
async fn a_disabled_robot_stays_and_can_be_enabled_again() {
    let (server, registry) = start(Settings::default()).await;
    let created = registry.create(&new_account()).await.unwrap();
    registry.disable(&name()).await.unwrap();
    let found = registry.find(&name()).await.unwrap().unwrap();
    assert!(found.disabled && found.description == created.account.description);
    assert_eq!(registry.probe(&created.login(), &image()).await.verdict, Verdict::Refused);
    put(&server, |robot| robot["disable"] = json!(false)).await;
    assert_eq!(registry.probe(&created.login(), &image()).await.verdict, Verdict::Pulls);
}

/// Harbor lets no robot change another one.
#[tokio::test]
async fn a_robot_can_be_the_identity_within_limits() {
    let (server, registry) = start(Settings { is_robot: true, ..Settings::default() }).await;
    let created = registry.create(&new_account()).await.unwrap();
    registry.permit(&name()).await.unwrap();
    assert_eq!(registry.probe(&created.login(), &image()).await.verdict, Verdict::Pulls);
    let lost = registry.create(&new_account()).await.unwrap_err();
    assert_eq!(lost.kind, ErrorKind::PasswordLost, "{lost}");
    let denied = registry.disable(&name()).await.unwrap_err();
    assert_eq!(denied.kind, ErrorKind::PermissionDenied);
    assert!(denied.hint().unwrap().contains("robots may not change other robots"));
    assert_eq!(registry.probe(&created.login(), &image()).await.verdict, Verdict::Pulls);
    assert!(registry.delete(&name()).await.unwrap());
    assert_eq!(server.robots(), []);
}

/// One robot is made, and no more, until the setting is right.
#[tokio::test]
async fn another_prefix_is_named() {
    let server = Harbor::start(Settings { robot_prefix: "bot-".to_owned(), ..Settings::default() }).await.unwrap();
    let wrong = connect(&server, "robot$");
    for _each in 0..2 {
        let error = wrong.create(&new_account()).await.unwrap_err();
        assert_eq!(error.kind, ErrorKind::NotPrepared);
        assert!(error.hint().unwrap().contains("robot_prefix"));
    }
    assert_eq!(wrong.find(&name()).await.unwrap_err().kind, ErrorKind::NotPrepared);
    assert_eq!(server.robots().len(), 1);
    let right = connect(&server, "bot-");
    let login = right.create(&new_account()).await.unwrap().login();
    assert_eq!(login.username, "bot-hyperfleet+hf-one");
    assert_eq!(right.probe(&login, &image()).await.verdict, Verdict::Pulls);
    assert!(wrong.delete(&name()).await.unwrap(), "it can be deleted all the same");
}

/// The token service gives anyone a token for a public project.
#[tokio::test]
async fn a_wrong_password_is_refused_in_a_public_project_too() {
    let (_server, registry) = start(Settings { is_public: true, ..Settings::default() }).await;
    let right = registry.create(&new_account()).await.unwrap().login();
    assert_eq!(registry.probe(&right, &image()).await.verdict, Verdict::Pulls);
    let wrong = Login { password: "WRONG".into(), ..right };
    let finding = registry.probe(&wrong, &image()).await;
    assert_eq!((finding.verdict, finding.to_string().as_str()), (Verdict::Refused, "answers HTTP status 401"));
}

/// The client asks for a part of the name, as Harbor makes a space of a plus sign.
#[tokio::test]
async fn the_log_is_that_of_one_robot() {
    let (server, registry) = start(Settings::default()).await;
    let since = server.now();
    let pull = |username: &str, resource: &str| {
        server.record_pull(Pull { username: username.to_owned(), resource: resource.to_owned(), at: server.now() });
    };
    pull("robot$hyperfleet+hf-one", "hyperfleet/release@sha256:0f1e");
    for _each in 0..120 {
        pull("robot$hyperfleet+hf-one-more", "hyperfleet/other:4.20");
    }
    let usage = registry.usage(&name(), since).await.unwrap();
    assert_eq!((usage.pulls, usage.requests, usage.complete), (1, 2, true));
    assert_eq!(usage.repositories, ["hyperfleet/release".to_owned()].into());
}
