//! What every table of flows shows of a flow.

use brakelight_scenario::outcome::FlowOutcome;

use super::table::Column;
use super::{number, number_or_dash};

/// The columns of [`row`].
pub(super) fn columns() -> Vec<Column> {
    vec![
        Column::text("flow"),
        Column::text("controller"),
        Column::number("throughput", "Mbit/s"),
        Column::number("goodput", "Mbit/s"),
        Column::number("RTT", "p50 ms"),
        Column::number("RTT", "p95 ms"),
        Column::number("loss", "%"),
    ]
}

/// A flow's name, controller, rates, RTT and loss.
pub(super) fn row(flow: &FlowOutcome) -> Vec<String> {
    vec![
        flow.name.clone(),
        flow.controller.clone(),
        number(flow.throughput_mbps),
        number(flow.goodput_mbps),
        number_or_dash(flow.rtt_ms.map(|rtt| rtt.p50)),
        number_or_dash(flow.rtt_ms.map(|rtt| rtt.p95)),
        number(flow.loss_percent),
    ]
}
