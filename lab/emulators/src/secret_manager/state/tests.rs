//! The core by itself, with instants made up: what is decided, what is written, what only time changes.

use jiff::ToSpan as _;

use super::*;
use crate::secret_manager::status::Code;
use crate::secret_manager::wire::requests::{Add, Create, Named, Tagged};
use crate::secret_manager::wire::resources::{Automatic, Replication};
use crate::secret_manager::wire::{Change, VersionState};

const START: Timestamp = Timestamp::UNIX_EPOCH;
const SECRET: &str = "projects/7/secrets/s";

fn create(secret: Secret) -> Request {
    let replication = Some(Replication { automatic: Some(Automatic::default()), user_managed: None });
    let secret = Some(Secret { replication, ..secret });
    Request::CreateSecret(Create { parent: "projects/7".to_owned(), secret_id: "s".to_owned(), secret })
}

fn add(data: &str) -> Request {
    let payload = Some(SecretPayload { data: data.as_bytes().to_vec(), data_crc32c: None });
    Request::AddVersion(Add { parent: SECRET.to_owned(), payload })
}

fn access(version: &str) -> Request {
    Request::AccessVersion(Named { name: format!("{SECRET}/versions/{version}") })
}

fn change(change: Change, etag: &str) -> Request {
    Request::ChangeVersion(change, Tagged { name: format!("{SECRET}/versions/1"), etag: etag.to_owned() })
}

fn get() -> Request {
    Request::GetSecret(Named { name: SECRET.to_owned() })
}

/// A state with the secret and one version in it.
fn filled(secret: Secret, lag: SignedDuration) -> State {
    let mut state = State::new(lag);
    state.handle(START, &create(secret)).unwrap();
    state.handle(START, &add("one")).unwrap();
    state
}

fn etag_of(response: &Response) -> &str {
    match response {
        Response::Secret(secret) => &secret.etag,
        Response::Version(version) => &version.etag,
        other => panic!("{other:?} has no etag"),
    }
}

#[test]
fn deciding_changes_nothing() {
    let state = filled(Secret::default(), SignedDuration::ZERO);
    let before = format!("{state:?}");
    for request in [add("two"), change(Change::Destroy, ""), get()] {
        state.decide(START, &request).unwrap();
    }
    assert_eq!(format!("{state:?}"), before);
}

#[test]
fn etags_never_come_back_even_if_the_clock_stands_still() {
    let mut state = filled(Secret::default(), SignedDuration::ZERO);
    let mut etags = BTreeSet::new();
    for step in [Change::Disable, Change::Disable, Change::Enable] {
        let response = state.handle(START, &change(step, "")).unwrap();
        assert!(etags.insert(etag_of(&response).to_owned()));
    }
    let stale = etags.first().unwrap();
    assert_eq!(state.handle(START, &change(Change::Enable, stale)).unwrap_err().code, Code::FailedPrecondition);
    state.handle(START, &change(Change::Enable, etags.last().unwrap())).unwrap();
}

#[test]
fn a_loaded_secret_continues_where_it_was() {
    let mut state = filled(Secret::default(), SignedDuration::ZERO);
    let last = state.handle(START, &change(Change::Disable, "")).unwrap();
    let (key, record) = state.secrets.pop_first().unwrap();
    let mut again = State::new(SignedDuration::from_secs(60));
    again.load(key, Record::clone(&record));
    again.handle(START, &get()).unwrap();
    let next = again.handle(START, &change(Change::Enable, etag_of(&last))).unwrap();
    assert_ne!(etag_of(&next), etag_of(&last));
}

#[test]
fn destroying_wipes_the_content() {
    let mut state = filled(Secret::default(), SignedDuration::ZERO);
    state.handle(START, &change(Change::Destroy, "")).unwrap();
    let record = state.secrets.values().next().unwrap();
    assert_eq!(record.versions[&1].payload, None);
    assert_eq!(
        state.handle(START, &access("1")).unwrap_err().message,
        "Secret Version [projects/7/secrets/s/versions/1] is in DESTROYED state."
    );
    state.handle(START, &add("two")).unwrap();
    state.handle(START, &access("2")).unwrap();
}

#[test]
fn only_the_instant_of_expiry_ends_a_secret() {
    let ttl = Some(prost_types::Duration { seconds: 60, nanos: 0 });
    let mut state = filled(Secret { ttl, ..Secret::default() }, SignedDuration::ZERO);
    assert!(state.due(START + 59.seconds()).is_empty());
    let due = state.due(START + 60.seconds());
    assert!(matches!(due.as_slice(), [Write { record: None, .. }]));
    assert_eq!(state.handle(START + 60.seconds(), &get()).unwrap_err().code, Code::NotFound);
    assert!(state.deadlines.is_empty());
}

#[test]
fn a_scheduled_destruction_happens_at_its_instant() {
    let version_destroy_ttl = Some(prost_types::Duration { seconds: 86_400, nanos: 0 });
    let mut state = filled(Secret { version_destroy_ttl, ..Secret::default() }, SignedDuration::ZERO);
    state.handle(START, &change(Change::Destroy, "")).unwrap();
    let later = START + 48.hours();
    let Response::Version(version) =
        state.handle(later, &Request::GetVersion(Named { name: format!("{SECRET}/versions/1") })).unwrap()
    else {
        panic!("a version was expected")
    };
    assert_eq!(version.state, VersionState::Destroyed as i32);
    assert_eq!(instant(version.destroy_time.as_ref()), Some(START + 24.hours()));
    assert!(state.deadlines.is_empty() && version.scheduled_destroy_time.is_none());
}

#[test]
fn lagging_reads_remember_no_more_than_they_need() {
    let mut state = filled(Secret::default(), SignedDuration::from_secs(60));
    for second in 1..=600 {
        state.handle(START + second.seconds(), &change(Change::Disable, "")).unwrap();
    }
    let past = state.past.values().next().unwrap();
    assert!(past.len() <= 62, "{}", past.len());
    state.handle(START + 600.seconds(), &get()).unwrap();
}
