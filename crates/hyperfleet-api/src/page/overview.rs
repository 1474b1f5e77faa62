//! All resources of a kind at a glance: how many are well, which are not, and whose turn it is.

use jiff::Timestamp;
use serde_json::json;

use super::SIZE;
use super::frame::{self, capitalised, navigation, overview_path, resource_path};
use super::html::{Element, classed, el, fragment, link, reason};
use super::sign::{Mood, Sign};
use super::table::Table;
use super::when::ago;
use crate::entity::{BASE_PATH, Descriptor, Registry};
use crate::resource::{Resource, Status};
use crate::search::SearchError;
use crate::store::Page;

/// What the page shows.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) registry: &'a Registry,
    pub(super) descriptor: &'a Descriptor,
    /// The search as it was written.
    pub(super) written: &'a str,
    pub(super) page: i64,
    pub(super) found: Result<Page<Resource>, SearchError>,
    pub(super) counts: Vec<(Filter, i64)>,
    pub(super) host: Option<&'a str>,
    pub(super) now: Timestamp,
}

/// A part of the resources that is counted, and shown when its count is followed.
#[derive(Clone, Copy, Debug)]
pub(super) struct Filter {
    pub(super) search: &'static str,
    words: &'static str,
    /// What it means when there are any.
    mood: Mood,
}

const ALL: Filter = Filter { search: "", words: "in all", mood: Mood::Quiet };
const FILTERS: [Filter; 3] = [
    Filter { search: "status.conditions.Reconciled='False'", words: "✗ not reconciled", mood: Mood::Bad },
    Filter { search: "status.conditions.Reconciled='True'", words: "✓ reconciled", mood: Mood::Good },
    DELETING,
];
/// Whatever has such a time has a later one.
const DELETING: Filter =
    Filter { search: "deleted_time > '1970-01-01'", words: "⌫ being deleted", mood: Mood::Unsure };

/// What is counted of that kind. Without adapters nothing is reconciled or not.
pub(super) fn filters(descriptor: &Descriptor) -> Vec<Filter> {
    if descriptor.has_adapters() { [&[ALL], &FILTERS[..]].concat() } else { vec![ALL, DELETING] }
}

/// The page.
pub(super) fn show(seen: &Seen<'_>) -> String {
    let title = capitalised(&seen.descriptor.plural);
    let total = seen.counts.first().map_or(0, |(_, count)| *count);
    let contents = match &seen.found {
        Err(error) => fragment().child(refused(seen.written, error)),
        Ok(_) if total == 0 => welcome(seen),
        Ok(found) if found.items.is_empty() => nothing(seen, found.total),
        Ok(found) => fragment().child(table(seen, found)).children(pages(seen, found.total)),
    };
    let main = el("main").child(el("h1").text(&title)).child(summary(seen)).child(form(seen)).child(contents);
    frame::page(&title, navigation(seen.registry, Some(seen.descriptor)), main, Some(seen.now))
}

fn summary(seen: &Seen<'_>) -> Element {
    let items = seen.counts.iter().map(|(filter, count)| {
        let mood = if *count == 0 { Mood::Quiet } else { filter.mood };
        let link = el("a")
            .attr("href", &overview_path(seen.descriptor, filter.search, 1))
            .attr("class", mood.class())
            .child(el("b").text(&count.to_string()))
            .text(" ")
            .text(filter.words);
        el("li").child(if filter.search == seen.written { link.attr("aria-current", "true") } else { link })
    });
    classed("ul", "summary").attr("aria-label", "How many").children(items)
}

fn form(seen: &Seen<'_>) -> Element {
    let input = el("input")
        .attr("type", "search")
        .attr("id", "search")
        .attr("name", "search")
        .attr("value", seen.written)
        .attr("placeholder", "labels.region = 'eu' and generation > 1")
        .attr("autocomplete", "off")
        .attr("autocapitalize", "off")
        .attr("spellcheck", "false");
    let input =
        if seen.found.is_err() { input.attr("aria-invalid", "true").attr("aria-describedby", "fault") } else { input };
    el("form")
        .attr("method", "get")
        .attr("action", "/")
        .attr("role", "search")
        .child(el("input").attr("type", "hidden").attr("name", "kind").attr("value", &seen.descriptor.kind))
        .child(el("label").attr("for", "search").text("Search"))
        .child(input)
        .child(el("button").text("Search"))
        .children((!seen.written.is_empty()).then(|| link(&overview_path(seen.descriptor, "", 1), "Show all")))
}

/// What is wrong with a search, with a finger on the place.
fn refused(written: &str, error: &SearchError) -> Element {
    let finger = error.column().filter(|_| !written.contains(['\n', '\r'])).map(|column| {
        let pointed = format!("{written}\n{}▲", " ".repeat(column.saturating_sub(1)));
        el("pre").attr("aria-hidden", "true").text(&pointed)
    });
    let columns = "id, name, generation, created_time, updated_time, deleted_time, owner_id";
    classed("section", "note bad")
        .attr("role", "alert")
        .attr("id", "fault")
        .child(el("h2").text("This search cannot be read"))
        .child(el("p").text(&error.to_string()))
        .children(finger)
        .child(
            el("p")
                .text("What can be searched: ")
                .child(el("code").text(columns))
                .text(", ")
                .child(el("code").text("labels.KEY"))
                .text(", ")
                .child(el("code").text("spec.PATH"))
                .text(" and ")
                .child(el("code").text("status.conditions.TYPE"))
                .text(", compared with = != < <= > >=, in, like; joined by and, or, not."),
        )
}

/// There is nothing of that kind at all: how to begin.
fn welcome(seen: &Seen<'_>) -> Element {
    let Descriptor { kind, plural, parent_kind, .. } = seen.descriptor;
    let parent = parent_kind.as_deref().and_then(|parent| seen.registry.kind(parent));
    let path = match parent {
        Some(parent) => format!("{}/{}-ID/{plural}", parent.plural, parent.kind.to_uppercase()),
        None => plural.clone(),
    };
    let name = "my-first".chars().take(seen.descriptor.max_name_length()).collect::<String>();
    let body = json!({ "kind": kind, "name": name, "spec": {} });
    let host = seen.host.filter(|host| is_host(host)).unwrap_or("localhost:8000");
    let line = format!(
        "curl -X POST http://{host}{BASE_PATH}/{path} \\\n  -H 'Content-Type: application/json' \\\n  -d '{body}'"
    );
    classed("section", "note")
        .child(el("h2").text(&format!("No {plural} yet")))
        .child(el("p").text("This makes one:"))
        .child(el("pre").attr("tabindex", "0").child(el("code").text(&line)))
        .child(el("p").text("Then reload this page."))
}

/// Whether it is no more than a host with a port: the line is made to be run.
fn is_host(host: &str) -> bool {
    !host.is_empty() && host.bytes().all(|byte| byte.is_ascii_alphanumeric() || b"-.:[]".contains(&byte))
}

fn nothing(seen: &Seen<'_>, total: i64) -> Element {
    let first = overview_path(seen.descriptor, seen.written, 1);
    let plural = &seen.descriptor.plural;
    let text = if total == 0 {
        el("p")
            .text(&format!("None of the {plural} match. "))
            .child(link(&overview_path(seen.descriptor, "", 1), "Show all"))
    } else {
        el("p").text(&format!("There are no {plural} on page {}. ", seen.page)).child(link(&first, "To the first page"))
    };
    classed("section", "note").child(text)
}

fn table(seen: &Seen<'_>, found: &Page<Resource>) -> Element {
    let descriptor = seen.descriptor;
    let judged = descriptor.has_adapters();
    let owned = descriptor.parent_kind.as_deref();
    let adapters = &descriptor.required_adapters;
    let headings = ["Name", "ID", "Gen."]
        .into_iter()
        .chain(owned)
        .chain(judged.then_some("Reconciled"))
        .chain(adapters.iter().map(String::as_str))
        .chain(["Deleting", "Age"]);
    let caption = el("caption").text(&format!("{}, newest first", range(seen.page, found)));
    let mut table = Table::new(caption, headings);
    for resource in &found.items {
        let (verdict, class) = verdict(resource, seen.now);
        let path = resource_path(seen.registry, &resource.kind, &resource.id).unwrap_or_default();
        let owner = || resource.owner.as_ref().map_or_else(fragment, |owner| frame::target(seen.registry, owner));
        let mut cells = vec![
            link(&path, &resource.name),
            classed("code", "id").text(&resource.id),
            fragment().text(&resource.generation.to_string()),
        ];
        cells.extend(owned.map(|_| owner()));
        cells.extend(judged.then_some(verdict));
        cells.extend(adapters.iter().map(|adapter| standing(resource, adapter)));
        cells.extend([deleting(resource, seen.now), ago(resource.created_time, seen.now)]);
        table = table.row(class, cells);
    }
    table.finish()
}

/// `Reconciled` with its reason, and what a glance at the row tells.
fn verdict(resource: &Resource, now: Timestamp) -> (Element, &'static str) {
    let Some((sign, condition)) = Sign::reconciled(resource) else {
        return (fragment().text("not concluded"), "row");
    };
    let since = el("small").text(" ").child(ago(condition.last_transition_time, now));
    let why = condition.reason.as_deref().map(|word| el("small").text(" ").child(reason(word)));
    let lines = fragment().child(el("div").child(sign.show()).child(since)).children(why);
    (lines, if condition.status == Status::True { "row" } else { "row bad" })
}

fn standing(resource: &Resource, adapter: &str) -> Element {
    let (sign, why) = Sign::explained(resource, resource.state.reports.get(adapter));
    fragment().child(sign.show()).children(why.map(|why| el("small").text(" ").child(reason(&why))))
}

fn deleting(resource: &Resource, now: Timestamp) -> Element {
    let since = resource.deleted_time.map(|at| el("small").text(" ").child(ago(at, now)));
    fragment().child(Sign::deleting(resource).show()).children(since)
}

fn range(page: i64, found: &Page<Resource>) -> String {
    let before = (page - 1) * SIZE;
    let shown = i64::try_from(found.items.len()).unwrap_or(SIZE);
    format!("{} to {} of {}", before + 1, before + shown, found.total)
}

/// The way to the other pages, if there are any.
fn pages(seen: &Seen<'_>, total: i64) -> Option<Element> {
    let last = (total + SIZE - 1) / SIZE;
    let to = |page: i64, text: &str, rel: &str| {
        link(&overview_path(seen.descriptor, seen.written, page), text).attr("rel", rel)
    };
    let newer = (seen.page > 1).then(|| to(seen.page - 1, "← Newer", "prev"));
    let older = (seen.page < last).then(|| to(seen.page + 1, "Older →", "next"));
    let here = el("span").text(&format!("Page {} of {last}", seen.page));
    let nav = classed("nav", "pages").attr("aria-label", "Pages");
    (last > 1).then(|| nav.children(newer).child(here).children(older))
}
