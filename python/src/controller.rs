//! Controllers that are classes in Python.

use std::sync::atomic::{AtomicBool, Ordering};

use brakelight::core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, PacketInfo, Recovery, RecoveryState,
    SendDirective, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight::core::ecn::Encoding;
use brakelight::core::packet::Header;
use brakelight::core::parameters::{OptionValues, Parameter, ParameterError};
use brakelight::core::registry::{ControllerFactory, DynController};
use brakelight::core::sender::Checked;
use brakelight::core::time::{Duration, Time};
use brakelight::core::units::{Bytes, Rate};
use pyo3::prelude::*;
use pyo3::types::{PyDict, PyType};

use crate::error::InputError;
use crate::options::Options;
use crate::quantity::{in_seconds, since_start};
use crate::registry::Failures;
use crate::travel::{Word, given, shown_by_fields};

/// What a class has of its own; what it has not, is not called.
#[derive(Clone, Copy, Debug, Default)]
pub struct Methods {
    on_send: bool,
    on_ce: bool,
    on_spurious_loss: bool,
    on_recovery_exit: bool,
    on_idle_restart: bool,
    on_timer: bool,
    /// Whether the host is held to the contract.
    checked: bool,
    ecn: bool,
    /// Whether its window holds while losses are repaired.
    own_recovery: bool,
}

impl Methods {
    /// Returns those of `class`.
    pub fn of(py: Python<'_>, class: &Py<PyType>, overridden: &[String], checked: bool) -> PyResult<Self> {
        let has = |name: &str| overridden.iter().any(|method| method == name);
        let class = class.bind(py);
        let recovery: String = class.getattr("recovery")?.extract()?;
        if !["prr", "own"].contains(&recovery.as_str()) {
            return Err(InputError::new_err(format!("recovery = `{recovery}`: valid are prr, own")));
        }
        Ok(Methods {
            on_send: has("on_send"),
            on_ce: has("on_ce"),
            on_spurious_loss: has("on_spurious_loss"),
            on_recovery_exit: has("on_recovery_exit"),
            on_idle_restart: has("on_idle_restart"),
            on_timer: has("on_timer"),
            checked,
            ecn: class.getattr("ecn")?.extract()?,
            own_recovery: recovery == "own",
        })
    }
}

/// Builds controllers of a class.
#[derive(Debug)]
pub struct Factory {
    /// The registered name.
    pub name: &'static str,
    /// The class.
    pub class: Py<PyType>,
    /// What it has of its own.
    pub methods: Methods,
    /// Its options.
    pub options: Options,
    /// Where exceptions go.
    pub failures: Failures,
    /// Whether to build controllers without an object of the class: what is asked of these is known without.
    pub empty: AtomicBool,
}

impl ControllerFactory for Factory {
    fn parameters(&self) -> &'static [Parameter] {
        self.options.parameters
    }

    fn settings(&self, options: &[(&str, &str)]) -> Result<OptionValues, ParameterError> {
        self.options.settings(options)
    }

    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        self.build_with(&self.options.settings(&[]).unwrap_or_default(), connection)
    }

    fn build_with(&self, settings: &OptionValues, connection: &Connection) -> Box<dyn DynController> {
        if self.empty.load(Ordering::Relaxed) {
            return Box::new(self.without_object(connection));
        }
        let made = Python::attach(|py| {
            let given = ConnectionInfo {
                mss: connection.mss.0,
                overhead: connection.overhead.0,
                initial_window: connection.initial_window.0,
                now: since_start(connection.now),
                seed: connection.random.clone().bits(),
            };
            let keywords = self.options.keywords(py, settings)?;
            let object = self.class.bind(py).call((given,), Some(&keywords))?.unbind();
            let mut scripted = Scripted { object: Some(object), ..self.without_object(connection) };
            scripted.read(py)?;
            Ok(scripted)
        });
        let scripted = made.unwrap_or_else(|failure: PyErr| {
            self.failures.note(failure);
            self.without_object(connection)
        });
        if self.methods.checked { Box::new(Checked::strict(scripted)) } else { Box::new(scripted) }
    }
}

impl Factory {
    /// A controller that decides nothing.
    fn without_object(&self, connection: &Connection) -> Scripted {
        Scripted {
            name: self.name,
            object: None,
            methods: self.methods,
            failures: self.failures.clone(),
            mss: connection.mss,
            decided: Decided::window(connection.initial_window),
        }
    }
}

/// What a controller decided last.
#[derive(Clone, Copy, Debug)]
struct Decided {
    cwnd: Bytes,
    ssthresh: Option<Bytes>,
    pacing_rate: Option<Rate>,
    next_timer: Option<Time>,
}

impl Decided {
    fn window(cwnd: Bytes) -> Self {
        Decided { cwnd, ssthresh: None, pacing_rate: None, next_timer: None }
    }
}

/// A controller in Python.
#[derive(Debug)]
pub struct Scripted {
    name: &'static str,
    /// None if it could not be made or copied, or need not be; then it decides nothing.
    object: Option<Py<PyAny>>,
    methods: Methods,
    failures: Failures,
    mss: Bytes,
    decided: Decided,
}

impl Clone for Scripted {
    fn clone(&self) -> Self {
        let object = self.failures.copy(self.object.as_ref());
        Scripted { object, failures: self.failures.clone(), ..*self }
    }
}

impl Scripted {
    /// Calls a method, and reads what it decided.
    fn tell<'a, A>(&'a mut self, method: &str, event: impl FnOnce() -> A + 'a)
    where
        A: for<'py> pyo3::call::PyCallArgs<'py>,
    {
        if self.failures.any() {
            return;
        }
        let done = Python::attach(|py| {
            let Some(object) = &self.object else { return Ok(()) };
            object.bind(py).call_method1(method, event())?;
            self.read(py)
        });
        if let Err(failure) = done {
            self.failures.note(failure);
        }
    }

    /// Reads what it decided.
    fn read(&mut self, py: Python<'_>) -> PyResult<()> {
        let Some(object) = &self.object else { return Ok(()) };
        let object = object.bind(py);
        let refuse = |attribute: &str, value: &Bound<'_, PyAny>, valid: String| {
            let name = self.name;
            InputError::new_err(format!(
                "controller `{name}`: {attribute} = `{value}` is out of range: valid is {valid}"
            ))
        };
        let cwnd = object.getattr("cwnd")?;
        let window = bytes(&cwnd).filter(|window| (self.mss..=MOST).contains(window));
        let window = window
            .ok_or_else(|| refuse("cwnd", &cwnd, format!("one packet, {}, to {MOST} bytes", self.mss.0)))?;
        let rate = object.getattr("pacing_rate")?;
        let pacing_rate = if rate.is_none() {
            None
        } else {
            let bps = rate.extract::<f64>().ok().filter(|bps| (1.0..=1e13).contains(bps));
            let bps = bps.ok_or_else(|| refuse("pacing_rate", &rate, "1 to 1e13 bit/s, or None".into()))?;
            Some(Rate::from_bps_f64(bps))
        };
        let ssthresh = object.getattr("ssthresh")?;
        let timer = object.getattr("next_timer")?;
        let next_timer = if timer.is_none() {
            None
        } else {
            let at = timer.extract::<f64>().ok().filter(|at| (0.0..=1e9).contains(at));
            let at = at.ok_or_else(|| refuse("next_timer", &timer, "a time in seconds, or None".into()))?;
            Some(Time::ZERO + Duration::from_secs_f64(at))
        };
        self.decided = Decided { cwnd: window, ssthresh: bytes(&ssthresh), pacing_rate, next_timer };
        Ok(())
    }
}

/// The largest window: 1 TB.
const MOST: Bytes = Bytes(1_000_000_000_000);

/// A size: whole as it is, another number rounded down.
fn bytes(value: &Bound<'_, PyAny>) -> Option<Bytes> {
    if let Ok(whole) = value.extract::<u64>() {
        return Some(Bytes(whole));
    }
    value
        .extract::<f64>()
        .ok()
        .filter(|value| value.is_finite() && *value >= 0.0)
        .map(|value| Bytes(value as u64))
}

impl Controller for Scripted {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if self.methods.on_send {
            let event = SendInfo {
                now: since_start(event.now),
                size: event.size.0,
                number: event.number,
                retransmission: event.retransmission,
                inflight: event.inflight.0,
                app_limited: event.app_limited,
                srtt: event.srtt.map(in_seconds),
            };
            self.tell("on_send", || (event,));
        }
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.tell("on_ack", || (AckInfo::of(event),));
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.tell("on_loss", || (LossInfo::of(event),));
    }

    fn on_ce(&mut self, event: &LossEvent) {
        let method = if self.methods.on_ce { "on_ce" } else { "on_loss" };
        self.tell(method, || (LossInfo::of(event),));
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        let event = TimeoutInfo {
            now: since_start(event.now),
            kind: match event.kind {
                Timeout::Rto => Word("rto"),
                Timeout::Pto => Word("pto"),
                Timeout::PersistentCongestion => Word("persistent-congestion"),
            },
            inflight: event.inflight.0,
            repeated: event.repeated,
        };
        self.tell("on_timeout", || (event,));
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        if self.methods.on_spurious_loss {
            let (now, timeout) = (since_start(event.now), event.timeout);
            self.tell("on_spurious_loss", || (now, timeout));
        }
    }

    fn on_recovery_exit(&mut self, now: Time) {
        if self.methods.on_recovery_exit {
            self.tell("on_recovery_exit", || (since_start(now),));
        }
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        if self.methods.on_idle_restart {
            let event = IdleInfo {
                now: since_start(event.now),
                idle: in_seconds(event.idle),
                rto: in_seconds(event.rto),
            };
            self.tell("on_idle_restart", || (event,));
        }
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        self.tell("cap_cwnd", || (most.0,));
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.tell("on_mtu_change", || (mss.0,));
    }

    fn on_timer(&mut self, now: Time) {
        // One that does not ask anew is not called again.
        self.decided.next_timer = None;
        let cleared = Python::attach(|py| {
            let Some(object) = &self.object else { return Ok(()) };
            object.bind(py).setattr("next_timer", py.None())
        });
        if let Err(failure) = cleared {
            self.failures.note(failure);
        }
        self.tell("on_timer", || (since_start(now),));
        if self.decided.next_timer.is_some_and(|at| at <= now) {
            let (name, now) = (self.name, since_start(now));
            self.failures.note(InputError::new_err(format!(
                "controller `{name}`: next_timer is due at once, again and again: valid is a time after {now} s"
            )));
            self.decided.next_timer = None;
        }
    }

    fn next_timer(&self) -> Option<Time> {
        if self.methods.on_timer { self.decided.next_timer } else { None }
    }

    fn cwnd(&self) -> Bytes {
        self.decided.cwnd.max(self.mss)
    }

    fn ssthresh(&self) -> Option<Bytes> {
        self.decided.ssthresh
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.decided.pacing_rate
    }

    fn recovery(&self) -> Recovery {
        if self.methods.own_recovery { Recovery::Own } else { Recovery::Prr }
    }

    fn encoding(&self) -> Encoding {
        if self.methods.ecn { Encoding::Classic } else { Encoding::None }
    }
}

shown_by_fields!(ConnectionInfo, SendInfo, PacketRecord, AckInfo, LossInfo, TimeoutInfo, IdleInfo);

given! {
    /// The connection that a controller is made for.
    ConnectionInfo { mss: u64, overhead: u64, initial_window: u64, now: f64, seed: u64 }
}

given! {
    /// A packet about to leave.
    SendInfo {
        now: f64, size: u64, number: u64, retransmission: bool, inflight: u64, app_limited: bool, srtt: Option<f64>,
    }
}

given! {
    /// One packet that was acknowledged or lost.
    PacketRecord {
        number: u64, size: u64, sent_at: f64, delivered: u64, delivered_at: f64, inflight: u64, lost: u64,
        app_limited: bool, retransmission: bool,
    }
}

impl PacketRecord {
    fn of(packet: &PacketInfo) -> Self {
        PacketRecord {
            number: packet.number,
            size: packet.size.0,
            sent_at: since_start(packet.sent_at),
            delivered: packet.delivered.0,
            delivered_at: since_start(packet.delivered_at),
            inflight: packet.inflight.0,
            lost: packet.lost.0,
            app_limited: packet.app_limited,
            retransmission: packet.retransmission,
        }
    }
}

given! {
    /// Everything that one ACK says.
    AckInfo {
        now: f64, acked: Vec<PacketRecord>, lost: Vec<PacketRecord>, newly_acked: u64, growth: u64, newly_lost: u64,
        inflight_before: u64, inflight: u64, delivered: u64, total_lost: u64, rtt: Option<f64>, srtt: f64,
        rtt_variation: f64, min_rtt: f64, ack_delay: f64, round: u64, round_start: bool, accelerate_packets: u64,
        brake_packets: u64, ce_packets: u64, accelerate_bytes: u64, brake_bytes: u64, ce_bytes: u64,
        cwnd_limited: bool, recovery: Word, in_recovery: bool,
    }
}

impl AckInfo {
    fn of(event: &AckEvent<'_>) -> Self {
        let records = |packets: &[PacketInfo]| packets.iter().map(PacketRecord::of).collect();
        AckInfo {
            now: since_start(event.now),
            acked: records(event.acked),
            lost: records(event.lost),
            newly_acked: event.newly_acked.0,
            growth: event.growth.0,
            newly_lost: event.newly_lost.0,
            inflight_before: event.inflight_before.0,
            inflight: event.inflight.0,
            delivered: event.delivered.0,
            total_lost: event.total_lost.0,
            rtt: event.rtt.sample.map(in_seconds),
            srtt: in_seconds(event.rtt.smoothed),
            rtt_variation: in_seconds(event.rtt.variation),
            min_rtt: in_seconds(event.rtt.min),
            ack_delay: in_seconds(event.ack_delay),
            round: event.round,
            round_start: event.round_start,
            accelerate_packets: event.marks.accelerate.packets,
            brake_packets: event.marks.brake.packets,
            ce_packets: event.marks.ce.packets,
            accelerate_bytes: event.marks.accelerate.bytes.0,
            brake_bytes: event.marks.brake.bytes.0,
            ce_bytes: event.marks.ce.bytes.0,
            cwnd_limited: event.cwnd_limited,
            recovery: match event.recovery {
                RecoveryState::Open => Word("open"),
                RecoveryState::Recovery => Word("recovery"),
                RecoveryState::Loss => Word("loss"),
            },
            in_recovery: event.in_recovery(),
        }
    }
}

given! {
    /// The start of a congestion episode.
    LossInfo { now: f64, sent_at: f64, inflight: u64, lost: u64, srtt: f64, min_rtt: f64 }
}

impl LossInfo {
    fn of(event: &LossEvent) -> Self {
        LossInfo {
            now: since_start(event.now),
            sent_at: since_start(event.sent_at),
            inflight: event.inflight.0,
            lost: event.lost.0,
            srtt: in_seconds(event.srtt),
            min_rtt: in_seconds(event.min_rtt),
        }
    }
}

given! {
    /// A timer of loss recovery fired.
    TimeoutInfo { now: f64, kind: Word, inflight: u64, repeated: bool }
}

given! {
    /// The end of an idle period.
    IdleInfo { now: f64, idle: f64, rto: f64 }
}
