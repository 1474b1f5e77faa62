//! One request, on a connection of its own, by a blocking client: this program makes one and ends.

use std::io::{self, Read, Write};
use std::net::TcpStream;
use std::path::Path;
use std::sync::Arc;
use std::sync::mpsc;
use std::thread;

use base64::Engine as _;
use base64::prelude::BASE64_STANDARD;
use fleet_model::names::client::CREDENTIAL_PROVIDER;
use rustls::pki_types::pem::PemObject as _;
use rustls::pki_types::{CertificateDer, ServerName};
use rustls::{ClientConfig, ClientConnection, RootCertStore, StreamOwned};
use secrecy::ExposeSecret as _;
use zeroize::Zeroizing;

use crate::answer::{self, Answer, LONGEST_ANSWER};
use crate::decide::Exchange;
use crate::endpoint::Endpoint;
use crate::proxy::Proxy;
use crate::refusal::Refusal;
use crate::settings::Settings;

/// Bytes that are read at once.
const PIECE: usize = 8 * 1024;

/// Performs an exchange within the time limit, which covers name resolution too.
pub(crate) fn perform(exchange: &Arc<Exchange>, settings: &Settings) -> Result<Answer, Refusal> {
    // Before the clock starts: reading a node's certificates is not the registry's time.
    let tls = if exchange.endpoint.is_encrypted { Some(tls(settings.ca_file.as_deref())?) } else { None };
    let (sender, receiver) = mpsc::channel();
    let (performed, proxy, limit) = (Arc::clone(exchange), settings.proxy.clone(), settings.timeout);
    // The thread ends with the process, whatever it waits for.
    thread::spawn(move || {
        let _received_or_too_late = sender.send(request(&performed, proxy.as_ref(), tls));
    });
    let slow = |_elapsed| Refusal::Slow { endpoint: exchange.endpoint.to_string(), seconds: limit.as_secs() };
    receiver.recv_timeout(limit).map_err(slow)?
}

fn request(exchange: &Exchange, proxy: Option<&Proxy>, tls: Option<Arc<ClientConfig>>) -> Result<Answer, Refusal> {
    let endpoint = &exchange.endpoint;
    let unreachable =
        |error: io::Error| Refusal::Unreachable { endpoint: endpoint.to_string(), reason: error.to_string() };
    let mut stream = connect(endpoint, proxy, tls).map_err(unreachable)?;
    stream.write_all(&head(exchange)).and_then(|()| stream.flush()).map_err(unreachable)?;
    let mut arrived = Zeroizing::new(Vec::with_capacity(LONGEST_ANSWER + PIECE));
    let mut piece = Zeroizing::new([0; PIECE]);
    loop {
        let count = match stream.read(piece.as_mut_slice()) {
            Err(error) if error.kind() == io::ErrorKind::Interrupted => continue,
            result => result.map_err(unreachable)?,
        };
        arrived.extend_from_slice(piece.get(..count).unwrap_or_default());
        let answer = answer::read(&arrived, count == 0);
        let answer = answer.map_err(|reason| Refusal::Answer { endpoint: endpoint.to_string(), reason })?;
        if let Some(answer) = answer {
            return Ok(answer);
        }
    }
}

trait Stream: Read + Write {}
impl<S: Read + Write> Stream for S {}

fn connect(endpoint: &Endpoint, proxy: Option<&Proxy>, tls: Option<Arc<ClientConfig>>) -> io::Result<Box<dyn Stream>> {
    let tcp = match proxy {
        None => TcpStream::connect((endpoint.host.as_str(), endpoint.port))?,
        Some(proxy) => proxy.connect(endpoint)?,
    };
    let Some(tls) = tls else { return Ok(Box::new(tcp)) };
    let name = ServerName::try_from(endpoint.host.clone()).map_err(io::Error::other)?;
    let connection = ClientConnection::new(tls, name).map_err(io::Error::other)?;
    Ok(Box::new(StreamOwned::new(connection, tcp)))
}

/// The request, which has no body. The robot is the user, and the service account's token stands where a password would.
fn head(exchange: &Exchange) -> Zeroizing<Vec<u8>> {
    let Exchange { endpoint, robot, token } = exchange;
    let login = Zeroizing::new([robot.as_str(), ":", token.expose_secret()].concat());
    let login = Zeroizing::new(BASE64_STANDARD.encode(login.as_bytes()));
    let parts = [
        "GET ",
        &endpoint.path,
        " HTTP/1.1\r\nHost: ",
        endpoint.authority(),
        "\r\nUser-Agent: ",
        CREDENTIAL_PROVIDER,
        "/",
        env!("CARGO_PKG_VERSION"),
        "\r\nAccept: application/json\r\nConnection: close\r\nAuthorization: Basic ",
        &login,
        "\r\n\r\n",
    ];
    Zeroizing::new(parts.concat().into_bytes())
}

/// The trusted authorities: those of the file, else those of the node.
fn tls(authority: Option<&Path>) -> Result<Arc<ClientConfig>, Refusal> {
    let mut roots = RootCertStore::empty();
    if let Some(file) = authority {
        let fail = |reason: String| Refusal::Authority { file: file.to_owned(), reason };
        let certificates = CertificateDer::pem_file_iter(file).map_err(|error| fail(error.to_string()))?;
        for certificate in certificates {
            let certificate = certificate.map_err(|error| fail(error.to_string()))?;
            roots.add(certificate).map_err(|error| fail(error.to_string()))?;
        }
        if roots.is_empty() {
            return Err(fail("it has none".to_owned()));
        }
    } else {
        roots.add_parsable_certificates(rustls_native_certs::load_native_certs().certs);
        if roots.is_empty() {
            return Err(Refusal::NoAuthorities);
        }
    }
    let provider = Arc::new(rustls::crypto::aws_lc_rs::default_provider());
    let versions = ClientConfig::builder_with_provider(provider).with_safe_default_protocol_versions();
    let versions = versions.map_err(|_never_with_this_provider| Refusal::NoAuthorities)?;
    Ok(Arc::new(versions.with_root_certificates(roots).with_no_client_auth()))
}
