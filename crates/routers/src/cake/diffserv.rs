//! Tins: which codepoint goes into which, and what each gets of the link (cake18 III-B; Linux 6.1
//! `sch_cake.c`).
//!
//! | `diffserv` | tin | codepoints | threshold, of the bandwidth | weight |
//! |---|---|---|---|---|
//! | `besteffort` | 0 | all | 1 | 1 |
//! | `diffserv3` | 1, bulk | LE, CS1 | 1/16 | 64 |
//! | | 0, best effort | all others | 1 | 1024 |
//! | | 2, voice | TOS4, VA, EF, CS6, CS7 | 1/4 | 256 |
//! | `diffserv4` | 1, bulk | LE, CS1 | 1/16 | 64 |
//! | | 0, best effort | all others | 1 | 1024 |
//! | | 2, video | TOS4, CS2, AF2x, CS3, AF3x, AF4x | 1/2 | 512 |
//! | | 3, voice | CS4, CS5, VA, EF, CS6, CS7 | 1/4 | 256 |
//! | `diffserv8` | 0 to 7 | background first, network control last | (7/8)^tin | 256 (7/8)^tin |
//! | `precedence` | 0 to 7 | by the three high bits | (7/8)^tin | 256 (7/8)^tin |

use alloc::format;
use alloc::string::{String, ToString};
use alloc::vec::Vec;

use brakelight_core::parameters::Value;

choices! {
    /// Which tins there are.
    pub enum Diffserv {
        /// One for all.
        BestEffort = "besteffort",
        /// Bulk, best effort and voice.
        Diffserv3 = "diffserv3",
        /// Bulk, best effort, video and voice.
        Diffserv4 = "diffserv4",
        /// Eight classes.
        Diffserv8 = "diffserv8",
        /// Eight, by the precedence of RFC 791.
        Precedence = "precedence",
    }
}

/// What a tin gets.
#[derive(Clone, Copy, Debug, PartialEq)]
pub(super) struct Share {
    /// Up to this rate it goes before tins below it, in the unit of the whole.
    pub(super) rate: u64,
    /// Its weight where there is no shaper.
    pub(super) weight: i64,
}

impl Diffserv {
    /// Returns what each tin gets of `rate`.
    pub(super) fn shares(self, rate: u64) -> Vec<Share> {
        let shifted = |shifts: &[u32]| {
            shifts.iter().map(|shift| Share { rate: rate >> shift, weight: 1024 >> shift }).collect()
        };
        match self {
            Diffserv::BestEffort => [Share { rate, weight: 65_535 }].into(),
            Diffserv::Diffserv3 => shifted(&[0, 4, 2]),
            Diffserv::Diffserv4 => shifted(&[0, 4, 1, 2]),
            Diffserv::Diffserv8 | Diffserv::Precedence => {
                let next = |share: &Share| {
                    Some(Share { rate: share.rate * 7 / 8, weight: (share.weight * 7 / 8).max(1) })
                };
                core::iter::successors(Some(Share { rate, weight: 256 }), next).take(8).collect()
            }
        }
    }

    /// Returns the tin of a codepoint.
    pub(super) fn tin(self, dscp: u8) -> usize {
        let is_even_class = dscp.is_multiple_of(2);
        match self {
            Diffserv::BestEffort => 0,
            Diffserv::Diffserv3 => match dscp {
                1 | 8 => 1,
                4 | 44 | 46 | 48 | 56 => 2,
                _ => 0,
            },
            Diffserv::Diffserv4 => match dscp {
                1 | 8 => 1,
                32 | 40 | 44 | 46 | 48 | 56 => 3,
                4 | 16..=38 if is_even_class => 2,
                _ => 0,
            },
            Diffserv::Diffserv8 => match dscp {
                1 => 0,
                2 | 8 | 10 | 12 | 14 => 1,
                24 | 26 | 28 | 30 | 34 | 36 | 38 => 3,
                4 | 18 | 20 | 22 => 4,
                16 => 5,
                32 | 40 | 44 | 46 => 6,
                48 | 56 => 7,
                _ => 2,
            },
            Diffserv::Precedence => usize::from(dscp >> 3),
        }
    }
}

/// Codepoints by name.
const NAMES: [(&str, u8); 23] = [
    ("cs0", 0),
    ("le", 1),
    ("cs1", 8),
    ("af11", 10),
    ("af12", 12),
    ("af13", 14),
    ("cs2", 16),
    ("af21", 18),
    ("af22", 20),
    ("af23", 22),
    ("cs3", 24),
    ("af31", 26),
    ("af32", 28),
    ("af33", 30),
    ("cs4", 32),
    ("af41", 34),
    ("af42", 36),
    ("af43", 38),
    ("cs5", 40),
    ("va", 44),
    ("ef", 46),
    ("cs6", 48),
    ("cs7", 56),
];

/// A codepoint for each flow, by its number.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Codepoints(Vec<u8>);

impl Codepoints {
    /// Returns the codepoint of flow number `flow`, if it is in the list.
    pub(super) fn of(&self, flow: u32) -> Option<u8> {
        self.0.get(flow as usize).copied()
    }
}

impl Value for Codepoints {
    fn unit() -> String {
        "codepoints".to_string()
    }

    fn parse(text: &str) -> Result<Self, String> {
        let one = |part: &str| {
            let named = NAMES.iter().find(|(name, _)| part.trim().eq_ignore_ascii_case(name));
            let number = || part.trim().parse().ok().filter(|number| *number < 64);
            named.map(|(_, number)| *number).or_else(number)
        };
        let all = text.split('/').map(one).collect::<Option<Vec<u8>>>();
        all.filter(|all| all.len() <= 65_536).map(Codepoints).ok_or_else(|| {
            "codepoints with `/` between them, each a name such as `cs1`, `af41` or `ef`, or 0 to 63"
                .to_string()
        })
    }

    fn show(&self) -> String {
        let one = |number: &u8| match NAMES.iter().find(|(_, other)| other == number) {
            Some((name, _)) => (*name).to_string(),
            None => format!("{number}"),
        };
        self.0.iter().map(one).collect::<Vec<_>>().join("/")
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The codepoints of a tin, ascending.
    fn of_tin(diffserv: Diffserv, tin: usize) -> Vec<u8> {
        (0..64).filter(|&dscp| diffserv.tin(dscp) == tin).collect()
    }

    #[test]
    fn codepoints_go_to_the_tins_of_the_table() {
        assert_eq!(of_tin(Diffserv::BestEffort, 0).len(), 64);
        assert_eq!(of_tin(Diffserv::Diffserv3, 1), [1, 8]);
        assert_eq!(of_tin(Diffserv::Diffserv3, 2), [4, 44, 46, 48, 56]);
        assert_eq!(of_tin(Diffserv::Diffserv4, 1), [1, 8]);
        assert_eq!(of_tin(Diffserv::Diffserv4, 2), [4, 16, 18, 20, 22, 24, 26, 28, 30, 34, 36, 38]);
        assert_eq!(of_tin(Diffserv::Diffserv4, 3), [32, 40, 44, 46, 48, 56]);
        assert_eq!(of_tin(Diffserv::Diffserv8, 0), [1]);
        assert_eq!(of_tin(Diffserv::Diffserv8, 1), [2, 8, 10, 12, 14]);
        assert_eq!(of_tin(Diffserv::Diffserv8, 4), [4, 18, 20, 22]);
        assert_eq!(of_tin(Diffserv::Diffserv8, 6), [32, 40, 44, 46]);
        assert_eq!(of_tin(Diffserv::Precedence, 5), (40..48).collect::<Vec<_>>());
    }

    #[test]
    fn tins_get_fractions_of_the_whole() {
        let rates = |diffserv: Diffserv| diffserv.shares(16_000).iter().map(|it| it.rate).collect::<Vec<_>>();
        assert_eq!(rates(Diffserv::BestEffort), [16_000]);
        assert_eq!(rates(Diffserv::Diffserv3), [16_000, 1000, 4000]);
        assert_eq!(rates(Diffserv::Diffserv4), [16_000, 1000, 8000, 4000]);
        assert_eq!(rates(Diffserv::Diffserv8)[..4], [16_000, 14_000, 12_250, 10_718]);
        let weights: Vec<i64> = Diffserv::Diffserv4.shares(0).iter().map(|it| it.weight).collect();
        assert_eq!(weights, [1024, 64, 512, 256]);
    }

    #[test]
    fn codepoints_are_read_by_name_or_number() {
        let list = Codepoints::parse("cs1/0/EF/63").unwrap();
        assert_eq!(list, Codepoints([8, 0, 46, 63].into()));
        assert_eq!(list.show(), "cs1/cs0/ef/63");
        assert_eq!(Codepoints::parse(&list.show()), Ok(list));
        for bad in ["", "ef/", "64", "-1", "gold"] {
            assert!(Codepoints::parse(bad).is_err(), "{bad}");
        }
    }
}
