//! A packet of nothing but its facts.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::{
    Acknowledgement, Duplicate, FlowId, Header, PROBE_SIZE, Packet, PacketId, Tunnel,
};
use brakelight_core::time::Time;

/// A packet whose fields the test chooses.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Sample {
    /// Its identity.
    pub id: u64,
    /// Its flow.
    pub flow: u32,
    /// Bytes at the IP layer, without the outer header of `tunnel`.
    pub size: u32,
    /// Its ECN field.
    pub ecn: Ecn,
    /// What its flow means by that field.
    pub encoding: Encoding,
    /// The header that it carries for routers.
    pub header: Header,
    /// When its sender sent it, where it says so.
    pub sent_at: Option<Time>,
    /// The tunnel around it.
    pub tunnel: Option<Tunnel>,
    /// Whether it is a pure ACK.
    pub ack: bool,
    /// What it acknowledges.
    pub acknowledgement: Option<Acknowledgement>,
    /// Where in its stream its data begins; with it, routers can read when it was sent.
    pub sequence: Option<u32>,
    /// Whether it travels towards the sender of its flow's data.
    pub back: bool,
}

impl Sample {
    /// The flow of probes.
    pub const PROBES: u32 = u32::MAX;

    /// Returns packet `id` of `size` bytes, of flow 0, without ECN.
    pub fn new(id: u64, size: u32) -> Self {
        Sample {
            id,
            flow: 0,
            size,
            ecn: Ecn::NotEct,
            encoding: Encoding::None,
            header: Header::None,
            sent_at: None,
            tunnel: None,
            ack: false,
            acknowledgement: None,
            sequence: None,
            back: false,
        }
    }

    /// Returns packet `id` of `size` bytes, of flow 0, which speaks ABC and carries `ecn`.
    pub fn abc(id: u64, size: u32, ecn: Ecn) -> Self {
        Sample { ecn, encoding: Encoding::Abc, ..Sample::new(id, size) }
    }
}

impl Packet for Sample {
    fn id(&self) -> PacketId {
        PacketId(self.id)
    }
    fn flow(&self) -> FlowId {
        FlowId(self.flow)
    }
    fn size(&self) -> u32 {
        self.size + self.tunnel.map_or(0, Tunnel::overhead)
    }
    fn ecn(&self) -> Ecn {
        self.ecn
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.ecn = ecn;
    }
    fn encoding(&self) -> Encoding {
        self.encoding
    }
    fn sent_at(&self) -> Option<Time> {
        self.sent_at
    }
    fn header(&self) -> Header {
        self.header
    }
    fn set_header(&mut self, header: Header) {
        self.header = header;
    }
    fn tunnel(&self) -> Option<Tunnel> {
        self.tunnel
    }
    fn set_tunnel(&mut self, tunnel: Option<Tunnel>) {
        self.tunnel = tunnel;
    }
    fn is_ack(&self) -> bool {
        self.ack
    }
    fn acknowledgement(&self) -> Option<Acknowledgement> {
        self.acknowledgement
    }
    fn sequence(&self) -> Option<u32> {
        self.sequence
    }
    fn timestamp(&self) -> Option<u32> {
        self.sequence.and(self.sent_at).map(|at| (at.as_nanos() / 1_000_000) as u32)
    }
    fn travels_back(&self) -> bool {
        self.back
    }
    fn is_probe(&self) -> bool {
        self.flow == Sample::PROBES
    }
}

impl Duplicate for Sample {
    fn duplicate(&self, id: PacketId) -> Self {
        Sample { id: id.0, ..*self }
    }

    fn probe(&self, id: PacketId, now: Time) -> Option<Self> {
        let flow = Sample::PROBES;
        Some(Sample { flow, sent_at: Some(now), back: self.back, ..Sample::new(id.0, PROBE_SIZE) })
    }
}
