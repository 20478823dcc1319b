//! BMCC, Binary Marking Congestion Control (Qazi, Andrew and Znati, `bmcc`): a load factor known to 16 bits,
//! gathered from single bits of many packets, decides how far the window grows and how far it falls.
//!
//! ```text
//! f^ < eta:        w(t + T) = w(t) (1 + kappa_2 (1 - f^) / f^)^(T / t_p)                 bmcc eq.2, 3
//! eta <= f^ < 1:   w(t + T) = w(t) + alpha,  alpha = (T / t_p)^2                     bmcc eq.4
//! f^ >= 1:         w(t+)    = w(t) beta(f^), once per `hold`                         bmcc eq.5
//!                  beta(f)  = beta_max - (beta_max - beta_min) (f - 1) / (u - 1)     bmcc eq.6
//!
//! a new flow starts at f^ = eta_0 and stays with the first law until f^ first reaches 1
//!                                                                                    bmcc II-C, III-a, III-d
//! ```
//!
//! | symbol | field | unit | default | source |
//! |---|---|---|---|---|
//! | t_p | `interval` | s | 200 ms | bmcc table I |
//! | kappa_2 | `kappa` | 1 | 0.35 | bmcc table I |
//! | eta_0, eta, u | `eta_0`, `eta`, `u` | 1 | 0.15, 0.75, 1.2 | bmcc table I, II-D |
//! | beta_max, beta_min | `beta_max`, `beta_min` | 1 | 0.875, 0.65 | bmcc table I |
//! | - | `growth_most` | 1 | 4 | open-questions#X-38 |
//! | - | `hold` | max(T, t_p), T + t_p, or the sum for T < t_p | max(T, t_p) | open-questions#X-37 |
//!
//! # Variants
//!
//! `coexist` (bmcc VI): 11 is the mark of an AQM. The window falls when it is echoed and only then, by
//! beta(f^); at f^ >= 1 without it the window grows as in medium load. So TCP and BMCC fall together and BMCC
//! by less.
//!
//! `increase=power` (bmcc VII): one law for all loads below 1, from growth in proportion to the window at
//! none to additive growth at 1. The paper says "proportional to w^(1-f)"; read as a rate in packets per t_p,
//! and with alpha at f^ = 1:
//!
//! ```text
//! y = w t_p / T;   y(t + t_p) = y(t) + y(t)^(1 - f^)    so    w(t + T) = w(t) + (T / t_p)^2 y^(1 - f^)
//! ```
//!
//! # Deviations
//!
//! - D1. Equations 2 to 5 change the window once per T. Increases are spread over the ACKs of a window; a
//!   decrease happens at once, and not again within max(T, t_p), or T + t_p with `hold=sum`, in which the
//!   router measures what it did and the sender hears of it (open-questions#X-37).
//! - D2. The exponent T / t_p makes 2.98^10 of a round trip of 2 s. No round trip grows a window by more than
//!   `growth_most` (open-questions#X-38).
//! - D3. f^ = 1 is overload, as in II-C3; II-C says f > 1 (open-questions#X-36).
//! - D4. Losses halve, timeouts leave one packet: Reno's, of which the paper says nothing
//!   (open-questions#X-57).
//! - D5. `fallback`: a path whose bottleneck does not mark must be met as TCP would. The heuristics of bmcc's
//!   reference 42 are not described (open-questions#X-71). Here a loss is taken for that of a bottleneck that
//!   does not mark if f^ is below eta and has been for 50 t_p, or if the flow is new and f^ still eta_0. From
//!   then on the window grows by one packet per T, until f^ reaches eta, which only a router that marks
//!   can report, or, for a new flow, until f^ leaves eta_0.
//! - D6. A CE mark counts as f^ = u, with `coexist` as f^ >= 1, even if the option that says so is lost.
//! - D7. `pacing` spreads a window over its round trip; the paper says nothing of pacing, so it is off.
//!   Beside data of the other direction ACKs come in bursts, and at a window of thousands of packets the
//!   bursts of one interval look like overload and the gap of the next like low load (see the page).

use brakelight_core::controller::{
    AckEvent, Connection, Controller, IdleEvent, LossEvent, ReceiverReport, Recovery,
};
use brakelight_core::ecn::Encoding;
use brakelight_core::time::Time;
use brakelight_core::units::Rate;
use brakelight_estimates::adpm::Layout;

use super::load::{Law, LoadWindow, law_parameters, window_methods};

choices! {
    /// How the window grows below a load of 1.
    pub enum Increase {
        /// By a factor at low load, by packets at medium load.
        Modes = "modes",
        /// In proportion to w^(1-f).
        Power = "power",
    }
}

law_parameters! {
    /// BMCC's settings.
    pub struct Config {
        eta = 0.75 from "bmcc table I";
        /// How the window grows below a load of 1.
        increase: Increase = Increase::Modes, in .., from "bmcc II-C; VII";
        /// Whether a new flow stays with the law of low load until the load first reaches 1.
        new_flow: bool = true, in .., from "bmcc III-d";
        /// Whether 11 is the mark of an AQM, and not overload.
        coexist: bool = false, in .., from "bmcc VI";
        /// Windows per round trip at which packets are paced, 0 for none.
        pacing: f64 = 0.0, in 0.0..=100.0, from "not in bmcc";
        /// Whether the window grows as TCP Reno's after a loss that the load did not announce.
        fallback: bool = true, in .., from "bmcc VI, which does not say how";
    }
}

/// For how many intervals t_p a load of eta or more is evidence that the bottleneck marks. A halved window is
/// back at eta after a few.
const EVIDENCE: u64 = 50;

/// BMCC's window.
#[derive(Clone, Debug)]
pub struct Bmcc {
    law: Law,
    layout: Layout,
    eta: f64,
    increase: Increase,
    coexist: bool,
    fallback: bool,
    pacing: f64,
    window: LoadWindow,
    /// f^ as the receiver last said it.
    load: f64,
    /// Whether f^ has never reached 1.
    new: bool,
    /// When f^ was last at or above eta.
    busy: Option<Time>,
    /// Whether the bottleneck seems not to mark.
    reno: bool,
    /// ACKs, ACKs with an option, and options that said something new.
    acks: u64,
    options: u64,
    changes: u64,
    /// Decreases by load, and the sums of f^ and of beta over them.
    cuts: u64,
    overload_sum: f64,
    beta_sum: f64,
}

impl Bmcc {
    /// Returns a controller at the start of its connection.
    pub fn new(config: Config, connection: &Connection) -> Self {
        Bmcc {
            law: config.law(),
            layout: Layout { eta_0: config.eta_0, eta: config.eta, u: config.u, bits: 16 },
            eta: config.eta,
            increase: config.increase,
            coexist: config.coexist,
            fallback: config.fallback,
            pacing: config.pacing,
            window: LoadWindow::new(connection),
            load: config.eta_0,
            new: config.new_flow,
            busy: None,
            reno: false,
            acks: 0,
            options: 0,
            changes: 0,
            cuts: 0,
            overload_sum: 0.0,
            beta_sum: 0.0,
        }
    }

    fn hear(&mut self, now: Time, load: f64) {
        if load >= 1.0 {
            self.new = false;
        }
        // A load that stays is said again ever more seldom: it was there until now.
        if load >= self.eta || self.load >= self.eta {
            self.busy = Some(now);
        }
        if load >= self.eta || self.new && load > self.lowest() {
            self.reno = false;
        }
        self.load = load;
    }

    /// What the receiver says of a path that has not marked.
    fn lowest(&self) -> f64 {
        self.layout.from_option(self.layout.to_option(self.layout.eta_0))
    }

    /// Whether a loss now says that the bottleneck does not mark (D5).
    fn is_unannounced(&self, now: Time) -> bool {
        let marks = self.busy.is_some_and(|busy| now.since(busy) <= self.law.interval * EVIDENCE);
        !marks && (self.load <= self.lowest() || !self.new && self.load < self.eta)
    }

    /// Falls, unless it fell lately.
    fn decrease(&mut self, now: Time) {
        if let Some(beta) = self.window.fall(now, &self.law, self.load) {
            self.cuts += 1;
            self.overload_sum += self.load;
            self.beta_sum += beta;
        }
    }

    fn grow(&mut self, event: &AckEvent<'_>) {
        if self.reno {
            // bmcc VI: as SACK
            self.window.add(event, 1.0);
        } else if self.increase == Increase::Power && self.load < 1.0 {
            // bmcc VII
            let rtts = self.window.rtts_of(self.law.interval);
            let w_pkts = self.window.packets();
            let gained_pkts = rtts * rtts * libm::pow((w_pkts / rtts).max(1.0), 1.0 - self.load);
            self.window.add(event, gained_pkts.min((self.law.most - 1.0) * w_pkts));
        } else {
            let low = self.load < 1.0 && (self.new || self.load < self.eta);
            self.window.grow(event, &self.law, self.load, low);
        }
    }
}

impl Controller for Bmcc {
    fn decides_on_send(&self) -> bool {
        false
    }

    fn reads_acked(&self) -> bool {
        false
    }

    fn on_ack(&mut self, event: &AckEvent<'_>) {
        self.window.hear(event);
        self.acks += u64::from(event.newest.is_some());
        if let ReceiverReport::LoadFactor(option) = event.report {
            let load = self.layout.from_option(option);
            self.options += 1;
            self.changes += u64::from(load != self.load);
            self.hear(event.now, load);
        }
        if self.load >= 1.0 && !self.coexist {
            if !event.in_recovery() {
                self.decrease(event.now);
            }
        } else {
            self.grow(event);
        }
    }

    fn on_loss(&mut self, event: &LossEvent) {
        // open-questions#X-71
        self.reno |= self.fallback && self.is_unannounced(event.now);
        self.window.on_loss();
        self.window.hold(event.now, &self.law);
    }

    fn on_ce(&mut self, event: &LossEvent) {
        self.hear(event.now, if self.coexist { self.load.max(1.0) } else { self.layout.u });
        self.decrease(event.now);
    }

    fn on_idle_restart(&mut self, event: &IdleEvent) {
        self.window.on_idle_restart(event);
        // open-questions#X-52
        self.load = self.layout.eta_0;
    }

    /// The window after a mark holds: no host lowers it step by step.
    fn recovery(&self) -> Recovery {
        if self.load >= 1.0 || self.coexist { Recovery::Own } else { Recovery::Prr }
    }

    fn pacing_rate(&self) -> Option<Rate> {
        self.window.pacing_rate(self.pacing)
    }

    window_methods!();

    fn encoding(&self) -> Encoding {
        Encoding::Bmcc
    }

    fn inspect(&self, visit: &mut dyn FnMut(&'static str, f64)) {
        visit("load_factor", self.load);
        visit("acks", self.acks as f64);
        visit("options", self.options as f64);
        visit("changes", self.changes as f64);
        let cuts = self.cuts.max(1) as f64;
        visit("cuts", self.cuts as f64);
        visit("overload_mean", self.overload_sum / cuts);
        visit("beta_mean", self.beta_sum / cuts);
        visit("window_pkts", self.window.packets());
        visit("reno", f64::from(u8::from(self.reno)));
    }
}

#[cfg(test)]
mod tests;
