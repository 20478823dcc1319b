//! The connections that a controller of ours serves, in every network namespace.

use std::io::Read;
use std::net::SocketAddr;
use std::os::fd::AsFd;

use libbpf_rs::{Iter, MapCore, MapHandle};

use super::objects;
use crate::error::Error;
use crate::settings::{Connection, Inside, address};

/// `struct listed` of `bpf/connections.bpf.c`.
const SIZE: usize = 4 + 2 + 2 + 16 + 16 + 14 * 4 + 3 * 8 + 8 + 8 + 8;

/// `CONTROLLER_WDC` of `bpf/connection.h`.
const WDC: u32 = 1;

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
    // Another version of this program may have loaded its own.
    let ours = object.maps().any(|own| own.name() == map.name() && own.value_size() == map.value_size());
    if !ours {
        return Ok(Vec::new());
    }
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
    let (cwnd_pkts, controller) = (fields.u32(), fields.u32());
    let (first, second, third, mss_bytes) = (fields.u32(), fields.u32(), fields.u32(), fields.u32());
    let ms = |us: u32| f64::from(us) / 1e3;
    let (srtt_ms, min_rtt_ms) = (ms(fields.u32()), ms(fields.u32()));
    let feedback = ["none", "accecn", "option", "timestamps"];
    let feedback = feedback.get(fields.u32() as usize).copied().unwrap_or("none");
    let (losses, timeouts, ce_episodes) = (fields.u32(), fields.u32(), fields.u32());
    let _state_and_unused = (fields.u32(), fields.u32());
    let (accelerate_bytes, brake_bytes, ce_bytes) = (fields.u64(), fields.u64(), fields.u64());
    let (acked_bytes, bandwidth, id) = (fields.u64(), fields.u64(), fields.u64());
    let inside = if controller == WDC {
        Inside::Wdc {
            threshold_ms: (first > 0).then(|| ms(first)),
            owqd_ms: ms(second),
            delay_events: third,
            bwe_mbps: bandwidth as f64 * 8.0 / 1e6,
        }
    } else {
        Inside::Abc {
            w_abc_bytes: first,
            w_nonabc_bytes: second,
            marks_spoiled: third != 0,
            accelerate_bytes,
            brake_bytes,
            ce_bytes,
        }
    };
    Connection {
        id,
        controller: if controller == WDC { "wdc" } else { "abc" },
        local,
        remote,
        cwnd_pkts,
        inside,
        mss_bytes,
        srtt_ms,
        min_rtt_ms,
        feedback,
        acked_bytes,
        losses,
        timeouts,
        ce_episodes,
    }
}
