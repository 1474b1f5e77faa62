//! A client of a change stream.

use std::collections::VecDeque;
use std::time::Duration;

use reqwest::Response;
use serde_json::Value;

use super::Rig;

/// Timeout for one event.
const EVENT_TIMEOUT: Duration = Duration::from_secs(20);

/// An open stream.
#[derive(Debug)]
pub(crate) struct Stream {
    response: Response,
    rest: Vec<u8>,
    events: VecDeque<Value>,
    /// The version of the last event.
    pub(crate) version: String,
}

impl Stream {
    /// Opens a stream at a path such as `/clusters`, with further parameters.
    pub(crate) async fn open(rig: &Rig, path: &str, parameters: &[(&str, &str)]) -> Self {
        Self::open_as(rig, &[], path, parameters).await
    }

    /// Opens a stream with these headers.
    pub(crate) async fn open_as(rig: &Rig, headers: &[(&str, &str)], path: &str, parameters: &[(&str, &str)]) -> Self {
        let mut query = form_urlencoded::Serializer::new(String::new());
        query.append_pair("watch", "true").extend_pairs(parameters);
        let mut request = rig.client.get(rig.url(&format!("{path}?{}", query.finish())));
        for (name, value) in headers {
            request = request.header(*name, *value);
        }
        let response = request.send().await.unwrap();
        assert_eq!(response.status(), 200);
        let kind = response.headers()["content-type"].to_str().unwrap().to_owned();
        assert!(kind.contains("json"), "{kind}");
        Self { response, rest: Vec::new(), events: VecDeque::new(), version: String::new() }
    }

    /// The next event; `None` when the server has ended the stream.
    pub(crate) async fn next(&mut self) -> Option<Value> {
        while self.events.is_empty() {
            let chunk = tokio::time::timeout(EVENT_TIMEOUT, self.response.chunk()).await.expect("no event");
            self.rest.extend_from_slice(&chunk.ok()??);
            while let Some(end) = self.rest.iter().position(|byte| *byte == b'\n') {
                let line: Vec<u8> = self.rest.drain(..=end).collect();
                self.events.push_back(serde_json::from_slice(&line).unwrap());
            }
        }
        let event = self.events.pop_front()?;
        event["resource_version"].as_str().unwrap().clone_into(&mut self.version);
        Some(event)
    }

    /// The next event that is no bookmark.
    pub(crate) async fn next_change(&mut self) -> Value {
        loop {
            let event = self.next().await.expect("the stream has ended");
            if event["type"] != "BOOKMARK" {
                return event;
            }
        }
    }

    /// The next event in short form, `ADDED name@generation`; bookmarks are skipped.
    pub(crate) async fn next_short(&mut self) -> String {
        short(&self.next_change().await)
    }

    /// All events up to the next bookmark.
    pub(crate) async fn until_bookmark(&mut self) -> Vec<String> {
        let mut events = Vec::new();
        loop {
            let event = self.next().await.expect("the stream has ended");
            if event["type"] == "BOOKMARK" {
                return events;
            }
            events.push(short(&event));
        }
    }
}

/// The number of a version, which counts within its epoch.
pub(crate) fn number(version: &str) -> i64 {
    version.split_once('-').unwrap().1.parse().unwrap()
}

/// `MODIFIED name@generation`.
pub(crate) fn short(event: &Value) -> String {
    let text = |value: &Value| value.as_str().unwrap_or_default().to_owned();
    format!("{} {}@{}", text(&event["type"]), text(&event["object"]["name"]), event["object"]["generation"])
}
