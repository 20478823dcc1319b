//! The links that episodes are drawn from.

use brakelight::core::path::trace::Trace;
use brakelight::core::random::Random;
use brakelight::core::registry::{ControllerConfig, QueueConfig, Registry};
use brakelight::core::time::Duration;
use brakelight::core::units::{Limit, Rate};
use brakelight::prelude::{FlowSpec, Hop, LinkSpec, Record, Scenario, TraceOffset};
use brakelight::scenario::scenario::{Service, Steps};
use brakelight::scenario::scheme_string::{ByName, SchemeString, Words};
use brakelight::sim::Traces;
use serde::Deserialize;

/// The least and the most of a number.
pub type Range = (f64, f64);

/// What links are drawn from: ranges, and traces that take the place of a rate.
#[derive(Clone, Debug, Deserialize)]
#[serde(deny_unknown_fields)]
pub struct Domain {
    /// Mbit/s, log-uniform.
    pub rate_mbps: Range,
    /// Propagation delay of the round trip in ms, log-uniform.
    pub rtt_ms: Range,
    /// The buffer in packets, log-uniform; if absent, `buffer_bdp` decides.
    pub buffer_packets: Option<Range>,
    /// The buffer in bandwidth-delay products, uniform.
    pub buffer_bdp: Range,
    /// Share of packets that are lost whatever the queue does, uniform.
    pub loss: Range,
    /// How long each rate lasts in seconds, uniform, before another is drawn; absent for a rate that stays.
    pub hold_s: Option<Range>,
    /// Names of traces, each as likely; if any, they give the rates, from a place drawn anew.
    #[serde(default)]
    pub traces: Vec<String>,
    /// The queue, as a scenario has it.
    pub queue: String,
    /// Controllers of flows that share the queue.
    #[serde(default)]
    pub against: Vec<String>,
}

/// What was drawn for one episode.
#[derive(Clone, Debug)]
pub struct Drawn {
    /// The link's service.
    pub service: Service,
    /// Its mean rate.
    pub rate: Rate,
    /// Propagation delay of the round trip.
    pub rtt: Duration,
    /// The buffer, in packets.
    pub buffer: u32,
    /// Share of packets lost on the way.
    pub loss: f64,
    /// Decides all else that is random.
    pub seed: u64,
}

/// Rates of a varying link that are drawn; after the last the first comes again.
const HELD: usize = 256;

/// A full packet at the IP layer.
pub const PACKET: f64 = 1500.0;

/// Returns a number of `range`, uniform.
pub fn uniform(random: &mut Random, (least, most): Range) -> f64 {
    least + (most - least) * random.uniform()
}

/// Returns a number of `range`, whose logarithm is uniform.
pub fn log_uniform(random: &mut Random, (least, most): Range) -> f64 {
    uniform(random, (least.ln(), most.ln())).exp()
}

fn mbps(rate: f64) -> Rate {
    Rate::from_bps_f64(rate * 1e6)
}

impl Domain {
    /// Draws a link. Of each number as many values are drawn as before, whatever the others are.
    pub fn draw(&self, random: &mut Random, traces: &Traces) -> Drawn {
        let seed = random.bits() >> 1;
        let first = log_uniform(random, self.rate_mbps);
        let rtt = Duration::from_secs_f64(log_uniform(random, self.rtt_ms) * 1e-3);
        let (room, loss, which) = (random.uniform(), uniform(random, self.loss), random.uniform());
        let trace = self.traces.get((which * self.traces.len() as f64) as usize);
        let (service, rate) = if let Some(name) = trace {
            let mean = traces
                .get(name)
                .map_or(mbps(first), |trace: &Trace| trace.mean_rate(LinkSpec::MAHIMAHI_OPPORTUNITY));
            (Service::Trace(name.clone()), mean)
        } else if let Some(hold) = self.hold_s {
            let steps: Vec<(Duration, Rate)> = (0..HELD)
                .map(|place| {
                    let rate = if place == 0 { first } else { log_uniform(random, self.rate_mbps) };
                    (Duration::from_secs_f64(uniform(random, hold)), mbps(rate))
                })
                .collect();
            let (sum, time) = steps.iter().fold((0.0, 0.0), |(sum, time), (lasts, rate)| {
                (sum + rate.bps() as f64 * lasts.as_secs_f64(), time + lasts.as_secs_f64())
            });
            (Service::Steps(Steps { steps, repeat: true }), Rate::from_bps_f64(sum / time))
        } else {
            (Service::Fixed(mbps(first)), mbps(first))
        };
        let product = rate.bytes_in(rtt).as_f64() / PACKET;
        let packets = match self.buffer_packets {
            Some((least, most)) => (least.ln() + (most / least).ln() * room).exp(),
            None => product * (self.buffer_bdp.0 + (self.buffer_bdp.1 - self.buffer_bdp.0) * room),
        };
        Drawn { service, rate, rtt, buffer: (packets.round() as u32).max(2), loss, seed }
    }

    /// Says what is wrong with the queue, or with a controller of the flows that share it.
    pub fn check(&self, registry: &Registry) -> Result<(), String> {
        read::<QueueConfig>(registry, "queue", &self.queue)?;
        self.against.iter().try_for_each(|name| read::<ControllerConfig>(registry, "against", name).map(drop))
    }

    /// Returns the scenario of a drawn link: first the flows that `controllers` name, then those against
    /// them. Flow number `i` begins `starts_s[i]` seconds after the beginning.
    pub fn scenario(
        &self,
        registry: &Registry,
        drawn: &Drawn,
        controllers: &[&str],
        starts_s: &[f64],
    ) -> Result<Scenario, String> {
        let said = |error: &dyn std::fmt::Display| error.to_string();
        let queue = read(registry, "queue", &self.queue)?;
        let mut link = LinkSpec::fixed("link", drawn.rate, Limit::Packets(drawn.buffer), queue);
        if let Service::Trace(_) = drawn.service {
            link.opportunity = LinkSpec::MAHIMAHI_OPPORTUNITY;
            link.overhead = LinkSpec::MAHIMAHI_OVERHEAD;
        }
        link.service = drawn.service.clone();
        let mut path = vec![Hop::Link("link".into())];
        if drawn.loss > 0.0 {
            let rate = drawn.loss.to_string();
            let loss = SchemeString::new("loss", &[("rate", &rate)]).map_err(|error| said(&error))?;
            path.insert(0, Hop::Element(loss));
        }
        let all = controllers.iter().copied().chain(self.against.iter().map(String::as_str));
        let flows = all.enumerate().map(|(place, controller)| {
            let controller = read(registry, "against", controller)?;
            let mut flow = FlowSpec::new(&format!("flow-{place}"), controller, drawn.rtt, path.clone());
            flow.start_within = Duration::ZERO;
            flow.start = Duration::from_secs_f64(starts_s.get(place).copied().unwrap_or(0.0));
            // What is measured per interval should be the link's, not the receiver's.
            flow.ack_every = 1;
            Ok(flow)
        });
        let scenario = Scenario {
            name: "episode".into(),
            seed: drawn.seed,
            duration: LONGEST,
            measure_from: Duration::ZERO,
            trace_offset: TraceOffset::Random,
            links: vec![link],
            flows: flows.collect::<Result<_, String>>()?,
            record: Record::summary(LONGEST),
        };
        scenario.validate().map_err(|refusal| said(&refusal.problem))?;
        Ok(scenario)
    }
}

/// Returns the algorithm that `text`, the setting called `key`, spells.
pub fn read<C: ByName>(registry: &Registry, key: &str, text: &str) -> Result<SchemeString<C>, String> {
    let words =
        Words::parse(text).ok_or_else(|| format!("{key} = `{text}`: valid is a name such as `cubic`"))?;
    SchemeString::from_words_with(registry, words).map_err(|error| format!("{key} = `{text}`: {error}"))
}

/// The end that the scenario of an episode has; an episode ends when its steps are done.
const LONGEST: Duration = Duration::from_secs(3600);
