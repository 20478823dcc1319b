//! The fitted recipes beside the recordings they were fitted to. Needs the recordings: the folder `traces` of
//! the one that BRAKELIGHT_SHARED names, `../shared` beside the workspace by default; without it, says what
//! it did not run.

use std::path::{Path, PathBuf};

use brakelight_links::trace::Trace;
use brakelight_traces::OPPORTUNITY;
use brakelight_traces::embedded::{Embedded, FITTED};
use brakelight_traces::names::read;
use brakelight_traces::statistics::Statistics;

fn recordings() -> PathBuf {
    let shared = match std::env::var_os("BRAKELIGHT_SHARED") {
        Some(folder) => PathBuf::from(folder),
        None => Path::new(env!("CARGO_MANIFEST_DIR")).join("../../../shared"),
    };
    shared.join("traces")
}

/// Every recording that is there, with the synthetic trace fitted to it.
fn pairs() -> Vec<(&'static str, Trace, Trace)> {
    let folder = recordings();
    let mut pairs = Vec::new();
    for (name, recording) in FITTED {
        let path = folder.join(recording);
        if !path.exists() {
            brakelight_testkit::skip(
                &format!("recording {recording} beside {name}"),
                format_args!("it is not in {}", folder.display()),
            );
            continue;
        }
        let synthetic = Embedded::find(name).unwrap_or_else(|| panic!("{name} is embedded")).trace();
        pairs.push((*recording, read(&path).unwrap_or_else(|error| panic!("{error}")), synthetic));
    }
    pairs
}

#[test]
fn mean_and_length_are_the_recordings() {
    for (name, recorded, synthetic) in pairs() {
        let rates = [&recorded, &synthetic].map(|trace| trace.mean_rate(OPPORTUNITY).as_mbps_f64());
        assert!((rates[1] / rates[0] - 1.0).abs() < 0.02, "{name}: {rates:?}");
        let lengths = [&recorded, &synthetic].map(|trace| trace.period().as_secs_f64());
        assert!((lengths[1] - lengths[0]).abs() <= 0.5, "{name}: {lengths:?}");
    }
}

#[test]
fn variation_is_near_the_recordings() {
    for (name, recorded, synthetic) in pairs() {
        let [a, b] = [&recorded, &synthetic].map(|trace| Statistics::of(trace, OPPORTUNITY).variation);
        for (width, a, b) in
            [("20 ms", a.cv_20ms, b.cv_20ms), ("100 ms", a.cv_100ms, b.cv_100ms), ("1 s", a.cv_1s, b.cv_1s)]
        {
            assert!(
                (b / a - 1.0).abs() < 0.15,
                "{name}: coefficient of variation at {width}: {b:.3} for {a:.3}"
            );
        }
    }
}

#[test]
fn memory_is_near_the_recordings() {
    for (name, recorded, synthetic) in pairs() {
        let [a, b] = [&recorded, &synthetic].map(|trace| Statistics::of(trace, OPPORTUNITY));
        for lag in [100, 200, 500, 1_000, 2_000, 5_000] {
            let (a, b) = (a.autocorrelation_at(lag).unwrap(), b.autocorrelation_at(lag).unwrap());
            assert!((b - a).abs() < 0.15, "{name}: autocorrelation at {lag} ms: {b:.3} for {a:.3}");
        }
    }
}

#[test]
fn outages_are_about_as_frequent_and_as_long() {
    for (name, recorded, synthetic) in pairs() {
        let [a, b] = [&recorded, &synthetic].map(|trace| Statistics::of(trace, OPPORTUNITY).outages);
        let ratio = (b.count as f64 + 1.0) / (a.count as f64 + 1.0);
        assert!((0.5..=2.0).contains(&ratio), "{name}: {} outages for {}", b.count, a.count);
        assert!((b.share - a.share).abs() < 0.05, "{name}: {:.3} of the time for {:.3}", b.share, a.share);
    }
}
