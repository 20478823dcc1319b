//! quinn-proto, as it is published, with its own controllers.

use std::any::Any;

use brakelight_core::ecn::Encoding;
use brakelight_core::host::{About, HostFactory, HostedController};
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_registry::Options;
use quinn_proto::congestion::{BbrConfig, ControllerMetrics, CubicConfig, NewRenoConfig};
use quinn_proto::{RttEstimator, SendStream, Transmit};

use crate::ends::ends_of;
use crate::options::{bbr, foreign, newreno, plain};

ends_of!(quinn_proto);

const NEWRENO: &str = "quinn/newreno";
const CUBIC: &str = "quinn/cubic";
const BBR: &str = "quinn/bbr";

/// The host `quinn`.
#[derive(Debug)]
pub(crate) struct Quinn;

impl HostFactory for Quinn {
    fn about(&self) -> About {
        About {
            summary: "quinn-proto, the QUIC stack of quinn, unmodified (https://github.com/quinn-rs/quinn)",
            version: env!("QUINN_VERSION"),
            licence: "MIT OR Apache-2.0",
            shows: &["ssthresh_bytes", "mtu_bytes"],
            encoding: Encoding::Classic,
            messages: true,
        }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let entry = |name, summary, parameters| HostedController { name, summary, parameters };
        vec![
            entry(NEWRENO, "New Reno of quinn-proto", newreno::Config::describe),
            entry(CUBIC, "Cubic of quinn-proto", plain::Config::describe),
            entry(BBR, "BBR of quinn-proto", bbr::Config::describe),
        ]
    }

    fn settings(&self, controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        let options = options.iter().copied();
        Ok(match controller {
            NEWRENO => newreno::Config::from_options(options)?.settings(),
            BBR => bbr::Config::from_options(options)?.settings(),
            _ => plain::Config::from_options(options)?.settings(),
        })
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        pair(setup, congestion(setup).map_err(|error| error.to_string())?)
    }
}

/// quinn-proto with one controller that a program brings.
pub(crate) struct Foreign {
    /// Its registered name: `host/controller`.
    pub(crate) name: &'static str,
    /// One line: what it is.
    pub(crate) summary: &'static str,
    pub(crate) factory: Inner,
}

impl std::fmt::Debug for Foreign {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.debug_struct("Foreign").field("name", &self.name).finish_non_exhaustive()
    }
}

impl HostFactory for Foreign {
    fn about(&self) -> About {
        About { summary: "quinn-proto with a controller of this program", ..Quinn.about() }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let Foreign { name, summary, .. } = *self;
        vec![HostedController { name, summary, parameters: foreign::Config::describe }]
    }

    fn settings(&self, _controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Ok(foreign::Config::from_options(options.iter().copied())?.settings())
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let options = foreign::Config::from_options(options).map_err(|error| error.to_string())?;
        pair(setup, (options.windows(), self.factory.clone()))
    }
}

/// The windows and the controller of a connection.
fn congestion(setup: &Setup<'_>) -> Result<(Windows, Inner), ParameterError> {
    let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
    Ok(match setup.controller {
        NEWRENO => {
            let options = newreno::Config::from_options(options)?;
            let windows = options.windows();
            let mut config = NewRenoConfig::default();
            config.initial_window(windows.initial).loss_reduction_factor(options.beta as f32);
            (windows, Arc::new(config))
        }
        BBR => {
            let windows = bbr::Config::from_options(options)?.windows();
            let mut config = BbrConfig::default();
            config.initial_window(windows.initial);
            (windows, Arc::new(config))
        }
        _ => {
            let windows = plain::Config::from_options(options)?.windows();
            let mut config = CubicConfig::default();
            config.initial_window(windows.initial);
            (windows, Arc::new(config))
        }
    })
}

fn endpoint(config: EndpointConfig, server: Option<ServerConfig>) -> Endpoint {
    Endpoint::new(Arc::new(config), server.map(Arc::new), true, None)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, peer, None, ecn, data, answer)
}

fn poll_transmit(connection: &mut Connection, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, 1, payload)
}

fn write(mut stream: SendStream<'_>, chunk: Bytes) -> usize {
    stream.write_chunks(&mut [chunk]).map_or(0, |written| written.bytes)
}

fn values(connection: &mut Connection) -> Option<Values> {
    let path = connection.stats().path;
    let ControllerMetrics { ssthresh, pacing_rate, .. } = connection.congestion_state().metrics();
    Some(Values {
        cwnd: path.cwnd,
        ssthresh,
        pacing_bps: pacing_rate,
        bandwidth_bps: None,
        lost: path.lost_packets,
        rtt: None,
        mtu: path.current_mtu,
    })
}

/// A controller of the stack, and what is seen of it. Every method of the trait is passed on.
struct Watched {
    controller: Box<dyn Controller>,
    seen: Seen,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, last_packet_number: u64) {
        self.seen.on_sent(bytes);
        self.controller.on_sent(now, bytes, last_packet_number);
    }

    fn on_ack(&mut self, now: Instant, sent: Instant, bytes: u64, app_limited: bool, rtt: &RttEstimator) {
        self.seen.on_ack(now - sent, rtt.get(), rtt.min());
        self.controller.on_ack(now, sent, bytes, app_limited, rtt);
    }

    fn on_end_acks(
        &mut self,
        now: Instant,
        in_flight: u64,
        app_limited: bool,
        largest_packet_num_acked: Option<u64>,
    ) {
        self.seen.on_inflight(in_flight);
        self.controller.on_end_acks(now, in_flight, app_limited, largest_packet_num_acked);
    }

    fn on_congestion_event(
        &mut self,
        now: Instant,
        sent: Instant,
        is_persistent_congestion: bool,
        lost_bytes: u64,
    ) {
        self.seen.on_lost(lost_bytes);
        self.controller.on_congestion_event(now, sent, is_persistent_congestion, lost_bytes);
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn window(&self) -> u64 {
        self.controller.window()
    }

    fn metrics(&self) -> ControllerMetrics {
        self.controller.metrics()
    }

    fn clone_box(&self) -> Box<dyn Controller> {
        Box::new(Watched { controller: self.controller.clone_box(), seen: self.seen.clone() })
    }

    fn initial_window(&self) -> u64 {
        self.controller.initial_window()
    }

    fn into_any(self: Box<Self>) -> Box<dyn Any> {
        self.controller.into_any()
    }
}
