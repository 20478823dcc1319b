//! What the base station of 5G does beside what others have published: the tables of docs/validation/nr.md.

use std::fmt::Write;

use brakelight_core::packet::PacketId;
use brakelight_core::parameters::Parameters;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_links::nr::{Config, Nr};
use brakelight_registry::{Options, QueueConfig};
use brakelight_testkit::Sample;
use brakelight_testkit::part::check;

/// The best index always, and no errors.
const CLEAR: Options<'static> = &[("snr", "40"), ("shadow", "0"), ("fading", "none"), ("bler", "0")];

/// LTE's frame, and its times as 3GPP counts them: 3 ms to decode and to answer.
const LTE: Options<'static> = &[
    ("pattern", "fdd"),
    ("scs", "15"),
    ("blocks", "50"),
    ("k1", "4"),
    ("k2", "4"),
    ("turnaround", "4"),
    ("decode", "3"),
];

fn config(options: &[Options<'_>]) -> Config {
    Config::from_options(options.concat()).unwrap()
}

fn station(options: &[Options<'_>]) -> Nr<Sample> {
    let queue = QueueConfig::new("droptail", &[]).unwrap();
    let site = Site { random: Random::stream(1, "nr"), ids: PacketId(1 << 63) };
    Nr::new(&config(options), &queue, Limit::Packets(500), site)
}

/// How long packets take, each alone: one in every second, at phases spread over 20 ms.
struct Lone {
    mean_ms: f64,
    least_ms: f64,
    most_ms: f64,
}

fn lone(options: &[Options<'_>]) -> Lone {
    const PACKETS: u64 = 400;
    let mut station = station(options);
    let mut delays_ms = Vec::new();
    for index in 0..PACKETS {
        let phase = Duration::from_nanos(20_000_000 * (2 * index + 1) / (2 * PACKETS));
        let at = Time::from_secs(1 + index) + phase;
        station.accept(at, Sample::new(index, 100));
        while let Some(wake) = station.next_wakeup() {
            while let Some(output) = station.poll(wake) {
                assert!(matches!(output, Output::Departed(_)));
                delays_ms.push(output.at().since(at).as_millis_f64());
            }
        }
    }
    assert_eq!(delays_ms.len() as u64, PACKETS);
    Lone {
        mean_ms: delays_ms.iter().sum::<f64>() / PACKETS as f64,
        least_ms: delays_ms.iter().copied().fold(f64::INFINITY, f64::min),
        most_ms: delays_ms.iter().copied().fold(0.0, f64::max),
    }
}

const PATTERNS: [(&str, Options<'static>); 6] = [
    ("FDD, 15 kHz", &[("pattern", "fdd"), ("scs", "15"), ("blocks", "106")]),
    ("FDD, 30 kHz", &[("pattern", "fdd")]),
    ("`DDDSU`, 30 kHz", &[]),
    ("`DDDDDDDSUU`, 30 kHz", &[("pattern", "DDDDDDDSUU"), ("special", "6/4/4")]),
    ("`DDSUU`, 30 kHz", &[("pattern", "DDSUU")]),
    ("`DDSU`, 120 kHz", &[("pattern", "DDSU"), ("scs", "120"), ("blocks", "66")]),
];

#[test]
fn latency_by_pattern() {
    let mut table = String::from(
        "| pattern | down, mean (most) | up, after a request | up, own blocks | failed once, down | failed once, up |\n\
         |---|---|---|---|---|---|\n",
    );
    for (name, pattern) in PATTERNS {
        let show = |options: Options<'_>| {
            let lone = lone(&[CLEAR, pattern, options]);
            format!("{:.2} ({:.2})", lone.mean_ms, lone.most_ms)
        };
        let clear = |options: Options<'_>| lone(&[CLEAR, pattern, options]).mean_ms;
        // Nine of ten first attempts fail, and no second: what a failure adds.
        let adds = |options: Options<'_>| {
            let failing: Options<'_> = &[("bler", "0.9"), ("combining", "0")];
            (lone(&[CLEAR, pattern, failing, options]).mean_ms - clear(options)) / 0.9
        };
        let own: Options<'_> = &[("direction", "up"), ("configured", "11")];
        writeln!(
            table,
            "| {name} | {} | {} | {} | +{:.1} | +{:.1} |",
            show(&[]),
            show(&[("direction", "up")]),
            show(own),
            adds(&[]),
            adds(own)
        )
        .unwrap();
    }
    check("nr", "latency", &table);
}

#[test]
fn published_numbers() {
    let mut table = String::from("| number | published | here |\n|---|---|---|\n");
    let mut row = |what: &str, published: &str, here: String| {
        writeln!(table, "| {what} | {published} | {here} |").unwrap();
    };
    let up: Options<'_> = &[("direction", "up")];
    for (request, published) in [("10ms", 17.0), ("1ms", 12.5)] {
        let mean = lone(&[CLEAR, LTE, up, &[("request", request)]]).mean_ms;
        assert!((mean - published).abs() < 0.05, "{request}: {mean}");
        row(
            &format!(
                "LTE: mean delay up after a request, one opportunity in {request} (ts36881 table 5.2.1-1)"
            ),
            &format!("{published} ms"),
            format!("{mean:.2} ms"),
        );
    }
    let round = {
        let failing: Options<'_> = &[("bler", "0.9"), ("combining", "0")];
        // The longest wait for a slot, and one round more.
        lone(&[CLEAR, LTE, failing]).most_ms - lone(&[CLEAR, LTE]).most_ms
    };
    assert!((round - 8.0).abs() < 1e-6, "{round}");
    row("LTE: from a block to its repetition (ts36213 7.1.1)", "8 ms", format!("{round:.2} ms"));
    let formula = |share: f64, overhead: f64| {
        4.0 * 8.0 * 948.0 / 1024.0 * 273.0 * 12.0 * 14.0 / 0.5e-3 * (1.0 - overhead) * share * 1e-6
    };
    let peaks: [(&str, Options<'_>, f64); 3] = [
        ("down, all slots", &[("pattern", "fdd"), ("layers", "4")], formula(1.0, 0.14)),
        ("down, `DDDSU`, 10 symbols in S", &[("layers", "4")], formula((3.0 + 10.0 / 14.0) / 5.0, 0.14)),
        ("up, `DDDSU`", &[("layers", "4"), ("direction", "up")], formula(0.2, 0.08)),
    ];
    for (name, options, published) in peaks {
        let peak = config(&[CLEAR, options]).peak().as_mbps_f64();
        assert!((peak / published - 1.0).abs() < 1e-3, "{name}: {peak}");
        row(
            &format!("peak rate of 100 MHz, 4 layers, 256-QAM, {name} (ts38306 4.1.2)"),
            &format!("{published:.0} Mbit/s"),
            format!("{peak:.0} Mbit/s"),
        );
    }
    // As fast as the model can be at 120 kHz: what waits is sent at once, nothing is decoded.
    let fastest: Options<'_> = &[("scs", "120"), ("blocks", "66"), ("pattern", "DDSU"), ("decode", "0")];
    let (down, up) = (
        lone(&[CLEAR, fastest]).least_ms,
        lone(&[
            CLEAR,
            fastest,
            &[("direction", "up"), ("request", "125us"), ("turnaround", "1"), ("k2", "1")],
        ])
        .least_ms,
    );
    row("millimeter waves, least delay measured down (fezeu23)", "0.09 ms", format!("{down:.3} ms"));
    row("millimeter waves, least delay measured up (fezeu23)", "0.76 ms", format!("{up:.3} ms"));
    check("nr", "published", &table);
}
