//! The least that carrying packets can cost on this machine: a loop that makes the system calls which any
//! program must make for them, and does nothing between.
//!
//! ```text
//! wake up at t:   write the data that leaves at t; read what has come on both sides; write the
//!                 acknowledgements among it
//! sleep until:    the next step of a periodic timer, or a packet comes
//! ```
//!
//! There is no link, no element, no log, no meter and no clock. Nothing says when a packet came. What this
//! costs an emulator cannot save, as long as it wakes up as often.

use std::collections::VecDeque;
use std::io::IoSlice;
use std::os::fd::AsFd;
use std::sync::Arc;
use std::thread;

use brakelight_core::time::Duration;
use brakelight_emulator::clock::{self, Stop};
use brakelight_emulator::device::{LARGEST, Port, Read};
use brakelight_emulator::segment::{Joined, LONGEST, Large, is_large};
use nix::poll::{PollFd, PollFlags, ppoll};
use nix::sys::resource::UsageWho;
use nix::sys::time::{TimeSpec, TimeValLike};
use nix::sys::timerfd::{ClockId, Expiration, TimerFd, TimerFlags, TimerSetTimeFlags};

use super::{INNER, Namespace, OUTER, Options, connection, processor_seconds, steady_mbps};

/// The buffer of the link, in packets.
const BUFFER: usize = 250;

/// Bytes for an acknowledgement with the virtio header before it: more than any packet of the device has.
const ROOM: usize = 1600;

/// What is done at each wake-up.
#[derive(Clone, Copy)]
struct Plan {
    /// Data leaves once per step.
    step: Duration,
    /// The three steps of a period, packets in each.
    packets: [usize; 3],
    /// Whether acknowledgements leave with the data of the next step, as on a link that follows the same
    /// trace, and not when they are read.
    wait: bool,
    /// Whether a packet that comes wakes the thread. Without this nobody knows when it came.
    woken: bool,
    /// Whether the packets of a step are written in one buffer if they can be joined.
    joined: bool,
}

/// 100 Mbit/s in packets of 1500 bytes, two in a wake-up: all that lateness below 200 us allows.
const FIXED: Plan =
    Plan { step: Duration::from_micros(240), packets: [2; 3], wait: false, woken: true, joined: false };

/// The trace of 100 Mbit/s on the grid of milliseconds.
const TRACE: Plan =
    Plan { step: Duration::from_millis(1), packets: [8, 8, 9], wait: true, woken: true, joined: false };

/// All plans: as the emulator carries packets; with the packets of a step joined; and both without a wake-up
/// by packets that come. The last two are no emulator: it would not know when packets came.
pub fn measure(options: &Options) -> serde_json::Value {
    let all = |plan: Plan| {
        let joined = Plan { joined: true, ..plan };
        serde_json::json!({
            "alone": run(options, plan),
            "joined": run(options, joined),
            "not_woken_by_packets": run(options, Plan { woken: false, ..plan }),
            "joined_and_not_woken": run(options, Plan { woken: false, ..joined }),
        })
    };
    serde_json::json!({ "processor": all(FIXED), "trace": all(TRACE) })
}

fn run(options: &Options, plan: Plan) -> serde_json::Value {
    let (inner, outer) = (Namespace::new(), Namespace::new());
    let mut carried = Bare {
        inside: inner.tun("inside", INNER, OUTER),
        outside: outer.tun("outside", OUTER, INNER),
        large: vec![0; LARGEST],
        data: VecDeque::new(),
        acks: VecDeque::new(),
        free: Vec::new(),
        counts: Counts::default(),
    };
    let stop = Arc::new(Stop::new().expect("an event descriptor"));
    let (stopped, fifo) = (stop.clone(), options.settings.fifo);
    let thread = thread::spawn(move || {
        clock::sleep_precisely(fifo);
        carried.carry(plan, &stopped);
        (carried.counts, processor_seconds(UsageWho::RUSAGE_THREAD))
    });
    let report = connection(&inner, &outer, options);
    stop.set();
    let (counts, spent) = thread.join().expect("it ended");
    serde_json::json!({
        "delivered_mbps": steady_mbps(&report),
        "processor_percent": spent / options.seconds as f64 * 100.0,
        "wakeups": counts.wakeups,
        "packets": counts.packets,
        "writes": counts.writes,
        "reads": counts.reads,
    })
}

#[derive(Clone, Copy, Default)]
struct Counts {
    wakeups: u64,
    packets: u64,
    writes: u64,
    reads: u64,
}

/// Both devices, and the packets in between.
struct Bare {
    inside: Arc<Port>,
    outside: Arc<Port>,
    large: Vec<u8>,
    data: VecDeque<Vec<u8>>,
    acks: VecDeque<Vec<u8>>,
    /// Buffers that can be used again: nothing is allocated for a packet alone.
    free: Vec<Vec<u8>>,
    counts: Counts,
}

impl Bare {
    fn carry(&mut self, plan: Plan, stop: &Stop) {
        let timer = TimerFd::new(ClockId::CLOCK_MONOTONIC, TimerFlags::TFD_NONBLOCK).expect("a timer");
        let step = TimeSpec::nanoseconds(plan.step.as_nanos() as i64);
        timer.set(Expiration::Interval(step), TimerSetTimeFlags::empty()).expect("a period");
        let (inside, outside) = (self.inside.clone(), self.outside.clone());
        let watched = if plan.woken { 4 } else { 2 };
        let mut passed = 0;
        loop {
            let descriptors = [stop.as_fd(), timer.as_fd(), inside.as_fd(), outside.as_fd()];
            let mut fds = descriptors.map(|fd| PollFd::new(fd, PollFlags::POLLIN));
            ppoll(&mut fds[..watched], None, None).expect("a sleep");
            let came = fds.map(|fd| fd.any().unwrap_or(true));
            if came[0] {
                return;
            }
            self.counts.wakeups += 1;
            let mut expired = [0; 8];
            if came[1] && nix::unistd::read(&timer, &mut expired).is_ok() {
                self.write_acks();
                for _ in 0..u64::from_ne_bytes(expired) {
                    self.write_data(plan.packets[passed % 3], plan.joined);
                    passed += 1;
                }
            }
            // What is written may be answered before the write returns.
            let mut look = came[1] || came[2];
            while look {
                look = self.read_inside() && !plan.wait;
                if !plan.wait {
                    self.write_acks();
                }
            }
            self.read_outside();
        }
    }

    /// Acknowledgements come one by one. Says whether there were any.
    fn read_inside(&mut self) -> bool {
        loop {
            let mut bytes = self.free.pop().unwrap_or_default();
            bytes.resize(ROOM, 0);
            self.counts.reads += 1;
            let Read::Packet(length) = self.inside.read(&mut bytes, &mut []).expect("a device") else {
                self.free.push(bytes);
                return !self.acks.is_empty();
            };
            bytes.truncate(length);
            self.acks.push_back(bytes);
        }
    }

    /// Data comes in large buffers.
    fn read_outside(&mut self) {
        loop {
            self.counts.reads += 1;
            let Read::Packet(length) = self.outside.read(&mut self.large, &mut []).expect("a device") else {
                return;
            };
            let whole = &self.large[..length];
            let large = if is_large(whole) { Large::read(whole, length) } else { None };
            for index in 0..large.as_ref().map_or(1, Large::packets) {
                if self.data.len() == BUFFER {
                    break;
                }
                let mut bytes = self.free.pop().unwrap_or_default();
                match &large {
                    None => {
                        bytes.clear();
                        bytes.extend_from_slice(whole);
                    }
                    Some(large) => {
                        bytes.resize(LONGEST, 0);
                        let start = large.write_headers(index, &mut bytes);
                        bytes.truncate(start);
                        bytes.extend_from_slice(&whole[large.data_of(index)]);
                    }
                }
                self.data.push_back(bytes);
            }
        }
    }

    fn write_acks(&mut self) {
        while let Some(bytes) = self.acks.pop_front() {
            write(&self.outside, &[IoSlice::new(&bytes)], &mut self.counts);
            self.free.push(bytes);
        }
    }

    /// Writes the next `packets`, or fewer if there are fewer.
    fn write_data(&mut self, packets: usize, joined: bool) {
        let mut left = packets.min(self.data.len());
        while left > 0 {
            let mut begun = if joined { Joined::begin(&self.data[0]) } else { None };
            let mut alike = 1;
            while alike < left && begun.as_mut().is_some_and(|begun| begun.join(&self.data[alike])) {
                alike += 1;
            }
            match begun.filter(|_| alike > 1) {
                None => write(&self.inside, &[IoSlice::new(&self.data[0])], &mut self.counts),
                Some(begun) => {
                    let (headers, start) = begun.headers();
                    let data = self.data.iter().take(alike).map(|bytes| IoSlice::new(&bytes[start..]));
                    let pieces: Vec<IoSlice<'_>> =
                        [IoSlice::new(&headers[..start])].into_iter().chain(data).collect();
                    write(&self.inside, &pieces, &mut self.counts);
                    self.counts.packets += alike as u64 - 1;
                }
            }
            self.free.extend(self.data.drain(..alike));
            left -= alike;
        }
    }
}

fn write(to: &Port, pieces: &[IoSlice<'_>], counts: &mut Counts) {
    counts.packets += 1;
    counts.writes += 1;
    // A device whose namespace ends refuses.
    let _ = to.write_pieces(pieces);
}
