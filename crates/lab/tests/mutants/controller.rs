//! Controllers with a fault: New Reno, or BBR's third version, in everything but that.

use brakelight_core::controller::{
    AckEvent, Connection, Controller, Decision, IdleEvent, LossEvent, Recovery, SendDirective, SendEvent,
    SpuriousEvent, Stage, TimeoutEvent,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Rate};
use brakelight_registry::{AnyController, ControllerConfig, ControllerFactory, DynController};

/// What is wrong with a mutant.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Fault {
    // Of New Reno.
    IgnoresLoss,
    IgnoresLossBelowTenPercent,
    NeverLeavesSlowStart,
    FavorsShortRtts,
    GrowsWhenLimited,
    IgnoresCe,
    IgnoresTimeouts,
    /// A window of 2000 packets, whatever happens.
    FixedLargeWindow,
    /// At most so many packets.
    Capped(u64),
    /// At least so many packets.
    Floor(u64),
    FleesFromDelay,
    ReactsLate,
    StopsGrowing,
    PacesTooSlowly,
    Panics,
    PanicsAtTimeouts,
    PanicsAtCe,
    /// So many times the additive increase.
    GrowsTimes(u32),
    /// So many flows in one: so many times the increase, and as much less of a decrease.
    ActsLikeMany(u32),
    ReactsToEveryTenthLoss,
    ReactsOncePerSecond,
    TiresOfLosses,
    NeverGrowsAgain,
    NoSlowStart,
    SilentAfterLoss,
    ProbesEightfold,
    BurstsAfterIdle,
    KeepsHighest,
    ConstantRate,
    TakesLongRttsForTimeouts,
    CollapsesAtCe,
    Yields,
    KeepsItsShare,
    CollapsesAtLoss,
    KeepsWindowWhenIdle,
    BeginsWith(u64),
    // Of BBR.
    NoPacing,
    EndlessProbeRtt,
    PacesTooFast,
}

impl Fault {
    fn is_of_bbr(self) -> bool {
        matches!(self, Fault::NoPacing | Fault::EndlessProbeRtt | Fault::PacesTooFast)
    }
}

/// A controller with a fault.
#[derive(Clone, Debug)]
struct Mutant {
    fault: Fault,
    inner: AnyController,
    mss: Bytes,
    started: Option<Time>,
    /// Bytes delivered and lost, as of the last ACK.
    delivered: Bytes,
    lost: Bytes,
    /// When a loss is acted upon.
    due: Option<LossEvent>,
    /// What slow start added that New Reno does not know of.
    extra: Bytes,
    /// The round trip in which a delay was last taken for a loss.
    fled: Option<u64>,
    /// Losses until now, and when the last one was acted upon.
    losses: u32,
    reacted: Option<Time>,
    /// The largest window until now.
    highest: Bytes,
    /// Until when the window is something else.
    until: Time,
    /// Whether the RTT is far above its smallest.
    late: bool,
    stuck: bool,
}

impl Mutant {
    fn new(fault: Fault, connection: &Connection) -> Self {
        let many = format!("{:.3}", if let Fault::ActsLikeMany(flows) = fault { many(flows) } else { 0.5 });
        let options: &[(&str, &str)] = match fault {
            Fault::IgnoresCe | Fault::PanicsAtCe | Fault::CollapsesAtCe => &[("ecn", "true")],
            Fault::ActsLikeMany(_) => &[("beta", &many)],
            _ => &[],
        };
        let name = if fault.is_of_bbr() { "bbr3" } else { "newreno" };
        Mutant {
            fault,
            inner: ControllerConfig::new(name, options).unwrap().build(connection),
            mss: connection.mss,
            started: None,
            delivered: Bytes(0),
            lost: Bytes(0),
            due: None,
            extra: Bytes(0),
            fled: None,
            losses: 0,
            reacted: None,
            highest: Bytes(0),
            until: Time::ZERO,
            late: false,
            stuck: false,
        }
    }

    fn packets(&self, packets: u64) -> Bytes {
        Bytes(packets * self.mss.0)
    }

    /// Grows by `event` as if so many times as much had been acknowledged.
    fn grow(&mut self, event: &AckEvent<'_>, times: f64) {
        self.inner.on_ack(&AckEvent { growth: Bytes((event.growth.as_f64() * times) as u64), ..*event });
    }

    /// Whether New Reno is in slow start.
    fn starts(&self) -> bool {
        self.inner.ssthresh().is_none_or(|ssthresh| self.inner.cwnd() < ssthresh)
    }

    /// A loss, as New Reno hears of it, at `event`.
    fn loss_at(event: &AckEvent<'_>) -> LossEvent {
        LossEvent {
            now: event.now,
            sent_at: event.now,
            inflight: event.inflight_before,
            lost: Bytes(0),
            srtt: event.rtt.smoothed,
            min_rtt: event.rtt.min,
        }
    }

    /// Takes the RTT of `event` for a loss if it is longer than `longest`, once in a round trip.
    fn flee(&mut self, event: &AckEvent<'_>, longest: f64) {
        let late = event.rtt.sample.is_some_and(|sample| sample.as_secs_f64() > longest);
        if late && self.fled != Some(event.round) && !event.in_recovery() {
            self.fled = Some(event.round);
            self.inner.on_loss(&Mutant::loss_at(event));
        }
        self.inner.on_ack(event);
    }
}

/// What is left of the window of so many flows when one of them halves its own.
fn many(flows: u32) -> f64 {
    1.0 - 0.5 / f64::from(flows)
}

impl Controller for Mutant {
    fn on_send(&mut self, event: &SendEvent) -> SendDirective {
        self.inner.on_send(event)
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        let started = *self.started.get_or_insert(event.now);
        let age = event.now.since(started);
        (self.delivered, self.lost) = (event.delivered, event.total_lost);
        if let Some(due) = self.due.filter(|due| event.now.since(due.now) > Duration::from_secs(2)) {
            self.due = None;
            self.inner.on_loss(&LossEvent { now: event.now, ..due });
        }
        match self.fault {
            Fault::FavorsShortRtts => {
                let rtts = 0.1 / event.rtt.smoothed.as_secs_f64().max(0.001);
                self.grow(event, (rtts * rtts).min(100.0));
            }
            Fault::GrowsTimes(times) | Fault::ActsLikeMany(times) if !self.starts() => {
                self.grow(event, f64::from(times));
            }
            Fault::NeverLeavesSlowStart if !event.in_recovery() && event.cwnd_limited => {
                self.extra = Bytes(self.extra.0 + event.growth.0);
            }
            Fault::GrowsWhenLimited => self.inner.on_ack(&AckEvent { cwnd_limited: true, ..*event }),
            Fault::StopsGrowing if age > Duration::from_secs(5) => {}
            Fault::NeverGrowsAgain if self.losses > 0 => {}
            Fault::NoSlowStart if self.losses == 0 => {
                // As if the threshold had been reached: a packet per round trip.
                let share = self.mss.as_f64() / self.cwnd().as_f64();
                self.extra = Bytes(self.extra.0 + (event.growth.as_f64() * share) as u64);
            }
            Fault::FleesFromDelay => self.flee(event, 1.1 * event.rtt.min.as_secs_f64()),
            Fault::TakesLongRttsForTimeouts => self.flee(event, 0.3),
            Fault::Yields => {
                let smoothed = event.rtt.smoothed.as_secs_f64();
                self.late = smoothed > 1.2 * event.rtt.min.as_secs_f64();
                self.inner.on_ack(event);
            }
            Fault::ProbesEightfold => {
                self.inner.on_ack(event);
                if event.now > self.until + Duration::from_secs(2) {
                    self.until = event.now + event.rtt.smoothed;
                }
                self.late = event.now < self.until;
            }
            Fault::EndlessProbeRtt => {
                self.inner.on_ack(event);
                self.stuck |= self.inner.stage().is_some_and(|stage| stage.name() == "probe_rtt");
            }
            _ => self.inner.on_ack(event),
        }
        if event.now >= self.until && self.fault == Fault::SilentAfterLoss {
            self.late = false;
        }
        self.highest = self.highest.max(self.inner.cwnd());
    }

    fn on_loss(&mut self, event: &LossEvent) {
        self.losses += 1;
        let age = self.started.map_or(Duration::ZERO, |started| event.now.since(started));
        match self.fault {
            Fault::IgnoresLoss | Fault::ConstantRate => {}
            Fault::IgnoresLossBelowTenPercent if self.lost.0 * 9 < self.delivered.0 => {}
            Fault::ReactsToEveryTenthLoss if !self.losses.is_multiple_of(10) => {}
            Fault::ReactsOncePerSecond => {
                if self.reacted.is_none_or(|at| event.now.since(at) > Duration::from_secs(1)) {
                    self.reacted = Some(event.now);
                    self.inner.on_loss(event);
                }
            }
            Fault::TiresOfLosses if age > Duration::from_secs(5) => {}
            Fault::ReactsLate => {
                self.due.get_or_insert(*event);
            }
            Fault::Panics => panic!("a window of nothing"),
            Fault::NeverLeavesSlowStart => self.extra = Bytes(self.extra.0 / 2),
            Fault::SilentAfterLoss => {
                self.inner.on_loss(event);
                (self.until, self.late) = (event.now + Duration::from_secs(3), true);
            }
            Fault::CollapsesAtLoss => {
                self.inner.on_loss(event);
                self.inner.cap_cwnd(self.mss);
            }
            _ => self.inner.on_loss(event),
        }
    }

    fn on_ce(&mut self, event: &LossEvent) {
        match self.fault {
            Fault::IgnoresCe => {}
            Fault::PanicsAtCe => panic!("a mark that nobody expected"),
            Fault::CollapsesAtCe => {
                self.inner.on_ce(event);
                self.inner.on_ce(event);
                self.inner.on_ce(event);
                self.inner.cap_cwnd(self.mss);
            }
            _ => self.inner.on_ce(event),
        }
    }

    fn on_timeout(&mut self, event: &TimeoutEvent) {
        match self.fault {
            Fault::IgnoresTimeouts | Fault::ConstantRate => {}
            Fault::PanicsAtTimeouts => panic!("a time that never comes"),
            _ => self.inner.on_timeout(event),
        }
    }

    fn on_spurious_loss(&mut self, event: &SpuriousEvent) {
        self.inner.on_spurious_loss(event);
    }

    fn on_recovery_exit(&mut self, now: Time) {
        self.inner.on_recovery_exit(now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        match self.fault {
            Fault::KeepsWindowWhenIdle => {}
            Fault::BurstsAfterIdle => self.extra = self.packets(300),
            _ => self.inner.on_idle_restart(event),
        }
    }

    fn cwnd(&self) -> Bytes {
        let own = self.inner.cwnd();
        match self.fault {
            Fault::FixedLargeWindow | Fault::ConstantRate => self.packets(2000),
            Fault::Capped(most) => own.min(self.packets(most)),
            Fault::Floor(least) => own.max(self.packets(least)),
            Fault::KeepsHighest => own.max(Bytes(self.highest.0 / 2)),
            Fault::KeepsItsShare => own.max(Bytes(self.highest.0 / 10 * 9)),
            Fault::SilentAfterLoss | Fault::Yields if self.late => self.packets(1),
            Fault::ProbesEightfold if self.late => Bytes(8 * own.0),
            Fault::NoSlowStart if self.losses == 0 => Bytes(self.packets(2).0 + self.extra.0),
            Fault::BeginsWith(packets) if self.losses == 0 => own.max(self.packets(packets)),
            Fault::EndlessProbeRtt if self.stuck => self.packets(4),
            _ => Bytes(own.0 + self.extra.0),
        }
    }

    fn ssthresh(&self) -> Option<Bytes> {
        if self.fault == Fault::NeverLeavesSlowStart { None } else { self.inner.ssthresh() }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        match self.fault {
            Fault::PacesTooSlowly => Some(Rate::from_mbps(2)),
            Fault::ConstantRate => Some(Rate::from_mbps(20)),
            Fault::NoPacing => None,
            Fault::PacesTooFast => self.inner.pacing_rate().map(|rate| rate.mul_f64(1.5)),
            _ => self.inner.pacing_rate(),
        }
    }

    fn decision(&self) -> Decision {
        Decision { cwnd: self.cwnd(), pacing_rate: self.pacing_rate(), next_timer: self.next_timer() }
    }

    fn recovery(&self) -> Recovery {
        self.inner.recovery()
    }

    fn encoding(&self) -> Encoding {
        self.inner.encoding()
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        self.inner.inspect(visit);
    }

    fn stage(&self) -> Option<Stage> {
        self.inner.stage()
    }
}

impl ControllerFactory for Fault {
    fn build(&self, connection: &Connection) -> Box<dyn DynController> {
        Box::new(Mutant::new(*self, connection))
    }
}
