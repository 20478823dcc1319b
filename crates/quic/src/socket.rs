//! A UDP socket for async quinn that sends each packet with the ECN codepoint its controller asked for.
//!
//! The stack gives a codepoint to each of its transmissions: ECT(0), or none once its own validation has
//! failed, which a single ECT(1) makes it do. This decorator sends with the codepoint that was noted as the
//! packet was encrypted ([`Stamps`]), and with the stack's where none was: Initial and Handshake packets, and
//! connections without the tap. One transmission may be many packets (generic segmentation offload), all with
//! one codepoint in the kernel's eyes: where they ask for different ones, it is sent in parts.

use std::io::{self, IoSliceMut};
use std::net::SocketAddr;
use std::pin::Pin;
use std::sync::Arc;
use std::task::{Context, Poll};

use brakelight_core::ecn::Ecn;
use quinn::udp::{EcnCodepoint, RecvMeta, Transmit};
use quinn::{AsyncUdpSocket, UdpPoller};

use crate::io_counts::IoMeter;
use crate::stamps::Stamps;

/// Datagrams of 1,500 bytes that one transmission holds: the kernel takes no more than 64 KiB.
pub(crate) const MOST_DATAGRAMS: usize = 40;

/// A socket that stamps. Wrap what `Runtime::wrap_udp_socket` gives, and hand it to
/// `Endpoint::new_with_abstract_socket`.
#[derive(Debug)]
pub struct StampingSocket {
    inner: Arc<dyn AsyncUdpSocket>,
    stamps: Arc<Stamps>,
    meter: Arc<IoMeter>,
}

impl StampingSocket {
    /// Sends through `inner` what is noted in `stamps`.
    pub fn new(inner: Arc<dyn AsyncUdpSocket>, stamps: Arc<Stamps>) -> Self {
        Self::metered(inner, stamps, Arc::default())
    }

    /// The same; `meter` counts its calls.
    pub fn metered(inner: Arc<dyn AsyncUdpSocket>, stamps: Arc<Stamps>, meter: Arc<IoMeter>) -> Self {
        StampingSocket { inner, stamps, meter }
    }
}

/// Returns the same two bits in the words of `quinn-udp`, where Not-ECT is none.
pub fn codepoint(ecn: Ecn) -> Option<EcnCodepoint> {
    match ecn {
        Ecn::NotEct => None,
        Ecn::Ect0 => Some(EcnCodepoint::Ect0),
        Ecn::Ect1 => Some(EcnCodepoint::Ect1),
        Ecn::Ce => Some(EcnCodepoint::Ce),
    }
}

/// The codepoint that `stamps` notes for the first datagram of `batch`, or `otherwise` where it notes none,
/// and the bytes of it and of those after it that are to carry the same. Each has `segment` bytes, the last
/// one fewer perhaps.
pub(crate) fn run_of_one_mind(
    stamps: &Stamps,
    batch: &[u8],
    segment: usize,
    otherwise: Option<EcnCodepoint>,
) -> (Option<EcnCodepoint>, usize) {
    if let Some(common) = stamps.common() {
        return (codepoint(common), batch.len());
    }
    let wanted = |datagram: &[u8]| stamps.find(datagram).map_or(otherwise, codepoint);
    let mut datagrams = batch.chunks(segment);
    let ecn = datagrams.next().and_then(wanted);
    let alike = 1 + datagrams.take_while(|datagram| wanted(datagram) == ecn).count();
    (ecn, batch.len().min(alike * segment))
}

impl AsyncUdpSocket for StampingSocket {
    fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
        self.inner.clone().create_io_poller()
    }

    fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
        let segment = transmit.segment_size.unwrap_or(transmit.contents.len()).max(1);
        let mut rest = transmit.contents;
        loop {
            let (ecn, length) = run_of_one_mind(&self.stamps, rest, segment, transmit.ecn);
            let (part, after) = rest.split_at(length);
            let first = part.len() + after.len() == transmit.contents.len();
            let sent = self.inner.try_send(&Transmit {
                destination: transmit.destination,
                ecn,
                contents: part,
                // quinn-udp takes none to mean one datagram.
                segment_size: transmit.segment_size.filter(|size| *size < part.len()),
                src_ip: transmit.src_ip,
            });
            match sent {
                // To try all of it again would send the first part twice: the others count as lost on the
                // way.
                Err(error) if !first && error.kind() == io::ErrorKind::WouldBlock => return Ok(()),
                Err(error) => return Err(error),
                Ok(()) => {
                    self.meter.on_send(part.len(), segment);
                    self.stamps.forget_all(part, segment);
                }
            }
            if after.is_empty() {
                return Ok(());
            }
            rest = after;
        }
    }

    fn poll_recv(
        &self,
        cx: &mut Context<'_>,
        bufs: &mut [IoSliceMut<'_>],
        meta: &mut [RecvMeta],
    ) -> Poll<io::Result<usize>> {
        let received = self.inner.poll_recv(cx, bufs, meta);
        if let Poll::Ready(Ok(messages)) = received {
            self.meter.on_receive(&meta[..messages]);
        }
        received
    }

    fn local_addr(&self) -> io::Result<SocketAddr> {
        self.inner.local_addr()
    }

    fn max_transmit_segments(&self) -> usize {
        self.inner.max_transmit_segments()
    }

    fn max_receive_segments(&self) -> usize {
        self.inner.max_receive_segments()
    }

    fn may_fragment(&self) -> bool {
        self.inner.may_fragment()
    }
}

#[cfg(test)]
mod tests {
    use std::sync::Mutex;

    use super::*;

    /// Contents, codepoint and segment size.
    type Sent = (Vec<u8>, Option<EcnCodepoint>, Option<usize>);

    /// What was sent, and how many sends go well before the socket is full.
    #[derive(Debug)]
    struct Recorder(Mutex<(Vec<Sent>, usize)>);

    impl AsyncUdpSocket for Recorder {
        fn create_io_poller(self: Arc<Self>) -> Pin<Box<dyn UdpPoller>> {
            unreachable!("the test sends only")
        }

        fn try_send(&self, transmit: &Transmit<'_>) -> io::Result<()> {
            let mut inner = self.0.lock().unwrap();
            if inner.1 == 0 {
                return Err(io::ErrorKind::WouldBlock.into());
            }
            inner.1 -= 1;
            inner.0.push((transmit.contents.to_vec(), transmit.ecn, transmit.segment_size));
            Ok(())
        }

        fn poll_recv(
            &self,
            _: &mut Context<'_>,
            _: &mut [IoSliceMut<'_>],
            _: &mut [RecvMeta],
        ) -> Poll<io::Result<usize>> {
            Poll::Pending
        }

        fn local_addr(&self) -> io::Result<SocketAddr> {
            Err(io::ErrorKind::Unsupported.into())
        }
    }

    fn datagram(number: u8) -> Vec<u8> {
        vec![number; 30]
    }

    /// Sends `numbers` as one transmission that the stack wants to have ECT(0), with room for `room` sends.
    fn send(stamps: &[(u8, Ecn)], numbers: &[u8], room: usize) -> (io::Result<()>, Vec<Sent>) {
        let recorder = Arc::new(Recorder(Mutex::new((Vec::new(), room))));
        let board = Arc::new(Stamps::new());
        stamps.iter().for_each(|(number, ecn)| board.leave(&datagram(*number), *ecn));
        let socket = StampingSocket::new(recorder.clone(), board);
        let contents: Vec<u8> = numbers.iter().flat_map(|number| datagram(*number)).collect();
        let result = socket.try_send(&Transmit {
            destination: "127.0.0.1:1".parse().unwrap(),
            ecn: Some(EcnCodepoint::Ect0),
            contents: &contents,
            segment_size: (numbers.len() > 1).then_some(30),
            src_ip: None,
        });
        let sent = std::mem::take(&mut recorder.0.lock().unwrap().0);
        (result, sent)
    }

    #[test]
    fn a_batch_of_one_mind_is_one_transmission() {
        let (result, sent) = send(&[(1, Ecn::Ect1), (2, Ecn::Ect1)], &[1, 2], 9);
        result.unwrap();
        assert_eq!(sent, [([datagram(1), datagram(2)].concat(), Some(EcnCodepoint::Ect1), Some(30))]);
    }

    #[test]
    fn a_packet_that_nobody_noted_goes_as_the_stack_says() {
        let (_, sent) = send(&[(2, Ecn::Ect1)], &[1], 9);
        assert_eq!(sent, [(datagram(1), Some(EcnCodepoint::Ect0), None)]);
    }

    #[test]
    fn a_batch_of_two_minds_is_sent_in_parts_in_order() {
        let (result, sent) = send(&[(1, Ecn::Ect1), (2, Ecn::NotEct), (3, Ecn::NotEct)], &[1, 2, 3], 9);
        result.unwrap();
        let rest = [datagram(2), datagram(3)].concat();
        assert_eq!(sent, [(datagram(1), Some(EcnCodepoint::Ect1), None), (rest, None, Some(30))]);
    }

    #[test]
    fn no_part_is_sent_twice_when_the_socket_fills_between_them() {
        let stamps = [(1, Ecn::Ect1), (2, Ecn::NotEct)];
        let (result, sent) = send(&stamps, &[1, 2], 0);
        assert_eq!((result.unwrap_err().kind(), sent.len()), (io::ErrorKind::WouldBlock, 0));
        let (result, sent) = send(&stamps, &[1, 2], 1);
        result.unwrap();
        assert_eq!(sent.len(), 1);
    }
}
