//! What has arrived at the ends of a stack and was not read yet.
//!
//! A stack of its own is told of each packet by whoever drives it. In real time that is a thread that wakes
//! late, reads what has come, and only then asks for what to send: data at one end, ACKs at the other. Under
//! the simulator's clock it is the packet's arrival, unless the flow has a `read_batch`.

use std::collections::VecDeque;

use brakelight_core::packet::Direction;
use brakelight_core::random::Random;
use brakelight_core::time::{Duration, Time};

use crate::engine::Routed;
use crate::host::FlowConfig;
use crate::packet::SimPacket;

/// Packets that wait for the ends of a flow to read them.
#[derive(Clone, Debug)]
pub struct Inbox {
    receiver: Unread,
    sender: Unread,
    /// How many packets are read at once.
    batch: usize,
    jitter: Duration,
}

/// Packets that wait for one end.
#[derive(Clone, Debug)]
struct Unread {
    packets: VecDeque<SimPacket>,
    read_at: Option<Time>,
    random: Random,
}

impl Inbox {
    /// Returns the empty inbox of a flow.
    pub fn new(config: &FlowConfig) -> Self {
        let unread = |stream| Unread {
            packets: VecDeque::new(),
            read_at: None,
            random: Random::stream(config.random.clone().bits(), stream),
        };
        Inbox {
            receiver: unread("reads"),
            sender: unread("reads of ACKs"),
            batch: config.read_batch as usize,
            jitter: config.jitter,
        }
    }

    /// Takes in a packet that arrives, or returns it if its end reads it at once. The first packet wakes the
    /// end, which is late by a draw from 0 to the flow's jitter.
    pub fn hold(&mut self, now: Time, packet: SimPacket) -> Option<SimPacket> {
        if self.batch <= 1 {
            return Some(packet);
        }
        let end = match packet.direction() {
            Direction::Forward => &mut self.receiver,
            Direction::Reverse => &mut self.sender,
        };
        if end.read_at.is_none() {
            end.read_at = Some(now + self.jitter.mul_f64(end.random.uniform()));
        }
        end.packets.push_back(packet);
        None
    }

    /// Returns the packets that are read at `now`. The rest is read a moment later, when what the end sends
    /// for these has left.
    pub fn read(&mut self, now: Time) -> Vec<SimPacket> {
        let mut read = Vec::new();
        for end in [&mut self.receiver, &mut self.sender] {
            if end.read_at.is_some_and(|at| at <= now) {
                read.extend(end.packets.drain(..self.batch.min(end.packets.len())));
                end.read_at = (!end.packets.is_empty()).then(|| now + Duration::from_nanos(1));
            }
        }
        read
    }

    /// When an end reads next.
    pub fn read_at(&self) -> Option<Time> {
        self.receiver.read_at.into_iter().chain(self.sender.read_at).min()
    }
}

#[cfg(test)]
mod tests {
    use brakelight_core::ecn::{Ecn, Encoding};
    use brakelight_core::packet::PacketId;

    use super::*;
    use crate::packet::{Contents, Kind};

    #[test]
    fn each_end_reads_at_once_what_came_while_it_was_late() {
        let scenario = crate::outside::tests::scenario("toy/fine", "read_batch = 2\njitter = \"1ms\"");
        let config = crate::simulation::flow_configs(&scenario).remove(0).1;
        let packet = |id: u64, direction| {
            SimPacket::new(&Contents {
                id: PacketId(id),
                sent_at: Time::ZERO,
                kind: Kind::Wire { slot: 0, generation: 0, hash: 0, data: true },
                flow: config.flow,
                connection: 0,
                size: 1000,
                ecn: Ecn::NotEct,
                encoding: Encoding::None,
                direction,
                cwr: false,
            })
        };
        let ids = |packets: Vec<SimPacket>| packets.iter().map(|packet| packet.id.0).collect::<Vec<_>>();
        let mut inbox = Inbox::new(&config);
        for id in 0..3 {
            assert!(inbox.hold(Time::ZERO, packet(id, Direction::Forward)).is_none());
            assert!(inbox.hold(Time::ZERO, packet(10 + id, Direction::Reverse)).is_none());
        }
        let first = inbox.read_at().unwrap();
        assert!(first <= Time::from_millis(1));
        let late = Time::from_millis(1);
        assert_eq!(ids(inbox.read(late)), [0, 1, 10, 11]);
        // What is left is read a moment later.
        assert_eq!(inbox.read(late).len(), 0);
        assert_eq!(ids(inbox.read(inbox.read_at().unwrap())), [2, 12]);
        assert_eq!(inbox.read_at(), None);
    }
}
