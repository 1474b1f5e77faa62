//! Connections that can be cut from inside a call, as a broken network would.

use std::io;
use std::net::SocketAddr;
use std::pin::Pin;
use std::task::{Context, Poll};

use axum::extract::connect_info::Connected;
use axum::serve::{IncomingStream, Listener};
use tokio::io::{AsyncRead, AsyncWrite, ReadBuf};
use tokio::net::{TcpListener, TcpStream};
use tokio::task::JoinSet;
use tokio_rustls::TlsAcceptor;
use tokio_rustls::server::TlsStream;
use tokio_util::sync::{CancellationToken, WaitForCancellationFutureOwned};

/// Accepts connections; cancelling `kill` cuts all of them.
pub(crate) struct Listening {
    listener: TcpListener,
    kill: CancellationToken,
}

/// Accepts connections with TLS. Each handshake is a task of its own, so that a client that stalls keeps no other waiting.
pub(crate) struct Secured {
    listening: Listening,
    acceptor: TlsAcceptor,
    handshakes: JoinSet<io::Result<Shaken>>,
}

/// A connection whose handshake is done.
struct Shaken {
    stream: TlsStream<Cuttable>,
    address: SocketAddr,
}

/// One connection's bytes, until it is cut.
pub(crate) struct Cuttable {
    stream: TcpStream,
    cut: CancellationToken,
    until_cut: Pin<Box<WaitForCancellationFutureOwned>>,
}

/// A call's hold on the connection that brought it.
#[derive(Clone, Debug)]
pub(crate) struct Connection(CancellationToken);

impl Listening {
    pub(crate) fn new(listener: TcpListener, kill: CancellationToken) -> Self {
        Self { listener, kill }
    }
}

impl Listener for Listening {
    type Io = Cuttable;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Cuttable, SocketAddr) {
        // axum's own listener knows which errors pass by themselves.
        let (stream, address) = Listener::accept(&mut self.listener).await;
        // Answers are small and wait for nothing.
        drop(stream.set_nodelay(true));
        let cut = self.kill.child_token();
        let until_cut = Box::pin(cut.clone().cancelled_owned());
        (Cuttable { stream, cut, until_cut }, address)
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listener.local_addr()
    }
}

impl Secured {
    pub(crate) fn new(listening: Listening, acceptor: TlsAcceptor) -> Self {
        Self { listening, acceptor, handshakes: JoinSet::new() }
    }
}

impl Listener for Secured {
    type Io = TlsStream<Cuttable>;
    type Addr = SocketAddr;

    async fn accept(&mut self) -> (Self::Io, SocketAddr) {
        loop {
            tokio::select! {
                (stream, address) = self.listening.accept() => {
                    let accepting = self.acceptor.accept(stream);
                    self.handshakes.spawn(async move { Ok(Shaken { stream: accepting.await?, address }) });
                }
                Some(shaken) = self.handshakes.join_next() => {
                    // A client whose handshake fails is gone; the others are waited for.
                    if let Ok(Ok(Shaken { stream, address })) = shaken {
                        return (stream, address);
                    }
                }
            }
        }
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.listening.local_addr()
    }
}

impl Connection {
    /// A connection of which a test sees whether it was cut.
    #[cfg(test)]
    pub(crate) fn of(cut: CancellationToken) -> Self {
        Self(cut)
    }

    /// Drops the connection: not a byte more is read or written.
    pub(crate) fn cut(&self) {
        self.0.cancel();
    }

    /// Returns once the connection is cut, or closed by either side.
    pub(crate) async fn ended(&self) {
        self.0.cancelled().await;
    }
}

impl Connected<IncomingStream<'_, Listening>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Listening>) -> Self {
        Self(stream.io().cut.clone())
    }
}

impl Connected<IncomingStream<'_, Secured>> for Connection {
    fn connect_info(stream: IncomingStream<'_, Secured>) -> Self {
        Self(stream.io().get_ref().0.cut.clone())
    }
}

impl Cuttable {
    /// Fails once the connection is cut, and wakes the task when that happens.
    fn check(&mut self, context: &mut Context<'_>) -> io::Result<()> {
        match self.until_cut.as_mut().poll(context) {
            Poll::Ready(()) => Err(io::ErrorKind::ConnectionAborted.into()),
            Poll::Pending => Ok(()),
        }
    }
}

impl Drop for Cuttable {
    fn drop(&mut self) {
        self.cut.cancel();
    }
}

impl AsyncRead for Cuttable {
    fn poll_read(
        mut self: Pin<&mut Self>,
        context: &mut Context<'_>,
        buffer: &mut ReadBuf<'_>,
    ) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_read(context, buffer)
    }
}

impl AsyncWrite for Cuttable {
    fn poll_write(mut self: Pin<&mut Self>, context: &mut Context<'_>, bytes: &[u8]) -> Poll<io::Result<usize>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_write(context, bytes)
    }

    fn poll_flush(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        self.check(context)?;
        Pin::new(&mut self.stream).poll_flush(context)
    }

    fn poll_shutdown(mut self: Pin<&mut Self>, context: &mut Context<'_>) -> Poll<io::Result<()>> {
        Pin::new(&mut self.stream).poll_shutdown(context)
    }
}
