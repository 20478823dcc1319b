//! Which controllers can run over QUIC, and where.

use brakelight_core::controller::{Connection, Controller};
use brakelight_core::ecn::Encoding;
use brakelight_core::random::Random;
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;
use brakelight_registry::{CONTROLLERS, Carries, ControllerConfig};
use quinn_proto::{AckFrequencyConfig, VarInt};

/// Who sends the packets.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum PacketSender {
    /// An application of quinn, whose own pacer sends 1.25 windows per smoothed RTT whatever the controller
    /// wants.
    Stack,
    /// Our driver, which lets packets go at the controller's rate and reads the peer's reports.
    Driver,
}

/// Whose routers lie on the path.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Path {
    /// Anybody's: ECT(1) asks for L4S there (RFC 9331), and nothing else may be meant by it.
    Public,
    /// The user's own, who knows what its routers make of ECN.
    Own,
}

/// Why a controller cannot run here.
#[derive(Clone, Debug, PartialEq, Eq, thiserror::Error)]
pub enum Unsupported {
    /// It decides a rate, which a quinn application cannot honour.
    #[error(
        "controller: `{name}` sends at a rate of its own, and quinn paces by its window: valid in a quinn application are {valid}; `perf` and `run --host quinn` run `{name}` too"
    )]
    Rate {
        /// The controller.
        name: &'static str,
        /// Those that work.
        valid: String,
    },
    /// It lives in a host that others wrote.
    #[error("controller: `{name}` runs in its own host, which only the simulator has: valid are {valid}")]
    Hosted {
        /// The controller.
        name: &'static str,
        /// Those that work.
        valid: String,
    },
    /// It needs a congestion header in every packet.
    #[error(
        "controller: `{name}` needs a header that routers write to, which QUIC's packets do not have: valid are {valid}"
    )]
    Header {
        /// The controller.
        name: &'static str,
        /// Those that work.
        valid: String,
    },
    /// It needs what only its own receiver knows.
    #[error(
        "controller: `{name}` needs {what}, which a QUIC receiver does not send{hint}: valid are {valid}"
    )]
    Feedback {
        /// The controller.
        name: &'static str,
        /// What it needs.
        what: &'static str,
        /// Where it would work.
        hint: &'static str,
        /// Those that work.
        valid: String,
    },
    /// It gives the ECN field a meaning of its own.
    #[error(
        "controller: `{name}` writes ECN codepoints that mean something else to routers of others (ECT(1) asks for L4S, RFC 9331): say that the path is your own, or take one of {valid}"
    )]
    Marks {
        /// The controller.
        name: &'static str,
        /// Those that work.
        valid: String,
    },
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Need {
    Nothing,
    Rate,
    Header,
    Forecast,
    EachMark,
}

fn need(config: &ControllerConfig) -> Need {
    match config.feedback().carries() {
        Carries::Header => Need::Header,
        Carries::Forecast => Need::Forecast,
        Carries::LoadFactor => Need::EachMark,
        Carries::Nothing | Carries::ReceiveTimes if config.needs().rate => Need::Rate,
        Carries::Nothing | Carries::ReceiveTimes => Need::Nothing,
    }
}

pub(super) fn encoding(config: &ControllerConfig) -> Encoding {
    let mss = Bytes(1200);
    let anywhere = Connection {
        mss,
        overhead: Bytes(28),
        initial_window: Bytes(10 * mss.0),
        now: Time::ZERO,
        random: Random::stream(0, "anywhere"),
    };
    config.build(&anywhere).encoding()
}

fn works(config: &ControllerConfig, packet_sender: PacketSender, path: Path) -> bool {
    let needs = match need(config) {
        Need::Nothing => true,
        Need::Rate | Need::EachMark => packet_sender == PacketSender::Driver,
        Need::Header | Need::Forecast => false,
    };
    if config.hosted().is_some() {
        return false;
    }
    let means_its_own = matches!(encoding(config), Encoding::Abc | Encoding::AbcProxied | Encoding::Bmcc);
    needs && (path == Path::Own || !means_its_own)
}

/// Returns every controller that works at `packet_sender` on `path` with its default settings, by name; not
/// one that is driven from outside, for there nobody drives it.
pub fn valid(packet_sender: PacketSender, path: Path) -> Vec<&'static str> {
    let works = |name: &&'static str| {
        ControllerConfig::new(name, &[])
            .is_ok_and(|config| works(&config, packet_sender, path) && !config.needs().driven)
    };
    CONTROLLERS.iter().map(|entry| entry.name).filter(works).collect()
}

/// Says why `config` cannot run at `packet_sender` on `path`, if it cannot.
pub fn check(config: &ControllerConfig, packet_sender: PacketSender, path: Path) -> Result<(), Unsupported> {
    if works(config, packet_sender, path) {
        return Ok(());
    }
    let name = config.name();
    let valid = valid(packet_sender, path).join(", ");
    if config.hosted().is_some() {
        return Err(Unsupported::Hosted { name, valid });
    }
    let feedback = |what, hint| Unsupported::Feedback { name, what, hint, valid: valid.clone() };
    Err(match need(config) {
        Need::Header => Unsupported::Header { name, valid },
        Need::Forecast => feedback("its receiver's forecast of the link", ""),
        Need::EachMark if packet_sender == PacketSender::Stack => {
            feedback("each packet's mark", " (under `perf` and `run --host quinn` it does)")
        }
        Need::Rate if packet_sender == PacketSender::Stack => Unsupported::Rate { name, valid },
        _ => Unsupported::Marks { name, valid },
    })
}

/// Packets after which a peer is asked to acknowledge, where few ACKs are enough: the first window
/// (RFC 9002 section 7.2), so that an ACK lets no more leave than a connection begins with.
/// quiche's kMaxRetransmittablePacketsBeforeAck has the same.
const SPARSE: u32 = 10;

/// How long it may wait for them: 5 ms, below the round trip of most paths. quiche asks for a quarter of the
/// round trip, and for no less than that.
const SPARSE_DELAY: std::time::Duration = std::time::Duration::from_millis(5);

/// Returns what is asked of a peer that has the extension draft-ietf-quic-ack-frequency, if anything.
///
/// - Where marks count (ABC, BMCC, Prague): an ACK of every other packet. Fewer would lose no mark, but tell
///   of them in larger steps.
/// - Of those that decide by losses (New Reno, Cubic): an ACK of every tenth packet, or after 5 ms. They
///   count bytes, pacing spreads what one ACK lets go, and fewer ACKs cost both ends less.
/// - Of others: nothing. They decide by RTT samples or rates of delivery, and each ACK brings one.
///
/// A sender should have an ACK in each round trip (the draft's section on congestion control): on paths
/// of 5 ms or more it does. Where the network loses or reorders packets the peer acknowledges sooner.
pub fn ack_frequency(config: &ControllerConfig) -> Option<AckFrequencyConfig> {
    let mut asked = AckFrequencyConfig::default();
    if !matches!(encoding(config), Encoding::None | Encoding::Classic) {
        return Some(asked);
    }
    // The threshold is how many may come without an ACK.
    asked.ack_eliciting_threshold(VarInt::from_u32(SPARSE - 1)).max_ack_delay(Some(SPARSE_DELAY));
    config.needs().sparse_acks.then_some(asked)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn each_controller_asks_for_the_acks_that_it_has_a_use_for() {
        let asked = |name: &str| {
            let asked = ack_frequency(&ControllerConfig::new(name, &[]).unwrap())?;
            // The stack shows its settings to nobody but a debugger.
            let text = format!("{asked:?}");
            let threshold = text.split("ack_eliciting_threshold: ").nth(1)?.split(',').next()?;
            Some(threshold.to_string())
        };
        for name in ["abc", "bmcc", "prague"] {
            assert_eq!(asked(name).as_deref(), Some("1"), "{name}");
        }
        for name in ["cubic", "newreno"] {
            assert_eq!(asked(name).as_deref(), Some("9"), "{name}");
        }
        for name in ["westwood", "bbr", "bbr3", "copa", "vegas", "quicdc", "ctcp", "verus", "vivace"] {
            assert_eq!(asked(name), None, "{name}");
        }
    }

    fn refusal(name: &str, options: &[(&str, &str)], packet_sender: PacketSender, path: Path) -> String {
        let config = ControllerConfig::new(name, options).unwrap();
        check(&config, packet_sender, path).unwrap_err().to_string()
    }

    #[test]
    fn an_application_gets_every_window_controller_and_the_driver_those_with_a_rate_as_well() {
        let stack = valid(PacketSender::Stack, Path::Own);
        let driver = valid(PacketSender::Driver, Path::Own);
        for name in ["cubic", "newreno", "abc", "quicdc", "copa", "vegas"] {
            assert!(stack.contains(&name) && driver.contains(&name), "{name}");
        }
        for name in ["bbr", "bbr3", "vivace", "bmcc"] {
            assert!(!stack.contains(&name) && driver.contains(&name), "{name}");
        }
        for name in ["xcp", "rcp", "sprout", "vcp"] {
            assert!(!driver.contains(&name), "{name}");
        }
    }

    #[test]
    fn refusals_name_the_controller_the_reason_and_what_works() {
        let text = refusal("bbr", &[], PacketSender::Stack, Path::Own);
        assert!(text.contains("`bbr` sends at a rate of its own") && text.contains("cubic"), "{text}");
        let text = refusal("xcp", &[], PacketSender::Driver, Path::Own);
        assert!(text.contains("needs a header") && text.contains("quicdc"), "{text}");
        let text = refusal("sprout", &[], PacketSender::Driver, Path::Own);
        assert!(text.contains("forecast"), "{text}");
        let text = refusal("bmcc", &[], PacketSender::Stack, Path::Own);
        assert!(text.contains("each packet's mark"), "{text}");
    }

    #[test]
    fn abc_is_refused_on_a_path_that_is_not_the_users_own() {
        let text = refusal("abc", &[], PacketSender::Driver, Path::Public);
        assert!(text.contains("RFC 9331") && !text.contains("abc,"), "{text}");
        assert!(!valid(PacketSender::Stack, Path::Public).contains(&"abc"));
        assert!(valid(PacketSender::Stack, Path::Public).contains(&"prague"));
    }
}
