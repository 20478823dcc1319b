//! A client that asks, waits for the whole response, thinks, and asks again.
//!
//! Outcome: `responses`; `response_ms_mean`, `_p50`, `_p95`, `_p99`, from the moment the client asks until
//! the last byte is there.

use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

use crate::application::Application;
use crate::distribution::{Distribution, visit_distribution};
use crate::requests::Requester;
use crate::socket::{Datagram, Socket};
use crate::traffic::RequestResponse as Config;

/// The most that a request may have: 64 messages, 4.19 MB.
pub const MOST_REQUEST: Bytes = crate::requests::MOST_REQUEST;

/// A client that sends requests and a server that responds.
#[derive(Clone, Debug)]
pub struct RequestResponse {
    config: Config,
    requester: Requester,
    asked_at: Time,
    ask_at: Time,
    /// Payload that must have arrived for the response to be whole.
    due: u64,
    waiting: bool,
    times: Distribution,
}

impl RequestResponse {
    /// Returns a client that has not asked yet.
    pub fn new(config: Config, mss: Bytes) -> Self {
        RequestResponse {
            requester: Requester::new(config.request, mss),
            config,
            asked_at: Time::ZERO,
            ask_at: Time::MAX,
            due: 0,
            waiting: false,
            times: Distribution::default(),
        }
    }

    fn ask(&mut self, socket: &mut impl Socket) {
        self.ask_at = Time::MAX;
        self.asked_at = socket.now();
        self.due += self.config.response.0;
        self.waiting = true;
        self.requester.ask(socket);
    }
}

impl Application for RequestResponse {
    fn start(&mut self, socket: &mut impl Socket) {
        self.ask(socket);
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.requester.stop();
        self.ask_at = Time::MAX;
        self.waiting = false;
        socket.discard_unsent();
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        self.requester.on_timer(socket);
        if self.ask_at <= socket.now() {
            self.ask(socket);
        }
    }

    fn next_timer(&self) -> Time {
        self.requester.next_timer().min(self.ask_at)
    }

    fn on_datagram(&mut self, datagram: &Datagram, socket: &mut impl Socket) {
        if self.requester.reached(datagram) {
            socket.write(self.config.response);
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        if !self.waiting {
            return;
        }
        self.requester.answered();
        if socket.delivered().0 >= self.due {
            self.waiting = false;
            self.times.record(socket.now().since(self.asked_at));
            let think = self.config.think;
            let pause = if think.is_zero() { think } else { think.mul_f64(socket.random().exponential()) };
            self.ask_at = socket.now() + pause;
        }
    }

    fn is_over(&self) -> bool {
        !self.waiting && self.ask_at == Time::MAX
    }

    fn outcome(&self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("responses", self.times.count() as f64);
        visit_distribution(
            &self.times,
            ["response_ms_mean", "response_ms_p50", "response_ms_p95", "response_ms_p99"],
            visit,
        );
    }
}
