//! A network between server and database that can be cut, or drop all packets.

use std::net::SocketAddr;

use tokio::io::{AsyncReadExt as _, AsyncWriteExt as _};
use tokio::net::{TcpListener, TcpStream};
use tokio::sync::watch;

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Weather {
    Fine,
    /// Connections are refused or cut.
    Cut,
    /// Connections stay open, but nothing arrives, now or later.
    Swallowing,
}

/// A TCP proxy in front of a database.
pub(crate) struct Network {
    pub(crate) address: SocketAddr,
    weather: watch::Sender<Weather>,
}

impl Network {
    pub(crate) async fn before(target: String) -> Self {
        let listener = TcpListener::bind("127.0.0.1:0").await.unwrap();
        let address = listener.local_addr().unwrap();
        let (weather, receiver) = watch::channel(Weather::Fine);
        tokio::spawn(async move {
            while let Ok((near, _)) = listener.accept().await {
                tokio::spawn(carry(near, target.clone(), receiver.clone()));
            }
        });
        Self { address, weather }
    }

    pub(crate) fn set(&self, weather: Weather) {
        self.weather.send_replace(weather);
    }
}

/// A connection that has lost data never transmits again, as after a firewall has dropped its state.
async fn carry(mut near: TcpStream, target: String, mut weather: watch::Receiver<Weather>) {
    let now = *weather.borrow_and_update();
    match now {
        Weather::Cut => return,
        Weather::Swallowing => return std::future::pending().await,
        Weather::Fine => {}
    }
    let Ok(mut far) = TcpStream::connect(&target).await else { return };
    let (mut from_near, mut from_far) = (vec![0; 65536], vec![0; 65536]);
    loop {
        tokio::select! {
            changed = weather.changed() => {
                let now = *weather.borrow_and_update();
                match now {
                    Weather::Swallowing => return std::future::pending().await,
                    Weather::Cut => return,
                    Weather::Fine if changed.is_err() => return,
                    Weather::Fine => {}
                }
            }
            read = near.read(&mut from_near) => match read {
                Ok(read @ 1..) if far.write_all(&from_near[..read]).await.is_ok() => {}
                _ => return,
            },
            read = far.read(&mut from_far) => match read {
                Ok(read @ 1..) if near.write_all(&from_far[..read]).await.is_ok() => {}
                _ => return,
            },
        }
    }
}
