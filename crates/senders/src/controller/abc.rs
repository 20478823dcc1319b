//! ABC's sender (Goyal et al., NSDI 2020, sections 3.1, 4.1 and 6): accelerate or brake on every packet.
//!
//! ```text
//! each byte ACKed:  w_abc += 1 + MSS/w_abc if accelerate, -1 + MSS/w_abc if brake, 0 if CE
//!                                                                                      abc20 eq.3, section 6
//! w_nonabc:         Cubic or another, which answers drops, CE and delay                abc20 4.1
//! cwnd = min(w_abc, w_nonabc), each at most 2 x the packets in flight before the ACK   abc20 4.1
//! ```
//!
//! | symbol | field | unit | default | prototype | source |
//! |---|---|---|---|---|---|
//! | w_abc | `w_abc_bytes` | bytes | 10 packets | 10 packets | open-questions#X-16 |
//! | w_nonabc | `second_window` | choice | true | false | abc20 4.1 |
//! | - | `other` | choice | cubic | cubic | abc20 4.1, note 6 |
//! | - | `cubic` | choice | rfc9438 | rfc9438 | D5 |
//! | 1/w | `additive_increase` | choice | true | true | abc20 eq.3 |
//! | T | `increase_every` | s | none: an RTT | none | abc17 6 |
//! | 2 | `cap` | 1 | 2 | 2 | abc20 4.1 |
//! | - | `cap_floor` | packets | 10 | 10 | open-questions#X-14 |
//! | - | `floor` | packets | 2 | 5 | open-questions#X-15 |
//! | - | `pacing` | cwnd per RTT | 0 (none) | 2 | open-questions#X-74 |
//! | - | `encoding` | choice | abc | proxied | abc20 4.2 |
//! | N | `probe` | packets | none | none | abc17 4, [`probes`] |
//! | d | `demand` | choice | none | none | abc17 6, [`demand`] |
//!
//! Marks are counted in bytes, whatever the ACK carries: exact counts where the flow has them, otherwise
//! everything the ACK newly covers under the one state it echoes. So delayed, stretched and lost ACKs need no
//! case of their own.
//!
//! # The two windows
//!
//! w_abc starts at the initial window, has no slow start (accelerates double it per round trip), and ignores
//! losses (open-questions#X-16). w_nonabc is a whole controller of its own, slow start and timeouts included,
//! that hears every event. The cap is applied at the end of every ACK, to what was in flight just before it,
//! so that an ACK which empties the pipe does not empty the windows, and it bounds the stored windows: Cubic
//! keeps its W_max and its epoch, so it can rise at once when more comes into flight (open-questions#X-14).
//! The cap's floor is the initial window of RFC 6928, for the same reason: a flow that its application held
//! back starts again as a new one would. No ACK, no cap: neither a loss nor a timeout applies it. A window
//! that brakes shrink stops at two packets, which one delayed ACK answers (open-questions#X-15).
//!
//! `other` puts another controller that works by drops, CE and delay in Cubic's place ([`Other`]). One that
//! paces counts as a window of its rate times srtt where that is less than its cwnd, and its rate is the
//! flow's. Packets sent while w_abc was the lesser are shown to it as limited by the application: what came
//! of them says how fast ABC's routers let the flow go, and nothing about the others.
//!
//! # Paths that spoil the marks
//!
//! | what comes back | what may have done it | what the sender does |
//! |---|---|---|
//! | CE | a router of RFC 3168 | w_nonabc answers; those bytes say nothing to w_abc |
//! | no mark on `SILENT` packets in a row | an element that clears the ECN field | w_abc follows the cap |
//! | at the floor, `STUCK` brakes in a row, no queue in the RTT | one that makes ECT(1) ECT(0) | the same |
//!
//! | accelerates for its brake probes ([`probes`]) | one that turns brakes into accelerates | the same |
//!
//! The first accelerate ends the former two, and the first brake the middle one. No ABC router brakes `STUCK`
//! packets in a row without a queue of delta and more behind it (x - d_t > eta delta, where f = 0); at a
//! share f it happens by chance (1 - f)^64 of the time, once in 800 at f = 0.1. Without a second window
//! nothing could take over, so nothing is done.
//!
//! Deviations:
//! D1 the window has a floor: at f = 0 Equation 3 goes to zero, and a sender without packets in flight hears
//! no ACK.
//! D2 the cap has a floor: a flow held back by its application would otherwise be left without a window.
//! D3 bytes of CE-marked packets earn no additive increase either (open-questions#X-9).
//! D4 without a second window a retransmission timeout takes w_abc to one packet: somebody must answer it.
//! D5 the second window does without HyStart: it would read the delay of a queue that the other window fills.
//! `cubic=linux` has
//!    it, as the kernel's Cubic does, until the first brake: a router of ABC's brakes from half its rate on,
//!    before a queue forms, so that delays without brakes are those of a queue that the second window answers
//!    for. The kernel's Cubic also reads its curve one smallest RTT ahead, and its Reno window never catches
//!    up; without all three, ABC takes more than its share beside it at a drop-tail queue.
//! D6 idle periods longer than the retransmission timeout decay both windows, as Linux 6.12 tcp_output.c,
//!    tcp_cwnd_restart, does for controllers that leave the window to TCP.

use alloc::boxed::Box;
use alloc::format;
use alloc::string::String;
use alloc::vec::Vec;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, PacketInfo, Recovery, Rtt, SendDirective,
    SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::packet::Header;
use brakelight_core::parameters::ParameterError;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::cubic::{self, Cubic, Horizon, HyStart};
pub use super::second::Other;
use super::second::SecondWindow;
use super::window;

pub mod demand;
pub mod probes;

use demand::{Asking, Demand};
use probes::Probes;

choices! {
    /// Which description of ABC the controller follows.
    pub enum Variant {
        /// The NSDI paper's rules.
        Paper = "paper",
        /// The authors' code, as the reference measurements ran it.
        Prototype = "prototype",
        /// The paper's sender; only the router differs.
        Adaptive = "adaptive",
    }
}

choices! {
    /// How accelerate and brake are written into the ECN field.
    pub enum Wire {
        /// 01 accelerate, 10 brake, 11 congestion.
        Abc = "abc",
        /// 01 or 10 accelerate, 11 brake: ordinary receivers echo it.
        Proxied = "proxied",
    }
}

choices! {
    /// Which Cubic the second window is.
    pub enum SecondCubic {
        /// RFC 9438's, without HyStart.
        Rfc9438 = "rfc9438",
        /// That of Linux 6.12 tcp_cubic.c, with HyStart until the first brake.
        Linux = "linux",
    }
}

parameters! {
    /// ABC's settings. What is `none` follows the variant.
    pub struct Config {
        check consistent;
        /// Whose ABC it is; options given besides win.
        variant: Variant = Variant::Paper, in .., from "abc20";
        /// How marks are written: abc in the paper, proxied in the prototype.
        encoding: Option<Wire> = None, in .., from "abc20 4.2";
        /// Whether a second window answers drops and CE beside the marks: true in the paper, false in the
        /// prototype.
        second_window: Option<bool> = None, in .., from "abc20 4.1";
        /// The controller of that window.
        other: Other = Other::Cubic, in .., from "abc20 4.1";
        /// Which Cubic it is, where it is Cubic.
        cubic: SecondCubic = SecondCubic::Rfc9438, in .., from "Linux 6.12 tcp_cubic.c";
        /// Whether the window gains one packet per RTT besides; without it shares do not converge.
        additive_increase: bool = true, in .., from "abc20 3.1.3";
        /// Time in which it gains that packet, whatever the RTT; none: the RTT, by the bytes acknowledged.
        increase_every: Option<Duration> = None, in brakelight_core::parameters::OrNone(Duration::from_millis(1)..=Duration::from_secs(10)), from "abc17 6: T, not given";
        /// Packets below which braking does not go: 2 in the paper, 5 in the prototype.
        floor: Option<u32> = None, in brakelight_core::parameters::OrNone(1..=1000), from "not stated in abc20: ours; its code";
        /// Packets before the first ACK: the connection's in the paper, 10 in the prototype.
        initial_window: Option<u32> = None, in brakelight_core::parameters::OrNone(1..=10_000), from "not stated in abc20: the host's; its code";
        /// Windows per RTT at which packets are paced, 0 for none: 0 in the paper, 2 in the prototype.
        pacing: Option<f64> = None, in brakelight_core::parameters::OrNone(0.0..=100.0), from "abc20 3: none; its code";
        /// Bound of both windows, in packets in flight before the ACK.
        cap: f64 = 2.0, in 1.0..=1000.0, from "abc20 4.1";
        /// Packets below which that bound does not go.
        cap_floor: u32 = 10, in 1..=10_000, from "not stated in abc20: ours";
        /// Packets from one pair of brake probes to the next; none sends no probes.
        probe: Option<u32> = None, in brakelight_core::parameters::OrNone(8..=1_000_000), from "abc17 4";
        /// What the sender asks for by its accelerates: what its application sends, or a rate; none asks for
        /// all there is.
        demand: Option<Demand> = None, in .., from "abc17 6";
    }
}

impl Config {
    /// Returns whether a second window answers drops, CE and delay.
    pub fn has_second_window(&self) -> bool {
        Rules::from(self).second_window
    }

    /// Returns whether the receiver must say when packets arrived: ABC itself has no use for it, the other
    /// window may have.
    pub fn needs_receive_times(&self) -> bool {
        self.other.needs().receive_times
    }
}

/// What asks by the field needs a brake that is not congestion.
fn consistent(config: &Config) -> Result<(), ParameterError> {
    if config.increase_every.is_some() && !config.additive_increase {
        let reason = String::from("increase_every needs additive_increase=true");
        return Err(ParameterError::Conflict { reason });
    }
    if Rules::from(config).encoding == Encoding::Abc {
        return Ok(());
    }
    let given = [("probe", config.probe.is_some()), ("demand", config.demand.is_some())];
    match given.iter().find(|(_, given)| *given) {
        None => Ok(()),
        Some((name, _)) => {
            let reason = format!("{name} needs encoding=abc: behind a proxy a brake is congestion");
            Err(ParameterError::Conflict { reason })
        }
    }
}

/// The settings with the variant worked in.
#[derive(Clone, Copy, Debug)]
struct Rules {
    encoding: Encoding,
    second_window: bool,
    additive_increase: bool,
    increase_every: Option<Duration>,
    floor_pkts: u32,
    initial_pkts: Option<u32>,
    pacing: f64,
    cap: f64,
    cap_floor_pkts: u32,
}

impl From<&Config> for Rules {
    fn from(config: &Config) -> Self {
        let prototype = config.variant == Variant::Prototype;
        let wire = config.encoding.unwrap_or(if prototype { Wire::Proxied } else { Wire::Abc });
        let floor_pkts = config.floor.unwrap_or(if prototype { 5 } else { 2 });
        Rules {
            encoding: match wire {
                Wire::Abc => Encoding::Abc,
                Wire::Proxied => Encoding::AbcProxied,
            },
            second_window: config.second_window.unwrap_or(!prototype),
            additive_increase: config.additive_increase,
            increase_every: config.increase_every,
            floor_pkts,
            initial_pkts: config.initial_window.or(prototype.then_some(10)),
            pacing: config.pacing.unwrap_or(if prototype { 2.0 } else { 0.0 }),
            cap: config.cap,
            cap_floor_pkts: config.cap_floor.max(floor_pkts),
        }
    }
}

/// In the tag of a packet that was sent while w_abc was the lesser window and the other controller paces:
/// those are the controllers that model the path's rate. They number far fewer intervals than this.
const MARKS_GOVERNED: u64 = 1 << 63;

/// Number of consecutive packets without a mark after which marks are treated as missing: an initial window.
const SILENT: u64 = 10;
/// Number of consecutive brakes after which marks are treated as missing.
const STUCK: u64 = 64;
/// The smoothed RTT, as a multiple of the smallest RTT, below which the queue counts as empty.
const NO_QUEUE: f64 = 1.25;

/// ABC's windows.
#[derive(Clone, Debug)]
pub struct Abc {
    rules: Rules,
    mss: Bytes,
    initial_window: Bytes,
    w_abc_bytes: f64,
    /// When the window last grew by time.
    increased: Time,
    /// w_nonabc.
    second: Option<Box<SecondWindow>>,
    /// Packets as the second window is shown them; kept for its allocation.
    shown: [Vec<PacketInfo>; 2],
    /// `w_abc_bytes` before a timeout took it, where there is no second window.
    before_bytes: Option<f64>,
    srtt: Option<Duration>,
    /// Packets acknowledged without a mark since the last one, and with a brake at the floor since the last
    /// accelerate.
    unmarked: u64,
    braked: u64,
    /// Whether the second window is to hear no more delays, and whether it is Linux's Cubic, to which that
    /// happens.
    heard_brake: bool,
    watches_delay: bool,
    probes: Probes,
    asking: Asking,
    /// Bytes of headers of each packet.
    overhead: Bytes,
}

/// w_nonabc at the start of its connection.
fn second(config: &Config, connection: &Connection) -> SecondWindow {
    if config.other != Other::Cubic {
        return SecondWindow::new(config.other, connection);
    }
    // D5
    let cubic = match config.cubic {
        SecondCubic::Rfc9438 => cubic::Values { hystart: HyStart::Off, ..cubic::Values::default() },
        SecondCubic::Linux => {
            cubic::Values { horizon: Horizon::MinRtt, reno_catch_up: false, ..cubic::Values::default() }
        }
    };
    let cubic = cubic::Config::new(cubic).expect("any choice goes with the defaults");
    SecondWindow::Cubic(Cubic::new(cubic, connection))
}

impl Abc {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let rules = Rules::from(&config);
        let initial_window = rules
            .initial_pkts
            .map_or(connection.initial_window, |pkts| Bytes(u64::from(pkts) * connection.mss.0));
        let second = rules
            .second_window
            .then(|| Box::new(second(&config, &Connection { initial_window, ..connection.clone() })));
        Abc {
            rules,
            mss: connection.mss,
            initial_window,
            w_abc_bytes: initial_window.as_f64(),
            increased: connection.now,
            second,
            shown: [Vec::new(), Vec::new()],
            before_bytes: None,
            srtt: None,
            unmarked: 0,
            braked: 0,
            heard_brake: false,
            watches_delay: config.other == Other::Cubic && config.cubic == SecondCubic::Linux,
            probes: Probes::new(config.probe),
            asking: Asking::new(config.demand, connection.now),
            overhead: connection.overhead,
        }
    }

    fn packets(&self, count: u32) -> Bytes {
        Bytes(u64::from(count) * self.mss.0)
    }

    /// Whether marks rather than drops decide how much may be in flight.
    fn marks_govern(&self) -> bool {
        self.nonabc().is_none_or(|w_nonabc| self.w_abc_bytes <= w_nonabc.as_f64())
    }

    /// w_nonabc: of a controller that paces, what its rate keeps in flight where that is less.
    fn nonabc(&self) -> Option<Bytes> {
        let second = self.second.as_ref()?;
        let cwnd = second.cwnd();
        let paced = second.pacing_rate().zip(self.srtt).map(|(rate, srtt)| rate.bytes_in(srtt));
        Some(paced.map_or(cwnd, |paced| paced.max(self.mss).min(cwnd)))
    }

    fn pacing_rate_of_other(&self) -> Option<Rate> {
        self.second.as_ref()?.pacing_rate()
    }

    /// What the second window is shown of an ACK.
    fn show(&mut self, event: &AckEvent<'_>) {
        let Some(second) = &mut self.second else { return };
        // D5
        self.heard_brake |= event.marks.brake.bytes > Bytes::ZERO;
        if self.watches_delay && self.heard_brake {
            second.on_ack(&AckEvent { rtt: Rtt { sample: None, ..event.rtt }, ..*event });
            return;
        }
        const OWN: u64 = MARKS_GOVERNED | probes::TAGS;
        let flagged = |packets: &[PacketInfo]| packets.iter().any(|packet| packet.tag & OWN != 0);
        if !flagged(event.acked) && !flagged(event.lost) {
            second.on_ack(event);
            return;
        }
        for (shown, packets) in self.shown.iter_mut().zip([event.acked, event.lost]) {
            shown.clear();
            shown.extend(packets.iter().map(|packet| PacketInfo {
                tag: packet.tag & !OWN,
                app_limited: packet.app_limited || packet.tag & MARKS_GOVERNED != 0,
                ..*packet
            }));
        }
        second.on_ack(&AckEvent { acked: &self.shown[0], lost: &self.shown[1], ..*event });
    }

    /// Counts what speaks against the marks.
    fn doubt_marks(&mut self, event: &AckEvent<'_>) {
        let marks = &event.marks;
        let (accelerates, brakes) = (marks.accelerate.bytes, marks.brake.bytes);
        if accelerates + brakes + marks.ce.bytes > Bytes::ZERO {
            self.unmarked = 0;
        } else {
            self.unmarked = self.unmarked.saturating_add(event.acked.len() as u64);
        }
        let at_floor =
            self.w_abc_bytes <= self.packets(self.rules.floor_pkts).as_f64() || self.braked >= STUCK;
        let queue = event.rtt.smoothed.as_secs_f64() > NO_QUEUE * event.rtt.min.as_secs_f64();
        if accelerates > Bytes::ZERO || !at_floor || (queue && self.braked < STUCK) {
            self.braked = 0;
        } else if brakes > Bytes::ZERO {
            self.braked = self.braked.saturating_add(event.acked.len() as u64);
        }
    }

    /// Whether the path has been found to spoil the marks, and there is a window to go by instead.
    fn marks_are_spoiled(&self) -> bool {
        let found = self.unmarked >= SILENT || self.braked >= STUCK || self.probes.path_is_hostile();
        self.second.is_some() && found
    }

    // abc20 eq.3
    fn on_marks(&mut self, accelerate: Bytes, brake: Bytes) {
        let mut change_bytes = accelerate.as_f64() - brake.as_f64();
        if self.rules.additive_increase && self.rules.increase_every.is_none() {
            change_bytes += self.mss.as_f64() * (accelerate + brake).as_f64() / self.w_abc_bytes;
        }
        let floor = self.packets(self.rules.floor_pkts);
        let lowest_bytes = floor.as_f64().min(self.w_abc_bytes);
        self.w_abc_bytes = (self.w_abc_bytes + change_bytes).max(lowest_bytes);
    }

    /// abc17 6: one packet more every T, whatever the marks. A pause counts as a round trip at most, since a
    /// window that was not in use has learned nothing.
    fn increase_by_time(&mut self, now: Time, srtt: Duration) {
        let Some(every) = self.rules.increase_every else { return };
        let since = now.since(self.increased).min(srtt);
        self.increased = now;
        self.w_abc_bytes += self.mss.as_f64() * since.as_secs_f64() / every.as_secs_f64();
    }
}

impl Controller for Abc {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        let mut tag = self.second.as_mut().map_or(0, |second| second.on_send(event).tag);
        if self.pacing_rate_of_other().is_some() && self.marks_govern() {
            tag |= MARKS_GOVERNED;
        }
        let probe = self.probes.on_send(event.retransmission);
        tag |= probe;
        let size = event.size + self.overhead;
        let brakes = probe != 0 || !self.asking.accelerates(event.now, size, event.app_limited);
        SendDirective {
            ecn: if brakes { Ecn::Ect0 } else { self.rules.encoding.sent() },
            header: Header::None,
            tag,
            // A stock receiver echoes a brake until it sees CWR: on every packet, so that each brake is
            // echoed once.
            cwr: self.rules.encoding == Encoding::AbcProxied,
        }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.srtt = Some(event.rtt.smoothed);
        }
        self.doubt_marks(event);
        // What the sender itself braked to test the path says nothing about its routers.
        let own = self.probes.on_ack(event);
        if !self.marks_are_spoiled() {
            self.on_marks(event.marks.accelerate.bytes, event.marks.brake.bytes - own);
            self.increase_by_time(event.now, event.rtt.smoothed);
        }
        self.show(event);
        // abc20 4.1: the window that does not govern must not run away.
        let inflight = Bytes((event.inflight_before.as_f64() * self.rules.cap) as u64);
        let most = inflight.max(self.packets(self.rules.cap_floor_pkts));
        if self.marks_are_spoiled() {
            self.w_abc_bytes = most.as_f64();
        }
        self.cap_cwnd(most);
    }

    fn on_loss(&mut self, event: &LossEvent) {
        if let Some(second) = &mut self.second {
            second.on_loss(event);
        }
    }

    fn on_ce(&mut self, event: &LossEvent) {
        if let Some(second) = &mut self.second {
            second.on_ce(event);
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        if let Some(second) = &mut self.second {
            second.on_timeout(event);
            return;
        }
        let left = match event.kind {
            Timeout::Pto => return,
            Timeout::Rto => self.mss,
            Timeout::PersistentCongestion => Bytes(2 * self.mss.0),
        };
        if !event.repeated {
            self.before_bytes = Some(self.w_abc_bytes);
        }
        self.w_abc_bytes = self.w_abc_bytes.min(left.as_f64());
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        if let Some(second) = &mut self.second {
            second.on_spurious_loss(event);
        }
        if let (true, Some(before_bytes)) = (event.timeout, self.before_bytes.take()) {
            self.w_abc_bytes = self.w_abc_bytes.max(before_bytes);
        }
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.before_bytes = None;
        if let Some(second) = &mut self.second {
            second.on_recovery_exit(now);
        }
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        let w_abc = Bytes(self.w_abc_bytes as u64);
        let (left, _) = window::restarted(w_abc, Bytes::ZERO, self.initial_window, event);
        self.w_abc_bytes = left.max(self.mss).as_f64();
        if let Some(second) = &mut self.second {
            second.on_idle_restart(event);
        }
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.w_abc_bytes = self.w_abc_bytes.min(most.as_f64()).max(self.mss.as_f64());
        if let Some(second) = &mut self.second {
            second.cap_cwnd(most);
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.w_abc_bytes = self.w_abc_bytes.max(mss.as_f64());
        if let Some(second) = &mut self.second {
            second.on_mtu_change(mss);
        }
    }

    fn on_timer(&mut self, now: Time) {
        if let Some(second) = &mut self.second {
            second.on_timer(now);
        }
    }

    fn next_timer(&self) -> Option<Time> {
        self.second.as_ref()?.next_timer()
    }

    fn cwnd(&self) -> Bytes {
        let w_abc = Bytes(self.w_abc_bytes as u64);
        let least = self.second.as_ref().map_or(w_abc, |second| second.cwnd().min(w_abc));
        least.max(self.mss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.second.as_ref()?.ssthresh()
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let others = self.pacing_rate_of_other();
        let Some(srtt) = self.srtt.filter(|srtt| self.rules.pacing > 0.0 && !srtt.is_zero()) else {
            return others;
        };
        // At least one bit per second: a rate of zero would never send again.
        let own = Rate::over(self.cwnd(), srtt).mul_f64(self.rules.pacing).max(Rate::from_bps(1));
        Some(others.map_or(own, |others| others.min(own)))
    }

    /// A loss changes nothing for w_abc; when w_nonabc governs, it is the other controller's episode.
    fn recovery(&self) -> Recovery {
        let others = self.second.as_ref().map_or(Recovery::Own, |second| second.recovery());
        if self.marks_govern() { Recovery::Own } else { others }
    }

    fn encoding(&self) -> Encoding {
        self.rules.encoding
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_abc_bytes", self.w_abc_bytes);
        visit("marks_spoiled", f64::from(u8::from(self.marks_are_spoiled())));
        if let Some(w_nonabc) = self.nonabc() {
            visit("w_nonabc_bytes", w_nonabc.as_f64());
        }
        if self.probes.are_sent() {
            visit("probe_suspicion", self.probes.suspicion());
            visit("path_hostile", f64::from(u8::from(self.probes.path_is_hostile())));
        }
    }
}

#[cfg(test)]
mod tests;
