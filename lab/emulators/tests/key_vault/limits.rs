//! Limits of values, names, tags; requests that are none.

use rstest::rstest;
use serde_json::{Value, json};

use testkit::key_vault::{KeyVaultReply as _, Server};

#[tokio::test]
async fn a_value_has_25_kilobytes_at_most() {
    let server = Server::plain().await;
    let largest = "x".repeat(25 * 1024);
    server.set("s", &largest).await;
    assert_eq!(server.value("s").await, largest);
    // Bytes, not characters; each of these is escaped in JSON.
    server.set("s", &"\u{1}".repeat(25 * 1024)).await;
    let larger = format!("{}ü", "x".repeat(25 * 1024 - 1));
    server.put("s", json!({"value": larger})).await.refused(400, "BadParameter", "25601 bytes is larger than 25600");
    let huge = "x".repeat(600 * 1024);
    server.put("s", json!({"value": huge})).await.refused(400, "BadParameter", "The body cannot be read, or is larger");
}

#[rstest]
#[case::shortest("a", true)]
#[case::longest(&"a".repeat(127), true)]
#[case::too_long(&"a".repeat(128), false)]
#[case::letters("Az-09", true)]
#[case::dash("-", true)]
#[case::underscore("a_b", false)]
#[case::dot("a.b", false)]
#[case::escaped("a%20b", false)]
#[tokio::test]
async fn names_are_letters_digits_and_dashes(#[case] name: &str, #[case] allowed: bool) {
    let server = Server::plain().await;
    let reply = server.put(name, json!({"value": "a"})).await;
    if allowed {
        reply.expect(200);
    } else {
        reply.refused(400, "BadParameter", &format!("invalid name: {name}"));
    }
}

/// Text of this length.
fn text(length: usize) -> String {
    "x".repeat(length)
}

fn tags(count: usize) -> Value {
    (0..count).map(|number| (format!("tag-{number}"), json!("x"))).collect::<serde_json::Map<_, _>>().into()
}

#[rstest]
#[case::tags(json!({"tags": tags(15)}), None)]
#[case::many_tags(json!({"tags": tags(16)}), Some("16 tags are more than 15."))]
#[case::long_tag(json!({"tags": {text(256): text(256)}}), None)]
#[case::longer_name(json!({"tags": {text(257): "x"}}), Some("is longer than 256 characters."))]
#[case::longer_tag(json!({"tags": {"x": text(257)}}), Some("The tag \"x\" or its value is longer than 256 characters."))]
#[case::content_type(json!({"contentType": text(256)}), None)]
#[case::longer_content_type(json!({"contentType": text(257)}), Some("The content type is longer than 256 characters."))]
#[case::nulls(json!({"contentType": null, "tags": null, "attributes": null}), None)]
#[case::future(json!({"another": "member"}), None)]
#[case::tags_of_numbers(json!({"tags": {"a": 1}}), Some("The body is no document of a secret"))]
#[case::enabled(json!({"attributes": {"enabled": "yes"}}), Some("The body is no document of a secret"))]
#[case::fractions(json!({"attributes": {"exp": 1.5}}), Some("The body is no document of a secret"))]
#[tokio::test]
async fn properties_have_limits(#[case] properties: Value, #[case] refused: Option<&str>) {
    let server = Server::plain().await;
    server.set("t", "a").await;
    let mut bundle = properties.clone();
    bundle["value"] = json!("a");
    let replies = [server.put("s", bundle).await, server.patch("/secrets/t", properties).await];
    for reply in replies {
        match refused {
            Some(text) => reply.refused(400, "BadParameter", text),
            None => drop(reply.expect(200)),
        }
    }
    // What is refused is not done, not even a part of it.
    let is_there = server.get("/secrets/s").await.status == 200;
    assert_eq!(is_there, refused.is_none());
}

#[rstest]
#[case::no_value("PUT", "/secrets/s", "{}", "The property value is required.")]
#[case::null("PUT", "/secrets/s", r#"{"value": null}"#, "The property value is required.")]
#[case::empty("PUT", "/secrets/s", "", "The body is no document of a secret")]
#[case::no_json("PUT", "/secrets/s", "value=a", "The body is no document of a secret")]
#[case::list("PATCH", "/secrets/s", "[]", "The body is no document of a secret")]
#[case::no_name("PUT", "/secrets//", r#"{"value": "a"}"#, "There is no PUT /secrets//")]
#[case::no_such_path("GET", "/keys", "", "There is no GET /keys in this API.")]
#[case::no_such_method("POST", "/secrets/s", "{}", "There is no POST /secrets/s in this API.")]
#[case::too_deep("GET", "/secrets/s/1/2", "", "There is no GET /secrets/s/1/2 in this API.")]
#[case::backup("POST", "/secrets/s/backup", "", "There is no POST /secrets/s/backup in this API.")]
#[tokio::test]
async fn what_is_no_request_is_refused(
    #[case] method: &str,
    #[case] path: &str,
    #[case] body: &str,
    #[case] text: &str,
) {
    let server = Server::plain().await;
    let header = format!("authorization: Bearer {}\r\n", server.token);
    let reply = server.raw(method, &format!("{path}?api-version=7.6"), body, &header).await.unwrap();
    reply.refused(400, "BadParameter", text);
}

#[rstest]
#[case("")]
#[case("?api-version=")]
#[case("?version=7.6")]
#[tokio::test]
async fn the_version_of_the_api_must_be_given(#[case] query: &str) {
    let server = Server::plain().await;
    let header = format!("authorization: Bearer {}\r\n", server.token);
    let reply = server.raw("GET", &format!("/secrets{query}"), "", &header).await.unwrap();
    reply.refused(400, "BadParameter", "api-version must be given");
}
