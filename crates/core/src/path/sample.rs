//! The packet of the tests of this folder and of queues.

use crate::ecn::{Ecn, Encoding};
use crate::packet::{Duplicate, FlowId, Header, Packet, PacketId, Tunnel};

/// A packet of nothing but its facts.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(crate) struct Sample {
    pub(crate) id: u64,
    pub(crate) flow: u32,
    pub(crate) size: u32,
    pub(crate) ecn: Ecn,
    pub(crate) encoding: Encoding,
    pub(crate) header: Header,
    pub(crate) tunnel: Option<Tunnel>,
    pub(crate) ack: bool,
}

impl Sample {
    pub(crate) fn new(id: u64, size: u32) -> Self {
        Sample {
            id,
            flow: 0,
            size,
            ecn: Ecn::NotEct,
            encoding: Encoding::None,
            header: Header::None,
            tunnel: None,
            ack: false,
        }
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
    fn tunnel(&self) -> Option<Tunnel> {
        self.tunnel
    }
    fn set_tunnel(&mut self, tunnel: Option<Tunnel>) {
        self.tunnel = tunnel;
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
    fn is_ack(&self) -> bool {
        self.ack
    }
    fn header(&self) -> Header {
        self.header
    }
    fn set_header(&mut self, header: Header) {
        self.header = header;
    }
}

impl Duplicate for Sample {
    fn duplicate(&self, id: PacketId) -> Self {
        Sample { id: id.0, ..*self }
    }
}
