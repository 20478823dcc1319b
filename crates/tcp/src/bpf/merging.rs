//! Generic receive offload of a device. It merges packets, and merged packets share one ECN field. If the
//! process is killed, the offload stays off: it is a setting of the device and not tied to a BPF link.

use std::os::fd::AsRawFd;

use crate::error::Error;

/// include/uapi/linux/ethtool.h: `ETHTOOL_GGRO`, `ETHTOOL_SGRO`
const GET: u32 = 0x2b;
const SET: u32 = 0x2c;

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
    before: bool,
}

impl Merging {
    /// Switches the offload off.
    pub fn off(device: &str) -> Result<Self, Error> {
        let before = ask(device, GET, 0)? != 0;
        if before {
            ask(device, SET, 0)?;
        }
        Ok(Merging { device: device.to_string(), before })
    }
}

impl Drop for Merging {
    fn drop(&mut self) {
        if self.before {
            let _ = ask(&self.device, SET, 1);
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
            eprintln!("NOT RUN: merging: no network namespace can be made");
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
