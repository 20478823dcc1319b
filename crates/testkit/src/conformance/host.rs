//! What a host from outside is held to: the [contract](brakelight_core::host#the-contract) of its ends.
//!
//! Each test opens a connection over a link of known rate, with a short buffer, through the host's ends
//! alone. Every connection has a thread of its own, as every simulation with such a host has.

use std::cmp::Reverse;
use std::collections::{BTreeMap, BinaryHeap};
use std::thread;
use std::time::Duration as StdDuration;

use brakelight_core::ecn::Ecn;
use brakelight_core::host::Pair;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::HostedConfig;

/// The largest UDP payload of the path, in bytes.
const DATAGRAM: u16 = 1472;
/// One way, without the queue.
const DELAY: Duration = Duration::from_millis(20);
/// Of the way forward.
const RATE: Rate = Rate::from_mbps(10);
/// Packets that wait, at most, unless the buffer is deep.
const BUFFER: u64 = 40;
/// No transfer here takes longer.
const END: Time = Time::from_secs(60);
/// Calls in a row at one moment.
const MOST_CALLS: u32 = 100_000;

/// How a connection is used.
#[derive(Clone, Copy, Debug, Default)]
struct Case {
    seed: u64,
    /// Bytes of the transfer.
    size: u64,
    /// The share of datagrams that the path loses, both ways.
    loss: f64,
    /// By how much calls come late, at most.
    late: Duration,
    /// Whether the buffer holds whatever comes.
    is_deep: bool,
    /// Whether the thread sleeps between calls: a clock that is read shows it.
    sleeps: bool,
}

/// What became of it.
#[derive(Clone, Debug, PartialEq, Eq)]
struct Transfer {
    /// When the last byte was read.
    done_at: Option<Time>,
    read: u64,
    written: u64,
    /// Over every datagram's time, direction, ECN field and bytes.
    hash: u64,
    closed: Option<String>,
    /// The first untrue word of how much was sent: what was read by then, what was said, what it is at most.
    untrue: Option<[u64; 3]>,
}

/// The whole of a transfer arrives, once and in order, though the path loses one datagram of fifty; no more
/// is read than was written, and no datagram is too long.
pub fn delivers_all_of_a_transfer_and_no_more(config: &HostedConfig) {
    for loss in [0.0, 0.02] {
        let case = Case { seed: 1, size: 1_000_000, loss, ..Case::default() };
        let transfer = transfer(config, case);
        let name = config.name();
        assert_eq!(transfer.closed, None, "{name}, loss {loss}: the connection ended");
        assert_eq!(transfer.read, case.size, "{name}, loss {loss}: of {} bytes written", transfer.written);
        // 0.8 s at the link's rate.
        let done = transfer.done_at.expect("all was read");
        assert!(done < Time::from_secs(30), "{name}, loss {loss}: it took until {done:?}");
    }
}

/// Equal setups and equal calls give equal datagrams, whatever time passes outside.
pub fn repeats_itself_byte_for_byte_without_a_clock(config: &HostedConfig) {
    let case = Case { seed: 7, size: 500_000, loss: 0.01, ..Case::default() };
    let first = transfer(config, case);
    assert_eq!(first, transfer(config, case), "{}: another run of the same seed", config.name());
    let slow = transfer(config, Case { sleeps: true, ..case });
    assert_eq!(first, slow, "{}: it reads a clock: the same calls, later by the machine's", config.name());
}

/// Calls that come up to 5 ms late cost a transfer little: a fifth of its time, and a second.
pub fn bears_late_calls(config: &HostedConfig) {
    let case = Case { seed: 3, size: 1_000_000, ..Case::default() };
    let exact = transfer(config, case).done_at.expect("an exact transfer ends");
    let late = transfer(config, Case { late: Duration::from_millis(5), ..case });
    let done =
        late.done_at.unwrap_or_else(|| panic!("{}: a late transfer does not end: {late:?}", config.name()));
    let bound = exact + (exact.since(Time::ZERO)).mul_f64(0.2) + Duration::from_secs(1);
    assert!(done <= bound, "{}: exact {exact:?}, late {done:?}", config.name());
}

/// An end that says how much of the stream it has sent says the truth: no less than was read at the other
/// end, and no more than that and what is on its way. Nothing is lost here, so nothing is sent again.
pub fn says_how_much_it_has_sent(config: &HostedConfig) {
    let case = Case { seed: 9, size: 1_000_000, is_deep: true, ..Case::default() };
    let transfer = transfer(config, case);
    let name = config.name();
    assert_eq!(transfer.read, case.size, "{name}: {transfer:?}");
    assert_eq!(transfer.untrue, None, "{name}: read, said to be sent, and the most that can have been");
}

/// A connection with nothing to send is quiet: few datagrams and few wake-ups in a minute.
pub fn is_quiet_without_data(config: &HostedConfig) {
    let quiet = transfer(config, Case { seed: 5, size: 0, ..Case::default() });
    assert_eq!((quiet.read, quiet.written), (0, 0), "{}: nothing was written", config.name());
}

fn transfer(config: &HostedConfig, case: Case) -> Transfer {
    let config = config.clone();
    let run = move || {
        let pair = config.pair(DATAGRAM, Random::stream(case.seed, "conformance"));
        World::new(pair.unwrap_or_else(|error| panic!("{}: {error}", config.name())), case).run()
    };
    match thread::spawn(run).join() {
        Ok(transfer) => transfer,
        Err(panic) => std::panic::resume_unwind(panic),
    }
}

/// The two ends, numbered 0 for the sender, with a path between them.
struct World {
    pair: Pair,
    case: Case,
    now: Time,
    random: Random,
    /// Datagrams on their way, by arrival and number: the end they reach, the ECN field, the payload.
    on_the_way: BTreeMap<(Time, u64), (usize, Ecn, Vec<u8>)>,
    sent: u64,
    /// When packets leave the link's queue.
    leaving: BinaryHeap<Reverse<Time>>,
    free_at: Time,
    hash: u64,
}

impl World {
    fn new(pair: Pair, case: Case) -> Self {
        World {
            pair,
            case,
            now: Time::ZERO,
            random: Random::stream(case.seed, "path"),
            on_the_way: BTreeMap::new(),
            sent: 0,
            leaving: BinaryHeap::new(),
            free_at: Time::ZERO,
            hash: 0xcbf2_9ce4_8422_2325,
        }
    }

    fn run(mut self) -> Transfer {
        let (mut read, mut written, mut finished) = (0, 0, false);
        let (mut done_at, mut calls, mut steps, mut untrue) = (None, 0, 0_u32, None);
        self.pair.sender.connect(self.now);
        while self.now < END && done_at.is_none() {
            while let Some(entry) = self.on_the_way.first_entry()
                && entry.key().0 <= self.now
            {
                let (end, ecn, payload) = entry.remove();
                let now = self.now;
                self.ends()[end].receive(now, ecn, &payload);
            }
            for end in 0..2 {
                let now = self.now;
                let end = &mut self.ends()[end];
                if end.next_wakeup().is_some_and(|at| at <= now) {
                    end.on_wakeup(now);
                }
            }
            if written < self.case.size {
                let taken = self.pair.sender.write(self.now, self.case.size - written);
                assert!(taken <= self.case.size - written, "it took more than it was given");
                written += taken;
            } else if !finished && written > 0 {
                finished = true;
                self.pair.sender.finish(self.now);
            }
            self.send(0);
            self.send(1);
            read += self.pair.receiver.read(self.now);
            assert!(read <= written, "{read} bytes were read and {written} written");
            if let Some(said) = self.pair.sender.stream_sent().filter(|_| untrue.is_none()) {
                let most = written.min(read + self.to_receiver());
                let is_true = read <= said && (said <= most || !self.case.is_deep);
                untrue = (!is_true).then_some([read, said, most]);
            }
            if self.case.size > 0 && read == self.case.size {
                done_at = Some(self.now);
            }
            if self.ends().iter().any(|end| end.closed().is_some()) {
                break;
            }
            let ends = [self.pair.sender.next_wakeup(), self.pair.receiver.next_wakeup()];
            let arrival = self.on_the_way.keys().next().map(|(at, _)| *at);
            let Some(next) = ends.into_iter().chain([arrival]).flatten().min() else { break };
            calls = if next <= self.now { calls + 1 } else { 0 };
            assert!(calls < MOST_CALLS, "at {:?} it asks to be called at once, for ever", self.now);
            let late = self.case.late.mul_f64(self.random.uniform());
            self.now = next.max(self.now + Duration::from_nanos(1)) + late;
            steps += 1;
            if self.case.sleeps && steps % 50 == 1 && steps < 1000 {
                thread::sleep(StdDuration::from_millis(3));
            }
        }
        let closed = self.ends().iter().find_map(|end| end.closed());
        Transfer { done_at, read, written, hash: self.hash, closed, untrue }
    }

    fn ends(&mut self) -> [&mut Box<dyn brakelight_core::host::End>; 2] {
        [&mut self.pair.sender, &mut self.pair.receiver]
    }

    /// Bytes in the payloads on their way to the receiver.
    fn to_receiver(&self) -> u64 {
        let payloads = self.on_the_way.values().filter(|(end, ..)| *end == 1);
        payloads.map(|(.., payload)| payload.len() as u64).sum()
    }

    /// Puts all that `from` has to send on its way.
    fn send(&mut self, from: usize) {
        let now = self.now;
        for count in 0.. {
            assert!(count < MOST_CALLS, "it sends {MOST_CALLS} datagrams at {now:?}");
            let mut payload = Vec::new();
            let Some(transmit) = self.ends()[from].transmit(now, &mut payload) else { break };
            assert!(!payload.is_empty() && payload.len() <= usize::from(DATAGRAM), "{} bytes", payload.len());
            self.note(&now.as_nanos().to_le_bytes());
            self.note(&[from as u8, transmit.ecn as u8]);
            self.note(&payload);
            self.sent += 1;
            let lost = self.random.chance(self.case.loss);
            let arrival = if from == 0 {
                while self.leaving.peek().is_some_and(|Reverse(at)| *at <= now) {
                    self.leaving.pop();
                }
                if lost || !self.case.is_deep && self.leaving.len() as u64 >= BUFFER {
                    continue;
                }
                self.free_at = self.free_at.max(now) + RATE.time_for(Bytes(payload.len() as u64 + 28));
                self.leaving.push(Reverse(self.free_at));
                self.free_at + DELAY
            } else if lost {
                continue;
            } else {
                now + DELAY
            };
            self.on_the_way.insert((arrival, self.sent), (1 - from, transmit.ecn, payload));
        }
    }

    fn note(&mut self, bytes: &[u8]) {
        for byte in bytes {
            self.hash = (self.hash ^ u64::from(*byte)).wrapping_mul(0x0000_0100_0000_01b3);
        }
    }
}
