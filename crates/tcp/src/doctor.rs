//! What this kernel can do for ABC, and what to do where it cannot: plain words.

use std::fmt;
use std::fs;
use std::path::PathBuf;

use serde::Serialize;

use crate::error::Error;

/// The result of a check.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Serialize)]
#[serde(rename_all = "lowercase")]
pub enum Verdict {
    /// It is there.
    Yes,
    /// It is missing, and something does not work without it.
    No,
    /// It is missing, and something else takes its place.
    Instead,
    /// It cannot be determined.
    Unknown,
}

/// One check of the machine.
#[derive(Clone, Debug, PartialEq, Eq, Serialize)]
pub struct Check {
    /// What it is.
    pub what: &'static str,
    /// Whether it is there.
    pub verdict: Verdict,
    /// What was seen.
    pub found: String,
    /// What to do, where there is something to do.
    pub advice: Option<String>,
}

impl fmt::Display for Check {
    /// A line, and one more for the advice.
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let verdict = match self.verdict {
            Verdict::Yes => "yes",
            Verdict::No => "NO",
            Verdict::Instead => "instead",
            Verdict::Unknown => "unknown",
        };
        write!(f, "{verdict:<8}  {}: {}", self.what, self.found)?;
        match &self.advice {
            Some(advice) => write!(f, "\n          -> {advice}"),
            None => Ok(()),
        }
    }
}

/// Returns all checks that need no program to be loaded.
pub fn examine() -> Vec<Check> {
    vec![
        build(),
        root(),
        kernel(),
        btf(),
        accecn_counts(),
        accecn_sysctl(),
        bpffs(),
        cgroup(),
        timestamps(),
        ifb(),
    ]
}

fn build() -> Check {
    let yes = crate::BUILT;
    Check {
        what: "this build has the eBPF programs",
        verdict: if yes { Verdict::Yes } else { Verdict::No },
        found: if yes { "feature bpf" } else { "built without the feature bpf" }.into(),
        advice: (!yes).then(|| crate::NOT_BUILT.to_string()),
    }
}

fn root() -> Check {
    let allowed = require_root();
    Check {
        what: "programs may be loaded",
        verdict: if allowed.is_ok() { Verdict::Yes } else { Verdict::No },
        found: if allowed.is_ok() { "root, with CAP_BPF and CAP_NET_ADMIN" } else { "not with these rights" }
            .into(),
        advice: allowed.is_err().then(|| "run it as root".to_string()),
    }
}

/// Returns the major and minor number of the running kernel.
pub fn release() -> Option<(u32, u32)> {
    let text = fs::read_to_string("/proc/sys/kernel/osrelease").ok()?;
    parse_release(&text)
}

fn parse_release(text: &str) -> Option<(u32, u32)> {
    let mut numbers = text.trim().split(|c: char| !c.is_ascii_digit()).map(str::parse::<u32>);
    Some((numbers.next()?.ok()?, numbers.next()?.ok()?))
}

/// cong_control has had its four arguments since 6.10; tcx links are of 6.6, struct_ops links of 6.4.
const CONTROLLERS_SINCE: (u32, u32) = (6, 10);

/// Returns what this kernel's release lacks for controllers, if that is known.
pub fn too_old_for_controllers() -> Option<String> {
    let (major, minor) = release().filter(|release| *release < CONTROLLERS_SINCE)?;
    Some(format!(
        "Linux {major}.{minor} does not take congestion controls as BPF with a cong_control of four arguments, 6.10 and newer \
         do: `brakelight tcp doctor` says what else there is"
    ))
}

fn kernel() -> Check {
    let release = release();
    let enough = release.map(|release| release >= CONTROLLERS_SINCE);
    Check {
        what: "the kernel takes congestion controls as BPF, with cong_control of four arguments",
        verdict: match enough {
            Some(true) => Verdict::Yes,
            Some(false) => Verdict::No,
            None => Verdict::Unknown,
        },
        found: release.map_or_else(|| "unknown release".into(), |(major, minor)| format!("Linux {major}.{minor}")),
        advice: (enough == Some(false)).then(|| {
            "Linux 6.10 or newer is needed at the sender; the router (`router attach`) needs 6.6, and `sch_abc` runs on \
             older ones"
                .to_string()
        }),
    }
}

const BTF: &str = "/sys/kernel/btf/vmlinux";

fn btf() -> Check {
    let size = fs::metadata(BTF).map(|metadata| metadata.len());
    Check {
        what: "the kernel describes its own types (BTF)",
        verdict: if size.is_ok() { Verdict::Yes } else { Verdict::No },
        found: size
            .as_ref()
            .map_or_else(|_| format!("no {BTF}"), |size| format!("{BTF}, {} kB", size / 1000)),
        advice: size
            .is_err()
            .then(|| "a kernel built with CONFIG_DEBUG_INFO_BTF=y; Debian's and Fedora's are".to_string()),
    }
}

/// Returns whether the kernel counts bytes by the mark that came back.
pub fn has_accecn() -> bool {
    btf_names(b"delivered_ecn_bytes\0")
}

/// Whether a name is among the strings of the kernel's BTF.
fn btf_names(name: &[u8]) -> bool {
    fs::read(BTF).is_ok_and(|bytes| bytes.windows(name.len()).any(|window| window == name))
}

fn accecn_counts() -> Check {
    let yes = has_accecn();
    Check {
        what: "TCP has Accurate ECN (RFC 9768) and counts bytes by mark",
        verdict: if yes { Verdict::Yes } else { Verdict::Instead },
        found: if yes { "tcp_sock.delivered_ecn_bytes" } else { "no tcp_sock.delivered_ecn_bytes" }.into(),
        advice: (!yes).then(|| {
            "Linux 6.18 and newer have it; here `tcp load` takes an experimental TCP option instead, so load it at both \
             ends (`--receiver` at the receiver)"
                .to_string()
        }),
    }
}

fn accecn_sysctl() -> Check {
    let value = fs::read_to_string("/proc/sys/net/ipv4/tcp_ecn")
        .ok()
        .and_then(|text| text.trim().parse::<u32>().ok());
    let (verdict, advice) = match value {
        Some(3) => (Verdict::Yes, None),
        Some(4 | 5) => (
            Verdict::Instead,
            Some("this end accepts Accurate ECN, but asks for it only where the controller does; 3 asks always".into()),
        ),
        Some(_) if has_accecn() => (
            Verdict::Instead,
            Some(
                "load our controller (`--receiver` where nothing is sent) and make it the default: \
                 `sysctl net.ipv4.tcp_congestion_control=abc`"
                    .into(),
            ),
        ),
        _ => (Verdict::Instead, Some("the option needs no more than plain ECN (1 or 2)".into())),
    };
    Check {
        what: "TCP asks for and accepts Accurate ECN by itself in this network namespace",
        verdict,
        found: value.map_or_else(|| "no sysctl".into(), |value| format!("net.ipv4.tcp_ecn = {value}")),
        advice,
    }
}

fn bpffs() -> Check {
    bpffs_in(&fs::read_to_string("/proc/mounts").unwrap_or_default())
}

/// Everything but `--pin` works without it.
fn bpffs_in(mounts: &str) -> Check {
    let yes = mounts.lines().any(|line| line.split_whitespace().nth(1) == Some("/sys/fs/bpf"));
    Check {
        what: "programs can stay after the command ends (`--pin`)",
        verdict: if yes { Verdict::Yes } else { Verdict::Instead },
        found: if yes { "a BPF file system at /sys/fs/bpf" } else { "no BPF file system" }.into(),
        advice: (!yes).then(|| {
            "`mount -t bpf bpf /sys/fs/bpf`; without it they stay as long as the command runs".into()
        }),
    }
}

/// Returns where cgroup2 is mounted.
pub fn cgroup2() -> Option<PathBuf> {
    let mounts = fs::read_to_string("/proc/mounts").ok()?;
    mounts.lines().find_map(|line| {
        let words: Vec<&str> = line.split_whitespace().collect();
        (words.get(2) == Some(&"cgroup2")).then(|| PathBuf::from(words[1]))
    })
}

fn cgroup() -> Check {
    let path = cgroup2();
    Check {
        what: "sockets can be given the experimental option (cgroup2)",
        verdict: if path.is_some() { Verdict::Yes } else { Verdict::No },
        found: path.map_or_else(|| "no cgroup2".into(), |path| path.display().to_string()),
        advice: cgroup2()
            .is_none()
            .then(|| "`mount -t cgroup2 none /sys/fs/cgroup`; Accurate ECN does not need it".into()),
    }
}

/// Returns whether TCP timestamps can tick in microseconds.
pub fn has_microsecond_timestamps() -> bool {
    btf_names(b"tcp_usec_ts\0")
}

fn timestamps() -> Check {
    let yes = has_microsecond_timestamps();
    Check {
        what: "TCP timestamps can tick in microseconds, for thresholds of delay control (`wdc`) under 5 ms",
        verdict: if yes { Verdict::Yes } else { Verdict::Instead },
        found: if yes { "tcp_sock.tcp_usec_ts" } else { "milliseconds only" }.into(),
        advice: if yes {
            Some(
                "a route asks for them: `ip route change ... features tcp_usec_ts`; both ends need it".into(),
            )
        } else {
            Some("thresholds from 5 ms upwards work".into())
        },
    }
}

fn ifb() -> Check {
    let loaded = fs::metadata("/sys/module/ifb").is_ok();
    let module = release_text().is_some_and(|release| {
        ["modules.dep", "modules.builtin"].iter().any(|list| {
            fs::read_to_string(format!("/lib/modules/{release}/{list}"))
                .is_ok_and(|text| text.contains("/ifb.ko"))
        })
    });
    let (verdict, found) = match (loaded, module) {
        (true, _) => (Verdict::Yes, "ifb is in the kernel"),
        (false, true) => (Verdict::Yes, "ifb can be loaded"),
        (false, false) => (Verdict::Unknown, "no trace of ifb"),
    };
    Check {
        what: "the router can put its shaper behind an intermediate device (ifb)",
        verdict,
        found: found.into(),
        advice: (verdict == Verdict::Unknown).then(|| {
            "`ip link add bl-probe type ifb && ip link del bl-probe` tells; it needs CONFIG_IFB".into()
        }),
    }
}

fn release_text() -> Option<String> {
    fs::read_to_string("/proc/sys/kernel/osrelease").ok().map(|text| text.trim().to_string())
}

/// CAP_NET_ADMIN is bit 12, CAP_SYS_ADMIN 21, CAP_BPF 39.
pub fn require_root() -> Result<(), Error> {
    let status = fs::read_to_string("/proc/self/status").unwrap_or_default();
    let line = status.lines().find_map(|line| line.strip_prefix("CapEff:"));
    let capabilities = line.and_then(|text| u64::from_str_radix(text.trim(), 16).ok()).unwrap_or_default();
    let has = |bit: u32| capabilities & (1 << bit) != 0;
    if has(12) && (has(39) || has(21)) {
        Ok(())
    } else {
        Err(Error::Input("loading programs into the kernel needs root".into()))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_release_is_read_whatever_follows_it() {
        assert_eq!(parse_release("6.18.44-fc-v669\n"), Some((6, 18)));
        assert_eq!(parse_release("6.1.0-31-amd64"), Some((6, 1)));
        assert_eq!(parse_release("5.10"), Some((5, 10)));
        assert_eq!(parse_release("six"), None);
        assert_eq!(parse_release(""), None);
    }

    #[test]
    fn a_file_system_for_pins_alone_is_no_failure() {
        let check = bpffs_in("proc /proc proc rw 0 0\n");
        assert_eq!(check.verdict, Verdict::Instead);
        assert!(check.advice.is_some_and(|advice| advice.contains("mount -t bpf")));
        assert_eq!(bpffs_in("bpf /sys/fs/bpf bpf rw,mode=700 0 0\n").verdict, Verdict::Yes);
    }

    #[test]
    fn every_check_that_fails_says_what_to_do() {
        for check in examine() {
            let needs = matches!(check.verdict, Verdict::No | Verdict::Unknown | Verdict::Instead);
            assert!(!needs || check.advice.is_some(), "{check:?}");
            assert!(!check.found.is_empty(), "{check:?}");
        }
    }
}
