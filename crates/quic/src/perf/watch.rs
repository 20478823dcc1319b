//! What the sender of a connection knows of it.
//!
//! | carried by | RTT samples |
//! |---|---|
//! | our driver | every one: one an ACK whose newest packet is newly acknowledged (RFC 9002 section 5.1) |
//! | async quinn, a controller of ours | the newest every 5 ms, if there is a new one |
//! | async quinn, its own Cubic | the stack's smoothed RTT every 5 ms |
//!
//! They go into a histogram, whose size does not grow with their number: mean, smallest and largest are
//! exact, quantiles within 0.8 % of the RTT. The driver's quantiles are over ACKs, so that a second with many
//! packets weighs more than one with few; the others' are over time.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brakelight_core::time::Duration as Span;
use brakelight_scenario::measure::distribution::Distribution;
use brakelight_scenario::outcome::MarkCounts;
use serde::{Deserialize, Serialize};

use super::STOCK_CUBIC;
use super::link::Connection;
use crate::adapter::{ControllerAdapter, Times};
use crate::builder::adapter_of;
use crate::driver::net::Rtts;
use crate::validation::State;

/// Between two looks at the RTT of a connection of async quinn.
const INTERVAL: Duration = Duration::from_millis(5);

/// A sender's measurements of its connection.
#[derive(Clone, Debug, Default, Serialize, Deserialize)]
pub struct SenderReport {
    /// The registered name of the controller, or what else controls it.
    pub controller: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Marks that came back.
    pub marks: MarkCounts,
    /// RTT samples.
    pub rtt: Distribution,
    /// The smallest of them, in nanoseconds.
    pub least_rtt_nanos: u64,
    /// What did not go as the controller would have it.
    pub notes: Vec<String>,
}

impl SenderReport {
    /// Returns how far each RTT sample lies above the smallest.
    pub fn above(&self) -> Distribution {
        self.rtt.above(Span::from_nanos(self.least_rtt_nanos))
    }
}

/// Watches a connection until it is dropped.
#[derive(Debug)]
pub(crate) struct Watch {
    connection: Connection,
    sampled: Option<(Arc<Mutex<Rtts>>, tokio::task::JoinHandle<()>)>,
}

impl Watch {
    /// Begins.
    pub(crate) fn start(connection: &Connection) -> Self {
        let sampled = match connection {
            Connection::Driver(_) => None,
            Connection::Stack(connection) => {
                let samples = Arc::new(Mutex::new(Rtts::default()));
                Some((samples.clone(), tokio::spawn(sample(connection.clone(), samples))))
            }
        };
        Watch { connection: connection.clone(), sampled }
    }

    /// What is known by now.
    pub(crate) fn report(&self) -> SenderReport {
        let stats = self.connection.stats();
        let (rtts, adapter) = match (&self.connection, &self.sampled) {
            (Connection::Driver(connection), _) => (connection.rtts(), Some(connection.adapter().clone())),
            (Connection::Stack(connection), Some((samples, _))) => {
                (samples.lock().unwrap_or_else(PoisonError::into_inner).clone(), adapter_of(connection))
            }
            (Connection::Stack(connection), None) => (Rtts::default(), adapter_of(connection)),
        };
        let mut report = SenderReport {
            controller: STOCK_CUBIC.to_string(),
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            least_rtt_nanos: rtts.least.map_or(0, Span::as_nanos),
            rtt: rtts.samples,
            ..SenderReport::default()
        };
        if let Some(adapter) = adapter {
            tell_of(&adapter, &mut report);
        }
        report
    }
}

fn tell_of(adapter: &ControllerAdapter, report: &mut SenderReport) {
    let counters = adapter.counters();
    report.controller = adapter.controller().to_string();
    report.marks = MarkCounts {
        accelerate: counters.accelerate_packets,
        brake: counters.brake_packets,
        ce: counters.ce_packets,
    };
    if let State::Failed(fault) = adapter.validation() {
        report.notes.push(format!("{fault}; the controller went on without marks"));
    }
    if adapter.times() == Times::RoundTrip {
        report.notes.push(
            "the peer does not report receive times; queueing delay is that of the round trip".to_string(),
        );
    } else if adapter.times() == Times::Unused && adapter.wants_reports() {
        report.notes.push("the peer does not report each packet's mark".to_string());
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        if let Some((_, task)) = &self.sampled {
            task.abort();
        }
    }
}

async fn sample(connection: quinn::Connection, samples: Arc<Mutex<Rtts>>) {
    let adapter = adapter_of(&connection);
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while connection.close_reason().is_none() {
        ticks.tick().await;
        let rtt = match &adapter {
            Some(adapter) => adapter.take_rtt_sample(),
            // The stack shows others nothing but its filtered RTT, and no sample has been taken while nothing
            // was acknowledged.
            None => Some(Span::from_nanos(connection.rtt().as_nanos() as u64)),
        };
        if let Some(rtt) = rtt {
            samples.lock().unwrap_or_else(PoisonError::into_inner).record(rtt);
        }
    }
}
