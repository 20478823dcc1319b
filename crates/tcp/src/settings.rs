//! Requests and results: plain data.

use std::net::{IpAddr, SocketAddr};
use std::path::PathBuf;

use serde::Serialize;

/// Folder in which programs are pinned that outlive the command.
pub const PINS: &str = "/sys/fs/bpf/brakelight";

/// How a sender learns which packets were accelerated and which braked.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default)]
pub enum Feedback {
    /// Accurate ECN where the kernel has it, the option otherwise.
    #[default]
    Auto,
    /// Accurate ECN, rfc9768.
    AccEcn,
    /// Our experimental TCP option (rfc6994), which both ends must have.
    Option,
}

/// How long packets may queue before delay control reduces the window.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Threshold {
    /// A time.
    Time(std::time::Duration),
    /// A share, 0 to 1, of the largest minus the smallest RTT; there is no threshold before the first loss.
    Share(f64),
}

/// The smallest threshold that works with timestamps in milliseconds.
pub const LEAST_THRESHOLD_MS: std::time::Duration = std::time::Duration::from_millis(5);

/// A controller.
#[derive(Clone, Copy, Debug, PartialEq, Default)]
pub enum Controller {
    /// ABC with its second window.
    #[default]
    Abc,
    /// QUIC-DC's delay control, by TCP timestamps.
    Wdc(Threshold),
}

/// What `tcp load` puts into the kernel.
#[derive(Clone, Debug, PartialEq, Default)]
pub struct Load {
    /// The controller of the senders. Of the fields below, only `name`, `unrestricted`, `pacing_percent` and
    /// `pin` apply to delay control.
    pub controller: Controller,
    /// Devices at whose egress ABC's packets are marked accelerate.
    pub devices: Vec<String>,
    /// How the sender learns the marks.
    pub feedback: Feedback,
    /// Whether to load only what a receiver needs.
    pub receiver: bool,
    /// Name under which the controller is registered, at most 15 bytes; default `abc` or `wdc`, or
    /// `accecn_reno` at a receiver.
    pub name: Option<String>,
    /// Whether users other than root may choose the controller.
    pub unrestricted: bool,
    /// Pacing rate in percent of a window per RTT; by default as in the papers: ABC unpaced, delay control at
    /// 100.
    pub pacing_percent: Option<u32>,
    /// Whether the programs stay loaded when the command ends.
    pub pin: bool,
    /// The cgroup whose sockets send and parse the option.
    pub cgroup: Option<PathBuf>,
}

/// What `tcp load` did.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Loaded {
    /// Names of congestion controls now registered.
    pub controllers: Vec<String>,
    /// Devices at whose egress packets are marked accelerate.
    pub devices: Vec<String>,
    /// `accecn`, `option`, or `timestamps`.
    pub feedback: String,
    /// Notes for the user.
    pub notes: Vec<String>,
}

impl Loaded {
    /// Returns what was done, a sentence each.
    pub fn sentences(&self) -> Vec<String> {
        let registered = |name: &String| format!("registered the congestion control `{name}`");
        let marked = |device: &String| format!("ABC's connections send accelerates through {device}");
        let feedback = match self.feedback.as_str() {
            "timestamps" => "delays come from TCP timestamps",
            "option" => "counts of marks come from the option",
            _ => "counts of marks come from Accurate ECN",
        };
        let mut sentences: Vec<String> = self.controllers.iter().map(registered).collect();
        sentences.extend(self.devices.iter().map(marked));
        sentences.push(feedback.to_string());
        sentences.extend(self.notes.iter().map(|note| format!("note: {note}")));
        sentences
    }
}

/// A controller's state of a connection.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(untagged)]
pub enum Inside {
    /// ABC.
    Abc {
        /// w_abc.
        w_abc_bytes: u32,
        /// w_nonabc.
        w_nonabc_bytes: u32,
        /// Whether the marks of this path are unusable, so that the second window applies.
        marks_spoiled: bool,
        /// Bytes that came back as accelerate.
        accelerate_bytes: u64,
        /// Bytes that came back as brake.
        brake_bytes: u64,
        /// Bytes that came back as CE.
        ce_bytes: u64,
    },
    /// Delay control.
    Wdc {
        /// theta; `None` while a share has no RTT range yet.
        threshold_ms: Option<f64>,
        /// One-way queueing delay of the newest packet measured, ms.
        owqd_ms: f64,
        /// Window reductions because of the queueing delay.
        delay_events: u32,
        /// Bandwidth estimate, Mbit/s.
        bwe_mbps: f64,
    },
}

/// One connection, as `tcp watch` shows it. All sizes are payload bytes since the connection began.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct ConnectionStatus {
    /// The kernel's cookie of the socket, unique while the socket exists.
    pub id: u64,
    /// `abc` or `wdc`, whatever name it was registered under.
    pub controller: &'static str,
    /// This end.
    pub local: SocketAddr,
    /// The other end.
    pub remote: SocketAddr,
    /// The kernel's window, in packets.
    pub cwnd_pkts: u32,
    /// The controller's own state.
    #[serde(flatten)]
    pub inside: Inside,
    /// Largest payload of a packet.
    pub mss_bytes: u32,
    /// Smoothed round trip.
    pub srtt_ms: f64,
    /// The smallest round trip.
    pub min_rtt_ms: f64,
    /// `accecn`, `option`, `timestamps` or `none`.
    pub feedback: &'static str,
    /// Bytes acknowledged, counted as packets times the MSS.
    pub acked_bytes: u64,
    /// Recovery episodes that losses started.
    pub losses: u32,
    /// Retransmission timeouts.
    pub timeouts: u32,
    /// Recovery episodes that CE started.
    pub ce_episodes: u32,
}

/// What of a connection came back between two looks, in payload bytes a second. Below zero where losses undid
/// what the look before had counted.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct ReturnRates {
    /// As accelerate; 0 for delay control, which has no marks.
    pub accelerate: f64,
    /// As brake.
    pub brake: f64,
    /// As CE.
    pub ce: f64,
    /// Acknowledged.
    pub acked: f64,
}

impl ConnectionStatus {
    /// Returns the rates in the `interval` since `before`, the same connection at the look before; since it
    /// began, if there was none.
    pub fn rates_since(
        &self,
        before: Option<&ConnectionStatus>,
        interval: std::time::Duration,
    ) -> ReturnRates {
        let (now, then) = (self.bytes(), before.map_or([0; 4], ConnectionStatus::bytes));
        let [accelerate, brake, ce, acked] =
            std::array::from_fn(|i| now[i].wrapping_sub(then[i]) as i64 as f64 / interval.as_secs_f64());
        ReturnRates { accelerate, brake, ce, acked }
    }

    /// Bytes so far: accelerate, brake, CE, acknowledged.
    fn bytes(&self) -> [u64; 4] {
        let [accelerate, brake, ce] = match self.inside {
            Inside::Abc { accelerate_bytes, brake_bytes, ce_bytes, .. } => {
                [accelerate_bytes, brake_bytes, ce_bytes]
            }
            Inside::Wdc { .. } => [0; 3],
        };
        [accelerate, brake, ce, self.acked_bytes]
    }
}

/// Returns an address of the kernel's: four or sixteen bytes.
pub fn address(bytes: [u8; 16], ipv6: bool) -> IpAddr {
    if ipv6 {
        let address = std::net::Ipv6Addr::from(bytes);
        // A listener of both families keeps IPv4 peers so.
        address.to_ipv4_mapped().map_or(IpAddr::V6(address), IpAddr::V4)
    } else {
        IpAddr::from([bytes[0], bytes[1], bytes[2], bytes[3]])
    }
}

/// The rule by which a router marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Default, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Variant {
    /// abc20 eq.1.
    #[default]
    Paper,
    /// The one without constants of one link and one round trip, `brakelight_routers::abc`'s
    /// `variant=adaptive`.
    Adaptive,
    /// CE for senders of L4S, `brakelight_routers::abc_l4s` with its defaults.
    L4s,
}

impl Variant {
    /// eta where it is not given.
    pub fn eta(self) -> f64 {
        match self {
            // abc20 7.2
            Variant::Paper => 0.98,
            Variant::Adaptive | Variant::L4s => 1.0,
        }
    }
}

/// Where the router's rate comes from.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Capacity {
    /// A shaper of this rate in bit/s is made, behind an ifb.
    Rate(u64),
    /// The shaper that this device already has; packets must already be routed there.
    Of(String),
}

/// Parameters of `router attach`.
#[derive(Clone, Debug, PartialEq)]
pub struct Route {
    /// The device that packets come in by.
    pub device: String,
    /// Devices that they leave by; all other devices if empty.
    pub out: Vec<String>,
    /// The rate.
    pub capacity: Capacity,
    /// The buffer of each queue.
    pub limit_bytes: u64,
    /// Whether ABC's packets and others have a queue each.
    pub dual: bool,
    /// The rule by which it marks.
    pub variant: Variant,
    /// eta: share of the rate to aim at. Of no use to the rule for L4S.
    pub eta: f64,
    /// delta: time in which a queue above the target is drained. Of the paper's rule alone.
    pub delta: std::time::Duration,
    /// d_t: delay below which nothing is drained. Of the paper's rule alone.
    pub target: std::time::Duration,
    /// T: window over which the rate that leaves is measured.
    pub window: std::time::Duration,
    /// The most tokens the bucket holds.
    pub token_limit: f64,
}

/// Statistics of a router. Bytes and packets count since it began; rates and shares are of the last interval.
#[derive(Clone, Debug, PartialEq, Serialize)]
pub struct Sample {
    /// Throughput including link headers, as the shaper counts.
    pub mbps: f64,
    /// mu of the shaper.
    pub capacity_mbps: f64,
    /// ABC's share of it.
    pub abc_share: f64,
    /// Throughput of ABC's queue, or of the only queue.
    pub abc_mbps: f64,
    /// Throughput of the other queue.
    pub other_mbps: f64,
    /// cr at the last packet.
    pub measured_mbps: f64,
    /// f at the last packet.
    pub f: f64,
    /// Tokens at the last packet.
    pub tokens: f64,
    /// Median of the time packets of ABC's queue took, to a millisecond.
    pub delay_p50_ms: f64,
    /// Their 95th percentile.
    pub delay_p95_ms: f64,
    /// Of the bytes that left with a mark, those of accelerates.
    pub accelerate_percent: f64,
    /// Those of brakes.
    pub brake_percent: f64,
    /// Those of CE.
    pub ce_percent: f64,
    /// Packets.
    pub packets: u64,
    /// Accelerates that became brakes here; by the rule for L4S, ECT(1) that became CE.
    pub turned_packets: u64,
    /// Packets without ECN.
    pub not_ect_packets: u64,
    /// Packets that an offload had merged, and which therefore carry a single mark.
    pub merged_packets: u64,
    /// TCP payload that left as accelerate.
    pub accelerate_bytes: u64,
    /// TCP payload that left as brake.
    pub brake_bytes: u64,
    /// TCP payload that left as CE.
    pub ce_bytes: u64,
    /// tau, the loop's delay as the router estimates it; `None` but by the rule that tunes itself.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_delay_ms: Option<f64>,
    /// Mean absolute error of its forecast of mu over one tau, or over 40 ms by the rule for L4S; `None` by
    /// the paper's rule.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast_error_bytes: Option<u64>,
}

#[cfg(test)]
mod tests {
    use std::time::Duration;

    use super::*;

    fn connection(accelerate_bytes: u64, acked_bytes: u64) -> ConnectionStatus {
        ConnectionStatus {
            id: 1,
            controller: "abc",
            local: ([127, 0, 0, 1], 1).into(),
            remote: ([127, 0, 0, 1], 2).into(),
            cwnd_pkts: 10,
            inside: Inside::Abc {
                w_abc_bytes: 14_480,
                w_nonabc_bytes: 14_480,
                marks_spoiled: false,
                accelerate_bytes,
                brake_bytes: 0,
                ce_bytes: 0,
            },
            mss_bytes: 1448,
            srtt_ms: 20.0,
            min_rtt_ms: 20.0,
            feedback: "accecn",
            acked_bytes,
            losses: 0,
            timeouts: 0,
            ce_episodes: 0,
        }
    }

    #[test]
    fn rates_are_differences_over_the_time_between() {
        let (before, now) = (connection(5_000, 8_000), connection(4_000, 10_000));
        let rates = now.rates_since(Some(&before), Duration::from_millis(500));
        assert_eq!(rates, ReturnRates { accelerate: -2_000.0, acked: 4_000.0, ..ReturnRates::default() });
        assert_eq!(before.rates_since(None, Duration::from_secs(2)).acked, 4_000.0);
    }

    #[test]
    fn what_was_loaded_is_said_in_order() {
        let loaded = Loaded {
            controllers: vec!["abc".into()],
            devices: vec!["eth0".into()],
            feedback: "option".into(),
            notes: vec!["both ends need it".into()],
        };
        assert_eq!(
            loaded.sentences(),
            [
                "registered the congestion control `abc`",
                "ABC's connections send accelerates through eth0",
                "counts of marks come from the option",
                "note: both ends need it",
            ]
        );
    }
}
