//! Hosts from outside: transports that others wrote, with congestion controllers of their own.
//!
//! A host is added to a `Registry` of `brakelight-registry` by `add_host`. Each of its controllers is then
//! a controller by the name `host/controller`: a scenario, a scheme and a command name it like any other.
//! Where a flow has such a controller, both of its ends are the host's, and nothing of the modelled host
//! takes part.
//!
//! The host brings two ends of one connection, as a [`Pair`]. An [`End`] is a state machine without sockets
//! and clocks. Its caller gives it datagrams and the time, asks for datagrams until there are none, and comes
//! back no later than [`End::next_wakeup`]. The caller also brings the application: it writes at the sending
//! end and reads at the receiving one.
//!
//! # The contract
//!
//! - Time never falls from one call to the next. A call may come late: the end serves it as if it were due
//!   then.
//! - An end learns the time from its arguments alone. One that reads a clock of its own must be given a
//!   clock by its adapter, or be refused with the reason.
//! - Equal setups and equal calls give equal datagrams, byte for byte. What is random comes from
//!   [`Setup::random`].
//! - What is read at the receiving end was written at the sending end, once and in order.
//! - A pair lives in one thread. A simulation that has one runs in a thread of its own, and makes all its
//!   pairs there.
//!
//! `brakelight-testkit` holds a host to this contract by one line, `conformance_host!`.

use alloc::boxed::Box;
use alloc::string::String;
use alloc::vec::Vec;
use core::fmt;

use crate::controller::Rtt;
use crate::ecn::{Ecn, Encoding};
use crate::facts::Options;
use crate::parameters::{OptionValues, Parameter, ParameterError};
use crate::random::Random;
use crate::time::Time;
use crate::units::{Bytes, Rate};

/// What a sending end is given beyond what it has sent, in full datagrams.
pub const AHEAD: u64 = 4;

/// Makes both ends of connections, and says what they are.
pub trait HostFactory: fmt::Debug + Send + Sync + 'static {
    /// Returns what the host is.
    fn about(&self) -> About;

    /// Returns its controllers. They stay the same.
    fn controllers(&self) -> Vec<HostedController>;

    /// Returns every option of the controller called `controller` with its value in canonical form, once
    /// `options` are applied in order.
    ///
    /// # Errors
    /// An option is unknown, or its value is refused.
    fn settings(&self, controller: &str, options: Options<'_>) -> Result<OptionValues, ParameterError>;

    /// Returns both ends of a connection that is not yet open.
    ///
    /// # Errors
    /// The reason, in words, why there can be no such connection.
    fn pair(&self, setup: &Setup<'_>) -> Result<Pair, String>;
}

/// What a host is, for people and for the identity of its runs.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct About {
    /// One line: what it is, and where it comes from.
    pub summary: &'static str,
    /// Its version: results of two versions are never taken for one another.
    pub version: &'static str,
    /// Its licence, as SPDX writes it.
    pub licence: &'static str,
    /// Which inner values of the sender can be seen, by the names that [`End::inspect`] gives them.
    pub shows: &'static [&'static str],
    /// What its packets mean by their ECN field: [`Encoding::Classic`] if it sets ECT(0).
    pub encoding: Encoding,
    /// Whether it carries messages without acknowledgement beside the stream.
    pub messages: bool,
}

/// One of a host's controllers.
#[derive(Clone, Debug)]
pub struct HostedController {
    /// Its registered name: `host/controller`.
    pub name: &'static str,
    /// One line: what it is.
    pub summary: &'static str,
    /// Its options.
    pub parameters: fn() -> Vec<Parameter>,
}

/// What a connection is made of.
#[derive(Clone, Debug)]
pub struct Setup<'a> {
    /// The controller's registered name: `host/controller`.
    pub controller: &'a str,
    /// Its options, as [`HostFactory::settings`] returned them.
    pub settings: &'a OptionValues,
    /// The largest UDP payload that the path carries, in bytes: 1,200 or more.
    pub datagram: u16,
    /// The connection's own stream of random numbers.
    pub random: Random,
}

/// Both ends of a connection.
pub struct Pair {
    /// The end that opens the connection and sends the stream.
    pub sender: Box<dyn End>,
    /// The end that answers and reads the stream.
    pub receiver: Box<dyn End>,
}

impl fmt::Debug for Pair {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("Pair").finish_non_exhaustive()
    }
}

/// One end of a connection.
pub trait End: Send {
    /// Opens the connection. Called once, at the sending end, before anything else.
    fn connect(&mut self, now: Time);

    /// A datagram arrived with this ECN field.
    fn receive(&mut self, now: Time, ecn: Ecn, payload: &[u8]);

    /// Writes the UDP payload of the next datagram to send at `now` into `payload`, which is empty. `None`
    /// if there is none; `payload` then stays empty.
    fn transmit(&mut self, now: Time, payload: &mut Vec<u8>) -> Option<Transmit>;

    /// Returns when this end must be called next, if nothing arrives before.
    fn next_wakeup(&self) -> Option<Time>;

    /// Acts on every deadline due by `now`.
    fn on_wakeup(&mut self, now: Time);

    /// Takes the next bytes of the stream to be sent, at most `size` of them: their values do not matter.
    /// Returns how many it took; zero while the connection is not open or the stack has enough.
    ///
    /// While the application has more, the caller keeps [`AHEAD`] full datagrams or more in the stack that
    /// were not sent, so that the stack sees no pause of the application.
    fn write(&mut self, now: Time, size: u64) -> u64;

    /// Returns how many bytes of the stream have been sent at least once, headers and repetitions apart;
    /// `None` from an end that cannot tell. Asked of the sending end alone.
    ///
    /// What the application learns of its backlog follows from it. Without it the caller takes every payload
    /// for new bytes of the stream. That is too many, so data that wait in the stack count as sent.
    fn stream_sent(&self) -> Option<u64> {
        None
    }

    /// The stream ends with what has been written. Called at most once.
    fn finish(&mut self, _now: Time) {}

    /// Returns how many bytes of the stream arrived since the last call, with nothing missing before them.
    fn read(&mut self, now: Time) -> u64;

    /// Sends a message beside the stream. Returns `false` if it cannot yet, or never can.
    fn send_message(&mut self, _now: Time, _message: &[u8]) -> bool {
        false
    }

    /// Returns the next message that arrived.
    fn take_message(&mut self) -> Option<Vec<u8>> {
        None
    }

    /// Returns what the sender shows of itself. Asked of the sending end alone.
    fn state(&self) -> SenderState {
        SenderState::default()
    }

    /// Returns the newest RTT sample that was not taken yet. Asked of the sending end alone.
    fn take_rtt_sample(&mut self) -> Option<crate::time::Duration> {
        None
    }

    /// Calls `visit` with the controller's inner values, by name, in the unit the name ends in.
    fn inspect(&self, _visit: &mut dyn FnMut(&'static str, f64)) {}

    /// Returns why the connection is over, if it ended before its time.
    fn closed(&self) -> Option<String> {
        None
    }
}

/// What is to be known of a datagram besides its payload.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Transmit {
    /// Its ECN field.
    pub ecn: Ecn,
    /// Whether it carries the stream, or anything else that asks for an acknowledgement. An end that cannot
    /// know says `true` at the sending end and `false` at the receiving one.
    pub data: bool,
}

/// What a sender shows of itself. Sizes are in bytes, counts since the connection opened.
#[derive(Clone, Copy, Debug, Default, PartialEq)]
pub struct SenderState {
    /// The congestion window; zero before the connection opens.
    pub cwnd: Bytes,
    /// The rate at which it paces, if it says so.
    pub pacing_rate: Option<Rate>,
    /// Bytes in flight, if it shows them.
    pub inflight: Option<Bytes>,
    /// The RTT; `None` before the first sample.
    pub rtt: Option<Rtt>,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost, some of them by mistake.
    pub lost_packets: u64,
}
