//! The loop behind a watch: connect, read, resume, start over, poll.

use std::collections::VecDeque;
use std::sync::Arc;
use std::time::Duration;

use daemon::retry::Transient as _;
use tokio::sync::watch::{Receiver, Sender, channel};
use tokio::time::{Instant, sleep, timeout};

use super::event::{Line, WatchEvent, WatchKind};
use super::health::Health;
use super::lines::{Lines, Next};
use super::source::Source;
use super::view::View;
use crate::error::Error;
use crate::settings::WatchSettings;

/// Number of consecutive connections without an event after which the stream counts as absent: a proxy may buffer it, or
/// a line cannot be read.
const MAX_BARREN: u32 = 3;

/// The loop behind a watch.
pub(crate) struct Watcher<S> {
    source: S,
    settings: WatchSettings,
    health: Sender<Health>,
    mode: Mode,
    /// The version after which the stream resumes; `None` until the initial state is complete.
    version: Option<String>,
    /// True if the consumer has a state already, which a fresh list replaces.
    has_view: bool,
    /// The list that polling last read, while polling.
    view: Option<View>,
    /// Number of consecutive failures.
    failures: u32,
    /// Number of consecutive connections that brought nothing.
    barren: u32,
    pending: VecDeque<WatchEvent>,
}

enum Mode {
    /// The stream is to be opened.
    Connect,
    /// It is open.
    Read(Reading),
    /// The API has none; it is probed again at `until`.
    Poll { until: Instant, next: Instant },
}

struct Reading {
    lines: Lines,
    /// True if its content type is not a stream's.
    is_document: bool,
    /// True until a line was parsed.
    is_silent: bool,
    /// True while the initial state is incomplete.
    is_listing: bool,
}

// === impl Watcher ===

impl<S: Source> Watcher<S> {
    pub(crate) fn new(source: S, settings: WatchSettings, version: Option<String>) -> (Self, Receiver<Health>) {
        let (health, receiver) = channel(Health::default());
        let watcher = Self {
            source,
            settings,
            health,
            mode: Mode::Connect,
            has_view: version.is_some(),
            version,
            view: None,
            failures: 0,
            barren: 0,
            pending: VecDeque::new(),
        };
        (watcher, receiver)
    }

    /// Returns the next event. Not cancel-safe: the stream around it holds the future until it is complete.
    pub(crate) async fn next(&mut self) -> WatchEvent {
        loop {
            if let Some(event) = self.pending.pop_front() {
                return event;
            }
            match &mut self.mode {
                Mode::Connect => self.connect().await,
                Mode::Read(reading) => {
                    let next = timeout(self.settings.silence, reading.lines.next()).await.ok();
                    self.read(next).await;
                }
                Mode::Poll { until, next } => {
                    let (until, next) = (*until, *next);
                    self.poll(until, next).await;
                }
            }
        }
    }

    async fn connect(&mut self) {
        let error = match self.source.open(self.version.as_deref()).await {
            Ok(opened) => {
                self.mode = Mode::Read(Reading {
                    lines: Lines::new(opened.chunks, self.settings.max_line),
                    is_document: opened.is_document,
                    is_silent: true,
                    is_listing: self.version.is_none(),
                });
                return;
            }
            Err(error) => error,
        };
        match error.status() {
            // A version that is too old, or one that the API does not understand any more: start over.
            Some(410 | 400) if self.version.is_some() => {
                tracing::info!(%error, "starting the watch over");
                self.version = None;
            }
            Some(400 | 404 | 405 | 501) => self.begin_polling(),
            _ if matches!(error, Error::TimedOut { .. }) => self.useless(error).await,
            _ => self.fail(error).await,
        }
    }

    /// Deals with what came on the stream; `None` is silence.
    async fn read(&mut self, next: Option<Next>) {
        let (line, ended) = match next {
            Some(Next::Line(line)) => (line, false),
            // A stream that is cut leaves a part of a line; a document is whole without a line feed.
            Some(Next::End(rest)) => (rest, true),
            Some(Next::TooLong) => return self.unreadable("a line of the stream is too long").await,
            Some(Next::Broken(error)) => return self.cut(error).await,
            None => return self.silence().await,
        };
        match (Line::parse(&line), ended) {
            (Line::List, _) if self.is_silent() => self.begin_polling(),
            (Line::Malformed, _) => self.unreadable("a line of the stream is no event").await,
            (Line::Event(event), false) => self.deliver(event),
            (Line::Other, false) => self.alive(),
            (Line::Unreadable, false) => {
                // Starting over would bring it again, and nothing behind it.
                tracing::warn!(call = self.source.call(), "a resource is not of the contract's form; it is left out");
                self.alive();
            }
            (_, true) => self.cut(self.interruption("the connection was closed")).await,
            (Line::List, false) => self.unreadable("a line of the stream is a list").await,
        }
    }

    /// Handles a line that cannot be parsed: not a stream if none was parsed before, else a stream to restart.
    async fn unreadable(&mut self, how: &'static str) {
        let Mode::Read(reading) = &self.mode else { return };
        let (is_document, is_silent) = (reading.is_document, reading.is_silent);
        let error = self.interruption(how);
        match (is_document, is_silent) {
            (true, true) => self.begin_polling(),
            (false, true) => self.useless(error).await,
            (_, false) => self.cut(error).await,
        }
    }

    /// Handles a stream without data within the idle time-out.
    async fn silence(&mut self) {
        let error = self.interruption("no data within the idle time-out");
        if self.is_silent() { self.useless(error).await } else { self.cut(error).await }
    }

    /// The connection stands and brings nothing; after several of that kind the stream counts as absent.
    async fn useless(&mut self, error: Error) {
        self.barren += 1;
        if self.barren < MAX_BARREN {
            return self.cut(error).await;
        }
        tracing::warn!(%error, "the change stream is of no use; polling instead");
        self.barren = 0;
        self.begin_polling();
    }

    fn interruption(&self, how: &'static str) -> Error {
        Error::Cut { call: self.source.call(), how }
    }

    fn is_silent(&self) -> bool {
        matches!(&self.mode, Mode::Read(reading) if reading.is_silent)
    }

    /// The stream works.
    fn alive(&mut self) {
        self.failures = 0;
        self.barren = 0;
        self.set_health(Health::Streaming);
    }

    fn deliver(&mut self, mut event: WatchEvent) {
        self.alive();
        let Mode::Read(reading) = &mut self.mode else { return };
        let is_first = std::mem::take(&mut reading.is_silent);
        if is_first && reading.is_listing {
            self.view = None;
            if std::mem::replace(&mut self.has_view, true) {
                self.pending.push_back(WatchEvent::bare(WatchKind::Restarted));
            }
        }
        if reading.is_listing && event.kind != WatchKind::Bookmark {
            // Resuming here would skip resources that the list has not delivered yet.
            event.resource_version = None;
        } else {
            reading.is_listing = false;
            if let Some(version) = &event.resource_version {
                self.version = Some(version.clone());
            }
        }
        self.pending.push_back(event);
    }

    /// The stream ended; it resumes after the last delivered event.
    async fn cut(&mut self, error: Error) {
        self.mode = Mode::Connect;
        self.fail(error).await;
    }

    fn begin_polling(&mut self) {
        if self.view.is_none() {
            tracing::info!(call = self.source.call(), "the API has no change stream; polling");
            self.version = None;
        }
        let now = Instant::now();
        self.mode = Mode::Poll { until: now + self.settings.retry_stream, next: now };
    }

    async fn poll(&mut self, until: Instant, next: Instant) {
        if until <= next {
            tokio::time::sleep_until(until).await;
            self.mode = Mode::Connect;
            return;
        }
        tokio::time::sleep_until(next).await;
        match self.source.list(self.view.as_ref()).await {
            Ok(listing) => {
                self.failures = 0;
                self.set_health(Health::Polling);
                let is_first = self.view.is_none();
                if is_first && std::mem::replace(&mut self.has_view, true) {
                    self.pending.push_back(WatchEvent::bare(WatchKind::Restarted));
                }
                self.pending.extend(self.view.get_or_insert_default().changes(listing));
                if is_first {
                    self.pending.push_back(WatchEvent::bare(WatchKind::Bookmark));
                }
                self.mode = Mode::Poll { until, next: Instant::now() + self.settings.poll_interval };
            }
            Err(error) => {
                self.fail(error).await;
                self.mode = Mode::Poll { until, next: Instant::now() };
            }
        }
    }

    /// Something failed: shows it, and waits the longer the more often.
    async fn fail(&mut self, error: Error) {
        self.failures = self.failures.saturating_add(1);
        let wait = self.wait(error.retry_after());
        tracing::warn!(failures = self.failures, ?wait, %error, "the watch is interrupted");
        self.set_health(Health::Failing(Arc::new(error)));
        if self.view.is_some() && matches!(self.mode, Mode::Connect) {
            // Only the attempt to open a stream failed: polling continues.
            self.begin_polling();
        }
        sleep(wait).await;
    }

    /// Back-off after the latest failure; longer if the API asked for it.
    fn wait(&self, asked: Option<Duration>) -> Duration {
        self.settings.backoff.delay(self.failures, rand::random()).max(asked.unwrap_or_default())
    }

    fn set_health(&self, health: Health) {
        self.health.send_if_modified(|shown| {
            let changes = !matches!(
                (&*shown, &health),
                (Health::Streaming, Health::Streaming) | (Health::Polling, Health::Polling)
            );
            *shown = health;
            changes
        });
    }
}

#[cfg(test)]
mod tests;
