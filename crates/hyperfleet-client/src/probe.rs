//! A probe of the API without credentials: its clock, its certificate, and the cause for which there is no connection.

use std::error::Error as _;
use std::io;

use http::Method;
use http::header::DATE;
use jiff::Timestamp;
use jiff::fmt::rfc2822;
use reqwest::tls::TlsInfo;
use x509_parser::parse_x509_certificate;

use crate::client::Client;
use crate::error::Error;
use crate::request::Request;

/// The server at the API's address, as any answer shows it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Probe {
    /// The server's clock, in whole seconds, if the answer has it.
    pub date: Option<Timestamp>,
    /// This machine's clock before the request.
    pub sent: Timestamp,
    /// This machine's clock after the answer.
    pub received: Timestamp,
    /// The time at which the server's certificate expires; `None` without TLS.
    pub certificate_end: Option<Timestamp>,
}

/// The cause of a failed connection.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ConnectionFault {
    /// The host's name cannot be resolved.
    UnknownHost,
    /// No process listens at the address.
    Refused,
    /// The address begins with `https`, and the server does not speak TLS.
    NotTls,
    /// The address begins with `http`, and the server does not speak plain HTTP.
    NotPlain,
    /// The server's certificate is not accepted, for this reason.
    Certificate(String),
    /// Another cause.
    Other(String),
}

// === impl Client ===

impl Client {
    /// The API's address, which holds no credential.
    pub fn address(&self) -> &str {
        self.settings().base_url.as_str()
    }

    /// Requests a header from the server, without the token and once. Any answer is a success, also one of another server.
    pub async fn probe(&self) -> Result<Probe, Error> {
        let request = Request::new(&self.settings().base_url, "probe", Method::HEAD, &["openapi"])?;
        let sent = Timestamp::now();
        let response = self.transport().any_answer(&request).await?;
        let certificate = response.extensions().get::<TlsInfo>().and_then(TlsInfo::peer_certificate);
        Ok(Probe {
            date: response.headers().get(DATE).and_then(|value| date(value.to_str().ok()?)),
            sent,
            received: Timestamp::now(),
            certificate_end: certificate.and_then(not_after),
        })
    }
}

fn date(value: &str) -> Option<Timestamp> {
    rfc2822::DateTimeParser::new().parse_timestamp(value).ok()
}

fn not_after(certificate: &[u8]) -> Option<Timestamp> {
    let (_rest, certificate) = parse_x509_certificate(certificate).ok()?;
    Timestamp::from_second(certificate.validity().not_after.timestamp()).ok()
}

// === impl Error ===

impl Error {
    /// The cause of a failed connection; `None` if there was one, or if none was attempted.
    pub fn connection_fault(&self) -> Option<ConnectionFault> {
        match self {
            Self::Unreachable { source, .. } => Some(ConnectionFault::of(source)),
            Self::Interrupted { source: Some(last), .. } => last.connection_fault(),
            _ => None,
        }
    }
}

// === impl ConnectionFault ===

impl ConnectionFault {
    /// Neither hyper nor rustls is a dependency of this crate, so that their errors are distinguished by their texts.
    fn of(error: &reqwest::Error) -> Self {
        let (mut cause, mut last): (Option<&dyn std::error::Error>, _) = (error.source(), error.to_string());
        while let Some(error) = cause {
            last = error.to_string();
            if error.downcast_ref::<io::Error>().is_some_and(|error| error.kind() == io::ErrorKind::ConnectionRefused) {
                return Self::Refused;
            }
            if last.starts_with("dns error") {
                return Self::UnknownHost;
            }
            if let Some((_, reason)) = last.split_once("invalid peer certificate: ") {
                return Self::Certificate(reason.to_owned());
            }
            if last.contains("InvalidContentType") {
                return Self::NotTls;
            }
            if last.starts_with("invalid HTTP") {
                return Self::NotPlain;
            }
            cause = error.source();
        }
        Self::Other(last)
    }
}
