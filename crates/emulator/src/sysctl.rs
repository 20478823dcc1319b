//! Sysctls of the current network namespace: /proc/sys.

use std::fs;
use std::io;

/// Writes a sysctl of the current network namespace, such as `net/ipv4/ip_forward`.
pub(crate) fn set(name: &str, value: &str) -> io::Result<()> {
    write(&format!("/proc/sys/{name}"), value)
}

/// Reads a sysctl of the current network namespace, without the newline at its end.
pub(crate) fn get(name: &str) -> io::Result<String> {
    Ok(fs::read_to_string(format!("/proc/sys/{name}"))?.trim().to_string())
}

/// Writes a file of the kernel; fails if it does not exist, instead of creating it.
pub(crate) fn write(path: &str, value: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}
