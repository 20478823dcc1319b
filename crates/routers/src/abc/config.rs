//! The settings of ABC's router, and which parts its variants differ in.

use alloc::format;

use brakelight_core::ecn::Encoding;
use brakelight_core::parameters::{OrNone, ParameterError};
use brakelight_core::time::Duration;
use brakelight_core::units::Limit;

choices! {
    /// Which description of ABC all parts follow.
    pub enum Variant {
        /// abc20 as printed.
        Paper = "paper",
        /// The authors' router.
        Prototype = "prototype",
        /// A target rate without constants of one link and one round trip.
        Adaptive = "adaptive",
    }
}

choices! {
    /// Which description of ABC the token bucket follows.
    pub enum Marking {
        /// abc20 Algorithm 1.
        Nsdi = "nsdi",
        /// abc17 section 4.
        Hotnets = "hotnets",
        /// The authors' router.
        Prototype = "prototype",
    }
}

choices! {
    /// The rate that eq.2 divides by.
    pub enum Feedback {
        /// What left the queue: cr.
        Dequeue = "dequeue",
        /// What entered it: the comparison of abc20 Fig. 2b.
        Enqueue = "enqueue",
    }
}

choices! {
    /// The rate that eta multiplies in eq.1.
    pub enum EtaOf {
        /// The link's.
        Mu = "mu",
        /// The one eq.2 divides by.
        Cr = "cr",
    }
}

choices! {
    /// What the queueing delay is read from.
    pub enum DelayOf {
        /// The bytes that wait, over mu.
        Backlog = "backlog",
        /// The packets that wait, and the one that leaves, each one opportunity, over mu.
        Packets = "packets",
        /// The time the packet that leaves has waited.
        Sojourn = "sojourn",
        /// The part of that time before the last packet that left at an earlier instant.
        Persistent = "standing",
    }
}

choices! {
    /// When the bucket is cut to its limit.
    pub enum Cap {
        /// Before the packet is tested.
        Before = "before",
        /// After it.
        After = "after",
    }
}

choices! {
    /// What happens to the bucket when the queue ran empty.
    pub enum Idle {
        /// Nothing.
        Keep = "keep",
        /// It is emptied.
        Reset = "reset",
        /// It is given eta / 2 per opportunity not used.
        Credit = "credit",
    }
}

choices! {
    /// What a bucket must hold to let an accelerate through.
    pub enum Test {
        /// More than one token, as printed.
        Above = "above",
        /// One token: a lasting f = 1 never brakes.
        AtLeast = "at-least",
    }
}

choices! {
    /// The ECN encoding of all packets.
    pub enum Codes {
        /// 01 accelerate, 10 brake, 11 congestion.
        Abc = "abc",
        /// 01 and 10 accelerate, 11 brake.
        Proxied = "proxied",
    }
}

parameters! {
    /// The ABC router's settings.
    pub struct Config {
        check consistent;
        /// Share of the link's rate to aim at; none: 0.98, and 1 with variant=adaptive.
        eta: Option<f64> = None, in OrNone(0.1..=1.0), from "abc20 7.2";
        /// Time in which a queue above the target is drained.
        delta: Duration = Duration::from_millis(133), in Duration::from_micros(1)..=Duration::from_secs(100), from "abc20 7.2";
        /// Queueing delay below which nothing is drained (d_t).
        target: Duration = Duration::from_millis(50), in Duration::ZERO..=Duration::from_secs(100), from "abc17 5";
        /// Window over which rates are measured (T).
        window: Duration = Duration::from_millis(20), in Duration::from_micros(1)..=Duration::from_secs(10), from "abc17 5";
        /// The most tokens the bucket holds.
        token_limit: f64 = 5.0, in 1.0..=1e6, from "abc17 5, MAXSPARE";
        /// Whose rules every part below follows unless it is given by itself.
        variant: Variant = Variant::Paper, in .., from "abc20 3.1.2";
        /// Whose rule the token bucket follows; none: the variant's.
        marking: Option<Marking> = None, in .., from "abc20 Algorithm 1";
        /// The rate that the share of accelerates is computed with.
        feedback: Feedback = Feedback::Dequeue, in .., from "abc20 eq.2, Fig. 2";
        /// The rate that eta multiplies; none: the variant's.
        eta_of: Option<EtaOf> = None, in .., from "abc20 eq.1";
        /// What the queueing delay is read from; none: the variant's.
        x: Option<DelayOf> = None, in .., from "abc20 eq.1";
        /// Tokens at the start; none: the marking's.
        token_start: Option<f64> = None, in OrNone(0.0..=1e6), from "abc20 Algorithm 1: 0";
        /// When the bucket is cut to its limit; none: the marking's.
        token_cap: Option<Cap> = None, in .., from "abc20 Algorithm 1: before";
        /// What an empty queue does to the bucket; none: the marking's.
        token_idle: Option<Idle> = None, in .., from "abc20 Algorithm 1: keep";
        /// With token_idle=reset: how long the queue must be empty for an idle period.
        idle_period: Duration = Duration::ZERO, in Duration::ZERO..=Duration::from_secs(10), from "not stated in abc17";
        /// What the bucket must hold.
        token_test: Test = Test::Above, in .., from "abc20 Algorithm 1";
        /// The encoding all packets are read in; none: each as its flow says.
        encoding: Option<Codes> = None, in .., from "abc20 4.2";
        /// PK-ABC: how far ahead the link's rate is taken for the first term, one RTT; none: the present
        /// rate.
        lookahead: Option<Duration> = None, in .., from "abc20 7.3, PK-ABC";
        /// With lookahead: whether the second term has the future rate too, so drains as fast as the link
        /// then could.
        lookahead_drain: bool = false, in .., from "abc20 7.3 does not say";
        /// T_i: time constant of a penalty on the integral of the queueing delay; none: no penalty.
        integral: Option<Duration> = None, in OrNone(Duration::from_millis(10)..=Duration::from_secs(100)), from "abc17 6 (D8)";
        /// Of variant=adaptive: mean errors of the forecast of mu that may wait at a loop delay of 100 ms.
        cushion: f64 = 1.0, in 0.0..=100.0, from "ours";
        /// Of variant=adaptive: the delay from a mark to the packets that it brings; none: estimated.
        loop_delay: Option<Duration> = None, in OrNone(Duration::from_millis(2)..=Duration::from_millis(400)), from "ours";
        /// Whether flows of other encodings may pass, too, and every packet is read by its ECN field alone,
        /// as a router on a real path reads it: to see what misread marks do.
        misread: bool = false, in .., from "ours";
        /// The buffer, drop-tail, in packets or bytes; none takes the link's.
        limit: Option<Limit> = None, in .., from "abc20 7.2: 250 packets";
    }
}

fn consistent(config: &Config) -> Result<(), ParameterError> {
    let refuse = |reason: &str| Err(ParameterError::Conflict { reason: reason.into() });
    if config.token_test == Test::Above && config.token_limit <= 1.0 {
        return refuse("token_limit must exceed 1 with token_test=above: no packet would ever accelerate");
    }
    if config.variant == Variant::Adaptive {
        let given = [
            ("lookahead", config.lookahead.is_some()),
            ("integral", config.integral.is_some()),
            ("eta_of=cr", config.eta_of == Some(EtaOf::Cr)),
            ("x", config.x.is_some()),
        ];
        if let Some((name, _)) = given.iter().find(|(_, given)| *given) {
            return refuse(&format!("{name} is a part of eq.1, which variant=adaptive has not"));
        }
    } else if config.loop_delay.is_some() {
        return refuse("loop_delay needs variant=adaptive: no other variant asks for it");
    }
    if config.lookahead_drain && config.lookahead.is_none() {
        return refuse("lookahead_drain needs lookahead: without it there is no future rate");
    }
    if config.lookahead.is_some() && config.rules().eta_of == EtaOf::Cr {
        return refuse("lookahead replaces mu in the first term of eq.1: it needs eta_of=mu");
    }
    Ok(())
}

/// The parts that the variants differ in, resolved.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Rules {
    pub(super) eta: f64,
    pub(super) eta_of: EtaOf,
    pub(super) x: DelayOf,
    pub(super) start: f64,
    pub(super) cap: Cap,
    pub(super) idle: Idle,
}

impl Config {
    /// Returns the encoding whose marks the router gives; a packet of a flow that says another is read in the
    /// flow's.
    pub fn encoding_of_marks(&self) -> Encoding {
        match self.encoding {
            Some(Codes::Proxied) => Encoding::AbcProxied,
            Some(Codes::Abc) | None => Encoding::Abc,
        }
    }

    /// Returns the encoding that every packet is read in; none where each is read in its flow's.
    pub(super) fn reading(&self) -> Option<Encoding> {
        (self.encoding.is_some() || self.misread).then(|| self.encoding_of_marks())
    }

    pub(super) fn rules(&self) -> Rules {
        let (variant_marking, eta_of, x) = match self.variant {
            Variant::Paper | Variant::Adaptive => (Marking::Nsdi, EtaOf::Mu, DelayOf::Backlog),
            Variant::Prototype => (Marking::Prototype, EtaOf::Cr, DelayOf::Packets),
        };
        let (start, cap, idle) = match self.marking.unwrap_or(variant_marking) {
            Marking::Nsdi => (0.0, Cap::Before, Idle::Keep),
            Marking::Hotnets => (0.0, Cap::After, Idle::Reset),
            Marking::Prototype => (self.token_limit, Cap::After, Idle::Credit),
        };
        let eta = if self.variant == Variant::Adaptive { 1.0 } else { 0.98 };
        Rules {
            eta: self.eta.unwrap_or(eta),
            eta_of: self.eta_of.unwrap_or(eta_of),
            x: self.x.unwrap_or(x),
            start: self.token_start.unwrap_or(start),
            cap: self.token_cap.unwrap_or(cap),
            idle: self.token_idle.unwrap_or(idle),
        }
    }
}
