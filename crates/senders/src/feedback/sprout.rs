//! Sprout's receiver (Winstein, Sivaraman, Balakrishnan, "Stochastic Forecasts Achieve High Throughput and
//! Low Delay over Cellular Networks", NSDI 2013): it infers the link's rate from when packets arrive, and
//! forecasts what the link will carry.
//!
//! ```text
//! every 20 ms:   evolve the model (`poisson_brownian`), observe the packets of the tick, report a
//!                forecast
//! a tick without packets says nothing when it began within a pause that the sender announced: the link may
//!   have had nothing to carry.  A pause counts from the beginning of its packet's tick
//! counted = packets up to the newest, arrived or lost
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | sigma | `sigma` | packets/s/sqrt(s) | 200 | winstein13 3.1 |
//! | lambda_z | `escape_rate` | 1/s | 1 | winstein13 3.1 |
//! | tau | - | time | 20 ms | winstein13 3.2 |
//! | - | `max_rate` | packets/s | 1000 | winstein13 3.2 |
//! | - | `confidence` | probability | 0.95 | winstein13 3.3 |
//! | - | `ticks` | choice | independent | the authors' `processforecaster.cc` |
//!
//! Deviations: D1 everything below the newest number counts as arrived or lost at once; the authors wait 10
//! ms for reordering, which links here do not do unless asked to. D2 ACKs leave as on any connection besides,
//! for the host's loss detection; only those at a tick carry a forecast. D3 reports end ten seconds after the
//! last arrival.

use alloc::boxed::Box;
use alloc::sync::Arc;

use brakelight_core::controller::ReceiverReport;
use brakelight_core::feedback::{AckAction, Arrival, Echo, Feedback, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_estimates::poisson_brownian::{HORIZON, Model, PoissonBrownian, Tables, Ticks};

use super::delayed::{self, Delayed};

/// Length of a tick (winstein13 3.2).
pub const TICK: Duration = Duration::from_millis(20);
/// Reports end when nothing arrived for so long (D3).
const SILENCE: Duration = Duration::from_secs(10);

parameters! {
    /// The settings of Sprout's receiver.
    pub struct Config {
        shared tables: Tables;
        /// Noise power of the link's rate, packets per second and root second.
        sigma: f64 = 200.0, in 1.0..=10000.0, from "winstein13 3.1";
        /// Rate at which outages end, per second.
        escape_rate: f64 = 1.0, in 0.001..=1000.0, from "winstein13 3.1";
        /// Highest rate the model knows, packets per second.
        max_rate: f64 = 1000.0, in 10.0..=1000.0, from "winstein13 3.2";
        /// Probability with which the link is to carry what is forecast.
        confidence: f64 = 0.95, in 0.01..=0.99, from "winstein13 3.3";
        /// How a forecast combines ticks.
        ticks: Ticks = Ticks::Independent, in .., from "Sprout: processforecaster.cc";
    }
}

/// Sprout's receiver: ordinary ACKs, and a forecast every 20 ms.
#[derive(Clone, Debug)]
pub struct Sprout {
    acks: Delayed,
    state: Box<State>,
}

#[derive(Clone, Debug)]
struct State {
    model: PoissonBrownian,
    mss: Bytes,
    /// When the present tick ends; none before the first packet.
    tick_end: Option<Time>,
    /// Bytes that arrived in it.
    arrived: Bytes,
    /// An empty tick that begins before says nothing.
    pause_until: Time,
    last_arrival: Time,
    /// Packets up to the newest.
    counted: u64,
    forecast: [u16; HORIZON],
    /// Whether the forecast was not reported yet.
    fresh: bool,
}

impl Config {
    /// Returns the tables of the model, made for the first flow.
    fn tables(&self) -> Arc<Tables> {
        self.tables.get_or_make(|| {
            Tables::new(&Model {
                tick: TICK,
                max_rate: self.max_rate,
                sigma: self.sigma,
                escape_rate: self.escape_rate,
                quantile: 1.0 - self.confidence,
                ticks: self.ticks,
            })
        })
    }
}

impl Sprout {
    /// Returns a receiver at the start of its connection.
    pub fn new(config: Config, receiver: &Receiver) -> Self {
        Sprout {
            acks: Delayed::new(delayed::Config::default(), receiver),
            state: Box::new(State {
                model: PoissonBrownian::new(config.tables()),
                mss: receiver.mss,
                tick_end: None,
                arrived: Bytes::ZERO,
                pause_until: Time::ZERO,
                last_arrival: Time::ZERO,
                counted: 0,
                forecast: [0; HORIZON],
                fresh: false,
            }),
        }
    }
}

impl State {
    /// Ends every tick that is over by `now`.
    fn advance(&mut self, now: Time) {
        while let Some(end) = self.tick_end
            && end <= now
        {
            self.tick_end = Some(end + TICK);
            self.model.evolve();
            // winstein13 3.2; receiver.cc: part of a packet is a packet, otherwise the nearest count.
            let packets = self.arrived.as_f64() / self.mss.as_f64();
            let count = if packets > 0.0 { (libm::round(packets) as usize).max(1) } else { 0 };
            // receiver.cc: what counts is when the tick began.
            if count > 0 || end >= self.pause_until + TICK {
                self.model.observe(count);
            }
            self.arrived = Bytes::ZERO;
            self.fresh = true;
        }
    }

    fn is_silent(&self, now: Time) -> bool {
        now.since(self.last_arrival) > SILENCE
    }
}

impl Feedback for Sprout {
    fn on_packet(&mut self, arrival: &Arrival) -> AckAction {
        let state = &mut *self.state;
        if state.tick_end.is_none() || state.is_silent(arrival.now) {
            state.tick_end = Some(arrival.now + TICK);
        }
        state.advance(arrival.now);
        state.arrived += arrival.size;
        state.last_arrival = arrival.now;
        state.counted = state.counted.max(arrival.number + 1);
        if let Header::Flight { pause_ms } = arrival.header {
            // receiver.cc: a pause begins with the tick of its packet.
            let end = state.tick_end.unwrap_or(arrival.now + TICK);
            let until = end + Duration::from_millis(u64::from(pause_ms)) - TICK;
            state.pause_until = state.pause_until.max(until);
        }
        self.acks.on_packet(arrival)
    }

    fn on_ack_sent(&mut self, now: Time, flush: bool) -> Echo {
        let mut echo = self.acks.on_ack_sent(now, flush);
        let state = &mut *self.state;
        state.advance(now);
        if state.fresh && !flush {
            state.fresh = false;
            state.forecast = state.model.forecast();
            let received = Bytes(state.counted * state.mss.0);
            echo.report = ReceiverReport::Forecast { packets: state.forecast, received };
        }
        echo
    }

    fn next_report(&self) -> Option<Time> {
        let state = &*self.state;
        state.tick_end.filter(|end| !state.is_silent(*end))
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::ecn::{Ecn, Encoding};
    use brakelight_core::parameters::Parameters;

    use super::*;

    const RECEIVER: Receiver = Receiver { encoding: Encoding::None, ack_every: 2, mss: Bytes(1448) };

    fn receiver() -> Sprout {
        Sprout::new(Config::default(), &RECEIVER)
    }

    fn arrival(number: u64, at_ms: u64, pause_ms: u16) -> Arrival {
        Arrival {
            now: Time::from_millis(at_ms),
            number,
            size: Bytes(1448),
            ecn: Ecn::NotEct,
            cwr: false,
            header: Header::Flight { pause_ms },
            hash16: 0,
            sent_at: Time::ZERO,
            urgent: false,
        }
    }

    fn forecast(sprout: &mut Sprout, at_ms: u64) -> ([u16; HORIZON], Bytes) {
        match sprout.on_ack_sent(Time::from_millis(at_ms), false).report {
            ReceiverReport::Forecast { packets, received } => (packets, received),
            other => panic!("no forecast but {other:?}"),
        }
    }

    #[test]
    fn reports_every_tick_and_only_then() {
        let mut sprout = receiver();
        assert_eq!(sprout.next_report(), None);
        sprout.on_packet(&arrival(0, 100, 0));
        assert_eq!(sprout.next_report(), Some(Time::from_millis(120)));
        assert_eq!(sprout.on_ack_sent(Time::from_millis(110), false).report, ReceiverReport::None);
        forecast(&mut sprout, 120);
        assert_eq!(sprout.on_ack_sent(Time::from_millis(121), false).report, ReceiverReport::None);
        assert_eq!(sprout.next_report(), Some(Time::from_millis(140)));
    }

    #[test]
    fn counts_what_arrived_and_what_was_lost() {
        let mut sprout = receiver();
        for number in [0, 1, 2, 5] {
            sprout.on_packet(&arrival(number, 100, 0));
        }
        assert_eq!(forecast(&mut sprout, 120).1, Bytes(6 * 1448));
    }

    #[test]
    fn silence_within_an_announced_pause_is_no_outage() {
        let (mut announced, mut unannounced) = (receiver(), receiver());
        for tick in 0..25 {
            for packet in 0..8 {
                let pause = if packet == 7 { 200 } else { 0 };
                let number = tick * 8 + packet;
                announced.on_packet(&arrival(number, 100 + tick * 20, pause));
                unannounced.on_packet(&arrival(number, 100 + tick * 20, 0));
            }
        }
        let announced = forecast(&mut announced, 100 + 24 * 20 + 120).0;
        let unannounced = forecast(&mut unannounced, 100 + 24 * 20 + 120).0;
        assert!(announced[4] >= 20, "{announced:?}");
        assert_eq!(unannounced[4], 0, "{unannounced:?}");
    }

    /// receiver.cc: the pause of the packet at 580 ms ends at 630 ms. The empty tick from 620 ms began within
    /// it and says nothing, that from 640 ms does.
    #[test]
    fn a_pause_covers_the_ticks_that_begin_within_it() {
        let mut sprout = receiver();
        for number in 0..200 {
            sprout.on_packet(&arrival(number, 100 + number / 8 * 20, if number == 199 { 50 } else { 0 }));
        }
        let [busy, paused, silent] = [600, 640, 660].map(|at_ms| forecast(&mut sprout, at_ms).0[4]);
        // Two ticks without an observation make the forecast more careful, no more.
        assert!(paused + 8 > busy, "{busy} {paused}");
        assert!(silent + 5 < paused, "{paused} {silent}");
    }

    #[test]
    fn falls_silent_ten_seconds_after_its_sender() {
        let mut sprout = receiver();
        sprout.on_packet(&arrival(0, 100, 0));
        let mut reports = 0;
        while let Some(at) = sprout.next_report() {
            sprout.on_ack_sent(at, false);
            reports += 1;
        }
        assert_eq!(reports, 500);
    }

    #[test]
    fn flows_of_the_same_settings_share_their_tables() {
        let tables = |config: &Config| {
            let sprout = Sprout::new(config.clone(), &RECEIVER);
            sprout.state.model.tables().clone()
        };
        let config = Config::default();
        let first = tables(&config);
        assert!(Arc::ptr_eq(&first, &tables(&config)));
        let careful = config.clone().with_options([("confidence", "0.99")]).unwrap();
        assert!(!Arc::ptr_eq(&first, &tables(&careful)));
        // Making the tables changes neither equality nor what is printed.
        assert_eq!(config, Config::default());
        assert_eq!(config.settings(), Config::default().settings());
        assert_eq!(std::format!("{config:?}"), std::format!("{:?}", Config::default()));
    }
}
