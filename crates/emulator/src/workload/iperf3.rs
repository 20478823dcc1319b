//! iperf3 as the host of kernel TCP: its command lines, and its JSON.

use std::ffi::OsString;
use std::fmt::Write as _;

use brakelight_core::time::Duration;
use brakelight_scenario::measure::Distribution;
use serde_json::Value;

use super::{HostFlow, HostResult, WorkloadError};

pub(super) const NAME: &str = "iperf3";

/// How often iperf3 looks at its socket: the shortest it takes.
pub(super) const SAMPLE_S: f64 = 0.1;

/// Runs what follows. The receivers may still be starting: who is not let in tries again for two seconds.
pub(super) const TRY: &str = "try() { left=20; while :; do \"$@\" >\"$out\" 2>\"$out.err\" && return; \
    left=$((left - 1)); grep -q 'unable to connect' \"$out\" && [ $left -gt 0 ] || return; sleep 0.1; done; }\n";

/// All receivers: a server takes one test at a time.
pub(super) fn server(flows: &[HostFlow]) -> OsString {
    let mut line = String::new();
    for flow in flows {
        let _ = write!(line, "iperf3 --server --one-off --port {} >/dev/null 2>&1 & ", flow.port);
    }
    (line + "wait").into()
}

/// The options of a sender.
pub(super) fn client(flow: &HostFlow) -> String {
    format!(
        "--client \"$BRAKELIGHT_HOST\" --port {} --congestion {} --time {} --interval {SAMPLE_S} --json",
        flow.port, flow.congestion, flow.seconds
    )
}

/// Reads what a sender printed: its result, and its RTT samples in the measured interval.
pub(super) fn parse(
    text: &str,
    flow: &HostFlow,
    measure_from: Duration,
) -> Result<(HostResult, Distribution), WorkloadError> {
    let failed = |message: &str| WorkloadError::Failed {
        flow: flow.name.clone(),
        program: NAME,
        message: message.to_string(),
    };
    let document: Value = serde_json::from_str(text).map_err(|_| failed(""))?;
    if let Some(error) = document.get("error").and_then(Value::as_str) {
        return Err(failed(error));
    }
    let missing = |field| WorkloadError::Missing { flow: flow.name.clone(), program: NAME, field };
    let port = document.pointer("/start/connected/0/local_port").and_then(Value::as_u64);
    let local_port = port.and_then(|port| u16::try_from(port).ok()).ok_or_else(|| missing("local_port"))?;
    let intervals =
        document.get("intervals").and_then(Value::as_array).ok_or_else(|| missing("intervals"))?;
    let mut samples = Distribution::default();
    let mut host = HostResult { local_port: Some(local_port), ..HostResult::default() };
    for interval in intervals {
        let stream = interval.pointer("/streams/0").ok_or_else(|| missing("streams"))?;
        let number = |field| stream.get(field).and_then(Value::as_f64).filter(|value| *value >= 0.0);
        let start = number("start").ok_or_else(|| missing("start"))?;
        let end = number("end").ok_or_else(|| missing("end"))?;
        let rtt = Duration::from_secs_f64(number("rtt").ok_or_else(|| missing("rtt"))? * 1e-6);
        host.samples.push((end, number("snd_cwnd").unwrap_or(0.0), rtt));
        if flow.start.as_secs_f64() + start >= measure_from.as_secs_f64() {
            host.bytes += number("bytes").ok_or_else(|| missing("bytes"))? as u64;
            host.retransmitted += number("retransmits").unwrap_or(0.0) as u64;
            host.seconds += end - start;
            samples.record(rtt);
        }
    }
    // Over a whole test what arrived is known, and not only what was handed to the kernel.
    if let Some(received) = document.pointer("/end/sum_received")
        && measure_from <= flow.start
    {
        let number = |field| received.get(field).and_then(Value::as_f64).filter(|value| *value > 0.0);
        if let (Some(bytes), Some(seconds)) = (number("bytes"), number("seconds")) {
            (host.bytes, host.seconds) = (bytes as u64, seconds);
        }
    }
    host.rtt_ms = samples.summary();
    Ok((host, samples))
}
