//! The compiled objects as skeletons, which libbpf-cargo generates from them: opening and loading them,
//! sharing maps, saying why the kernel refused.
//!
//! Constants, maps, programs and the structures in maps are reached by the names they have in C, so a name
//! that is gone or new does not compile.

use std::ffi::{CStr, CString};
use std::mem::MaybeUninit;
use std::os::fd::{AsRawFd, BorrowedFd};
use std::path::Path;
use std::ptr::NonNull;
use std::sync::Mutex;

use libbpf_rs::query::MapInfoIter;
use libbpf_rs::skel::{OpenSkel, SkelBuilder};
use libbpf_rs::{
    AsRawLibbpf, ErrorKind, Link, MapHandle, MapMut, OpenMapMut, OpenObject, PrintLevel, ProgramMut,
    libbpf_sys,
};

use crate::error::Error;

/// ABC's controller.
pub mod abc {
    include!(concat!(env!("OUT_DIR"), "/abc.skel.rs"));
}
/// The list of connections.
pub mod connections {
    include!(concat!(env!("OUT_DIR"), "/connections.skel.rs"));
}
/// The experimental option.
pub mod option {
    include!(concat!(env!("OUT_DIR"), "/option.skel.rs"));
}
/// ABC's router.
pub mod router {
    include!(concat!(env!("OUT_DIR"), "/router.skel.rs"));
}
/// Reno for receivers, which asks for Accurate ECN.
pub mod receiver {
    include!(concat!(env!("OUT_DIR"), "/receiver.skel.rs"));
}
/// The program that marks accelerate.
pub mod stamp {
    include!(concat!(env!("OUT_DIR"), "/stamp.skel.rs"));
}
/// QUIC-DC's delay control.
pub mod wdc {
    include!(concat!(env!("OUT_DIR"), "/wdc.skel.rs"));
}

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

/// Who this process is to the kernel: what decides whether it may load programs.
fn rights() -> String {
    let read = |path: &str| std::fs::read_to_string(path).unwrap_or_default();
    let status = read("/proc/self/status");
    let capabilities = status.lines().find_map(|line| line.strip_prefix("CapEff:")).unwrap_or("unknown");
    let user = std::fs::read_link("/proc/self/ns/user").unwrap_or_default();
    format!(
        "effective capabilities {}, namespace {}, security modules {}, kernel.unprivileged_bpf_disabled {}",
        capabilities.trim(),
        user.display(),
        read("/sys/kernel/security/lsm").trim(),
        read("/proc/sys/kernel/unprivileged_bpf_disabled").trim(),
    )
}

/// Returns what libbpf said, most telling lines first, after the error itself. Where the kernel said that it
/// is not permitted, what this process may do as well.
pub fn refused(what: &str, error: &libbpf_rs::Error) -> Error {
    let warnings = WARNINGS.lock().unwrap_or_else(std::sync::PoisonError::into_inner);
    let said: Vec<&str> =
        warnings.iter().flat_map(|text| text.lines()).filter(|line| !line.starts_with("--")).collect();
    let last = said[said.len().saturating_sub(6)..].join("; ");
    let mut why = if last.is_empty() { format!("{error:#}") } else { format!("{error:#} ({last})") };
    if error.kind() == ErrorKind::PermissionDenied {
        why = format!("{why}; {}", rights());
    }
    Error::kernel(what, why)
}

/// Opens the object of a skeleton, which errors call `name`. `place` is where libbpf-rs keeps the opened
/// object.
///
/// # Errors
/// If libbpf cannot read the object.
pub fn open<'object, Builder: SkelBuilder<'object>>(
    name: &str,
    builder: Builder,
    place: &'object mut MaybeUninit<OpenObject>,
) -> Result<Builder::Output, Error> {
    listen();
    builder.open(place).map_err(|error| refused(&format!("opening the program {name}"), &error))
}

/// Loads what was opened into the kernel; `what` names the step in an error.
///
/// # Errors
/// What the kernel refuses, with the verifier's last lines.
pub fn load<'object, Opened: OpenSkel<'object>>(what: &str, opened: Opened) -> Result<Opened::Output, Error> {
    opened.load().map_err(|error| refused(what, &error))
}

/// Returns the constants of an opened object.
///
/// # Errors
/// If libbpf keeps no copy of them.
pub fn constants<'object, T>(name: &str, rodata: Option<&'object mut T>) -> Result<&'object mut T, Error> {
    rodata.ok_or_else(|| Error::kernel(name, "its constants cannot be set"))
}

/// Lets an opened object use a map that exists, instead of making its own.
///
/// # Errors
/// If the map has another shape.
pub fn share(map: &mut OpenMapMut<'_>, existing: BorrowedFd<'_>) -> Result<(), Error> {
    map.reuse_fd(existing).map_err(|error| refused("sharing a map", &error))
}

/// Returns a handle of a loaded map that outlives the object.
///
/// # Errors
/// If there is no descriptor left for it.
pub fn handle(map: &MapMut<'_>) -> Result<MapHandle, Error> {
    MapHandle::try_from(&**map).map_err(|error| refused("keeping a map", &error))
}

/// A C structure that consists of integers alone, as its skeleton has it.
///
/// # Safety
/// Every byte pattern is a value of the type, and it has no padding bytes besides named fields.
pub unsafe trait Plain: Copy {}

/// Returns the value at the start of `bytes`; `None` if there are fewer bytes than it has.
pub fn read<T: Plain>(bytes: &[u8]) -> Option<T> {
    let bytes = bytes.get(..size_of::<T>())?;
    // SAFETY: so many bytes are there, every pattern of them is a value, and the read asks for no alignment.
    Some(unsafe { bytes.as_ptr().cast::<T>().read_unaligned() })
}

/// Returns the bytes of a value.
pub fn bytes_of<T: Plain>(value: &T) -> &[u8] {
    // SAFETY: the value has so many bytes, all of them initialized, and is borrowed as long as the slice.
    unsafe { std::slice::from_raw_parts((&raw const *value).cast::<u8>(), size_of::<T>()) }
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

/// Returns the kernel's maps of that name: one for each time that our programs were loaded.
pub fn find_maps(name: &str) -> Result<Vec<MapHandle>, Error> {
    let ours = MapInfoIter::default().filter(|info| info.name.to_string_lossy() == name);
    open_maps(ours.map(|info| info.id))
}

/// Opens maps, but for those that are gone since they were listed.
fn open_maps(ids: impl Iterator<Item = u32>) -> Result<Vec<MapHandle>, Error> {
    ids.map(MapHandle::from_map_id)
        .filter(|opened| !matches!(opened, Err(error) if error.kind() == ErrorKind::NotFound))
        .collect::<Result<_, _>>()
        .map_err(|error| refused("opening a map", &error))
}

/// Returns the index and bytes of link header of a device in this network namespace.
pub fn device(name: &str) -> Result<(u32, u32), Error> {
    let (index, c_name) = index_of(name)?;
    // include/uapi/linux/if_arp.h: Ethernet and loopback have 14 bytes, what has no hardware address has
    // none.
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

/// The name under which the system lists a device, which may have others.
///
/// # Errors
/// If there is no such device.
pub fn first_name(name: &str) -> Result<String, Error> {
    let (index, _) = index_of(name)?;
    let mut first = [0; libc::IF_NAMESIZE];
    // SAFETY: the function writes a string that ends in NUL into the buffer, which is as long as it asks for.
    let found = unsafe { !libc::if_indextoname(index, first.as_mut_ptr()).is_null() };
    if !found {
        return Err(Error::kernel(format!("looking up `{name}`"), std::io::Error::last_os_error()));
    }
    // SAFETY: that string.
    Ok(unsafe { CStr::from_ptr(first.as_ptr()) }.to_string_lossy().into_owned())
}

/// The index of the device that has this name, with the name for C.
fn index_of(name: &str) -> Result<(u32, CString), Error> {
    let unknown = || {
        Error::Input(format!("there is no device `{name}` in this network namespace: `ip link` shows those"))
    };
    let c_name = CString::new(name).map_err(|_| unknown())?;
    // SAFETY: a string that ends in NUL; the function only reads it.
    match unsafe { libc::if_nametoindex(c_name.as_ptr()) } {
        0 => Err(unknown()),
        index => Ok((index, c_name)),
    }
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

/// Returns whether something can be pinned.
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

#[cfg(test)]
mod tests {
    use super::*;

    #[repr(C)]
    #[derive(Clone, Copy, Debug, PartialEq)]
    struct Counted {
        flow: u64,
        packets: u32,
        marks: [u16; 2],
    }

    // SAFETY: integers without padding between or behind them: 8, 4 and 4 bytes.
    unsafe impl Plain for Counted {}

    #[test]
    fn a_map_that_went_since_it_was_listed_is_left_out() {
        // No kernel has so many maps. It first asks for the right to open maps by their number.
        match open_maps([u32::MAX - 1].into_iter()) {
            Ok(maps) => assert!(maps.is_empty()),
            Err(error) => assert!(error.to_string().contains("effective capabilities"), "{error}"),
        }
    }

    #[test]
    fn a_value_is_read_from_its_bytes_wherever_they_lie() {
        let value = Counted { flow: u64::MAX - 7, packets: 5, marks: [1, 0xfffe] };
        let bytes = bytes_of(&value).to_vec();
        assert_eq!(bytes.len(), 16);
        for place in 0..8 {
            let shifted = [&vec![0xa5; place][..], &bytes, &[0x5a; 3]].concat();
            assert_eq!(read::<Counted>(&shifted[place..]), Some(value));
        }
        for length in 0..bytes.len() {
            assert_eq!(read::<Counted>(&bytes[..length]), None);
        }
    }
}
