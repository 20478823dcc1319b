//! Flows over sockets from beginning to end, and what came of them. Each has a thread, since each keeps a
//! rate by waking up in time.
//!
//! What a flow counts, and over which time, is what it counts in simulation; packets, queues and marks are
//! the network's to count.

use std::collections::BTreeMap;
use std::fmt;
use std::io;
use std::net::{IpAddr, Ipv4Addr, SocketAddr, UdpSocket};
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc;
use std::thread;
use std::time::Instant;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_scenario::measure::{Distribution, active, mbps};
use brakelight_scenario::outcome::{FlowOutcome, FlowSeries, Run, Series};
use brakelight_scenario::scenario::Scenario;

use super::flow::{FlowSettings, Totals};
use super::host::Host;
use super::sockets::{FlowEnds, SocketHost};

/// How often a flow looks whether another one has failed.
const LOOK_EVERY: Duration = Duration::from_secs(1);

/// Makes both ends of a flow, in the thread in which they will run.
pub type Open = Box<dyn FnOnce() -> Result<Box<dyn FlowEnds>, String> + Send>;

/// A flow to be run.
pub struct FlowPlan {
    /// Its name in the results.
    pub name: String,
    /// The registered name of its controller.
    pub controller: &'static str,
    /// When it starts.
    pub start: Time,
    /// When it stops, if that is before the end.
    pub stop: Option<Time>,
    /// Makes both of its ends. What a real host is late by it is by itself: they have no jitter.
    pub open: Open,
    /// Payload of a full packet: the window is recorded in such packets.
    pub mss: Bytes,
    /// Where its receiving end's packets leave and arrive.
    pub receiver: UdpSocket,
}

impl FlowPlan {
    /// Returns the plan of a flow over this crate's stack.
    pub fn of(name: String, settings: FlowSettings, mss: Bytes, receiver: UdpSocket) -> Self {
        let (controller, start, stop) = (settings.controller.name(), settings.start, settings.stop);
        let settings = FlowSettings { jitter: Duration::ZERO, ..settings };
        let open = || match Host::new(settings) {
            Ok(host) => Ok(Box::new(host) as Box<dyn FlowEnds>),
            Err(error) => Err(error.to_string()),
        };
        FlowPlan { name, controller, start, stop, open: Box::new(open), mss, receiver }
    }
}

impl fmt::Debug for FlowPlan {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("FlowPlan").field("name", &self.name).finish_non_exhaustive()
    }
}

/// Why the flows could not be run to their end.
#[derive(Debug, thiserror::Error)]
#[non_exhaustive]
pub enum Error {
    /// One of them.
    #[error("flow `{name}`: {source}")]
    Flow {
        /// Its name.
        name: String,
        /// Why.
        source: io::Error,
    },
    /// A thread could not be started.
    #[error(transparent)]
    Thread(#[from] io::Error),
    /// A fault of the flow's stack, or of this program.
    #[error("flow `{name}`: its thread panicked; its message is above")]
    Panicked {
        /// Its name.
        name: String,
    },
}

/// Runs `flows` side by side until `scenario` ends; they are its flows, in their order. The sending ends have
/// sockets of their own here; the receiving ends' sockets are reached at `far`. Returns the row of the run
/// with its flows, and their time series, which are empty unless the scenario records series. The run is
/// unreliable if a flow ran later than `late_most` in the measured interval.
pub fn run(
    scenario: &Scenario,
    flows: Vec<FlowPlan>,
    far: IpAddr,
    late_most: Duration,
) -> Result<(Run, Series), Error> {
    let failed = AtomicBool::new(false);
    let done = thread::scope(|scope| {
        let (mut threads, mut starts) = (Vec::new(), Vec::new());
        let (opening, opened) = mpsc::channel::<()>();
        for plan in flows {
            let (name, failed, opening) = (plan.name.clone(), &failed, opening.clone());
            let (start, started) = mpsc::channel();
            let base = move || {
                drop(opening);
                started.recv().map_err(|_| io::Error::other("another flow could not be started"))
            };
            let one = move || {
                let done = Flow::open(plan, far, base).and_then(|flow| flow.run(scenario, failed));
                failed.fetch_or(done.is_err(), Ordering::Relaxed);
                done
            };
            threads.push((name, thread::Builder::new().spawn_scoped(scope, one)?));
            starts.push(start);
        }
        drop(opening);
        // Ends once every flow is open, or could not be opened. They begin together then, whatever that took.
        let _ = opened.recv();
        let base = Instant::now();
        for start in starts {
            let _ = start.send(base);
        }
        let ended = threads.into_iter().map(|(name, thread)| match thread.join() {
            Ok(done) => done.map_err(|source| Error::Flow { name, source }),
            Err(_) => Err(Error::Panicked { name }),
        });
        // The first error, but only once all threads have ended.
        ended.collect::<Vec<_>>().into_iter().collect::<Result<Vec<_>, Error>>()
    })?;
    Ok(row(scenario, done.into_iter().flatten().collect(), late_most))
}

/// What came of the flows, as the row of their run.
fn row(scenario: &Scenario, flows: Vec<Done>, late_most: Duration) -> (Run, Series) {
    let length = scenario.duration.saturating_sub(scenario.measure_from);
    let mut rtt = Distribution::default();
    flows.iter().for_each(|flow| rtt.merge(&flow.rtt));
    let series = Series {
        bin_s: scenario.record.bin.as_secs_f64(),
        flows: flows.iter().map(|flow| flow.series.clone()).collect(),
        ..Series::default()
    };
    let mut reasons: Vec<String> = flows.iter().filter_map(|flow| flow.closed.clone()).collect();
    let latest = flows.iter().max_by_key(|flow| flow.late).filter(|flow| flow.late > late_most);
    let late =
        |flow: &Done| format!("flow `{}` ran {} late; the limit is {late_most}", flow.row.name, flow.late);
    reasons.extend(latest.map(late));
    let run = Run {
        scheme: scenario.name.clone(),
        seed: scenario.seed,
        duration_s: length.as_secs_f64(),
        goodput_mbps: mbps(flows.iter().map(|flow| flow.bytes).sum(), length),
        rtt_ms: rtt.summary(),
        unreliable: !reasons.is_empty(),
        unreliable_because: reasons,
        flows: flows.into_iter().map(|flow| flow.row).collect(),
        ..Run::default()
    };
    (run, series)
}

/// A flow that is about to begin.
struct Flow {
    name: String,
    controller: &'static str,
    start: Time,
    stop: Option<Time>,
    mss: Bytes,
    host: SocketHost,
}

/// What came of a flow.
struct Done {
    row: FlowOutcome,
    /// Payload that arrived in the measured interval.
    bytes: u64,
    rtt: Distribution,
    series: FlowSeries,
    /// Why and when its connection ended before its time.
    closed: Option<String>,
    /// How late it ran at most in the measured interval.
    late: Duration,
}

impl Flow {
    /// Opens the flow. `base` is called then, and returns its time zero.
    fn open(plan: FlowPlan, far: IpAddr, base: impl FnOnce() -> io::Result<Instant>) -> io::Result<Self> {
        let FlowPlan { name, controller, start, stop, open, mss, receiver } = plan;
        let port = receiver.local_addr()?.port();
        let sender = UdpSocket::bind((Ipv4Addr::UNSPECIFIED, 0))?;
        let host = open().map_err(io::Error::other)?;
        let host = SocketHost::new(host, sender, receiver, SocketAddr::from((far, port)), base()?)?;
        Ok(Flow { name, controller, start, stop, mss, host })
    }

    /// Runs it until the scenario's end; to no result once another flow has `failed`.
    fn run(mut self, scenario: &Scenario, failed: &AtomicBool) -> io::Result<Option<Done>> {
        let (from, to) = (Time::ZERO + scenario.measure_from, Time::ZERO + scenario.duration);
        let mut series = FlowSeries { name: self.name.clone(), ..FlowSeries::default() };
        let mut rtt = Distribution::default();
        let mut before = Totals::default();
        let mut bin = Bin::default();
        let (mut now, mut bin_end) = (Time::ZERO, Time::MAX);
        if scenario.record.series {
            bin_end = Time::ZERO + scenario.record.bin;
        }
        while now < to {
            if failed.load(Ordering::Relaxed) {
                return Ok(None);
            }
            let measuring = now >= from;
            let next = if measuring { to } else { from.min(to) }.min(bin_end).min(now + LOOK_EVERY);
            self.host.advance(next, |sample| {
                bin.record(sample);
                if measuring {
                    rtt.record(sample);
                }
            })?;
            now = next;
            if now == from {
                before = self.host.host().totals();
                self.host.take_late();
            }
            if now == bin_end {
                let began = bin_end.saturating_sub(scenario.record.bin);
                bin.close(&mut series, began, self.host.host().cwnd(), self.mss);
                bin_end += scenario.record.bin;
            }
        }
        Ok(Some(self.done(scenario, before, rtt, series)))
    }

    fn done(mut self, scenario: &Scenario, before: Totals, rtt: Distribution, series: FlowSeries) -> Done {
        let late = self.host.take_late();
        let (from, to) = (Time::ZERO + scenario.measure_from, Time::ZERO + scenario.duration);
        let host = self.host.host();
        let totals = host.totals();
        let bytes = totals.received_bytes - before.received_bytes;
        let active = active(self.start, self.stop, from, to);
        let mut application = BTreeMap::new();
        host.application(to, &mut |name, value| {
            application.insert(name.to_string(), value);
        });
        let mut state = BTreeMap::new();
        if scenario.record.state {
            // JSON has no other numbers.
            host.inspect(&mut |name, value| {
                if value.is_finite() {
                    state.insert(name.to_string(), value);
                }
            });
        }
        let closed = host.closed().map(|(at, reason)| {
            let (name, at) = (&self.name, at.as_secs_f64());
            format!("flow `{name}` ({}): its connection ended at {at:.6} s: {reason}", self.controller)
        });
        let row = FlowOutcome {
            name: self.name,
            controller: self.controller.to_string(),
            goodput_mbps: mbps(bytes, active),
            rtt_ms: rtt.summary(),
            // The stack does not count packets that carry something for the second time; what was lost is
            // sent again.
            retransmitted_packets: totals.lost_packets - before.lost_packets,
            application: (!application.is_empty()).then_some(application),
            state: scenario.record.state.then_some(state),
            ..FlowOutcome::default()
        };
        Done { row, bytes, rtt, series, closed, late }
    }
}

/// RTT samples of a bin of the time series.
#[derive(Default)]
struct Bin {
    samples: u32,
    sum_ms: f64,
}

impl Bin {
    fn record(&mut self, rtt: Duration) {
        self.samples += 1;
        self.sum_ms += rtt.as_millis_f64();
    }

    /// Ends the bin that began at `from`, and begins the next.
    fn close(&mut self, series: &mut FlowSeries, from: Time, cwnd: Bytes, mss: Bytes) {
        let Bin { samples, sum_ms } = std::mem::take(self);
        series.time_s.push(from.as_secs_f64());
        series.cwnd_pkts.push(cwnd.as_f64() / mss.as_f64());
        series.rtt_ms.push((samples > 0).then(|| sum_ms / f64::from(samples)));
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_bin_holds_the_mean_of_its_samples_and_nothing_without_any() {
        let mut series = FlowSeries::default();
        let mut bin = Bin::default();
        bin.record(Duration::from_millis(10));
        bin.record(Duration::from_millis(20));
        bin.close(&mut series, Time::ZERO, Bytes(3_000), Bytes(1_500));
        bin.close(&mut series, Time::ZERO + Duration::from_millis(100), Bytes(4_500), Bytes(1_500));
        assert_eq!(series.time_s, [0.0, 0.1]);
        assert_eq!(series.cwnd_pkts, [2.0, 3.0]);
        assert_eq!(series.rtt_ms, [Some(15.0), None]);
    }
}
