//! The tables of controllers and of feedbacks: one line an algorithm, with everything about it that anybody
//! must know who does not run it.
//!
//! A line names the enum variant, the type, the name with its aliases, and what it is. What follows may be
//! left out where it is as [`Needs::PLAIN`] has it:
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
//!
//! The tables are macros, which hand their lines to another macro: factories and dispatch are made out of
//! them, and ABC's second windows (`controller::second`). So this file names algorithms without importing
//! them; expressions of a line are read in `any_controller.rs` and `any_feedback.rs`.
//!
//! [`Needs`]: brakelight_core::facts::Needs
//! [`Needs::PLAIN`]: brakelight_core::facts::Needs::PLAIN
//! [`Carries`]: brakelight_core::facts::Carries
//! [`Protocol`]: brakelight_core::facts::Protocol

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
                needs { feedback: "delayed", rate: true, grows_unused: true, on_linux: Some("a kernel from github.com/google/bbr, branch v3, then sysctl -w net.ipv4.tcp_congestion_control=bbr") };
            Cubic(cubic::Cubic) = "cubic",
                "CUBIC with HyStart: window growth as a cubic function of time (RFC 9438)",
                second_window "losses",
                needs { feedback: "rfc3168", sparse_acks: true, kernel: Some(Kernel { name: "cubic", options: &["reno_catch_up", "horizon"] }) };
            Vegas(vegas::Vegas) = "vegas",
                "Vegas: keeps two to four packets in the queue (Brakmo and Peterson 1995, as Linux 6.12 tcp_vegas.c)",
                second_window "losses and round trips",
                needs { feedback: "delayed", on_linux: Some("sysctl -w net.ipv4.tcp_congestion_control=vegas") };
            Westwood(westwood::Westwood) = "westwood" | "westwood+",
                "Westwood+: after a loss the window is the bandwidth estimate times the smallest RTT (Mascolo 2001, as Linux 6.12 tcp_westwood.c)",
                second_window "losses",
                needs { feedback: "rfc3168", on_linux: Some("sysctl -w net.ipv4.tcp_congestion_control=westwood") };
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
                needs { feedback: "delayed", queue: Some("abc"), grows_unused: true, on_linux: Some("brakelight tcp load, then sysctl -w net.ipv4.tcp_congestion_control=abc") },
                feedback_options |config| if config.needs_receive_times() { &[("receive_times", "true")] } else { &[] },
                survives_without_marks |config| config.has_second_window();
            Prague(prague::Prague) = "prague",
                "TCP Prague: reacts to the share of marks of an L4S queue (draft-briscoe-iccrg-prague-congestion-control)",
                needs { feedback: "accecn", queue: Some("dualpi2"), on_linux: Some("a kernel from github.com/L4STeam/linux, then sysctl -w net.ipv4.tcp_congestion_control=prague") };
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
            Gcc(gcc::Gcc) = "gcc" | "goog-cc",
                "Google Congestion Control: a call's rate by the trend of one-way delays, and by losses (draft-ietf-rmcat-gcc, as libwebrtc)",
                needs { feedback: "receive_times", receive_times: true, host: Host::Quic, rate: true, grows_unused: true };
            Nada(nada::Nada) = "nada",
                "NADA: a call's rate by queueing delay, losses and marks together (RFC 8698)",
                needs { feedback: "receive_times", receive_times: true, host: Host::Quic, rate: true, grows_unused: true };
            Scream(scream::Scream) = "scream",
                "SCReAM v2: a call's rate by a reference window, which L4S marks, losses and queueing delay lower (draft-ietf-ccwg-rfc8298bis-screamv2)",
                needs { feedback: "receive_times", receive_times: true, host: Host::Quic, rate: true, grows_unused: true };
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
            Lying(lying::Lying) = "lying",
                "A receiver that acknowledges lost packets and conceals marks (RFC 9743 section 7.6)";
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
