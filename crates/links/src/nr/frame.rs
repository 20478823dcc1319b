//! Slots of NR, what each of them is for, and which slot answers which.
//!
//! ```text
//! slot                       1 ms x 15 kHz / spacing                                  ts38211 4.3.2
//! feedback for a block of n  the first slot >= n + k1 with symbols up                 ts38213 9.1
//! sent again, down           the first slot >= feedback + turnaround with symbols down
//! grant for n                the last slot <= n - k2 with symbols down                ts38214 6.1.2.1
//! sent again, up             the first slot >= grant + k2 with symbols up; the grant is in the first slot >=
//!                            n + turnaround with symbols down
//! ```

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec;
use alloc::vec::Vec;

use brakelight_core::parameters::Value;
use brakelight_core::time::Duration;

/// Symbols of a slot. ts38211 4.3.2
pub const SYMBOLS: u32 = 14;

/// Fewest symbols that carry data down: the shortest allocation of mapping type A. ts38214 table 5.1.2.1-1
const FEWEST_DOWN: u32 = 3;

/// The same up. ts38214 table 6.1.2.1-1
const FEWEST_UP: u32 = 4;

choices! {
    /// The spacing of subcarriers, kHz.
    pub enum Spacing {
        /// 15 kHz: slots of 1 ms.
        Khz15 = "15",
        /// 30 kHz: slots of 0.5 ms.
        Khz30 = "30",
        /// 60 kHz: slots of 0.25 ms.
        Khz60 = "60",
        /// 120 kHz, for millimeter waves: slots of 0.125 ms.
        Khz120 = "120",
    }
}

impl Spacing {
    /// Returns how long a slot lasts. ts38211 table 4.3.2-1
    pub fn slot(self) -> Duration {
        Duration::from_micros(match self {
            Spacing::Khz15 => 1000,
            Spacing::Khz30 => 500,
            Spacing::Khz60 => 250,
            Spacing::Khz120 => 125,
        })
    }

    /// Returns the most resource blocks of a carrier. ts38101 tables 5.3.2-1
    pub fn most_blocks(self) -> u32 {
        match self {
            Spacing::Khz15 => 270,
            Spacing::Khz30 => 273,
            Spacing::Khz60 => 135,
            Spacing::Khz120 => 264,
        }
    }
}

choices! {
    /// Which way packets go.
    pub enum RadioDirection {
        /// From the base station to its users.
        Down = "down",
        /// From the users to the base station.
        Up = "up",
    }
}

/// What a slot is for.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Slot {
    /// Down.
    Down,
    /// Up.
    Up,
    /// Both, one after the other.
    Special,
}

/// Slots in turn, such as `DDDSU`; none where both directions have a carrier of their own (`fdd`).
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Pattern(pub Vec<Slot>);

impl Default for Pattern {
    fn default() -> Self {
        Pattern(vec![Slot::Down, Slot::Down, Slot::Down, Slot::Special, Slot::Up])
    }
}

impl Value for Pattern {
    fn unit() -> String {
        "slots | fdd".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let text = text.trim();
        if text.eq_ignore_ascii_case("fdd") {
            return Ok(Pattern(Vec::new()));
        }
        let slot = |letter| match letter {
            'D' | 'd' => Some(Slot::Down),
            'U' | 'u' => Some(Slot::Up),
            'S' | 's' => Some(Slot::Special),
            _ => None,
        };
        let slots: Option<Vec<Slot>> = text.chars().map(slot).collect();
        slots
            .filter(|slots| !slots.is_empty())
            .map(Pattern)
            .ok_or_else(|| "slots such as `DDDSU` (D down, U up, S both), or `fdd`".to_string())
    }

    fn show(&self) -> String {
        if self.0.is_empty() {
            return "fdd".to_string();
        }
        let letter = |slot: &Slot| match slot {
            Slot::Down => 'D',
            Slot::Up => 'U',
            Slot::Special => 'S',
        };
        self.0.iter().map(letter).collect()
    }
}

/// The symbols of a special slot: down, none, up.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Special {
    /// Symbols down.
    pub down: u32,
    /// Symbols of the guard between them.
    pub guard: u32,
    /// Symbols up.
    pub up: u32,
}

impl Value for Special {
    fn unit() -> String {
        "down/guard/up".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let expected = || format!("symbols down, of the guard and up, {SYMBOLS} together, such as `10/2/2`");
        let parts: Option<Vec<u32>> = text.split('/').map(|part| part.trim().parse().ok()).collect();
        match parts.as_deref() {
            Some(&[down, guard, up])
                if [guard, up].iter().try_fold(down, |sum, part| sum.checked_add(*part)) == Some(SYMBOLS) =>
            {
                Ok(Special { down, guard, up })
            }
            _ => Err(expected()),
        }
    }

    fn show(&self) -> String {
        format!("{}/{}/{}", self.down, self.guard, self.up)
    }
}

/// The symbols of a pattern's slots.
#[derive(Clone, Debug)]
pub struct Frame {
    /// Down and up.
    symbols: Vec<[u32; 2]>,
}

impl Frame {
    /// Lays out a pattern.
    pub fn new(pattern: &Pattern, special: Special) -> Self {
        let symbols = |slot: &Slot| match slot {
            Slot::Down => [SYMBOLS, 0],
            Slot::Up => [0, SYMBOLS],
            Slot::Special => [special.down, special.up],
        };
        let symbols = match pattern.0.is_empty() {
            true => vec![[SYMBOLS, SYMBOLS]],
            false => pattern.0.iter().map(symbols).collect(),
        };
        Frame { symbols }
    }

    /// Returns the slots after which the pattern repeats.
    pub fn period(&self) -> u64 {
        self.symbols.len() as u64
    }

    fn symbols(&self, direction: RadioDirection, slot: u64) -> u32 {
        self.symbols[(slot % self.period()) as usize][direction as usize]
    }

    /// Returns the symbols of a slot that carry data.
    pub fn data(&self, direction: RadioDirection, slot: u64) -> u32 {
        let fewest = match direction {
            RadioDirection::Down => FEWEST_DOWN,
            RadioDirection::Up => FEWEST_UP,
        };
        Some(self.symbols(direction, slot)).filter(|&symbols| symbols >= fewest).unwrap_or(0)
    }

    /// Returns whether any slot carries data.
    pub fn carries(&self, direction: RadioDirection) -> bool {
        (0..self.period()).any(|slot| self.data(direction, slot) > 0)
    }

    /// Returns whether any slot carries control: grants down, feedback and requests up.
    pub fn controls(&self, direction: RadioDirection) -> bool {
        (0..self.period()).any(|slot| self.symbols(direction, slot) > 0)
    }

    /// Returns whether a slot carries control.
    pub fn controls_in(&self, direction: RadioDirection, slot: u64) -> bool {
        self.symbols(direction, slot) > 0
    }

    /// Returns the first slot from this one on that carries control.
    pub fn next(&self, direction: RadioDirection, slot: u64) -> u64 {
        (slot..).find(|&slot| self.controls_in(direction, slot)).expect("checked: some slot does")
    }

    /// Returns the last slot up to this one that carries control; `None` before the first.
    pub fn last(&self, direction: RadioDirection, slot: u64) -> Option<u64> {
        (slot.saturating_sub(self.period())..=slot).rev().find(|&slot| self.controls_in(direction, slot))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn frame(pattern: &str, special: &str) -> Frame {
        Frame::new(&Pattern::parse(pattern).unwrap(), Special::parse(special).unwrap())
    }

    #[test]
    fn a_pattern_reads_back_and_nonsense_is_refused() {
        for text in ["DDDSU", "DDDDDDDSUU", "fdd"] {
            assert_eq!(Pattern::parse(text).unwrap().show(), text);
        }
        assert_eq!(Pattern::parse("dddsu").unwrap(), Pattern::default());
        for text in ["", "DDXU", "F D D"] {
            assert!(Pattern::parse(text).unwrap_err().contains("`DDDSU`"), "{text}");
        }
        assert_eq!(Special::parse("6/4/4").unwrap().show(), "6/4/4");
        for text in ["10/2", "10/2/3", "14", "-1/13/2", "4294967295/1/14"] {
            assert!(Special::parse(text).unwrap_err().contains("14 together"), "{text}");
        }
    }

    #[test]
    fn data_and_control_have_their_slots() {
        let frame = frame("DDDSU", "10/2/2");
        let data = |direction| [0, 1, 2, 3, 4, 5].map(|slot| frame.data(direction, slot));
        assert_eq!(data(RadioDirection::Down), [14, 14, 14, 10, 0, 14]);
        // Two symbols up carry feedback and no data.
        assert_eq!(data(RadioDirection::Up), [0, 0, 0, 0, 14, 0]);
        assert_eq!([0, 3, 4, 5].map(|slot| frame.next(RadioDirection::Up, slot)), [3, 3, 4, 8]);
        assert_eq!([0, 4, 9].map(|slot| frame.next(RadioDirection::Down, slot)), [0, 5, 10]);
        assert_eq!(
            [0, 3, 4, 9].map(|slot| frame.last(RadioDirection::Down, slot)),
            [Some(0), Some(3), Some(3), Some(8)]
        );
        assert_eq!([2, 3, 7].map(|slot| frame.last(RadioDirection::Up, slot)), [None, Some(3), Some(4)]);
    }

    #[test]
    fn with_a_carrier_each_every_slot_has_both() {
        let frame = frame("fdd", "10/2/2");
        for slot in [0, 7] {
            for direction in [RadioDirection::Down, RadioDirection::Up] {
                assert_eq!(frame.data(direction, slot), 14);
                assert_eq!(frame.next(direction, slot), slot);
                assert_eq!(frame.last(direction, slot), Some(slot));
            }
        }
        assert!(!super::tests::frame("DDDD", "10/2/2").carries(RadioDirection::Up));
    }
}
