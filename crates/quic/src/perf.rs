//! Measuring over real sockets: a server that takes and gives bytes, and a client that asks it to.
//!
//! | file | holds |
//! |---|---|
//! | [`identity`] | certificates, and which of them a client takes |
//! | [`token`] | a secret that both ends share |
//! | [`wire`] | what client and server say to each other |
//! | [`server`], [`client`] | the two ends |
//! | `link` | their connections, of our driver or of async quinn |
//! | [`watch`] | what a sender knows of its connection |
//! | [`outcome`] | a measurement as a row of results |
//! | [`silence`] | how long nothing has arrived |
//! | [`stock`] | a controller of ours and quinn's Cubic in turns |
//! | [`address`] | servers by name or address |
//! | [`qlog`] | files for qvis |

use std::net::SocketAddr;
use std::path::PathBuf;
use std::sync::Arc;

use quinn::TransportConfig;

use crate::adapter::ControlSettings;
use crate::builder::EndpointBuilder;

pub mod address;
pub mod client;
pub mod identity;
mod link;
pub mod outcome;
pub mod qlog;
pub mod server;
pub mod silence;
pub mod stock;
pub mod token;
pub mod watch;
pub mod wire;

/// Bytes of a stream that may be on their way: 100 ms at 1.3 Gbit/s, so that no path worth measuring waits
/// for credit.
const STREAM_WINDOW: u32 = 16 << 20;

/// Bytes of the socket's buffers, as far as the system allows them.
const SOCKET_BUFFER: usize = 4 << 20;

/// Which congestion control an endpoint runs.
#[derive(Clone, Debug)]
pub enum Control {
    /// One of ours, under our driver or in async quinn as its settings say.
    Ours(Box<ControlSettings>),
    /// quinn's Cubic, without any part of ours: what ours are compared with.
    StockCubic,
}

impl Control {
    /// Returns the name that a [`SenderReport`](watch::SenderReport) has for it.
    pub fn name(&self) -> &str {
        match self {
            Control::Ours(settings) => settings.controller().name(),
            Control::StockCubic => STOCK_CUBIC,
        }
    }
}

/// The name of quinn's Cubic in reports.
pub(crate) const STOCK_CUBIC: &str = "cubic of quinn";

/// Why a measurement could not be made.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// A file cannot be used.
    #[error("{}: {reason}", file.display())]
    File {
        /// Which.
        file: PathBuf,
        /// Why.
        reason: String,
    },
    /// No socket there.
    #[error("{address}: {source}")]
    Bind {
        /// Where.
        address: SocketAddr,
        /// Why.
        source: std::io::Error,
    },
    /// No connection.
    #[error("{server}: {reason}")]
    Connect {
        /// To whom.
        server: SocketAddr,
        /// Why.
        reason: String,
    },
    /// Nobody answered.
    #[error(
        "{server} did not answer within {seconds} s: is a perf-server running there, and does UDP reach it?"
    )]
    NoAnswer {
        /// Who was asked.
        server: SocketAddr,
        /// How long.
        seconds: u64,
    },
    /// The connection broke.
    #[error("the connection to {server} broke: {reason}")]
    Lost {
        /// To whom.
        server: SocketAddr,
        /// Why.
        reason: String,
    },
    /// Something of this machine.
    #[error("{0}")]
    System(#[from] std::io::Error),
}

/// The parts of an endpoint of async quinn that depend on whose congestion control it runs.
#[derive(Clone, Debug)]
pub(crate) enum Parts {
    Ours(EndpointBuilder),
    Stock,
}

impl Parts {
    pub(crate) fn new(control: &Control) -> Self {
        match control {
            Control::Ours(settings) => Parts::Ours(EndpointBuilder::new(settings.as_ref().clone())),
            Control::StockCubic => Parts::Stock,
        }
    }

    pub(crate) fn endpoint(&self, address: SocketAddr) -> Result<quinn::Endpoint, Error> {
        let bind = || {
            let socket = std::net::UdpSocket::bind(address)?;
            let state = quinn_udp::UdpSocketState::new((&socket).into())?;
            // More than the system allows is cut to what it does.
            let _ = state.set_send_buffer_size((&socket).into(), SOCKET_BUFFER);
            let _ = state.set_recv_buffer_size((&socket).into(), SOCKET_BUFFER);
            match self {
                Parts::Ours(builder) => builder.endpoint(socket, None),
                Parts::Stock => {
                    let runtime = Arc::new(quinn::TokioRuntime);
                    quinn::Endpoint::new(quinn::EndpointConfig::default(), None, socket, runtime)
                }
            }
        };
        bind().map_err(|source| Error::Bind { address, source })
    }

    pub(crate) fn client(
        &self,
        crypto: Arc<dyn quinn::crypto::ClientConfig>,
        transport: TransportConfig,
    ) -> quinn::ClientConfig {
        match self {
            Parts::Ours(builder) => builder.client(crypto, transport),
            Parts::Stock => {
                let mut config = quinn::ClientConfig::new(crypto);
                config.transport_config(Arc::new(transport));
                config
            }
        }
    }
}

/// The transport's settings at both ends, whoever controls congestion.
pub(crate) fn transport() -> TransportConfig {
    let mut transport = TransportConfig::default();
    transport.stream_receive_window(STREAM_WINDOW.into()).send_window(u64::from(STREAM_WINDOW));
    transport
}

/// The runtime that drives an endpoint.
pub(crate) fn runtime() -> Result<tokio::runtime::Runtime, Error> {
    Ok(tokio::runtime::Builder::new_multi_thread().worker_threads(2).enable_all().build()?)
}
