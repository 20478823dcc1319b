//! The next packet, and what keeps it from leaving: window, pacer, or nothing to send.

use brakelight_core::controller::{Controller, IdleEvent, SendEvent};
use brakelight_core::sender::Stop;
use brakelight_core::time::Time;
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::Host;

use super::scoreboard::{Segment, State, Transmission};
use super::{Forced, Outgoing, PING, Sender};

/// The most bytes that may be in flight, on every host: no receiver of TCP can grant more (rfc7323 2.3).
pub(super) const LARGEST_WINDOW: u64 = 1 << 30;

/// What leaves next: a segment again, or one that is new.
#[derive(Clone, Copy)]
pub(in super::super) struct Next {
    pub(in super::super) segment: Option<u32>,
    pub(in super::super) size: u64,
    /// What it is paced at.
    pub(in super::super) rate: Option<Rate>,
}

impl Sender {
    /// What may be in flight.
    #[inline]
    pub(super) fn window(&self) -> u64 {
        match &self.prr {
            Some(prr) => prr.window(),
            None => self.cwnd,
        }
    }

    #[inline]
    fn pacing_rate(&self) -> Option<Rate> {
        if self.rate.is_some() || self.host != Host::Quic { self.rate } else { Some(self.quic_rate()) }
    }

    /// rfc9002 7.7
    #[inline(never)]
    fn quic_rate(&self) -> Rate {
        let bytes = Bytes(self.cwnd).as_f64();
        Rate::from_bps_f64(1.25 * 8.0 * bytes / self.rtt.smoothed().as_secs_f64())
    }

    /// Whether nothing may leave, as nothing has changed since the sender last had to stop.
    #[inline]
    pub(in super::super) fn is_halted(&self) -> bool {
        self.halted
    }

    /// What leaves next, if it may leave now: for [`Sender::send`].
    #[inline(always)]
    pub(in super::super) fn next(&mut self, now: Time) -> Option<Next> {
        if self.halted {
            return None;
        }
        let next = self.choose(now);
        if next.is_none() {
            self.halt();
        }
        next
    }

    /// Nothing leaves before something changes.
    #[inline]
    fn halt(&mut self) {
        self.halted = true;
        self.wake_at = self.next_timer();
    }

    /// Whether the window has room for `size` bytes. One packet may always be out: a window below one packet
    /// would wait for an ACK that never comes.
    #[inline]
    fn fits(&self, size: u64) -> bool {
        let inflight = self.delivery.inflight();
        inflight + size <= self.window().min(LARGEST_WINDOW) || inflight == 0
    }

    /// What leaves no room for `size` more bytes. To a window that the receiver keeps from being used, it is
    /// as if there were nothing to send (Linux 6.12 tcp_output.c, tcp_write_xmit).
    #[inline]
    fn no_room(&self, size: u64) -> Stop {
        if self.delivery.inflight() + size > self.window() { Stop::Window } else { Stop::Application }
    }

    /// Chooses what leaves now.
    #[inline]
    fn choose(&mut self, now: Time) -> Option<Next> {
        self.pace_at = Time::MAX;
        if self.transmissions.end() == u32::MAX {
            // The numbers are used up, 6 TB later: the connection falls silent.
            return None;
        }
        if self.host == Host::Ns2 {
            return self.choose_sack1(now);
        }
        if self.forced != Forced::None
            && let Some(segment) = self.choose_forced()
        {
            return Some(Next { segment, size: self.size_of(segment), rate: self.pacing_rate() });
        }
        let lost = if self.lost_queue.is_empty() { None } else { self.next_lost() };
        let segment = match lost {
            Some(segment) if !(self.tcp.prefers_new() && self.unsent > 0) => Some(segment),
            _ => None,
        };
        let size = self.size_of(segment);
        if size == 0 {
            self.stopped(now, Stop::Application);
            if self.delivery.inflight() < self.window() {
                self.delivery.limit_by_application();
            }
            return None;
        }
        if !self.fits(size) {
            self.stopped(now, self.no_room(size));
            return None;
        }
        let rate = self.pacing_rate();
        if self.waits_for_pacer(now, size, rate) {
            return None;
        }
        if segment.is_some() {
            self.lost_queue.pop_front();
        }
        Some(Next { segment, size, rate })
    }

    /// Chooses what leaves whatever the window says, as [`Next::segment`].
    #[cold]
    fn choose_forced(&mut self) -> Option<Option<u32>> {
        let forced = self.forced;
        self.forced = match forced {
            Forced::Probes(count) if count > 1 => Forced::Probes(count - 1),
            _ => Forced::None,
        };
        let lost = self.next_lost();
        let segment = match forced {
            Forced::None => return None,
            Forced::Head => Some(lost?),
            // rfc8985 7.3: new data, or else the highest segment.
            Forced::Tail if self.unsent > 0 => None,
            Forced::Tail => Some(self.highest_unsacked()?),
            // rfc9002 6.2.4: lost data, or else new data, or else what left longest ago: a PING where nothing
            // is sent twice.
            Forced::Probes(_) if lost.is_none() && self.unsent > 0 => None,
            Forced::Probes(_) if self.pieces.is_some() => {
                self.write_piece(PING, true);
                None
            }
            Forced::Probes(_) => Some(lost.or_else(|| self.oldest_undelivered())?),
        };
        if segment.is_some() && segment == lost {
            self.lost_queue.pop_front();
        }
        if forced == Forced::Tail {
            self.tcp.probe_sent(segment, self.segments.end());
        }
        Some(segment)
    }

    /// The bytes of `segment`, or of one that is new.
    #[inline]
    pub(super) fn size_of(&self, segment: Option<u32>) -> u64 {
        match segment {
            Some(segment) => u64::from(self.segments[segment].size),
            None => match &self.pieces {
                None => self.unsent.min(self.mss),
                Some(pieces) => pieces.next_size(),
            },
        }
    }

    /// The first segment that is lost and not yet sent again.
    #[inline(never)]
    fn next_lost(&mut self) -> Option<u32> {
        while let Some(&segment) = self.lost_queue.front() {
            if let Some(entry) = self.segments.get(segment)
                && !entry.delivered
                && self.transmissions[entry.latest].state() == State::Lost
            {
                return Some(segment);
            }
            self.lost_queue.pop_front();
        }
        None
    }

    fn highest_unsacked(&self) -> Option<u32> {
        (self.segments.base()..self.segments.end()).rev().find(|&segment| !self.segments[segment].delivered)
    }

    fn oldest_undelivered(&self) -> Option<u32> {
        (self.segments.base()..self.segments.end())
            .filter(|&segment| !self.segments[segment].delivered)
            .min_by_key(|&segment| self.segments[segment].latest)
    }

    /// Sends a segment again, or a new one.
    #[inline(always)]
    pub(in super::super) fn send(&mut self, now: Time, next: Next) -> Outgoing {
        let Next { segment, size, rate } = next;
        let number = self.transmissions.end();
        let retransmission = segment.is_some();
        if self.delivery.inflight() == 0 {
            self.restart_after_idle(now);
            self.delivery.begin_flight(now);
        }
        let replaces = segment.and_then(|segment| self.supersede(now, segment, number));
        let mut directive = self.controller.on_send_by_value(SendEvent {
            now,
            size: Bytes(size),
            number: u64::from(number),
            retransmission,
            replaces: replaces.map(u64::from),
            inflight: self.inflight(),
            app_limited: self.delivery.is_app_limited(),
            srtt: self.smoothed_rtt(),
        });
        if let Some(rate) = rate {
            self.pacer.sent(now, size, rate);
        }
        let mut carried = None;
        let segment = match segment {
            Some(segment) => segment,
            None => {
                if self.unsent != u64::MAX {
                    self.unsent -= size;
                }
                directive.cwr |= std::mem::take(&mut self.cwr_pending);
                if let Some(piece) = self.pieces.as_mut().and_then(|pieces| pieces.pop()) {
                    carried = Some(piece.number);
                }
                let segment = self.segments.end();
                self.segments.push(Segment {
                    latest: number,
                    size: size as u16,
                    delivered: false,
                    retransmitted: false,
                });
                segment
            }
        };
        self.tags.push(&self.transmissions, directive.tag);
        let books = self.delivery.send(size);
        self.transmissions.push(Transmission::new(now, segment, size as u16, &books, retransmission));
        if let Some(prr) = &mut self.prr {
            prr.sent(size);
        }
        self.counters.sent_packets += 1;
        self.counters.sent_bytes += size;
        self.burst = true;
        self.last_sent_at = Some(now);
        match self.host {
            Host::Tcp => self.sent_tcp(now),
            Host::Quic => self.sent_quic(now),
            Host::Ns2 => self.sent_sack1(now, segment, retransmission),
        }
        if self.decides_on_send {
            self.note_controller();
        }
        // Most bursts end at the window: that is known here, without another look at all that could leave.
        let unsent = self.size_of(None);
        let bytes_count = self.host != Host::Ns2;
        if bytes_count
            && self.forced == Forced::None
            && self.lost_queue.is_empty()
            && unsent > 0
            && !self.fits(unsent)
        {
            self.stopped(now, self.no_room(unsent));
            self.halt();
        }
        Outgoing { number, segment: carried.unwrap_or(segment), size: size as u16, directive }
    }

    /// Notes that `segment` leaves again as transmission `number`. Returns the transmission that it replaces
    /// in flight.
    #[inline(never)]
    fn supersede(&mut self, now: Time, segment: u32, number: u32) -> Option<u32> {
        let entry = &mut self.segments[segment];
        let before = std::mem::replace(&mut entry.latest, number);
        entry.retransmitted = true;
        self.counters.retransmitted_packets += 1;
        self.counters.retransmitted_bytes += u64::from(entry.size);
        match self.host {
            Host::Quic => return None,
            Host::Tcp => self.retransmitted_tcp(now, segment),
            Host::Ns2 => {}
        }
        let old = &mut self.transmissions[before];
        if old.state() != State::Outstanding {
            return None;
        }
        old.set_state(State::Superseded);
        self.delivery.replace(u64::from(old.size));
        let was_retransmission = old.is_retransmission();
        if self.host == Host::Tcp {
            self.tcp.left_flight(was_retransmission);
        }
        Some(before)
    }

    #[cold]
    fn restart_after_idle(&mut self, now: Time) {
        let Some(last) = self.last_sent_at else { return };
        let idle = now.since(last);
        let rto = match self.host {
            Host::Tcp => self.rto(),
            Host::Quic => self.pto(),
            Host::Ns2 => self.sack1.rto(),
        };
        // rfc5681 4.1; Linux 6.12 tcp.h, tcp_slow_start_after_idle_check: nothing is outstanding at all.
        if self.segments.is_empty() && idle > rto {
            if !self.lost.is_empty() {
                // A timer declared them lost, and no ACK came to say so.
                self.report_losses(now);
            }
            self.controller.on_idle_restart(&IdleEvent { now, idle, rto });
            self.note_controller();
        }
    }

    /// Whether a packet of `size` bytes must wait for the pacer, and then until when.
    #[inline]
    pub(super) fn waits_for_pacer(&mut self, now: Time, size: u64, rate: Option<Rate>) -> bool {
        let Some(rate) = rate else { return false };
        let at = self.pacer.ready_at(size, rate);
        if at <= now {
            return false;
        }
        self.pace_at = at;
        self.stopped(now, self.paced());
        true
    }

    /// What a wait for the pacer is. To TCP it is as if there were nothing to send (Linux 6.12 tcp_output.c,
    /// tcp_write_xmit).
    #[inline]
    fn paced(&self) -> Stop {
        match self.host {
            Host::Tcp | Host::Ns2 => Stop::Application,
            Host::Quic => {
                let again = self.lost_queue.len() as u64 * self.mss;
                let granted = LARGEST_WINDOW.saturating_sub(self.delivery.inflight());
                Stop::Pacer { waiting: self.unsent.saturating_add(again).min(granted) }
            }
        }
    }

    /// The sender has to stop.
    #[inline]
    pub(super) fn stopped(&mut self, now: Time, stop: Stop) {
        let by_window = stop.is_by_window(self.delivery.inflight(), self.window());
        if self.burst || by_window {
            let (una, end) = (u64::from(self.segments.base()), u64::from(self.segments.end()));
            self.usage.stopped(by_window, una, end, self.delivery.inflight());
        }
        if (self.burst || self.probe_stale) && self.host == Host::Tcp {
            self.rearm_probe(now);
        }
        self.burst = false;
        self.probe_stale = false;
    }

    /// Whether the window may grow.
    pub(super) fn is_cwnd_limited(&self) -> bool {
        self.usage.is_cwnd_limited(self.cwnd, || self.controller.ssthresh().map(|ssthresh| ssthresh.0))
    }
}
