//! The permission that each request needs.

use http::Method;

use super::query::Parameters;
use super::route::Route;
use crate::authorization::{Denied, Permissions, Scope, Verb};
use crate::entity::{Descriptor, Registry};
use crate::page;
use crate::problem::Problem;
use crate::service::Address;

/// Checks what the path, the method and the parameters say of a request. What only its body says is checked when that is
/// parsed: the kind of a new resource, and the adapter of a report.
pub(super) fn check(
    permissions: &Permissions,
    registry: &Registry,
    route: &Route<'_>,
    method: &Method,
    parameters: &Parameters,
) -> Result<(), Problem> {
    let writes = !matches!(*method, Method::GET | Method::HEAD);
    match route {
        Route::Service | Route::OpenApi | Route::OpenApiPage => {}
        Route::Page(None) => page_of_list(permissions, registry, parameters)?,
        Route::Page(Some(address)) => page_of_resource(permissions, registry, address)?,
        Route::Collection { descriptor, .. } if writes => {
            if let Some(descriptor) = descriptor {
                permissions.allow(Verb::Create, Scope::Kind(&descriptor.kind))?;
            }
        }
        Route::Collection { descriptor, .. } => {
            let verb = if parameters.switch("watch")? { Verb::Watch } else { Verb::List };
            permissions.allow(verb, listed(registry, *descriptor, parameters))?;
        }
        Route::Item(address) => {
            let verb = match *method {
                Method::PATCH => Verb::Update,
                Method::DELETE => Verb::Delete,
                _ => Verb::Get,
            };
            permissions.allow(verb, scope(address))?;
            if verb == Verb::Get && parameters.with_pull_secret()? {
                permissions.allow_pull_secret(scope(address))?;
            }
        }
        Route::ForceDelete(address) => drop(permissions.allow_force_delete(scope(address))?),
        Route::Causes(descriptor) => drop(permissions.allow(Verb::List, Scope::Kind(&descriptor.kind))?),
        Route::Tombstones(descriptor) | Route::Swept { descriptor, .. } => {
            permissions.allow_sweep(Scope::Kind(&descriptor.kind))?;
        }
        Route::Statuses(address) if writes => drop(permissions.allow_some_report(scope(address))?),
        Route::Statuses(address) | Route::History(address) => drop(permissions.allow(Verb::Get, scope(address))?),
    }
    Ok(())
}

/// The kinds that a request may be about, as far as the path and the parameters say.
pub(super) fn subject<'a>(registry: &'a Registry, route: &Route<'a>, parameters: &Parameters) -> Scope<'a> {
    let kind = |descriptor: &'a Descriptor| Scope::Kind(&descriptor.kind);
    match route {
        Route::Service | Route::OpenApi | Route::OpenApiPage => Scope::Every,
        Route::Page(None) => page::kind(registry, parameters.first("kind")).map_or(Scope::Every, kind),
        Route::Collection { descriptor, .. } => listed(registry, *descriptor, parameters),
        Route::Causes(descriptor) | Route::Tombstones(descriptor) | Route::Swept { descriptor, .. } => kind(descriptor),
        Route::Page(Some(address))
        | Route::Item(address)
        | Route::ForceDelete(address)
        | Route::Statuses(address)
        | Route::History(address) => scope(address),
    }
}

/// The kinds that an address may name.
pub(super) fn scope<'a>(address: &Address<'a>) -> Scope<'a> {
    address.descriptor.map(|descriptor| descriptor.kind.as_str()).into()
}

/// The kinds that a list contains. An unknown kind in a parameter is refused where the list is made.
fn listed<'a>(registry: &'a Registry, descriptor: Option<&'a Descriptor>, parameters: &Parameters) -> Scope<'a> {
    let named = || parameters.first("kind").and_then(|kind| registry.kind(kind));
    descriptor.or_else(named).map(|descriptor| descriptor.kind.as_str()).into()
}

/// The overview of a kind.
fn page_of_list(permissions: &Permissions, registry: &Registry, parameters: &Parameters) -> Result<(), Denied> {
    match page::kind(registry, parameters.first("kind")) {
        Some(descriptor) => permissions.allow(Verb::List, Scope::Kind(&descriptor.kind)).map(drop),
        None => Ok(()),
    }
}

/// The page of a resource, which lists its children.
fn page_of_resource(permissions: &Permissions, registry: &Registry, address: &Address<'_>) -> Result<(), Denied> {
    permissions.allow(Verb::Get, scope(address))?;
    let children = address.descriptor.into_iter().flat_map(|descriptor| registry.children(&descriptor.kind));
    for child in children {
        permissions.allow(Verb::List, Scope::Kind(&child.kind))?;
    }
    Ok(())
}
