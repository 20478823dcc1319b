//! What a comparison assumes where nothing else is asked for: a buffer, a length and places that suit its
//! trace, and how all of it is said.
//!
//! | assumption | by default | with [`Preset::Mahimahi`] |
//! |---|---|---|
//! | buffer | one bandwidth-delay product of the trace's fastest second, at least 250 packets | 250 packets |
//! | way back | no limit | 12 Mbit/s |
//! | length of a recording | its own, at least [`SHORTEST_RECORDING`] | 60 s |
//! | length of a generated trace | the time for 15,000 packets, within 6 to 30 s; one path at least | 60 s |
//! | runs | [`RUNS`] | 1 |
//! | beginning | evenly spaced places of the trace, one for each run | the trace's beginning |
//! | packets of a millisecond | one by one, if the millisecond is only a file's grid | all at its end |

use brakelight_core::packet::Direction;
use brakelight_core::time::Duration;
use brakelight_core::units::{Limit, Rate};
use brakelight_links::trace::Trace;
pub use brakelight_scenario::buffer::Buffer;
use brakelight_scenario::buffer::packets;
use brakelight_scenario::compare::Reverse;
use brakelight_scenario::file::traffic_words;
use brakelight_scenario::scenario::TraceOffset;
use brakelight_scenario::trace::conditions::{self, Milliseconds};
use brakelight_scenario::trace::names::Source;
use brakelight_scenario::trace::{OPPORTUNITY, statistics};
use brakelight_scenario::traffic::Traffic;

use crate::compare::Compare;

/// Runs of every scheme on every trace, each with a seed and a place of the trace of its own: enough for a
/// confidence interval of 95 % ([`interval`](crate::interval)).
pub const RUNS: u32 = 8;

/// The least buffer of a comparison: that of the papers.
const LEAST_BUFFER: u32 = 250;
/// How long a run over a recording is at least; a shorter recording is repeated.
pub const SHORTEST_RECORDING: Duration = Duration::from_secs(10);
/// A run over a generated trace ends when the trace has carried about so many packets, within two bounds.
const PACKETS: f64 = 15_000.0;
const SHORTEST: Duration = Duration::from_secs(6);
const LONGEST: Duration = Duration::from_secs(30);

/// Where the settings come from that are not given.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Preset {
    /// They suit each trace.
    #[default]
    Suited,
    /// They are those of the papers' emulations, and of the measurements that the simulator is held to.
    Mahimahi,
}

/// One bandwidth-delay product of the fastest second, at least 250 packets.
fn suited_buffer(trace: &Trace, rtt: Duration) -> Limit {
    let seconds = statistics::rates(trace, Duration::from_secs(1), OPPORTUNITY);
    let fastest = seconds.into_iter().fold(0.0, f64::max);
    let rate = Rate::from_bps((1e6 * fastest) as u64).max(trace.mean_rate(OPPORTUNITY));
    Limit::Packets(packets(1.0, rate, rtt).max(LEAST_BUFFER))
}

/// Propagation delay of the round trip over `trace`, and whether some of it was recorded: the median delay of
/// each direction that was, half of `rtt` for any other.
fn round_trip(trace: &Trace, rtt: Duration) -> (Duration, bool) {
    let median =
        |direction| trace.recorded()?.conditions(direction)?.delay_quantiles([0.5]).map(|[median]| median);
    let (ahead, back) = (median(Direction::Forward), median(Direction::Reverse));
    let recorded = ahead.is_some() || back.is_some();
    (ahead.unwrap_or(rtt / 2) + back.unwrap_or(rtt - rtt / 2), recorded)
}

/// How long a run over `trace` is.
fn suited_length(source: &Source, trace: &Trace) -> Duration {
    match source {
        Source::File(_) | Source::Given(_) => trace.period().max(SHORTEST_RECORDING),
        Source::Embedded(embedded) => {
            let packets_per_s = trace.mean_rate(OPPORTUNITY).as_bps_f64() / OPPORTUNITY.bits() as f64;
            let seconds = (PACKETS / packets_per_s).ceil().min(LONGEST.as_secs_f64());
            // Runs of evenly spaced places could all lie between two changes of path.
            let paths = embedded.recipe().measured.and_then(|measured| measured.paths);
            let shortest = paths.map_or(SHORTEST, |paths| paths.every.max(SHORTEST));
            Duration::from_secs(seconds as u64).max(shortest).min(trace.period().max(shortest))
        }
    }
}

/// What the runs of every scheme on one trace have in common.
#[derive(Clone, Debug, PartialEq)]
pub struct TraceSetup {
    /// The bottleneck's buffer.
    pub buffer: Limit,
    /// How long a run is.
    pub duration: Duration,
    /// Where the runs begin.
    pub start: Start,
    /// The trace's period.
    pub period: Duration,
    /// Propagation delay of the round trip: what was asked for, or the median of what was recorded.
    pub rtt: Duration,
    /// Whether some of it was recorded.
    pub recorded: bool,
    /// Whether the packets of a millisecond come one after another in it.
    pub spread: bool,
    /// What decided that, where the trace did.
    pub milliseconds: Option<Milliseconds>,
}

/// Where in a trace the runs begin.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Start {
    /// All in one place, or each in one that its seed draws.
    Same(TraceOffset),
    /// Run i of n at i/n of this period.
    Spread(Duration),
}

impl Start {
    /// Returns where run number `index` of `runs` begins, counted from 0.
    pub fn of(self, index: u32, runs: u32) -> TraceOffset {
        match self {
            Start::Same(offset) => offset,
            Start::Spread(period) => {
                let nanos = u128::from(period.as_nanos()) * u128::from(index) / u128::from(runs.max(1));
                // Whole milliseconds, as traces have them.
                TraceOffset::At(Duration::from_millis((nanos / 1_000_000) as u64))
            }
        }
    }
}

impl TraceSetup {
    /// Returns the setup on `trace` that `request` asks for.
    pub fn new(request: &Compare, source: &Source, trace: &Trace) -> Self {
        let suited = request.preset == Preset::Suited;
        let (rtt, recorded) = round_trip(trace, request.rtt);
        let buffer = match request.buffer {
            Some(buffer) => buffer.limit(trace, rtt),
            None if suited => suited_buffer(trace, rtt),
            None => Limit::Packets(LEAST_BUFFER),
        };
        let duration = match request.duration {
            Some(duration) => duration,
            None if suited => suited_length(source, trace),
            None => Duration::from_secs(60),
        };
        let start = match request.trace_offset {
            Some(offset) => Start::Same(offset),
            None if suited => Start::Spread(trace.period()),
            None => Start::Same(TraceOffset::At(Duration::ZERO)),
        };
        // Embedded traces are replayed as their recipes make them: their kept results stay.
        let decides = suited && request.spread.is_none() && !matches!(source, Source::Embedded(_));
        let milliseconds = decides.then(|| conditions::milliseconds(trace));
        let grid = matches!(milliseconds, Some(Milliseconds::Grid(_)));
        let spread = request.spread.unwrap_or(grid);
        TraceSetup { buffer, duration, start, period: trace.period(), rtt, recorded, spread, milliseconds }
    }
}

/// Returns how many runs `request` asks for.
pub fn runs(request: &Compare) -> u32 {
    request.runs.unwrap_or(match request.preset {
        Preset::Suited => RUNS,
        Preset::Mahimahi => 1,
    })
}

/// Returns the way back that `request` asks for.
pub fn reverse(request: &Compare) -> Reverse {
    request.reverse.clone().unwrap_or(match request.preset {
        Preset::Suited => Reverse::Unlimited,
        Preset::Mahimahi => Reverse::MAHIMAHI,
    })
}

/// Returns what was the same for all runs, name and value, in words. `traces` are labels and setups.
pub fn in_words(request: &Compare, traces: &[(String, TraceSetup)]) -> Vec<(String, String)> {
    let each = |value: &dyn Fn(&TraceSetup) -> String| {
        let values: Vec<String> = traces.iter().map(|(_, setup)| value(setup)).collect();
        if values.windows(2).all(|pair| pair[0] == pair[1]) {
            return values.into_iter().next().unwrap_or_default();
        }
        let named = traces.iter().zip(&values).map(|((label, _), value)| format!("{label} {value}"));
        named.collect::<Vec<_>>().join(", ")
    };
    let suited = request.preset == Preset::Suited;
    let mut buffer = each(&|setup| setup.buffer.to_string());
    if request.buffer.is_none() && suited {
        buffer +=
            &format!(" (one bandwidth-delay product of the fastest second, at least {LEAST_BUFFER}pkt)");
    }
    let mut length = each(&|setup| setup.duration.to_string());
    if request.duration.is_none() && suited {
        let whole = traces.iter().all(|(_, setup)| setup.duration >= setup.period);
        length += if whole { " (the whole trace)" } else { " (whole recordings, parts of generated traces)" };
    }
    let mut rtt = each(&|setup| setup.rtt.to_string());
    if traces.iter().any(|(_, setup)| setup.recorded) {
        rtt += " (for recordings with delay, their median)";
    }
    let runs = runs(request);
    let mut setting = vec![
        ("RTT".to_string(), rtt),
        ("buffer".to_string(), buffer),
        ("return path".to_string(), reverse_in_words(&reverse(request))),
        ("length".to_string(), length),
        ("runs".to_string(), runs_in_words(request.seed, runs)),
        (
            "from".to_string(),
            traces.first().map_or_else(String::new, |(_, setup)| setup.start.in_words(runs)),
        ),
    ];
    let opportunities = match request.spread {
        Some(true) => Some("spread over their millisecond".to_string()),
        Some(false) => Some("at the end of their millisecond".to_string()),
        None => milliseconds_in_words(traces),
    };
    setting.extend(opportunities.map(|words| ("opportunities".to_string(), words)));
    if request.traffic != Traffic::Backlogged {
        setting.push(("traffic".to_string(), traffic_words(&request.traffic)));
    }
    if request.preset == Preset::Mahimahi {
        setting.insert(0, ("setup".to_string(), "mahimahi, as in the papers".to_string()));
    }
    setting
}

/// What the milliseconds of the traces decided; none where none of them has several packets in one.
fn milliseconds_in_words(traces: &[(String, TraceSetup)]) -> Option<String> {
    let words = |setup: &TraceSetup| match setup.milliseconds? {
        Milliseconds::Single => None,
        Milliseconds::Schedule(share) => {
            Some(format!("as recorded, {:.0} % of them in bursts of the link", 100.0 * share))
        }
        Milliseconds::Grid(share) => {
            let share = 100.0 * share;
            Some(format!("spread over their millisecond, a grid of the file ({share:.0} % in bursts)"))
        }
    };
    let decided = traces.iter().filter_map(|(label, setup)| Some((label, words(setup)?)));
    let decided: Vec<(&String, String)> = decided.collect();
    match (decided.as_slice(), traces.len()) {
        ([], _) => None,
        ([(_, words)], 1) => Some(words.clone()),
        (several, _) => {
            let named = several.iter().map(|(label, words)| format!("{label} {words}"));
            Some(named.collect::<Vec<_>>().join("; "))
        }
    }
}

fn reverse_in_words(reverse: &Reverse) -> String {
    match reverse {
        Reverse::Unlimited => "no limit".to_string(),
        Reverse::Rate(rate) => format!("{rate}, with a buffer of 10000pkt"),
        Reverse::Trace(name) => format!("trace {name}, with a buffer of 10000pkt"),
    }
}

/// Returns `1, seed 7`, or `10, seeds 7 to 16; values are medians`.
pub(crate) fn runs_in_words(first: u64, runs: u32) -> String {
    match runs {
        1 => format!("1, seed {first}"),
        _ => format!(
            "{runs}, seeds {first} to {}; values are medians",
            first.wrapping_add(u64::from(runs - 1))
        ),
    }
}

impl Start {
    fn in_words(self, runs: u32) -> String {
        match self {
            Start::Same(TraceOffset::At(start)) if start.is_zero() => "the trace's beginning".into(),
            Start::Spread(_) if runs == 1 => "the trace's beginning".into(),
            Start::Same(TraceOffset::At(start)) => format!("{start} into the trace"),
            Start::Same(TraceOffset::Random) => "random places in the trace".into(),
            Start::Spread(_) => format!("{runs} evenly spaced places in the trace, one for each run"),
        }
    }
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::trace::embedded::Embedded;

    use super::*;

    /// So many opportunities in every millisecond of a second.
    fn steady(per_millisecond: usize) -> Trace {
        let every = (1..=1000).flat_map(|ms| std::iter::repeat_n(ms, per_millisecond));
        Trace::from_millis(every).unwrap()
    }

    const RTT: Duration = Duration::from_millis(100);

    #[test]
    fn a_buffer_holds_a_product_of_the_fastest_second_and_no_less_than_the_papers() {
        // 12 Mbit/s and 100 ms are 100 packets, 240 Mbit/s are 2,000.
        assert_eq!(suited_buffer(&steady(1), RTT), Limit::Packets(250));
        assert_eq!(suited_buffer(&steady(20), RTT), Limit::Packets(2000));
        let second_second_faster = (1..=1000).chain((1001..=2000).flat_map(|ms| [ms; 10]));
        let trace = Trace::from_millis(second_second_faster).unwrap();
        let Limit::Packets(packets) = suited_buffer(&trace, RTT) else { panic!("packets") };
        assert!((995..=1001).contains(&packets), "{packets}");
    }

    #[test]
    fn the_trace_decides_on_bursts_unless_it_is_embedded_or_somebody_asks() {
        let bursts = Trace::from_millis((1..=1000).flat_map(|ms| [4 * ms; 4])).unwrap();
        let setup = |request: &Compare, trace: &Trace| {
            let setup = TraceSetup::new(request, &Source::Given(trace.clone()), trace);
            let words = in_words(request, &[("t".to_string(), setup.clone())]);
            let said = words.into_iter().find(|(name, _)| name == "opportunities").map(|(_, value)| value);
            (setup.spread, said)
        };
        let request = Compare::default();
        let grid = "spread over their millisecond, a grid of the file (0 % in bursts)";
        assert_eq!(setup(&request, &steady(4)), (true, Some(grid.into())));
        let schedule = "as recorded, 100 % of them in bursts of the link";
        assert_eq!(setup(&request, &bursts), (false, Some(schedule.into())));
        assert_eq!(setup(&request, &steady(1)), (false, None));
        for asked in [true, false] {
            let request = Compare { spread: Some(asked), ..Compare::default() };
            assert_eq!(setup(&request, &bursts).0, asked);
            assert_eq!(setup(&request, &steady(4)).0, asked);
        }
        let papers = Compare { preset: Preset::Mahimahi, ..Compare::default() };
        assert_eq!(setup(&papers, &steady(4)), (false, None));
        let embedded = Embedded::find("step").unwrap();
        let trace = embedded.trace();
        assert!(matches!(conditions::milliseconds(&trace), Milliseconds::Grid(_)), "as its file would be");
        assert!(!TraceSetup::new(&request, &Source::Embedded(embedded), &trace).spread);
    }

    #[test]
    fn runs_begin_all_over_the_trace() {
        let start = Start::Spread(Duration::from_secs(10));
        let places: Vec<TraceOffset> = (0..4).map(|run| start.of(run, 4)).collect();
        assert_eq!(places, [0, 2500, 5000, 7500].map(|ms| TraceOffset::At(Duration::from_millis(ms))));
        assert_eq!(Start::Same(TraceOffset::Random).of(3, 4), TraceOffset::Random);
    }
}
