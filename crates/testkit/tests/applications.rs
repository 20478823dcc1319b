//! The conformance suite of applications: Brakelight's own pass it, and one that breaks a rule does not.

use std::sync::Arc;
use std::sync::atomic::{AtomicU64, Ordering};

use brakelight_apps::traffic::{
    Arrivals, Call, Game, Offer, OnOff, Phase, RequestResponse, ShortFlows, SizeLaw, Video,
};
use brakelight_apps::{Application, Applications, CustomApplication, Datagram, Socket, Traffic};
use brakelight_core::packet::Direction;
use brakelight_core::parameters;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{Algorithm, Registry};
use brakelight_testkit::conformance::application;

#[test]
fn the_built_in_applications_pass() {
    let on_off = |rate, random| OnOff {
        on: Duration::from_millis(300),
        off: Duration::from_millis(700),
        rate,
        random,
    };
    let request =
        RequestResponse { request: Bytes(3000), response: Bytes(40_000), think: Duration::from_millis(50) };
    let short = ShortFlows { arrivals: Arrivals::PerSecond(3.0), size: SizeLaw::Fixed(Bytes(9000)) };
    let phase = |ms, offer| Phase { length: Duration::from_millis(ms), offer };
    for traffic in [
        Traffic::Backlogged,
        Traffic::Size(Bytes(700_000)),
        Traffic::OnOff(on_off(None, false)),
        Traffic::OnOff(on_off(Some(Rate::from_mbps(2)), true)),
        Traffic::ShortFlows(short),
        Traffic::RateLimited(Rate::from_mbps(1)),
        Traffic::Phases(vec![
            phase(300, Offer::Rate(Rate::from_mbps(1))),
            phase(100, Offer::Idle),
            phase(900, Offer::Backlogged),
        ]),
        Traffic::RequestResponse(request),
        Traffic::RequestResponse(RequestResponse { think: Duration::ZERO, ..request }),
        Traffic::Game(Game::default()),
        Traffic::Video(Video::default()),
        Traffic::Call(Call::default()),
    ] {
        application::stays_within_its_flow(&traffic);
        application::repeats_itself_and_goes_on_as_its_copy(&traffic);
        application::offers_no_more_than_it_says(&traffic);
    }
}

parameters! {
    /// Settings of [`Faulty`].
    pub struct Config {
        /// Which rule it breaks; 0 for none.
        fault: u32 = 0, in 0..=6, from "chosen here";
    }
}

/// A packet every 20 ms, until a rule is broken.
#[derive(Clone, Debug)]
struct Faulty {
    fault: u32,
    mss: Bytes,
    beat_at: Time,
    beats: u64,
    shared: Arc<AtomicU64>,
}

const BEAT: Duration = Duration::from_millis(20);

impl Application for Faulty {
    fn start(&mut self, socket: &mut impl Socket) {
        self.on_timer(socket);
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        socket.discard_unsent();
        if self.fault != 1 {
            self.beat_at = Time::MAX;
        }
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        self.beats += 1;
        let beats = match self.fault {
            3 => self.shared.fetch_add(1, Ordering::Relaxed),
            _ => self.beats,
        };
        let size = Bytes(1 + beats % self.mss.0);
        socket.write(if self.fault == 6 { Bytes(size.0 + 10 * self.mss.0) } else { size });
        let payload = if self.fault == 4 { self.mss.0 + 1 } else { 20 } as u16;
        let number = self.beats as u32;
        socket.send(Datagram { direction: Direction::Forward, payload, number, echo: 0, held_us: 0 });
        self.beat_at = if self.fault == 2 { socket.now() } else { socket.now() + BEAT };
    }

    fn next_timer(&self) -> Time {
        self.beat_at
    }

    fn outcome(&self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        visit(if self.fault == 5 { "beat" } else { "beats" }, self.beats as f64);
    }
}

impl Algorithm for Faulty {
    type Config = Config;
    const NAME: &'static str = "faulty";
    const SUMMARY: &'static str = "A packet every 20 ms";
}

impl CustomApplication for Faulty {
    const OUTCOME: &'static [&'static str] = &["beats"];

    fn build(config: &Config, mss: Bytes) -> Self {
        Faulty { fault: config.fault, mss, beat_at: Time::MAX, beats: 0, shared: Arc::default() }
    }

    fn offers(_config: &Config) -> Option<Rate> {
        // A jumbo frame every beat.
        Some(Rate::over(Bytes(9000), BEAT))
    }
}

fn registry() -> Registry {
    let mut registry = Registry::standard();
    registry.add_application::<Faulty>().unwrap();
    registry
}

brakelight_testkit::conformance_application!(registry(), "faulty", [("fault", "0")]);

fn faulty(fault: &str) -> Traffic {
    registry().traffic("faulty", &[("fault", fault)]).unwrap()
}

#[test]
#[should_panic(expected = "after its flow has stopped")]
fn one_that_goes_on_after_its_stop_fails() {
    application::stays_within_its_flow(&faulty("1"));
}

#[test]
#[should_panic(expected = "its timer stays due")]
fn one_whose_timer_stays_due_fails() {
    application::stays_within_its_flow(&faulty("2"));
}

#[test]
#[should_panic(expected = "a copy acts otherwise")]
fn one_that_shares_state_with_its_copies_fails() {
    application::repeats_itself_and_goes_on_as_its_copy(&faulty("3"));
}

#[test]
#[should_panic(expected = "in packets of")]
fn one_whose_messages_fit_into_no_packet_fails() {
    application::stays_within_its_flow(&faulty("4"));
}

#[test]
#[should_panic(expected = "`beat` is not announced")]
fn one_that_reports_under_a_name_that_it_did_not_announce_fails() {
    application::stays_within_its_flow(&faulty("5"));
}

#[test]
#[should_panic(expected = "are more than")]
fn one_that_offers_more_than_it_says_fails() {
    application::offers_no_more_than_it_says(&faulty("6"));
}
