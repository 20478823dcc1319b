//! What comes back: ACKs, losses and reports, gathered until they are told.

use brakelight_core::controller::Controller;
use brakelight_core::sender::Stop;
use brakelight_core::time::{Duration, Time};

use super::{Frame, PacketState, Sender, Sent};
use crate::report;
use crate::tap::frames::Ack;
use crate::tap::parameters::Parameters;

impl Sender {
    /// The peer's transport parameters have come.
    pub(in crate::adapter) fn on_parameters(&mut self, parameters: &Parameters) {
        self.peer_parameters = *parameters;
    }

    pub(in crate::adapter) fn on_frame(&mut self, ack: &Ack<'_>, newest: bool) {
        if newest {
            self.frame = Some(Frame { delay: ack.delay, counts: ack.ecn });
        } else if let (Some(Frame { counts: Some(counts), .. }), Some(said)) = (&mut self.frame, ack.ecn)
            && said.total() > counts.total()
        {
            // The peer sent it later, when packets had arrived out of order: they are acknowledged, and they
            // count.
            *counts = said;
        }
        if !self.missing.is_empty() {
            for range in ack.ranges() {
                self.missing.retain(|number| !range.contains(number));
            }
            self.undone |= self.missing.is_empty();
        }
    }

    /// `packets` are acknowledged at `now`: when each was sent, and its bytes.
    pub(in crate::adapter) fn on_acked(&mut self, now: Time, packets: impl IntoIterator<Item = (Time, u64)>) {
        self.gather(now);
        for (sent_at, size) in packets {
            let Some(place) = self.find(sent_at, size) else {
                // A probe of the MTU, of which the controller does not know.
                self.rtt.sample_quic(now.since(sent_at), Duration::ZERO);
                continue;
            };
            self.expected = self.retired + place as u64 + 1;
            let sent = &mut self.sent[place];
            sent.state = PacketState::Acked;
            match &sent.info {
                Some(info) => {
                    self.delivery.deliver(info.size.0);
                    self.gathered.marked += u64::from(sent.marked);
                    self.gathered.acked.push(*info);
                }
                None => self.rtt.sample_quic(now.since(sent_at), Duration::ZERO),
            }
        }
    }

    /// The place of a packet that is acknowledged. It is known by when it was sent, and among those of one
    /// moment by its size: they are acknowledged in order.
    #[inline]
    fn find(&self, sent_at: Time, size: u64) -> Option<usize> {
        let next = self.expected.saturating_sub(self.retired) as usize;
        let fits = |sent: &Sent| {
            sent.sent_at == sent_at && sent.state == PacketState::Outstanding && sent.size == size
        };
        if self.sent.get(next).is_some_and(fits) { Some(next) } else { self.search(sent_at, size) }
    }

    /// The same for a packet that is not the one after the last.
    fn search(&self, sent_at: Time, size: u64) -> Option<usize> {
        let first = self.sent.partition_point(|sent| sent.sent_at < sent_at);
        let moment = self.sent.range(first..).take_while(|sent| sent.sent_at == sent_at);
        let mut unseen = None;
        for (place, sent) in moment.enumerate().filter(|(_, sent)| sent.state == PacketState::Outstanding) {
            if sent.size == size {
                return Some(first + place);
            }
            unseen = unseen.or(sent.number.is_none().then_some(first + place));
        }
        unseen
    }

    pub(in crate::adapter) fn on_end_acks(&mut self, now: Time, inflight: u64, app_limited: bool) {
        self.gather(now);
        self.inflight = inflight;
        // What the stack says is true of when it last stopped, before this ACK.
        let acked = self.largest_acked.map_or(0, |(number, _)| number + 1);
        let (before, cwnd) = (self.gathered.inflight_before, self.controller.cwnd().0);
        let stop = match app_limited {
            true => Stop::Application,
            false if before + self.mss > cwnd => Stop::Window,
            // The stack does not say how much waits for the pacer: as much as is in flight is taken for
            // granted, so a window of which less than half is used does not grow.
            false => Stop::Pacer { waiting: before },
        };
        self.usage.stopped(stop.is_by_window(before, cwnd), acked, self.next_number, before);
        if app_limited {
            self.delivery.limit_by_application();
        }
    }

    pub(in crate::adapter) fn on_congestion(
        &mut self,
        now: Time,
        sent_at: Time,
        persistent: bool,
        lost: u64,
    ) {
        if lost == 0 {
            // The stack's own reading of CE; the tap's is the better one.
            if !self.tapped {
                self.gather(now);
                self.gathered.ce_sent_at = Some(sent_at);
            }
            return;
        }
        if !self.gathered.any || self.gathered.now != now {
            self.gather(now);
        }
        // The oldest are lost first, by number as by time.
        let mut left = lost;
        for sent in &mut self.sent {
            if left == 0 || sent.sent_at > sent_at {
                break;
            }
            if sent.state == PacketState::Outstanding && sent.size <= left {
                left -= sent.size;
                sent.state = PacketState::Lost;
                self.validation.on_lost(u64::from(sent.marked));
                if let Some(info) = sent.info {
                    self.delivery.lose(info.size.0);
                    self.gathered.lost.push(info);
                    self.gathered.missing.extend(sent.number);
                }
                self.counters.lost_packets += 1;
            }
        }
        self.counters.lost_bytes += lost;
        self.inflight = self.inflight.saturating_sub(lost);
        self.gathered.lost_bytes += lost;
        self.gathered.loss_sent_at = self.gathered.loss_sent_at.max(Some(sent_at));
        self.gathered.persistent |= persistent;
    }

    /// The stack has discarded every packet that the tap has seen so far, and will not speak of them again.
    /// The controller, which knows of each, is told that it is lost, but of no episode: a server that rejects
    /// 0-RTT says nothing of the path.
    pub(in crate::adapter) fn on_early_discarded(&mut self) {
        for sent in &mut self.sent {
            if sent.state != PacketState::Outstanding || sent.number.is_none() {
                continue;
            }
            sent.state = PacketState::Lost;
            self.inflight = self.inflight.saturating_sub(sent.size);
            self.validation.on_discarded(u64::from(sent.marked));
            if let Some(info) = sent.info {
                self.delivery.lose(info.size.0);
                self.gathered.lost.push(info);
            }
        }
    }

    /// A datagram from the peer, which may be a report.
    pub(in crate::adapter) fn on_datagram(&mut self, now: Time, datagram: &[u8]) {
        let report = match report::FeedbackPacket::decode(datagram) {
            Ok(report) => report,
            Err(report::Malformed::Foreign) => return,
            Err(_) => {
                self.counters.malformed_reports += 1;
                return;
            }
        };
        if report.is_invitation() {
            return;
        }
        self.counters.reports += 1;
        self.gather(now);
        self.peer.on_report(now, &report, &mut self.gathered.times, &mut self.gathered.report);
    }

    /// Begins to gather what happens at `now`; what happened before is told first.
    fn gather(&mut self, now: Time) {
        if self.gathered.any && self.gathered.now != now {
            self.flush();
        }
        if !self.gathered.any {
            self.gathered.inflight_before = self.delivery.inflight();
        }
        self.gathered.any = true;
        self.gathered.now = now;
    }
}
