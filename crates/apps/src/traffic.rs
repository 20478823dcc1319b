//! What an application asks of its flow.

use brakelight_core::time::Duration;
use brakelight_core::units::{Bytes, Rate};

use crate::custom::CustomTraffic;

/// The names of the built-in applications, as scenarios have them.
pub const NAMES: &[&str] = &[
    "backlogged",
    "size",
    "on-off",
    "short-flows",
    "rate-limited",
    "phases",
    "request-response",
    "game",
    "video",
    "call",
    "gaming",
];

/// The application at the sender's end of a flow.
#[derive(Clone, Debug, PartialEq, Default)]
pub enum Traffic {
    /// Always more to send.
    #[default]
    Backlogged,
    /// One transfer of so many payload bytes, then silence.
    Size(Bytes),
    /// Sends during `on`, is silent during `off`, and so on.
    OnOff(OnOff),
    /// Short connections that arrive as a Poisson process, each with a controller of its own, each gone once
    /// its bytes are acknowledged.
    ShortFlows(ShortFlows),
    /// Payload offered at a constant rate, in packets of the flow's MSS.
    RateLimited(Rate),
    /// One after another, each with what it offers; silence after the last.
    Phases(Vec<Phase>),
    /// A request travels back, a response travels forward, the client thinks, and so on.
    RequestResponse(RequestResponse),
    /// Small packets at a fixed beat, one a message of its own: a game's state updates.
    Game(Game),
    /// Adaptive-bitrate video: segments fetched one after the other into a playback buffer.
    Video(Video),
    /// A real-time call: frames at a fixed beat, encoded at a rate that follows the controller.
    Call(Call),
    /// An application from outside.
    Custom(CustomTraffic),
}

/// Periods of sending and of silence, beginning with sending.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct OnOff {
    /// How long it sends.
    pub on: Duration,
    /// How long it is silent.
    pub off: Duration,
    /// Payload rate while it sends; backlogged without one.
    pub rate: Option<Rate>,
    /// Whether `on` and `off` are means of exponential laws rather than fixed lengths.
    pub random: bool,
}

/// A phase of an application.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Phase {
    /// How long it lasts.
    pub length: Duration,
    /// What it offers.
    pub offer: Offer,
}

/// What an application offers in a phase.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Offer {
    /// Nothing.
    Idle,
    /// Payload at a constant rate, in packets of the flow's MSS.
    Rate(Rate),
    /// Always more.
    Backlogged,
}

/// Short connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct ShortFlows {
    /// How often one arrives.
    pub arrivals: Arrivals,
    /// How many payload bytes it carries.
    pub size: SizeLaw,
}

/// The intensity of a Poisson process of arrivals.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Arrivals {
    /// Mean number of arrivals per second.
    PerSecond(f64),
    /// Mean payload offered: the arrivals per second follow from the mean size.
    Load(Rate),
}

/// The distribution of the sizes of short connections.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum SizeLaw {
    /// Always the same.
    Fixed(Bytes),
    /// Pareto with this mean and shape; the shape is above 1, or there would be no mean.
    Pareto {
        /// Mean size.
        mean: Bytes,
        /// Exponent of the tail.
        shape: f64,
    },
}

/// A client that sends requests and waits for the responses.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct RequestResponse {
    /// Payload of a request, up to [`MOST_REQUEST`](crate::request_response::MOST_REQUEST); it travels on the
    /// reverse path.
    pub request: Bytes,
    /// Payload of a response; it travels on the forward path, under the flow's controller.
    pub response: Bytes,
    /// Mean of the exponential pause between a response and the next request; zero for none.
    pub think: Duration,
}

/// A game's stream of state updates.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Game {
    /// Payload of one update, up to [`MOST_MESSAGE`](crate::socket::MOST_MESSAGE).
    pub size: Bytes,
    /// Time between updates.
    pub interval: Duration,
}

/// A player of adaptive-bitrate video.
#[derive(Clone, Debug, PartialEq)]
pub struct Video {
    /// The encoded rates on offer, ascending.
    pub ladder: Vec<Rate>,
    /// Playing time of a segment.
    pub segment: Duration,
    /// How much playing time the player holds at most.
    pub buffer: Duration,
    /// Playing time that must be there before playback starts, and starts again after a stall.
    pub startup: Duration,
}

/// A real-time video call.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Call {
    /// The encoder's lowest rate.
    pub min_rate: Rate,
    /// The encoder's highest rate.
    pub max_rate: Rate,
    /// Frames per second.
    pub fps: u32,
    /// A frame that arrives later than this after its capture is not shown.
    pub deadline: Duration,
    /// When the camera pauses, after the start.
    pub pause_at: Duration,
    /// For how long it pauses; 0 for no pause.
    pub pause_for: Duration,
    /// Whether the encoder is the statistical one of RFC 8593. Any other follows at once, and all frames of a
    /// rate have the same size.
    pub statistical: bool,
    /// Size of a key frame of the statistical encoder.
    pub key_frame: Bytes,
    /// Time between key frames of the statistical encoder; 0 for none but where its rate jumps.
    pub key_interval: Duration,
    /// Whether frames wait in a jitter buffer until their time to be shown comes.
    pub jitter_buffer: bool,
    /// Whether there is sound beside the frames: 50 messages a second, which nobody sends again.
    pub audio: bool,
    /// How frames travel, and what is done about lost packets.
    pub repair: Repair,
}

/// How the frames of a call travel, and what is done about lost packets ([`repair`](crate::repair)).
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Repair {
    /// In one stream, in order; the host sends again what was lost.
    #[default]
    Stream,
    /// In packets of their own. A frame that is not whole is lost, and the receiver asks for a key frame.
    None,
    /// In packets of their own, which the receiver asks for again.
    Nack,
    /// In packets of their own, with one of parity for five.
    Fec,
}

impl Repair {
    /// All of them, by their names in scenarios.
    pub const ALL: [(&'static str, Repair); 4] =
        [("stream", Repair::Stream), ("none", Repair::None), ("nack", Repair::Nack), ("fec", Repair::Fec)];
}

impl Traffic {
    /// Returns whether the application sends [pieces](crate::Piece), and writes nothing to the stream. Only
    /// the modelled host of QUIC has them.
    pub fn is_in_pieces(&self) -> bool {
        matches!(self, Traffic::Call(call) if call.repair != Repair::Stream)
    }
}

impl SizeLaw {
    /// Returns the mean size in bytes.
    pub fn mean(&self) -> Bytes {
        match *self {
            SizeLaw::Fixed(size) => size,
            SizeLaw::Pareto { mean, .. } => mean,
        }
    }
}

impl ShortFlows {
    /// Returns the mean arrivals per second.
    pub fn per_second(&self) -> f64 {
        match self.arrivals {
            Arrivals::PerSecond(rate) => rate,
            Arrivals::Load(load) => load.as_bps_f64() / (8.0 * self.size.mean().as_f64()),
        }
    }
}

impl Default for Video {
    /// Six rungs from 300 kbit/s to 5.8 Mbit/s, segments of 2 s, 30 s of buffer, playback from 4 s on.
    fn default() -> Self {
        let ladder = [300, 750, 1_200, 1_850, 2_850, 5_800];
        Video {
            ladder: ladder.iter().map(|kbps| Rate::from_bps(kbps * 1_000)).collect(),
            segment: Duration::from_secs(2),
            buffer: Duration::from_secs(30),
            startup: Duration::from_secs(4),
        }
    }
}

impl Default for Call {
    /// 150 kbit/s to 2.5 Mbit/s, 30 frames a second, shown when they arrive within 400 ms (ITU-T G.114's
    /// limit), without a pause, with frames of equal size, no jitter buffer and no sound.
    fn default() -> Self {
        Call {
            min_rate: Rate::from_bps(150_000),
            max_rate: Rate::from_bps(2_500_000),
            fps: 30,
            deadline: Duration::from_millis(400),
            pause_at: Duration::ZERO,
            pause_for: Duration::ZERO,
            statistical: false,
            key_frame: Bytes(13_500),
            key_interval: Duration::ZERO,
            jitter_buffer: false,
            audio: false,
            repair: Repair::Stream,
        }
    }
}

impl Call {
    /// Returns cloud gaming at `fps` frames a second: a call of at most 25 Mbit/s up to 60 frames a second
    /// and of 35 Mbit/s above, what NVIDIA asks of a line for 1080p at 60 and 1440p at 120 (GeForce NOW's
    /// system requirements, 2024). It goes down to a tenth of that, our choice. A frame is of use for 100 ms
    /// (Claypool and Claypool 2006, for games in the first person). The key frame has the share of a mean
    /// frame that RFC 8593 table 1 has at 1 Mbit/s and 30 frames a second.
    pub fn gaming(fps: u32) -> Self {
        let max_rate = Rate::from_mbps(if fps <= 60 { 25 } else { 35 });
        let call = Call::default();
        let share = max_rate.as_mbps_f64() * f64::from(call.fps) / f64::from(fps.max(1));
        Call {
            min_rate: Rate::from_bps(max_rate.bps() / 10),
            max_rate,
            fps,
            deadline: Duration::from_millis(100),
            statistical: true,
            key_frame: Bytes((call.key_frame.as_f64() * share) as u64),
            ..call
        }
    }
}

impl Default for Game {
    /// 100 bytes 30 times a second.
    fn default() -> Self {
        Game { size: Bytes(100), interval: Duration::from_nanos(33_333_333) }
    }
}
