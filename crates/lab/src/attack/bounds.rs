//! What links an attack may try: `rate=1Mbps..24Mbps,rtt=40ms`.

use std::fmt;
use std::str::FromStr;

use brakelight_core::parameters::{Domain, OrNone, ParameterError, Parameters, Value};
use brakelight_core::time::Duration;
use brakelight_core::units::Rate;

brakelight_core::parameters! {
    /// The bounds of an attack.
    pub struct Bounds {
        /// The capacity, at every moment.
        rate: Span<Rate> = Span { low: Rate::from_mbps(1), high: Rate::from_mbps(24) }, in Within(Rate::from_bps(100_000), Rate::from_mbps(1000)), from "-";
        /// Variation: the largest standard deviation over time of the capacity's natural logarithm.
        variation: f64 = 1.0, in 0.0..=3.0, from "-";
        /// Change: the largest factor between two capacities that are at most a round trip and 20 ms apart;
        /// none: any.
        change: Option<f64> = None, in OrNone(1.0..=1000.0), from "-";
        /// For how long the capacity stays alike: in steps how long each lasts, otherwise the time in which
        /// its correlation falls to 1/e.
        correlation: Span<Duration> = Span { low: Duration::from_millis(100), high: Duration::from_secs(5) }, in Within(Duration::from_millis(10), Duration::from_secs(60)), from "-";
        /// Propagation delay of the round trip.
        rtt: Span<Duration> = Span { low: Duration::from_millis(20), high: Duration::from_millis(100) }, in Within(Duration::from_millis(1), Duration::from_secs(2)), from "-";
        /// The buffer, in bandwidth-delay products of the mean capacity; ten packets at least.
        buffer: Span<f64> = Span { low: 0.5, high: 4.0 }, in Within(0.01, 100.0), from "-";
        /// The longest delay that the path adds beside its queue.
        delay: Duration = Duration::from_millis(50), in Duration::ZERO..=Duration::from_secs(10), from "arun22 2";
        /// The largest probability of random loss.
        loss: f64 = 0.01, in 0.0..=0.5, from "-";
        /// The largest rate of cross traffic, as a share of the mean capacity.
        cross: f64 = 0.9, in 0.0..=1.0, from "-";
        /// Length of a run; it is measured from a sixth on.
        duration: Duration = Duration::from_secs(30), in Duration::from_secs(1)..=Duration::from_secs(600), from "-";
        /// Seeds that a link is judged by: the least damage counts.
        seeds: u32 = 1, in 1..=5, from "-";
    }
}

impl fmt::Display for Bounds {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        // These go without saying: it was so before there was a choice, and journals say their bounds.
        let silent = |name: &str| match name {
            "seeds" => self.seeds == 1,
            "change" => self.change.is_none(),
            _ => false,
        };
        let said = self.settings().into_iter().filter(|(name, _)| !silent(name));
        let words = said.map(|(name, value)| format!("{name}={value}"));
        f.write_str(&words.collect::<Vec<_>>().join(","))
    }
}

impl FromStr for Bounds {
    type Err = String;

    /// Reads a list such as `rate=1Mbps..24Mbps,rtt=40ms`; what it leaves out has its default.
    fn from_str(text: &str) -> Result<Self, String> {
        let pair = |word: &str| match word.split_once('=') {
            Some((name, value)) => Ok((name.trim().to_string(), value.trim().to_string())),
            None => {
                Err(format!("`{word}` has no `=`: valid is a list such as `rate=1Mbps..24Mbps,rtt=40ms`"))
            }
        };
        let pairs = text.split(',').map(pair).collect::<Result<Vec<_>, _>>()?;
        let pairs = pairs.iter().map(|(name, value)| (name.as_str(), value.as_str()));
        Bounds::from_options(pairs).map_err(|error: ParameterError| error.to_string())
    }
}

/// A least and a greatest value: `1Mbps..24Mbps`; one value is both.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Span<T> {
    /// The least.
    pub low: T,
    /// The greatest.
    pub high: T,
}

impl<T: Value + Clone> Value for Span<T> {
    fn unit() -> String {
        format!("{0}..{0}", T::unit())
    }

    fn parse(text: &str) -> Result<Self, String> {
        let (low, high) = text.split_once("..").unwrap_or((text, text));
        Ok(Span { low: T::parse(low.trim())?, high: T::parse(high.trim())? })
    }

    fn show(&self) -> String {
        format!("{}..{}", self.low.show(), self.high.show())
    }
}

/// Spans between two values.
struct Within<T>(T, T);

impl<T: Value + PartialOrd + Clone> Domain<Span<T>> for Within<T> {
    fn admits(&self, span: &Span<T>) -> bool {
        self.0 <= span.low && span.low <= span.high && span.high <= self.1
    }

    fn describe(&self) -> String {
        format!("LOW..HIGH from {} to {}", self.0.show(), self.1.show())
    }
}
