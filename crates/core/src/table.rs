//! The tables: one line per algorithm, with everything about it that anybody must know who does not run it.
//! Nothing else in the workspace tells algorithms apart by their names.
//!
//! A line names the enum variant, the type, the name with its aliases, and what it is. What follows may be
//! left out where it is as [`Needs::PLAIN`](crate::registry::Needs) or
//! [`Traits::PLAIN`](crate::registry::Traits) have it:
//!
//! | word | in lines of | says |
//! |---|---|---|
//! | `second_window` | controllers | that it may be ABC's second window, and what it hears there |
//! | `needs` | controllers | fields of [`Needs`] |
//! | `feedback_options` | controllers | what its settings ask of the feedback it brings |
//! | `survives_without_marks` | controllers | whether it still answers congestion where ECN is cleared |
//! | `delay_threshold` | controllers | the one-way queueing delay at which it reacts, if it has one |
//! | `carries` | feedbacks | what its ACKs carry besides, as [`Carries`] |
//! | `protocol` | feedbacks | the [`Protocol`] it is a part of |
//! | `is` | queues | fields of [`Traits`] |
//! | `encoding` | queues | the ECN encoding of its own whose marks it gives |
//! | `needs_link_rate` | queues | whether it asks the link what it could have carried |
//! | `tells_flows_apart` | queues | whether it serves flows of that encoding apart from others, by flow |
//! | `fills_up_to` | queues | the limit in its settings, of a queue that drops nothing before it is full |
//! | `fits` | queues | a [`Misfit`](crate::registry::Misfit) if its settings do not fit the link |
//!
//! The tables are macros, which hand their lines to another macro: [`registry`](crate::registry) makes
//! factories and dispatch out of them, `controller::second` ABC's second windows. So this file names
//! algorithms without importing them.

use crate::ecn::Encoding;
use crate::packet::HeaderKind;
use crate::queue::SPEAKS_ALL;

/// What a sender runs where nothing else is said, as Linux's do.
pub const DEFAULT_CONTROLLER: &str = "cubic";

/// What a link has where nothing else is said.
pub const DEFAULT_QUEUE: &str = "droptail";

/// A protocol whose sender, routers and receiver share constants: a load of 0.9 in the marks of one is
/// another load to another.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Protocol {
    /// Its name: parts with the same name belong together.
    pub name: &'static str,
    /// The options that must have the same value in any two of its parts that both have them.
    pub shared: &'static [&'static str],
}

impl Protocol {
    /// BMCC's.
    pub const BMCC: Protocol =
        Protocol { name: "bmcc", shared: &["interval", "eta_0", "eta", "u", "bits", "coexist"] };
    /// MLCP's.
    pub const MLCP: Protocol = Protocol { name: "mlcp", shared: &["interval", "eta_0", "eta", "u"] };
    /// VCP's.
    pub const VCP: Protocol = Protocol { name: "vcp", shared: &["interval", "low_load"] };
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

/// The two profiles of the modelled host.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Host {
    /// SACK, RACK-TLP, PRR, RTO with F-RTO, delayed ACKs of 40 ms.
    Tcp,
    /// RFC 9002, delayed ACKs of 25 ms.
    Quic,
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
        bench: Bench::PLAIN,
    };
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

/// A name of its own for a controller with options, in schemes.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Shorthand {
    /// The name.
    pub name: &'static str,
    /// The controller that it stands for.
    pub controller: &'static str,
    /// The options that come with it, unless the scheme gives others.
    pub options: &'static [(&'static str, &'static str)],
}

/// The shorthands.
pub const SHORTHANDS: &[Shorthand] = &[
    Shorthand { name: "abc-adaptive", controller: "abc", options: &[("variant", "adaptive")] },
    Shorthand { name: "abc-authors", controller: "abc", options: &[("variant", "prototype")] },
];

/// The schemes of a comparison that names none, the one that the others are held against first: ABC's rules,
/// what hosts and routers can run today, and what else the papers here propose.
pub const COMPARED: &[&str] = &[
    "abc",
    "abc-adaptive",
    "abc-authors",
    "cubic",
    "cubic+fq_codel",
    "bbr3",
    "copa",
    "prague",
    "bmcc",
    "quicdc",
];

/// The controllers.
macro_rules! controllers {
    ($with:ident) => {
        $with! {
            NewReno(newreno::NewReno) = "newreno" | "reno",
                "NewReno: additive increase, multiplicative decrease (RFC 5681, RFC 6582)",
                second_window "losses",
                needs { feedback: "rfc3168", sparse_acks: true, kernel: Some(Kernel { name: "reno", options: &[] }) };
            Bbr(bbr::Bbr) = "bbr" | "bbr1",
                "BBR version 1: paced at the measured bandwidth, as Linux 6.12 tcp_bbr.c",
                second_window "the rate of delivery and the smallest RTT",
                needs { feedback: "delayed", rate: true, kernel: Some(Kernel { name: "bbr", options: &[] }), grows_unused: true };
            Bbr2(bbr2::Bbr2) = "bbr2",
                "BBR version 2: bounded by the losses of its probes, as google/bbr tcp_bbr2.c",
                second_window "the rate of delivery, the smallest RTT and losses",
                needs { feedback: "delayed", rate: true, grows_unused: true };
            Bbr3(bbr3::Bbr3) = "bbr3",
                "BBR version 3 (draft-ietf-ccwg-bbr)",
                second_window "the rate of delivery, the smallest RTT and losses",
                needs { feedback: "delayed", rate: true, grows_unused: true };
            Cubic(cubic::Cubic) = "cubic",
                "CUBIC with HyStart: window growth as a cubic function of time (RFC 9438)",
                second_window "losses",
                needs { feedback: "rfc3168", sparse_acks: true, kernel: Some(Kernel { name: "cubic", options: &["reno_catch_up", "horizon"] }) };
            Vegas(vegas::Vegas) = "vegas",
                "Vegas: keeps two to four packets in the queue (Brakmo and Peterson 1995, as Linux 6.12 tcp_vegas.c)",
                second_window "losses and round trips",
                needs { feedback: "delayed" };
            Westwood(westwood::Westwood) = "westwood" | "westwood+",
                "Westwood+: after a loss the window is the bandwidth estimate times the smallest RTT (Mascolo 2001, as Linux 6.12 tcp_westwood.c)",
                second_window "losses",
                needs { feedback: "rfc3168" };
            QuicDc(quicdc::QuicDc) = "quicdc" | "quic-dc",
                "QUIC-DC: Westwood+ that reacts, too, when the one-way queueing delay reaches a threshold",
                second_window "losses and one-way delays",
                needs { feedback: "receive_times", receive_times: true, host: Host::Quic },
                delay_threshold |config| config.threshold.time();
            Ctcp(ctcp::Ctcp) = "ctcp" | "compound",
                "Compound TCP: Reno's window plus one that follows the delay (Tan 2006)",
                second_window "losses and round trips",
                needs { feedback: "rfc3168" };
            Copa(copa::Copa) = "copa",
                "Copa: aims at the rate 1/(delta * queueing delay), with a competitive mode (NSDI 2018)",
                second_window "round trips",
                needs { feedback: "delayed" };
            Abc(abc::Abc) = "abc",
                "ABC: accelerate or brake on every packet, with Cubic as second window (NSDI 2020)",
                needs { feedback: "delayed", queue: Some("abc"), grows_unused: true },
                feedback_options |config| if config.needs_receive_times() { &[("receive_times", "true")] } else { &[] },
                survives_without_marks |config| config.has_second_window();
            Prague(prague::Prague) = "prague",
                "TCP Prague: reacts to the share of marks of an L4S queue (draft-briscoe-iccrg-prague-congestion-control)",
                needs { feedback: "accecn", queue: Some("dualpi2") };
            Vivace(vivace::Vivace) = "vivace" | "pcc",
                "PCC Vivace-latency: rates chosen by online learning (NSDI 2018)",
                second_window "losses and round trips",
                needs { feedback: "rfc3168", rate: true, grows_unused: true };
            // Verus is no second window: its cwnd is what it means to send in its next epoch rather than a
            // bound. In Cubic's place it loses three packets of four, where by itself it loses none, and why
            // is not settled.
            Verus(verus::Verus) = "verus",
                "Verus: the window that a learned delay profile allows (SIGCOMM 2015)",
                needs { feedback: "delayed", grows_unused: true };
            Sprout(sprout::Sprout) = "sprout",
                "Sprout: no more in flight than the receiver forecasts for 100 ms (NSDI 2013)",
                needs { feedback: "sprout", grows_unused: true };
            Xcp(xcp::Xcp) = "xcp",
                "XCP: routers say by how much the window changes (SIGCOMM 2002)",
                needs { feedback: "explicit", queue: Some("xcp"), reads: Some(HeaderKind::Xcp), routers: Routers::One };
            XcpW(xcpw::XcpW) = "xcpw",
                "XCPw: XCP with a router that decides anew on every packet (NSDI 2020)",
                needs { feedback: "explicit", queue: Some("xcpw"), reads: Some(HeaderKind::Xcp), routers: Routers::One };
            Rcp(rcp::Rcp) = "rcp",
                "RCP: routers say at which rate to send (Dukkipati 2006)",
                needs { feedback: "explicit", queue: Some("rcp"), reads: Some(HeaderKind::Rate), routers: Routers::Every, grows_unused: true };
            EAbc(eabc::EAbc) = "e-abc" | "eabc",
                "E-ABC: ABC's router says its target rate outright (HotNets 2017)",
                needs { feedback: "explicit", queue: Some("eabc"), reads: Some(HeaderKind::Rate), routers: Routers::Every, grows_unused: true };
            Bmcc(bmcc::Bmcc) = "bmcc",
                "BMCC: the load factor to 16 bits, from single bits of many packets (Qazi, Andrew and Znati)",
                needs { feedback: "bmcc", queue: Some("bmcc"), protocol: Some(Protocol::BMCC) },
                survives_without_marks |_| false;
            Vcp(vcp::Vcp) = "vcp",
                "VCP: three control laws, chosen by two bits of load (SIGCOMM 2005)",
                needs { feedback: "explicit", queue: Some("vcp"), reads: Some(HeaderKind::Load), protocol: Some(Protocol::VCP) };
            Mlcp(mlcp::Mlcp) = "mlcp",
                "MLCP: VCP with the load in four bits (INFOCOM 2008)",
                needs { feedback: "explicit", queue: Some("mlcp"), reads: Some(HeaderKind::Load), protocol: Some(Protocol::MLCP) };
            External(external::External) = "external",
                "Driven from outside: window and pacing rate stay as they were set, whatever happens",
                needs { feedback: "accecn", driven: true, grows_unused: true };
        }
    };
}

/// The feedbacks.
macro_rules! feedbacks {
    ($with:ident) => {
        $with! {
            AccEcn(accecn::AccEcn) = "accecn",
                "Accurate ECN: delayed ACKs with exact counters of marks (RFC 9768)";
            Bmcc(bmcc::Bmcc) = "bmcc",
                "BMCC's receiver: an estimate of the load factor, in an option on ACKs 1, 3, 6, ...",
                carries |_| Carries::LoadFactor,
                protocol Protocol::BMCC;
            Delayed(delayed::Delayed) = "delayed",
                "Delayed ACKs with the mark-change state machine (RFC 8257, ABC section 6)",
                carries |config| if config.receive_times { Carries::ReceiveTimes } else { Carries::Nothing };
            Explicit(explicit::Explicit) = "explicit",
                "Delayed ACKs that carry back the scheme's own congestion header",
                carries |_| Carries::Header;
            ReceiveTimes(receive_times::ReceiveTimes) = "receive_times",
                "QUIC's ordinary receiver, which says when each packet arrived",
                carries |_| Carries::ReceiveTimes;
            Rfc3168(rfc3168::Rfc3168) = "rfc3168",
                "The ordinary TCP receiver: delayed ACKs, CE echoed until CWR (RFC 3168)";
            Sprout(sprout::Sprout) = "sprout",
                "Sprout's receiver: a forecast of the link every 20 ms (NSDI 2013)",
                carries |_| Carries::Forecast;
        }
    };
}

/// The queues.
macro_rules! queues {
    ($with:ident) => {
        $with! {
            Abc(abc::Abc) = "abc",
                "The ABC router: accelerate or brake on every packet (NSDI 2020)",
                is {
                    speaks: queue::SPEAKS_ABC,
                    beside_others: Some("abc_dual"),
                    bench: Bench { packets: &[16, 1667, 16_000], ..Bench::PLAIN },
                },
                encoding |config| Some(config.encoding_of_marks()),
                needs_link_rate |_| true;
            AbcDual(abc_dual::AbcDual) = "abc_dual",
                "The ABC router with a second queue for other traffic, max-min fair (NSDI 2020, section 4.3)",
                is { speaks: queue::SPEAKS_ABC, bench: Bench { flows: &[16, 100_000], ..Bench::PLAIN } },
                encoding |config| Some(config.abc.encoding_of_marks()),
                needs_link_rate |_| true,
                tells_flows_apart |config| config.dual.classify == queue::abc_dual::Classify::Flow;
            Bmcc(bmcc::Bmcc) = "bmcc",
                "The BMCC router: the load factor in single ECN bits (Qazi, Andrew and Znati)",
                is { speaks: queue::SPEAKS_BMCC, protocol: Some(Protocol::BMCC) },
                encoding |_| Some(Encoding::Bmcc),
                needs_link_rate |config| config.load.asks_the_link(),
                fits queue::bmcc::fits;
            CoDel(codel::CoDel) = "codel",
                "CoDel: drops or marks at the head by sojourn time (RFC 8289)",
                is {
                    bench: Bench { options: &[("target", "500us")], ..Bench::PLAIN },
                    preset: Some(Preset {
                        options: &[("target", "50ms"), ("interval", "100ms")],
                        why: "as in the ABC paper's emulator on paths of 100 ms; RFC 8289's defaults are 5ms and 100ms",
                    }),
                };
            DropTail(droptail::DropTail) = "droptail" | "fifo",
                "First in, first out; what does not fit is dropped",
                is {},
                fills_up_to |config, buffer| Some(config.limit.unwrap_or(buffer));
            DualPi2(dualpi2::DualPi2) = "dualpi2",
                "DualPI2: a queue for L4S flows and one for Classic flows, coupled (RFC 9332)",
                is { speaks: queue::SPEAKS_L4S },
                encoding |_| Some(Encoding::L4s);
            EAbc(eabc::EAbc) = "eabc",
                "E-ABC's router: writes ABC's target rate into every packet (HotNets 2017)",
                is {
                    writes: Some(HeaderKind::Rate),
                    bench: Bench { options: &[("target", "500us")], ..Bench::PLAIN },
                },
                needs_link_rate |_| true;
            FqCoDel(fq_codel::FqCoDel) = "fq_codel" | "fq-codel",
                "FQ-CoDel: a queue for every flow, each under CoDel, served in turn (RFC 8290)",
                is {
                    bench: Bench { options: &[("target", "500us")], ..Bench::PLAIN },
                    preset: Some(Preset {
                        options: &[("target", "50ms"), ("interval", "100ms")],
                        why: "as for codel, so that the two differ in their queues alone; RFC 8290's defaults are 5ms and 100ms",
                    }),
                };
            Pie(pie::Pie) = "pie",
                "PIE: drops or marks arrivals at random, as the delay lies from a target (RFC 8033, Mahimahi's as an option)",
                is {
                    bench: Bench { options: &[("target", "500us"), ("max_burst", "0s")], ..Bench::PLAIN },
                    preset: Some(Preset {
                        options: &[("target", "50ms")],
                        why: "as in the ABC paper's emulator on paths of 100 ms; RFC 8033's default is 15ms",
                    }),
                };
            Rcp(rcp::Rcp) = "rcp",
                "RCP's router: one rate for every flow, moved once per RTT (Dukkipati 2006)",
                is { writes: Some(HeaderKind::Rate) },
                needs_link_rate |_| true;
            Red(red::Red) = "red",
                "RED: drops or marks arrivals by the average length of the queue (Floyd 1993); Adaptive RED as an option",
                is {
                    bench: Bench { options: &[("min_th", "64"), ("max_th", "192")], ..Bench::PLAIN },
                    preset: Some(Preset {
                        options: &[("target", "50ms")],
                        why: "the delay that codel and pie are set to; the automatic thresholds of Adaptive RED are made for 5ms",
                    }),
                },
                fits queue::red::fits;
            Xcp(xcp::Xcp) = "xcp",
                "XCP's router: shares out what is spare once per RTT (SIGCOMM 2002)",
                is { writes: Some(HeaderKind::Xcp) },
                needs_link_rate |_| true;
            XcpW(xcpw::XcpW) = "xcpw",
                "XCPw's router: XCP's formulas anew for every packet, for links that vary (NSDI 2020)",
                is { writes: Some(HeaderKind::Xcp) },
                needs_link_rate |_| true;
            Mlcp(mlcp::Mlcp) = "mlcp",
                "The MLCP router: the load factor in four bits (INFOCOM 2008)",
                is { writes: Some(HeaderKind::Load), protocol: Some(Protocol::MLCP) },
                needs_link_rate |config| config.load.asks_the_link(),
                fits |config, site| config.load.fits(site);
            Vcp(vcp::Vcp) = "vcp",
                "The VCP router: low load, high load or overload on every packet (SIGCOMM 2005)",
                is { writes: Some(HeaderKind::Load), protocol: Some(Protocol::VCP) },
                needs_link_rate |config| config.load.asks_the_link(),
                fits |config, site| config.load.fits(site);
        }
    };
}
