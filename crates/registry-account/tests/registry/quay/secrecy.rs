//! Neither passwords nor tokens of Quay in what is shown.

use registry_account::{Operation, QuayRegistry, Registry as _};
use serde_json::json;

use super::requests::{good, problem, robot};
use crate::rig::{DESCRIPTION, LOGIN, PASSWORD, TOKEN, attempt, new_account, quay};
use crate::secrecy::shows_no_secret;
use testkit::fake::{Fake, json as document};

#[tokio::test]
async fn an_account_that_exists_shows_no_password() {
    let fake = Fake::start(|request| match request.method.as_str() {
        "PUT" => problem(&format!("Existing robot with name: {LOGIN} {PASSWORD}")),
        _ => document(200, &json!({"name": LOGIN, "token": PASSWORD, "description": DESCRIPTION})),
    })
    .await;
    shows_no_secret(&quay(fake.address).create(&new_account()).await.unwrap_err());
}

#[tokio::test]
async fn a_credential_and_a_registry_show_no_secret() {
    let fake = Fake::start(good).await;
    let registry = quay(fake.address);
    let created = registry.create(&new_account()).await.unwrap();
    let shown = format!("{registry:?} {registry:#?} {created:?} {:?}", created.login());
    assert!(shown.contains(LOGIN) && shown.contains("pullers"), "{shown}");
    assert!(!shown.contains(TOKEN) && !shown.contains(PASSWORD), "{shown}");
    let settings = crate::rig::settings(fake.address);
    assert!(!format!("{settings:?}").contains(TOKEN));
    drop(QuayRegistry::connect(settings).unwrap());
    assert_eq!(robot()["token"], PASSWORD);
    attempt(&registry, Operation::Find).await.unwrap();
}
