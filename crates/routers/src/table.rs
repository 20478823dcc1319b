//! The table of queues: one line a discipline, with everything about it that anybody must know who does not
//! run it.
//!
//! A line names the enum variant, the type, the name with its aliases, and what it is. What follows may be
//! left out where it is as [`Traits::PLAIN`] has it:
//!
//! | word | says |
//! |---|---|
//! | `is` | fields of [`Traits`] |
//! | `encoding` | the ECN encoding of its own whose marks it gives |
//! | `misreads` | whether flows of any encoding may pass, which it reads as its own |
//! | `needs_link_rate` | whether it asks the link what it could have carried |
//! | `tells_flows_apart` | whether it serves flows of that encoding apart from others, by flow |
//! | `fills_up_to` | the limit in its settings, of a queue that drops nothing before it is full |
//! | `reads_acks` | whether it reads what packets acknowledge |
//! | `fits` | a [`Misfit`](brakelight_core::queue::Misfit) if its settings do not fit the link |
//!
//! The table is a macro, which hands its lines to another: [`any`](crate::any) makes factories and dispatch
//! out of them, and reads the expressions of a line.
//!
//! [`Traits`]: brakelight_core::facts::Traits
//! [`Traits::PLAIN`]: brakelight_core::facts::Traits::PLAIN

/// The queues.
macro_rules! queues {
    ($with:ident) => {
        $with! {
            Abc(abc::Abc) = "abc",
                "The ABC router: accelerate or brake on every packet (NSDI 2020)",
                is {
                    speaks: SPEAKS_ABC,
                    beside_others: Some("abc_dual"),
                    on_linux: Some(Qdisc { command: "brakelight router attach DEV --rate RATE", options: &[("variant", "--variant")], lacks: &[("variant", "prototype")] }),
                    bench: Bench { packets: &[16, 1667, 16_000], ..Bench::PLAIN },
                },
                encoding |config| Some(config.encoding_of_marks()),
                misreads |config| config.misread,
                needs_link_rate |_| true;
            AbcDual(abc_dual::AbcDual) = "abc_dual",
                "The ABC router with a second queue for other traffic, max-min fair (NSDI 2020, section 4.3)",
                is { speaks: SPEAKS_ABC, bench: Bench { flows: &[16, 100_000], ..Bench::PLAIN } },
                encoding |config| Some(config.abc.encoding_of_marks()),
                misreads |config| config.abc.misread,
                needs_link_rate |_| true,
                tells_flows_apart |config| config.dual.classify == abc_dual::Classify::Flow;
            AbcL4s(abc_l4s::AbcL4s) = "abc_l4s",
                "ABC's router for L4S senders: CE marks by the link's rate, and a queue for other traffic",
                is { speaks: SPEAKS_L4S },
                encoding |_| Some(Encoding::L4s),
                misreads |config| config.misread,
                needs_link_rate |_| true;
            Bmcc(bmcc::Bmcc) = "bmcc",
                "The BMCC router: the load factor in single ECN bits (Qazi, Andrew and Znati)",
                is { speaks: SPEAKS_BMCC, protocol: Some(Protocol::BMCC) },
                encoding |_| Some(Encoding::Bmcc),
                needs_link_rate |config| config.load.asks_the_link(),
                fits bmcc::fits;
            Cake(cake::Cake) = "cake",
                "CAKE: a shaper, tins, fairness between hosts and flows, COBALT, an ACK filter (LANMAN 2018)",
                is {
                    bench: Bench { options: &[("target", "500us")], ..Bench::PLAIN },
                    on_linux: Some(Qdisc { command: "tc qdisc replace dev DEV root cake", options: &[], lacks: &[] }),
                },
                reads_acks |config| config.ack_filter != cake::AckFilter::Off;
            CoDel(codel::CoDel) = "codel",
                "CoDel: drops or marks at the head by sojourn time (RFC 8289)",
                is {
                    bench: Bench { options: &[("target", "500us")], ..Bench::PLAIN },
                    on_linux: Some(Qdisc { command: "tc qdisc replace dev DEV root codel", options: &[("target", "target"), ("interval", "interval"), ("ecn", "ecn")], lacks: &[] }),
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
                is { speaks: SPEAKS_L4S, on_linux: Some(Qdisc { command: "tc qdisc replace dev DEV root dualpi2", options: &[("target", "target")], lacks: &[] }) },
                encoding |_| Some(Encoding::L4s),
                misreads |config| config.misread;
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
                    on_linux: Some(Qdisc { command: "tc qdisc replace dev DEV root fq_codel", options: &[("target", "target"), ("interval", "interval"), ("ecn", "ecn")], lacks: &[] }),
                    preset: Some(Preset {
                        options: &[("target", "50ms"), ("interval", "100ms")],
                        why: "as for codel, so that the two differ in their queues alone; RFC 8290's defaults are 5ms and 100ms",
                    }),
                };
            Pie(pie::Pie) = "pie",
                "PIE: drops or marks arrivals at random, by how far the delay is from a target (RFC 8033, Mahimahi's as an option)",
                is {
                    bench: Bench { options: &[("target", "500us"), ("max_burst", "0s")], ..Bench::PLAIN },
                    on_linux: Some(Qdisc { command: "tc qdisc replace dev DEV root pie", options: &[("target", "target"), ("ecn", "ecn")], lacks: &[] }),
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
                fits red::fits;
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
