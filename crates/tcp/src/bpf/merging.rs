//! Generic receive offload of a device: it merges packets, and what is merged has one ECN field for all.
//!
//! It is a setting of the device, on no link of ours: a process that is killed leaves it off. A file in
//! [`RECORDS`] therefore says that it was on. The next router on the device finds the file and switches
//! offload on again at its end. A restart of the machine forgets both.

use std::fs;
use std::os::fd::AsRawFd;
use std::os::unix::fs::{DirBuilderExt, MetadataExt};
use std::path::{Path, PathBuf};

use crate::error::Error;

/// include/uapi/linux/ethtool.h: `ETHTOOL_GGRO`, `ETHTOOL_SGRO`
const GET: u32 = 0x2b;
const SET: u32 = 0x2c;

/// Where files say what has been switched off: on no disk, and root's alone.
const RECORDS: &str = "/run/brakelight";

/// `struct ethtool_value`
#[repr(C)]
struct Value {
    command: u32,
    data: u32,
}

/// A device whose generic receive offload is switched off until this is dropped.
#[derive(Debug)]
pub struct Merging {
    device: String,
    /// What says that it was on before; none if it was off.
    record: Option<PathBuf>,
    /// Whether a router that was killed had left it off.
    pub left_off: bool,
}

impl Merging {
    /// Switches it off. Fails if the device is not there, or if what it was before cannot be recorded.
    pub fn off(device: &str) -> Result<Self, Error> {
        let merges = ask(device, GET, 0)? != 0;
        let record = record(device)?;
        if merges {
            let failed = |error| Error::kernel(format!("writing {}", record.display()), error);
            fs::write(&record, format!("generic receive offload of {device} was on\n")).map_err(failed)?;
            ask(device, SET, 0)?;
        }
        let left_off = !merges && record.exists();
        let record = (merges || left_off).then_some(record);
        Ok(Merging { device: device.to_string(), record, left_off })
    }
}

/// The file that says that offload of `device` was on. Devices of the same name in other network namespaces,
/// and later ones of the same name, have files of their own.
fn record(device: &str) -> Result<PathBuf, Error> {
    let folder = Path::new(RECORDS);
    let made = fs::DirBuilder::new().recursive(true).mode(0o700).create(folder);
    made.map_err(|error| Error::kernel(format!("making {RECORDS}"), error))?;
    let namespace = fs::metadata("/proc/thread-self/ns/net");
    let namespace = namespace.map_err(|error| Error::kernel("naming the network namespace", error))?.ino();
    let name =
        std::ffi::CString::new(device).map_err(|error| Error::Input(format!("`{device}`: {error}")))?;
    // SAFETY: the name is a string that ends in zero and lives through the call.
    let index = unsafe { libc::if_nametoindex(name.as_ptr()) };
    Ok(folder.join(format!("merging-{namespace}-{index}")))
}

impl Drop for Merging {
    fn drop(&mut self) {
        if let Some(record) = &self.record
            && ask(&self.device, SET, 1).is_ok()
        {
            let _ = fs::remove_file(record);
        }
    }
}

fn ask(device: &str, command: u32, data: u32) -> Result<u32, Error> {
    let what = || format!("generic receive offload of {device}");
    let failed = |error: std::io::Error| Error::kernel(what(), error);
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| std::net::UdpSocket::bind("[::]:0"));
    let socket = socket.map_err(failed)?;
    let mut value = Value { command, data };
    // SAFETY: a structure of plain numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(device.bytes()).take(libc::IFNAMSIZ - 1) {
        *place = byte.cast_signed();
    }
    request.ifr_ifru.ifru_data = (&raw mut value).cast();
    // SAFETY: the request and the value it points to live through the call, and the kernel writes no more
    // than them.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCETHTOOL, &raw mut request) } != 0 {
        return Err(failed(std::io::Error::last_os_error()));
    }
    Ok(value.data)
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn who_comes_after_one_that_was_killed_leaves_the_device_as_it_first_was() {
        // A network of this thread's own, where the device is nobody else's.
        // SAFETY: it takes no memory; it changes this thread alone.
        if unsafe { libc::unshare(libc::CLONE_NEWNET) } != 0 {
            brakelight_testkit::skip("network: merging", "no network namespace can be made");
            return;
        }
        let merges = || ask("lo", GET, 0).unwrap() != 0;
        assert!(merges(), "a new device merges");
        // As SIGKILL leaves it.
        std::mem::forget(Merging::off("lo").unwrap());
        assert!(!merges());
        drop(Merging::off("lo").unwrap());
        assert!(merges(), "what the killed one had changed stays changed");
        // What its owner switched off stays off.
        ask("lo", SET, 0).unwrap();
        drop(Merging::off("lo").unwrap());
        assert!(!merges());
    }
}
