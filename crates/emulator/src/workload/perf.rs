//! `perf` and `perf-server` as the hosts of QUIC: their command lines, and their JSON, which is that of every
//! run.

use std::ffi::OsString;
use std::path::Path;

use brakelight_scenario::documents::Runs;

use super::{HostFlow, HostResult, WorkloadError};

pub(super) const NAME: &str = "perf";

/// Runs what follows. QUIC tries again by itself where the receiver is still starting.
pub(super) const TRY: &str = "try() { \"$@\" >\"$out\" 2>\"$out.err\"; }\n";

/// A receiver, by the name of its program.
pub(super) fn server(program: &Path, flow: &HostFlow) -> OsString {
    // The shell takes everything between single quotes as it is, but these themselves.
    let program = program.to_string_lossy().replace('\'', r"'\''");
    format!("exec '{program}' perf-server --listen 0.0.0.0:{} >/dev/null 2>&1", flow.port).into()
}

/// The options of a sender. Every router on the path is the emulator's own.
pub(super) fn client(flow: &HostFlow) -> String {
    format!(
        "perf \"$BRAKELIGHT_HOST:{}\" --controller '{}' --own-path --duration {}s --format json",
        flow.port, flow.congestion, flow.seconds
    )
}

/// Reads what a sender printed. It speaks of its whole time, wherever the measured interval begins.
pub(super) fn parse(text: &str, flow: &HostFlow) -> Result<HostResult, WorkloadError> {
    let failed = || WorkloadError::Failed { flow: flow.name.clone(), program: NAME, message: String::new() };
    let document: Runs = serde_json::from_str(text).map_err(|_| failed())?;
    let run = document.runs.into_iter().next();
    let run = run.ok_or(WorkloadError::Missing { flow: flow.name.clone(), program: NAME, field: "runs" })?;
    Ok(HostResult {
        bytes: (run.goodput_mbps * run.duration_s * 1e6 / 8.0) as u64,
        seconds: run.duration_s,
        retransmitted: run.retransmitted_packets,
        summary: run.rtt_ms,
        ..HostResult::default()
    })
}
