//! What every application must keep, whatever its flow does:
//!
//! - same flow, same calls: two of the same settings act the same, and so does a copy that was made in the
//!   middle of a run;
//! - time goes on: a timer that fired is set to a later moment, or after a few calls at the same one;
//! - a message fits into a packet;
//! - once its flow has stopped, or once it says that it is over, nothing new is sent;
//! - it reports finite numbers, each under a name of its own that its settings announce;
//! - it offers no more than it says.
//!
//! The flow here is a rate, a delay and a loss probability for messages: what an application sees of a host.
//! Payload arrives in order; messages are lost and repeated, and overtake payload.

use std::collections::{BTreeMap, BTreeSet};

use brakelight_apps::{AnyApplication, Application as _, Datagram, ENDLESS, Socket, Traffic};
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};

use super::label;

/// How long a run is.
const RUN: Duration = Duration::from_secs(40);
/// Flows that are tried.
const FLOWS: u64 = 16;
/// Timers that may fire at one moment. A clock of nanoseconds needs no more.
const TIMERS_AT_ONCE: usize = 100;
/// How much more than it says an application may offer: its packets are whole, and its first moment may be
/// its busiest.
const SLACK_PACKETS: u64 = 100;

/// What an application did to its flow.
#[derive(Clone, Debug, PartialEq)]
enum Act {
    Wrote(Bytes),
    Finished,
    Discarded,
    Sent(Datagram),
}

/// What happens to the application.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Event {
    Start,
    Stop,
    /// The sender may send its next packet.
    Free,
    Delivered(u64),
    Message(Datagram),
}

/// Both ends of a flow, without an application.
#[derive(Clone, Debug)]
struct Flow {
    now: Time,
    mss: Bytes,
    rate: Rate,
    delay: Duration,
    /// Of messages that do not arrive; as many arrive twice.
    spoiled: f64,
    unsent: u64,
    is_sending: bool,
    sent: u64,
    delivered: u64,
    /// Payload that was offered, endless writes aside.
    offered: u64,
    events: BTreeMap<(Time, u64), Event>,
    /// Breaks ties between events of one moment.
    scheduled: u64,
    random: Random,
    own_random: Random,
    acts: Vec<(Time, Act)>,
}

impl Flow {
    /// A flow drawn from `seed`, with packets of 500 bytes to jumbo frames.
    fn drawn(seed: u64) -> Self {
        let mut random = Random::stream(seed, "flow");
        let mut pick = |from: u64, to: u64| from + random.bits() % (to - from + 1);
        let mss = [Bytes(500), Bytes(1200), Bytes(1448), Bytes(8948)][pick(0, 3) as usize];
        let rate = Rate::from_bps(pick(100, 20_000) * 1000);
        let delay = Duration::from_micros(pick(100, 200_000));
        let spoiled = [0.0, 0.02, 0.2][pick(0, 2) as usize];
        let start = Time::from_millis(pick(0, 3000));
        let stop = start + RUN / 4 + Duration::from_millis(pick(0, 25_000));
        let mut flow = Flow {
            now: Time::ZERO,
            mss,
            rate,
            delay,
            spoiled,
            unsent: 0,
            is_sending: false,
            sent: 0,
            delivered: 0,
            offered: 0,
            events: BTreeMap::new(),
            scheduled: 0,
            random,
            own_random: Random::stream(seed, "application"),
            acts: Vec::new(),
        };
        flow.schedule(start, Event::Start);
        flow.schedule(stop, Event::Stop);
        flow
    }

    fn schedule(&mut self, at: Time, event: Event) {
        self.events.insert((at, self.scheduled), event);
        self.scheduled += 1;
    }

    /// Sends a packet if the sender is free and has one.
    fn send_payload(&mut self) {
        let size = self.unsent.min(self.mss.0);
        if self.is_sending || size == 0 {
            return;
        }
        if self.unsent != ENDLESS.0 {
            self.unsent -= size;
        }
        self.is_sending = true;
        self.sent += size;
        let free = self.now + self.rate.time_for(Bytes(size));
        self.schedule(free, Event::Free);
        self.schedule(free + self.delay, Event::Delivered(size));
    }
}

impl Socket for Flow {
    fn now(&self) -> Time {
        self.now
    }
    fn write(&mut self, size: Bytes) {
        self.acts.push((self.now, Act::Wrote(size)));
        self.unsent = self.unsent.saturating_add(size.0);
        if size != ENDLESS {
            self.offered = self.offered.saturating_add(size.0);
        }
        self.send_payload();
    }
    fn finish(&mut self) {
        self.acts.push((self.now, Act::Finished));
    }
    fn unsent(&self) -> Bytes {
        Bytes(self.unsent)
    }
    fn discard_unsent(&mut self) {
        self.acts.push((self.now, Act::Discarded));
        self.unsent = 0;
    }
    fn delivered(&self) -> Bytes {
        Bytes(self.delivered)
    }
    fn rate(&self) -> Option<Rate> {
        (self.delivered > 0).then_some(self.rate)
    }
    fn random(&mut self) -> &mut Random {
        &mut self.own_random
    }
    fn send(&mut self, datagram: Datagram) {
        self.acts.push((self.now, Act::Sent(datagram)));
        let copies = match self.random.uniform() {
            draw if draw < self.spoiled => 0,
            draw if draw < 2.0 * self.spoiled => 2,
            _ => 1,
        };
        for copy in 0..copies {
            self.schedule(self.now + self.delay * (1 + copy), Event::Message(datagram));
        }
    }
}

/// An application on its flow.
#[derive(Clone, Debug)]
struct Run {
    name: String,
    application: AnyApplication,
    flow: Flow,
    started: bool,
    stopped: bool,
}

impl Run {
    fn new(traffic: &Traffic, seed: u64) -> Self {
        let flow = Flow::drawn(seed);
        let application = AnyApplication::new(traffic, flow.mss);
        Run {
            name: format!("{}, flow {seed}", label(traffic)),
            application,
            flow,
            started: false,
            stopped: false,
        }
    }

    /// Runs until `end`.
    fn until(&mut self, end: Time) {
        while let Some((&(at, _), _)) = self.flow.events.first_key_value() {
            let timer = if self.started { self.application.next_timer() } else { Time::MAX };
            if at.min(timer) > end {
                break;
            }
            if timer < at {
                self.flow.now = timer.max(self.flow.now);
                self.fire_timers();
                continue;
            }
            let (_, event) = self.flow.events.pop_first().expect("there is one");
            self.flow.now = at;
            self.happens(event);
            self.fire_timers();
        }
        self.flow.now = end;
    }

    fn fire_timers(&mut self) {
        let mut fired = 0;
        while self.started && self.application.next_timer() <= self.flow.now {
            self.calls(|application, flow| application.on_timer(flow));
            fired += 1;
            assert!(fired < TIMERS_AT_ONCE, "{}: its timer stays due at {:?}", self.name, self.flow.now);
        }
    }

    fn happens(&mut self, event: Event) {
        match event {
            Event::Start => {
                self.calls(|application, flow| application.start(flow));
                self.started = true;
            }
            Event::Stop => {
                self.calls(|application, flow| application.stop(flow));
                self.stopped = true;
            }
            Event::Free => {
                self.flow.is_sending = false;
                self.flow.send_payload();
            }
            Event::Delivered(size) => {
                self.flow.delivered += size;
                if self.application.listens() {
                    self.calls(|application, flow| application.on_delivered(flow));
                }
            }
            Event::Message(datagram) => {
                self.calls(|application, flow| application.on_datagram(&datagram, flow));
            }
        }
    }

    /// Calls the application, and looks at what it did.
    fn calls(&mut self, call: impl FnOnce(&mut AnyApplication, &mut Flow)) {
        let is_over = self.started && self.application.is_over();
        let before = self.flow.acts.len();
        call(&mut self.application, &mut self.flow);
        for (at, act) in &self.flow.acts[before..] {
            let (name, mss) = (&self.name, self.flow.mss);
            if let Act::Sent(datagram) = act {
                let payload = Bytes(u64::from(datagram.payload));
                assert!(payload <= mss, "{name}: a message of {payload} in packets of {mss}");
            }
            let is_new = match act {
                Act::Wrote(size) => *size > Bytes::ZERO,
                Act::Sent(_) => true,
                Act::Finished | Act::Discarded => false,
            };
            assert!(!(is_new && self.stopped), "{name}: {act:?} at {at:?}, after its flow has stopped");
            assert!(!(is_new && is_over), "{name}: {act:?} at {at:?}, after it was over");
        }
        assert!(
            !self.stopped || self.flow.unsent == 0,
            "{}: {} bytes still wait after its flow has stopped",
            self.name,
            self.flow.unsent
        );
    }

    /// The outcome at the present time.
    fn outcome(&self) -> Vec<(&'static str, f64)> {
        let mut outcome = Vec::new();
        self.application.outcome(self.flow.now, &mut |name, value| outcome.push((name, value)));
        outcome
    }
}

/// Two runs that should be one.
fn expect_same(one: &Run, other: &Run, what: &str) {
    let name = &one.name;
    let differ = one.flow.acts.iter().zip(&other.flow.acts).find(|(one, other)| one != other);
    assert!(differ.is_none(), "{name}: {what} acts otherwise: {differ:?}");
    assert_eq!(one.flow.acts.len(), other.flow.acts.len(), "{name}: {what} acts longer or shorter");
    assert_eq!(one.outcome(), other.outcome(), "{name}: {what} reports something else");
}

/// Holds the application to what it may do to its flow, and to finite numbers under announced names.
///
/// # Panics
/// Panics if it is not so.
pub fn stays_within_its_flow(traffic: &Traffic) {
    for seed in 0..FLOWS {
        let mut run = Run::new(traffic, seed);
        for quarter in 0..=4 {
            // Before the start too: a run can end at any time.
            run.until(Time::ZERO + RUN * quarter / 4);
            let mut names = BTreeSet::new();
            for (name, value) in run.outcome() {
                assert!(value.is_finite(), "{}: `{name}` is {value}", run.name);
                assert!(names.insert(name), "{}: `{name}` is reported twice", run.name);
                if let Traffic::Custom(custom) = traffic {
                    assert!(custom.outcome().contains(&name), "{}: `{name}` is not announced", run.name);
                }
            }
        }
    }
}

/// Holds the application to the same acts when it is built again, and when it is copied in the middle of a
/// run.
///
/// # Panics
/// Panics if it is not so.
pub fn repeats_itself_and_goes_on_as_its_copy(traffic: &Traffic) {
    for seed in 0..FLOWS {
        let [mut run, mut again] = [Run::new(traffic, seed), Run::new(traffic, seed)];
        run.until(Time::ZERO + RUN / 5);
        let mut copy = run.clone();
        let end = Time::ZERO + RUN;
        // One after the other, so that what they share shows.
        copy.until(end);
        run.until(end);
        again.until(end);
        expect_same(&run, &copy, "a copy");
        expect_same(&run, &again, "another of the same settings");
    }
}

/// Holds the application to the rate that its settings announce, if they announce one.
///
/// # Panics
/// Panics if it is not so.
pub fn offers_no_more_than_it_says(traffic: &Traffic) {
    let Traffic::Custom(custom) = traffic else { return };
    let Some(rate) = custom.offers() else { return };
    for seed in 0..FLOWS {
        let mut run = Run::new(traffic, seed);
        run.until(Time::ZERO + RUN);
        let most = rate.bytes_in(RUN).0 + SLACK_PACKETS * run.flow.mss.0;
        let offered = run.flow.offered;
        assert!(offered <= most, "{}: {offered} bytes in {RUN} are more than {rate}", run.name);
        let endless = run.flow.acts.iter().any(|(_, act)| *act == Act::Wrote(ENDLESS));
        assert!(!endless, "{}: it offers without end, and says {rate}", run.name);
    }
}
