//! Which of our programs are in the kernel, whichever process loaded them.

use libbpf_rs::query::{LinkInfoIter, LinkTypeInfo, MapInfoIter, ProgInfoIter};
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
    /// Connections that they serve.
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
                status.controllers.push(name);
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
