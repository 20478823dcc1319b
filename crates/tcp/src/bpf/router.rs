//! ABC's router on an existing device: programs on the way in and on the way out, a shaper between them.

use std::mem::MaybeUninit;
use std::os::fd::AsFd;
use std::time::{Duration, Instant};

use brakelight_core::units::{Bytes, Rate};
use brakelight_routers::abc::dual;
use libbpf_rs::{Link, MapCore, MapFlags, MapHandle, OpenObject, ProgramMut};

use super::claim::Claim;
use super::merging::Merging;
use super::objects::router::types::{counts, flow, router_place, router_settings};
use super::objects::router::{OpenRouterSkel, RouterSkelBuilder};
use super::objects::{self, Plain};
use super::shaper::{CLASSES, Shaper, rate_of};
use super::weights::Weights;
use crate::doctor;
use crate::error::Error;
use crate::settings::{Capacity, Route, Sample, Variant};

/// `SHARE_ONE` of `bpf/router.h`
pub(super) const ONE: f64 = (1_u32 << 20) as f64;

/// What of a full packet the queues count.
const PACKET: Bytes = Bytes(1500);

/// Bytes of the link header of Ethernet.
const ETHERNET: u32 = 14;

/// The only key of a map with one value.
const FIRST: [u8; 4] = [0; 4];

/// An attached router. It is detached when this is dropped.
#[derive(Debug)]
pub struct Router {
    /// Devices that packets leave by.
    pub out: Vec<String>,
    /// What was found and cleared on the way, in words.
    pub notes: Vec<String>,
    /// The shaper's rate.
    pub rate_bps: u64,
    maps: Maps,
    links: Vec<Link>,
    shaper: Option<Shaper>,
    /// Put back after the programs are gone.
    _merging: Merging,
    weights: Weights,
    weighed_at: Instant,
    share: f64,
    /// The least T of ABC's equation 1.
    window: brakelight_core::time::Duration,
    variant: Variant,
    settings: router_settings,
    before: Box<counts>,
    /// Given up last.
    _claim: Claim,
}

// SAFETY: these three consist of integers alone, each of a size that leaves no byte between fields.
unsafe impl Plain for counts {}
unsafe impl Plain for router_settings {}
unsafe impl Plain for flow {}

/// The delay that a share `p` of the packets between two readings did not exceed, in milliseconds: the upper
/// end of its bin.
fn delay_ms(before: &counts, now: &counts, p: f64) -> f64 {
    let since =
        now.delays.iter().zip(&before.delays).map(|(now, before)| u64::from(now.wrapping_sub(*before)));
    let counts: Vec<u64> = since.collect();
    let total: u64 = counts.iter().sum();
    let mut passed = 0;
    for (bin, count) in counts.iter().enumerate() {
        passed += count;
        if total > 0 && passed as f64 >= p * total as f64 {
            return bin as f64 + 1.0;
        }
    }
    0.0
}

/// Opens the router's programs and sets what they read.
pub(super) fn open(
    place: &mut MaybeUninit<OpenObject>,
    devices: router_place,
) -> Result<OpenRouterSkel<'_>, Error> {
    let mut opened = objects::open("router", RouterSkelBuilder::default(), place)?;
    objects::constants("router", opened.maps.rodata_data.as_deref_mut())?.place = devices;
    Ok(opened)
}

/// The maps of `bpf/router.bpf.c`.
#[derive(Debug)]
struct Maps {
    settings: MapHandle,
    router: MapHandle,
    loop_state: MapHandle,
    counts: MapHandle,
    flows: MapHandle,
}

impl Router {
    /// Puts the programs and, unless one is there, the shaper in place.
    ///
    /// # Errors
    /// If the kernel refuses a step. Nothing stays loaded then.
    pub fn attach(route: &Route) -> Result<Self, Error> {
        doctor::require_root()?;
        // By the names that `tc` and lists of devices have.
        let route = &Route {
            device: objects::first_name(&route.device)?,
            out: route.out.iter().map(|name| objects::first_name(name)).collect::<Result<_, _>>()?,
            capacity: match &route.capacity {
                Capacity::Of(device) => Capacity::Of(objects::first_name(device)?),
                Capacity::Rate(rate_bps) => Capacity::Rate(*rate_bps),
            },
            ..route.clone()
        };
        let (arrival, _) = objects::device(&route.device)?;
        let claim = Claim::of(&route.device, arrival)?;
        let (rate_bps, shaper) = match &route.capacity {
            Capacity::Rate(rate_bps) => {
                let shaper = Shaper::make(&route.device, *rate_bps, route.limit_bytes, route.dual)?;
                (*rate_bps, Some(shaper))
            }
            Capacity::Of(device) => (rate_of(device)?, None),
        };
        let (shaper_index, classes) = match &shaper {
            Some(shaper) => (objects::device(shaper.name())?.0, if route.dual { CLASSES } else { [0; 2] }),
            None => (0, [0; 2]),
        };
        // The device of the shaper sees packets before they queue there, so they depart elsewhere.
        let queued_on = match &route.capacity {
            Capacity::Of(device) => device.as_str(),
            Capacity::Rate(_) => shaper.as_ref().map(Shaper::name).unwrap_or_default(),
        };
        if route.out.iter().any(|device| device == queued_on) {
            return Err(Error::Input(format!(
                "packets cannot be seen leaving by {queued_on}: programs there run before its shaper. Name the devices that \
                 they leave by afterwards, or let `--rate` make a shaper before it"
            )));
        }
        let out = if route.out.is_empty() { others(&route.device, queued_on)? } else { route.out.clone() };
        if out.is_empty() {
            return Err(Error::Input(format!(
                "there is no device besides {} and the shaper: a router needs one to forward to",
                route.device
            )));
        }
        let share = if route.dual { 0.5 } else { 1.0 };
        let settings = router_settings {
            mu: (rate_bps as f64 / 8.0 * share) as u64,
            eta: (route.eta * ONE) as u64,
            token_limit: (route.token_limit * ONE) as u64,
            delta_us: micros(route.delta),
            target_us: micros(route.target),
            window_ns: u64::try_from(route.window.as_nanos()).unwrap_or(u64::MAX),
            // A shaper that stands already does not say how much may wait.
            buffer: if matches!(route.capacity, Capacity::Rate(_)) { route.limit_bytes } else { 0 },
        };
        // Merged packets would share one mark.
        let merging = Merging::off(&route.device)?;
        let mut notes = Vec::new();
        if let Some(shaper) = shaper.as_ref().filter(|shaper| shaper.in_place_of_another) {
            notes.push(format!("removed {}, left by a router that was killed", shaper.name()));
        }
        if merging.left_off {
            let device = &route.device;
            notes.push(format!(
                "a router that was killed left generic receive offload of {device} off: it is switched on at the end"
            ));
        }
        let devices = router_place {
            shaper: shaper_index,
            link_header: ETHERNET,
            class_abc: classes[0],
            class_other: classes[1],
            // The numbers of bpf/router.bpf.c.
            law: match route.variant {
                Variant::Paper => 0,
                Variant::Adaptive => 1,
                Variant::L4s => 2,
            },
        };
        let mut place = MaybeUninit::uninit();
        let loaded = objects::load("loading the router", open(&mut place, devices)?)?;
        let maps = Maps {
            settings: objects::handle(&loaded.maps.bl_settings)?,
            router: objects::handle(&loaded.maps.bl_router)?,
            loop_state: objects::handle(&loaded.maps.bl_loop)?,
            counts: objects::handle(&loaded.maps.bl_counts)?,
            flows: objects::handle(&loaded.maps.bl_flows)?,
        };
        let mut router = Router {
            out: Vec::new(),
            notes,
            rate_bps,
            maps,
            links: Vec::new(),
            shaper,
            _merging: merging,
            weights: Weights::default(),
            weighed_at: Instant::now(),
            share,
            window: brakelight_core::time::Duration::from_nanos(settings.window_ns),
            variant: route.variant,
            settings,
            before: Box::default(),
            _claim: claim,
        };
        router.write_settings()?;
        for device in out {
            router.watch_departures(&device, &loaded.progs.bl_depart, devices)?;
            router.out.push(device);
        }
        // Last, so that nothing is stamped that nobody takes the stamp off.
        router.links.push(objects::attach_tcx(&loaded.progs.bl_arrive, arrival)?);
        Ok(router)
    }

    fn watch_departures(
        &mut self,
        device: &str,
        depart: &ProgramMut<'_>,
        devices: router_place,
    ) -> Result<(), Error> {
        let (index, link_header) = objects::device(device)?;
        if link_header == devices.link_header {
            self.links.push(objects::attach_tcx(depart, index)?);
            return Ok(());
        }
        // Another kind of device: the same program with another setting, on the same maps.
        let mut place = MaybeUninit::uninit();
        let mut opened = open(&mut place, router_place { link_header, ..devices })?;
        objects::share(&mut opened.maps.bl_settings, self.maps.settings.as_fd())?;
        objects::share(&mut opened.maps.bl_router, self.maps.router.as_fd())?;
        objects::share(&mut opened.maps.bl_loop, self.maps.loop_state.as_fd())?;
        objects::share(&mut opened.maps.bl_counts, self.maps.counts.as_fd())?;
        objects::share(&mut opened.maps.bl_flows, self.maps.flows.as_fd())?;
        let loaded = objects::load("loading the router", opened)?;
        self.links.push(objects::attach_tcx(&loaded.progs.bl_depart, index)?);
        Ok(())
    }

    fn read_counts(&self) -> Result<Box<counts>, Error> {
        let value = self.maps.counts.lookup(&FIRST, MapFlags::ANY);
        let value = value.map_err(|error| objects::refused("reading the router's counts", &error))?;
        let counts = value.and_then(|bytes| objects::read(&bytes)).map(Box::new);
        counts.ok_or_else(|| Error::kernel("reading the router's counts", "there are none"))
    }

    fn write_settings(&self) -> Result<(), Error> {
        let written = self.maps.settings.update(&FIRST, objects::bytes_of(&self.settings), MapFlags::ANY);
        written.map_err(|error| objects::refused("writing the router's settings", &error))
    }

    /// Updates the weights of the two queues. Call it about every 100 ms; with one queue it does nothing.
    ///
    /// # Errors
    /// If `tc` refuses the new weights.
    pub fn weigh(&mut self) -> Result<(), Error> {
        let Some(shaper) = self.shaper.as_ref().filter(|shaper| shaper.is_dual()) else { return Ok(()) };
        // A period takes as long as it takes: rates are by the clock.
        let passed = self.weighed_at.elapsed();
        if passed < Duration::from_millis(50) {
            return Ok(());
        }
        self.weighed_at = Instant::now();
        let mut seen = Vec::new();
        for key in self.maps.flows.keys() {
            if let Ok(Some(value)) = self.maps.flows.lookup(&key, MapFlags::ANY)
                && let (Ok(hash), Some(flow)) = (<[u8; 4]>::try_from(key), objects::read::<flow>(&value))
            {
                seen.push((u32::from_ne_bytes(hash), flow.bytes, flow.abc != 0));
            }
        }
        let Some(share) = self.weights.update(passed.as_secs_f64(), &seen, self.rate_bps as f64 / 8.0) else {
            return Ok(());
        };
        if (share - self.share).abs() > 0.005 {
            shaper.weigh(share.clamp(0.05, 0.95))?;
            self.share = share.max(0.05);
            let rate_bps = self.rate_bps as f64 * self.share;
            self.settings.mu = (rate_bps / 8.0) as u64;
            let share = Rate::from_bps(rate_bps as u64);
            self.settings.window_ns = dual::window(self.window, PACKET, share).as_nanos();
            self.write_settings()?;
        }
        Ok(())
    }

    /// Returns the router's statistics since the last sample.
    ///
    /// # Errors
    /// If the counters cannot be read.
    pub fn sample(&mut self, interval: Duration) -> Result<Sample, Error> {
        let counts = self.read_counts()?;
        let before = std::mem::replace(&mut self.before, counts.clone());
        let rate = |bytes: u64| bytes as f64 * 8.0 / 1e6 / interval.as_secs_f64();
        let sent: [u64; 3] = std::array::from_fn(|kind| counts.sent[kind] - before.sent[kind]);
        let total = sent.iter().sum::<u64>().max(1) as f64;
        let adaptive = self.variant == Variant::Adaptive;
        Ok(Sample {
            mbps: rate(counts.bytes - before.bytes),
            capacity_mbps: self.rate_bps as f64 / 1e6,
            abc_share: self.share,
            abc_mbps: rate(counts.class_bytes[0] - before.class_bytes[0]),
            other_mbps: rate(counts.class_bytes[1] - before.class_bytes[1]),
            measured_mbps: counts.cr as f64 * 8.0 / 1e6,
            f: counts.f as f64 / ONE,
            tokens: counts.token as f64 / ONE,
            delay_p50_ms: delay_ms(&before, &counts, 0.5),
            delay_p95_ms: delay_ms(&before, &counts, 0.95),
            accelerate_percent: 100.0 * sent[0] as f64 / total,
            brake_percent: 100.0 * sent[1] as f64 / total,
            ce_percent: 100.0 * sent[2] as f64 / total,
            packets: counts.packets,
            turned_packets: counts.turned,
            not_ect_packets: counts.not_ect,
            merged_packets: counts.merged,
            accelerate_bytes: counts.sent_payload[0],
            brake_bytes: counts.sent_payload[1],
            ce_bytes: counts.sent_payload[2],
            loop_delay_ms: adaptive.then_some(counts.loop_delay_us as f64 / 1e3),
            forecast_error_bytes: (self.variant != Variant::Paper).then_some(counts.forecast_error),
        })
    }
}

fn micros(time: Duration) -> u64 {
    u64::try_from(time.as_micros()).unwrap_or(u64::MAX)
}

/// Every other device of this network namespace but the loopback and the shaper.
fn others(device: &str, queued_on: &str) -> Result<Vec<String>, Error> {
    // SAFETY: it returns a list that is ours to free, or null.
    let list = unsafe { libc::if_nameindex() };
    if list.is_null() {
        return Err(Error::kernel("listing devices", std::io::Error::last_os_error()));
    }
    let mut names = Vec::new();
    let mut entry = list;
    // SAFETY: the list ends in an entry whose index is 0; until then each has a name that ends in NUL.
    unsafe {
        while (*entry).if_index != 0 {
            names.push(std::ffi::CStr::from_ptr((*entry).if_name).to_string_lossy().into_owned());
            entry = entry.add(1);
        }
        libc::if_freenameindex(list);
    }
    names.retain(|name| name != device && name != "lo" && name != queued_on);
    Ok(names)
}
