//! XCPw: XCP's router for links whose rate varies, by the authors of ABC (`abc20` 7.3 and appendix F).
//!
//! [XCP](super::xcp) decides once per control interval and may so take an RTT to say that the link has slowed
//! down. XCPw computes the same formulas anew for every packet that leaves, over the past RTT:
//!
//! ```text
//! phi = alpha d (C - y) - beta Q,  h = max(0, gamma y d - |phi|)   katabi02 3.5
//! H   = min(H, xi_p rtt^2 s / cwnd - xi_n rtt s)                   the sums in xi_p and xi_n over (t - d, t]
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | alpha | `alpha` | 1 | 0.55 | abc20 7.3 |
//! | beta | `beta` | 1 | 0.4 | abc20 7.3 |
//! | gamma | `gamma` | 1 | 0.1 | katabi02 3.5.2 |
//! | C | - | bytes/s | measured | what the link could have carried in (t - d, t], used or not |
//! | y | - | bytes/s | measured | what arrived in (t - d, t] |
//! | Q | - | bytes | measured | least queue behind the packets that left in (t - d, t] |
//! | d | `mean_rtt_s` | s | measured | mean RTT of the headers of (t - d, t], once a flow; 1 ms to 1 s |
//!
//! # Deviations
//!
//! abc20 gives no more than that feedback is recomputed on each packet "based on the rate and delay
//! measurements from the past RTT". The authors' code (<https://github.com/prateshg/ABC-NSDI2020>,
//! `xcp_packet_queue.cc`) fills in the rest, and differs in these:
//!
//! - D1. It gives every packet phi / (packets that left in d); here a packet's share is XCP's own, which for
//!   one flow is the same and among several is fair.
//! - D2. It shuffles nothing; here as in XCP (`gamma=0` is the authors').
//! - D3. Its d is 100 ms plus the mean queueing delay; here it comes from the headers.
//! - D4. Its Q is the least queue of the past 100 ms; here of the past d.
//! - D5. There are no residues: a share of the present sums is a share of what one RTT hands out.

use alloc::collections::VecDeque;

use brakelight_core::ecn::Mark;
use brakelight_core::packet::{Header, Packet};
use brakelight_core::queue::{Backlog, Dequeued, Drops, LinkView, Place, Queue};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_estimates::sliding_min::SlidingMin;
use brakelight_estimates::sliding_rate::SlidingRate;

use super::fifo::Fifo;
use super::xcp::{INITIAL_S, LONGEST_S, SHORTEST_S, Sender, sums};

parameters! {
    /// The settings of XCPw's router.
    pub struct Config {
        /// Share of the spare rate given out per RTT.
        alpha: f64 = 0.55, in 0.001..=2.0, from "abc20 7.3";
        /// Share of the persistent queue drained per RTT.
        beta: f64 = 0.4, in 0.0..=2.0, from "abc20 7.3";
        /// Least share of the traffic that is shuffled between flows.
        gamma: f64 = 0.1, in 0.0..=1.0, from "katabi02 3.5.2";
        /// Whether what was granted in the past RTT counts against the sums.
        residues: bool = true, in .., from "katabi02 A";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "abc20 7.2: 250 packets";
    }
}

/// A packet that left, and what it was granted. Whole numbers, so that what is taken out of a sum is what was
/// put in.
#[derive(Clone, Copy, Debug)]
struct Left {
    at: Time,
    bytes: u32,
    /// The RTT as the mean takes it, nanoseconds.
    rtt_ns: u32,
    /// rtt s / cwnd, nanoseconds.
    spacing_ns: u64,
    /// Throughput granted and taken, mB/s: thousandths of a byte per second.
    gain_mbs: u64,
    loss_mbs: u64,
}

/// What left in the past d.
#[derive(Clone, Debug, Default)]
struct Past {
    left: VecDeque<Left>,
    bytes: u64,
    spacing_ns: u64,
    rtt_spacing_ns2: u128,
    gain_mbs: u64,
    loss_mbs: u64,
}

impl Past {
    /// Counts a packet that has not been granted anything yet.
    #[inline]
    fn count(&mut self, packet: &Left) {
        self.bytes += u64::from(packet.bytes);
        self.spacing_ns += packet.spacing_ns;
        self.rtt_spacing_ns2 += u128::from(packet.spacing_ns) * u128::from(packet.rtt_ns);
    }

    /// Remembers a packet that was counted, and counts what it was granted.
    #[inline]
    fn remember(&mut self, packet: Left) {
        self.gain_mbs += packet.gain_mbs;
        self.loss_mbs += packet.loss_mbs;
        self.left.push_back(packet);
    }

    /// Forgets what left at or before `now - window`.
    #[inline]
    fn expire(&mut self, now: Time, window: Duration) {
        while let Some(first) = self.left.front() {
            if now.since(first.at) < window {
                break;
            }
            self.bytes -= u64::from(first.bytes);
            self.spacing_ns -= first.spacing_ns;
            self.rtt_spacing_ns2 -= u128::from(first.spacing_ns) * u128::from(first.rtt_ns);
            self.gain_mbs -= first.gain_mbs;
            self.loss_mbs -= first.loss_mbs;
            self.left.pop_front();
        }
    }
}

const SHORTEST: Duration = Duration::from_micros((SHORTEST_S * 1e6) as u64);
const LONGEST: Duration = Duration::from_micros((LONGEST_S * 1e6) as u64);

/// The number, below 2^127, as a float. The language's own conversion of 128 bits is a library call.
#[inline]
fn as_f64(number: u128) -> f64 {
    (number >> 64) as i64 as f64 * 18_446_744_073_709_551_616.0 + number as u64 as f64
}

/// XCPw's router.
#[derive(Clone, Debug)]
pub struct XcpW<P> {
    gains: [f64; 3],
    residues: bool,
    limit: Limit,
    packets: Fifo<P>,
    /// What the packets held will take of the link.
    waiting: Bytes,
    /// y.
    arriving: SlidingRate,
    past: Past,
    /// Q.
    least: SlidingMin,
    /// d, the same as a window, and 1 / d. Packets are many and divisions slow: the sums of the packet path
    /// are multiplied by reciprocals, which are taken once per packet at most.
    mean_rtt_s: f64,
    window: Duration,
    per_rtt: f64,
    /// 1 / sum(rtt s / cwnd), 1/ns; zero where there is no sum.
    per_spacing: f64,
    last: Control,
}

/// The control law's values at the last packet that left, in bytes and seconds.
#[derive(Clone, Copy, Debug, Default)]
struct Control {
    capacity: f64,
    arriving: f64,
    persistent_bytes: f64,
    gain: f64,
    loss: f64,
}

impl<P: Packet> XcpW<P> {
    /// Returns an empty queue.
    pub fn new(config: &Config, place: &Place) -> Self {
        let window = Duration::from_secs_f64(INITIAL_S);
        XcpW {
            gains: [config.alpha, config.beta, config.gamma],
            residues: config.residues,
            limit: config.limit.unwrap_or(place.limit),
            packets: Fifo::default(),
            waiting: Bytes::ZERO,
            arriving: SlidingRate::new(window),
            past: Past::default(),
            least: SlidingMin::default(),
            mean_rtt_s: INITIAL_S,
            window,
            per_rtt: 1.0 / INITIAL_S,
            per_spacing: 0.0,
            last: Control::default(),
        }
    }

    /// Counts the packet that leaves, and brings d up to date.
    #[inline]
    fn count(&mut self, now: Time, packet: &Left) {
        self.past.expire(now, self.window);
        self.past.count(packet);
        if self.past.spacing_ns == 0 {
            self.per_spacing = 0.0;
            return;
        }
        self.per_spacing = 1.0 / self.past.spacing_ns as f64;
        let mean_us = as_f64(self.past.rtt_spacing_ns2) * self.per_spacing * 1e-3;
        // In whole microseconds: a link remembers the last window it was asked for. A nanosecond above, so
        // that the mean of equal RTTs is not rounded below them.
        let window = Duration::from_micros((mean_us + 1e-3) as u64).clamp(SHORTEST, LONGEST);
        if window != self.window {
            self.window = window;
            self.mean_rtt_s = window.as_secs_f64();
            self.per_rtt = 1.0 / self.mean_rtt_s;
            self.arriving.set_window(window);
        }
    }

    /// The two sums at `now`, and what they are computed from.
    #[inline]
    fn control(&mut self, now: Time, link: &mut impl LinkView) -> Control {
        let capacity = link.capacity(self.window).as_bps_f64() * 0.125;
        let arriving = self.arriving.bytes(now).as_f64() * self.per_rtt;
        let persistent_bytes = self.least.update(self.window, now, self.waiting.0) as f64;
        let (gain, loss) = sums(self.gains, capacity - arriving, arriving, persistent_bytes * self.per_rtt);
        Control { capacity, arriving, persistent_bytes, gain, loss }
    }

    /// What the packet just counted may change its sender's window by, bytes; noted in `packet`.
    #[inline]
    fn grant(&self, sender: &Sender, spacing_s: f64, size: f64, packet: &mut Left) -> f64 {
        // katabi02 eq.4, eq.7, divided by rtt
        let mut gain = self.last.gain * (spacing_s * 1e9 * self.per_spacing).min(1.0);
        let mut loss = self.last.loss * size / self.past.bytes as f64;
        if self.residues {
            gain = gain.min(self.last.gain - self.past.gain_mbs as f64 * 1e-3).max(0.0);
            loss = loss.min(self.last.loss - self.past.loss_mbs as f64 * 1e-3).max(0.0);
        }
        let mut granted_bytes = (gain - loss) * sender.rtt_s;
        if granted_bytes > sender.asked_bytes {
            gain = (sender.asked_bytes / sender.rtt_s + loss).max(0.0);
            granted_bytes = sender.asked_bytes;
        }
        (packet.gain_mbs, packet.loss_mbs) = ((gain * 1e3) as u64, (loss * 1e3) as u64);
        granted_bytes
    }
}

impl<P: Packet> Queue<P> for XcpW<P> {
    fn enqueue(&mut self, now: Time, packet: P, link: &mut impl LinkView, drops: &mut Drops<P>) {
        let cost = link.cost(packet.size());
        self.arriving.add(now, cost);
        if self.packets.push_within(self.limit, now, packet, drops) {
            self.waiting += cost;
        }
    }

    fn dequeue(&mut self, now: Time, link: &mut impl LinkView, _drops: &mut Drops<P>) -> Option<Dequeued<P>> {
        let (mut packet, arrived) = self.packets.pop()?;
        let cost = link.cost(packet.size());
        self.waiting -= cost;
        let header = packet.header();
        let sender = Sender::of(header);
        let size = cost.as_f64();
        let spacing_s = sender.as_ref().map_or(0.0, |sender| sender.spacing_s(size));
        let mut left = Left {
            at: now,
            bytes: cost.0 as u32,
            rtt_ns: sender.as_ref().map_or(0, |sender| (sender.counted_rtt_s() * 1e9) as u32),
            // No packet stands for more than the longest RTT: windows are no smaller than a packet.
            spacing_ns: (spacing_s.min(LONGEST_S) * 1e9) as u64,
            gain_mbs: 0,
            loss_mbs: 0,
        };
        self.count(now, &left);
        self.last = self.control(now, link);
        match sender {
            Some(sender) => {
                let granted_bytes = self.grant(&sender, spacing_s, size, &mut left);
                packet.set_header(sender.header(granted_bytes));
            }
            None => {
                // No RTT yet, no change.
                if let Header::Xcp { cwnd_bytes, rtt_s, .. } = header {
                    packet.set_header(Header::Xcp { cwnd_bytes, rtt_s, feedback_bytes: 0.0 });
                }
            }
        }
        self.past.remember(left);
        Some(Dequeued { packet, arrived, mark: Mark::None })
    }

    fn backlog(&self) -> Backlog {
        self.packets.backlog()
    }

    fn waiting_since(&self) -> Option<Time> {
        self.packets.head_arrived()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("mean_rtt_s", self.mean_rtt_s);
        visit("capacity_bps", self.last.capacity * 8.0);
        visit("arriving_bps", self.last.arriving * 8.0);
        visit("persistent_bytes", self.last.persistent_bytes);
        visit("gain_bps", self.last.gain * 8.0);
        visit("loss_bps", self.last.loss * 8.0);
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.packets.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
