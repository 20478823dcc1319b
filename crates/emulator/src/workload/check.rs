//! Which flows real hosts can be. Every refusal names the field, and what would be valid.

use brakelight_core::ecn::Encoding;
use brakelight_core::time::Duration;
use brakelight_core::units::Bytes;
use brakelight_registry::{CONTROLLERS, ControllerConfig, Host, Kernel};
use brakelight_scenario::clock::Clock;
use brakelight_scenario::problem::{InputError, Problem};
use brakelight_scenario::scenario::{FlowSpec, Reordering, Scenario, packet_sizes};
use brakelight_scenario::traffic::Traffic;

use super::{Hosts, NANOS};
use crate::device::TunSettings;

/// IPv4 and UDP.
const DATAGRAM_HEADERS: Bytes = Bytes(28);

pub(super) fn refuse(owner: &str, key: &str, reason: String) -> InputError {
    let problem = Box::new(Problem::Contradiction { key: key.to_string(), reason });
    InputError { file: None, line: None, owner: owner.to_string(), problem }
}

/// iperf3 counts whole seconds.
pub(super) fn whole_seconds(owner: &str, key: &str, time: Duration) -> Result<(), InputError> {
    if time.as_nanos().is_multiple_of(NANOS) {
        return Ok(());
    }
    let valid = "whole seconds, which is what iperf3 counts on the emulator".to_string();
    let problem = Problem::OutOfRange { key: key.to_string(), value: time.to_string(), valid };
    Err(InputError { file: None, line: None, owner: owner.to_string(), problem: Box::new(problem) })
}

/// Returns every controller that Linux has, by our name, with Linux's own.
pub fn kernels() -> impl Iterator<Item = (&'static str, Kernel)> {
    CONTROLLERS.iter().filter_map(|entry| {
        let config = ControllerConfig::new(entry.name, &[]).ok()?;
        Some((entry.name, config.needs().kernel?))
    })
}

/// Linux's counterpart of the flow's controller.
pub(super) fn kernel(flow: &FlowSpec) -> Result<Kernel, InputError> {
    let owner = format!("flow `{}`", flow.name);
    let words = flow.controller.words();
    let Some(kernel) = flow.controller.needs().kernel else {
        let valid = kernels().map(|(name, _)| name).collect::<Vec<_>>().join(", ");
        let reason = format!("Linux has no `{}`: valid on the emulator are {valid}", words.name);
        return Err(refuse(&owner, "controller", reason));
    };
    if let Some((option, value)) =
        words.options.iter().find(|(option, _)| !kernel.options.contains(&option.as_str()))
    {
        let reason =
            format!("Linux's {} does not take `{option}={value}`: on the emulator leave it out", kernel.name);
        return Err(refuse(&owner, "controller", reason));
    }
    Ok(kernel)
}

/// Whether `hosts` can be this flow, beside `first` on the same path.
pub(super) fn check_flow(flow: &FlowSpec, first: &FlowSpec, hosts: &Hosts) -> Result<(), InputError> {
    match hosts {
        Hosts::Kernel => check_kernel(flow)?,
        Hosts::Quic(_) => check_quic(flow)?,
        Hosts::Programs(_) => {}
    }
    let owner = format!("flow `{}`", flow.name);
    let refuse = |key: &str, reason: String| Err(refuse(&owner, key, reason));
    if flow.read_batch != 1 && !matches!(hosts, Hosts::Programs(_)) {
        return refuse("read_batch", "real hosts read what has come: leave it out".to_string());
    }
    if flow.rtt != first.rtt || flow.count > 1 && !flow.rtt_step.is_zero() {
        return refuse("rtt", "the emulator's path has one delay: give every flow the same".to_string());
    }
    if flow.path != first.path {
        return refuse(
            "path",
            format!("the emulator has one path: give every flow that of `{}`", first.name),
        );
    }
    if flow.reverse != first.reverse {
        return refuse(
            "reverse",
            format!("the emulator has one return path: give every flow that of `{}`", first.name),
        );
    }
    Ok(())
}

/// Kernel TCP and iperf3 decide nearly everything themselves.
fn check_kernel(flow: &FlowSpec) -> Result<(), InputError> {
    kernel(flow)?;
    let owner = format!("flow `{}`", flow.name);
    let refuse = |key: &str, reason: String| Err(refuse(&owner, key, reason));
    if flow.host != Host::Tcp {
        return refuse(
            "host",
            "the emulator's hosts are kernel TCP: valid is `tcp`, or --host quinn for QUIC".to_string(),
        );
    }
    if flow.encoding() != Encoding::None {
        return refuse("controller", "the emulator's hosts do not ask for ECN: leave `ecn` out".to_string());
    }
    if flow.feedback.name() != flow.controller.needs().feedback {
        let reason = format!("a real receiver gives no other than `{}`", flow.controller.needs().feedback);
        return refuse("feedback", reason);
    }
    let (mss, overhead) = packet_sizes(Host::Tcp);
    if (flow.mss, flow.overhead) != (mss, overhead) {
        return refuse(
            "mss",
            format!(
                "real hosts decide on their packets: leave it out, for {} B and {} B of headers",
                mss.0, overhead.0
            ),
        );
    }
    if flow.pacing_burst != FlowSpec::PACING_BURST {
        return refuse(
            "pacing_burst",
            format!("that of real hosts is {}: leave it out", FlowSpec::PACING_BURST),
        );
    }
    if flow.reordering != Reordering::Fixed || !flow.undo {
        let key = if flow.undo { "reordering" } else { "undo" };
        return refuse(key, "real hosts have their own loss detection: leave it out".to_string());
    }
    if flow.initial_window != FlowSpec::INITIAL_WINDOW {
        return refuse(
            "initial_window",
            format!("that of real hosts is {}: leave it out", FlowSpec::INITIAL_WINDOW),
        );
    }
    if flow.ack_every != 2 {
        return refuse("ack_every", "real hosts acknowledge every second packet: valid is 2".to_string());
    }
    if flow.ack_delay.is_some() {
        return refuse("ack_delay", "real hosts have their own: leave it out".to_string());
    }
    if flow.traffic != Traffic::Backlogged {
        return refuse(
            "traffic",
            "iperf3 always has more to send: leave it out, or take --host quinn, which runs every application"
                .to_string(),
        );
    }
    if flow.receiver_clock != Clock::default() {
        return refuse("receiver_clock", "real hosts have the machine's clock: leave it out".to_string());
    }
    whole_seconds(&owner, "start", flow.start)?;
    if let Some(stop) = flow.stop {
        whole_seconds(&owner, "stop", stop)?;
    }
    Ok(())
}

/// Programs take the place of the only flow, from its start to the end of the run. What the scenario says of
/// the flow's hosts is about those that they replace.
pub(super) fn check_programs(scenario: &Scenario, flow: &FlowSpec) -> Result<(), InputError> {
    let count = scenario.flow_count();
    if count != 1 {
        let reason = format!("--command takes the place of the only flow: leave one of the {count} flows");
        return Err(refuse("", "flow", reason));
    }
    let owner = format!("flow `{}`", flow.name);
    if flow.stop.is_some() {
        let reason = "the command is stopped at the end of the run: leave it out, or shorten `duration`";
        return Err(refuse(&owner, "stop", reason.to_string()));
    }
    Ok(())
}

/// The program with QUIC takes from the scenario what it does in simulation. What is left to refuse is what
/// the devices do not carry.
fn check_quic(flow: &FlowSpec) -> Result<(), InputError> {
    let owner = format!("flow `{}`", flow.name);
    if flow.host != Host::Quic {
        let reason = "the emulator's hosts are QUIC: valid is `quic`".to_string();
        return Err(refuse(&owner, "host", reason));
    }
    let (packet, mtu) = (flow.mss + flow.overhead, u64::from(TunSettings::default().mtu));
    if packet.0 > mtu || flow.overhead < DATAGRAM_HEADERS {
        let reason = format!(
            "packets of {} B, headers of {} B included, do not pass the emulator's devices: valid are packets up to {mtu} B and headers from {} B",
            packet.0, flow.overhead.0, DATAGRAM_HEADERS.0
        );
        return Err(refuse(&owner, "mss", reason));
    }
    Ok(())
}
