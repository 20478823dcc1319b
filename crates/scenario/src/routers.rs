//! Controllers that cannot do without routers of their own: XCP, RCP and E-ABC. A path without them is
//! refused before it is run, for nobody would tell such a flow how fast to send.

use brakelight_core::ecn::Encoding;
use brakelight_registry::{ControllerConfig, QUEUES, QueueConfig, Routers};

use crate::scenario::{FlowSpec, Hop, LinkSpec, Scenario};

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

/// What to say of a controller that reads the marks of a router, on a path of these queues of which none
/// makes them: it runs, by losses alone, and shows nothing of what it is. `None` where one does, or where the
/// controller needs no router.
pub fn unmarked<'a>(
    controller: &ControllerConfig,
    encoding: Encoding,
    links: impl IntoIterator<Item = (&'a str, &'a QueueConfig)>,
) -> Option<String> {
    let own = controller.needs().queue?;
    let links: Vec<_> = links.into_iter().collect();
    let first = links.first().map(|(name, _)| *name)?;
    let marks = |queue: &QueueConfig| queue.name() == own || queue.own_encoding() == Some(encoding);
    (!links.iter().any(|(_, queue)| marks(queue))).then(|| {
        let name = controller.name();
        format!(
            "controller `{name}` gets no marks: no queue on its path makes them, so it goes by losses alone; queue = \"{own}\" at link `{first}` is its router"
        )
    })
}

/// Returns what [`unmarked`] says of the flows of a scenario, each controller once.
pub fn unmarked_flows(scenario: &Scenario) -> Vec<String> {
    let mut said = Vec::new();
    for flow in &scenario.flows {
        let links = flow.path.iter().filter_map(|hop| match hop {
            Hop::Link(name) => scenario.link(name).map(|place| &scenario.links[place]),
            Hop::Element(_) => None,
        });
        let queues = links.map(|link| (link.name.as_str(), &*link.queue));
        said.extend(unmarked(&flow.controller, flow.encoding(), queues).filter(|it| !said.contains(it)));
    }
    said
}

/// The flows whose data pass `link` and whose marks its queue [misreads](QueueConfig::misreads).
fn misread_at<'a>(scenario: &'a Scenario, link: &'a LinkSpec) -> impl Iterator<Item = &'a FlowSpec> {
    let passes =
        |flow: &&FlowSpec| flow.path.iter().any(|hop| matches!(hop, Hop::Link(name) if *name == link.name));
    let flows = scenario.flows.iter().filter(|_| link.queue.misreads());
    flows.filter(passes).filter(|flow| link.queue.misreads_flows_of(flow.encoding()))
}

/// Returns whether the queue of `link` misreads what some flow means by its marks.
pub fn misreads(scenario: &Scenario, link: &LinkSpec) -> bool {
    misread_at(scenario, link).next().is_some()
}

/// Returns what to say of the flows of a scenario whose marks are misread, each controller and link once.
pub fn misread_flows(scenario: &Scenario) -> Vec<String> {
    let mut said = Vec::new();
    for link in &scenario.links {
        for flow in misread_at(scenario, link) {
            let (encoding, name) = (flow.encoding(), flow.controller.name());
            let line = format!(
                "marks are misread: controller `{name}` means its ECN field as `{encoding}`, and queue `{}` of link \
                 `{}` does not; such rows show harm, not a scheme",
                link.queue.name(),
                link.name
            );
            if !said.contains(&line) {
                said.push(line);
            }
        }
    }
    said
}

/// What to add to the refusal of a queue that does not speak a flow's encoding, where it can be told to let
/// such flows pass all the same.
pub(crate) fn how_to_misread(queue: &QueueConfig) -> &'static str {
    if queue.settings().iter().any(|(name, _)| *name == "misread") {
        "; `misread=true` on the queue runs them all the same, to show what misread marks do"
    } else {
        ""
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn lacks(controller: &str, queues: &[&str]) -> Option<String> {
        let controller = ControllerConfig::new(controller, &[]).unwrap();
        let queues: Vec<_> = queues.iter().map(|queue| QueueConfig::new(queue, &[]).unwrap()).collect();
        lacking(&controller, queues.iter().map(|queue| ("link", queue)))
    }

    fn marked(controller: &str, encoding: Encoding, queues: &[&str]) -> Option<String> {
        let controller = ControllerConfig::new(controller, &[]).unwrap();
        let queues: Vec<_> = queues.iter().map(|queue| QueueConfig::new(queue, &[]).unwrap()).collect();
        unmarked(&controller, encoding, queues.iter().map(|queue| ("up", queue)))
    }

    #[test]
    fn a_controller_without_its_marks_is_told_with_the_queue_that_makes_them() {
        let said = marked("abc", Encoding::Abc, &["droptail", "codel"]).unwrap();
        assert!(said.contains("queue = \"abc\" at link `up`"), "{said}");
        assert_eq!(marked("abc", Encoding::Abc, &["droptail", "abc"]), None);
        assert_eq!(marked("abc", Encoding::Abc, &["abc_dual"]), None);
        assert_eq!(marked("cubic", Encoding::Classic, &["droptail"]), None);
        assert_eq!(marked("prague", Encoding::L4s, &["dualpi2"]), None);
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
