//! What to type to have a candidate, on Linux and OpenWrt.

use brakelight_core::units::Rate;
use brakelight_registry::{DEFAULT_CONTROLLER, DEFAULT_QUEUE};
use brakelight_scenario::scheme::Scheme;

use super::{Can, Direction, SHAPERS};

/// Controllers that Linux has, and what it calls them.
const IN_LINUX: [(&str, &str); 5] =
    [("cubic", "cubic"), ("newreno", "reno"), ("vegas", "vegas"), ("westwood", "westwood"), ("bbr", "bbr")];

/// Controllers that others keep for Linux, and where.
const FOR_LINUX: [(&str, &str); 2] = [
    (
        "bbr3",
        "a kernel from github.com/google/bbr, branch v3, then sysctl -w net.ipv4.tcp_congestion_control=bbr",
    ),
    (
        "prague",
        "a kernel from github.com/L4STeam/linux, then sysctl -w net.ipv4.tcp_congestion_control=prague",
    ),
];

/// Queues that Linux has under the same name, and those of their options that `tc` has under the same name.
const QDISCS: [(&str, &[&str]); 5] = [
    ("codel", &["target", "interval", "ecn"]),
    ("fq_codel", &["target", "interval", "ecn"]),
    ("pie", &["target", "ecn"]),
    ("cake", &[]),
    ("dualpi2", &["target"]),
];

/// Whether a real router can have the queue of `scheme`. A controller that Linux lacks runs over QUIC.
pub(super) fn exists(scheme: &Scheme) -> bool {
    match scheme.queue().name() {
        DEFAULT_QUEUE => true,
        "abc" => variant(scheme).is_none_or(|variant| ["paper", "adaptive"].contains(&variant.as_str())),
        name => QDISCS.iter().any(|(qdisc, _)| *qdisc == name),
    }
}

/// The rule of ABC's router, if it is not the paper's.
fn variant(scheme: &Scheme) -> Option<String> {
    let words = scheme.queue().words();
    words.options.iter().find(|(option, _)| option == "variant").map(|(_, value)| value.clone())
}

/// The settings of the candidate `name` for one direction of a link of this mean rate, a line each.
pub(super) fn of(name: &str, can: Can, direction: Direction, mean: Rate) -> Vec<String> {
    if can == Can::Shaper {
        return shaper(name, direction, mean);
    }
    let Ok(scheme) = Scheme::parse(name) else { return Vec::new() };
    let mut lines = Vec::new();
    if scheme.queue().name() != DEFAULT_QUEUE {
        lines.push(format!("router:  {}", queue(&scheme)));
    }
    if scheme.controller().name() != DEFAULT_CONTROLLER {
        lines.push(format!("senders: {}", controller(scheme.controller().name())));
    }
    lines
}

fn controller(name: &str) -> String {
    let known =
        |table: &[(&str, &'static str)]| table.iter().find(|(own, _)| *own == name).map(|(_, it)| *it);
    if let Some(kernel) = known(&IN_LINUX) {
        format!("sysctl -w net.ipv4.tcp_congestion_control={kernel}")
    } else if let Some(place) = known(&FOR_LINUX) {
        place.to_string()
    } else if name == "abc" {
        "brakelight tcp load, then sysctl -w net.ipv4.tcp_congestion_control=abc".to_string()
    } else {
        format!("not in Linux; over QUIC by brakelight-quic or brakelight-noq, as `{name}`")
    }
}

fn queue(scheme: &Scheme) -> String {
    let words = scheme.queue().words();
    let Some((name, options)) = QDISCS.iter().find(|(name, _)| *name == words.name) else {
        let variant = variant(scheme).map_or_else(String::new, |variant| format!(" --variant {variant}"));
        return format!("brakelight router attach DEV --rate RATE{variant}");
    };
    let mut line = format!("tc qdisc replace dev DEV root {name}");
    for (option, value) in words.options.iter().filter(|(option, _)| options.contains(&option.as_str())) {
        match (option.as_str(), value.as_str()) {
            ("ecn", "true") => line += " ecn",
            ("ecn", _) => line += " noecn",
            (option, value) => line += &format!(" {option} {value}"),
        }
    }
    line
}

/// The settings of one of [`SHAPERS`]: by `tc`, and of `sqm-scripts` and cake-autorate, as OpenWrt has them.
fn shaper(name: &str, direction: Direction, mean: Rate) -> Vec<String> {
    let Some(shaper) = SHAPERS.iter().find(|shaper| shaper.name == name) else { return Vec::new() };
    let (word, short) = match direction {
        Direction::Download => ("download", "dl"),
        Direction::Upload => ("upload", "ul"),
    };
    let kbps = |share: f64| mean.mul_f64(share).bps() / 1_000;
    match shaper.setter.strip_prefix("fixed/share=").and_then(|share| share.parse().ok()) {
        Some(share) => vec![
            format!("tc qdisc replace dev DEV root cake bandwidth {}kbit besteffort", kbps(share)),
            format!(
                "OpenWrt: uci set sqm.@queue[0].{word}={}; uci commit sqm; service sqm restart",
                kbps(share)
            ),
        ],
        None => {
            let rate = |limit: &str, share| format!("{limit}_{short}_shaper_rate_kbps={}", kbps(share));
            let rates = [rate("min", 0.25), rate("base", 1.0), rate("max", 2.0)];
            vec!["in cake-autorate's config.primary.sh:".to_string(), rates.join(" ")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_linux_understands() {
        let mean = Rate::from_mbps(20);
        let of = |name: &str, can| of(name, can, Direction::Upload, mean).join("\n");
        assert_eq!(of("bbr", Can::Senders), "senders: sysctl -w net.ipv4.tcp_congestion_control=bbr");
        assert!(of("copa", Can::Senders).contains("not in Linux"));
        assert_eq!(
            of("cubic+fq_codel:target=20ms,ecn=true", Can::Router),
            "router:  tc qdisc replace dev DEV root fq_codel interval 100ms target 20ms ecn"
        );
        assert!(
            of("abc-adaptive", Can::Both)
                .starts_with("router:  brakelight router attach DEV --rate RATE --variant adaptive")
        );
        assert_eq!(
            of("cake at 80 % of the mean", Can::Shaper),
            "tc qdisc replace dev DEV root cake bandwidth 16000kbit besteffort\n\
             OpenWrt: uci set sqm.@queue[0].upload=16000; uci commit sqm; service sqm restart"
        );
        assert!(of("cake-autorate", Can::Shaper).contains("base_ul_shaper_rate_kbps=20000"));
        assert_eq!(of("cubic", Can::Both), "");
    }

    #[test]
    fn what_no_router_has_is_no_candidate() {
        let exists = |text: &str| exists(&Scheme::parse(text).unwrap());
        assert!(exists("cubic") && exists("copa") && exists("abc-adaptive") && exists("cubic+fq_codel"));
        assert!(!exists("bmcc") && !exists("vcp") && !exists("abc-authors"));
    }
}
