//! ABC's sender (Goyal et al., NSDI 2020, sections 3.1, 4.1 and 6): accelerate or brake on every packet.
//!
//! ```text
//! each byte ACKed:  w_abc += 1 + MSS/w_abc if accelerate, -1 + MSS/w_abc if brake, 0 if CE      abc20 eq.3, section 6
//! w_nonabc:         Cubic, which answers drops and CE                                           abc20 4.1
//! cwnd = min(w_abc, w_nonabc), each at most 2 x the packets in flight before the ACK            abc20 4.1
//! ```
//!
//! | symbol | field | unit | default | prototype | source |
//! |---|---|---|---|---|---|
//! | w_abc | `w_abc_bytes` | bytes | 10 packets | 10 packets | mechanisms X-16 |
//! | w_nonabc | `second_window` | choice | true | false | abc20 4.1 |
//! | 1/w | `additive_increase` | choice | true | true | abc20 eq.3 |
//! | 2 | `cap` | 1 | 2 | 2 | abc20 4.1 |
//! | - | `cap_floor` | packets | 10 | 10 | mechanisms X-14 |
//! | - | `floor` | packets | 2 | 5 | mechanisms X-15 |
//! | - | `pacing` | cwnd per RTT | 0 (none) | 2 | mechanisms M-1 |
//! | - | `encoding` | choice | abc | proxied | abc20 4.2 |
//!
//! Marks are counted in bytes, whatever the ACK carries: exact counts where the flow has them, otherwise everything the
//! ACK newly covers under the one state it echoes. So delayed, stretched and lost ACKs need no case of their own.
//!
//! Deviations:
//! D1 the window has a floor: at f = 0 Equation 3 goes to zero, and a sender without packets in flight hears no ACK.
//! D2 the cap has a floor: a flow held back by its application would otherwise be left without a window.
//! D3 bytes of CE-marked packets earn no additive increase either (mechanisms X-9).
//! D4 without a second window a retransmission timeout takes w_abc to one packet: somebody must answer it.
//! D5 the second window does without HyStart: it would read the delay of a queue that the other window fills.
//! D6 idle periods longer than the retransmission timeout decay both windows, as Linux does for every controller.

use super::cubic::{self, Cubic};
use super::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, Recovery, SendDirective, SendEvent,
    SpuriousEvent, Timeout, TimeoutEvent, window,
};
use crate::ecn::Encoding;
use crate::packet::Header;
use crate::time::{Duration, Time};
use crate::units::{Bytes, Rate};

choices! {
    /// Whose ABC it is.
    pub enum Variant {
        /// The NSDI paper's rules.
        Paper = "paper",
        /// The authors' code, as the reference measurements ran it.
        Prototype = "prototype",
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

parameters! {
    /// ABC's settings. What is `none` follows the variant.
    pub struct Config {
        /// Whose ABC it is; options given besides win.
        variant: Variant = Variant::Paper, in .., from "abc20";
        /// How marks are written: abc in the paper, proxied in the prototype.
        encoding: Option<Wire> = None, in .., from "abc20 4.2";
        /// Whether Cubic guards against drops and CE beside the marks: true in the paper, false in the prototype.
        second_window: Option<bool> = None, in .., from "abc20 4.1";
        /// Whether the window gains one packet per RTT besides; without it shares do not converge.
        additive_increase: bool = true, in .., from "abc20 3.1.3";
        /// Packets below which braking does not go: 2 in the paper, 5 in the prototype.
        floor: Option<u32> = None, in crate::parameters::OrNone(1..=1000), from "mechanisms X-15";
        /// Packets before the first ACK: the connection's in the paper, 10 in the prototype.
        initial_window: Option<u32> = None, in crate::parameters::OrNone(1..=10_000), from "mechanisms X-16";
        /// Windows per RTT at which packets are paced, 0 for none: 0 in the paper, 2 in the prototype.
        pacing: Option<f64> = None, in crate::parameters::OrNone(0.0..=100.0), from "mechanisms M-1";
        /// Bound of both windows, in packets in flight before the ACK.
        cap: f64 = 2.0, in 1.0..=1000.0, from "abc20 4.1";
        /// Packets below which that bound does not go.
        cap_floor: u32 = 10, in 1..=10_000, from "mechanisms X-14";
    }
}

/// The settings with the variant worked in.
#[derive(Clone, Copy, Debug)]
struct Rules {
    encoding: Encoding,
    second_window: bool,
    additive_increase: bool,
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
            floor_pkts,
            initial_pkts: config.initial_window.or(prototype.then_some(10)),
            pacing: config.pacing.unwrap_or(if prototype { 2.0 } else { 0.0 }),
            cap: config.cap,
            cap_floor_pkts: config.cap_floor.max(floor_pkts),
        }
    }
}

/// ABC's windows.
#[derive(Clone, Debug)]
pub struct Abc {
    rules: Rules,
    mss: Bytes,
    initial_window: Bytes,
    w_abc_bytes: f64,
    /// w_nonabc: reached through [`Controller`] alone, so that any other controller could take its place.
    second: Option<Cubic>,
    /// `w_abc_bytes` before a timeout took it, where there is no second window.
    before_bytes: Option<f64>,
    srtt: Option<Duration>,
}

impl Abc {
    /// A controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        let rules = Rules::from(&config);
        let initial_window = rules
            .initial_pkts
            .map_or(connection.initial_window, |pkts| Bytes(u64::from(pkts) * connection.mss.0));
        let second = rules.second_window.then(|| {
            let config = cubic::Config { hystart: cubic::HyStart::Off, ..cubic::Config::default() };
            Cubic::new(config, &Connection { initial_window, ..connection.clone() })
        });
        Abc {
            rules,
            mss: connection.mss,
            initial_window,
            w_abc_bytes: initial_window.as_f64(),
            second,
            before_bytes: None,
            srtt: None,
        }
    }

    fn packets(&self, count: u32) -> Bytes {
        Bytes(u64::from(count) * self.mss.0)
    }

    /// Whether marks rather than drops decide how much may be in flight.
    fn marks_govern(&self) -> bool {
        self.second.as_ref().is_none_or(|second| self.w_abc_bytes <= second.cwnd().as_f64())
    }

    // abc20 eq.3
    fn on_marks(&mut self, accelerate: Bytes, brake: Bytes) {
        let mut change_bytes = accelerate.as_f64() - brake.as_f64();
        if self.rules.additive_increase {
            change_bytes += self.mss.as_f64() * (accelerate + brake).as_f64() / self.w_abc_bytes;
        }
        let floor = self.packets(self.rules.floor_pkts);
        let lowest_bytes = floor.as_f64().min(self.w_abc_bytes);
        self.w_abc_bytes = (self.w_abc_bytes + change_bytes).max(lowest_bytes);
    }
}

impl Controller for Abc {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if let Some(second) = &mut self.second {
            second.on_send(event);
        }
        SendDirective {
            ecn: self.rules.encoding.sent(),
            header: Header::None,
            tag: 0,
            // A stock receiver echoes a brake until it sees CWR: on every packet, so that each brake is echoed once.
            cwr: self.rules.encoding == Encoding::AbcProxied,
        }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        if event.rtt.sample.is_some() {
            self.srtt = Some(event.rtt.smoothed);
        }
        self.on_marks(event.marks.accelerate.bytes, event.marks.brake.bytes);
        if let Some(second) = &mut self.second {
            second.on_ack(event);
        }
        // abc20 4.1: the window that does not govern must not run away.
        let inflight = Bytes((event.inflight_before.as_f64() * self.rules.cap) as u64);
        let most = inflight.max(self.packets(self.rules.cap_floor_pkts));
        self.clip(most);
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

    fn clip(&mut self, most: Bytes) {
        self.w_abc_bytes = self.w_abc_bytes.min(most.as_f64()).max(self.mss.as_f64());
        if let Some(second) = &mut self.second {
            second.clip(most);
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
        self.second.as_ref().and_then(Controller::next_timer)
    }

    fn cwnd(&self) -> Bytes {
        let w_abc = Bytes(self.w_abc_bytes as u64);
        let least = self.second.as_ref().map_or(w_abc, |second| second.cwnd().min(w_abc));
        least.max(self.mss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.second.as_ref().and_then(Controller::ssthresh)
    }

    fn pacing_rate(&self) -> Option<Rate> {
        let srtt = self.srtt.filter(|srtt| self.rules.pacing > 0.0 && !srtt.is_zero())?;
        // At least one bit per second: a rate of zero would never send again.
        Some(Rate::over(self.cwnd(), srtt).mul_f64(self.rules.pacing).max(Rate::from_bps(1)))
    }

    /// A loss changes nothing for w_abc; when w_nonabc governs, it is Cubic's episode.
    fn recovery(&self) -> Recovery {
        if self.marks_govern() { Recovery::Own } else { Recovery::Prr }
    }

    fn encoding(&self) -> Encoding {
        self.rules.encoding
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("w_abc_bytes", self.w_abc_bytes);
        if let Some(second) = &self.second {
            visit("w_nonabc_bytes", second.cwnd().as_f64());
        }
    }
}

#[cfg(test)]
mod tests;
