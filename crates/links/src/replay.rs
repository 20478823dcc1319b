//! Replay of what was recorded of a path beside its capacity: one-way delay over time and loss over time.
//!
//! ```text
//! a packet that enters at t is lost with probability loss(t + offset)
//! any other leaves at t + delay(t + offset)
//! order kept:   but no earlier than any packet that entered before it
//! ```
//!
//! Both are constant between two recorded values and start over after the period, which is that of the trace
//! of opportunities they belong to. Packets overtake each other only where the recording says that they did:
//! most measure delay by a value every few milliseconds, which does not tell, and a queue keeps the order.

use alloc::sync::Arc;
use alloc::vec::Vec;
use core::fmt;

use brakelight_core::packet::{Direction, Packet};
use brakelight_core::path::{Output, PathElement};
use brakelight_core::queue::Reason;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

use super::elements::Order;
use super::outbox::Outbox;
use super::trains::Trains;
use super::varying_delay::VaryingDelay;

/// The longest delay that is replayed.
pub const MAX_DELAY: Duration = Duration::from_secs(60);

/// A probability of 1, in parts of a billion.
pub const CERTAIN: u32 = 1_000_000_000;

/// What was recorded of a path beside the capacity of one direction.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Recorded {
    /// The time of which the recording keeps the mean alone: the length of its bins.
    pub resolution: Duration,
    /// In the direction of the capacity.
    pub forward: Option<Conditions>,
    /// In the other direction.
    pub reverse: Option<Conditions>,
    /// Light trains in the direction of the capacity, which is then that of the heavy opportunities; the
    /// delays ahead are their base delays.
    pub trains: Option<Trains>,
}

impl Recorded {
    /// Returns what was recorded in `direction`, that of the capacity being [`Direction::Forward`].
    pub fn conditions(&self, direction: Direction) -> Option<&Conditions> {
        match direction {
            Direction::Forward => self.forward.as_ref(),
            Direction::Reverse => self.reverse.as_ref(),
        }
    }
}

/// One-way delay and loss of a path over time. Cloning shares the data.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Conditions {
    period: Duration,
    delays: Arc<[(Duration, Duration)]>,
    losses: Arc<[(Duration, u32)]>,
    reorders: bool,
}

/// Why a recording of delay and loss was refused.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
#[non_exhaustive]
pub enum ConditionsError {
    /// It lasts no time.
    ZeroPeriod,
    /// The first value is not from the beginning.
    Late(Duration),
    /// A value begins no later than the one before it.
    NotLater(Duration),
    /// A value begins after the period.
    AfterPeriod(Duration),
    /// A delay above [`MAX_DELAY`].
    Delay(Duration),
    /// A probability above [`CERTAIN`].
    Loss(u32),
}

impl fmt::Display for ConditionsError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            ConditionsError::ZeroPeriod => write!(f, "the period is 0 s: it must be longer"),
            ConditionsError::Late(at) => write!(f, "the first value begins at {at}: it must begin at 0 s"),
            ConditionsError::NotLater(at) => {
                write!(f, "a value begins at {at}, no later than the one before it")
            }
            ConditionsError::AfterPeriod(at) => write!(f, "a value begins at {at}, after the period"),
            ConditionsError::Delay(delay) => {
                write!(f, "a delay is {delay}: valid are 0 s to {MAX_DELAY}")
            }
            ConditionsError::Loss(loss) => {
                write!(f, "a loss is {loss} of a billion: valid are 0 to {CERTAIN}")
            }
        }
    }
}

impl core::error::Error for ConditionsError {}

impl Conditions {
    /// Returns what repeats after `period`: delays and losses in parts of a billion, each with the time from
    /// which it holds, the first from 0. Either may be empty: no delay, no loss. With `reorders` packets
    /// overtake each other where the delay falls.
    pub fn new(
        period: Duration,
        delays: Vec<(Duration, Duration)>,
        losses: Vec<(Duration, u32)>,
        reorders: bool,
    ) -> Result<Self, ConditionsError> {
        if period.is_zero() {
            return Err(ConditionsError::ZeroPeriod);
        }
        check_times(&delays, period)?;
        check_times(&losses, period)?;
        if let Some((_, delay)) = delays.iter().find(|(_, delay)| *delay > MAX_DELAY) {
            return Err(ConditionsError::Delay(*delay));
        }
        if let Some((_, loss)) = losses.iter().find(|(_, loss)| *loss > CERTAIN) {
            return Err(ConditionsError::Loss(*loss));
        }
        Ok(Conditions { period, delays: delays.into(), losses: losses.into(), reorders })
    }

    /// Returns the losses alone.
    #[must_use]
    pub fn without_delays(&self) -> Self {
        Conditions { delays: Arc::default(), ..self.clone() }
    }

    /// Returns the time after which they repeat.
    pub fn period(&self) -> Duration {
        self.period
    }

    /// Returns the delays of one period, each with the time from which it holds.
    pub fn delays(&self) -> &[(Duration, Duration)] {
        &self.delays
    }

    /// Returns the losses of one period in parts of a billion, each with the time from which it holds.
    pub fn losses(&self) -> &[(Duration, u32)] {
        &self.losses
    }

    /// Returns `true` if packets overtake each other where the delay falls.
    pub fn reorders(&self) -> bool {
        self.reorders
    }

    /// Returns the delay so far into the recording; zero if none was recorded.
    pub fn delay(&self, at: Duration) -> Duration {
        self.held(&self.delays, Duration::ZERO, at).value
    }

    /// Returns the probability of loss so far into the recording, in parts of a billion.
    pub fn loss(&self, at: Duration) -> u32 {
        self.held(&self.losses, 0, at).value
    }

    /// Returns for each share, 0 to 1, the least delay that so much of the period does not exceed; `None` if
    /// no delay was recorded.
    pub fn delay_quantiles<const N: usize>(&self, shares: [f64; N]) -> Option<[Duration; N]> {
        let ends = self.delays.iter().skip(1).map(|(at, _)| *at).chain([self.period]);
        let mut held: Vec<(Duration, Duration)> =
            self.delays.iter().zip(ends).map(|(&(at, delay), end)| (delay, end.saturating_sub(at))).collect();
        held.sort_unstable();
        let (longest, _) = *held.last()?;
        Some(shares.map(|share| {
            let (wanted, mut sum) = (self.period.mul_f64(share), Duration::ZERO);
            let found = held.iter().find(|(_, length)| {
                sum += *length;
                sum >= wanted
            });
            found.map_or(longest, |(delay, _)| *delay)
        }))
    }

    fn within(&self, at: Duration) -> Duration {
        Duration::from_nanos(at.as_nanos() % self.period.as_nanos())
    }

    /// Returns the value that holds so far into the recording, and from when until when; `none` where
    /// nothing was recorded.
    fn held<T: Copy>(&self, values: &[(Duration, T)], none: T, at: Duration) -> Held<T> {
        let within = self.within(at);
        let start = at.saturating_sub(within);
        let after = values.partition_point(|(from, _)| *from <= within);
        let (from, value) = after.checked_sub(1).map_or((Duration::ZERO, none), |index| values[index]);
        let until = values.get(after).map_or(self.period, |&(from, _)| from);
        Held { value, from: start + from, until: start + until }
    }
}

/// A value and when it holds, counted from the beginning of the recording's first pass.
#[derive(Clone, Debug)]
struct Held<T> {
    value: T,
    from: Duration,
    until: Duration,
}

impl<T> Held<T> {
    /// Returns a value that never holds.
    fn never(value: T) -> Self {
        Held { value, from: Duration::ZERO, until: Duration::ZERO }
    }

    fn holds(&self, at: Duration) -> bool {
        self.from <= at && at < self.until
    }
}

fn check_times<T>(values: &[(Duration, T)], period: Duration) -> Result<(), ConditionsError> {
    match values.first() {
        Some((at, _)) if !at.is_zero() => return Err(ConditionsError::Late(*at)),
        _ => {}
    }
    if let Some(pair) = values.windows(2).find(|pair| pair[1].0 <= pair[0].0) {
        return Err(ConditionsError::NotLater(pair[1].0));
    }
    match values.last() {
        Some((at, _)) if *at >= period => Err(ConditionsError::AfterPeriod(*at)),
        _ => Ok(()),
    }
}

/// A path element that delays and loses packets as was recorded.
#[derive(Clone, Debug)]
pub struct Replay<P> {
    conditions: Conditions,
    /// How far into the recording the run begins.
    offset: Duration,
    /// What held when it was last asked for.
    loss: Held<u32>,
    delay: Held<Duration>,
    random: Random,
    line: VaryingDelay<P>,
    lost: Outbox<P>,
}

impl<P: Packet> Replay<P> {
    /// Returns an element without packets that begins so far into the recording.
    pub fn new(conditions: Conditions, offset: Duration, random: Random) -> Self {
        let line = VaryingDelay::new(Duration::ZERO, Order::Kept, Time::ZERO);
        let (loss, delay) = (Held::never(0), Held::never(Duration::ZERO));
        Replay { conditions, offset, loss, delay, random, line, lost: Outbox::new() }
    }

    /// Returns `true` if a delay was recorded, and not loss alone.
    pub fn delays(&self) -> bool {
        !self.conditions.delays.is_empty()
    }
}

impl<P: Packet> PathElement<P> for Replay<P> {
    fn accept(&mut self, now: Time, packet: P) {
        let at = now.since(Time::ZERO) + self.offset;
        if !self.loss.holds(at) {
            self.loss = self.conditions.held(&self.conditions.losses, 0, at);
        }
        let loss = self.loss.value;
        if loss > 0 && self.random.chance(f64::from(loss) / f64::from(CERTAIN)) {
            self.lost.lose(now, packet, Reason::Lost);
            return;
        }
        if !self.delay.holds(at) {
            self.delay = self.conditions.held(&self.conditions.delays, Duration::ZERO, at);
            let order = if self.conditions.reorders { Order::Free } else { Order::Kept };
            self.line.set(self.delay.value, order);
        }
        self.line.accept(now, packet);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        match (self.lost.next_wakeup(), self.line.next_wakeup()) {
            (Some(lost), Some(left)) if left <= lost => self.line.poll(now),
            (Some(_), _) => self.lost.poll(now),
            (None, _) => self.line.poll(now),
        }
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.lost.next_wakeup().into_iter().chain(self.line.next_wakeup()).min()
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.lost.for_each(visit);
        self.line.for_each(visit);
    }
}

#[cfg(test)]
mod tests;
