//! The gRPC wire: `/google.cloud.secretmanager.v1.SecretManagerService/…`, one codec for all methods.

use std::future::Future;
use std::pin::Pin;
use std::sync::Arc;

use axum::body::Body;
use prost::bytes::BufMut as _;
use tonic::codec::{Codec, DecodeBuf, Decoder, EncodeBuf, Encoder};
use tonic::server::{Grpc, UnaryService};

use super::engine::{Asked, Engine, Silence};
use super::method::Method;
use super::settings::Wire;
use super::wire::{Request, Response};
use crate::connections::Connection;

/// The common prefix of all method paths.
const SERVICE: &str = "/google.cloud.secretmanager.v1.SecretManagerService/";

#[cfg(test)]
mod tests;

/// One method of the service, for one call.
struct Unary {
    engine: Arc<Engine>,
    connection: Connection,
    method: Method,
}

/// Reads the message that a method takes, writes the one that was answered.
struct Messages(Method);

/// True if a request belongs to this wire.
pub(crate) fn is_grpc(request: &http::Request<Body>) -> bool {
    let kind = request.headers().get(http::header::CONTENT_TYPE);
    kind.is_some_and(|kind| kind.as_bytes().starts_with(b"application/grpc"))
}

/// Answers one call.
pub(crate) async fn serve(
    engine: Arc<Engine>,
    connection: Connection,
    request: http::Request<Body>,
) -> http::Response<Body> {
    let path = request.uri().path();
    let Some(method) = path.strip_prefix(SERVICE).and_then(Method::by_rpc) else {
        let status = tonic::Status::unimplemented(format!("unknown method {path}"));
        return status.into_http();
    };
    let unary = Unary { engine, connection, method };
    Grpc::new(Messages(method)).unary(unary, request).await.map(Body::new)
}

impl UnaryService<Request> for Unary {
    type Response = Response;
    type Future = Pin<Box<dyn Future<Output = Result<tonic::Response<Response>, tonic::Status>> + Send>>;

    fn call(&mut self, request: tonic::Request<Request>) -> Self::Future {
        let (engine, connection, method) = (Arc::clone(&self.engine), self.connection.clone(), self.method);
        Box::pin(async move {
            let authorization = request.metadata().get("authorization").and_then(|value| value.to_str().ok());
            let authorization = authorization.map(str::to_owned);
            let request = request.into_inner();
            let resource = request.resource().to_owned();
            let asked = Asked { wire: Wire::Grpc, method, resource, authorization, request: Ok(request) };
            match engine.call(asked).await {
                Ok(result) => return result.map(tonic::Response::new).map_err(super::status::Status::grpc),
                Err(Silence::Hang) => engine.stopping.cancelled().await,
                Err(Silence::Cut) => {}
            }
            connection.cut();
            Err(tonic::Status::unavailable("the connection was cut"))
        })
    }
}

impl Codec for Messages {
    type Encode = Response;
    type Decode = Request;
    type Encoder = Self;
    type Decoder = Self;

    fn encoder(&mut self) -> Self {
        Self(self.0)
    }

    fn decoder(&mut self) -> Self {
        Self(self.0)
    }
}

impl Encoder for Messages {
    type Item = Response;
    type Error = tonic::Status;

    fn encode(&mut self, response: Response, buffer: &mut EncodeBuf<'_>) -> Result<(), tonic::Status> {
        buffer.put_slice(&response.encode());
        Ok(())
    }
}

impl Decoder for Messages {
    type Item = Request;
    type Error = tonic::Status;

    fn decode(&mut self, buffer: &mut DecodeBuf<'_>) -> Result<Option<Request>, tonic::Status> {
        let request = Request::decode(self.0, buffer);
        request.map(Some).map_err(|_| tonic::Status::invalid_argument("the request message cannot be read"))
    }
}
