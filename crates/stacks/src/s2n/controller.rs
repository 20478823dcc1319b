//! A congestion controller of s2n-quic-core without its stack: s2n's trait behind ours.
//!
//! What the host says is passed on in the order of s2n's recovery manager (s2n-quic-transport 0.91,
//! `recovery/manager.rs`, `process_acks`): the RTT, then losses, then marks, then what was acknowledged.
//!
//! - Sizes are payload bytes, since a host counts these; the stack counts whole QUIC packets.
//! - `earliest_departure_time` is not asked. The host paces by the rate that the controller publishes.
//! - `requires_fast_retransmission` is not asked: the host sends one packet ahead of the reduction itself.
//! - A loss that turns out to be spurious changes nothing, as in the stack, which forgets lost packets.

use std::collections::VecDeque;
use std::fmt::Debug;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Mutex, PoisonError};

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, Recovery, SendDirective, SendEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::random::Random;
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{ControllerFactory, DynController, Host, Needs};
use num_rational::Ratio;
use s2n_quic_core::event::builder::{BbrState, SlowStartExitCause};
use s2n_quic_core::inet::SocketAddress;
use s2n_quic_core::packet::number::PacketNumberSpace;
use s2n_quic_core::path::mtu;
use s2n_quic_core::random::Generator;
use s2n_quic_core::recovery::bandwidth::{Bandwidth, RateSample};
use s2n_quic_core::recovery::congestion_controller::{Endpoint, PathInfo, Publisher};
use s2n_quic_core::recovery::{CongestionController, DEFAULT_INITIAL_RTT, RttEstimator};
use s2n_quic_core::time::Timestamp;

use super::timestamp;

/// Builds the controllers of one of s2n's endpoints of congestion control.
#[derive(Debug)]
pub(crate) struct Alone<E>(Mutex<E>);

impl<E> Alone<E> {
    pub(crate) fn new(endpoint: E) -> Self {
        Alone(Mutex::new(endpoint))
    }
}

impl<E> ControllerFactory for Alone<E>
where
    E: Endpoint,
    E::CongestionController: Sync,
    <E::CongestionController as CongestionController>::PacketInfo: Sync,
{
    fn needs(&self) -> Needs {
        // It looks at its own bytes in flight to see whether its window is used.
        Needs { host: Host::Quic, grows_unused: true, ..Needs::PLAIN }
    }

    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        let peer = SocketAddress::from(SocketAddr::from((Ipv4Addr::new(192, 0, 2, 2), 4433)));
        let mut path = PathInfo::new(&mtu::Config::default(), &peer);
        path.max_datagram_size = datagram(connection.mss);
        let mut endpoint = self.0.lock().unwrap_or_else(PoisonError::into_inner);
        Box::new(Adapter {
            controller: endpoint.new_congestion_controller(path),
            mss: connection.mss,
            rtt: RttEstimator::new(DEFAULT_INITIAL_RTT),
            first: 0,
            packets: VecDeque::new(),
            newest_lost: None,
            is_persistent: false,
            random: Drawn(connection.random.clone()),
            published: Published::default(),
        })
    }
}

fn datagram(mss: Bytes) -> u16 {
    u16::try_from(mss.0).unwrap_or(u16::MAX)
}

/// One controller.
#[derive(Clone, Debug)]
struct Adapter<C: CongestionController> {
    controller: C,
    mss: Bytes,
    rtt: RttEstimator,
    /// The number of the first of `packets`.
    first: u64,
    /// What the controller gave each packet that is neither acknowledged nor lost.
    packets: VecDeque<Option<Sent<C::PacketInfo>>>,
    newest_lost: Option<u64>,
    /// Whether the losses that come next showed persistent congestion.
    is_persistent: bool,
    random: Drawn,
    published: Published,
}

/// A packet in flight.
#[derive(Clone, Copy, Debug)]
struct Sent<I> {
    at: Timestamp,
    size: u64,
    info: I,
}

impl<C: CongestionController> Adapter<C> {
    /// Takes packet `number` out of flight; `None` if it was taken before.
    fn take(&mut self, number: u64) -> Option<Sent<C::PacketInfo>> {
        let place = usize::try_from(number.checked_sub(self.first)?).ok()?;
        let taken = self.packets.get_mut(place)?.take();
        while let Some(None) = self.packets.front() {
            self.packets.pop_front();
            self.first += 1;
        }
        taken
    }
}

impl<C> Controller for Adapter<C>
where
    C: CongestionController,
{
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        let at = timestamp(event.now);
        if let Some(replaced) = event.replaces
            && let Some(sent) = self.take(replaced)
        {
            self.controller.on_packet_discarded(sent.size as usize, &mut self.published);
        }
        let limited = Some(event.app_limited);
        let (size, published) = (event.size.0 as usize, &mut self.published);
        let info = self.controller.on_packet_sent(at, size, limited, &self.rtt, published);
        if self.packets.is_empty() {
            self.first = event.number;
        }
        self.packets.push_back(Some(Sent { at, size: event.size.0, info }));
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let now = timestamp(event.now);
        let mut newest = None;
        let mut bytes = 0;
        for info in event.acked {
            if let Some(sent) = self.take(info.number) {
                bytes += sent.size;
                newest = Some(sent);
            }
        }
        if let Some(sample) = event.rtt.sample {
            let [delay, sample] = [event.ack_delay, sample].map(|length| length.as_nanos());
            let [delay, sample] = [delay, sample].map(std::time::Duration::from_nanos);
            self.rtt.update_rtt(delay, sample, now, true, PacketNumberSpace::ApplicationData);
            let sent_at = newest.map_or(now - sample, |sent| sent.at);
            self.controller.on_rtt_update(sent_at, now, &self.rtt, &mut self.published);
        }
        let is_persistent = std::mem::take(&mut self.is_persistent);
        for info in event.lost {
            let Some(sent) = self.take(info.number) else { continue };
            let is_new_burst = self.newest_lost.is_none_or(|last| info.number != last + 1);
            self.newest_lost = Some(info.number);
            self.controller.on_packet_lost(
                u32::try_from(sent.size).unwrap_or(u32::MAX),
                sent.info,
                is_persistent,
                is_new_burst,
                &mut self.random,
                now,
                &mut self.published,
            );
        }
        if is_persistent {
            self.rtt.on_persistent_congestion();
        }
        if event.marks.ce.packets > 0 {
            self.controller.on_explicit_congestion(event.marks.ce.packets, now, &mut self.published);
        }
        if let Some(sent) = newest {
            self.controller.on_ack(
                sent.at,
                bytes as usize,
                sent.info,
                &self.rtt,
                &mut self.random,
                now,
                &mut self.published,
            );
        }
    }

    /// Its losses come one by one with the ACK.
    fn on_loss(&mut self, _event: &LossEvent) {}

    /// Its marks come with the ACK.
    fn on_ce(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        // rfc9002 6.2: a probe timeout is no sign of congestion.
        self.is_persistent |= event.kind != Timeout::Pto;
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.controller.on_mtu_update(datagram(mss), &mut self.published);
    }

    fn cwnd(&self) -> Bytes {
        Bytes(u64::from(self.controller.congestion_window())).max(self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.published.pacing_bps.map(Rate::from_bps)
    }

    fn send_quantum(&self) -> Option<Bytes> {
        self.controller.send_quantum().map(|bytes| Bytes(bytes as u64))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        Encoding::Classic
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(bandwidth) = self.published.bandwidth_bps {
            visit("bandwidth_bps", bandwidth);
        }
    }
}

/// The controller's own stream of random numbers.
#[derive(Clone, Debug)]
struct Drawn(Random);

impl Drawn {
    fn fill(&mut self, bytes: &mut [u8]) {
        for chunk in bytes.chunks_mut(8) {
            chunk.copy_from_slice(&self.0.bits().to_le_bytes()[..chunk.len()]);
        }
    }
}

impl Generator for Drawn {
    fn public_random_fill(&mut self, bytes: &mut [u8]) {
        self.fill(bytes);
    }

    fn private_random_fill(&mut self, bytes: &mut [u8]) {
        self.fill(bytes);
    }
}

/// What a controller publishes.
#[derive(Clone, Debug, Default)]
struct Published {
    pacing_bps: Option<u64>,
    /// The newest sample of the delivery rate.
    bandwidth_bps: Option<f64>,
}

impl Publisher for Published {
    fn on_slow_start_exited(&mut self, _cause: SlowStartExitCause, _congestion_window: u32) {}

    fn on_delivery_rate_sampled(&mut self, sample: RateSample) {
        let bytes_per_second = sample.delivery_rate().as_bytes_per_second();
        self.bandwidth_bps = Some(bytes_per_second as f64 * 8.0);
    }

    fn on_pacing_rate_updated(&mut self, rate: Bandwidth, _burst_size: u32, _gain: Ratio<u64>) {
        self.pacing_bps = Some(rate.as_bytes_per_second().saturating_mul(8));
    }

    fn on_bbr_state_changed(&mut self, _state: BbrState) {}
}
