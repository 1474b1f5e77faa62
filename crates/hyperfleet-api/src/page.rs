//! Pages for people in a browser.
//!
//! They load nothing and run no script. What is not as it should be comes first, in words and shapes; who is called at
//! night needs no colours and no legend.

mod endpoints;
mod frame;
mod html;
mod overview;
mod resource;
mod sign;
mod table;
mod when;

use jiff::Timestamp;

use crate::entity::{Descriptor, Registry};
use crate::problem::{Code, Problem, Rejection};
use crate::search::Search;
use crate::service::{Address, Service};
use crate::store::{Page, Query};

/// Nothing is loaded from anywhere, and no script runs.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; \
                                           base-uri 'none'; frame-ancestors 'none'";

/// How many resources an overview shows at once.
const SIZE: i64 = 100;
/// The last page that anybody can ask for.
const LAST: i64 = 100_000;
/// How many transitions a resource's page shows.
const TRANSITIONS: i64 = 50;
/// How many children of each kind a resource's page shows.
const CHILDREN: i64 = 100;

/// Which resources are overlooked.
#[derive(Clone, Copy, Debug, Default)]
pub struct Asked<'a> {
    /// Of which kind; the most important one if nothing is said.
    pub kind: Option<&'a str>,
    /// Only what this finds.
    pub search: Option<&'a str>,
    /// Which page, counted from 1.
    pub page: Option<&'a str>,
    /// How this server was called.
    pub host: Option<&'a str>,
}

/// All resources of a kind at a glance.
pub async fn overview(service: &Service, asked: &Asked<'_>, now: Timestamp) -> Result<String, Rejection> {
    let descriptor = kind(service.registry(), asked.kind)?;
    let written = asked.search.unwrap_or_default().trim();
    // Who leafs has not typed the number; whatever is none means the first page.
    let page = asked.page.and_then(|page| page.parse().ok()).unwrap_or(1).clamp(1, LAST);
    let found = match Search::parse(written) {
        Ok(search) => {
            let query = Query { search, offset: (page - 1) * SIZE, ..Query::of_kind(&descriptor.kind, SIZE) };
            Ok(service.store().list(&query).await?)
        }
        Err(error) => Err(error),
    };
    let mut counts = Vec::new();
    for filter in overview::filters(descriptor) {
        counts.push((filter, count(service, descriptor, filter.search).await?));
    }
    let registry = service.registry();
    Ok(overview::show(&overview::Seen { registry, descriptor, written, page, found, counts, host: asked.host, now }))
}

/// One resource with its timeline.
pub async fn resource(service: &Service, address: &Address<'_>, now: Timestamp) -> Result<String, Rejection> {
    let resource = service.get(address).await?;
    let history = service.store().history(&resource.id, 0, TRANSITIONS).await?;
    let mut children = Vec::new();
    for descriptor in service.registry().children(&resource.kind) {
        let query = Query { owner_id: Some(resource.id.clone()), ..Query::of_kind(&descriptor.kind, CHILDREN) };
        children.push((descriptor, service.store().list(&query).await?));
    }
    Ok(resource::show(&resource::Seen { registry: service.registry(), resource, history, children, now }))
}

/// The endpoints.
pub fn openapi(registry: &Registry) -> String {
    endpoints::show(registry)
}

fn kind<'a>(registry: &'a Registry, asked: Option<&str>) -> Result<&'a Descriptor, Rejection> {
    let found = match asked {
        Some(kind) => registry.kind(kind),
        None => frame::in_order(registry).first().copied(),
    };
    found.ok_or_else(|| Problem::new(Code::NotFound, "no such kind is configured here").into())
}

async fn count(service: &Service, descriptor: &Descriptor, search: &str) -> Result<i64, Rejection> {
    // The searches are ours, and a test reads them all.
    let search = Search::parse(search).unwrap_or_default();
    let Page { total, .. } = service.store().list(&Query { search, ..Query::of_kind(&descriptor.kind, 0) }).await?;
    Ok(total)
}
