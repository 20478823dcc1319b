//! The compiled objects: opening them, setting what is read-only once loaded, sharing maps, saying why the kernel refused.

use std::os::fd::{AsFd, AsRawFd, OwnedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Mutex;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::{
    AsRawLibbpf, Link, MapCore, MapHandle, Object, ObjectBuilder, OpenObject, PrintLevel, ProgramMut,
    libbpf_sys,
};

use crate::error::Error;

/// ABC's controller and the receiver shim.
pub const ABC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/abc.bpf.o"));
/// The list of connections.
pub const CONNECTIONS: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/connections.bpf.o"));
/// The experimental option.
pub const OPTION: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/option.bpf.o"));
/// ABC's router.
pub const ROUTER: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/router.bpf.o"));
/// The stamp of accelerate.
pub const STAMP: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/stamp.bpf.o"));
/// QUIC-DC's delay control.
pub const WDC: &[u8] = include_bytes!(concat!(env!("OUT_DIR"), "/wdc.bpf.o"));

/// libbpf's last warnings.
static WARNINGS: Mutex<Vec<String>> = Mutex::new(Vec::new());

fn keep_warning(_: PrintLevel, text: String) {
    let mut warnings = WARNINGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    warnings.push(text.trim().trim_start_matches("libbpf: ").to_string());
}

/// Collects libbpf's warnings instead of printing them.
fn listen() {
    libbpf_rs::set_print(Some((PrintLevel::Warn, keep_warning)));
    WARNINGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner).clear();
}

/// What libbpf said, most telling lines first, after the error itself.
pub fn refused(what: &str, error: &libbpf_rs::Error) -> Error {
    let warnings = WARNINGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let said: Vec<&str> =
        warnings.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with("--")).collect();
    let last = said[said.len().saturating_sub(6)..].join("; ");
    let why = if last.is_empty() { format!("{error:#}") } else { format!("{error:#} ({last})") };
    Error::kernel(what, why)
}

/// Opens an object and gives it the settings that its programs read.
pub fn open(name: &str, bytes: &[u8], settings: &[u32]) -> Result<OpenObject, Error> {
    listen();
    let mut builder = ObjectBuilder::default();
    let mut object = builder
        .name(name)
        .and_then(|builder| builder.open_memory(bytes))
        .map_err(|error| refused(&format!("opening the program {name}"), &error))?;
    if settings.is_empty() {
        return Ok(object);
    }
    let rodata = object.maps_mut().find(|map| map.name().to_string_lossy().ends_with(".rodata"));
    let mut rodata = rodata.ok_or_else(|| Error::kernel(name, "it takes no settings"))?;
    let value =
        rodata.initial_value_mut().ok_or_else(|| Error::kernel(name, "its settings have no value"))?;
    for (place, setting) in value.chunks_exact_mut(4).zip(settings) {
        place.copy_from_slice(&setting.to_ne_bytes());
    }
    Ok(object)
}

/// Lets the object use maps that exist, instead of making its own.
pub fn share(object: &mut OpenObject, maps: &[(String, OwnedFd)]) -> Result<(), Error> {
    for mut map in object.maps_mut() {
        let name = map.name().to_string_lossy().into_owned();
        if let Some((_, fd)) = maps.iter().find(|(shared, _)| *shared == name) {
            map.reuse_fd(fd.as_fd()).map_err(|error| refused("sharing a map", &error))?;
        }
    }
    Ok(())
}

/// The maps of a loaded object that others may use too: those whose names begin with `bl_`.
pub fn maps(object: &Object) -> Result<Vec<(String, OwnedFd)>, Error> {
    let mut shared = Vec::new();
    for map in object.maps() {
        let name = map.name().to_string_lossy().into_owned();
        if name.starts_with("bl_") {
            let fd = map.as_fd().try_clone_to_owned();
            shared.push((name, fd.map_err(|error| Error::kernel("sharing a map", error))?));
        }
    }
    Ok(shared)
}

/// Loads what was opened.
pub fn load(what: &str, object: OpenObject) -> Result<Object, Error> {
    object.load().map_err(|error| refused(what, &error))
}

/// The program of that name.
pub fn program<'object>(object: &'object Object, name: &str) -> Result<ProgramMut<'object>, Error> {
    let mut programs = object.progs_mut();
    programs
        .find(|program| program.name() == name)
        .ok_or_else(|| Error::kernel(name, "there is no such program"))
}

/// Attaches a tc program to a device by a link.
pub fn attach_tcx(program: &ProgramMut<'_>, index: u32) -> Result<Link, Error> {
    let index = i32::try_from(index).map_err(|error| Error::kernel("a device's index", error))?;
    // SAFETY: the program is loaded and outlives the call; libbpf takes no options as a null pointer.
    let link = unsafe {
        libbpf_sys::bpf_program__attach_tcx(program.as_libbpf_object().as_ptr(), index, std::ptr::null())
    };
    // SAFETY: libbpf returns a link that is ours, or null and sets errno.
    let link = NonNull::new(link).map(|link| unsafe { Link::from_ptr(link) });
    link.ok_or_else(|| {
        let error = std::io::Error::last_os_error();
        Error::kernel("attaching a program to a device (tcx, Linux 6.6 and newer)", error)
    })
}

/// The kernel's maps of that name: one for each time that our programs were loaded.
pub fn find_maps(name: &str) -> Result<Vec<MapHandle>, Error> {
    let ours = MapInfoIter::default().filter(|info| info.name.to_string_lossy() == name);
    let handles = ours.map(|info| MapHandle::from_map_id(info.id));
    handles.collect::<Result<_, _>>().map_err(|error| refused("opening a map", &error))
}

/// Index and bytes of link header of a device in this network namespace.
pub fn device(name: &str) -> Result<(u32, u32), Error> {
    let unknown = || {
        Error::Input(format!("there is no device `{name}` in this network namespace: `ip link` shows those"))
    };
    let c_name = std::ffi::CString::new(name).map_err(|_| unknown())?;
    // SAFETY: a string that ends in NUL; the function only reads it.
    let index = unsafe { libc::if_nametoindex(c_name.as_ptr()) };
    if index == 0 {
        return Err(unknown());
    }
    // include/uapi/linux/if_arp.h: Ethernet and loopback have 14 bytes, what has no hardware address has none.
    let header = match hardware_type(c_name.as_bytes()).map_err(|error| Error::kernel(name, error))? {
        libc::ARPHRD_ETHER | libc::ARPHRD_LOOPBACK => 14,
        libc::ARPHRD_NONE | libc::ARPHRD_PPP => 0,
        other => {
            let what =
                format!("{name} is neither Ethernet nor a device without link header, but of type {other}");
            return Err(Error::Input(what));
        }
    };
    Ok((index, header))
}

/// Asks the namespace itself: /sys may show another one's devices.
fn hardware_type(name: &[u8]) -> std::io::Result<u16> {
    let socket = std::net::UdpSocket::bind("127.0.0.1:0").or_else(|_| std::net::UdpSocket::bind("[::]:0"))?;
    // SAFETY: a structure of plain numbers, for which zero is a value.
    let mut request: libc::ifreq = unsafe { std::mem::zeroed() };
    for (place, byte) in request.ifr_name.iter_mut().zip(name).take(libc::IFNAMSIZ - 1) {
        *place = byte.cast_signed();
    }
    // SAFETY: the request lives through the call, and the kernel writes no more than it.
    if unsafe { libc::ioctl(socket.as_raw_fd(), libc::SIOCGIFHWADDR, &raw mut request) } != 0 {
        return Err(std::io::Error::last_os_error());
    }
    // SAFETY: this request fills this member.
    Ok(unsafe { request.ifr_ifru.ifru_hwaddr.sa_family })
}

/// Whether something can be pinned.
pub fn bpffs_is_mounted() -> bool {
    let mounts = std::fs::read_to_string("/proc/mounts").unwrap_or_default();
    mounts.lines().any(|line| {
        let mut words = line.split_whitespace().skip(1);
        words.next() == Some("/sys/fs/bpf") && words.next() == Some("bpf")
    })
}

/// Makes the folder of pins.
pub fn make_pins(pins: &Path) -> Result<(), Error> {
    if !bpffs_is_mounted() {
        let why = "there is no BPF file system: `mount -t bpf bpf /sys/fs/bpf`";
        return Err(Error::kernel("pinning", why));
    }
    std::fs::create_dir_all(pins).map_err(|error| Error::kernel(format!("making {}", pins.display()), error))
}
