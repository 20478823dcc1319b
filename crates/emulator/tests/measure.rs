//! What is measured of packets that pass a real path, under a real clock, between pairs of sockets: nothing
//! here needs root.

use std::os::fd::OwnedFd;
use std::os::unix::net::UnixDatagram;
use std::path::PathBuf;
use std::sync::Arc;
use std::thread;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Limit;
use brakelight_emulator::clock::{Epoch, Stop};
use brakelight_emulator::device::Port;
use brakelight_emulator::forward::{self, CarriedDirection};
use brakelight_emulator::measure::{MeasureSettings, Measured, Meter};
use brakelight_emulator::meter::Live;
use brakelight_emulator::outcome::Directions;
use brakelight_emulator::spec::{Bottleneck, DirectionSpec};
use brakelight_scenario::link_log;
use brakelight_scenario::outcome::LinkEvent;
use brakelight_scenario::trace::names::Names;

const MTU: usize = 1500;

/// A UDP packet of `size` bytes from `port`, its checksums left out.
fn packet(size: usize, port: u16) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    bytes[8..10].copy_from_slice(&[64, 17]);
    bytes[12..20].copy_from_slice(&[10, 0, 0, 2, 10, 0, 0, 1]);
    bytes[20..22].copy_from_slice(&port.to_be_bytes());
    bytes[22..24].copy_from_slice(&5201_u16.to_be_bytes());
    bytes
}

/// A port, and its other end, which may be waited on.
fn port(name: &str) -> (Arc<Port>, UnixDatagram) {
    let (inside, outside) = UnixDatagram::pair().unwrap();
    inside.set_nonblocking(true).unwrap();
    let timeout = std::time::Duration::from_millis(20);
    outside.set_read_timeout(Some(timeout)).unwrap();
    (Arc::new(Port::over(OwnedFd::from(inside), name, MTU as u32)), outside)
}

struct Scratch(PathBuf);

impl Drop for Scratch {
    fn drop(&mut self) {
        let _ = std::fs::remove_dir_all(&self.0);
    }
}

/// Sends `count` packets of two flows through an uplink with the queue, and returns what was measured, how
/// many arrived at the other end, and the log.
fn send(count: u64, service: &str, queue: &str) -> (Directions, u64, String) {
    let words = format!("{service}-{queue}").replace([':', '=', ','], "-");
    let name = format!("brakelight-measure-{}-{words}", std::process::id());
    let scratch = Scratch(std::env::temp_dir().join(name));
    std::fs::create_dir_all(&scratch.0).unwrap();
    let log = scratch.0.join("up.log");

    let link = Bottleneck::parse("up", service, queue, Limit::Packets(50), &Names::default()).unwrap();
    let direction = DirectionSpec { link: Some(link), ..DirectionSpec::open("up", 1) };
    let live = Arc::new(Live::default());
    let settings = MeasureSettings {
        measure_from: Duration::ZERO,
        bin: Some(Duration::from_millis(20)),
        log: Some((log.clone(), "a test".to_string())),
        live: Some(live.clone()),
    };
    let (input, sender) = port("in");
    let (output, receiver) = port("out");
    let mut watch = Meter::new(&direction, &settings).unwrap();
    watch.take_log_thread().unwrap().start().unwrap();
    let carried = CarriedDirection { watch, direction, input, output };
    // The way back carries nothing and is there to be measured.
    let open = DirectionSpec::open("down", 1);
    let nothing = MeasureSettings { log: None, live: None, ..settings };
    let (input, _keep_in) = port("back in");
    let (output, _keep_out) = port("back out");
    let back =
        CarriedDirection { watch: Meter::new(&open, &nothing).unwrap(), direction: open, input, output };

    let stop = Arc::new(Stop::new().unwrap());
    let carrier = {
        let stop = stop.clone();
        let settings = forward::ForwardSettings { fifo: false, ..forward::ForwardSettings::default() };
        thread::spawn(move || forward::run(vec![carried, back], &settings, Epoch::start(), &stop).unwrap())
    };
    let source = thread::spawn(move || {
        for number in 0..count {
            sender
                .send(&packet(if number % 5 == 0 { 100 } else { MTU }, 4000 + (number % 2) as u16))
                .unwrap();
        }
        sender
    });
    let mut arrived = 0;
    let mut buffer = [0; MTU];
    let gone = || {
        let counts = live.counts();
        counts.packets + counts.dropped >= count
    };
    loop {
        let all_gone = gone();
        match receiver.recv(&mut buffer) {
            Ok(_) => arrived += 1,
            Err(_) if all_gone => break,
            Err(_) => {}
        }
    }
    let _sender = source.join().unwrap();
    stop.set();
    let mut measured = carrier.join().unwrap().into_iter().map(|finished| Measured::of(finished).unwrap());
    let (up, down) = (measured.next().unwrap(), measured.next().unwrap());
    let text = std::fs::read_to_string(&log).unwrap();
    (
        Directions { up, down, measure_from: Duration::ZERO, data_go_up: false, stalls: Vec::new() },
        arrived,
        text,
    )
}

fn counts_agree(count: u64, service: &str, queue: &str) -> Directions {
    let (directions, arrived, text) = send(count, service, queue);
    let up = &directions.up;
    assert!(up.facts.conserved(), "{:?}", up.facts);
    let link = up.link.as_ref().unwrap();
    let through = link.through;
    assert_eq!(through.arrived, count);
    assert_eq!(through.arrived, through.departed + through.dropped + up.facts.inside);
    assert_eq!(through.departed, arrived);
    assert_eq!((link.meter.packets, link.meter.dropped), (through.departed, through.dropped));

    // The log says the same, in the words of Mahimahi, read by our own parser.
    let log = link_log::parse(&text).unwrap();
    assert_eq!(Some(log.events.len() as u64), up.logged);
    assert_eq!((log.name.as_str(), log.service.as_str()), ("up", service));
    let number =
        |which: fn(&LinkEvent) -> bool| log.events.iter().filter(|event| which(event)).count() as u64;
    assert_eq!(number(|event| matches!(event, LinkEvent::Arrival { .. })), through.arrived);
    assert_eq!(number(|event| matches!(event, LinkEvent::Departure { .. })), through.departed);
    assert_eq!(number(|event| matches!(event, LinkEvent::Drop { .. })), through.dropped);
    let left: u64 = log
        .events
        .iter()
        .map(|event| if let LinkEvent::Departure { bytes, .. } = event { u64::from(*bytes) } else { 0 })
        .sum();
    assert_eq!(left, link.meter.bytes);

    // Series and flows add up to it.
    let outcome = directions.outcome("test", 1);
    let series = outcome.series.unwrap();
    let carried: f64 = series.links[0].throughput_mbps.iter().sum::<f64>() * series.bin_s / 8e-6;
    assert!(
        carried <= left as f64 + 0.5 && carried >= left as f64 * 0.8,
        "{carried} of {left}: the last bin is not whole"
    );
    let flows = &outcome.run.flows;
    assert_eq!(flows.len(), 2);
    assert!(flows[0].name.starts_with("udp 10.0.0.2:4000 > 10.0.0.1:5201"), "{}", flows[0].name);
    assert_eq!(up.flows.iter().map(|flow| flow.delivered).sum::<u64>(), arrived);
    assert_eq!(up.flows.iter().map(|flow| flow.dropped).sum::<u64>(), through.dropped);
    assert_eq!(outcome.run.delivered_packets, arrived);
    assert!(outcome.run.lateness_ms.is_some());
    directions
}

#[test]
fn a_fixed_rate_and_a_drop_tail_queue_add_up_in_row_series_flows_and_log() {
    counts_agree(300, "12Mbps", "droptail");
}

#[test]
fn drops_at_dequeue_are_counted_and_logged() {
    counts_agree(300, "12Mbps", "codel:target=1ms,interval=5ms");
}

#[test]
fn a_log_holds_every_opportunity_of_a_trace_until_the_run_ended() {
    let (directions, _, text) = send(200, "step", "droptail");
    let log = link_log::parse(&text).unwrap();
    let end = Time::from_millis(directions.up.facts.ended.as_nanos() / 1_000_000);
    let logged: u64 = log
        .events
        .iter()
        .map(|event| if let LinkEvent::Opportunity { bytes, .. } = event { u64::from(*bytes) } else { 0 })
        .sum();
    let link = directions.up.link.as_ref().unwrap();
    // The measured interval ends within the millisecond after.
    let capacity = link.capacity.0;
    assert!(logged <= capacity && capacity - logged < 1504 * 100, "{logged} of {capacity} until {end:?}");
    assert_eq!(logged % 1504, 0);
}

#[test]
fn a_log_that_cannot_be_written_is_refused_before_the_run() {
    let link = Bottleneck::parse("up", "12Mbps", "droptail", Limit::Packets(50), &Names::default()).unwrap();
    let direction = DirectionSpec { link: Some(link), ..DirectionSpec::open("up", 1) };
    let path = PathBuf::from("/proc/nowhere/up.log");
    let settings = MeasureSettings {
        measure_from: Duration::ZERO,
        bin: None,
        log: Some((path, String::new())),
        live: None,
    };
    let error = Meter::new(&direction, &settings).unwrap_err();
    assert!(error.to_string().contains("/proc/nowhere/up.log"), "{error}");
}
