//! Delay over time that no queue makes: a schedule of delays, each held for a while, and release on a beat.
//!
//! ```text
//! a packet that enters at t is ready at r = t + delays[floor(t / hold) mod n]
//! it leaves at r, or with a beat at the first whole multiple of the beat from r on
//!           and no earlier than any packet that entered before it
//! ```
//!
//! It is the non-congestive delay of arun22 section 2: what a path adds between 0 and a bound, as an
//! adversary wants it. A beat alone is the aggregation of ACKs there (section 5.3).
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | - | `delays` | time/time/... | 0 s, then 10 ms | - |
//! | - | `hold` | time | 100 ms | - |
//! | - | `beat` | time | 0 s: none | arun22 5.3: 60 ms |

use alloc::string::{String, ToString};
use alloc::sync::Arc;
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::packet::Packet;
use brakelight_core::parameters::{Domain, Value};
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::time::{Duration, Time};

use super::elements::Order;
use super::varying_delay::VaryingDelay;

/// The longest delay.
const LONGEST: Duration = Duration::from_secs(60);

parameters! {
    /// The settings of a schedule of delays.
    pub struct Config {
        /// The delays, in turn.
        delays: Delays = Delays(vec![Duration::ZERO, Duration::from_millis(10)]), in NoneLongerThan(LONGEST), from "-";
        /// How long each of them holds for the packets that enter.
        hold: Duration = Duration::from_millis(100), in Duration::from_micros(1)..=Duration::from_secs(3600), from "-";
        /// Packets leave at whole multiples of this time alone; 0 s lets them leave at any.
        beat: Duration = Duration::ZERO, in Duration::ZERO..=LONGEST, from "arun22 5.3";
    }
}

/// Delays in turn: `0s/10ms/5ms`.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Delays(pub Vec<Duration>);

impl Value for Delays {
    fn unit() -> String {
        "time/time/...".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let delay = |word: &str| word.trim().parse().map_err(|_| "delays such as `0s/10ms/5ms`".to_string());
        text.split('/').map(delay).collect::<Result<_, _>>().map(Delays)
    }

    fn show(&self) -> String {
        self.0.iter().map(Duration::to_string).collect::<Vec<_>>().join("/")
    }
}

/// Delays of which none is longer.
struct NoneLongerThan(Duration);

impl Domain<Delays> for NoneLongerThan {
    fn admits(&self, delays: &Delays) -> bool {
        !delays.0.is_empty() && delays.0.iter().all(|delay| *delay <= self.0)
    }

    fn describe(&self) -> String {
        alloc::format!("0s to {} each", self.0)
    }
}

/// A path element that delays packets by a schedule.
#[derive(Clone, Debug)]
pub struct DelaySteps<P> {
    delays: Arc<[Duration]>,
    /// Nanoseconds; neither is zero but the beat where there is none.
    hold: u64,
    beat: u64,
    line: VaryingDelay<P>,
}

impl<P: Packet> DelaySteps<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, _site: Site) -> Self {
        DelaySteps {
            delays: config.delays.0.clone().into(),
            hold: config.hold.as_nanos(),
            beat: config.beat.as_nanos(),
            line: VaryingDelay::new(Duration::ZERO, Order::Kept, Time::ZERO),
        }
    }

    /// When a packet that enters `now` leaves, if none is before it.
    fn departure(&self, now: Time) -> Time {
        let place = now.as_nanos() / self.hold % self.delays.len() as u64;
        let ready = now + self.delays[place as usize];
        match self.beat {
            0 => ready,
            beat => Time::from_nanos(ready.as_nanos().div_ceil(beat) * beat),
        }
    }
}

impl<P: Packet> PathElement<P> for DelaySteps<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.line.set(self.departure(now).since(now), Order::Kept);
        self.line.accept(now, packet);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.line.poll(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.line.next_wakeup()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.line.for_each(visit);
    }
}
