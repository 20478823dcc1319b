//! noq-proto, as it is published, with its own controllers.

use std::any::Any;
use std::num::NonZeroUsize;
use std::time::Duration;

use brakelight_core::ecn::Encoding;
use brakelight_core::host::{About, HostFactory, HostedController};
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_registry::Options;
use noq_proto::congestion::{Bbr3Config, ControllerMetrics, CubicConfig, NewRenoConfig};
use noq_proto::{FourTuple, PathId, RttEstimator, SendStream, Transmit};

use crate::ends::ends_of;
use crate::options::{newreno, plain};

ends_of!(noq_proto);

const NEWRENO: &str = "noq/newreno";
const CUBIC: &str = "noq/cubic";
const BBR3: &str = "noq/bbr3";

/// The host `noq`.
#[derive(Debug)]
pub(crate) struct Noq;

impl HostFactory for Noq {
    fn about(&self) -> About {
        About {
            summary: "noq-proto, the QUIC stack of noq, unmodified (https://github.com/n0-computer/noq)",
            version: env!("NOQ_VERSION"),
            licence: "MIT OR Apache-2.0",
            shows: &["ssthresh_bytes", "bandwidth_bps", "mtu_bytes"],
            encoding: Encoding::Classic,
            messages: true,
        }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let entry = |name, summary, parameters| HostedController { name, summary, parameters };
        vec![
            entry(NEWRENO, "New Reno of noq-proto", newreno::Config::describe),
            entry(CUBIC, "Cubic of noq-proto", plain::Config::describe),
            entry(BBR3, "BBRv3 of noq-proto", plain::Config::describe),
        ]
    }

    fn settings(&self, controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        let options = options.iter().copied();
        Ok(match controller {
            NEWRENO => newreno::Config::from_options(options)?.settings(),
            _ => plain::Config::from_options(options)?.settings(),
        })
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        pair(setup, congestion(setup).map_err(|error| error.to_string())?)
    }
}

/// The controllers of `brakelight-noq` that the host [`Adapted`] has: their names there, and what they are.
const ADAPTED: [(&str, &str); 5] = [
    ("brakelight-noq/copa", "Copa of Brakelight in noq-proto"),
    ("brakelight-noq/bbr3", "BBRv3 of Brakelight in noq-proto"),
    ("brakelight-noq/cubic", "Cubic of Brakelight in noq-proto"),
    ("brakelight-noq/newreno", "New Reno of Brakelight in noq-proto"),
    ("brakelight-noq/quicdc", "QUIC-DC of Brakelight in noq-proto, with receive times of round trips"),
];

/// The host `brakelight-noq`: the same stack with Brakelight's own controllers, as a program has them by
/// `brakelight_noq::factory`.
#[derive(Debug)]
pub(crate) struct Adapted;

impl HostFactory for Adapted {
    fn about(&self) -> About {
        let summary = "noq-proto with the controllers of the crate brakelight-noq";
        About { summary, ..Noq.about() }
    }

    fn controllers(&self) -> Vec<HostedController> {
        let parameters = plain::Config::describe;
        ADAPTED.map(|(name, summary)| HostedController { name, summary, parameters }).to_vec()
    }

    fn settings(&self, _controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Ok(plain::Config::from_options(options.iter().copied())?.settings())
    }

    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let windows = plain::Config::from_options(options).map_err(|error| error.to_string())?.windows();
        let name = setup.controller.split_once('/').map_or(setup.controller, |(_, name)| name);
        let factory = brakelight_noq::factory(name, &[]).map_err(|error| error.to_string())?;
        pair(setup, (windows, factory))
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
        BBR3 => {
            let windows = plain::Config::from_options(options)?.windows();
            let mut config = Bbr3Config::default();
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
    Endpoint::new(Arc::new(config), server.map(Arc::new), true)
}

fn handle(
    endpoint: &mut Endpoint,
    now: Instant,
    peer: SocketAddr,
    ecn: Option<EcnCodepoint>,
    data: BytesMut,
    answer: &mut Vec<u8>,
) -> Option<DatagramEvent> {
    endpoint.handle(now, FourTuple::new(peer, None), ecn, data, answer)
}

fn poll_transmit(connection: &mut Connection, now: Instant, payload: &mut Vec<u8>) -> Option<Transmit> {
    connection.poll_transmit(now, NonZeroUsize::MIN, payload)
}

fn write(mut stream: SendStream<'_>, chunk: Bytes) -> usize {
    let chunks = &mut [chunk][..];
    stream.write_chunks(&mut { chunks }).unwrap_or(0)
}

fn values(connection: &mut Connection) -> Option<Values> {
    let path = connection.path_stats(PathId::ZERO)?;
    let ControllerMetrics { ssthresh, pacing_rate, bandwidth_estimate, .. } =
        connection.congestion_state(PathId::ZERO)?.metrics();
    Some(Values {
        cwnd: path.cwnd,
        ssthresh,
        // In bytes per second.
        pacing_bps: pacing_rate.map(|rate| rate.saturating_mul(8)),
        bandwidth_bps: bandwidth_estimate,
        lost: path.lost_packets,
        rtt: None,
        mtu: path.current_mtu,
    })
}

/// A controller of the stack, and what is seen of it. Every method of the trait is passed on.
#[derive(Debug)]
struct Watched {
    controller: Box<dyn Controller>,
    seen: Seen,
}

impl Controller for Watched {
    fn on_sent(&mut self, now: Instant, bytes: u64, largest_pn: u64) {
        self.controller.on_sent(now, bytes, largest_pn);
    }

    fn on_packet_sent(&mut self, now: Instant, bytes: u16, pn: u64) {
        self.seen.on_sent(bytes.into());
        self.controller.on_packet_sent(now, bytes, pn);
    }

    fn on_cwnd_limited(&mut self) {
        self.controller.on_cwnd_limited();
    }

    fn on_ack(
        &mut self,
        now: Instant,
        sent: Instant,
        bytes: u64,
        pn: u64,
        app_limited: bool,
        rtt: &RttEstimator,
    ) {
        self.seen.on_ack(now - sent, rtt.get(), rtt.min());
        self.controller.on_ack(now, sent, bytes, pn, app_limited, rtt);
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
        is_ecn: bool,
        lost_bytes: u64,
        largest_lost_pn: u64,
    ) {
        let controller = &mut self.controller;
        controller.on_congestion_event(
            now,
            sent,
            is_persistent_congestion,
            is_ecn,
            lost_bytes,
            largest_lost_pn,
        );
    }

    fn on_packet_lost(&mut self, lost_bytes: u16, pn: u64, now: Instant) {
        self.seen.on_lost(lost_bytes.into());
        self.controller.on_packet_lost(lost_bytes, pn, now);
    }

    fn on_spurious_congestion_event(&mut self) {
        self.controller.on_spurious_congestion_event();
    }

    fn on_mtu_update(&mut self, new_mtu: u16) {
        self.controller.on_mtu_update(new_mtu);
    }

    fn on_ack_frequency_update(&mut self, ack_eliciting_threshold: u64, requested_max_ack_delay: Duration) {
        self.controller.on_ack_frequency_update(ack_eliciting_threshold, requested_max_ack_delay);
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
