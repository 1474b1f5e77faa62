//! The parts that every page has: head, navigation and footer, and the links between pages.

use jiff::Timestamp;
use maud::{DOCTYPE, Markup, PreEscaped, html};

use super::escape::neutralize;
use super::time::exactly;
use crate::entity::{BASE_PATH, Descriptor, Registry};
use crate::resource::Target;

const STYLE_SHEET: &str = include_str!("style.css");

/// A whole page, before it is rendered.
pub(super) struct Frame<'a> {
    pub(super) title: &'a str,
    pub(super) navigation: Markup,
    pub(super) main: Markup,
    /// The time of the data, for the footer.
    pub(super) as_of: Option<Timestamp>,
    /// Reloading of a page with data.
    pub(super) refresh: Option<Refresh>,
}

/// Reloading without a script: by a header line of the page, while the reader wants it.
#[derive(Debug)]
pub(super) struct Refresh {
    pub(super) is_on: bool,
    /// The path of the page without it.
    pub(super) path: String,
}

/// Seconds between two reloads.
const REFRESH: u32 = 10;

/// Renders a page.
pub(super) fn page(frame: &Frame<'_>) -> String {
    let Frame { title, navigation, main, as_of, refresh } = frame;
    let refreshes = refresh.as_ref().is_some_and(|refresh| refresh.is_on);
    let body = html! {
        a class="skip" href="#main" { "Skip to content" }
        header { a class="brand" href="/" { "HyperFleet" } (navigation) }
        main id="main" { (main) }
        @if let Some(now) = *as_of {
            footer { "As of " (exactly(now)) ". " @if let Some(refresh) = refresh { (refresh.link()) } }
        }
    };
    let page = html! {
        (DOCTYPE) "\n"
        html lang="en" {
            head {
                meta charset="utf-8";
                meta name="viewport" content="width=device-width, initial-scale=1";
                @if refreshes { meta http-equiv="refresh" content=(REFRESH); }
                meta name="color-scheme" content="light dark";
                // Without an icon a browser requests /favicon.ico, which is a 404.
                link rel="icon" href="data:,";
                title { (neutralize(&html! { (title) })) " · HyperFleet" }
                style { (PreEscaped(STYLE_SHEET)) }
            }
            body { (neutralize(&body)) }
        }
    };
    page.into_string()
}

impl Refresh {
    /// The link that begins or ends the reloading.
    fn link(&self) -> Markup {
        let separator = if self.path.contains('?') { '&' } else { '?' };
        html! {
            @if self.is_on {
                "Reloads every " (REFRESH) " seconds. " a href=(self.path) { "Stop" }
            } @else {
                a href={ (self.path) (separator) "refresh=on" } { "Reload every " (REFRESH) " seconds" }
            }
        }
    }
}

/// Links to the overview of each kind, and to the API's endpoints.
pub(super) fn navigation(registry: &Registry, current: Option<&Descriptor>) -> Markup {
    html! {
        nav aria-label="Kinds" {
            ul {
                @for descriptor in in_order(registry) {
                    @let is_current = current.is_some_and(|current| current.kind == descriptor.kind);
                    li {
                        a href=(overview_path(descriptor, "", 1)) aria-current=[is_current.then_some("page")] {
                            (capitalised(&descriptor.plural))
                        }
                    }
                }
                li { a href={ (BASE_PATH) "/openapi.html" } { "API" } }
            }
        }
    }
}

/// The kinds by importance: those with adapters first, owners before what they own.
pub(super) fn in_order(registry: &Registry) -> Vec<&Descriptor> {
    let mut kinds: Vec<&Descriptor> = registry.descriptors().iter().collect();
    kinds.sort_by_key(|descriptor| (!descriptor.has_adapters(), descriptor.parent_kind.is_some()));
    kinds
}

/// The path of a kind's overview, narrowed by a search.
pub(super) fn overview_path(descriptor: &Descriptor, search: &str, page: i64) -> String {
    let mut query = form_urlencoded::Serializer::for_suffix("/?".to_owned(), "/?".len());
    query.append_pair("kind", &descriptor.kind);
    if !search.is_empty() {
        query.append_pair("search", search);
    }
    if page > 1 {
        query.append_pair("page", &page.to_string());
    }
    query.finish()
}

/// The path of a resource's page; `None` when its kind is no longer configured.
pub(super) fn resource_path(registry: &Registry, kind: &str, id: &str) -> Option<String> {
    registry.kind(kind).map(|descriptor| format!("/ui/{}/{id}", descriptor.plural))
}

/// A reference to another resource, as a link where it has a page.
pub(super) fn target(registry: &Registry, target: &Target) -> Markup {
    let id = html! { code class="id" { (target.id) } };
    html! {
        (target.kind) " "
        @match resource_path(registry, &target.kind, &target.id) {
            Some(path) => { a href=(path) { (id) } }
            None => { (id) }
        }
    }
}

/// A `CamelCase` word such as `ReconciledMissingAdapters`, which may wrap before each capital letter.
pub(super) fn wrappable(word: &str) -> Markup {
    html! {
        @for (index, letter) in word.char_indices() {
            @if index > 0 && letter.is_uppercase() { wbr; }
            (letter)
        }
    }
}

/// The text with a capital first letter.
pub(super) fn capitalised(text: &str) -> String {
    let mut letters = text.chars();
    letters.next().into_iter().flat_map(char::to_uppercase).chain(letters).collect()
}
