//! A UDP relay between one client and a server that rewrites the ECN field, drops and reorders, and keeps
//! account of what it let pass, packet by packet.

use std::collections::HashMap;
use std::io;
use std::net::{Ipv4Addr, SocketAddr};
use std::sync::{Arc, Mutex};
use std::time::Duration;

use brakelight_core::ecn::Ecn;
use brakelight_core::random::Random;
use brakelight_quic::socket::codepoint;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit, UdpSocketState};
use tokio::io::Interest;
use tokio::net::UdpSocket;

/// What the relay does to the ECN field towards the server.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Rewrite {
    /// Nothing.
    Nothing,
    /// ECT(1) stays with one half of the packets, becomes ECT(0) with four in ten, and CE with one.
    Mark,
    /// Everything becomes Not-ECT.
    Bleach,
    /// ECT(1) becomes ECT(0).
    Ect1ToEct0,
    /// Everything that is ECN-capable becomes CE.
    AllCe,
    /// Everything becomes CE, Not-ECT too, which no router may do.
    ForgedCe,
}

/// What the relay does.
#[derive(Clone, Copy, Debug)]
pub struct Path {
    /// To the ECN field, towards the server.
    pub rewrite: Rewrite,
    /// Share of datagrams dropped, either way.
    pub loss: f64,
    /// Share of datagrams that three later ones overtake, either way.
    pub reordered: f64,
    /// Whether the receiver's 1-RTT packets wait until both ends are silent, so that a whole window leaves
    /// before its first ACK comes.
    pub answers_wait: bool,
    /// Of its random numbers.
    pub seed: u64,
}

/// The end of a packet, by which it is known: the last bytes of its tag.
pub type Key = [u8; 8];

/// The codepoint with which the relay let each packet with a short header pass, towards the server.
pub type Account = Arc<Mutex<HashMap<Key, Ecn>>>;

/// Starts a relay to `server` on the runtime; gives the address for the client.
pub fn start(server: SocketAddr, path: Path) -> (SocketAddr, Account) {
    let (near, far) = (Port::new(), Port::new());
    let address = near.socket.local_addr().unwrap();
    let account = Account::default();
    tokio::spawn(forward(near, far, server, path, account.clone()));
    (address, account)
}

/// The key of the last packet in `datagram`.
pub fn key(datagram: &[u8]) -> Key {
    *datagram.last_chunk().expect("a packet is longer than its tag")
}

struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    buffer: Vec<u8>,
}

type Datagram = (Vec<u8>, Option<EcnCodepoint>, SocketAddr);

impl Port {
    fn new() -> Self {
        let socket = std::net::UdpSocket::bind((Ipv4Addr::LOCALHOST, 0)).unwrap();
        let state = UdpSocketState::new((&socket).into()).unwrap();
        // A relay that runs late should not lose what it does not mean to.
        let _ = state.set_recv_buffer_size((&socket).into(), 4 << 20);
        Port { socket: UdpSocket::from_std(socket).unwrap(), state, buffer: vec![0; 65_536] }
    }

    async fn receive(&mut self, datagrams: &mut Vec<Datagram>) {
        self.socket.readable().await.unwrap();
        let mut meta = [RecvMeta::default()];
        let mut buffers = [io::IoSliceMut::new(&mut self.buffer)];
        let received = self
            .socket
            .try_io(Interest::READABLE, || self.state.recv((&self.socket).into(), &mut buffers, &mut meta));
        if let Ok(1..) = received {
            let [meta] = meta;
            let stride = meta.stride.max(1);
            datagrams
                .extend(self.buffer[..meta.len].chunks(stride).map(|d| (d.to_vec(), meta.ecn, meta.addr)));
        }
    }

    async fn send(&self, contents: &[u8], ecn: Option<EcnCodepoint>, destination: SocketAddr) {
        let transmit = Transmit { destination, ecn, contents, segment_size: None, src_ip: None };
        loop {
            self.socket.writable().await.unwrap();
            let sent =
                self.socket.try_io(Interest::WRITABLE, || self.state.send((&self.socket).into(), &transmit));
            if !matches!(sent, Err(error) if error.kind() == io::ErrorKind::WouldBlock) {
                break;
            }
        }
    }
}

/// Datagrams on their way in one direction.
struct Direction {
    path: Path,
    waits: bool,
    random: Random,
    /// Those that later ones overtake, and by how many more; `u32::MAX` waits for silence.
    held: Vec<(u32, Vec<u8>, Option<EcnCodepoint>)>,
}

impl Direction {
    /// What leaves now that `datagram` has come.
    fn pass(&mut self, datagram: Vec<u8>, ecn: Option<EcnCodepoint>) -> Vec<(Vec<u8>, Option<EcnCodepoint>)> {
        if self.random.chance(self.path.loss) {
            return Vec::new();
        }
        if self.waits && has_short_header(&datagram) {
            self.held.push((u32::MAX, datagram, ecn));
            return Vec::new();
        }
        if self.random.chance(self.path.reordered) {
            self.held.push((3, datagram, ecn));
            return Vec::new();
        }
        let mut leaving = vec![(datagram, ecn)];
        self.held.iter_mut().for_each(|(left, ..)| *left -= 1);
        leaving.extend(
            self.held.extract_if(.., |(left, ..)| *left == 0).map(|(_, datagram, ecn)| (datagram, ecn)),
        );
        leaving
    }

    fn release(&mut self) -> Vec<(Vec<u8>, Option<EcnCodepoint>)> {
        self.held.drain(..).map(|(_, datagram, ecn)| (datagram, ecn)).collect()
    }
}

async fn forward(mut near: Port, mut far: Port, server: SocketAddr, path: Path, account: Account) {
    let direction = |name: &str, waits| {
        let random = Random::stream(path.seed, name);
        Direction { path, waits, random, held: Vec::new() }
    };
    let (mut up, mut down) = (direction("up", false), direction("down", path.answers_wait));
    let mut marks = Random::stream(path.seed, "marks");
    let mut client = None;
    let (mut from_near, mut from_far) = (Vec::new(), Vec::new());
    loop {
        let idle = tokio::select! {
            () = near.receive(&mut from_near) => false,
            () = far.receive(&mut from_far) => false,
            // Nobody comes to overtake them.
            () = tokio::time::sleep(Duration::from_millis(5)) => true,
        };
        let mut leaving = Vec::new();
        for (datagram, ecn, from) in from_near.drain(..) {
            client = Some(from);
            leaving.extend(up.pass(datagram, ecn));
        }
        leaving.extend(if idle { up.release() } else { Vec::new() });
        for (datagram, ecn) in leaving {
            let before = ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
            let after = rewrite(path.rewrite, before, &mut marks);
            if has_short_header(&datagram) {
                account.lock().unwrap().insert(key(&datagram), after);
            }
            far.send(&datagram, codepoint(after), server).await;
        }
        let Some(client) = client else { continue };
        let mut leaving = Vec::new();
        from_far.drain(..).for_each(|(datagram, ecn, _)| leaving.extend(down.pass(datagram, ecn)));
        leaving.extend(if idle { down.release() } else { Vec::new() });
        for (datagram, ecn) in leaving {
            near.send(&datagram, ecn, client).await;
        }
    }
}

fn rewrite(how: Rewrite, before: Ecn, random: &mut Random) -> Ecn {
    match (how, before) {
        (Rewrite::Nothing, _) => before,
        (Rewrite::Bleach, _) => Ecn::NotEct,
        (Rewrite::AllCe, _) if before.is_capable() => Ecn::Ce,
        (Rewrite::ForgedCe, _) => Ecn::Ce,
        (Rewrite::Ect1ToEct0, Ecn::Ect1) => Ecn::Ect0,
        (Rewrite::Mark, Ecn::Ect1) => match random.uniform() {
            draw if draw < 0.5 => Ecn::Ect1,
            draw if draw < 0.9 => Ecn::Ect0,
            _ => Ecn::Ce,
        },
        _ => before,
    }
}

/// Whether the last packet of `datagram` is one of the 1-RTT space, behind others with long headers or alone.
fn has_short_header(datagram: &[u8]) -> bool {
    let mut rest = datagram;
    while let Some(first) = rest.first() {
        if first & 0x80 == 0 {
            return true;
        }
        let Some(length) = long_packet(rest) else { return false };
        rest = rest.get(length..).unwrap_or_default();
    }
    false
}

/// Length of the packet with a long header at the beginning of `bytes` (rfc9000 17.2).
fn long_packet(bytes: &[u8]) -> Option<usize> {
    let mut at = 5;
    for _ in 0..2 {
        at += 1 + usize::from(*bytes.get(at)?);
    }
    let varint = |at: &mut usize| {
        let first = *bytes.get(*at)?;
        let length = 1usize << (first >> 6);
        let rest = bytes.get(*at + 1..*at + length)?;
        *at += length;
        Some(rest.iter().fold(usize::from(first & 0x3f), |value, byte| value << 8 | usize::from(*byte)))
    };
    // An Initial has a token.
    if bytes[0] & 0x30 == 0 {
        let token = varint(&mut at)?;
        at += token;
    }
    let length = varint(&mut at)?;
    Some(at + length)
}
