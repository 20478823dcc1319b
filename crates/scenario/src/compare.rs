//! The scenario behind one run of `compare`: one flow, backlogged unless something else is asked for, over a
//! link that follows a trace, its ACKs over a way back with or without a limit, the flow started within its
//! first RTT by a draw from the seed. [`Compare::mahimahi`] has the settings of the ABC paper's cellular runs
//! and of the reference measurements.

use std::fmt;

use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_registry::DEFAULT_QUEUE;

use crate::problem::{InputError, Invalid, Problem};
use crate::scenario::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use crate::scheme::Scheme;
use crate::scheme_string::SchemeString;
use crate::traffic::Traffic;

/// The link that carries the data.
pub const FORWARD: &str = "forward";
/// The link that carries the ACKs.
pub const REVERSE: &str = "reverse";
/// The flow that is measured.
pub const MEASURED: &str = "main";
/// The flow it competes with.
pub const COMPETITOR: &str = "against";

/// The buffer of a way back that has a limit: at 12 Mbit/s 10,000 ACKs are a third of a second.
const REVERSE_BUFFER: Limit = Limit::Packets(10_000);

/// What limits the way back.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reverse {
    /// Nothing: ACKs wait for propagation alone.
    Unlimited,
    /// A link of constant rate with a drop-tail queue of 10,000 packets.
    Rate(Rate),
    /// A link that follows the trace of this name or file, with the same queue.
    Trace(String),
}

impl Reverse {
    /// The way back of the papers' emulations.
    pub const MAHIMAHI: Reverse = Reverse::Rate(Rate::from_mbps(12));

    /// Returns what `text` names: `none`, a rate such as `12Mbps`, or else a trace.
    pub fn parse(text: &str) -> Self {
        match text.parse() {
            Ok(rate) => Reverse::Rate(rate),
            Err(_) if text == "none" => Reverse::Unlimited,
            Err(_) => Reverse::Trace(text.to_string()),
        }
    }
}

/// As [`Reverse::parse`] reads it.
impl fmt::Display for Reverse {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Reverse::Unlimited => f.write_str("none"),
            Reverse::Rate(rate) => rate.fmt(f),
            Reverse::Trace(name) => f.write_str(name),
        }
    }
}

/// One scheme on one trace.
#[derive(Clone, Debug, PartialEq)]
pub struct Compare {
    /// The scheme.
    pub scheme: Scheme,
    /// The name or file of the trace.
    pub trace: String,
    /// What the scheme's application does. A competitor is backlogged.
    pub traffic: Traffic,
    /// Propagation delay of the round trip.
    pub rtt: Duration,
    /// The bottleneck's buffer.
    pub buffer: Limit,
    /// What limits the way back.
    pub reverse: Reverse,
    /// Length of the run.
    pub duration: Duration,
    /// The seed.
    pub seed: u64,
    /// Where in its period the trace starts.
    pub trace_offset: TraceOffset,
    /// The scheme of one competing flow at the same queue. The scheme may then run
    /// [as another](Self::beside_others).
    pub against: Option<Scheme>,
    /// Whether the opportunities of a millisecond of the trace come one after another in it.
    pub spread: bool,
    /// Whether the scheme runs as given beside such a competitor, too.
    pub as_given: bool,
    /// What to keep besides the summary.
    pub record: Record,
}

impl Compare {
    /// Returns `scheme` on `trace` as the papers ran theirs in Mahimahi: RTT 100 ms, 250 packets of buffer,
    /// 12 Mbit/s back, 60 s from the trace's beginning, seed 1.
    pub fn mahimahi(scheme: Scheme, trace: &str) -> Self {
        let duration = Duration::from_secs(60);
        Compare {
            scheme,
            trace: trace.to_string(),
            traffic: Traffic::Backlogged,
            rtt: Duration::from_millis(100),
            buffer: Limit::Packets(250),
            reverse: Reverse::MAHIMAHI,
            duration,
            seed: 1,
            trace_offset: TraceOffset::At(Duration::ZERO),
            against: None,
            spread: false,
            as_given: false,
            record: Record::summary(duration),
        }
    }

    /// Returns the scenario, checked.
    pub fn scenario(&self) -> Result<Scenario, InputError> {
        let droptail = || SchemeString::new(DEFAULT_QUEUE, &[]).expect("the default queue is registered");
        let other = self.beside_others().filter(|_| !self.as_given);
        let scheme = other.as_ref().unwrap_or(&self.scheme);
        let forward = LinkSpec::trace(FORWARD, &self.trace, self.buffer, scheme.queue().clone());
        let mut links = vec![LinkSpec { spread: self.spread, ..forward }];
        links.extend(match &self.reverse {
            Reverse::Unlimited => None,
            Reverse::Rate(rate) => Some(LinkSpec {
                overhead: LinkSpec::MAHIMAHI_OVERHEAD,
                ..LinkSpec::fixed(REVERSE, *rate, REVERSE_BUFFER, droptail())
            }),
            Reverse::Trace(trace) => Some(LinkSpec::trace(REVERSE, trace, REVERSE_BUFFER, droptail())),
        });
        let own = FlowSpec { traffic: self.traffic.clone(), ..self.flow(MEASURED, scheme) };
        let mut flows = vec![own];
        if let Some(against) = &self.against {
            if against.queue_named() {
                let reason = format!(
                    "`{against}` names a queue, but the competing flow shares the queue of `{}`: leave it out",
                    self.scheme
                );
                return Err(contradiction("against", reason));
            }
            flows.push(self.flow(COMPETITOR, against));
        }
        let scenario = Scenario {
            name: format!("{} on {}", self.scheme, self.trace),
            seed: self.seed,
            duration: self.duration,
            measure_from: Duration::ZERO,
            trace_offset: self.trace_offset,
            links,
            flows,
            record: self.record,
        };
        scenario.validate().map_err(|invalid| self.explain(invalid))?;
        Ok(scenario)
    }

    /// Returns the scheme that takes its place beside its competitor, if one does: with the second queue of
    /// an ABC router, or as BMCC's variant for other traffic.
    pub fn beside_others(&self) -> Option<Scheme> {
        self.scheme.beside(self.against.as_ref()?)
    }

    fn flow(&self, name: &str, scheme: &Scheme) -> FlowSpec {
        let mut flow = scheme.flow(name, self.rtt);
        flow.path = vec![Hop::Link(FORWARD.to_string())];
        if self.reverse != Reverse::Unlimited {
            flow.reverse = vec![Hop::Link(REVERSE.to_string())];
        }
        flow
    }

    /// Puts a complaint about the scenario in the words of `compare`'s arguments, which have the fields'
    /// names.
    fn explain(&self, invalid: Invalid) -> InputError {
        invalid.of(format!("{} on {}", self.scheme, self.trace))
    }
}

fn contradiction(key: &str, reason: String) -> InputError {
    let problem = Box::new(Problem::Contradiction { key: key.to_string(), reason });
    InputError { file: None, line: None, owner: String::new(), problem }
}

#[cfg(test)]
#[path = "compare_tests.rs"]
mod tests;
