//! HTML pages for people: an overview of each kind, a page for each resource, the list of endpoints.
//!
//! They load nothing and run no script. Failures come first, as a word with a symbol, so that a reader on call needs neither
//! colours nor a legend.

mod badge;
mod causes;
mod endpoints;
mod escape;
mod frame;
mod overview;
mod plain;
mod resource;
mod table;
mod time;

use fleet_model::cause::Causes;
use fleet_model::condition::condition_type;
use fleet_model::names::condition::RECONCILED;
use jiff::Timestamp;

use crate::entity::{Descriptor, Registry};
use crate::problem::{Code, Problem, Rejection};
use crate::search::Search;
use crate::service::{Address, Service};
use crate::store::{Page, Query};
use crate::tenancy::Reach;

/// The policy of every page: nothing is loaded from anywhere, and no script runs.
pub const CONTENT_SECURITY_POLICY: &str = "default-src 'none'; style-src 'unsafe-inline'; form-action 'self'; \
                                           base-uri 'none'; frame-ancestors 'none'";

/// Maximum number of resources that are grouped by cause: their conditions are read for each view, some 20 µs each.
const MAX_GROUPED: i64 = 20_000;
/// The last page number that is accepted.
const LAST_PAGE: i64 = 100_000;
/// Maximum number of transitions on a resource's page.
const TRANSITIONS: i64 = 50;
/// Maximum number of children of each kind on a resource's page.
const CHILDREN: i64 = 100;

/// The parameters of an overview, as the request gives them.
#[derive(Clone, Copy, Debug, Default)]
pub struct OverviewRequest<'a> {
    /// The kind; by default the most important one.
    pub kind: Option<&'a str>,
    /// The search that selects resources.
    pub search: Option<&'a str>,
    /// The page number, counted from 1.
    pub page: Option<&'a str>,
    /// True if the page is to load itself again from time to time.
    pub refreshes: bool,
    /// The `Host` header, for the command that creates a first resource.
    pub host: Option<&'a str>,
}

/// Renders the overview of the resources of a kind within reach.
pub async fn overview(
    service: &Service,
    request: &OverviewRequest<'_>,
    reach: &Reach,
    now: Timestamp,
) -> Result<String, Rejection> {
    let registry = service.registry();
    let unknown = || Problem::new(Code::NotFound, "no such kind is configured here");
    let descriptor = kind(registry, request.kind).ok_or_else(unknown)?;
    let search = request.search.unwrap_or_default().trim();
    // People follow links and do not type page numbers, so an invalid number shows the first page.
    let page = request.page.and_then(|page| page.parse().ok()).unwrap_or(1).clamp(1, LAST_PAGE);
    let mut counts = Vec::new();
    for filter in overview::filters(descriptor) {
        counts.push((filter, count(service, descriptor, reach, filter.search).await?));
    }
    let not_reconciled = counts.iter().find(|(filter, _)| filter.search == overview::NOT_RECONCILED);
    let not_reconciled = not_reconciled.map_or(0, |(_, count)| *count);
    let plain = plain::search(search);
    let mut causes = (not_reconciled == 0 || page > 1).then(Vec::new);
    let found = match Search::parse(plain.as_deref().unwrap_or(search)) {
        Ok(parsed) => {
            let offset = (page - 1) * overview::PAGE_SIZE;
            let query =
                Query { search: parsed, offset, ..Query::of_kind(&descriptor.kind, reach, overview::PAGE_SIZE) };
            let list = service.store().list(&query).await?;
            if page == 1 && not_reconciled.min(list.total) <= MAX_GROUPED && not_reconciled > 0 {
                causes = Some(self::causes(service, descriptor, &query).await?);
            }
            Ok(list)
        }
        Err(error) => Err(error),
    };
    let OverviewRequest { host, refreshes, .. } = *request;
    Ok(overview::show(&overview::Overview {
        registry,
        descriptor,
        search,
        plain,
        page,
        found,
        causes,
        counts,
        refreshes,
        host,
        now,
    }))
}

/// Groups the resources of a query that are not reconciled by the first adapter that blocks them.
async fn causes(service: &Service, descriptor: &Descriptor, query: &Query) -> Result<Vec<Causes>, Rejection> {
    let adapters = descriptor.required_adapters.iter().map(|adapter| condition_type(adapter));
    let conditions: Vec<_> = adapters.chain([RECONCILED.to_owned()]).collect();
    Ok(service.store().causes(query, RECONCILED, &conditions).await?)
}

/// Renders the page of one resource within reach.
pub async fn resource(
    service: &Service,
    address: &Address<'_>,
    reach: &Reach,
    refreshes: bool,
    now: Timestamp,
) -> Result<String, Rejection> {
    let resource = service.get(address, reach).await?;
    let history = service.store().history(&resource.id, 0, TRANSITIONS).await?;
    let mut children = Vec::new();
    for descriptor in service.registry().children(&resource.kind) {
        let query = Query { owner_id: Some(resource.id.clone()), ..Query::of_kind(&descriptor.kind, reach, CHILDREN) };
        children.push((descriptor, service.store().list(&query).await?));
    }
    Ok(resource::show(&resource::Details { registry: service.registry(), resource, history, children, refreshes, now }))
}

/// Renders the list of endpoints.
pub fn openapi(registry: &Registry) -> String {
    endpoints::show(registry)
}

/// Returns the kind that an overview shows; `None` if there is no such kind.
pub(crate) fn kind<'a>(registry: &'a Registry, requested: Option<&str>) -> Option<&'a Descriptor> {
    match requested {
        Some(kind) => registry.kind(kind),
        None => frame::in_order(registry).first().copied(),
    }
}

async fn count(service: &Service, descriptor: &Descriptor, reach: &Reach, search: &str) -> Result<i64, Rejection> {
    // The searches are constants; a test parses each of them.
    let search = Search::parse(search).unwrap_or_default();
    let query = Query { search, ..Query::of_kind(&descriptor.kind, reach, 0) };
    let Page { total, .. } = service.store().list(&query).await?;
    Ok(total)
}
