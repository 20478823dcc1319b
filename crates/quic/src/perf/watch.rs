//! What the sender of a connection knows of it, sampled while it runs.

use std::sync::{Arc, Mutex, PoisonError};
use std::time::Duration;

use brakelight_core::time::Duration as Span;
use brakelight_scenario::measure::distribution::Distribution;
use brakelight_scenario::outcome::MarkCounts;
use serde::{Deserialize, Serialize};

use crate::adapter::Times;
use crate::kit::governor;
use crate::validation::State;

/// Between two looks at the RTT.
const INTERVAL: Duration = Duration::from_millis(5);

/// What a sender knows of its connection.
#[derive(Clone, Debug, PartialEq, Default, Serialize, Deserialize)]
pub struct Report {
    /// The registered name of the controller, or what else controls it.
    pub controller: String,
    /// Packets sent.
    pub sent_packets: u64,
    /// Packets declared lost.
    pub lost_packets: u64,
    /// Marks that came back.
    pub marks: MarkCounts,
    /// RTT, every 5 ms, in microseconds.
    pub rtt_micros: Vec<u32>,
    /// What did not go as the controller would have it.
    pub notes: Vec<String>,
}

impl Report {
    /// RTT samples, and how far each lies above the smallest.
    pub fn rtt(&self) -> (Distribution, Distribution) {
        let (mut rtt, mut above) = (Distribution::default(), Distribution::default());
        let least = self.rtt_micros.iter().copied().min().unwrap_or(0);
        for micros in &self.rtt_micros {
            rtt.record(Span::from_micros(u64::from(*micros)));
            above.record(Span::from_micros(u64::from(micros - least)));
        }
        (rtt, above)
    }
}

/// Samples a connection until it is dropped.
#[derive(Debug)]
pub struct Watch {
    connection: quinn::Connection,
    samples: Arc<Mutex<Vec<u32>>>,
    task: tokio::task::JoinHandle<()>,
}

impl Watch {
    /// Begins.
    pub fn start(connection: &quinn::Connection) -> Self {
        let samples = Arc::new(Mutex::new(Vec::new()));
        let task = tokio::spawn(sample(connection.clone(), samples.clone()));
        Watch { connection: connection.clone(), samples, task }
    }

    /// What is known by now.
    pub fn report(&self) -> Report {
        let stats = self.connection.stats();
        let mut report = Report {
            controller: "cubic of quinn".to_string(),
            sent_packets: stats.path.sent_packets,
            lost_packets: stats.path.lost_packets,
            rtt_micros: self.samples.lock().unwrap_or_else(PoisonError::into_inner).clone(),
            ..Report::default()
        };
        if let Some(governor) = governor(&self.connection) {
            let counters = governor.counters();
            report.controller = governor.controller().to_string();
            report.marks = MarkCounts {
                accelerate: counters.accelerate_packets,
                brake: counters.brake_packets,
                ce: counters.ce_packets,
            };
            if let State::Failed(fault) = governor.validation() {
                report.notes.push(format!("{fault}; the controller went on without marks"));
            }
            if governor.times() == Times::RoundTrip {
                report.notes.push(
                    "the peer does not report receive times; queueing delay is that of the round trip"
                        .to_string(),
                );
            }
        }
        report
    }
}

impl Drop for Watch {
    fn drop(&mut self) {
        self.task.abort();
    }
}

async fn sample(connection: quinn::Connection, samples: Arc<Mutex<Vec<u32>>>) {
    let governor = governor(&connection);
    let mut ticks = tokio::time::interval(INTERVAL);
    ticks.set_missed_tick_behavior(tokio::time::MissedTickBehavior::Delay);
    while connection.close_reason().is_none() {
        ticks.tick().await;
        let rtt = match &governor {
            Some(governor) => governor.take_rtt_sample().map(|rtt| rtt.as_micros()),
            // The stack shows others nothing but its filtered RTT, and no sample has been taken while nothing was acknowledged.
            None => Some(connection.rtt().as_micros() as u64),
        };
        if let Some(rtt) = rtt {
            samples
                .lock()
                .unwrap_or_else(PoisonError::into_inner)
                .push(u32::try_from(rtt).unwrap_or(u32::MAX));
        }
    }
}
