//! HyStart: leaving slow start before the queue overflows. Two of them.
//!
//! **Classic** (Ha and Rhee 2008, with the rules and constants of Linux 6.12 `tcp_cubic.c`) leaves at once:
//!
//! ```text
//! ACK train:  ACKs no more than ack_delta apart that reach past train * (delay_min + cushion) into the round
//! delay:      min RTT of the round > delay_min + clamp(delay_min / divisor, delay_floor, delay_ceiling),
//!             once `samples` RTT samples of the round have gone before
//! either:     ssthresh = cwnd                                    both only from cwnd >= low_window on
//! ```
//!
//! **HyStart++** (RFC 9406) first slows down and looks again:
//!
//! ```text
//! slow start: cwnd += min(N, L * MSS)                                                          rfc9406 4.2
//!   RttThresh = clamp(lastRoundMinRTT / 8, 4 ms, 16 ms)
//!   after 8 samples, currentRoundMinRTT >= lastRoundMinRTT + RttThresh: baseline = currentRoundMinRTT, go to
//!     CSS
//! CSS:        cwnd += min(N, L * MSS) / 4
//!   after 8 samples, currentRoundMinRTT < baseline: a false alarm, go back to slow start
//!   after 5 rounds, the one it began in included: ssthresh = cwnd
//! only in the initial slow start, while ssthresh is unknown: later ones are plain            rfc9406 4.3
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | low_window | `low_window_pkts` | packets | 16 | Linux 6.12 tcp_cubic.c, `hystart_low_window` |
//! | ack_delta | `ack_delta` | time | 2 ms | Linux 6.12 tcp_cubic.c, `hystart_ack_delta_us` |
//! | train | `train` | 1 | 0.5 | Linux 6.12 tcp_cubic.c, `hystart_update`, unpaced |
//! | divisor | `divisor` | 1 | 8 | Linux 6.12 tcp_cubic.c, `hystart_update` |
//! | delay_floor | `delay_floor` | time | 4 ms | Linux 6.12 tcp_cubic.c, `HYSTART_DELAY_MIN` |
//! | delay_ceiling | `delay_ceiling` | time | 16 ms | Linux 6.12 tcp_cubic.c, `HYSTART_DELAY_MAX` |
//! | samples | [`MIN_SAMPLES`] | count | 8 | Linux 6.12 tcp_cubic.c, `HYSTART_MIN_SAMPLES`, rfc9406 4.3 |
//! | cushion | [`cushion`] | time | 1 ms at most | Linux 6.12 tcp_cubic.c, `hystart_ack_delay` |
//! | L | [`LIMIT`] | packets | 8 | rfc9406 4.3, unpaced |
//!
//! Deviations: D1 whether the host paces is not known here: classic HyStart takes it as unpaced, which is
//! what the kernel does without `fq`; a paced flow sets `train` to 1.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::rounds::Rounds;

/// RTT samples of a round that must have gone before its minimum counts.
const MIN_SAMPLES: u32 = 8;

/// One ACK with an RTT sample, in slow start.
#[derive(Clone, Copy, Debug)]
pub(super) struct Sample {
    pub(super) now: Time,
    pub(super) rtt: Duration,
    /// The number of the newest packet it acknowledges.
    pub(super) newest: u64,
    pub(super) cwnd_pkts: f64,
    pub(super) cwnd: Bytes,
    pub(super) srtt: Duration,
    /// Smallest RTT the owner believes in.
    pub(super) delay_min: Duration,
}

/// Room for the delay that segmentation offload puts between ACKs: four 64 KiB bursts at the rate slow start
/// aims at, and no more than 1 ms.
// Linux 6.12 tcp_cubic.c, hystart_ack_delay
fn cushion(cwnd: Bytes, srtt: Duration) -> Duration {
    let rate_bytes_s = 2.0 * cwnd.as_f64() / srtt.as_secs_f64();
    Duration::from_secs_f64(4.0 * 65_536.0 / rate_bytes_s).min(Duration::from_millis(1))
}

/// Classic HyStart's settings.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Settings {
    pub(super) low_window_pkts: f64,
    pub(super) ack_delta: Duration,
    pub(super) train: f64,
    pub(super) divisor: f64,
    pub(super) delay_floor: Duration,
    pub(super) delay_ceiling: Duration,
}

/// Classic HyStart.
#[derive(Clone, Copy, Debug)]
pub(super) struct Classic {
    settings: Settings,
    rounds: Rounds,
    round_start: Time,
    /// The last ACK of the train that began with the round.
    last_ack: Time,
    round_min: Duration,
    samples: u32,
    found: bool,
}

impl Classic {
    pub(super) fn new(settings: Settings, now: Time) -> Self {
        Classic {
            settings,
            rounds: Rounds::default(),
            round_start: now,
            last_ack: now,
            round_min: Duration::MAX,
            samples: 0,
            found: false,
        }
    }

    pub(super) fn sent(&mut self, number: u64) {
        self.rounds.sent(number);
    }

    /// Ready for another slow start: the one after a timeout, as in Linux 6.14 tcp_cubic.c, where only
    /// `cubictcp_state` clears `found`, when the connection enters `TCP_CA_Loss`.
    // linux 6.14 tcp_cubic.c cubictcp_state
    pub(super) fn rearm(&mut self, now: Time) {
        self.start_round(now);
        self.rounds.restart();
        self.found = false;
    }

    fn start_round(&mut self, now: Time) {
        self.round_start = now;
        self.last_ack = now;
        self.round_min = Duration::MAX;
        self.samples = 0;
    }

    /// Whether slow start is to end here.
    // Linux 6.12 tcp_cubic.c, hystart_update
    pub(super) fn found(&mut self, sample: &Sample) -> bool {
        if self.found {
            return false;
        }
        if self.rounds.acked(sample.newest) {
            self.start_round(sample.now);
        }
        if sample.cwnd_pkts < self.settings.low_window_pkts {
            return false;
        }
        if sample.now.since(self.last_ack) <= self.settings.ack_delta {
            self.last_ack = sample.now;
            let cushion = cushion(sample.cwnd, sample.srtt);
            let reach = (sample.delay_min + cushion).mul_f64(self.settings.train);
            self.found |= sample.now.since(self.round_start) > reach;
        }
        self.round_min = self.round_min.min(sample.rtt);
        if self.samples < MIN_SAMPLES {
            self.samples += 1;
        } else {
            let rise = sample.delay_min.mul_f64(1.0 / self.settings.divisor);
            let rise = rise.max(self.settings.delay_floor).min(self.settings.delay_ceiling);
            self.found |= self.round_min > sample.delay_min + rise;
        }
        self.found
    }
}

/// Growth per ACK in slow start of an unpaced flow.
// rfc9406 4.3
const LIMIT: u64 = 8;
/// How much slower CSS grows.
// rfc9406 4.3
const CSS_GROWTH_DIVISOR: u64 = 4;
/// Rounds of CSS before slow start is over.
// rfc9406 4.3
const CSS_ROUNDS: u32 = 5;

/// Where HyStart++ is.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Phase {
    SlowStart,
    /// Conservative slow start.
    Css {
        baseline: Duration,
        rounds: u32,
    },
}

/// HyStart++ (RFC 9406). Its owner asks it in the initial slow start only: the end of CSS is final.
// rfc9406 4.3
#[derive(Clone, Copy, Debug)]
pub(super) struct PlusPlus {
    rounds: Rounds,
    phase: Phase,
    last_round_min: Duration,
    round_min: Duration,
    samples: u32,
}

impl PlusPlus {
    pub(super) fn new() -> Self {
        PlusPlus {
            rounds: Rounds::default(),
            phase: Phase::SlowStart,
            last_round_min: Duration::MAX,
            round_min: Duration::MAX,
            samples: 0,
        }
    }

    pub(super) fn sent(&mut self, number: u64) {
        self.rounds.sent(number);
    }

    /// How much of `acked` turns into growth.
    // rfc9406 4.2
    pub(super) fn growth(&self, acked: Bytes, mss: Bytes) -> Bytes {
        let limited = acked.min(Bytes(LIMIT * mss.0));
        match self.phase {
            Phase::SlowStart => limited,
            Phase::Css { .. } => Bytes(limited.0 / CSS_GROWTH_DIVISOR),
        }
    }

    /// Whether slow start is to end here.
    // rfc9406 4.2
    pub(super) fn found(&mut self, newest: u64, rtt: Option<Duration>) -> bool {
        if self.rounds.acked(newest) {
            self.last_round_min = self.round_min;
            self.round_min = Duration::MAX;
            self.samples = 0;
            if let Phase::Css { rounds, .. } = &mut self.phase {
                *rounds += 1;
                if *rounds >= CSS_ROUNDS {
                    return true;
                }
            }
        }
        if let Some(rtt) = rtt {
            self.round_min = self.round_min.min(rtt);
            self.samples += 1;
        }
        if self.samples < MIN_SAMPLES {
            return false;
        }
        match self.phase {
            Phase::SlowStart if self.last_round_min < Duration::MAX => {
                let rise = Duration::from_nanos(self.last_round_min.as_nanos() / 8);
                let rise = rise.max(Duration::from_millis(4)).min(Duration::from_millis(16));
                if self.round_min >= self.last_round_min + rise {
                    self.phase = Phase::Css { baseline: self.round_min, rounds: 0 };
                }
            }
            Phase::Css { baseline, .. } if self.round_min < baseline => self.phase = Phase::SlowStart,
            _ => {}
        }
        false
    }
}

#[cfg(test)]
mod tests;
