//! The connections that a controller of ours serves.

use std::io::Read;
use std::mem::MaybeUninit;
use std::net::{IpAddr, SocketAddr};
use std::os::fd::AsFd;

use libbpf_rs::{Iter, MapCore, MapHandle};

use super::objects::connections::ConnectionsSkelBuilder;
use super::objects::connections::types::{controller, feedback, listed};
use super::objects::{self, Plain};
use crate::error::Error;
use crate::settings::{ConnectionStatus, Inside, address};

// SAFETY: the structure consists of integers, and its size is a multiple of eight bytes, of which none are
// between fields.
unsafe impl Plain for listed {}

/// The name of the map in `bpf/connection.h` that holds the connections.
const MAP: &str = "bl_connections";

/// Returns the connections of all loaded controllers in the network namespace of the caller, as `ss` does.
/// `None` if no controller is loaded.
///
/// # Errors
/// If the kernel refuses to list them.
pub fn connections() -> Result<Option<Vec<ConnectionStatus>>, Error> {
    let maps = objects::find_maps(MAP)?;
    if maps.is_empty() {
        return Ok(None);
    }
    let mut connections = Vec::new();
    for map in &maps {
        connections.extend(of_map(map)?.into_iter().map(connection));
    }
    connections.sort_by_key(|connection| (connection.local, connection.remote));
    Ok(Some(connections))
}

fn of_map(map: &MapHandle) -> Result<Vec<listed>, Error> {
    let mut place = MaybeUninit::uninit();
    let mut opened = objects::open("connections", ConnectionsSkelBuilder::default(), &mut place)?;
    // Another version of this program may have loaded its own.
    if opened.maps.bl_connections.value_size() != map.value_size() {
        return Ok(Vec::new());
    }
    objects::share(&mut opened.maps.bl_connections, map.as_fd())?;
    let loaded = objects::load("loading the list of connections", opened)?;
    let link = loaded.progs.bl_list.attach();
    let link = link.map_err(|error| objects::refused("listing connections", &error))?;
    let mut iterator = Iter::new(&link).map_err(|error| objects::refused("listing connections", &error))?;
    let mut bytes = Vec::new();
    iterator.read_to_end(&mut bytes).map_err(|error| Error::kernel("listing connections", error))?;
    Ok(bytes.chunks_exact(size_of::<listed>()).filter_map(objects::read).collect())
}

/// The four words of an address as the kernel keeps them, in network byte order.
fn address_of(words: [u32; 4], family: u32) -> IpAddr {
    let mut bytes = [0; 16];
    for (place, word) in bytes.chunks_exact_mut(4).zip(words) {
        place.copy_from_slice(&word.to_ne_bytes());
    }
    address(bytes, family == libc::AF_INET6 as u32)
}

fn connection(of: listed) -> ConnectionStatus {
    let ms = |us: u32| f64::from(us) / 1e3;
    let [accelerate_bytes, brake_bytes, ce_bytes] = of.marked;
    let is_wdc = of.controller == controller::CONTROLLER_WDC;
    let inside = if is_wdc {
        Inside::Wdc {
            threshold_ms: (of.first > 0).then(|| ms(of.first)),
            owqd_ms: ms(of.second),
            delay_events: of.third,
            bwe_mbps: of.bandwidth as f64 * 8.0 / 1e6,
        }
    } else {
        Inside::Abc {
            w_abc_bytes: of.first,
            w_nonabc_bytes: of.second,
            marks_spoiled: of.third != 0,
            accelerate_bytes,
            brake_bytes,
            ce_bytes,
        }
    };
    ConnectionStatus {
        id: of.id,
        controller: if is_wdc { "wdc" } else { "abc" },
        local: SocketAddr::new(address_of(of.local, of.family), of.local_port),
        remote: SocketAddr::new(address_of(of.remote, of.family), of.remote_port),
        cwnd_pkts: of.snd_cwnd,
        inside,
        mss_bytes: of.mss,
        srtt_ms: ms(of.srtt_us),
        min_rtt_ms: ms(of.min_rtt_us),
        feedback: match of.feedback {
            feedback::FEEDBACK_ACCECN => "accecn",
            feedback::FEEDBACK_OPTION => "option",
            feedback::FEEDBACK_TIMESTAMPS => "timestamps",
            _ => "none",
        },
        acked_bytes: of.acked_bytes,
        losses: of.losses,
        timeouts: of.timeouts,
        ce_episodes: of.ce_episodes,
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn addresses_and_ports_of_both_families_are_read() {
        let word = |bytes: [u8; 4]| u32::from_ne_bytes(bytes);
        let v4 = listed {
            family: libc::AF_INET as u32,
            local: [word([192, 0, 2, 1]), 0, 0, 0],
            local_port: 5001,
            remote: [word([198, 51, 100, 7]), 0, 0, 0],
            remote_port: 443,
            ..listed::default()
        };
        let read = connection(objects::read(objects::bytes_of(&v4)).unwrap());
        assert_eq!(
            (read.local.to_string(), read.remote.to_string()),
            ("192.0.2.1:5001".into(), "198.51.100.7:443".into())
        );
        let v6 = listed {
            family: libc::AF_INET6 as u32,
            local: [word([0x20, 0x01, 0x0d, 0xb8]), 0, 0, word([0, 0, 0, 1])],
            ..listed::default()
        };
        assert_eq!(connection(v6).local.to_string(), "[2001:db8::1]:0");
    }

    #[test]
    fn too_few_bytes_are_no_connection() {
        let bytes = [0; size_of::<listed>() - 1];
        assert!(objects::read::<listed>(&bytes).is_none());
    }
}
