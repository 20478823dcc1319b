//! Conversions of samples of today's data sets. Needs the samples: the folder `links` of the one that
//! BRAKELIGHT_SHARED names, `../shared` beside the workspace by default; without it, says what it did not
//! run. The expected rates were computed from the files by other means, named beside each.

use std::path::{Path, PathBuf};

use brakelight_testkit::skip;
use brakelight_traces::OPPORTUNITY;
use brakelight_traces::convert::{ConvertOptions, Converted, Selection, convert_file};
use brakelight_traces::statistics::Statistics;

/// Half a per cent.
const NEAR: f64 = 0.005;

fn sample(name: &str) -> Option<PathBuf> {
    skip::recording(&format!("links/{name}"))
}

fn convert(path: &Path, selection: Selection) -> Converted {
    let options = ConvertOptions { selection, ..ConvertOptions::default() };
    convert_file(path, None, options).unwrap_or_else(|error| panic!("{error}"))
}

/// Name, direction, format, mean in Mbit/s, length in s, longest gap in ms.
type Sample = (&'static str, Selection, &'static str, f64, f64, u64);

fn check(&(name, selection, format, mbps, seconds, gap): &Sample) {
    let Some(path) = sample(name) else { return };
    let converted = convert(&path, selection);
    assert_eq!(converted.format.to_string(), format, "{name}");
    let statistics = Statistics::of(&converted.trace, OPPORTUNITY);
    let off = statistics.mean_mbps / mbps - 1.0;
    let found = (statistics.mean_mbps, statistics.duration_s, statistics.outages.longest_ms);
    assert!(off.abs() <= NEAR, "{name} {selection}: {found:?}");
    assert!((statistics.duration_s - seconds).abs() < 0.5, "{name} {selection}: {found:?}");
    assert!(statistics.outages.longest_ms.abs_diff(gap) <= 5, "{name} {selection}: {found:?}");
}

/// Computed by a script of thirty lines apart from the program: the rows' rates in whole bit/s weighted by
/// how long they last, and the time between successive multiples of 1500 bytes.
const SAMPLES: [Sample; 20] = [
    ("columns/5g_103_driving.txt", Selection::OneDirection, "columns", 296.8771, 236.0, 3001),
    ("columns/5g_115_walking.txt", Selection::OneDirection, "columns", 457.781, 799.0, 5001),
    ("columns/office-wifi_0.txt", Selection::OneDirection, "columns", 27.3053, 299.849, 304),
    ("columns/rest-wifi_0.txt", Selection::OneDirection, "columns", 26.1173, 299.817, 675),
    ("columns/xu5g_0.txt", Selection::OneDirection, "columns", 331.8363, 299.906, 6219),
    ("iperf3-text/5g-nsa-1.down.txt", Selection::Down, "iperf3-text", 228.9682, 60.0, 201),
    ("iperf3-text/5g-nsa-1.up.txt", Selection::Up, "iperf3-text", 32.7501, 60.0, 1901),
    ("iperf3-text/5g-nsa-2.down.txt", Selection::Down, "iperf3-text", 117.294, 60.0, 1102),
    ("iperf3-text/5g-sa-1.down.txt", Selection::Down, "iperf3-text", 220.4232, 60.0, 1201),
    ("iperf3-text/5g-sa-1.up.txt", Selection::Up, "iperf3-text", 74.42, 60.0, 301),
    ("iperf3-text/5g-sa-2.down.txt", Selection::Down, "iperf3-text", 61.6838, 60.0, 11451),
    ("csv/starlink-driving.csv", Selection::Down, "csv", 214.113, 900.015, 2002),
    ("csv/starlink-driving.csv", Selection::Up, "csv", 16.0549, 900.001, 49005),
    ("csv/5g-gnettrack-driving.csv", Selection::Down, "csv", 11.6322, 312.0, 5894),
    ("csv/5g-gnettrack-driving.csv", Selection::Up, "csv", 0.1096, 312.0, 6139),
    ("csv/5g-gnettrack-static.csv", Selection::Down, "csv", 77.8413, 316.0, 4007),
    ("csv/5g-gnettrack-static.csv", Selection::Up, "csv", 0.1603, 316.0, 4546),
    ("mahimahi/3g-CampusWalk.down", Selection::OneDirection, "mahimahi", 8.9468, 300.004, 122),
    ("mahimahi/3g-rapidGold.down", Selection::OneDirection, "mahimahi", 9.9806, 300.0, 818),
    ("leoreplayer/starlink.bw", Selection::OneDirection, "mahimahi", 48.7441, 120.052, 135),
];

#[test]
fn every_sample_converts_to_what_its_file_says() {
    SAMPLES.iter().for_each(check);
}

#[test]
fn what_to_know_about_a_sample_is_said() {
    let Some(sent) = sample("iperf3-text/5g-sa-1.up.txt") else { return };
    let warnings = convert(&sent, Selection::OneDirection).warnings;
    assert!(warnings[0].contains("all in all 74.3 Mbit/s, where 73.5 Mbit/s arrived"), "{warnings:?}");
    let received = sent.with_file_name("5g-sa-1.down.txt");
    assert_eq!(convert(&received, Selection::OneDirection).warnings, Vec::<String>::new());
    let table = sent.with_file_name("../csv/starlink-driving.csv");
    let options = ConvertOptions::default();
    let refusal = convert_file(&table, None, options).unwrap_err().to_string();
    assert!(refusal.contains("`download`, `upload`") && refusal.contains("--direction down"), "{refusal}");
    let warnings = convert(&table, Selection::Down).warnings;
    assert!(warnings[0].contains("names no unit"), "{warnings:?}");
    assert!(warnings[1].starts_with("15 gaps"), "{warnings:?}");
}
