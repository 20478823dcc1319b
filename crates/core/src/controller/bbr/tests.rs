//! Where the versions agree, and where they differ, by their sources.

use super::machine::Machine;
use super::{v1, v2, v3};
use crate::controller::events::{ack, connection, packet, packets, send};
use crate::controller::{AckEvent, Controller};
use crate::time::{Duration, Time};

const RTT: Duration = Duration::from_millis(100);

fn probes_rtt(controller: &dyn Controller) -> bool {
    let mut probing = false;
    controller.inspect(&mut |name, value| probing |= name == "probe_rtt" && value > 0.0);
    probing
}

/// When ProbeRTT begins if one packet in 100 ms is acknowledged and every RTT is exactly 100 ms, within 30 s.
fn first_probe(mut controller: impl Controller) -> Option<Duration> {
    (1..300).find_map(|number| {
        let now = Time::ZERO + RTT * number;
        controller.on_send(&send(now, number, packets(1)));
        let acked = [packet(number, now.saturating_sub(RTT))];
        controller.on_ack(&AckEvent { delivered: packets(number), ..ack(now, &acked, RTT) });
        probes_rtt(&controller).then(|| now.since(Time::ZERO))
    })
}

/// linux 5.11 tcp_bbr.c and google/bbr v3 tcp_bbr.c, bbr_update_min_rtt: only a smaller RTT renews the estimate.
/// The first sample, at 100 ms, is 10 s old at 10.1 s and too old one ACK later.
#[test]
fn an_rtt_equal_to_the_smallest_does_not_postpone_probe_rtt_in_versions_1_and_3() {
    let begins = Some(Duration::from_millis(10_200));
    assert_eq!(first_probe(v1::Bbr::new(v1::Config::default(), &connection(10))), begins, "version 1");
    assert_eq!(first_probe(Machine::new(v3::Config::default(), &connection(10))), begins, "version 3");
}

/// google/bbr v2alpha tcp_bbr2.c, bbr_update_min_rtt: `rs->rtt_us <= bbr->probe_rtt_min_us`.
#[test]
fn an_rtt_equal_to_the_smallest_postpones_probe_rtt_in_version_2() {
    assert_eq!(first_probe(Machine::new(v2::Config::default(), &connection(10))), None);
}
