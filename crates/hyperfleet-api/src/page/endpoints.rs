//! The page that lists every endpoint of the API.

use maud::{Markup, html};

use super::frame::{self, Frame, capitalised, navigation};
use super::table::Table;
use crate::entity::{BASE_PATH, Descriptor, Registry};

/// A method and path with its purpose.
struct Endpoint {
    method: &'static str,
    path: String,
    purpose: String,
}

/// Renders the page.
pub(super) fn show(registry: &Registry) -> String {
    let openapi = format!("{BASE_PATH}/openapi");
    let service = [
        Endpoint::new("GET", "/api/hyperfleet", "Read the service's name and version"),
        Endpoint::new("GET", &openapi, "Read the OpenAPI document"),
        Endpoint::new("GET", &format!("{openapi}.html"), "This page"),
        Endpoint::new("GET", "/", "Browse the resources of a kind"),
        Endpoint::new("GET", "/ui/{plural}/{id}", "Browse one resource with its timeline"),
    ];
    let tombstones = format!("{BASE_PATH}/tombstones/{{plural}}");
    let tombstones = [
        Endpoint::new("GET", &tombstones, "Read the tombstones that forced deletions leave"),
        Endpoint::new("POST", &format!("{tombstones}/{{id}}/swept"), "Report that copies in a tombstone are deleted"),
    ];
    let any = endpoints(&format!("{BASE_PATH}/resources"), "resource of any kind", "resources of all kinds");
    let main = html! {
        h1 { "HyperFleet API" }
        p {
            "Request and response bodies are JSON, problems are RFC 9457. The machine-readable form is "
            a href=(openapi) { (openapi) }
            ". A list takes page, size, search, order, fields, and watch=true for a stream of changes."
        }
        (section("This service", &service))
        @for descriptor in frame::in_order(registry) {
            @let parent = descriptor.parent_kind.as_deref().and_then(|parent| registry.kind(parent));
            (section(&capitalised(&descriptor.plural), &endpoints_of_kind(descriptor, parent)))
        }
        (section("Any kind", &any))
        (section("Tombstones", &tombstones))
    };
    frame::page(&Frame { title: "API", navigation: navigation(registry, None), main, as_of: None, refresh: None })
}

fn endpoints_of_kind(descriptor: &Descriptor, parent: Option<&Descriptor>) -> Vec<Endpoint> {
    let Descriptor { kind, plural, .. } = descriptor;
    let all = endpoints(&format!("{BASE_PATH}/{plural}"), kind, plural);
    let Some(parent) = parent else { return all };
    let path = format!("{BASE_PATH}/{}/{{owner}}/{plural}", parent.plural);
    let below_owner = endpoints(&path, kind, &format!("{plural} of one {}", parent.kind));
    // A resource with an owner can only be created below it.
    let others = all.into_iter().filter(|endpoint| endpoint.method != "POST" || endpoint.path.contains('{'));
    below_owner.into_iter().chain(others).collect()
}

fn endpoints(path: &str, one: &str, all: &str) -> Vec<Endpoint> {
    let endpoint = |method, below: &str, purpose: &str| Endpoint::new(method, &format!("{path}{below}"), purpose);
    vec![
        endpoint("GET", "", &format!("List or watch {all}")),
        endpoint("POST", "", &format!("Create a {one}")),
        endpoint("GET", "/{id}", &format!("Read a {one}")),
        endpoint("PATCH", "/{id}", "Change its spec, labels or references: a new generation"),
        endpoint("DELETE", "/{id}", "Request its deletion; it is removed once its adapters report Finalized"),
        endpoint("POST", "/{id}/force-delete", "Remove it without waiting for adapters"),
        endpoint("GET", "/{id}/statuses", "Read the adapters' reports"),
        endpoint("PUT", "/{id}/statuses", "Report as an adapter; POST does the same"),
        endpoint("GET", "/{id}/statuses/history", "Read the transitions of its conditions, newest first"),
    ]
}

fn section(heading: &str, endpoints: &[Endpoint]) -> Markup {
    let caption = html! { caption class="visually-hidden" { (heading) ": endpoints" } };
    let table = endpoints.iter().fold(Table::new(caption, ["Endpoint", "Purpose"]), |table, endpoint| {
        let Endpoint { method, path, purpose } = endpoint;
        table.row("row", [html! { code { b { (method) } " " (path) } }, html! { (purpose) }])
    });
    html! { section { h2 { (heading) } (table.finish()) } }
}

// === impl Endpoint ===

impl Endpoint {
    fn new(method: &'static str, path: &str, purpose: &str) -> Self {
        Self { method, path: path.to_owned(), purpose: purpose.to_owned() }
    }
}
