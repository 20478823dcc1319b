//! What a host tells an application.

use brakelight_core::time::Time;

use crate::socket::{Datagram, Socket};

/// An application: both ends of it. Each method may use the socket.
pub trait Application {
    /// The flow starts.
    fn start(&mut self, socket: &mut impl Socket);

    /// The flow stops: nothing new is sent from now on.
    fn stop(&mut self, socket: &mut impl Socket) {
        socket.discard_unsent();
    }

    /// What [`Application::next_timer`] asked for is due.
    fn on_timer(&mut self, _socket: &mut impl Socket) {}

    /// Returns when the application wants to act; [`Time::MAX`] for never.
    fn next_timer(&self) -> Time {
        Time::MAX
    }

    /// Returns whether it wants to hear of deliveries. The answer stays the same.
    fn listens(&self) -> bool {
        false
    }

    /// More payload arrived in order at the other end.
    fn on_delivered(&mut self, _socket: &mut impl Socket) {}

    /// A message arrived at its end, which [`Datagram::direction`] tells.
    fn on_datagram(&mut self, _datagram: &Datagram, _socket: &mut impl Socket) {}

    /// The piece of this number arrived at the other end. It may do so twice.
    fn on_piece(&mut self, _number: u32, _socket: &mut impl Socket) {}

    /// Returns whether it will never ask for anything again.
    fn is_over(&self) -> bool {
        false
    }

    /// Calls `visit` with the outcome, by name, in the unit the name ends in.
    fn outcome(&self, _now: Time, _visit: &mut dyn FnMut(&'static str, f64)) {}
}
