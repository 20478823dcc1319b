//! What Starlink's changes of path do to capacity, delay and loss: the recipe `starlink` beside the recording
//! that it was fitted to, in the table of `docs/validation/link-models.md`. Needs the sample: the folder
//! `links` of the one that BRAKELIGHT_SHARED names, `../shared` beside the workspace by default; without it,
//! says what it did not run.

use brakelight_core::packet::Direction;
use brakelight_core::time::Duration;
use brakelight_links::replay::{CERTAIN, Conditions};
use brakelight_links::trace::Trace;
use brakelight_testkit::{part, skip};
use brakelight_traces::OPPORTUNITY;
use brakelight_traces::embedded::Embedded;
use brakelight_traces::fit::measured::{LINKS, read_link};

/// Seeds beside the recipe's own.
const SEEDS: u64 = 10;

fn ms(millis: usize) -> Duration {
    Duration::from_millis(millis as u64)
}

/// What is looked at around changes of path.
struct Link {
    /// Mbit/s in each millisecond.
    rates: Vec<f64>,
    /// One-way delay in each millisecond, ms.
    delays: Vec<f64>,
    /// Share of packets that are lost in each millisecond.
    losses: Vec<f64>,
    /// Beginning and length of each gap where the path changes, ms.
    gaps: Vec<(usize, usize)>,
}

impl Link {
    fn of(trace: &Trace) -> Self {
        let conditions = trace.recorded().and_then(|recorded| recorded.conditions(Direction::Forward));
        let conditions = conditions.expect("delays are known").clone();
        let length = (trace.period().as_nanos() / 1_000_000) as usize;
        let mut rates = vec![0.0; length + 1];
        let mbps = OPPORTUNITY.bits() as f64 / 1e3;
        trace
            .micros()
            .for_each(|(us, n)| rates[(us.saturating_sub(1) / 1_000) as usize] += f64::from(n) * mbps);
        rates.truncate(length);
        let of = |value: &dyn Fn(&Conditions, Duration) -> f64| {
            (0..length).map(|at| value(&conditions, ms(at))).collect::<Vec<f64>>()
        };
        let delays = of(&|conditions, at| conditions.delay(at).as_millis_f64());
        let losses = of(&|conditions, at| f64::from(conditions.loss(at)) / f64::from(CERTAIN));
        let mut gaps = Vec::new();
        let mut last = 0;
        for at in (0..length).filter(|&at| rates[at] > 0.0) {
            if at - last > 41 {
                gaps.push((last + 1, at - last - 1));
            }
            last = at;
        }
        Link { rates, delays, losses, gaps }
    }

    /// Of every two whole paths that follow each other, how far the means of a second on either side of the
    /// change lie apart: root mean square.
    fn step(values: &[f64], places: &[usize]) -> f64 {
        let steps =
            places.iter().map(|&at| mean(&values[at + 250..at + 1_250]) - mean(&values[at - 1_050..at - 50]));
        let squares: Vec<f64> = steps.map(|step| step * step).collect();
        mean(&squares).sqrt()
    }

    /// Changes with a second on either side.
    fn changes(&self) -> Vec<usize> {
        let whole = |at: &usize| (1_100..self.rates.len() - 1_250).contains(at);
        self.gaps.iter().map(|(at, _)| *at).filter(whole).collect()
    }

    /// Places that are far from any change.
    fn elsewhere(&self) -> Vec<usize> {
        let far = |at: &usize| self.gaps.iter().all(|(gap, _)| at.abs_diff(*gap) > 2_500);
        (2_000..self.rates.len() - 2_000).step_by(500).filter(far).collect()
    }

    /// Mean rate and delay of each path.
    fn paths(&self) -> (Vec<f64>, Vec<f64>) {
        let ends = self.gaps.iter().map(|(at, _)| *at).chain([self.rates.len()]);
        let begins = [0].into_iter().chain(self.gaps.iter().map(|(at, lasts)| at + lasts));
        let inner = begins.zip(ends).map(|(begin, end)| (begin + 150, end.saturating_sub(50)));
        let inner: Vec<_> = inner.filter(|(begin, end)| begin + 500 < *end).collect();
        let means = |values: &[f64]| inner.iter().map(|&(a, b)| mean(&values[a..b])).collect();
        (means(&self.rates), means(&self.delays))
    }

    /// The highest delay around each gap.
    fn peaks(&self) -> Vec<f64> {
        let around =
            |&(at, lasts): &(usize, usize)| &self.delays[at..(at + lasts + 40).min(self.delays.len())];
        self.gaps.iter().map(|gap| around(gap).iter().copied().fold(0.0, f64::max)).collect()
    }

    /// The rows of the table: what, how many digits, and the value.
    fn rows(&self) -> Vec<(&'static str, usize, f64)> {
        let mut delays = self.delays.clone();
        delays.sort_by(f64::total_cmp);
        let quantile = |share: f64| delays[(share * (delays.len() - 1) as f64) as usize];
        let lengths: Vec<f64> = self.gaps.iter().map(|(_, lasts)| *lasts as f64).collect();
        let between: Vec<f64> =
            self.gaps.windows(2).map(|pair| (pair[1].0 - pair[0].0) as f64 / 1e3).collect();
        let (changes, elsewhere, peaks) = (self.changes(), self.elsewhere(), self.peaks());
        let (rate, delay) = self.paths();
        vec![
            ("from change to change, s", 2, mean(&between)),
            ("gap, mean, ms", 0, mean(&lengths)),
            ("gap, longest, ms", 0, lengths.iter().copied().fold(0.0, f64::max)),
            ("step of the rate at a change, Mbit/s", 1, Link::step(&self.rates, &changes)),
            ("the same elsewhere, Mbit/s", 1, Link::step(&self.rates, &elsewhere)),
            ("one-way delay, p50, ms", 1, quantile(0.5)),
            ("one-way delay, p95, ms", 1, quantile(0.95)),
            ("highest delay at a change, mean, ms", 0, mean(&peaks)),
            ("step of the delay at a change, ms", 2, Link::step(&self.delays, &changes)),
            ("the same elsewhere, ms", 2, Link::step(&self.delays, &elsewhere)),
            (
                "length of a gap against its highest delay: correlation of ranks",
                2,
                correlation(&ranks(&lengths), &ranks(&peaks)),
            ),
            ("rate of a path against its delay: correlation", 2, correlation(&rate, &delay)),
            ("lost of one packet a millisecond, %", 3, 100.0 * self.lost()),
        ]
    }

    /// The share that is lost of packets that enter at even steps. Those of a gap leave the link at its end.
    fn lost(&self) -> f64 {
        let in_a_gap = |at: usize| self.gaps.iter().any(|&(from, lasts)| (from..from + lasts).contains(&at));
        let lost = (0..self.losses.len()).filter(|&at| !in_a_gap(at)).map(|at| self.losses[at]).sum::<f64>();
        lost / self.losses.len() as f64
    }
}

fn mean(values: &[f64]) -> f64 {
    values.iter().sum::<f64>() / values.len().max(1) as f64
}

fn correlation(a: &[f64], b: &[f64]) -> f64 {
    let (ma, mb) = (mean(a), mean(b));
    let of = |x: &[f64], mx: f64, y: &[f64], my: f64| -> f64 {
        x.iter().zip(y).map(|(x, y)| (x - mx) * (y - my)).sum()
    };
    of(a, ma, b, mb) / (of(a, ma, a, ma) * of(b, mb, b, mb)).sqrt()
}

/// Ranks, the mean of them where values are equal.
fn ranks(values: &[f64]) -> Vec<f64> {
    let below = |value: f64| values.iter().filter(|other| **other < value).count() as f64;
    let equal = |value: f64| values.iter().filter(|other| **other == value).count() as f64;
    values.iter().map(|value| below(*value) + (equal(*value) - 1.0) / 2.0).collect()
}

/// Capacity, delay and loss of a link change in the same moments.
#[test]
fn capacity_delay_and_loss_move_together_where_the_path_changes() {
    let recipe = Embedded::find("starlink").unwrap().recipe();
    let paths = recipe.measured.clone().unwrap().paths.unwrap();
    let link = Link::of(&recipe.generate().unwrap());
    assert_eq!(link.gaps.len(), 8);
    let whole = |time: Duration| (time.as_nanos() / 1_000_000) as usize;
    let (first, every, least) = (whole(paths.first), whole(paths.every), whole(paths.gaps[0]));
    for (k, &(from, lasts)) in link.gaps.iter().enumerate() {
        let at = first + k * every;
        // The last burst before a gap comes up to 8 ms before it, the first after it as much later.
        assert!(at.abs_diff(from) <= 8 && lasts >= least, "{at}: {from}, {lasts}");
        assert!(link.losses[at - 11..at + least].iter().all(|loss| (loss - paths.lost).abs() < 1e-6), "{at}");
        assert!(link.delays[at + 10..at + least - 10].iter().all(|delay| *delay >= 30.0), "{at}");
    }
    let usual = |at: &usize| link.gaps.iter().all(|(gap, _)| at.abs_diff(*gap) > 250);
    for at in (0..link.rates.len()).filter(usual) {
        assert!(link.losses[at] == 0.0 && link.delays[at] <= 15.0, "{at}");
    }
    assert!(Link::step(&link.rates, &link.changes()) > 2.0 * Link::step(&link.rates, &link.elsewhere()));
}

#[test]
fn the_models_changes_of_path_are_those_of_the_recording() {
    let (_, sample, delay, _) = LINKS.iter().find(|(name, ..)| *name == "starlink").unwrap();
    let Some(path) = skip::recording(&format!("links/{sample}")) else { return };
    let folder = path.ancestors().nth(2).unwrap();
    let recorded = Link::of(&read_link(folder, sample, *delay).unwrap().trace(None).unwrap()).rows();
    let recipe = Embedded::find("starlink").unwrap().recipe();
    let model = Link::of(&recipe.generate().unwrap()).rows();
    let others: Vec<_> = (1..=SEEDS)
        .map(|seed| {
            let mut recipe = recipe.clone();
            recipe.seed = seed;
            Link::of(&recipe.generate().unwrap()).rows()
        })
        .collect();
    let mut table = String::from("| | recorded | model | ten other seeds |\n|---|---|---|---|\n");
    for (row, (what, digits, value)) in model.iter().enumerate() {
        let of = |value: f64| format!("{value:.digits$}").replace("-0.00", "0.00");
        let known = recorded[row].2;
        let known = if what.starts_with("lost") { "not recorded".to_string() } else { of(known) };
        let seeds = others.iter().map(|rows| rows[row].2);
        let (least, most) =
            (seeds.clone().fold(f64::INFINITY, f64::min), seeds.fold(f64::NEG_INFINITY, f64::max));
        table += &format!("| {what} | {known} | {} | {} to {} |\n", of(*value), of(least), of(most));
    }
    part::check("link-models", "starlink paths", &table);
    let near = |what: &str, off: f64| {
        let place = model.iter().position(|(name, ..)| *name == what).unwrap();
        let (found, wanted) = (model[place].2, recorded[place].2);
        assert!((found - wanted).abs() <= off, "{what}: {found} for {wanted}");
    };
    near("from change to change, s", 0.01);
    near("gap, longest, ms", 10.0);
    near("one-way delay, p50, ms", 1.0);
    near("one-way delay, p95, ms", 1.0);
}
