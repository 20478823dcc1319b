//! The endpoints: ABC's controller, stamp, option and receiver shim, or delay control.

use std::os::fd::{AsRawFd, OwnedFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{Link, MapCore, Object, OpenObject};

use super::objects;
use crate::doctor;
use crate::error::Error;
use crate::settings::{Controller, Feedback, LEAST_THRESHOLD_MS, Load, Loaded, PINS, Threshold};

/// Where `name` is in `struct tcp_congestion_ops` of `bpf/kernel.h`, and how long it may be, a NUL included.
const NAME_AT: usize = 6 * 8;
const NAME_SIZE: usize = 16;
/// Where `flags` is in `struct tcp_congestion_ops` of `bpf/kernel.h`: behind six pointers and a name of 16 bytes.
const FLAGS_AT: usize = NAME_AT + NAME_SIZE;
/// `TCP_CONG_NON_RESTRICTED`
const UNRESTRICTED: u32 = 1;
/// `TCP_CONG_NEEDS_ECN`
const NEEDS_ECN: u32 = 2;
/// `TCP_CONG_NEEDS_ACCECN`
const NEEDS_ACCECN: u32 = 4;
/// `FEEDBACK_ACCECN` and `FEEDBACK_OPTION` of `bpf/connection.h`
const ACCECN: u32 = 1;
const OPTION: u32 = 2;

/// What is in the kernel as long as this lives, or as long as its pins do.
#[derive(Debug)]
pub struct Endpoint {
    /// What was done.
    pub loaded: Loaded,
    /// By the names they are pinned under.
    links: Vec<(String, Link)>,
    maps: Vec<(String, OwnedFd)>,
    _objects: Vec<Object>,
}

/// Puts the programs into the kernel.
///
/// # Errors
/// Whatever the kernel refuses, in its own words and ours; nothing is left behind then.
pub fn load(settings: &Load) -> Result<Endpoint, Error> {
    doctor::require_root()?;
    let mut endpoint = match settings.controller {
        Controller::Abc => load_abc(settings)?,
        Controller::Wdc(threshold) => load_wdc(settings, threshold)?,
    };
    if settings.pin {
        endpoint.pin(Path::new(PINS))?;
    }
    Ok(endpoint)
}

fn load_abc(settings: &Load) -> Result<Endpoint, Error> {
    let option = match settings.feedback {
        Feedback::Option => true,
        Feedback::AccEcn => false,
        Feedback::Auto => !doctor::has_accecn(),
    };
    let mut loaded =
        Loaded { feedback: if option { "option" } else { "accecn" }.into(), ..Loaded::default() };
    let controllers: &[&str] = if settings.receiver { &["accecn_reno"] } else { &["abc"] };
    // The option needs no help from the kernel: at a receiver it is all.
    let controllers = if settings.receiver && option { &[] } else { controllers };

    let per_connection = !option && takes_accecn_flag();
    let feedback = if option { OPTION } else { ACCECN };
    let mut object =
        objects::open("abc", objects::ABC, &[feedback, settings.pacing_percent.unwrap_or_default(), 1])?;
    prepare(&mut object, controllers, settings.name.as_deref(), |mut flags| {
        if option || !per_connection {
            flags &= !NEEDS_ACCECN;
        }
        restricted(flags, settings)
    })?;
    let mut object = load_controller(object)?;
    let maps = objects::maps(&object)?;
    let mut links = register(&mut object, controllers, settings, &mut loaded)?;
    if !option && !per_connection {
        loaded.notes.push(
            "this kernel asks for Accurate ECN only by its sysctl: `sysctl net.ipv4.tcp_ecn=3` at both ends"
                .into(),
        );
    }
    let mut kept = vec![object];
    for device in &settings.devices {
        let (object, link) = stamp(device, &maps)?;
        links.push((format!("stamp-{device}"), link));
        kept.push(object);
        loaded.devices.push(device.clone());
    }
    if !settings.receiver && settings.devices.is_empty() {
        loaded.notes.push(
            "no device was named: packets leave as brake, so a window can only shrink; give `--dev` the device towards \
             the router"
                .into(),
        );
    }
    if option {
        let (object, cgroup_links) = option_programs(settings, &maps)?;
        links.extend(cgroup_links);
        kept.push(object);
    }
    Ok(Endpoint { loaded, links, maps, _objects: kept })
}

fn load_wdc(settings: &Load, threshold: Threshold) -> Result<Endpoint, Error> {
    let mut loaded = Loaded { feedback: "timestamps".into(), ..Loaded::default() };
    if let Threshold::Time(time) = threshold
        && time < LEAST_THRESHOLD_MS
    {
        if !doctor::has_microsecond_timestamps() {
            return Err(Error::Input(format!(
                "a threshold of {time:?} is less than timestamps in milliseconds can tell, and this kernel has no \
                 others: at least {LEAST_THRESHOLD_MS:?} are valid"
            )));
        }
        loaded.notes.push(format!(
            "connections whose timestamps tick in milliseconds go by {LEAST_THRESHOLD_MS:?}; for microseconds, at \
             both ends: `ip route change ... features tcp_usec_ts`"
        ));
    }
    let mut object = open_wdc(threshold, settings.pacing_percent)?;
    prepare(&mut object, &["wdc"], settings.name.as_deref(), |flags| restricted(flags, settings))?;
    let mut object = load_controller(object)?;
    let maps = objects::maps(&object)?;
    let links = register(&mut object, &["wdc"], settings, &mut loaded)?;
    Ok(Endpoint { loaded, links, maps, _objects: vec![object] })
}

/// Opens delay control and sets what it reads.
pub(super) fn open_wdc(threshold: Threshold, pacing_percent: Option<u32>) -> Result<OpenObject, Error> {
    let [threshold_us, share_ppm] = match threshold {
        Threshold::Time(time) => [u32::try_from(time.as_micros()).unwrap_or(u32::MAX), 0],
        Threshold::Share(share) => [0, (share * 1e6).round() as u32],
    };
    objects::open("wdc", objects::WDC, &[threshold_us, share_ppm, pacing_percent.unwrap_or(100)])
}

/// A kernel that is too old only says that something was invalid.
fn load_controller(object: OpenObject) -> Result<Object, Error> {
    objects::load("loading the controller", object).map_err(|error| match doctor::too_old_for_controllers() {
        Some(why) => Error::kernel("loading the controller", format!("{why} (the kernel's answer: {error})")),
        None => error,
    })
}

fn restricted(flags: u32, settings: &Load) -> u32 {
    if settings.unrestricted { flags | UNRESTRICTED } else { flags }
}

/// Registers the controllers of a loaded object.
fn register(
    object: &mut Object,
    controllers: &[&str],
    settings: &Load,
    loaded: &mut Loaded,
) -> Result<Vec<(String, Link)>, Error> {
    let mut links = Vec::new();
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if controllers.contains(&name.as_str()) {
            let link = map.attach_struct_ops().map_err(|error| {
                objects::refused(&format!("registering the congestion control {name}"), &error)
            })?;
            loaded.controllers.push(settings.name.clone().unwrap_or_else(|| name.clone()));
            links.push((name, link));
        }
    }
    Ok(links)
}

/// Takes out what was pinned; says whether there was anything.
///
/// # Errors
/// If a pin cannot be removed.
pub fn unload() -> Result<bool, Error> {
    doctor::require_root()?;
    let Ok(entries) = std::fs::read_dir(PINS) else { return Ok(false) };
    for entry in entries.flatten() {
        let path = entry.path();
        std::fs::remove_file(&path)
            .map_err(|error| Error::kernel(format!("removing {}", path.display()), error))?;
    }
    std::fs::remove_dir(PINS).map_err(|error| Error::kernel(format!("removing {PINS}"), error))?;
    Ok(true)
}

impl Endpoint {
    /// Pins all links, or none.
    fn pin(&mut self, pins: &Path) -> Result<(), Error> {
        objects::make_pins(pins)?;
        if let Some((name, _)) = self.links.iter().find(|(name, _)| pins.join(name).exists()) {
            return Err(Error::Input(format!(
                "{} shows that it is loaded already: `brakelight tcp unload` first",
                pins.join(name).display()
            )));
        }
        for index in 0..self.links.len() {
            let (name, link) = &mut self.links[index];
            if let Err(error) = link.pin(pins.join(&*name)) {
                let refused = objects::refused(&format!("pinning {name}"), &error);
                // What stays in the kernel must be whole.
                self.links[..index].iter_mut().for_each(|(_, link)| drop(link.unpin()));
                let _ = std::fs::remove_dir(pins);
                return Err(refused);
            }
        }
        // What watches looks for the maps by name; they live as long as the programs that use them.
        Ok(())
    }

    /// How many maps the programs share.
    pub fn shared_maps(&self) -> usize {
        self.maps.len()
    }
}

/// Whether a controller may ask for Accurate ECN for its own connections.
pub(super) fn takes_accecn_flag() -> bool {
    doctor::has_accecn() && try_flags(NEEDS_ECN | NEEDS_ACCECN).is_ok()
}

/// Registers the shim with those flags for a moment.
fn try_flags(flags: u32) -> Result<(), Error> {
    let mut object = objects::open("probe", objects::ABC, &[])?;
    let name = format!("probe{}", std::process::id());
    prepare(&mut object, &["accecn_reno"], Some(&name), |_| flags)?;
    let mut object = objects::load("probing", object)?;
    let mut map = object
        .maps_mut()
        .find(|map| map.name() == "accecn_reno")
        .ok_or_else(|| Error::kernel("probing", "there is no shim"))?;
    map.attach_struct_ops().map(drop).map_err(|error| objects::refused("probing", &error))
}

/// Leaves out the controllers that are not wanted, and sets flags and name of the others.
fn prepare(
    object: &mut OpenObject,
    wanted: &[&str],
    rename: Option<&str>,
    flags: impl Fn(u32) -> u32,
) -> Result<(), Error> {
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if !["abc", "accecn_reno", "wdc"].contains(&name.as_str()) {
            continue;
        }
        if !wanted.contains(&name.as_str()) {
            map.set_autocreate(false)
                .map_err(|error| objects::refused("leaving out a controller", &error))?;
            continue;
        }
        let value = map.initial_value_mut().and_then(|value| value.get_mut(NAME_AT..FLAGS_AT + 4));
        let value = value.ok_or_else(|| Error::kernel(&name, "its structure has another shape"))?;
        let (place, word) = value.split_at_mut(NAME_SIZE);
        let mut old = [0; 4];
        old.copy_from_slice(word);
        word.copy_from_slice(&flags(u32::from_ne_bytes(old)).to_ne_bytes());
        if let Some(rename) = rename {
            place.fill(0);
            let length = rename.len().min(NAME_SIZE - 1);
            place[..length].copy_from_slice(&rename.as_bytes()[..length]);
        }
    }
    Ok(())
}

fn stamp(device: &str, maps: &[(String, OwnedFd)]) -> Result<(Object, Link), Error> {
    let (index, header) = objects::device(device)?;
    let mut object = objects::open("stamp", objects::STAMP, &[header])?;
    objects::share(&mut object, maps)?;
    let object = objects::load("loading the program that marks accelerate", object)?;
    let link = objects::attach_tcx(&objects::program(&object, "bl_stamp")?, index)?;
    Ok((object, link))
}

fn option_programs(
    settings: &Load,
    maps: &[(String, OwnedFd)],
) -> Result<(Object, Vec<(String, Link)>), Error> {
    let path = settings.cgroup.clone().or_else(doctor::cgroup2).ok_or_else(|| {
        Error::kernel("the option", "no cgroup2 is mounted: `mount -t cgroup2 none /sys/fs/cgroup`")
    })?;
    let cgroup = open_cgroup(&path)?;
    let mut object = objects::open("option", objects::OPTION, &[])?;
    objects::share(&mut object, maps)?;
    let object = objects::load("loading the option", object)?;
    let mut links = Vec::new();
    for name in ["bl_count", "bl_option"] {
        let link = objects::program(&object, name)?
            .attach_cgroup(cgroup.as_raw_fd())
            .map_err(|error| objects::refused(&format!("attaching to {}", path.display()), &error))?;
        links.push((name.to_string(), link));
    }
    Ok((object, links))
}

fn open_cgroup(path: &PathBuf) -> Result<std::fs::File, Error> {
    std::fs::File::open(path)
        .map_err(|error| Error::kernel(format!("opening the cgroup {}", path.display()), error))
}
