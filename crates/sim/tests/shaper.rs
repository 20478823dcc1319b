//! A shaper before a link that it does not own: where the queue stands, and who moves the rate.

use std::collections::BTreeMap;

use brakelight_scenario::file;
use brakelight_scenario::outcome::Run;
use brakelight_sim::run;

/// 30 s of Cubic over 20 Mbit/s and a buffer of 1000 packets, through `shaper`, from the sixth second on.
fn through(shaper: &str, link: &str) -> Run {
    let text = format!(
        "duration = \"30s\"\nmeasure_from = \"5s\"\n[[link]]\nname = \"l\"\n{link}\nbuffer = \"1000pkt\"\n\
         [[flow]]\ncontroller = \"cubic\"\nrtt = \"40ms\"\npath = [{shaper}\"l\"]\n"
    );
    let scenario = file::read("shaper.toml", &text).expect("a scenario");
    run(&scenario, &BTreeMap::new()).expect("a run").run
}

fn queued_ms(run: &Run) -> f64 {
    run.links[0].queueing_delay_ms.expect("packets passed").p95
}

const STEADY: &str = "rate = \"20Mbps\"";

#[test]
fn a_slower_shaper_takes_the_queue_from_the_link() {
    let without = through("", STEADY);
    assert!(queued_ms(&without) > 300.0, "{}", queued_ms(&without));
    let shaped = through("\"shaper:queue=cake,setter=fixed/rate=16Mbps\", ", STEADY);
    assert!(queued_ms(&shaped) < 2.0, "{}", queued_ms(&shaped));
    assert!((15.0..16.1).contains(&shaped.throughput_mbps), "{}", shaped.throughput_mbps);
    // CAKE keeps its own queue short, so that the round trip stays near 40 ms.
    let rtt_ms = shaped.flows[0].rtt_ms.expect("samples");
    assert!(rtt_ms.p95 < 75.0, "{rtt_ms:?}");
    // A shaper that is faster than the link is no bottleneck.
    let faster = through("\"shaper:queue=cake,setter=fixed/rate=30Mbps\", ", STEADY);
    assert!(queued_ms(&faster) > 300.0, "{}", queued_ms(&faster));
}

#[test]
fn a_setter_that_measures_follows_a_link_that_halves() {
    let link = "steps = [[\"15s\", \"20Mbps\"], [\"15s\", \"10Mbps\"]]";
    let fixed = through("\"shaper:queue=cake,setter=fixed/rate=18Mbps\", ", link);
    let autorate = through("\"shaper:queue=cake,setter=autorate/min=4Mbps/base=18Mbps/max=20Mbps\", ", link);
    assert!(queued_ms(&fixed) > 500.0, "{}", queued_ms(&fixed));
    assert!(queued_ms(&autorate) < 0.5 * queued_ms(&fixed), "{} ms", queued_ms(&autorate));
    let shaper = &autorate.shapers[0];
    assert!(shaper.probes > 0 && shaper.lowest_mbps < 12.0, "{shaper:?}");
}
