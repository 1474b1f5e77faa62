//! The overview of a kind: counts, a search, and one row per resource.

use fleet_model::Status;
use fleet_model::cause::Causes;
use jiff::Timestamp;
use maud::{Markup, html};
use serde_json::json;

use super::badge::{Badge, Tone};
use super::causes::{self, Section};
use super::frame::{self, Frame, Refresh, capitalised, navigation, overview_path, resource_path, wrappable};
use super::table::Table;
use super::time::ago;
use crate::entity::{BASE_PATH, Descriptor, Registry};
use crate::resource::Resource;
use crate::search::SearchError;
use crate::store::Page;

/// Resources on one page.
pub(super) const PAGE_SIZE: i64 = 100;

/// The data of the page.
#[derive(Debug)]
pub(super) struct Overview<'a> {
    pub(super) registry: &'a Registry,
    pub(super) descriptor: &'a Descriptor,
    /// The search as the caller wrote it.
    pub(super) search: &'a str,
    /// The search in the search language if the caller wrote plain words.
    pub(super) plain: Option<String>,
    pub(super) page: i64,
    pub(super) found: Result<Page<Resource>, SearchError>,
    /// By the adapter that blocks them; `None` if there are too many.
    pub(super) causes: Option<Vec<Causes>>,
    pub(super) counts: Vec<(Filter, i64)>,
    /// True if the page loads itself again from time to time.
    pub(super) refreshes: bool,
    pub(super) host: Option<&'a str>,
    pub(super) now: Timestamp,
}

/// A subset of the resources, shown as a count that links to it.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    pub(super) search: &'static str,
    label: &'static str,
    /// The tone of a count that is not zero.
    tone: Tone,
}

const ALL: Filter = Filter { search: "", label: "in all", tone: Tone::Neutral };
/// The search for resources that are not reconciled.
pub(super) const NOT_RECONCILED: &str = "status.conditions.Reconciled='False'";
const FILTERS: [Filter; 3] = [
    Filter { search: NOT_RECONCILED, label: "✗ not reconciled", tone: Tone::Bad },
    Filter { search: "status.conditions.Reconciled='True'", label: "✓ reconciled", tone: Tone::Good },
    DELETING,
];
/// The search language has no `is not null`; every deletion is later than 1970.
const DELETING: Filter =
    Filter { search: "deleted_time > '1970-01-01'", label: "⌫ being deleted", tone: Tone::Unknown };

/// The subsets that are counted. A kind without adapters has no `Reconciled` condition.
pub(super) fn filters(descriptor: &Descriptor) -> Vec<Filter> {
    if descriptor.has_adapters() { [&[ALL], &FILTERS[..]].concat() } else { vec![ALL, DELETING] }
}

/// Renders the page.
pub(super) fn show(overview: &Overview<'_>) -> String {
    let title = capitalised(&overview.descriptor.plural);
    let total = overview.counts.first().map_or(0, |(_, count)| *count);
    let main = html! {
        h1 { (title) }
        (summary(overview))
        (form(overview))
        @match &overview.found {
            Err(error) => { (invalid_search(overview.search, error)) }
            Ok(_) if total == 0 => { (welcome(overview)) }
            Ok(found) if found.items.is_empty() => { (no_match(overview, found.total)) }
            Ok(found) => {
                @match &overview.causes {
                    Some(causes) => {
                        (causes::show(&Section {
                            registry: overview.registry,
                            descriptor: overview.descriptor,
                            search: overview.plain.as_deref().unwrap_or(overview.search),
                            causes,
                            now: overview.now,
                        }))
                    }
                    None => {
                        p class="note" { "Too many to group by cause here: narrow the search, or run " code { "pull-secret status --why" } "." }
                    }
                }
                section id="list" aria-label=(title) { (table(overview, found)) }
                (pages(overview, found.total))
            }
        }
    };
    let navigation = navigation(overview.registry, Some(overview.descriptor));
    let path = overview_path(overview.descriptor, overview.search, overview.page);
    let refresh = Some(Refresh { is_on: overview.refreshes, path });
    frame::page(&Frame { title: &title, navigation, main, as_of: Some(overview.now), refresh })
}

fn summary(overview: &Overview<'_>) -> Markup {
    html! {
        ul class="summary" aria-label="Counts" {
            @for (filter, count) in &overview.counts {
                @let tone = if *count == 0 { Tone::Neutral } else { filter.tone };
                @let is_current = filter.search == overview.search;
                li {
                    a href=(overview_path(overview.descriptor, filter.search, 1)) class=(tone.class())
                        aria-current=[is_current.then_some("true")] { b { (count) } " " (filter.label) }
                }
            }
        }
    }
}

fn form(overview: &Overview<'_>) -> Markup {
    let is_invalid = overview.found.is_err();
    html! {
        form method="get" action="/" role="search" {
            input type="hidden" name="kind" value=(overview.descriptor.kind);
            label for="search" { "Search" }
            input type="search" id="search" name="search" value=(overview.search)
                placeholder="a name, or labels.region = 'eu' and generation > 1"
                autocomplete="off" autocapitalize="off" spellcheck="false"
                aria-invalid=[is_invalid.then_some("true")] aria-describedby=[is_invalid.then_some("fault")];
            button { "Search" }
            @if !overview.search.is_empty() {
                a href=(overview_path(overview.descriptor, "", 1)) { "Show all" }
            }
            @if overview.plain.is_some() { small { "Names that contain it, or the id" } }
        }
    }
}

/// The error of a search, with a marker below the column.
fn invalid_search(search: &str, error: &SearchError) -> Markup {
    let marker = error.column().filter(|_| !search.contains(['\n', '\r'])).map(|column| {
        let indent = " ".repeat(column.saturating_sub(1));
        html! { pre aria-hidden="true" { (search) "\n" (indent) "▲" } }
    });
    html! {
        section class="note bad" role="alert" id="fault" {
            h2 { "Invalid search" }
            p { (error.to_string()) }
            @if let Some(marker) = marker { (marker) }
            p { "For names that contain a word, write the word alone." }
            p {
                "Searchable fields: "
                code { "id, name, generation, created_time, updated_time, deleted_time, owner_id" } ", "
                code { "labels.KEY" } ", " code { "spec.PATH" } " and " code { "status.conditions.TYPE" }
                ", compared with = != < <= > >=, in, like; joined by and, or, not."
            }
        }
    }
}

/// The page of a kind without resources: a command that creates the first one.
fn welcome(overview: &Overview<'_>) -> Markup {
    let Descriptor { kind, plural, parent_kind, .. } = overview.descriptor;
    let parent = parent_kind.as_deref().and_then(|parent| overview.registry.kind(parent));
    let path = match parent {
        Some(parent) => format!("{}/{}-ID/{plural}", parent.plural, parent.kind.to_uppercase()),
        None => plural.clone(),
    };
    let name = "my-first".chars().take(overview.descriptor.max_name_length()).collect::<String>();
    let body = json!({ "kind": kind, "name": name, "spec": {} });
    let host = overview.host.filter(|host| is_host(host)).unwrap_or("localhost:8000");
    let command = format!(
        "curl -X POST http://{host}{BASE_PATH}/{path} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    );
    html! {
        section class="note" {
            h2 { "No " (plural) " yet" }
            p { "Create one:" }
            pre tabindex="0" { code { (command) } }
            p { "Then reload this page." }
        }
    }
}

/// True if the text is only a host with a port, so that it is safe in a command that people paste into a shell.
fn is_host(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte))
}

fn no_match(overview: &Overview<'_>, total: i64) -> Markup {
    let plural = &overview.descriptor.plural;
    html! {
        section class="note" {
            @if total == 0 {
                p {
                    "None of the " (plural) " match. "
                    a href=(overview_path(overview.descriptor, "", 1)) { "Show all" }
                }
            } @else {
                p {
                    "There are no " (plural) " on page " (overview.page) ". "
                    a href=(overview_path(overview.descriptor, overview.search, 1)) { "To the first page" }
                }
            }
        }
    }
}

fn table(overview: &Overview<'_>, found: &Page<Resource>) -> Markup {
    let descriptor = overview.descriptor;
    let has_adapters = descriptor.has_adapters();
    let parent = descriptor.parent_kind.as_deref();
    let adapters = &descriptor.required_adapters;
    let headings = ["Name", "ID", "Gen."]
        .into_iter()
        .chain(parent)
        .chain(has_adapters.then_some("Reconciled"))
        .chain(adapters.iter().map(String::as_str))
        .chain(["Deleting", "Age"]);
    let caption = html! { caption { (range(overview.page, found)) ", newest first" } };
    let mut table = Table::new(caption, headings);
    for resource in &found.items {
        let path = resource_path(overview.registry, &resource.kind, &resource.id).unwrap_or_default();
        let mut cells = vec![
            html! { a href=(path) { (resource.name) } },
            html! { code class="id" { (resource.id) } },
            html! { (resource.generation) },
        ];
        cells.extend(parent.map(|_| owner(overview.registry, resource)));
        cells.extend(has_adapters.then(|| reconciled(resource, overview.now)));
        cells.extend(adapters.iter().map(|adapter| adapter_state(resource, adapter)));
        cells.extend([deleting(resource, overview.now), ago(resource.created_time, overview.now)]);
        table = table.row(row_class(resource), cells);
    }
    table.finish()
}

fn owner(registry: &Registry, resource: &Resource) -> Markup {
    html! { @if let Some(owner) = &resource.owner { (frame::target(registry, owner)) } }
}

/// The class that highlights rows which are not reconciled.
fn row_class(resource: &Resource) -> &'static str {
    match Badge::reconciled(resource) {
        Some((_, condition)) if condition.status != Status::True => "row bad",
        _ => "row",
    }
}

/// `Reconciled` with its age and reason.
fn reconciled(resource: &Resource, now: Timestamp) -> Markup {
    let Some((badge, condition)) = Badge::reconciled(resource) else { return html! { "no report" } };
    html! {
        div { (badge.show()) small { " " (ago(condition.last_transition_time, now)) } }
        @if let Some(reason) = &condition.reason { small { " " (wrappable(reason)) } }
    }
}

fn adapter_state(resource: &Resource, adapter: &str) -> Markup {
    let (badge, explanation) = Badge::explained(resource, resource.state.reports.get(adapter));
    html! {
        (badge.show())
        @if let Some(explanation) = explanation { small { " " (wrappable(&explanation)) } }
    }
}

fn deleting(resource: &Resource, now: Timestamp) -> Markup {
    html! {
        (Badge::deleting(resource).show())
        @if let Some(at) = resource.deleted_time { small { " " (ago(at, now)) } }
    }
}

fn range(page: i64, found: &Page<Resource>) -> String {
    let before = (page - 1) * PAGE_SIZE;
    let shown = i64::try_from(found.items.len()).unwrap_or(PAGE_SIZE);
    format!("{} to {} of {}", before + 1, before + shown, found.total)
}

/// Links to the neighbouring pages, if there is more than one page.
fn pages(overview: &Overview<'_>, total: i64) -> Markup {
    let last = (total + PAGE_SIZE - 1) / PAGE_SIZE;
    let path = |page: i64| overview_path(overview.descriptor, overview.search, page);
    html! {
        @if last > 1 {
            nav class="pages" aria-label="Pages" {
                @if overview.page > 1 { a href=(path(overview.page - 1)) rel="prev" { "← Newer" } }
                span { "Page " (overview.page) " of " (last) }
                @if overview.page < last { a href=(path(overview.page + 1)) rel="next" { "Older →" } }
            }
        }
    }
}
