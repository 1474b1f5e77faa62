//! The images of Pods, read page by page: memory is bounded by a page, and of a Pod only the names of its images are parsed.

use std::collections::BTreeSet;

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

/// Number of Pods of a page; with usual Pods a page has 2 to 4 MB.
const PAGE: u32 = 250;
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
    /// Passes the images of every Pod of all namespaces that has not ended to `take`, one Pod after the other.
    pub async fn images_of_pods(&self, mut take: impl FnMut(PodImages)) -> Result<(), KubernetesError> {
        let mut parameters = ListParams::default().limit(PAGE).fields(NOT_ENDED);
        loop {
            let request = Request::new("/api/v1/pods").list(&parameters);
            let request =
                request.map_err(|_error| KubernetesError::new(Verb::List, OBJECT.to_owned(), ErrorKind::Invalid))?;
            let client = self.client();
            let page: Page = self.call(Verb::List, OBJECT, client.request(request)).await?;
            page.items.into_iter().map(PodImages::from).for_each(&mut take);
            match page.metadata.next.filter(|next| !next.is_empty()) {
                Some(next) => parameters = parameters.continue_token(&next),
                None => return Ok(()),
            }
        }
    }
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
