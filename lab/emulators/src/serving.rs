//! A server's life: listen, answer each request, end kindly or at once.

use std::io;
use std::net::SocketAddr;
use std::sync::Arc;
use std::time::Duration;

use axum::Router;
use axum::body::Body;
use axum::extract::ConnectInfo;
use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use http::{Request, Response};
use tokio::net::TcpListener;
use tokio::task::JoinHandle;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::rustls::ServerConfig;
use tokio_util::sync::CancellationToken;

use crate::browser_guard;
use crate::connections::{Connection, Listening, Secured};

/// Maximum time that open calls get at a shutdown before their connections are cut.
const SHUTDOWN_GRACE: Duration = Duration::from_secs(2);

/// An address that is taken; nothing is answered yet.
#[derive(Debug)]
pub(crate) struct Serving {
    listener: TcpListener,
    address: SocketAddr,
}

/// A server that answers. Dropping it cuts all connections at once, as a crash would.
#[derive(Debug)]
pub(crate) struct Running {
    address: SocketAddr,
    graceful: CancellationToken,
    kill: CancellationToken,
    task: Option<JoinHandle<io::Result<()>>>,
}

impl Serving {
    pub(crate) async fn listen(address: SocketAddr) -> io::Result<Self> {
        let listener = TcpListener::bind(address).await?;
        let address = listener.local_addr()?;
        Ok(Self { listener, address })
    }

    /// Answers each request in a task of its own.
    pub(crate) fn start<A, F>(self, answer: A) -> Running
    where
        A: Fn(Connection, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        self.listening(None, answer)
    }

    /// Does so, and takes forms at the paths that end in `form`.
    pub(crate) fn start_with_form<A, F>(self, form: &'static str, answer: A) -> Running
    where
        A: Fn(Connection, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        self.listening(Some(form), answer)
    }

    fn listening<A, F>(self, form: Option<&'static str>, answer: A) -> Running
    where
        A: Fn(Connection, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let (address, kill) = (self.address, CancellationToken::new());
        run(address, kill.clone(), Listening::new(self.listener, kill), form, answer)
    }

    /// Does so over TLS.
    pub(crate) fn start_secured<A, F>(self, tls: Arc<ServerConfig>, form: Option<&'static str>, answer: A) -> Running
    where
        A: Fn(Connection, Request<Body>) -> F + Clone + Send + Sync + 'static,
        F: Future<Output = Response<Body>> + Send + 'static,
    {
        let (address, kill) = (self.address, CancellationToken::new());
        let listening = Secured::new(Listening::new(self.listener, kill.clone()), TlsAcceptor::from(tls));
        run(address, kill, listening, form, answer)
    }
}

fn run<L, A, F>(
    address: SocketAddr,
    kill: CancellationToken,
    listening: L,
    form: Option<&'static str>,
    answer: A,
) -> Running
where
    L: Listener,
    L::Addr: std::fmt::Debug,
    Connection: for<'a> Connected<IncomingStream<'a, L>>,
    A: Fn(Connection, Request<Body>) -> F + Clone + Send + Sync + 'static,
    F: Future<Output = Response<Body>> + Send + 'static,
{
    let graceful = CancellationToken::new();
    let handler = move |ConnectInfo(connection): ConnectInfo<Connection>, request: Request<Body>| {
        let answer = answer.clone();
        let checked = browser_guard::check(&request, form);
        async move {
            match checked {
                Ok(()) => answer(connection, request).await,
                Err(refusal) => refusal.response(),
            }
        }
    };
    let service = Router::new().fallback(handler).into_make_service_with_connect_info::<Connection>();
    let signal = graceful.clone().cancelled_owned();
    let server = axum::serve(listening, service).with_graceful_shutdown(signal);
    let task = Some(tokio::spawn(async move { server.await }));
    Running { address, graceful, kill, task }
}

// === impl Running ===

impl Running {
    pub(crate) fn address(&self) -> SocketAddr {
        self.address
    }

    /// Stops: no new connections, open calls are answered within two seconds, whatever is left then is cut.
    pub(crate) async fn shutdown(&mut self) {
        self.graceful.cancel();
        if tokio::time::timeout(SHUTDOWN_GRACE, self.stopped()).await.is_err() {
            self.kill.cancel();
            self.stopped().await;
        }
    }

    /// Waits until the server's task has ended.
    pub(crate) async fn stopped(&mut self) {
        if let Some(task) = &mut self.task {
            // The result does not matter to the waiting caller: axum's server ends by its signal only.
            drop(task.await);
            self.task = None;
        }
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        self.kill.cancel();
        if let Some(task) = &self.task {
            task.abort();
        }
    }
}
