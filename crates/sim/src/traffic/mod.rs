//! Applications: what asks a flow to send, and what it makes of the result.
//!
//! | file | the application |
//! |---|---|
//! | `bulk` | backlogged, or one transfer of a given size |
//! | `paced` | at a constant rate; in periods of sending and silence |
//! | `request_response` | a client that asks and waits |
//! | `game` | small messages both ways at a fixed beat |
//! | `video` | adaptive-bitrate video |
//! | `call` | a real-time video call |
//!
//! Short connections that come and go are not one application but many: see `host::bundle`.

mod bulk;
mod call;
mod game;
mod paced;
mod request_response;
mod requests;
mod video;

use brakelight_core::time::Time;
use brakelight_core::units::Bytes;
use brakelight_scenario::traffic::Traffic;

use crate::host::{Datagram, Socket};
use brakelight_scenario::measure::Distribution;

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

    /// A message arrived at its end, which [`Datagram::direction`] tells.
    fn on_datagram(&mut self, _datagram: &Datagram, _socket: &mut Socket<'_>) {}

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
            fn on_datagram(&mut self, datagram: &Datagram, socket: &mut Socket<'_>) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_datagram(datagram, socket)),* }
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
    Paced(paced::Paced),
    RequestResponse(Box<request_response::RequestResponse>),
    Game(Box<game::Game>),
    Video(Box<video::Video>),
    Call(Box<call::Call>),
}

impl AnyApplication {
    /// The application that `traffic` describes, over packets of `mss`. Short connections are many: each is a transfer.
    pub(crate) fn new(traffic: &Traffic, mss: Bytes) -> Self {
        match traffic {
            Traffic::Backlogged => AnyApplication::Bulk(bulk::Bulk::new(Socket::ENDLESS)),
            Traffic::Size(size) => AnyApplication::Bulk(bulk::Bulk::new(*size)),
            Traffic::OnOff(periods) => AnyApplication::Paced(paced::Paced::on_off(*periods, mss)),
            Traffic::RateLimited(rate) => AnyApplication::Paced(paced::Paced::constant(*rate, mss)),
            Traffic::RequestResponse(config) => AnyApplication::RequestResponse(Box::new(
                request_response::RequestResponse::new(*config, mss),
            )),
            Traffic::Game(config) => AnyApplication::Game(Box::new(game::Game::new(*config))),
            Traffic::Video(config) => AnyApplication::Video(Box::new(video::Video::new(config.clone(), mss))),
            Traffic::Call(config) => AnyApplication::Call(Box::new(call::Call::new(*config))),
            Traffic::ShortFlows(law) => AnyApplication::Bulk(bulk::Bulk::new(law.size.mean())),
        }
    }
}

/// Calls `visit` with mean, median, p95 and p99 under the given names, unless nothing was counted.
pub(crate) fn visit_distribution(
    times: &Distribution,
    names: [&'static str; 4],
    visit: &mut dyn FnMut(&'static str, f64),
) {
    if times.count() == 0 {
        return;
    }
    visit(names[0], times.mean_ms());
    for (name, q) in names[1..].iter().zip([0.5, 0.95, 0.99]) {
        visit(name, times.quantile_ms(q));
    }
}

#[cfg(test)]
mod tests;
