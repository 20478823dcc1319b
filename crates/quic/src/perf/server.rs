//! The end that takes and gives bytes as it is asked to, for any number of clients at once.

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;
use std::time::Instant;

use bytes::Bytes;
use quinn::{Connection, RecvStream, SendStream};
use tokio::time::{Duration, MissedTickBehavior, interval};

use super::identity::{Fingerprint, Identity};
use super::qlog::{Folder, Role};
use super::watch::Watch;
use super::wire::{LENGTH, Received, Request};
use super::{Control, Error, Parts};

/// Between two receipts.
const RECEIPTS: Duration = Duration::from_millis(100);

/// A piece of payload; what it says does not matter, and encryption makes all bytes alike.
const PIECE: Bytes = Bytes::from_static(&[0x5a; 1 << 16]);

/// What a server is to do.
#[derive(Debug)]
pub struct Settings {
    /// Where to listen; port 0 for any.
    pub listen: SocketAddr,
    /// Congestion control of what it sends.
    pub control: Control,
    /// Who it is.
    pub identity: Identity,
    /// Where qlog files go, if anywhere.
    pub qlog: Option<PathBuf>,
}

/// A server that has its socket.
#[derive(Debug)]
pub struct Server {
    runtime: tokio::runtime::Runtime,
    endpoint: quinn::Endpoint,
    address: SocketAddr,
    fingerprint: Fingerprint,
    serving: Serving,
}

#[derive(Clone)]
struct Serving {
    parts: Parts,
    crypto: Arc<quinn::crypto::rustls::QuicServerConfig>,
    qlog: Option<Folder>,
}

impl std::fmt::Debug for Serving {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Serving")
            .field("parts", &self.parts)
            .field("qlog", &self.qlog)
            .finish_non_exhaustive()
    }
}

impl Server {
    /// Opens the socket.
    pub fn bind(settings: &Settings) -> Result<Self, Error> {
        let runtime = super::runtime()?;
        let crypto =
            settings.identity.crypto().map_err(|error| Error::System(std::io::Error::other(error)))?;
        let qlog = settings.qlog.as_deref().map(|path| Folder::new(path, Role::Server)).transpose()?;
        let serving = Serving { parts: Parts::new(&settings.control), crypto: Arc::new(crypto), qlog };
        let endpoint = {
            let _guard = runtime.enter();
            let config = serving.parts.server(serving.crypto.clone(), super::transport());
            serving.parts.endpoint(settings.listen, Some(config))?
        };
        let address = endpoint.local_addr()?;
        Ok(Server { runtime, endpoint, address, fingerprint: settings.identity.fingerprint(), serving })
    }

    /// Where it listens.
    pub fn address(&self) -> SocketAddr {
        self.address
    }

    /// Of its certificate.
    pub fn fingerprint(&self) -> Fingerprint {
        self.fingerprint
    }

    /// Serves until the process ends; `say` is told of every connection.
    pub fn serve(self, say: impl Fn(&str) + Send + Sync + 'static) {
        let say: Arc<dyn Fn(&str) + Send + Sync> = Arc::new(say);
        self.runtime.block_on(async {
            let mut number = 0_u64;
            while let Some(incoming) = self.endpoint.accept().await {
                number += 1;
                tokio::spawn(connection(incoming, self.serving.clone(), number, say.clone()));
            }
        });
    }
}

async fn connection(
    incoming: quinn::Incoming,
    serving: Serving,
    number: u64,
    say: Arc<dyn Fn(&str) + Send + Sync>,
) {
    let from = incoming.remote_address();
    let connecting = match &serving.qlog {
        None => incoming.accept(),
        Some(folder) => {
            let mut transport = super::transport();
            if let Err(error) = folder.log(&mut transport, &number.to_string()) {
                say(&format!("{error}"));
            }
            incoming.accept_with(Arc::new(serving.parts.server(serving.crypto.clone(), transport)))
        }
    };
    let connection = match connecting {
        Ok(connecting) => connecting.await,
        Err(error) => Err(error),
    };
    let connection = match connection {
        Ok(connection) => connection,
        Err(error) => return say(&format!("{from}: no connection: {error}")),
    };
    say(&format!("{from}: connected"));
    let watch = Arc::new(Watch::start(&connection));
    while let Ok((send, receive)) = connection.accept_bi().await {
        let (connection, watch, say) = (connection.clone(), watch.clone(), say.clone());
        tokio::spawn(async move {
            // A client that goes away in the middle has what it wanted.
            if let Err(Unserved::Refused(reason)) = serve(&connection, &watch, send, receive).await {
                say(&format!("{from}: {reason}"));
                connection.close(1u32.into(), reason.as_bytes());
            }
        });
    }
    say(&format!("{from}: {}", connection.closed().await));
}

enum Unserved {
    Refused(String),
    Gone,
}

impl From<quinn::ReadError> for Unserved {
    fn from(_: quinn::ReadError) -> Self {
        Unserved::Gone
    }
}

impl From<quinn::WriteError> for Unserved {
    fn from(_: quinn::WriteError) -> Self {
        Unserved::Gone
    }
}

async fn serve(
    connection: &Connection,
    watch: &Watch,
    mut send: SendStream,
    mut receive: RecvStream,
) -> Result<(), Unserved> {
    let mut request = [0; LENGTH];
    receive.read_exact(&mut request).await.map_err(|_| Unserved::Gone)?;
    match Request::decode(&request) {
        None => return Err(Unserved::Refused("a request that this server does not know".to_string())),
        Some(Request::Upload) => take(connection, &mut send, receive).await?,
        Some(Request::Download { bytes }) => {
            give(&mut send, if bytes == 0 { u64::MAX } else { bytes }).await?
        }
        Some(Request::Exchange { request, response }) => {
            let mut left = request;
            while left > 0 {
                let Some(chunk) = receive.read_chunk(left.min(1 << 20) as usize, true).await? else {
                    return Err(Unserved::Gone);
                };
                left -= chunk.bytes.len() as u64;
            }
            give(&mut send, response).await?;
        }
        Some(Request::Report) => {
            let report = serde_json::to_vec(&watch.report()).expect("a report is numbers and words");
            send.write_all(&report).await?;
        }
    }
    let _ = send.finish();
    Ok(())
}

async fn give(send: &mut SendStream, mut left: u64) -> Result<(), Unserved> {
    while left > 0 {
        let piece = PIECE.slice(..left.min(PIECE.len() as u64) as usize);
        left -= piece.len() as u64;
        send.write_chunk(piece).await?;
    }
    Ok(())
}

async fn take(
    connection: &Connection,
    send: &mut SendStream,
    mut receive: RecvStream,
) -> Result<(), Unserved> {
    let began = Instant::now();
    let before = super::wire_bytes(connection);
    let mut received = Received::default();
    let mut ticks = interval(RECEIPTS);
    ticks.set_missed_tick_behavior(MissedTickBehavior::Delay);
    let mut chunks: [Bytes; 32] = std::array::from_fn(|_| Bytes::new());
    loop {
        tokio::select! {
            biased;
            _ = ticks.tick() => {
                received.wire = super::wire_bytes(connection) - before;
                send.write_all(&received.encode()).await?;
            }
            read = receive.read_chunks(&mut chunks) => match read {
                Ok(Some(count)) => {
                    received.payload += chunks[..count].iter().map(|chunk| chunk.len() as u64).sum::<u64>();
                    received.micros = began.elapsed().as_micros() as u64;
                }
                // The client ends by time with a reset: what it had still to send is of no use to anybody.
                Ok(None) | Err(quinn::ReadError::Reset(_)) => break,
                Err(error) => return Err(error.into()),
            }
        }
    }
    received.wire = super::wire_bytes(connection) - before;
    received.done = true;
    send.write_all(&received.encode()).await?;
    Ok(())
}
