//! A packet behind a pointer.

use alloc::boxed::Box;
use core::any::Any;
use core::fmt;

use super::{Acknowledgement, Duplicate, FlowId, Header, Packet, PacketId, Tunnel};
use crate::ecn::{Ecn, Encoding};
use crate::time::Time;

/// A packet of whatever kind a host has, behind a pointer.
///
/// Queues and path elements are generic over the packet, which a trait object cannot be. One that is
/// added at run time is therefore compiled for this packet: each host puts its own packets in on the way into
/// it and takes them out again on the way out, so what is read and written are the host's packets.
pub struct BoxedPacket(Box<dyn Inner>);

/// What a packet can do behind a pointer.
trait Inner: Packet + Any + Send + Sync {
    fn clone_boxed(&self) -> Box<dyn Inner>;
    fn duplicate_boxed(&self, id: PacketId) -> Box<dyn Inner>;
    fn probe_boxed(&self, id: PacketId, now: Time) -> Option<Box<dyn Inner>>;
}

impl<P: Duplicate> Inner for P {
    fn clone_boxed(&self) -> Box<dyn Inner> {
        Box::new(self.clone())
    }

    fn duplicate_boxed(&self, id: PacketId) -> Box<dyn Inner> {
        Box::new(self.duplicate(id))
    }

    fn probe_boxed(&self, id: PacketId, now: Time) -> Option<Box<dyn Inner>> {
        Some(Box::new(self.probe(id, now)?))
    }
}

impl BoxedPacket {
    /// Returns `packet`, behind a pointer.
    pub fn new<P: Duplicate>(packet: P) -> Self {
        BoxedPacket(Box::new(packet))
    }

    /// Returns the packet that was put in.
    ///
    /// # Panics
    /// Panics if it is of another type.
    pub fn into_inner<P: Duplicate>(self) -> P {
        let any: Box<dyn Any> = self.0;
        *any.downcast().expect("a host takes out packets of the type that it put in")
    }

    /// Returns a look at the packet that was put in.
    ///
    /// # Panics
    /// Panics if it is of another type.
    pub fn inner<P: Duplicate>(&self) -> &P {
        let any: &dyn Any = &*self.0;
        any.downcast_ref().expect("a host looks at packets of the type that it put in")
    }
}

impl Clone for BoxedPacket {
    fn clone(&self) -> Self {
        BoxedPacket(self.0.clone_boxed())
    }
}

impl fmt::Debug for BoxedPacket {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("BoxedPacket")
            .field("id", &self.id())
            .field("flow", &self.flow())
            .field("size", &self.size())
            .field("ecn", &self.ecn())
            .finish_non_exhaustive()
    }
}

impl Packet for BoxedPacket {
    fn id(&self) -> PacketId {
        self.0.id()
    }
    fn flow(&self) -> FlowId {
        self.0.flow()
    }
    fn size(&self) -> u32 {
        self.0.size()
    }
    fn ecn(&self) -> Ecn {
        self.0.ecn()
    }
    fn set_ecn(&mut self, ecn: Ecn) {
        self.0.set_ecn(ecn);
    }
    fn encoding(&self) -> Encoding {
        self.0.encoding()
    }
    fn sent_at(&self) -> Option<Time> {
        self.0.sent_at()
    }
    fn header(&self) -> Header {
        self.0.header()
    }
    fn set_header(&mut self, header: Header) {
        self.0.set_header(header);
    }
    fn tunnel(&self) -> Option<Tunnel> {
        self.0.tunnel()
    }
    fn set_tunnel(&mut self, tunnel: Option<Tunnel>) {
        self.0.set_tunnel(tunnel);
    }
    fn is_ack(&self) -> bool {
        self.0.is_ack()
    }
    fn acknowledgement(&self) -> Option<Acknowledgement> {
        self.0.acknowledgement()
    }
    fn sequence(&self) -> Option<u32> {
        self.0.sequence()
    }
    fn timestamp(&self) -> Option<u32> {
        self.0.timestamp()
    }
    fn travels_back(&self) -> bool {
        self.0.travels_back()
    }
    fn is_probe(&self) -> bool {
        self.0.is_probe()
    }
    fn source_host(&self) -> u32 {
        self.0.source_host()
    }
    fn destination_host(&self) -> u32 {
        self.0.destination_host()
    }
    fn dscp(&self) -> u8 {
        self.0.dscp()
    }
    fn hash16(&self) -> u16 {
        self.0.hash16()
    }
}

impl Duplicate for BoxedPacket {
    fn duplicate(&self, id: PacketId) -> Self {
        BoxedPacket(self.0.duplicate_boxed(id))
    }
    fn probe(&self, id: PacketId, now: Time) -> Option<Self> {
        self.0.probe_boxed(id, now).map(BoxedPacket)
    }
}
