//! Neither passwords of robots nor that of the identity in what is shown.

use registry_account::{HarborRegistry, Registry as _};
use serde_json::json;

use super::requests::{created, good};
use crate::rig::{DESCRIPTION, HARBOR_LOGIN, PASSWORD, TOKEN, USER, harbor, harbor_settings, new_account};
use crate::secrecy::shows_no_secret;
use testkit::fake::{Fake, json as document};

#[tokio::test]
async fn an_account_that_exists_shows_no_password() {
    let fake = Fake::start(|request| match request.method.as_str() {
        "POST" => document(409, &json!({"errors": [{"message": format!("{HARBOR_LOGIN} {PASSWORD} {DESCRIPTION}")}]})),
        _ => good(request),
    })
    .await;
    let created = harbor(fake.address).create(&new_account()).await.unwrap();
    assert!(!format!("{created:?}").contains(PASSWORD));
    let fake = Fake::start(|request| match request.method.as_str() {
        "GET" => document(200, &created_and_changed()),
        _ => good(request),
    })
    .await;
    shows_no_secret(&harbor(fake.address).create(&new_account()).await.unwrap_err());
}

fn created_and_changed() -> serde_json::Value {
    let mut robot = created();
    robot["description"] = json!(format!("{PASSWORD} {DESCRIPTION}"));
    robot
}

#[tokio::test]
async fn a_credential_and_a_registry_show_no_secret() {
    let fake = Fake::start(good).await;
    let registry = harbor(fake.address);
    let created = registry.create(&new_account()).await.unwrap();
    let settings = harbor_settings(fake.address);
    let shown = format!("{registry:?} {registry:#?} {created:?} {:?} {settings:?}", created.login());
    assert!(shown.contains(HARBOR_LOGIN) && shown.contains(USER) && shown.contains("fleet"), "{shown}");
    assert!(!shown.contains(TOKEN) && !shown.contains(PASSWORD), "{shown}");
    drop(HarborRegistry::connect(settings).unwrap());
}
