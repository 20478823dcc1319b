//! The connections that a controller of ours serves, in every network namespace.

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use libbpf_rs::{Iter, MapHandle};

use super::objects;
use crate::error::Error;
use crate::settings::{Connection, address};

/// `struct listed` of `bpf/connections.bpf.c`.
const SIZE: usize = 4 + 2 + 2 + 16 + 16 + 12 * 4 + 3 * 8 + 8 + 8;

/// Those there are; none where no controller is loaded.
///
/// # Errors
/// If the kernel does not let them be listed.
pub fn connections() -> Result<Option<Vec<Connection>>, Error> {
    let maps = objects::find_maps("bl_connections")?;
    if maps.is_empty() {
        return Ok(None);
    }
    let mut connections = Vec::new();
    for map in &maps {
        connections.extend(of_map(map)?);
    }
    connections.sort_by_key(|connection| (connection.local, connection.remote));
    Ok(Some(connections))
}

fn of_map(map: &MapHandle) -> Result<Vec<Connection>, Error> {
    let mut object = objects::open("connections", objects::CONNECTIONS, &[])?;
    let fd = map.as_fd().try_clone_to_owned().map_err(|error| Error::kernel("sharing a map", error))?;
    objects::share(&mut object, &[("bl_connections".into(), fd)])?;
    let object = objects::load("loading the list of connections", object)?;
    let link = objects::program(&object, "bl_list")?
        .attach_iter(map.as_fd())
        .map_err(|error| objects::refused("listing connections", &error))?;
    let mut iterator = Iter::new(&link).map_err(|error| objects::refused("listing connections", &error))?;
    let mut bytes = Vec::new();
    iterator.read_to_end(&mut bytes).map_err(|error| Error::kernel("listing connections", error))?;
    Ok(bytes.chunks_exact(SIZE).map(read).collect())
}

/// Reads the fields one after another.
struct Fields<'a>(&'a [u8]);

impl Fields<'_> {
    fn take<const N: usize>(&mut self) -> [u8; N] {
        let (head, rest) = self.0.split_at(N);
        self.0 = rest;
        let mut field = [0; N];
        field.copy_from_slice(head);
        field
    }

    fn u16(&mut self) -> u16 {
        u16::from_ne_bytes(self.take())
    }

    fn u32(&mut self) -> u32 {
        u32::from_ne_bytes(self.take())
    }

    fn u64(&mut self) -> u64 {
        u64::from_ne_bytes(self.take())
    }
}

fn read(bytes: &[u8]) -> Connection {
    let mut fields = Fields(bytes);
    // AF_INET6
    let ipv6 = fields.u32() == 10;
    let ports = [fields.u16(), fields.u16()];
    let local = SocketAddr::new(address(fields.take(), ipv6), ports[0]);
    let remote = SocketAddr::new(address(fields.take(), ipv6), ports[1]);
    let cwnd_pkts = fields.u32();
    let (w_abc_bytes, w_nonabc_bytes, mss_bytes) = (fields.u32(), fields.u32(), fields.u32());
    let (srtt_ms, min_rtt_ms) = (f64::from(fields.u32()) / 1e3, f64::from(fields.u32()) / 1e3);
    let feedback = ["none", "accecn", "option"].get(fields.u32() as usize).copied().unwrap_or("none");
    let marks_spoiled = fields.u32() != 0;
    let (losses, timeouts, ce_episodes, _state) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let (accelerate_bytes, brake_bytes, ce_bytes) = (fields.u64(), fields.u64(), fields.u64());
    let (acked_bytes, id) = (fields.u64(), fields.u64());
    Connection {
        id,
        local,
        remote,
        cwnd_pkts,
        w_abc_bytes,
        w_nonabc_bytes,
        mss_bytes,
        srtt_ms,
        min_rtt_ms,
        feedback,
        marks_spoiled,
        accelerate_bytes,
        brake_bytes,
        ce_bytes,
        acked_bytes,
        losses,
        timeouts,
        ce_episodes,
    }
}
