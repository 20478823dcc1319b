//! A link between the two ends: two network namespaces, a pair of devices, and a token bucket towards the
//! receiver that lets one packet go at a time.

use std::process::Command;

/// The receiver's address.
pub const RECEIVER: &str = "10.178.0.2";
const SENDER: &str = "10.178.0.1";

/// Exists as long as the value does.
pub struct Link {
    mbps: u64,
    namespaces: [String; 2],
}

fn ip(line: &str) {
    let status = Command::new("ip").args(line.split_whitespace()).status();
    assert!(status.is_ok_and(|status| status.success()), "ip {line}: a namespace needs root");
}

impl Link {
    /// Returns a link of so many Mbit/s.
    pub fn new(mbps: u64) -> Self {
        let namespaces = ["sender", "receiver"].map(|end| format!("cost-{end}-{}", std::process::id()));
        let [from, to] = &namespaces;
        [from, to].into_iter().for_each(|name| ip(&format!("netns add {name}")));
        ip(&format!("link add near netns {from} type veth peer name far netns {to}"));
        for (name, device, address) in [(from, "near", SENDER), (to, "far", RECEIVER)] {
            ip(&format!("-n {name} addr add {address}/24 dev {device}"));
            ip(&format!("-n {name} link set {device} up"));
        }
        // A bucket of two packets: what segmentation offload joined is cut before it.
        let bucket = format!("rate {mbps}mbit burst 3200 limit 1000000");
        ip(&format!("netns exec {from} tc qdisc add dev near root tbf {bucket}"));
        Link { mbps, namespaces }
    }

    /// Returns its rate.
    pub fn mbps(&self) -> u64 {
        self.mbps
    }

    /// Returns the namespace of the sender.
    pub fn sender(&self) -> &str {
        &self.namespaces[0]
    }

    /// Returns the namespace of the receiver.
    pub fn receiver(&self) -> &str {
        &self.namespaces[1]
    }
}

impl Drop for Link {
    fn drop(&mut self) {
        self.namespaces.iter().for_each(|name| ip(&format!("netns del {name}")));
    }
}
