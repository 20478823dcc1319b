//! Copa (Arun and Balakrishnan, NSDI 2018): a target rate of 1/(delta d_q), approached by a window.
//!
//! ```text
//! d_q = RTT_standing - RTT_min                 RTT_standing = min over srtt/2, RTT_min = min over 10 s
//!                                                                                                 copa18 2.1
//! target = 1 / (delta d_q),  rate = cwnd / RTT_standing                                    copa18 eq.1
//! each packet ACKed:  cwnd += v / (delta cwnd) if rate <= target, -= otherwise             copa18 2.1
//! velocity v:         once per window, doubled when the direction has held, else 1 (D5)        copa18 2.1
//! slow start:         doubles per RTT until rate > target                                  copa18 2.1
//! pacing:             2 cwnd / RTT_standing                                                copa18 2.1
//! competitive mode:   no RTT < RTT_min + 0.1 (RTT_max - RTT_min) for 4 RTTs (D6)           copa18 2.2
//!                     1/delta += 1 per RTT, halved on loss, not below 1/delta_default
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | delta | `delta` | 1/packets | 0.5 | copa18 2.1 |
//! | - | `mode` | choice | auto | copa18 2.2 |
//! | - | `rules` | choice | program | genericCC |
//! | v | `velocity` | 1 | 1 | copa18 2.1 |
//! | RTT_min | `rtt_min` | time | min over 10 s | copa18 2.1 |
//! | RTT_standing | `rtt_standing` | time | min over srtt/2 | copa18 2.1 |
//! | RTT_max | `rtt_max` | time | max over 4 RTTs | copa18 2.2 |
//!
//! Deviations:
//! D1 the filters are Nichols's three-sample ones, as in mvfst's Copa.cpp; the paper does not say.
//! D2 one packet ACKed changes the window by one packet at most: a large v could otherwise more than double
//! it in a
//!    round trip, which is what slow start is for.
//! D3 the paper is silent on timeouts: the window goes to one packet, and slow start begins anew.
//! D4 a loss changes the window only through delta, in competitive mode, as the paper has it; without the
//! mode, not at all.
//! D5 v doubles after a second window in one direction, as in the authors' program, genericCC
//! (`markoviancc.cc`, `update_intersend_time`). In the paper it waits for three, and then a lone flow's
//! swings may be too small to ever empty the queue: it takes itself for a competitor. `rules=paper` waits.
//! D6 the queue counts as nearly empty by the smallest RTT of the last four, as in genericCC
//! (`rtt-window.cc`, `is_copa`). With `rules=paper` the standing RTT must be that small within five RTTs.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, Recovery, SendDirective, SendEvent,
    SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_estimates::windowed_max::WindowedMax;
use brakelight_estimates::windowed_min::WindowedMin;

use super::rounds::Rounds;

/// How long a smallest RTT is believed.
// copa18 2.1
const RTT_MIN_WINDOW: Duration = Duration::from_secs(10);
/// RTTs over which the largest one is looked for.
// copa18 2.2
const RTT_MAX_ROUNDS: u64 = 4;
/// RTTs without a nearly empty queue that betray a competitor, by the paper.
// copa18 2.2
const FULL_ROUNDS: u64 = 5;
/// RTTs whose smallest must be that of a nearly empty queue, by the authors' program.
// genericCC rtt-window.cc
const RECENT_ROUNDS: u64 = 4;
/// Share of the RTT's range below which the queue counts as nearly empty.
// copa18 2.2
const NEARLY_EMPTY: f64 = 0.1;
/// Windows for which the direction must have held before v doubles, by the paper.
// copa18 2.1
const STEADY_WINDOWS: u32 = 3;
/// Smallest window: with fewer packets there is no ACK clock.
const LEAST_PKTS: f64 = 2.0;

choices! {
    /// Whether competitors are looked for.
    pub enum Mode {
        /// Switches by the queue.
        Auto = "auto",
        /// Stays in the default mode.
        Default = "default",
    }
}

choices! {
    /// Where the paper and its authors' program differ: when v doubles, and when a queue is nearly empty.
    pub enum Rules {
        /// As in the program, genericCC.
        Program = "program",
        /// As printed in the paper.
        Paper = "paper",
    }
}

parameters! {
    /// Copa's settings.
    pub struct Config {
        /// Inverse of the packets a flow keeps in the queue.
        delta: f64 = 0.5, in 0.004..=10.0, from "copa18 2.1";
        /// Whether competitors that fill the queue are looked for and answered.
        mode: Mode = Mode::Auto, in .., from "copa18 2.2";
        /// Whose rules decide when v doubles and when the queue is nearly empty.
        rules: Rules = Rules::Program, in .., from "genericCC";
    }
}

/// Which way the window went over the last window of packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
enum Direction {
    Up,
    Down,
}

/// RTT filters, once there is a sample.
#[derive(Clone, Copy, Debug)]
struct Filters {
    min: WindowedMin,
    standing: WindowedMin,
    recent: WindowedMin,
    max: WindowedMax,
}

/// What the filters say.
#[derive(Clone, Copy, Debug, PartialEq)]
struct Delays {
    rtt_min: Duration,
    rtt_standing: Duration,
    /// The smallest of the last four RTTs.
    rtt_recent: Duration,
    rtt_max: Duration,
}

/// Copa's window.
#[derive(Clone, Debug)]
pub struct Copa {
    config: Config,
    mss: Bytes,
    cwnd_pkts: f64,
    slow_start: bool,
    filters: Option<Filters>,
    rtt_standing: Option<Duration>,
    rounds: Rounds,
    /// The window when the current round began.
    round_cwnd_pkts: f64,
    direction: Direction,
    /// Windows for which the direction has held.
    held: u32,
    velocity: f64,
    /// When the queue was last nearly empty.
    nearly_empty_at: Time,
    /// 1/delta of competitive mode, while in it.
    competitive: Option<f64>,
    /// Whether a loss has been seen in this round.
    lost: bool,
    /// Window before the last timeout.
    before_pkts: Option<f64>,
}

impl Copa {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let cwnd_pkts = connection.initial_window.as_f64() / connection.mss.as_f64();
        Copa {
            config,
            mss: connection.mss,
            cwnd_pkts,
            slow_start: true,
            filters: None,
            rtt_standing: None,
            rounds: Rounds::default(),
            round_cwnd_pkts: cwnd_pkts,
            direction: Direction::Up,
            held: 0,
            velocity: 1.0,
            nearly_empty_at: connection.now,
            competitive: None,
            lost: false,
            before_pkts: None,
        }
    }

    /// delta as the mode has it.
    fn delta(&self) -> f64 {
        self.competitive.map_or(self.config.delta, |inverse| 1.0 / inverse)
    }

    // copa18 2.1, 2.2
    fn filter(&mut self, now: Time, sample: Duration, srtt: Duration) -> Delays {
        let (at, value) = (now.as_nanos(), sample.as_nanos().max(1));
        let filters = self.filters.get_or_insert(Filters {
            min: WindowedMin::new(at, value),
            standing: WindowedMin::new(at, value),
            recent: WindowedMin::new(at, value),
            max: WindowedMax::new(at, value),
        });
        let delays = Delays {
            rtt_min: Duration::from_nanos(filters.min.update(RTT_MIN_WINDOW.as_nanos(), at, value)),
            rtt_standing: Duration::from_nanos(filters.standing.update(srtt.as_nanos() / 2, at, value)),
            rtt_recent: Duration::from_nanos(filters.recent.update(
                RECENT_ROUNDS * srtt.as_nanos(),
                at,
                value,
            )),
            rtt_max: Duration::from_nanos(filters.max.update(RTT_MAX_ROUNDS * srtt.as_nanos(), at, value)),
        };
        self.rtt_standing = Some(delays.rtt_standing);
        delays
    }

    /// Switches between the modes.
    // copa18 2.2
    fn choose_mode(&mut self, now: Time, delays: &Delays, srtt: Duration) {
        if self.config.mode == Mode::Default {
            return;
        }
        let range = delays.rtt_max.saturating_sub(delays.rtt_min);
        let smallest = match self.config.rules {
            Rules::Program => delays.rtt_recent,
            Rules::Paper => delays.rtt_standing,
        };
        if smallest.saturating_sub(delays.rtt_min) <= range.mul_f64(NEARLY_EMPTY) {
            self.nearly_empty_at = now;
        }
        let competitors = match self.config.rules {
            Rules::Program => now > self.nearly_empty_at,
            Rules::Paper => now.since(self.nearly_empty_at) > srtt * FULL_ROUNDS,
        };
        match (competitors, self.competitive) {
            (true, None) => self.competitive = Some(1.0 / self.config.delta),
            (false, Some(_)) => self.competitive = None,
            _ => {}
        }
    }

    /// At the end of a window: the velocity, and delta of competitive mode.
    // copa18 2.1, 2.2
    fn end_round(&mut self) {
        let direction = if self.cwnd_pkts > self.round_cwnd_pkts { Direction::Up } else { Direction::Down };
        if direction == self.direction {
            self.held += 1;
            let steady = match self.config.rules {
                Rules::Program => 1,
                Rules::Paper => STEADY_WINDOWS,
            };
            if self.held >= steady {
                // More than delta cwnd has no effect: one packet per packet ACKed (D2).
                self.velocity = (2.0 * self.velocity).min((self.delta() * self.cwnd_pkts).max(1.0));
            }
        } else {
            (self.direction, self.held, self.velocity) = (direction, 0, 1.0);
        }
        self.round_cwnd_pkts = self.cwnd_pkts;
        if let Some(inverse) = &mut self.competitive
            && !self.lost
        {
            *inverse += 1.0;
        }
        self.lost = false;
    }

    // copa18 eq.1
    fn approach(&mut self, delays: &Delays, acked_pkts: f64) {
        let queueing_s = delays.rtt_standing.saturating_sub(delays.rtt_min).as_secs_f64();
        // rate <= target, with the divisions multiplied out: d_q may be zero.
        let faster = self.cwnd_pkts * self.delta() * queueing_s <= delays.rtt_standing.as_secs_f64();
        if self.slow_start {
            if faster {
                self.cwnd_pkts += acked_pkts;
                return;
            }
            self.slow_start = false;
            (self.held, self.velocity) = (0, 1.0);
            self.round_cwnd_pkts = self.cwnd_pkts;
        }
        let heading = if faster { Direction::Up } else { Direction::Down };
        if heading != self.direction && self.velocity > 1.0 {
            // copa18 2.1: no momentum past the turning point.
            (self.direction, self.held, self.velocity) = (heading, 0, 1.0);
        }
        let step_pkts = (self.velocity / (self.delta() * self.cwnd_pkts)).min(1.0) * acked_pkts;
        self.cwnd_pkts += if faster { step_pkts } else { -step_pkts };
        self.cwnd_pkts = self.cwnd_pkts.max(LEAST_PKTS);
    }
}

impl Controller for Copa {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.rounds.sent(event.number);
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let (Some(sample), Some(newest)) = (event.rtt.sample, event.newest) else { return };
        let srtt = event.rtt.smoothed;
        let delays = self.filter(event.now, sample, srtt);
        self.choose_mode(event.now, &delays, srtt);
        if !event.cwnd_limited && self.slow_start {
            return;
        }
        if self.rounds.acked(newest) && !self.slow_start {
            self.end_round();
        }
        let acked_pkts = event.newly_acked.as_f64() / self.mss.as_f64();
        // A window that is not needed may shrink, and stays where it is otherwise.
        let before_pkts = self.cwnd_pkts;
        self.approach(&delays, acked_pkts);
        if !event.cwnd_limited {
            self.cwnd_pkts = self.cwnd_pkts.min(before_pkts);
        }
    }

    // copa18 2.2
    fn on_loss(&mut self, _event: &LossEvent) {
        self.lost = true;
        if let Some(inverse) = &mut self.competitive {
            *inverse = (*inverse / 2.0).max(1.0 / self.config.delta);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let left_pkts = match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => 1.0,
            Timeout::PersistentCongestion => 2.0,
        };
        if !event.repeated {
            self.before_pkts = Some(self.cwnd_pkts);
        }
        self.cwnd_pkts = self.cwnd_pkts.min(left_pkts);
        (self.slow_start, self.held, self.velocity) = (true, 0, 1.0);
        self.competitive = None;
        self.nearly_empty_at = event.now;
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        if let (true, Some(before_pkts)) = (event.timeout, self.before_pkts.take()) {
            self.cwnd_pkts = self.cwnd_pkts.max(before_pkts);
        }
    }

    fn on_recovery_exit(&mut self, _now: Time) {
        self.before_pkts = None;
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        // The standing RTT is stale, and silence is no sign of a competitor.
        self.nearly_empty_at = event.now;
        self.velocity = 1.0;
        self.held = 0;
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.cwnd_pkts = self.cwnd_pkts.min(most.as_f64() / self.mss.as_f64()).max(1.0);
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        let scale = self.mss.as_f64() / mss.as_f64();
        self.mss = mss;
        self.cwnd_pkts = (self.cwnd_pkts * scale).max(1.0);
        self.round_cwnd_pkts *= scale;
        self.before_pkts = self.before_pkts.map(|before_pkts| before_pkts * scale);
    }

    fn cwnd(&self) -> Bytes {
        Bytes((self.cwnd_pkts * self.mss.as_f64()) as u64).max(self.mss)
    }

    // copa18 2.1
    fn pacing_rate(&self) -> Option<Rate> {
        let rtt_standing = self.rtt_standing?;
        Some(Rate::over(self.cwnd(), rtt_standing).mul_f64(2.0).max(Rate::from_bps(1)))
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn encoding(&self) -> Encoding {
        Encoding::None
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("delta", self.delta());
        visit("velocity", self.velocity);
        visit("competitive", f64::from(u8::from(self.competitive.is_some())));
        visit("rtt_standing_ms", self.rtt_standing.map_or(0.0, Duration::as_millis_f64));
    }
}
