//! A game: both ends send a small message at a fixed beat, beside the stream, without acknowledgement. Each
//! update of the server names the newest input of the client, so the client measures round trips as a player
//! feels them, without the time the server held the input.
//!
//! Outcome: `updates` that arrived at the client, `updates_lost_percent` of those whose successors arrived
//! (an update overtaken by a newer one counts as lost: it is stale), `rtt_ms_mean`, `_p50`, `_p95`, `_p99`.

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};

use crate::application::Application;
use crate::distribution::{Distribution, visit_distribution};
use crate::socket::{Datagram, Socket};
use crate::traffic::Game as Config;

/// Inputs whose sending times the client remembers: half a minute at 30 a second.
const REMEMBERED: usize = 1024;

/// A game: the server that sends updates and the client that shows them.
#[derive(Clone, Debug)]
pub struct Game {
    config: Config,
    beat_at: Time,
    /// Beats so far: number of the newest input and update.
    beats: u32,
    /// When the newest inputs were sent, by number.
    sent_at: Vec<Time>,
    /// The newest input at the server, and when it came.
    input: Option<(u32, Time)>,
    /// The newest update at the client.
    newest: u32,
    arrived: u64,
    rtts: Distribution,
}

impl Game {
    /// Returns a game that has not started.
    pub fn new(config: Config) -> Self {
        Game {
            config,
            beat_at: Time::MAX,
            beats: 0,
            sent_at: Vec::new(),
            input: None,
            newest: 0,
            arrived: 0,
            rtts: Distribution::default(),
        }
    }

    fn beat(&mut self, socket: &mut impl Socket) {
        let now = socket.now();
        self.beats += 1;
        let payload = self.config.size.0 as u16;
        let slot = self.beats as usize % REMEMBERED;
        if self.sent_at.len() <= slot {
            self.sent_at.resize(slot + 1, Time::ZERO);
        }
        self.sent_at[slot] = now;
        let input = Datagram {
            direction: Direction::Reverse,
            payload,
            number: self.beats,
            echo: self.newest,
            held_us: 0,
        };
        socket.send(input);
        let (echo, held) = self.input.map_or((0, Duration::ZERO), |(number, at)| (number, now.since(at)));
        socket.send(Datagram {
            direction: Direction::Forward,
            payload,
            number: self.beats,
            echo,
            held_us: held.as_micros() as u32,
        });
        // A host that wakes late keeps the beat: what it slept through is left out.
        let interval = self.config.interval;
        self.beat_at = self.beat_at + interval * (now.since(self.beat_at).periods(interval) + 1);
    }
}

impl Application for Game {
    fn start(&mut self, socket: &mut impl Socket) {
        self.beat_at = socket.now();
        self.beat(socket);
    }

    fn stop(&mut self, _socket: &mut impl Socket) {
        self.beat_at = Time::MAX;
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        self.beat(socket);
    }

    fn next_timer(&self) -> Time {
        self.beat_at
    }

    fn on_datagram(&mut self, datagram: &Datagram, socket: &mut impl Socket) {
        let now = socket.now();
        match datagram.direction {
            Direction::Reverse => {
                if self.input.is_none_or(|(number, _)| datagram.number > number) {
                    self.input = Some((datagram.number, now));
                }
            }
            Direction::Forward => {
                if datagram.number <= self.newest {
                    return;
                }
                self.newest = datagram.number;
                self.arrived += 1;
                let remembered = self.beats.saturating_sub(datagram.echo) < REMEMBERED as u32;
                if datagram.echo > 0 && remembered {
                    let sent = self.sent_at[datagram.echo as usize % REMEMBERED];
                    let held = Duration::from_micros(u64::from(datagram.held_us));
                    self.rtts.record(now.since(sent).saturating_sub(held));
                }
            }
        }
    }

    fn is_over(&self) -> bool {
        self.beat_at == Time::MAX
    }

    fn outcome(&self, _now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("updates", self.arrived as f64);
        if self.newest > 0 {
            let lost = u64::from(self.newest).saturating_sub(self.arrived);
            visit("updates_lost_percent", 100.0 * lost as f64 / f64::from(self.newest));
        }
        visit_distribution(&self.rtts, ["rtt_ms_mean", "rtt_ms_p50", "rtt_ms_p95", "rtt_ms_p99"], visit);
    }
}
