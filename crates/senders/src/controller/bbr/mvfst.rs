//! What version 2 does otherwise in mvfst (facebook/mvfst, `quic/congestion_control/Bbr2.cpp`, of 2025):
//!
//! ```text
//! too high        when one ACK reports more than 2 % of what was in flight as lost (Linux: the losses since
//!                 the packet was sent); one reaction for each probe, however late
//! then            what was in flight bounds the flight, and the estimate the bandwidth
//! losses          lower the short-term bounds in Startup and Refill too
//! Startup         that ends by losses (in three ACKs of a round) sets no bound
//! Up ends         after min_rtt, when 1.25 BDP were delivered within a round
//! probes          every 2 to 3 s, never at Reno's pace
//! window          2 BDP and what ACKs brought at once, up to a window (Linux: up to 100 ms of the bandwidth)
//! after a loss    what is in flight, until a packet sent later is acknowledged; then what it was before
//! ```
//!
//! The BDP is that of the bounded estimate, where Linux takes the largest bandwidth. The gains differ too
//! (`v2.rs`).

use brakelight_core::controller::AckEvent;
use brakelight_core::sender::RateSample;
use brakelight_core::units::{Bytes, Rate};

use super::bounds::UNBOUNDED;
use super::machine::{Machine, State};
use super::settings::Version;

impl Machine {
    /// Bbr2.cpp, adaptUpperBounds.
    pub(super) fn adapt_upper_bounds(&mut self, event: &AckEvent<'_>, sample: &RateSample) {
        if self.is_too_high(event.newly_lost, sample.tx_in_flight) {
            if self.probing.is_sample {
                self.on_inflight_too_high(event, sample.tx_in_flight, sample.app_limited);
            }
            return;
        }
        if self.long.inflight == UNBOUNDED {
            return;
        }
        self.long.inflight = self.long.inflight.max(sample.tx_in_flight);
        self.long.bandwidth = self.long.bandwidth.max(self.short.latest_bandwidth);
        if self.state == State::Up {
            self.probe_upward(event);
        }
    }

    /// Follows packet conservation, and says whether the window is what is in flight at this ACK: Bbr2.cpp,
    /// onPacketAckOrLoss. Always false but in mvfst.
    pub(super) fn conserves(&mut self, event: &AckEvent<'_>) -> bool {
        if !self.is_version(Version::Mvfst) {
            return false;
        }
        if event.newly_lost > Bytes::ZERO {
            // Its flag for recovery is never set, so that each loss saves anew.
            let probing_rtt = matches!(self.state, State::ProbeRtt { .. });
            self.prior_cwnd = if probing_rtt { self.prior_cwnd.max(self.cwnd) } else { self.cwnd };
            self.conservation = Some(event.now);
            return true;
        }
        let newest = event.acked.iter().max_by_key(|packet| packet.number);
        if let (Some(since), Some(newest)) = (self.conservation, newest)
            && newest.sent_at >= since
        {
            self.conservation = None;
            self.restore_cwnd();
        }
        self.conservation.is_some()
    }

    /// By how much ACK aggregation widens the window: Bbr2.cpp, setCwnd, knows no limit in time.
    pub(super) fn extra_acked(&self, bandwidth: Rate) -> Bytes {
        match self.settings.version {
            Version::Mvfst => self.aggregation.largest(),
            Version::V2 | Version::V3 => self.aggregation.extra(bandwidth),
        }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::controller::{Controller, PacketInfo};
    use brakelight_core::time::{Duration, Time};
    use brakelight_testkit::events::{ack, connection, packet, packets};

    use super::super::v2::{Config, Rules, Values};
    use super::*;

    const RTT: Duration = Duration::from_millis(100);

    /// A flow of either rules that fills 8 Mbit/s over 100 ms, 100 packets of 1000 bytes, and probes.
    fn probing(rules: Rules) -> Machine {
        let config = Config::new(Values { rules, ..Values::default() }).unwrap();
        let mut machine = Machine::new(config, &connection(100));
        let acked = [packet(1, Time::ZERO)];
        machine.on_ack(&AckEvent { delivered: packets(1), ..ack(Time::ZERO + RTT, &acked, RTT) });
        machine.state = State::Up;
        machine.full.reached = true;
        machine.bandwidth = [Rate::from_mbps(8), Rate::ZERO];
        machine.cwnd = packets(200);
        machine.probing.is_sample = true;
        machine
    }

    /// An ACK of a packet that was sent 100 ms before with `inflight` packets on the path, which finds `lost`
    /// packets lost.
    fn hear(machine: &mut Machine, ms: u64, inflight: u64, lost: u64) {
        let now = Time::from_millis(ms);
        let sent_at = now.saturating_sub(RTT);
        let acked = [PacketInfo { inflight: packets(inflight), delivered: packets(1), ..packet(9, sent_at) }];
        machine.on_ack(&AckEvent {
            newly_lost: packets(lost),
            inflight: packets(60),
            delivered: packets(101),
            ..ack(now, &acked, RTT)
        });
    }

    /// Three of 125 packets are 2.4 %, two are 1.6 %.
    #[test]
    fn a_probe_goes_too_far_by_the_losses_of_one_ack() {
        let mut machine = probing(Rules::Mvfst);
        hear(&mut machine, 150, 125, 2);
        hear(&mut machine, 160, 125, 2);
        assert_eq!((machine.state, machine.long.inflight), (State::Up, UNBOUNDED));
        hear(&mut machine, 170, 125, 3);
        // Down, and at once Cruise: 60 packets in flight are below the product.
        assert_eq!((machine.state, machine.long.inflight), (State::Cruise, packets(125)));
        assert_eq!(machine.long.bandwidth, Rate::from_mbps(8));
        // The probe has had its one reaction.
        hear(&mut machine, 180, 110, 9);
        assert_eq!(machine.long.inflight, packets(125));
    }

    #[test]
    fn the_window_is_what_is_in_flight_until_a_packet_sent_after_the_loss_is_acknowledged() {
        let mut machine = probing(Rules::Mvfst);
        hear(&mut machine, 150, 100, 1);
        assert_eq!(machine.cwnd, packets(61));
        hear(&mut machine, 240, 100, 0);
        assert_eq!(machine.cwnd, packets(61));
        hear(&mut machine, 250, 100, 0);
        assert!(machine.cwnd >= packets(200), "{:?}", machine.cwnd);
        let mut linux = probing(Rules::Linux);
        hear(&mut linux, 150, 100, 1);
        assert!(linux.cwnd >= packets(200), "{:?}", linux.cwnd);
    }

    #[test]
    fn the_pacing_gain_after_a_probe_is_that_of_the_rules_unless_it_is_given() {
        for (rules, given, gain) in
            [(Rules::Linux, None, 0.75), (Rules::Mvfst, None, 0.9), (Rules::Mvfst, Some(0.8), 0.8)]
        {
            let config = Config::new(Values { rules, down_pacing_gain: given, ..Values::default() }).unwrap();
            let machine = Machine::new(config, &connection(10));
            assert_eq!(machine.settings.down_pacing_gain, gain);
        }
    }
}
