//! What is to be known of an algorithm by those who do not run it: its name, its options, what it needs and
//! what it is. Nobody tells algorithms apart by their names.
//!
//! The tables of the crates above give these facts, one line an algorithm. An algorithm from outside gives
//! them by a trait of its kind.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::ecn::Encoding;
use crate::packet::HeaderKind;
use crate::parameters::{Parameter, ParameterError};
use crate::queue::SPEAKS_ALL;
use crate::suggest::DidYouMean;

/// An option as given: name and text.
pub type Options<'a> = &'a [(&'a str, &'a str)];

/// Why something could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum BuildError {
    /// No such algorithm.
    Unknown {
        /// `controller`, `feedback` or `queue`.
        kind: &'static str,
        /// The name as given.
        name: String,
        /// The names that exist.
        known: String,
    },
    /// The name is that of a host's controller, `host/controller`, and the host was not added.
    NoHost {
        /// The name as given.
        name: String,
        /// The host.
        host: String,
    },
    /// An option was refused.
    Option {
        /// The algorithm.
        name: &'static str,
        /// What was wrong.
        error: ParameterError,
    },
}

impl fmt::Display for BuildError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            BuildError::Unknown { kind, name, known } => {
                write!(f, "unknown {kind} `{name}`{}: valid are {known}", DidYouMean::of_list(name, known))
            }
            BuildError::NoHost { name, host } => write!(
                f,
                "unknown controller `{name}`: there is no host `{host}` in this program; `brakelight list hosts` shows \
                 those of the command, and how to build more"
            ),
            BuildError::Option { name, error } => write!(f, "{name}: {error}"),
        }
    }
}

impl core::error::Error for BuildError {}

/// One line of a table, for people and for generic tests.
#[derive(Clone, Debug)]
pub struct Entry {
    /// The name used in files and on the command line.
    pub name: &'static str,
    /// Other names for it.
    pub aliases: &'static [&'static str],
    /// One line: what it is, and where it comes from.
    pub summary: &'static str,
    /// Where its parameters are listed.
    pub parameters: Listed,
}

impl Entry {
    /// Returns its parameters.
    pub fn parameters(&self) -> Vec<Parameter> {
        match self.parameters {
            Listed::By(describe) => describe(),
            Listed::Here(list) => list.to_vec(),
        }
    }
}

/// Where the parameters of an [`Entry`] are listed.
#[derive(Clone, Copy, Debug)]
pub enum Listed {
    /// By the type of the settings.
    By(fn() -> Vec<Parameter>),
    /// Here: those of a factory, for which no type stands.
    Here(&'static [Parameter]),
}

/// Returns `true` if `entry` is called `name`, by its own name or an alias.
pub fn is_called(entry: &Entry, name: &str) -> bool {
    entry.name == name || entry.aliases.contains(&name)
}

/// Returns the entry called `name`, by its own name or an alias.
pub fn find<'a>(entries: impl IntoIterator<Item = &'a Entry>, name: &str) -> Option<&'a Entry> {
    entries.into_iter().find(|entry| is_called(entry, name))
}

/// That no algorithm of this `kind` is called `name`, with the names that there are.
pub fn unknown<'a>(
    kind: &'static str,
    name: &str,
    entries: impl IntoIterator<Item = &'a Entry>,
) -> BuildError {
    BuildError::Unknown { kind, name: name.to_string(), known: names(entries) }
}

/// Returns the names of `entries`, as a list for people.
pub fn names<'a>(entries: impl IntoIterator<Item = &'a Entry>) -> String {
    entries.into_iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

/// A protocol whose sender, routers and receiver share constants: a load of 0.9 in the marks of one is
/// another load to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name: parts with the same name belong together.
    pub name: &'static str,
    /// The options that must have the same value in any two of its parts that both have them.
    pub shared: &'static [&'static str],
    /// The options with which its parts share a queue with flows of no such protocol.
    pub beside_others: &'static [(&'static str, &'static str)],
}

impl Protocol {
    /// BMCC's.
    pub const BMCC: Protocol = Protocol {
        name: "bmcc",
        shared: &["interval", "eta_0", "eta", "u", "bits", "coexist"],
        beside_others: &[("coexist", "true")],
    };
    /// MLCP's.
    pub const MLCP: Protocol =
        Protocol { name: "mlcp", shared: &["interval", "eta_0", "eta", "u"], beside_others: &[] };
    /// VCP's.
    pub const VCP: Protocol = Protocol { name: "vcp", shared: &["interval", "low_load"], beside_others: &[] };
}

/// What a controller needs of its receiver, its routers and its host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// The feedback its receiver runs when nothing else is said.
    pub feedback: &'static str,
    /// The queue it brings with it when nothing else is said, if there is one.
    pub queue: Option<&'static str>,
    /// The congestion header in which its routers answer, if they use one.
    pub reads: Option<HeaderKind>,
    /// How many of the routers on its path must write that header.
    pub routers: Routers,
    /// The host profile it was written for.
    pub host: Host,
    /// Whether its pacing rate is what it decides, so that a host which does not keep to the rate does not
    /// run it.
    pub rate: bool,
    /// Whether it must be told when each packet arrived.
    pub receive_times: bool,
    /// Whether an ACK of every tenth packet serves it as well as one of every other: it decides by losses,
    /// and counts the bytes acknowledged.
    pub sparse_acks: bool,
    /// Whether its window and rate are set from outside, so that it decides nothing by itself.
    pub driven: bool,
    /// Whether its defaults show how something is done rather than what to deploy: a comparison runs it only
    /// where it is named.
    pub demonstration: bool,
    /// Whether its window may grow though it was not used: it follows a model of the path, or what routers or
    /// the receiver say. The others grow only if [`AckEvent::cwnd_limited`] says so (RFC 9002 section 7.8).
    ///
    /// [`AckEvent::cwnd_limited`]: crate::controller::AckEvent::cwnd_limited
    pub grows_unused: bool,
    /// Linux's own of the same kind.
    pub kernel: Option<Kernel>,
    /// How else a Linux host has it, for people: a command, or where to find a kernel with it.
    pub on_linux: Option<&'static str>,
    /// The protocol with whose other parts it shares constants.
    pub protocol: Option<Protocol>,
}

impl Needs {
    /// What an ordinary sender of TCP needs.
    pub const PLAIN: Needs = Needs {
        feedback: "rfc3168",
        queue: None,
        reads: None,
        routers: Routers::Any,
        host: Host::Tcp,
        rate: false,
        receive_times: false,
        sparse_acks: false,
        driven: false,
        demonstration: false,
        grows_unused: false,
        kernel: None,
        on_linux: None,
        protocol: None,
    };
}

/// How many routers on the path must write the header that a controller reads.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Routers {
    /// None need to.
    Any,
    /// At least one: the controller answers losses as TCP does, so links of other kinds may be on its path
    /// (katabi02 3.3).
    One,
    /// All: the controller obeys its routers alone.
    Every,
}

/// The profiles of the modelled host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// SACK, RACK-TLP, PRR, RTO with F-RTO, delayed ACKs of 40 ms.
    Tcp,
    /// RFC 9002, delayed ACKs of 25 ms.
    Quic,
    /// `Agent/TCP/Sack1` of ns-2.35: SACK without RACK, PRR and undo, timers in ticks of 10 ms, an ACK for
    /// every packet.
    Ns2,
}

/// A congestion control module of Linux.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Kernel {
    /// Its name in `net.ipv4.tcp_available_congestion_control`.
    pub name: &'static str,
    /// Options of ours that only say what Linux's does.
    pub options: &'static [&'static str],
}

/// What the ACKs of a feedback carry besides acknowledgements and counts of marks.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Carries {
    /// Nothing.
    Nothing,
    /// The congestion header of the newest packet.
    Header,
    /// An estimate of the load factor. It is made of the mark of each packet, so a sender that is told those
    /// can make it itself.
    LoadFactor,
    /// A forecast of the link, of which only the receiver knows enough.
    Forecast,
    /// When each packet arrived.
    ReceiveTimes,
}

/// What a queue is, whatever its settings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Traits {
    /// The encodings of the flows that may pass it.
    pub speaks: &'static [Encoding],
    /// The congestion header it writes, which no real packet has room for.
    pub writes: Option<HeaderKind>,
    /// The queue that takes its place, with the same options, where flows pass that do not speak its
    /// encoding.
    pub beside_others: Option<&'static str>,
    /// What a scheme uses in place of its defaults.
    pub preset: Option<Preset>,
    /// The protocol with whose other parts it shares constants.
    pub protocol: Option<Protocol>,
    /// How a Linux router has it.
    pub on_linux: Option<Qdisc>,
    /// What its cost per packet is measured with.
    pub bench: Bench,
}

impl Traits {
    /// A queue that all flows may pass.
    pub const PLAIN: Traits = Traits {
        speaks: SPEAKS_ALL,
        writes: None,
        beside_others: None,
        preset: None,
        protocol: None,
        on_linux: None,
        bench: Bench::PLAIN,
    };
}

/// How a queue is had on a Linux router.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Qdisc {
    /// The command, in which `DEV` and `RATE` stand for the owner's.
    pub command: &'static str,
    /// Options of the queue, and what the command calls them.
    pub options: &'static [(&'static str, &'static str)],
    /// Options and values that it has not.
    pub lacks: &'static [(&'static str, &'static str)],
}

/// What a queue's cost per packet is measured with: rows for few and many of what the cost may depend on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Bench {
    /// Options under which it acts on a queue that stands for 1.5 ms without dropping everything.
    pub options: &'static [(&'static str, &'static str)],
    /// Packets that pass in 20 ms.
    pub packets: &'static [u64],
    /// Flows that they are of.
    pub flows: &'static [u64],
}

impl Bench {
    /// The usual load: 1 Gbit/s of 16 flows.
    pub const PLAIN: Bench = Bench { options: &[], packets: &[1667], flows: &[16] };
}

/// Options of a queue in schemes, unless the scheme gives others: for paths of 100 ms, as in the ABC paper's
/// emulator and the reference runs.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Preset {
    /// The options.
    pub options: &'static [(&'static str, &'static str)],
    /// Why, for people.
    pub why: &'static str,
}
