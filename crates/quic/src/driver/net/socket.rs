//! The socket: batches in and out with their ECN codepoints, and what did not fit.

use std::io::{self, IoSliceMut};
use std::net::{IpAddr, SocketAddr, UdpSocket};
use std::os::fd::{AsFd, BorrowedFd};
use std::sync::Arc;

use quinn_proto::Transmit;
use quinn_udp::{RecvMeta, UdpSocketState};

use crate::io_counts::IoMeter;
use crate::socket::{MOST_DATAGRAMS, run_of_one_mind};
use crate::stamps::Stamps;

/// What became of a transmission.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Sent {
    /// The system has it.
    Whole,
    /// The socket is full, and keeps the rest.
    Full,
}

/// A transmission of which a part did not fit.
#[derive(Debug)]
struct Rest {
    contents: Vec<u8>,
    destination: SocketAddr,
    segment: usize,
    source: Option<IpAddr>,
}

/// A UDP socket that sends what it is given in order.
#[derive(Debug)]
pub(super) struct Socket {
    socket: UdpSocket,
    state: UdpSocketState,
    rest: Option<Rest>,
    meter: Arc<IoMeter>,
}

impl Socket {
    /// A socket at `address` with buffers of `buffer` bytes, as far as the system allows.
    pub(super) fn bind(address: SocketAddr, buffer: usize) -> io::Result<Self> {
        let socket = UdpSocket::bind(address)?;
        let state = UdpSocketState::new((&socket).into())?;
        // More than the system allows is cut to what it does.
        let _ = state.set_send_buffer_size((&socket).into(), buffer);
        let _ = state.set_recv_buffer_size((&socket).into(), buffer);
        Ok(Socket { socket, state, rest: None, meter: Arc::default() })
    }

    /// What counts its calls.
    pub(super) fn meter(&self) -> &Arc<IoMeter> {
        &self.meter
    }

    pub(super) fn address(&self) -> io::Result<SocketAddr> {
        self.socket.local_addr()
    }

    pub(super) fn may_fragment(&self) -> bool {
        self.state.may_fragment()
    }

    /// Datagrams of one transmission at most: as many as the kernel cuts, and as fit into one of 64 KiB.
    pub(super) fn most(&self) -> usize {
        self.state.max_gso_segments().min(MOST_DATAGRAMS)
    }

    pub(super) fn receive(&self, into: &mut [IoSliceMut<'_>], metas: &mut [RecvMeta]) -> io::Result<usize> {
        let messages = self.state.recv((&self.socket).into(), into, metas)?;
        self.meter.on_receive(&metas[..messages]);
        Ok(messages)
    }

    /// Whether something waits for room.
    pub(super) fn is_full(&self) -> bool {
        self.rest.is_some()
    }

    /// Sends what waits, if anything does: whether nothing waits any more.
    pub(super) fn flush(&mut self, stamps: &Stamps) -> bool {
        match self.rest.take() {
            None => true,
            Some(rest) => {
                self.send_rest(stamps, rest.destination, rest.source, rest.segment, &rest.contents)
                    == Sent::Whole
            }
        }
    }

    /// Sends a transmission, each of its packets with the codepoint noted in `stamps` and the others without.
    pub(super) fn send(&mut self, stamps: &Stamps, transmit: &Transmit, contents: &[u8]) -> Sent {
        if self.is_full() && !self.flush(stamps) {
            return Sent::Full;
        }
        let segment = transmit.segment_size.unwrap_or(contents.len()).max(1);
        self.send_rest(stamps, transmit.destination, transmit.src_ip, segment, contents)
    }

    fn send_rest(
        &mut self,
        stamps: &Stamps,
        destination: SocketAddr,
        source: Option<IpAddr>,
        segment: usize,
        contents: &[u8],
    ) -> Sent {
        let mut rest = contents;
        while !rest.is_empty() {
            let (ecn, length) = run_of_one_mind(stamps, rest, segment, None);
            let (part, after) = rest.split_at(length);
            let transmit = quinn_udp::Transmit {
                destination,
                ecn,
                contents: part,
                // quinn-udp takes none to mean one datagram.
                segment_size: Some(segment).filter(|size| *size < part.len()),
                src_ip: source,
            };
            // Any other error is a packet lost on the way.
            if let Err(error) = self.state.send((&self.socket).into(), &transmit)
                && error.kind() == io::ErrorKind::WouldBlock
            {
                self.rest = Some(Rest { contents: rest.to_vec(), destination, segment, source });
                return Sent::Full;
            }
            self.meter.on_send(part.len(), segment);
            stamps.forget_all(part, segment);
            rest = after;
        }
        Sent::Whole
    }
}

impl AsFd for Socket {
    fn as_fd(&self) -> BorrowedFd<'_> {
        self.socket.as_fd()
    }
}
