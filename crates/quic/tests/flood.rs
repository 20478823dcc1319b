//! A flood of strangers against a server of its own process: first packets from many addresses that nobody
//! answers for, and handshakes that go on until they would cost something and then stop. A second flood costs
//! it no more memory than the first, and a client is served meanwhile.
//!
//! `BRAKELIGHT_FLOOD` says how many first packets, half as many half-open connections (1,200 unless said
//! otherwise; `scripts/prove` has 20,000). All of it stays on the loopback of a network namespace that the
//! test makes.

use std::io::{BufRead, BufReader, Write as _};
use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::process::{Child, Command, Stdio};
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::time::{Duration, Instant};

use bytes::BytesMut;
use quinn_proto::DatagramEvent;
use quinn_proto::crypto::rustls::QuicClientConfig;
use support::stranger::{be_served, crypto, endpoint, first_packet, next_packet, server};

mod support;

/// Says that this process is the server.
const SERVE: &str = "BRAKELIGHT_FLOOD_SERVER";
/// Says that this process is in the namespace.
const INSIDE: &str = "BRAKELIGHT_FLOOD_INSIDE";

/// How long memory has to come back in a long run, which says how much did.
const CALM: Duration = Duration::from_secs(60);
/// Far longer than an answer takes on a loaded machine.
const ANSWERED_WITHIN: Duration = Duration::from_secs(60);
/// The longest that the client may wait; a loaded machine makes it wait besides.
const SERVED_WITHIN: Duration = Duration::from_secs(1);

/// Serves until the process is killed.
fn serve() -> ! {
    // As `brakelight perf-server` has it.
    let server = server().when_idle(brakelight_files::process::release_free_memory);
    let line = format!("\nlistening {}\n", server.address());
    std::io::stdout().write_all(line.as_bytes()).unwrap();
    server.serve();
    unreachable!("a server serves until the process ends");
}

/// This test's program, running this test once more.
fn again() -> Command {
    let mut command = Command::new(std::env::current_exe().unwrap());
    command.args(["--exact", "strangers_cost_a_server_no_memory_that_stays", "--nocapture"]);
    command
}

struct Running(Child, SocketAddr);

impl Running {
    fn start() -> Self {
        let mut child = again().env(SERVE, "1").stdout(Stdio::piped()).spawn().unwrap();
        let lines = BufReader::new(child.stdout.take().unwrap()).lines();
        let mut lines = lines.map_while(Result::ok);
        let address = lines.find_map(|line| line.strip_prefix("listening ")?.parse().ok());
        // What it says later must find a reader.
        std::thread::spawn(move || lines.for_each(drop));
        Running(child, address.expect("the server says where it listens"))
    }

    /// Bytes of memory that it holds.
    fn memory(&self) -> f64 {
        let status = std::fs::read_to_string(format!("/proc/{}/status", self.0.id())).unwrap();
        let line = status.lines().find_map(|line| line.strip_prefix("VmRSS:")).expect("it lives");
        line.trim().trim_end_matches(" kB").parse::<f64>().unwrap() * 1024.0
    }

    fn descriptors(&self) -> usize {
        std::fs::read_dir(format!("/proc/{}/fd", self.0.id())).unwrap().count()
    }
}

impl Drop for Running {
    fn drop(&mut self) {
        let _ = self.0.kill();
        let _ = self.0.wait();
    }
}

/// A socket at one of the 16 million addresses of the loopback.
fn socket(number: usize) -> UdpSocket {
    let [_, high, middle, low] = (number as u32 + 2).to_be_bytes();
    UdpSocket::bind((Ipv4Addr::new(127, high, middle, low), 0)).unwrap()
}

/// Goes on with a handshake as far as one answer to a Retry, and leaves it there.
fn half_open(crypto: &Arc<QuicClientConfig>, server: SocketAddr, number: usize) {
    let socket = socket(number);
    // Everybody is answered: this only ends a test of a server that does not.
    socket.set_read_timeout(Some(ANSWERED_WITHIN)).unwrap();
    let mut endpoint = endpoint();
    let (mut connection, packet) = first_packet(&mut endpoint, crypto, server);
    socket.send_to(&packet, server).unwrap();
    let mut buffer = [0; 2048];
    let length = socket.recv(&mut buffer).expect("a stranger is answered");
    // Type 3 of a long header is a Retry (RFC 9000 17.2): without one the server has let the connection in
    // already.
    if buffer[0] & 0xb0 != 0xb0 {
        return;
    }
    let data = BytesMut::from(&buffer[..length]);
    let event = endpoint.handle(Instant::now(), server, None, None, data, &mut Vec::new());
    let Some(DatagramEvent::ConnectionEvent(_, event)) = event else { return };
    connection.handle_event(event);
    if let Some(packet) = next_packet(&mut connection) {
        socket.send_to(&packet, server).unwrap();
    }
}

/// One flood; how often a client was served meanwhile, and how long it took at most.
fn flood(strangers: usize, address: SocketAddr) -> (u32, Duration) {
    let over = AtomicBool::new(false);
    std::thread::scope(|scope| {
        let client = scope.spawn(|| {
            let (mut served, mut slowest) = (0, Duration::ZERO);
            while !over.load(Ordering::Relaxed) {
                slowest = slowest.max(be_served(address));
                served += 1;
                std::thread::sleep(Duration::from_millis(100));
            }
            (served, slowest)
        });
        let crypto = crypto();
        let mut endpoint = endpoint();
        for number in 0..strangers {
            let (_, packet) = first_packet(&mut endpoint, &crypto, address);
            socket(number).send_to(&packet, address).unwrap();
            if number % 2 == 0 {
                half_open(&crypto, address, strangers + number);
            }
        }
        over.store(true, Ordering::Relaxed);
        client.join().unwrap()
    })
}

fn floods(strangers: usize, long: bool) {
    let server = Running::start();
    let address = server.1;
    // What the first clients make the server load stays loaded.
    for _ in 0..20 {
        be_served(address);
    }
    let (before, descriptors) = (server.memory(), server.descriptors());
    let first = flood(strangers, address);
    let after_first = server.memory();
    let second = flood(strangers, address);
    let after_second = server.memory();
    let (served, slowest) = (first.0 + second.0, first.1.max(second.1));
    eprintln!(
        "twice {strangers} first packets and {} half-open connections: served {served} times, slowest {slowest:?}; memory {:.1} MB, \
         after the first flood {:.1} MB, after the second {:.1} MB; descriptors {descriptors}, then {}",
        strangers / 2,
        before / 1e6,
        after_first / 1e6,
        after_second / 1e6,
        server.descriptors()
    );
    if long {
        std::thread::sleep(CALM);
        eprintln!("{CALM:?} later {:.1} MB", server.memory() / 1e6);
        assert!(slowest < SERVED_WITHIN, "the slowest was served after {slowest:?}");
    }
    assert!(served > 0);
    assert!(
        after_second <= 1.1 * after_first,
        "{after_first} bytes after one flood, {after_second} after two"
    );
    assert_eq!(server.descriptors(), descriptors);
}

#[test]
fn strangers_cost_a_server_no_memory_that_stays() {
    if std::env::var_os(SERVE).is_some() {
        serve();
    }
    if std::env::var_os(INSIDE).is_some() {
        let given = std::env::var("BRAKELIGHT_FLOOD").ok().map(|text| text.parse().expect("a number"));
        return floods(given.unwrap_or(1200), given.is_some());
    }
    let program = std::env::current_exe().unwrap();
    let line =
        "ip link set lo up && exec \"$0\" --exact strangers_cost_a_server_no_memory_that_stays --nocapture";
    let ended = Command::new("unshare")
        .args(["--user", "--map-root-user", "--net", "sh", "-c", &format!("{line} || exit 77")])
        .arg(program)
        .env(INSIDE, "1")
        .status();
    match ended {
        Ok(status) if status.success() => {}
        // The words before `exec` failed, or `unshare` itself.
        Ok(status) if matches!(status.code(), Some(1 | 77)) => {
            brakelight_testkit::skip(
                "a flood of strangers",
                format_args!("no network namespace can be made: {status}"),
            );
        }
        Err(error) => brakelight_testkit::skip("a flood of strangers", error),
        Ok(status) => panic!("{status}"),
    }
}
