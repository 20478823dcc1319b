//! What every receiver owes its host, whatever arrives.

use brakelight_core::ecn::{Ecn, Encoding};
use brakelight_core::feedback::{AckAction, Arrival, Feedback as _, MarkTotals, Receiver};
use brakelight_core::packet::Header;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;
use brakelight_registry::{AnyFeedback, FeedbackConfig};
use proptest::prelude::*;

use super::{ENCODINGS, label, runner};

/// A receiver under test, and what may be expected of it.
#[derive(Clone, Debug)]
pub struct Feedback {
    /// Its settings.
    pub config: FeedbackConfig,
    /// Whether the states that it echoes add up to the marks that arrived, where it keeps no counters. A
    /// latch such as RFC 3168's does not.
    pub adds_up: bool,
}

impl Feedback {
    /// Returns a receiver whose ACKs add up to what arrived.
    pub fn new(config: FeedbackConfig) -> Self {
        Feedback { config, adds_up: true }
    }
}

fn size(index: usize) -> Bytes {
    Bytes(100 + 10 * index as u64)
}

/// What the ACKs of one run said.
#[derive(Default)]
struct Said {
    /// Bytes under each echoed state: accelerate, brake, CE.
    states: MarkTotals,
    totals: Option<MarkTotals>,
}

fn run(
    config: &FeedbackConfig,
    encoding: Encoding,
    ack_every: u32,
    packets: &[(u8, bool, bool, u32)],
) -> Result<(MarkTotals, Said), TestCaseError> {
    let receiver = Receiver { encoding, ack_every, mss: Bytes(1448) };
    let name = config.name();
    let mut feedback = config.build(&receiver);
    let (mut now, mut held, mut counted) = (Time::ZERO, Vec::new(), MarkTotals::default());
    let mut said = Said::default();
    let acknowledge = |feedback: &mut AnyFeedback, now, flush, held: &mut Vec<Bytes>, said: &mut Said| {
        let echo = feedback.on_ack_sent(now, flush);
        for size in held.drain(..) {
            said.states.count(echo.state, size);
        }
        if let (Some(before), Some(after)) = (said.totals, echo.totals) {
            let grew = |kind: usize| {
                after.packets[kind] >= before.packets[kind] && after.bytes[kind] >= before.bytes[kind]
            };
            prop_assert!((0..3).all(grew), "{name}: counters fell");
        }
        said.totals = echo.totals.or(said.totals);
        prop_assert!(feedback.next_report().is_none_or(|at| at > now), "{name}: a report that stays due");
        Ok(())
    };
    for (index, &(ecn, urgent, cwr, gap_us)) in packets.iter().enumerate() {
        now += Duration::from_micros(u64::from(gap_us));
        while feedback.next_report().is_some_and(|at| at <= now) {
            acknowledge(&mut feedback, now, false, &mut held, &mut said)?;
        }
        let arrival = Arrival {
            now,
            number: index as u64,
            size: size(index),
            ecn: Ecn::from_bits(ecn),
            cwr,
            header: Header::None,
            hash16: index as u16,
            sent_at: now.saturating_sub(Duration::from_millis(10)),
            urgent,
        };
        counted.count(encoding.mark(arrival.ecn), arrival.size);
        let action = feedback.on_packet(&arrival);
        if matches!(action, AckAction::FlushThenDelay | AckAction::FlushThenNow) {
            prop_assert!(!held.is_empty(), "{name}: a flush of nothing");
            acknowledge(&mut feedback, now, true, &mut held, &mut said)?;
        }
        held.push(arrival.size);
        if matches!(action, AckAction::Now | AckAction::FlushThenNow) {
            acknowledge(&mut feedback, now, false, &mut held, &mut said)?;
        }
        prop_assert!(
            held.len() < ack_every as usize,
            "{name}: {} packets wait with m = {ack_every}",
            held.len()
        );
        prop_assert!(!urgent || held.is_empty(), "{name}: an urgent packet waits");
    }
    // The host's delayed-ACK timer.
    acknowledge(&mut feedback, now, false, &mut held, &mut said)?;
    Ok((counted, said))
}

/// Holds the receiver to ACKs in time that say what arrived.
///
/// # Panics
/// Panics with the shortest sequence of arrivals found under which it is not so.
pub fn acknowledges_in_time_and_says_what_arrived(feedback: &Feedback) {
    let packets =
        prop::collection::vec((0_u8..4, prop::bool::weighted(0.1), any::<bool>(), 0_u32..50_000), 1..100);
    let inputs = (prop::sample::select(&ENCODINGS), 1_u32..=4, packets);
    let outcome = runner(256).run(&inputs, |(encoding, ack_every, packets)| {
        let (counted, said) = run(&feedback.config, encoding, ack_every, &packets)?;
        if let Some(totals) = said.totals {
            prop_assert_eq!(totals, counted);
        } else if feedback.adds_up {
            prop_assert_eq!(said.states, counted);
        }
        Ok(())
    });
    if let Err(error) = outcome {
        panic!("{}: {error}", label(&feedback.config));
    }
}

/// Holds the receiver to silence about marks where there are none.
///
/// # Panics
/// Panics if it is not so.
pub fn tells_an_unmarked_flow_of_no_marks(feedback: &Feedback) {
    let packets = [(0_u8, false, false, 1000); 10];
    let (_, said) = run(&feedback.config, Encoding::None, 2, &packets).expect("conformance");
    assert_eq!(said.states, MarkTotals::default(), "{}", label(&feedback.config));
}
