//! The tables: one line per algorithm. Everything that lists algorithms (factories, dispatch on the packet path, names,
//! docs, command line, conformance suite) is generated from these lines.

use alloc::string::{String, ToString};
use alloc::vec::Vec;
use core::fmt;

use crate::controller::{self, Connection, Controller};
use crate::ecn::Encoding;
use crate::feedback::{self, Feedback};
use crate::packet::Packet;
use crate::parameters::{Parameter, ParameterError, Parameters};
use crate::queue::{self, Place, Queue};

/// An option as given: name and text.
pub type Options<'a> = &'a [(&'a str, &'a str)];

/// Why something could not be built.
#[derive(Clone, Debug, PartialEq, Eq)]
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
                write!(f, "unknown {kind} `{name}`: valid are {known}")
            }
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
    /// Its parameters.
    pub parameters: fn() -> Vec<Parameter>,
}

/// What a controller brings with it when nothing else is said.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Companions {
    /// The feedback its receiver runs.
    pub feedback: &'static str,
    /// The queue it cannot do without, if there is one.
    pub queue: Option<&'static str>,
    /// The host profile it was written for.
    pub host: Host,
}

/// The two profiles of the modelled host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// SACK, RACK-TLP, PRR, RTO with F-RTO, delayed ACKs of 40 ms.
    Tcp,
    /// RFC 9002, delayed ACKs of 25 ms.
    Quic,
}

fn names(entries: &[Entry]) -> String {
    entries.iter().map(|entry| entry.name).collect::<Vec<_>>().join(", ")
}

macro_rules! registry {
    (
        controllers { $( $(#[$cm:meta])* $CVar:ident($cmod:ident :: $CTy:ident) = $cname:literal $(| $calias:literal)*,
            feedback $cfeed:literal, queue $cqueue:expr, host $chost:ident, $csum:literal; )* }
        feedbacks { $( $FVar:ident($fmod:ident :: $FTy:ident) = $fname:literal, $fsum:literal; )* }
        queues { $( $QVar:ident($qmod:ident :: $QTy:ident) = $qname:literal $(| $qalias:literal)*,
            speaks $qspeaks:expr, $qsum:literal; )* }
    ) => {
        /// Every controller, by name.
        pub const CONTROLLERS: &[Entry] = &[$( Entry {
            name: $cname, aliases: &[$($calias),*], summary: $csum,
            parameters: <controller::$cmod::Config as Parameters>::describe,
        }, )*];

        /// Every feedback, by name.
        pub const FEEDBACKS: &[Entry] = &[$( Entry {
            name: $fname, aliases: &[], summary: $fsum,
            parameters: <feedback::$fmod::Config as Parameters>::describe,
        }, )*];

        /// Every queue, by name.
        pub const QUEUES: &[Entry] = &[$( Entry {
            name: $qname, aliases: &[$($qalias),*], summary: $qsum,
            parameters: <queue::$qmod::Config as Parameters>::describe,
        }, )*];

        /// A controller of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyController { $( #[doc = $csum] $CVar(controller::$cmod::$CTy), )* }

        /// A controller's settings, checked, ready to build any number of instances.
        #[derive(Clone, Debug, PartialEq)]
        pub enum ControllerConfig { $( #[doc = $csum] $CVar(controller::$cmod::Config), )* }

        impl ControllerConfig {
            /// Finds the controller and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $cname $(|| name == $calias)* {
                    return controller::$cmod::Config::from_options(options.iter().copied())
                        .map(ControllerConfig::$CVar)
                        .map_err(|error| BuildError::Option { name: $cname, error });
                } )*
                Err(BuildError::Unknown { kind: "controller", name: name.to_string(), known: names(CONTROLLERS) })
            }

            /// The registered name.
            pub const fn name(&self) -> &'static str {
                match self { $( ControllerConfig::$CVar(_) => $cname, )* }
            }

            /// What it brings with it.
            pub const fn companions(&self) -> Companions {
                match self { $( ControllerConfig::$CVar(_) => Companions {
                    feedback: $cfeed, queue: $cqueue, host: Host::$chost,
                }, )* }
            }

            /// Options of the feedback it brings that its own settings ask for.
            pub fn feedback_options(&self) -> Options<'static> {
                match self {
                    ControllerConfig::Abc(config) if config.other.needs_receive_times() => &[("receive_times", "true")],
                    _ => &[],
                }
            }

            /// An instance for a new connection.
            pub fn build(&self, connection: &Connection) -> AnyController {
                match self { $( ControllerConfig::$CVar(config) => {
                    AnyController::$CVar(controller::$cmod::$CTy::new(config.clone(), connection))
                } )* }
            }
        }

        impl Controller for AnyController {
            dispatch_controller! { $($CVar)* }
        }

        /// A feedback of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        pub enum AnyFeedback { $( #[doc = $fsum] $FVar(feedback::$fmod::$FTy), )* }

        /// A feedback's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum FeedbackConfig { $( #[doc = $fsum] $FVar(feedback::$fmod::Config), )* }

        impl FeedbackConfig {
            /// Finds the feedback and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $fname {
                    return feedback::$fmod::Config::from_options(options.iter().copied())
                        .map(FeedbackConfig::$FVar)
                        .map_err(|error| BuildError::Option { name: $fname, error });
                } )*
                Err(BuildError::Unknown { kind: "feedback", name: name.to_string(), known: names(FEEDBACKS) })
            }

            /// The registered name.
            pub const fn name(&self) -> &'static str {
                match self { $( FeedbackConfig::$FVar(_) => $fname, )* }
            }

            /// An instance for a new connection.
            pub fn build(&self, receiver: &feedback::Receiver) -> AnyFeedback {
                match self { $( FeedbackConfig::$FVar(config) => {
                    AnyFeedback::$FVar(feedback::$fmod::$FTy::new(config.clone(), receiver))
                } )* }
            }
        }

        impl Feedback for AnyFeedback {
            fn on_packet(&mut self, arrival: &feedback::Arrival) -> feedback::AckAction {
                match self { $( AnyFeedback::$FVar(inner) => inner.on_packet(arrival), )* }
            }
            fn on_ack_sent(&mut self, now: crate::time::Time, flush: bool) -> feedback::Echo {
                match self { $( AnyFeedback::$FVar(inner) => inner.on_ack_sent(now, flush), )* }
            }
            fn next_report(&self) -> Option<crate::time::Time> {
                match self { $( AnyFeedback::$FVar(inner) => inner.next_report(), )* }
            }
        }

        /// A queue of any kind, dispatched by `match`.
        #[derive(Clone, Debug)]
        #[allow(clippy::large_enum_variant)]
        pub enum AnyQueue<P> { $( #[doc = $qsum] $QVar(queue::$qmod::$QTy<P>), )* }

        /// A queue's settings, checked.
        #[derive(Clone, Debug, PartialEq)]
        pub enum QueueConfig { $( #[doc = $qsum] $QVar(queue::$qmod::Config), )* }

        impl QueueConfig {
            /// Finds the queue and applies its options.
            pub fn new(name: &str, options: Options<'_>) -> Result<Self, BuildError> {
                $( if name == $qname $(|| name == $qalias)* {
                    return queue::$qmod::Config::from_options(options.iter().copied())
                        .map(QueueConfig::$QVar)
                        .map_err(|error| BuildError::Option { name: $qname, error });
                } )*
                Err(BuildError::Unknown { kind: "queue", name: name.to_string(), known: names(QUEUES) })
            }

            /// The registered name.
            pub const fn name(&self) -> &'static str {
                match self { $( QueueConfig::$QVar(_) => $qname, )* }
            }

            /// Whether flows of this encoding may pass it.
            pub fn speaks(&self, encoding: Encoding) -> bool {
                match self { $( QueueConfig::$QVar(_) => <[Encoding]>::contains($qspeaks, &encoding), )* }
            }

            /// An empty queue.
            pub fn build<P: Packet>(&self, place: &Place) -> AnyQueue<P> {
                match self { $( QueueConfig::$QVar(config) => {
                    AnyQueue::$QVar(queue::$qmod::$QTy::new(config, place))
                } )* }
            }
        }

        impl<P: Packet> Queue<P> for AnyQueue<P> {
            fn enqueue(
                &mut self,
                now: crate::time::Time,
                packet: P,
                link: &mut impl queue::LinkView,
                drops: &mut queue::Drops<P>,
            ) {
                match self { $( AnyQueue::$QVar(inner) => inner.enqueue(now, packet, link, drops), )* }
            }
            fn dequeue(
                &mut self,
                now: crate::time::Time,
                link: &mut impl queue::LinkView,
                drops: &mut queue::Drops<P>,
            ) -> Option<queue::Dequeued<P>> {
                match self { $( AnyQueue::$QVar(inner) => inner.dequeue(now, link, drops), )* }
            }
            fn backlog(&self) -> queue::Backlog {
                match self { $( AnyQueue::$QVar(inner) => inner.backlog(), )* }
            }
            fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
                match self { $( AnyQueue::$QVar(inner) => inner.inspect(visit), )* }
            }
            fn for_each(&self, visit: &mut dyn FnMut(&P)) {
                match self { $( AnyQueue::$QVar(inner) => inner.for_each(visit), )* }
            }
        }
    };
}

/// Forwards every method of [`Controller`] to the variant's own.
macro_rules! dispatch_controller {
    (@method $self:ident, $call:ident $args:tt, $($Var:ident)*) => {
        match $self { $( AnyController::$Var(inner) => inner.$call $args, )* }
    };
    ($($Var:ident)*) => {
        fn on_send(&mut self, event: &controller::SendEvent) -> controller::SendDirective {
            dispatch_controller!(@method self, on_send(event), $($Var)*)
        }
        fn on_ack(&mut self, event: &controller::AckEvent<'_>) {
            dispatch_controller!(@method self, on_ack(event), $($Var)*)
        }
        fn on_loss(&mut self, event: &controller::LossEvent) {
            dispatch_controller!(@method self, on_loss(event), $($Var)*)
        }
        fn on_ce(&mut self, event: &controller::LossEvent) {
            dispatch_controller!(@method self, on_ce(event), $($Var)*)
        }
        fn on_timeout(&mut self, event: &controller::TimeoutEvent) {
            dispatch_controller!(@method self, on_timeout(event), $($Var)*)
        }
        fn on_spurious_loss(&mut self, event: &controller::SpuriousEvent) {
            dispatch_controller!(@method self, on_spurious_loss(event), $($Var)*)
        }
        fn on_recovery_exit(&mut self, now: crate::time::Time) {
            dispatch_controller!(@method self, on_recovery_exit(now), $($Var)*)
        }
        fn on_idle_restart(&mut self, event: &controller::IdleEvent) {
            dispatch_controller!(@method self, on_idle_restart(event), $($Var)*)
        }
        fn clip(&mut self, most: crate::units::Bytes) {
            dispatch_controller!(@method self, clip(most), $($Var)*)
        }
        fn on_mtu_change(&mut self, mss: crate::units::Bytes) {
            dispatch_controller!(@method self, on_mtu_change(mss), $($Var)*)
        }
        fn on_timer(&mut self, now: crate::time::Time) {
            dispatch_controller!(@method self, on_timer(now), $($Var)*)
        }
        fn next_timer(&self) -> Option<crate::time::Time> {
            dispatch_controller!(@method self, next_timer(), $($Var)*)
        }
        fn cwnd(&self) -> crate::units::Bytes {
            dispatch_controller!(@method self, cwnd(), $($Var)*)
        }
        fn ssthresh(&self) -> Option<crate::units::Bytes> {
            dispatch_controller!(@method self, ssthresh(), $($Var)*)
        }
        fn pacing_rate(&self) -> Option<crate::units::Rate> {
            dispatch_controller!(@method self, pacing_rate(), $($Var)*)
        }
        fn recovery(&self) -> controller::Recovery {
            dispatch_controller!(@method self, recovery(), $($Var)*)
        }
        fn encoding(&self) -> Encoding {
            dispatch_controller!(@method self, encoding(), $($Var)*)
        }
        fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
            dispatch_controller!(@method self, inspect(visit), $($Var)*)
        }
    };
}

registry! {
    controllers {
        NewReno(newreno::NewReno) = "newreno" | "reno", feedback "rfc3168", queue None, host Tcp,
            "NewReno: additive increase, multiplicative decrease (RFC 5681, RFC 6582)";
        Bbr(bbr::Bbr) = "bbr" | "bbr1", feedback "delayed", queue None, host Tcp,
            "BBR version 1: paced at the measured bandwidth, as Linux 6.12 tcp_bbr.c";
        Bbr2(bbr2::Bbr2) = "bbr2", feedback "delayed", queue None, host Tcp,
            "BBR version 2: bounded by the losses of its probes, as Linux tcp_bbr2.c";
        Bbr3(bbr3::Bbr3) = "bbr3", feedback "delayed", queue None, host Tcp,
            "BBR version 3 (draft-ietf-ccwg-bbr)";
        Cubic(cubic::Cubic) = "cubic", feedback "rfc3168", queue None, host Tcp,
            "CUBIC with HyStart: window growth as a cubic function of time (RFC 9438)";
        Vegas(vegas::Vegas) = "vegas", feedback "delayed", queue None, host Tcp,
            "Vegas: keeps two to four packets in the queue (Brakmo and Peterson 1995, as Linux)";
        Westwood(westwood::Westwood) = "westwood" | "westwood+", feedback "rfc3168", queue None, host Tcp,
            "Westwood+: after a loss the window is the bandwidth estimate times the smallest RTT (Mascolo 2001, as Linux)";
        QuicDc(quicdc::QuicDc) = "quicdc" | "quic-dc", feedback "receive_times", queue None, host Quic,
            "QUIC-DC: Westwood+ that reacts, too, when the one-way queueing delay reaches a threshold";
        Ctcp(ctcp::Ctcp) = "ctcp" | "compound", feedback "rfc3168", queue None, host Tcp,
            "Compound TCP: Reno's window plus one that follows the delay (Tan 2006)";
        Copa(copa::Copa) = "copa", feedback "delayed", queue None, host Tcp,
            "Copa: aims at the rate 1/(delta * queueing delay), with a competitive mode (NSDI 2018)";
        Abc(abc::Abc) = "abc", feedback "delayed", queue Some("abc"), host Tcp,
            "ABC: accelerate or brake on every packet, with Cubic as second window (NSDI 2020)";
        Prague(prague::Prague) = "prague", feedback "accecn", queue Some("dualpi2"), host Tcp,
            "TCP Prague: reacts to the share of marks of an L4S queue (draft-briscoe-iccrg-prague-congestion-control)";
        Vivace(vivace::Vivace) = "vivace" | "pcc", feedback "rfc3168", queue None, host Tcp,
            "PCC Vivace-latency: rates chosen by online learning (NSDI 2018)";
        Verus(verus::Verus) = "verus", feedback "delayed", queue None, host Tcp,
            "Verus: the window that a learnt delay profile allows (SIGCOMM 2015)";
        Sprout(sprout::Sprout) = "sprout", feedback "sprout", queue None, host Tcp,
            "Sprout: no more in flight than the receiver forecasts for 100 ms (NSDI 2013)";
        Xcp(xcp::Xcp) = "xcp", feedback "explicit", queue Some("xcp"), host Tcp,
            "XCP: routers say by how much the window changes (SIGCOMM 2002)";
        XcpW(xcpw::XcpW) = "xcpw", feedback "explicit", queue Some("xcpw"), host Tcp,
            "XCPw: XCP with a router that decides anew on every packet (NSDI 2020)";
        Rcp(rcp::Rcp) = "rcp", feedback "explicit", queue Some("rcp"), host Tcp,
            "RCP: routers say at which rate to send (Dukkipati 2006)";
        EAbc(eabc::EAbc) = "e-abc" | "eabc", feedback "explicit", queue Some("eabc"), host Tcp,
            "E-ABC: ABC's router says its target rate outright (HotNets 2017)";
        Bmcc(bmcc::Bmcc) = "bmcc", feedback "bmcc", queue Some("bmcc"), host Tcp,
            "BMCC: the load factor to 16 bits, from single bits of many packets (Qazi, Andrew and Znati)";
        Vcp(vcp::Vcp) = "vcp", feedback "explicit", queue Some("vcp"), host Tcp,
            "VCP: three control laws, chosen by two bits of load (SIGCOMM 2005)";
        Mlcp(mlcp::Mlcp) = "mlcp", feedback "explicit", queue Some("mlcp"), host Tcp,
            "MLCP: VCP with the load in four bits (INFOCOM 2008)";
    }
    feedbacks {
        AccEcn(accecn::AccEcn) = "accecn", "Accurate ECN: delayed ACKs with exact counters of marks (RFC 9768)";
        Bmcc(bmcc::Bmcc) = "bmcc", "BMCC's receiver: an estimate of the load factor, in an option on ACKs 1, 3, 6, ...";
        Delayed(delayed::Delayed) = "delayed", "Delayed ACKs with the mark-change state machine (RFC 8257, ABC section 6)";
        Explicit(explicit::Explicit) = "explicit", "Delayed ACKs that carry back the scheme's own congestion header";
        ReceiveTimes(receive_times::ReceiveTimes) = "receive_times", "QUIC's ordinary receiver, which says when each packet arrived";
        Rfc3168(rfc3168::Rfc3168) = "rfc3168", "The ordinary TCP receiver: delayed ACKs, CE echoed until CWR (RFC 3168)";
        Sprout(sprout::Sprout) = "sprout", "Sprout's receiver: a forecast of the link every 20 ms (NSDI 2013)";
    }
    queues {
        Abc(abc::Abc) = "abc", speaks queue::SPEAKS_ABC,
            "The ABC router: accelerate or brake on every packet (NSDI 2020)";
        AbcDual(abc_dual::AbcDual) = "abc_dual", speaks queue::SPEAKS_ABC,
            "The ABC router with a second queue for other traffic, max-min fair (NSDI 2020, section 4.3)";
        Bmcc(bmcc::Bmcc) = "bmcc", speaks queue::SPEAKS_BMCC,
            "The BMCC router: the load factor in single ECN bits (Qazi, Andrew and Znati)";
        CoDel(codel::CoDel) = "codel", speaks queue::SPEAKS_ALL,
            "CoDel: drops or marks at the head by sojourn time (RFC 8289)";
        DropTail(droptail::DropTail) = "droptail" | "fifo", speaks queue::SPEAKS_ALL,
            "First in, first out; what does not fit is dropped";
        DualPi2(dualpi2::DualPi2) = "dualpi2", speaks queue::SPEAKS_L4S,
            "DualPI2: a queue for L4S flows and one for Classic flows, coupled (RFC 9332)";
        EAbc(eabc::EAbc) = "eabc", speaks queue::SPEAKS_ALL,
            "E-ABC's router: writes ABC's target rate into every packet (HotNets 2017)";
        FqCoDel(fq_codel::FqCoDel) = "fq_codel" | "fq-codel", speaks queue::SPEAKS_ALL,
            "FQ-CoDel: a queue for every flow, each under CoDel, served in turn (RFC 8290)";
        Pie(pie::Pie) = "pie", speaks queue::SPEAKS_ALL,
            "PIE: drops or marks arrivals at random, as the delay lies from a target (RFC 8033, Mahimahi's as an option)";
        Rcp(rcp::Rcp) = "rcp", speaks queue::SPEAKS_ALL,
            "RCP's router: one rate for every flow, moved once per RTT (Dukkipati 2006)";
        Red(red::Red) = "red", speaks queue::SPEAKS_ALL,
            "RED: drops or marks arrivals by the average length of the queue (Floyd 1993); Adaptive RED as an option";
        Xcp(xcp::Xcp) = "xcp", speaks queue::SPEAKS_ALL,
            "XCP's router: shares out what is spare once per RTT (SIGCOMM 2002)";
        XcpW(xcpw::XcpW) = "xcpw", speaks queue::SPEAKS_ALL,
            "XCPw's router: XCP's formulas anew for every packet, for links that vary (NSDI 2020)";
        Mlcp(mlcp::Mlcp) = "mlcp", speaks queue::SPEAKS_ALL,
            "The MLCP router: the load factor in four bits (INFOCOM 2008)";
        Vcp(vcp::Vcp) = "vcp", speaks queue::SPEAKS_ALL,
            "The VCP router: low load, high load or overload on every packet (SIGCOMM 2005)";
    }
}
