//! The source of a watch: the API, and in tests a script.

use std::time::Duration;

use daemon::retry::Budget;
use futures_util::stream::{self, StreamExt as _, TryStreamExt as _};
use http::header::{ACCEPT, CONTENT_TYPE};
use http::{HeaderValue, Method};
use tokio_util::sync::CancellationToken;

use super::lines::Chunks;
use super::view::{Listing, View};
use crate::calls::Calls;
use crate::client::Client;
use crate::error::Error;
use crate::list_query::ListQuery;
use crate::reports::CONCURRENCY;
use crate::request::Request;
use crate::transport::unreachable;
use crate::wire::Resource;

/// Maximum time to read a whole list.
const LIST_TIME: Duration = Duration::from_mins(5);

/// The source of a watch.
pub(crate) trait Source: Send {
    /// Begins the change stream after a version, or with the present state.
    fn open(&self, version: Option<&str>) -> impl Future<Output = Result<Opened, Error>> + Send;

    /// Reads the present state.
    ///
    /// `known` is the list that was read before.
    fn list(&self, known: Option<&View>) -> impl Future<Output = Result<Listing, Error>> + Send;

    /// The request, for errors.
    fn call(&self) -> String;
}

/// An answer that may be a change stream.
pub(crate) struct Opened {
    pub(crate) chunks: Chunks,
    /// True if its content type is one JSON document, which a stream is not.
    pub(crate) is_document: bool,
}

/// The HyperFleet API.
pub(crate) struct Api {
    client: Client,
    plural: String,
    search: Option<String>,
    reads_reports: bool,
    stop: CancellationToken,
}

// === impl Api ===

impl Api {
    pub(crate) fn new(
        client: Client,
        plural: String,
        search: Option<String>,
        reads_reports: bool,
        stop: CancellationToken,
    ) -> Self {
        Self { client, plural, search, reads_reports, stop }
    }

    /// Reads the reports of the resources that may have others than before. One resource whose reports cannot be read does not
    /// hold up the rest.
    async fn complete(
        &self,
        calls: &Calls<'_>,
        items: Vec<Resource>,
        known: Option<&View>,
    ) -> Result<Vec<Resource>, Error> {
        let completed = items.into_iter().map(async |resource| {
            if !known.is_none_or(|known| known.may_have_new_reports(&resource)) {
                return Ok(resource);
            }
            match calls.with_adapters(&self.plural, resource.clone()).await {
                Err(error) if error.status().is_some() => {
                    tracing::warn!(resource_id = resource.id, %error, "the reports of a resource cannot be read");
                    Ok(resource)
                }
                other => other,
            }
        });
        stream::iter(completed).buffered(CONCURRENCY).try_collect().await
    }
}

impl Source for Api {
    async fn open(&self, version: Option<&str>) -> Result<Opened, Error> {
        let request = Request::new(&self.client.settings().base_url, "watch", Method::GET, &[&self.plural])?
            .header(ACCEPT, HeaderValue::from_static("application/x-ndjson, application/json;q=0.5"))
            .query("watch", Some("true"))
            .query("search", self.search.as_deref())
            .query("resource_version", version);
        let response = self.client.transport().open(&request, self.client.settings().watch.silence).await?;
        let content_type = response.headers().get(CONTENT_TYPE).and_then(|value| value.to_str().ok());
        let is_document = content_type.is_some_and(|value| value.split(';').next() == Some("application/json"));
        let call = self.call();
        let chunks = response
            .bytes_stream()
            .map(move |chunk| chunk.map(|bytes| bytes.to_vec()).map_err(|error| unreachable(&call, error)))
            .boxed();
        Ok(Opened { chunks, is_document })
    }

    async fn list(&self, known: Option<&View>) -> Result<Listing, Error> {
        let budget = Budget::new(LIST_TIME, self.stop.clone());
        let calls = self.client.within(&budget);
        let mut pages = calls.list_all(&self.plural, ListQuery { search: self.search.clone(), ..ListQuery::default() });
        let mut items = Vec::new();
        while let Some(mut page) = pages.next().await? {
            items.append(&mut page);
        }
        if self.reads_reports {
            items = self.complete(&calls, items, known).await?;
        }
        Ok(Listing { items, is_exact: pages.is_one_page() })
    }

    fn call(&self) -> String {
        format!("watch {}", self.plural.escape_debug())
    }
}
