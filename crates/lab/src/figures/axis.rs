//! One direction of a chart: from values to places, and the values that are written beside it.

/// A direction.
#[derive(Clone, Debug, PartialEq)]
pub(super) struct Axis {
    low: f64,
    high: f64,
    logarithmic: bool,
    /// Whether large values come first.
    reversed: bool,
    /// Where values are written.
    pub ticks: Vec<f64>,
}

/// More could not be read below a column.
const MOST_TICKS: usize = 8;

/// A step between ticks is one of these times a power of ten.
const STEPS: [f64; 3] = [1.0, 2.0, 5.0];

impl Axis {
    /// From zero to the largest of `values`.
    pub fn from_zero(values: impl IntoIterator<Item = f64>) -> Self {
        let high = values.into_iter().filter(|value| value.is_finite()).fold(0.0, f64::max);
        Axis::linear(0.0, if high > 0.0 { high * 1.04 } else { 1.0 })
    }

    /// All of `values`, with some room around them.
    pub fn around(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = ends(values, f64::is_finite).unwrap_or((0.0, 1.0));
        let room = if high > low { (high - low) * 0.06 } else { high.abs().max(1.0) * 0.1 };
        // Nothing that is measured here is below zero.
        Axis::linear(if low >= 0.0 { (low - room).max(0.0) } else { low - room }, high + room)
    }

    /// From `low` to `high`.
    pub fn linear(low: f64, high: f64) -> Self {
        let step = step(high - low, 5);
        let ticks = ((low / step - 1e-9).ceil() as i64..)
            .map(|number| number as f64 * step)
            .take_while(|tick| *tick <= high + step * 1e-9)
            .collect();
        Axis { low, high, logarithmic: false, reversed: false, ticks }
    }

    /// All of `values` above zero, each factor as long as any other equal one.
    pub fn logarithmic(values: impl IntoIterator<Item = f64>) -> Self {
        let (low, high) = ends(values, |value| value.is_finite() && value > 0.0).unwrap_or((1.0, 10.0));
        let (low, high) = (low * 0.85, high * 1.18);
        let within = |tick: &f64| (low..=high).contains(tick);
        let (first, last) = (libm::log10(low).floor() as i32, libm::log10(high).ceil() as i32);
        let every = |parts: &[f64]| -> Vec<f64> {
            let powers = (first..=last).map(|power| libm::exp10(f64::from(power)));
            powers.flat_map(|ten| parts.iter().map(move |part| part * ten)).filter(within).collect()
        };
        // The finest steps that can be read.
        let steps = [&STEPS[..], &[1.0, 3.0], &[1.0]].map(every);
        let mut ticks = steps.iter().find(|ticks| ticks.len() <= MOST_TICKS).unwrap_or(&steps[2]).clone();
        if ticks.len() < 2 {
            ticks = Axis::linear(low, high).ticks;
        }
        // Every other one, where there are too many to be read.
        let apart = ticks.len().div_ceil(MOST_TICKS);
        let ticks = ticks.into_iter().step_by(apart).collect();
        Axis { low, high, logarithmic: true, reversed: false, ticks }
    }

    /// The same with large values first.
    pub fn reversed(mut self) -> Self {
        self.reversed = true;
        self
    }

    /// Where `value` is: 0 at the beginning, 1 at the end.
    pub fn place(&self, value: f64) -> f64 {
        let share = if self.logarithmic {
            let value = value.max(self.low * 1e-3);
            libm::log(value / self.low) / libm::log(self.high / self.low)
        } else {
            (value - self.low) / (self.high - self.low)
        };
        if self.reversed { 1.0 - share } else { share }
    }

    /// A tick in words: as many digits behind the point as tell it from its neighbours.
    pub fn label(&self, tick: f64) -> String {
        let (size, step) = (tick.abs(), self.ticks.windows(2).map(|pair| pair[1] - pair[0]));
        let step = if self.logarithmic { size } else { step.fold(f64::INFINITY, f64::min) };
        let digits =
            if step.is_finite() && step > 0.0 { -libm::floor(libm::log10(step) + 1e-9) } else { 0.0 };
        let text = format!("{tick:.*}", digits.clamp(0.0, 9.0) as usize);
        if text.starts_with("-0") && text.trim_start_matches(['-', '0', '.']).is_empty() {
            "0".into()
        } else {
            text
        }
    }
}

fn ends(values: impl IntoIterator<Item = f64>, counts: impl Fn(f64) -> bool) -> Option<(f64, f64)> {
    let values = values.into_iter().filter(|value| counts(*value));
    values.fold(None, |ends, value| match ends {
        None => Some((value, value)),
        Some((low, high)) => Some((value.min(low), value.max(high))),
    })
}

/// A step that makes about `count` of `length`.
fn step(length: f64, count: u32) -> f64 {
    let least = length.max(1e-12) / f64::from(count);
    let ten = libm::exp10(libm::floor(libm::log10(least)));
    let steps = STEPS.into_iter().chain([10.0]).map(|step| step * ten);
    steps.into_iter().find(|step| *step >= least * (1.0 - 1e-9)).unwrap_or(10.0 * ten)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn labels(axis: &Axis) -> Vec<String> {
        axis.ticks.iter().map(|tick| axis.label(*tick)).collect()
    }

    #[test]
    fn ticks_are_round_and_have_the_digits_they_need() {
        assert_eq!(labels(&Axis::linear(0.0, 1.0)), ["0.0", "0.2", "0.4", "0.6", "0.8", "1.0"]);
        assert_eq!(labels(&Axis::from_zero([3.0, 96.0])), ["0", "20", "40", "60", "80"]);
        assert_eq!(
            labels(&Axis::logarithmic([11.0, 1900.0])),
            ["10", "20", "50", "100", "200", "500", "1000", "2000"]
        );
        assert_eq!(labels(&Axis::logarithmic([0.5, 2.0])), ["0.5", "1", "2"]);
        assert_eq!(
            labels(&Axis::logarithmic([1.0, 1e6])),
            ["1", "10", "100", "1000", "10000", "100000", "1000000"]
        );
    }

    #[test]
    fn equal_or_missing_values_still_make_an_axis() {
        for axis in [
            Axis::around([]),
            Axis::around([5.0, 5.0]),
            Axis::logarithmic([0.0]),
            Axis::from_zero([f64::NAN]),
        ] {
            assert!(axis.low < axis.high && axis.ticks.len() >= 2, "{axis:?}");
        }
    }

    #[test]
    fn the_larger_is_further_unless_reversed() {
        let axis = Axis::logarithmic([10.0, 1000.0]);
        assert!((axis.place(100.0) - 0.5).abs() < 0.01);
        let reversed = axis.clone().reversed();
        assert!(axis.place(20.0) < axis.place(30.0) && reversed.place(20.0) > reversed.place(30.0));
    }
}
