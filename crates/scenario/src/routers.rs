//! Controllers that cannot do without routers of their own: XCP, RCP and E-ABC. A path without them is refused before it
//! is run, for nobody would tell such a flow how fast to send.

use brakelight_core::registry::{ControllerConfig, QueueConfig};

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

#[cfg(test)]
mod tests {
    use super::*;

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
