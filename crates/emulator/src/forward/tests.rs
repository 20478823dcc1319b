//! The path over pairs of sockets instead of devices: every packet accounted for, every mark in the bytes,
//! every event at the time at which the element alone would have had it.

use std::os::fd::OwnedFd;
use std::sync::mpsc::{Sender, channel};
use std::thread;

use brakelight_core::ecn::{Ecn, Mark};
use brakelight_core::packet::PacketId;
use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::Dropped;
use brakelight_core::units::Limit;
use brakelight_scenario::trace::names::Names;
use nix::sys::socket::{AddressFamily, SockFlag, SockType, setsockopt, socketpair, sockopt};

use super::*;
use crate::device::Read;
use crate::packet::{Header, write_ecn};
use crate::segment::{HEAD, LONGEST, Large};
use crate::spec::{BUFFER, Bottleneck};

const MTU: u32 = 1500;

/// Two ends that keep packets apart, with room for many.
fn pair() -> (Port, Port) {
    let flags = SockFlag::SOCK_NONBLOCK | SockFlag::SOCK_CLOEXEC;
    let (one, two) = socketpair(AddressFamily::Unix, SockType::SeqPacket, None, flags).unwrap();
    let port = |fd: OwnedFd| {
        setsockopt(&fd, sockopt::SndBuf, &(8 << 20)).unwrap();
        Port::over(fd, "pair", MTU)
    };
    (port(one), port(two))
}

/// An IPv4 packet of UDP with this number, ECN field and size.
fn packet(number: u32, ecn: Ecn, size: usize) -> Vec<u8> {
    let mut bytes = vec![0; size];
    bytes[0] = 0x45;
    bytes[2..4].copy_from_slice(&(size as u16).to_be_bytes());
    bytes[9] = 17;
    bytes[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
    bytes[20..24].copy_from_slice(&[0, 7, 0, 9]);
    bytes[28..32].copy_from_slice(&number.to_be_bytes());
    let checksum = !sum(&bytes[..20]);
    bytes[10..12].copy_from_slice(&checksum.to_be_bytes());
    write_ecn(&mut bytes, ecn);
    bytes
}

fn number(bytes: &[u8]) -> u32 {
    u32::from_be_bytes([bytes[28], bytes[29], bytes[30], bytes[31]])
}

/// The one's complement sum of a header: 0xffff when its checksum is right.
fn sum(header: &[u8]) -> u16 {
    let mut sum: u32 = header.chunks(2).map(|pair| u32::from(u16::from_be_bytes([pair[0], pair[1]]))).sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    sum as u16
}

/// Writes everything down, and says when so many packets have left or died.
struct Recorder {
    arrived: Vec<(Time, IpPacket)>,
    outputs: Vec<Output<IpPacket>>,
    delivered: Vec<(Time, PacketId)>,
    gone: u64,
    expected: u64,
    done: Sender<()>,
}

impl Recorder {
    fn count(&mut self) {
        self.gone += 1;
        if self.gone == self.expected {
            self.done.send(()).unwrap();
        }
    }
}

impl Watch for Recorder {
    fn arrived(&mut self, now: Time, packet: &IpPacket, bytes: &[u8]) {
        assert_eq!((now, packet.header.size as usize), (packet.arrived, bytes.len()));
        self.arrived.push((now, *packet));
    }
    fn output(&mut self, output: &Output<IpPacket>, actual: Time) {
        assert!(output.at() <= actual, "an event before its time");
        self.outputs.push(*output);
        if matches!(output, Output::Dropped(_)) {
            self.count();
        }
    }
    fn lost(&mut self, _dropped: &Dropped<IpPacket>, _actual: Time) {
        self.count();
    }
    fn delivered(&mut self, scheduled: Time, actual: Time, packet: &IpPacket) {
        assert!(scheduled <= actual, "a delivery before its time");
        self.delivered.push((scheduled, packet.id));
        self.count();
    }
}

fn link(service: &str, queue: &str, buffer: Limit) -> DirectionSpec {
    let mut direction = DirectionSpec::open("up", 3);
    direction.link = Some(Bottleneck::parse("up", service, queue, buffer, &Names::default()).unwrap());
    direction
}

/// Sends `packets` through `direction` and returns what came out, and what is known of it. The path's thread
/// runs until it has said what became of each.
fn carry(direction: DirectionSpec, packets: &[Vec<u8>]) -> (Vec<Vec<u8>>, Finished<Recorder>) {
    let ((source, input), (output, sink)) = (pair(), pair());
    let (done, all_done) = channel();
    let expected = packets.len() as u64;
    let watch =
        Recorder { arrived: Vec::new(), outputs: Vec::new(), delivered: Vec::new(), gone: 0, expected, done };
    let carried = CarriedDirection { direction, input: Arc::new(input), output: Arc::new(output), watch };
    let stop = Arc::new(Stop::new().unwrap());
    let settings = ForwardSettings { fifo: false, ..ForwardSettings::default() };
    let mut out = Vec::new();
    let mut drain = || {
        let mut bytes = [0; MTU as usize];
        while let Read::Packet(length) = sink.read(&mut bytes, &mut []).unwrap() {
            out.push(bytes[..length].to_vec());
        }
    };
    let thread = {
        let stop = stop.clone();
        thread::spawn(move || run(vec![carried], &settings, Epoch::start(), &stop).unwrap())
    };
    for bytes in packets {
        // The pair's buffer may be full: the path reads it.
        while let Err(error) = source.write(bytes) {
            assert_eq!(error, Errno::EAGAIN);
            drain();
            thread::yield_now();
        }
    }
    loop {
        drain();
        match all_done.recv_timeout(std::time::Duration::from_millis(20)) {
            Ok(()) => break,
            Err(std::sync::mpsc::RecvTimeoutError::Timeout) => {}
            Err(error) => panic!("the path ended early: {error}"),
        }
    }
    stop.set();
    let finished = thread.join().unwrap().remove(0);
    drain();
    (out, finished)
}

/// What the link alone does with these arrivals when it is polled exactly.
fn replay(direction: &DirectionSpec, arrived: &[(Time, IpPacket)]) -> Vec<Output<IpPacket>> {
    let mut link = direction.build().remove(0);
    let mut outputs = Vec::new();
    let mut poll = |link: &mut AnyElement<IpPacket>, now| {
        while let Some(output) = link.poll(now) {
            outputs.push(output);
        }
    };
    for &(at, packet) in arrived {
        while let Some(due) = link.next_wakeup().filter(|due| *due < at) {
            poll(&mut link, due);
        }
        link.accept(at, packet);
        poll(&mut link, at);
    }
    while let Some(due) = link.next_wakeup() {
        poll(&mut link, due);
    }
    outputs
}

/// A link by a trace of these milliseconds, as a file of its own.
fn traced(name: &str, millis: &[u64]) -> DirectionSpec {
    let file = std::env::temp_dir().join(format!("brakelight-forward-{}-{name}", std::process::id()));
    let text: String = millis.iter().map(|ms| format!("{ms}\n")).collect();
    std::fs::write(&file, text).unwrap();
    let direction = link(file.to_str().unwrap(), "droptail", Limit::Packets(1000));
    std::fs::remove_file(&file).unwrap();
    direction
}

#[test]
fn a_trace_is_replayed_to_the_nanosecond_whatever_its_gaps() {
    let cases: [(&str, Vec<u64>); 4] = [
        // One opportunity in each period of 7 ms.
        ("single", vec![7]),
        // Several in one millisecond, then none for 60.
        ("gap", vec![1, 1, 1, 1, 2, 62]),
        // Milliseconds without any, at the start as well.
        ("empty", vec![5, 5, 9, 20, 20, 21]),
        // An opportunity at the very start and at the very end of the period.
        ("edges", vec![0, 3, 10]),
    ];
    for (name, millis) in cases {
        let direction = traced(name, &millis);
        let packets: Vec<_> =
            (0..40).map(|n| packet(n, Ecn::NotEct, if n % 3 == 0 { 1500 } else { 400 })).collect();
        let (out, finished) = carry(direction.clone(), &packets);
        assert_eq!(out.len(), packets.len(), "{name}");
        assert_eq!(finished.watch.outputs, replay(&direction, &finished.watch.arrived), "{name}");
        let period = *millis.last().unwrap() * 1_000_000;
        for output in &finished.watch.outputs {
            let within = output.at().as_nanos() % period;
            let listed = |ms: &u64| ms * 1_000_000 % period == within;
            assert!(millis.iter().any(listed), "{name}: {:?} is no opportunity", output.at());
        }
    }
}

#[test]
fn a_recorded_looking_trace_is_replayed_to_the_nanosecond() {
    let direction = link("lte-driving", "droptail", Limit::Packets(40));
    let packets: Vec<_> = (0..300).map(|n| packet(n, Ecn::NotEct, 60 + (n as usize * 97) % 1440)).collect();
    let (out, finished) = carry(direction.clone(), &packets);
    assert_eq!(finished.watch.outputs, replay(&direction, &finished.watch.arrived));
    assert_eq!(out.len() as u64 + finished.facts.dropped, 300);
    assert!(finished.facts.dropped > 0, "the buffer of 40 packets never overflowed");
}

#[test]
fn every_packet_is_delivered_dropped_or_still_inside() {
    for (queue, loss) in [("droptail", 0.0), ("codel", 0.2), ("fq_codel", 0.0), ("pie", 0.1), ("red", 0.0)] {
        let mut direction = link("50Mbps", queue, Limit::Packets(30));
        direction.loss = loss;
        direction.delay = Duration::from_millis(3);
        let packets: Vec<_> = (0..200).map(|n| packet(n, Ecn::NotEct, 1000)).collect();
        let (out, finished) = carry(direction, &packets);
        let facts = finished.facts;
        assert!(facts.conserved(), "{queue}: {facts:?}");
        assert_eq!((facts.read, facts.inside, facts.refused, facts.malformed), (200, 0, 0, 0), "{queue}");
        assert_eq!(out.len() as u64, facts.written, "{queue}");
        assert_eq!(facts.written + facts.dropped, 200, "{queue}");
        // In order, and byte for byte what was sent.
        let numbers: Vec<u32> = out.iter().map(|bytes| number(bytes)).collect();
        assert!(numbers.is_sorted(), "{queue}");
        assert!(out.iter().all(|bytes| *bytes == packets[number(bytes) as usize]), "{queue}");
        assert_eq!(finished.lateness.count(), facts.written);
    }
}

#[test]
fn packets_inside_when_it_ends_are_counted_and_what_is_no_packet_is_not_forwarded() {
    let ((source, input), (output, _sink)) = (pair(), pair());
    let mut direction = link("100Mbps", "droptail", BUFFER);
    direction.delay = Duration::from_secs(1000);
    for bytes in [packet(0, Ecn::Ect0, 100), vec![0x50; 40], vec![0x45; 10], packet(1, Ecn::Ect0, 1500)] {
        source.write(&bytes).unwrap();
    }
    drop(source);
    let carried = CarriedDirection { direction, input: Arc::new(input), output: Arc::new(output), watch: () };
    let stop = Arc::new(Stop::new().unwrap());
    stop.set();
    let finished = run(vec![carried], &ForwardSettings::default(), Epoch::start(), &stop).unwrap().remove(0);
    let facts = finished.facts;
    assert!(facts.conserved(), "{facts:?}");
    assert_eq!((facts.read, facts.inside, facts.malformed, facts.written), (4, 2, 2, 0));
}

#[test]
fn a_path_without_room_loses_packets_and_says_so() {
    let ((source, input), (output, _sink)) = (pair(), pair());
    let mut direction = DirectionSpec::open("up", 1);
    direction.delay = Duration::from_secs(1000);
    for n in 0..10 {
        source.write(&packet(n, Ecn::Ect0, 100)).unwrap();
    }
    let carried = CarriedDirection { direction, input: Arc::new(input), output: Arc::new(output), watch: () };
    let stop = Arc::new(Stop::new().unwrap());
    stop.set();
    let settings = ForwardSettings { slots: 4, ..ForwardSettings::default() };
    let facts = run(vec![carried], &settings, Epoch::start(), &stop).unwrap().remove(0).facts;
    assert!(facts.conserved(), "{facts:?}");
    assert_eq!((facts.read, facts.inside, facts.overrun), (10, 4, 6));
}

#[test]
fn copies_are_packets_of_their_own() {
    let ((source, input), (output, sink)) = (pair(), pair());
    let mut direction = DirectionSpec::open("up", 1);
    direction.elements =
        vec![brakelight_links::elements::ElementConfig::new("duplicate", &[("rate", "1")]).unwrap()];
    let sent = packet(5, Ecn::Ect0, 300);
    source.write(&sent).unwrap();
    let carried = CarriedDirection { direction, input: Arc::new(input), output: Arc::new(output), watch: () };
    let stop = Arc::new(Stop::new().unwrap());
    stop.set();
    let facts =
        run(vec![carried], &ForwardSettings::default(), Epoch::start(), &stop).unwrap().remove(0).facts;
    assert!(facts.conserved(), "{facts:?}");
    assert_eq!((facts.read, facts.made, facts.written), (1, 1, 2));
    let mut bytes = [0; 400];
    for _ in 0..2 {
        assert_eq!(sink.read(&mut bytes, &mut []).unwrap(), Read::Packet(300));
        assert_eq!(bytes[..300], sent);
    }
}

#[test]
fn copies_that_overtake_are_whole_where_packets_leave_together() {
    const DATA: usize = 50;
    const TCP: usize = HEAD + 20;
    // Successive data of one connection, its checksum open, with the word before it.
    let packet = |number: u16| {
        let mut bytes = vec![0; TCP + 20 + DATA];
        bytes[0] = 1;
        bytes[6..8].copy_from_slice(&20_u16.to_ne_bytes());
        bytes[8..10].copy_from_slice(&16_u16.to_ne_bytes());
        let ip = &mut bytes[HEAD..];
        ip[0] = 0x45;
        ip[2..4].copy_from_slice(&((20 + 20 + DATA) as u16).to_be_bytes());
        ip[4..6].copy_from_slice(&number.to_be_bytes());
        ip[9] = 6;
        ip[12..20].copy_from_slice(&[10, 0, 0, 1, 10, 0, 0, 2]);
        let checksum = !sum(&ip[..20]);
        ip[10..12].copy_from_slice(&checksum.to_be_bytes());
        let sequence = u32::from(number) * DATA as u32;
        bytes[TCP + 4..TCP + 8].copy_from_slice(&sequence.to_be_bytes());
        bytes[TCP + 12..TCP + 14].copy_from_slice(&[5 << 4, 0x10]);
        bytes[TCP + 20..].fill(number as u8);
        bytes
    };
    let device = |port: Port| Port::of_tun(port.into_fd(), "pair", MTU);
    let ((source, input), (output, sink)) = (pair(), pair());
    let mut direction = DirectionSpec::open("up", 1);
    let element = brakelight_links::elements::ElementConfig::new;
    direction.elements = vec![
        element("duplicate", &[("rate", "0.3")]).unwrap(),
        // Copies leave behind those that came after them; a few packets still follow one another.
        element("jitter", &[("keep_order", "false"), ("mean", "1ms"), ("spread", "20us")]).unwrap(),
    ];
    for number in 0..200 {
        source.write(&packet(number)).unwrap();
    }
    let (done, all_done) = channel();
    let watch = Counter { expected: 200, done };
    let carried = CarriedDirection {
        direction,
        input: Arc::new(device(input)),
        output: Arc::new(device(output)),
        watch,
    };
    let stop = Arc::new(Stop::new().unwrap());
    // Late, so that many are due at once.
    let settings = ForwardSettings {
        fifo: false,
        crowded: 0,
        gather: Duration::from_millis(50),
        ..ForwardSettings::default()
    };
    let thread = {
        let stop = stop.clone();
        thread::spawn(move || run(vec![carried], &settings, Epoch::start(), &stop).unwrap().remove(0).facts)
    };
    all_done.recv().unwrap();
    stop.set();
    let facts = thread.join().unwrap();
    assert!(facts.made > 20 && facts.writes < facts.written, "{facts:?}");
    let mut seen = vec![0; 200];
    let mut bytes = vec![0; 70_000];
    while let Read::Packet(length) = sink.read(&mut bytes, &mut []).unwrap() {
        let whole = &bytes[..length];
        let packets = match Large::read(whole, length) {
            None => vec![whole.to_vec()],
            Some(large) => (0..large.packets())
                .map(|index| {
                    let mut packet = vec![0; LONGEST];
                    let start = large.write_headers(index, &mut packet);
                    packet.truncate(start);
                    packet.extend_from_slice(&whole[large.data_of(index)]);
                    packet
                })
                .collect(),
        };
        for bytes in packets {
            let number = u16::from_be_bytes([bytes[HEAD + 4], bytes[HEAD + 5]]);
            let sent = packet(number);
            // A joined one has the sum of the pseudo header where the checksum goes.
            assert_eq!(bytes[..TCP + 16], sent[..TCP + 16], "packet {number}");
            assert_eq!(bytes[TCP + 18..], sent[TCP + 18..], "packet {number}");
            seen[usize::from(number)] += 1;
        }
    }
    assert!(seen.iter().all(|times| (1..=2).contains(times)), "{seen:?}");
    assert_eq!(seen.iter().sum::<u64>(), 200 + facts.made);
}

/// Says when all packets and their copies have left.
struct Counter {
    expected: u64,
    done: Sender<()>,
}

impl Counter {
    fn count(&mut self, more: bool) {
        self.expected = if more { self.expected + 1 } else { self.expected - 1 };
        if self.expected == 0 {
            self.done.send(()).unwrap();
        }
    }
}

impl Watch for Counter {
    fn duplicated(&mut self, _at: Time, _packet: &IpPacket) {
        self.count(true);
    }
    fn delivered(&mut self, _scheduled: Time, _actual: Time, _packet: &IpPacket) {
        self.count(false);
    }
}

/// Sends `count` packets with `ecn` through `queue`, and checks that each packet that comes out carries what
/// the queue left it with.
fn marks(queue: &str, ecn: Ecn, count: u32) -> Vec<Ecn> {
    let direction = link("20Mbps", queue, Limit::Packets(1000));
    let packets: Vec<_> = (0..count).map(|n| packet(n, ecn, 1400)).collect();
    let (out, finished) = carry(direction, &packets);
    assert!(finished.facts.conserved());
    let departed = finished.watch.outputs.iter().filter_map(|output| match output {
        Output::Departed(departed) => Some(departed),
        _ => None,
    });
    let mut seen = Vec::new();
    let mut rewritten = 0;
    for (departed, bytes) in departed.zip(&out) {
        assert_eq!(departed.packet.id, PacketId(u64::from(number(bytes))), "{queue}");
        let header = Header::read(bytes).unwrap();
        assert_eq!(header.ecn, departed.packet.header.ecn, "{queue}: the bytes say otherwise than the queue");
        assert_eq!(sum(&bytes[..20]), 0xffff, "{queue}: the checksum is wrong");
        if departed.mark == Mark::Ce {
            assert_eq!(header.ecn, Ecn::Ce, "{queue}");
        }
        rewritten += u64::from(header.ecn != ecn);
        seen.push(header.ecn);
    }
    assert_eq!(finished.facts.rewritten, rewritten, "{queue}");
    assert_eq!(seen.len() as u64, finished.facts.written, "{queue}");
    seen
}

fn share(seen: &[Ecn], ecn: Ecn) -> f64 {
    seen.iter().filter(|&&other| other == ecn).count() as f64 / seen.len() as f64
}

#[test]
fn marks_of_every_queue_reach_the_bytes_with_right_checksums() {
    // A burst that takes 140 ms to send: ABC brakes nearly all of it once the queue stands above its target.
    let abc = marks("abc:target=5ms", Ecn::Ect1, 250);
    assert!(share(&abc, Ecn::Ect0) > 0.5 && share(&abc, Ecn::Ce) == 0.0);
    // Behind a proxy brake is CE, and ECT(1) is left alone otherwise.
    let proxied = marks("abc:target=5ms,encoding=proxied", Ecn::Ect1, 250);
    assert!(share(&proxied, Ecn::Ce) > 0.5 && share(&proxied, Ecn::Ect0) == 0.0);
    // All of one flow that accelerates: ABC's half of the two queues.
    let dual = marks("abc_dual:target=5ms", Ecn::Ect1, 250);
    assert!(share(&dual, Ecn::Ect0) > 0.5 && share(&dual, Ecn::Ce) == 0.0);
    // One that does not is in the other half and is left alone.
    assert_eq!(share(&marks("abc_dual:target=5ms", Ecn::Ect0, 100), Ecn::Ect0), 1.0);
    let codel = marks("codel:target=1ms,interval=10ms,ecn=true", Ecn::Ect0, 250);
    assert!(share(&codel, Ecn::Ce) > 0.0 && share(&codel, Ecn::Ect1) == 0.0);
    let red = marks("red:ecn=true", Ecn::Ect0, 250);
    assert!(share(&red, Ecn::Ce) > 0.0);
    // Intervals of 10 ms, in which the burst is far above the link's rate.
    let bmcc = marks("bmcc:interval=10ms,sample=1ms", Ecn::Ect0, 250);
    assert!(share(&bmcc, Ecn::Ce) > 0.5);
    // Who is not ECN-capable is not marked by anyone.
    for queue in ["abc:target=5ms", "bmcc:interval=10ms,sample=1ms", "red:ecn=true"] {
        let seen = marks(queue, Ecn::NotEct, 100);
        assert_eq!(share(&seen, Ecn::NotEct), 1.0, "{queue}");
    }
}
