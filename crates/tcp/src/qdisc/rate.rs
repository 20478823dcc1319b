//! The rate of a shaper that stands on a device already: read, and changed in place, over rtnetlink.
//!
//! | qdisc | the rate | what a change must say besides |
//! |---|---|---|
//! | `cake` | `TCA_CAKE_BASE_RATE64`, byte/s, 0 for unlimited | nothing: what is not said stays |
//! | `tbf` | `struct tc_tbf_qopt`, byte/s, and `TCA_TBF_RATE64` from 2^32 on | everything |
//!
//! Numbers and structures are those of `include/uapi/linux/pkt_sched.h`; what a change does is in
//! `net/sched/sch_api.c`, `sch_cake.c` and `sch_tbf.c`. A change names the qdisc's handle and has no
//! `NLM_F_CREATE`: where another qdisc stands there by then, the kernel refuses it and nothing is put there.
//!
//! `tbf` fills its bucket whenever it is changed (`q->tokens = q->buffer`), so each change lets up to a burst
//! pass. It drops packets larger than its burst, so the burst stays what it was in bytes.

use std::io;

use super::message::{
    ACK, GET, KIND, NEW, OPTIONS, Place, REQUEST, STATS_BASIC, STATS_QUEUE, STATS2, attribute, find, nested,
    request_at, u32_at, u64_at,
};
use super::{DUMP, ROOT, Rtnetlink, index_of};
use crate::error::Error;

/// `TCA_STAB`: a table of packet sizes. A change without it removes it (`qdisc_change`).
const STAB: u16 = 8;

/// `TCA_CAKE_BASE_RATE64`, `TCA_CAKE_AUTORATE`.
const CAKE_BASE_RATE64: u16 = 2;
const CAKE_AUTORATE: u16 = 9;

/// `TCA_TBF_PARMS`, `TCA_TBF_RATE64`, `TCA_TBF_BURST`.
const TBF_PARMS: u16 = 1;
const TBF_RATE64: u16 = 4;
const TBF_BURST: u16 = 6;
/// Where `struct tc_tbf_qopt` has its parts: rate and peakrate are a `struct tc_ratespec` each.
const RATESPEC: usize = 12;
const RATESPEC_RATE: usize = 8;
const LINKLAYER: usize = 1;
const TBF_LIMIT: usize = 24;
const TBF_BUFFER: usize = 28;
const TBF_QOPT: usize = 36;
/// `TC_LINKLAYER_ETHERNET`.
const ETHERNET: u8 = 1;
/// Nanoseconds of a tick: `PSCHED_SHIFT` is 6 (include/net/pkt_sched.h).
const TICK_NS: u128 = 64;

/// include/uapi/asm-generic/errno-base.h
const NOT_PERMITTED: i32 = 1;
const NOT_FOUND: i32 = 2;
const NO_DEVICE: i32 = 19;
const INVALID: i32 = 22;

/// A qdisc that shapes, with what is needed to change its rate.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ShapingKind {
    /// `cake`.
    Cake,
    /// `tbf`.
    Tbf {
        /// `struct tc_ratespec` of the rate, but for the rate itself: link layer and overhead.
        shape: [u8; RATESPEC],
        /// Bytes that it holds, tokens included.
        limit: u32,
        /// Size of its bucket in bytes.
        burst: u32,
        /// Whether it has no qdisc below it that keeps flows apart: a packet waits behind all others.
        fifo: bool,
    },
}

impl ShapingKind {
    /// Returns the kernel's name of it.
    pub fn name(&self) -> &'static str {
        match self {
            ShapingKind::Cake => "cake",
            ShapingKind::Tbf { .. } => "tbf",
        }
    }

    /// Returns `TCA_OPTIONS` for a rate in bit/s; `None` is unlimited, which `tbf` cannot be.
    fn options(&self, rate_bps: Option<u64>) -> Vec<u8> {
        // 0 would be no rate: less than a byte per second is one byte.
        let rate = rate_bps.map_or(0, |bps| (bps / 8).max(1));
        match self {
            ShapingKind::Cake => nested(&[attribute(CAKE_BASE_RATE64, &rate.to_ne_bytes())]),
            ShapingKind::Tbf { shape, limit, burst, .. } => {
                let mut parms = [0; TBF_QOPT];
                parms[..RATESPEC].copy_from_slice(shape);
                // Unaware of its link layer, the kernel would ask for a table of times.
                parms[LINKLAYER] = shape[LINKLAYER].max(ETHERNET);
                let small = u32::try_from(rate).unwrap_or(u32::MAX);
                parms[RATESPEC_RATE..RATESPEC].copy_from_slice(&small.to_ne_bytes());
                parms[TBF_LIMIT..TBF_BUFFER].copy_from_slice(&limit.to_ne_bytes());
                let ticks = u128::from(*burst) * 1_000_000_000 / u128::from(rate.max(1)) / TICK_NS;
                let ticks = u32::try_from(ticks).unwrap_or(u32::MAX);
                parms[TBF_BUFFER..TBF_BUFFER + 4].copy_from_slice(&ticks.to_ne_bytes());
                let mut attributes =
                    vec![attribute(TBF_PARMS, &parms), attribute(TBF_BURST, &burst.to_ne_bytes())];
                if small == u32::MAX {
                    attributes.push(attribute(TBF_RATE64, &rate.to_ne_bytes()));
                }
                nested(&attributes)
            }
        }
    }
}

/// What stands on a device and how it is doing.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ShapingState {
    /// Its number; another one's is another.
    pub handle: u32,
    /// What it is.
    pub kind: ShapingKind,
    /// The rate in bit/s; `None` if it is unlimited.
    pub rate_bps: Option<u64>,
    /// Bytes that left since it was put there, with link headers.
    pub bytes: u64,
    /// Bytes that wait in it, with link headers.
    pub waiting_bytes: u32,
    /// Packets that wait in it.
    pub waiting_packets: u32,
}

/// A message about a qdisc, as far as this module understands it.
#[derive(Clone, Debug, PartialEq, Eq)]
enum Found {
    Shaping(ShapingState),
    /// Its kind, and why its rate cannot be set where the kind is not the reason.
    Other(String, Option<&'static str>),
}

/// Reads what the kernel says about a qdisc.
fn read(body: &[u8]) -> Option<(Place, Found)> {
    let attributes = body.get(20..)?;
    let place =
        Place { device: u32_at(body, 4)? as i32, handle: u32_at(body, 8)?, parent: u32_at(body, 12)? };
    let kind = find(attributes, KIND)?;
    let name = String::from_utf8_lossy(kind).trim_end_matches('\0').to_string();
    let options = find(attributes, OPTIONS).unwrap_or_default();
    let shaping = match name.as_str() {
        "cake" => cake(options),
        "tbf" => tbf(options),
        _ => return Some((place, Found::Other(name, None))),
    };
    let (kind, rate_bps) = match shaping {
        Ok(shaping) => shaping,
        Err(why) => return Some((place, Found::Other(name, Some(why)))),
    };
    if find(attributes, STAB).is_some() {
        let why = "it has a table of packet sizes (`stab`), which a change of the rate would remove";
        return Some((place, Found::Other(name, Some(why))));
    }
    let statistics = find(attributes, STATS2)?;
    let (basic, queue) = (find(statistics, STATS_BASIC)?, find(statistics, STATS_QUEUE)?);
    let standing = ShapingState {
        handle: place.handle,
        kind,
        rate_bps,
        bytes: u64_at(basic, 0)?,
        waiting_packets: u32_at(queue, 0)?,
        waiting_bytes: u32_at(queue, 4)?,
    };
    Some((place, Found::Shaping(standing)))
}

type Shaping = Result<(ShapingKind, Option<u64>), &'static str>;

const UNREADABLE: &str = "this kernel describes it in a way that is not understood";

fn cake(options: &[u8]) -> Shaping {
    let rate = find(options, CAKE_BASE_RATE64).and_then(|value| u64_at(value, 0)).ok_or(UNREADABLE)?;
    if find(options, CAKE_AUTORATE).and_then(|value| u32_at(value, 0)).is_some_and(|on| on != 0) {
        return Err("it sets its own rate (`autorate-ingress`)");
    }
    Ok((ShapingKind::Cake, Some(rate.saturating_mul(8)).filter(|rate| *rate > 0)))
}

fn tbf(options: &[u8]) -> Shaping {
    let parms = find(options, TBF_PARMS).filter(|parms| parms.len() >= TBF_QOPT).ok_or(UNREADABLE)?;
    if u32_at(parms, RATESPEC + RATESPEC_RATE).is_some_and(|peak| peak != 0) {
        return Err("it has a `peakrate`, which would have to stay above the rate");
    }
    let number = |at| u32_at(parms, at).ok_or(UNREADABLE);
    let small = u64::from(number(RATESPEC_RATE)?);
    let rate = find(options, TBF_RATE64).and_then(|value| u64_at(value, 0)).unwrap_or(small).max(1);
    let mut shape = [0; RATESPEC];
    shape.copy_from_slice(&parms[..RATESPEC]);
    shape[RATESPEC_RATE..].fill(0);
    // The kernel says the bucket as a time in whole ticks, rounded down. One byte too few, and full packets
    // would be dropped: so it is rounded up.
    let ns = (u128::from(number(TBF_BUFFER)?) + 1) * TICK_NS;
    let burst = (ns * u128::from(rate)).div_ceil(1_000_000_000);
    let burst = u32::try_from(burst).unwrap_or(u32::MAX);
    let limit = number(TBF_LIMIT)?;
    Ok((ShapingKind::Tbf { shape, limit, burst, fifo: true }, Some(rate.saturating_mul(8))))
}

/// The shaper at the root of one device, as long as it stands there.
pub struct RateQdisc {
    socket: Rtnetlink,
    device: String,
    index: i32,
    first: ShapingState,
}

impl RateQdisc {
    /// Finds the shaper of `device`.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] if there is no such device, or if what stands on it has no rate that can be set.
    pub fn find(device: &str) -> Result<Self, Error> {
        let index = index_of(device)?;
        let mut found = RateQdisc {
            socket: Rtnetlink::open()?,
            device: device.to_string(),
            index,
            first: ShapingState {
                handle: 0,
                kind: ShapingKind::Cake,
                rate_bps: None,
                bytes: 0,
                waiting_bytes: 0,
                waiting_packets: 0,
            },
        };
        let advice =
            format!("valid is cake or tbf: `tc qdisc replace dev {device} root cake bandwidth 20mbit`");
        found.first = match found.look_at_root()? {
            Some(Found::Shaping(standing)) => standing,
            Some(Found::Other(kind, None)) => {
                return Err(Error::Input(format!(
                    "the qdisc of {device} is {kind}, which has no rate that can be set: {advice}"
                )));
            }
            Some(Found::Other(kind, Some(why))) => {
                return Err(Error::Input(format!("the rate of {kind} on {device} cannot be set: {why}")));
            }
            None => return Err(Error::Input(format!("{device} has no qdisc with a rate: {advice}"))),
        };
        let has_child = found.has_child()?;
        if let ShapingKind::Tbf { fifo, .. } = &mut found.first.kind {
            *fifo = !has_child;
        }
        Ok(found)
    }

    /// Returns the device.
    pub fn device(&self) -> &str {
        &self.device
    }

    /// Returns what stood there when it was found.
    pub fn first(&self) -> &ShapingState {
        &self.first
    }

    /// Returns how it is doing now.
    ///
    /// # Errors
    ///
    /// [`Error::Kernel`] if the device is gone or another qdisc stands there.
    pub fn look(&mut self) -> Result<ShapingState, Error> {
        let (handle, kind) = (self.first.handle, self.first.kind.name());
        match self.look_at_root()? {
            Some(Found::Shaping(now)) if now.handle == handle && now.kind.name() == kind => Ok(now),
            Some(Found::Shaping(now)) if now.kind.name() == kind => Err(self.replaced("another one")),
            Some(Found::Shaping(now)) => Err(self.replaced(now.kind.name())),
            Some(Found::Other(other, _)) => Err(self.replaced(&other)),
            None => Err(Error::kernel(
                format!("the shaper of {}", self.device),
                format!("the {kind} that stood there was removed"),
            )),
        }
    }

    /// Sets the rate, in bit/s; `None` for unlimited.
    ///
    /// # Errors
    ///
    /// [`Error::Input`] without the privilege for it, [`Error::Kernel`] if the kernel refuses, as it does
    /// where the qdisc is gone.
    pub fn set(&mut self, rate_bps: Option<u64>) -> Result<(), Error> {
        let kind = self.first.kind;
        let attributes =
            [attribute(KIND, &[kind.name().as_bytes(), b"\0"].concat()), kind.options(rate_bps)].concat();
        let place = Place { device: self.index, handle: self.first.handle, parent: ROOT };
        let sequence = self.socket.next();
        let message = request_at(NEW, REQUEST | ACK, sequence, &place, &attributes);
        let what = format!("setting the rate of {} on {}", kind.name(), self.device);
        let (error, words) =
            self.socket.ask(&message, read, |_| ()).map_err(|error| Error::kernel(&*what, error))?;
        match error {
            0 => Ok(()),
            NOT_PERMITTED => {
                Err(Error::Input(format!("{what} takes the capability CAP_NET_ADMIN: run it as root")))
            }
            NO_DEVICE => Err(self.gone()),
            NOT_FOUND | INVALID => {
                Err(self.look().err().unwrap_or_else(|| Error::kernel(what, said(error, words))))
            }
            error => Err(Error::kernel(what, said(error, words))),
        }
    }

    fn gone(&self) -> Error {
        Error::kernel(format!("the shaper of {}", self.device), "the device is gone")
    }

    fn replaced(&self, by: &str) -> Error {
        Error::kernel(
            format!("the shaper of {}", self.device),
            format!("{by} was put in place of the {} that stood there", self.first.kind.name()),
        )
    }

    /// Asks for the qdisc at the root; `None` if there is none. By a dump: the answer to a question about one
    /// qdisc goes to everybody who listens to changes of qdiscs, on older kernels to them alone.
    fn look_at_root(&mut self) -> Result<Option<Found>, Error> {
        let (index, mut found) = (self.index, None);
        self.dump(|place, qdisc| {
            if place.device == index && place.parent == ROOT {
                found = Some(qdisc);
            }
        })?;
        let here = nix::net::if_::if_nametoindex(self.device.as_str());
        if found.is_none() && here.ok().and_then(|here| i32::try_from(here).ok()) != Some(index) {
            return Err(self.gone());
        }
        Ok(found)
    }

    /// Returns whether a qdisc that keeps flows apart is below it.
    fn has_child(&mut self) -> Result<bool, Error> {
        let (index, major, mut any) = (self.index, self.first.handle >> 16, false);
        self.dump(|place, qdisc| {
            let fifo = matches!(&qdisc, Found::Other(kind, _) if kind == "bfifo" || kind == "pfifo");
            any |= place.device == index && place.parent != ROOT && place.parent >> 16 == major && !fifo;
        })?;
        Ok(any)
    }

    /// Hands over every qdisc of every device.
    fn dump(&mut self, mut each: impl FnMut(Place, Found)) -> Result<(), Error> {
        let sequence = self.socket.next();
        let all = Place { device: 0, handle: 0, parent: 0 };
        let message = request_at(GET, REQUEST | DUMP, sequence, &all, &[]);
        let end = self.socket.ask(&message, read, |(place, qdisc)| each(place, qdisc));
        match end.map_err(|error| Error::kernel("listing qdiscs", error))? {
            (0, _) => Ok(()),
            (error, words) => Err(Error::kernel("listing qdiscs", said(error, words))),
        }
    }
}

fn said(error: i32, words: Option<String>) -> String {
    words.unwrap_or_else(|| io::Error::from_raw_os_error(error).to_string())
}

#[cfg(test)]
mod tests {
    use proptest::prelude::*;

    use super::super::message::{Answer, answers_of};
    use super::*;

    const PLACE: Place = Place { device: 3, handle: 0x8001_0000, parent: ROOT };

    fn tbf_of(burst: u32) -> ShapingKind {
        // struct tc_ratespec as `tc` writes it: cell_log, linklayer, overhead, cell_align, mpu, rate.
        let shape = [0, 1, 0, 0, 0xff, 0xff, 0, 0, 0, 0, 0, 0];
        ShapingKind::Tbf { shape, limit: 100_000, burst, fifo: true }
    }

    /// What the kernel would say of a qdisc with these options and more attributes.
    fn described(kind: &str, options: &[u8], more: &[u8]) -> Vec<u8> {
        let basic = [9_000_u64.to_ne_bytes().to_vec(), vec![0; 8]].concat();
        let queue = [2_u32, 3_000, 0, 0, 0].map(u32::to_ne_bytes).concat();
        let statistics = [attribute(STATS_BASIC, &basic), attribute(STATS_QUEUE, &queue)].concat();
        let name = attribute(KIND, &[kind.as_bytes(), b"\0"].concat());
        let attributes = [&name[..], options, &attribute(STATS2, &statistics), more].concat();
        request_at(NEW, 0, 7, &PLACE, &attributes)
    }

    fn read_back(message: &[u8]) -> Found {
        match answers_of(message, 7, read).as_slice() {
            [Answer::Qdisc(found)] => {
                assert_eq!(found.0, PLACE);
                found.1.clone()
            }
            other => panic!("{other:?}"),
        }
    }

    fn shaping(kind: ShapingKind, rate_bps: Option<u64>) -> Found {
        Found::Shaping(ShapingState {
            handle: PLACE.handle,
            kind,
            rate_bps,
            bytes: 9_000,
            waiting_bytes: 3_000,
            waiting_packets: 2,
        })
    }

    #[test]
    fn a_rate_of_cake_is_one_attribute_of_eight_bytes() {
        // include/uapi/linux/pkt_sched.h: TCA_CAKE_BASE_RATE64 is 2; 20 Mbit/s are 2,500,000 byte/s.
        let mut expected = Vec::new();
        expected.extend(16_u16.to_ne_bytes());
        expected.extend((0x8000_u16 | 2).to_ne_bytes());
        expected.extend(12_u16.to_ne_bytes());
        expected.extend(2_u16.to_ne_bytes());
        expected.extend(2_500_000_u64.to_ne_bytes());
        assert_eq!(ShapingKind::Cake.options(Some(20_000_000)), expected);
        for rate in [None, Some(8), Some(20_000_000), Some(100_000_000_000)] {
            let message = described("cake", &ShapingKind::Cake.options(rate), &[]);
            assert_eq!(read_back(&message), shaping(ShapingKind::Cake, rate));
        }
        // Less than a byte per second is not unlimited.
        let message = described("cake", &ShapingKind::Cake.options(Some(3)), &[]);
        assert_eq!(read_back(&message), shaping(ShapingKind::Cake, Some(8)));
    }

    #[test]
    fn a_rate_of_tbf_is_the_whole_structure_and_its_burst() {
        let options = tbf_of(3_000).options(Some(24_000_000));
        let mut expected = Vec::new();
        expected.extend(52_u16.to_ne_bytes());
        expected.extend((0x8000_u16 | 2).to_ne_bytes());
        // TCA_TBF_PARMS: the rate, no peakrate, limit, buffer and mtu.
        expected.extend(40_u16.to_ne_bytes());
        expected.extend(1_u16.to_ne_bytes());
        expected.extend([0, 1, 0, 0, 0xff, 0xff, 0, 0]);
        expected.extend(3_000_000_u32.to_ne_bytes());
        expected.extend([0; 12]);
        expected.extend(100_000_u32.to_ne_bytes());
        // 3000 B at 3 MB/s are 1 ms: 15625 ticks of 64 ns.
        expected.extend(15_625_u32.to_ne_bytes());
        expected.extend([0; 4]);
        // TCA_TBF_BURST
        expected.extend(8_u16.to_ne_bytes());
        expected.extend(6_u16.to_ne_bytes());
        expected.extend(3_000_u32.to_ne_bytes());
        assert_eq!(options, expected);
    }

    #[test]
    fn what_cannot_be_changed_alone_is_told_apart() {
        let other = |message: &[u8]| match read_back(message) {
            Found::Other(kind, why) => (kind, why.unwrap_or_default()),
            found @ Found::Shaping(_) => panic!("{found:?}"),
        };
        assert_eq!(other(&described("fq_codel", &nested(&[]), &[])), ("fq_codel".to_string(), ""));
        let stab = attribute(STAB, &[0; 4]);
        let with_table = other(&described("cake", &ShapingKind::Cake.options(Some(8_000)), &stab));
        assert!(with_table.1.contains("stab"), "{with_table:?}");
        let own = nested(&[
            attribute(CAKE_BASE_RATE64, &9_u64.to_ne_bytes()),
            attribute(CAKE_AUTORATE, &1_u32.to_ne_bytes()),
        ]);
        assert!(other(&described("cake", &own, &[])).1.contains("autorate-ingress"));
        let mut parms = [0; TBF_QOPT];
        parms[RATESPEC_RATE..RATESPEC].fill(1);
        parms[RATESPEC + RATESPEC_RATE..TBF_LIMIT].fill(2);
        let peak = nested(&[attribute(TBF_PARMS, &parms)]);
        assert!(other(&described("tbf", &peak, &[])).1.contains("peakrate"));
        let short = nested(&[attribute(TBF_PARMS, &parms[..20])]);
        assert_eq!(other(&described("tbf", &short, &[])).1, UNREADABLE);
        // Without statistics there is nothing to go by.
        let message = request_at(NEW, 0, 7, &PLACE, &attribute(KIND, b"cake\0"));
        assert_eq!(other(&message).1, UNREADABLE);
    }

    proptest! {
        /// A burst that shrank by one byte would drop packets of its size.
        #[test]
        fn a_burst_of_tbf_never_shrinks_by_what_the_kernel_says_of_it(
            burst in 1_514_u32..10_000_000,
            rate_bps in 8_000_u64..400_000_000_000,
        ) {
            let rate = Some(rate_bps / 8 * 8);
            let Found::Shaping(standing) = read_back(&described("tbf", &tbf_of(burst).options(rate), &[]))
            else { panic!() };
            let ShapingKind::Tbf { burst: read, .. } = standing.kind else { panic!() };
            prop_assert_eq!(standing.rate_bps, rate);
            // By no more than what the rate carries in two ticks, and a byte.
            let most = u64::from(burst) + rate_bps / 8 * 128 / 1_000_000_000 + 1;
            let ticks = u128::from(burst) * 1_000_000_000 / u128::from(rate_bps / 8) / TICK_NS;
            prop_assume!(ticks < u128::from(u32::MAX));
            prop_assert!(read >= burst && u64::from(read) <= most, "{} of {}", read, burst);
        }

        #[test]
        fn no_answer_however_broken_is_read_beyond_its_end(
            spoil in prop::collection::vec((0_usize..300, any::<u8>()), 0..6),
            cut in 0_usize..300,
        ) {
            let mut message = described("tbf", &tbf_of(3_000).options(Some(24_000_000)), &[]);
            for (at, value) in spoil {
                let length = message.len();
                message[at % length] = value;
            }
            message.truncate(cut);
            answers_of(&message, 7, read);
        }
    }
}
