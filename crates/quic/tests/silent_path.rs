//! How measurements end over a path that swallows datagrams for a while, just when the end is told.

use std::net::{Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::sync::{Arc, Mutex, OnceLock};
use std::time::{Duration, Instant};

use brakelight_quic::adapter::{ControlSettings, PacketSender, Path};
use brakelight_quic::perf::client::{Plan, Until, Work, measure};
use brakelight_quic::perf::identity::{Identity, Trust};
use brakelight_quic::perf::server::{Limits, Server, ServerSettings};
use brakelight_quic::perf::{Control, Error};
use brakelight_registry::ControllerConfig;

/// Which way a datagram goes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Way {
    ToServer,
    ToClient,
}

/// Returns where to send what is for `server`. Of a datagram as many bytes arrive as `passes` says, by its
/// way and its bytes; with none it is lost.
fn relay(server: SocketAddr, passes: impl Fn(Way, &[u8]) -> usize + Clone + Send + 'static) -> SocketAddr {
    let socket = || UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
    let (near, far) = (Arc::new(socket()), Arc::new(socket()));
    far.connect(server).unwrap();
    let address = near.local_addr().unwrap();
    let client = Arc::new(Mutex::new(None));
    let (back, seen, passes_back) = (near.clone(), client.clone(), passes.clone());
    let out = far.clone();
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok((length, from)) = near.recv_from(&mut bytes) {
            client.lock().unwrap().get_or_insert(from);
            let length = passes(Way::ToServer, &bytes[..length]);
            if length > 0 {
                // Full buffers are a path's loss, too.
                let _ = out.send(&bytes[..length]);
            }
        }
    });
    std::thread::spawn(move || {
        let mut bytes = vec![0; 1 << 16];
        while let Ok(length) = far.recv(&mut bytes) {
            let Some(to) = *seen.lock().unwrap() else { continue };
            let length = passes_back(Way::ToClient, &bytes[..length]);
            if length > 0 {
                let _ = back.send_to(&bytes[..length], to);
            }
        }
    });
    address
}

fn cubic() -> ControlSettings {
    let controller = ControllerConfig::new("cubic", &[]).unwrap();
    ControlSettings::new(controller, PacketSender::Driver, Path::Own).unwrap()
}

/// A server that lives as long as the test's process, and tells `say` what it does.
fn serve(limits: Limits, say: impl Fn(&str) + Send + Sync + 'static) -> SocketAddr {
    let settings = ServerSettings {
        listen: (Ipv4Addr::LOCALHOST, 0).into(),
        control: cubic(),
        identity: Identity::self_signed(),
        token: None,
        qlog: None,
        limits,
    };
    let server = Server::bind(&settings, say).unwrap();
    let address = server.address();
    std::thread::spawn(move || server.serve());
    address
}

fn plan(server: SocketAddr, work: Work, time: Duration) -> Plan {
    Plan {
        server,
        server_name: "localhost".to_string(),
        trust: Trust::Anyone,
        token: None,
        control: Control::Ours(Box::new(cubic())),
        work,
        until: Until::Time(time),
        connections: 1,
        probe: None,
        qlog: None,
    }
}

/// How long the path stays silent after the server has ended a connection: longer than the stack answers
/// packets to a closed one (three probe timeouts, which are a tenth of a second here), and so short that the
/// client's next packet finds the server still answering. It answers for five seconds more, and the client
/// sends a packet every three at least. In this time nothing comes through either way: the server answers the
/// first packet of those that come, but not each.
const LATE: Duration = Duration::from_secs(1);

/// Where the silence of a client's path stands.
#[derive(Default)]
struct Silence {
    began: AtomicBool,
    /// When the server ended the connection.
    ended: OnceLock<Instant>,
    /// Datagrams lost after that.
    lost_since: AtomicU64,
}

impl Silence {
    /// Whether a datagram is lost now.
    fn swallows(&self, way: Way) -> bool {
        let Some(ended) = self.ended.get() else {
            return way == Way::ToClient && self.began.load(Ordering::SeqCst);
        };
        let silent = ended.elapsed() < LATE;
        self.lost_since.fetch_add(u64::from(silent && way == Way::ToClient), Ordering::SeqCst);
        silent
    }
}

#[test]
fn a_client_that_hears_late_of_its_end_hears_the_reason() {
    const REASON: &str = "the server's limit of 1 s is reached";
    let told = |work| {
        let silence = Arc::new(Silence::default());
        let end = silence.clone();
        let limits = Limits { duration: Duration::from_secs(1), ..Limits::default() };
        let server = serve(limits, move |line| {
            if line.ends_with(REASON) && end.ended.get().is_none() {
                // The server says this before it closes the connection, so the packet that tells of the end
                // is lost, however late the client began.
                end.ended.get_or_init(Instant::now);
            }
        });
        let path = silence.clone();
        let address = relay(server, move |way, bytes| if path.swallows(way) { 0 } else { bytes.len() });
        // A server that sends is silenced before: then its data wait for the window when it ends.
        let begin = |_, bytes| {
            silence.began.fetch_or(work == Work::Download && bytes > 0, Ordering::SeqCst);
        };
        let said = measure(&plan(address, work, Duration::from_secs(30)), begin).unwrap_err().to_string();
        (said, silence.lost_since.load(Ordering::SeqCst))
    };
    std::thread::scope(|scope| {
        for work in [Work::Upload, Work::Download] {
            scope.spawn(move || {
                let (said, lost) = told(work);
                assert!(said.contains(REASON), "{work:?}: {said}");
                assert!(lost > 0, "{work:?}: the client heard in time");
            });
        }
    });
}

/// A number of variable length and the bytes behind it. RFC 9000 section 16
fn number(bytes: &[u8]) -> Option<(usize, &[u8])> {
    let first = *bytes.first()?;
    let (number, rest) = bytes.split_at_checked(1 << (first >> 6))?;
    let value = number[1..].iter().fold(usize::from(first & 0x3f), |sum, byte| sum << 8 | usize::from(*byte));
    Some((value, rest))
}

/// What stands behind `length` bytes.
fn behind(bytes: &[u8], length: usize) -> Option<&[u8]> {
    bytes.get(length..)
}

/// The bytes behind a packet with a long header and a length. RFC 9000 sections 17.2.2 to 17.2.4
fn next_packet(packet: &[u8]) -> Option<&[u8]> {
    let is_initial = packet[0] & 0x30 == 0;
    let mut rest = behind(packet, 5)?;
    for _ in ["destination", "source"] {
        rest = behind(rest, 1 + usize::from(*rest.first()?))?;
    }
    if is_initial {
        let (token, after) = number(rest)?;
        rest = behind(after, token)?;
    }
    let (length, after) = number(rest)?;
    behind(after, length)
}

/// The bytes of a datagram before its packet with a short header, which alone carries data and is the last
/// of those that share a datagram: a client's may stand behind the end of its handshake. RFC 9000
/// section 12.2
fn before_data(datagram: &[u8]) -> usize {
    let mut rest = datagram;
    // The first bit of a long header is set.
    while rest.first().is_some_and(|first| first & 0x80 != 0) {
        let Some(next) = next_packet(rest) else { break };
        rest = next;
    }
    let has_data = rest.first().is_some_and(|first| first & 0x80 == 0);
    if has_data { datagram.len() - rest.len() } else { datagram.len() }
}

#[test]
fn data_behind_the_end_of_a_handshake_are_found() {
    let short = [0x40, 1, 2, 3, 4];
    // Version, no identifiers, five bytes; an Initial has a token of two bytes besides.
    let handshake = [0xe0, 0, 0, 0, 1, 0, 0, 5, 9, 9, 9, 9, 9];
    let initial = [0xc0, 0, 0, 0, 1, 1, 7, 0, 2, 8, 8, 0x40, 5, 9, 9, 9, 9, 9];
    assert_eq!(before_data(&short), 0);
    assert_eq!(before_data(&handshake), handshake.len());
    assert_eq!(before_data(&[&handshake[..], &short].concat()), handshake.len());
    let both = [&initial[..], &handshake, &short].concat();
    assert_eq!(before_data(&both), initial.len() + handshake.len());
    assert_eq!(before_data(&initial), initial.len());
}

#[test]
fn an_upload_of_which_nothing_comes_through_in_its_time_is_one_of_no_bytes() {
    const TIME: Duration = Duration::from_millis(300);
    let opened = Arc::new(AtomicBool::new(false));
    let open = opened.clone();
    let address = relay(serve(Limits::default(), |_| ()), move |way, bytes| {
        let closed = way == Way::ToServer && !open.load(Ordering::SeqCst);
        if closed { before_data(bytes) } else { bytes.len() }
    });
    // The path opens long after the client has given up: at its end, whoever has the processor until then.
    let progress = |elapsed, _| {
        if elapsed >= TIME + Duration::from_secs(2) {
            opened.store(true, Ordering::SeqCst);
        }
    };
    let measured = measure(&plan(address, Work::Upload, TIME), progress);
    let measured = measured.unwrap_or_else(|error: Error| panic!("{error}"));
    assert!(opened.load(Ordering::SeqCst), "the upload ended while nothing came through");
    let received = measured.flows[0].received;
    assert!(received.done && received.payload == 0, "{received:?}");
}
