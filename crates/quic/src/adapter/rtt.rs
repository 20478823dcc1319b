//! Round-trip time as RFC 9002 section 5 filters it. The stack has its own filter, but shows its controllers the state of
//! before the ACK they are told of.

use brakelight_core::controller::Rtt;
use brakelight_core::time::Duration;

/// rfc9002 6.2.2
pub(super) const INITIAL: Duration = Duration::from_millis(333);
/// rfc9002 6.1.2
const GRANULARITY: Duration = Duration::from_millis(1);

/// The filters over one path's samples.
#[derive(Clone, Copy, Debug, Default)]
pub(super) struct Estimator {
    state: Option<(Duration, Duration, Duration)>,
}

impl Estimator {
    /// Takes a sample, of which the receiver says that it held the ACK back for `delay`.
    pub(super) fn sample(&mut self, latest: Duration, delay: Duration) {
        let Some((smoothed, variation, min)) = self.state else {
            self.state = Some((latest, latest / 2, latest));
            return;
        };
        let min = min.min(latest);
        // rfc9002 5.3
        let adjusted = if latest >= min + delay { latest - delay } else { latest };
        let off = smoothed.saturating_sub(adjusted).max(adjusted.saturating_sub(smoothed));
        self.state = Some(((smoothed * 7 + adjusted) / 8, (variation * 3 + off) / 4, min));
    }

    /// Smoothed, once there is a sample.
    pub(super) fn measured(&self) -> Option<Duration> {
        self.state.map(|(smoothed, ..)| smoothed)
    }

    /// Smoothed, or what is assumed before.
    pub(super) fn smoothed(&self) -> Duration {
        self.measured().unwrap_or(INITIAL)
    }

    /// The smallest, or what is assumed before.
    pub(super) fn min(&self) -> Duration {
        self.state.map_or(INITIAL, |(.., min)| min)
    }

    /// As controllers are told, with this ACK's sample.
    pub(super) fn told(&self, sample: Option<Duration>) -> Rtt {
        let variation = self.state.map_or(INITIAL / 2, |(_, variation, _)| variation);
        Rtt { sample, smoothed: self.smoothed(), variation, min: self.min() }
    }

    /// The probe timeout without backoff (rfc9002 6.2.1), towards a peer that holds ACKs back for `max_ack_delay` at most.
    pub(super) fn pto(&self, max_ack_delay: Duration) -> Duration {
        self.smoothed() + (self.told(None).variation * 4).max(GRANULARITY) + max_ack_delay
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_filter_follows_rfc9002() {
        let ms = Duration::from_millis;
        let mut rtt = Estimator::default();
        rtt.sample(ms(100), ms(0));
        assert_eq!(rtt.told(None), Rtt { sample: None, smoothed: ms(100), variation: ms(50), min: ms(100) });
        // Held back for 10 ms: counts as 110.
        rtt.sample(ms(120), ms(10));
        let told = rtt.told(Some(ms(120)));
        assert_eq!((told.smoothed, told.variation), (Duration::from_micros(101_250), ms(40)));
        // A delay that would bring the sample below the smallest is not believed.
        rtt.sample(ms(101), ms(20));
        assert_eq!(rtt.told(None).min, ms(100));
        assert_eq!(rtt.smoothed(), Duration::from_nanos((101_250_000 * 7 + 101_000_000) / 8));
    }
}
