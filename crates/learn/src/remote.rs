//! An agent that is elsewhere: an environment steps a simulation to the end of an interval, reads what was
//! observed, and says what to do next.

use std::sync::{Arc, Mutex, MutexGuard, PoisonError};

use brakelight_core::controller::Connection;
use brakelight_core::time::Time;
use brakelight_core::units::Rate;
use brakelight_registry::{ControllerFactory, DynController};

use crate::interval::Interval;
use crate::monitor::{Agent, Monitor, Specification};
use crate::preset::Memory;

/// What the controller and its agent tell each other.
#[derive(Clone, Debug, Default)]
pub struct Exchange {
    /// What to do at the next decision.
    pub action: f64,
    /// When the interval after it is over.
    pub until: Time,
    /// The interval that is over; none before the first, and none once it was taken.
    pub interval: Option<Interval>,
    /// What the preset keeps of the connection.
    pub memory: Memory,
    /// The last observation.
    pub observation: Vec<f32>,
}

/// An agent that is asked through an [`Exchange`]. Copies ask through the same.
#[derive(Clone, Debug)]
pub struct Remote {
    specification: Arc<Specification>,
    start_rate: Rate,
    exchange: Arc<Mutex<Exchange>>,
}

impl Remote {
    /// Returns an agent that acts by `specification` and begins with `start_rate`, where it sets a rate.
    pub fn new(specification: Arc<Specification>, start_rate: Rate) -> Self {
        let observation = specification.nothing();
        let exchange = Exchange { observation, ..Exchange::default() };
        Remote { specification, start_rate, exchange: Arc::new(Mutex::new(exchange)) }
    }

    /// Returns what was told last, to be read and answered.
    pub fn exchange(&self) -> MutexGuard<'_, Exchange> {
        self.exchange.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

impl Agent for Remote {
    fn observe(&mut self, interval: Option<&Interval>, memory: &Memory, observation: &[f32]) {
        let mut exchange = self.exchange();
        exchange.interval = interval.copied();
        exchange.memory = *memory;
        exchange.observation.copy_from_slice(observation);
    }

    fn act(&mut self) -> (f64, Option<Time>) {
        let exchange = self.exchange();
        (exchange.action, Some(exchange.until))
    }
}

impl ControllerFactory for Remote {
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        let specification = Arc::clone(&self.specification);
        Box::new(Monitor::new(specification, self.clone(), connection, self.start_rate))
    }
}
