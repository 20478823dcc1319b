//! RCP's sender (Dukkipati and McKeown, CCR 2006, `dukkipati06`): packets leave at the rate that the routers
//! say.
//!
//! ```text
//! each packet carries:  rate = infinity, rtt = last sample (0 at first)  routers lower the rate to their own
//! each ACK:             R = the rate it brings; packets leave at R, evenly
//! in flight:            at most cap R srtt                               D1
//!
//! The last sample, not srtt: `rtt_` of the authors' ns-2 sender, `rcp-host.cc`.
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `rate_bps` | bit/s | - | dukkipati06 |
//! | cap | `cap` | 1 | 2 | D1 |
//! | srtt | `rtt` | choice | smoothed | D1 |
//! | evenly | `pacing` | choice | true | dukkipati06 |
//!
//! Rates count bytes at the IP layer, for that is what routers see; pacing counts payload.
//!
//! Deviations:
//! D1 dukkipati06 paces without a window. A sender that hears nothing any more would then go on at R until
//! its timeout, so what is in
//!    flight is bounded; at the default the bound is out of reach while the queue adds less than one RTT.
//! D2 dukkipati06's SYN brings the first rate back. Connections start with data here, so the first window
//! leaves as TCP's does.
//! D3 a loss changes nothing: the routers know. After a timeout one packet is in flight until an ACK brings a
//! rate again.
//! D4 a header that comes back as sent, with no limit, met no router of RCP's: it changes nothing. Such paths
//! are refused
//!    before a scenario runs, for nobody would slow this sender down on them.
//! D5 a flow of `rcp-host.cc` whose packets are further apart than its least RTT asks for the rate once per
//! RTT with a packet of 40
//!    bytes. Here the router's floor of one packet per RTT takes care of that.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, ReceiverReport, Recovery, SendDirective, SendEvent,
    SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};

choices! {
    /// Which RTT the window is a multiple of.
    pub enum RttOf {
        /// The smoothed one.
        Smoothed = "smoothed",
        /// The least of the connection.
        Least = "least",
    }
}

parameters! {
    /// The settings of RCP's and E-ABC's sender.
    pub struct Config {
        /// What may be in flight, in products of the rate and the smoothed RTT.
        cap: f64 = 2.0, in 1.0..=100.0, from "D1";
        /// Which RTT that is.
        rtt: RttOf = RttOf::Smoothed, in .., from "D1";
        /// Whether packets leave evenly, or as the window lets them.
        pacing: bool = true, in .., from "dukkipati06";
    }
}

/// The rate, and what bounds it.
#[derive(Clone, Debug)]
pub struct Rcp {
    config: Config,
    mss: Bytes,
    overhead: Bytes,
    initial_window: Bytes,
    /// R at the IP layer, once a router has said one.
    rate_bps: Option<f64>,
    srtt: Duration,
    /// The last RTT sample.
    rtt: Option<Duration>,
    /// Whether one packet at a time looks for a sign of life.
    silent: bool,
    /// What the window may be at most, where somebody holds this controller within a bound.
    most: Bytes,
}

impl Rcp {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Rcp {
            config,
            mss: connection.mss,
            overhead: connection.overhead,
            initial_window: connection.initial_window,
            rate_bps: None,
            srtt: Duration::ZERO,
            rtt: None,
            silent: false,
            most: Bytes(u64::MAX),
        }
    }

    /// R in payload.
    fn payload_bps(&self) -> Option<f64> {
        let payload = self.mss.as_f64() / (self.mss + self.overhead).as_f64();
        self.rate_bps.map(|bps| bps * payload)
    }
}

impl Controller for Rcp {
    fn on_send(&mut self, _event: &SendEvent) -> SendDirective {
        let header =
            Header::Rate { bps: f32::INFINITY, rtt_s: self.rtt.map_or(0.0, |rtt| rtt.as_secs_f64()) as f32 };
        SendDirective { ecn: self.encoding().sent(), header, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.rtt = event.rtt.sample;
            self.srtt = match self.config.rtt {
                RttOf::Smoothed => event.rtt.smoothed,
                RttOf::Least => event.rtt.min,
            };
        }
        self.most = Bytes(u64::MAX);
        if let ReceiverReport::Header(Header::Rate { bps, .. }) = event.report
            && bps.is_finite()
        {
            self.rate_bps = Some(f64::from(bps).max(0.0));
            self.silent = false;
        }
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if event.kind != Timeout::Pto {
            self.silent = true;
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        if event.timeout {
            self.silent = false;
        }
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.most = most;
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn cwnd(&self) -> Bytes {
        let window = match self.payload_bps() {
            _ if self.silent => self.mss,
            Some(bps) if !self.srtt.is_zero() => {
                Bytes((self.config.cap * bps / 8.0 * self.srtt.as_secs_f64()) as u64)
            }
            _ => self.initial_window,
        };
        window.min(self.most).max(self.mss)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        // At least one bit per second: a rate of zero would never send again.
        self.payload_bps()
            .filter(|_| self.config.pacing)
            .map(|bps| Rate::from_bps_f64(bps).max(Rate::from_bps(1)))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        Encoding::Explicit
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("rate_bps", self.rate_bps.unwrap_or(0.0));
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::time::Time;
    use brakelight_testkit::events::{ack, connection, loss, packet, packets, send, timeout};

    use super::*;

    fn rcp() -> Rcp {
        Rcp::new(Config::default(), &connection(10))
    }

    fn told(rcp: &mut Rcp, bps: f32) {
        let sent = [packet(0, Time::ZERO)];
        let event = AckEvent {
            report: ReceiverReport::Header(Header::Rate { bps, rtt_s: 0.1 }),
            ..ack(Time::from_millis(100), &sent, Duration::from_millis(100))
        };
        rcp.on_ack(&event);
    }

    #[test]
    fn packets_ask_for_any_rate_and_say_the_last_rtt_once_known() {
        let mut rcp = rcp();
        let header = |rcp: &mut Rcp| rcp.on_send(&send(Time::ZERO, 1, Bytes::ZERO)).header;
        assert_eq!(header(&mut rcp), Header::Rate { bps: f32::INFINITY, rtt_s: 0.0 });
        told(&mut rcp, 1e6);
        let sent = [packet(1, Time::from_millis(100))];
        let slower = ack(Time::from_millis(400), &sent, Duration::from_millis(300));
        rcp.on_ack(&slower);
        assert_eq!(header(&mut rcp), Header::Rate { bps: f32::INFINITY, rtt_s: 0.3 });
    }

    #[test]
    fn the_window_may_count_the_least_rtt_and_go_unpaced() {
        let config = Config::new(Values { cap: 1.0, rtt: RttOf::Least, pacing: false }).unwrap();
        let mut rcp = Rcp::new(config, &connection(10));
        let sent = [packet(1, Time::from_millis(100))];
        let mut event = AckEvent {
            report: ReceiverReport::Header(Header::Rate { bps: 8.416e6, rtt_s: 0.1 }),
            ..ack(Time::from_millis(400), &sent, Duration::from_millis(300))
        };
        event.rtt.min = Duration::from_millis(100);
        rcp.on_ack(&event);
        // 1 MB/s of payload for 0.1 s in packets of 1000 bytes.
        assert_eq!((rcp.pacing_rate(), rcp.cwnd()), (None, packets(100)));
    }

    #[test]
    fn packets_leave_at_the_rate_that_came_back() {
        let mut rcp = rcp();
        assert_eq!((rcp.pacing_rate(), rcp.cwnd()), (None, packets(10)));
        told(&mut rcp, 8.416e6);
        // 8.416 Mbit/s of packets of 1052 bytes are 8 Mbit/s of payload; twice 1 MB/s for 0.1 s are 200
        // packets.
        assert_eq!(rcp.pacing_rate(), Some(Rate::from_mbps(8)));
        assert_eq!(rcp.cwnd(), packets(200));
    }

    #[test]
    fn a_loss_changes_nothing_and_a_timeout_leaves_one_packet_until_a_rate_comes() {
        let mut rcp = rcp();
        told(&mut rcp, 8.416e6);
        rcp.on_loss(&loss(Time::from_secs(1)));
        assert_eq!(rcp.cwnd(), packets(200));
        rcp.on_timeout(&timeout(Time::from_secs(2), Timeout::Rto));
        assert_eq!(rcp.cwnd(), packets(1));
        told(&mut rcp, 8.416e5);
        assert_eq!(rcp.cwnd(), packets(20));
    }

    #[test]
    fn a_header_that_no_router_touched_sets_no_rate() {
        let mut rcp = rcp();
        for said in [f32::INFINITY, f32::NAN] {
            told(&mut rcp, said);
            assert_eq!((rcp.pacing_rate(), rcp.cwnd()), (None, packets(10)));
        }
        told(&mut rcp, -1.0);
        assert_eq!((rcp.pacing_rate(), rcp.cwnd()), (Some(Rate::from_bps(1)), packets(1)));
    }
}
