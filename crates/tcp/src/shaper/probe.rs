//! Echo requests: their bytes, the sockets that they go by, and which of them are under way.
//!
//! | what | source |
//! |---|---|
//! | Echo, Echo Reply | rfc792; rfc4443 4.1, 4.2 |
//! | checksum | rfc1071; the kernel makes that of ICMPv6 (rfc3542 3.1) |
//!
//! A socket of the kind that any user may open (`net.ipv4.ping_group_range`) is tried first, and a raw one
//! after it. The first gets replies to its own requests alone, and the kernel chooses their identifier. A raw
//! one gets every packet of ICMP. Both believe only who says the token back that this process drew.

use std::collections::{BTreeMap, hash_map::RandomState};
use std::hash::{BuildHasher, Hasher};
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};

use brakelight_core::time::{Duration, Time};
use nix::errno::Errno;
use nix::sys::socket::sockopt::BindToDevice;
use nix::sys::socket::{AddressFamily, SockFlag, SockProtocol, SockType, setsockopt, socket};

use super::control::PROBE_TIMEOUT;
use crate::error::Error;

/// Bytes of data in a request, as `ping` and `fping` have them: 84 bytes at the IP layer with IPv4.
const DATA: usize = 56;
const HEADER: usize = 8;
/// ICMP type numbers: request and reply.
const TYPES_V4: (u8, u8) = (8, 0);
const TYPES_V6: (u8, u8) = (128, 129);

/// Returns the size of a request at the IP layer, in bytes.
pub fn size(to: IpAddr) -> u32 {
    let ip = if to.is_ipv4() { 20 } else { 40 };
    ip + (HEADER + DATA) as u32
}

/// A request to `to`.
fn request(to: IpAddr, id: u16, sequence: u16, token: u64) -> Vec<u8> {
    let kind = if to.is_ipv4() { TYPES_V4.0 } else { TYPES_V6.0 };
    let mut bytes = vec![kind, 0, 0, 0];
    bytes.extend(id.to_be_bytes());
    bytes.extend(sequence.to_be_bytes());
    bytes.extend(token.to_be_bytes());
    bytes.resize(HEADER + DATA, 0);
    if to.is_ipv4() {
        let sum = checksum(&bytes);
        bytes[2..4].copy_from_slice(&sum.to_be_bytes());
    }
    bytes
}

/// rfc1071: the complement of the sum in one's complement.
fn checksum(bytes: &[u8]) -> u16 {
    let words = bytes.chunks(2).map(|word| u32::from(word[0]) << 8 | u32::from(*word.get(1).unwrap_or(&0)));
    let mut sum: u32 = words.sum();
    while sum > 0xffff {
        sum = (sum & 0xffff) + (sum >> 16);
    }
    !(sum as u16)
}

/// Returns the sequence number of a reply that says `token` back, if these bytes are one. With `raw`, those
/// of IPv4 begin with the IP header.
fn reply(from: IpAddr, bytes: &[u8], raw: bool, token: u64) -> Option<u16> {
    let skip = if raw && from.is_ipv4() { 4 * usize::from(bytes.first()? & 0xf) } else { 0 };
    let message = bytes.get(skip..)?;
    let expected = if from.is_ipv4() { TYPES_V4.1 } else { TYPES_V6.1 };
    let said = message.get(HEADER..HEADER + 8)?;
    if *message.first()? != expected || said != token.to_be_bytes() {
        return None;
    }
    Some(u16::from_be_bytes([message[6], message[7]]))
}

/// A request under way.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Sent {
    /// When it was sent.
    pub at: Time,
    /// To which reflector, by number.
    pub reflector: usize,
}

/// Which requests are under way, and to whom the next goes: to each reflector in turn.
#[derive(Clone, Debug, Default)]
pub struct UnderWay {
    next: u64,
    sent: BTreeMap<u64, Sent>,
}

impl UnderWay {
    /// Returns the reflector that is next, of so many.
    pub fn reflector(&self, of: usize) -> usize {
        (self.next % of.max(1) as u64) as usize
    }

    /// Takes down a request. Returns its number; the lower 16 bits are its sequence number.
    pub fn add(&mut self, sent: Sent) -> u64 {
        while let Some(first) = self.sent.first_entry()
            && sent.at.since(first.get().at) > PROBE_TIMEOUT
        {
            first.remove();
        }
        self.sent.insert(self.next, sent);
        self.next += 1;
        self.next - 1
    }

    /// Returns the request that a reply from `reflector` belongs to. It is answered once.
    pub fn answered(&mut self, sequence: u16, reflector: usize) -> Option<(u64, Sent)> {
        // Sequence numbers wrap: it is the newest of that number.
        let back = u64::from((self.next.wrapping_sub(1) as u16).wrapping_sub(sequence));
        let number = self.next.checked_sub(1)?.checked_sub(back)?;
        let sent = *self.sent.get(&number).filter(|sent| sent.reflector == reflector)?;
        self.sent.remove(&number);
        Some((number, sent))
    }
}

/// The sockets to a list of reflectors.
pub struct Sockets {
    v4: Option<Echo>,
    v6: Option<Echo>,
    reflectors: Vec<IpAddr>,
    token: u64,
}

struct Echo {
    socket: UdpSocket,
    raw: bool,
}

impl Sockets {
    /// Opens what these reflectors need. Requests leave by `device`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if this user may open neither kind of socket.
    pub fn open(reflectors: &[IpAddr], device: &str) -> Result<Self, Error> {
        let v4 = reflectors.iter().any(IpAddr::is_ipv4);
        let v6 = reflectors.iter().any(IpAddr::is_ipv6);
        Ok(Sockets {
            v4: v4.then(|| Echo::open(AddressFamily::Inet, SockProtocol::Icmp, device)).transpose()?,
            v6: v6.then(|| Echo::open(AddressFamily::Inet6, SockProtocol::IcmpV6, device)).transpose()?,
            reflectors: reflectors.to_vec(),
            // Unlike each other from process to process and from run to run.
            token: RandomState::new().build_hasher().finish(),
        })
    }

    /// Returns what becomes readable when a reply comes.
    pub fn readable(&self) -> impl Iterator<Item = BorrowedFd<'_>> {
        self.v4.iter().chain(&self.v6).map(|echo| echo.socket.as_fd())
    }

    /// Sends a request. One that cannot leave, as where there is no route now, is one that nobody answers.
    pub fn send(&self, reflector: usize, sequence: u16) {
        let Some(to) = self.reflectors.get(reflector) else { return };
        let echo = if to.is_ipv4() { &self.v4 } else { &self.v6 };
        let Some(echo) = echo else { return };
        let request = request(*to, self.token as u16, sequence, self.token);
        let _ = echo.socket.send_to(&request, SocketAddr::new(*to, 0));
    }

    /// Returns the next reply that has come: its sequence number and the reflector.
    pub fn receive(&self) -> Option<(u16, usize)> {
        self.v4.iter().chain(&self.v6).find_map(|echo| {
            let mut bytes = [0; 2048];
            loop {
                // Errors of single packets, such as an unreachable host, are taken off the socket by this.
                let (length, from) = echo.socket.recv_from(&mut bytes).ok()?;
                let from = from.ip();
                let reflector = self.reflectors.iter().position(|reflector| *reflector == from);
                let sequence = reply(from, &bytes[..length], echo.raw, self.token);
                if let (Some(reflector), Some(sequence)) = (reflector, sequence) {
                    return Some((sequence, reflector));
                }
            }
        })
    }
}

impl Echo {
    fn open(family: AddressFamily, protocol: SockProtocol, device: &str) -> Result<Self, Error> {
        let open = |kind| {
            socket(family, kind, SockFlag::SOCK_CLOEXEC | SockFlag::SOCK_NONBLOCK, protocol)
                .map(UdpSocket::from)
        };
        let (socket, raw) = match open(SockType::Datagram) {
            Ok(socket) => (socket, false),
            Err(Errno::EACCES | Errno::EPERM) => (open(SockType::Raw).map_err(refused)?, true),
            Err(error) => return Err(Error::kernel("opening a socket for echo requests", error)),
        };
        setsockopt(&socket, BindToDevice, &device.into()).map_err(|error| {
            Error::kernel(format!("binding the socket for echo requests to {device}"), error)
        })?;
        Ok(Echo { socket, raw })
    }
}

fn refused(error: Errno) -> Error {
    if matches!(error, Errno::EPERM | Errno::EACCES) {
        return Error::Input(
            "echo requests take the capability CAP_NET_RAW, or a group within `sysctl net.ipv4.ping_group_range`: \
             run it as root"
                .to_string(),
        );
    }
    Error::kernel("opening a socket for echo requests", error)
}

/// Returns whether a reply can come from this address.
pub fn is_reflector(address: &IpAddr) -> bool {
    !address.is_multicast() && !address.is_unspecified() && *address != Ipv4Addr::BROADCAST
}

/// When the next probe is due.
#[derive(Clone, Copy, Debug)]
pub struct Schedule(Time);

impl Schedule {
    /// Returns one whose first probe is due at `now`.
    pub fn new(now: Time) -> Self {
        Schedule(now)
    }

    /// Returns when the next is due; `None` where none is wanted.
    pub fn next(&self, every: Option<Duration>) -> Option<Time> {
        every.map(|_| self.0)
    }

    /// Returns whether one is due, and schedules the one after it. What is late is not made up for.
    pub fn is_due(&mut self, now: Time, every: Option<Duration>) -> bool {
        let Some(every) = every.filter(|_| now >= self.0) else { return false };
        let next = self.0 + every;
        self.0 = if next > now { next } else { now + every };
        true
    }
}

#[cfg(test)]
mod tests {
    use std::net::Ipv6Addr;

    use super::*;

    const V4: IpAddr = IpAddr::V4(Ipv4Addr::new(192, 0, 2, 1));
    const V6: IpAddr = IpAddr::V6(Ipv6Addr::new(0x2001, 0xdb8, 0, 0, 0, 0, 0, 1));

    #[test]
    fn the_checksum_is_that_of_the_rfc_s_example() {
        // rfc1071 3: the sum is ddf2.
        assert_eq!(checksum(&[0x00, 0x01, 0xf2, 0x03, 0xf4, 0xf5, 0xf6, 0xf7]), !0xddf2);
        assert_eq!(checksum(&[0x01]), !0x0100);
        let request = request(V4, 7, 9, 0x0102_0304_0506_0708);
        assert_eq!(checksum(&request), 0);
        assert_eq!((request.len(), size(V4), size(V6)), (64, 84, 104));
        assert_eq!(request[..2], [8, 0]);
        assert_eq!(request[4..16], [0, 7, 0, 9, 1, 2, 3, 4, 5, 6, 7, 8]);
    }

    #[test]
    fn a_reply_is_one_that_says_the_token_back() {
        for (to, header) in [(V4, 20), (V6, 0)] {
            let mut bytes = request(to, 7, 513, 42);
            assert_eq!(reply(to, &bytes, false, 42), None, "a request is none");
            bytes[0] = if to.is_ipv4() { 0 } else { 129 };
            assert_eq!(reply(to, &bytes, false, 42), Some(513));
            assert_eq!(reply(to, &bytes, false, 43), None);
            for length in 0..16 {
                assert_eq!(reply(to, &bytes[..length], false, 42), None);
            }
            // A raw socket of IPv4 has the IP header before it.
            let raw = [vec![0x45; header], bytes].concat();
            assert_eq!(reply(to, &raw, true, 42), Some(513));
        }
    }

    #[test]
    fn each_request_is_answered_once_by_whom_it_was_sent_to() {
        let mut probes = UnderWay::default();
        let sent = |ms, reflector| Sent { at: Time::from_millis(ms), reflector };
        assert_eq!(probes.answered(0, 0), None);
        assert_eq!((probes.reflector(2), probes.add(sent(0, 0))), (0, 0));
        assert_eq!((probes.reflector(2), probes.add(sent(50, 1))), (1, 1));
        assert_eq!(probes.answered(1, 0), None);
        assert_eq!(probes.answered(2, 0), None);
        assert_eq!(probes.answered(1, 1), Some((1, sent(50, 1))));
        assert_eq!(probes.answered(1, 1), None);
        // Numbers wrap, and who does not answer in ten seconds is forgotten.
        for number in 2..70_000 {
            assert_eq!(probes.add(sent(number * 50, 0)), number);
        }
        assert_eq!(probes.answered(69_999_u64 as u16, 0), Some((69_999, sent(69_999 * 50, 0))));
        assert_eq!(probes.answered(0, 0), None);
        assert!(probes.sent.len() <= 201, "{}", probes.sent.len());
    }

    #[test]
    fn a_probe_that_is_late_is_not_made_up_for() {
        let at = Time::from_millis;
        let every = Some(Duration::from_millis(50));
        let mut schedule = Schedule::new(at(0));
        assert!(schedule.is_due(at(0), every) && !schedule.is_due(at(49), every));
        assert!(schedule.is_due(at(52), every));
        assert_eq!(schedule.next(every), Some(at(100)));
        assert!(schedule.is_due(at(400), every));
        assert_eq!(schedule.next(every), Some(at(450)));
        assert!(!schedule.is_due(at(500), None) && schedule.next(None).is_none());
    }

    #[test]
    fn a_reflector_is_one_machine() {
        let is = |text: &str| is_reflector(&text.parse().unwrap());
        assert!(is("9.9.9.9") && is("2620:fe::fe"));
        assert!(!is("0.0.0.0") && !is("255.255.255.255") && !is("224.0.0.1") && !is("::") && !is("ff02::1"));
    }
}
