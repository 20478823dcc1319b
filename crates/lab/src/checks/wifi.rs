//! The Wi-Fi link and ABC's estimator of its rate (abc20 section 5.1), fed with packets.

use brakelight_core::ecn::Ecn;
use brakelight_core::packet::PacketId;
use brakelight_core::parameters::Parameters;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_links::wifi::{Config, Wifi, mac};
use brakelight_registry::QueueConfig;
use brakelight_scenario::experiment::Finding;

use super::finding;
use super::router::Marked;

/// The paper's averages are over 30 s; one second more to begin.
const SECONDS: u64 = 31;
const BEGIN: Duration = Duration::from_secs(1);

/// What an access point did with packets that came at a steady rate, on average over its batches.
struct Fed {
    carried_mbps: f64,
    estimate_mbps: f64,
    /// The largest excess of an estimate over twice the current rate, Mbit/s.
    beyond_double_mbps: f64,
    /// Batch sizes and inter-ACK times, s.
    batches: Vec<(f64, f64)>,
}

/// Feeds full packets at `mbps`, evenly spaced but for half a gap either way.
fn feed(options: &[(&str, &str)], seed: u64, mbps: f64) -> Fed {
    let config = Config::from_options(options.iter().copied()).expect("valid options");
    let queue = QueueConfig::new("droptail", &[]).expect("droptail is registered");
    let site = Site { random: Random::stream(seed, "wifi"), ids: PacketId(1 << 63) };
    let mut wifi = Wifi::new(&config, &queue, Limit::Packets(500), site);
    let mut random = Random::stream(seed, "arrivals");
    let gap_s = 8.0 * 1500.0 / (mbps * 1e6);
    let (mut next_s, mut id, mut bytes, mut seen) = (0.0, 0, 0_u64, None);
    let mut fed = Fed { carried_mbps: 0.0, estimate_mbps: 0.0, beyond_double_mbps: 0.0, batches: Vec::new() };
    let (begin, end) = (Time::ZERO + BEGIN, Time::ZERO + Duration::from_secs(SECONDS));
    loop {
        let arrival = Time::ZERO + Duration::from_secs_f64(next_s);
        let wake = wifi.next_wakeup().unwrap_or(Time::MAX);
        let now = arrival.min(wake);
        if now >= end {
            break;
        }
        if arrival < wake {
            wifi.accept(arrival, Marked::plain(id, Ecn::NotEct));
            id += 1;
            next_s += gap_s * (0.5 + random.uniform());
        }
        while let Some(output) = wifi.poll(now) {
            if matches!(output, Output::Departed(_)) && now >= begin {
                bytes += 1500;
            }
        }
        let Some(observed) =
            wifi.observed().filter(|observed| observed.at >= begin && seen != Some(observed.at))
        else {
            continue;
        };
        seen = Some(observed.at);
        let estimator = wifi.estimator(0);
        let estimate_mbps = estimator.rate().as_mbps_f64();
        fed.estimate_mbps += estimate_mbps;
        let beyond_mbps = estimate_mbps - 2.0 * estimator.current().as_mbps_f64();
        fed.beyond_double_mbps = fed.beyond_double_mbps.max(beyond_mbps);
        fed.batches.push((f64::from(observed.frames), observed.inter_ack.as_secs_f64()));
    }
    fed.carried_mbps = bytes as f64 * 8e-6 / (end.since(begin)).as_secs_f64();
    fed.estimate_mbps /= fed.batches.len() as f64;
    fed
}

/// Slope of the line of least squares through points.
fn slope(points: &[(f64, f64)]) -> f64 {
    let n = points.len() as f64;
    let mean = |of: fn(&(f64, f64)) -> f64| points.iter().map(of).sum::<f64>() / n;
    let (x, y) = (mean(|point| point.0), mean(|point| point.1));
    let covariance: f64 = points.iter().map(|point| (point.0 - x) * (point.1 - y)).sum();
    covariance / points.iter().map(|point| (point.0 - x) * (point.0 - x)).sum::<f64>()
}

/// ABC-F5: mean inter-ACK time is linear in the batch size, with slope S / R. Batch sizes are set, not left
/// to the load: where the queue makes them, whatever holds up a batch also makes it larger, and the line
/// comes out steeper.
pub(super) fn inter_ack_time() -> Finding {
    let mut points = Vec::new();
    let mut spread_s = 0.0_f64;
    for frames in ["2", "4", "8", "12", "16", "20", "25", "30"] {
        let fed = feed(&[("mcs", "2"), ("loss", "0"), ("frames", frames)], 3, 30.0);
        let times = || fed.batches.iter().map(|point| point.1);
        spread_s = spread_s.max(times().fold(0.0, f64::max) - times().fold(f64::INFINITY, f64::min));
        points.extend(fed.batches);
    }
    let per_frame_s = 8.0 * f64::from(mac::mpdu_bytes(1500)) / mac::phy_rate(2).as_bps_f64();
    let ratio = slope(&points) / per_frame_s;
    let longest_s = points.iter().map(|point| point.1).fold(0.0, f64::max);
    let measured = format!(
        "slope {:.3} S/R; inter-ACK times up to {:.0} ms, spread up to {:.1} ms at one batch size",
        ratio,
        1e3 * longest_s,
        1e3 * spread_s
    );
    finding((ratio - 1.0).abs() < 0.05 && spread_s > 1e-3, measured)
}

/// ABC-F6: a user who is not backlogged learns the rate it would have if it were, on three links, with
/// losses, retries and contention that depends on the load. The truth is the same link backlogged.
pub(super) fn estimate() -> Finding {
    let (mut within, mut loads, mut worst) = (0, 0, 0.0_f64);
    for mcs in ["1", "4", "7"] {
        let options = [("mcs", mcs), ("loss", "0.05")];
        let truth_mbps = feed(&options, 2, 200.0).carried_mbps;
        for load in [0.1, 0.2, 0.3, 0.4, 0.5, 0.6, 0.7, 0.8, 0.9, 1.0, 1.2] {
            let fed = feed(&options, 1, load * truth_mbps);
            let expected_mbps = truth_mbps.min(2.0 * fed.carried_mbps);
            let off = (fed.estimate_mbps / expected_mbps - 1.0).abs();
            loads += 1;
            within += u32::from(off < 0.05);
            worst = worst.max(off);
        }
    }
    let measured = format!(
        "{within} of {loads} loads within 5 % of the capacity or of the cap; the worst {:.1} %",
        100.0 * worst
    );
    finding(f64::from(within) >= 0.8 * f64::from(loads) && worst < 0.1, measured)
}

/// ABC-U10: the prediction never exceeds twice the current rate.
pub(super) fn estimate_cap() -> Finding {
    let beyond_mbps = ["1", "7"]
        .iter()
        .flat_map(|mcs| [1.0, 5.0, 20.0, 80.0].map(|mbps| feed(&[("mcs", mcs)], 4, mbps).beyond_double_mbps))
        .fold(0.0, f64::max);
    finding(beyond_mbps < 1e-6, format!("at most {beyond_mbps:.1} Mbit/s beyond twice the current rate"))
}
