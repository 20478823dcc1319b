//! Adaptive-bitrate video: a player that fetches segments one after the other and chooses each one's bitrate
//! by how full its buffer is (BBA-0 of Huang et al., A Buffer-Based Approach to Rate Adaptation,
//! SIGCOMM 2014).
//!
//! ```text
//! f(B) = R_min                                             B <= reservoir                       bba14 4.1
//!        R_min + (R_max - R_min) (B - reservoir) / cushion      in between
//!        R_max                                             B >= reservoir + cushion
//! keep the rung while the next one up is above f(B) and the next one down below it;             bba14 alg.1
//! else up to the highest rung below f(B), or down to the lowest rung above it
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | R | `ladder` | rate | 300 kbit/s to 5.8 Mbit/s | scenario |
//! | V | `segment` | time | 2 s | scenario |
//! | B_max | `buffer` | time | 30 s | scenario |
//! | reservoir | - | time | 37.5 % of B_max | bba14 4.1: 90 s of 240 s |
//! | cushion | - | time | up to 90 % of B_max | bba14 4.1: 216 s of 240 s |
//!
//! Outcome: `bitrate_mbps` (mean of what was played or waits to be), `switches`, `startup_ms`, `stalls`,
//! `stall_ms` (total, without the start), `stall_percent` (of the time since playback began).
//!
//! Deviations: D1 a request is a message of 400 bytes beside the stream, repeated if nothing comes. D2 all
//! segments of a rung have the same size. D3 playback after a stall waits for `startup`, as before the first
//! segment.

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::application::Application;
use crate::requests::Requester;
use crate::socket::{Datagram, Socket};
use crate::traffic::Video as Config;

/// An HTTP request with its headers.
const REQUEST: Bytes = Bytes(400);
/// bba14 4.1
const RESERVOIR: f64 = 0.375;
/// bba14 4.1
const FULL: f64 = 0.9;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Playback {
    /// Waiting for the first `startup` of playing time.
    Starting,
    Playing,
    /// Run dry.
    Stalled,
}

/// A video player and its server.
#[derive(Clone, Debug)]
pub struct Video {
    config: Config,
    requester: Requester,
    /// The rung of the segment that is being fetched.
    rung: usize,
    fetching: bool,
    fetch_at: Time,
    /// Payload that must have arrived for the segment to be whole.
    due: u64,
    playback: Playback,
    /// Playing time in the buffer, as of `seen_at`.
    buffer: Duration,
    seen_at: Time,
    started_at: Time,
    played_since: Option<Time>,
    segments: u64,
    bits: f64,
    switches: u64,
    stalls: u64,
    stalled: Duration,
    stopped_at: Option<Time>,
}

impl Video {
    /// Returns a player that has not started.
    pub fn new(config: Config, mss: Bytes) -> Self {
        Video {
            config,
            requester: Requester::new(REQUEST, mss),
            rung: 0,
            fetching: false,
            fetch_at: Time::MAX,
            due: 0,
            playback: Playback::Starting,
            buffer: Duration::ZERO,
            seen_at: Time::ZERO,
            started_at: Time::ZERO,
            played_since: None,
            segments: 0,
            bits: 0.0,
            switches: 0,
            stalls: 0,
            stalled: Duration::ZERO,
            stopped_at: None,
        }
    }

    fn segment_size(&self) -> Bytes {
        self.config.ladder[self.rung].bytes_in(self.config.segment)
    }

    /// Lets playback go on until `now`.
    fn play(&mut self, now: Time) {
        let passed = now.since(self.seen_at);
        match self.playback {
            Playback::Starting => {}
            Playback::Playing => {
                if passed > self.buffer {
                    self.playback = Playback::Stalled;
                    self.stalls += 1;
                    self.stalled += passed - self.buffer;
                }
                self.buffer = self.buffer.saturating_sub(passed);
            }
            Playback::Stalled => self.stalled += passed,
        }
        self.seen_at = now;
    }

    /// bba14 alg.1
    fn choose(&self) -> usize {
        let ladder = &self.config.ladder;
        let (lowest, highest) = (ladder[0].as_bps_f64(), ladder[ladder.len() - 1].as_bps_f64());
        let reservoir = RESERVOIR * self.config.buffer.as_secs_f64();
        let cushion = FULL * self.config.buffer.as_secs_f64() - reservoir;
        let filled = ((self.buffer.as_secs_f64() - reservoir) / cushion).clamp(0.0, 1.0);
        if filled == 0.0 {
            return 0;
        }
        if filled == 1.0 {
            return ladder.len() - 1;
        }
        let wanted = lowest + (highest - lowest) * filled;
        let up = ladder[(self.rung + 1).min(ladder.len() - 1)].as_bps_f64();
        let down = ladder[self.rung.saturating_sub(1)].as_bps_f64();
        if wanted >= up {
            ladder.iter().rposition(|rate| rate.as_bps_f64() < wanted).unwrap_or(0)
        } else if wanted <= down {
            ladder.iter().position(|rate| rate.as_bps_f64() > wanted).unwrap_or(ladder.len() - 1)
        } else {
            self.rung
        }
    }

    fn fetch(&mut self, socket: &mut impl Socket) {
        self.fetch_at = Time::MAX;
        self.play(socket.now());
        let rung = if self.segments == 0 { 0 } else { self.choose() };
        if self.segments > 0 && rung != self.rung {
            self.switches += 1;
        }
        self.rung = rung;
        self.due += self.segment_size().0;
        self.fetching = true;
        self.requester.ask(socket);
    }
}

impl Application for Video {
    fn start(&mut self, socket: &mut impl Socket) {
        self.started_at = socket.now();
        self.seen_at = socket.now();
        self.fetch(socket);
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.play(socket.now());
        self.stopped_at = Some(socket.now());
        self.requester.stop();
        self.fetch_at = Time::MAX;
        self.fetching = false;
        socket.discard_unsent();
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        self.requester.on_timer(socket);
        if self.fetch_at <= socket.now() {
            self.fetch(socket);
        }
    }

    fn next_timer(&self) -> Time {
        self.requester.next_timer().min(self.fetch_at)
    }

    fn on_datagram(&mut self, datagram: &Datagram, socket: &mut impl Socket) {
        if self.requester.reached(datagram) {
            socket.write(self.segment_size());
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        if !self.fetching {
            return;
        }
        self.requester.answered();
        if socket.delivered().0 < self.due {
            return;
        }
        let now = socket.now();
        self.play(now);
        self.fetching = false;
        self.segments += 1;
        self.bits += self.config.ladder[self.rung].as_bps_f64();
        self.buffer += self.config.segment;
        if self.playback != Playback::Playing && self.buffer >= self.config.startup.min(self.config.buffer) {
            self.playback = Playback::Playing;
            self.played_since.get_or_insert(now);
        }
        // A segment is fetched once there is room for it.
        let room = self.config.buffer.saturating_sub(self.config.segment);
        self.fetch_at = now + self.buffer.saturating_sub(room);
    }

    fn is_over(&self) -> bool {
        self.stopped_at.is_some()
    }

    fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let now = self.stopped_at.unwrap_or(now);
        let mut end = self.clone();
        end.play(now);
        if end.segments > 0 {
            visit("bitrate_mbps", end.bits / end.segments as f64 * 1e-6);
        }
        visit("switches", end.switches as f64);
        visit("stalls", end.stalls as f64);
        visit("stall_ms", end.stalled.as_millis_f64());
        if let Some(since) = end.played_since {
            visit("startup_ms", since.since(end.started_at).as_millis_f64());
            let watched = now.since(since);
            if !watched.is_zero() {
                visit("stall_percent", 100.0 * end.stalled.as_secs_f64() / watched.as_secs_f64());
            }
        }
    }
}
