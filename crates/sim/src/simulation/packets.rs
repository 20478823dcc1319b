//! The packets on their way.

use brakelight_core::ecn::Mark;
use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::{Direction, Packet as _, PacketId};
use brakelight_core::path::PathElement as _;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::Simulation;
use crate::engine::Routed as _;
use crate::packet::{Kind, SimPacket};
use crate::report::Reporting;

/// One packet inside a path element, as it stands at a time.
#[derive(Clone, Copy, Debug, PartialEq)]
#[non_exhaustive]
pub struct PacketView {
    /// Its identity, unique within the run.
    pub id: PacketId,
    /// The number of the flow it belongs to.
    pub flow: usize,
    /// The element that holds it. The links come first, by their numbers; then all other elements: delays,
    /// losses and so on.
    pub element: usize,
    /// Which way it travels.
    pub direction: Direction,
    /// Whether it carries data, rather than only an acknowledgement.
    pub is_data: bool,
    /// The transmission it is, counted from 0 for each connection; `None` for what is no TCP or QUIC data.
    pub number: Option<u32>,
    /// Of data: what its ECN field says now, in its flow's encoding. Of an acknowledgement: the mark that it
    /// echoes for all that it newly covers, where its endpoint tells.
    pub mark: Mark,
    /// Its size at the IP layer.
    pub size: Bytes,
    /// When its sender sent it.
    pub sent_at: Time,
    /// Time it has spent in the queues that it has left.
    pub queued: Duration,
}

impl<E: Endpoint<SimPacket> + Reporting> Simulation<E> {
    /// Calls `visit` with every packet that is on its way, element by element, in no particular order within
    /// one. Costs nothing until it is called.
    pub fn for_each_packet(&self, visit: &mut dyn FnMut(&PacketView)) {
        for (element, inside) in self.engine.elements().iter().enumerate() {
            inside.for_each(&mut |packet| visit(&self.packet_view(element, packet)));
        }
    }

    fn packet_view(&self, element: usize, packet: &SimPacket) -> PacketView {
        let flow = packet.endpoint();
        let mark = match packet.kind() {
            Kind::Ack { .. } => self
                .engine
                .endpoints()
                .get(flow)
                .and_then(|host| host.echoed_mark(packet))
                .unwrap_or_default(),
            _ => packet.encoding().mark(packet.ecn()),
        };
        PacketView {
            id: packet.id,
            flow,
            element,
            direction: packet.direction(),
            is_data: packet.is_data(),
            number: match packet.kind() {
                Kind::Data { number, .. } => Some(number),
                _ => None,
            },
            mark,
            size: Bytes(u64::from(packet.size())),
            sent_at: packet.sent_at,
            queued: packet.queued(),
        }
    }
}
