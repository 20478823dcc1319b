//! ACK thinning: what cable modems, Wi-Fi drivers and satellite gateways do to acknowledgements (RFC 3449
//! section 5.2).
//!
//! ```text
//! 1. an ACK waits; a newer one of its flow takes its place, and it is dropped
//! 2. an ACK for which no newer one comes within `hold` passes
//! 3. of every `every` ACKs of a flow the last takes its turn: it waits for `hold` and no longer, and a newer
//!    one takes its time, too
//! ```
//!
//! So no ACK is dropped without a newer one, and the last always passes. Only packets small enough to be
//! nothing else count as ACKs. Data passes at once; an ACK of its flow that waits goes before it, so each
//! flow keeps its order.
//!
//! What only the dropped ACK said is lost with it, as behind real devices. Most of it the newer one says
//! again: cumulative acknowledgements, QUIC's ranges, the counters of Accurate ECN and of QUIC, and ECE
//! until the sender answers with CWR (RFC 3168 section 6.1.3). Not so the state of a receiver that echoes
//! marks bit by bit (RFC 8257): where several ACKs become one, their marks become one, too. RFC 3449 section
//! 5.2 and RFC 9768 section 3.3.3 ask filters to let changes of the ECN flags pass, which takes one that
//! looks inside.

use alloc::collections::VecDeque;
use alloc::format;
use alloc::vec::Vec;

use brakelight_core::packet::{FlowId, Packet};
use brakelight_core::parameters::ParameterError;
use brakelight_core::path::{Output, PathElement, Site};
use brakelight_core::queue::Reason;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use super::outbox::Outbox;

parameters! {
    /// The settings of ACK thinning.
    pub struct Config {
        check holds;
        /// One of this number of a flow's ACKs passes, if they follow each other within `hold`.
        every: u64 = 1, in 1..=1_000_000, from "all pass";
        /// How long an ACK waits for a newer one to take its place.
        hold: Duration = Duration::from_millis(5), in Duration::ZERO..=Duration::from_secs(60), from "the request and grant cycle of a cable modem";
        /// The largest packet that is taken for an ACK.
        max_size: Bytes = Bytes(128), in Bytes(0).., from "above IPv6 with the longest TCP header, 100 bytes";
    }
}

fn holds(config: &Config) -> Result<(), ParameterError> {
    if config.every == 1 || !config.hold.is_zero() {
        return Ok(());
    }
    let reason = format!(
        "every = `{}` with hold = `0s` would drop ACKs that no newer one replaces: with hold = `0s` every = 1 is valid",
        config.every
    );
    Err(ParameterError::Conflict { reason })
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
    /// ACKs since the last that took its turn, or that passed as none came after it.
    count: u64,
    /// The place of the ACK that waits, counted from the first place ever.
    place: Option<u64>,
    /// Whether an ACK has taken its turn and waits, or a newer one in its place.
    turn: bool,
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
                self.flows.insert(index, Flow { id, count: 0, place: None, turn: false });
                index
            }
        }
    }

    /// The ACK of the flow that waits.
    fn waiting_of(&mut self, flow: usize) -> Option<&mut Option<P>> {
        let place = self.flows[flow].place? - self.gone;
        self.waiting.get_mut(place as usize).map(|(_, _, packet)| packet)
    }

    /// Lets an ACK of the flow, which has left its place, go at `at`.
    fn pass(&mut self, at: Time, flow: usize, packet: P) {
        let state = &mut self.flows[flow];
        state.place = None;
        if !core::mem::take(&mut state.turn) {
            state.count = 0;
        }
        self.outbox.pass(at, packet);
    }

    /// Lets go what has waited for long enough, and forgets empty places in front: they need no wake-up.
    fn release(&mut self, now: Time) {
        while self.waiting.front().is_some_and(|(due, _, packet)| *due <= now || packet.is_none()) {
            let Some((due, id, packet)) = self.waiting.pop_front() else { return };
            self.gone += 1;
            if let Some(packet) = packet {
                let flow = self.flow(id);
                self.pass(due, flow, packet);
            }
        }
    }

    fn thin(&mut self, now: Time, flow: usize, packet: P) {
        if self.config.hold.is_zero() {
            self.outbox.pass(now, packet);
            return;
        }
        let state = &mut self.flows[flow];
        state.count += 1;
        let took_turn = state.turn;
        if state.count >= self.config.every {
            state.count = 0;
            state.turn = true;
        }
        let older = self.waiting_of(flow).and_then(Option::take);
        if let Some(older) = older {
            self.outbox.lose(now, older, Reason::Early);
        }
        if took_turn && let Some(place) = self.waiting_of(flow) {
            // Behind an ACK whose turn has come the newer one waits no longer than that would have.
            *place = Some(packet);
            return;
        }
        self.flows[flow].place = Some(self.gone + self.waiting.len() as u64);
        self.waiting.push_back((now + self.config.hold, self.flows[flow].id, Some(packet)));
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
            self.pass(now, flow, before);
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
