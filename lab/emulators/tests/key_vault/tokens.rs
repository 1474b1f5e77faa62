//! Tokens: how an application gets one, and which of them the vault accepts.

use std::time::Duration;

use emulators::key_vault::{Identity, Operation, Permission, Settings};
use rstest::rstest;
use serde_json::{Value, json};
use testkit::http::Reply;

use testkit::key_vault::{KeyVaultReply as _, SUBJECT, Server, versioned};

const HOUR: Duration = Duration::from_hours(1);

#[tokio::test]
async fn a_secret_and_an_assertion_are_exchanged_for_tokens() {
    let server = Server::with_lifetime(Settings::default()).await;
    let secret = server.settings.identities[0].secret.clone().unwrap();
    let credentials = [("client_secret", secret), ("client_assertion", server.vault.assertion(SUBJECT))];
    for (field, credential) in &credentials {
        let answer = server.request_token(&server.form(&[(field, credential)])).await.expect(200);
        assert_eq!((&answer["token_type"], &answer["expires_in"]), (&json!("Bearer"), &json!(3600)));
        let accepted = with_token(&server, answer["access_token"].as_str().unwrap()).await;
        assert_eq!(accepted.expect(200)["value"], json!([]));
    }
    assert_eq!(server.outcomes(Operation::RequestToken), [Some(200); 3]);
}

#[rstest]
#[case::no_grant(&[("grant_type", "")], 400, "invalid_request", "'grant_type'")]
#[case::other_grant(&[("grant_type", "password")], 400, "unsupported_grant_type", "AADSTS70003")]
#[case::no_client(&[("client_id", "")], 400, "invalid_request", "'client_id'")]
#[case::unknown_client(&[("client_id", "someone")], 400, "unauthorized_client", "AADSTS700016")]
#[case::no_scope(&[("scope", "")], 400, "invalid_request", "'scope'")]
#[case::one_permission(&[("scope", "https://vault.azure.net/user_impersonation")], 400, "invalid_scope", "AADSTS1002012")]
#[case::no_credential(&[("client_assertion_type", "")], 401, "invalid_client", "AADSTS7000218")]
#[case::other_type(&[("client_assertion_type", "saml"), ("client_assertion", "x")], 401, "invalid_client", "AADSTS7000218")]
#[case::no_assertion(&[], 400, "invalid_request", "'client_assertion'")]
#[case::no_token(&[("client_assertion", "x")], 401, "invalid_client", "AADSTS50013")]
#[case::wrong_secret(&[("client_secret", "guessed")], 401, "invalid_client", "AADSTS7000215")]
#[tokio::test]
async fn token_requests_are_denied(
    #[case] changes: &[(&str, &str)],
    #[case] status: u16,
    #[case] error: &str,
    #[case] text: &str,
) {
    let server = Server::plain().await;
    server.request_token(&server.form(changes)).await.denied(status, error, text);
}

#[tokio::test]
async fn assertions_are_checked() {
    let server = Server::with_lifetime(Settings::default()).await;
    let present = async |assertion: &str| server.request_token(&server.form(&[("client_assertion", assertion)])).await;
    let other_subject = server.vault.assertion("system:serviceaccount:hyperfleet:other");
    present(&other_subject).await.denied(401, "invalid_client", "AADSTS700213");
    // Its audience is the vault.
    present(&server.token).await.denied(401, "invalid_client", "AADSTS700213");
    // So it has the right audience, and no subject.
    let exchange = server.issue("api://AzureADTokenExchange/.default").await;
    present(&exchange).await.denied(401, "invalid_client", "AADSTS700213");
    let elsewhere = Server::plain().await.vault.assertion(SUBJECT);
    present(&elsewhere).await.denied(401, "invalid_client", "AADSTS50013");

    let assertion = server.vault.assertion(SUBJECT);
    server.vault.advance_clock(HOUR);
    present(&assertion).await.denied(401, "invalid_client", "AADSTS700024");
}

#[tokio::test]
async fn an_identity_has_only_the_credentials_that_it_was_given() {
    let bare = Identity { client_id: "bare".to_owned(), secret: None, subject: None, ..Identity::admin() };
    let server = Server::start(Settings { identities: vec![Identity::admin(), bare], ..Settings::default() }).await;
    let present = async |field, credential: &str| {
        server.request_token(&server.form(&[("client_id", "bare"), (field, credential)])).await
    };
    let secret = server.settings.identities[0].secret.clone().unwrap();
    present("client_secret", &secret).await.denied(401, "invalid_client", "AADSTS7000215");
    let assertion = server.vault.assertion(SUBJECT);
    present("client_assertion", &assertion).await.denied(401, "invalid_client", "AADSTS700213");
}

#[tokio::test]
async fn another_tenant_is_not_found() {
    let server = Server::plain().await;
    let form = server.form(&[("client_assertion", &server.vault.assertion(SUBJECT))]);
    let denied = server.post_form("/other/oauth2/v2.0/token", &form).await;
    denied.denied(400, "invalid_request", "AADSTS90002: Tenant 'other' not found.");
    let configuration = "/v2.0/.well-known/openid-configuration";
    let denied = server.raw("GET", &format!("/other{configuration}"), "", "").await.unwrap();
    denied.denied(400, "invalid_tenant", "AADSTS90002");

    let tenant = &server.settings.tenant;
    let found = server.raw("GET", &format!("/{tenant}{configuration}"), "", "").await.unwrap().expect(200);
    let authority = format!("{}/{tenant}", server.vault.url());
    assert_eq!(found["token_endpoint"], format!("{authority}/oauth2/v2.0/token"));
    assert_eq!(found["issuer"], format!("{authority}/v2.0"));
}

#[tokio::test]
async fn the_vault_accepts_its_own_tokens_only() {
    let server = Server::with_lifetime(Settings::default()).await;
    let path = versioned("/secrets/s");
    let first = server.raw("GET", &path, "", "").await.unwrap();
    let challenge = format!(
        "www-authenticate: bearer authorization=\"{}/{}\", resource=\"https://vault.azure.net\"",
        server.vault.url(),
        server.settings.tenant
    );
    assert!(first.head.contains(&challenge), "{}", first.head);
    first.refused(401, "Unauthorized", "missing a Bearer");
    let basic = server.raw("GET", &path, "", "authorization: Basic eDp5\r\n").await.unwrap();
    basic.refused(401, "Unauthorized", "missing a Bearer");

    let elsewhere = Server::plain().await.token;
    let assertion = server.vault.assertion(SUBJECT);
    let other_audience = server.issue("https://management.azure.com/.default").await;
    let tampered = server.token.replace('.', ".x");
    for (token, text) in [
        ("x", "AKV10000"),
        (&elsewhere, "AKV10000"),
        (&tampered, "AKV10000"),
        (&assertion, "AKV10022: Invalid audience"),
        (&other_audience, "AKV10022: Invalid audience"),
    ] {
        with_token(&server, token).await.refused(401, "Unauthorized", text);
    }
    server.vault.advance_clock(HOUR);
    server.get("/secrets").await.refused(401, "Unauthorized", "[TokenExpired]");
}

#[rstest]
#[case("PUT", "/secrets/s", Permission::Set, "secrets/setSecret/action")]
#[case("GET", "/secrets/s", Permission::Get, "secrets/getSecret/action")]
#[case("GET", "/secrets/s/0", Permission::Get, "secrets/getSecret/action")]
#[case("PATCH", "/secrets/s", Permission::Set, "secrets/update/action")]
#[case("GET", "/secrets", Permission::List, "secrets/readMetadata/action")]
#[case("GET", "/secrets/s/versions", Permission::List, "secrets/readMetadata/action")]
#[case("DELETE", "/secrets/s", Permission::Delete, "secrets/delete")]
#[case("GET", "/deletedsecrets/s", Permission::Get, "secrets/readMetadata/action")]
#[case("GET", "/deletedsecrets", Permission::List, "secrets/readMetadata/action")]
#[case("DELETE", "/deletedsecrets/s", Permission::Purge, "secrets/purge/action")]
#[case("POST", "/deletedsecrets/s/recover", Permission::Recover, "secrets/recover/action")]
#[tokio::test]
async fn each_operation_needs_its_permission(
    #[case] method: &str,
    #[case] path: &str,
    #[case] needed: Permission,
    #[case] action: &str,
) {
    let granted = |permissions: Vec<Permission>| {
        let identity = Identity { permissions: permissions.into_iter().collect(), ..Identity::admin() };
        Settings { identities: vec![identity], ..Settings::default() }
    };
    let others = Permission::ALL.into_iter().filter(|permission| *permission != needed).collect();
    let server = Server::start(granted(others)).await;
    // Not even the body is looked at.
    let refused = server.call(method, path, json!(17)).await;
    refused.refused(403, "Forbidden/ForbiddenByRbac", &format!("Action: 'Microsoft.KeyVault/vaults/{action}'"));
    let server = Server::start(granted(vec![needed])).await;
    let body = if matches!(method, "PUT" | "PATCH") { json!({"value": "a"}) } else { Value::Null };
    assert_ne!(server.call(method, path, body).await.status, 403);
}

async fn with_token(server: &Server, token: &str) -> Reply {
    let header = format!("authorization: Bearer {token}\r\n");
    server.raw("GET", &versioned("/secrets"), "", &header).await.unwrap()
}
