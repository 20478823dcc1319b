//! Sprout's sender (Winstein, Sivaraman, Balakrishnan, NSDI 2013): it keeps no more in flight than the
//! receiver forecasts that the link will carry within 100 ms. The receiver's half is `feedback/sprout.rs`.
//!
//! ```text
//! on a forecast F (packets carried by the ends of ticks 1 to 8, each with probability 95 %):
//!     queue = sent - received or lost,   tick = 1      (the forecast took a tick to get here)
//! every 20 ms from then:   queue -= F(tick + 1) - F(tick),   tick += 1
//! may send = F(min(tick + 5, 8)) - F(tick) - queue                               winstein13 3.5
//! the last packet of a flight announces a pause of 50 ms; a heartbeat leaves when nothing did for 50 ms
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | delay budget | `budget` | ticks | 5 (100 ms) | winstein13 3.5 |
//! | pause announced | `pause` | time | 50 ms | the authors' `sproutbt2.cc` |
//!
//! Deviations: D1 `queue` shrinks by what the forecast says of each tick; the authors' code takes the
//! cumulative value each time and so forgets its queue faster (`drain=cumulative`). D2 heartbeats are full
//! packets, for want of smaller ones; the queue estimate leaves them out, as theirs hardly count, and at most
//! four of them leave while the receiver counts nothing, so that an outage does not fill the buffer with
//! them. D3 lost packets are sent again by the host; Sprout itself does not repair.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, LossEvent, ReceiverReport, Recovery, SendDirective, SendEvent,
    TimeoutEvent,
};
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_estimates::poisson_brownian::HORIZON;

use crate::feedback::sprout::TICK;

choices! {
    /// By how much the estimated queue shrinks when a tick passes.
    pub enum Drain {
        /// What the forecast says of the tick.
        Tick = "tick",
        /// What it says of all ticks so far.
        Cumulative = "cumulative",
    }
}

parameters! {
    /// The settings of Sprout's sender.
    pub struct Config {
        /// Ticks of 20 ms within which everything sent is to be carried.
        budget: u32 = 5, in 1..=8, from "winstein13 3.5";
        /// Pause that the last packet of a flight announces, and after which a packet leaves anyway.
        pause: Duration = Duration::from_millis(50), in Duration::from_millis(1)..=Duration::from_secs(10),
            from "Sprout: sproutbt2.cc";
        /// How the estimated queue shrinks between forecasts.
        drain: Drain = Drain::Tick, in .., from "winstein13 3.5";
    }
}

/// Heartbeats between two advances of the receiver's count (D2).
const HEARTBEATS: u32 = 4;

/// Sprout's sender.
#[derive(Clone, Debug)]
pub struct Sprout {
    config: Config,
    mss: Bytes,
    forecast: [u16; HORIZON],
    /// When it arrived.
    forecast_at: Time,
    /// Ticks that passed since.
    tick: usize,
    /// Estimated bytes in the queue.
    queue: Bytes,
    /// Packets sent, and counted by the receiver.
    sent: u64,
    counted: Bytes,
    inflight: Bytes,
    last_sent: Time,
    /// Whether a heartbeat is due, and how many left since the receiver's count advanced.
    heartbeat: bool,
    heartbeats: u32,
    /// The newest heartbeats: their numbers, plus one.
    beats: [u64; 8],
}

impl Sprout {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Sprout {
            mss: connection.mss,
            forecast: [0; HORIZON],
            forecast_at: connection.now,
            tick: HORIZON,
            queue: Bytes::ZERO,
            sent: 0,
            counted: Bytes::ZERO,
            inflight: Bytes::ZERO,
            last_sent: connection.now,
            // The first packet is one: there is no forecast yet.
            heartbeat: true,
            heartbeats: 0,
            beats: [0; 8],
            config,
        }
    }

    /// Packets that the forecast expects by the end of the given tick.
    fn expected(&self, tick: usize) -> u64 {
        tick.min(HORIZON).checked_sub(1).map_or(0, |index| u64::from(self.forecast[index]))
    }

    /// Lets the forecast's ticks pass.
    fn advance(&mut self, now: Time) {
        let passed = 1 + now.since(self.forecast_at).periods(TICK) as usize;
        while self.tick < passed.min(HORIZON) {
            let drained = match self.config.drain {
                Drain::Tick => self.expected(self.tick + 1) - self.expected(self.tick),
                Drain::Cumulative => self.expected(self.tick),
            };
            self.tick += 1;
            self.queue = self.queue.saturating_sub(Bytes(drained * self.mss.0));
        }
    }

    /// Bytes that may be sent now (winstein13 3.5).
    fn allowance(&self) -> Bytes {
        let ahead = self.tick + self.config.budget as usize;
        let carried = self.expected(ahead) - self.expected(self.tick);
        Bytes(carried * self.mss.0).saturating_sub(self.queue)
    }
}

impl Controller for Sprout {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.advance(event.now);
        self.inflight = event.inflight + event.size;
        self.sent = self.sent.max(event.number + 1);
        self.last_sent = event.now;
        if self.allowance() < self.mss {
            // Not the forecast's doing: a heartbeat, or the one packet that a host may always send.
            self.beats.rotate_right(1);
            self.beats[0] = event.number + 1;
            self.heartbeats += u32::from(self.heartbeat);
        } else {
            self.queue += event.size;
        }
        self.heartbeat = false;
        let more = self.allowance() >= self.mss;
        let pause_ms = if more { 0 } else { (self.config.pause.as_micros() / 1000) as u16 };
        SendDirective { header: Header::Flight { pause_ms }, ..SendDirective::default() }
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.inflight = event.inflight;
        if let ReceiverReport::Forecast { packets, received } = event.report {
            self.forecast = packets;
            self.forecast_at = event.now;
            self.tick = 1;
            if received > self.counted {
                self.counted = received;
                self.heartbeats = 0;
            }
            let counted = received.0 / self.mss.0;
            let beats = self.beats.iter().filter(|end| **end > counted).count() as u64;
            self.queue = Bytes(self.sent.saturating_sub(counted + beats) * self.mss.0);
        }
        self.advance(event.now);
    }

    fn on_loss(&mut self, _event: &LossEvent) {}

    fn on_timeout(&mut self, _event: &TimeoutEvent) {
        self.inflight = Bytes::ZERO;
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
    }

    fn on_timer(&mut self, now: Time) {
        self.advance(now);
        let silent = now >= self.last_sent + self.config.pause;
        if silent && !self.heartbeat && self.heartbeats < HEARTBEATS && self.sent > 0 {
            self.heartbeat = true;
        }
    }

    fn next_timer(&self) -> Option<Time> {
        let tick = (self.tick < HORIZON).then(|| self.forecast_at + TICK * self.tick as u64);
        let due = self.sent > 0 && !self.heartbeat && self.heartbeats < HEARTBEATS;
        let heartbeat = due.then(|| self.last_sent + self.config.pause);
        tick.into_iter().chain(heartbeat).min()
    }

    fn cwnd(&self) -> Bytes {
        let least = if self.heartbeat { self.mss } else { Bytes::ZERO };
        (self.inflight + self.allowance().max(least)).max(self.mss)
    }

    fn recovery(&self) -> Recovery {
        Recovery::Own
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("forecast_packets", (self.expected(1 + self.config.budget as usize) - self.expected(1)) as f64);
        visit("queue_bytes", self.queue.as_f64());
        visit("allowance_bytes", self.allowance().as_f64());
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::controller::RecoveryState;
    use brakelight_core::controller::{Marks, Rtt};
    use brakelight_core::random::Random;

    use super::*;

    const MSS: u64 = 1448;

    fn controller() -> Sprout {
        let connection = Connection {
            mss: Bytes(MSS),
            overhead: Bytes(52),
            initial_window: Bytes(10 * MSS),
            now: Time::ZERO,
            random: Random::stream(1, "sprout"),
        };
        Sprout::new(Config::default(), &connection)
    }

    fn send(sprout: &mut Sprout, now: Time, number: u64) -> SendDirective {
        sprout.on_send(&SendEvent {
            now,
            size: Bytes(MSS),
            number,
            retransmission: false,
            replaces: None,
            inflight: sprout.inflight,
            app_limited: false,
            srtt: None,
        })
    }

    fn forecast(sprout: &mut Sprout, now: Time, packets: [u16; HORIZON], received: u64) {
        sprout.on_ack(&AckEvent {
            now,
            acked: &[],
            newest: None,
            lost: &[],
            newly_acked: Bytes::ZERO,
            growth: Bytes::ZERO,
            newly_lost: Bytes::ZERO,
            inflight_before: sprout.inflight,
            inflight: sprout.inflight,
            delivered: Bytes::ZERO,
            total_lost: Bytes::ZERO,
            rtt: Rtt {
                sample: None,
                smoothed: Duration::from_millis(100),
                variation: Duration::ZERO,
                min: Duration::from_millis(100),
            },
            ack_delay: Duration::ZERO,
            round: 0,
            round_start: false,
            marks: Marks::default(),
            receive_times: &[],
            report: ReceiverReport::Forecast { packets, received: Bytes(received * MSS) },
            cwnd_limited: true,
            recovery: RecoveryState::Open,
        });
    }

    #[test]
    fn starts_with_a_heartbeat() {
        let mut sprout = controller();
        assert_eq!(sprout.cwnd(), Bytes(MSS));
        send(&mut sprout, Time::ZERO, 0);
        assert_eq!(sprout.cwnd(), sprout.inflight);
        // It does not count against the first forecast.
        forecast(&mut sprout, Time::from_millis(100), [1, 1, 1, 1, 1, 3, 3, 3], 0);
        assert_eq!(sprout.allowance(), Bytes(2 * MSS));
    }

    #[test]
    fn sends_what_the_next_five_ticks_carry_less_the_queue() {
        let mut sprout = controller();
        forecast(&mut sprout, Time::ZERO, [0, 8, 8, 8, 8, 8, 8, 8], 0);
        for number in 0..8 {
            send(&mut sprout, Time::ZERO, number);
        }
        // 8 sent, 5 counted: 3 in the queue; 20 are carried in 100 ms.
        let now = Time::from_millis(100);
        forecast(&mut sprout, now, [4, 8, 12, 16, 20, 24, 28, 32], 5);
        assert_eq!(sprout.allowance(), Bytes(17 * MSS));
        assert_eq!(sprout.cwnd(), sprout.inflight + Bytes(17 * MSS));
        // A tick later the queue is gone, and the window is that of ticks 2 to 6.
        sprout.on_timer(now + TICK);
        assert_eq!(sprout.allowance(), Bytes(20 * MSS));
        // Six ticks later only one tick of the forecast is left.
        sprout.on_timer(now + TICK * 6);
        assert_eq!(sprout.allowance(), Bytes(4 * MSS));
        sprout.on_timer(now + TICK * 8);
        assert_eq!(sprout.allowance(), Bytes::ZERO);
        assert!(sprout.next_timer().is_none_or(|at| at > now + TICK * 8));
    }

    #[test]
    fn the_last_packet_of_a_flight_announces_the_pause() {
        let mut sprout = controller();
        forecast(&mut sprout, Time::ZERO, [1, 2, 3, 4, 4, 4, 4, 4], 0);
        let pauses = [0, 1, 2].map(|number| send(&mut sprout, Time::ZERO, number).header);
        assert_eq!(pauses, [0, 0, 50].map(|pause_ms| Header::Flight { pause_ms }));
    }

    #[test]
    fn a_heartbeat_leaves_after_fifty_milliseconds_four_times() {
        let mut sprout = controller();
        forecast(&mut sprout, Time::ZERO, [0; HORIZON], 0);
        send(&mut sprout, Time::ZERO, 0);
        let mut now = Time::ZERO;
        let mut beats = 0;
        while let Some(at) = sprout.next_timer() {
            now = now.max(at);
            sprout.on_timer(now);
            if sprout.heartbeat {
                beats += 1;
                assert_eq!(sprout.cwnd(), sprout.inflight + Bytes(MSS));
                send(&mut sprout, now, beats);
            }
        }
        // The first packet was one of the four.
        assert_eq!((beats, now), (3, Time::from_millis(150)));
        // The link carries something again.
        forecast(&mut sprout, now, [0; HORIZON], 2);
        assert!(sprout.next_timer().is_some());
    }
}
