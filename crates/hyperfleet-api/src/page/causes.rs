//! The causes for which resources are not reconciled: a row for each, that of most resources first.

use fleet_model::Status;
use fleet_model::cause::{Cause, Causes};
use jiff::Timestamp;
use maud::{Markup, html};

use super::frame::{capitalised, overview_path, resource_path, wrappable};
use super::table::Table;
use super::time::ago;
use crate::entity::{Descriptor, Registry};

/// Maximum number of causes that are shown.
const SHOWN: usize = 20;

/// The data of the section.
#[derive(Clone, Copy, Debug)]
pub(super) struct Section<'a> {
    pub(super) registry: &'a Registry,
    pub(super) descriptor: &'a Descriptor,
    /// The search that selects the resources, in the search language.
    pub(super) search: &'a str,
    /// By adapter, in the order of the required adapters; the last ones are those that no adapter blocks.
    pub(super) causes: &'a [Causes],
    pub(super) now: Timestamp,
}

/// Renders the section; nothing if every resource is reconciled.
pub(super) fn show(section: &Section<'_>) -> Markup {
    let adapters = section.descriptor.required_adapters.iter().map(String::as_str).chain([""]);
    let mut items: Vec<(&str, usize, &Cause)> = Vec::new();
    for (index, (causes, adapter)) in section.causes.iter().zip(adapters).enumerate() {
        items.extend(causes.items.iter().map(|cause| (adapter, index, cause)));
    }
    items.sort_by_key(|(_, _, cause)| cause.rank());
    if items.is_empty() {
        return html! {};
    }
    let plural = capitalised(&section.descriptor.plural);
    let caption = html! { caption { "By the first required adapter that blocks them, most " (section.descriptor.plural) " first" } };
    let mut table = Table::new(caption, ["Blocked by", plural.as_str(), "Reason", "Since", "Message", "Examples"]);
    for (adapter, index, cause) in items.iter().take(SHOWN) {
        table = table.row(
            "row bad",
            [
                html! { @if adapter.is_empty() { "–" } @else { (adapter) } },
                count(section, *index, cause),
                reason(cause),
                html! { @if let Some(since) = cause.since_time { (ago(since, section.now)) } @else { "–" } },
                html! { (cause.message.as_deref().filter(|_| !cause.outdated).unwrap_or("–")) },
                examples(section, cause),
            ],
        );
    }
    html! {
        section aria-labelledby="causes" {
            h2 id="causes" { "Why they are not reconciled" }
            (table.finish())
            @if items.len() > SHOWN { p { "And " (items.len() - SHOWN) " other causes of fewer " (section.descriptor.plural) "." } }
        }
    }
}

fn reason(cause: &Cause) -> Markup {
    let reason = html! {
        @match &cause.reason {
            Some(reason) => { (wrappable(reason)) }
            None => { (cause.status.map_or("no report", Status::as_str)) }
        }
    };
    html! {
        @if cause.outdated {
            b { "no report on this generation" } small { "on an older one: " (reason) }
        } @else {
            b { (reason) }
        }
        @if cause.terminating { small { "being deleted" } }
    }
}

fn examples(section: &Section<'_>, cause: &Cause) -> Markup {
    html! {
        @for (index, example) in cause.examples.iter().enumerate() {
            @if index > 0 { ", " }
            a href=(resource_path(section.registry, &section.descriptor.kind, &example.id).unwrap_or_default()) { (example.name) }
        }
        @if cause.count > cause.examples.len() as u64 { " …" }
    }
}

/// The number of resources, with a link to them where the search language can tell them from others: it cannot compare generations.
fn count(section: &Section<'_>, index: usize, cause: &Cause) -> Markup {
    let search = search(section, index, cause).filter(|_| !cause.outdated);
    html! {
        @match search {
            Some(search) => { a href=(overview_path(section.descriptor, &search, 1)) { (cause.count) } }
            None => { (cause.count) }
        }
    }
}

/// The search for the resources of a cause, and for those with another message and the same reason: the conditions before are true.
fn search(section: &Section<'_>, index: usize, cause: &Cause) -> Option<String> {
    let condition = &section.causes.get(index)?.condition;
    let mut all: Vec<String> = Vec::new();
    if !section.search.is_empty() {
        all.push(format!("({})", section.search));
    }
    let before = section.causes.iter().take(index);
    all.extend(before.map(|causes| format!("status.conditions.{} = 'True'", causes.condition)));
    all.push(match cause.status {
        Some(status) => format!("status.conditions.{condition} = '{}'", status.as_str()),
        None => format!("status.conditions.{condition} is null"),
    });
    all.extend(
        cause.reason.as_ref().map(|reason| format!("status.conditions.{condition}.reason = '{}'", escaped(reason))),
    );
    all.push("status.conditions.Reconciled = 'False'".to_owned());
    Some(all.join(" and "))
}

/// A text between quotes of the search language.
fn escaped(text: &str) -> String {
    text.replace('\\', r"\\").replace('\'', r"\'")
}
