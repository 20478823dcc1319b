//! XCP's sender (Katabi, Handley, Rohrs, SIGCOMM 2002, `katabi02`): the window changes by what the routers
//! say.
//!
//! ```text
//! each packet carries:  H_cwnd = cwnd, H_rtt = srtt (0 at first),
//!                       H_feedback = (r srtt - cwnd) / packets in cwnd; without limit where there is no r
//!                                                                                               katabi02 3.3
//! each ACK:             cwnd = max(cwnd + H_feedback, s)                          katabi02 3.3
//! loss, timeout:        as TCP: cwnd = max(b cwnd, 2 s); cwnd = s                 katabi02 3.3, rfc5681 eq.4
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | cwnd | `cwnd_bytes` | bytes of payload | the connection's | katabi02 3.3 |
//! | r | `demand` | bit/s | none | katabi02 3.3 |
//! | b | `decrease` | 1 | 0.5 | rfc5681 eq.4 |
//!
//! Headers count bytes at the IP layer, for that is what routers see; the window counts payload.
//!
//! Deviations:
//! D1 the window does not grow while it is not the limit, nor during a fast recovery, as that of any TCP
//! here; a flow that
//!    has nothing to send asks for nothing, so that its share goes to the others.
//! D2 a header that comes back as asked, without limit, met no router of XCP's: it opens no window.
//! katabi02 8.2 has the sender
//!    revert to TCP on such paths; here a scenario with one is refused before it runs.
//! D3 XCPw (abc20 7.3) is this sender with another router.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, ReceiverReport, SendDirective, SendEvent,
    SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::window;

parameters! {
    /// XCP's settings.
    pub struct Config {
        /// The rate the flow wants, headers included; none: what the routers grant.
        demand: Option<Rate> = None, in brakelight_core::parameters::OrNone(Rate::from_bps(1000)..=Rate::from_mbps(1_000_000)), from "katabi02 3.3";
        /// What is left of the window after a loss.
        decrease: f64 = 0.5, in 0.1..=0.95, from "rfc5681 eq.4";
    }
}

/// XCP's window.
#[derive(Clone, Debug)]
pub struct Xcp {
    config: Config,
    mss: Bytes,
    overhead: Bytes,
    initial_window: Bytes,
    cwnd_bytes: f64,
    /// `cwnd_bytes` before the last episode.
    before_bytes: Option<f64>,
    /// The change of the last ACK, for plots.
    feedback_bytes: f64,
}

impl Xcp {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Xcp {
            config,
            mss: connection.mss,
            overhead: connection.overhead,
            initial_window: connection.initial_window,
            cwnd_bytes: connection.initial_window.as_f64(),
            before_bytes: None,
            feedback_bytes: 0.0,
        }
    }

    /// Bytes at the IP layer for each byte of payload.
    fn on_wire(&self) -> f64 {
        (self.mss + self.overhead).as_f64() / self.mss.as_f64()
    }

    fn set(&mut self, cwnd_bytes: f64) {
        self.cwnd_bytes = cwnd_bytes.max(self.mss.as_f64());
    }

    // katabi02 3.3
    fn requested_bytes(&self, cwnd_bytes: f64, srtt: Option<Duration>) -> f64 {
        match (self.config.demand, srtt) {
            (Some(rate), Some(srtt)) => {
                let packets = (self.cwnd_bytes / self.mss.as_f64()).max(1.0);
                (rate.as_bps_f64() / 8.0 * srtt.as_secs_f64() - cwnd_bytes) / packets
            }
            _ => f64::INFINITY,
        }
    }
}

impl Controller for Xcp {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        let cwnd_bytes = self.cwnd_bytes * self.on_wire();
        let requested_bytes = self.requested_bytes(cwnd_bytes, event.srtt);
        let header = Header::Xcp {
            cwnd_bytes: cwnd_bytes as f32,
            rtt_s: event.srtt.map_or(0.0, |srtt| srtt.as_secs_f64()) as f32,
            // D1
            feedback_bytes: if event.app_limited { requested_bytes.min(0.0) } else { requested_bytes } as f32,
        };
        SendDirective { ecn: self.encoding().sent(), header, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let ReceiverReport::Header(Header::Xcp { feedback_bytes, .. }) = event.report else { return };
        // D2; a header that is no number says nothing either.
        if !feedback_bytes.is_finite() {
            return;
        }
        let change_bytes = f64::from(feedback_bytes) / self.on_wire();
        // D1
        if change_bytes > 0.0 && (event.in_recovery() || !event.cwnd_limited) {
            return;
        }
        self.feedback_bytes = change_bytes;
        self.set((self.cwnd_bytes + change_bytes).min(1e15));
    }

    fn on_loss(&mut self, _event: &LossEvent) {
        self.before_bytes = Some(self.cwnd_bytes);
        let least_bytes = (2.0 * self.mss.as_f64()).min(self.cwnd_bytes);
        self.set((self.cwnd_bytes * self.config.decrease).max(least_bytes));
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let left_pkts = match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => 1.0,
            // rfc9002 7.6.2
            Timeout::PersistentCongestion => 2.0,
        };
        if !event.repeated {
            self.before_bytes = Some(self.cwnd_bytes);
        }
        self.set(self.cwnd_bytes.min(left_pkts * self.mss.as_f64()));
    }

    fn on_spurious_loss(&mut self, _event: &SpuriousEvent) {
        if let Some(before_bytes) = self.before_bytes.take() {
            self.set(self.cwnd_bytes.max(before_bytes));
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before_bytes = None;
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        let (left, _) =
            window::restarted(Bytes(self.cwnd_bytes as u64), Bytes::ZERO, self.initial_window, event);
        self.set(left.as_f64());
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.set(self.cwnd_bytes.min(most.as_f64()));
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.set(self.cwnd_bytes);
    }

    fn cwnd(&self) -> Bytes {
        Bytes(self.cwnd_bytes as u64).max(self.mss)
    }

    fn encoding(&self) -> Encoding {
        Encoding::Explicit
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("feedback_bytes", self.feedback_bytes);
    }
}

#[cfg(test)]
mod tests {
    use brakelight_testkit::events::{ack, connection, loss, packet, packets, send, timeout};

    use super::*;

    fn near(a: f64, b: f64) {
        assert!((a - b).abs() <= 1e-6 * b.abs().max(1.0), "{a} is not {b}");
    }

    fn xcp(config: Config) -> Xcp {
        Xcp::new(config, &connection(10))
    }

    fn fed_back(xcp: &mut Xcp, feedback_bytes: f32) {
        let sent = [packet(0, Time::ZERO)];
        let header = Header::Xcp { cwnd_bytes: 1e4, rtt_s: 0.1, feedback_bytes };
        let event = AckEvent {
            report: ReceiverReport::Header(header),
            ..ack(Time::from_millis(100), &sent, Duration::from_millis(100))
        };
        xcp.on_ack(&event);
    }

    fn sent(xcp: &mut Xcp, event: SendEvent) -> (f32, f32, f32) {
        match xcp.on_send(&event).header {
            Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes } => (cwnd_bytes, rtt_s, feedback_bytes),
            other => panic!("{other:?}"),
        }
    }

    #[test]
    fn packets_say_the_window_on_the_wire_and_the_rtt_once_known() {
        let mut xcp = xcp(Config::default());
        let first = SendEvent { srtt: None, ..send(Time::ZERO, 0, Bytes::ZERO) };
        // Ten packets of 1000 bytes and 52 of headers.
        assert_eq!(sent(&mut xcp, first), (10_520.0, 0.0, f32::INFINITY));
        assert_eq!(sent(&mut xcp, send(Time::ZERO, 1, Bytes::ZERO)), (10_520.0, 0.1, f32::INFINITY));
    }

    #[test]
    fn a_flow_with_a_demand_asks_for_what_it_lacks_a_window_s_packets_at_a_time() {
        let demand = Some(Rate::from_bps(1_600_000));
        let mut xcp = xcp(Config::new(Values { demand, ..Values::default() }).unwrap());
        // 200 kB/s * 0.1 s = 20,000 bytes; 10,520 are there; ten packets ask for a tenth of the rest each.
        let (_, _, requested) = sent(&mut xcp, send(Time::ZERO, 1, Bytes::ZERO));
        near(f64::from(requested), 948.0);
    }

    #[test]
    fn a_flow_with_nothing_to_send_asks_for_nothing() {
        let mut xcp = xcp(Config::default());
        let event = SendEvent { app_limited: true, ..send(Time::ZERO, 1, Bytes::ZERO) };
        assert_eq!(sent(&mut xcp, event).2, 0.0);
    }

    #[test]
    fn the_window_changes_by_what_comes_back_and_keeps_one_packet() {
        let mut xcp = xcp(Config::default());
        fed_back(&mut xcp, 526.0);
        // 526 bytes on the wire are 500 of payload.
        near(xcp.cwnd_bytes, 10_500.0);
        fed_back(&mut xcp, -1052.0);
        near(xcp.cwnd_bytes, 9_500.0);
        fed_back(&mut xcp, -1e9);
        assert_eq!(xcp.cwnd(), packets(1));
    }

    #[test]
    fn a_header_that_no_router_touched_opens_no_window() {
        let mut xcp = xcp(Config::default());
        for said in [f32::INFINITY, f32::NAN, f32::NEG_INFINITY] {
            fed_back(&mut xcp, said);
            assert_eq!(xcp.cwnd(), packets(10));
        }
    }

    #[test]
    fn losses_and_timeouts_count_as_for_tcp() {
        let mut xcp = xcp(Config::default());
        xcp.on_loss(&loss(Time::from_secs(1)));
        assert_eq!(xcp.cwnd(), packets(5));
        xcp.on_timeout(&timeout(Time::from_secs(2), Timeout::Rto));
        assert_eq!(xcp.cwnd(), packets(1));
        xcp.on_spurious_loss(&SpuriousEvent { now: Time::from_secs(3), timeout: true });
        assert_eq!(xcp.cwnd(), packets(5));
    }
}
