//! One end of one connection, whoever carries its packets: time, packets and peer's reports in, packets and
//! deadlines out.
//!
//! An end that sends has a [`ControllerAdapter`], and sends a packet that needs the window only when the
//! adapter admits it: the controller's rate holds instead of the stack's pacer, whatever the window. ACKs and
//! probes pass as the stack sends them. An end that hears reports times and marks of single packets to a peer
//! that invites it to. One end may be both.

use std::collections::VecDeque;
use std::sync::{Arc, Mutex, PoisonError};
use std::time::Instant;

use brakelight_core::ecn::Ecn;
use brakelight_core::time::{Duration, Time};
use brakelight_scenario::clock::Clock;
use bytes::Bytes;
use quinn_proto::{Connection, Event, Transmit};

use super::message;
use crate::adapter::{ControllerAdapter, SendAdmission};
use crate::report::{FeedbackPacket, Unreported};
use crate::tap::Listener;
use crate::tap::frames::Ack;
use crate::tap::parameters::Parameters;

/// Invitations sent before a peer is taken not to report.
const INVITATIONS: u32 = 5;
/// How long an end waits for a second packet to report (rfc9000 18.2, as max_ack_delay).
const REPORT_DELAY: Duration = Duration::from_millis(25);

/// The numbers of 0-RTT and 1-RTT packets that were decrypted, and whoever else listens.
#[derive(Debug, Default)]
pub(super) struct Ears {
    numbers: Mutex<Vec<u64>>,
    adapter: Option<Arc<ControllerAdapter>>,
}

impl Ears {
    /// Ears of an end that sends nothing but feedback.
    pub(super) fn alone() -> Arc<Self> {
        Arc::new(Ears::default())
    }

    /// Ears of an end that sends under `adapter`, which hears all that they do.
    #[cfg(target_os = "linux")]
    pub(super) fn beside(adapter: Arc<ControllerAdapter>) -> Arc<Self> {
        Arc::new(Ears { numbers: Mutex::default(), adapter: Some(adapter) })
    }

    fn take(&self, into: &mut Vec<u64>) {
        into.clear();
        std::mem::swap(into, &mut self.numbers.lock().unwrap_or_else(PoisonError::into_inner));
    }
}

impl Listener for Ears {
    fn on_ack(&self, ack: &Ack<'_>, newest: bool) {
        if let Some(adapter) = &self.adapter {
            adapter.on_ack(ack, newest);
        }
    }

    fn on_parameters(&self, parameters: &Parameters) {
        if let Some(adapter) = &self.adapter {
            adapter.on_parameters(parameters);
        }
    }

    fn on_early_discarded(&self) {
        if let Some(adapter) = &self.adapter {
            adapter.on_early_discarded();
        }
    }

    fn on_open(&self, number: u64) {
        self.numbers.lock().unwrap_or_else(PoisonError::into_inner).push(number);
    }

    fn on_seal(&self, number: u64, packet: &[u8], eliciting: bool) -> Option<Ecn> {
        match &self.adapter {
            Some(adapter) => adapter.on_seal(number, packet, eliciting),
            // rfc3168 6.1.4
            None => Some(Ecn::NotEct),
        }
    }
}

#[derive(Debug)]
struct Sending {
    adapter: Arc<ControllerAdapter>,
    invitations: u32,
    invite_at: Option<Time>,
}

/// What an end knows of the packets that came, for a peer that wants to know.
#[derive(Debug)]
pub(super) struct Hearing {
    ears: Arc<Ears>,
    numbers: Vec<u64>,
    clock: Clock,
    willing: bool,
    unreported: Unreported,
    invited: bool,
    report_at: Option<Time>,
    reported: u64,
}

impl Hearing {
    /// Of what `ears` hear, by `clock`. Who is not `willing` stands for a peer that is not ours.
    pub(super) fn new(ears: Arc<Ears>, clock: Clock, willing: bool) -> Self {
        Hearing {
            ears,
            numbers: Vec::new(),
            clock,
            willing,
            unreported: Unreported::default(),
            invited: false,
            report_at: None,
            reported: 0,
        }
    }
}

/// One end of one connection.
#[derive(Debug)]
pub(super) struct End {
    base: Instant,
    connection: Connection,
    sending: Option<Sending>,
    hearing: Option<Hearing>,
    /// Messages of an application that came, where one is there to take them.
    messages: Option<VecDeque<Bytes>>,
    pace_at: Option<Time>,
    deadline: Option<Time>,
}

impl End {
    /// The end that has `connection`, on a clock that shows zero at `base`.
    pub(super) fn new(
        base: Instant,
        connection: Connection,
        adapter: Option<Arc<ControllerAdapter>>,
        hearing: Option<Hearing>,
    ) -> Self {
        let sending = adapter.map(|adapter| Sending { adapter, invitations: INVITATIONS, invite_at: None });
        End { base, connection, sending, hearing, messages: None, pace_at: None, deadline: None }
    }

    /// Keeps an application's messages until they are taken. Without this call they are dropped.
    pub(super) fn keep_messages(&mut self) {
        self.messages.get_or_insert_default();
    }

    /// The oldest message that was not taken yet.
    pub(super) fn take_message(&mut self) -> Option<Bytes> {
        self.messages.as_mut()?.pop_front()
    }

    pub(super) fn connection(&mut self) -> &mut Connection {
        &mut self.connection
    }

    /// Acts on every deadline due by `now`.
    pub(super) fn on_deadline(&mut self, now: Time) {
        let at = instant(self.base, now);
        if self.connection.poll_timeout().is_some_and(|due| due <= at) {
            self.connection.handle_timeout(at);
        }
        if let Some(Sending { adapter, .. }) = &self.sending {
            adapter.flush();
            adapter.on_timer(now);
        }
        self.invite(now);
        if self.hearing.as_ref().and_then(|hearing| hearing.report_at).is_some_and(|due| due <= now) {
            self.report(now);
        }
    }

    /// What the connection wants its application to know.
    pub(super) fn poll_event(&mut self, now: Time) -> Option<Event> {
        let event = self.connection.poll()?;
        if let (Event::Connected, Some(sending)) = (&event, &mut self.sending) {
            sending.invite_at = Some(now);
            self.invite(now);
        }
        Some(event)
    }

    /// A datagram with `ecn` was handled at `now`: reads what the peer reports, and notes the packets that
    /// arrived.
    pub(super) fn hear(&mut self, now: Time, ecn: Ecn) {
        let mut invited = false;
        while let Some(datagram) = self.connection.datagrams().recv() {
            if let Some(messages) = &mut self.messages
                && message::is_message(&datagram)
            {
                messages.push_back(datagram);
                continue;
            }
            if let Some(Sending { adapter, .. }) = &self.sending {
                adapter.on_datagram(now, &datagram);
            }
            if self.hearing.is_some() {
                invited |= FeedbackPacket::decode(&datagram).is_ok_and(|report| report.is_invitation());
            }
        }
        if let Some(Sending { adapter, .. }) = &self.sending {
            adapter.flush();
        }
        let Some(hearing) = &mut self.hearing else { return };
        hearing.invited |= hearing.willing && invited;
        let clock = hearing.clock.read(now);
        let mut out_of_order = false;
        hearing.ears.take(&mut hearing.numbers);
        for &number in &hearing.numbers {
            out_of_order |= number != hearing.reported;
            hearing.reported = hearing.reported.max(number + 1);
            if hearing.invited {
                hearing.unreported.on_packet(number, clock, ecn);
            }
        }
        if !hearing.unreported.is_empty() {
            let due = hearing.unreported.len() >= 2 || out_of_order || ecn == Ecn::Ce;
            let at = if due { now } else { now + REPORT_DELAY };
            hearing.report_at = Some(hearing.report_at.map_or(at, |before| before.min(at)));
        }
        if hearing.report_at.is_some_and(|due| due <= now) {
            self.report(now);
        }
    }

    /// Asks the peer for reports, if the controller has a use for them and none has come.
    fn invite(&mut self, now: Time) {
        let Some(Sending { adapter, invitations, invite_at }) = &mut self.sending else { return };
        if invite_at.is_none_or(|at| at > now) {
            return;
        }
        if !adapter.wants_reports() || *invitations == 0 {
            *invite_at = None;
            return;
        }
        *invitations -= 1;
        *invite_at = Some(now + adapter.smoothed_rtt().unwrap_or(REPORT_DELAY).max(REPORT_DELAY));
        // A peer without DATAGRAM frames refuses, and is one that does not report.
        let _ = self.connection.datagrams().send(FeedbackPacket::invitation().encode(), true);
    }

    /// Writes everything unreported into datagrams.
    fn report(&mut self, now: Time) {
        let Some(hearing) = &mut self.hearing else { return };
        hearing.report_at = None;
        let clock = hearing.clock.read(now);
        for report in hearing.unreported.take(clock) {
            let _ = self.connection.datagrams().send(report.encode(), true);
        }
    }

    /// The next transmission, written to the end of `buffer`: of `most` datagrams at most, and no more than
    /// the adapter lets go at once.
    pub(super) fn poll_transmit(&mut self, now: Time, most: usize, buffer: &mut Vec<u8>) -> Option<Transmit> {
        let (mut admission, mut room) = (SendAdmission::Now, most);
        if let Some(Sending { adapter, .. }) = &self.sending {
            // The stack (quinn-proto 0.11) holds CONNECTION_CLOSE back as long as data wait for the window.
            // The frame asks for no ACK and is not in flight (RFC 9002 section 2).
            if self.connection.is_closed() {
                adapter.open_for_good();
            } else {
                (admission, room) = adapter.admit(now, most);
            }
        }
        let sent = self.connection.poll_transmit(instant(self.base, now), room, buffer);
        self.pace_at = match admission {
            SendAdmission::Until(at) if sent.is_none() => Some(at),
            _ => None,
        };
        sent
    }

    /// Notes when this end must be polled next: to be called when there is nothing to send.
    pub(super) fn note_deadline(&mut self) {
        let timer = self.connection.poll_timeout().map(|at| time(self.base, at));
        let sending = self.sending.as_ref().map(|sending| [sending.adapter.next_timer(), sending.invite_at]);
        let report_at = self.hearing.as_ref().and_then(|hearing| hearing.report_at);
        let own = sending.into_iter().flatten().chain([report_at]);
        self.deadline = [timer, self.pace_at].into_iter().chain(own).flatten().min();
    }

    /// When this end must be polled, if nothing arrives before; as of the last time there was nothing to
    /// send.
    pub(super) fn deadline(&self) -> Option<Time> {
        self.deadline
    }
}

/// `at` on the stack's clock.
pub(super) fn instant(base: Instant, at: Time) -> Instant {
    base + std::time::Duration::from_nanos(at.as_nanos())
}

/// `at` on ours.
pub(super) fn time(base: Instant, at: Instant) -> Time {
    Time::from_nanos(at.saturating_duration_since(base).as_nanos() as u64)
}
