//! What was recorded of a path beside its capacity, in numbers; and what a recording cannot tell.

use brakelight_core::time::Duration;
use brakelight_links::replay::{CERTAIN, Conditions};
use brakelight_links::trace::Trace;
use brakelight_links::trains::{Train, Trains};
use serde::Serialize;

/// Delay and loss of one direction over one period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct PathStatistics {
    /// One-way delay; none if it was not recorded.
    pub delay_ms: Option<DelayQuantiles>,
    /// Mean probability of loss, in percent; none if it was not recorded.
    pub loss_percent: Option<f64>,
    /// Whether packets overtook each other.
    pub reorders: bool,
}

/// Light trains over one period.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct TrainStatistics {
    /// How many there are.
    pub trains: u64,
    /// Mean time from one to the next.
    pub every_ms: f64,
    /// Opportunities of a train, on average.
    pub opportunities: f64,
    /// How long a train lasts, on average.
    pub length_ms: f64,
    /// What all of them carry in the time from their first to their last packets.
    pub light_mbps: f64,
    /// How much longer than its last packet a flow must pause before a train begins.
    pub idle_ms: f64,
}

impl TrainStatistics {
    /// Returns the statistics of light trains.
    pub fn of(trains: &Trains) -> Self {
        // The last one only ends the one before it.
        let (_, used) = trains.trains().split_last().expect("there are two or more");
        let length = |train: &Train| train.opportunities.last().map_or(0.0, |last| last.as_secs_f64());
        let seconds: f64 = used.iter().map(length).sum();
        let opportunities: usize = used.iter().map(|train| train.opportunities.len()).sum();
        // The first packet of each is there when its time begins.
        let carried = (opportunities - used.len()) as f64 * trains.opportunity().bits() as f64;
        let count = used.len() as f64;
        TrainStatistics {
            trains: used.len() as u64,
            every_ms: trains.period().as_millis_f64() / count,
            opportunities: opportunities as f64 / count,
            length_ms: 1e3 * seconds / count,
            light_mbps: if seconds > 0.0 { 1e-6 * carried / seconds } else { 0.0 },
            idle_ms: trains.idle().as_millis_f64(),
        }
    }
}

/// Quantiles of a delay: the least value that so much of the time does not exceed.
#[derive(Clone, Copy, Debug, PartialEq, Serialize)]
pub struct DelayQuantiles {
    /// Least.
    pub min: f64,
    /// Median.
    pub p50: f64,
    /// 95 %.
    pub p95: f64,
    /// Most.
    pub max: f64,
}

impl PathStatistics {
    /// Returns the statistics of what was recorded.
    pub fn of(conditions: &Conditions) -> Self {
        let delay_ms = conditions.delay_quantiles([0.0, 0.5, 0.95, 1.0]).map(|delays| {
            let [min, p50, p95, max] = delays.map(Duration::as_millis_f64);
            DelayQuantiles { min, p50, p95, max }
        });
        let lost = held_values(conditions.losses(), conditions.period());
        let loss_percent = (!conditions.losses().is_empty()).then(|| {
            let sum: f64 = lost.map(|(loss, length)| f64::from(loss) * length.as_secs_f64()).sum();
            100.0 * sum / f64::from(CERTAIN) / conditions.period().as_secs_f64()
        });
        PathStatistics { delay_ms, loss_percent, reorders: conditions.reorders() }
    }
}

/// Values with how long they hold.
fn held_values<T: Copy>(
    values: &[(Duration, T)],
    period: Duration,
) -> impl Iterator<Item = (T, Duration)> + '_ {
    let ends = values.iter().skip(1).map(|(from, _)| *from).chain([period]);
    values.iter().zip(ends).map(|(&(from, value), end)| (value, end.saturating_sub(from)))
}

/// Returns the delay at the middle of each whole bin, in milliseconds.
pub fn delays(conditions: &Conditions, bin: Duration) -> Vec<f64> {
    middles(conditions, bin).map(|at| conditions.delay(at).as_millis_f64()).collect()
}

/// Returns the probability of loss at the middle of each whole bin, in percent.
pub fn losses(conditions: &Conditions, bin: Duration) -> Vec<f64> {
    let percent = |at| 100.0 * f64::from(conditions.loss(at)) / f64::from(CERTAIN);
    middles(conditions, bin).map(percent).collect()
}

fn middles(conditions: &Conditions, bin: Duration) -> impl Iterator<Item = Duration> {
    let count = conditions.period().as_nanos() / bin.as_nanos().max(1);
    (0..count).map(move |index| bin * index + bin / 2)
}

/// Coarser than this, a recording says nothing of queues as schemes of today keep them.
const FINE: Duration = Duration::from_millis(10);

/// Returns what nobody should conclude from runs over `trace`, a sentence each.
pub fn limits(trace: &Trace) -> Vec<String> {
    let mut limits = Vec::new();
    let (resolution, tick) = (trace.resolution(), trace.tick());
    if resolution > tick {
        limits.push(format!(
            "one value covers {resolution}: gaps, bursts and queues shorter than that were averaged away, so every scheme looks better than on the link"
        ));
    }
    if tick == Duration::from_millis(1) {
        limits.push(
            "opportunities lie on whole milliseconds: waits below 1ms come from this grid, and an L4S queue marks packets for them (`--spread` spreads them)"
                .to_string(),
        );
    }
    if trace.recorded().is_some_and(|recorded| recorded.trains.is_some()) {
        limits.push(
            "a flow that pauses takes light opportunities: rate and utilization count the heavy ones alone, which a busy \
             flow gets"
                .to_string(),
        );
    }
    limits
}

/// Returns the resolution, if it is too coarse for delays of some ten milliseconds to be compared.
pub fn coarse(trace: &Trace) -> Option<Duration> {
    Some(trace.resolution()).filter(|resolution| *resolution > FINE)
}

/// What a millisecond of a trace stands for.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Milliseconds {
    /// Nothing: the trace is finer, or hardly any of its milliseconds has two packets.
    Single,
    /// The link's own schedule: this share of the packets comes in bursts.
    Schedule(f64),
    /// The file's grid alone: no more than this share of the packets comes in bursts.
    Grid(f64),
}

/// More packets in a millisecond than this, on average over those that have any, come in batches.
pub const MOST_IN_A_MILLISECOND: f64 = 1.2;

/// With a smaller share of the packets in bursts, milliseconds are a grid. A rate that holds for 10 ms and
/// then changes has a burst at each end at most, a fifth of the packets; recorded links have 0.4 and more.
const LEAST_IN_BURSTS: f64 = 0.25;

/// Returns what a millisecond of `trace` stands for. At a steady rate neighboring milliseconds differ by one
/// packet at most, so those that differ by more are bursts, which the link made. Where each value covers
/// several milliseconds nothing is known of bursts.
pub fn milliseconds(trace: &Trace) -> Milliseconds {
    if batch(trace) <= MOST_IN_A_MILLISECOND {
        return Milliseconds::Single;
    }
    let share = in_bursts(trace);
    if share < LEAST_IN_BURSTS || trace.resolution() > trace.tick() {
        Milliseconds::Grid(share)
    } else {
        Milliseconds::Schedule(share)
    }
}

/// Returns how many packets a millisecond of `trace` carries on average, of those that carry any; 1 where the
/// trace is finer.
pub fn batch(trace: &Trace) -> f64 {
    if trace.tick() < Duration::from_millis(1) {
        return 1.0;
    }
    trace.opportunities() as f64 / trace.micros().count() as f64
}

/// The share of the packets in milliseconds that have two more than the one before or the one after.
fn in_bursts(trace: &Trace) -> f64 {
    let millis: Vec<(u64, u32)> = trace.micros().map(|(us, count)| (us / 1000, count)).collect();
    let bursts = millis.iter().enumerate().filter(|&(place, &(ms, count))| {
        // Nothing is known of what came before the first and after the last.
        let beside = |slot: Option<&(u64, u32)>| {
            slot.map_or(count, |(other, count)| if other.abs_diff(ms) == 1 { *count } else { 0 })
        };
        let before = beside(place.checked_sub(1).map(|place| &millis[place]));
        count >= before.min(beside(millis.get(place + 1))) + 2
    });
    let packets: u64 = bursts.map(|(_, (_, count))| u64::from(*count)).sum();
    packets as f64 / trace.opportunities() as f64
}

#[cfg(test)]
mod tests {
    use brakelight_links::replay::Recorded;

    use super::*;
    use crate::embedded::{EMBEDDED, Embedded};

    fn ms(millis: u64) -> Duration {
        Duration::from_millis(millis)
    }

    #[test]
    fn quantiles_count_how_long_a_value_held() {
        let delays = vec![(ms(0), ms(9)), (ms(90), ms(40))];
        let losses = vec![(ms(0), 0), (ms(75), CERTAIN / 5)];
        let conditions = Conditions::new(ms(100), delays, losses, false).unwrap();
        let found = PathStatistics::of(&conditions);
        let expected = DelayQuantiles { min: 9.0, p50: 9.0, p95: 40.0, max: 40.0 };
        assert_eq!((found.delay_ms, found.loss_percent), (Some(expected), Some(5.0)));
        assert_eq!(super::delays(&conditions, ms(50)), [9.0, 9.0]);
        assert_eq!(super::losses(&conditions, ms(50)), [0.0, 20.0]);
        let nothing = Conditions::new(ms(100), vec![], vec![], false).unwrap();
        assert_eq!(PathStatistics::of(&nothing).delay_ms, None);
    }

    /// So many packets in each millisecond.
    fn counts(per_millisecond: &[usize]) -> Trace {
        let times = per_millisecond.iter().zip(1..).flat_map(|(count, ms)| std::iter::repeat_n(ms, *count));
        Trace::from_millis(times).unwrap()
    }

    #[test]
    fn a_steady_rate_on_a_grid_has_no_bursts() {
        // 2.5 packets a millisecond: two and three in turn, and nothing else.
        let steady: Vec<usize> = (0..1000).map(|ms| 2 + ms % 2).collect();
        assert_eq!(milliseconds(&counts(&steady)), Milliseconds::Grid(0.0));
        // A rate that changes every 10 ms, as in a recording in bins.
        let bins: Vec<usize> = (0..1000).map(|ms| if ms / 10 % 2 == 0 { 2 } else { 8 }).collect();
        // Of the 80 packets of a fast bin, the 16 of its two ends; of the last bin, one end.
        let Milliseconds::Grid(share) = milliseconds(&counts(&bins)) else { panic!("a grid") };
        assert!((share - (50.0 * 16.0 - 8.0) / 5000.0).abs() < 1e-12, "{share}");
        assert_eq!(milliseconds(&counts(&[1; 1000])), Milliseconds::Single);
    }

    #[test]
    fn a_schedule_has_bursts_unless_each_value_covers_several_milliseconds() {
        // Two packets every fourth millisecond and one between: half of them in bursts.
        let bursts: Vec<usize> = (0..1000).map(|ms| [2, 0, 2, 0, 1, 1][ms % 6]).collect();
        let trace = counts(&bursts);
        let Milliseconds::Schedule(share) = milliseconds(&trace) else { panic!("a schedule") };
        assert!((share - 4.0 / 6.0).abs() < 0.01, "{share}");
        let recorded = Recorded { resolution: ms(100), forward: None, reverse: None, trains: None };
        assert_eq!(milliseconds(&trace.with_recorded(recorded)), Milliseconds::Grid(share));
        let fine = Trace::from_micros([(7, 1), (9, 4)]).unwrap();
        assert_eq!(milliseconds(&fine), Milliseconds::Single);
    }

    #[test]
    fn some_embedded_traces_would_be_taken_for_grids() {
        let is_grid = |embedded: &&Embedded| matches!(milliseconds(&embedded.trace()), Milliseconds::Grid(_));
        let grids: Vec<&str> = EMBEDDED.iter().filter(is_grid).map(|embedded| embedded.name).collect();
        assert_eq!(grids, ["step"]);
    }

    #[test]
    fn what_a_grid_and_bins_hide_is_said() {
        let trace = Trace::from_millis([1, 2]).unwrap();
        assert_eq!((limits(&trace).len(), coarse(&trace)), (1, None));
        let fine = Trace::from_micros([(7, 1)]).unwrap();
        assert_eq!(limits(&fine), Vec::<String>::new());
        let binned =
            fine.with_recorded(Recorded { resolution: ms(100), forward: None, reverse: None, trains: None });
        assert!(limits(&binned)[0].starts_with("one value covers 100ms"));
        assert_eq!(coarse(&binned), Some(ms(100)));
    }
}
