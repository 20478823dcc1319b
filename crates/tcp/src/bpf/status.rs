//! Which of our programs are in the kernel, whichever process loaded them.

use libbpf_rs::btf::types::{MemberAttr, Struct};
use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter};
use libbpf_rs::{Btf, MapCore as _, MapFlags, MapHandle};
use serde::Serialize;

use super::watch;
use crate::error::Error;
use crate::settings::PINS;

/// Programs of ours by name, and what they do there. The kernel keeps 15 letters of a name.
const PROGRAMS: [(&str, &str); 4] = [
    ("bl_stamp", "marks accelerate on what leaves a device"),
    ("bl_count", "counts marks for the option"),
    ("bl_option", "speaks the option"),
    ("bl_depart", "marks as ABC's router"),
];

/// The loaded programs.
#[derive(Clone, Debug, PartialEq, Eq, Default, Serialize)]
pub struct Status {
    /// Congestion controls of ours that are registered.
    pub controllers: Vec<String>,
    /// Programs that are attached, and what they do.
    pub programs: Vec<String>,
    /// Connections that they serve in this network namespace.
    pub connections: usize,
    /// Pins that keep them.
    pub pins: Vec<String>,
}

/// Looks.
///
/// # Errors
/// If the caller is not root, or the kernel refuses to list connections.
pub fn status() -> Result<Status, Error> {
    crate::doctor::require_root()?;
    let mut status = Status::default();
    let maps: Vec<_> = MapInfoIter::default().collect();
    let programs: Vec<_> = ProgInfoIter::default().collect();
    for link in LinkInfoIter::default() {
        if let LinkTypeInfo::StructOps(info) = &link.info {
            let map = maps.iter().find(|map| map.id == info.map_id);
            let name = map.map(|map| map.name.to_string_lossy().into_owned()).unwrap_or_default();
            if ["abc", "accecn_reno", "wdc"].contains(&name.as_str()) {
                // `--name` may have given it another.
                status.controllers.push(registered_name(info.map_id).unwrap_or(name));
            }
        }
        let program = programs.iter().find(|program| program.id == link.prog_id);
        let name = program.map(|program| program.name.to_string_lossy().into_owned()).unwrap_or_default();
        if let Some((name, purpose)) = PROGRAMS.iter().find(|(ours, _)| *ours == name) {
            let place = match &link.info {
                LinkTypeInfo::Tcx(info) => format!(" (device {})", info.ifindex),
                _ => String::new(),
            };
            status.programs.push(format!("{name}{place}: {purpose}"));
        }
    }
    status.connections = watch::connections()?.map_or(0, |connections| connections.len());
    if let Ok(entries) = std::fs::read_dir(PINS) {
        status.pins = entries.flatten().map(|entry| entry.path().display().to_string()).collect();
        status.pins.sort();
    }
    Ok(status)
}

/// The name under which the kernel knows the congestion control that a map of operations holds: where it lies
/// in the map's value, the kernel's own description of its types says. `None` if that cannot be read.
fn registered_name(map: u32) -> Option<String> {
    let value = MapHandle::from_map_id(map).ok()?.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY).ok()??;
    let btf = Btf::from_vmlinux().ok()?;
    let offset = |structure: &str, member: &str| {
        let structure: Struct<'_> = btf.type_by_name(structure)?;
        let member = structure.iter().find(|found| found.name.is_some_and(|name| name == member))?;
        match member.attr {
            MemberAttr::Normal { offset } => Some(offset as usize / 8),
            MemberAttr::BitField { .. } => None,
        }
    };
    let at = offset("bpf_struct_ops_tcp_congestion_ops", "data")? + offset("tcp_congestion_ops", "name")?;
    let name = value.get(at..)?.split(|&byte| byte == 0).next()?;
    (!name.is_empty()).then(|| String::from_utf8_lossy(name).into_owned())
}
