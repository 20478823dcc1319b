//! The controller `wasm`: a module in WebAssembly decides, as a row like any other.
//!
//! ```text
//! each event:   the module is told by its export, and its decision is read from its buffer
//! a trap, used-up fuel, a decision that is no number:   it decides nothing more, and its run has failed
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | module | `module` | a file | NewReno, which comes with this crate | `docs/arena.md` |
//!
//! Limits: of packets that one ACK acknowledges the module is told the newest; it sets no headers and no
//! codepoint but ECT(0). A window is raised to one packet, and lowered to 1 TB; a pacing rate is moved into
//! 1 kbit/s to 10 Tbit/s.

use std::fmt;

use brakelight_core::controller::{
    AckEvent, Connection, Controller, ControllerFailure, IdleEvent, LossEvent, PacketInfo, Recovery,
    RecoveryState, SendDirective, SendEvent, SpuriousEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::packet::Header;
use brakelight_core::parameters;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{Algorithm, CustomController, Needs, RegisterError, Registry};
use brakelight_senders::controller::external::{FASTEST, LARGEST, SLOWEST};
use wasmi::errors::ErrorKind;
use wasmi::{Instance, Memory, Store, StoreLimits, TrapCode, TypedFunc};

use crate::abi::{BYTES, ECN, Field, LEAST_TIMER_NS, MEMORY, ModuleEvent, OWN_RECOVERY};
use crate::module::{FUEL, FUEL_OF_INIT, WasmModule, one_line};

parameters! {
    /// The settings of a controller that a module decides.
    pub struct Config {
        /// The module's file; `shipped` is NewReno, which comes with the program.
        module: WasmModule = WasmModule::shipped(), in .., from "docs/arena.md";
    }
}

/// A module's instance, and what it decided last.
pub struct Sandboxed {
    module: WasmModule,
    store: Store<StoreLimits>,
    instance: Instance,
    memory: Memory,
    calls: Calls,
    mss: Bytes,
    /// The time of the last event: some bring none.
    now: Time,
    decided: Decided,
    failure: Option<ControllerFailure>,
}

/// The module's functions; those that it does not have are not called.
type Calls = [Option<TypedFunc<(), ()>>; ModuleEvent::ALL.len()];

/// What a module decided last.
#[derive(Clone, Copy, Debug)]
struct Decided {
    cwnd: Bytes,
    pacing_rate: Option<Rate>,
    next_timer: Option<Time>,
    ssthresh: Option<Bytes>,
}

impl Sandboxed {
    /// Returns a controller at the start of its connection, whose first decision is taken.
    fn new(module: &WasmModule, connection: &Connection) -> Self {
        let mut made = Self::instance(module, connection.mss, connection.initial_window);
        // 53 bits: the whole numbers of an f64.
        let seed = connection.random.clone().bits() >> 11;
        made.write(Field::Mss, connection.mss.as_f64());
        made.write(Field::Overhead, connection.overhead.as_f64());
        made.write(Field::InitialWindow, connection.initial_window.as_f64());
        made.write(Field::Seed, seed as f64);
        made.write(Field::Cwnd, connection.initial_window.as_f64());
        made.tell(ModuleEvent::Init, connection.now);
        made
    }

    /// An instance that was told nothing yet.
    fn instance(module: &WasmModule, mss: Bytes, cwnd: Bytes) -> Self {
        // It was tried when the module was read, and asks for nothing that depends on the time or the place.
        let (store, instance) = module.instantiate().unwrap_or_else(|reason| unreachable!("{reason}"));
        let memory = instance.get_memory(&store, MEMORY).unwrap_or_else(|| unreachable!("it was checked"));
        let calls = ModuleEvent::ALL.map(|event| instance.get_typed_func(&store, event.export()).ok());
        let decided = Decided { cwnd, pacing_rate: None, next_timer: None, ssthresh: None };
        Sandboxed {
            module: module.clone(),
            store,
            instance,
            memory,
            calls,
            mss,
            now: Time::ZERO,
            decided,
            failure: None,
        }
    }

    fn has(&self, event: ModuleEvent) -> bool {
        self.calls[event as usize].is_some()
    }

    /// The fields, in the module's memory.
    fn buffer(&mut self) -> &mut [u8] {
        let at = self.module.buffer();
        // Memory never shrinks, and the buffer was inside when the module was read.
        &mut self.memory.data_mut(&mut self.store)[at..at + BYTES]
    }

    fn write(&mut self, field: Field, value: f64) {
        self.buffer()[field.offset()..field.offset() + 8].copy_from_slice(&value.to_le_bytes());
    }

    /// Writes fields that lie one after the other, from `first` on.
    fn write_from<const N: usize>(&mut self, first: Field, values: [f64; N]) {
        let fields = self.buffer()[first.offset()..].chunks_exact_mut(8);
        for (field, value) in fields.zip(values) {
            field.copy_from_slice(&value.to_le_bytes());
        }
    }

    /// Calls the module's function for `event`, if it has one, and reads its decision.
    fn tell(&mut self, event: ModuleEvent, now: Time) {
        if self.failure.is_some() {
            return;
        }
        self.now = now;
        if let Some(function) = self.calls[event as usize] {
            self.write(Field::Now, now.as_secs_f64());
            let fuel = if event == ModuleEvent::Init { FUEL_OF_INIT } else { FUEL };
            let called = self.store.set_fuel(fuel).and_then(|()| function.call(&mut self.store, ()));
            if let Err(error) = called {
                let reason = match error.kind() {
                    ErrorKind::TrapCode(TrapCode::OutOfFuel) => {
                        format!("it did not come to an end within {fuel} units of fuel")
                    }
                    _ => one_line(&error),
                };
                return self.fail(event, now, &reason);
            }
        }
        self.read(event, now);
    }

    /// Reads the decision.
    fn read(&mut self, event: ModuleEvent, now: Time) {
        const FIRST: Field = Field::Cwnd;
        let mut numbers = [0.0; 4];
        let fields = self.buffer()[FIRST.offset()..].chunks_exact(8);
        for (number, field) in numbers.iter_mut().zip(fields) {
            *number = f64::from_le_bytes(field.try_into().unwrap_or_default());
        }
        let fields = [Field::Cwnd, Field::PacingRate, Field::NextTimer, Field::Ssthresh];
        for (number, field) in numbers.into_iter().zip(fields) {
            if !number.is_finite() || number < 0.0 {
                let (name, unit, _) = field.about();
                return self.fail(
                    event,
                    now,
                    &format!("it set {name} to {number}: valid is 0 {unit} or more"),
                );
            }
        }
        let [cwnd, rate, timer, ssthresh] = numbers;
        let some = |number: f64| (number > 0.0).then_some(number);
        self.decided = Decided {
            cwnd: Bytes(cwnd as u64).min(LARGEST).max(self.mss),
            pacing_rate: some(rate).map(|rate| Rate::from_bps_f64(8.0 * rate).clamp(SLOWEST, FASTEST)),
            next_timer: some(timer).map(|at| Time::ZERO + Duration::from_secs_f64(at)),
            ssthresh: some(ssthresh).map(|bytes| Bytes(bytes as u64)),
        };
        if event == ModuleEvent::Timer {
            let least = now + Duration::from_nanos(LEAST_TIMER_NS);
            self.decided.next_timer = self.decided.next_timer.map(|at| at.max(least));
        }
    }

    /// It decides nothing more, and sends one packet at a time.
    fn fail(&mut self, event: ModuleEvent, now: Time, reason: &str) {
        let reason = format!("{}: `{}`: {reason}", self.module.source(), event.export());
        self.failure = Some(ControllerFailure { at: now, reason });
        self.decided = Decided { cwnd: self.mss, pacing_rate: None, next_timer: None, ssthresh: None };
    }

    fn tell_of_loss(&mut self, event: ModuleEvent, loss: &LossEvent) {
        self.write(Field::Inflight, loss.inflight.as_f64());
        self.write(Field::Srtt, loss.srtt.as_secs_f64());
        self.write(Field::MinRtt, loss.min_rtt.as_secs_f64());
        self.write(Field::NewlyLost, loss.lost.as_f64());
        self.write(Field::SentAt, loss.sent_at.as_secs_f64());
        self.tell(event, loss.now);
    }
}

/// A copy has the same memory and the same globals; nothing else of a module can change.
impl Clone for Sandboxed {
    fn clone(&self) -> Self {
        let mut copy = Self::instance(&self.module, self.mss, self.decided.cwnd);
        let size = |of: &Self| of.memory.size(&of.store);
        let more = size(self).saturating_sub(size(&copy));
        let grown = copy.memory.grow(&mut copy.store, more);
        debug_assert!(grown.is_ok(), "the original has as much");
        let bytes = self.memory.data(&self.store);
        copy.memory.data_mut(&mut copy.store)[..bytes.len()].copy_from_slice(bytes);
        for name in self.module.globals() {
            let of = |instance: &Instance, store: &Store<StoreLimits>| instance.get_global(store, name);
            if let (Some(own), Some(other)) =
                (of(&self.instance, &self.store), of(&copy.instance, &copy.store))
            {
                // One that cannot be set has the same value.
                let _ = other.set(&mut copy.store, own.get(&self.store));
            }
        }
        copy.now = self.now;
        copy.decided = self.decided;
        copy.failure.clone_from(&self.failure);
        copy
    }
}

impl fmt::Debug for Sandboxed {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut shown = f.debug_struct("Sandboxed");
        shown.field("module", &self.module).field("decided", &self.decided);
        shown.field("failure", &self.failure).finish_non_exhaustive()
    }
}

/// 1 for yes, 0 for no.
fn flag(value: bool) -> f64 {
    f64::from(u8::from(value))
}

impl Controller for Sandboxed {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        if self.has(ModuleEvent::Send) {
            self.write(Field::Inflight, event.inflight.as_f64());
            self.write(Field::Srtt, event.srtt.map_or(0.0, Duration::as_secs_f64));
            self.write_from(
                Field::Size,
                [
                    event.size.as_f64(),
                    event.number as f64,
                    flag(event.retransmission),
                    flag(event.app_limited),
                ],
            );
            self.tell(ModuleEvent::Send, event.now);
        }
        SendDirective { ecn: self.encoding().sent(), header: Header::None, tag: 0, cwr: false }
    }

    fn decides_on_send(&self) -> bool {
        self.has(ModuleEvent::Send)
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let newest = event.acked.last();
        let of_newest = |value: fn(&PacketInfo) -> f64| newest.map_or(0.0, value);
        self.write_from(
            Field::Inflight,
            [
                event.inflight.as_f64(),
                event.rtt.smoothed.as_secs_f64(),
                event.rtt.min.as_secs_f64(),
                event.rtt.sample.map_or(0.0, Duration::as_secs_f64),
                event.rtt.variation.as_secs_f64(),
                event.newly_acked.as_f64(),
                event.growth.as_f64(),
                event.newly_lost.as_f64(),
                event.inflight_before.as_f64(),
                event.delivered.as_f64(),
                event.total_lost.as_f64(),
                event.ack_delay.as_secs_f64(),
                event.round as f64,
                flag(event.round_start),
                flag(event.cwnd_limited),
                match event.recovery {
                    RecoveryState::Open => 0.0,
                    RecoveryState::Recovery => 1.0,
                    RecoveryState::Loss => 2.0,
                },
                event.marks.ce.packets as f64,
                event.marks.ce.bytes.as_f64(),
                of_newest(|packet| packet.sent_at.as_secs_f64()),
                of_newest(|packet| packet.delivered.as_f64()),
                of_newest(|packet| packet.delivered_at.as_secs_f64()),
                of_newest(|packet| packet.inflight.as_f64()),
                of_newest(|packet| flag(packet.app_limited)),
            ],
        );
        self.tell(ModuleEvent::Ack, event.now);
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.tell_of_loss(ModuleEvent::Loss, event);
    }

    fn on_ce(&mut self, event: &LossEvent) {
        self.tell_of_loss(if self.has(ModuleEvent::Ce) { ModuleEvent::Ce } else { ModuleEvent::Loss }, event);
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        self.write(Field::Inflight, event.inflight.as_f64());
        let kind = match event.kind {
            Timeout::Rto => 1.0,
            Timeout::Pto => 2.0,
            Timeout::PersistentCongestion => 3.0,
        };
        self.write_from(Field::Kind, [kind, flag(event.repeated)]);
        self.tell(ModuleEvent::Timeout, event.now);
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.write(Field::AfterTimeout, flag(event.timeout));
        self.tell(ModuleEvent::SpuriousLoss, event.now);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.tell(ModuleEvent::RecoveryExit, now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.write_from(Field::Idle, [event.idle.as_secs_f64(), event.rto.as_secs_f64()]);
        self.tell(ModuleEvent::IdleRestart, event.now);
    }

    fn cap_cwnd(&mut self, most: Bytes) {
        if self.decided.cwnd > most {
            self.write(Field::Cwnd, most.max(self.mss).as_f64());
            self.tell(ModuleEvent::CapCwnd, self.now);
        }
    }

    fn on_mtu_change(&mut self, mss: Bytes) {
        self.mss = mss;
        self.write(Field::Mss, mss.as_f64());
        self.tell(ModuleEvent::MtuChange, self.now);
    }

    fn on_timer(&mut self, now: Time) {
        // One that does not ask anew is not called again.
        self.decided.next_timer = None;
        self.write(Field::NextTimer, 0.0);
        self.tell(ModuleEvent::Timer, now);
    }

    fn next_timer(&self) -> Option<Time> {
        self.decided.next_timer.filter(|_| self.has(ModuleEvent::Timer))
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
        if self.module.traits() & OWN_RECOVERY != 0 { Recovery::Own } else { Recovery::Prr }
    }

    fn encoding(&self) -> Encoding {
        if self.module.traits() & ECN != 0 { Encoding::Classic } else { Encoding::None }
    }

    fn failure(&self) -> Option<&ControllerFailure> {
        self.failure.as_ref()
    }
}

impl Algorithm for Sandboxed {
    type Config = Config;
    const NAME: &'static str = "wasm";
    const SUMMARY: &'static str =
        "A module in WebAssembly that decides, in a sandbox: what anybody wrote in any language";
    const FILES: Option<(&'static str, &'static str)> = Some((".wasm", "module"));
}

impl CustomController for Sandboxed {
    /// The module that comes with it shows how a module is run.
    const NEEDS: Needs = Needs { demonstration: true, ..Needs::PLAIN };

    fn build(config: &Config, connection: &Connection) -> Self {
        Sandboxed::new(&config.module, connection)
    }
}

/// Adds the controller to `registry`.
///
/// # Errors
/// Another controller has its name.
pub fn add_to(registry: &mut Registry) -> Result<(), RegisterError> {
    registry.add_controller::<Sandboxed>()
}
