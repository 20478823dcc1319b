//! What sits at the ends of a path: the modelled host, a real QUIC stack under a virtual clock, or anything
//! else that turns packets and time into packets.

use crate::time::Time;

/// Both ends of one flow (or of one bundle of flows), as a state machine.
///
/// The caller gives it packets and the time, asks for packets until there are none, and comes back no later
/// than `next_wakeup`. A late call is served as if it came then: an endpoint lives in its caller's time.
pub trait Endpoint<P> {
    /// Takes a packet that arrived at `now`.
    fn accept(&mut self, now: Time, packet: P);

    /// Returns the next packet to send at `now`, after acting on every deadline due by `now`.
    fn poll_transmit(&mut self, now: Time) -> Option<P>;

    /// Returns `true` if nothing is to be sent at `now` and no deadline is due by then: `next_wakeup` is then
    /// right without a call of `poll_transmit`, which would return `None`. It may be asked
    /// before any `poll_transmit`. `false` is always a valid answer.
    fn is_at_rest(&mut self, _now: Time) -> bool {
        false
    }

    /// Returns when this endpoint must be polled next, if nothing arrives before.
    fn next_wakeup(&self) -> Option<Time>;

    /// A packet of this endpoint left the world without arriving. It learns nothing from this: it only lets
    /// go of what it kept for the packet.
    fn release(&mut self, _packet: P) {}
}
