//! The shaper behind an intermediate device (ifb), made and asked by `ip` and `tc`.

use std::process::Command;

use crate::error::Error;

/// The device that the router makes, and its shaper.
#[derive(Debug)]
pub struct Shaper {
    name: String,
    dual: bool,
    rate_bps: u64,
    /// Whether one of a router that was killed stood in its place.
    pub in_place_of_another: bool,
}

/// The two classes of a shaper for two queues, and what `skb->priority` says to choose them.
pub const CLASSES: [u32; 2] = [0x1_0010, 0x1_0020];

fn run(program: &str, arguments: &[&str]) -> Result<String, Error> {
    let what = || format!("{program} {}", arguments.join(" "));
    let output =
        Command::new(program).args(arguments).output().map_err(|error| Error::kernel(what(), error))?;
    if output.status.success() {
        return Ok(String::from_utf8_lossy(&output.stdout).into_owned());
    }
    Err(Error::kernel(what(), String::from_utf8_lossy(&output.stderr).trim()))
}

impl Shaper {
    /// Returns a shaper of `rate_bps` and a buffer of `limit_bytes`, for each queue, for what comes in by
    /// `device`.
    pub fn make(device: &str, rate_bps: u64, limit_bytes: u64, dual: bool) -> Result<Self, Error> {
        let name = name_of(device);
        let name = name.as_str();
        let in_place_of_another = clear(name)?;
        // One queue: its packets depart one after another.
        let ifb = [
            "link",
            "add",
            "dev",
            name,
            "address",
            ADDRESS,
            "numtxqueues",
            "1",
            "numrxqueues",
            "1",
            "type",
            "ifb",
        ];
        run("ip", &ifb).map_err(|error| match error {
            Error::Kernel { what, why }
                if why.contains("not supported") || why.contains("Unknown device type") =>
            {
                Error::kernel(
                    what,
                    format!("{why}: the kernel has no intermediate devices, `modprobe ifb` may bring them"),
                )
            }
            other => other,
        })?;
        let shaper = Shaper { name: name.to_string(), dual, rate_bps, in_place_of_another };
        run("ip", &["link", "set", "dev", name, "up"])?;
        let rate = format!("{rate_bps}bit");
        // Two milliseconds of the rate, for a timer that is late; two packets at least.
        let burst = (rate_bps / 8 / 500).max(3100).to_string();
        let limit = limit_bytes.to_string();
        if !dual {
            let tbf = ["rate", &rate, "burst", &burst, "limit", &limit];
            run("tc", &[&["qdisc", "replace", "dev", name, "root", "tbf"][..], &tbf].concat())?;
            return Ok(shaper);
        }
        run("tc", &["qdisc", "replace", "dev", name, "root", "handle", "1:", "htb", "default", "20"])?;
        let parent =
            ["class", "replace", "dev", name, "parent", "1:", "classid", "1:1", "htb", "rate", &rate];
        run("tc", &[&parent[..], &["burst", &burst, "cburst", &burst]].concat())?;
        shaper.weigh(0.5)?;
        for class in ["1:10", "1:20"] {
            run("tc", &["qdisc", "replace", "dev", name, "parent", class, "bfifo", "limit", &limit])?;
        }
        Ok(shaper)
    }

    /// Gives ABC's queue that share of the rate. Each queue may use what the other leaves.
    pub fn weigh(&self, share: f64) -> Result<(), Error> {
        let ceiling = format!("{}bit", self.rate_bps);
        for (class, share) in [("1:10", share), ("1:20", 1.0 - share)] {
            let rate = format!("{}bit", ((self.rate_bps as f64 * share) as u64).max(8000));
            let name = self.name.as_str();
            let class =
                ["class", "replace", "dev", name, "parent", "1:1", "classid", class, "htb", "rate", &rate];
            // The quantum decides how a surplus is shared; a packet or two is enough.
            run(
                "tc",
                &[&class[..], &["ceil", &ceiling, "burst", "3100", "cburst", "3100", "quantum", "3000"]]
                    .concat(),
            )?;
        }
        Ok(())
    }

    /// Returns whether it has two queues.
    pub fn is_dual(&self) -> bool {
        self.dual
    }

    /// Returns the device.
    pub fn name(&self) -> &str {
        &self.name
    }
}

impl Drop for Shaper {
    fn drop(&mut self) {
        let _ = run("ip", &["link", "del", "dev", &self.name]);
    }
}

/// Link address of a router's device, by which it is known: "brake", locally administered.
const ADDRESS: &str = "02:62:72:61:6b:65";

/// The device's own name where there is room for it; its beginning and a hash of it otherwise, so that two do
/// not collide.
fn name_of(device: &str) -> String {
    let name = format!("bl-{device}");
    if name.len() < libc::IFNAMSIZ {
        return name;
    }
    // FNV-1a
    let hash =
        device.bytes().fold(0x811c_9dc5_u32, |hash, byte| (hash ^ u32::from(byte)).wrapping_mul(0x0100_0193));
    let beginning: String = device.chars().filter(char::is_ascii).take(3).collect();
    format!("bl-{beginning}-{hash:08x}")
}

/// Removes what a router that was killed left behind, and nothing else. Returns `false` if there was nothing.
fn clear(name: &str) -> Result<bool, Error> {
    let Ok(shown) = run("ip", &["link", "show", "dev", name]) else { return Ok(false) };
    if !shown.contains(ADDRESS) {
        return Err(Error::Input(format!(
            "the router needs the name {name}, which another device has: `ip link set {name} name ...` renames it"
        )));
    }
    run("ip", &["link", "del", "dev", name]).map(|_| true)
}

/// Returns the rate of the shaper that stands on a device: of its tbf, or of its largest htb class.
pub fn rate_of(device: &str) -> Result<u64, Error> {
    let qdiscs = run("tc", &["qdisc", "show", "dev", device])?;
    let classes = run("tc", &["class", "show", "dev", device])?;
    let shapers = qdiscs.lines().filter(|line| line.contains(" tbf ")).chain(classes.lines());
    let rates = shapers.filter_map(|line| {
        let mut words = line.split_whitespace();
        words.find(|word| *word == "rate")?;
        parse_rate(words.next()?)
    });
    rates.max().ok_or_else(|| {
        Error::Input(format!(
            "{device} has neither a tbf nor htb classes: `tc qdisc show dev {device}` shows what it has"
        ))
    })
}

/// What `tc` prints: `12Mbit`, `1500Kbit`, `800bit`.
fn parse_rate(text: &str) -> Option<u64> {
    let digits = text.find(|c: char| !c.is_ascii_digit())?;
    let scale = match &text[digits..] {
        "bit" => 1,
        "Kbit" => 1_000,
        "Mbit" => 1_000_000,
        "Gbit" => 1_000_000_000,
        _ => return None,
    };
    text[..digits].parse::<u64>().ok()?.checked_mul(scale)
}

#[cfg(test)]
mod tests {
    use super::{name_of, parse_rate};

    #[test]
    fn long_names_that_begin_alike_get_devices_of_their_own() {
        assert_eq!(name_of("eth0"), "bl-eth0");
        let [one, other] = ["enx001122334455", "enx001122334456"].map(name_of);
        assert!(one != other && one.len() == 15 && other.len() == 15, "{one} {other}");
    }

    #[test]
    fn rates_are_read_as_tc_prints_them() {
        assert_eq!(parse_rate("12Mbit"), Some(12_000_000));
        assert_eq!(parse_rate("1500Kbit"), Some(1_500_000));
        assert_eq!(parse_rate("800bit"), Some(800));
        assert_eq!(parse_rate("12"), None);
        assert_eq!(parse_rate("fast"), None);
        assert_eq!(parse_rate("99999999999999Gbit"), None);
    }
}
