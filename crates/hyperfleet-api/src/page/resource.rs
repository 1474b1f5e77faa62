//! One resource: what is wrong with it, who says so, how it came to that, and what is wanted.

use jiff::Timestamp;
use serde_json::{Map, Value};

use super::frame::{self, capitalised, navigation, overview_path, resource_path};
use super::html::{Element, classed, el, fragment, link, reason};
use super::sign::{Mood, Sign};
use super::table::Table;
use super::when::{ago, exactly};
use crate::entity::{Descriptor, Registry};
use crate::resource::{Report, Resource, Status};
use crate::store::{Page, Transition};

/// What the page shows.
#[derive(Debug)]
pub(super) struct Seen<'a> {
    pub(super) registry: &'a Registry,
    pub(super) resource: Resource,
    pub(super) history: Page<Transition>,
    pub(super) children: Vec<(&'a Descriptor, Page<Resource>)>,
    pub(super) now: Timestamp,
}

/// The page.
pub(super) fn show(seen: &Seen<'_>) -> String {
    let Seen { registry, resource, history, children, now } = seen;
    let descriptor = registry.kind(&resource.kind);
    let above = descriptor.map(|descriptor| {
        let all = link(&overview_path(descriptor, "", 1), &capitalised(&descriptor.plural));
        let owner =
            resource.owner.as_ref().map(|owner| fragment().text(" · of ").child(frame::target(registry, owner)));
        classed("p", "above").child(all).children(owner)
    });
    let adapters = descriptor.map_or(&[][..], |descriptor| &descriptor.required_adapters);
    let main = el("main")
        .children(above)
        .child(el("h1").text(&resource.name))
        .child(verdict(resource, *now))
        .children(reports(resource, adapters, *now))
        .children(conditions(resource, *now))
        .child(timeline(history))
        .child(identity(registry, resource))
        .children(children.iter().map(|(kind, found)| below(registry, kind, found)))
        .child(section("spec", "Spec").child(document("What is wanted", &resource.spec)));
    frame::page(&resource.name, navigation(registry, None), main, Some(*now))
}

fn section(id: &str, heading: &str) -> Element {
    el("section").attr("aria-labelledby", id).child(el("h2").attr("id", id).text(heading))
}

/// The first thing to know, in one sentence.
fn verdict(resource: &Resource, now: Timestamp) -> Element {
    let (mood, first) = match Sign::reconciled(resource) {
        Some((sign, condition)) => {
            let words = if condition.status == Status::True { "Reconciled" } else { "Not reconciled" };
            let since = fragment().text(" since ").child(exactly(condition.last_transition_time)).text(" (");
            let since = since.child(ago(condition.last_transition_time, now)).text(")");
            let why = condition.message.as_deref().map(|message| el("p").text(message));
            (sign.mood, fragment().child(el("p").child(sign.show_as(words)).child(since)).children(why))
        }
        None => (Mood::Quiet, el("p").text("Nothing is concluded about this kind of resource.")),
    };
    let deleting = resource.deleted_time.map(|at| {
        let by = resource.deleted_by.as_deref().unwrap_or("nobody who is known");
        let sign = Sign::deleting(resource).show_as("Being deleted");
        el("p").child(sign).text(" since ").child(exactly(at)).text(", asked for by ").text(by)
    });
    classed("section", &format!("note {}", mood.class())).attr("aria-label", "State").child(first).children(deleting)
}

/// What adapters report: those that decide in their order, then whoever else has reported.
fn reports(resource: &Resource, required: &[String], now: Timestamp) -> Option<Element> {
    let others = resource.state.reports.keys().filter(|name| !required.contains(name));
    let adapters: Vec<(&String, bool)> =
        required.iter().map(|name| (name, true)).chain(others.map(|name| (name, false))).collect();
    let caption = el("caption").text("What each adapter last reported");
    let mut table = Table::new(caption, ["Adapter", "Done", "Gen.", "Reported", "Reason", "Message"]);
    for (name, required) in &adapters {
        let report = resource.state.reports.get(*name);
        let sign = Sign::standing(resource, report);
        let available = report.and_then(|report| report.condition("Available"));
        let other = (!required).then(|| el("small").text(" not required"));
        table = table.row(
            if *required && sign.mood != Mood::Good { "row bad" } else { "row" },
            [
                fragment().text(name).children(other),
                sign.show(),
                report.map_or_else(dash, |report| fragment().text(&seen_generation(report, resource))),
                report.map_or_else(dash, |report| ago(report.last_report_time, now)),
                available.and_then(|available| available.reason.as_deref()).map_or_else(dash, reason),
                text(available.and_then(|available| available.message.as_deref())),
            ],
        );
    }
    let details = adapters.iter().filter_map(|(name, _)| resource.state.reports.get(*name)).map(|one| report(one, now));
    (!adapters.is_empty()).then(|| section("adapters", "Adapters").child(table.finish()).children(details))
}

fn seen_generation(report: &Report, resource: &Resource) -> String {
    let (seen, wanted) = (report.observed_generation, resource.generation);
    if seen == wanted { seen.to_string() } else { format!("{seen} of {wanted}") }
}

/// Everything that an adapter's last report says.
fn report(report: &Report, now: Timestamp) -> Element {
    let caption = el("caption").text(&format!("Conditions that {} reports", report.adapter));
    let mut table = Table::new(caption, ["Condition", "Status", "Since", "Reason", "Message"]);
    for condition in &report.conditions {
        table = table.row(
            "row",
            [
                reason(&condition.kind),
                Sign::status(condition.status).show(),
                ago(condition.last_transition_time, now),
                condition.reason.as_deref().map_or_else(dash, reason),
                text(condition.message.as_deref()),
            ],
        );
    }
    let metadata = report.metadata.as_ref().and_then(|metadata| serde_json::to_string_pretty(metadata).ok());
    let metadata = metadata.map(|text| fragment().child(el("h3").text("Metadata")).child(pre(&text)));
    let data = (!report.data.is_empty()).then(|| fragment().child(el("h3").text("Data")).child(json(&report.data)));
    let all = format!("Everything that {} reports", report.adapter);
    el("details").child(el("summary").text(&all)).child(table.finish()).children(data).children(metadata)
}

fn conditions(resource: &Resource, now: Timestamp) -> Option<Element> {
    let caption = el("caption").text("What follows from the reports");
    let mut table = Table::new(caption, ["Condition", "Status", "Gen.", "Since", "Reason", "Message"]);
    for condition in &resource.state.conditions {
        table = table.row(
            "row",
            [
                reason(&condition.kind),
                Sign::status(condition.status).show(),
                fragment().text(&condition.observed_generation.to_string()),
                ago(condition.last_transition_time, now),
                condition.reason.as_deref().map_or_else(dash, reason),
                text(condition.message.as_deref()),
            ],
        );
    }
    let any = !resource.state.conditions.is_empty();
    any.then(|| section("conditions", "Conditions").child(table.finish()))
}

fn timeline(history: &Page<Transition>) -> Element {
    let items = history.items.iter().map(|transition| {
        let Transition { adapter, kind, from, to, reason: why, message, observed_generation, time } = transition;
        let from = from.map_or_else(|| classed("span", "sign quiet").text("new"), |from| Sign::status(from).show());
        let arrow = el("span").attr("aria-label", "to").attr("role", "img").text("→");
        let why = why.as_deref().map(|word| el("b").text(" ").child(reason(word)));
        let line = el("p")
            .child(exactly(*time))
            .text(&format!(" {adapter} · {kind} "))
            .child(
                classed("span", "change").child(from).text(" ").child(arrow).text(" ").child(Sign::status(*to).show()),
            )
            .children(why)
            .child(el("small").text(&format!(" generation {observed_generation}")));
        el("li").child(line).children(message.as_deref().map(|message| classed("p", "soft").text(message)))
    });
    // The store forgets what is older, so nobody can say that these are all.
    let heading = match history.items.len() {
        0 => "No condition has changed yet.".to_owned(),
        1 => "The last change.".to_owned(),
        shown => format!("The last {shown} changes, newest first."),
    };
    let list = classed("ol", "timeline").children(items);
    section("timeline", "Timeline").child(el("p").text(&heading)).child(list)
}

fn identity(registry: &Registry, resource: &Resource) -> Element {
    let owner_id = resource.owner.as_ref().map(|owner| owner.id.as_str());
    let href = registry.href(&resource.kind, &resource.id, owner_id);
    let pair = |term: &str, value: Element| el("div").child(el("dt").text(term)).child(el("dd").child(value));
    let by = |at, by: &str| fragment().child(exactly(at)).text(" by ").text(by);
    let each = |members: &std::collections::BTreeMap<String, String>| {
        let items = members.iter().map(|(key, value)| el("li").child(el("code").text(&format!("{key}={value}"))));
        if members.is_empty() { fragment().text("none") } else { el("ul").children(items) }
    };
    let links = fragment()
        .child(link(&href, "resource"))
        .text(" · ")
        .child(link(&format!("{href}/statuses"), "reports"))
        .text(" · ")
        .child(link(&format!("{href}/statuses/history"), "history"));
    let mut list = el("dl")
        .child(pair("Kind", fragment().text(&resource.kind)))
        .child(pair("ID", classed("code", "id").text(&resource.id)))
        .child(pair("Generation", fragment().text(&resource.generation.to_string())))
        .child(pair("Created", by(resource.created_time, &resource.created_by)))
        .child(pair("Updated", by(resource.updated_time, &resource.updated_by)))
        .child(pair("As JSON", links))
        .child(pair("Labels", each(&resource.state.labels)));
    if !resource.state.tenancy.is_empty() {
        list = list.child(pair("Tenancy", each(&resource.state.tenancy)));
    }
    for (kind, targets) in &resource.state.references {
        let targets = targets.iter().map(|target| el("li").child(frame::target(registry, target)));
        list = list.child(pair(&format!("Reference {kind}"), el("ul").children(targets)));
    }
    section("identity", "Identity").child(list)
}

/// What belongs to the resource.
fn below(registry: &Registry, kind: &Descriptor, found: &Page<Resource>) -> Element {
    let heading = capitalised(&kind.plural);
    let items = found.items.iter().map(|child| {
        let path = resource_path(registry, &child.kind, &child.id).unwrap_or_default();
        let sign = Sign::reconciled(child).map(|(sign, condition)| {
            let words = if condition.status == Status::True { "reconciled" } else { "not reconciled" };
            fragment().text(" ").child(sign.show_as(words))
        });
        let leaving =
            child.is_terminating().then(|| fragment().text(" ").child(Sign::deleting(child).show_as("deleting")));
        el("li").child(link(&path, &child.name)).children(sign).children(leaving)
    });
    let count = match (found.total, found.items.len()) {
        (0, _) => el("p").text("None."),
        (total, shown) if usize::try_from(total) == Ok(shown) => fragment(),
        (total, shown) => el("p").text(&format!("The newest {shown} of {total}.")),
    };
    section(&format!("children-{}", kind.plural), &heading).child(count).child(el("ul").children(items))
}

fn dash() -> Element {
    fragment().text("–")
}

fn text(text: Option<&str>) -> Element {
    text.map_or_else(dash, |text| fragment().text(text))
}

fn document(summary: &str, members: &Map<String, Value>) -> Element {
    el("details").child(el("summary").text(summary)).child(json(members))
}

fn json(members: &Map<String, Value>) -> Element {
    // Maps with keys of text can be written; there is nothing else here.
    pre(&serde_json::to_string_pretty(members).unwrap_or_default())
}

/// Whoever has no mouse can scroll it as well.
fn pre(text: &str) -> Element {
    el("pre").attr("tabindex", "0").child(el("code").text(text))
}
