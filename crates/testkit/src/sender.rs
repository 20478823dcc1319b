//! The sending half of a flow: bulk data, packet-threshold loss detection, a retransmission timeout, pacing.

use std::collections::VecDeque;

use brakelight_core::controller::{
    AckEvent, Controller, Exact, LossEvent, MarkCount, Marks, PacketInfo, ReceiveTime, RecoveryState, Rtt,
    SendDirective, SendEvent, Timeout, TimeoutEvent,
};
use brakelight_core::ecn::Mark;
use brakelight_core::feedback::Echo;
use brakelight_core::registry::AnyController;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::Bytes;

use crate::world::{FlowSpec, MSS};

/// Later packets that must arrive before one counts as lost (RFC 9002 section 6.1.1).
const REORDERING: u64 = 3;
const MIN_RTO: Duration = Duration::from_millis(200);
const INITIAL_RTT: Duration = Duration::from_millis(333);

struct Sent {
    info: PacketInfo,
    done: bool,
}

pub(super) struct Sender {
    pub(super) controller: AnyController,
    pub(super) inflight: Bytes,
    silent: Vec<(Time, Time)>,
    outstanding: VecDeque<Sent>,
    next_number: u64,
    largest_acked: Option<u64>,
    delivered: Bytes,
    delivered_at: Time,
    first_sent_at: Time,
    lost: Bytes,
    /// The application ran out of data; samples are limited by it until this much has been delivered.
    app_limited_until: Option<Bytes>,
    next_send: Time,
    rtt: Option<(Duration, Duration)>,
    min_rtt: Duration,
    round: u64,
    round_end: Bytes,
    /// In recovery until this packet is acknowledged or lost.
    recovery: Option<u64>,
    /// No second reaction to marks on packets before this one.
    ce_until: u64,
    last_progress: Time,
    timeouts: u32,
    cwnd_limited: bool,
    totals: [u64; 3],
    woken_for: Option<Time>,
}

impl Sender {
    pub(super) fn new(controller: AnyController, flow: &FlowSpec<'_>) -> Self {
        Sender {
            controller,
            inflight: Bytes::ZERO,
            silent: flow.silent.clone(),
            outstanding: VecDeque::new(),
            next_number: 0,
            largest_acked: None,
            delivered: Bytes::ZERO,
            delivered_at: flow.start,
            first_sent_at: flow.start,
            lost: Bytes::ZERO,
            app_limited_until: None,
            next_send: flow.start,
            rtt: None,
            min_rtt: Duration::MAX,
            round: 0,
            round_end: Bytes::ZERO,
            recovery: None,
            ce_until: 0,
            last_progress: flow.start,
            timeouts: 0,
            cwnd_limited: false,
            totals: [0; 3],
            woken_for: None,
        }
    }

    fn smoothed(&self) -> Duration {
        self.rtt.map_or(INITIAL_RTT, |(smoothed, _)| smoothed)
    }

    fn rto(&self) -> Duration {
        let (smoothed, variation) = self.rtt.unwrap_or((INITIAL_RTT, INITIAL_RTT / 2));
        (smoothed + variation * 4).max(MIN_RTO) * (1 << self.timeouts.min(6))
    }

    fn silent_until(&self, now: Time) -> Option<Time> {
        self.silent.iter().find(|(from, to)| *from <= now && now < *to).map(|(_, to)| *to)
    }

    /// Timers that are due.
    pub(super) fn on_time(&mut self, now: Time) {
        if self.controller.next_timer().is_some_and(|at| at <= now) {
            self.controller.on_timer(now);
        }
        if !self.outstanding.is_empty() && now >= self.last_progress + self.rto() {
            let event = TimeoutEvent {
                now,
                kind: Timeout::Rto,
                inflight: self.inflight,
                repeated: self.timeouts > 0,
            };
            self.timeouts += 1;
            self.last_progress = now;
            let lost: Vec<_> = self.outstanding.drain(..).filter(|p| !p.done).map(|p| p.info).collect();
            let bytes: Bytes = lost.iter().map(|packet| packet.size).sum();
            self.lost += bytes;
            let before = self.inflight;
            self.inflight = Bytes::ZERO;
            self.controller.on_timeout(&event);
            self.recovery = self.next_number.checked_sub(1);
            self.report(now, &[], &lost, Bytes::ZERO, before, None, Marks::default(), &[], &Echo::default());
        }
    }

    /// When to come back, unless an earlier wake-up for the same time is still to come.
    pub(super) fn wake_at(&mut self, now: Time) -> Option<Time> {
        let mut at = Time::MAX;
        if let Some(timer) = self.controller.next_timer() {
            at = at.min(timer);
        }
        if !self.outstanding.is_empty() {
            at = at.min(self.last_progress + self.rto());
        }
        if let Some(end) = self.silent_until(now) {
            at = at.min(end);
        } else if self.inflight + MSS <= self.controller.cwnd() {
            at = at.min(self.next_send);
        }
        let at = (at < Time::MAX).then_some(at.max(now))?;
        if self.woken_for == Some(at) && at > now {
            return None;
        }
        self.woken_for = Some(at);
        // Strictly later, or a timer that stays due would stop time.
        Some(at.max(now + Duration::from_nanos(1)))
    }

    /// Sends a packet if pacing, window and application let it.
    pub(super) fn send(&mut self, now: Time) -> Option<(u64, SendDirective)> {
        if self.silent_until(now).is_some() {
            if self.inflight + MSS <= self.controller.cwnd() {
                self.app_limited_until = Some(self.delivered + self.inflight);
            }
            return None;
        }
        if self.inflight + MSS > self.controller.cwnd() {
            self.cwnd_limited = true;
            return None;
        }
        if self.next_send > now {
            return None;
        }
        let app_limited = self.app_limited_until.is_some();
        let directive = self.controller.on_send(&SendEvent {
            now,
            size: MSS,
            number: self.next_number,
            retransmission: false,
            replaces: None,
            inflight: self.inflight,
            app_limited,
            srtt: self.rtt.map(|(smoothed, _)| smoothed),
        });
        if let Some(rate) = self.controller.pacing_rate() {
            self.next_send = self.next_send.max(now) + rate.time_for(MSS);
        }
        if self.outstanding.is_empty() {
            self.first_sent_at = now;
            self.delivered_at = now;
            self.last_progress = now;
        }
        self.inflight += MSS;
        let number = self.next_number;
        self.next_number += 1;
        self.outstanding.push_back(Sent {
            info: PacketInfo {
                number,
                size: MSS,
                sent_at: now,
                delivered: self.delivered,
                delivered_at: self.delivered_at,
                first_sent_at: self.first_sent_at,
                inflight: self.inflight,
                lost: self.lost,
                app_limited,
                retransmission: false,
                tag: directive.tag,
            },
            done: false,
        });
        Some((number, directive))
    }

    pub(super) fn on_ack(&mut self, now: Time, arrivals: &[ReceiveTime], marks: &[Mark], echo: &Echo) {
        let before = self.inflight;
        let mut acked = Vec::new();
        for arrival in arrivals {
            let Some(first) = self.outstanding.front() else { break };
            let Some(index) = arrival.number.checked_sub(first.info.number) else { continue };
            let Some(sent) = self.outstanding.get_mut(index as usize) else { continue };
            if !sent.done {
                sent.done = true;
                acked.push(sent.info);
            }
        }
        let bytes: Bytes = acked.iter().map(|packet| packet.size).sum();
        self.inflight = self.inflight.saturating_sub(bytes);
        self.delivered += bytes;
        let mut sample = None;
        if let Some(newest) = acked.last() {
            self.delivered_at = now;
            self.first_sent_at = newest.sent_at;
            self.largest_acked = self.largest_acked.max(Some(newest.number));
            self.last_progress = now;
            self.timeouts = 0;
            let rtt = now.since(newest.sent_at);
            self.min_rtt = self.min_rtt.min(rtt);
            // rfc6298 2
            self.rtt = Some(match self.rtt {
                None => (rtt, rtt / 2),
                Some((smoothed, variation)) => {
                    let error = smoothed.max(rtt) - smoothed.min(rtt);
                    ((smoothed * 7 + rtt) / 8, (variation * 3 + error) / 4)
                }
            });
            sample = Some(rtt);
        }
        if self.app_limited_until.is_some_and(|until| self.delivered > until) {
            self.app_limited_until = None;
        }
        let mut lost = Vec::new();
        for sent in &mut self.outstanding {
            if self.largest_acked.is_none_or(|largest| sent.info.number + REORDERING > largest) {
                break;
            }
            if !sent.done {
                sent.done = true;
                lost.push(sent.info);
            }
        }
        while self.outstanding.front().is_some_and(|sent| sent.done) {
            self.outstanding.pop_front();
        }
        let lost_bytes: Bytes = lost.iter().map(|packet| packet.size).sum();
        self.inflight = self.inflight.saturating_sub(lost_bytes);
        self.lost += lost_bytes;

        if let Some(newest) = lost.last()
            && self.recovery.is_none()
        {
            self.recovery = self.next_number.checked_sub(1);
            self.controller.on_loss(&LossEvent {
                now,
                sent_at: newest.sent_at,
                inflight: self.inflight + lost_bytes,
                lost: lost_bytes,
                srtt: self.smoothed(),
                min_rtt: self.min_rtt,
            });
        }
        let marks = self.count(marks, echo);
        if marks.ce.packets > 0 && self.largest_acked.is_some_and(|largest| largest >= self.ce_until) {
            self.ce_until = self.next_number;
            let sent_at = acked.last().map_or(now, |packet| packet.sent_at);
            self.controller.on_ce(&LossEvent {
                now,
                sent_at,
                inflight: self.inflight,
                lost: Bytes::ZERO,
                srtt: self.smoothed(),
                min_rtt: self.min_rtt,
            });
        }
        self.report(now, &acked, &lost, bytes, before, sample, marks, arrivals, echo);
    }

    /// Marks as exact counters carry them, or as every packet of the ACK carried them.
    fn count(&mut self, marks: &[Mark], echo: &Echo) -> Marks {
        let mut counts = [0_u64; 3];
        if let Some(totals) = &echo.totals {
            for (count, (total, seen)) in
                counts.iter_mut().zip(totals.packets.iter().zip(self.totals.iter_mut()))
            {
                *count = u64::from(*total) - *seen;
                *seen = u64::from(*total);
            }
        } else {
            for mark in marks {
                match mark {
                    Mark::None => {}
                    Mark::Accelerate => counts[0] += 1,
                    Mark::Brake => counts[1] += 1,
                    Mark::Ce => counts[2] += 1,
                }
            }
        }
        let [accelerate, brake, ce] =
            counts.map(|packets| MarkCount { packets, bytes: Bytes(packets * MSS.0) });
        Marks { accelerate, brake, ce, exact: Exact::Both }
    }

    #[allow(clippy::too_many_arguments)]
    fn report(
        &mut self,
        now: Time,
        acked: &[PacketInfo],
        lost: &[PacketInfo],
        newly_acked: Bytes,
        inflight_before: Bytes,
        sample: Option<Duration>,
        marks: Marks,
        receive_times: &[ReceiveTime],
        echo: &Echo,
    ) {
        let round_start = acked.last().is_some_and(|newest| newest.delivered >= self.round_end);
        if round_start {
            self.round += 1;
            self.round_end = self.delivered;
        }
        let recovered = self.recovery.is_some_and(|end| {
            self.outstanding.front().is_none_or(|first| first.info.number > end) && !acked.is_empty()
        });
        if recovered {
            self.recovery = None;
            self.controller.on_recovery_exit(now);
        }
        let (smoothed, variation) = self.rtt.unwrap_or((INITIAL_RTT, INITIAL_RTT / 2));
        let recovery = match self.recovery {
            None => RecoveryState::Open,
            Some(_) if self.timeouts > 0 => RecoveryState::Loss,
            Some(_) => RecoveryState::Recovery,
        };
        self.controller.on_ack(&AckEvent {
            now,
            acked,
            lost,
            newly_acked,
            growth: if recovery == RecoveryState::Recovery { Bytes::ZERO } else { newly_acked },
            newly_lost: lost.iter().map(|packet| packet.size).sum(),
            inflight_before,
            inflight: self.inflight,
            delivered: self.delivered,
            total_lost: self.lost,
            rtt: Rtt { sample, smoothed, variation, min: self.min_rtt },
            ack_delay: Duration::ZERO,
            round: self.round,
            round_start,
            marks,
            receive_times,
            report: echo.report,
            cwnd_limited: self.cwnd_limited,
            recovery,
        });
        if round_start {
            self.cwnd_limited = false;
        }
    }
}
