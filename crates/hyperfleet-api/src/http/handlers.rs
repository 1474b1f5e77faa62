//! The handlers of the endpoints.

use axum::body::Body;
use axum::response::Response;
use fleet_model::Generation;
use http::{HeaderMap, HeaderValue, Method, StatusCode, header};
use serde_json::{Map, Value, json};

use super::audit::{Call, Unfinished};
use super::document::ServiceDocument;
use super::query::Parameters;
use super::route::Route;
use super::{Api, access, causes, response, trace, watch};
use crate::authorization::{Denied, Scope, Verb};
use crate::decide::body::{self, Creation};
use crate::decide::change::{self, RequestInfo};
use crate::decide::report::{self, NewReport};
use crate::decide::tombstone;
use crate::entity::Descriptor;
use crate::excerpt::excerpt;
use crate::page;
use crate::problem::{Code, FieldError, Problem, Rejection};
use crate::render;
use crate::resource::Resource;
use crate::sealed;
use crate::search::Fields;
use crate::service::{Address, Caller, Reported};
use crate::store::{Query, StoreError};
use crate::tenancy::Reach;

/// A request whose route is known, whose caller is authenticated and whose body is read.
pub(super) struct AuthenticatedRequest<'a> {
    pub(super) call: Call<'a>,
    pub(super) method: &'a Method,
    pub(super) route: Route<'a>,
    pub(super) parameters: Parameters,
    pub(super) headers: &'a HeaderMap,
    pub(super) body: &'a [u8],
    pub(super) caller: &'a Caller,
}

/// A request that changes a resource, and its audit record.
struct Write<'a> {
    request: RequestInfo,
    call: Call<'a>,
}

impl<'a> Write<'a> {
    /// Begins the audit record if the spec has the content of a pull secret.
    fn record(&self, spec: Option<&Map<String, Value>>) -> Option<Unfinished<'a>> {
        spec.is_some_and(sealed::is_given).then(|| self.call.write())
    }
}

/// Finishes the audit record of a write. After a failure of the server it may have taken effect all the same.
fn recorded(record: Option<Unfinished<'_>>, written: Result<Resource, Rejection>) -> Result<Resource, Rejection> {
    match (record, &written) {
        (Some(record), Ok(resource)) => record.stored(resource),
        (Some(record), Err(rejection)) if !rejection.problem.code.status().is_server_error() => record.refused(),
        (Some(_) | None, _) => {}
    }
    written
}

/// Handles a request.
pub(super) async fn handle(api: &Api, request: AuthenticatedRequest<'_>) -> Result<Response, Rejection> {
    let AuthenticatedRequest { call, method, route, parameters, headers, body, caller } = request;
    let scope = route.address().map_or(Scope::Every, access::scope);
    let request = RequestInfo::now(caller, scope, api.now());
    let post = *method == Method::POST;
    match route {
        Route::Service => Ok(service(api)),
        Route::OpenApi => Ok(response::with_type(StatusCode::OK, "application/json", api.parts.openapi.clone().into())),
        Route::OpenApiPage => Ok(html(page::openapi(api.service().registry()))),
        Route::Page(None) => overview(api, &parameters, headers, &request).await,
        Route::Page(Some(address)) => {
            let refreshes = parameters.first("refresh").is_some();
            Ok(html(page::resource(api.service(), &address, &request.reach, refreshes, request.time).await?))
        }
        Route::Collection { descriptor, owner_id } if post => {
            let (descriptor, creation) = creation(api, descriptor, owner_id, body)?;
            let scope = Scope::Kind(&descriptor.kind);
            caller.permissions.allow(Verb::Create, scope).map_err(Problem::from)?;
            check_id(&creation, caller, scope)?;
            let request = RequestInfo::now(caller, scope, request.time);
            create(api, descriptor, owner_id, creation, &Write { request, call }).await
        }
        Route::Collection { descriptor, owner_id } => list(api, descriptor, owner_id, &parameters, caller).await,
        Route::Item(address) if *method == Method::PATCH => {
            patch(api, &address, headers, body, &Write { request, call }).await
        }
        Route::Item(address) if *method == Method::DELETE => {
            let resource = api.service().delete(&address, &request).await?;
            api.parts.metrics.reconciliation_started(&resource, api.service().registry());
            Ok(item(StatusCode::ACCEPTED, &resource))
        }
        Route::Item(address) => read(api, &address, &parameters, call).await,
        Route::ForceDelete(address) => force_delete(api, &address, body, &request).await,
        Route::Statuses(address) if post || *method == Method::PUT => {
            if body.len() > report::MAX_REPORT {
                let detail = format!("a report is at most {} bytes: report less data", report::MAX_REPORT);
                return Err(Problem::new(Code::TooLarge, detail).into());
            }
            let new = report::parse(body::object(body)?)?;
            let permissions = &caller.permissions;
            permissions.allow_report(&new.adapter, access::scope(&address)).map_err(Problem::from)?;
            report(api, &address, post, new, &request).await
        }
        Route::Statuses(address) => statuses(api, &address, &parameters, &request.reach).await,
        Route::History(address) => history(api, &address, &parameters, &request.reach).await,
        Route::Causes(descriptor) => causes::read(api, descriptor, &parameters, caller).await,
        Route::Tombstones(descriptor) => tombstones(api, descriptor, &parameters, &request.reach).await,
        Route::Swept { descriptor, id } => swept(api, descriptor, id, body, &request.reach).await,
    }
}

async fn patch(
    api: &Api,
    address: &Address<'_>,
    headers: &HeaderMap,
    body: &[u8],
    write: &Write<'_>,
) -> Result<Response, Rejection> {
    let expected = if_match(headers)?;
    let patch = body::patch(body::object(body)?)?;
    let record = write.record(patch.spec.as_ref());
    let patched = api.service().patch(address, patch, expected, &write.request).await.map_err(Rejection::from);
    let resource = recorded(record, patched)?;
    api.parts.metrics.reconciliation_started(&resource, api.service().registry());
    Ok(item(StatusCode::OK, &resource))
}

async fn read(
    api: &Api,
    address: &Address<'_>,
    parameters: &Parameters,
    call: Call<'_>,
) -> Result<Response, Rejection> {
    let fields = parameters.fields()?;
    let Caller { permissions, reach, .. } = call.caller.cloned().unwrap_or_default();
    if !parameters.with_pull_secret()? {
        let object = api.service().read(address, &reach).await?;
        return Ok(response::json_text(StatusCode::OK, project(object, fields.as_ref())?));
    }
    let because = permissions.allow_pull_secret(access::scope(address)).map_err(Problem::from)?;
    let resource = api.service().read_with_pull_secret(address, &reach).await?;
    call.read(&resource, &because);
    let mut response = response::json_text(StatusCode::OK, project(render::text(&resource), fields.as_ref())?);
    response.headers_mut().insert(header::CACHE_CONTROL, HeaderValue::from_static("no-store"));
    Ok(response)
}

/// The requested fields of a resource.
fn project(object: String, fields: Option<&Fields>) -> Result<String, Rejection> {
    let Some(fields) = fields else { return Ok(object) };
    Ok(fields.apply(&object).map_err(|_damaged| StoreError::Damaged { location: "resources.object" })?)
}

async fn force_delete(
    api: &Api,
    address: &Address<'_>,
    body: &[u8],
    request: &RequestInfo,
) -> Result<Response, Rejection> {
    let reason = body::reason(body::object(body)?)?;
    let children = api.service().force_delete(address, &reason, request).await?.join(",");
    let (caller, id) = (&request.caller, address.id);
    tracing::warn!(operation = "force-delete", caller, id, reason, children, "removed without waiting for adapters");
    Ok(response::empty(StatusCode::NO_CONTENT))
}

async fn statuses(
    api: &Api,
    address: &Address<'_>,
    parameters: &Parameters,
    reach: &Reach,
) -> Result<Response, Rejection> {
    let paging = parameters.paging()?;
    // It has no effect here, but is refused as on every list.
    parameters.reference()?;
    let reports = api.service().get(address, reach).await?.state.reports;
    let total = i64::try_from(reports.len()).unwrap_or(i64::MAX);
    let skipped = usize::try_from(paging.offset()).unwrap_or(usize::MAX);
    let taken = usize::try_from(paging.size).unwrap_or(usize::MAX);
    let items: Vec<Value> = reports.values().skip(skipped).take(taken).map(|report| json!(report)).collect();
    Ok(response::page(paging.page, total, &items))
}

async fn history(
    api: &Api,
    address: &Address<'_>,
    parameters: &Parameters,
    reach: &Reach,
) -> Result<Response, Rejection> {
    let paging = parameters.paging()?;
    let page = api.service().history(address, reach, paging.offset(), paging.size).await?;
    let items: Vec<Value> = page.items.iter().map(|transition| json!(transition)).collect();
    Ok(response::page(paging.page, page.total, &items))
}

async fn tombstones(
    api: &Api,
    descriptor: &Descriptor,
    parameters: &Parameters,
    reach: &Reach,
) -> Result<Response, Rejection> {
    let paging = parameters.paging()?;
    let page = api.service().tombstones(descriptor, reach, paging.offset(), paging.size).await?;
    let items: Vec<Value> = page.items.iter().map(|tombstone| json!(tombstone)).collect();
    Ok(response::page(paging.page, page.total, &items))
}

async fn swept(
    api: &Api,
    descriptor: &Descriptor,
    id: &str,
    body: &[u8],
    reach: &Reach,
) -> Result<Response, Rejection> {
    let copies = tombstone::swept(body::object(body)?)?;
    let tombstone = api.service().swept(descriptor, id, reach, &copies).await?;
    let left = tombstone.copies.len();
    tracing::info!(operation = "sweep", id, resource_id = tombstone.resource_id, left, "copies of a tombstone swept");
    Ok(if left == 0 { response::empty(StatusCode::NO_CONTENT) } else { response::json(StatusCode::OK, &tombstone) })
}

/// The kind and the body of a new resource. The order of the refusals is that of HyperFleet's API: where the path names the
/// kind, a body is checked before it is said to be at the wrong path.
fn creation<'a>(
    api: &'a Api,
    descriptor: Option<&'a Descriptor>,
    owner_id: Option<&str>,
    body: &[u8],
) -> Result<(&'a Descriptor, Creation), Rejection> {
    let creation = body::creation(body::object(body)?)?;
    let registry = api.service().registry();
    let is_misplaced = |descriptor: &Descriptor| descriptor.parent_kind.is_some() && owner_id.is_none();
    let descriptor = if let Some(descriptor) = descriptor {
        if is_misplaced(descriptor) {
            change::check_creation(&creation, descriptor).map_err(|error| Problem::from(&error))?;
        }
        descriptor
    } else {
        change::check_members(&creation).map_err(|error| Problem::from(&error))?;
        registry.kind(&creation.kind).ok_or_else(|| unknown_kind(&creation.kind))?
    };
    if let (Some(parent), true) = (&descriptor.parent_kind, is_misplaced(descriptor)) {
        let plural = registry.kind(parent).map_or("resources", |parent| &parent.plural);
        let detail =
            format!("{} belongs to a {parent}: create it at /{plural}/{{id}}/{}", descriptor.kind, descriptor.plural);
        return Err(Problem::validation(detail).with_status(StatusCode::UNPROCESSABLE_ENTITY).into());
    }
    Ok((descriptor, creation))
}

fn unknown_kind(kind: &str) -> Problem {
    let message = format!("Unknown entity kind: {}", excerpt(kind));
    let error = FieldError::new("kind", "enum", message.clone()).with_value(kind);
    Problem::validation(message).at(vec![error])
}

/// Refuses an id that a tenant chooses. Ids are unique over all tenants, so that a conflict would tell of another tenant's
/// resource.
fn check_id(creation: &Creation, caller: &Caller, scope: Scope<'_>) -> Result<(), Problem> {
    if creation.id.is_none() || !caller.reach.is_limited() {
        return Ok(());
    }
    let missing = format!("all_tenants on {scope}, which choosing an id needs: leave out id");
    Err(Denied { missing }.into())
}

async fn create(
    api: &Api,
    descriptor: &Descriptor,
    owner_id: Option<&str>,
    creation: Creation,
    write: &Write<'_>,
) -> Result<Response, Rejection> {
    let record = write.record(creation.spec.as_ref());
    let created = api.service().create(descriptor, owner_id, creation, &write.request).await.map_err(Rejection::from);
    let resource = recorded(record, created)?;
    api.parts.metrics.reconciliation_started(&resource, api.service().registry());
    Ok(item(StatusCode::CREATED, &resource))
}

async fn list(
    api: &Api,
    descriptor: Option<&Descriptor>,
    owner_id: Option<&str>,
    parameters: &Parameters,
    caller: &Caller,
) -> Result<Response, Rejection> {
    let (paging, reference) = (parameters.paging()?, parameters.reference()?);
    let kind = match (descriptor, parameters.first("kind")) {
        (Some(descriptor), _) => Some(descriptor),
        (None, Some(kind)) => Some(api.service().registry().kind(kind).ok_or_else(|| unknown_kind(kind))?),
        (None, None) => None,
    };
    let kind = kind.map(|descriptor| descriptor.kind.clone());
    let search = parameters.search()?;
    if parameters.switch("watch")? {
        let version = parameters.first("resource_version");
        let following = watch::Following { kind: kind.as_deref(), owner_id, search, version };
        return watch::stream(api, caller, following).await;
    }
    let fields = parameters.fields()?;
    let query = Query {
        reach: caller.reach.clone(),
        kind,
        owner_id: owner_id.map(str::to_owned),
        reference,
        search,
        order: parameters.order()?,
        offset: paging.offset(),
        limit: paging.size,
    };
    let listing = api.service().list(&query).await?;
    let items = listing.items.into_iter().map(|object| project(object, fields.as_ref()));
    let items = items.collect::<Result<Vec<_>, _>>()?;
    Ok(response::page_of_texts(paging.page, listing.total, &items))
}

async fn report(
    api: &Api,
    address: &Address<'_>,
    post: bool,
    report: NewReport,
    request: &RequestInfo,
) -> Result<Response, Rejection> {
    match api.service().report(address, report, request).await? {
        Reported::Discarded(reason) => {
            api.parts.metrics.discarded(reason);
            Ok(response::empty(StatusCode::NO_CONTENT))
        }
        // POST, the alias of 2025, returns 200 for an update and 201 for a first report; PUT always returns 201.
        Reported::Stored { report, first: false, .. } if post => Ok(response::json(StatusCode::OK, &report)),
        Reported::Stored { report, .. } => Ok(response::json(StatusCode::CREATED, &report)),
    }
}

fn item(status: StatusCode, resource: &Resource) -> Response {
    trace::written(resource);
    response::json_text(status, render::text(resource))
}

fn service(api: &Api) -> Response {
    let document = ServiceDocument {
        id: "hyperfleet",
        kind: "API",
        href: "/api/hyperfleet",
        version: api.parts.version,
        build_time: api.parts.build_time,
    };
    response::json(StatusCode::OK, &document)
}

async fn overview(
    api: &Api,
    parameters: &Parameters,
    headers: &HeaderMap,
    RequestInfo { reach, time, .. }: &RequestInfo,
) -> Result<Response, Rejection> {
    let request = page::OverviewRequest {
        kind: parameters.first("kind"),
        search: parameters.first("search"),
        page: parameters.first("page"),
        refreshes: parameters.first("refresh").is_some(),
        host: headers.get(header::HOST).and_then(|host| host.to_str().ok()),
    };
    Ok(html(page::overview(api.service(), &request, reach, *time).await?))
}

fn html(text: String) -> Response {
    let mut response = response::with_type(StatusCode::OK, "text/html; charset=utf-8", Body::from(text));
    let policy = HeaderValue::from_static(page::CONTENT_SECURITY_POLICY);
    response.headers_mut().insert(header::CONTENT_SECURITY_POLICY, policy);
    response
}

/// The generation in `If-Match`; `None` if any generation is accepted.
fn if_match(headers: &HeaderMap) -> Result<Option<Generation>, Problem> {
    let mut values = headers.get_all(header::IF_MATCH).iter();
    let (first, more) = (values.next(), values.next());
    let Some(value) = first else { return Ok(None) };
    let text = value.to_str().unwrap_or_default().trim();
    if text == "*" && more.is_none() {
        return Ok(None);
    }
    let number = text.strip_prefix('"').and_then(|text| text.strip_suffix('"')).filter(|_| more.is_none());
    let generation = number.and_then(|number| number.parse().ok());
    let message = "If-Match must be a generation in quotes, such as \"3\"";
    let fault = || Problem::validation(message).at(vec![FieldError::new("If-Match", "format", message)]);
    generation.map(Some).ok_or_else(fault)
}
