//! The usage log: who did what, newest first.

use std::collections::BTreeMap;

use jiff::civil::Date;
use jiff::tz::TimeZone;
use jiff::{SignedDuration, Timestamp};
use serde_json::{Value, json};

use super::entry::Entry;
use super::shown::date;
use super::{Moment, State};
use crate::quay::answer::Answer;
use crate::quay::fields::{field, set};
use crate::quay::form::Form;
use crate::quay::refusal::Refusal;
use crate::quay::request::Request;
use crate::quay::settings::Pull;

/// The entries of a page.
const PAGE: usize = 20;

/// The page behind the last entry: Quay keeps its log in more than one table, and looks into the next one then.
const LAST_PAGE: &str = "end";

/// The longest time over which entries can be counted.
const COUNTED_MAXIMUM: SignedDuration = SignedDuration::from_hours(28 * 24);

/// The form of the parameters that limit the time.
const DAY_FORM: &str = "%m/%d/%Y";

/// The time that is asked for.
struct Window {
    start: Timestamp,
    end: Timestamp,
}

// === impl Window ===

impl Window {
    /// From a day back, if no start is given, to a day ahead; both ends are days of UTC.
    fn of(now: Timestamp, request: &Request) -> Result<Self, Refusal> {
        let day = SignedDuration::from_hours(24);
        let given = |name: &str| {
            let date = Date::strptime(DAY_FORM, request.parameter(name)?).ok()?;
            date.to_zoned(TimeZone::UTC).ok().map(|zoned| zoned.timestamp())
        };
        let start = given("starttime").unwrap_or_else(|| now.saturating_sub(day).unwrap_or(Timestamp::MIN));
        let end = given("endtime").unwrap_or(now).saturating_add(day).unwrap_or(Timestamp::MAX);
        if end < start {
            return Err(Refusal::short("The browser (or proxy) sent a request that this server could not understand."));
        }
        Ok(Self { start, end })
    }

    fn has(&self, entry: &Entry) -> bool {
        (self.start..=self.end).contains(&entry.at)
    }
}

// === impl State ===

impl State {
    pub(super) fn list_logs(&self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let window = Window::of(at.now, request)?;
        let performer = request.parameter("performer").filter(|name| !name.is_empty());
        // Quay's code insists on a performer that it knows.
        if performer.is_some_and(|name| !self.is_performer(name)) {
            return Err(Refusal::internal(Form::Short));
        }
        let page = request.parameter("next_page").filter(|page| !page.is_empty());
        let before = match page {
            None => self.logs.len(),
            Some(LAST_PAGE) => 0,
            Some(page) => page.parse().map_err(|_no_number| Refusal::invalid("Invalid page token"))?,
        };
        let fits =
            |entry: &Entry| window.has(entry) && performer.is_none_or(|name| entry.performer.as_deref() == Some(name));
        let mut found = self.logs.iter().enumerate().take(before).rev().filter(|(_, entry)| fits(entry));
        let shown: Vec<_> = found.by_ref().take(PAGE).collect();
        let mut answer = json!({
            "start_time": date(window.start), "end_time": date(window.end),
            "logs": shown.iter().map(|(_, entry)| entry.document()).collect::<Vec<_>>(),
        });
        if let Some((index, _)) = shown.last() {
            set(&mut answer, "next_page", found.next().map_or_else(|| json!(LAST_PAGE), |_| json!(index.to_string())));
        }
        Ok(Answer::of(answer))
    }

    /// Counts by kind and day. Of an unknown performer it counts everything, as Quay's code does.
    pub(super) fn aggregate_logs(&self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let window = Window::of(at.now, request)?;
        if window.end.duration_since(window.start) >= COUNTED_MAXIMUM {
            return Err(Refusal::internal(Form::Short));
        }
        let performer = request.parameter("performer").filter(|name| self.is_performer(name));
        let mut counts: BTreeMap<(Date, &str), u64> = BTreeMap::new();
        for entry in &self.logs {
            if window.has(entry) && performer.is_none_or(|name| entry.performer.as_deref() == Some(name)) {
                *counts.entry((entry.at.to_zoned(TimeZone::UTC).date(), entry.kind)).or_default() += 1;
            }
        }
        let aggregated = counts.into_iter().map(|((day, kind), count)| {
            let day = day.to_zoned(TimeZone::UTC).map(|zoned| date(zoned.timestamp())).unwrap_or_default();
            json!({"kind": kind, "count": count, "datetime": day})
        });
        Ok(Answer::of(json!({"aggregated": aggregated.collect::<Vec<_>>()})))
    }

    /// Takes a registry's report, of which pulls of manifests count.
    pub(super) fn report_events(&mut self, at: Moment<'_>, request: &Request) -> Result<Answer, Refusal> {
        let report: Value = request.document()?;
        let text =
            |event: &Value, path: &str| event.pointer(path).and_then(Value::as_str).unwrap_or_default().to_owned();
        for event in field(&report, "events").as_array().into_iter().flatten() {
            let (kind, repository) = (text(event, "/target/mediaType"), text(event, "/target/repository"));
            let is_image = ["manifest", "index"].iter().any(|part| kind.contains(part));
            let Some((namespace, repository)) = repository.split_once('/') else { continue };
            if field(event, "action") != "pull" || !is_image || namespace != self.rules.organization {
                continue;
            }
            let (tag, digest) = (text(event, "/target/tag"), text(event, "/target/digest"));
            let address = text(event, "/request/addr");
            let pull = Pull {
                robot: text(event, "/actor/name"),
                repository: repository.to_owned(),
                reference: if tag.is_empty() { digest } else { tag },
                address: address.rsplit_once(':').map_or(address.as_str(), |(host, _port)| host).to_owned(),
                agent: text(event, "/request/useragent"),
            };
            self.record_pull(at.now, &pull);
        }
        Ok(Answer::of(json!({})))
    }

    /// Takes a deleted robot out of the log as a performer.
    pub(super) fn forget_performer(&mut self, name: &str) {
        for entry in &mut self.logs {
            entry.performer.take_if(|performer| performer == name);
        }
    }

    fn is_performer(&self, name: &str) -> bool {
        self.robots.contains_key(name)
            || (!name.contains('+') && self.logs.iter().any(|entry| entry.performer.as_deref() == Some(name)))
    }
}
