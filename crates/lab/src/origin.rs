//! Where a result comes from.

use std::ffi::OsString;

use brakelight_scenario::documents::Origin;

/// Returns this version on this machine, with neither a command line nor a commit: a program that has them
/// adds them.
pub fn origin(seed: u64) -> Origin {
    let version = env!("CARGO_PKG_VERSION").to_string();
    Origin { version, git: None, command: String::new(), seed, host: host() }
}

/// Returns the command line of `brakelight` with these arguments, as a shell would take it.
pub fn command_line(arguments: &[OsString]) -> String {
    let arguments = arguments.iter().map(|argument| quote(&argument.to_string_lossy()));
    std::iter::once("brakelight".to_string()).chain(arguments).collect::<Vec<_>>().join(" ")
}

fn quote(argument: &str) -> String {
    let plain = |c: char| c.is_alphanumeric() || "-_./:,=+@%".contains(c);
    if !argument.is_empty() && argument.chars().all(plain) {
        argument.to_string()
    } else {
        format!("'{}'", argument.replace('\'', "'\\''"))
    }
}

/// Returns processor, cores and operating system, as far as they can be found out.
pub fn host() -> String {
    let cores = std::thread::available_parallelism().map_or(1, usize::from);
    let plural = if cores == 1 { "" } else { "s" };
    let processor = processor().unwrap_or_else(|| format!("unknown {} processor", std::env::consts::ARCH));
    format!("{processor}, {cores} core{plural}, {}", system())
}

fn processor() -> Option<String> {
    let text = std::fs::read_to_string("/proc/cpuinfo").ok()?;
    let line = text.lines().find(|line| line.starts_with("model name"))?;
    let (_, name) = line.split_once(':')?;
    Some(name.split_whitespace().collect::<Vec<_>>().join(" "))
}

fn system() -> String {
    let release = std::fs::read_to_string("/proc/sys/kernel/osrelease").unwrap_or_default();
    format!("{} {}", std::env::consts::OS, release.trim()).trim().to_string()
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn the_command_line_can_be_pasted_into_a_shell() {
        let arguments = ["compare", "--trace", "my trace's", "--schemes", "abc:delta=133ms,cubic+codel", ""];
        assert_eq!(
            command_line(&arguments.map(OsString::from)),
            "brakelight compare --trace 'my trace'\\''s' --schemes abc:delta=133ms,cubic+codel ''"
        );
    }
}
