//! Checks that load programs: part of `tcp doctor`.

use std::mem::MaybeUninit;

use libbpf_rs::skel::SkelBuilder;

use super::objects::{abc, connections, option, receiver, router, stamp, wdc};
use super::{endpoint, objects};
use crate::doctor::{Check, Verdict, has_accecn, require_root};

/// Loads and unloads each program.
pub fn attempts() -> Vec<Check> {
    if require_root().is_err() {
        return Vec::new();
    }
    let mut checks = vec![flag(), tcx()];
    checks.extend([
        passes("ABC's controller passes the verifier", abc::AbcSkelBuilder::default()),
        passes(
            "the receiver's Reno, which asks for Accurate ECN, passes the verifier",
            receiver::ReceiverSkelBuilder::default(),
        ),
        passes("delay control passes the verifier", wdc::WdcSkelBuilder::default()),
        passes("the mark of accelerate passes the verifier", stamp::StampSkelBuilder::default()),
        passes("the option passes the verifier", option::OptionSkelBuilder::default()),
        passes("ABC's router passes the verifier", router::RouterSkelBuilder::default()),
        passes("the list of connections passes the verifier", connections::ConnectionsSkelBuilder::default()),
    ]);
    checks
}

/// Loads the programs of an object for a moment.
fn passes<Builder: for<'object> SkelBuilder<'object>>(what: &'static str, builder: Builder) -> Check {
    let mut place = MaybeUninit::uninit();
    let loaded = objects::open("probe", builder, &mut place)
        .and_then(|opened| objects::load("loading", opened).map(drop));
    match loaded {
        Ok(()) => Check { what, verdict: Verdict::Yes, found: "it loads".into(), advice: None },
        Err(error) => Check {
            what,
            verdict: Verdict::No,
            found: error.to_string(),
            advice: Some("a newer kernel; `sch_abc` and QUIC (`brakelight perf`) work without it".into()),
        },
    }
}

fn flag() -> Check {
    let what = "a congestion control can ask for Accurate ECN for its own connections";
    let yes = has_accecn() && endpoint::takes_accecn_flag();
    Check {
        what,
        verdict: if yes { Verdict::Yes } else { Verdict::Instead },
        found: if yes { "TCP_CONG_NEEDS_ACCECN" } else { "no TCP_CONG_NEEDS_ACCECN" }.into(),
        advice: (!yes).then(|| {
            if has_accecn() {
                "`sysctl net.ipv4.tcp_ecn=3` at both ends does it for all connections".into()
            } else {
                "the option does not need it".to_string()
            }
        }),
    }
}

/// Attaches the mark of accelerate to the loopback for a moment. It changes no packet: this copy of the
/// program knows no connection.
fn tcx() -> Check {
    let mut place = MaybeUninit::uninit();
    let attached = objects::open("probe", stamp::StampSkelBuilder::default(), &mut place)
        .and_then(|opened| objects::load("loading", opened))
        .and_then(|loaded| {
            let (index, _) = objects::device("lo")?;
            objects::attach_tcx(&loaded.progs.bl_stamp, index).map(drop)
        });
    Check {
        what: "programs can be attached to devices by links (tcx), for the mark and the router",
        verdict: if attached.is_ok() { Verdict::Yes } else { Verdict::No },
        found: attached.as_ref().map_or_else(ToString::to_string, |()| "it can, to the loopback".into()),
        advice: attached.is_err().then(|| "Linux 6.6 or newer; `sch_abc` is a router for older ones".into()),
    }
}
