//! The path between two real TUN devices, each in a namespace of its own, with the kernel's TCP at both ends:
//! what goes in comes out, whether the kernel's large buffers are cut, joined again or left alone, over IPv4
//! and IPv6, marked or not.
//!
//! It needs the right to make namespaces and devices; without it the tests say what they did not run.

use std::alloc::{GlobalAlloc, Layout, System};
use std::io::{Read, Write};
use std::net::{IpAddr, SocketAddr, TcpListener, TcpStream, UdpSocket};
use std::process::Command;
use std::sync::Arc;
use std::sync::atomic::{AtomicU32, Ordering};
use std::sync::mpsc::{Sender, channel};
use std::thread;
use std::time;

use brakelight_core::units::Limit;
use brakelight_emulator::clock::{Epoch, Stop};
use brakelight_emulator::device::{Port, TunSettings};
use brakelight_emulator::forward::{self, CarriedDirection, Facts, ForwardSettings};
use brakelight_emulator::spec::{Bottleneck, DirectionSpec};
use brakelight_scenario::trace::names::Names;
use nix::sched::{CloneFlags, unshare};

type Job = Box<dyn FnOnce() + Send>;

/// A network namespace, held by a thread that does things in it; it goes with the thread.
struct Namespace {
    jobs: Sender<Job>,
}

impl Namespace {
    /// `None` without the right to make one.
    fn new() -> Option<Self> {
        let (jobs, queue) = channel::<Job>();
        let (made, is_made) = channel();
        thread::spawn(move || {
            made.send(unshare(CloneFlags::CLONE_NEWNET).is_ok()).unwrap();
            queue.into_iter().for_each(|job| job());
        });
        is_made.recv().unwrap().then_some(Namespace { jobs })
    }

    fn run<T: Send + 'static>(&self, job: impl FnOnce() -> T + Send + 'static) -> T {
        let (reply, answer) = channel();
        self.jobs.send(Box::new(move || drop(reply.send(job())))).unwrap();
        answer.recv().expect("the job ended without an answer")
    }

    /// What `ip` prints.
    fn ip(&self, line: String) -> String {
        let output = self.run(move || Command::new("ip").args(line.split_whitespace()).output());
        let output = output.expect("ip is installed");
        assert!(output.status.success(), "{}", String::from_utf8_lossy(&output.stderr));
        String::from_utf8_lossy(&output.stdout).into_owned()
    }

    /// A device with two addresses, whose peers are those of the other side.
    fn device(&self, [own4, own6]: [&str; 2], [other4, other6]: [&str; 2]) -> Option<Arc<Port>> {
        let port = self.run(|| Port::tun("path", &TunSettings::default())).ok()?;
        self.ip(format!("addr add {own4} peer {other4} dev path"));
        self.ip(format!("addr add {own6}/128 dev path nodad"));
        self.ip("link set path up".to_string());
        self.ip(format!("route add {other6}/128 dev path"));
        // The local route of an IPv6 address comes later, and until then what is sent to it is lost.
        let asked = time::Instant::now();
        while !self.ip("-6 route show table local".to_string()).contains(own6) {
            assert!(asked.elapsed() < time::Duration::from_secs(60), "no local route to {own6}");
            thread::sleep(time::Duration::from_millis(1));
        }
        Some(Arc::new(port))
    }
}

const INNER: [&str; 2] = ["10.178.0.2", "fd00:b4:178::2"];
const OUTER: [&str; 2] = ["10.178.0.1", "fd00:b4:178::1"];

struct Path {
    inner: Namespace,
    outer: Namespace,
    stop: Arc<Stop>,
    thread: thread::JoinHandle<Vec<Facts>>,
}

impl Path {
    /// A path whose link carries `rate` both ways, or `None`, said on standard error, where it cannot be
    /// made.
    fn new(test: &str, rate: &str, queue: &str, settings: ForwardSettings) -> Option<Path> {
        let made = || {
            let (inner, outer) = (Namespace::new()?, Namespace::new()?);
            let (inside, outside) = (inner.device(INNER, OUTER)?, outer.device(OUTER, INNER)?);
            Some((inner, outer, inside, outside))
        };
        let Some((inner, outer, inside, outside)) = made() else {
            brakelight_testkit::skip(
                &format!("network: {test}"),
                "it needs the right to make network namespaces and TUN devices",
            );
            return None;
        };
        let carried = |name: &str, input: &Arc<Port>, output: &Arc<Port>| {
            let mut direction = DirectionSpec::open(name, 1);
            let names = Names::default();
            direction.link = Some(Bottleneck::parse(name, rate, queue, Limit::Packets(500), &names).unwrap());
            CarriedDirection { direction, input: input.clone(), output: output.clone(), watch: () }
        };
        let directions = vec![carried("up", &inside, &outside), carried("down", &outside, &inside)];
        let stop = Arc::new(Stop::new().unwrap());
        let thread = {
            let stop = stop.clone();
            thread::spawn(move || {
                let finished = forward::run(directions, &settings, Epoch::start(), &stop).unwrap();
                finished.into_iter().map(|finished| finished.facts).collect()
            })
        };
        Some(Path { inner, outer, stop, thread })
    }

    fn end(self) -> Vec<Facts> {
        self.stop.set();
        let facts = self.thread.join().unwrap();
        for facts in &facts {
            assert!(facts.conserved(), "{facts:?}");
            assert_eq!((facts.refused, facts.overrun, facts.malformed), (0, 0, 0), "{facts:?}");
            assert_eq!(facts.missed, Some(0), "{facts:?}");
        }
        facts
    }

    /// Sends `bytes` from the outer to the inner side over TCP, and asserts that they arrive as they were.
    fn transfer(&self, family: usize, bytes: usize) {
        let address = SocketAddr::new(INNER[family].parse::<IpAddr>().unwrap(), 5001);
        let listener = self.inner.run(move || TcpListener::bind(address)).unwrap();
        let data: Vec<u8> = (0..bytes as u64).map(|n| (n.wrapping_mul(0x9e37_79b9) >> 13) as u8).collect();
        let sent = data.clone();
        let mut stream = self.outer.run(move || TcpStream::connect(address)).unwrap();
        let sender = thread::spawn(move || stream.write_all(&sent).unwrap());
        let (mut incoming, _) = listener.accept().unwrap();
        incoming.set_read_timeout(Some(time::Duration::from_secs(60))).unwrap();
        let mut received = Vec::new();
        incoming.read_to_end(&mut received).unwrap();
        sender.join().unwrap();
        assert!(received == data, "{} of {bytes} bytes arrived, or others than were sent", received.len());
    }
}

/// Each packet alone, and in buffers of several.
fn alone() -> ForwardSettings {
    ForwardSettings { fifo: false, crowded: u64::MAX, ..ForwardSettings::default() }
}

fn together() -> ForwardSettings {
    ForwardSettings { fifo: false, crowded: 0, ..ForwardSettings::default() }
}

#[test]
fn tcp_arrives_as_it_was_sent_when_each_packet_is_written_alone() {
    let Some(path) = Path::new("tcp, packets alone", "300Mbps", "droptail", alone()) else { return };
    path.transfer(0, 6_000_000);
    path.transfer(1, 6_000_000);
    let facts = path.end();
    assert!(facts.iter().all(|facts| facts.writes == facts.written), "{facts:?}");
    // The kernel's buffers of up to 64 KiB became packets of at most 1500 bytes.
    assert!(facts[1].read > 12_000_000 / 1460, "{facts:?}");
}

#[test]
fn tcp_arrives_as_it_was_sent_when_packets_are_written_together() {
    let Some(path) = Path::new("tcp, packets together", "2Gbps", "droptail", together()) else { return };
    path.transfer(0, 20_000_000);
    path.transfer(1, 20_000_000);
    let facts = path.end();
    assert!(facts[1].writes < facts[1].written / 2, "{facts:?}");
}

#[test]
fn loss_and_marks_harm_no_byte() {
    // A sender that has little of the processor still sends faster than this.
    let Some(path) = Path::new("tcp with ECN", "30Mbps", "codel:ecn=true,target=1ms", together()) else {
        return;
    };
    for side in [&path.inner, &path.outer] {
        // Asks for ECN on every connection of this namespace.
        side.run(|| std::fs::write("/proc/sys/net/ipv4/tcp_ecn", "1")).unwrap();
    }
    path.transfer(0, 6_000_000);
    path.transfer(1, 6_000_000);
    let facts = path.end();
    assert!(facts[1].rewritten > 0, "no packet was marked: {facts:?}");
}

/// The system's allocator, for this process alone. One that was forked from it ends: another thread may have
/// held the allocator's lock at that moment.
struct NotAfterAFork;

/// The process that may allocate, once it is known.
static ALLOWED: AtomicU32 = AtomicU32::new(0);

// SAFETY: the system's allocator does all the work.
unsafe impl GlobalAlloc for NotAfterAFork {
    unsafe fn alloc(&self, layout: Layout) -> *mut u8 {
        let allowed = ALLOWED.load(Ordering::Relaxed);
        if allowed != 0 && allowed != std::process::id() {
            // SAFETY: it ends this process at once.
            unsafe { libc::_exit(86) };
        }
        // SAFETY: the caller's promises are the system's.
        unsafe { System.alloc(layout) }
    }

    unsafe fn dealloc(&self, memory: *mut u8, layout: Layout) {
        // SAFETY: the caller's promises are the system's.
        unsafe { System.dealloc(memory, layout) }
    }
}

#[global_allocator]
static ALLOCATOR: NotAfterAFork = NotAfterAFork;

#[test]
fn packets_that_the_kernel_dropped_unread_are_known() {
    let Some(inner) = Namespace::new() else {
        brakelight_testkit::skip(
            "network: packets dropped unread",
            "it needs the right to make network namespaces",
        );
        return;
    };
    let Some(port) = inner.device(INNER, OUTER) else {
        brakelight_testkit::skip("network: packets dropped unread", "it needs the right to make TUN devices");
        return;
    };
    inner.ip("link set path txqueuelen 4".to_string());
    // The kernel's own announcements may lie in the queue before ours.
    let sender = inner.run(|| UdpSocket::bind((INNER[0], 0))).unwrap();
    for _ in 0..20 {
        // It is dropped behind the socket's back, or the socket is told.
        let _ = sender.send_to(&[0; 100], (OUTER[0], 9));
    }
    ALLOWED.store(std::process::id(), Ordering::Relaxed);
    let missed = port.missed().expect("the process that looks does not allocate");
    assert!((16..=40).contains(&missed), "{missed} of 20 and a few were dropped from a queue of 4");
}

#[test]
fn datagrams_of_any_size_pass_fragments_included() {
    let Some(path) = Path::new("udp", "100Mbps", "fq_codel", alone()) else { return };
    for family in 0..2 {
        let bind = |address: &str| SocketAddr::new(address.parse::<IpAddr>().unwrap(), 5002);
        let (inner, outer) = (bind(INNER[family]), bind(OUTER[family]));
        let receiver = path.inner.run(move || UdpSocket::bind(inner)).unwrap();
        let sender = path.outer.run(move || UdpSocket::bind(outer)).unwrap();
        receiver.set_read_timeout(Some(time::Duration::from_secs(30))).unwrap();
        for size in [1, 100, 1400, 5000, 60_000] {
            let data: Vec<u8> = (0..size).map(|n: u32| (n % 251) as u8).collect();
            sender.send_to(&data, inner).unwrap();
            let mut received = vec![0; 65_536];
            let length = receiver.recv(&mut received).unwrap();
            assert!(received[..length] == data, "{length} of {size} bytes");
        }
    }
    path.end();
}
