//! Events in every form, against bytes that never change.

use proptest::prelude::*;
use rstest::rstest;
use serde_json::json;

use super::*;
use crate::Message;
use fleet_model::names::message::{CONTENT_TYPE, WATERMILL_UUID};

const STRUCTURED: &str = include_str!("../../tests/golden/structured.json");
const STRUCTURED_ATTRIBUTES: &str = include_str!("../../tests/golden/structured.attributes.json");
const BINARY: &str = include_str!("../../tests/golden/binary.json");
const BINARY_ATTRIBUTES: &str = include_str!("../../tests/golden/binary.attributes.json");
const GO_SENTINEL: &str = include_str!("../../tests/golden/go-sentinel.json");
const DOCUMENTED: &str = include_str!("../../tests/golden/documented.json");

/// An event with everything.
fn full() -> Event {
    Event {
        id: "01977a5c-7e3b-7d3f-9d0e-0d5d0f6a1b2c".to_owned(),
        source: "pull-secret/sentinel".to_owned(),
        kind: "com.redhat.hyperfleet.cluster.reconcile".to_owned(),
        subject: Some("clusters/c-1".to_owned()),
        time: Some("2026-11-21T12:00:00.25Z".parse().unwrap()),
        data_schema: None,
        data_content_type: Some("application/json".to_owned()),
        data: Some(Data::Json(json!({"generation": 3, "id": "c-1", "kind": "Cluster"}))),
        extensions: [("traceparent".to_owned(), format!("00-{}-{}-01", "a".repeat(32), "b".repeat(16)))].into(),
    }
}

fn message(body: &str, attributes: &[(&str, &str)]) -> Message {
    let attributes = attributes.iter().map(|(name, value)| ((*name).to_owned(), (*value).to_owned())).collect();
    Message { body: body.trim_end().as_bytes().to_vec(), attributes }
}

fn golden(body: &str, attributes: &str) -> Message {
    Message { body: body.trim_end().as_bytes().to_vec(), attributes: serde_json::from_str(attributes).unwrap() }
}

#[rstest]
#[case(Format::Structured, STRUCTURED, STRUCTURED_ATTRIBUTES)]
#[case(Format::Binary, BINARY, BINARY_ATTRIBUTES)]
fn an_event_is_always_the_same_bytes(#[case] format: Format, #[case] body: &str, #[case] attributes: &str) {
    let written = full().encode(format);
    let golden = golden(body, attributes);
    assert_eq!(String::from_utf8(written.body).unwrap(), String::from_utf8(golden.body.clone()).unwrap());
    assert_eq!(written.attributes, golden.attributes);
    assert_eq!(Event::decode(&golden), Ok(full()));
}

/// Data with some of an envelope's names only is no envelope.
#[rstest]
#[case(json!({"id": "cls-1", "kind": "Cluster", "href": "/clusters/cls-1", "generation": 1}))]
#[case(json!({"id": "cls-1", "type": "cluster"}))]
#[case(json!({"id": "cls-1", "data": {"a": 1}}))]
#[case(json!({"clusterId": "cls-1", "source": "sentinel"}))]
fn data_without_an_envelope_is_read(#[case] data: Value) {
    let event = Event::decode(&message(&data.to_string(), &[])).unwrap();
    assert_eq!(event.json(), Some(&data));
}

#[test]
fn bare_json_is_the_data_alone() {
    let written = full().encode(Format::Bare);
    assert_eq!(written.body, br#"{"generation":3,"id":"c-1","kind":"Cluster"}"#);
    let read = Event::decode(&written).unwrap();
    assert_eq!((read.id, read.data), (full().id, full().data));
}

/// The Go Sentinel's own bytes: no content type, no time, no subject.
#[test]
fn what_the_go_sentinel_writes_is_read() {
    let uuid = "01977a5c-7e3b-7d3f-9d0e-0d5d0f6a1b2c";
    let event = Event::decode(&message(GO_SENTINEL, &[(WATERMILL_UUID, uuid)])).unwrap();
    assert_eq!(event.id, uuid);
    assert_eq!(event.source, "hyperfleet-sentinel");
    assert_eq!(event.kind, "com.redhat.hyperfleet.cluster.reconcile");
    assert_eq!((event.time, &event.subject), (None, &None));
    assert_eq!(event.json().unwrap()["generation"], json!(1));
    assert!(event.extensions["traceparent"].starts_with("00-"));
    // Written again without what we add, it is the same bytes.
    let again = event.encode(Format::Structured).body;
    let (again, theirs): (Value, Value) = (serde_json::from_slice(&again).unwrap(), GO_SENTINEL.parse().unwrap());
    assert_eq!(again, theirs);
}

/// The documents' example, with a member that is no scalar and a number as extension.
#[test]
fn what_the_documents_show_is_read() {
    let event = Event::decode(&message(DOCUMENTED, &[])).unwrap();
    assert_eq!(event.kind, "com.redhat.hyperfleet.cluster.reconcile.v1");
    assert_eq!(event.source, "/hyperfleet/service/sentinel");
    assert_eq!(event.time.unwrap().to_string(), "2025-11-03T10:30:00Z");
    assert_eq!(event.extensions, [("sequence".to_owned(), "7".to_owned())].into());
}

#[test]
fn what_the_specification_names_is_read() {
    let body = r#"{"specversion":"1.0","id":"1","source":"sentinel","type":"cluster.create","data":{"id":"cls-123"}}"#;
    assert_eq!(Event::decode(&message(body, &[])).unwrap().kind, "cluster.create");
}

/// AMQP's binding, and names in another case.
#[rstest]
#[case("ce-")]
#[case("Ce-")]
#[case("cloudEvents:")]
#[case("cloudEvents_")]
fn binary_mode_is_read_however_it_is_spelt(#[case] prefix: &str) {
    let names = ["specversion", "id", "source", "type"].map(|name| format!("{prefix}{name}"));
    let [version, id, source, kind] = names.each_ref().map(String::as_str);
    let attributes = [(version, "1.0"), (id, "7"), (source, "s"), (kind, "k"), (CONTENT_TYPE, "text/plain")];
    let event = Event::decode(&message("hello", &attributes)).unwrap();
    assert_eq!((event.id.as_str(), event.source.as_str(), event.kind.as_str()), ("7", "s", "k"));
    assert_eq!(event.data, Some(Data::Bytes(b"hello".to_vec())));
}

#[test]
fn data_that_is_no_json_is_kept() {
    let mut event = full();
    event.data_content_type = Some("application/octet-stream".to_owned());
    event.data = Some(Data::Bytes(vec![0, 255, 1]));
    for format in [Format::Structured, Format::Binary] {
        assert_eq!(Event::decode(&event.encode(format)), Ok(event.clone()));
    }
}

#[rstest]
#[case("", &[])]
#[case("no json", &[])]
#[case("[]", &[])]
#[case("7", &[])]
#[case("{\"specversion\":\"0.3\",\"id\":\"1\"}", &[])]
#[case("{\"specversion\":1}", &[])]
#[case("{\"id\":\"1\"}", &[(CONTENT_TYPE, "application/cloudevents+json")])]
#[case("[{}]", &[(CONTENT_TYPE, "application/cloudevents-batch+json")])]
#[case("{\"specversion\":\"1.0\",\"id\":7}", &[])]
#[case("{\"specversion\":\"1.0\",\"time\":\"yesterday\"}", &[])]
#[case("{\"specversion\":\"1.0\",\"data\":1,\"data_base64\":\"AA==\"}", &[])]
#[case("{\"specversion\":\"1.0\",\"data_base64\":\"?\"}", &[])]
#[case("not json", &[("ce-specversion", "1.0"), ("ce-id", "1")])]
// Envelopes without a version: their id is the event's, not a resource's.
#[case("{\"id\":\"e\",\"source\":\"s\",\"type\":\"t\",\"data\":{\"id\":\"cls-1\"}}", &[])]
#[case("{\"id\":\"e\",\"source\":\"s\",\"type\":\"t\"}", &[])]
#[case("{\"id\":\"e\",\"type\":\"t\",\"data\":{\"id\":\"cls-1\"}}", &[])]
#[case("{\"id\":\"e\",\"source\":\"s\",\"data\":null}", &[])]
#[case("{\"id\":\"e\",\"datacontenttype\":\"application/json\",\"data_base64\":\"e30=\"}", &[])]
#[case("{\"id\":\"e\",\"source\":\"s\",\"type\":\"t\",\"data\":{}}", &[(WATERMILL_UUID, "e")])]
#[case("{}", &[("ce-id", "1"), ("ce-source", "s"), ("ce-type", "t")])]
#[case("{}", &[("ce-source", "s"), ("ce-type", "t")])]
#[case("{}", &[("ce-specversion", "2.0"), ("ce-id", "1")])]
fn what_is_no_event_is_reported(#[case] body: &str, #[case] attributes: &[(&str, &str)]) {
    assert!(Event::decode(&message(body, attributes)).is_err());
}

#[rstest]
#[case("{\"specversion\":\"1.0\",\"id\":\"\"}")]
#[case("{\"generation\":1}")]
fn an_event_without_an_id_gets_one(#[case] body: &str) {
    let event = Event::decode(&message(body, &[(WATERMILL_UUID, "")])).unwrap();
    assert!(!event.id.is_empty());
}

#[test]
fn what_cannot_be_read_is_not_quoted() {
    let error = Event::decode(&message("{\"password\": pa55word}", &[])).unwrap_err().to_string();
    assert!(!error.contains("pa55word"), "{error}");
}

proptest! {
    #[test]
    fn reading_never_panics(body in proptest::collection::vec(any::<u8>(), 0..200), content in ".*", id in ".*") {
        let attributes = [(CONTENT_TYPE, content.as_str()), ("ce-id", id.as_str())];
        let mut message = message("", &attributes);
        message.body = body;
        let _any = Event::decode(&message);
    }

    #[test]
    fn what_is_written_is_read(id in ".+", source in ".*", kind in ".*", subject in proptest::option::of(".*")) {
        let event = Event { id, source, kind, subject, ..full() };
        for format in [Format::Structured, Format::Binary] {
            prop_assert_eq!(Event::decode(&event.encode(format)), Ok(event.clone()));
        }
    }
}
