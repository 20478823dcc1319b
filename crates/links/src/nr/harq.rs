//! Blocks between a base station and one user: received, sent again, given up (ts38321 5.3.2 and 5.4.2).
//!
//! ```text
//! attempt k fails with probability  bler x combining^(k - 1)
//! after `attempts` attempts         acknowledged mode: sent as a new block `status` later      ts38322 5.3
//!                                   unacknowledged mode: lost
//! A = 1 + p1 + p1 p2 + ...          attempts of a block;  g = p1 p2 ... p_attempts
//! (1 - g) / A                       share of what is sent that is received: what capacity counts
//! ```

use alloc::collections::VecDeque;
use alloc::vec::Vec;

use brakelight_core::random::Random;

use super::frame::{Frame, RadioDirection};
use super::{Config, RlcMode};

/// When what happens after a block.
#[derive(Clone, Debug)]
pub struct Timing {
    frame: Frame,
    direction: RadioDirection,
    k1: u64,
    k2: u64,
    turnaround: u64,
    decode: u64,
    /// From a block that is given up to its next attempt.
    status: u64,
    mode: RlcMode,
    /// The probability that an attempt fails, by attempt.
    errors: Vec<f64>,
}

impl Timing {
    /// Returns the timing of `config`, whose slots are laid out in `frame`.
    pub fn new(config: &Config, frame: Frame) -> Self {
        Timing {
            frame,
            direction: config.direction,
            k1: config.k1.into(),
            k2: config.k2.into(),
            turnaround: config.turnaround.into(),
            decode: config.decode.into(),
            status: config.status.as_nanos().div_ceil(config.scs.slot().as_nanos()),
            mode: config.rlc_mode,
            errors: errors(config),
        }
    }

    /// Returns the slot before which a block of `slot` that failed is not sent again.
    pub fn repeats(&self, slot: u64) -> u64 {
        match self.direction {
            RadioDirection::Down => {
                let feedback = self.frame.next(RadioDirection::Up, slot + self.k1);
                self.frame.next(RadioDirection::Down, feedback + self.turnaround)
            }
            RadioDirection::Up => {
                let grant = self.frame.next(RadioDirection::Down, slot + self.turnaround);
                self.frame.next(RadioDirection::Up, grant + self.k2)
            }
        }
    }

    /// Returns the slot in which the grant for `slot` is decided, if there is one before it.
    pub fn decided(&self, slot: u64) -> Option<u64> {
        self.frame.last(RadioDirection::Down, slot.checked_sub(self.k2)?)
    }

    /// Returns the slot from which on what is heard in `slot` can be answered.
    pub fn heard(&self, slot: u64) -> u64 {
        slot + self.turnaround
    }
}

/// The probability that an attempt fails, by attempt.
fn errors(config: &Config) -> Vec<f64> {
    let each = |attempt| config.bler * libm::pow(config.combining, f64::from(attempt));
    (0..config.attempts).map(each).collect()
}

/// Returns the share of what is sent that is received, and not sent again.
pub fn received(config: &Config) -> f64 {
    let (mut attempts, mut failed) = (0.0, 1.0);
    for error in errors(config) {
        attempts += failed;
        failed *= error;
    }
    (1.0 - failed) / attempts
}

/// What a user says is left to send: `bits` after slot `sent`.
#[derive(Clone, Copy, Debug, PartialEq)]
pub struct BufferStatus {
    /// The slot at whose end that was left.
    pub sent: u64,
    /// Bits that wait.
    pub bits: u64,
}

/// Bytes sent together.
#[derive(Clone, Copy, Debug)]
pub struct Block {
    /// The number of its first byte.
    pub start: u64,
    /// The number of the byte after its last.
    pub end: u64,
    /// Resource blocks times symbols that it takes.
    pub size: u32,
    /// What the user says in it, uplink only.
    pub report: Option<BufferStatus>,
}

/// What is next for a block.
#[derive(Clone, Copy, Debug, PartialEq)]
enum Next {
    /// It is received as this slot begins.
    Received(u64),
    /// It is sent again in this slot or later.
    Sent(u64),
    /// It is given up as this slot begins.
    Lost(u64),
}

#[derive(Clone, Copy, Debug)]
struct Process {
    block: Block,
    /// Attempts so far.
    attempts: usize,
    next: Next,
}

/// The blocks of one user on their way.
#[derive(Clone, Debug, Default)]
pub struct Harq {
    processes: VecDeque<Process>,
}

impl Harq {
    /// A new block is sent in `slot`. Returns what the user says in it, if it is received.
    pub fn send(
        &mut self,
        block: Block,
        slot: u64,
        timing: &Timing,
        random: &mut Random,
    ) -> Option<BufferStatus> {
        let mut process = Process { block, attempts: 0, next: Next::Sent(slot) };
        let heard = process.attempt(slot, timing, random);
        self.processes.push_back(process);
        heard
    }

    /// Sends again in `slot`, of `symbols` symbols, what is due and fits into `blocks` resource blocks.
    /// Returns how many are left; `heard` gets what users say in blocks that are received.
    pub fn repeat(
        &mut self,
        (slot, symbols): (u64, u32),
        mut blocks: u32,
        timing: &Timing,
        random: &mut Random,
        heard: &mut impl FnMut(BufferStatus),
    ) -> u32 {
        for process in &mut self.processes {
            let takes = process.block.size.div_ceil(symbols);
            if !matches!(process.next, Next::Sent(due) if due <= slot) || takes > blocks {
                continue;
            }
            blocks -= takes;
            process.attempt(slot, timing, random).into_iter().for_each(&mut *heard);
        }
        blocks
    }

    /// `slot` begins: forgets what is received by then, and gives up what is lost. Returns the number of the
    /// first byte that is missing.
    pub fn settle(&mut self, slot: u64, lost: &mut impl FnMut(Block)) -> u64 {
        let mut missing = u64::MAX;
        self.processes.retain(|process| match process.next {
            Next::Received(at) if at <= slot => false,
            Next::Lost(at) if at <= slot => {
                lost(process.block);
                false
            }
            _ => {
                missing = missing.min(process.block.start);
                true
            }
        });
        missing
    }

    /// Returns whether a block is to be sent again in which the user says what is left.
    pub fn carries_report(&self) -> bool {
        self.processes.iter().any(|process| process.block.report.is_some())
    }

    /// Forgets everything: the cell is left.
    pub fn clear(&mut self) {
        self.processes.clear();
    }
}

impl Process {
    /// One more attempt, in `slot`. Returns what the user says in it, if it is received.
    fn attempt(&mut self, slot: u64, timing: &Timing, random: &mut Random) -> Option<BufferStatus> {
        let received = !random.chance(timing.errors[self.attempts]);
        self.attempts += 1;
        if received {
            self.next = Next::Received(slot + 1 + timing.decode);
            return self.block.report.take();
        }
        let again = timing.repeats(slot);
        if self.attempts < timing.errors.len() {
            self.next = Next::Sent(again);
            return None;
        }
        // What the user said in it is not heard any more.
        self.block.report = None;
        self.attempts = 0;
        self.next = match timing.mode {
            RlcMode::Acknowledged => Next::Sent(again + timing.status),
            RlcMode::Unacknowledged => Next::Lost(again),
        };
        None
    }
}
