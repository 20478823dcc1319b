//! Controllers that cannot do without routers of their own: XCP, RCP and E-ABC. A path without them is refused before it
//! is run, for nobody would tell such a flow how fast to send.

use brakelight_core::controller::{Connection, Controller as _};
use brakelight_core::ecn::Encoding;
use brakelight_core::random::Random;
use brakelight_core::registry::{CONTROLLERS, ControllerConfig, QueueConfig};
use brakelight_core::time::Time;
use brakelight_core::units::Bytes;

/// What a kind of controller needs of the routers on its path.
struct Need {
    /// The queue these controllers bring with them.
    brought: &'static [&'static str],
    /// Whether every link must have one of those, or one link is enough.
    everywhere: bool,
}

/// XCP answers losses as TCP does, so links of other kinds may be on its path (katabi02 3.3). RCP's and E-ABC's sender obeys
/// routers alone.
const NEEDS: &[Need] = &[
    Need { brought: &["xcp", "xcpw"], everywhere: false },
    Need { brought: &["rcp", "eabc"], everywhere: true },
];

/// What `controller` lacks on a path of these links, given by name and queue; `None` where it lacks nothing.
pub(crate) fn lacking<'a>(
    controller: &ControllerConfig,
    links: impl IntoIterator<Item = (&'a str, &'a QueueConfig)>,
) -> Option<String> {
    let queue = controller.companions().queue?;
    let need = NEEDS.iter().find(|need| need.brought.contains(&queue))?;
    let spelled = need.brought.iter().map(|queue| format!("`{queue}`")).collect::<Vec<_>>().join(" or ");
    let name = controller.name();
    let mut served = false;
    for (link, queue) in links {
        let serves = need.brought.contains(&queue.name());
        served |= serves;
        if need.everywhere && !serves {
            return Some(format!(
                "controller `{name}` obeys its routers alone, and the queue of link `{link}` is `{}`: give every link of \
                 its path queue {spelled}",
                queue.name()
            ));
        }
    }
    (!served).then(|| {
        format!("controller `{name}` meets no router of its own: give at least one link of its path queue {spelled}")
    })
}

/// Whether `queue` says what it has to say in a congestion header of its own, which no real packet has room for.
pub fn writes_header(queue: &QueueConfig) -> bool {
    CONTROLLERS.iter().any(|entry| {
        let controller = ControllerConfig::new(entry.name, &[]).expect("defaults are valid");
        let connection = Connection {
            mss: Bytes(1448),
            overhead: Bytes(52),
            initial_window: Bytes(14_480),
            now: Time::ZERO,
            random: Random::stream(0, entry.name),
        };
        controller.companions().queue == Some(queue.name())
            && controller.build(&connection).encoding() == Encoding::Explicit
    })
}

#[cfg(test)]
mod tests {
    use super::*;
    use brakelight_core::registry::QUEUES;

    #[test]
    fn queues_that_need_a_header_are_told_from_those_that_need_two_bits_or_none() {
        let writing: Vec<&str> = QUEUES
            .iter()
            .filter(|entry| writes_header(&QueueConfig::new(entry.name, &[]).unwrap()))
            .map(|entry| entry.name)
            .collect();
        assert_eq!(writing, ["eabc", "rcp", "xcp", "xcpw", "mlcp", "vcp"]);
    }

    fn lacks(controller: &str, queues: &[&str]) -> Option<String> {
        let controller = ControllerConfig::new(controller, &[]).unwrap();
        let queues: Vec<_> = queues.iter().map(|queue| QueueConfig::new(queue, &[]).unwrap()).collect();
        lacking(&controller, queues.iter().map(|queue| ("link", queue)))
    }

    #[test]
    fn xcp_needs_one_router_of_its_own_and_rate_based_senders_nothing_else() {
        for fine in [["xcp", "droptail"], ["droptail", "xcpw"], ["xcpw", "xcp"]] {
            assert_eq!(lacks("xcp", &fine), None);
            assert_eq!(lacks("xcpw", &fine), None);
        }
        assert_eq!(lacks("rcp", &["rcp", "rcp"]), None);
        assert_eq!(lacks("e-abc", &["eabc"]), None);
        for controller in ["xcp", "xcpw", "rcp", "e-abc"] {
            let reason = lacks(controller, &["droptail", "abc"]).unwrap();
            assert!(reason.contains(controller), "{reason}");
        }
        let reason = lacks("rcp", &["rcp", "droptail"]).unwrap();
        assert!(reason.contains("the queue of link `link` is `droptail`"), "{reason}");
        for other in ["newreno", "abc"] {
            assert_eq!(lacks(other, &["droptail"]), None);
        }
    }
}
