//! The page of one resource: its state, the adapters' reports, its conditions, timeline, identity, children and spec.

use std::collections::BTreeMap;

use fleet_model::condition::known_time;
use fleet_model::names::condition::AVAILABLE;
use fleet_model::{Condition, Report, Status, Transition, names};
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::{Map, Value};

use super::badge::{Badge, Tone};
use super::frame::{self, Frame, Refresh, capitalised, navigation, overview_path, resource_path, wrappable};
use super::table::Table;
use super::time::{ago, exactly};
use crate::entity::{Descriptor, Registry};
use crate::resource::Resource;
use crate::store::Page;

/// The data of the page.
#[derive(Debug)]
pub(super) struct Details<'a> {
    pub(super) registry: &'a Registry,
    pub(super) resource: Resource,
    pub(super) history: Page<Transition>,
    pub(super) children: Vec<(&'a Descriptor, Page<Resource>)>,
    /// True if the page loads itself again from time to time.
    pub(super) refreshes: bool,
    pub(super) now: Timestamp,
}

/// Renders the page.
pub(super) fn show(details: &Details<'_>) -> String {
    let Details { registry, resource, history, children, refreshes, now } = details;
    let descriptor = registry.kind(&resource.kind);
    let required = descriptor.map_or(&[][..], |descriptor| &descriptor.required_adapters);
    let main = html! {
        @if let Some(descriptor) = descriptor {
            p class="breadcrumb" {
                a href=(overview_path(descriptor, "", 1)) { (capitalised(&descriptor.plural)) }
                @if let Some(owner) = &resource.owner { " · of " (frame::target(registry, owner)) }
            }
        }
        h1 { (resource.name) }
        (state(resource, *now))
        (next_step(resource, required))
        (reports(resource, required, *now))
        (conditions(resource, *now))
        (timeline(history))
        (identity(registry, resource))
        @for (kind, found) in children { (children_of_kind(registry, kind, found)) }
        (section("spec", "Spec", &html! {
            details { summary { "Desired state" } (json(&resource.spec)) }
        }))
    };
    let navigation = navigation(registry, None);
    let path = resource_path(registry, &resource.kind, &resource.id).unwrap_or_default();
    let refresh = Some(Refresh { is_on: *refreshes, path });
    frame::page(&Frame { title: &resource.name, navigation, main, as_of: Some(*now), refresh })
}

fn section(id: &str, heading: &str, content: &Markup) -> Markup {
    html! { section aria-labelledby=(id) { h2 id=(id) { (heading) } (content) } }
}

/// The `Reconciled` condition and the deletion, in one sentence each.
fn state(resource: &Resource, now: Timestamp) -> Markup {
    let reconciled = Badge::reconciled(resource);
    let tone = reconciled.as_ref().map_or(Tone::Neutral, |(badge, _)| badge.tone);
    html! {
        section class={ "note " (tone.class()) } aria-label="State" {
            @if let Some((badge, condition)) = reconciled {
                @let text = if condition.status == Status::True { "Reconciled" } else { "Not reconciled" };
                p {
                    (badge.show_as(text)) " since " (exactly(condition.last_transition_time))
                    " (" (ago(condition.last_transition_time, now)) ")"
                }
                @if let Some(message) = &condition.message { p { (message) } }
            } @else {
                p { "This kind of resource has no Reconciled condition." }
            }
            @if let Some(at) = resource.deleted_time {
                p {
                    (Badge::deleting(resource).show_as("Being deleted")) " since " (exactly(at)) ", requested by "
                    (resource.deleted_by.as_deref().unwrap_or("an unknown caller"))
                }
            }
        }
    }
}

/// The command that evaluates the preconditions and asks Kubernetes too, of which this server knows nothing.
fn next_step(resource: &Resource, required: &[String]) -> Markup {
    let report = resource.state.reports.get(names::ADAPTER);
    let is_done = Badge::adapter(resource, report).tone == Tone::Good;
    html! {
        @if !is_done && required.iter().any(|name| name == names::ADAPTER) {
            p { "Why, and what to do: " code { "pull-secret explain cluster " (resource.id) } }
        }
    }
}

/// The latest report of each adapter: the required adapters in their order, then all others.
fn reports(resource: &Resource, required: &[String], now: Timestamp) -> Markup {
    let others = resource.state.reports.keys().filter(|name| !required.contains(name));
    let adapters: Vec<(&String, bool)> =
        required.iter().map(|name| (name, true)).chain(others.map(|name| (name, false))).collect();
    if adapters.is_empty() {
        return html! {};
    }
    let caption = html! { caption { "Latest report of each adapter" } };
    let mut table = Table::new(caption, ["Adapter", "State", "Gen.", "Reported", "Reason", "Message"]);
    for (name, required) in &adapters {
        let report = resource.state.reports.get(*name);
        let badge = Badge::adapter(resource, report);
        let available = report.and_then(|report| report.condition(AVAILABLE));
        table = table.row(
            if *required && badge.tone != Tone::Good { "row bad" } else { "row" },
            [
                html! { (name) @if !required { small { " not required" } } },
                badge.show(),
                report.map_or_else(dash, |report| html! { (observed_generation(report, resource)) }),
                report.map_or_else(dash, |report| ago(report.last_report_time, now)),
                reason_or_dash(available.and_then(|available| available.reason.as_deref())),
                text_or_dash(available.and_then(|available| available.message.as_deref())),
            ],
        );
    }
    let content = html! {
        (table.finish())
        @for (name, _) in &adapters {
            @if let Some(report) = resource.state.reports.get(*name) { (whole_report(report, now)) }
        }
    };
    section("adapters", "Adapters", &content)
}

fn observed_generation(report: &Report, resource: &Resource) -> String {
    let (observed, current) = (report.observed_generation, resource.generation);
    if observed == current { observed.to_string() } else { format!("{observed} of {current}") }
}

/// All members of an adapter's latest report.
fn whole_report(report: &Report, now: Timestamp) -> Markup {
    let caption = html! { caption { "Conditions that " (report.adapter) " reports" } };
    let mut table = Table::new(caption, ["Condition", "Status", "Since", "Reason", "Message"]);
    for condition in &report.conditions {
        table = table.row(
            "row",
            [
                wrappable(&condition.kind),
                Badge::status(condition.status).show(),
                ago(condition.last_transition_time, now),
                reason_or_dash(condition.reason.as_deref()),
                text_or_dash(condition.message.as_deref()),
            ],
        );
    }
    let metadata = report.metadata.as_ref().and_then(|metadata| serde_json::to_string_pretty(metadata).ok());
    html! {
        details {
            summary { "Everything that " (report.adapter) " reports" }
            (table.finish())
            @if !report.data.is_empty() { h3 { "Data" } (json(&report.data)) }
            @if let Some(metadata) = metadata { h3 { "Metadata" } (preformatted(&metadata)) }
        }
    }
}

fn conditions(resource: &Resource, now: Timestamp) -> Markup {
    if resource.state.conditions.is_empty() {
        return html! {};
    }
    let caption = html! { caption { "Conditions derived from the reports" } };
    let mut table = Table::new(caption, ["Condition", "Status", "Gen.", "Since", "Reason", "Message"]);
    for condition in &resource.state.conditions {
        table = table.row(
            "row",
            [
                wrappable(&condition.kind),
                Badge::status(condition.status).show(),
                html! { (condition.observed_generation) },
                ago(since(condition), now),
                reason_or_dash(condition.reason.as_deref()),
                text_or_dash(condition.message.as_deref()),
            ],
        );
    }
    section("conditions", "Conditions", &table.finish())
}

/// The time since which status and reason are what they are; of conditions from before that was stored, of the status.
fn since(condition: &Condition) -> Timestamp {
    known_time(condition.reason_since_time).unwrap_or(condition.last_transition_time)
}

fn timeline(history: &Page<Transition>) -> Markup {
    // The store keeps a bounded number of transitions, so the list is never called complete.
    let introduction = match history.items.len() {
        0 => "No condition has changed yet.".to_owned(),
        1 => "The latest change.".to_owned(),
        shown => format!("The latest {shown} changes, newest first."),
    };
    let content = html! {
        p { (introduction) }
        ol class="timeline" {
            @for transition in &history.items { li { (transition_entry(transition)) } }
        }
    };
    section("timeline", "Timeline", &content)
}

fn transition_entry(transition: &Transition) -> Markup {
    let Transition { adapter, kind, from, to, reason, message, observed_generation, time } = transition;
    html! {
        p {
            (exactly(*time)) " " (adapter) " · " (kind) " "
            span class="change" {
                @if let Some(from) = from {
                    (Badge::status(*from).show())
                } @else {
                    span class="badge neutral" { "new" }
                }
                " " span aria-label="to" role="img" { "→" } " " (Badge::status(*to).show())
            }
            @if let Some(reason) = reason { b { " " (wrappable(reason)) } }
            small { " generation " (observed_generation) }
        }
        @if let Some(message) = message { p class="soft" { (message) } }
    }
}

fn identity(registry: &Registry, resource: &Resource) -> Markup {
    let owner_id = resource.owner.as_ref().map(|owner| owner.id.as_str());
    let href = registry.href(&resource.kind, &resource.id, owner_id);
    let content = html! {
        dl {
            (field("Kind", &html! { (resource.kind) }))
            (field("ID", &html! { code class="id" { (resource.id) } }))
            (field("Generation", &html! { (resource.generation) }))
            (field("Created", &html! { (exactly(resource.created_time)) " by " (resource.created_by) }))
            (field("Updated", &html! { (exactly(resource.updated_time)) " by " (resource.updated_by) }))
            (field("As JSON", &html! {
                a href=(href) { "resource" } " · "
                a href={ (href) "/statuses" } { "reports" } " · "
                a href={ (href) "/statuses/history" } { "history" }
            }))
            (field("Labels", &key_values(&resource.state.labels)))
            @if !resource.state.tenancy.is_empty() { (field("Tenancy", &key_values(&resource.state.tenancy))) }
            @for (kind, targets) in &resource.state.references {
                (field(&format!("Reference {kind}"), &html! {
                    ul { @for target in targets { li { (frame::target(registry, target)) } } }
                }))
            }
        }
    };
    section("identity", "Identity", &content)
}

fn field(term: &str, value: &Markup) -> Markup {
    html! { div { dt { (term) } dd { (value) } } }
}

fn key_values(members: &BTreeMap<String, String>) -> Markup {
    html! {
        @if members.is_empty() {
            "none"
        } @else {
            ul { @for (key, value) in members { li { code { (key) "=" (value) } } } }
        }
    }
}

/// The resource's children of one kind.
fn children_of_kind(registry: &Registry, kind: &Descriptor, found: &Page<Resource>) -> Markup {
    let content = html! {
        @match (found.total, found.items.len()) {
            (0, _) => { p { "None." } }
            (total, shown) if usize::try_from(total) == Ok(shown) => {}
            (total, shown) => { p { "The newest " (shown) " of " (total) "." } }
        }
        ul { @for child in &found.items { li { (child_entry(registry, child)) } } }
    };
    section(&format!("children-{}", kind.plural), &capitalised(&kind.plural), &content)
}

fn child_entry(registry: &Registry, child: &Resource) -> Markup {
    html! {
        a href=(resource_path(registry, &child.kind, &child.id).unwrap_or_default()) { (child.name) }
        @if let Some((badge, condition)) = Badge::reconciled(child) {
            " " (badge.show_as(if condition.status == Status::True { "reconciled" } else { "not reconciled" }))
        }
        @if child.is_terminating() { " " (Badge::deleting(child).show_as("deleting")) }
    }
}

fn dash() -> Markup {
    html! { "–" }
}

fn text_or_dash(text: Option<&str>) -> Markup {
    text.map_or_else(dash, |text| html! { (text) })
}

fn reason_or_dash(reason: Option<&str>) -> Markup {
    reason.map_or_else(dash, wrappable)
}

fn json(members: &Map<String, Value>) -> Markup {
    // A map with string keys always serialises.
    preformatted(&serde_json::to_string_pretty(members).unwrap_or_default())
}

/// Preformatted text that the keyboard can scroll.
fn preformatted(text: &str) -> Markup {
    html! { pre tabindex="0" { code { (text) } } }
}
