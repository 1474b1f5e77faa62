//! What the API answers, one line an endpoint.

use super::frame::{self, capitalised, navigation};
use super::html::{Element, classed, el, fragment, link};
use super::table::Table;
use crate::entity::{BASE_PATH, Descriptor, Registry};

/// The page.
pub(super) fn show(registry: &Registry) -> String {
    let openapi = format!("{BASE_PATH}/openapi");
    let introduction = el("p")
        .text("Bodies and answers are JSON, problems are RFC 9457. The same for programs: ")
        .child(link(&openapi, &openapi))
        .text(". A list takes page, size, search, order, fields, and watch=true for a stream of changes.");
    let general: [(&str, &str, &str); 5] = [
        ("GET", "/api/hyperfleet", "What this service is"),
        ("GET", &openapi, "The OpenAPI document"),
        ("GET", &format!("{openapi}.html"), "This page"),
        ("GET", "/", "All resources of a kind, for people"),
        ("GET", "/ui/{plural}/{id}", "One resource with its timeline, for people"),
    ];
    let any = endpoints(&format!("{BASE_PATH}/resources"), "resource of any kind", "resources of all kinds");
    let kinds = frame::in_order(registry).into_iter().map(|descriptor| {
        let parent = descriptor.parent_kind.as_deref().and_then(|parent| registry.kind(parent));
        kind(descriptor, parent)
    });
    let main = el("main")
        .child(el("h1").text("HyperFleet API"))
        .child(introduction)
        .child(section("This service", &general))
        .children(kinds)
        .child(section("Any kind", &borrowed(&any)));
    frame::page("API", navigation(registry, None), main, None)
}

type Endpoint = (&'static str, String, String);

fn kind(descriptor: &Descriptor, parent: Option<&Descriptor>) -> Element {
    let Descriptor { kind, plural, .. } = descriptor;
    let mut lines = Vec::new();
    let all = endpoints(&format!("{BASE_PATH}/{plural}"), kind, plural);
    match parent {
        Some(parent) => {
            let path = format!("{BASE_PATH}/{}/{{owner}}/{plural}", parent.plural);
            lines.extend(endpoints(&path, kind, &format!("{plural} of one {}", parent.kind)));
            // One that belongs to another is created below it, and nowhere else.
            lines.extend(all.into_iter().filter(|(method, path, _)| *method != "POST" || path.contains('{')));
        }
        None => lines.extend(all),
    }
    section(&capitalised(plural), &borrowed(&lines))
}

fn endpoints(path: &str, one: &str, all: &str) -> Vec<Endpoint> {
    let line = |method, below: &str, purpose: String| (method, format!("{path}{below}"), purpose);
    vec![
        line("GET", "", format!("List {all}; or watch them")),
        line("POST", "", format!("Create a {one}")),
        line("GET", "/{id}", format!("Read a {one}")),
        line("PATCH", "/{id}", "Change its spec, labels or references: a new generation".to_owned()),
        line("DELETE", "/{id}", "Ask for its deletion; adapters finish it".to_owned()),
        line("POST", "/{id}/force-delete", "Remove it without waiting for adapters".to_owned()),
        line("GET", "/{id}/statuses", "Read the adapters' reports".to_owned()),
        line("PUT", "/{id}/statuses", "Report, as an adapter; POST does the same".to_owned()),
        line("GET", "/{id}/statuses/history", "Read the transitions of its conditions, newest first".to_owned()),
    ]
}

fn borrowed(lines: &[Endpoint]) -> Vec<(&str, &str, &str)> {
    lines.iter().map(|(method, path, purpose)| (*method, path.as_str(), purpose.as_str())).collect()
}

fn section(heading: &str, lines: &[(&str, &str, &str)]) -> Element {
    let mut table =
        Table::new(classed("caption", "unseen").text(&format!("{heading}: endpoints")), ["Endpoint", "Purpose"]);
    for (method, path, purpose) in lines {
        let endpoint = el("code").child(el("b").text(method)).text(" ").text(path);
        table = table.row("row", [endpoint, fragment().text(purpose)]);
    }
    el("section").child(el("h2").text(heading)).child(table.finish())
}
