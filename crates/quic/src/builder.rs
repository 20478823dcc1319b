//! Builds quinn endpoints whose connections run one of our controllers. The builder puts the parts together:
//! the controllers' factory, the tap around the TLS configuration and the socket that sets the ECN field of
//! each packet.
//!
//! ```no_run
//! use brakelight_quic::adapter::{ControlSettings, Path, PacketSender};
//! use brakelight_quic::builder::EndpointBuilder;
//! # fn application(
//! #     crypto: std::sync::Arc<dyn quinn::crypto::ClientConfig>,
//! # ) -> Result<(), Box<dyn std::error::Error>> {
//! let controller = brakelight_registry::ControllerConfig::new("abc", &[])?;
//! let builder = EndpointBuilder::new(ControlSettings::new(controller, PacketSender::Stack, Path::Own)?);
//! let mut endpoint = builder.endpoint(std::net::UdpSocket::bind("[::]:0")?, None)?;
//! endpoint.set_default_client_config(builder.client(crypto, quinn::TransportConfig::default()));
//! # Ok(())
//! # }
//! ```

use std::io;
use std::net::UdpSocket;
use std::sync::Arc;

use brakelight_core::ecn::{Ecn, Encoding};
use quinn::AckFrequencyConfig;
use quinn::crypto::{ClientConfig, ServerConfig};

use crate::adapter::{ControlSettings, ControllerAdapter, Factory, QuinnController, support};
use crate::io_counts::{IoCounts, IoMeter};
use crate::socket::StampingSocket;
use crate::stamps::Stamps;
use crate::tap::Tap;

/// Builds the socket and the configurations of one endpoint whose connections run one controller.
#[derive(Clone, Debug)]
pub struct EndpointBuilder {
    factory: Arc<Factory>,
    tap: Tap,
    stamps: Arc<Stamps>,
    meter: Arc<IoMeter>,
    ack_frequency: Option<AckFrequencyConfig>,
}

impl EndpointBuilder {
    /// Returns a builder for connections that `settings` control.
    pub fn new(settings: ControlSettings) -> Self {
        let encoding = settings.encoding();
        let ack_frequency = support::ack_frequency(settings.controller());
        let factory = Factory::new(settings);
        let stamps =
            Arc::new(if encoding == Encoding::None { Stamps::always(Ecn::NotEct) } else { Stamps::new() });
        let tap = Tap::new(factory.open(), stamps.clone());
        EndpointBuilder { factory, tap, stamps, meter: Arc::default(), ack_frequency }
    }

    /// Returns an endpoint on `socket`, whose packets carry the ECN codepoints that their controllers choose.
    /// With `server` it also accepts connections. Must be called within the tokio runtime that is to drive
    /// it.
    ///
    /// # Errors
    ///
    /// The error of the socket; [`io::ErrorKind::Other`] outside an async runtime.
    pub fn endpoint(
        &self,
        socket: UdpSocket,
        server: Option<quinn::ServerConfig>,
    ) -> io::Result<quinn::Endpoint> {
        let runtime =
            quinn::default_runtime().ok_or_else(|| io::Error::other("no async runtime is running"))?;
        let socket = runtime.wrap_udp_socket(socket)?;
        let socket = Arc::new(StampingSocket::metered(socket, self.stamps.clone(), self.meter.clone()));
        quinn::Endpoint::new_with_abstract_socket(quinn::EndpointConfig::default(), server, socket, runtime)
    }

    /// Returns the system calls of its endpoints' sockets so far, and the datagrams that they carried.
    pub fn io_counts(&self) -> IoCounts {
        self.meter.counts()
    }

    /// Returns the configuration of client connections with `crypto` and `transport`. Congestion control is
    /// set in it, and ACK frequency where the controller has a use for it ([`support::ack_frequency`]).
    pub fn client(
        &self,
        crypto: Arc<dyn ClientConfig>,
        transport: quinn::TransportConfig,
    ) -> quinn::ClientConfig {
        let mut config = quinn::ClientConfig::new(self.tap.client(crypto));
        config.transport_config(Arc::new(self.transport(transport)));
        config
    }

    /// Returns the configuration of a server's connections with `crypto` and `transport`, in which the same
    /// is set.
    pub fn server(
        &self,
        crypto: Arc<dyn ServerConfig>,
        transport: quinn::TransportConfig,
    ) -> quinn::ServerConfig {
        let mut config = quinn::ServerConfig::with_crypto(self.tap.server(crypto));
        config.transport_config(Arc::new(self.transport(transport)));
        config
    }

    /// `transport` with the controller in it, and with the ACK frequency that suits it.
    fn transport(&self, mut transport: quinn::TransportConfig) -> quinn::TransportConfig {
        transport.congestion_controller_factory(self.factory.clone());
        if let Some(frequency) = &self.ack_frequency {
            transport.ack_frequency_config(Some(frequency.clone()));
        }
        transport
    }
}

/// Returns the controller adapter of `connection`, or `None` if another controller runs on it.
pub fn adapter_of(connection: &quinn::Connection) -> Option<Arc<ControllerAdapter>> {
    let controller = connection.congestion_state().into_any().downcast::<QuinnController>().ok()?;
    Some(controller.adapter().clone())
}
