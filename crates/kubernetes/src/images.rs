//! The images of Pods, read page by page: memory is bounded by a page, and of a Pod only the names of its images are parsed.

use std::collections::BTreeSet;

use futures_util::io::{AsyncRead, AsyncReadExt as _};
use kube::api::ListParams;
use kube::core::Request;
use serde::Deserialize;

use crate::cluster::Cluster;
use crate::error::{ErrorKind, KubernetesError};
use crate::verb::Verb;

/// The images that one Pod needs: of its containers of all kinds, and of its image volumes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct PodImages {
    /// The Pod's namespace.
    pub namespace: String,
    /// The images, as the Pod has them.
    pub images: BTreeSet<String>,
}

/// Number of Pods of a page: 160 to 320 KB with usual ones. A Pod has at most 1.5 MiB, the limit of etcd's requests, and an admin who
/// may create Pods can make such ones: a page has at most 30 MiB, of which [`MAX_BYTES`] are read.
const PAGE: u32 = 20;
/// Maximum bytes of a page. With the copy that a growing buffer makes, it takes three times as much memory; the chart gives the
/// controller 128 MiB.
const MAX_BYTES: u64 = 16 * 1024 * 1024;
/// The Pods that run, or are to run.
const NOT_ENDED: &str = "status.phase!=Succeeded,status.phase!=Failed";
/// The name of what is read, in messages.
const OBJECT: &str = "pods of all namespaces";

#[derive(Deserialize)]
struct Page {
    #[serde(default)]
    metadata: PageMetadata,
    #[serde(default)]
    items: Vec<Pod>,
}

#[derive(Default, Deserialize)]
struct PageMetadata {
    #[serde(rename = "continue")]
    next: Option<String>,
}

#[derive(Deserialize)]
struct Pod {
    #[serde(default)]
    metadata: Metadata,
    #[serde(default)]
    spec: Spec,
}

#[derive(Default, Deserialize)]
struct Metadata {
    namespace: Option<String>,
}

#[derive(Default, Deserialize)]
#[serde(rename_all = "camelCase")]
struct Spec {
    containers: Option<Vec<Container>>,
    init_containers: Option<Vec<Container>>,
    ephemeral_containers: Option<Vec<Container>>,
    volumes: Option<Vec<Volume>>,
}

#[derive(Deserialize)]
struct Container {
    image: Option<String>,
}

#[derive(Deserialize)]
struct Volume {
    image: Option<ImageVolume>,
}

#[derive(Deserialize)]
struct ImageVolume {
    reference: Option<String>,
}

impl Cluster {
    /// Passes the images of every Pod of all namespaces that has not ended to `take`, one Pod after the other. Fails if a page is
    /// larger than 16 MiB.
    pub async fn images_of_pods(&self, mut take: impl FnMut(PodImages)) -> Result<(), KubernetesError> {
        let mut parameters = ListParams::default().limit(PAGE).fields(NOT_ENDED);
        loop {
            let request = Request::new("/api/v1/pods").list(&parameters);
            let request =
                request.map_err(|_error| KubernetesError::new(Verb::List, OBJECT.to_owned(), ErrorKind::Invalid))?;
            let client = self.client();
            let page = async { page_of(client.request_stream(request).await?).await };
            let page: Page = self.call(Verb::List, OBJECT, page).await?.ok_or_else(too_large)?;
            page.items.into_iter().map(PodImages::from).for_each(&mut take);
            match page.metadata.next.filter(|next| !next.is_empty()) {
                Some(next) => parameters = parameters.continue_token(&next),
                None => return Ok(()),
            }
        }
    }
}

/// Reads a page; `None` if it is larger than [`MAX_BYTES`].
async fn page_of(body: impl AsyncRead) -> kube::Result<Option<Page>> {
    let mut bytes = Vec::new();
    let mut limited = std::pin::pin!(body.take(MAX_BYTES.saturating_add(1)));
    limited.read_to_end(&mut bytes).await.map_err(kube::Error::ReadEvents)?;
    if u64::try_from(bytes.len()).is_ok_and(|length| length <= MAX_BYTES) {
        serde_json::from_slice(&bytes).map(Some).map_err(kube::Error::SerdeError)
    } else {
        Ok(None)
    }
}

fn too_large() -> KubernetesError {
    let error = KubernetesError::new(Verb::List, OBJECT.to_owned(), ErrorKind::TooLarge);
    let limit = MAX_BYTES / 1024 / 1024;
    error.with_detail(format!("{PAGE} pods in a row have more than {limit} MiB"))
}

impl From<Pod> for PodImages {
    fn from(pod: Pod) -> Self {
        let Spec { containers, init_containers, ephemeral_containers, volumes } = pod.spec;
        let containers = [containers, init_containers, ephemeral_containers].into_iter().flatten().flatten();
        let volumes = volumes.into_iter().flatten().filter_map(|volume| volume.image?.reference);
        Self {
            namespace: pod.metadata.namespace.unwrap_or_default(),
            images: containers.filter_map(|container| container.image).chain(volumes).collect(),
        }
    }
}
