//! A run as qlog: what each end of every flow did, in simulated time.
//!
//! | what | where |
//! |---|---|
//! | the file | JSON texts in sequence (RFC 7464), by draft-ietf-quic-qlog-main-schema-14 |
//! | the events | those of draft-ietf-quic-qlog-quic-events-14 |
//! | `FLOW.sqlog` | the sender's: packets, metrics of recovery, losses, states |
//! | `FLOW.receiver.sqlog` | the receiver's: packets |
//!
//! [`Version::V03`] is for tools that know no later draft, such as qvis: qlog 0.3, of
//! draft-ietf-quic-qlog-main-schema-03 and draft-ietf-quic-qlog-quic-events-03. Header and names of events
//! differ, and the events' data is the same.
//!
//! Times are milliseconds since the start of the run. What happens to a sender at one moment is one event of
//! its metrics, with those that changed; bytes in flight and the window count payload. The length of a packet
//! is that of the IP packet without 28 bytes, the headers of IPv4 and UDP. A modelled flow has packet
//! numbers; of a lost packet nobody tells which one it was.

use std::cell::RefCell;
use std::io::{self, Write};
use std::rc::Rc;

use brakelight_core::controller::{ControllerFailure, RecoveryState};
use brakelight_core::endpoint::Endpoint;
use brakelight_core::packet::Direction;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Rate;
use brakelight_scenario::scenario::Scenario;
use brakelight_sim::engine::Routed as _;
use brakelight_sim::host::FlowConfig;
use brakelight_sim::packet::{Kind, SimPacket};
use brakelight_sim::report::{FlowCounters, Reporting, SenderView};
use brakelight_sim::simulation::flow_configs;
use brakelight_sim::{Traces, outside, run_with};
use serde::Serialize;

use crate::error::Cause;
use crate::series::file_name;

/// draft-ietf-quic-qlog-main-schema-14, "QlogFileSeq schema"
const FILE_SCHEMA: &str = "urn:ietf:params:qlog:file:sequential";

/// draft-ietf-quic-qlog-main-schema-14, "qlog to JSON Text Sequences mapping"
const SERIALIZATION: &str = "application/qlog+json-seq";

/// draft-ietf-quic-qlog-quic-events-14, "Draft Event Schema Identification"
const EVENT_SCHEMA: &str = "urn:ietf:params:qlog:events:quic-14";

/// draft-ietf-quic-qlog-main-schema-03, "JSON Text Sequences": `qlog_version`
const VERSION_03: &str = "0.3";

/// The same, `qlog_format`
const FORMAT_03: &str = "JSON-SEQ";

/// rfc7464 2.2
const SEPARATOR: u8 = 0x1e;

/// IPv4 and UDP, whose bytes qlog does not count.
const HEADERS: u16 = 28;

/// By which drafts files are written.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Version {
    /// The current ones: number 14 of both.
    #[default]
    Draft14,
    /// qlog 0.3: number 3 of both.
    V03,
}

impl Version {
    /// The name of an event, which number 14 calls `name`.
    fn event(self, name: &'static str) -> &'static str {
        match (self, name) {
            (Version::Draft14, name) => name,
            // draft-ietf-quic-qlog-quic-events-03: a category is the part before the colon.
            (Version::V03, PACKET_SENT) => "transport:packet_sent",
            (Version::V03, PACKET_RECEIVED) => "transport:packet_received",
            (Version::V03, METRICS_UPDATED) => "recovery:metrics_updated",
            (Version::V03, STATE_UPDATED) => "recovery:congestion_state_updated",
            (Version::V03, PACKET_LOST) => "recovery:packet_lost",
            (Version::V03, name) => name,
        }
    }
}

const PACKET_SENT: &str = "quic:packet_sent";
const PACKET_RECEIVED: &str = "quic:packet_received";
const PACKET_LOST: &str = "quic:packet_lost";
const METRICS_UPDATED: &str = "quic:recovery_metrics_updated";
const STATE_UPDATED: &str = "quic:congestion_state_updated";

/// Runs `scenario` once more, with both ends of every flow logged: its modelled hosts and those from outside.
/// `open` makes the file of a name, and is called twice for each flow before anything is simulated.
///
/// # Errors
/// The scenario cannot be run, or a file cannot be made or written.
pub fn write(
    scenario: &Scenario,
    traces: &Traces,
    version: Version,
    open: &mut dyn FnMut(&str) -> io::Result<Box<dyn Write>>,
) -> Result<(), Cause> {
    write_with(scenario, traces, version, open, outside::host)
}

/// The same with both ends of each flow made by `host`, which says why if it cannot.
pub(crate) fn write_with<E: Endpoint<SimPacket> + Reporting>(
    scenario: &Scenario,
    traces: &Traces,
    version: Version,
    open: &mut dyn FnMut(&str) -> io::Result<Box<dyn Write>>,
    mut host: impl FnMut(FlowConfig) -> Result<E, String>,
) -> Result<(), Cause> {
    let failed = Rc::new(RefCell::new(None));
    let mut files = Vec::new();
    for (name, _) in flow_configs(scenario) {
        let mut file = |end: &str, vantage_point: &'static str| {
            let file = open(&format!("{}{end}.sqlog", file_name(&name)))?;
            let mut log = Log { file, version, failed: failed.clone() };
            match version {
                Version::Draft14 => log.record(&Header::new(scenario, &name, vantage_point)),
                Version::V03 => log.record(&Header03::new(scenario, &name, vantage_point)),
            }
            Ok::<_, io::Error>(log)
        };
        files.push(Some([file("", "client")?, file(".receiver", "server")?]));
    }
    let outcome = run_with(scenario, traces, |config| {
        let flow = config.flow.0 as usize;
        let logs = files.get_mut(flow).and_then(Option::take);
        let [sender, receiver] = logs.ok_or_else(|| format!("flow number {flow} has no log"))?;
        Ok(Logged { inner: host(config)?, sender, receiver, noted: Noted::default(), changed: None })
    });
    outcome?;
    match failed.take() {
        None => Ok(()),
        Some(error) => Err(Box::new(error)),
    }
}

/// One file. What goes wrong first stays in `failed`, since a run cannot be told to end.
struct Log {
    file: Box<dyn Write>,
    version: Version,
    failed: Rc<RefCell<Option<io::Error>>>,
}

impl Log {
    fn record(&mut self, record: &impl Serialize) {
        let written = serde_json::to_vec(record).map_err(io::Error::from).and_then(|text| {
            self.file.write_all(&[SEPARATOR])?;
            self.file.write_all(&text)?;
            self.file.write_all(b"\n")
        });
        self.note(written);
    }

    fn event(&mut self, at: Time, name: &'static str, data: impl Serialize) {
        self.record(&Event { time: at.as_nanos() as f64 / 1e6, name: self.version.event(name), data });
    }

    fn note(&self, written: io::Result<()>) {
        if let Err(error) = written {
            self.failed.borrow_mut().get_or_insert(error);
        }
    }
}

impl Drop for Log {
    fn drop(&mut self) {
        let flushed = self.file.flush();
        self.note(flushed);
    }
}

/// Both ends of a flow, which are logged.
struct Logged<E: Reporting> {
    inner: E,
    sender: Log,
    receiver: Log,
    noted: Noted,
    /// When the sender became another than is noted, if it did.
    changed: Option<Time>,
}

/// What the log says of the sender so far.
#[derive(Clone, Copy, Default)]
struct Noted {
    view: SenderView,
    lost: u64,
    state: Option<&'static str>,
}

impl<E: Reporting> Logged<E> {
    /// Logs what became of the sender at an earlier moment than `now`.
    fn turn(&mut self, now: Time) {
        if let Some(at) = self.changed.filter(|at| *at < now) {
            self.log_sender(at);
        }
    }

    /// Logs what became of the sender at `at`.
    fn log_sender(&mut self, at: Time) {
        self.changed = None;
        let view = self.inner.sender();
        // A host that does not count losses sends again what it lost.
        let lost = view.lost_packets.max(if view.sent_packets == 0 { view.retransmitted_packets } else { 0 });
        for _ in self.noted.lost..lost {
            self.sender.event(at, PACKET_LOST, Lost { header: PacketHeader::of(None) });
        }
        let metrics = Metrics::new(&view, &self.noted.view);
        if metrics != Metrics::default() {
            self.sender.event(at, METRICS_UPDATED, metrics);
        }
        let state = Some(state(&view));
        if state != self.noted.state {
            let data = StateUpdated { old: self.noted.state, new: state };
            self.sender.event(at, STATE_UPDATED, data);
        }
        self.noted = Noted { view, lost: lost.max(self.noted.lost), state };
    }

    fn look(&mut self, now: Time) {
        if self.inner.sender() != self.noted.view {
            self.changed = Some(now);
        }
    }
}

impl<E: Reporting> Logged<E> {
    /// The log of the end that packets of `direction` reach.
    fn end(&mut self, direction: Direction) -> &mut Log {
        match direction {
            Direction::Forward => &mut self.receiver,
            Direction::Reverse => &mut self.sender,
        }
    }
}

impl<E: Endpoint<SimPacket> + Reporting> Endpoint<SimPacket> for Logged<E> {
    fn accept(&mut self, now: Time, packet: SimPacket) {
        self.turn(now);
        self.end(packet.direction()).event(now, PACKET_RECEIVED, Seen::of(&packet));
        self.inner.accept(now, packet);
        self.look(now);
    }

    fn poll_transmit(&mut self, now: Time) -> Option<SimPacket> {
        self.turn(now);
        let packet = self.inner.poll_transmit(now);
        if let Some(packet) = &packet {
            self.end(packet.direction().opposite()).event(now, PACKET_SENT, Seen::of(packet));
        }
        self.look(now);
        packet
    }

    fn is_at_rest(&mut self, now: Time) -> bool {
        self.inner.is_at_rest(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.inner.next_wakeup()
    }

    fn release(&mut self, packet: SimPacket) {
        self.inner.release(packet);
    }
}

impl<E: Reporting> Reporting for Logged<E> {
    const HOST: &'static str = E::HOST;

    fn counters(&self) -> FlowCounters {
        self.inner.counters()
    }

    fn take_rtt_sample(&mut self) -> Option<Duration> {
        self.inner.take_rtt_sample()
    }

    fn failure(&self) -> Option<&ControllerFailure> {
        self.inner.failure()
    }

    fn cwnd(&self) -> brakelight_core::units::Bytes {
        self.inner.cwnd()
    }

    fn sender(&self) -> SenderView {
        self.inner.sender()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect(visit);
    }

    fn application(&self, now: Time, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.application(now, visit);
    }

    fn echoed_mark(&self, ack: &SimPacket) -> Option<brakelight_core::ecn::Mark> {
        self.inner.echoed_mark(ack)
    }
}

impl<E: Reporting> Drop for Logged<E> {
    fn drop(&mut self) {
        // The run is over, and nothing else will happen.
        if let Some(at) = self.changed {
            self.log_sender(at);
        }
    }
}

/// The state of the sender. Controllers have states of their own, which have no names in common.
fn state(view: &SenderView) -> &'static str {
    match view.recovery {
        RecoveryState::Recovery => "recovery",
        RecoveryState::Loss => "persistent_congestion",
        RecoveryState::Open if view.app_limited => "application_limited",
        RecoveryState::Open => "open",
    }
}

/// The first record.
#[derive(Serialize)]
struct Header {
    file_schema: &'static str,
    serialization_format: &'static str,
    title: String,
    trace: Trace,
}

#[derive(Serialize)]
struct Trace {
    common_fields: CommonFields,
    vantage_point: VantagePoint,
    event_schemas: [&'static str; 1],
}

#[derive(Serialize)]
struct CommonFields {
    group_id: String,
    time_format: &'static str,
    reference_time: ReferenceTime,
}

#[derive(Serialize)]
struct ReferenceTime {
    clock_type: &'static str,
    epoch: &'static str,
}

#[derive(Serialize)]
struct VantagePoint {
    name: String,
    #[serde(rename = "type")]
    kind: &'static str,
}

fn title(scenario: &Scenario, flow: &str) -> String {
    format!("{}, seed {}, flow {flow}", scenario.name, scenario.seed)
}

impl Header {
    fn new(scenario: &Scenario, flow: &str, vantage_point: &'static str) -> Self {
        Header {
            file_schema: FILE_SCHEMA,
            serialization_format: SERIALIZATION,
            title: title(scenario, flow),
            trace: Trace {
                common_fields: CommonFields {
                    group_id: flow.to_string(),
                    time_format: "relative_to_epoch",
                    // A monotonic clock has no date.
                    reference_time: ReferenceTime { clock_type: "monotonic", epoch: "unknown" },
                },
                vantage_point: VantagePoint { name: flow.to_string(), kind: vantage_point },
                event_schemas: [EVENT_SCHEMA],
            },
        }
    }
}

/// The first record of qlog 0.3.
#[derive(Serialize)]
struct Header03 {
    qlog_version: &'static str,
    qlog_format: &'static str,
    title: String,
    trace: Trace03,
}

#[derive(Serialize)]
struct Trace03 {
    title: String,
    common_fields: CommonFields03,
    vantage_point: VantagePoint,
}

#[derive(Serialize)]
struct CommonFields03 {
    time_format: &'static str,
    /// The moment from which times count, in ms since 1970: simulated time has no date.
    reference_time: f64,
}

impl Header03 {
    fn new(scenario: &Scenario, flow: &str, vantage_point: &'static str) -> Self {
        Header03 {
            qlog_version: VERSION_03,
            qlog_format: FORMAT_03,
            title: title(scenario, flow),
            trace: Trace03 {
                title: flow.to_string(),
                common_fields: CommonFields03 { time_format: "relative", reference_time: 0.0 },
                vantage_point: VantagePoint { name: flow.to_string(), kind: vantage_point },
            },
        }
    }
}

#[derive(Serialize)]
struct Event<D> {
    time: f64,
    name: &'static str,
    data: D,
}

#[derive(Serialize)]
struct PacketHeader {
    packet_type: &'static str,
    #[serde(skip_serializing_if = "Option::is_none")]
    packet_number: Option<u32>,
}

impl PacketHeader {
    fn of(packet_number: Option<u32>) -> Self {
        PacketHeader { packet_type: "1RTT", packet_number }
    }
}

/// `packet_sent` and `packet_received`.
#[derive(Serialize)]
struct Seen {
    header: PacketHeader,
    raw: Raw,
}

#[derive(Serialize)]
struct Raw {
    length: u16,
}

impl Seen {
    fn of(packet: &SimPacket) -> Self {
        let number = match packet.kind() {
            Kind::Data { number, .. } => Some(number),
            _ => None,
        };
        Seen { header: PacketHeader::of(number), raw: Raw { length: packet.size.saturating_sub(HEADERS) } }
    }
}

/// `packet_lost`.
#[derive(Serialize)]
struct Lost {
    header: PacketHeader,
}

/// `recovery_metrics_updated`: times in ms, sizes in bytes, the rate in bit/s.
#[derive(Default, PartialEq, Serialize)]
#[serde(default)]
struct Metrics {
    #[serde(skip_serializing_if = "Option::is_none")]
    min_rtt: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    smoothed_rtt: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    latest_rtt: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    rtt_variance: Option<f32>,
    #[serde(skip_serializing_if = "Option::is_none")]
    congestion_window: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    bytes_in_flight: Option<u64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    pacing_rate: Option<u64>,
}

impl Metrics {
    /// What of `new` is not as in `old`.
    fn new(new: &SenderView, old: &SenderView) -> Self {
        let rtt = |of: fn(&brakelight_core::controller::Rtt) -> Option<Duration>| {
            let [new, old] = [new, old].map(|view| view.rtt.as_ref().and_then(of));
            new.filter(|_| new != old).map(|time| time.as_millis_f64() as f32)
        };
        let rate = |view: &SenderView| view.pacing_rate.and_then(Rate::paced);
        let changed = |new: u64, old: u64| (new != old).then_some(new);
        Metrics {
            min_rtt: rtt(|rtt| Some(rtt.min)),
            smoothed_rtt: rtt(|rtt| Some(rtt.smoothed)),
            latest_rtt: rtt(|rtt| rtt.sample),
            rtt_variance: rtt(|rtt| Some(rtt.variation)),
            congestion_window: changed(new.cwnd.0, old.cwnd.0),
            bytes_in_flight: changed(new.inflight.0, old.inflight.0),
            pacing_rate: rate(new).filter(|_| rate(new) != rate(old)).map(|rate| rate.as_bps_f64() as u64),
        }
    }
}

/// `congestion_state_updated`.
#[derive(Serialize)]
struct StateUpdated {
    #[serde(skip_serializing_if = "Option::is_none")]
    old: Option<&'static str>,
    new: Option<&'static str>,
}
