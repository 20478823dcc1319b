//! The qdisc as data for people and programs: names of classes, one document for a qdisc, and what happened
//! between two looks at its counts.

use std::time::Duration;

use serde::Serialize;

use super::{Buffer, Counts, Qdisc, ROOT};
use crate::settings::Variant;

/// Reads `1:10`, both numbers hexadecimal as `tc` has them. The device itself, [`ROOT`], is no class.
pub fn class(text: &str) -> Result<u32, String> {
    let parse = || {
        let (major, minor) = text.split_once(':')?;
        let part = |digits: &str| u16::from_str_radix(digits, 16).ok().filter(|_| !digits.starts_with('+'));
        let class = u32::from(part(major)?) << 16 | u32::from(part(minor)?);
        (class >> 16 != 0 && class != ROOT).then_some(class)
    };
    parse()
        .ok_or_else(|| format!("`{text}` is no class: valid is MAJOR:MINOR in hexadecimal, such as `1:10`"))
}

/// Returns the name of a class as `tc` has it, `root` for the device itself.
pub fn class_name(class: u32) -> String {
    if class == ROOT { "root".to_string() } else { format!("{:x}:{:x}", class >> 16, class & 0xffff) }
}

/// A qdisc as JSON has it: times in milliseconds, rates in bit/s.
#[derive(Serialize)]
pub(super) struct Document {
    device: String,
    handle: String,
    parent: String,
    settings: Settings,
    counts: Counts,
}

#[derive(Serialize)]
struct Settings {
    rate_bps: Option<u64>,
    shape: bool,
    buffer_packets: Option<u32>,
    buffer_bytes: Option<u32>,
    variant: Variant,
    #[serde(skip_serializing_if = "Option::is_none")]
    target_ms: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    delta_ms: Option<f64>,
    window_ms: f64,
    #[serde(skip_serializing_if = "Option::is_none")]
    eta: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    token_limit: Option<f64>,
    #[serde(skip_serializing_if = "Option::is_none")]
    encoding: Option<&'static str>,
    #[serde(skip_serializing_if = "Option::is_none")]
    x: Option<&'static str>,
}

impl From<Qdisc> for Document {
    fn from(qdisc: Qdisc) -> Self {
        let s = qdisc.settings;
        let (buffer_packets, buffer_bytes) = match s.buffer {
            Buffer::Packets(packets) => (Some(packets), None),
            Buffer::Bytes(bytes) => (None, Some(bytes)),
        };
        let ms = |time: Duration| time.as_secs_f64() * 1e3;
        let (paper, l4s) = (s.variant == Variant::Paper, s.variant == Variant::L4s);
        let settings = Settings {
            rate_bps: s.rate_bps,
            shape: s.shape,
            buffer_packets,
            buffer_bytes,
            variant: s.variant,
            target_ms: paper.then(|| ms(s.target)),
            delta_ms: paper.then(|| ms(s.delta)),
            window_ms: ms(s.window),
            eta: (!l4s).then_some(s.eta),
            token_limit: (!l4s).then_some(s.token_limit),
            encoding: (!l4s).then_some(if s.proxied { "proxied" } else { "abc" }),
            x: paper.then_some(if s.sojourn { "sojourn" } else { "backlog" }),
        };
        let (handle, parent) = (class_name(qdisc.handle), class_name(qdisc.parent));
        Document { device: qdisc.device, handle, parent, settings, counts: qdisc.counts }
    }
}

/// What a qdisc did between two looks.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct Activity {
    /// What left, in Mbit/s.
    pub throughput_mbps: f64,
    /// The mean time that what left had waited, in milliseconds.
    pub sojourn_ms: f64,
    /// Shares of the ABC packets that left: accelerates, brakes, CE. From 0 to 1.
    pub marks: [f64; 3],
    /// Packets dropped.
    pub drops: u64,
}

impl Counts {
    /// Returns what happened in the `interval` since `before`. A qdisc that was put there anew in between has
    /// counted less, which shows as nothing.
    pub fn since(&self, before: &Counts, interval: Duration) -> Activity {
        let since = |count: fn(&Counts) -> u64| count(self).saturating_sub(count(before));
        let packets = since(|c| u64::from(c.packets)).max(1) as f64;
        let marks = [since(|c| c.accelerates), since(|c| c.turned + c.brakes), since(|c| c.ce)];
        let marked = marks.iter().sum::<u64>().max(1) as f64;
        Activity {
            throughput_mbps: since(|c| c.bytes) as f64 * 8.0 / interval.as_secs_f64() / 1e6,
            sojourn_ms: since(|c| c.sojourn_sum_us) as f64 / packets / 1e3,
            marks: marks.map(|count| count as f64 / marked),
            drops: since(|c| u64::from(c.drops)),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn classes_are_read_as_tc_has_them() {
        for (text, expected) in [("1:10", 0x1_0010), ("ffff:1", 0xffff_0001)] {
            assert_eq!(class(text), Ok(expected));
            assert_eq!(class_name(expected), text);
        }
        assert_eq!(
            class("1:"),
            Err("`1:` is no class: valid is MAJOR:MINOR in hexadecimal, such as `1:10`".into())
        );
        for text in ["", "root", "0:1", "1:10000", "+1:1", "1:1:1", "ffff:ffff"] {
            assert!(class(text).is_err(), "{text}");
        }
        assert_eq!(class_name(ROOT), "root");
    }

    #[test]
    fn two_looks_tell_what_happened_between() {
        let before = Counts { bytes: 1_000, packets: 10, accelerates: 5, ..Counts::default() };
        let now = Counts {
            bytes: 2_501_000,
            packets: 20,
            accelerates: 11,
            turned: 2,
            brakes: 1,
            ce: 1,
            drops: 3,
            sojourn_sum_us: 50_000,
            ..Counts::default()
        };
        let activity = now.since(&before, Duration::from_secs(2));
        assert_eq!(
            activity,
            Activity { throughput_mbps: 10.0, sojourn_ms: 5.0, marks: [0.6, 0.3, 0.1], drops: 3 }
        );
        let anew = before.since(&now, Duration::from_secs(1));
        assert_eq!((anew.throughput_mbps, anew.marks, anew.drops), (0.0, [0.0; 3], 0));
    }
}
