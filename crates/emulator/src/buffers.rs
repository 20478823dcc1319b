//! The socket buffers of TCP on both sides, so that the path limits a flow and not the host's window.
//!
//! A flow needs a window of the path's bandwidth-delay product and of what its queue holds, and Linux offers
//! less than half of a receive buffer as window, since the rest is for the bookkeeping of packets
//! (Documentation/networking/ip-sysctl.rst, `tcp_adv_win_scale` and `tcp_rmem`). A machine's own limits, 4
//! MB for the sender and 6 MB for the receiver on most, hold a flow to 159 Mbit/s on a path of 720 Mbit/s and
//! 160 ms, whatever its congestion control is. The limits of a network namespace are its own, so raising them
//! there changes nothing outside.

use std::io;

use brakelight_core::time::{Duration, Time};
use brakelight_core::units::{Bytes, Limit};
use brakelight_links::elements::ElementConfig;
use brakelight_scenario::scenario::Service;

use crate::spec::{Bottleneck, DirectionSpec};
use crate::sysctl::{get, set};

/// Buffers for each byte that a flow may have under way: twice for bookkeeping, and twice again since
/// senders in slow start have up to two windows under way.
const FACTOR: u64 = 4;
/// The RTT that is assumed at least: path elements and hosts add to the delay lines.
const MIN_RTT: Duration = Duration::from_millis(100);
/// The rate of a radio, which depends on more than its settings: that of today's fastest access points.
const RADIO_BYTES_PER_SECOND: u64 = 125_000_000;
/// The most that the kernel takes (an `int`), in whole pages.
const MAX: u64 = (i32::MAX as u64) & !4095;
/// The size of a packet in a buffer that counts packets, bytes.
const PACKET: u64 = 1504;

/// The sysctls: their third number is the limit.
const SYSCTLS: [&str; 2] = ["net/ipv4/tcp_rmem", "net/ipv4/tcp_wmem"];

/// Returns the limit that a flow over both directions needs, or `None` where no link limits its rate.
pub(crate) fn needed(up: &DirectionSpec, down: &DirectionSpec) -> Option<Bytes> {
    let recorded = longest_recorded(up) + longest_recorded(down);
    let elements = of_elements(up) + of_elements(down);
    let rtt = (up.delay + down.delay + elements + recorded).max(MIN_RTT);
    let held = |direction: &DirectionSpec| direction.link.as_ref().map(|link| under_way(link, rtt));
    let most = held(up).max(held(down))?;
    Some(Bytes(most.saturating_mul(FACTOR).min(MAX).next_multiple_of(4096)))
}

/// The bytes of a full pipe and a full queue.
fn under_way(link: &Bottleneck, rtt: Duration) -> u64 {
    let spec = link.spec();
    let per_second = match (&spec.service, link.trace()) {
        (Service::Fixed(rate), _) => rate.bytes_in(Duration::from_secs(1)).0,
        (Service::Steps(steps), _) => {
            steps.steps.iter().map(|(_, rate)| rate.bytes_in(Duration::from_secs(1)).0).max().unwrap_or(0)
        }
        (_, Some(trace)) => {
            let seconds = trace.period().as_nanos().div_ceil(1_000_000_000);
            let start = |second: u64| Time::ZERO + Duration::from_secs(second);
            let carried = |second| trace.count_between(start(second), start(second + 1)) * PACKET;
            (0..seconds).map(carried).max().unwrap_or(0)
        }
        _ => RADIO_BYTES_PER_SECOND,
    };
    let queue = match spec.buffer {
        Limit::Packets(packets) => u64::from(packets) * PACKET,
        Limit::Bytes(bytes) => bytes.0,
    };
    let pipe = u128::from(per_second) * u128::from(rtt.as_nanos()) / 1_000_000_000;
    u64::try_from(pipe).unwrap_or(u64::MAX).saturating_add(queue)
}

/// The longest delay of a direction's elements that delay by a plan. What others add is little beside
/// [`FACTOR`].
fn of_elements(direction: &DirectionSpec) -> Duration {
    let delay = |element: &ElementConfig| match element {
        ElementConfig::Delay(config) => config.delay,
        ElementConfig::DelaySteps(config) => config.delays.0.iter().copied().max().unwrap_or(Duration::ZERO),
        _ => Duration::ZERO,
    };
    direction.elements.iter().map(delay).fold(Duration::ZERO, |sum, delay| sum + delay)
}

/// The longest delay that is replayed to a direction's packets.
fn longest_recorded(direction: &DirectionSpec) -> Duration {
    let delays = direction.recorded_conditions().map(|conditions| conditions.delays());
    delays.unwrap_or(&[]).iter().map(|(_, delay)| *delay).max().unwrap_or(Duration::ZERO)
}

/// Raises the limits of the current network namespace to `needed` where they are lower. Returns what to tell
/// the user, or nothing where all were high enough.
pub(crate) fn raise(needed: Bytes) -> Option<String> {
    let mut raised = Vec::new();
    for name in SYSCTLS {
        let dotted = name.replace('/', ".");
        match raise_one(name, needed) {
            Ok(None) => {}
            Ok(Some(before)) => raised.push(format!("{dotted} (here {before})")),
            Err(error) => {
                return Some(format!(
                    "{dotted} cannot be raised to {} bytes in the namespaces: {error}; a flow may be limited by its window, \
                     not by the path",
                    needed.0
                ));
            }
        }
    }
    (!raised.is_empty()).then(|| {
        format!(
            "socket buffers of up to {} bytes in the namespaces, which this path may need: {}; --keep-sysctls leaves them",
            needed.0,
            raised.join(", ")
        )
    })
}

/// Returns the limit as it was, if it was raised.
fn raise_one(name: &str, needed: Bytes) -> io::Result<Option<u64>> {
    let text = get(name)?;
    let malformed = || io::Error::other(format!("{name} holds `{text}` in the place of three numbers"));
    let numbers: Vec<u64> =
        text.split_whitespace().map(str::parse).collect::<Result<_, _>>().map_err(|_| malformed())?;
    let [least, first, most] = numbers[..] else { return Err(malformed()) };
    if most >= needed.0 {
        return Ok(None);
    }
    set(name, &format!("{least} {first} {}", needed.0))?;
    Ok(Some(most))
}

#[cfg(test)]
mod tests {
    use brakelight_scenario::trace::names::Names;

    use super::*;

    fn direction(service: Option<&str>, buffer: Limit, delay: Duration) -> DirectionSpec {
        let names = Names::default();
        let link = service.map(|text| Bottleneck::parse("up", text, "droptail", buffer, &names).unwrap());
        DirectionSpec { link, delay, ..DirectionSpec::open("up", 1) }
    }

    #[test]
    fn a_path_needs_four_times_its_bandwidth_delay_product_and_its_buffer() {
        let ms80 = Duration::from_millis(80);
        let up = direction(Some("720Mbps"), Limit::Bytes(Bytes(600_000)), ms80);
        let down = direction(Some("8Mbps"), Limit::Packets(250), ms80);
        // 90 MB/s for 160 ms are 14.4 MB, and 0.6 MB in the queue.
        assert_eq!(needed(&up, &down), Some(Bytes(60_000_000_u64.next_multiple_of(4096))));
        assert_eq!(needed(&down, &up), needed(&up, &down));
    }

    #[test]
    fn a_trace_counts_by_its_busiest_second_and_a_short_path_by_a_tenth_of_one() {
        let up = direction(Some("1s:1Mbps,1s:80Mbps"), Limit::Bytes(Bytes(0)), Duration::ZERO);
        let down = direction(None, Limit::Packets(250), Duration::ZERO);
        assert_eq!(needed(&up, &down), Some(Bytes(4_000_000_u64.next_multiple_of(4096))));
        let names = Names::default();
        let link = Bottleneck::parse("up", "step", "droptail", Limit::Bytes(Bytes(1)), &names).unwrap();
        let trace = link.trace().unwrap();
        let mean = trace.mean_rate(Bytes(PACKET)).bytes_in(Duration::from_secs(1)).0;
        assert!(under_way(&link, Duration::from_secs(1)) > mean, "its busiest second is above its mean");
    }

    #[test]
    fn delay_by_an_element_counts_as_delay_by_the_line() {
        let line = direction(Some("720Mbps"), Limit::Packets(250), Duration::from_millis(80));
        let mut element = direction(Some("720Mbps"), Limit::Packets(250), Duration::ZERO);
        element.elements = vec![ElementConfig::new("delay", &[("delay", "80ms")]).unwrap()];
        assert_eq!(needed(&element, &element.clone()), needed(&line, &line.clone()));
    }

    #[test]
    fn where_no_link_limits_the_rate_nothing_is_known_to_be_needed() {
        let open = direction(None, Limit::Packets(1), Duration::ZERO);
        assert_eq!(needed(&open, &open.clone()), None);
    }

    #[test]
    fn the_most_that_is_asked_for_is_what_the_kernel_takes() {
        let long = direction(Some("100Gbps"), Limit::Packets(1), Duration::from_secs(10));
        assert_eq!(needed(&long, &long.clone()), Some(Bytes(MAX)));
    }
}
