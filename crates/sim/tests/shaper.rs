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

/// The examples of `docs/examples/shaping`: the setters that each is run with.
const EXAMPLES: [(&str, &[&str]); 3] = [
    (
        "hidden-queue",
        &[
            "",
            "fixed/rate=225Mbps",
            "autorate/min=100Mbps/base=200Mbps/max=400Mbps",
            "follow/base=200Mbps/safe=200Mbps",
        ],
    ),
    (
        "minimum-too-high",
        &[
            "",
            "autorate/min=15Mbps/base=20Mbps/max=25Mbps",
            "autorate/min=2Mbps/base=20Mbps/max=25Mbps",
            "follow/base=20Mbps/safe=2Mbps",
        ],
    ),
    ("default-base", &["", "autorate", "autorate/base=50Mbps/max=100Mbps", "follow/base=50Mbps/safe=40Mbps"]),
];

/// An example of the page, with another setter, or without a shaper.
fn example(name: &str, setter: &str) -> Run {
    let path = format!("{}/../../docs/examples/shaping/{name}.toml", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(path).unwrap();
    let (before, rest) = text.split_once("path = ").unwrap();
    assert!(rest.contains("setter=autorate"), "{name} shows what its report is about");
    let shaper = format!(", \"shaper:side=down,queue=cake,setter={setter}\"");
    let path = if setter.is_empty() { "" } else { &shaper };
    let scenario = file::read(name, &format!("{before}path = [\"link\"{path}]\n")).expect("a scenario");
    run(&scenario, &BTreeMap::new()).expect("a run").run
}

#[test]
fn the_page_says_what_setters_make_of_reported_cases() {
    let mut table = String::from(
        "| file | setter | throughput Mbit/s | p95 delay ms | rate, mean Mbit/s |\n|---|---|---|---|---|\n",
    );
    for (name, setters) in EXAMPLES {
        for setter in setters {
            let run = example(name, setter);
            let shown = if setter.is_empty() { "none".to_string() } else { format!("`{setter}`") };
            let rate = run.shapers.first().map_or("-".to_string(), |it| format!("{:.0}", it.rate_mbps));
            table += &format!(
                "| `{name}.toml` | {shown} | {:.1} | {:.0} | {rate} |\n",
                run.flows[0].throughput_mbps,
                run.one_way_delay_ms.expect("packets passed").p95 - 20.0
            );
        }
    }
    let page = format!("{}/../../docs/shaping.md", env!("CARGO_MANIFEST_DIR"));
    let text = std::fs::read_to_string(&page).unwrap();
    let (before, rest) = text.split_once("<!-- reported -->\n").unwrap();
    let (kept, after) = rest.split_once("<!-- end -->").unwrap();
    if std::env::var_os("BRAKELIGHT_BLESS").is_some() {
        std::fs::write(&page, format!("{before}<!-- reported -->\n{table}<!-- end -->{after}")).unwrap();
    } else {
        assert_eq!(kept, table, "BRAKELIGHT_BLESS=1 writes it again");
    }
}

/// cake-autorate #393: probes pass beside the queue, and a setter that reads the data's own times sees it.
#[test]
fn a_queue_that_probes_do_not_see_is_seen_in_what_passes() {
    let blind = example("hidden-queue", "autorate/min=100Mbps/base=200Mbps/max=400Mbps");
    let seeing = example("hidden-queue", "follow/base=200Mbps/safe=200Mbps");
    let p95 = |run: &Run| run.one_way_delay_ms.expect("packets passed").p95 - 20.0;
    assert!(
        p95(&blind) > 100.0 && p95(&seeing) < 0.5 * p95(&blind),
        "{} and {} ms",
        p95(&blind),
        p95(&seeing)
    );
    assert!(seeing.flows[0].throughput_mbps > 0.85 * 250.0, "{}", seeing.flows[0].throughput_mbps);
}
