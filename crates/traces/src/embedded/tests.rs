use std::collections::BTreeSet;

use super::super::OPPORTUNITY;
use super::super::statistics::Statistics;
use super::*;

/// FNV-1a over the trace as a Mahimahi file.
fn checksum(trace: &Trace) -> u64 {
    let text: String = trace.millis().map(|ms| format!("{ms}\n")).collect();
    text.bytes()
        .fold(0xcbf2_9ce4_8422_2325, |sum, byte| (sum ^ u64::from(byte)).wrapping_mul(0x0000_0100_0000_01b3))
}

/// What every machine must make of the recipes, and what every published number was measured on. A change of
/// the generator or of a recipe changes this table, knowingly.
const CHECKSUMS: &[(&str, u64)] = &[
    ("lte-driving", 0x784208eec0b9a38a),
    ("lte-walking", 0xbd5f7d1accbfe303),
    ("3g", 0x3676caafe8e4bd62),
    ("5g", 0x536dc34a62491a98),
    ("satellite", 0x136dd9be5fa0e64a),
    ("step", 0x3dd755079aa5a6d7),
    ("fixed", 0x586b5a4688b33039),
    ("fit-att-driving-down", 0x25df7774e1e76bf5),
    ("fit-att-driving-up", 0xa57da52ee4a42c30),
    ("fit-verizon-down", 0x66245e541093e85e),
    ("fit-verizon-up", 0xb47eae15918d9c22),
    ("5g-sa", 0x536dc34a62491a98),
    ("5g-nsa", 0x61b61ec3702e294d),
    ("mmwave", 0xbf72f7af19237a3f),
    ("starlink", 0x136dd9be5fa0e64a),
    ("wifi", 0x87c6fbe08bf2f4c8),
    ("5g-chosen", 0x06f8c75bf7d3b04f),
    ("satellite-chosen", 0x959b617f8c660493),
];

#[test]
fn the_same_bytes_on_every_machine() {
    let found: Vec<(&str, u64)> = EMBEDDED.iter().map(|e| (e.name, checksum(&e.trace()))).collect();
    let table: String = found.iter().map(|(name, sum)| format!("    (\"{name}\", {sum:#018x}),\n")).collect();
    assert_eq!(found, CHECKSUMS, "the table would now be\n{table}");
}

#[test]
fn lists_say_what_the_traces_are() {
    let found: Vec<(&str, f64, f64, f64)> = EMBEDDED
        .iter()
        .filter(|embedded| embedded.same_as.is_none())
        .map(|embedded| {
            let of = Statistics::of(&embedded.trace(), OPPORTUNITY);
            (embedded.name, of.mean_mbps, of.variation.cv_100ms, of.duration_s)
        })
        .collect();
    let table: String = found.iter().map(|row| format!("    {row:?},\n")).collect();
    assert_eq!(found, facts::FACTS, "the table would now be\n{table}");
}

#[test]
fn every_trace_has_the_mean_of_its_recipe() {
    for embedded in EMBEDDED {
        let Some(cellular) = embedded.recipe().cellular else { continue };
        let found = Statistics::of(&embedded.trace(), OPPORTUNITY).mean_mbps;
        let wanted = cellular.mean.as_mbps_f64();
        assert!((found / wanted - 1.0).abs() < 0.02, "{}: {found} for {wanted}", embedded.name);
    }
}

#[test]
fn the_square_wave_and_the_constant_rate_are_exact() {
    let step = Statistics::of(&Embedded::find("step").unwrap().trace(), OPPORTUNITY);
    // Half the time 12, half the time 24 Mbit/s, and every second alike.
    assert_eq!((step.mean_mbps, step.rate_1s.min_mbps, step.rate_1s.max_mbps), (18.0, 18.0, 18.0));
    assert_eq!((step.rate_100ms.min_mbps, step.rate_100ms.max_mbps), (12.0, 24.0));
    let fixed = Embedded::find("fixed").unwrap().trace();
    assert!(fixed.millis().eq(1..=60_000));
}

#[test]
fn each_stands_for_what_its_name_says() {
    let of = |name: &str| Statistics::of(&Embedded::find(name).unwrap().trace(), OPPORTUNITY);
    let (driving, walking, slow, fast, satellite) =
        (of("lte-driving"), of("lte-walking"), of("3g"), of("5g"), of("satellite"));
    assert!(walking.variation.cv_1s < driving.variation.cv_1s, "walking is steadier");
    assert!(walking.autocorrelation_at(10_000) > driving.autocorrelation_at(10_000), "and remembers longer");
    assert!(driving.doubles > 0.02 && driving.halves > 0.02, "driving doubles and halves within a second");
    assert!(driving.outages.count > 5 && slow.outages.share > driving.outages.share);
    assert!(slow.mean_mbps < 2.0 && fast.mean_mbps > 100.0);
    assert!(fast.rate_100ms.p5_mbps < 0.3 * fast.rate_100ms.p50_mbps, "blockages show");
    let seconds = super::super::statistics::bins(&Embedded::find("satellite").unwrap().trace(), 15_000);
    let changes =
        seconds.windows(2).filter(|pair| (pair[1] as f64 / pair[0] as f64 - 1.0).abs() > 0.1).count();
    assert!(changes >= 4 && satellite.outages.count > 0, "{seconds:?}");
}

#[test]
fn a_name_without_a_recipe_of_its_own_has_another_ones() {
    let others: Vec<(&str, &str)> = EMBEDDED.iter().filter_map(|e| Some((e.name, e.same_as?))).collect();
    assert_eq!(others, [("5g", "5g-sa"), ("satellite", "starlink")]);
    for (name, other) in others {
        assert_eq!(Embedded::find(name).unwrap().recipe(), Embedded::find(other).unwrap().recipe());
    }
}

#[test]
fn names_are_unique_and_lengths_enough_for_a_run_of_a_minute() {
    let names: BTreeSet<&str> = EMBEDDED.iter().map(|embedded| embedded.name).collect();
    assert_eq!(names.len(), EMBEDDED.len());
    for embedded in EMBEDDED {
        let seconds = embedded.trace().period().as_secs_f64();
        // Those of today's links are as long as the recordings they were fitted to.
        let most = if embedded.recipe().measured.is_some() { 300.0 } else { 140.0 };
        assert!((60.0..=most).contains(&seconds), "{}: {seconds} s", embedded.name);
        assert!(!embedded.recipe().about.trim().is_empty(), "{}", embedded.name);
    }
}
