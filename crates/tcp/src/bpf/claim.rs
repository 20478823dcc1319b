//! Which devices have a router.

use std::io;
use std::os::linux::net::SocketAddrExt;
use std::os::unix::net::{SocketAddr, UnixDatagram};

use crate::error::Error;

/// Marks a device as one that has a router, until this is dropped or the process ends, for whatever reason.
///
/// It is an abstract address (unix(7)) with the device's index, which stays when the device gets another
/// name. Each network namespace has its own addresses, as it has its own devices. A process ID would not do:
/// another container of the same network may have the same one. Any user of the namespace may take such an
/// address, and so keep a router away, but not end one.
#[derive(Debug)]
pub(super) struct Claim {
    _socket: UnixDatagram,
}

impl Claim {
    /// Claims `device`, whose index is `index`.
    ///
    /// # Errors
    /// If the device has a router.
    pub(super) fn of(device: &str, index: u32) -> Result<Self, Error> {
        let name = format!("brakelight router of device {index}");
        let socket = SocketAddr::from_abstract_name(&name).and_then(|name| UnixDatagram::bind_addr(&name));
        socket.map(|socket| Claim { _socket: socket }).map_err(|error| match error.kind() {
            io::ErrorKind::AddrInUse => Error::Input(format!(
                "`{device}` already has a router: end that one first, `ss -xap | grep -w '{name}'` shows its process"
            )),
            _ => Error::kernel(format!("claiming {device}"), error),
        })
    }
}
