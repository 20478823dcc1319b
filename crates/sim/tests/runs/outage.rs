//! What flows do after an outage (docs/what-we-found.md).

use std::collections::BTreeMap;

use brakelight_scenario::file::read;

/// Throughput in Mbit/s of each second of a flow whose link of 20 Mbit/s fails from second 10 to second 20.
fn seconds(controller: &str, buffer: u32) -> Vec<f64> {
    let text = format!(
        "duration = \"50s\"\nrecord = {{ series = true, bin = \"1s\" }}\n[[link]]\nname = \"l\"\n\
         steps = [[\"10s\", \"20Mbps\"], [\"10s\", \"0bps\"], [\"30s\", \"20Mbps\"]]\nbuffer = \"{buffer}pkt\"\n\
         [[flow]]\nname = \"f\"\ncontroller = \"{controller}\"\nhost = \"tcp\"\nrtt = \"250ms\"\npath = [\"l\"]\n"
    );
    let outcome = brakelight_sim::run(&read("outage.toml", &text).unwrap(), &BTreeMap::new()).unwrap();
    outcome.series.unwrap().flows.remove(0).throughput_mbps
}

/// The first second from 21 on in which more than 1 Mbit/s arrived.
fn goes_on(seconds: &[f64]) -> Option<usize> {
    (21..seconds.len()).find(|second| seconds[*second] > 1.0)
}

#[test]
fn bbr_is_silent_for_21_s_after_an_outage_of_10_s() {
    for controller in ["bbr", "bbr3"] {
        let seconds = seconds(controller, 417);
        assert_eq!(goes_on(&seconds), Some(41), "{controller}: {seconds:?}");
        assert!(seconds[21..41].iter().all(|mbps| *mbps == 0.0), "{controller}: {seconds:?}");
        // ProbeRTT takes a quarter of a second.
        assert!(seconds[42..].iter().all(|mbps| *mbps > 14.0), "{controller}: {seconds:?}");
    }
}

#[test]
fn others_go_on_at_once_and_so_does_bbr_where_nothing_was_dropped() {
    for (controller, buffer) in [("cubic", 417), ("newreno", 417), ("bbr2", 417), ("bbr", 1668)] {
        assert_eq!(goes_on(&seconds(controller, buffer)), Some(21), "{controller}");
    }
}
