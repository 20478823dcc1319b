//! ACK thinning: what cable modems, Wi-Fi drivers and satellite gateways do to acknowledgements (RFC 3449
//! section 5.2).
//!
//! ```text
//! 1. of every `every` ACKs of a flow the last passes, the others are dropped
//! 2. an ACK that passes waits for `hold`; a newer one of its flow takes its place and its time, and it is
//!    dropped
//! ```
//!
//! Only packets small enough to be nothing else count as ACKs. Data passes at once; an ACK of its flow that
//! waits goes before it, so each flow keeps its order. An ACK whose turn in step 1 has not come is dropped
//! even if it was the flow's last: senders then learn of the end by a timeout, as behind real ones.

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use super::outbox::Outbox;
use super::{Output, PathElement, Site};
use crate::packet::{FlowId, Packet};
use crate::queue::Reason;
use crate::time::{Duration, Time};
use crate::units::Bytes;

parameters! {
    /// The settings of ACK thinning.
    pub struct Config {
        /// Of so many ACKs of a flow one passes.
        every: u64 = 1, in 1..=1_000_000, from "all pass";
        /// How long an ACK waits for a newer one to take its place.
        hold: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(60), from "the request and grant cycle of a cable modem";
        /// The largest packet that is taken for an ACK.
        max_size: Bytes = Bytes(128), in Bytes(0).., from "above IPv6 with the longest TCP header, 100 bytes";
    }
}

/// A path element that thins out acknowledgements.
#[derive(Clone, Debug)]
pub struct AckThin<P> {
    config: Config,
    /// Sorted by flow.
    flows: Vec<Flow>,
    /// The ACKs that wait, the first to go in front. An ACK that went early leaves an empty place.
    waiting: VecDeque<(Time, FlowId, Option<P>)>,
    /// How many places have left the front of `waiting`.
    gone: u64,
    outbox: Outbox<P>,
}

/// What is known of a flow.
#[derive(Clone, Debug)]
struct Flow {
    id: FlowId,
    /// ACKs dropped since the last that passed.
    skipped: u64,
    /// The place of the ACK that waits, counted from the first place ever.
    place: Option<u64>,
}

impl<P: Packet> AckThin<P> {
    /// Returns an element without packets.
    pub fn new(config: &Config, _site: Site) -> Self {
        AckThin {
            config: config.clone(),
            flows: Vec::new(),
            waiting: VecDeque::new(),
            gone: 0,
            outbox: Outbox::new(),
        }
    }

    fn flow(&mut self, id: FlowId) -> usize {
        match self.flows.binary_search_by_key(&id, |flow| flow.id) {
            Ok(index) => index,
            Err(index) => {
                self.flows.insert(index, Flow { id, skipped: 0, place: None });
                index
            }
        }
    }

    /// The ACK of the flow that waits.
    fn waiting_of(&mut self, flow: usize) -> Option<&mut Option<P>> {
        let place = self.flows[flow].place? - self.gone;
        self.waiting.get_mut(place as usize).map(|(_, _, packet)| packet)
    }

    /// Lets go what has waited for long enough, and forgets empty places in front: they need no wake-up.
    fn release(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|(due, _, packet)| *due <= now || packet.is_none()) {
            let Some((due, id, packet)) = self.waiting.pop_front() else { return };
            self.gone += 1;
            if let Some(packet) = packet {
                let flow = self.flow(id);
                self.flows[flow].place = None;
                self.outbox.pass(due, packet);
            }
        }
    }

    fn thin(&mut self, now: Time, flow: usize, packet: P) {
        self.flows[flow].skipped += 1;
        if self.flows[flow].skipped < self.config.every {
            self.outbox.lose(now, packet, Reason::Early);
            return;
        }
        self.flows[flow].skipped = 0;
        if self.config.hold.is_zero() {
            self.outbox.pass(now, packet);
            return;
        }
        match self.waiting_of(flow) {
            Some(place) => {
                if let Some(older) = place.replace(packet) {
                    self.outbox.lose(now, older, Reason::Early);
                }
            }
            None => {
                self.flows[flow].place = Some(self.gone + self.waiting.len() as u64);
                self.waiting.push_back((now + self.config.hold, self.flows[flow].id, Some(packet)));
            }
        }
    }
}

impl<P: Packet> PathElement<P> for AckThin<P> {
    fn accept(&mut self, now: Time, packet: P) {
        self.release(now);
        let flow = self.flow(packet.flow());
        if u64::from(packet.size()) <= self.config.max_size.0 {
            self.thin(now, flow, packet);
            return;
        }
        if let Some(before) = self.waiting_of(flow).and_then(Option::take) {
            self.flows[flow].place = None;
            self.outbox.pass(now, before);
        }
        self.outbox.pass(now, packet);
    }

    fn poll(&mut self, now: Time) -> Option<Output<P>> {
        self.release(now);
        self.outbox.poll(now)
    }

    fn next_wakeup(&self) -> Option<Time> {
        self.outbox.next_wakeup().or_else(|| self.waiting.front().map(|&(due, _, _)| due))
    }

    fn for_each(&self, visit: &mut dyn FnMut(&P)) {
        self.outbox.for_each(visit);
        self.waiting.iter().filter_map(|(_, _, packet)| packet.as_ref()).for_each(visit);
    }
}
