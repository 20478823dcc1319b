//! Stopgap: a transport of one's own as a host, with a fixed window and no cleverness. The receiver
//! answers every datagram with the first byte that it lacks; what is not answered for a while is sent again
//! from there (go-back-N).

use std::sync::Arc;

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::host::{About, End, HostFactory, HostedController, Pair, SenderState, Setup, Transmit};
use brakelight_core::parameters;
use brakelight_core::parameters::{OptionValues, ParameterError, Parameters};
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{Options, RegisterError, Registry};

parameters! {
    /// Settings of the one controller.
    pub struct Config {
        /// Datagrams in flight, at most.
        window: u64 = 20, in 1..=10_000, from "chosen here";
    }
}

/// How long the sender waits for an answer.
const PATIENCE: Duration = Duration::from_millis(250);
/// Bytes of the offset in front.
const OFFSET: usize = 8;

/// Adds the host to `registry`.
pub fn add_to(registry: &mut Registry) -> Result<(), RegisterError> {
    registry.add_host("stopgap", Arc::new(Stopgap))
}

#[derive(Debug)]
struct Stopgap;

impl HostFactory for Stopgap {
    fn about(&self) -> About {
        let summary = "Stopgap: go-back-N, a transport that is an example";
        let (version, licence) = (env!("CARGO_PKG_VERSION"), "Apache-2.0 OR MIT");
        About { summary, version, licence, shows: &["cwnd_bytes"], encoding: Encoding::None, messages: false }
    }
    fn controllers(&self) -> Vec<HostedController> {
        let summary = "A window that never changes";
        vec![HostedController { name: "stopgap/window", summary, parameters: Config::describe }]
    }
    fn settings(&self, _: &str, options: Options<'_>) -> Result<OptionValues, ParameterError> {
        Ok(Config::from_options(options.iter().copied())?.settings())
    }
    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String> {
        let options = setup.settings.iter().map(|(name, value)| (*name, value.as_str()));
        let config = Config::from_options(options).map_err(|error| error.to_string())?;
        let payload = u64::from(setup.datagram) - OFFSET as u64;
        let sender = Sender { payload, window: config.window * payload, ..Sender::default() };
        Ok(Pair { sender: Box::new(sender), receiver: Box::new(Receiver::default()) })
    }
}

/// Datagrams carry the offset of their first byte in the stream.
#[derive(Default)]
struct Sender {
    payload: u64,
    window: u64,
    written: u64,
    next: u64,
    /// The first byte that is not answered, and when that changed or was sent last.
    first: u64,
    since: Time,
    sent: u64,
    again: u64,
}

impl End for Sender {
    fn connect(&mut self, _: Time) {}
    fn receive(&mut self, now: Time, _: Ecn, payload: &[u8]) {
        let Ok(offset) = payload.try_into().map(u64::from_le_bytes) else { return };
        if offset > self.first {
            (self.first, self.since, self.next) = (offset, now, self.next.max(offset));
        }
    }
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        let size = (self.written - self.next).min(self.payload);
        if size == 0 || self.next + size > self.first + self.window {
            return None;
        }
        if self.next == self.first {
            self.since = now;
        }
        payload.extend(self.next.to_le_bytes());
        payload.resize(OFFSET + size as usize, 0);
        (self.next, self.sent) = (self.next + size, self.sent + 1);
        Some(Transmit { ecn: Ecn::NotEct, data: true })
    }
    fn next_wakeup(&self) -> Option<Time> {
        (self.next > self.first).then(|| self.since + PATIENCE)
    }
    fn on_wakeup(&mut self, now: Time) {
        if self.next_wakeup().is_some_and(|at| at <= now) {
            self.again += (self.next - self.first).div_ceil(self.payload);
            (self.next, self.since) = (self.first, now);
        }
    }
    fn write(&mut self, _: Time, size: u64) -> u64 {
        let taken = size.min((self.first + 2 * self.window).saturating_sub(self.written));
        self.written += taken;
        taken
    }
    fn read(&mut self, _: Time) -> u64 {
        0
    }
    fn state(&self) -> SenderState {
        let (cwnd, inflight) = (Bytes(self.window), Some(Bytes(self.next - self.first)));
        let (sent_packets, lost_packets) = (self.sent, self.again);
        SenderState { cwnd, inflight, sent_packets, lost_packets, ..SenderState::default() }
    }
}

#[derive(Default)]
struct Receiver {
    next: u64,
    arrived: u64,
    answers: u64,
}

impl End for Receiver {
    fn connect(&mut self, _: Time) {}
    fn receive(&mut self, _: Time, _: Ecn, payload: &[u8]) {
        let Some((offset, bytes)) = payload.split_first_chunk::<OFFSET>() else { return };
        if u64::from_le_bytes(*offset) == self.next {
            self.next += bytes.len() as u64;
            self.arrived += bytes.len() as u64;
        }
        self.answers += 1;
    }
    fn transmit(&mut self, _: Time, payload: &mut Vec<u8>) -> Option<Transmit> {
        self.answers = self.answers.checked_sub(1)?;
        payload.extend(self.next.to_le_bytes());
        Some(Transmit { ecn: Ecn::NotEct, data: false })
    }
    fn next_wakeup(&self) -> Option<Time> {
        None
    }
    fn on_wakeup(&mut self, _: Time) {}
    fn write(&mut self, _: Time, _: u64) -> u64 {
        0
    }
    fn read(&mut self, _: Time) -> u64 {
        std::mem::take(&mut self.arrived)
    }
}
