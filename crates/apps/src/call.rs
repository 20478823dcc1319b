//! A real-time video call: a camera takes frames at a fixed beat, an encoder follows the controller, and the
//! other side shows each frame when it is there.
//!
//! ```text
//! encoder rate = clamp(share * rate * (1 - waiting / patience), min, max)
//! rate: what the controller lets the flow send;
//! waiting: how long the oldest unsent byte will wait at that rate
//! a frame is skipped while waiting > patience
//! freeze: two shown frames at least max(3 d, d + 150 ms) apart, d the mean gap of the last 30
//!                                                                                   webrtc-stats freezeCount
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | min, max | `min_rate`, `max_rate` | rate | 150 kbit/s, 2.5 Mbit/s | scenario |
//! | - | `fps` | 1/s | 30 | scenario |
//! | deadline | `deadline` | time | 400 ms | ITU-T G.114 |
//! | - | `pause_at`, `pause_for` | time | 0 | rfc8867 5.8: when no frame is taken, and for how long |
//! | share | - | 1 | 0.95 | room for headers |
//! | patience | - | time | deadline / 2 | own choice |
//! | - | `statistical`, `key_frame`, `key_interval` | - | off | [`encoder`](crate::encoder), rfc8593 |
//! | - | `jitter_buffer` | - | off | [`playout`](crate::playout) |
//! | - | `audio` | - | off | [`audio`](crate::audio) |
//! | - | `repair` | - | stream | [`repair`](crate::repair) |
//!
//! Outcome: `bitrate_mbps` (of shown frames), `frames_shown`, `frames_late_percent` (of those that arrived),
//! `frames_skipped_percent` (of those taken), `frame_delay_ms_mean`, `_p50`, `_p95`, `_p99` (capture to
//! arrival of all that arrived), `freezes`, `freeze_ms` (total length of the gaps that count as freezes),
//! `freeze_percent` of the call, `quality_mos` (1 to 5, of calls of up to 30 frames a second:
//! [`quality`](crate::quality)). A pause is no part of the call. With a jitter buffer also
//! `playout_delay_ms_mean`, `_p50`, `_p95`, `_p99` (capture to display of those shown), `freezes_per_minute`,
//! `freeze_ms_mean` (of one freeze), and `frames_missed_percent` (of those taken: skipped, late, or still
//! missing after the deadline).
//!
//! Deviations: D1 without `repair` frames travel in one stream, in order, also under QUIC, and are sent
//! again when lost; a media transport would give up on late ones. D2 without `statistical` all frames of a
//! rate have the same size.

use std::collections::VecDeque;

use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use crate::application::Application;
use crate::audio::Audio;
use crate::distribution::{Distribution, visit_distribution};
use crate::encoder::{Encoded, Encoder};
use crate::playout::Playout;
use crate::quality::Quality;
use crate::repair::Frames;
use crate::socket::{Datagram, Socket};
use crate::traffic::{Call as Config, Repair};

const SECOND: u64 = 1_000_000_000;
const SHARE: f64 = 0.95;
/// webrtc-stats, freezeCount
const FREEZE_GAPS: usize = 30;
const FREEZE_FACTOR: u64 = 3;
const FREEZE_ADDED: Duration = Duration::from_millis(150);

/// The highest frame rate that is judged: the model is of video telephony. An own choice.
const MOST_JUDGED: u32 = 30;

/// A frame on its way in the stream.
#[derive(Clone, Copy, Debug)]
struct Frame {
    taken_at: Time,
    /// Payload that must have arrived for the frame to be whole.
    due: u64,
    size: u64,
}

/// What became of a frame that was taken.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct FrameRecord {
    /// When it was taken.
    pub taken_at: Time,
    /// Its size; zero of one that was skipped.
    pub size: Bytes,
    /// Whether it is a key frame.
    pub is_key: bool,
    /// When it could be shown at the other end: whole, and with the frames that it builds on.
    pub arrived_at: Option<Time>,
    /// When it was shown, if it came before its deadline.
    pub shown_at: Option<Time>,
}

/// A real-time video call: sender and receiver.
#[derive(Clone, Debug)]
pub struct Call {
    config: Config,
    encoder: Encoder,
    playout: Playout,
    audio: Option<Audio>,
    beat_at: Time,
    /// Beats of the camera, those of the pause among them.
    beats: u64,
    /// Whether the next beat is the first after the pause.
    resumes: bool,
    taken: u64,
    skipped: u64,
    written: u64,
    flying: VecDeque<Frame>,
    /// Frames in packets of their own, in place of the stream.
    frames: Option<Box<Frames>>,
    started_at: Time,
    stopped_at: Option<Time>,
    shown_at: Option<Time>,
    gaps: VecDeque<Duration>,
    shown: u64,
    shown_bytes: u64,
    late: u64,
    freezes: u64,
    frozen: Duration,
    quality: Quality,
    delays: Distribution,
    /// From capture to display.
    playouts: Distribution,
    /// What became of each frame, if that is recorded.
    recorded_frames: Option<Vec<FrameRecord>>,
}

impl Call {
    /// Returns a call that has not started, over packets whose payload is at most `mss`.
    pub fn new(config: Config, mss: Bytes) -> Self {
        let frames = || Box::new(Frames::new(config.repair, mss, config.deadline));
        Call {
            encoder: Encoder::new(config),
            playout: Playout::default(),
            audio: config.audio.then(|| Audio::new(config.deadline)),
            config,
            beat_at: Time::MAX,
            beats: 0,
            resumes: false,
            taken: 0,
            skipped: 0,
            written: 0,
            flying: VecDeque::new(),
            frames: (config.repair != Repair::Stream).then(frames),
            started_at: Time::ZERO,
            stopped_at: None,
            shown_at: None,
            gaps: VecDeque::new(),
            shown: 0,
            shown_bytes: 0,
            late: 0,
            freezes: 0,
            frozen: Duration::ZERO,
            quality: Quality::default(),
            delays: Distribution::default(),
            playouts: Distribution::default(),
            recorded_frames: None,
        }
    }

    /// Records what becomes of each frame from now on.
    pub fn record_frames(&mut self) {
        self.recorded_frames.get_or_insert_default();
    }

    /// Returns what became of each frame that was taken, in order; nothing if that was not recorded.
    pub fn recorded_frames(&self) -> &[FrameRecord] {
        self.recorded_frames.as_deref().unwrap_or_default()
    }

    /// The rate for the next frame; `None` to skip it.
    fn wanted(&self, socket: &impl Socket) -> Option<Rate> {
        let Some(rate) = socket.rate().filter(|&rate| rate > Rate::ZERO) else {
            // Nothing is known of the path: the first frame goes out small, the rest wait for its answer.
            return (socket.unsent() == Bytes::ZERO).then_some(self.config.min_rate);
        };
        let patience = self.config.deadline.as_secs_f64() / 2.0;
        let waiting = rate.time_for(socket.unsent()).as_secs_f64();
        if waiting > patience {
            return None;
        }
        let media = self.frames.as_ref().map_or(1.0, |frames| frames.media_share());
        let wanted = rate.mul_f64(SHARE * media * (1.0 - waiting / patience));
        Some(wanted.clamp(self.config.min_rate, self.config.max_rate))
    }

    /// The first beat after the pause, if the next one is within it.
    fn resumes_at(&self) -> Option<u64> {
        let (from, length) = (self.config.pause_at, self.config.pause_for);
        let within = (from..from + length).contains(&self.beat(self.beats));
        within.then(|| (from + length).as_nanos().saturating_mul(u64::from(self.config.fps)).div_ceil(SECOND))
    }

    /// When beat `number` is, after the start.
    fn beat(&self, number: u64) -> Duration {
        Duration::from_nanos(number * SECOND / u64::from(self.config.fps))
    }

    /// How long the call has lasted at `now`, without its pause.
    fn length(&self, now: Time) -> Duration {
        let whole = self.stopped_at.unwrap_or(now).since(self.started_at);
        whole - whole.saturating_sub(self.config.pause_at).min(self.config.pause_for)
    }

    fn take_frame(&mut self, socket: &mut impl Socket) {
        let now = socket.now();
        if let Some(beat) = self.resumes_at() {
            self.beats = beat;
            self.beat_at = self.started_at + self.beat(beat);
            self.quality.pause(now, self.beat_at);
            self.resumes = true;
            return;
        }
        if std::mem::take(&mut self.resumes) {
            self.shown_at = None;
        }
        self.beats += 1;
        self.taken += 1;
        let encoded = self.wanted(socket).map(|rate| self.encoder.encode(now, rate, socket.random()));
        if let Some(records) = &mut self.recorded_frames {
            let Encoded { size, is_key } = encoded.unwrap_or(Encoded { size: Bytes::ZERO, is_key: false });
            records.push(FrameRecord { taken_at: now, size, is_key, arrived_at: None, shown_at: None });
        }
        match encoded {
            Some(Encoded { size, is_key }) => {
                if let Some(frames) = &mut self.frames {
                    frames.send(size.0, is_key, socket);
                } else {
                    self.written += size.0;
                    self.flying.push_back(Frame { taken_at: now, due: self.written, size: size.0 });
                    socket.write(size);
                }
            }
            None => self.skipped += 1,
        }
        self.beat_at = self.started_at + self.beat(self.beats);
    }

    /// What a viewer with a jitter buffer sees.
    fn visit_playout(&self, now: Time, length: Duration, visit: &mut dyn FnMut(&'static str, f64)) {
        visit_distribution(
            &self.playouts,
            ["playout_delay_ms_mean", "playout_delay_ms_p50", "playout_delay_ms_p95", "playout_delay_ms_p99"],
            visit,
        );
        if !length.is_zero() {
            visit("freezes_per_minute", 60.0 * self.freezes as f64 / length.as_secs_f64());
        }
        if self.freezes > 0 {
            visit("freeze_ms_mean", self.frozen.as_millis_f64() / self.freezes as f64);
        }
        if self.taken > 0 {
            let is_overdue = |frame: &&Frame| now.since(frame.taken_at) > self.config.deadline;
            let missing = match &self.frames {
                Some(frames) => frames.lost(now).0,
                None => self.flying.iter().filter(is_overdue).count() as u64,
            };
            let missed = self.skipped + self.late + missing;
            visit("frames_missed_percent", 100.0 * missed as f64 / self.taken as f64);
        }
    }

    /// A frame of `size` bytes that was taken at `taken_at` can be shown.
    fn arrived(&mut self, now: Time, taken_at: Time, size: u64) {
        let delay = now.since(taken_at);
        self.delays.record(delay);
        let is_late = delay > self.config.deadline;
        let shown_at = if self.config.jitter_buffer && !is_late {
            self.playout.show_at(taken_at, now, self.config.deadline)
        } else {
            now
        };
        if let Some(records) = &mut self.recorded_frames {
            let place = records.partition_point(|record| record.taken_at < taken_at);
            if let Some(record) = records.get_mut(place) {
                (record.arrived_at, record.shown_at) = (Some(now), (!is_late).then_some(shown_at));
            }
        }
        if is_late {
            self.late += 1;
            return;
        }
        self.playouts.record(shown_at.since(taken_at));
        self.show(shown_at, size);
    }

    /// Shows what can be shown of frames in packets of their own.
    fn show_ready(&mut self, now: Time) {
        while let Some(ready) = self.frames.as_mut().and_then(|frames| frames.pop_ready()) {
            self.arrived(now, ready.taken_at, ready.size);
        }
    }

    fn show(&mut self, now: Time, size: u64) {
        self.shown += 1;
        self.shown_bytes += size;
        self.quality.show(now, size);
        let Some(before) = self.shown_at.replace(now) else { return };
        let gap = now.since(before);
        if self.gaps.len() == FREEZE_GAPS {
            let mean = self.gaps.iter().fold(Duration::ZERO, |sum, &gap| sum + gap) / FREEZE_GAPS as u64;
            if gap >= (mean * FREEZE_FACTOR).max(mean + FREEZE_ADDED) {
                self.freezes += 1;
                self.frozen += gap;
            }
            self.gaps.pop_front();
        }
        self.gaps.push_back(gap);
    }
}

impl Application for Call {
    fn start(&mut self, socket: &mut impl Socket) {
        self.started_at = socket.now();
        self.quality.begin(self.started_at);
        self.take_frame(socket);
        if let Some(audio) = &mut self.audio {
            audio.start(socket.now());
            audio.on_timer(socket);
        }
    }

    fn stop(&mut self, socket: &mut impl Socket) {
        self.beat_at = Time::MAX;
        self.stopped_at = Some(socket.now());
        if let Some(audio) = &mut self.audio {
            audio.stop();
        }
        socket.discard_unsent();
    }

    fn on_timer(&mut self, socket: &mut impl Socket) {
        if self.beat_at <= socket.now() {
            self.take_frame(socket);
        }
        if let Some(audio) = &mut self.audio {
            audio.on_timer(socket);
        }
        if let Some(frames) = &mut self.frames
            && frames.next_timer() <= socket.now()
        {
            frames.on_timer(socket);
            self.show_ready(socket.now());
        }
    }

    fn next_timer(&self) -> Time {
        let audio = self.audio.as_ref().map_or(Time::MAX, Audio::next_timer);
        let frames = self.frames.as_ref().map_or(Time::MAX, |frames| frames.next_timer());
        self.beat_at.min(audio).min(frames)
    }

    fn on_datagram(&mut self, datagram: &Datagram, socket: &mut impl Socket) {
        if datagram.direction == Direction::Forward {
            if let Some(audio) = &mut self.audio {
                audio.on_datagram(datagram, socket.now());
            }
        } else if self.frames.as_mut().is_some_and(|frames| frames.on_feedback(datagram, socket)) {
            self.encoder.request_key(socket.now());
        }
    }

    fn listens(&self) -> bool {
        true
    }

    fn on_delivered(&mut self, socket: &mut impl Socket) {
        let now = socket.now();
        let delivered = socket.delivered().0;
        while let Some(&frame) = self.flying.front() {
            if frame.due > delivered {
                break;
            }
            self.flying.pop_front();
            self.arrived(now, frame.taken_at, frame.size);
        }
    }

    fn on_piece(&mut self, number: u32, socket: &mut impl Socket) {
        if let Some(frames) = &mut self.frames {
            frames.on_piece(number, socket);
        }
        self.show_ready(socket.now());
    }

    fn is_over(&self) -> bool {
        self.stopped_at.is_some()
    }

    fn outcome(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        let length = self.length(now);
        visit("bitrate_mbps", Rate::over(Bytes(self.shown_bytes), length).as_mbps_f64());
        visit("frames_shown", self.shown as f64);
        let arrived = self.delays.count();
        if arrived > 0 {
            visit("frames_late_percent", 100.0 * self.late as f64 / arrived as f64);
        }
        if self.taken > 0 {
            visit("frames_skipped_percent", 100.0 * self.skipped as f64 / self.taken as f64);
        }
        visit_distribution(
            &self.delays,
            ["frame_delay_ms_mean", "frame_delay_ms_p50", "frame_delay_ms_p95", "frame_delay_ms_p99"],
            visit,
        );
        visit("freezes", self.freezes as f64);
        visit("freeze_ms", self.frozen.as_millis_f64());
        if !length.is_zero() {
            visit("freeze_percent", 100.0 * self.frozen.as_secs_f64() / length.as_secs_f64());
        }
        if self.config.fps <= MOST_JUDGED
            && let Some(mark) = self.quality.mean(self.stopped_at.unwrap_or(now))
        {
            visit("quality_mos", mark);
        }
        if self.config.jitter_buffer {
            self.visit_playout(now, length, visit);
        }
        if let Some(frames) = &self.frames {
            frames.outcome(now, visit);
        }
        if let Some(audio) = &self.audio {
            audio.outcome(self.stopped_at.unwrap_or(now), visit);
        }
    }
}
