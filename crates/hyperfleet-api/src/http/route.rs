//! The endpoint that a path names.

use http::Method;

use crate::entity::{BASE_PATH, Descriptor, Registry};
use crate::service::Address;

/// An endpoint with the parameters of its path.
#[derive(Clone, Debug)]
pub(super) enum Route<'a> {
    /// The service's name and version.
    Service,
    /// The `OpenAPI` document.
    OpenApi,
    /// The list of endpoints as an HTML page.
    OpenApiPage,
    /// An HTML page: the overview, or one resource.
    Page(Option<Address<'a>>),
    /// The resources of a kind, or those below one owner.
    Collection {
        /// The kind; `None` means every kind.
        descriptor: Option<&'a Descriptor>,
        /// The owner in the path.
        owner_id: Option<&'a str>,
    },
    /// One resource.
    Item(Address<'a>),
    /// The removal of a resource without waiting for adapters.
    ForceDelete(Address<'a>),
    /// The adapters' reports about a resource.
    Statuses(Address<'a>),
    /// The transitions of a resource's conditions.
    History(Address<'a>),
    /// The resources of a kind that are not done, by cause.
    Causes(&'a Descriptor),
    /// The tombstones of a kind.
    Tombstones(&'a Descriptor),
    /// The report that copies of a tombstone are deleted.
    Swept {
        /// The kind of the removed resource.
        descriptor: &'a Descriptor,
        /// The id of the tombstone.
        id: &'a str,
    },
}

/// The endpoint that a path names; `None` if nothing is served there.
pub(super) fn route<'a>(path: &'a str, registry: &'a Registry) -> Option<Route<'a>> {
    let path = path.strip_suffix('/').unwrap_or(path);
    match path {
        "" => return Some(Route::Page(None)),
        "/api/hyperfleet" => return Some(Route::Service),
        _ => {}
    }
    if let Some(rest) = path.strip_prefix("/ui/") {
        let (plural, id) = rest.split_once('/')?;
        return Some(Route::Page(Some(Address {
            descriptor: Some(registry.plural(plural)?),
            owner_id: None,
            id: valid(id)?,
        })));
    }
    let segments: Vec<&str> = path.strip_prefix(BASE_PATH)?.strip_prefix('/')?.split('/').collect();
    match segments.as_slice() {
        ["openapi"] => Some(Route::OpenApi),
        ["openapi.html"] => Some(Route::OpenApiPage),
        ["causes", plural] => {
            let descriptor = registry.plural(plural)?;
            (!descriptor.required_adapters.is_empty()).then_some(Route::Causes(descriptor))
        }
        ["tombstones", plural] => Some(Route::Tombstones(registry.plural(plural)?)),
        ["tombstones", plural, id, "swept"] => Some(Route::Swept { descriptor: registry.plural(plural)?, id }),
        [plural, rest @ ..] => {
            let descriptor = if *plural == "resources" { None } else { Some(registry.plural(plural)?) };
            below(Scope { descriptor, owner_id: None }, rest, registry)
        }
        [] => None,
    }
}

/// The part of a path that is parsed already.
#[derive(Clone, Copy)]
struct Scope<'a> {
    descriptor: Option<&'a Descriptor>,
    owner_id: Option<&'a str>,
}

fn below<'a>(scope: Scope<'a>, rest: &[&'a str], registry: &'a Registry) -> Option<Route<'a>> {
    let Scope { descriptor, owner_id } = scope;
    let [id, rest @ ..] = rest else {
        return Some(Route::Collection { descriptor, owner_id });
    };
    // The path stays percent-encoded, so it holds no character that a database refuses.
    let address = Address { descriptor, owner_id, id };
    match rest {
        [] => Some(Route::Item(address)),
        ["force-delete"] => Some(Route::ForceDelete(address)),
        ["statuses"] => Some(Route::Statuses(address)),
        ["statuses", "history"] => Some(Route::History(address)),
        [plural, rest @ ..] if owner_id.is_none() => {
            let child = registry.plural(plural)?;
            let fits = child.parent_kind.as_deref() == Some(descriptor?.kind.as_str());
            fits.then(|| below(Scope { descriptor: Some(child), owner_id: Some(id) }, rest, registry)).flatten()
        }
        _ => None,
    }
}

fn valid(id: &str) -> Option<&str> {
    fleet_model::id::is_dns_label(id).then_some(id)
}

// === impl Route ===

impl Route<'_> {
    /// The address of the resource that it is about, if it is about one.
    pub(super) fn address(&self) -> Option<&Address<'_>> {
        match self {
            Self::Page(address) => address.as_ref(),
            Self::Item(address) | Self::ForceDelete(address) | Self::Statuses(address) | Self::History(address) => {
                Some(address)
            }
            Self::Service
            | Self::OpenApi
            | Self::OpenApiPage
            | Self::Collection { .. }
            | Self::Causes(_)
            | Self::Tombstones(_)
            | Self::Swept { .. } => None,
        }
    }

    /// The methods that it supports.
    pub(super) fn allowed(&self) -> &'static [Method] {
        match self {
            Self::Service
            | Self::OpenApi
            | Self::OpenApiPage
            | Self::Page(_)
            | Self::History(_)
            | Self::Causes(_)
            | Self::Tombstones(_) => &[Method::GET, Method::HEAD],
            Self::Collection { .. } => &[Method::GET, Method::HEAD, Method::POST],
            Self::Item(_) => &[Method::GET, Method::HEAD, Method::PATCH, Method::DELETE],
            Self::ForceDelete(_) | Self::Swept { .. } => &[Method::POST],
            Self::Statuses(_) => &[Method::GET, Method::HEAD, Method::PUT, Method::POST],
        }
    }

    /// True if it needs no authentication.
    pub(super) fn is_public(&self) -> bool {
        matches!(self, Self::Service | Self::OpenApi | Self::OpenApiPage)
    }

    /// The path as a metric's label, with `-` in place of ids.
    pub(super) fn template(&self) -> String {
        let of = |address: &Address<'_>| {
            let plural = address.descriptor.map_or("resources", |descriptor| &descriptor.plural);
            match address.owner_id {
                Some(_) => format!("{BASE_PATH}/-/-/{plural}/-"),
                None => format!("{BASE_PATH}/{plural}/-"),
            }
        };
        match self {
            Self::Service => "/api/hyperfleet".to_owned(),
            Self::OpenApi => format!("{BASE_PATH}/openapi"),
            Self::OpenApiPage => format!("{BASE_PATH}/openapi.html"),
            Self::Page(None) => "/".to_owned(),
            Self::Page(Some(_)) => "/ui/-/-".to_owned(),
            Self::Collection { descriptor, owner_id } => {
                let plural = descriptor.map_or("resources", |descriptor| &descriptor.plural);
                let below = if owner_id.is_some() { "/-/-" } else { "" };
                format!("{BASE_PATH}{below}/{plural}")
            }
            Self::Item(address) => of(address),
            Self::ForceDelete(address) => of(address) + "/force-delete",
            Self::Statuses(address) => of(address) + "/statuses",
            Self::History(address) => of(address) + "/statuses/history",
            Self::Causes(descriptor) => format!("{BASE_PATH}/causes/{}", descriptor.plural),
            Self::Tombstones(descriptor) => format!("{BASE_PATH}/tombstones/{}", descriptor.plural),
            Self::Swept { descriptor, .. } => format!("{BASE_PATH}/tombstones/{}/-/swept", descriptor.plural),
        }
    }
}

#[cfg(test)]
mod tests {
    use std::collections::BTreeSet;

    use super::*;
    use crate::openapi;

    /// The name of a route. A new one is a compile error here until it has a name.
    fn name(route: &Route<'_>) -> &'static str {
        match route {
            Route::Service => "service",
            Route::OpenApi => "openapi",
            Route::OpenApiPage => "openapi page",
            Route::Page(_) => "page",
            Route::Collection { .. } => "collection",
            Route::Item(_) => "item",
            Route::ForceDelete(_) => "force-delete",
            Route::Statuses(_) => "statuses",
            Route::History(_) => "history",
            Route::Causes(_) => "causes",
            Route::Tombstones(_) => "tombstones",
            Route::Swept { .. } => "swept",
        }
    }

    /// Tests of every route take the routes from the document.
    #[test]
    fn every_route_but_the_pages_is_in_the_openapi_document() {
        let registry = Registry::standard();
        let document = openapi::document(&registry, "1");
        let paths = document["paths"].as_object().unwrap().keys().map(|path| path.replace(['{', '}'], ""));
        let paths: Vec<String> = paths.collect();
        let documented: BTreeSet<&str> = paths.iter().map(|path| name(&route(path, &registry).unwrap())).collect();
        let all = [
            "service",
            "openapi",
            "openapi page",
            "page",
            "collection",
            "item",
            "force-delete",
            "statuses",
            "history",
            "causes",
            "tombstones",
            "swept",
        ];
        let undocumented: Vec<&str> = all.into_iter().filter(|name| !documented.contains(name)).collect();
        assert_eq!(undocumented, ["page"]);
    }
}
