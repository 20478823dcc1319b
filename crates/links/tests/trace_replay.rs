//! The replay of traces against a second, plainer implementation: walk through every opportunity in order and
//! fill it with the bytes that wait. Traces with outages, repeated timestamps and packets of every size; the
//! recordings too, where the shared folder is there.

use std::collections::VecDeque;
use std::path::PathBuf;

use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::Place;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::link::traced::{self, Traced};
use brakelight_links::link::{Link, Service};
use brakelight_links::trace::Trace;
use brakelight_routers::droptail::{self, DropTail};
use brakelight_testkit::Sample;

const BUFFER: usize = 250;
const OPPORTUNITY: u32 = 1504;
const TUN_HEADER: u32 = 4;

/// (id, when, arrival) of what left, and the ids of what was dropped.
type Replay = (Vec<(u64, Time, Time)>, Vec<u64>);

/// Every opportunity until the last packet has left, one after the other, as the emulator does it.
fn plainly(timestamps: &[u64], arrivals: &[(Time, Sample)]) -> Replay {
    let period = timestamps[timestamps.len() - 1];
    let (mut departed, mut dropped) = (Vec::new(), Vec::new());
    let mut queue: VecDeque<(Sample, Time)> = VecDeque::new();
    let mut in_transit: Option<(Sample, Time, u32)> = None;
    let mut arrivals = arrivals.iter().peekable();
    for index in 0.. {
        let cycle = (index / timestamps.len()) as u64;
        let at = Time::from_millis(cycle * period + timestamps[index % timestamps.len()]);
        // What arrived before this opportunity; what arrives with it is too late.
        while let Some(&(arrival, packet)) = arrivals.next_if(|(arrival, _)| *arrival < at) {
            if queue.len() < BUFFER {
                queue.push_back((packet, arrival));
            } else {
                dropped.push(packet.id);
            }
        }
        let mut left = OPPORTUNITY;
        while left > 0 {
            let Some((packet, arrival, todo)) = in_transit.take().or_else(|| {
                queue.pop_front().map(|(packet, arrival)| (packet, arrival, packet.size + TUN_HEADER))
            }) else {
                break;
            };
            let sent = todo.min(left);
            left -= sent;
            match todo - sent {
                0 => departed.push((packet.id, at, arrival)),
                todo => in_transit = Some((packet, arrival, todo)),
            }
        }
        if arrivals.peek().is_none() && queue.is_empty() && in_transit.is_none() {
            return (departed, dropped);
        }
    }
    unreachable!("a trace repeats for ever")
}

fn by_the_link(trace: &Trace, arrivals: &[(Time, Sample)]) -> Replay {
    let place = Place {
        limit: Limit::Packets(BUFFER as u32),
        nominal: Rate::ZERO,
        random: Random::stream(1, "queue"),
    };
    let queue = DropTail::new(&droptail::Config::default(), &place);
    let mut link = Link::new(Traced::new(&traced::Config::default(), trace.clone()), queue);
    let (mut departed, mut dropped) = (Vec::new(), Vec::new());
    let mut drain = |link: &mut Link<Sample, DropTail<Sample>, Traced>, now: Time| {
        while let Some(output) = link.poll(now) {
            match output {
                Output::Departed(left) | Output::Duplicated(left) => {
                    departed.push((left.packet.id, left.at, left.at - left.queued));
                }
                Output::Dropped(lost) => dropped.push(lost.packet.id),
            }
        }
    };
    for &(at, packet) in arrivals {
        while let Some(due) = link.next_wakeup().filter(|due| *due < at) {
            drain(&mut link, due);
        }
        link.accept(at, packet);
        drain(&mut link, at);
    }
    while let Some(due) = link.next_wakeup() {
        drain(&mut link, due);
    }
    (departed, dropped)
}

/// Load around `share` of the trace's mean rate, in bursts; a third of the arrivals falls on a whole
/// millisecond.
fn arrivals(trace: &Trace, share: f64, packets: u64, seed: u64) -> Vec<(Time, Sample)> {
    let mut random = Random::stream(seed, "arrivals");
    let rate = trace.mean_rate(Bytes(u64::from(OPPORTUNITY))).as_bps_f64() * share;
    let mut now = Time::ZERO;
    let mut list = Vec::new();
    for id in 0..packets {
        let size = match random.bits() % 10 {
            0..=6 => 1500,
            7 => 40,
            8 => 1 + (random.bits() % 1500) as u32,
            _ => 4000,
        };
        list.push((now, Sample::new(id, size)));
        if random.chance(0.2) {
            now += Duration::from_secs_f64(5.0 * f64::from(size) * 8.0 / rate * random.exponential());
        }
        if random.chance(1.0 / 3.0) {
            now = Time::from_millis(now.as_nanos().div_ceil(1_000_000));
        }
    }
    list
}

fn compare(name: &str, trace: &Trace, packets: u64) {
    let timestamps: Vec<u64> = trace.millis().collect();
    for (seed, share) in [0.3, 0.9, 1.5].into_iter().enumerate() {
        let arrivals = arrivals(trace, share, packets, seed as u64);
        let (expected, replayed) = (plainly(&timestamps, &arrivals), by_the_link(trace, &arrivals));
        assert_eq!(replayed.1, expected.1, "{name} at {share}: drops");
        for (replayed, expected) in replayed.0.iter().zip(&expected.0) {
            assert_eq!(replayed, expected, "{name} at {share}");
        }
        assert_eq!(replayed.0.len(), expected.0.len(), "{name} at {share}");
        assert!(share < 1.0 || !expected.1.is_empty(), "{name}: overload drops");
    }
}

#[test]
fn generated_traces_are_replayed_opportunity_by_opportunity() {
    let mut random = Random::stream(3, "traces");
    for round in 0..60 {
        // From a steady fast link to one with outages of seconds.
        let outage = f64::from(round % 4) * 0.01;
        let most_at_once = 1 + round % 5;
        let mut timestamps = vec![];
        let mut ms = 0;
        while timestamps.len() < 400 {
            for _ in 0..1 + random.bits() % most_at_once as u64 {
                timestamps.push(ms);
            }
            ms += random.bits() % 4;
            if random.chance(outage) {
                ms += random.bits() % 3000;
            }
        }
        timestamps.push(ms + 1);
        compare("generated", &Trace::from_millis(timestamps).unwrap(), 3000);
    }
}

#[test]
fn the_recordings_are_replayed_opportunity_by_opportunity() {
    let shared = std::env::var_os("BRAKELIGHT_SHARED")
        .map(PathBuf::from)
        .unwrap_or_else(|| PathBuf::from(env!("CARGO_MANIFEST_DIR")).join("../../../shared"));
    let Ok(folder) = std::fs::read_dir(shared.join("traces")) else {
        brakelight_testkit::skip(
            "recording replayed opportunity by opportunity",
            format_args!("there is no folder {}", shared.join("traces").display()),
        );
        return;
    };
    let mut files: Vec<PathBuf> = folder.map(|entry| entry.unwrap().path()).collect();
    files.sort();
    for file in files {
        let name = file.file_name().unwrap().to_string_lossy().into_owned();
        let trace =
            Trace::parse(&std::fs::read(&file).unwrap()).unwrap_or_else(|error| panic!("{name}: {error}"));
        // Long enough to pass the end of the shortest twice.
        let packets = 2 * trace.opportunities();
        compare(&name, &trace, packets);
        let service = Traced::new(&traced::Config::default(), trace.clone());
        let cycles = service.capacity_between(Time::ZERO + trace.period(), Time::ZERO + trace.period() * 3);
        assert_eq!(cycles, Bytes(2 * trace.opportunities() * u64::from(OPPORTUNITY)), "{name}");
    }
}
