//! A proxy that forwards connections: it sees where they go, and no token, which is encrypted for the server behind it.

use std::fmt;
use std::io::{self, Read as _, Write as _};
use std::net::TcpStream;
use std::str::FromStr;

use crate::endpoint::{Endpoint, host_and_port};

/// The longest head of a proxy's answer in bytes.
const LONGEST_HEAD: usize = 8 * 1024;
const MOST_HEADERS: usize = 64;

/// An HTTP proxy.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Proxy {
    host: String,
    port: u16,
}

/// A text that is no [`Proxy`].
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error("must be HOST:PORT")]
pub struct InvalidProxy;

// === impl Proxy ===

impl Proxy {
    /// Connects to a server through the proxy.
    pub(crate) fn connect(&self, endpoint: &Endpoint) -> io::Result<TcpStream> {
        let fail = |reason: &str| io::Error::other(format!("proxy {self}: {reason}"));
        let mut stream =
            TcpStream::connect((self.host.as_str(), self.port)).map_err(|error| fail(&error.to_string()))?;
        let target = endpoint.target();
        stream.write_all(format!("CONNECT {target} HTTP/1.1\r\nHost: {target}\r\n\r\n").as_bytes())?;
        let mut head = Vec::with_capacity(LONGEST_HEAD);
        // One by one: what follows the head is the server's.
        while !head.ends_with(b"\r\n\r\n") {
            let mut byte = [0];
            if head.len() >= LONGEST_HEAD || stream.read(&mut byte)? == 0 {
                return Err(fail("its answer is no HTTP"));
            }
            head.extend_from_slice(&byte);
        }
        let mut headers = [httparse::EMPTY_HEADER; MOST_HEADERS];
        let mut response = httparse::Response::new(&mut headers);
        let parsed = response.parse(&head).is_ok_and(|parsed| parsed.is_complete());
        match response.code.filter(|_code| parsed) {
            None => Err(fail("its answer is no HTTP")),
            Some(200..300) => Ok(stream),
            Some(status) => Err(fail(&format!("it refuses the connection with status {status}"))),
        }
    }
}

impl fmt::Display for Proxy {
    fn fmt(&self, formatter: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(formatter, "{}:{}", self.host, self.port)
    }
}

impl FromStr for Proxy {
    type Err = InvalidProxy;

    fn from_str(text: &str) -> Result<Self, InvalidProxy> {
        let (host, port) = host_and_port(text).ok_or(InvalidProxy)?;
        Ok(Self { host: host.to_owned(), port: port.ok_or(InvalidProxy)? })
    }
}
