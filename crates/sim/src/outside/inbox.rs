//! What has arrived at the receiving end of a stack and was not read yet.
//!
//! A stack of its own is told of each packet by whoever drives it. In real time that is a thread that wakes
//! late and reads what has come. Under the simulator's clock it is the packet's arrival, unless the flow has
//! a `read_batch`.

use std::collections::VecDeque;

use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

use crate::engine::Routed;
use crate::host::FlowConfig;
use crate::packet::SimPacket;

/// Packets that wait for the receiving end to read them.
#[derive(Clone, Debug)]
pub struct Inbox {
    packets: VecDeque<SimPacket>,
    read_at: Option<Time>,
    /// How many packets are read at once.
    batch: usize,
    jitter: Duration,
    random: Random,
}

impl Inbox {
    /// Returns the empty inbox of a flow.
    pub fn new(config: &FlowConfig) -> Self {
        Inbox {
            packets: VecDeque::new(),
            read_at: None,
            batch: config.read_batch as usize,
            jitter: config.jitter,
            random: Random::stream(config.random.clone().bits(), "reads"),
        }
    }

    /// Takes in a packet that arrives, or returns it if its end reads it at once. The first packet wakes the
    /// receiving end, which is late by a draw from 0 to the flow's jitter.
    pub fn hold(&mut self, now: Time, packet: SimPacket) -> Option<SimPacket> {
        if self.batch <= 1 || packet.direction() == Direction::Reverse {
            return Some(packet);
        }
        if self.read_at.is_none() {
            self.read_at = Some(now + self.jitter.mul_f64(self.random.uniform()));
        }
        self.packets.push_back(packet);
        None
    }

    /// Returns the packets that are read at `now`. The rest is read a moment later, when what the end sends
    /// for these has left.
    pub fn read(&mut self, now: Time) -> Vec<SimPacket> {
        if self.read_at.is_none_or(|at| at > now) {
            return Vec::new();
        }
        let read = self.packets.drain(..self.batch.min(self.packets.len())).collect();
        self.read_at = (!self.packets.is_empty()).then(|| now + Duration::from_nanos(1));
        read
    }

    /// When the receiving end reads next.
    pub fn read_at(&self) -> Option<Time> {
        self.read_at
    }
}
