//! A connection to the server under load. It costs little, so that the measurement is of the server.

use bytes::Bytes;
use http::{Method, Request, Response, StatusCode, header};
use http_body_util::{BodyExt as _, Full};
use hyper::body::Incoming;
use hyper::client::conn::http1::{SendRequest, handshake};
use hyper_util::rt::TokioIo;
use serde_json::json;
use tokio::net::TcpStream;

/// The path of clusters.
pub(crate) const CLUSTERS: &str = "/api/hyperfleet/v1/clusters";

/// A page of a list, of which only the ids are read.
#[derive(serde::Deserialize)]
struct PageOfIds {
    items: Vec<Id>,
}

#[derive(serde::Deserialize)]
struct Id {
    id: String,
}

/// One connection, for one request after the other.
pub(crate) struct Client {
    address: String,
    sender: SendRequest<Full<Bytes>>,
}

impl Client {
    /// Connects to an address of host and port.
    pub(crate) async fn connect(address: &str) -> Self {
        let stream = TcpStream::connect(address).await.unwrap();
        stream.set_nodelay(true).unwrap();
        let (sender, connection) = handshake(TokioIo::new(stream)).await.unwrap();
        tokio::spawn(connection);
        Self { address: address.to_owned(), sender }
    }

    /// Returns the status and the body of a response.
    pub(crate) async fn send(&mut self, method: Method, path: &str, body: String) -> (StatusCode, Bytes) {
        let response = self.open(method, path, body).await;
        (response.status(), response.into_body().collect().await.unwrap().to_bytes())
    }

    /// Returns a response, whose body is still to be read.
    pub(crate) async fn open(&mut self, method: Method, path: &str, body: String) -> Response<Incoming> {
        let request = Request::builder().method(method).uri(path).header(header::HOST, &self.address);
        let request = request.header(header::CONTENT_TYPE, "application/json").body(Full::from(body)).unwrap();
        self.sender.ready().await.unwrap();
        self.sender.send_request(request).await.unwrap()
    }

    pub(crate) async fn create(&mut self, id: &str) {
        let cluster = json!({
            "kind": "Cluster", "id": id, "name": id,
            "spec": {
                "platform": { "type": "gcp", "gcp": { "projectID": "my-project-1", "region": "us-central1" } },
                "release": { "image": "quay.io/openshift-release-dev/ocp-release:4.20.1-x86_64", "version": "4.20.1" },
                "networking": { "clusterNetwork": [{ "cidr": "10.128.0.0/14", "hostPrefix": 23 }] },
            },
            "labels": { "shard": "0", "group": "0", "environment": "production" },
        });
        let (status, _) = self.send(Method::POST, CLUSTERS, cluster.to_string()).await;
        assert_eq!(status, 201);
    }

    pub(crate) async fn report(&mut self, id: &str, adapter: &str, turn: u64) {
        let conditions = ["Available", "Applied", "Health"]
            .map(|kind| json!({ "type": kind, "status": "True", "reason": "AllIsWell", "message": "all is well" }));
        let body = json!({
            "adapter": adapter, "observed_generation": 1, "conditions": conditions, "data": { "turn": turn },
        });
        let path = format!("{CLUSTERS}/{id}/statuses");
        let (status, _) = self.send(Method::PUT, &path, body.to_string()).await;
        // 204 if a later one for the same cluster has overtaken it.
        assert!(status.is_success(), "{status}");
    }

    /// Reads a path. Parsing the response is not part of the measurement.
    pub(crate) async fn get(&mut self, path: &str) {
        let (status, body) = self.send(Method::GET, &format!("{CLUSTERS}{path}"), String::new()).await;
        assert_eq!(status, 200);
        assert!(!body.is_empty());
    }

    /// Reads the whole fleet in the way of the Sentinel, on one connection: in pages by id, without specs. Returns its size.
    pub(crate) async fn walk(&mut self) -> usize {
        let fields = "id,kind,name,href,generation,labels,status,created_time,updated_time,deleted_time,\
                      owner_references,references";
        let pages = format!("{CLUSTERS}?size=100&order=id%20asc&fields={fields}");
        let (mut url, mut count) = (pages.clone(), 0);
        loop {
            let (_, body) = self.send(Method::GET, &url, String::new()).await;
            let PageOfIds { items } = serde_json::from_slice(&body).unwrap();
            count += items.len();
            let Some(last) = items.last().filter(|_| items.len() == 100) else { return count };
            url = format!("{pages}&search=id%20%3E%20%27{}%27", last.id);
        }
    }
}
