//! Controllers that cannot do without routers of their own: XCP, RCP and E-ABC. A path without them is
//! refused before it is run, for nobody would tell such a flow how fast to send.

use brakelight_core::registry::{ControllerConfig, QUEUES, QueueConfig, Routers};

/// What `controller` lacks on a path of these links, given by name and queue; `None` where it lacks nothing.
pub(crate) fn lacking<'a>(
    controller: &ControllerConfig,
    links: impl IntoIterator<Item = (&'a str, &'a QueueConfig)>,
) -> Option<String> {
    let needs = controller.needs();
    let header = needs.reads.filter(|_| needs.routers != Routers::Any)?;
    let serves = |queue: &QueueConfig| queue.traits().writes == Some(header);
    let in_words = || {
        let names = QUEUES.iter().map(|entry| entry.name);
        let serving = names.filter(|name| QueueConfig::new(name, &[]).is_ok_and(|queue| serves(&queue)));
        // Its own may be from outside.
        let own = needs.queue.filter(|name| QUEUES.iter().all(|entry| entry.name != *name));
        serving.chain(own).map(|name| format!("`{name}`")).collect::<Vec<_>>().join(" or ")
    };
    let name = controller.name();
    let mut served = false;
    for (link, queue) in links {
        served |= serves(queue);
        if needs.routers == Routers::Every && !serves(queue) {
            return Some(format!(
                "controller `{name}` obeys its routers alone, and the queue of link `{link}` is `{}`: give every link of \
                 its path queue {}",
                queue.name(),
                in_words()
            ));
        }
    }
    (!served).then(|| {
        format!(
            "controller `{name}` meets no router of its own: give at least one link of its path queue {}",
            in_words()
        )
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
