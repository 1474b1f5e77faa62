//! Calls of the API, each within the caller's budget and trace.

use std::collections::BTreeMap;

use daemon::retry::Budget;
use fleet_model::StoredCopy;
use http::header::IF_MATCH;
use http::{HeaderValue, Method, StatusCode};
use serde::Serialize;
use serde::de::DeserializeOwned;
use serde_json::{Map, Value, json};

use crate::MAX_PAGE_SIZE;
use crate::client::Client;
use crate::error::Error;
use crate::list_query::ListQuery;
use crate::report::{NewReport, Reported};
use crate::request::Request;
use crate::secret::WithPullSecret;
use crate::settings::ReportMethod;
use crate::transport::Answer;
use crate::wire::{NewResource, Page, Reference, Resource};
use crate::{Causes, Generation, TraceContext, Transition};

/// Calls within one budget, and of one trace. `plural` is a kind as it stands in the path, such as `clusters`.
#[derive(Clone, Debug)]
pub struct Calls<'a> {
    client: &'a Client,
    budget: &'a Budget,
    trace: Option<&'a TraceContext>,
}

/// Changes of a resource; `None` keeps the value. Spec and labels are replaced as a whole.
#[derive(Clone, Default, PartialEq, Serialize)]
pub struct Patch {
    /// The whole new spec; `Debug` does not show it, as it may hold a pull secret.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub spec: Option<Map<String, Value>>,
    /// All labels.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub labels: Option<BTreeMap<String, String>>,
    /// All references.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub references: Option<BTreeMap<String, Vec<Reference>>>,
}

// === impl Client ===

impl Client {
    /// Returns the calls of this client, carried out within a budget.
    pub fn within<'a>(&'a self, budget: &'a Budget) -> Calls<'a> {
        Calls { client: self, budget, trace: None }
    }
}

// === impl Calls ===

impl<'a> Calls<'a> {
    /// Returns the same calls as part of a trace.
    #[must_use]
    pub fn traced(self, trace: Option<&'a TraceContext>) -> Self {
        Self { trace, ..self }
    }

    /// Reads a resource, also one that is being deleted; `None` if it does not exist.
    pub async fn get(&self, plural: &str, id: &str) -> Result<Option<Resource>, Error> {
        let request = self.request("get", Method::GET, &[plural, id])?;
        if_present(self.ask(request).await)
    }

    /// Reads a resource with its inline pull secret, for callers that are permitted to.
    pub async fn get_with_pull_secret(&self, plural: &str, id: &str) -> Result<Option<WithPullSecret>, Error> {
        let request = self.request("get", Method::GET, &[plural, id])?.query("include", Some("pullSecret"));
        Ok(if_present(self.ask(request).await)?.map(WithPullSecret::separate))
    }

    /// Lists one page of resources, those that are being deleted included.
    pub async fn list(&self, plural: &str, query: &ListQuery) -> Result<Page<Resource>, Error> {
        self.page(&[plural], query).await
    }

    /// Lists the transitions of a resource's conditions, newest first.
    pub async fn history(&self, plural: &str, id: &str) -> Result<Vec<Transition>, Error> {
        let query = ListQuery { size: Some(MAX_PAGE_SIZE), ..ListQuery::default() };
        Ok(self.page(&[plural, id, "statuses", "history"], &query).await?.items)
    }

    /// Returns the resources of a kind for which an adapter's work is not done, by cause; `None` if the API does not group them:
    /// HyperFleet's own server never does, and no server does for an adapter that the kind does not require.
    pub async fn causes(&self, plural: &str, adapter: &str, search: Option<&str>) -> Result<Option<Causes>, Error> {
        let request = self.request("group", Method::GET, &["causes", plural])?;
        match self.ask(request.query("adapter", Some(adapter)).query("search", search)).await {
            Ok(answer) => answer.json().map(Some),
            // A search that is not valid is refused by the list as well.
            Err(error) if matches!(error.status(), Some(400 | 404 | 405)) => Ok(None),
            Err(error) => Err(error),
        }
    }

    /// Writes an adapter's report, at a time later than that of every earlier report.
    pub async fn report(&self, plural: &str, id: &str, report: &NewReport) -> Result<Reported, Error> {
        let observed = report.observed_time.unwrap_or_else(|| self.client.observe());
        let send = async |posts: bool| {
            let (method, body) = if posts {
                (Method::POST, report.camel_case(observed))
            } else {
                (Method::PUT, report.snake_case(observed))
            };
            let mut request = self.request("report on", method, &[plural, id, "statuses"])?.json(&body)?;
            // With either method a report replaces the one before, so that it may be repeated.
            request.repeatable = true;
            self.ask(request).await
        };
        let posts = self.client.posts();
        let mut result = send(posts).await;
        let refused = result.as_ref().is_err_and(|error| error.status() == Some(405));
        if refused && self.client.settings().report_method == ReportMethod::Auto {
            result = send(!posts).await;
            if !result.as_ref().is_err_and(|error| error.status() == Some(405)) {
                self.client.remember_posts(!posts);
            }
        }
        match result {
            Ok(answer) if answer.status == StatusCode::NO_CONTENT => Ok(Reported::Discarded),
            // It is stored even if the body cannot be read.
            Ok(answer) => Ok(Reported::Stored(answer.json().ok())),
            Err(error) if error.is_absent() => Ok(Reported::Gone),
            Err(error) => Err(error),
        }
    }

    /// Creates a resource. Not retried: after an ambiguous failure, read it first.
    pub async fn create(&self, plural: &str, new: &NewResource) -> Result<Resource, Error> {
        let request = self.request("create in", Method::POST, &[plural])?.json(new)?;
        self.ask(request).await?.json()
    }

    /// Creates a resource of a kind that has a parent, such as a node pool of a cluster.
    pub async fn create_child(
        &self,
        parent_plural: &str,
        parent: &str,
        plural: &str,
        new: &NewResource,
    ) -> Result<Resource, Error> {
        let request = self.request("create in", Method::POST, &[parent_plural, parent, plural])?.json(new)?;
        self.ask(request).await?.json()
    }

    /// Changes a resource; with a generation, only if it has that one (412 otherwise). Not retried.
    pub async fn patch(
        &self,
        plural: &str,
        id: &str,
        patch: &Patch,
        generation: Option<Generation>,
    ) -> Result<Resource, Error> {
        let mut request = self.request("patch", Method::PATCH, &[plural, id])?.json(patch)?;
        if let Some(value) = generation.and_then(|generation| HeaderValue::try_from(format!("\"{generation}\"")).ok()) {
            request = request.header(IF_MATCH, value);
        }
        self.ask(request).await?.json()
    }

    /// Requests the deletion of a resource, which its adapters finish; `None` if it does not exist. Not retried.
    pub async fn delete(&self, plural: &str, id: &str) -> Result<Option<Resource>, Error> {
        if_present(self.ask(self.request("delete", Method::DELETE, &[plural, id])?).await)
    }

    /// Reports that copies in a tombstone are deleted; a tombstone without copies is removed.
    pub async fn swept(&self, plural: &str, id: &str, copies: &[StoredCopy]) -> Result<(), Error> {
        let path = ["tombstones", plural, id, "swept"];
        let mut request = self.request("report as swept", Method::POST, &path)?.json(&json!({ "copies": copies }))?;
        request.repeatable = true;
        match self.ask(request).await {
            // Another sweep was first.
            Err(error) if error.is_absent() => Ok(()),
            result => result.map(drop),
        }
    }

    pub(crate) async fn page<T: DeserializeOwned>(&self, path: &[&str], query: &ListQuery) -> Result<Page<T>, Error> {
        let number = |number: Option<u32>| number.map(|number| number.to_string());
        let fields = (!query.fields.is_empty()).then(|| query.fields.join(","));
        let request = self
            .request("list", Method::GET, path)?
            .query("search", query.search.as_deref())
            .query("order", query.order.as_deref())
            .query("page", number(query.page).as_deref())
            .query("size", number(query.size).as_deref())
            .query("fields", fields.as_deref());
        let answer = self.ask(request).await?;
        let whole = answer.json();
        let Err(unreadable) = whole else { return whole };
        let Ok(values) = answer.json::<Page<Value>>() else { return Err(unreadable) };
        let page = Page::of_readable(values);
        tracing::warn!(
            error = %unreadable,
            items = page.unreadable,
            "items of a list are not of the contract's form; they are left out"
        );
        Ok(page)
    }

    fn request(&self, verb: &str, method: Method, path: &[&str]) -> Result<Request, Error> {
        Request::new(&self.client.settings().base_url, verb, method, path)
    }

    async fn ask(&self, request: Request) -> Result<Answer, Error> {
        self.client.transport().ask(request.traced(self.trace), self.budget).await
    }
}

fn if_present<T: DeserializeOwned>(result: Result<Answer, Error>) -> Result<Option<T>, Error> {
    match result {
        Ok(answer) => answer.json().map(Some),
        Err(error) if error.is_absent() => Ok(None),
        Err(error) => Err(error),
    }
}

// === impl Patch ===

impl std::fmt::Debug for Patch {
    fn fmt(&self, formatter: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        formatter
            .debug_struct("Patch")
            .field("labels", &self.labels)
            .field("references", &self.references)
            .finish_non_exhaustive()
    }
}
