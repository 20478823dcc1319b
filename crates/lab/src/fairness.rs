//! What two flows at one queue do to each other: the measured one and its competitor.
//!
//! The competitor's harm is what it loses beside the measured flow, against what it has beside a flow of its
//! own kind at the same queue, with the same seed and place of the trace (after ware19, with the competitor
//! itself as the one that does no more harm than is allowed):
//!
//! ```text
//! harm of throughput = 1 - throughput / throughput beside its own kind
//! harm of delay      = p95 queueing delay / p95 queueing delay beside its own kind - 1
//! ```

use brakelight_scenario::outcome::{Fairness, FlowOutcome, Run};

/// Two flows: the measured one and its competitor.
fn flows(run: &Run) -> Option<(&FlowOutcome, &FlowOutcome)> {
    match run.flows.as_slice() {
        [own, competitor] => Some((own, competitor)),
        _ => None,
    }
}

fn p95(flow: &FlowOutcome) -> Option<f64> {
    flow.queueing_delay_ms.map(|delay| delay.p95)
}

/// Writes into `run` what its two flows had; its delays become those of the first. `own_kind` is the run of
/// two flows of the competitor's kind.
pub fn judge(run: &mut Run, own_kind: Option<&Run>) {
    let Some((own, competitor)) = flows(run) else { return };
    let (first, second) = own_kind.and_then(flows).unzip();
    let both =
        |value: &dyn Fn(&FlowOutcome) -> Option<f64>| Some(f64::midpoint(value(first?)?, value(second?)?));
    let ratio = |has: Option<f64>, had: Option<f64>| Some(has? / had.filter(|had| *had > 0.0)?);
    let throughput = ratio(Some(competitor.throughput_mbps), both(&|flow| Some(flow.throughput_mbps)));
    let delay = ratio(p95(competitor), both(&p95));
    let sum = own.throughput_mbps + competitor.throughput_mbps;
    let fairness = Fairness {
        own_mbps: own.throughput_mbps,
        own_p95_ms: p95(own),
        competitor_mbps: competitor.throughput_mbps,
        competitor_p95_ms: p95(competitor),
        share: if sum > 0.0 { own.throughput_mbps / sum } else { 0.0 },
        harm_throughput: throughput.map(|ratio| 1.0 - ratio),
        harm_delay: delay.map(|ratio| ratio - 1.0),
    };
    (run.queueing_delay_ms, run.one_way_delay_ms) = (own.queueing_delay_ms, own.one_way_delay_ms);
    run.fairness = Some(fairness);
}

/// Returns what harm leaves of a scheme's power: the share of its throughput that the competitor keeps, at
/// most 1, over how much longer its delay becomes, at least 1.
pub fn kindness(fairness: &Fairness) -> f64 {
    let kept = 1.0 - fairness.harm_throughput.unwrap_or(0.0);
    let longer = 1.0 + fairness.harm_delay.unwrap_or(0.0);
    kept.clamp(0.0, 1.0) / longer.max(1.0)
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::outcome::Summary;

    use super::*;

    fn run(flows: [(f64, f64); 2]) -> Run {
        let flow = |(throughput_mbps, p95)| FlowOutcome {
            throughput_mbps,
            queueing_delay_ms: Some(Summary { p95, ..Summary::default() }),
            ..FlowOutcome::default()
        };
        Run {
            queueing_delay_ms: Some(Summary { p95: 999.0, ..Summary::default() }),
            flows: flows.map(flow).to_vec(),
            ..Run::default()
        }
    }

    #[test]
    fn harm_is_against_what_the_competitor_has_beside_its_own_kind() {
        let own_kind = run([(5.0, 190.0), (3.0, 210.0)]);
        let mut bully = run([(9.0, 208.0), (1.0, 300.0)]);
        judge(&mut bully, Some(&own_kind));
        let fairness = bully.fairness.unwrap();
        assert_eq!(
            (fairness.share, fairness.harm_throughput, fairness.harm_delay),
            (0.9, Some(0.75), Some(0.5))
        );
        assert_eq!(bully.queueing_delay_ms.unwrap().p95, 208.0, "the measured flow's alone");
        assert_eq!(kindness(&fairness), 0.25 / 1.5);
        let mut kind = run([(4.0, 20.0), (6.0, 100.0)]);
        judge(&mut kind, Some(&own_kind));
        assert_eq!(kindness(&kind.fairness.unwrap()), 1.0, "what does good is not praised");
    }

    #[test]
    fn without_the_competitors_own_kind_no_harm_is_known() {
        let mut one = run([(4.0, 20.0), (6.0, 100.0)]);
        judge(&mut one, None);
        let fairness = one.fairness.unwrap();
        assert_eq!((fairness.harm_throughput, fairness.harm_delay), (None, None));
        assert_eq!(kindness(&fairness), 1.0);
    }
}
