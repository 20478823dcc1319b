//! What can only be told by trying: part of what `tcp doctor` says.

use super::{endpoint, objects};
use crate::doctor::{Check, Verdict, has_accecn, require_root};

/// Loads each program for a moment.
pub fn attempts() -> Vec<Check> {
    if require_root().is_err() {
        return Vec::new();
    }
    let mut checks = vec![flag(), tcx()];
    let programs = [
        ("ABC's controller passes the verifier", objects::ABC),
        ("delay control passes the verifier", objects::WDC),
        ("the mark of accelerate passes the verifier", objects::STAMP),
        ("the option passes the verifier", objects::OPTION),
        ("ABC's router passes the verifier", objects::ROUTER),
        ("the list of connections passes the verifier", objects::CONNECTIONS),
    ];
    checks.extend(programs.map(|(what, bytes)| {
        let loaded = objects::open("probe", bytes, &[]).and_then(|object| objects::load("loading", object));
        match loaded {
            Ok(_) => Check { what, verdict: Verdict::Yes, found: "it loads".into(), advice: None },
            Err(error) => Check {
                what,
                verdict: Verdict::No,
                found: error.to_string(),
                advice: Some("a newer kernel; `sch_abc` and QUIC (`brakelight perf`) do without".into()),
            },
        }
    }));
    checks
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

/// Marks for a moment what ABC's connections send over the loopback: none of them is known to this copy of the program.
fn tcx() -> Check {
    let attached = objects::open("probe", objects::STAMP, &[])
        .and_then(|object| objects::load("loading", object))
        .and_then(|object| {
            let (index, _) = objects::device("lo")?;
            objects::attach_tcx(&objects::program(&object, "bl_stamp")?, index).map(drop)
        });
    Check {
        what: "programs can be attached to devices by links (tcx), for the mark and the router",
        verdict: if attached.is_ok() { Verdict::Yes } else { Verdict::No },
        found: attached.as_ref().map_or_else(ToString::to_string, |()| "it can, to the loopback".into()),
        advice: attached.is_err().then(|| "Linux 6.6 or newer; `sch_abc` is a router for older ones".into()),
    }
}
