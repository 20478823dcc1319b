//! What to run: links with their queues, flows with their controllers, and the paths between them.
//!
//! A scenario is complete: every number that decides a run is in it, so the same scenario and seed give the
//! same outcome. Names of traces are resolved by whoever runs it; the scenario of a file keeps them as they
//! were written.

use brakelight_core::controller::{Connection, Controller};
use brakelight_core::ecn::Encoding;
pub use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit, Rate};
use brakelight_links::elements::{ELEMENTS, ElementConfig, RadioConfig, Role};
pub use brakelight_links::link::restart::{Restart, Waiting};
use brakelight_links::shaper::Side;
use brakelight_registry::{BuildError, ControllerConfig, FeedbackConfig, Host, QueueConfig, Registry, find};

use crate::clock::Clock;
use crate::scheme_string::{SchemeString, Words};
use crate::traffic::Traffic;

/// Everything that decides a run.
#[derive(Clone, Debug, PartialEq)]
pub struct Scenario {
    /// What people call it.
    pub name: String,
    /// Decides every random draw of the run.
    pub seed: u64,
    /// When the run ends.
    pub duration: Duration,
    /// When measuring begins; what happened before is warm-up.
    pub measure_from: Duration,
    /// Where in its period every trace starts.
    pub trace_offset: TraceOffset,
    /// The links, each with a queue.
    pub links: Vec<LinkSpec>,
    /// The flows.
    pub flows: Vec<FlowSpec>,
    /// What to keep besides the summary.
    pub record: Record,
}

/// Where in its period a trace starts.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TraceOffset {
    /// This far into it.
    At(Duration),
    /// Anywhere, drawn from the run's seed for each link.
    Random,
}

/// What to keep besides the summary.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Record {
    /// Whether to keep time series.
    pub series: bool,
    /// Width of a bin of the time series.
    pub bin: Duration,
    /// Whether to keep every link's log of opportunities, arrivals, departures and drops.
    pub link_logs: bool,
    /// Whether every flow's outcome has what its controller shows of itself at the end.
    pub state: bool,
    /// Whether every flow's outcome has the delays of its own packets.
    pub flow_delays: bool,
    /// Whether the outcome has the second half of the measured interval by itself too.
    pub second_half: bool,
    /// The time over which the flows' rates are compared, for the outcome's unfairness rate; none for no such
    /// number.
    pub unfairness: Option<Duration>,
}

/// A link: a queue and what serves it.
#[derive(Clone, Debug, PartialEq)]
pub struct LinkSpec {
    /// Paths refer to it by this name.
    pub name: String,
    /// When it can send.
    pub service: Service,
    /// What its queue holds at most, unless the queue's own options say otherwise.
    pub buffer: Limit,
    /// Its queue.
    pub queue: SchemeString<QueueConfig>,
    /// Bytes one delivery opportunity carries, for a service by trace; what a slot is taken to carry
    /// otherwise.
    pub opportunity: Bytes,
    /// Bytes the link counts for every packet beyond its IP size: Mahimahi's 4 bytes of TUN header.
    pub overhead: Bytes,
    /// Whether the opportunities of a trace's millisecond come one after another in it, not all at its end.
    pub spread: bool,
    /// When its router restarts.
    pub restarts: Vec<Restart>,
    /// The size of the token bucket that serves it, for a service at a constant rate; none if zero.
    pub burst: Bytes,
    /// How long packets are delayed before its queue, in a delay line that shares the queue's buffer. Not
    /// zero, it is the propagation delay of every path through the link.
    pub delay: Duration,
}

/// When a link can send.
#[derive(Clone, Debug, PartialEq)]
// One for each link: its size does not matter.
#[allow(clippy::large_enum_variant)]
pub enum Service {
    /// By the delivery opportunities of a trace: the name of a known one, or the path of a Mahimahi file.
    Trace(String),
    /// At a constant rate.
    Fixed(Rate),
    /// At rates that change by a schedule.
    Steps(Steps),
    /// By a radio, which has queues of its own: an access point.
    Radio(SchemeString<RadioConfig>),
}

/// A schedule of rates, each held for a while.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Steps {
    /// How long, and how fast. A rate of zero is an outage.
    pub steps: Vec<(Duration, Rate)>,
    /// Whether to start over after the last step; otherwise its rate stays.
    pub repeat: bool,
}

/// How many newer packets must be acknowledged before QUIC declares a packet lost: its packet threshold (RFC
/// 9002 section 6.1.1).
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Reordering {
    /// Three, as RFC 9002 recommends.
    #[default]
    Fixed,
    /// Three at first. A packet that was declared lost and arrives after all raises the threshold to what
    /// would have waited for it (quiche of Google, general_loss_algorithm.cc, `SpuriousLossDetected`).
    Adaptive,
}

/// One flow, or several alike.
#[derive(Clone, Debug, PartialEq)]
pub struct FlowSpec {
    /// What people call it; with `count` above 1, a number follows.
    pub name: String,
    /// How many flows of this kind there are.
    pub count: u32,
    /// The sender's controller.
    pub controller: SchemeString<ControllerConfig>,
    /// The receiver's feedback.
    pub feedback: SchemeString<FeedbackConfig>,
    /// The profile of the hosts at both ends.
    pub host: Host,
    /// How many packets one ACK stands for: m.
    pub ack_every: u32,
    /// How long the receiver holds back an ACK for fewer; [`ack_delay`] of its host if `None`.
    pub ack_delay: Option<Duration>,
    /// Largest payload of one packet.
    pub mss: Bytes,
    /// Bytes of headers added to each payload, IP included.
    pub overhead: Bytes,
    /// The window before the first ACK, in packets, unless the controller sets its own.
    pub initial_window: u32,
    /// QUIC: packets that may leave back to back after a pause, or fewer if the controller wants it.
    pub pacing_burst: u32,
    /// QUIC: how many newer packets must be acknowledged before a packet counts as lost.
    pub reordering: Reordering,
    /// QUIC: whether a reduction is taken back once all packets of its episode have arrived after all.
    pub undo: bool,
    /// QUIC: how many packets the receiver reads at once, up to [`FlowSpec::jitter`] after the first of them
    /// arrived. It acknowledges once it has read.
    pub read_batch: u32,
    /// What the application sends.
    pub traffic: Traffic,
    /// When the flow may start, at the earliest.
    pub start: Duration,
    /// Its start is drawn from the seed, uniform in `start` to `start + start_within`, for each of `count`
    /// flows.
    pub start_within: Duration,
    /// When it stops, if before the run does.
    pub stop: Option<Duration>,
    /// Propagation delay of the round trip, without queues and transmission. Half of it is added after the
    /// last hop of each direction, except where [`FlowSpec::propagation`] says otherwise.
    pub rtt: Duration,
    /// By how much each further flow of `count` has a longer RTT.
    pub rtt_step: Duration,
    /// What its data packets pass, in order.
    pub path: Vec<Hop>,
    /// What its ACKs pass, in order; empty for a way back without limits.
    pub reverse: Vec<Hop>,
    /// Every host action is late by a draw from 0 to this, uniform.
    pub jitter: Duration,
    /// The clock by which the receiver says when packets arrived.
    pub receiver_clock: Clock,
}

/// A station on a path.
#[derive(Clone, Debug, PartialEq)]
pub enum Hop {
    /// The link of this name, shared with every other path through it.
    Link(String),
    /// A path element of the flow's own: `delay`, `loss`, `jitter` and so on, by name and options.
    Element(SchemeString<ElementConfig>),
}

impl Hop {
    /// Returns the element that `words` name among those that Brakelight brings; without options, and when no
    /// element has the name, the link.
    pub fn from_words(words: Words) -> Result<Self, BuildError> {
        Self::from_words_with(&Registry::standard(), words)
    }

    /// Returns the element of `registry` that `words` name; without options, and when no element has the
    /// name, the link.
    pub fn from_words_with(registry: &Registry, words: Words) -> Result<Self, BuildError> {
        if words.options.is_empty() && find(registry.elements(), &words.name).is_none() {
            return Ok(Hop::Link(words.name));
        }
        SchemeString::from_words_with(registry, words).map(Hop::Element)
    }
}

/// Returns whether a path element that Brakelight brings has this name or alias.
pub fn is_element(name: &str) -> bool {
    find(ELEMENTS, name).is_some()
}

impl Scenario {
    /// Returns the place of the link called `name` in [`Scenario::links`].
    pub fn link(&self, name: &str) -> Option<usize> {
        self.links.iter().position(|link| link.name == name)
    }

    /// Returns whether a queue or a shaper reads what packets acknowledge.
    pub fn acks_are_read(&self) -> bool {
        let shapes = |hop: &Hop| matches!(hop, Hop::Element(element) if element.role() == Role::Shaper);
        self.links.iter().any(|link| link.queue.reads_acks())
            || self.flows.iter().any(|flow| flow.path.iter().any(shapes))
    }

    /// Returns how many flows there are, each of [`FlowSpec::count`] counted.
    pub fn flow_count(&self) -> u64 {
        self.flows.iter().map(|flow| u64::from(flow.count)).sum()
    }
}

impl Record {
    /// Returns what records only the summary; the bin width is the default for `duration`.
    pub fn summary(duration: Duration) -> Self {
        Record {
            series: false,
            bin: default_bin(duration),
            link_logs: false,
            state: false,
            flow_delays: false,
            second_half: false,
            unfairness: None,
        }
    }
}

/// Returns the bin width of time series: 600 bins, none shorter than 20 ms.
pub fn default_bin(duration: Duration) -> Duration {
    (duration / 600).max(Duration::from_millis(20))
}

impl LinkSpec {
    /// Mahimahi's delivery opportunity: 1500 bytes and the 4-byte TUN header it counts.
    pub const MAHIMAHI_OPPORTUNITY: Bytes = Bytes(1504);
    /// What Mahimahi counts for every packet beyond its IP size.
    pub const MAHIMAHI_OVERHEAD: Bytes = Bytes(4);

    /// What a slot of any other link is taken to carry: a full packet.
    pub const PLAIN_OPPORTUNITY: Bytes = Bytes(1500);

    /// Returns a link served by a trace, counting as Mahimahi does.
    pub fn trace(name: &str, trace: &str, buffer: Limit, queue: SchemeString<QueueConfig>) -> Self {
        LinkSpec {
            name: name.to_string(),
            service: Service::Trace(trace.to_string()),
            buffer,
            queue,
            opportunity: Self::MAHIMAHI_OPPORTUNITY,
            overhead: Self::MAHIMAHI_OVERHEAD,
            spread: false,
            restarts: Vec::new(),
            burst: Bytes::ZERO,
            delay: Duration::ZERO,
        }
    }

    /// Returns a link of constant rate that counts IP bytes.
    pub fn fixed(name: &str, rate: Rate, buffer: Limit, queue: SchemeString<QueueConfig>) -> Self {
        LinkSpec {
            name: name.to_string(),
            service: Service::Fixed(rate),
            buffer,
            queue,
            opportunity: Self::PLAIN_OPPORTUNITY,
            overhead: Bytes::ZERO,
            spread: false,
            restarts: Vec::new(),
            burst: Bytes::ZERO,
            delay: Duration::ZERO,
        }
    }
}

impl FlowSpec {
    /// Default jitter of a host's timing.
    pub const JITTER: Duration = Duration::from_micros(200);
    /// RFC 6928's initial window, packets.
    pub const INITIAL_WINDOW: u32 = 10;
    /// RFC 9002 7.7: the initial window, packets.
    pub const PACING_BURST: u32 = 10;

    /// Returns a backlogged flow of `controller` over `path`, with the feedback and the host that the
    /// controller brings, m = 2, 1500-byte packets, started within the first RTT, acknowledged over an
    /// unlimited way back.
    pub fn new(
        name: &str,
        controller: SchemeString<ControllerConfig>,
        rtt: Duration,
        path: Vec<Hop>,
    ) -> Self {
        let needs = controller.needs();
        let feedback = SchemeString::brought_by(&controller);
        let (mss, overhead) = packet_sizes(needs.host);
        FlowSpec {
            name: name.to_string(),
            count: 1,
            controller,
            feedback,
            host: needs.host,
            ack_every: 2,
            ack_delay: None,
            mss,
            overhead,
            initial_window: Self::INITIAL_WINDOW,
            pacing_burst: Self::PACING_BURST,
            reordering: Reordering::Fixed,
            undo: true,
            read_batch: 1,
            traffic: Traffic::Backlogged,
            start: Duration::ZERO,
            start_within: rtt,
            stop: None,
            rtt,
            rtt_step: Duration::ZERO,
            path,
            reverse: Vec::new(),
            jitter: Self::JITTER,
            receiver_clock: Clock::default(),
        }
    }

    /// Gives the flow another profile of the host, with what that has by default.
    pub fn set_host(&mut self, host: Host) {
        self.host = host;
        (self.mss, self.overhead) = packet_sizes(host);
        if host == Host::Ns2 {
            // ns-2.35 ns-default.tcl, windowInit_ and overhead_; tcp-sink.cc: an ACK for every packet.
            (self.initial_window, self.jitter, self.ack_every) = (2, Duration::ZERO, 1);
        }
    }

    /// Returns what the flow means by its ECN bits.
    pub fn encoding(&self) -> Encoding {
        self.controller.build(&self.connection(Time::ZERO, Random::stream(0, &self.name))).encoding()
    }

    /// Returns what a controller of this flow must know when its connection starts at `now`, with its own
    /// stream of random numbers.
    pub fn connection(&self, now: Time, random: Random) -> Connection {
        Connection {
            mss: self.mss,
            overhead: self.overhead,
            initial_window: Bytes(self.mss.0 * u64::from(self.initial_window)),
            now,
            random,
        }
    }

    /// Returns the hops of one direction.
    pub fn hops(&self, direction: Direction) -> &[Hop] {
        match direction {
            Direction::Forward => &self.path,
            Direction::Reverse => &self.reverse,
        }
    }

    /// Returns the name of the link that the shaper at `place` of [`path`](Self::path) stands before or
    /// behind: the nearest on that side. `None` if that hop is no shaper, or no link is there.
    pub fn shaped_link(&self, place: usize) -> Option<&str> {
        let Hop::Element(element) = self.path.get(place)? else { return None };
        let ElementConfig::Shaper(shaper) = element.config() else { return None };
        let name = |hop: &Hop| matches!(hop, Hop::Link(_));
        let hop = match shaper.side {
            Side::Up => self.path[place + 1..].iter().find(|hop| name(hop)),
            Side::Down => self.path[..place].iter().rev().find(|hop| name(hop)),
        };
        match hop? {
            Hop::Link(name) => Some(name),
            Hop::Element(_) => None,
        }
    }

    /// Returns the RTT of flow `index` of [`FlowSpec::count`].
    pub fn rtt_of(&self, index: u32) -> Duration {
        self.rtt + self.rtt_step * u64::from(index)
    }

    /// Returns the delay to add after the last hop of `direction` for flow `index` of [`FlowSpec::count`]:
    /// half the RTT, or nothing where the path holds a `delay` element of its own and so places its
    /// propagation itself.
    pub fn propagation(&self, index: u32, direction: Direction) -> Duration {
        let own = |hop: &Hop| matches!(hop, Hop::Element(element) if element.role() == Role::Propagation);
        if self.hops(direction).iter().any(own) {
            return Duration::ZERO;
        }
        let rtt = self.rtt_of(index);
        match direction {
            Direction::Forward => rtt / 2,
            Direction::Reverse => rtt - rtt / 2,
        }
    }

    /// Returns when flow `index` of [`FlowSpec::count`] starts in a run with this seed.
    pub fn drawn_start(&self, seed: u64, index: u32) -> Duration {
        let mut random = Random::stream(seed, &format!("start {}", self.name_of(index)));
        self.start + self.start_within.mul_f64(random.uniform())
    }

    /// Returns the name of flow `index` of [`FlowSpec::count`].
    pub fn name_of(&self, index: u32) -> String {
        if self.count == 1 { self.name.clone() } else { format!("{}-{}", self.name, index + 1) }
    }
}

/// Returns how long a receiver waits for the packets that it acknowledges together.
pub const fn ack_delay(host: Host) -> Duration {
    match host {
        // Linux 6.12 tcp.h, TCP_DELACK_MIN
        Host::Tcp => Duration::from_millis(40),
        // rfc9000 18.2, max_ack_delay
        Host::Quic => Duration::from_millis(25),
        // ns-2.35 ns-default.tcl, TCPSink/DelAck, interval_
        Host::Ns2 => Duration::from_millis(100),
    }
}

/// Returns the payload and headers of a full packet, 1500 bytes together.
///
/// TCP: 20 bytes of IPv4, 20 of TCP, 12 of timestamps. QUIC: 20 of IPv4, 8 of UDP, 13 of short header with an
/// 8-byte connection ID and a 4-byte number, 16 of AEAD tag, 8 of STREAM frame header. ns-2: its
/// own packets of 1000 bytes and headers of 40.
pub fn packet_sizes(host: Host) -> (Bytes, Bytes) {
    match host {
        Host::Tcp => (Bytes(1448), Bytes(52)),
        Host::Quic => (Bytes(1435), Bytes(65)),
        // ns-2.35 ns-default.tcl, packetSize_ and tcpip_base_hdr_size_
        Host::Ns2 => (Bytes(1000), Bytes(40)),
    }
}
