//! Phases of one application on one connection, each with what it offers: a trickle, then bulk, then silence.
//!
//! ```text
//! phase i begins at s + t_1 + ... + t_(i-1) and lasts t_i, s being the flow's start
//! idle: offers nothing; a rate: packet n of the phase n intervals after its start; backlogged: always more
//! ```
//!
//! What a phase with a rate has offered stays to be sent when it ends; what waits of a backlogged one is
//! forgotten. After the last phase the application is silent.
//!
//! Outcome: `delivered_mbps` (payload, from the flow's start on) and `phase_1_mbps`, `phase_2_mbps`, ...:
//! what arrived while each phase lasted. A phase that has not begun has none.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::application::Application;
use crate::socket::{ENDLESS, Socket};
use crate::traffic::{Offer, Phase};

/// The names of the outcome: what arrived at all, and in each phase.
pub static OUTCOME: [&str; MOST_PHASES + 1] = [
    "delivered_mbps",
    "phase_1_mbps",
    "phase_2_mbps",
    "phase_3_mbps",
    "phase_4_mbps",
    "phase_5_mbps",
    "phase_6_mbps",
    "phase_7_mbps",
    "phase_8_mbps",
    "phase_9_mbps",
    "phase_10_mbps",
    "phase_11_mbps",
    "phase_12_mbps",
    "phase_13_mbps",
    "phase_14_mbps",
    "phase_15_mbps",
    "phase_16_mbps",
];

/// The most phases of an application.
pub const MOST_PHASES: usize = 16;

/// An application whose behavior changes over time.
#[derive(Clone, Debug)]
pub struct Phases {
    phases: Vec<Phase>,
    mss: Bytes,
    /// When each phase that has begun did so, and what had been delivered by then.
    begun: Vec<(Time, u64)>,
    /// When the phase ends; [`Time::MAX`] after the last one.
    turn_at: Time,
    /// Packets that the phase has offered, and when the next one is due.
    packets: u64,
    tick_at: Time,
    /// When the last phase ended, or the flow was stopped, and what had been delivered by then.
    ended: Option<(Time, u64)>,
    delivered: u64,
}

impl Phases {
    /// Returns an application that has not started.
    pub fn new(phases: Vec<Phase>, mss: Bytes) -> Self {
        Phases {
            phases,
            mss,
            begun: Vec::new(),
            turn_at: Time::MAX,
            packets: 0,
            tick_at: Time::MAX,
            ended: None,
            delivered: 0,
        }
    }

    /// The phase that lasts.
    fn current(&self) -> Option<Phase> {
        if self.ended.is_some() {
            return None;
        }
        self.begun.len().checked_sub(1).and_then(|last| self.phases.get(last).copied())
    }

    /// Begins the next phase at `at`, which has come, or ends the last one.
    fn turn(&mut self, at: Time, socket: &mut impl Socket) {
        if self.current().is_some_and(|phase| phase.offer == Offer::Backlogged) {
            socket.discard_unsent();
        }
        self.tick_at = Time::MAX;
        self.packets = 0;
        let Some(phase) = self.phases.get(self.begun.len()).copied() else {
            self.turn_at = Time::MAX;
            self.ended = Some((at, self.delivered));
            return;
        };
        self.begun.push((at, self.delivered));
        self.turn_at = at.saturating_add(phase.length);
        match phase.offer {
            Offer::Idle => {}
            Offer::Rate(_) => self.tick_at = at,
            Offer::Backlogged => socket.write(ENDLESS),
        }
    }

    /// Offers every packet due by now, and no later than the end of its phase.
    fn offer(&mut self, socket: &mut impl Socket) {
        let (Some(Phase { offer: Offer::Rate(rate), .. }), Some(&(since, _))) =
            (self.current(), self.begun.last())
        else {
            return;
        };
        while self.tick_at <= socket.now() && self.tick_at < self.turn_at {
            socket.write(self.mss);
            self.packets += 1;
            self.tick_at = since.saturating_add(rate.time_for(Bytes(self.packets * self.mss.0)));
        }
    }
}

impl Application for Phases {
    fn start(&mut self, socket: &mut impl Socket) {
        self.turn(socket.now(), socket);
        self.offer(socket);
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.turn_at = Time::MAX;
        self.tick_at = Time::MAX;
        self.ended.get_or_insert((socket.now(), self.delivered));
        socket.discard_unsent();
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        self.offer(socket);
        while self.turn_at <= socket.now() {
            self.turn(self.turn_at, socket);
            self.offer(socket);
        }
    }

    fn next_timer(&self) -> Time {
        self.tick_at.min(self.turn_at)
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        self.delivered = socket.delivered().0;
    }

    fn is_over(&self) -> bool {
        !self.begun.is_empty() && self.next_timer() == Time::MAX
    }

    fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let Some(&(started, _)) = self.begun.first() else { return };
        let mbps = |bytes: u64, length: Duration| Rate::over(Bytes(bytes), length).as_mbps_f64();
        visit(OUTCOME[0], mbps(self.delivered, now.since(started)));
        let last = self.ended.unwrap_or((now, self.delivered));
        let ends = self.begun.iter().skip(1).chain([&last]);
        for ((&(from, before), &(to, after)), name) in self.begun.iter().zip(ends).zip(&OUTCOME[1..]) {
            if to > from {
                visit(name, mbps(after - before, to.since(from)));
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::random::Random;

    use super::*;
    use crate::socket::Datagram;

    /// A socket that sends nothing by itself.
    struct Still {
        now: Time,
        written: Vec<(u64, u64)>,
        discarded: Vec<u64>,
        delivered: u64,
        random: Random,
    }

    impl Socket for Still {
        fn now(&self) -> Time {
            self.now
        }
        fn write(&mut self, size: Bytes) {
            self.written.push((self.now.as_nanos() / 1_000_000, size.0));
        }
        fn unsent(&self) -> Bytes {
            Bytes(0)
        }
        fn discard_unsent(&mut self) {
            self.discarded.push(self.now.as_nanos() / 1_000_000);
        }
        fn delivered(&self) -> Bytes {
            Bytes(self.delivered)
        }
        fn rate(&self) -> Option<Rate> {
            None
        }
        fn random(&mut self) -> &mut Random {
            &mut self.random
        }
        fn send(&mut self, _datagram: Datagram) {}
    }

    #[test]
    fn each_phase_offers_its_own_and_after_the_last_there_is_silence() {
        let phase = |ms, offer| Phase { length: Duration::from_millis(ms), offer };
        // 1000 bytes every 8 ms.
        let trickle = Offer::Rate(Rate::from_mbps(1));
        let phases =
            vec![phase(20, trickle), phase(10, Offer::Idle), phase(30, Offer::Backlogged), phase(9, trickle)];
        let mut application = Phases::new(phases, Bytes(1000));
        let mut socket = Still {
            now: Time::from_millis(5),
            written: Vec::new(),
            discarded: Vec::new(),
            delivered: 0,
            random: Random::stream(1, "phases"),
        };
        application.start(&mut socket);
        while application.next_timer() < Time::MAX {
            // 3000 bytes arrive before the third phase, 75000 in it.
            socket.delivered = if application.begun.len() > 2 { 78_000 } else { 3000 };
            application.on_delivered(&mut socket);
            socket.now = application.next_timer();
            application.on_timer(&mut socket);
        }
        let trickled = [(5, 1000), (13, 1000), (21, 1000)];
        let expected = [&trickled[..], &[(35, u64::MAX)], &[(65, 1000), (73, 1000)]].concat();
        assert_eq!((socket.written, socket.discarded), (expected, vec![65]));
        assert!(application.is_over());
        let mut seen = Vec::new();
        application.outcome(Time::from_millis(109), &mut |name, value| seen.push((name, value)));
        let mbps = |bytes: f64, ms: f64| bytes * 8.0 / ms / 1000.0;
        let expected = [
            ("delivered_mbps", mbps(78_000.0, 104.0)),
            ("phase_1_mbps", mbps(3000.0, 20.0)),
            ("phase_2_mbps", 0.0),
            ("phase_3_mbps", mbps(75_000.0, 30.0)),
            ("phase_4_mbps", 0.0),
        ];
        for ((name, value), (expected_name, expected)) in seen.iter().zip(expected) {
            assert_eq!(*name, expected_name);
            assert!((value - expected).abs() < 1e-3, "{name}: {value} and {expected}");
        }
        assert_eq!(seen.len(), 5);
    }
}
