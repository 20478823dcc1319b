//! One transfer: of a given size, or without end.
//!
//! Outcome: `completion_ms`, from the start until the last byte arrived.

use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

use crate::application::Application;
use crate::socket::{ENDLESS, Socket};

/// A bulk transfer of a fixed number of bytes.
#[derive(Clone, Debug)]
pub struct Bulk {
    size: Bytes,
    started: Time,
    completed: Option<Time>,
    stopped: bool,
}

impl Bulk {
    /// Returns a transfer of `size` bytes.
    pub fn new(size: Bytes) -> Self {
        Bulk { size, started: Time::ZERO, completed: None, stopped: false }
    }
}

impl Application for Bulk {
    fn start(&mut self, socket: &mut impl Socket) {
        self.started = socket.now();
        socket.write(self.size);
        if self.size != ENDLESS {
            socket.finish();
        }
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.stopped = true;
        socket.discard_unsent();
    }

    fn listens(&self) -> bool {
        self.size != ENDLESS && self.completed.is_none()
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        if socket.delivered() >= self.size {
            self.completed = Some(socket.now());
        }
    }

    fn is_over(&self) -> bool {
        self.stopped || self.completed.is_some()
    }

    fn outcome(&self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        if let Some(completed) = self.completed {
            visit("completion_ms", completed.since(self.started).as_millis_f64());
        }
    }
}
