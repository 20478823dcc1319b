//! The endpoints: ABC's controller, stamp, option and receiver, or delay control.

use std::hash::{BuildHasher, RandomState};
use std::mem::MaybeUninit;
use std::os::fd::{AsFd, AsRawFd};
use std::path::{Path, PathBuf};

use libbpf_rs::{ErrorKind, Link, MapHandle, MapMut, OpenObject};

use super::objects::abc::types::{abc_setup, feedback};
use super::objects::stamp::types::stamp_setup;
use super::objects::wdc::types::wdc_setup;
use super::objects::{self, abc, option, receiver, stamp, wdc};
use crate::doctor;
use crate::error::Error;
use crate::settings::{Controller, Feedback, LEAST_THRESHOLD_MS, Load, Loaded, PINS, Threshold};

/// `TCP_CONG_NON_RESTRICTED`
const UNRESTRICTED: u32 = 1;
/// `TCP_CONG_NEEDS_ECN`
const NEEDS_ECN: u32 = 2;
/// `TCP_CONG_NEEDS_ACCECN`
const NEEDS_ACCECN: u32 = 4;
/// The loaded programs. They stay in the kernel as long as this value lives, or as long as they are pinned.
/// The links hold the programs, and the programs their maps.
#[derive(Debug)]
pub struct Endpoint {
    /// What was done.
    pub loaded: Loaded,
    /// By the names they are pinned under.
    links: Vec<(String, Link)>,
}

/// The maps of `bpf/connection.h`, as one loaded object has them.
struct ConnectionMaps {
    connections: MapHandle,
    reported: MapHandle,
}

impl ConnectionMaps {
    fn of(connections: &MapMut<'_>, reported: &MapMut<'_>) -> Result<Self, Error> {
        Ok(ConnectionMaps {
            connections: objects::handle(connections)?,
            reported: objects::handle(reported)?,
        })
    }
}

/// Puts the programs into the kernel.
///
/// # Errors
/// If the kernel refuses a step; the error carries its message. Nothing stays loaded then.
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
    let per_connection = !option && takes_accecn_flag();
    let flags = |mut flags: u32| {
        if !per_connection {
            flags &= !NEEDS_ACCECN;
        }
        restricted(flags, settings)
    };
    let mut links = Vec::new();
    let mut maps = None;
    match (settings.receiver, option) {
        (false, _) => {
            let (link, of_sender) = load_sender(settings, option, flags)?;
            links.push(registered("abc", link, settings, &mut loaded));
            maps = Some(of_sender);
        }
        (true, false) => {
            links.push(registered(
                "accecn_reno",
                load_receiver(settings.name.as_deref(), flags)?,
                settings,
                &mut loaded,
            ));
        }
        // The option needs no help from the kernel: at a receiver it is all.
        (true, true) => {}
    }
    if !option && !per_connection {
        loaded.notes.push(
            "this kernel asks for Accurate ECN only by its sysctl: `sysctl net.ipv4.tcp_ecn=3` at both ends"
                .into(),
        );
    }
    for device in &settings.devices {
        links.push((format!("stamp-{device}"), load_stamp(device, maps.as_ref())?));
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
        links.extend(load_option(settings, maps.as_ref())?);
    }
    Ok(Endpoint { loaded, links })
}

/// Registers ABC's controller.
fn load_sender(
    settings: &Load,
    option: bool,
    flags: impl Fn(u32) -> u32,
) -> Result<(Link, ConnectionMaps), Error> {
    let mut place = MaybeUninit::uninit();
    let mut opened = open_abc(&mut place, option, settings.pacing_percent)?;
    let operations = opened.struct_ops.abc_mut();
    operations.flags = flags(operations.flags);
    rename(&mut operations.name, settings.name.as_deref());
    let mut loaded = objects::load(LOADING, opened).map_err(too_old)?;
    let link = register(settings.name.as_deref().unwrap_or("abc"), &mut loaded.maps.abc)?;
    Ok((link, ConnectionMaps::of(&loaded.maps.bl_connections, &loaded.maps.bl_reported)?))
}

/// Opens ABC's controller and sets what it reads.
pub(super) fn open_abc(
    place: &mut MaybeUninit<OpenObject>,
    option: bool,
    pacing_percent: Option<u32>,
) -> Result<abc::OpenAbcSkel<'_>, Error> {
    let mut opened = objects::open("abc", abc::AbcSkelBuilder::default(), place)?;
    objects::constants("abc", opened.maps.rodata_data.as_deref_mut())?.settings = abc_setup {
        feedback: if option { feedback::FEEDBACK_OPTION } else { feedback::FEEDBACK_ACCECN },
        pacing_percent: pacing_percent.unwrap_or_default(),
        cubic_as_linux: 1,
    };
    Ok(opened)
}

/// Registers the receiver's Reno under another name if one is given.
fn load_receiver(name: Option<&str>, flags: impl Fn(u32) -> u32) -> Result<Link, Error> {
    let mut place = MaybeUninit::uninit();
    let mut opened = objects::open("receiver", receiver::ReceiverSkelBuilder::default(), &mut place)?;
    let operations = opened.struct_ops.accecn_reno_mut();
    operations.flags = flags(operations.flags);
    rename(&mut operations.name, name);
    let mut loaded = objects::load(LOADING, opened).map_err(too_old)?;
    register(name.unwrap_or("accecn_reno"), &mut loaded.maps.accecn_reno)
}

fn load_wdc(settings: &Load, threshold: Threshold) -> Result<Endpoint, Error> {
    let mut loaded = Loaded { feedback: "timestamps".into(), ..Loaded::default() };
    if let Threshold::Time(time) = threshold
        && time < LEAST_THRESHOLD_MS
    {
        if !doctor::has_microsecond_timestamps() {
            return Err(Error::Input(format!(
                "a threshold of {time:?} is too small for timestamps in milliseconds, and this kernel has no others: \
                 valid is {LEAST_THRESHOLD_MS:?} or more"
            )));
        }
        loaded.notes.push(format!(
            "connections whose timestamps tick in milliseconds go by {LEAST_THRESHOLD_MS:?}; for microseconds, at \
             both ends: `ip route change ... features tcp_usec_ts`"
        ));
    }
    let mut place = MaybeUninit::uninit();
    let mut opened = open_wdc(&mut place, threshold, settings.pacing_percent)?;
    let operations = opened.struct_ops.wdc_mut();
    operations.flags = restricted(operations.flags, settings);
    rename(&mut operations.name, settings.name.as_deref());
    let mut in_kernel = objects::load(LOADING, opened).map_err(too_old)?;
    let link = register(settings.name.as_deref().unwrap_or("wdc"), &mut in_kernel.maps.wdc)?;
    let links = vec![registered("wdc", link, settings, &mut loaded)];
    Ok(Endpoint { loaded, links })
}

/// Opens delay control and sets what it reads.
pub(super) fn open_wdc(
    place: &mut MaybeUninit<OpenObject>,
    threshold: Threshold,
    pacing_percent: Option<u32>,
) -> Result<wdc::OpenWdcSkel<'_>, Error> {
    let mut opened = objects::open("wdc", wdc::WdcSkelBuilder::default(), place)?;
    let (threshold_us, share_ppm) = match threshold {
        Threshold::Time(time) => (u32::try_from(time.as_micros()).unwrap_or(u32::MAX), 0),
        Threshold::Share(share) => (0, (share * 1e6).round() as u32),
    };
    objects::constants("wdc", opened.maps.rodata_data.as_deref_mut())?.settings =
        wdc_setup { threshold_us, share_ppm, pacing_percent: pacing_percent.unwrap_or(100) };
    Ok(opened)
}

/// The step that errors name.
const LOADING: &str = "loading the controller";

/// Adds the reason to the answer of a kernel that is too old, which only says that something was invalid.
fn too_old(error: Error) -> Error {
    match doctor::too_old_for_controllers() {
        Some(why) => Error::kernel(LOADING, format!("{why} (the kernel's answer: {error})")),
        None => error,
    }
}

fn restricted(flags: u32, settings: &Load) -> u32 {
    if settings.unrestricted { flags | UNRESTRICTED } else { flags }
}

/// Gives a congestion control of an opened object another name, cut to what the kernel has room for.
fn rename(place: &mut [i8; 16], name: Option<&str>) {
    if let Some(name) = name {
        place.fill(0);
        // The last byte stays zero: the name ends there at the latest.
        for (place, byte) in place[..15].iter_mut().zip(name.bytes()) {
            *place = byte.cast_signed();
        }
    }
}

/// Registers the congestion control of a loaded object under `name`.
fn register(name: &str, operations: &mut MapMut<'_>) -> Result<Link, Error> {
    operations.attach_struct_ops().map_err(|error| match error.kind() {
        ErrorKind::AlreadyExists => Error::Input(format!(
            "a congestion control called `{name}` is registered already: give `--name` another one, or unload that one"
        )),
        _ => objects::refused(&format!("registering the congestion control `{name}`"), &error),
    })
}

/// Notes the name that `name` was registered under; gives the link with the name it is pinned under.
fn registered(name: &str, link: Link, settings: &Load, loaded: &mut Loaded) -> (String, Link) {
    loaded.controllers.push(settings.name.clone().unwrap_or_else(|| name.to_string()));
    (name.to_string(), link)
}

/// Removes the pinned programs. Returns `false` if none were pinned.
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
}

/// Whether a controller may ask for Accurate ECN for its own connections.
pub(super) fn takes_accecn_flag() -> bool {
    doctor::has_accecn() && probe(NEEDS_ECN | NEEDS_ACCECN).is_ok()
}

/// Registers the receiver's Reno with those flags, under a name that no other has: all network namespaces
/// share these names, and processes in two PID namespaces may have the same ID.
fn probe(flags: u32) -> Result<Link, Error> {
    let number = RandomState::new().hash_one(flags) as u32;
    load_receiver(Some(&format!("probe{number:08x}")), |_| flags)
}

/// Marks accelerate on what leaves by a device, for the connections in `maps`; without maps for none.
fn load_stamp(device: &str, maps: Option<&ConnectionMaps>) -> Result<Link, Error> {
    let (index, link_header) = objects::device(device)?;
    let mut place = MaybeUninit::uninit();
    let mut opened = open_stamp(&mut place, link_header)?;
    if let Some(maps) = maps {
        objects::share(&mut opened.maps.bl_connections, maps.connections.as_fd())?;
        objects::share(&mut opened.maps.bl_reported, maps.reported.as_fd())?;
    }
    let loaded = objects::load("loading the program that marks accelerate", opened)?;
    objects::attach_tcx(&loaded.progs.bl_stamp, index)
}

/// Opens the program that marks accelerate, for a device with so many bytes of link header.
pub(super) fn open_stamp(
    place: &mut MaybeUninit<OpenObject>,
    link_header: u32,
) -> Result<stamp::OpenStampSkel<'_>, Error> {
    let mut opened = objects::open("stamp", stamp::StampSkelBuilder::default(), place)?;
    objects::constants("stamp", opened.maps.rodata_data.as_deref_mut())?.settings =
        stamp_setup { link_header };
    Ok(opened)
}

/// Lets the sockets of a cgroup speak the option.
fn load_option(settings: &Load, maps: Option<&ConnectionMaps>) -> Result<[(String, Link); 2], Error> {
    let path = settings.cgroup.clone().or_else(doctor::cgroup2).ok_or_else(|| {
        Error::kernel("the option", "no cgroup2 is mounted: `mount -t cgroup2 none /sys/fs/cgroup`")
    })?;
    let cgroup = open_cgroup(&path)?;
    let mut place = MaybeUninit::uninit();
    let mut opened = objects::open("option", option::OptionSkelBuilder::default(), &mut place)?;
    if let Some(maps) = maps {
        objects::share(&mut opened.maps.bl_connections, maps.connections.as_fd())?;
        objects::share(&mut opened.maps.bl_reported, maps.reported.as_fd())?;
    }
    let loaded = objects::load("loading the option", opened)?;
    let attach = |program: &libbpf_rs::ProgramMut<'_>| {
        program
            .attach_cgroup(cgroup.as_raw_fd())
            .map_err(|error| objects::refused(&format!("attaching to {}", path.display()), &error))
    };
    Ok([
        ("bl_count".into(), attach(&loaded.progs.bl_count)?),
        ("bl_option".into(), attach(&loaded.progs.bl_option)?),
    ])
}

fn open_cgroup(path: &PathBuf) -> Result<std::fs::File, Error> {
    std::fs::File::open(path)
        .map_err(|error| Error::kernel(format!("opening the cgroup {}", path.display()), error))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_probe_hides_no_feature_from_another() {
        if let Err(error) = probe(NEEDS_ECN) {
            brakelight_testkit::skip("kernel: names of congestion controls", error);
            return;
        }
        let before = takes_accecn_flag();
        let _others = [(); 2].map(|()| probe(NEEDS_ECN).unwrap());
        assert_eq!(takes_accecn_flag(), before);
    }
}
