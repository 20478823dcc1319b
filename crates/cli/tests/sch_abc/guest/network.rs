//! The virtual machine around the checks: file systems, modules, devices, the far end of a connection.

use std::fs::{self, File};
use std::io::{Read, Write};
use std::net::{TcpListener, TcpStream};
use std::os::unix::fs::OpenOptionsExt;
use std::process::{Command, Stdio};
use std::time::Duration;

use nix::kmod::{DeleteModuleFlags, ModuleInitFlags, delete_module, finit_module};
use nix::mount::{MsFlags, mount};
use nix::sys::reboot::{RebootMode, reboot};

use super::{IN, OUT, done};

const FAR: &str = "10.9.0.2:7000";

/// Everything up to two devices that are up.
pub fn prepare() {
    for (kind, place) in [("proc", "/proc"), ("sysfs", "/sys"), ("devtmpfs", "/dev"), ("tmpfs", "/run")] {
        mount(Some(kind), place, Some(kind), MsFlags::empty(), None::<&str>).unwrap();
    }
    // SAFETY: nothing else runs yet that could read the environment at the same time: the harness waits for
    // this test.
    unsafe { std::env::set_var("PATH", "/bin") };
    for module in fs::read_dir("/modules").unwrap().flatten() {
        let name = module.file_name().into_string().unwrap();
        if name != "sch_abc" {
            load(&name, "");
        }
    }
    done("ip link set lo up");
    pair(OUT, IN);
}

/// A pair of virtual Ethernet devices that nobody speaks over by himself.
pub fn pair(one: &str, other: &str) {
    done(&format!("ip link add {one} type veth peer name {other}"));
    for device in [one, other] {
        let _ = fs::write(format!("/proc/sys/net/ipv6/conf/{device}/disable_ipv6"), "1");
        done(&format!("ip link set {device} up"));
    }
}

pub fn load(name: &str, parameters: &str) {
    let file = File::open(format!("/modules/{name}")).unwrap();
    let parameters = std::ffi::CString::new(parameters).unwrap();
    finit_module(&file, &parameters, ModuleInitFlags::empty())
        .unwrap_or_else(|error| panic!("{name}: {error}"));
}

pub fn unload(name: &str) -> nix::Result<()> {
    delete_module(&std::ffi::CString::new(name).unwrap(), DeleteModuleFlags::O_NONBLOCK)
}

pub fn free_kilobytes() -> u64 {
    // What is only cached is written back and forgotten first.
    fs::write("/proc/sys/vm/drop_caches", "3").unwrap();
    let text = fs::read_to_string("/proc/meminfo").unwrap();
    let line = text.lines().find(|line| line.starts_with("MemFree:")).unwrap();
    line.split_whitespace().nth(1).unwrap().parse().unwrap()
}

/// What the kernel has said so far.
pub fn kernel_log() -> String {
    let mut log = fs::OpenOptions::new().read(true).custom_flags(libc::O_NONBLOCK).open("/dev/kmsg").unwrap();
    let mut text = String::new();
    let mut line = [0; 8192];
    while let Ok(length) = log.read(&mut line) {
        text += &String::from_utf8_lossy(&line[..length]);
    }
    text
}

pub fn power_off() -> ! {
    std::io::stdout().flush().unwrap();
    let error = reboot(RebootMode::RB_POWER_OFF).unwrap_err();
    panic!("{error}");
}

/// Sends so many bytes over TCP to [`read_all`] in the namespace `far`, and waits until they are there.
pub fn write_to_far(bytes: usize) {
    let mut reader = Command::new("ip")
        .args(["netns", "exec", "far", "/test", "guest::reader", "--exact", "--ignored", "--nocapture"])
        .stdout(Stdio::piped())
        .spawn()
        .unwrap();
    let mut stream = loop {
        match TcpStream::connect(FAR) {
            Ok(stream) => break stream,
            // Not listening yet.
            Err(_) => std::thread::sleep(Duration::from_millis(20)),
        }
    };
    let data: Vec<u8> = (0..bytes).map(|at| (at % 251) as u8).collect();
    stream.write_all(&data).unwrap();
    stream.shutdown(std::net::Shutdown::Write).unwrap();
    let mut arrived = [0; 8];
    stream.read_exact(&mut arrived).unwrap();
    assert_eq!(u64::from_be_bytes(arrived), bytes as u64);
    assert!(reader.wait().unwrap().success());
}

/// Takes one connection, checks its bytes and answers how many they were.
pub fn read_all() {
    let (mut stream, _) = TcpListener::bind(FAR).unwrap().accept().unwrap();
    let mut data = Vec::new();
    stream.read_to_end(&mut data).unwrap();
    assert!(data.iter().enumerate().all(|(at, byte)| *byte == (at % 251) as u8));
    stream.write_all(&(data.len() as u64).to_be_bytes()).unwrap();
}
