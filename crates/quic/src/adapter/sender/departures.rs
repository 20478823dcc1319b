//! What leaves: packets sealed, then sent, with what the controller says to each.

use brakelight_core::controller::{Controller, IdleEvent, PacketInfo, SendEvent};
use brakelight_core::ecn::Ecn;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

use super::{PacketState, Sealed, SendUpdate, Sender, Sent};

impl Sender {
    /// Whether [`Sender::on_seal`] asks the controller for the codepoint.
    pub(in crate::adapter) fn chooses(&self) -> bool {
        self.chooses
    }

    /// Whether [`Sender::on_seal`] needs to know the time: packets of one batch leave at the time of the
    /// first.
    pub(in crate::adapter) fn needs_time(&self) -> bool {
        self.chooses && self.sealed.is_empty()
    }

    /// The packet `number` was sealed, and leaves next: at `now`, or with those sealed before it. Controllers
    /// whose packets are all alike are asked when it has left, when the stack says the time.
    pub(in crate::adapter) fn on_seal(&mut self, now: Time, number: u64, size: u64, eliciting: bool) -> Ecn {
        if !eliciting {
            self.quiet += size;
            // rfc3168 6.1.4, of pure ACKs: they answer nothing, and their marks would be taken for those of
            // data.
            return Ecn::NotEct;
        }
        if size > self.mss {
            // What is larger than the path is known to carry probes its MTU (rfc8899 3). The stack neither
            // announces such a packet nor says that it is lost, so the controller does not hear of it, and it
            // must not return with a mark.
            return Ecn::NotEct;
        }
        let mut ecn = self.validation.codepoint();
        let update = self.chooses.then(|| {
            self.flush();
            self.ask(now, size, self.delivery.inflight() + self.sealed_bytes)
        });
        if let (Some((_, wanted)), true) = (update, ecn != Ecn::NotEct) {
            ecn = wanted;
        }
        self.validation.on_sent(ecn);
        self.sealed_bytes += size;
        self.sealed.push(Sealed { number, size, ecn, update: update.map(|(update, _)| update) });
        ecn
    }

    /// Tells the controller of a packet that is about to leave, and asks for its codepoint.
    fn ask(&mut self, now: Time, size: u64, inflight: u64) -> (SendUpdate, Ecn) {
        if inflight == 0 {
            self.restart_after_idle(now);
            self.delivery.begin_flight(now);
        }
        let number = self.next_number;
        self.next_number += 1;
        let directive = self.controller.on_send(&SendEvent {
            now,
            size: Bytes(size),
            number,
            retransmission: false,
            replaces: None,
            inflight: Bytes(inflight),
            app_limited: self.delivery.is_app_limited(),
            srtt: self.rtt.measured(),
        });
        (SendUpdate { number, tag: directive.tag }, directive.ecn)
    }

    pub(in crate::adapter) fn on_sent(&mut self, now: Time, bytes: u64) {
        self.flush();
        let quiet = std::mem::take(&mut self.quiet);
        let mut sealed = std::mem::take(&mut self.sealed);
        let sum = std::mem::take(&mut self.sealed_bytes);
        self.last_number = sealed.last().map(|packet| packet.number);
        for packet in &sealed {
            let update =
                packet.update.unwrap_or_else(|| self.ask(now, packet.size, self.delivery.inflight()).0);
            self.record(now, packet.size, Some(packet.number), packet.ecn.is_capable(), Some(update));
        }
        let mut rest = bytes.saturating_sub(sum + quiet);
        while rest > 0 {
            let size = if self.tapped { rest } else { rest.min(self.mss) };
            let update = (!self.tapped).then(|| self.ask(now, size, self.delivery.inflight()).0);
            self.record(now, size, None, false, update);
            rest -= size;
        }
        sealed.clear();
        self.sealed = sealed;
        if self.paced {
            let rate = self.pacing_rate();
            self.pacer.sent(now, bytes, rate);
        }
    }

    fn record(
        &mut self,
        now: Time,
        size: u64,
        number: Option<u64>,
        marked: bool,
        update: Option<SendUpdate>,
    ) {
        self.inflight += size;
        self.last_sent_at = Some(now);
        self.counters.sent_packets += 1;
        self.counters.marked_packets += u64::from(marked);
        if let Some(number) = number {
            self.peer.on_sent(number, update.map_or(0, |update| update.number), now, size);
        }
        let info = update.map(|update| {
            let books = self.delivery.send(size);
            PacketInfo {
                number: update.number,
                size: Bytes(size),
                sent_at: now,
                delivered: Bytes(books.delivered),
                delivered_at: books.delivered_at,
                first_sent_at: books.first_sent_at,
                inflight: Bytes(books.inflight),
                lost: Bytes(books.lost),
                app_limited: books.app_limited,
                retransmission: false,
                tag: update.tag,
            }
        });
        self.sent.push_back(Sent {
            sent_at: now,
            size,
            info,
            state: PacketState::Outstanding,
            number,
            marked,
        });
    }

    fn restart_after_idle(&mut self, now: Time) {
        let Some(last) = self.last_sent_at else { return };
        let (idle, rto) = (now.since(last), self.rtt.pto(self.peer_parameters.max_ack_delay));
        if idle > rto {
            self.controller.on_idle_restart(&IdleEvent { now, idle, rto });
        }
    }
}
