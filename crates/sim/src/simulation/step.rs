//! Advancing a run: to a time, by one event, or to the next event of a flow.

use brakelight_core::endpoint::Endpoint;
use brakelight_core::time::Time;
use brakelight_scenario::measure::Unfairness;

use super::Simulation;
use crate::packet::SimPacket;
use crate::report::Reporting;

impl<E: Endpoint<SimPacket> + Reporting> Simulation<E> {
    /// Returns the time until which the run has been advanced.
    pub fn now(&self) -> Time {
        self.engine.now()
    }

    /// Returns the end of the scenario: [`run`](crate::run) advances to it, and [`step`](Self::step) goes no
    /// further.
    pub fn end(&self) -> Time {
        Time::ZERO + self.scenario.duration
    }

    /// Performs every event due at or before `until`, which then is the present time. The end of the scenario
    /// may be passed. A time before the present one changes nothing.
    pub fn advance(&mut self, until: Time) {
        if until < self.now() {
            return;
        }
        while let Some(at) = self.next_record().filter(|at| *at <= until) {
            self.engine.run_until(at);
            self.record(at);
        }
        self.engine.run_until(until);
    }

    /// Performs the next event if it is due by the [end](Self::end) of the scenario, and returns its time,
    /// which then is the present one. Several events may have the same time. Returns `None` when none is
    /// left: the present time then is the end.
    ///
    /// An event is one call of a link, another path element or a flow, with everything that follows from it
    /// at once: packets that enter the next element, or that arrive at a flow and are answered. Which of
    /// several events of the same time is the first may depend on earlier stops; the outcome does not.
    pub fn step(&mut self) -> Option<Time> {
        let Some(at) = self.engine.next_event().filter(|at| *at <= self.end()) else {
            self.advance(self.end());
            return None;
        };
        while let Some(record) = self.next_record().filter(|record| *record < at) {
            self.record(record);
        }
        self.engine.run_next()
    }

    /// Performs events until one has changed what the sender of flow number `flow` knows: it sent a packet,
    /// an ACK arrived that said something, or a timer fired. Returns the time of that event, which then is
    /// the present one. Returns `None` if there is no such event by the [end](Self::end) of the scenario,
    /// which then is the present time, and if there is no such flow.
    pub fn advance_to_flow(&mut self, flow: usize) -> Option<Time> {
        let before = self.engine.endpoints().get(flow)?.sender();
        loop {
            let at = self.step()?;
            if self.engine.endpoints()[flow].sender() != before {
                return Some(at);
            }
        }
    }

    /// When measuring begins.
    pub(super) fn measure_from(&self) -> Time {
        Time::ZERO + self.scenario.measure_from
    }

    /// When something must be recorded next, after all events up to that time.
    fn next_record(&self) -> Option<Time> {
        let bin_end = self.series.as_ref().map(|series| series.bin_end);
        let step_end = self.unfairness.as_ref().map(Unfairness::next);
        let measuring = (!self.measuring).then(|| self.measure_from());
        [bin_end, step_end, measuring, self.second_half_due()].into_iter().flatten().min()
    }

    /// Records what is due `at` that time, after all events up to it and before any later one.
    fn record(&mut self, at: Time) {
        if let Some(series) = self.series.as_mut().filter(|series| series.bin_end == at) {
            series.close(self.scenario.record.bin, &mut self.engine);
        }
        if let Some(unfairness) = self.unfairness.as_mut().filter(|unfairness| unfairness.next() == at) {
            unfairness.note(self.engine.observer().flows.iter().map(|flow| flow.arrived_bytes));
        }
        if !self.measuring && self.measure_from() == at {
            self.at_start = self.engine.endpoints().iter().map(Reporting::counters).collect();
            self.measuring = true;
        }
        if self.second_half_due() == Some(at) {
            self.begin_second_half(at);
        }
    }
}
