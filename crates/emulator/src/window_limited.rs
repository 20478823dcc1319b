//! Which TCP flows their windows limited, by the kernel's own counters: what `ss -i` prints as
//! `rwnd_limited` and `sndbuf_limited`.
//!
//! The kernel counts for how long a flow had data to send, and for how much of that the receiver's window or
//! the sender's buffer held it back (`tcp_get_info_chrono_stats` in net/ipv4/tcp.c). A socket of sock_diag
//! hears of every TCP socket of its network namespace that is destroyed, with these counters
//! (`sock_diag_broadcast_destroy` in net/core/sock_diag.c), so that flows of any program are seen, however
//! short they are. Those that still live at the end are asked for.

use std::collections::BTreeSet;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, Ipv6Addr, SocketAddr};
use std::os::fd::{AsFd, AsRawFd, BorrowedFd, FromRawFd, IntoRawFd, OwnedFd};
use std::thread;
use std::time::{Duration, Instant};

use netlink_sys::Socket;
use netlink_sys::protocols::NETLINK_SOCK_DIAG;

/// Words that only the warning has, for who reads the notes of another process.
pub const WORDS: &str = "not by the path";

/// The share of its time above which a flow counts as limited.
const MOST_SHARE: f64 = 0.05;
/// Flows that were busy for less are not judged: the kernel grows their buffers as they start.
const SHORTEST: Duration = Duration::from_secs(1);
/// How long the kernel may take to tell of sockets that have just been destroyed; it does so from a queue.
const TELL_WITHIN: Duration = Duration::from_millis(20);
/// How long an answer may take.
const ANSWER_WITHIN: Duration = Duration::from_secs(1);

/// The multicast groups of destroyed TCP sockets, `SKNLGRP_INET_TCP_DESTROY` and
/// `SKNLGRP_INET6_TCP_DESTROY` in linux/sock_diag.h, as bits.
const DESTROYED: u32 = 1 << 0 | 1 << 2;
/// `SOCK_DIAG_BY_FAMILY` in linux/sock_diag.h.
const BY_FAMILY: u16 = 20;
/// `INET_DIAG_INFO` in linux/inet_diag.h: the attribute that holds a `tcp_info`.
const INFO: u16 = 2;
/// Bytes of a `nlmsghdr`, of an `inet_diag_req_v2` and of an `inet_diag_msg`.
const HEADER: usize = 16;
const REQUEST: usize = 56;
const MESSAGE: usize = 72;
/// Where `tcpi_busy_time`, `tcpi_rwnd_limited` and `tcpi_sndbuf_limited` stand in linux/tcp.h's `tcp_info`:
/// 64 bits each, microseconds.
const BUSY: usize = 168;
const BY_RECEIVER: usize = 176;
const BY_SENDER: usize = 184;

/// A flow as its sender's kernel counted it.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) struct Counted {
    from: SocketAddr,
    to: SocketAddr,
    busy: Duration,
    by_receiver: Duration,
    by_sender: Duration,
}

impl Counted {
    fn limited(&self) -> Duration {
        self.by_receiver + self.by_sender
    }

    /// The part of its time for which the flow was limited by a window.
    fn share(&self) -> f64 {
        if self.busy.is_zero() { 0.0 } else { self.limited().as_secs_f64() / self.busy.as_secs_f64() }
    }

    fn counts(&self) -> bool {
        !self.from.ip().is_loopback() && self.busy >= SHORTEST && self.share() > MOST_SHARE
    }
}

/// What the namespaces' limits of socket buffers are, which decides what a user can do.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(crate) enum Buffers {
    /// The machine's, by the user's wish.
    Kept,
    /// As large as the path needs.
    Enough,
    /// The machine's, since no link says what is needed.
    Unknown,
}

/// The flow that was limited longest, and how many others were.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub(crate) struct Tally {
    worst: Option<Counted>,
    flows: usize,
}

impl Tally {
    fn add(&mut self, flow: Counted) {
        if !flow.counts() {
            return;
        }
        self.flows += 1;
        if self.worst.is_none_or(|worst| worst.limited() < flow.limited()) {
            self.worst = Some(flow);
        }
    }

    /// What to tell the user, or nothing where no flow was limited.
    pub(crate) fn warning(&self, buffers: Buffers) -> Option<String> {
        let worst = self.worst?;
        let others = match self.flows - 1 {
            0 => String::new(),
            1 => " (and 1 other flow)".to_string(),
            others => format!(" (and {others} other flows)"),
        };
        let receiver = worst.by_receiver >= worst.by_sender;
        let (window, sysctl, option) = if receiver {
            ("its receiver's window", "net.ipv4.tcp_rmem", "reads slowly or sets SO_RCVBUF")
        } else {
            ("its sender's socket buffer", "net.ipv4.tcp_wmem", "sets SO_SNDBUF")
        };
        let end = if receiver { "receiving" } else { "sending" };
        let remedy = match buffers {
            Buffers::Kept => format!("leave out --keep-sysctls, or raise {sysctl} on this machine"),
            Buffers::Enough => format!("{sysctl} is large enough here, so the {end} program {option}"),
            Buffers::Unknown => format!("raise {sysctl} on this machine, unless the {end} program {option}"),
        };
        Some(format!(
            "{} -> {}{others}: limited by {window}, {WORDS}, for {:.0} % of the {:.1} s in which it had data to send; \
             {remedy}",
            worst.from,
            worst.to,
            worst.share() * 100.0,
            worst.busy.as_secs_f64(),
        ))
    }
}

/// Hears of the TCP sockets of one network namespace.
pub(crate) struct Listener(Socket);

impl fmt::Debug for Listener {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_tuple("Listener").field(&self.0.as_raw_fd()).finish()
    }
}

impl AsFd for Listener {
    fn as_fd(&self) -> BorrowedFd<'_> {
        // SAFETY: the socket is open for as long as it is borrowed.
        unsafe { BorrowedFd::borrow_raw(self.0.as_raw_fd()) }
    }
}

impl From<OwnedFd> for Listener {
    /// The descriptor is one of [`open`].
    fn from(fd: OwnedFd) -> Self {
        // SAFETY: the descriptor is open and nobody else's.
        Listener(unsafe { Socket::from_raw_fd(fd.into_raw_fd()) })
    }
}

/// Begins to listen in the current network namespace. Fails where the kernel was built without sock_diag.
pub(crate) fn open() -> io::Result<OwnedFd> {
    let mut socket = Socket::new(NETLINK_SOCK_DIAG)?;
    socket.bind(&netlink_sys::SocketAddr::new(0, DESTROYED))?;
    socket.set_non_blocking(true)?;
    // SAFETY: the descriptor is open and, from here on, nobody else's.
    Ok(unsafe { OwnedFd::from_raw_fd(socket.into_raw_fd()) })
}

impl Listener {
    /// Adds up what was said since the last time; sockets in `but` have been counted.
    pub(crate) fn hear(&self, tally: &mut Tally, but: &BTreeSet<u64>) {
        while let Ok((datagram, _)) = self.0.recv_from_full() {
            for (_, flow) in messages(&datagram).filter_map(read) {
                if !but.contains(&flow.0) {
                    tally.add(flow.1);
                }
            }
        }
    }

    /// Adds the sockets that live, and those that have just been destroyed.
    pub(crate) fn finish(&self, tally: &mut Tally) -> io::Result<()> {
        self.hear(tally, &BTreeSet::new());
        let mut counted = BTreeSet::new();
        for (number, family) in [(1, libc::AF_INET), (2, libc::AF_INET6)] {
            self.0.send(&request(number, family as u8), 0)?;
            self.answers(number, tally, &mut counted)?;
        }
        thread::sleep(TELL_WITHIN);
        self.hear(tally, &counted);
        Ok(())
    }

    /// Takes in the answers to the request of this number.
    fn answers(&self, number: u32, tally: &mut Tally, counted: &mut BTreeSet<u64>) -> io::Result<()> {
        let until = Instant::now() + ANSWER_WITHIN;
        while Instant::now() < until {
            let datagram = match self.0.recv_from_full() {
                Ok((datagram, _)) => datagram,
                Err(error) if error.kind() == io::ErrorKind::WouldBlock => {
                    thread::sleep(Duration::from_millis(1));
                    continue;
                }
                Err(error) => return Err(error),
            };
            for message in messages(&datagram) {
                let ends = [libc::NLMSG_DONE as u16, libc::NLMSG_ERROR as u16].contains(&message.kind);
                if ends && message.number == number {
                    return Ok(());
                }
                if let Some((_, (cookie, flow))) = read(message)
                    && counted.insert(cookie)
                {
                    tally.add(flow);
                }
            }
        }
        Err(io::ErrorKind::TimedOut.into())
    }
}

/// The request for all TCP sockets of a family, with their `tcp_info`.
fn request(number: u32, family: u8) -> Vec<u8> {
    let mut bytes = Vec::with_capacity(HEADER + REQUEST);
    bytes.extend(((HEADER + REQUEST) as u32).to_ne_bytes());
    bytes.extend(BY_FAMILY.to_ne_bytes());
    bytes.extend(((libc::NLM_F_REQUEST | libc::NLM_F_DUMP) as u16).to_ne_bytes());
    bytes.extend(number.to_ne_bytes());
    bytes.extend(0_u32.to_ne_bytes());
    bytes.extend([family, libc::IPPROTO_TCP as u8, 1 << (INFO - 1), 0]);
    bytes.extend(u32::MAX.to_ne_bytes());
    bytes.resize(HEADER + REQUEST, 0);
    bytes
}

/// One netlink message.
#[derive(Clone, Copy, Debug)]
struct Message<'a> {
    kind: u16,
    number: u32,
    body: &'a [u8],
}

fn messages(mut rest: &[u8]) -> impl Iterator<Item = Message<'_>> {
    std::iter::from_fn(move || {
        let length = u32_at(rest, 0)? as usize;
        let body = rest.get(HEADER..length)?;
        let message = Message { kind: u16_at(rest, 4)?, number: u32_at(rest, 8)?, body };
        rest = rest.get(length.next_multiple_of(4)..).unwrap_or(&[]);
        Some(message)
    })
}

/// Reads a socket: the number of the request it answers, its identity and its counters. `None` for messages
/// of another kind, and for sockets that no longer count, such as those in TIME-WAIT.
fn read(message: Message<'_>) -> Option<(u32, (u64, Counted))> {
    if message.kind != BY_FAMILY {
        return None;
    }
    let body = message.body;
    let family = i32::from(*body.first()?);
    let port = |at: usize| Some(u16::from_be_bytes(body.get(at..at + 2)?.try_into().ok()?));
    let address = |at: usize| match family {
        libc::AF_INET => Some(IpAddr::V4(Ipv4Addr::from(<[u8; 4]>::try_from(body.get(at..at + 4)?).ok()?))),
        libc::AF_INET6 => Some(
            IpAddr::V6(Ipv6Addr::from(<[u8; 16]>::try_from(body.get(at..at + 16)?).ok()?)).to_canonical(),
        ),
        _ => None,
    };
    let cookie = u64_at(body, 44)?;
    let info = attribute(body.get(MESSAGE..)?, INFO)?;
    let micros = |at| u64_at(info, at).map(Duration::from_micros);
    let counted = Counted {
        from: SocketAddr::new(address(8)?, port(4)?),
        to: SocketAddr::new(address(24)?, port(6)?),
        busy: micros(BUSY)?,
        by_receiver: micros(BY_RECEIVER)?,
        by_sender: micros(BY_SENDER)?,
    };
    Some((message.number, (cookie, counted)))
}

/// Finds an attribute by its type.
fn attribute(mut rest: &[u8], wanted: u16) -> Option<&[u8]> {
    loop {
        let length = usize::from(u16_at(rest, 0)?);
        let value = rest.get(4..length)?;
        if u16_at(rest, 2)? == wanted {
            return Some(value);
        }
        rest = rest.get(length.next_multiple_of(4)..)?;
    }
}

fn u16_at(bytes: &[u8], at: usize) -> Option<u16> {
    Some(u16::from_ne_bytes(bytes.get(at..at + 2)?.try_into().ok()?))
}

fn u32_at(bytes: &[u8], at: usize) -> Option<u32> {
    Some(u32::from_ne_bytes(bytes.get(at..at + 4)?.try_into().ok()?))
}

fn u64_at(bytes: &[u8], at: usize) -> Option<u64> {
    Some(u64::from_ne_bytes(bytes.get(at..at + 8)?.try_into().ok()?))
}

#[cfg(test)]
mod tests {
    use std::io::{Read, Write};
    use std::net::{TcpListener, TcpStream};

    use super::*;

    fn counted(busy_ms: u64, by_receiver_ms: u64, by_sender_ms: u64) -> Counted {
        Counted {
            from: "100.64.0.1:4000".parse().unwrap(),
            to: "100.64.0.2:5201".parse().unwrap(),
            busy: Duration::from_millis(busy_ms),
            by_receiver: Duration::from_millis(by_receiver_ms),
            by_sender: Duration::from_millis(by_sender_ms),
        }
    }

    fn warning(flows: &[Counted], buffers: Buffers) -> Option<String> {
        let mut tally = Tally::default();
        flows.iter().for_each(|flow| tally.add(*flow));
        tally.warning(buffers)
    }

    #[test]
    fn more_than_a_twentieth_of_the_time_warns_with_the_share_and_the_remedy() {
        assert_eq!(warning(&[counted(10_000, 300, 200)], Buffers::Kept), None);
        assert_eq!(
            warning(&[counted(10_000, 400, 200), counted(20_000, 16_600, 0)], Buffers::Kept).unwrap(),
            "100.64.0.1:4000 -> 100.64.0.2:5201 (and 1 other flow): limited by its receiver's window, not by the path, for 83 % \
             of the 20.0 s in which it had data to send; leave out --keep-sysctls, or raise net.ipv4.tcp_rmem on this machine"
        );
        let sender = warning(&[counted(10_000, 0, 5_000)], Buffers::Enough).unwrap();
        assert!(sender.contains("its sender's socket buffer"), "{sender}");
        assert!(
            sender.ends_with("net.ipv4.tcp_wmem is large enough here, so the sending program sets SO_SNDBUF")
        );
    }

    #[test]
    fn neither_a_start_nor_the_loopback_interface_is_judged() {
        assert_eq!(warning(&[counted(900, 900, 0)], Buffers::Kept), None);
        let loopback = Counted { from: "127.0.0.1:1".parse().unwrap(), ..counted(9_000, 9_000, 0) };
        assert_eq!(warning(&[loopback], Buffers::Kept), None);
    }

    #[test]
    fn a_receiver_that_does_not_read_is_seen_in_a_live_flow_and_in_a_closed_one() {
        let Ok(fd) = open() else {
            brakelight_testkit::skip("network: sock_diag", "this kernel has no sock_diag");
            return;
        };
        let listener = Listener::from(fd);
        let server = TcpListener::bind("127.0.0.1:0").unwrap();
        let mut sender = TcpStream::connect(server.local_addr().unwrap()).unwrap();
        let (mut receiver, _) = server.accept().unwrap();
        sender.set_nonblocking(true).unwrap();
        while sender.write(&[0; 65_536]).is_ok() {}
        thread::sleep(Duration::from_millis(300));
        let port = sender.local_addr().unwrap().port();
        let mut found = None;
        listener.0.send(&request(1, libc::AF_INET as u8), 0).unwrap();
        thread::sleep(TELL_WITHIN);
        while let Ok((datagram, _)) = listener.0.recv_from_full() {
            found = found
                .or(messages(&datagram).filter_map(read).find(|(_, (_, flow))| flow.from.port() == port));
        }
        let (number, (cookie, live)) = found.expect("the flow is listed");
        assert_eq!(number, 1);
        assert!(live.by_receiver >= Duration::from_millis(200), "{live:?}");
        assert!(live.share() > 0.5, "{live:?}");
        // Both ends go; the kernel tells.
        drop(sender);
        let _ = receiver.read_to_end(&mut Vec::new());
        drop(receiver);
        let until = Instant::now() + ANSWER_WITHIN;
        let mut closed = None;
        while closed.is_none() && Instant::now() < until {
            thread::sleep(TELL_WITHIN);
            while let Ok((datagram, _)) = listener.0.recv_from_full() {
                closed = closed.or(messages(&datagram).filter_map(read).find(|(_, flow)| flow.0 == cookie));
            }
        }
        let (_, (_, closed)) = closed.expect("the kernel tells of the end");
        assert_eq!((closed.from, closed.to), (live.from, live.to));
        assert!(closed.by_receiver >= live.by_receiver, "{closed:?}");
    }
}
