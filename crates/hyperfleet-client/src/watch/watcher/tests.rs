//! The loop behind a watch, against a script instead of an API, in paused time.

use std::sync::{Arc, Mutex};

use futures_util::stream::{self, StreamExt as _};

use daemon::backoff::Backoff;

use super::super::source::Opened;
use super::super::view::Listing;
use super::*;
use crate::wire::{Problem, Resource};

/// The API's answer when the stream is opened.
#[derive(Clone, Copy)]
enum Open {
    Refused(u16),
    /// These lines, then the connection is closed.
    Closed(&'static [&'static str]),
    /// These lines, with so many seconds before each, then nothing more.
    Silent(u64, &'static [&'static str]),
    /// One JSON document.
    Document(&'static str),
    /// No answer.
    Late,
}

/// The API's answers to the requests of a watch; the last answer is repeated.
struct Script {
    opens: &'static [Open],
    /// The ids in each list; `None` fails.
    lists: &'static [Option<&'static [&'static str]>],
    asked: Mutex<Asked>,
    log: Arc<Mutex<Vec<String>>>,
    began: Instant,
}

#[derive(Default)]
struct Asked {
    opens: usize,
    lists: usize,
}

impl Script {
    fn log(&self, what: &str) {
        self.log.lock().unwrap().push(format!("{}s {what}", self.began.elapsed().as_secs()));
    }
}

fn refused(status: u16) -> Error {
    Error::Refused { call: "watch clusters".to_owned(), status, problem: None::<Box<Problem>>, retry_after: None }
}

impl Source for Script {
    async fn open(&self, version: Option<&str>) -> Result<Opened, Error> {
        self.log(&format!("open {}", version.unwrap_or("-")));
        let mut asked = self.asked.lock().unwrap();
        let open = self.opens.get(asked.opens).or(self.opens.last()).copied().unwrap();
        asked.opens += 1;
        let line = |line: &str| Ok(format!("{line}\n").into_bytes());
        let opened = |chunks, is_document| Ok(Opened { chunks, is_document });
        match open {
            Open::Refused(status) => Err(refused(status)),
            Open::Closed(lines) => opened(stream::iter(lines.iter().map(move |text| line(text))).boxed(), false),
            Open::Silent(seconds, lines) => {
                let slow = stream::iter(lines).then(move |text| async move {
                    sleep(Duration::from_secs(seconds)).await;
                    line(text)
                });
                opened(slow.chain(stream::pending()).boxed(), false)
            }
            Open::Late => Err(Error::TimedOut { call: self.call(), after: Duration::from_secs(75) }),
            Open::Document(text) => opened(stream::iter([Ok(text.as_bytes().to_vec())]).boxed(), true),
        }
    }

    async fn list(&self, _known: Option<&View>) -> Result<Listing, Error> {
        self.log("list");
        let mut asked = self.asked.lock().unwrap();
        let ids = self.lists.get(asked.lists).or(self.lists.last()).copied().unwrap();
        asked.lists += 1;
        let resource = |id: &&str| Resource { id: (*id).to_owned(), ..Resource::default() };
        let items = ids.ok_or_else(|| refused(503))?.iter().map(resource).collect();
        Ok(Listing { items, is_exact: true })
    }

    fn call(&self) -> String {
        "watch clusters".to_owned()
    }
}

/// The first `count` events, and what was asked for them; waits are of length zero.
async fn watch(from: Option<&str>, count: usize, opens: &'static [Open], lists: Lists) -> (Vec<String>, Vec<String>) {
    let (events, log, _health) = watch_with_health(from, count, opens, lists).await;
    (events, log)
}

type Lists = &'static [Option<&'static [&'static str]>];

async fn watch_with_health(
    from: Option<&str>,
    count: usize,
    opens: &'static [Open],
    lists: Lists,
) -> (Vec<String>, Vec<String>, Health) {
    let log = Arc::default();
    let script = Script { opens, lists, asked: Mutex::default(), log: Arc::clone(&log), began: Instant::now() };
    let backoff = Backoff::doubling(Duration::ZERO, Duration::ZERO);
    let settings = WatchSettings { backoff, ..WatchSettings::default() };
    let (mut watcher, health) = Watcher::new(script, settings, from.map(str::to_owned));
    let mut events = Vec::new();
    for _ in 0..count {
        events.push(shown(&watcher.next().await));
    }
    let (log, health) = (log.lock().unwrap().clone(), health.borrow().clone());
    (events, log, health)
}

fn shown(event: &WatchEvent) -> String {
    let object = event.object.as_ref().map_or("-", |object| &object.id);
    format!("{:?} {object} {}", event.kind, event.resource_version.as_deref().unwrap_or("-"))
}

const ADDED_A: &str = r#"{"type": "ADDED", "resource_version": "1", "object": {"id": "a"}}"#;
const ADDED_B: &str = r#"{"type": "ADDED", "resource_version": "2", "object": {"id": "b"}}"#;
const BOOKMARK: &str = r#"{"type": "BOOKMARK", "resource_version": "7", "object": {}}"#;
const MODIFIED_A: &str = r#"{"type": "MODIFIED", "resource_version": "8", "object": {"id": "a"}}"#;
const DELETED_A: &str = r#"{"type": "DELETED", "resource_version": "9", "object": {"id": "a"}}"#;

#[tokio::test(start_paused = true)]
async fn a_cut_is_resumed_after_the_last_event() {
    let opens = &[Open::Closed(&[ADDED_A, ADDED_B, BOOKMARK, MODIFIED_A]), Open::Closed(&[DELETED_A])];
    let (events, asked) = watch(None, 5, opens, &[]).await;
    assert_eq!(events, ["Added a -", "Added b -", "Bookmark - 7", "Modified a 8", "Deleted a 9"]);
    assert_eq!(asked, ["0s open -", "0s open 8"]);
}

#[tokio::test(start_paused = true)]
async fn a_cut_within_the_present_state_starts_over() {
    let opens = &[Open::Closed(&[ADDED_A]), Open::Closed(&[ADDED_A, ADDED_B, BOOKMARK])];
    let (events, asked) = watch(None, 5, opens, &[]).await;
    assert_eq!(events, ["Added a -", "Restarted - -", "Added a -", "Added b -", "Bookmark - 7"]);
    assert_eq!(asked, ["0s open -", "0s open -"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_that_is_not_held_any_more_starts_over() {
    for status in [
        &[Open::Refused(410), Open::Closed(&[ADDED_B, BOOKMARK])],
        &[Open::Refused(400), Open::Closed(&[ADDED_B, BOOKMARK])],
    ] {
        let (events, asked) = watch(Some("3"), 3, status, &[]).await;
        assert_eq!(events, ["Restarted - -", "Added b -", "Bookmark - 7"]);
        assert_eq!(asked, ["0s open 3", "0s open -"]);
    }
}

#[tokio::test(start_paused = true)]
async fn silence_is_cut_and_resumed() {
    let opens = &[Open::Silent(74, &[ADDED_A, BOOKMARK, "", MODIFIED_A]), Open::Closed(&[DELETED_A])];
    let (events, asked) = watch(None, 4, opens, &[]).await;
    assert_eq!(events, ["Added a -", "Bookmark - 7", "Modified a 8", "Deleted a 9"]);
    assert_eq!(asked, ["0s open -", "371s open 8"]);
}

const PAGE: &str = r#"{"page": 1, "size": 1, "total": 1, "items": [{"id": "a"}]}"#;
const PRETTY: &str = "{\n  \"items\": []\n}";

#[tokio::test(start_paused = true)]
async fn without_a_stream_lists_are_compared() {
    let lists: Lists = &[Some(&["a", "b"]), Some(&["a", "b"]), Some(&["b", "c"])];
    let expect = ["Added a -", "Added b -", "Bookmark - -", "Added c -", "Deleted a -"];
    let openings: [&[Open]; 7] = [
        &[Open::Refused(400)],
        &[Open::Refused(404)],
        &[Open::Refused(405)],
        &[Open::Refused(501)],
        &[Open::Document(PAGE)],
        &[Open::Document(PRETTY)],
        &[Open::Closed(&[r#"{"items": []}"#])],
    ];
    for opens in openings {
        let (events, asked, health) = watch_with_health(None, 5, opens, lists).await;
        assert_eq!(events, expect);
        assert_eq!(asked, ["0s open -", "0s list", "5s list", "10s list"]);
        assert!(matches!(health, Health::Polling));
    }
}

#[tokio::test(start_paused = true)]
async fn the_stream_is_looked_for_again_while_polling() {
    let opens = &[Open::Refused(404), Open::Refused(502), Open::Closed(&[ADDED_B, BOOKMARK])];
    let (events, asked, health) = watch_with_health(None, 5, opens, &[Some(&["a"])]).await;
    assert_eq!(events, ["Added a -", "Bookmark - -", "Restarted - -", "Added b -", "Bookmark - 7"]);
    let opened: Vec<_> = asked.iter().filter(|asked| asked.contains("open")).collect();
    assert_eq!(opened, ["0s open -", "300s open -", "600s open -"]);
    assert!(matches!(health, Health::Streaming));
}

#[tokio::test(start_paused = true)]
async fn what_polling_saw_before_the_stream_came_back_is_forgotten() {
    let opens = &[Open::Refused(404), Open::Closed(&[ADDED_B, BOOKMARK]), Open::Refused(404)];
    let (events, _asked) = watch(None, 8, opens, &[Some(&["a"])]).await;
    let polled = ["Added a -", "Bookmark - -"];
    assert_eq!(events[..2], polled);
    assert_eq!(events[2..5], ["Restarted - -", "Added b -", "Bookmark - 7"]);
    assert_eq!(events[5], "Restarted - -");
    assert_eq!(events[6..], polled);
}

#[tokio::test(start_paused = true)]
async fn an_event_without_its_line_feed_is_read_again() {
    let opens = &[Open::Document(DELETED_A), Open::Closed(&[DELETED_A])];
    let (events, asked) = watch(Some("8"), 1, opens, &[]).await;
    assert_eq!(events, ["Deleted a 9"]);
    assert_eq!(asked, ["0s open 8", "0s open 8"]);
}

#[tokio::test(start_paused = true)]
async fn an_outage_keeps_what_is_known() {
    let lists: Lists = &[Some(&["a", "b"]), None, None, Some(&["a"])];
    let (events, _asked) = watch(None, 4, &[Open::Refused(404)], lists).await;
    assert_eq!(events, ["Added a -", "Added b -", "Bookmark - -", "Deleted b -"]);
}

#[tokio::test(start_paused = true)]
async fn a_version_is_of_no_use_to_polling() {
    let (events, _asked) = watch(Some("3"), 3, &[Open::Refused(405)], &[Some(&["a"])]).await;
    assert_eq!(events, ["Restarted - -", "Added a -", "Bookmark - -"]);
}

#[tokio::test(start_paused = true)]
async fn a_stream_that_brings_nothing_of_use_gives_way_to_polling() {
    for opens in [&[Open::Silent(0, &[])], &[Open::Closed(&["<html>"])], &[Open::Late]] {
        let (events, asked) = watch(None, 2, opens, &[Some(&["a"])]).await;
        assert_eq!(events, ["Added a -", "Bookmark - -"]);
        assert_eq!(asked.iter().filter(|asked| asked.contains("open")).count(), 3);
    }
}

#[tokio::test(start_paused = true)]
async fn a_malformed_line_is_read_again() {
    let opens = &[Open::Closed(&[ADDED_A, BOOKMARK, r#"{"type": "ADDED", "#]), Open::Closed(&[MODIFIED_A])];
    let (events, asked) = watch(None, 3, opens, &[]).await;
    assert_eq!(events, ["Added a -", "Bookmark - 7", "Modified a 8"]);
    assert_eq!(asked, ["0s open -", "0s open 7"]);
}

#[tokio::test(start_paused = true)]
async fn waits_grow_up_to_the_longest() {
    let script = Script {
        opens: &[Open::Refused(503)],
        lists: &[],
        asked: Mutex::default(),
        log: Arc::default(),
        began: Instant::now(),
    };
    let (mut watcher, health) = Watcher::new(script, WatchSettings::default(), None);
    let mut waits = Vec::new();
    for failures in [1, 2, 3, 4, 5, 6, 61] {
        watcher.failures = failures;
        waits.push(watcher.wait(None).as_secs_f64());
    }
    for (wait, expect) in waits.iter().zip([1.0, 2.0, 4.0, 8.0, 16.0, 30.0, 30.0]) {
        assert!((wait - expect).abs() <= expect * 0.2, "{waits:?}");
    }
    assert_eq!(watcher.wait(Some(Duration::from_mins(2))), Duration::from_mins(2));
    watcher.connect().await;
    assert!(matches!(&*health.borrow(), Health::Failing(error) if error.status() == Some(503)));
}

/// Starting over would bring it again, and nothing that is behind it.
#[tokio::test(start_paused = true)]
async fn a_resource_that_cannot_be_read_holds_up_no_other() {
    const BAD: &str = r#"{"type": "ADDED", "resource_version": "1", "object": {"id": "bad", "generation": "two"}}"#;
    let opens = &[Open::Closed(&[BAD, ADDED_A, BAD, BOOKMARK, BAD, MODIFIED_A])];
    let (events, asked) = watch(None, 3, opens, &[]).await;
    assert_eq!(events, ["Added a -", "Bookmark - 7", "Modified a 8"]);
    assert_eq!(asked, ["0s open -"]);
}
