//! ABC's router on an existing device: programs on the way in and on the way out, a shaper between them.

use std::time::{Duration, Instant};

use libbpf_rs::{Link, MapCore, MapFlags, Object};

use super::merging::Merging;
use super::objects;
use super::shaper::{CLASSES, Shaper, rate_of};
use super::weights::Weights;
use crate::doctor;
use crate::error::Error;
use crate::settings::{Capacity, Route, Sample};

/// `SHARE_ONE` of `bpf/router.h`
pub(super) const ONE: f64 = (1_u32 << 20) as f64;

/// A router as long as it lives.
#[derive(Debug)]
pub struct Router {
    /// Devices that packets leave by.
    pub out: Vec<String>,
    /// The shaper's rate.
    pub rate_bps: u64,
    object: Object,
    others: Vec<Object>,
    links: Vec<Link>,
    shaper: Option<Shaper>,
    /// Put back after the programs are gone.
    _merging: Merging,
    weights: Weights,
    weighed_at: Instant,
    share: f64,
    settings: [u64; 6],
    before: Counts,
}

/// `struct counts` of `bpf/router.bpf.c`.
#[derive(Clone, Debug, Default)]
struct Counts {
    packets: u64,
    bytes: u64,
    sent: [u64; 3],
    sent_payload: [u64; 3],
    turned: u64,
    not_ect: u64,
    f: u64,
    cr: u64,
    token: u64,
    class_bytes: [u64; 2],
    merged: u64,
    delays: Vec<u32>,
}

impl Counts {
    fn read(bytes: &[u8]) -> Self {
        let (words, delays) = bytes.split_at(19 * 8);
        let word = |index: usize| {
            let mut field = [0; 8];
            field.copy_from_slice(&words[index * 8..index * 8 + 8]);
            u64::from_ne_bytes(field)
        };
        let delay = |bytes: &[u8]| u32::from_ne_bytes([bytes[0], bytes[1], bytes[2], bytes[3]]);
        Counts {
            packets: word(0),
            bytes: word(1),
            sent: [word(2), word(3), word(4)],
            sent_payload: [word(6), word(7), word(8)],
            turned: word(10),
            not_ect: word(11),
            f: word(12),
            cr: word(13),
            token: word(14),
            class_bytes: [word(16), word(17)],
            merged: word(18),
            delays: delays.chunks_exact(4).map(delay).collect(),
        }
    }

    /// The delay that a share `p` of the packets since `before` did not exceed, in milliseconds: the upper end of its bin.
    fn delay_ms(&self, before: &Counts, p: f64) -> f64 {
        let since = |(bin, count): (usize, &u32)| {
            count.wrapping_sub(before.delays.get(bin).copied().unwrap_or_default())
        };
        let counts: Vec<u64> = self.delays.iter().enumerate().map(since).map(u64::from).collect();
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
}

impl Router {
    /// Puts the programs and, unless one is there, the shaper in place.
    ///
    /// # Errors
    /// Whatever the kernel refuses; nothing is left behind then.
    pub fn attach(route: &Route) -> Result<Self, Error> {
        doctor::require_root()?;
        let (arrival, _) = objects::device(&route.device)?;
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
                "beside {} and the shaper there is no device: a router forwards to another one",
                route.device
            )));
        }
        let share = if route.dual { 0.5 } else { 1.0 };
        let settings = [
            (rate_bps as f64 / 8.0 * share) as u64,
            (route.eta * ONE) as u64,
            (route.token_limit * ONE) as u64,
            micros(route.delta),
            micros(route.target),
            u64::try_from(route.window.as_nanos()).unwrap_or(u64::MAX),
        ];
        // Merged packets would share one mark.
        let merging = Merging::off(&route.device)?;
        let object = objects::open("router", objects::ROUTER, &[shaper_index, 14, classes[0], classes[1]])?;
        let object = objects::load("loading the router", object)?;
        let mut router = Router {
            out: Vec::new(),
            rate_bps,
            object,
            others: Vec::new(),
            links: Vec::new(),
            shaper,
            _merging: merging,
            weights: Weights::default(),
            weighed_at: Instant::now(),
            share,
            settings,
            before: Counts::default(),
        };
        router.write_settings()?;
        for device in out {
            router.watch_departures(&device, [shaper_index, 14, classes[0], classes[1]])?;
            router.out.push(device);
        }
        // Last, so that nothing is stamped that nobody takes the stamp off.
        let link = objects::attach_tcx(&objects::program(&router.object, "bl_arrive")?, arrival)?;
        router.links.push(link);
        Ok(router)
    }

    fn watch_departures(&mut self, device: &str, mut place: [u32; 4]) -> Result<(), Error> {
        let (index, header) = objects::device(device)?;
        if header == place[1] {
            let link = objects::attach_tcx(&objects::program(&self.object, "bl_depart")?, index)?;
            self.links.push(link);
            return Ok(());
        }
        // Another kind of device: the same program with another setting, on the same maps.
        place[1] = header;
        let mut object = objects::open("router", objects::ROUTER, &place)?;
        objects::share(&mut object, &objects::maps(&self.object)?)?;
        let object = objects::load("loading the router", object)?;
        let link = objects::attach_tcx(&objects::program(&object, "bl_depart")?, index)?;
        self.links.push(link);
        self.others.push(object);
        Ok(())
    }

    fn value(&self, name: &str) -> Result<Vec<u8>, Error> {
        let map = self.object.maps().find(|map| map.name() == name);
        let value = map.map(|map| map.lookup(&0_u32.to_ne_bytes(), MapFlags::ANY)).transpose();
        let value = value.map_err(|error| objects::refused("reading the router's counts", &error))?;
        value.flatten().ok_or_else(|| Error::kernel("reading the router's counts", "there are none"))
    }

    fn write_settings(&self) -> Result<(), Error> {
        let bytes: Vec<u8> = self.settings.iter().flat_map(|word| word.to_ne_bytes()).collect();
        let map = self.object.maps().find(|map| map.name() == "bl_settings");
        let map = map.ok_or_else(|| Error::kernel("the router", "it takes no settings"))?;
        map.update(&0_u32.to_ne_bytes(), &bytes, MapFlags::ANY)
            .map_err(|error| objects::refused("writing the router's settings", &error))
    }

    /// Finds the weights of the two queues anew. To be called about every 100 ms; with one queue it does nothing.
    ///
    /// # Errors
    /// If the shaper does not take them.
    pub fn weigh(&mut self) -> Result<(), Error> {
        let Some(shaper) = self.shaper.as_ref().filter(|shaper| shaper.is_dual()) else { return Ok(()) };
        // A period takes as long as it takes: rates are by the clock.
        let passed = self.weighed_at.elapsed();
        if passed < Duration::from_millis(50) {
            return Ok(());
        }
        self.weighed_at = Instant::now();
        let flows = self.object.maps().find(|map| map.name() == "bl_flows");
        let flows = flows.ok_or_else(|| Error::kernel("the router", "it counts no flows"))?;
        let mut seen = Vec::new();
        for key in flows.keys() {
            if let Ok(Some(value)) = flows.lookup(&key, MapFlags::ANY) {
                let mut bytes = [0; 8];
                bytes.copy_from_slice(&value[..8]);
                let hash = u32::from_ne_bytes([key[0], key[1], key[2], key[3]]);
                seen.push((hash, u64::from_ne_bytes(bytes), value[8] != 0));
            }
        }
        let Some(share) = self.weights.update(passed.as_secs_f64(), &seen, self.rate_bps as f64 / 8.0) else {
            return Ok(());
        };
        if (share - self.share).abs() > 0.005 {
            shaper.weigh(share.clamp(0.05, 0.95))?;
            self.share = share.max(0.05);
            self.settings[0] = (self.rate_bps as f64 / 8.0 * self.share) as u64;
            self.write_settings()?;
        }
        Ok(())
    }

    /// What happened since the last sample.
    ///
    /// # Errors
    /// If the kernel does not say.
    pub fn sample(&mut self, interval: Duration) -> Result<Sample, Error> {
        let counts = Counts::read(&self.value("bl_counts")?);
        let before = std::mem::replace(&mut self.before, counts.clone());
        let rate = |bytes: u64| bytes as f64 * 8.0 / 1e6 / interval.as_secs_f64();
        let sent: [u64; 3] = std::array::from_fn(|kind| counts.sent[kind] - before.sent[kind]);
        let total = sent.iter().sum::<u64>().max(1) as f64;
        Ok(Sample {
            mbps: rate(counts.bytes - before.bytes),
            capacity_mbps: self.rate_bps as f64 / 1e6,
            abc_share: self.share,
            abc_mbps: rate(counts.class_bytes[0] - before.class_bytes[0]),
            other_mbps: rate(counts.class_bytes[1] - before.class_bytes[1]),
            measured_mbps: counts.cr as f64 * 8.0 / 1e6,
            f: counts.f as f64 / ONE,
            tokens: counts.token as f64 / ONE,
            delay_p50_ms: counts.delay_ms(&before, 0.5),
            delay_p95_ms: counts.delay_ms(&before, 0.95),
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
