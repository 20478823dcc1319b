//! The enum of all applications, dispatched by `match`.

use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

use crate::application::Application;
use crate::bulk::Bulk;
use crate::call::{Call, FrameRecord};
use crate::custom::DynApplication;
use crate::game::Game;
use crate::paced::Paced;
use crate::phases::Phases;
use crate::request_response::RequestResponse;
use crate::socket::{Datagram, ENDLESS, Socket};
use crate::traffic::Traffic;
use crate::video::Video;

/// Declares the enum of all applications, dispatched by `match`.
macro_rules! applications {
    ($($(#[$attribute:meta])* $Variant:ident($Type:ty)),* $(,)?) => {
        /// An application of any kind.
        #[derive(Clone, Debug)]
        pub enum AnyApplication { $($(#[$attribute])* $Variant($Type)),* }

        impl Application for AnyApplication {
            fn start(&mut self, socket: &mut impl Socket) {
                match self { $(AnyApplication::$Variant(inner) => inner.start(socket)),* }
            }
            fn stop(&mut self, socket: &mut impl Socket) {
                match self { $(AnyApplication::$Variant(inner) => inner.stop(socket)),* }
            }
            fn on_timer(&mut self, socket: &mut impl Socket) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_timer(socket)),* }
            }
            #[inline]
            fn next_timer(&self) -> Time {
                match self { $(AnyApplication::$Variant(inner) => inner.next_timer()),* }
            }
            #[inline]
            fn listens(&self) -> bool {
                match self { $(AnyApplication::$Variant(inner) => inner.listens()),* }
            }
            fn on_delivered(&mut self, socket: &mut impl Socket) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_delivered(socket)),* }
            }
            fn on_datagram(&mut self, datagram: &Datagram, socket: &mut impl Socket) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_datagram(datagram, socket)),* }
            }
            fn on_piece(&mut self, number: u32, socket: &mut impl Socket) {
                match self { $(AnyApplication::$Variant(inner) => inner.on_piece(number, socket)),* }
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
    /// Backlogged, or one transfer.
    Bulk(Bulk),
    /// At a rate, or in periods.
    Paced(Paced),
    /// Phases, each with what it offers.
    Phases(Box<Phases>),
    /// A client that asks and waits.
    RequestResponse(Box<RequestResponse>),
    /// A game.
    Game(Box<Game>),
    /// Adaptive-bitrate video.
    Video(Box<Video>),
    /// A video call.
    Call(Box<Call>),
    /// One from outside.
    Custom(Box<dyn DynApplication>),
}

impl AnyApplication {
    /// Returns the application that `traffic` describes, over packets whose payload is at most `mss`. Of
    /// short connections it is one of them, of mean size: see [`short_flows`](crate::short_flows).
    pub fn new(traffic: &Traffic, mss: Bytes) -> Self {
        match traffic {
            Traffic::Backlogged => AnyApplication::Bulk(Bulk::new(ENDLESS)),
            Traffic::Size(size) => AnyApplication::Bulk(Bulk::new(*size)),
            Traffic::OnOff(periods) => AnyApplication::Paced(Paced::on_off(*periods, mss)),
            Traffic::RateLimited(rate) => AnyApplication::Paced(Paced::constant(*rate, mss)),
            Traffic::Phases(phases) => AnyApplication::Phases(Box::new(Phases::new(phases.clone(), mss))),
            Traffic::RequestResponse(config) => {
                AnyApplication::RequestResponse(Box::new(RequestResponse::new(*config, mss)))
            }
            Traffic::Game(config) => AnyApplication::Game(Box::new(Game::new(*config))),
            Traffic::Video(config) => AnyApplication::Video(Box::new(Video::new(config.clone(), mss))),
            Traffic::Call(config) => AnyApplication::Call(Box::new(Call::new(*config, mss))),
            Traffic::ShortFlows(law) => AnyApplication::Bulk(Bulk::new(law.size.mean())),
            Traffic::Custom(traffic) => AnyApplication::Custom(traffic.build(mss)),
        }
    }

    /// Returns it with what becomes of each frame recorded, if it is a call and `record` says so.
    pub fn record_frames(mut self, record: bool) -> Self {
        if let (AnyApplication::Call(call), true) = (&mut self, record) {
            call.record_frames();
        }
        self
    }

    /// Returns what became of each frame of a call; nothing of another application, or if that was not
    /// recorded.
    pub fn recorded_frames(&self) -> &[FrameRecord] {
        match self {
            AnyApplication::Call(call) => call.recorded_frames(),
            _ => &[],
        }
    }
}
