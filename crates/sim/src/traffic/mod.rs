//! Applications: what asks a flow to send, and what it makes of the result.
//!
//! | file | the application |
//! |---|---|
//! | `bulk` | backlogged, or one transfer of a given size |

mod bulk;

use brakelight_core::time::Time;
use brakelight_scenario::traffic::Traffic;

use crate::host::Socket;

/// An application. Each method may use the socket.
pub(crate) trait Application {
    /// The flow starts.
    fn start(&mut self, socket: &mut Socket<'_>);

    /// The flow stops: nothing new is sent from now on.
    fn stop(&mut self, socket: &mut Socket<'_>) {
        socket.discard_unsent();
    }

    /// What [`Application::next_timer`] asked for is due.
    fn on_timer(&mut self, _socket: &mut Socket<'_>) {}

    /// When the application wants to act; [`Time::MAX`] for never.
    fn next_timer(&self) -> Time {
        Time::MAX
    }

    /// Whether it wants to hear of deliveries.
    fn listens(&self) -> bool {
        false
    }

    /// More payload arrived in order at the other end.
    fn on_delivered(&mut self, _socket: &mut Socket<'_>) {}

    /// Whether it will never ask for anything again.
    fn is_over(&self) -> bool {
        false
    }

    /// Calls `visit` with the outcome, by name, in the unit the name ends in.
    fn outcome(&self, _now: Time, _visit: &mut dyn FnMut(&'static str, f64)) {}
}

/// Declares the enum of all applications, dispatched by `match`.
macro_rules! applications {
    ($($Variant:ident($Type:ty)),* $(,)?) => {
        /// An application of any kind.
        #[derive(Clone, Debug)]
        pub(crate) enum AnyApplication { $($Variant($Type)),* }

        impl Application for AnyApplication {
            fn start(&mut self, socket: &mut Socket<'_>) {
                match self { $(AnyApplication::$Variant(inner) => inner.start(socket)),* }
            }
            fn stop(&mut self, socket: &mut Socket<'_>) {
                match self { $(AnyApplication::$Variant(inner) => inner.stop(socket)),* }
            }
            fn on_timer(&mut self, socket: &mut Socket<'_>) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_timer(socket)),* }
            }
            fn next_timer(&self) -> Time {
                match self { $(AnyApplication::$Variant(inner) => inner.next_timer()),* }
            }
            fn listens(&self) -> bool {
                match self { $(AnyApplication::$Variant(inner) => inner.listens()),* }
            }
            fn on_delivered(&mut self, socket: &mut Socket<'_>) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_delivered(socket)),* }
            }
            fn is_over(&self) -> bool {
                match self { $(AnyApplication::$Variant(inner) => inner.is_over()),* }
            }
            fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
                match self { $(AnyApplication::$Variant(inner) => inner.outcome(now, visit)),* }
            }
        }
    };
}

applications! {
    Bulk(bulk::Bulk),
}

impl AnyApplication {
    /// The application that `traffic` describes, as far as this host knows it.
    pub(crate) fn new(traffic: &Traffic) -> Option<Self> {
        match traffic {
            Traffic::Backlogged => Some(AnyApplication::Bulk(bulk::Bulk::new(Socket::ENDLESS))),
            Traffic::Size(size) => Some(AnyApplication::Bulk(bulk::Bulk::new(*size))),
            _ => None,
        }
    }
}
