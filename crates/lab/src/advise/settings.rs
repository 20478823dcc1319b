//! What to type to have a candidate, on Linux and OpenWrt.

use brakelight_core::facts::Qdisc;
use brakelight_core::units::Rate;
use brakelight_registry::{DEFAULT_CONTROLLER, DEFAULT_QUEUE};
use brakelight_scenario::scheme::Scheme;

use super::{Can, SHAPERS, ShaperRate, Way};

/// Whether a real router can have the queue of `scheme`. A controller that Linux lacks runs over QUIC.
pub(super) fn exists(scheme: &Scheme) -> bool {
    let queue = scheme.queue();
    let has = |qdisc: Qdisc| {
        let lacks = |(option, value): &(String, String)| qdisc.lacks.contains(&(option, value));
        !queue.words().options.iter().any(lacks)
    };
    queue.name() == DEFAULT_QUEUE || queue.traits().on_linux.is_some_and(has)
}

/// The settings of the candidate `name` for one direction of a link of this mean rate, a line each.
pub(super) fn of(name: &str, can: Can, direction: Way, mean: Rate) -> Vec<String> {
    if can == Can::Shaper {
        return shaper(name, direction, mean);
    }
    let Ok(scheme) = Scheme::parse(name) else { return Vec::new() };
    let mut lines = Vec::new();
    if scheme.queue().name() != DEFAULT_QUEUE {
        lines.push(format!("router:  {}", queue(&scheme)));
    }
    if scheme.controller().name() != DEFAULT_CONTROLLER {
        lines.push(format!("senders: {}", controller(&scheme)));
    }
    lines
}

fn controller(scheme: &Scheme) -> String {
    let needs = scheme.controller().needs();
    match (needs.kernel, needs.on_linux) {
        (_, Some(place)) => place.to_string(),
        (Some(kernel), None) => format!("sysctl -w net.ipv4.tcp_congestion_control={}", kernel.name),
        (None, None) => {
            let name = scheme.controller().name();
            format!("not in Linux; over QUIC by brakelight-quic or brakelight-noq, as `{name}`")
        }
    }
}

fn queue(scheme: &Scheme) -> String {
    let Some(qdisc) = scheme.queue().traits().on_linux else { return String::new() };
    let mut line = qdisc.command.to_string();
    for (option, value) in &scheme.queue().words().options {
        let Some((_, theirs)) = qdisc.options.iter().find(|(own, _)| own == option) else { continue };
        line += &match value.as_str() {
            "true" => format!(" {theirs}"),
            "false" => format!(" no{theirs}"),
            value => format!(" {theirs} {value}"),
        };
    }
    line
}

/// The settings of one of [`SHAPERS`]: by `tc`, and of `sqm-scripts` and cake-autorate, as OpenWrt has them.
fn shaper(name: &str, direction: Way, mean: Rate) -> Vec<String> {
    let Some(shaper) = SHAPERS.iter().find(|shaper| shaper.name == name) else { return Vec::new() };
    // A shaper works where its packets leave the router.
    let (word, short, device) = match direction {
        Way::Download => ("download", "dl", "LAN"),
        Way::Upload => ("upload", "ul", "WAN"),
    };
    let kbps = |share: f64| mean.mul_f64(share).bps() / 1_000;
    match shaper.rate {
        ShaperRate::Share(share) => vec![
            format!("tc qdisc replace dev {device} root cake bandwidth {}kbit besteffort", kbps(share)),
            format!(
                "OpenWrt: uci set sqm.@queue[0].{word}={}; uci commit sqm; service sqm restart",
                kbps(share)
            ),
        ],
        ShaperRate::Autorate(shares) => {
            let [min, base, max] = shares.map(kbps);
            let limits = [("min", min), ("base", base), ("max", max)];
            let lines = limits.map(|(limit, kbps)| format!("{limit}_{short}_shaper_rate_kbps={kbps}"));
            vec!["in cake-autorate's config.primary.sh:".to_string(), lines.join(" ")]
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn settings_are_what_linux_understands() {
        let mean = Rate::from_mbps(20);
        let of = |name: &str, can| of(name, can, Way::Upload, mean).join("\n");
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
            "tc qdisc replace dev WAN root cake bandwidth 16000kbit besteffort\n\
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
