//! A flow over two UDP sockets under the real clock: both ends in one process, each with a socket where its
//! packets leave and arrive. What lies between the sockets is the network.
//!
//! ```text
//! turn: receive what came -> send what the flow has to send -> wait for a packet, or for the flow's next
//!       deadline
//! ```
//!
//! Applications look at both ends of their flow, and so does [`FlowEnds`]: that is why one process has both.
//! Every packet is real: it leaves through one socket with its ECN codepoint and counts where the other
//! receives it, with the codepoint that it has there.

use std::io::{self, IoSliceMut};
use std::net::{SocketAddr, UdpSocket};
use std::num::NonZeroU64;
use std::time::Instant;

use brakelight_core::ecn::Ecn;
use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use quinn_udp::{BATCH_SIZE, RecvMeta, Transmit, UdpSocketState};
use rustix::event::{PollFd, PollFlags, Timespec, poll};

use super::end::time;
use super::flow::Totals;
use super::host::Host;
use crate::socket::codepoint;

/// Bytes that one receive may bring: a whole UDP datagram, or many that the kernel has joined.
const RECEIVE: usize = 1 << 16;
/// Receives of a socket before the flow may send.
const RECEIVES: usize = 8;
/// Datagrams that the flow may send before its sockets are read again.
const SENDS: usize = 64;
/// The longest single wait: a flow that gets no processor is seen to be late by all but this much.
const MAX_WAIT: Duration = Duration::from_millis(10);
/// Bytes of the sockets' buffers, as far as the system allows them.
const BUFFER: usize = 4 << 20;

/// Both ends of a flow with its application, without sockets and clocks: those of this crate's stack
/// ([`Host`]), or of any other.
pub trait FlowEnds: std::fmt::Debug {
    /// A datagram arrived at the end that `direction` leads to, with this ECN field.
    fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]);

    /// Writes the UDP payload of the next datagram to send at `now` into `payload`, which is empty. Returns
    /// its direction and ECN field, or `None` if there is none.
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(Direction, Ecn)>;

    /// Returns when the flow must be asked for datagrams next, if nothing arrives before.
    fn next_wakeup(&self) -> Option<Time>;

    /// Returns the newest RTT sample that was not taken yet.
    fn take_rtt_sample(&mut self) -> Option<Duration>;

    /// Returns what the flow did so far.
    fn totals(&self) -> Totals;

    /// Returns the sender's window; zero before the flow starts.
    fn cwnd(&self) -> Bytes;

    /// Calls `visit` with what the sender shows of itself, by name, in the unit the name ends in.
    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64));

    /// Calls `visit` with what the application made of it until `now`, by name, in the unit the name ends in.
    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64));

    /// Returns when the connection ended before its time, and why, if the flow says so.
    fn closed(&self) -> Option<(Time, String)> {
        None
    }
}

impl FlowEnds for Host {
    fn receive(&mut self, now: Time, direction: Direction, ecn: Ecn, payload: &[u8]) {
        Host::receive(self, now, direction, ecn, payload);
    }

    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<(Direction, Ecn)> {
        loop {
            let packet = self.poll_transmit(now)?;
            if let Some(bytes) = self.take_payload(&packet) {
                payload.extend_from_slice(&bytes);
                return Some((packet.direction, packet.ecn));
            }
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        Host::next_wakeup(self)
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        Host::take_rtt_sample(self)
    }

    fn totals(&self) -> Totals {
        Host::totals(self)
    }

    fn cwnd(&self) -> Bytes {
        Host::cwnd(self)
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        Host::inspect(self, visit);
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        Host::application(self, now, visit);
    }
}

/// One end's socket.
#[derive(Debug)]
struct Port {
    socket: UdpSocket,
    state: UdpSocketState,
    /// Where the other end's socket is.
    peer: SocketAddr,
}

impl Port {
    fn new(socket: UdpSocket, peer: SocketAddr) -> io::Result<Self> {
        let state = UdpSocketState::new((&socket).into())?;
        // More than the system allows is cut to what it does.
        let _ = state.set_send_buffer_size((&socket).into(), BUFFER);
        let _ = state.set_recv_buffer_size((&socket).into(), BUFFER);
        Ok(Port { socket, state, peer })
    }

    /// Sends one datagram. Returns `false` if the socket is full.
    fn send(&self, ecn: Ecn, contents: &[u8]) -> bool {
        let transmit = Transmit {
            destination: self.peer,
            ecn: codepoint(ecn),
            contents,
            segment_size: None,
            src_ip: None,
        };
        match self.state.try_send((&self.socket).into(), &transmit) {
            // Any other error is a packet lost on the way.
            Err(error) => error.kind() != io::ErrorKind::WouldBlock,
            Ok(()) => true,
        }
    }
}

/// [`FlowEnds`] over two UDP sockets.
#[derive(Debug)]
pub struct SocketHost {
    host: Box<dyn FlowEnds>,
    sender: Port,
    receiver: Port,
    base: Instant,
    /// The payload of the newest datagram.
    payload: Vec<u8>,
    /// The way of that datagram, while its socket has no room for it.
    held: Option<(Direction, Ecn)>,
    buffers: Vec<u8>,
    /// When the loop is to go on at the latest, and how late it did so at most.
    due: Time,
    late: Duration,
}

impl SocketHost {
    /// Returns `host` between `sender`, where the sending end's packets leave, and `receiver`, which is
    /// reached at `address` and has no other peer. Time zero is `base`.
    ///
    /// # Errors
    /// What the system says of a socket that cannot be connected or set up.
    pub fn new(
        host: Box<dyn FlowEnds>,
        sender: UdpSocket,
        receiver: UdpSocket,
        address: SocketAddr,
        base: Instant,
    ) -> io::Result<Self> {
        // Which of this machine's addresses the sender has is the kernel's to say, once it knows the
        // destination.
        sender.connect(address)?;
        let own = sender.local_addr()?;
        let buffers = vec![0; RECEIVE * BATCH_SIZE];
        let (sender, receiver) = (Port::new(sender, address)?, Port::new(receiver, own)?);
        let (payload, due, late) = (Vec::new(), Time::ZERO, Duration::ZERO);
        Ok(SocketHost { host, sender, receiver, base, payload, held: None, buffers, due, late })
    }

    /// Returns the flow.
    pub fn host(&self) -> &dyn FlowEnds {
        &*self.host
    }

    /// Returns how late the flow's loop ran at most since the last call, or since its time zero: behind the
    /// flow's next deadline, or behind the end of a wait of 10 ms where that is earlier. Time in which it
    /// receives and sends counts, too.
    pub fn take_late(&mut self) -> Duration {
        std::mem::take(&mut self.late)
    }

    /// Lets the flow go on until `until` by the real clock. `on_rtt` is called with the sender's RTT samples,
    /// of packets whose ACKs arrived together the newest.
    ///
    /// # Errors
    /// What the system says of a socket that no longer receives.
    pub fn advance(&mut self, until: Time, mut on_rtt: impl FnMut(Duration)) -> io::Result<()> {
        // A wait that lasts longer is a packet that leaves late, and no more.
        let _ = rustix::thread::set_current_timer_slack(NonZeroU64::new(1));
        loop {
            for direction in [Direction::Forward, Direction::Reverse] {
                self.receive(direction, &mut on_rtt)?;
            }
            let now = self.now();
            self.late = self.late.max(now.since(self.due));
            self.due = now;
            let has_more = self.send(now);
            on_rtt_sample(&mut *self.host, &mut on_rtt);
            if now >= until {
                // What is left of this lateness is the next interval's.
                self.due = until;
                return Ok(());
            }
            if has_more {
                continue;
            }
            let due = self.host.next_wakeup().map_or(until, |at| at.min(until));
            self.due = due.min(now + MAX_WAIT).max(now);
            self.wait(self.due)?;
        }
    }

    fn now(&self) -> Time {
        time(self.base, Instant::now())
    }

    /// Takes what came at the end that `direction` leads to.
    fn receive(&mut self, direction: Direction, on_rtt: &mut impl FnMut(Duration)) -> io::Result<()> {
        for _ in 0..RECEIVES {
            let port = match direction {
                Direction::Forward => &self.receiver,
                Direction::Reverse => &self.sender,
            };
            let mut metas = [RecvMeta::default(); BATCH_SIZE];
            let mut chunks = self.buffers.chunks_exact_mut(RECEIVE);
            let mut slices: [IoSliceMut<'_>; BATCH_SIZE] =
                std::array::from_fn(|_| IoSliceMut::new(chunks.next().unwrap_or_default()));
            let count = match port.state.recv((&port.socket).into(), &mut slices, &mut metas) {
                Ok(count) => count,
                Err(error) => match error.kind() {
                    io::ErrorKind::WouldBlock => return Ok(()),
                    // An answer to something sent: it says that the packet was lost.
                    io::ErrorKind::Interrupted
                    | io::ErrorKind::ConnectionRefused
                    | io::ErrorKind::HostUnreachable
                    | io::ErrorKind::NetworkUnreachable => continue,
                    _ => return Err(error),
                },
            };
            let now = time(self.base, Instant::now());
            for (meta, buffer) in metas.iter().zip(self.buffers.chunks_exact(RECEIVE)).take(count) {
                let ecn = meta.ecn.map_or(Ecn::NotEct, |ecn| Ecn::from_bits(ecn as u8));
                for datagram in buffer[..meta.len].chunks(meta.stride.max(1)) {
                    self.host.receive(now, direction, ecn, datagram);
                    on_rtt_sample(&mut *self.host, on_rtt);
                }
            }
        }
        Ok(())
    }

    /// Sends until the flow has nothing more for `now`, or a socket is full, or the sockets should be read
    /// again. Returns whether the last is so.
    fn send(&mut self, now: Time) -> bool {
        for _ in 0..SENDS {
            let (direction, ecn) = match self.held.take() {
                Some(held) => held,
                None => {
                    self.payload.clear();
                    let Some(next) = self.host.transmit(now, &mut self.payload) else { return false };
                    next
                }
            };
            if !self.port(direction).send(ecn, &self.payload) {
                self.held = Some((direction, ecn));
                return false;
            }
        }
        true
    }

    /// The socket where packets of that direction leave.
    fn port(&self, direction: Direction) -> &Port {
        match direction {
            Direction::Forward => &self.sender,
            Direction::Reverse => &self.receiver,
        }
    }

    /// Waits for a packet, for room where there was none, or until `due`.
    fn wait(&self, due: Time) -> io::Result<()> {
        let full = self.held.map(|(direction, _)| direction);
        let wanted = |leaving| {
            if full == Some(leaving) { PollFlags::IN | PollFlags::OUT } else { PollFlags::IN }
        };
        let mut events = [
            PollFd::new(&self.sender.socket, wanted(Direction::Forward)),
            PollFd::new(&self.receiver.socket, wanted(Direction::Reverse)),
        ];
        let rest = std::time::Duration::from_nanos(due.since(self.now()).as_nanos());
        // Whatever is longer is ended by the caller's own end.
        let rest = Timespec::try_from(rest).ok();
        match poll(&mut events, rest.as_ref()) {
            // An interrupted wait is a short one.
            Ok(_) | Err(rustix::io::Errno::INTR) => Ok(()),
            Err(error) => Err(error.into()),
        }
    }
}

/// Passes the newest RTT sample on, if there is one.
fn on_rtt_sample(host: &mut dyn FlowEnds, on_rtt: &mut impl FnMut(Duration)) {
    if let Some(rtt) = host.take_rtt_sample() {
        on_rtt(rtt);
    }
}

#[cfg(test)]
mod tests;
