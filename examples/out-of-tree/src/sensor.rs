//! Sensor: a reading at a fixed beat, over the stream. It reports how old readings are when they arrive.

use std::collections::VecDeque;

use brakelight_apps::{Application, CustomApplication, Distribution, Socket};
use brakelight_core::parameters;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::Algorithm;

parameters! {
    /// Settings of [`Sensor`].
    pub struct Config {
        /// The size of a reading.
        size: Bytes = Bytes(200), in Bytes(1)..=Bytes(1_000_000), from "chosen here";
        /// The time between readings.
        interval: Duration = Duration::from_millis(100), in Duration::from_millis(1)..=Duration::from_secs(3600), from "chosen here";
    }
}

/// Both ends: the sensor, and whoever reads it.
#[derive(Clone, Debug)]
pub struct Sensor {
    config: Config,
    next_at: Time,
    written: u64,
    /// Readings on their way: when each was taken, and how much payload has arrived once it has.
    on_the_way: VecDeque<(Time, u64)>,
    ages: Distribution,
}

impl Algorithm for Sensor {
    type Config = Config;
    const NAME: &'static str = "sensor";
    const SUMMARY: &'static str = "Sensor: readings at a fixed beat, and how old they arrive";
}

impl CustomApplication for Sensor {
    const OUTCOME: &'static [&'static str] = &["readings", "age_ms_mean", "age_ms_p95", "age_ms_max"];

    fn build(config: &Config, _mss: Bytes) -> Self {
        Sensor {
            config: config.clone(),
            next_at: Time::MAX,
            written: 0,
            on_the_way: VecDeque::new(),
            ages: Distribution::default(),
        }
    }

    fn offers(config: &Config) -> Option<Rate> {
        Some(Rate::over(config.size, config.interval))
    }
}

impl Application for Sensor {
    fn start(&mut self, socket: &mut impl Socket) {
        self.on_timer(socket);
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.next_at = Time::MAX;
        socket.discard_unsent();
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        socket.write(self.config.size);
        self.written += self.config.size.0;
        self.on_the_way.push_back((socket.now(), self.written));
        self.next_at = socket.now() + self.config.interval;
    }

    fn next_timer(&self) -> Time {
        self.next_at
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        while let Some(&(taken_at, end)) = self.on_the_way.front()
            && end <= socket.delivered().0
        {
            self.ages.record(socket.now().since(taken_at));
            self.on_the_way.pop_front();
        }
    }

    fn outcome(&self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("readings", self.ages.count() as f64);
        if let Some(summary) = self.ages.summary() {
            visit("age_ms_mean", summary.mean);
            visit("age_ms_p95", summary.p95);
            visit("age_ms_max", summary.max);
        }
    }
}
