//! How far an implementation of a congestion control is from a reference: the conformance of their
//! performance envelopes.
//!
//! ```text
//! cell      a link of one rate, round trip and drop-tail buffer, with two flows at a time
//! clouds    the scheme's flow beside one of the reference; the reference's beside another one      quicbench
//! point     throughput and RTT over ten round trips, from a tenth to nine tenths of the run        quicbench
//! result    the conformance of the two envelopes ([`envelope`]); of a scheme the mean over all cells
//! ```
//!
//! The clouds come from different seeds: if a scheme is its own reference, the conformance shows what chance
//! does.
//!
//! | symbol | field | quick | full | source |
//! |---|---|---|---|---|
//! | links | `PATHS` | 3 | 9 | full has quicbench's `benchmarks/base_conf`: 20 and 100 Mbit/s, 10 and 50 ms |
//! | buffers | `BUFFERS_BDP` | 0.5, 1, 5 | 0.5, 1, 5 | quicbench, which has 3 too |
//! | runs | `RUNS` | 5 | 5 | quicbench, `num_trials` |
//! | length | `Path::duration_s` | 60 or 120 s | 60 or 120 s | quicbench, `flow_duration_s`: 120 s |
//!
//! Deviations: links of 100 Mbit/s and more run for 60 s, which is 600 round trips or more.

use std::panic::{AssertUnwindSafe, catch_unwind};

use brakelight_core::time::Duration;
use brakelight_registry::{DEFAULT_QUEUE, Registry};
use brakelight_scenario::cost::Cost;
use brakelight_scenario::documents::Origin;
use brakelight_scenario::file;
use brakelight_scenario::outcome::{FlowSeries, Outcome};
use brakelight_scenario::scenario::Scenario;
use brakelight_scenario::scheme::Scheme;
use brakelight_sim::Traces;
use serde::{Deserialize, Serialize};

use self::envelope::Envelope;
use self::geometry::Point;
use crate::error::Error;
use crate::evaluate::{Level, said};
use crate::output::File;
use crate::parallel;
use crate::progress::Progress;
use crate::runner::Runner;

pub mod envelope;
pub mod geometry;
pub mod page;
#[cfg(test)]
mod tests;

/// Buffers, in bandwidth-delay products.
const BUFFERS_BDP: [f64; 3] = [0.5, 1.0, 5.0];
/// A point of a cloud is the mean over so many round trips.
const ROUND_TRIPS_A_POINT: u64 = 10;
/// The share of a run that is left out at its beginning, and as much at its end.
const LEFT_OUT: f64 = 0.1;
/// Bytes of a full packet, by which a buffer is rounded.
const PACKET: f64 = 1500.0;
/// How many runs a cloud is from.
const RUNS: u64 = 5;
/// The most points of a cloud that the page shows.
const MOST_SHOWN: usize = 250;

/// A bottleneck without its buffer.
#[derive(Clone, Copy, Debug)]
struct Path {
    rate_mbps: u32,
    rtt_ms: u32,
    /// Whether it belongs to the level `quick`.
    quick: bool,
}

/// From 1 to 1000 Mbit/s and from 5 to 300 ms; a bandwidth-delay product is 17 packets or more, since less
/// than that leaves half of it no room for a window of two flows.
const PATHS: [Path; 9] = [
    Path { rate_mbps: 1, rtt_ms: 300, quick: true },
    Path { rate_mbps: 5, rtt_ms: 50, quick: false },
    Path { rate_mbps: 20, rtt_ms: 10, quick: false },
    Path { rate_mbps: 20, rtt_ms: 50, quick: true },
    Path { rate_mbps: 20, rtt_ms: 300, quick: false },
    Path { rate_mbps: 100, rtt_ms: 10, quick: false },
    Path { rate_mbps: 100, rtt_ms: 50, quick: true },
    Path { rate_mbps: 1000, rtt_ms: 5, quick: false },
    Path { rate_mbps: 1000, rtt_ms: 20, quick: false },
];

impl Path {
    fn duration_s(self) -> u32 {
        if self.rate_mbps >= 100 { 60 } else { 120 }
    }

    /// The buffer in bytes: whole packets.
    fn buffer(self, bdp: f64) -> f64 {
        let product = f64::from(self.rate_mbps) * 1e3 / 8.0 * f64::from(self.rtt_ms);
        (product * bdp / PACKET).round() * PACKET
    }

    fn bin(self) -> Duration {
        Duration::from_millis(u64::from(self.rtt_ms) * ROUND_TRIPS_A_POINT)
    }
}

/// What `evaluate --like` prints. All but its origin is a function of the schemes, the reference and the
/// level.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
#[serde(default)]
pub struct Conformance {
    /// Where it came from.
    pub origin: Origin,
    /// The reference, which is a scheme.
    pub reference: String,
    /// How far it went: `quick` or `full`.
    pub level: String,
    /// How many runs each cloud is from.
    pub runs: u64,
    /// The schemes, in the order in which they were named.
    pub schemes: Vec<Conforming>,
}

/// A scheme beside the reference.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Conforming {
    /// The scheme.
    pub scheme: String,
    /// The mean of the cells' conformance, 0 to 1; none if no cell has one.
    pub conformance: Option<f64>,
    /// The mean of the cells' Conformance-T, 0 to 1.
    pub conformance_t: Option<f64>,
    /// How much more of the link the scheme takes than the reference, in percent of its rate: the mean over
    /// the cells.
    pub throughput_offset_percent: Option<f64>,
    /// How much more of the full buffer's delay there is than with the reference, in percent: the mean over
    /// the cells.
    pub delay_offset_percent: Option<f64>,
    /// The place in `cells` of the lowest conformance.
    pub worst: Option<usize>,
    /// The cells: by rate, round trip and buffer.
    pub cells: Vec<Cell>,
}

/// A scheme and the reference on one link.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Cell {
    /// The link's rate.
    pub rate_mbps: f64,
    /// The propagation delay of the round trip.
    pub rtt_ms: f64,
    /// The buffer, in bandwidth-delay products.
    pub buffer_bdp: f64,
    /// The conformance, 0 to 1; none if a run failed.
    pub conformance: Option<f64>,
    /// Conformance-T: the conformance if the scheme's cloud is moved to where it conforms most, 0 to 1.
    pub conformance_t: Option<f64>,
    /// The area that both envelopes have in common over that of either, 0 to 1.
    pub overlap: Option<f64>,
    /// How much more throughput the scheme has than the reference, by that move.
    pub throughput_offset_mbps: Option<f64>,
    /// How much longer its round trips are.
    pub delay_offset_ms: Option<f64>,
    /// Why the conformance could not be measured, or what else a reader must know.
    #[serde(default, skip_serializing_if = "String::is_empty")]
    pub note: String,
    /// The scheme's cloud.
    pub own: Cloud,
    /// The reference's.
    pub reference: Cloud,
}

impl Cell {
    /// The link in words: `20 Mbit/s, 50 ms, 0.5 BDP`.
    pub fn place(&self) -> String {
        format!("{} Mbit/s, {} ms, {} BDP", self.rate_mbps, self.rtt_ms, self.buffer_bdp)
    }
}

/// Where a flow's points lie. A point is a throughput in Mbit/s and a round trip in ms.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Cloud {
    /// How many points there are, outliers included.
    pub count: usize,
    /// Their mean; none without points.
    pub mean: Option<Point>,
    /// The hulls of the clusters, without outliers, counterclockwise.
    pub envelope: Vec<Vec<Point>>,
    /// The points, every so many of them, for pictures.
    pub points: Vec<Point>,
}

/// What is to be measured.
#[derive(Clone, Debug)]
pub struct Plan {
    level: Level,
    reference: String,
    schemes: Vec<String>,
    /// What runs, each with all seeds: the reference's cells first, then those of each scheme.
    planned: Vec<Planned>,
}

/// A cell of one scheme.
#[derive(Clone, Debug)]
struct Planned {
    path: Path,
    buffer_bdp: f64,
    text: String,
    scenario: Scenario,
    first_seed: u64,
}

impl Plan {
    /// Plans runs of `schemes` of `registry` beside `reference`.
    ///
    /// # Errors
    /// If a scheme is named twice, brings a queue of its own, or cannot run on these links.
    pub fn new(
        registry: &Registry,
        reference: &Scheme,
        level: Level,
        schemes: &[Scheme],
    ) -> Result<Self, Error> {
        let names: Vec<String> = schemes.iter().map(Scheme::to_string).collect();
        for (place, scheme) in schemes.iter().enumerate() {
            if names[..place].contains(&names[place]) {
                return Err(Error::Evaluate(format!(
                    "`{}` is given twice; give every scheme once",
                    names[place]
                )));
            }
            plain_queue(scheme)?;
        }
        plain_queue(reference)?;
        let mut planned = Vec::new();
        for (place, scheme) in std::iter::once(reference).chain(schemes).enumerate() {
            // A scheme has other seeds than the reference, which may be the same.
            let first_seed = if place == 0 { 1 } else { 1 + RUNS };
            for path in PATHS.into_iter().filter(|path| path.quick || level == Level::Full) {
                for buffer_bdp in BUFFERS_BDP {
                    planned.push(cell(registry, scheme, reference, path, buffer_bdp, first_seed)?);
                }
            }
        }
        Ok(Plan { level, reference: reference.to_string(), schemes: names, planned })
    }

    /// Leaves out the links for which `keep` returns `false`, given rate, round trip and buffer.
    pub fn retain(&mut self, keep: impl Fn(u32, u32, f64) -> bool) {
        self.planned.retain(|it| keep(it.path.rate_mbps, it.path.rtt_ms, it.buffer_bdp));
    }

    /// Runs everything. A run that fails or panics leaves its cell without a conformance; all others go on.
    ///
    /// # Errors
    /// If the caller cancels.
    pub fn run(&self, runner: &dyn Runner, progress: &dyn Progress) -> Result<Conformance, Error> {
        let jobs: Vec<(&Planned, u64)> = self
            .planned
            .iter()
            .flat_map(|planned| (0..RUNS).map(move |run| (planned, planned.first_seed + run)))
            .collect();
        progress.begin("comparing", jobs.len());
        let traces = Traces::new();
        let steps = |(planned, _): &(&Planned, u64)| Cost::of(&planned.scenario, &traces).steps;
        let measured = parallel::map_longest_first(&jobs, steps, |&(planned, seed)| {
            if progress.is_cancelled() {
                return Err(Error::Cancelled);
            }
            let scenario = Scenario { seed, ..planned.scenario.clone() };
            let run = catch_unwind(AssertUnwindSafe(|| runner.run(&scenario, &traces)));
            progress.step(&scenario.name);
            Ok(match run {
                Ok(Ok(outcome)) => planned.points(&outcome).map_err(|why| format!("seed {seed}: {why}")),
                Ok(Err(cause)) => Err(format!("seed {seed}: {cause}")),
                Err(panic) => Err(format!("seed {seed}: it panicked: {}", said(&*panic))),
            })
        })?;
        let clouds: Vec<Result<Measured, String>> = self
            .planned
            .iter()
            .zip(measured.chunks(RUNS as usize))
            .map(|(planned, runs)| Measured::of(planned, runs))
            .collect();
        let cells = clouds.len() / (self.schemes.len() + 1);
        let (reference, others) = clouds.split_at(cells);
        let of = |(scheme, own): (&String, &[Result<Measured, String>])| {
            let cells = self.planned.iter().zip(own.iter().zip(reference));
            Conforming::of(
                scheme,
                cells.map(|(planned, (own, reference))| planned.judge(own, reference)).collect(),
            )
        };
        let schemes = match cells {
            0 => Vec::new(),
            _ => self.schemes.iter().zip(others.chunks(cells)).map(of).collect(),
        };
        Ok(Conformance {
            origin: Origin::default(),
            reference: self.reference.clone(),
            level: self.level.name().to_string(),
            runs: RUNS,
            schemes,
        })
    }

    /// Returns the scenario files that were run, for `run` to run again: those of the reference in the folder
    /// `scenarios/reference`, those of a scheme in a folder of its place.
    pub fn files(&self) -> Vec<File> {
        let cells = self.planned.len() / (self.schemes.len() + 1);
        let file = |(place, planned): (usize, &Planned)| {
            let folder = match place / cells.max(1) {
                0 => "reference".to_string(),
                scheme => scheme.to_string(),
            };
            File::new(format!("scenarios/{folder}/{}.toml", planned.scenario.name), planned.text.clone())
        };
        self.planned.iter().enumerate().map(file).collect()
    }
}

/// Refuses a scheme that is not meant for drop-tail.
fn plain_queue(scheme: &Scheme) -> Result<(), Error> {
    if scheme.queue().name() == DEFAULT_QUEUE {
        return Ok(());
    }
    Err(Error::Evaluate(format!(
        "`{scheme}` has the queue `{}`; with --like all flows share `{DEFAULT_QUEUE}`, so give a controller alone, such as `cubic`",
        scheme.queue().name()
    )))
}

/// The scenario of `scheme` beside `reference`.
fn cell(
    registry: &Registry,
    scheme: &Scheme,
    reference: &Scheme,
    path: Path,
    buffer_bdp: f64,
    first_seed: u64,
) -> Result<Planned, Error> {
    let Path { rate_mbps, rtt_ms, .. } = path;
    let name = format!("{rate_mbps}Mbps-{rtt_ms}ms-{buffer_bdp}bdp");
    let flow = |name: &str, scheme: &Scheme| {
        let (controller, feedback) = (scheme.controller().words(), scheme.feedback().words());
        format!(
            "\n[[flow]]\nname = \"{name}\"\ncontroller = \"{controller}\"\nfeedback = \"{feedback}\"\n\
             rtt = \"{rtt_ms}ms\"\npath = [\"link\"]\n"
        )
    };
    let text = format!(
        "name = \"{name}\"\nduration = \"{}s\"\nseed = {first_seed}\n\
         record = {{ series = true, bin = \"{}ms\" }}\n\n\
         [[link]]\nname = \"link\"\nrate = \"{rate_mbps}Mbps\"\nbuffer = \"{}B\"\n{}{}",
        path.duration_s(),
        path.bin().as_millis_f64(),
        path.buffer(buffer_bdp),
        flow("own", scheme),
        flow("reference", reference),
    );
    let scenario = file::read_with(registry, &format!("{scheme} on {name}"), &text)?;
    Ok(Planned { path, buffer_bdp, text, scenario, first_seed })
}

/// The points of a run, in Mbit/s and ms, and what is odd about it.
struct Points {
    points: Vec<Point>,
    odd: Option<String>,
}

/// A cloud, with its envelope in shares of the link.
struct Measured {
    cloud: Cloud,
    envelope: Envelope,
    odd: Option<String>,
}

impl Planned {
    /// Throughput as a share of the rate, and queueing delay as a share of the full buffer's.
    fn scaled(&self, [mbps, rtt_ms]: Point) -> Point {
        let rate = f64::from(self.path.rate_mbps);
        [mbps / rate, (rtt_ms - f64::from(self.path.rtt_ms)) / self.full_ms()]
    }

    fn unscaled(&self, [share, delay]: Point) -> Point {
        [share * f64::from(self.path.rate_mbps), delay * self.full_ms() + f64::from(self.path.rtt_ms)]
    }

    /// How long the full buffer takes to leave.
    fn full_ms(&self) -> f64 {
        self.path.buffer(self.buffer_bdp) * 8e-3 / f64::from(self.path.rate_mbps)
    }

    /// The points of the first flow.
    fn points(&self, outcome: &Outcome) -> Result<Points, String> {
        let flow: &FlowSeries =
            outcome.series.as_ref().and_then(|series| series.flows.first()).ok_or("it has no series")?;
        let duration = f64::from(self.path.duration_s());
        let (from, to) = (duration * LEFT_OUT, duration * (1.0 - LEFT_OUT));
        let bin = self.path.bin().as_secs_f64();
        let rows = flow.time_s.iter().zip(&flow.throughput_mbps).zip(&flow.rtt_ms);
        let inside = rows.filter(|((time, _), _)| **time >= from && **time + bin <= to + 1e-9);
        // Over ten round trips without a sample there is no delay, and so no point.
        let points = inside.filter_map(|((_, mbps), rtt_ms)| Some([*mbps, (*rtt_ms)?])).collect();
        Ok(Points { points, odd: outcome.run.unreliable_because.first().cloned() })
    }

    fn judge(&self, own: &Result<Measured, String>, reference: &Result<Measured, String>) -> Cell {
        let mut cell = Cell {
            rate_mbps: f64::from(self.path.rate_mbps),
            rtt_ms: f64::from(self.path.rtt_ms),
            buffer_bdp: self.buffer_bdp,
            ..Cell::default()
        };
        let cloud = |measured: &Result<Measured, String>| {
            measured.as_ref().map(|measured| measured.cloud.clone()).unwrap_or_default()
        };
        (cell.own, cell.reference) = (cloud(own), cloud(reference));
        let (own, reference) = match (own, reference) {
            (Err(why), _) => {
                cell.note.clone_from(why);
                return cell;
            }
            (_, Err(why)) => {
                cell.note = format!("the reference: {why}");
                return cell;
            }
            (Ok(own), Ok(reference)) => (own, reference),
        };
        cell.note = own.odd.clone().unwrap_or_default();
        let (tuned, offset) = own.envelope.tuned(&reference.envelope);
        cell.conformance = Some(rounded(own.envelope.conformance(&reference.envelope)));
        cell.conformance_t = Some(rounded(tuned));
        cell.overlap = Some(rounded(own.envelope.overlap(&reference.envelope)));
        cell.throughput_offset_mbps = Some(rounded(offset[0] * cell.rate_mbps));
        cell.delay_offset_ms = Some(rounded(offset[1] * self.full_ms()));
        cell
    }
}

impl Measured {
    fn of(planned: &Planned, runs: &[Result<Points, String>]) -> Result<Self, String> {
        let runs: Vec<&Points> =
            runs.iter().map(Result::as_ref).collect::<Result<_, _>>().map_err(String::clone)?;
        let points: Vec<Point> = runs.iter().flat_map(|run| run.points.iter().copied()).collect();
        let scaled: Vec<Point> = points.iter().map(|point| planned.scaled(*point)).collect();
        let odd = runs.iter().find_map(|run| run.odd.clone());
        let envelope = Envelope::of(&scaled).ok_or_else(|| {
            let why = odd.as_ref().map_or(String::new(), |odd| format!(": {odd}"));
            format!("it had {} round-trip times in all runs, too few for an envelope{why}", points.len())
        })?;
        let hulls = envelope.hulls.iter();
        let cloud = Cloud {
            count: points.len(),
            mean: Some(thousandths(planned.unscaled(envelope.mean))),
            envelope: hulls
                .map(|hull| hull.iter().map(|point| thousandths(planned.unscaled(*point))).collect())
                .collect(),
            points: points
                .iter()
                .step_by(points.len().div_ceil(MOST_SHOWN).max(1))
                .map(|point| thousandths(*point))
                .collect(),
        };
        Ok(Measured { cloud, envelope, odd })
    }
}

/// A kbit/s and a microsecond are enough.
fn thousandths(point: Point) -> Point {
    point.map(rounded)
}

/// Three digits behind the point, and no negative zero.
fn rounded(value: f64) -> f64 {
    (value * 1e3).round() / 1e3 + 0.0
}

impl Conforming {
    fn of(scheme: &str, cells: Vec<Cell>) -> Self {
        let mean = |value: &dyn Fn(&Cell) -> Option<f64>| {
            let values: Vec<f64> = cells.iter().filter_map(value).collect();
            (!values.is_empty()).then(|| rounded(values.iter().sum::<f64>() / values.len() as f64))
        };
        let percent = |cell: &Cell| Some(100.0 * cell.throughput_offset_mbps? / cell.rate_mbps);
        let delay = |cell: &Cell| Some(100.0 * cell.delay_offset_ms? / (cell.rtt_ms * cell.buffer_bdp));
        let indexed = cells.iter().enumerate().filter_map(|(place, cell)| Some((place, cell.conformance?)));
        let worst = indexed.min_by(|(_, a), (_, b)| a.total_cmp(b)).map(|(place, _)| place);
        Conforming {
            scheme: scheme.to_string(),
            conformance: mean(&|cell| cell.conformance),
            conformance_t: mean(&|cell| cell.conformance_t),
            throughput_offset_percent: mean(&percent),
            delay_offset_percent: mean(&delay),
            worst,
            cells,
        }
    }

    /// Returns the cell with the lowest conformance.
    pub fn worst(&self) -> Option<&Cell> {
        self.cells.get(self.worst?)
    }
}
