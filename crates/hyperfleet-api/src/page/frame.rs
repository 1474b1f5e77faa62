//! What every page has around it: its head, the way to the other pages, its foot.

use jiff::Timestamp;

use super::html::{Element, classed, el, fragment, link};
use super::when;
use crate::entity::{BASE_PATH, Descriptor, Registry};
use crate::resource::Target;

const SHEET: &str = include_str!("style.css");

/// A whole page.
pub(super) fn page(title: &str, navigation: Element, main: Element, as_of: Option<Timestamp>) -> String {
    let meta = |name, content| el("meta").attr("name", name).attr("content", content);
    let head = el("head")
        .child(el("meta").attr("charset", "utf-8"))
        .child(meta("viewport", "width=device-width, initial-scale=1"))
        .child(meta("color-scheme", "light dark"))
        // A browser that is given no icon asks for one, which is then not there.
        .child(el("link").attr("rel", "icon").attr("href", "data:,"))
        .child(el("title").text(title).text(" · HyperFleet"))
        .child(el("style").sheet(SHEET));
    let skip = link("#main", "To the content").attr("class", "skip");
    let header = el("header").child(link("/", "HyperFleet").attr("class", "brand")).child(navigation);
    let foot = as_of.map(|now| el("footer").text("As of ").child(when::exactly(now)).text("; reload for now."));
    let body = el("body").child(skip).child(header).child(main.attr("id", "main")).children(foot);
    el("html").attr("lang", "en").child(head).child(body).document()
}

/// The way to the overviews of all kinds, and to the description of the API.
pub(super) fn navigation(registry: &Registry, current: Option<&Descriptor>) -> Element {
    let kinds = in_order(registry).into_iter().map(|descriptor| {
        let here = current.is_some_and(|current| current.kind == descriptor.kind);
        let link = link(&overview_path(descriptor, "", 1), &capitalised(&descriptor.plural));
        el("li").child(if here { link.attr("aria-current", "page") } else { link })
    });
    let api = el("li").child(link(&format!("{BASE_PATH}/openapi.html"), "API"));
    el("nav").attr("aria-label", "Kinds").child(el("ul").children(kinds).child(api))
}

/// The kinds as they matter: first those that adapters work on, owners before what belongs to them.
pub(super) fn in_order(registry: &Registry) -> Vec<&Descriptor> {
    let mut kinds: Vec<&Descriptor> = registry.descriptors().iter().collect();
    kinds.sort_by_key(|descriptor| (!descriptor.has_adapters(), descriptor.parent_kind.is_some()));
    kinds
}

/// Where a kind's overview is, narrowed by a search.
pub(super) fn overview_path(descriptor: &Descriptor, search: &str, page: i64) -> String {
    let mut query = form_urlencoded::Serializer::new("/?".to_owned());
    query.append_pair("kind", &descriptor.kind);
    if !search.is_empty() {
        query.append_pair("search", search);
    }
    if page > 1 {
        query.append_pair("page", &page.to_string());
    }
    query.finish()
}

/// Where a resource's page is; its kind has none when it is no longer configured.
pub(super) fn resource_path(registry: &Registry, kind: &str, id: &str) -> Option<String> {
    registry.kind(kind).map(|descriptor| format!("/ui/{}/{id}", descriptor.plural))
}

/// A link to another resource.
pub(super) fn target(registry: &Registry, target: &Target) -> Element {
    let name = classed("code", "id").text(&target.id);
    match resource_path(registry, &target.kind, &target.id) {
        Some(path) => fragment().text(&target.kind).text(" ").child(el("a").attr("href", &path).child(name)),
        None => fragment().text(&target.kind).text(" ").child(name),
    }
}

/// With a capital letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
