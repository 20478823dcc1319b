//! The settings of the present network namespace: /proc/sys.

use std::fs;
use std::io;

/// Writes a setting of the present network namespace, `net/ipv4/ip_forward`.
pub(crate) fn set(name: &str, value: &str) -> io::Result<()> {
    write(&format!("/proc/sys/{name}"), value)
}

/// Reads a setting of the present network namespace.
pub(crate) fn get(name: &str) -> io::Result<String> {
    Ok(fs::read_to_string(format!("/proc/sys/{name}"))?.trim().to_string())
}

/// Writes a file of the kernel's, which must not be made where it does not exist.
pub(crate) fn write(path: &str, value: &str) -> io::Result<()> {
    use std::io::Write;
    fs::OpenOptions::new().write(true).open(path)?.write_all(value.as_bytes())
}
