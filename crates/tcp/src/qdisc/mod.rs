//! The qdisc `abc` of the kernel module in `kmod/`: put on a device, changed, asked and taken off, over
//! rtnetlink.
//!
//! `tc` can add it without options; with options it takes this, for `tc` cannot parse those of a module it
//! does not know.

#[cfg(all(test, feature = "bpf"))]
pub(crate) mod differential;
mod message;
mod rate;
mod shown;

use std::io;
use std::time::Duration;

use message::{ACK, Answer, CREATE, DELETE, DUMP, GET, NEW, REPLACE, REQUEST};
use netlink_sys::protocols::NETLINK_ROUTE;
use netlink_sys::{Socket, SocketAddr};
pub use rate::{RateQdisc, ShapingKind, ShapingState};
use serde::Serialize;
pub use shown::{Activity, class, class_name};

use crate::error::Error;
use crate::settings::Variant;

/// `TC_H_ROOT`: no class, the device itself.
pub const ROOT: u32 = 0xffff_ffff;

const NOT_FOUND: i32 = 2;
const INVALID: i32 = 22;
const RANGE: i32 = 34;

/// Size of the queue.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Buffer {
    /// So many packets.
    Packets(u32),
    /// So many bytes, link headers included.
    Bytes(u32),
}

/// Parameters of the router.
#[derive(Clone, Debug, PartialEq)]
pub struct QdiscSettings {
    /// mu in bit/s, rounded to a byte per second; `None` if it is measured, and the parent class or the
    /// device shapes.
    pub rate_bps: Option<u64>,
    /// Whether the qdisc shapes to that rate; otherwise the parent class or the device does.
    pub shape: bool,
    /// Size of the queue.
    pub buffer: Buffer,
    /// The rule by which it marks.
    pub variant: Variant,
    /// d_t: delay below which nothing is drained. Of the paper's rule alone.
    pub target: Duration,
    /// delta: time in which a queue above the target is drained. Of the paper's rule alone.
    pub delta: Duration,
    /// T: window over which rates are measured.
    pub window: Duration,
    /// eta: share of the rate to aim at. Of no use to the rule for L4S, like the next two.
    pub eta: f64,
    /// The most tokens the bucket holds.
    pub token_limit: f64,
    /// Whether brake is CE, for senders behind a proxy.
    pub proxied: bool,
    /// Whether x is the time the packet that leaves has waited, instead of what waits behind it over mu. Of
    /// the paper's rule alone.
    pub sojourn: bool,
}

impl Default for QdiscSettings {
    fn default() -> Self {
        // The sources are those of `brakelight_routers::abc`.
        QdiscSettings {
            rate_bps: None,
            shape: true,
            buffer: Buffer::Packets(250),
            variant: Variant::Paper,
            target: Duration::from_millis(50),
            delta: Duration::from_millis(133),
            window: Duration::from_millis(20),
            eta: 0.98,
            token_limit: 5.0,
            proxied: false,
            sojourn: false,
        }
    }
}

/// What the router has done since it was put there, and its state at the last packet.
#[derive(Clone, Debug, Default, PartialEq, Serialize)]
pub struct Counts {
    /// Bytes that left, including link headers.
    pub bytes: u64,
    /// That left.
    pub packets: u32,
    /// That wait.
    pub waiting_packets: u32,
    /// That wait.
    pub waiting_bytes: u32,
    /// Packets dropped because the queue was full.
    pub drops: u32,
    /// Packets that left as accelerate.
    pub accelerates: u64,
    /// Packets that came as accelerate and left as brake; by the rule for L4S, as ECT(1) and as CE.
    pub turned: u64,
    /// Packets that came as brake.
    pub brakes: u64,
    /// Packets that came as CE, if CE does not mean brake.
    pub ce: u64,
    /// Without ECN.
    pub others: u64,
    /// Packets that could not be marked brake because the kernel had no memory to copy them.
    pub unwritten: u64,
    /// Sum of f over accelerates and brakes.
    pub shares: f64,
    /// Sum of the times in the queue.
    pub sojourn_sum_us: u64,
    /// mu, bit/s; 0 while unknown.
    pub capacity_bps: u64,
    /// cr.
    pub measured_bps: u64,
    /// f.
    pub f: f64,
    /// Tokens in the bucket.
    pub tokens: f64,
    /// The last packet's time in the queue.
    pub sojourn_ms: f64,
    /// The longest.
    pub sojourn_max_ms: f64,
    /// tau, the loop's delay as the router estimates it; `None` by the paper's rule, and before the first
    /// packet.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub loop_delay_ms: Option<f64>,
    /// Mean absolute error of its forecast of mu over one tau, or over 40 ms by the rule for L4S; `None`
    /// likewise.
    #[serde(skip_serializing_if = "Option::is_none")]
    pub forecast_error_bytes: Option<u32>,
}

/// A qdisc of kind `abc`, with its parameters and counters. As JSON it has times in milliseconds and the
/// names of classes.
#[derive(Clone, Debug, PartialEq, Serialize)]
#[serde(into = "shown::Document")]
pub struct Qdisc {
    /// The device.
    pub device: String,
    /// Major number of its handle in the upper 16 bits.
    pub handle: u32,
    /// The class above it, or [`ROOT`].
    pub parent: u32,
    /// Its parameters.
    pub settings: QdiscSettings,
    /// Its counters.
    pub counts: Counts,
}

/// Installs the qdisc in place of another one, or changes an `abc` that is there already.
pub fn set(device: &str, parent: u32, settings: &QdiscSettings) -> Result<(), Error> {
    set_raw(device, parent, &message::options(settings))
}

/// The same with `TCA_OPTIONS` as bytes, which need not be valid.
pub fn set_raw(device: &str, parent: u32, options: &[u8]) -> Result<(), Error> {
    let what = format!("putting the qdisc abc on {device}");
    Rtnetlink::open()?.change(&what, NEW, CREATE | REPLACE, index_of(device)?, parent, options)
}

/// Returns `TCA_OPTIONS` of attributes given as number and value, which need not be valid.
pub fn raw_options(attributes: &[(u16, &[u8])]) -> Vec<u8> {
    let attributes: Vec<_> =
        attributes.iter().map(|(kind, value)| message::attribute(*kind, value)).collect();
    message::nested(&attributes)
}

/// Removes the qdisc if it is of kind `abc`.
pub fn remove(device: &str, parent: u32) -> Result<(), Error> {
    let what = format!("taking the qdisc abc off {device}");
    Rtnetlink::open()?.change(&what, DELETE, 0, index_of(device)?, parent, &[])
}

/// Lists the `abc` qdiscs of one device, or of all devices.
pub fn list(device: Option<&str>) -> Result<Vec<Qdisc>, Error> {
    let index = device.map(index_of).transpose()?;
    let names = nix::net::if_::if_nameindex().map_err(|error| Error::kernel("listing devices", error))?;
    let name_of = |index: i32| {
        let found = names.iter().find(|name| i32::try_from(name.index()) == Ok(index));
        found.map_or_else(|| format!("#{index}"), |name| name.name().to_string_lossy().into_owned())
    };
    let found = Rtnetlink::open()?.dump()?;
    let wanted = found.into_iter().filter(|abc| index.is_none_or(|index| abc.device == index));
    Ok(wanted
        .map(|abc| Qdisc {
            device: name_of(abc.device),
            handle: abc.handle,
            parent: abc.parent,
            settings: abc.settings,
            counts: abc.counts,
        })
        .collect())
}

/// Returns the qdisc `abc` of a device below the class `parent`, or [`ROOT`]. Fails if there is none.
pub fn find(device: &str, parent: u32) -> Result<Qdisc, Error> {
    let there = list(Some(device))?.into_iter().find(|qdisc| qdisc.parent == parent);
    there.ok_or_else(|| {
        let class = class_name(parent);
        Error::Input(format!(
            "{device} has no qdisc abc at {class}: `brakelight router qdisc show` shows all"
        ))
    })
}

/// Reads what the kernel may have answered. For fuzzing alone, which makes up the answers.
#[cfg(fuzzing)]
pub fn read_answers(bytes: &[u8]) {
    message::answers(bytes, 1);
}

fn index_of(device: &str) -> Result<i32, Error> {
    let index = nix::net::if_::if_nametoindex(device).ok().and_then(|index| i32::try_from(index).ok());
    index.ok_or_else(|| {
        Error::Input(format!("there is no device `{device}` here: `ip link` shows what there is"))
    })
}

struct Rtnetlink {
    socket: Socket,
    sequence: u32,
}

impl Rtnetlink {
    fn open() -> Result<Self, Error> {
        let open = || -> io::Result<Socket> {
            let mut socket = Socket::new(NETLINK_ROUTE)?;
            socket.bind_auto()?;
            socket.connect(&SocketAddr::new(0, 0))?;
            socket.set_cap_ack(true)?;
            socket.set_ext_ack(true)?;
            Ok(socket)
        };
        let socket = open().map_err(|error| Error::kernel("opening a netlink socket", error))?;
        Ok(Rtnetlink { socket, sequence: 0 })
    }

    /// Returns the number of the next request.
    fn next(&mut self) -> u32 {
        self.sequence += 1;
        self.sequence
    }

    /// Sends a request and hands over answers until the last, as `read` reads them.
    fn ask<T>(
        &mut self,
        message: &[u8],
        read: impl Fn(&[u8]) -> Option<T>,
        mut each: impl FnMut(T),
    ) -> io::Result<(i32, Option<String>)> {
        self.socket.send(message, 0)?;
        loop {
            let (received, _) = self.socket.recv_from_full()?;
            for answer in message::answers_of(&received, self.sequence, &read) {
                match answer {
                    Answer::Qdisc(qdisc) => each(*qdisc),
                    Answer::End(error, words) => return Ok((error, words)),
                    Answer::Other => {}
                }
            }
        }
    }

    fn change(
        &mut self,
        what: &str,
        kind: u16,
        flags: u16,
        device: i32,
        parent: u32,
        options: &[u8],
    ) -> Result<(), Error> {
        let flags = REQUEST | ACK | flags;
        let message = message::request(kind, flags, self.next(), device, parent, Some(options));
        let (error, words) =
            self.ask(&message, message::abc, |_| ()).map_err(|error| Error::kernel(what, error))?;
        if error == 0 {
            return Ok(());
        }
        let said = words.unwrap_or_else(|| io::Error::from_raw_os_error(error).to_string());
        match (error, kind) {
            // include/uapi/asm-generic/errno-base.h; the kernel looked for a module first
            (NOT_FOUND, NEW) if said.contains("unknown") => Err(Error::kernel(
                what,
                "the module sch_abc is not installed in this kernel: the book's page on sch_abc says how to build and install it",
            )),
            (INVALID | RANGE | NOT_FOUND, _) => Err(Error::Input(format!("{what}: {said}"))),
            _ => Err(Error::kernel(what, said)),
        }
    }

    fn dump(&mut self) -> Result<Vec<message::Abc>, Error> {
        let message = message::request(GET, REQUEST | DUMP, self.next(), 0, 0, None);
        let mut found = Vec::new();
        let end = self.ask(&message, message::abc, |abc| found.push(abc));
        match end.map_err(|error| Error::kernel("listing qdiscs", error))? {
            (0, _) => Ok(found),
            (error, words) => {
                let said = words.unwrap_or_else(|| io::Error::from_raw_os_error(error).to_string());
                Err(Error::kernel("listing qdiscs", said))
            }
        }
    }
}
