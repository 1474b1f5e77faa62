//! The gRPC wire by its frames; the rest of it is what Google's clients test.

use http_body_util::BodyExt as _;
use prost::Message as _;
use tokio_util::sync::CancellationToken;

use super::*;
use crate::secret_manager::wire::errors::{ErrorInfo, RpcStatus};
use crate::secret_manager::wire::requests::{Add, Create, Named};
use crate::secret_manager::wire::resources::{Automatic, Replication, Secret, SecretPayload, SecretVersion};
use crate::secret_manager::{Code, Settings};

/// The answer of a call: its message, or its status with the encoded details.
type Outcome = Result<Vec<u8>, (String, RpcStatus)>;

fn engine(settings: &Settings) -> Arc<Engine> {
    Arc::new(Engine::open(settings, || jiff::Timestamp::UNIX_EPOCH).unwrap())
}

async fn call(engine: &Arc<Engine>, connection: &Connection, method: &str, message: Vec<u8>) -> Outcome {
    let mut frame = vec![0];
    frame.extend(u32::try_from(message.len()).unwrap().to_be_bytes());
    frame.extend(message);
    let request = http::Request::post(format!("{SERVICE}{method}"))
        .header("content-type", "application/grpc")
        .body(Body::from(frame))
        .unwrap();
    assert!(is_grpc(&request));
    let response = serve(Arc::clone(engine), connection.clone(), request).await;
    let mut head = response.headers().clone();
    let body = response.into_body().collect().await.unwrap();
    head.extend(body.trailers().cloned().unwrap_or_default());
    let text = |name: &str| head.get(name).map(|value| value.to_str().unwrap().to_owned()).unwrap_or_default();
    if text("grpc-status") == "0" {
        return Ok(body.to_bytes().slice(5..).to_vec());
    }
    let details = base64::Engine::decode(&base64::prelude::BASE64_STANDARD_NO_PAD, text("grpc-status-details-bin"));
    Err((text("grpc-status"), RpcStatus::decode(details.unwrap_or_default().as_slice()).unwrap()))
}

#[tokio::test]
async fn messages_travel_in_frames() {
    let engine = engine(&Settings::default());
    let connection = Connection::of(CancellationToken::new());
    let replication = Replication { automatic: Some(Automatic::default()), user_managed: None };
    let secret = Secret { replication: Some(replication), ..Secret::default() };
    let create = Create { parent: "projects/7".to_owned(), secret_id: "s".to_owned(), secret: Some(secret) };
    let created = call(&engine, &connection, "CreateSecret", create.encode_to_vec()).await.unwrap();
    assert_eq!(Secret::decode(created.as_slice()).unwrap().name, "projects/7/secrets/s");
    let payload = SecretPayload { data: b"hello".to_vec(), data_crc32c: None };
    let add = Add { parent: "projects/7/secrets/s".to_owned(), payload: Some(payload) };
    let added = call(&engine, &connection, "AddSecretVersion", add.encode_to_vec()).await.unwrap();
    let added = SecretVersion::decode(added.as_slice()).unwrap();
    assert_eq!((added.name.as_str(), added.state), ("projects/7/secrets/s/versions/1", 1));
    assert!(engine.calls().iter().all(|call| call.wire == Wire::Grpc && call.outcome == Some(Code::Ok)));
}

#[tokio::test]
async fn refusals_carry_their_details() {
    let denied = ["secretmanager.secrets.get".to_owned()].into();
    let engine = engine(&Settings { denied_permissions: denied, ..Settings::default() });
    let connection = Connection::of(CancellationToken::new());
    let named = Named { name: "projects/7/secrets/s".to_owned() };
    let (status, details) = call(&engine, &connection, "GetSecret", named.encode_to_vec()).await.unwrap_err();
    assert_eq!((status.as_str(), details.code), ("7", 7));
    assert!(details.message.contains("denied for resource 'projects/7/secrets/s'"));
    let info = ErrorInfo::decode(details.details[0].value.as_slice()).unwrap();
    assert_eq!(info.reason, "IAM_PERMISSION_DENIED");
    let (status, _) = call(&engine, &connection, "Nothing", Vec::new()).await.unwrap_err();
    assert_eq!(status, "12");
}

#[tokio::test]
async fn a_fault_cuts_the_connection() {
    let engine = engine(&Settings { faults: vec!["getSecret:cut".parse().unwrap()], ..Settings::default() });
    let cut = CancellationToken::new();
    let outcome = call(&engine, &Connection::of(cut.clone()), "GetSecret", Vec::new()).await;
    assert!(outcome.is_err() && cut.is_cancelled());
}
