//! What the sending end of a flow offers: one stream, without end, of a given size, or at a rate.

use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_scenario::traffic::{OnOff, Traffic};

/// An application that the driver does not have.
#[derive(Clone, Copy, Debug, PartialEq, Eq, thiserror::Error)]
#[error(
    "traffic: {0} does not run over real QUIC: valid are backlogged, a size, a rate, and on-off periods with a rate"
)]
pub struct UnsupportedTraffic(pub &'static str);

/// What is offered, and when.
#[derive(Clone, Debug)]
pub struct Application {
    kind: Kind,
    packet: u64,
    /// Bytes offered since the beginning.
    offered: u64,
    next: Time,
}

#[derive(Clone, Debug)]
enum Kind {
    Endless,
    Size(u64),
    Rate(Rate),
    OnOff { periods: OnOff, rate: Rate, until: Time, on: bool, random: Random },
}

impl Application {
    /// The application that `traffic` describes, over packets of `mss`.
    pub fn new(traffic: &Traffic, mss: Bytes, random: Random) -> Result<Self, UnsupportedTraffic> {
        let kind = match traffic {
            Traffic::Backlogged => Kind::Endless,
            Traffic::Size(size) => Kind::Size(size.0),
            Traffic::RateLimited(rate) => Kind::Rate(*rate),
            Traffic::OnOff(periods) => match periods.rate {
                Some(rate) => Kind::OnOff { periods: *periods, rate, until: Time::ZERO, on: false, random },
                None => return Err(UnsupportedTraffic("on-off traffic that is backlogged while it is on")),
            },
            Traffic::ShortFlows(_) => return Err(UnsupportedTraffic("a process of short connections")),
            Traffic::RequestResponse(_) => return Err(UnsupportedTraffic("request-response traffic")),
            Traffic::Game(_) => return Err(UnsupportedTraffic("a game")),
            Traffic::Video(_) => return Err(UnsupportedTraffic("a video")),
            Traffic::Call(_) => return Err(UnsupportedTraffic("a call")),
        };
        Ok(Application { kind, packet: mss.0, offered: 0, next: Time::MAX })
    }

    /// The flow starts.
    pub fn start(&mut self, now: Time) {
        self.next = now;
        if let Kind::OnOff { until, .. } = &mut self.kind {
            *until = now;
        }
        self.on_timer(now);
    }

    /// The flow stops: nothing more is offered.
    pub fn stop(&mut self) {
        self.next = Time::MAX;
    }

    /// When there will be more; [`Time::MAX`] for never.
    pub fn next_timer(&self) -> Time {
        self.next
    }

    /// Bytes offered since the beginning; `u64::MAX` without end.
    pub fn offered(&self) -> u64 {
        self.offered
    }

    /// The size of the transfer, if it has one.
    pub fn size(&self) -> Option<u64> {
        match self.kind {
            Kind::Size(size) => Some(size),
            _ => None,
        }
    }

    /// Offers what is due by `now`.
    pub fn on_timer(&mut self, now: Time) {
        while self.next <= now {
            let at = self.next;
            match &mut self.kind {
                Kind::Endless => {
                    self.offered = u64::MAX;
                    self.next = Time::MAX;
                }
                Kind::Size(size) => {
                    self.offered = *size;
                    self.next = Time::MAX;
                }
                Kind::Rate(rate) => {
                    self.offered += self.packet;
                    self.next = at + rate.time_for(Bytes(self.packet)).max(Duration::from_nanos(1));
                }
                Kind::OnOff { periods, rate, until, on, random } => {
                    if at >= *until {
                        *on = !*on;
                        let mean = if *on { periods.on } else { periods.off };
                        let length = if periods.random { mean.mul_f64(random.exponential()) } else { mean };
                        *until = at + length.max(Duration::from_nanos(1));
                    }
                    let step = rate.time_for(Bytes(self.packet)).max(Duration::from_nanos(1));
                    if *on {
                        self.offered += self.packet;
                    }
                    self.next = if *on { (at + step).min(*until) } else { *until };
                }
            }
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn offered(traffic: &Traffic, at: &[u64]) -> Vec<u64> {
        let mut application = Application::new(traffic, Bytes(1000), Random::stream(1, "test")).unwrap();
        application.start(Time::ZERO);
        let at = at.iter().map(|&ms| {
            application.on_timer(Time::from_millis(ms));
            application.offered()
        });
        at.collect()
    }

    #[test]
    fn a_rate_offers_a_packet_per_interval_and_a_size_everything_at_once() {
        let rate = Rate::from_mbps(8);
        assert_eq!(offered(&Traffic::RateLimited(rate), &[0, 1, 5]), [1000, 2000, 6000]);
        assert_eq!(offered(&Traffic::Size(Bytes(5)), &[0, 9]), [5, 5]);
        assert_eq!(offered(&Traffic::Backlogged, &[0]), [u64::MAX]);
        let ms = Duration::from_millis;
        let periods = OnOff { on: ms(2), off: ms(3), rate: Some(rate), random: false };
        assert_eq!(
            offered(&Traffic::OnOff(periods), &[0, 1, 2, 4, 5, 6]),
            [1000, 2000, 2000, 2000, 3000, 4000]
        );
    }

    #[test]
    fn what_does_not_run_is_named_with_what_does() {
        let traffic = Traffic::Game(Default::default());
        let error = Application::new(&traffic, Bytes(1), Random::stream(1, "test")).unwrap_err().to_string();
        assert!(error.contains("a game") && error.contains("backlogged"), "{error}");
    }
}
