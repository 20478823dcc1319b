//! How measuring hears of what happens on the path: the forwarding thread calls a [`Watch`] with every event,
//! in the order of time.
//!
//! Calls come from the thread that carries the packets, up to some hundred thousand a second: an
//! implementation must not block, wait or allocate per call.

use brakelight_core::path::Output;
use brakelight_core::queue::Dropped;
use brakelight_core::time::Time;
use brakelight_links::elements::AnyElement;

use crate::packet::IpPacket;

/// Receives the events of one direction. `()` ignores them.
pub trait Watch: Send {
    /// A packet was read at `now` and is about to enter the first element. `bytes` are its own, IP header
    /// first.
    fn arrived(&mut self, _now: Time, _packet: &IpPacket, _bytes: &[u8]) {}

    /// Something happened in the link: a departure or a drop, due at `output.at()` and noticed at `actual`.
    fn output(&mut self, _output: &Output<IpPacket>, _actual: Time) {}

    /// Another element than the link lost a packet.
    fn lost(&mut self, _dropped: &Dropped<IpPacket>, _actual: Time) {}

    /// Another element than the link made a second packet of one.
    fn duplicated(&mut self, _at: Time, _packet: &IpPacket) {}

    /// A packet reached the end of the path: it was due at `scheduled` and handed to the device at `actual`.
    fn delivered(&mut self, _scheduled: Time, _actual: Time, _packet: &IpPacket) {}

    /// The thread has done everything that was due by `now` and is about to sleep: once per wake-up, the
    /// place for samples. `link` is the direction's link, where it has one.
    fn rest(&mut self, _now: Time, _link: Option<&AnyElement<IpPacket>>) {}

    /// Returns when the thread is to wake up at the latest even though nothing happens, so that
    /// [`rest`](Self::rest) is called.
    fn next_rest(&self) -> Option<Time> {
        None
    }
}

impl Watch for () {}
